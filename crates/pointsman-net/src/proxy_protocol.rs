//! The PROXY protocol: whom a proxy in front speaks for, said before the first byte of a connection.

mod read;
mod values;
mod write;

pub use read::{Claim, HEADER_BYTES_MAX, Header, HeaderFault, parse_header, read_header};
pub use values::HeaderValues;
pub use write::{PassedOn, TlsClaim, TlsSession, write_header_v1, write_header_v2, write_local_header_v2};
