//! `br` (RFC 7932).

use std::fmt;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, SliceWrapper, StandardAlloc};

use super::{TRAILING, Wrong};
use crate::Cause;

/// Bytes that the decoder takes at a time. Behind the header of a meta-block, a prefix code for each of three alphabets
/// stands before what it means: so few bytes do not reach from the one to the other (RFC 7932 section 9.2).
const STEP_BYTES_MAX: usize = 4;

/// One Brotli stream, with a window of at most 16 MiB: the larger ones are no part of the standard.
///
/// The commands of a meta-block may take no bits at all, and then the decoder comes back when all of it is decoded. So
/// none is begun before as much may come out as its header announces: what is behind the header waits.
pub(super) struct Brotli {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    /// Bytes that wait, behind those that were taken.
    waiting: Vec<u8>,
    taken: usize,
    /// Whether the decoder stopped for want of room.
    wants_room: bool,
    is_at_end: bool,
}

impl Default for Brotli {
    fn default() -> Brotli {
        let memory = StandardAlloc::default;
        Brotli {
            state: Box::new(BrotliState::new_strict(memory(), memory(), memory())),
            waiting: Vec::new(),
            taken: 0,
            wants_room: false,
            is_at_end: false,
        }
    }
}

impl Brotli {
    /// As [`super::Decoder::step`]; of its content, no more than `most` bytes may have come out in the end.
    pub(super) fn step(&mut self, input: &mut &[u8], output: &mut [u8], most: u64) -> Result<usize, Wrong> {
        loop {
            if self.is_at_end {
                let is_all = input.is_empty() && !self.is_waiting();
                return if is_all { Ok(0) } else { Err(TRAILING) };
            }
            let may_go_on = self.announced() <= most;
            let mut few = [0; STEP_BYTES_MAX];
            let from = if self.is_waiting() { &self.waiting[self.taken..] } else { *input };
            let bytes = if may_go_on { from.len().min(STEP_BYTES_MAX) } else { 0 };
            few[..bytes].copy_from_slice(&from[..bytes]);
            if bytes == 0 && !self.wants_room {
                if !may_go_on {
                    self.waiting.drain(..self.taken);
                    self.taken = 0;
                    self.waiting.extend_from_slice(input);
                    *input = &[];
                }
                return Ok(0);
            }
            let (read, written) = self.decode(&few[..bytes], output)?;
            if self.is_waiting() {
                self.taken += read;
            } else {
                *input = &input[read..];
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }

    /// Takes a few bytes: how many, and how much was written.
    fn decode(&mut self, few: &[u8], output: &mut [u8]) -> Result<(usize, usize), Wrong> {
        const MALFORMED: Wrong = Wrong(Cause::Malformed, "malformed Brotli");
        let (mut left, mut read) = (few.len(), 0);
        let (mut room, mut written, mut written_in_all) = (output.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut read,
            few,
            &mut room,
            &mut written,
            output,
            &mut written_in_all,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultSuccess => self.is_at_end = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
            // What came out before is handed on: the next step fails again.
            BrotliResult::ResultFailure if written > 0 => {}
            BrotliResult::ResultFailure => return Err(MALFORMED),
        }
        // Whatever it is that it waits for: there may be more than there was room for.
        self.wants_room = room == 0 || !matches!(result, BrotliResult::NeedsMoreInput);
        if read > few.len() || (read == 0 && written == 0 && !few.is_empty() && !self.is_at_end) {
            return Err(MALFORMED);
        }
        Ok((read, written))
    }

    /// Bytes that will have come out at the end of the present meta-block, as far as its header has been read.
    fn announced(&self) -> u64 {
        let state = &self.state;
        let turn = u64::try_from(state.ringbuffer_size).unwrap_or(0);
        let decoded = state.rb_roundtrips * turn + u64::try_from(state.pos).unwrap_or(0);
        let coming = if state.is_metadata == 0 { state.meta_block_remaining_len } else { 0 };
        decoded + u64::try_from(coming).unwrap_or(0)
    }

    /// Whether there is input that waits until more may come out.
    pub(super) fn is_waiting(&self) -> bool {
        self.taken < self.waiting.len()
    }

    /// Bytes of the window, with those of the half that it was grown from, of the tables, and of what waits.
    pub(super) fn held_bytes(&self) -> usize {
        /// The state itself, context maps, and tables of the types of blocks.
        const OTHER_BYTES: usize = 96 * 1024;
        let state = &self.state;
        let window = state.ringbuffer.slice().len();
        let groups = [&state.literal_hgroup, &state.insert_copy_hgroup, &state.distance_hgroup];
        let codes: usize = groups.iter().map(|group| size_of_val(group.codes.slice())).sum();
        OTHER_BYTES + window + window / 2 + codes + self.waiting.capacity()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.is_at_end && !self.is_waiting()
    }
}

impl fmt::Debug for Brotli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brotli").field("is_at_end", &self.is_at_end).finish_non_exhaustive()
    }
}
