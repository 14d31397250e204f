//! What turns trials of a server into results that can be trusted: statistics, the search for the saturation
//! point, the verdict on the client, comparisons, workloads, and the report.
//!
//! Pure: no socket, no file, no clock. Whoever runs the trials gives what was seen, and a seeded [`Random`] where
//! numbers have to be drawn, so that a result can be had again from the same observations.
//! All intervals are at [`CONFIDENCE`].

pub mod chart;
pub mod compare;
mod random;
pub mod report;
pub mod search;
pub mod statistics;
pub mod table;
pub mod verdict;
pub mod workload;

pub use random::Random;
pub use statistics::{CONFIDENCE, Interval};
