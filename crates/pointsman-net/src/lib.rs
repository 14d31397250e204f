//! Listen, accept, deadlines and the event loop of a thread; the only crate that binds or accepts.
//!
//! The event loop is our own: sockets, deadlines and tasks of one thread, and nothing else. What stands
//! here speaks `tokio::io`'s traits, which the libraries above are written for; tokio's runtime is not there.

mod budget;
mod buffers;
mod clock;
mod datagram;
mod deadline;
mod event_loop;
mod listen;
mod proxy_protocol;
mod reactor;
mod service;
mod signals;
mod splice;
mod stall;
mod stream;
mod succession;
mod table;
mod transfer;
mod wheel;

pub use budget::{Account, Booking, Budget};
pub use buffers::{BufferPool, PooledBuffer};
pub use clock::Clock;
pub use datagram::{Udp, connect_udp};
pub use deadline::{Deadline, Elapsed, Timers, Within};
pub use event_loop::{Bell, EventLoop, Task, has_woken_tasks, spawn};
pub use listen::{
    Accepted, Acceptor, Bound, Ipv6, PATH_BYTES_MAX, SocketFile, adopt, bind, bind_beside, bind_path,
    bound_to, is_bound_to, is_bound_to_path, is_free, is_path_free, is_shared,
};
pub use proxy_protocol::{
    Claim, HEADER_BYTES_MAX, Header, HeaderFault, HeaderValues, parse_header, read_header,
};
pub use proxy_protocol::{
    PassedOn, TlsClaim, TlsSession, write_header_v1, write_header_v2, write_local_header_v2,
};
pub use reactor::Presence;
pub use service::{ServiceManager, monotonic_us};
pub use signals::{EarlySignals, Signal, Signals, survive_limits};
pub use splice::{Pipe, Pipes};
pub use stall::Stall;
pub use stream::{Tcp, connect};
pub use succession::{Line, PARCEL_BYTES_MAX, PARCEL_SOCKETS_MAX, Parcel};
pub use table::{Arrivals, Received, SocketReceiver, SocketSender, own_descriptor_table, socket_channel};
pub use transfer::{poll_read_into, read_into, write_all};

/// An address whose IPv4-mapped form counts as IPv4.
pub fn canonical(address: std::net::SocketAddr) -> std::net::SocketAddr {
    std::net::SocketAddr::new(address.ip().to_canonical(), address.port())
}
