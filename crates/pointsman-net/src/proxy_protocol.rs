//! The PROXY protocol: whom a proxy in front speaks for, said before the first byte of a connection.

mod read;

pub use read::{Claim, HEADER_BYTES_MAX, Header, HeaderFault, parse_header, read_header};
