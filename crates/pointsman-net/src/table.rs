//! A descriptor table for one thread, and the way of a socket from one table into another.
//!
//! The kernel takes a reference to what stands behind a descriptor in each system call, except where nobody else
//! uses the table. So a thread that shares its table with none has less to do in each read, write and wait.
//!
//! Invariant: a descriptor is used and closed only by threads of the table that it was opened in, or of tables that are
//! copies of it from then on, where it has the same number and nobody closes it before. Between tables
//! sockets pass as messages, [`SocketSender::send`] to [`SocketReceiver::next`], which is right within one table,
//! too.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::task::{Poll, ready};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::thread::UnshareFlags;

use crate::event_loop::register;
use crate::reactor::{Source, Writing};

/// Gives this thread a descriptor table of its own, which begins as a copy of the one it shared.
///
/// Call it before the process opens much: nothing of the copy can be closed, for it belongs to other threads. From
/// then on no descriptor object may come here from another thread, nor go there, except as a message. One that does
/// would name something else, or nothing.
///
/// # Errors
/// What the system says where it has no such tables or a filter of system calls forbids them. Nothing has changed
/// then.
pub fn own_descriptor_table() -> io::Result<()> {
    // Without this call libraries share one descriptor of `/dev/urandom` among all threads.
    getrandom(&mut [0_u8; 1], GetRandomFlags::NONBLOCK)?;
    #[expect(
        deprecated,
        reason = "it was found to need care, not to be wrong: the invariant above is the care, and the other \
                  function, of the same effect, would need `unsafe`"
    )]
    Ok(rustix::thread::unshare(UnshareFlags::FILES)?)
}

/// Two ends that sockets pass between.
///
/// # Errors
/// When there is no descriptor left.
pub fn socket_channel() -> io::Result<(SocketSender, SocketReceiver)> {
    let (sender, receiver) = UnixStream::pair()?;
    Ok((SocketSender(sender), SocketReceiver(receiver)))
}

/// The end that sends.
#[derive(Debug)]
pub struct SocketSender(UnixStream);

/// The end that receives.
#[derive(Debug)]
pub struct SocketReceiver(UnixStream);

/// What came out of a channel.
#[derive(Debug)]
pub struct Received {
    /// As it was sent.
    pub number: u32,
    /// The error is what kept it from this thread's table; the socket is as if it had not been sent.
    pub socket: io::Result<OwnedFd>,
}

/// What comes out of a channel, on the event loop of the thread that made this.
#[derive(Debug)]
pub struct Arrivals {
    // Before the socket: its place among the sources goes first.
    source: Source,
    receiver: SocketReceiver,
}

impl Arrivals {
    /// Must be called on an event loop, with an end of this thread's table.
    ///
    /// # Errors
    /// The kernel's, which has no memory for it or lets this user watch no more sockets.
    pub fn new(receiver: SocketReceiver) -> io::Result<Arrivals> {
        Ok(Arrivals { source: register(&receiver.0, Writing::HasRoom)?, receiver })
    }

    /// Waits for the next socket, and is woken at once when it comes.
    pub async fn next(&self) -> Received {
        std::future::poll_fn(|context| {
            loop {
                ready!(self.source.poll_readable(context));
                ready!(self.source.poll_turn(context));
                match self.receiver.next() {
                    // The edge came for all that wait: there may be more.
                    Some(received) => return Poll::Ready(received),
                    None => self.source.is_drained(),
                }
            }
        })
        .await
    }

    /// One that is here already. Asks the channel itself: the event loop may not have heard of it yet.
    pub fn take_waiting(&self) -> Option<Received> {
        self.receiver.next()
    }
}

impl SocketSender {
    /// Sends a copy of a socket. It keeps the socket open until it is received or the channel is closed.
    ///
    /// # Errors
    /// When too many are under way, which passes; when the receiver is gone.
    pub fn send(&self, number: u32, socket: &impl AsFd) -> io::Result<()> {
        let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        let sockets = [socket.as_fd()];
        let has_room = control.push(SendAncillaryMessage::ScmRights(&sockets));
        debug_assert!(has_room, "room for one");
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.0, &[IoSlice::new(&number.to_ne_bytes())], &mut control, flags)?;
        Ok(())
    }
}

/// As it passes to another table itself.
impl AsFd for SocketReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl SocketReceiver {
    /// The end of a channel that came to this table through another one.
    #[must_use]
    pub fn received(socket: OwnedFd) -> SocketReceiver {
        SocketReceiver(socket.into())
    }

    /// The same end for the table of this thread. What is there already is not received twice.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn try_clone(&self) -> io::Result<SocketReceiver> {
        Ok(SocketReceiver(self.0.try_clone()?))
    }

    /// The next socket, if one is there. What several threads send comes whole, one after the other.
    pub fn next(&self) -> Option<Received> {
        let mut number = [0; 4];
        let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = loop {
            // The kernel does not join messages that bring descriptors: it is one, and a whole one.
            match recvmsg(&self.0, &mut [IoSliceMut::new(&mut number)], &mut control, flags) {
                Err(Errno::INTR) => {}
                received => break received,
            }
        };
        if received.ok()?.bytes == 0 {
            return None;
        }
        let socket = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
            _ => None,
        });
        let socket = socket.ok_or_else(|| self.why_none_came());
        Some(Received { number: u32::from_ne_bytes(number), socket })
    }

    /// The kernel does not say what it lacked for a descriptor that it could not hand over. It does to who asks for
    /// another one; where that is given, it may have lacked nothing but a moment.
    fn why_none_came(&self) -> io::Error {
        self.try_clone().err().unwrap_or_else(|| Errno::AGAIN.into())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn listener() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").expect("loopback")
    }

    #[test]
    fn sockets_pass_in_order_and_are_open_as_long_as_somebody_has_them() {
        let (sender, receiver) = socket_channel().expect("descriptors");
        assert!(receiver.next().is_none());
        let sockets = [listener(), listener()];
        let addresses = sockets.each_ref().map(|socket| socket.local_addr().expect("bound"));
        for (number, socket) in sockets.iter().enumerate() {
            sender.send(number as u32, socket).expect("room");
        }
        drop(sockets);
        for (number, address) in addresses.iter().enumerate() {
            let received = receiver.next().expect("it was sent");
            assert_eq!(received.number as usize, number);
            let socket = TcpListener::from(received.socket.expect("descriptors"));
            assert_eq!(socket.local_addr().expect("bound"), *address);
            drop(TcpStream::connect(address).expect("it listens"));
        }
        assert!(addresses.iter().all(|address| TcpStream::connect(address).is_err()), "all are closed");
        drop(sender);
        assert!(receiver.next().is_none());
    }

    #[test]
    fn a_channel_that_nobody_empties_is_full_and_then_not() {
        let (sender, receiver) = socket_channel().expect("descriptors");
        let socket = listener();
        let sent = (0..10_000).take_while(|number| sender.send(*number, &socket).is_ok()).count();
        assert!(sent > 0 && sent < 10_000, "{sent}");
        let received = std::iter::from_fn(|| receiver.next()).inspect(|one| assert!(one.socket.is_ok()));
        assert_eq!(received.map(|one| one.number as usize).collect::<Vec<_>>(), Vec::from_iter(0..sent));
        sender.send(7, &socket).expect("room again");
        drop(receiver);
        assert!(sender.send(8, &socket).is_err(), "nobody is there");
    }
}
