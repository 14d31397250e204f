//! Certificates, peers, versions and tickets; of the switch's way the only crate that names rustls.
//!
//! [`ServerTls`] is what an operator wrote. [`Acceptor::build`] reads the files once, at load, and says all
//! that is wrong with them; after that nothing here touches a file. [`Acceptor::accept`] does the handshake
//! over any stream, and [`TlsStream::facts`] says what came of it. The other side, to servers, is likewise
//! [`ClientTls`], [`Connectors::build`] and [`Connector::connect`]; [`Client`] is the same for tools, blocking, and
//! [`Offer`] makes what the load generator, which does its own input and output, hands to the library.
//!
//! Invariants:
//! - A session resumes only under the client-certificate policy that made it: each acceptor has ticket keys
//!   and a session cache of its own, and a rebuilt one inherits them only from an equal policy. Keys out of a file
//!   are derived for each policy.
//! - A session with a server resumes only under the settings that made it: each connector has its own, and an
//!   equal one of the plan before takes its place.
//! - No early data: a request is never read before the handshake is complete.

mod acceptor;
mod alert;
mod authority;
mod bounded_file;
mod certificate;
mod client;
mod client_chain;
mod connector;
mod encrypted_key;
mod error;
mod fault;
mod hello;
mod identity;
mod offer;
mod own_keys;
mod pem;
mod reader;
mod resolver;
mod server_fault;
mod server_stream;
mod session_id;
mod session_name;
mod session_watch;
mod sessions;
mod settings;
mod stream;
mod tickets;
mod verifier;
mod words;

pub use acceptor::Acceptor;
pub use alert::Alert;
pub use authority::AuthorityFacts;
pub use bounded_file::BoundedFile;
pub use certificate::{CertificateFacts, CertificateWarning, Concern, Sent, ShownTo, check_pair, name_in};
pub use client::{Client, ClientStream};
pub use client_chain::ClientChain;
pub use connector::{Connector, Connectors, SystemAuthorities};
pub use error::{Problem, TlsError};
pub use fault::HandshakeFault;
pub use hello::{
    ClientHello, HELLO_BYTES_MAX, HELLO_PROTOCOLS_BYTES_MAX, HELLO_PROTOCOLS_MAX, HELLO_WIRE_BYTES_MAX,
    HelloFault, client_hello, hello_bytes_needed, is_dns_name, shown_session, without_last_dot,
};
pub use identity::ClientIdentity;
pub use offer::{Offer, OneVersion, group_name};
pub use own_keys::TicketSecret;
pub use pem::split_pem;
pub use server_fault::ServerHandshakeFault;
pub use server_stream::ServerStream;
pub use session_id::SessionId;
pub use session_name::{SessionName, ShownSession};
pub use session_watch::SessionWatch;
pub use settings::{CertificateFiles, ClientAuth, ClientTls, ServerTls, Terms, TlsVersion};
pub use stream::{PeerFacts, TlsStream, UNSENT_BYTES_MAX, iana_name};
pub use words::{in_words, worded};

#[cfg(test)]
mod tests;
