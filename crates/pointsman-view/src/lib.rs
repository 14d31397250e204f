//! An HTTP request as the fields that a rule can ask for, lazily.
//!
//! A rule that is fooled by spelling is a hole, so every field that has many spellings has one
//! normal form here, and the path a rule sees is the path that is forwarded.
//!
//! Invariant: nothing here reads a socket, a clock or a file, and asking for a field changes nothing.

mod address;
mod body;
mod clientip;
mod connection;
mod content;
mod cookie;
mod forwarding;
mod host;
mod path;
mod percent;
mod query;
mod readings;
mod recorded;
mod request;
mod unread;

pub use address::{ADDRESS_BYTES_MAX, AddressText};
pub use body::{BodyFault, BodyKind, BodyLabel, BodyOptions, BodyPaths, Inspection, Reads};
pub use clientip::{TrustedProxies, client_ip};
pub use connection::{Connection, Proxied, ProxyFacts, ProxyValues, TlsClient, TlsFacts};
pub use cookie::{cookie_values, without_cookie};
pub use forwarding::{
    Forwarding, ForwardingModes, Peer, add_forwarding_lines, is_about_hops, take_away_forwarding,
};
pub use host::{HOST_BYTES_MAX, default_authority, normal_host};
pub use path::{EncodedSlash, NormalPath, PathOptions, PathRefusal, normal_form};
pub use query::{QueryValue, query_values};
pub use readings::{Readings, Server, Servers, is_list};
pub use recorded::{Known, Recorded, RecordedBody};
pub use request::RequestView;
pub use unread::{ConnectionView, HelloFacts};
// What a document or form may be is among the options of bodies.
pub use pointsman_content::Limits as ContentLimits;
