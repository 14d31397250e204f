//! `gzip` (RFC 1952).

use flate2::Crc;

use super::deflate::{Inflate, Inflated};
use super::{TRAILING, Wrong, collect};
use crate::Cause;

/// A gzip file: members one after another, each with its checks.
#[derive(Debug)]
pub(super) struct Gzip {
    place: Place,
    inflate: Inflate,
    /// Of the member's decoded bytes, with their number.
    content: Crc,
    /// Of the member's header.
    header: Crc,
    flags: u8,
    collected: Vec<u8>,
    members: u64,
}

/// What comes next in a member (RFC 1952 section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Header,
    ExtraLength,
    Extra(u16),
    Name,
    Comment,
    HeaderSum,
    Content,
    Trailer,
}

const HEADER_SUM: u8 = 1 << 1;
const EXTRA: u8 = 1 << 2;
const NAME: u8 = 1 << 3;
const COMMENT: u8 = 1 << 4;
/// Bits that no member may set (section 2.3.1.2).
const RESERVED: u8 = 0b1110_0000;

const BAD_HEADER: Wrong = Wrong(Cause::Malformed, "a malformed gzip header");

impl Default for Gzip {
    fn default() -> Gzip {
        Gzip {
            place: Place::Header,
            inflate: Inflate::raw(),
            content: Crc::new(),
            header: Crc::new(),
            flags: 0,
            collected: Vec::new(),
            members: 0,
        }
    }
}

impl Gzip {
    pub(super) fn step(&mut self, input: &mut &[u8], output: &mut [u8]) -> Result<usize, Wrong> {
        if self.place == Place::Content {
            let Inflated { written, is_end } = self.inflate.step(input, output)?;
            self.content.update(&output[..written]);
            if is_end {
                self.place = Place::Trailer;
            }
            // The end may be read with the last of the output, so that it takes a step of neither.
            if written > 0 || !is_end {
                return Ok(written);
            }
        }
        while !input.is_empty() && self.place != Place::Content {
            let before = *input;
            let next = self.around_content(input)?;
            let used = &before[..before.len() - input.len()];
            if !matches!(self.place, Place::HeaderSum | Place::Trailer) {
                self.header.update(used);
            }
            self.place = next;
        }
        Ok(0)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.place == Place::Header && self.collected.is_empty() && self.members > 0
    }

    /// Takes some of what stands around a member's content: what comes next.
    fn around_content(&mut self, input: &mut &[u8]) -> Result<Place, Wrong> {
        let is_whole = match self.place {
            Place::Header => self.read_header(input)?,
            Place::ExtraLength => collect(&mut self.collected, 2, input),
            Place::Extra(left) => {
                let skipped = input.len().min(usize::from(left));
                *input = &input[skipped..];
                let left = left - skipped as u16;
                if left > 0 {
                    return Ok(Place::Extra(left));
                }
                true
            }
            Place::Name | Place::Comment => skip_text(input),
            Place::HeaderSum => self.read_header_sum(input)?,
            Place::Trailer => self.read_trailer(input)?,
            Place::Content => true,
        };
        if !is_whole {
            return Ok(self.place);
        }
        let extra_bytes = self.collected.as_slice().try_into().map(u16::from_le_bytes);
        self.collected.clear();
        Ok(match (self.place, extra_bytes) {
            (Place::ExtraLength, Ok(left @ 1..)) => Place::Extra(left),
            (Place::Trailer, _) => Place::Header,
            (place, _) => self.behind(place),
        })
    }

    /// What the header's flags announce behind a place in it.
    fn behind(&self, place: Place) -> Place {
        let rest = match place {
            Place::Header => EXTRA | NAME | COMMENT | HEADER_SUM,
            Place::ExtraLength | Place::Extra(_) => NAME | COMMENT | HEADER_SUM,
            Place::Name => COMMENT | HEADER_SUM,
            Place::Comment => HEADER_SUM,
            Place::HeaderSum | Place::Content | Place::Trailer => 0,
        };
        match self.flags & rest {
            flags if flags & EXTRA != 0 => Place::ExtraLength,
            flags if flags & NAME != 0 => Place::Name,
            flags if flags & COMMENT != 0 => Place::Comment,
            flags if flags & HEADER_SUM != 0 => Place::HeaderSum,
            _ => Place::Content,
        }
    }

    fn read_header(&mut self, input: &mut &[u8]) -> Result<bool, Wrong> {
        const MAGIC: &[u8] = &[0x1f, 0x8b, 8];
        let is_whole = collect(&mut self.collected, 10, input);
        let known = self.collected.len().min(MAGIC.len());
        if self.collected[..known] != MAGIC[..known] {
            return Err(if self.members == 0 { BAD_HEADER } else { TRAILING });
        }
        let flags = self.collected.get(3).copied().unwrap_or_default();
        if flags & RESERVED != 0 {
            return Err(BAD_HEADER);
        }
        if is_whole {
            self.flags = flags;
        }
        Ok(is_whole)
    }

    fn read_header_sum(&mut self, input: &mut &[u8]) -> Result<bool, Wrong> {
        let is_whole = collect(&mut self.collected, 2, input);
        if is_whole && self.collected != self.header.sum().to_le_bytes()[..2] {
            return Err(Wrong(Cause::Malformed, "a gzip header with another checksum"));
        }
        Ok(is_whole)
    }

    fn read_trailer(&mut self, input: &mut &[u8]) -> Result<bool, Wrong> {
        let is_whole = collect(&mut self.collected, 8, input);
        if is_whole {
            let sums = [self.content.sum().to_le_bytes(), self.content.amount().to_le_bytes()];
            if self.collected != sums.as_flattened() {
                return Err(Wrong(Cause::Malformed, "gzip content with another checksum or length"));
            }
            self.content.reset();
            self.header.reset();
            self.inflate.restart_raw();
            self.members += 1;
        }
        Ok(is_whole)
    }
}

/// Skips bytes up to behind a zero: whether it is there.
fn skip_text(input: &mut &[u8]) -> bool {
    match memchr::memchr(0, input) {
        Some(at) => {
            *input = &input[at + 1..];
            true
        }
        None => {
            *input = &[];
            false
        }
    }
}
