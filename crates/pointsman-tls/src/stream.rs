//! A connection after its handshake: bytes in the clear, and what was agreed on.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::{CipherSuite, HandshakeKind, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::client_chain::ClientChain;
use crate::fault::library_error;
use crate::hello::without_last_dot;
use crate::identity::ClientIdentity;
use crate::session_id::SessionId;
use crate::words::worded;

/// The clear side of a TLS connection.
///
/// Reading reports [`io::ErrorKind::UnexpectedEof`] when the client closed without saying so; between
/// requests that is an ordinary close. Shutting down sends `close_notify`.
#[derive(Debug)]
pub struct TlsStream<S> {
    inner: tokio_rustls::server::TlsStream<S>,
    client: Option<Arc<ClientIdentity>>,
    session: Option<SessionId>,
    /// Whether the client broke the protocol: then no `close_notify` says that all is well (RFC 8446 section 6.2).
    is_broken: bool,
}

/// What a connection may hold of bytes not yet taken by the client, unless [`TlsStream::set_unsent_bytes_max`]
/// says otherwise: a record and some.
pub const UNSENT_BYTES_MAX: usize = 20 * 1024;

/// What [`TlsStream::hold`] takes: a record, which is well within the limit on what a connection may hold.
pub(crate) const HELD_BYTES_MAX: usize = 16 * 1024;

/// What a handshake agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerFacts {
    /// The server name the client asked for, in lower case and without a dot at its end.
    pub sni: Option<String>,
    /// `1.2` or `1.3`.
    pub version: &'static str,
    /// The cipher suite's name in IANA's registry.
    pub cipher: &'static str,
    /// The application protocol.
    pub alpn: Option<Vec<u8>>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// The holder of the client's certificate, if it showed one. A resumed session keeps that of the session
    /// it continues.
    pub client: Option<Arc<ClientIdentity>>,
    /// What the session is known by, over all connections that resume it. A connection that none can resume has one
    /// of its own.
    pub session: Option<SessionId>,
}

impl<S> TlsStream<S> {
    pub(crate) fn new(
        inner: tokio_rustls::server::TlsStream<S>,
        session: Option<SessionId>,
    ) -> io::Result<TlsStream<S>> {
        let client = match inner.get_ref().1.peer_certificates().and_then(<[_]>::first) {
            None => None,
            Some(certificate) => match ClientIdentity::of(certificate) {
                Some(identity) => Some(Arc::new(identity)),
                None => {
                    let message = "the client's certificate verified but cannot be read";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
            },
        };
        Ok(TlsStream { inner, client, session, is_broken: false })
    }

    /// The certificates that the client has shown, if it has.
    pub fn client_chain(&self) -> Option<ClientChain> {
        ClientChain::of(self.inner.get_ref().1.peer_certificates()?)
    }

    /// What the handshake agreed on. Once for each connection is enough: it does not change.
    pub fn facts(&self) -> PeerFacts {
        let connection = self.inner.get_ref().1;
        PeerFacts {
            sni: connection.server_name().map(|name| without_last_dot(name).to_owned()),
            version: self.version(),
            cipher: connection.negotiated_cipher_suite().map_or("", |suite| iana_name(suite.suite())),
            alpn: connection.alpn_protocol().map(<[u8]>::to_vec),
            resumed: self.is_resumed(),
            client: self.client.clone(),
            session: self.session,
        }
    }

    /// The version, as [`PeerFacts`] has it.
    pub fn version(&self) -> &'static str {
        version_name(self.inner.get_ref().1.protocol_version())
    }

    /// The group by which keys were exchanged, under its name in IANA's registry; nothing where an earlier session goes
    /// on without.
    pub fn group(&self) -> Option<&'static str> {
        let group = self.inner.get_ref().1.negotiated_key_exchange_group()?;
        Some(group.name().as_str().unwrap_or_default())
    }

    /// Whether an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.inner.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Whether what was received holds something that is still to be read: bytes, the client's farewell, or what is
    /// wrong.
    pub fn holds_news(&mut self) -> bool {
        let state = self.inner.get_mut().1.process_new_packets();
        state.map_or(true, |state| state.plaintext_bytes_to_read() > 0 || state.peer_has_closed())
    }

    /// Takes all of `bytes`, to go out in one piece with whatever is sent next. False where there is no room
    /// for them: then none was taken.
    pub fn hold(&mut self, bytes: &[u8]) -> bool {
        let connection = self.inner.get_mut().1;
        let fits = bytes.len() <= HELD_BYTES_MAX && !connection.wants_write();
        fits && connection.writer().write_all(bytes).is_ok()
    }

    /// Sets how many bytes it may hold that the client has not yet taken. With 64 KiB a write of as much plain
    /// text goes out as four records in one system call.
    pub fn set_unsent_bytes_max(&mut self, bytes_max: usize) {
        self.inner.get_mut().1.set_buffer_limit(Some(bytes_max));
    }

    /// The stream underneath.
    pub fn get_ref(&self) -> &S {
        self.inner.get_ref().0
    }
}

/// Only two versions are ever agreed on.
pub(crate) fn version_name(version: Option<ProtocolVersion>) -> &'static str {
    match version {
        Some(ProtocolVersion::TLSv1_2) => "1.2",
        _ => "1.3",
    }
}

/// A suite's name in IANA's registry. The library names the suites of 1.3 after their version; the registry does not.
pub fn iana_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        other => other.as_str().unwrap_or(""),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.inner).poll_read(cx, buffer);
        read.map_err(|error| {
            this.is_broken |= library_error(&error).is_some();
            worded(error)
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_broken {
            return Pin::new(&mut this.inner).poll_shutdown(cx);
        }
        // The alert may still be on its way. The library repeats what was wrong, which was told.
        let (Ok(()) | Err(_)) = ready!(Pin::new(&mut this.inner).poll_flush(cx));
        Pin::new(this.inner.get_mut().0).poll_shutdown(cx)
    }
}
