//! The client's side, blocking and small: for the demo and for tools, never on the way of a request.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::connector::{Connectors, SystemAuthorities};
use crate::error::TlsError;
use crate::settings::{CertificateFiles, ClientTls, TlsVersion};
use crate::stream::version_name;
use crate::words::worded;

/// Opens TLS connections to servers whose certificates come from known authorities. Cheap to clone;
/// connections of one client resume each other's sessions.
#[derive(Clone)]
pub struct Client(Arc<ClientConfig>);

impl Client {
    /// A client that trusts the authorities in a PEM file and nobody else, offers `http/1.1`, and shows no
    /// certificate of its own.
    pub fn trusting(authorities_file: &Path) -> Result<Client, Vec<TlsError>> {
        Client::showing(None, authorities_file)
    }

    /// The same, which shows a certificate where it is asked for one.
    pub fn showing(
        certificate: Option<CertificateFiles>,
        authorities_file: &Path,
    ) -> Result<Client, Vec<TlsError>> {
        let settings = ClientTls {
            ca: Some(authorities_file.to_owned()),
            certificate,
            verify: true,
            min_version: TlsVersion::Tls12,
            protocol: "http/1.1",
        };
        let connectors = Connectors::build(&settings, &SystemAuthorities::default())?;
        Ok(Client(Arc::new(connectors.into_config())))
    }

    /// Does a whole handshake with the server called `name`, a DNS name or an address.
    ///
    /// How long it may take is for the stream's own timeouts to say.
    pub fn connect(&self, stream: TcpStream, name: &str) -> io::Result<ClientStream> {
        let name = ServerName::try_from(name.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let connection = ClientConnection::new(self.0.clone(), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(worded)?;
        }
        Ok(ClientStream(stream))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// The clear side of a TLS connection to a server.
#[derive(Debug)]
pub struct ClientStream(StreamOwned<ClientConnection, TcpStream>);

impl ClientStream {
    /// `1.2` or `1.3`.
    pub fn version(&self) -> &'static str {
        version_name(self.0.conn.protocol_version())
    }

    /// Where it comes from.
    ///
    /// # Errors
    /// The socket's.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.sock.local_addr()
    }

    /// The group that the keys were agreed in, by its name in IANA's registry.
    pub fn key_exchange(&self) -> Option<&'static str> {
        self.0.conn.negotiated_key_exchange_group()?.name().as_str()
    }
}

impl Read for ClientStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(worded)
    }
}

impl Write for ClientStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
