//! What goes out on a stream: a head first, then data as the other side gives leave.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use h2::SendStream;

use crate::fields::broken;

/// Data that is handed over at a time.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// How many of `bytes` may be handed over now; at least one. Waits while the other side gives no leave.
pub(crate) fn poll_leave<B: Buf>(
    stream: &mut SendStream<B>,
    context: &mut Context<'_>,
    bytes: usize,
) -> Poll<io::Result<usize>> {
    let wanted = bytes.min(PIECE_BYTES_MAX);
    stream.reserve_capacity(wanted);
    let mut room = stream.capacity();
    while room == 0 {
        room = match ready!(stream.poll_capacity(context)) {
            Some(room) => room.map_err(broken)?,
            None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        };
    }
    Poll::Ready(Ok(wanted.min(room)))
}

/// What was taken of a head and of the data behind it: that the data has to wait does not keep the head.
pub(crate) fn with_head(head_bytes: usize, data: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
    match data {
        Poll::Ready(Ok(bytes)) => Poll::Ready(Ok(head_bytes + bytes)),
        Poll::Pending if head_bytes > 0 => Poll::Ready(Ok(head_bytes)),
        other => other,
    }
}
