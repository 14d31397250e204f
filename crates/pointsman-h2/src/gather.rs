//! What frames are written to: they are gathered, and leave together.
//!
//! The frame writer flushes after every frame with much data in it. Over TLS that would be a record and a system call
//! for each; so its flushes are not passed on, and the connection says when it has had its turn.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// So much is gathered at most.
const GATHERED_BYTES_MAX: usize = 64 * 1024;
/// Room that is taken first.
const FIRST_ROOM_BYTES: usize = 4 * 1024;

/// The side that is read from and written to, held by the frame writer and by the connection.
#[derive(Debug)]
pub(crate) struct Gathered<T>(Rc<RefCell<Gathering<T>>>);

#[derive(Debug)]
struct Gathering<T> {
    io: T,
    waiting: Vec<u8>,
    /// Bytes of `waiting` that have left.
    left: usize,
}

impl<T> Clone for Gathered<T> {
    fn clone(&self) -> Self {
        Gathered(self.0.clone())
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Gathered<T> {
    pub(crate) fn new(io: T) -> Gathered<T> {
        Gathered(Rc::new(RefCell::new(Gathering { io, waiting: Vec::new(), left: 0 })))
    }

    /// Sends what is gathered. Ready when all of it has left.
    pub(crate) fn poll_send(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_send(context)
    }

    /// Whether something of what is gathered has not left.
    pub(crate) fn holds_some(&self) -> bool {
        !self.0.borrow().waiting.is_empty()
    }

    /// Uses what is underneath.
    pub(crate) fn with<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        use_it(&mut self.0.borrow_mut().io)
    }
}

impl<T: AsyncWrite + Unpin> Gathering<T> {
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.left < self.waiting.len() {
            match ready!(Pin::new(&mut self.io).poll_write(context, &self.waiting[self.left..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                taken => self.left += taken,
            }
        }
        self.left = 0;
        // An idle connection holds none.
        self.waiting = Vec::new();
        Pin::new(&mut self.io).poll_flush(context)
    }

    /// How much more may be gathered; waits where there is no room.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.waiting.len() >= GATHERED_BYTES_MAX {
            ready!(self.poll_send(context))?;
        }
        if self.waiting.capacity() == 0 {
            self.waiting.reserve(FIRST_ROOM_BYTES);
        }
        Poll::Ready(Ok(GATHERED_BYTES_MAX - self.waiting.len()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Gathered<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().io).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Gathered<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut gathering = self.0.borrow_mut();
        let room = ready!(gathering.poll_room(context))?;
        let taken = bytes.len().min(room);
        gathering.waiting.extend_from_slice(&bytes[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut gathering = self.0.borrow_mut();
        let room = ready!(gathering.poll_room(context))?;
        let mut taken = 0;
        for part in parts {
            let bytes = part.len().min(room - taken);
            gathering.waiting.extend_from_slice(&part[..bytes]);
            taken += bytes;
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// What is gathered leaves when the connection says so.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.0.borrow_mut();
        ready!(gathering.poll_send(context))?;
        Pin::new(&mut gathering.io).poll_shutdown(context)
    }
}
