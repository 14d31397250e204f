//! Certificates, peers, versions and tickets; the only crate that names rustls.
//!
//! [`ServerTls`] is what an operator wrote. [`Acceptor::build`] reads the files once, at load, and says all
//! that is wrong with them; after that nothing here touches a file. [`Acceptor::accept`] does the handshake
//! over any stream, and [`TlsStream::facts`] says what came of it. [`Client`] is the other side, for tools.
//!
//! Invariants:
//! - A session resumes only under the client-certificate policy that made it: each acceptor has ticket keys
//!   and a session cache of its own, and a rebuilt one inherits them only from an equal policy.
//! - No early data: a request is never read before the handshake is complete.

mod acceptor;
mod certificate;
mod client;
mod error;
mod fault;
mod identity;
mod pem;
mod resolver;
mod sessions;
mod settings;
mod stream;

pub use acceptor::Acceptor;
pub use certificate::{CertificateFacts, CertificateWarning, Concern};
pub use client::{Client, ClientStream};
pub use error::{Problem, TlsError};
pub use fault::HandshakeFault;
pub use identity::ClientIdentity;
pub use settings::{CertificateFiles, ClientAuth, ServerTls, TlsVersion};
pub use stream::{PeerFacts, TlsStream, UNSENT_BYTES_MAX};

#[cfg(test)]
mod tests;
