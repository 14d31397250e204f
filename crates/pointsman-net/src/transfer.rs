//! Reading into a buffer and writing one out.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::{PooledBuffer, Tcp};

/// Waits for bytes and appends them to `buffer`; 0 is the end.
pub async fn read_into(from: &mut Tcp, buffer: &mut PooledBuffer) -> io::Result<usize> {
    std::future::poll_fn(|context| from.poll_read_into(context, buffer)).await
}

/// Appends what can be read from a stream that keeps bytes of its own, as TLS does; 0 is the end. An empty buffer
/// holds no room while it waits. Where something came and there is no memory for it, the error is
/// [`io::ErrorKind::OutOfMemory`], and part of it is lost.
pub fn poll_read_into<R: AsyncRead + Unpin>(
    from: &mut R,
    context: &mut Context<'_>,
    buffer: &mut PooledBuffer,
) -> Poll<io::Result<usize>> {
    if !buffer.make_room() {
        return poll_read_nowhere(from, context);
    }
    // The future holds no state of its own: made anew at each poll it goes on where it was.
    let read = pin!(from.read_buf(&mut **buffer)).poll(context);
    if read.is_pending() {
        buffer.release_if_empty();
    }
    read
}

/// The end, if it is that; what else comes finds no room.
#[cold]
fn poll_read_nowhere<R: AsyncRead + Unpin>(
    from: &mut R,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut byte = [0];
    let mut into = ReadBuf::new(&mut byte);
    let read = Pin::new(from).poll_read(context, &mut into);
    read.map(|read| match (read, into.filled().len()) {
        (Ok(()), 0) => Ok(0),
        (Ok(()), _) => Err(io::ErrorKind::OutOfMemory.into()),
        (Err(error), _) => Err(error),
    })
}

/// Writes all of `bytes` and pushes them out. `sent` counts what was taken, also when it fails.
pub fn write_all<'a, W: AsyncWrite + Unpin>(
    to: &'a mut W,
    bytes: &'a [u8],
    sent: &'a mut usize,
) -> impl Future<Output = io::Result<()>> + 'a {
    // Not an async function, which would keep each of its parameters twice: every idle connection pays for that.
    std::future::poll_fn(move |context| {
        while *sent < bytes.len() {
            match ready!(Pin::new(&mut *to).poll_write(context, &bytes[*sent..]))? {
                0 => return Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero))),
                taken => *sent += taken,
            }
        }
        Pin::new(&mut *to).poll_flush(context)
    })
}
