//! A TCP connection on an event loop.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Anything bytes go in and out of on an event loop: TCP, or TLS over it.
pub trait Io: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Io for T {}

/// A TCP connection.
#[derive(Debug)]
pub struct Tcp(TcpStream);

/// Connects to `address`.
pub async fn connect(address: SocketAddr) -> io::Result<Tcp> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(Tcp(stream))
}

impl Tcp {
    /// The other end's address.
    pub fn peer(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr().map(crate::canonical)
    }

    /// Our end's address.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.0.local_addr().map(crate::canonical)
    }

    /// Makes closing break the connection off: the peer sees a reset, not an end.
    pub fn reset_on_close(&self) {
        // Where the system refuses, the connection is closed all the same.
        let (Ok(()) | Err(_)) = socket2::SockRef::from(&self.0).set_linger(Some(std::time::Duration::ZERO));
    }

    /// Whether a connection that nothing is expected on is still open and silent, as far as the
    /// event loop has heard. Costs no system call unless it has heard something.
    pub fn sounds_quiet(&self) -> bool {
        let mut byte = [0];
        matches!(self.0.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// The same, as the socket itself says now.
    pub fn is_quiet(&self) -> bool {
        let mut byte = [std::mem::MaybeUninit::uninit()];
        let peeked = socket2::SockRef::from(&self.0).peek(&mut byte);
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits until there is something to read, or the end.
    pub async fn readable(&self) -> io::Result<()> {
        // A new socket counts as readable until somebody has looked.
        self.0.peek(&mut [0]).await.map(drop)
    }
}

impl From<TcpStream> for Tcp {
    fn from(stream: TcpStream) -> Tcp {
        Tcp(stream)
    }
}

impl AsyncRead for Tcp {
    #[inline]
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Tcp {
    #[inline]
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    /// TLS hands several records over at once: one system call for all of them.
    #[inline]
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
