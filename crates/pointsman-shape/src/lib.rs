//! Who may have how much: rates of requests, with time as an argument.
//!
//! Invariant: nothing here reads a clock, draws a random number, waits or does input and output.

mod buckets;
mod rate;

pub use buckets::{BYTES_PER_KEY, Buckets};
pub use rate::{Bucket, Rate, Wait};
