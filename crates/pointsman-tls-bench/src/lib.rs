//! What TLS costs, from below: the primitives that handshakes are made of, and one handshake at a time.
//!
//! [`crypto::crypto`] measures primitives by provider, with two clocks: how many there are in a second, and what this machine's
//! cores spend on each. [`Engaged`] is what follows for accelerators. [`handshake::handshake`] does handshakes one at a
//! time, and says of each side what the primitives explain of it.
//!
//! Invariants:
//! - A rate is by the wall clock, never by CPU time.
//! - Providers take turns in rounds; nothing is compared that was not measured beside it.
//! - The switch uses nothing of this crate: other libraries and other programs come with it.

pub mod crypto;
mod crypto_json;
mod crypto_report;
mod engaged;
pub mod handshake;
mod keys;
mod library;
mod openssl;
mod operation;
mod provider;
mod round;
mod schedule;
mod token;
mod work;

pub use engaged::{Engaged, Place, instructions, processor_flags};
pub use library::Library;
pub use openssl::Openssl;
pub use operation::{Cipher, Group, Operation, Primitive, Schedule, Signature};
pub use provider::Provider;
pub use round::Round;
pub use token::Token;
pub use work::Trouble;
