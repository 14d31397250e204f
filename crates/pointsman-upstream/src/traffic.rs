//! What comes on an HTTP/2 connection to a server, and how much of it is about requests.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pointsman_h2::overhead_bytes_max;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Connection;

/// How a server that speaks another version answers.
const HTTP1: &[u8] = b"HTTP/1.";

/// Counts what comes.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    read_bytes: Cell<u64>,
    useful_bytes: Cell<u64>,
    allowed_bytes: Cell<u64>,
    seconds: Cell<u64>,
}

impl Traffic {
    /// So many bytes are part of a request or answer.
    pub(crate) fn is_useful(&self, bytes: usize) {
        self.useful_bytes.set(self.useful_bytes.get() + bytes as u64);
    }

    /// So many bytes more may come that are of no use.
    pub(crate) fn allow(&self, bytes: u64) {
        self.allowed_bytes.set(self.allowed_bytes.get() + bytes);
    }

    /// Another second is over.
    pub(crate) fn is_older(&self) {
        self.seconds.set(self.seconds.get() + 1);
    }

    /// Bytes that have come.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes.get()
    }

    fn is_flood(&self) -> bool {
        let overhead_bytes_max = overhead_bytes_max(self.useful_bytes.get(), self.seconds.get());
        self.read_bytes.get() > self.allowed_bytes.get() + overhead_bytes_max
    }
}

/// A connection whose bytes are counted. It breaks where its server floods it, or does not speak HTTP/2: the error is
/// [`io::ErrorKind::Unsupported`] then.
#[derive(Debug)]
pub(crate) struct Metered {
    pub(crate) connection: Connection,
    pub(crate) traffic: Rc<Traffic>,
}

impl AsyncRead for Metered {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Metered { connection, traffic } = self.get_mut();
        if traffic.is_flood() {
            // It says nothing of the answers that were on their way.
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(connection).poll_read(context, buffer);
        let came = &buffer.filled()[before..];
        if traffic.read_bytes.get() == 0 && came.starts_with(HTTP1) {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        }
        let bytes = came.len();
        traffic.read_bytes.set(traffic.read_bytes.get() + bytes as u64);
        read
    }
}

impl AsyncWrite for Metered {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().connection).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_shutdown(context)
    }
}
