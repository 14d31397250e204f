//! What stands before the first delimiter.

use super::Wrong;
use crate::Cause;

/// Looks for `--boundary` within the lines of a preamble, where Werkzeug sees a delimiter and other servers see none.
///
/// It holds fewer bytes than `--boundary` has.
#[derive(Debug, Default)]
pub(super) struct Preamble {
    /// The last bytes, with which `--boundary` may begin.
    tail: Vec<u8>,
}

impl Preamble {
    pub(super) fn feed(&mut self, data: &[u8], dash_boundary: &[u8]) -> Result<(), Wrong> {
        let tail_bytes_max = dash_boundary.len().saturating_sub(1);
        let start = &data[..data.len().min(tail_bytes_max)];
        let at_cut = [&self.tail, start].concat();
        if [&at_cut, data].iter().any(|bytes| memchr::memmem::find(bytes, dash_boundary).is_some()) {
            return Err(Wrong(Cause::Malformed, "a boundary within a line of the preamble"));
        }
        let last = if data.len() < tail_bytes_max { &at_cut } else { data };
        self.tail = last[last.len().saturating_sub(tail_bytes_max)..].to_vec();
        Ok(())
    }
}
