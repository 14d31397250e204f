//! A socket, with or without TLS on it. Nothing here waits.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustls::ClientConnection;
use socket2::{Domain, Protocol, Socket, Type};

use crate::plan::Close;

/// A connection that may still be opening.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) socket: TcpStream,
    pub(crate) tls: Option<Box<ClientConnection>>,
    /// What the socket has not taken yet, behind so many bytes that it has; with TLS the library keeps that.
    unsent: Vec<u8>,
    taken: usize,
}

impl Transport {
    /// Begins to connect.
    pub(crate) fn open(
        to: SocketAddr,
        from: Option<SocketAddr>,
        tls: Option<Box<ClientConnection>>,
    ) -> io::Result<Transport> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(to), kind, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if let Some(from) = from {
            socket.bind(&from.into())?;
        }
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            other => other?,
        }
        Ok(Transport { socket: socket.into(), tls, unsent: Vec::new(), taken: 0 })
    }

    /// Sends `bytes`, or keeps what cannot be sent yet.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
            return self.flush();
        }
        let mut sent = 0;
        if self.unsent.is_empty() {
            sent = until_blocked(|from| self.socket.write(&bytes[from..]), bytes.len())?;
        }
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Sends what is left.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None if self.unsent.is_empty() => Ok(()),
            None => {
                // A long body goes in many pieces: what is left of it is not moved each time.
                let rest = &self.unsent[self.taken..];
                self.taken += until_blocked(|from| self.socket.write(&rest[from..]), rest.len())?;
                if self.taken == self.unsent.len() {
                    self.unsent.clear();
                    self.taken = 0;
                }
                Ok(())
            }
            Some(tls) => {
                while tls.wants_write() {
                    match tls.write_tls(&mut self.socket) {
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            }
        }
    }

    /// What has come. `WouldBlock`: nothing.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.socket.read(scratch) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Ends the connection as the plan says. What fails then is nobody's loss.
    pub(crate) fn close(mut self, how: Close) {
        if how == Close::Fin
            && let Some(tls) = &mut self.tls
            && !tls.is_handshaking()
        {
            tls.send_close_notify();
            let (Ok(()) | Err(_)) = self.flush();
        }
        how.set(&self.socket);
    }
}

impl Close {
    /// Makes a socket that is closed next end in this way.
    pub fn set(self, socket: &TcpStream) {
        if self == Close::Reset {
            let (Ok(()) | Err(_)) = socket2::SockRef::from(socket).set_linger(Some(Duration::ZERO));
        }
    }
}

/// Writes until all of it is taken, or no more is.
fn until_blocked(mut write: impl FnMut(usize) -> io::Result<usize>, length: usize) -> io::Result<usize> {
    let mut sent = 0;
    while sent < length {
        match write(sent) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
