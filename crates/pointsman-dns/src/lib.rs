//! What names of servers stand for: asked on a thread of its own, and asked again when the answers have aged.
//!
//! [`Resolver`] is what the control thread sees of it. Below it, from the top: `desk.rs` decides when what is looked up,
//! `lookup.rs` makes questions of a name, `ask.rs` puts one to the name servers, and [`Question`] writes and reads the
//! messages.
//!
//! Invariant: an answer counts only for the question that it repeats, with its id, from the address and to the port that
//! it was asked at. A failure never takes away what is known.

mod ask;
mod desk;
mod lookup;
mod message;
mod resolver;
mod system;

pub use message::{Data, Heard, Question, Record};
pub use resolver::{NameState, News, Outcome, Reader, Resolver, Waiter};
