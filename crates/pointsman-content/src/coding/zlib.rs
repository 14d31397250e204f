//! `deflate`: the zlib format (RFC 1950), and the deflate in it and in gzip (RFC 1951).

use flate2::{Decompress, FlushDecompress, Status};

use super::{TRAILING, Wrong};
use crate::Cause;

/// Inflates one stream.
#[derive(Debug)]
pub(super) struct Inflate(Decompress);

/// What one step of inflating did.
pub(super) struct Inflated {
    pub(super) written: usize,
    pub(super) is_end: bool,
}

impl Inflate {
    /// For deflate without anything around it.
    pub(super) fn raw() -> Inflate {
        Inflate(Decompress::new(false))
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

/// One zlib stream.
#[derive(Debug)]
pub(super) struct Zlib {
    inflate: Inflate,
    is_at_end: bool,
}

impl Default for Zlib {
    fn default() -> Zlib {
        Zlib { inflate: Inflate(Decompress::new(true)), is_at_end: false }
    }
}

impl Zlib {
    pub(super) fn step(&mut self, input: &mut &[u8], output: &mut [u8]) -> Result<usize, Wrong> {
        if self.is_at_end {
            return if input.is_empty() { Ok(0) } else { Err(TRAILING) };
        }
        let Inflated { written, is_end } = self.inflate.step(input, output)?;
        self.is_at_end = is_end;
        Ok(written)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.is_at_end
    }
}
