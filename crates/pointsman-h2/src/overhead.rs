//! How much may come on a connection that is no part of a message, from either end.

/// Bytes of frames that are of no use: so many in any case, so many for each second that the connection is open, and so
/// many times as many as are.
const BYTES_MIN: u64 = 1024 * 1024;
const BYTES_A_SECOND: u64 = 1024;
const FACTOR: u64 = 8;

/// How many bytes may come beside those of messages, of which there were `useful_bytes`, before it is a flood.
#[must_use]
pub fn overhead_bytes_max(useful_bytes: u64, seconds: u64) -> u64 {
    BYTES_MIN + seconds * BYTES_A_SECOND + FACTOR * useful_bytes
}
