//! `br` (RFC 7932).

use std::fmt;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{TRAILING, Wrong};
use crate::Cause;

/// One Brotli stream, with a window of at most 16 MiB: the larger ones are no part of the standard.
pub(super) struct Brotli {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    is_at_end: bool,
}

impl Default for Brotli {
    fn default() -> Brotli {
        let memory = StandardAlloc::default;
        Brotli { state: Box::new(BrotliState::new_strict(memory(), memory(), memory())), is_at_end: false }
    }
}

impl Brotli {
    pub(super) fn step(&mut self, input: &mut &[u8], output: &mut [u8]) -> Result<usize, Wrong> {
        const MALFORMED: Wrong = Wrong(Cause::Malformed, "malformed Brotli");
        if self.is_at_end {
            return if input.is_empty() { Ok(0) } else { Err(TRAILING) };
        }
        let (mut left, mut read) = (input.len(), 0);
        let (mut room, mut written, mut written_in_all) = (output.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut read,
            input,
            &mut room,
            &mut written,
            output,
            &mut written_in_all,
            &mut self.state,
        );
        *input = input.get(read..).ok_or(MALFORMED)?;
        match result {
            BrotliResult::ResultSuccess => self.is_at_end = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
            // What came out before is handed on: the next step fails again.
            BrotliResult::ResultFailure if written > 0 => {}
            BrotliResult::ResultFailure => return Err(MALFORMED),
        }
        Ok(written)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.is_at_end
    }
}

impl fmt::Debug for Brotli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brotli").field("is_at_end", &self.is_at_end).finish_non_exhaustive()
    }
}
