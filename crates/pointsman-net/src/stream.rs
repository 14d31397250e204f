//! A connection on an event loop: of TCP, or to a Unix socket.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::buffer::spare_capacity;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::PooledBuffer;
use crate::event_loop::register;
use crate::reactor::{Presence, Source, Writing};
use crate::stall::unacknowledged;

/// A TCP connection, or one that came to a Unix socket.
#[derive(Debug)]
pub struct Tcp {
    // Before the socket: its place among the sources goes first.
    source: Source,
    socket: OwnedFd,
    written_bytes: Cell<u64>,
}

/// Connects to `address`.
pub async fn connect(address: SocketAddr) -> io::Result<Tcp> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
        Err(error) => return Err(error),
    }
    let tcp = Tcp::register(socket.into(), Writing::Unknown)?;
    std::future::poll_fn(|context| tcp.source.poll_writable(context)).await;
    match SockRef::from(&tcp.socket).take_error()? {
        None => Ok(tcp),
        Some(error) => Err(error),
    }
}

impl Tcp {
    /// A connected socket that does not block, on the event loop of this thread.
    pub(crate) fn register(socket: OwnedFd, writing: Writing) -> io::Result<Tcp> {
        let source = register(&socket, writing)?;
        Ok(Tcp { source, socket, written_bytes: Cell::new(0) })
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// The other end's address; none on a Unix socket.
    pub fn peer(&self) -> io::Result<Option<SocketAddr>> {
        Ok(SockRef::from(&self.socket).peer_addr()?.as_socket().map(crate::canonical))
    }

    /// Our end's address; none on a Unix socket.
    pub fn local(&self) -> io::Result<Option<SocketAddr>> {
        Ok(SockRef::from(&self.socket).local_addr()?.as_socket().map(crate::canonical))
    }

    /// Makes closing break the connection off: the peer sees a reset, not an end. A Unix socket knows no reset, but for
    /// a peer whose bytes were not all read.
    pub fn reset_on_close(&self) {
        // Where the system refuses, the connection is closed all the same.
        let (Ok(()) | Err(_)) = SockRef::from(&self.socket).set_linger(Some(std::time::Duration::ZERO));
    }

    /// Bytes that the other end has taken: its kernel has acknowledged them. `None` where ours does not say. On a Unix
    /// socket it is a number that grows with them.
    pub fn taken_bytes(&self) -> Option<u64> {
        let socket = SockRef::from(&self.socket);
        let untaken = unacknowledged(SockRef::from(&self.socket)).ok()?;
        match socket.domain().ok()? {
            // Counted with what the kernel has around them: only that it grows says something.
            Domain::UNIX => Some(self.written_bytes.get() + u64::from(u32::MAX - untaken)),
            _ => self.written_bytes.get().checked_sub(u64::from(untaken)),
        }
    }

    /// Writes by `write`, which says how many of `length` bytes were taken, when there is room.
    #[inline]
    pub(crate) fn poll_write_by(
        &self,
        context: &Context<'_>,
        length: usize,
        write: impl FnMut() -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let written = self.source.poll_write(&self.socket, context, length, write);
        if let Poll::Ready(Ok(bytes)) = written {
            self.written_bytes.set(self.written_bytes.get() + bytes as u64);
        }
        written
    }

    /// Whether the other end has ever sent urgent data, which HTTP has no use for: its byte is left out of what is
    /// read, and nobody knows what it was meant to be.
    pub fn had_urgent_data(&self) -> bool {
        self.source.had_urgent_data()
    }

    /// Whether a connection that nothing is expected on is still open and silent, as far as the
    /// event loop has heard. Costs no system call unless it has heard something.
    pub fn sounds_quiet(&self) -> bool {
        (!self.source.is_readable() && !self.had_urgent_data()) || self.is_quiet()
    }

    /// The same, as the socket itself says now.
    pub fn is_quiet(&self) -> bool {
        // Peeking looks past an urgent byte.
        if self.had_urgent_data() {
            return false;
        }
        let mut byte = [MaybeUninit::uninit()];
        let peeked = rustix::net::recv(&self.socket, &mut byte, RecvFlags::PEEK);
        let is_quiet = matches!(peeked, Err(rustix::io::Errno::AGAIN));
        match is_quiet {
            true => self.source.is_drained(),
            false => self.source.is_filled(),
        }
        is_quiet
    }

    /// How the other end stands, whatever lies before its end unread. Costs no system call. The task is woken when
    /// that changes.
    pub fn presence(&self, context: &Context<'_>) -> Presence {
        self.source.presence(context)
    }

    /// Whether the event loop has heard of something that was not read yet. Costs no system call.
    pub fn has_news(&self) -> bool {
        self.source.is_readable()
    }

    /// Waits until the event loop hears that there is something to read, or the end.
    pub async fn readable(&self) {
        std::future::poll_fn(|context| self.source.poll_readable(context)).await;
    }

    /// Looks at what has come, as much of it as there is room for, and leaves it where it is; 0 is the end. What was
    /// seen is not seen again before more has come, the end, or urgent data.
    pub(crate) fn poll_peek(&self, context: &Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let length = room.len();
        self.source.poll_read(context, length, || {
            Ok(rustix::net::recv(&self.socket, &mut *room, RecvFlags::PEEK)?.0)
        })
    }

    /// Waits until `judge` can tell something by the first bytes that came, at most `N` of them. All of them stay for
    /// the next reader. `None`: the connection ended, or `N` bytes did not tell.
    pub async fn peek<const N: usize, T>(&self, judge: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let judged = std::future::poll_fn(|context| {
            let mut room = [0; N];
            loop {
                // Before the look: an end that comes behind it wakes the task again.
                let has_ended = self.presence(context) != Presence::Open;
                let seen = match ready!(self.poll_peek(context, &mut room)) {
                    Ok(seen @ 1..) => seen,
                    Ok(0) | Err(_) => return Poll::Ready(None),
                };
                match judge(&room[..seen]) {
                    None if seen < N && !has_ended => {}
                    judged => return Poll::Ready(judged),
                }
            }
        });
        let judged = judged.await;
        self.source.is_filled();
        judged
    }

    /// Takes `bytes` of those `seen` at the last look. Others of them are for the next read.
    pub(crate) fn take_seen(&self, bytes: usize, seen: usize) -> io::Result<()> {
        let mut left = bytes;
        let mut room = [0; 512];
        while left > 0 {
            let length = left.min(room.len());
            match rustix::net::recv(&self.socket, &mut room[..length], RecvFlags::empty()) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((taken, _)) => left -= taken,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if seen > bytes {
            self.source.is_filled();
        }
        Ok(())
    }

    /// Appends what can be read to `buffer`; 0 is the end. An empty buffer holds no room while it waits. Where
    /// something came and there is no memory for it, the error is [`io::ErrorKind::OutOfMemory`], and the first
    /// of the bytes is lost.
    #[inline]
    pub fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut PooledBuffer,
    ) -> Poll<io::Result<usize>> {
        if self.source.poll_readable(context).is_pending() {
            buffer.release_if_empty();
            return Poll::Pending;
        }
        if !buffer.make_room() {
            return self.poll_read_nowhere(context);
        }
        let room = buffer.capacity() - buffer.len();
        let read = self.source.poll_read(context, room, || {
            let (bytes, _) = rustix::net::recv(&self.socket, spare_capacity(buffer), RecvFlags::empty())?;
            Ok(bytes)
        });
        if read.is_pending() {
            buffer.release_if_empty();
        }
        read
    }

    /// The end, if it is that; what else comes finds no room.
    #[cold]
    fn poll_read_nowhere(&self, context: &Context<'_>) -> Poll<io::Result<usize>> {
        let mut byte = [MaybeUninit::uninit()];
        let read = self.source.poll_read(context, 1, || {
            Ok(rustix::net::recv(&self.socket, &mut byte, RecvFlags::empty())?.0.0.len())
        });
        read.map(|read| match read {
            Ok(1..) => Err(io::ErrorKind::OutOfMemory.into()),
            end => end,
        })
    }
}

impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsyncRead for Tcp {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let tcp = self.get_mut();
        let room = buffer.initialize_unfilled();
        let length = room.len();
        let read = || Ok(rustix::net::recv(&tcp.socket, &mut *room, RecvFlags::empty())?.0);
        let bytes = ready!(tcp.source.poll_read(context, length, read))?;
        buffer.advance(bytes.min(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tcp {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let tcp = self.get_mut();
        tcp.poll_write_by(context, bytes.len(), || rustix::net::send(&tcp.socket, bytes, SendFlags::NOSIGNAL))
    }

    /// TLS hands several records over at once: one system call for all of them.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // A list of one costs the kernel more than what is in it.
        if let [part] = parts {
            return self.poll_write(context, part);
        }
        let tcp = self.get_mut();
        let length = parts.iter().map(|part| part.len()).sum();
        tcp.poll_write_by(context, length, || {
            let nothing_else = &mut SendAncillaryBuffer::default();
            rustix::net::sendmsg(&tcp.socket, parts, nothing_else, SendFlags::NOSIGNAL)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = rustix::net::shutdown(&self.socket, Shutdown::Write);
        Poll::Ready(ended.map_err(io::Error::from))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;
    use crate::{Account, Budget, BufferPool, EventLoop, read_into, write_all};

    /// Runs `ours` on a connection whose other end is `theirs`, in a thread.
    fn converse(theirs: impl FnOnce(TcpStream) + Send + 'static, ours: impl AsyncFnOnce(Tcp)) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let thread = std::thread::spawn(move || theirs(listener.accept().expect("connected").0));
        EventLoop::new().expect("descriptors").run(async {
            ours(connect(address).await.expect("listening")).await;
        });
        thread.join().expect("it ended well");
    }

    #[test]
    fn bytes_go_both_ways_and_the_end_is_heard_behind_them() {
        let theirs = |mut stream: TcpStream| {
            let mut received = Vec::new();
            stream.read_to_end(&mut received).expect("open");
            assert_eq!(received.len(), 4_000_000);
            stream.write_all(&received).expect("open");
        };
        converse(theirs, async |mut tcp| {
            let bytes: Vec<u8> = (0..4_000_000_u32).map(|number| number as u8).collect();
            write_all(&mut tcp, &bytes, &mut 0).await.expect("open");
            std::future::poll_fn(|context| Pin::new(&mut tcp).poll_shutdown(context)).await.expect("open");
            let mut received = BufferPool::new(1000, 1, &Account::unlimited()).take_later();
            while read_into(&mut tcp, &mut received).await.expect("open") > 0 {}
            assert!(*received == bytes, "{} bytes came back", received.len());
            assert_eq!(read_into(&mut tcp, &mut received).await.expect("ended"), 0, "again");
        });
    }

    #[test]
    fn without_memory_an_end_is_an_end_and_bytes_are_an_error() {
        let theirs = |mut stream: TcpStream| stream.write_all(b"xy").expect("open");
        converse(theirs, async |mut tcp| {
            let account = Account::new(std::sync::Arc::new(Budget::new(0, 1)));
            let mut buffer = BufferPool::new(1000, 1, &account).take_later();
            for _ in 0..2 {
                let error = read_into(&mut tcp, &mut buffer).await.expect_err("nowhere to put it");
                assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
            }
            assert_eq!(read_into(&mut tcp, &mut buffer).await.expect("the end"), 0);
        });
    }

    #[test]
    fn nobody_listening_is_an_error() {
        // Bound, so that nobody else comes to listen there.
        let silent =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        silent.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("loopback");
        let address = silent.local_addr().expect("bound").as_socket().expect("of TCP");
        let error = EventLoop::new().expect("descriptors").run(connect(address)).expect_err("nobody listens");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_quiet_connection_is_one_that_is_open_and_silent() {
        let (say, said) = std::sync::mpsc::channel::<()>();
        let theirs = move |mut stream: TcpStream| {
            said.recv().expect("told");
            stream.write_all(b"x").expect("open");
            said.recv().expect("told");
        };
        converse(theirs, async |tcp| {
            assert!(tcp.is_quiet() && tcp.sounds_quiet());
            say.send(()).expect("alive");
            tcp.readable().await;
            assert!(!tcp.is_quiet() && !tcp.sounds_quiet());
            say.send(()).expect("alive");
        });
    }
}
