//! Who may have how much: rates of requests and of bytes, with time as an argument.
//!
//! Invariant: nothing here reads a clock, draws a random number, waits or does input and output.

mod bandwidth;
mod buckets;
mod meter;
mod rate;

pub use bandwidth::{BURST_BYTES_MIN, ClassRates, ClassState, DEPTH_MAX, Grant, PIECE_BYTES, Tree};
pub use buckets::{BYTES_PER_KEY, Buckets};
pub use rate::{Bucket, Rate, Wait};
