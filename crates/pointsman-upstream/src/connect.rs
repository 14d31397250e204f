//! Opening a connection to a server.

use std::io;
use std::net::SocketAddr;

use pointsman_net::{Deadline, Tcp};

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectFault {
    /// Refused, unreachable, or out of descriptors.
    Io(io::Error),
    /// Not open in time.
    Timeout,
}

/// Connects to `address` within `ms` milliseconds.
pub async fn connect(address: SocketAddr, deadline: &mut Deadline, ms: u32) -> Result<Tcp, ConnectFault> {
    match deadline.within(ms, pointsman_net::connect(address)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(ConnectFault::Io(error)),
        Err(_) => Err(ConnectFault::Timeout),
    }
}
