//! `zstd` (RFC 8878).

use std::fmt;

use ruzstd::{
    decoding::{BlockDecodingStrategy, FrameDecoder, errors::FrameDecoderError},
    io::Read,
};

use super::{TRAILING, Wrong, collect};
use crate::Cause;

/// The window that every decoder has room for, and no encoder goes beyond (RFC 9659 section 3).
const WINDOW_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Frames one after another. Each block is collected whole, at most 128 KiB, before it is decoded; what a block means
/// comes out when it is no longer in the frame's window, or when the frame ends.
pub(super) struct Zstd {
    place: Place,
    decoder: FrameDecoder,
    collected: Vec<u8>,
    /// Bytes of the frame's content that its header announces (RFC 8878 section 3.1.1.1.4).
    announced: Option<u64>,
    has_checksum: bool,
    /// Bytes of the frame's content that came out.
    written: u64,
    frames: u64,
    /// The largest window of a frame so far.
    window_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Where a frame begins, or the content ends.
    Header,
    /// In a skippable frame (section 3.1.2), whose length has been read.
    Skip(u32),
    Block,
    /// All blocks are decoded; what they mean comes out.
    Drain,
}

const BAD_HEADER: Wrong = Wrong(Cause::Malformed, "a malformed zstd frame header");
const BAD_BLOCK: Wrong = Wrong(Cause::Malformed, "a malformed zstd block");

impl Default for Zstd {
    fn default() -> Zstd {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_BYTES_MAX);
        Zstd {
            place: Place::Header,
            decoder,
            collected: Vec::new(),
            announced: None,
            has_checksum: false,
            written: 0,
            frames: 0,
            window_bytes: 0,
        }
    }
}

impl Zstd {
    pub(super) fn step(&mut self, input: &mut &[u8], output: &mut [u8]) -> Result<usize, Wrong> {
        loop {
            if matches!(self.place, Place::Block | Place::Drain) {
                let written = self.decoder.read(output).map_err(|_| BAD_BLOCK)?;
                self.written += written as u64;
                if written > 0 {
                    return Ok(written);
                }
            }
            let next = match self.place {
                Place::Header => self.read_header(input)?,
                Place::Skip(left) => {
                    let skipped = u32::try_from(input.len()).unwrap_or(u32::MAX).min(left);
                    *input = &input[skipped as usize..];
                    self.place = Place::Skip(left - skipped);
                    (skipped == left).then_some(Place::Header)
                }
                Place::Block => self.read_block(input)?,
                Place::Drain => Some(self.end_frame()?),
            };
            match next {
                Some(place) => self.place = place,
                None => return Ok(0),
            }
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.place == Place::Header && self.collected.is_empty() && self.frames > 0
    }

    /// Bytes of the window, which has its room when its frame begins, with those of the half that it was grown from, and
    /// of a block, its literals and sequences.
    pub(super) fn held_bytes(&self) -> usize {
        const OTHER_BYTES: usize = 1024 * 1024;
        let room = usize::try_from(self.window_bytes).unwrap_or(usize::MAX);
        OTHER_BYTES + room.saturating_mul(3) + self.collected.capacity()
    }

    /// Reads a frame's header (section 3.1.1.1): what comes next, if it is whole.
    fn read_header(&mut self, input: &mut &[u8]) -> Result<Option<Place>, Wrong> {
        const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
        if input.is_empty() || !collect(&mut self.collected, MAGIC.len(), input) {
            return Ok(None);
        }
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] = self.collected[..] {
            if !collect(&mut self.collected, 8, input) {
                return Ok(None);
            }
            let length = self.collected[4..].try_into().map_or(0, u32::from_le_bytes);
            self.collected.clear();
            return Ok(Some(Place::Skip(length)));
        }
        if !self.collected.starts_with(&MAGIC) {
            return Err(if self.frames == 0 { BAD_HEADER } else { TRAILING });
        }
        if !collect(&mut self.collected, MAGIC.len() + 1, input) {
            return Ok(None);
        }
        let descriptor = self.collected[MAGIC.len()];
        // The reserved bit (section 3.1.1.1.1.4), and a dictionary, which nobody has.
        if descriptor & 0b1011 != 0 {
            return Err(BAD_HEADER);
        }
        let is_single_segment = descriptor & 0b10_0000 != 0;
        let announced_bytes = match descriptor >> 6 {
            0 => usize::from(is_single_segment),
            1 => 2,
            2 => 4,
            _ => 8,
        };
        let header_bytes = MAGIC.len() + 1 + usize::from(!is_single_segment) + announced_bytes;
        if !collect(&mut self.collected, header_bytes, input) {
            return Ok(None);
        }
        self.decoder.reset(&self.collected[..]).map_err(|error| match error {
            FrameDecoderError::WindowSizeTooBig { .. } => Wrong(Cause::Limit, "a zstd window beyond 8 MiB"),
            _ => BAD_HEADER,
        })?;
        self.window_bytes = self.window_bytes.max(match is_single_segment {
            true => self.decoder.content_size(),
            false => window_bytes(self.collected[MAGIC.len() + 1]),
        });
        self.announced = (announced_bytes > 0).then(|| self.decoder.content_size());
        self.has_checksum = descriptor & 0b100 != 0;
        self.written = 0;
        self.collected.clear();
        Ok(Some(Place::Block))
    }

    /// Reads a block (section 3.1.1.2), with the checksum that may stand behind the last one.
    fn read_block(&mut self, input: &mut &[u8]) -> Result<Option<Place>, Wrong> {
        const HEADER_BYTES: usize = 3;
        const BLOCK_BYTES_MAX: usize = 128 * 1024;
        if !collect(&mut self.collected, HEADER_BYTES, input) {
            return Ok(None);
        }
        let &[low, middle, high, ..] = &self.collected[..] else { return Ok(None) };
        let header = u32::from_le_bytes([low, middle, high, 0]);
        let (is_last, kind, size) = (header & 1 != 0, header >> 1 & 0b11, (header >> 3) as usize);
        if kind == 3 || size > BLOCK_BYTES_MAX {
            return Err(BAD_BLOCK);
        }
        let content_bytes = if kind == 1 { 1 } else { size };
        let checksum_bytes = if is_last && self.has_checksum { 4 } else { 0 };
        if !collect(&mut self.collected, HEADER_BYTES + content_bytes + checksum_bytes, input) {
            return Ok(None);
        }
        let decoded = self.decoder.decode_blocks(&self.collected[..], BlockDecodingStrategy::UptoBlocks(1));
        self.collected.clear();
        let is_last = decoded.map_err(|_| BAD_BLOCK)?;
        Ok(Some(if is_last { Place::Drain } else { Place::Block }))
    }

    fn end_frame(&mut self) -> Result<Place, Wrong> {
        if self.announced.is_some_and(|announced| announced != self.written) {
            return Err(Wrong(Cause::Malformed, "zstd content of another length"));
        }
        if self.has_checksum
            && self.decoder.get_checksum_from_data() != self.decoder.get_calculated_checksum()
        {
            return Err(Wrong(Cause::Malformed, "zstd content with another checksum"));
        }
        self.frames += 1;
        Ok(Place::Header)
    }
}

/// What a window's descriptor says (section 3.1.1.1.2).
fn window_bytes(descriptor: u8) -> u64 {
    let base = 1_u64 << (10 + (descriptor >> 3));
    base + base / 8 * u64::from(descriptor & 0b111)
}

impl fmt::Debug for Zstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zstd").field("place", &self.place).finish_non_exhaustive()
    }
}
