//! Reading into a buffer and writing one out.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Appends what can be read to `buffer`, into its spare room; 0 is the end.
pub fn poll_read_into<R: AsyncRead + Unpin>(
    context: &mut Context<'_>,
    from: &mut R,
    buffer: &mut Vec<u8>,
) -> Poll<io::Result<usize>> {
    // The future holds no state of its own: made anew at each poll it goes on where it was.
    pin!(from.read_buf(buffer)).poll(context)
}

/// Waits for bytes and appends them to `buffer`; 0 is the end.
pub async fn read_into<R: AsyncRead + Unpin>(from: &mut R, buffer: &mut Vec<u8>) -> io::Result<usize> {
    from.read_buf(buffer).await
}

/// Writes all of `bytes` and pushes them out. `sent` counts what was taken, also when it fails.
pub async fn write_all<W: AsyncWrite + Unpin>(to: &mut W, bytes: &[u8], sent: &mut usize) -> io::Result<()> {
    std::future::poll_fn(|context| {
        while *sent < bytes.len() {
            match ready!(Pin::new(&mut *to).poll_write(context, &bytes[*sent..]))? {
                0 => return Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero))),
                taken => *sent += taken,
            }
        }
        Poll::Ready(Ok(()))
    })
    .await?;
    to.flush().await
}
