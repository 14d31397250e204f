//! The PROXY protocol: whom a proxy in front speaks for, said before the first byte of a connection.

mod write;

pub use write::{TlsClaim, write_header_v1, write_header_v2};
