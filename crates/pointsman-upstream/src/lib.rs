//! Live connections to servers and the idle ones kept for the next request.
//!
//! Everything here belongs to one thread: no lock stands between a request and its connection.

mod connect;
mod connection;
mod idle;
mod multiplexed;
mod traffic;

pub use connect::{ConnectFault, Securing, connect};
pub use connection::{Connection, Secured};
pub use idle::{Check, IdleConnections, IdleLimits, Owner, PROBATION_MS, Place, ServerId, Trust};
pub use multiplexed::{Multiplexed, OnStream, Opening, Rest, Sharing};
