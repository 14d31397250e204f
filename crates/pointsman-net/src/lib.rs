//! Listen, accept, deadlines and the event loop of a thread; the only crate that binds or accepts.
//!
//! The crates above name `tokio::io`'s traits and what stands here, never tokio's own sockets,
//! timers or tasks: the runtime stays replaceable.

mod buffers;
mod clock;
mod deadline;
mod event_loop;
mod listen;
mod stream;
mod transfer;
mod wheel;

pub use buffers::{BufferPool, PooledBuffer};
pub use clock::Clock;
pub use deadline::{Deadline, Elapsed, Timers, Within};
pub use event_loop::{EventLoop, Task, spawn};
pub use listen::{Acceptor, Bound, bind, is_free};
pub use stream::{Io, Tcp, connect};
pub use transfer::{poll_read_into, read_into, write_all};

/// An address whose IPv4-mapped form counts as IPv4.
pub fn canonical(address: std::net::SocketAddr) -> std::net::SocketAddr {
    std::net::SocketAddr::new(address.ip().to_canonical(), address.port())
}
