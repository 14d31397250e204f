//! HTTP/2 connections (RFC 9113), whose streams are read and written as HTTP/1.1 messages.
//!
//! [`Connection`] drives a client's connection and hands out its [`Stream`]s. Reading from a stream gives the bytes of
//! the request as HTTP/1.1 would send it: a head, and a body by Content-Length or in chunks. Writing takes an answer's
//! head and the data of its body. So the rest of the switch knows one kind of message, and what HTTP/1 refuses is
//! refused here, too: nothing that a stream says can become a second request.
//!
//! [`open`] does the same towards a server: a [`ServerStream`] takes a request as HTTP/1.1, and gives its answer so.
//!
//! Frames, HPACK and flow control are the `h2` crate's. What is written is gathered and leaves in one piece when the
//! connection has had its turn.

mod answer;
mod connection;
mod fields;
mod frames;
mod gather;
pub mod heads;
mod held;
mod incoming;
mod outgoing;
mod overhead;
mod request;
mod server;
mod server_stream;
mod stream;

pub use connection::{Connection, Fault, Limits, PREFACE};
pub use frames::Frames;
pub use incoming::{Rest, RestCame};
pub use overhead::overhead_bytes_max;
pub use request::Oddity;
pub use server::{Requests, ServerConnection, ServerLimits, open};
pub use server_stream::ServerStream;
pub use stream::Stream;

// Its spans are compiled out, which only a feature of the crate itself can ask for.
use tracing as _;
