//! Method 2: handshakes one at a time, each with the moment of every step, and beside them what the primitives predict.
//!
//! Nothing else is under way, so that no queue is in the figures: a handshake takes what the client's side computes, what
//! the wire takes, and what the server's side computes. The first is known from our own CPU clock, the second from TCP's
//! handshake; what is left is the server's.

mod capture;
mod json;
mod key_log;
mod outcome;
mod phases;
mod plan;
mod predict;
mod recording;
mod report;
mod run;
mod shake;

pub use outcome::{Distribution, Measured, Outcome, SERVER_UNKNOWN, Void};
pub use phases::{Phase, Span};
pub use plan::{KindWanted, Plan, Wanted};
pub use predict::{Agreed, Prediction, Step};
pub use run::{Progress, handshake};
