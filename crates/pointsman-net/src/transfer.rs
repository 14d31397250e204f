//! Reading into a buffer and writing one out.

use std::io;
use std::pin::Pin;
use std::task::{Poll, ready};

use tokio::io::AsyncWrite;

use crate::{PooledBuffer, Tcp};

/// Waits for bytes and appends them to `buffer`; 0 is the end.
pub async fn read_into(from: &mut Tcp, buffer: &mut PooledBuffer) -> io::Result<usize> {
    std::future::poll_fn(|context| from.poll_read_into(context, buffer)).await
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
