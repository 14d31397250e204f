//! Opening a connection to a server.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;

use pointsman_net::{Booking, Deadline, write_all};
use pointsman_tls::Connector;

use crate::Connection;

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectFault {
    /// Refused, unreachable, or out of descriptors.
    Io(io::Error),
    /// Not open in time.
    Timeout,
    /// The TLS handshake failed.
    Tls(io::Error),
    /// The connection was open in time, and its TLS handshake not over.
    TlsTimeout,
}

/// TLS on a connection, and the memory that is booked for it.
#[derive(Debug)]
pub struct Securing<'a> {
    /// Does the handshake.
    pub connector: &'a Connector,
    /// What the connection is at rest: booked until it closes.
    pub at_rest: Booking,
}

/// Connects to `address` within `ms` milliseconds, the TLS handshake included. What is sent first of all is
/// `preface`.
pub async fn connect(
    address: SocketAddr,
    preface: &[u8],
    securing: Option<Securing<'_>>,
    deadline: &mut Deadline,
    ms: u32,
) -> Result<Connection, ConnectFault> {
    let is_open = Cell::new(false);
    let connecting = async {
        let mut tcp = pointsman_net::connect(address).await.map_err(ConnectFault::Io)?;
        if !preface.is_empty() {
            write_all(&mut tcp, preface, &mut 0).await.map_err(ConnectFault::Io)?;
        }
        is_open.set(true);
        let Some(Securing { connector, at_rest }) = securing else { return Ok(Connection::Plain(tcp)) };
        // On the heap: the handshake's state is large, and most servers are plain.
        let stream = Box::pin(connector.connect(tcp)).await.map_err(ConnectFault::Tls)?;
        Ok(Connection::secured(stream, at_rest))
    };
    match deadline.within(ms, connecting).await {
        Ok(connected) => connected,
        Err(_) if is_open.get() => Err(ConnectFault::TlsTimeout),
        Err(_) => Err(ConnectFault::Timeout),
    }
}
