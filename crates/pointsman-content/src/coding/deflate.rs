//! `deflate`: the zlib format (RFC 1950), or deflate without it, which is in gzip, too (RFC 1951).

use flate2::{Decompress, FlushDecompress, Status};

use super::{TRAILING, Wrong, collect};
use crate::Cause;

/// Inflates one stream.
#[derive(Debug)]
pub(super) struct Inflate(Decompress);

/// Result of one step of inflating.
pub(super) struct Inflated {
    pub(super) written: usize,
    pub(super) is_end: bool,
}

impl Inflate {
    /// For deflate without anything around it.
    pub(super) fn raw() -> Inflate {
        Inflate(Decompress::new(false))
    }

    /// For the zlib format.
    fn zlib() -> Inflate {
        Inflate(Decompress::new(true))
    }

    /// For another stream of deflate without anything around it.
    pub(super) fn restart_raw(&mut self) {
        self.0.reset(false);
    }

    pub(super) fn step(&mut self, input: &mut &[u8], output: &mut [u8]) -> Result<Inflated, Wrong> {
        const MALFORMED: Wrong = Wrong(Cause::Malformed, "malformed deflate");
        let (read, written) = (self.0.total_in(), self.0.total_out());
        let status = self.0.decompress(input, output, FlushDecompress::None);
        let read = usize::try_from(self.0.total_in() - read).map_err(|_| MALFORMED)?;
        let written = usize::try_from(self.0.total_out() - written).map_err(|_| MALFORMED)?;
        *input = input.get(read..).ok_or(MALFORMED)?;
        match status {
            // What came out before a fault is handed on: the next step fails again.
            Err(_) if written == 0 => Err(MALFORMED),
            status => Ok(Inflated { written, is_end: matches!(status, Ok(Status::StreamEnd)) }),
        }
    }
}

/// One stream, in the zlib format or without it: RFC 9110 section 8.4.1.2 asks for zlib, and notes that some clients
/// leave it away.
#[derive(Debug, Default)]
pub(super) struct Deflate {
    /// The first two bytes, which say what follows, until they are inflated.
    start: Vec<u8>,
    inflate: Option<Inflate>,
    is_at_end: bool,
}

impl Deflate {
    pub(super) fn step(&mut self, input: &mut &[u8], output: &mut [u8]) -> Result<usize, Wrong> {
        if self.is_at_end {
            return if input.is_empty() && self.start.is_empty() { Ok(0) } else { Err(TRAILING) };
        }
        let inflate = match &mut self.inflate {
            Some(inflate) => inflate,
            None => match (collect(&mut self.start, 2, input), &self.start[..]) {
                (false, _) => return Ok(0),
                (true, start) if is_zlib(start) => self.inflate.insert(Inflate::zlib()),
                (true, _) => self.inflate.insert(Inflate::raw()),
            },
        };
        while !self.start.is_empty() {
            let mut start = &self.start[..];
            let Inflated { written, is_end } = inflate.step(&mut start, output)?;
            let used = self.start.len() - start.len();
            self.start.drain(..used);
            self.is_at_end = is_end;
            if written > 0 || is_end {
                return Ok(written);
            }
            if used == 0 {
                return Err(Wrong(crate::Cause::Malformed, "malformed deflate"));
            }
        }
        let Inflated { written, is_end } = inflate.step(input, output)?;
        self.is_at_end = is_end;
        Ok(written)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.is_at_end
    }
}

/// Whether a header of zlib stands there (RFC 1950 section 2.2): deflate, a window of at most 32 KiB, and a sum.
fn is_zlib(start: &[u8]) -> bool {
    let &[method, flags] = start else { return false };
    method & 0xf == 8 && method >> 4 <= 7 && u16::from_be_bytes([method, flags]).is_multiple_of(31)
}
