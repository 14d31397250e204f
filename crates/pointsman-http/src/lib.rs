//! What an HTTP message is and is not: the HTTP/1 codec, which refuses ambiguity.
//!
//! A head is parsed where it lies and remembered as offsets, so that it can be forwarded as the
//! bytes it came in, with edits. Whatever two parsers could read differently is refused
//! (RFC 9112 section 6.3 and the request-smuggling family).
//!
//! Invariant: nothing here reads a socket, a clock or a file.

mod announced;
mod answer;
mod body;
mod connection;
mod first_line;
mod forward;
mod frames;
mod grpc;
mod header;
mod limits;
mod lines;
mod method;
mod odd_name;
mod refusal;
mod request;
mod request_start;
mod response;
mod sixteen;
mod target;
mod trailer;
mod trailer_names;
mod unfinished;
mod upgrade;
mod websocket;

pub use answer::{Answer, PLAIN_TEXT_LINE, reason_phrase};
pub use body::{BodyFault, BodyReader, Fed, Framing};
pub use frames::{Frames, GOING_AWAY};
pub use grpc::push_grpc_lines;
pub use header::{HeaderKind, HeaderLine, is_field_value, is_token};
pub use limits::{HEADERS_MAX, HeadLimits};
pub use method::Method;
pub use odd_name::OddNames;
pub use refusal::Refusal;
pub use request::{RequestHead, Version};
pub use request_start::{REQUEST_START_BYTES_MAX, begins_request};
pub use response::{AnswerTo, ResponseHead};
pub use target::{TargetForm, is_authority};
pub use trailer::{Cut, Trailers, announced, may_trail_request, retain_lines};
pub use trailer_names::{is_kept_from_clients, is_kept_from_servers, names_read_alike};
pub use unfinished::Unfinished;
pub use upgrade::{Granted, Upgrade};
