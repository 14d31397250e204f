//! What comes on an HTTP/2 connection to a server, and how much of it is about requests.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Connection;

/// Bytes that frames may take which are no part of a request or answer: so many in any case, so many for each second,
/// and so many times as many as are.
const OVERHEAD_BYTES_MIN: u64 = 1024 * 1024;
pub(crate) const OVERHEAD_BYTES_A_SECOND: u64 = 1024;
const OVERHEAD_FACTOR: u64 = 8;

/// Counts what comes.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    read_bytes: Cell<u64>,
    useful_bytes: Cell<u64>,
    allowed_bytes: Cell<u64>,
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

    /// Bytes that have come.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes.get()
    }

    fn is_flood(&self) -> bool {
        let useful = OVERHEAD_FACTOR * self.useful_bytes.get();
        self.read_bytes.get() > OVERHEAD_BYTES_MIN + self.allowed_bytes.get() + useful
    }
}

/// A connection whose bytes are counted. It breaks where its server floods it.
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
        let bytes = buffer.filled().len() - before;
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
