//! Limits of a message head.

/// The most header lines any limit can allow: the parser's slots stand on the stack.
pub const HEADERS_MAX: usize = 256;

/// What a head may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of the whole head, its empty line included.
    pub head_bytes_max: usize,
    /// Header lines; at most [`HEADERS_MAX`].
    pub headers_max: usize,
    /// Bytes of the request target.
    pub target_bytes_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        HeadLimits { head_bytes_max: 16 * 1024, headers_max: 100, target_bytes_max: 8 * 1024 }
    }
}
