//! Listening sockets: one per thread on the same address, shared out by the kernel; of a path, one that threads share.

mod adopt;
mod unix;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Poll, ready};

use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::Tcp;
use crate::event_loop::{register, register_shared};
use crate::reactor::{Source, Writing};

pub use adopt::{adopt, bind_beside, bound_to, is_bound_to, is_bound_to_path, is_shared};
pub use unix::{PATH_BYTES_MAX, SocketFile, bind_path, is_path_free};

/// Connections that may wait to be accepted, a socket. The kernel cuts it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// An address that is listened on.
#[derive(Debug)]
pub struct Bound {
    /// The address, its port resolved where 0 was asked for.
    pub address: SocketAddr,
    /// One socket per thread.
    pub sockets: Vec<OwnedFd>,
}

/// What a socket on an address of IPv6 takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ipv6 {
    /// On `[::]`, connections to IPv4 addresses too. Whatever the system's default is.
    #[default]
    Dual,
    /// Connections to IPv6 addresses alone.
    Only,
}

/// Unsent bytes that a socket takes before it has enough. A slow reader then holds about this much of the
/// kernel's memory, not all that the kernel would grow its buffer to, and a deadline on it sees each step
/// that it makes. Less would wake us so often that a large body costs nearly twice as much (1 MiB answers:
/// 0.65 of nginx's CPU time at 1 MiB, 1.04 at 128 KiB; `cargo xtask bench-peers --scenario big`).
const UNSENT_BYTES_MAX: u32 = 1024 * 1024;

/// Whether `address` is free: a second process that bound it with `SO_REUSEPORT` would share its
/// connections in silence.
pub fn is_free(address: SocketAddr, ipv6: Ipv6) -> io::Result<()> {
    new_socket(address, ipv6)?.bind(&address.into())
}

/// Binds `threads` sockets to `address` with `SO_REUSEPORT`.
pub fn bind(address: SocketAddr, ipv6: Ipv6, threads: usize) -> io::Result<Bound> {
    let first = socket(address, ipv6)?;
    let bound = first.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
    let address = with_port(address, bound);
    let mut sockets = vec![first.into()];
    for _ in 1..threads {
        sockets.push(socket(address, ipv6)?.into());
    }
    Ok(Bound { address, sockets })
}

/// What was asked for, at the port that it got. The scope is part of what was asked for, and of what the sockets of other
/// threads are bound to.
fn with_port(asked: SocketAddr, bound: SocketAddr) -> SocketAddr {
    match asked {
        SocketAddr::V6(mut asked) => {
            asked.set_port(bound.port());
            asked.into()
        }
        SocketAddr::V4(_) => bound,
    }
}

fn new_socket(address: SocketAddr, ipv6: Ipv6) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(ipv6 == Ipv6::Only)?;
    }
    socket.set_reuse_address(true)?;
    Ok(socket)
}

fn socket(address: SocketAddr, ipv6: Ipv6) -> io::Result<Socket> {
    let socket = new_socket(address, ipv6)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    hand_down(SockRef::from(&socket))?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Sets what accepted sockets inherit. Without the second the last part of an answer waits for the acknowledgement of
/// the one before.
fn hand_down(socket: SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
    socket.set_tcp_nodelay(true)
}

/// A connection of which no event loop hears yet.
#[derive(Debug)]
pub struct Accepted(OwnedFd);

impl Accepted {
    /// The connection on the event loop of this thread.
    ///
    /// # Errors
    /// The kernel's, which has no memory for it or lets this user watch no more sockets.
    pub fn register(self) -> io::Result<Tcp> {
        Tcp::register(self.0, Writing::HasRoom)
    }
}

/// One that came from another thread.
impl From<OwnedFd> for Accepted {
    fn from(socket: OwnedFd) -> Accepted {
        Accepted(socket)
    }
}

impl AsFd for Accepted {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Accepts connections on one socket, on the event loop of the thread that made it.
#[derive(Debug)]
pub struct Acceptor {
    source: Source,
    socket: OwnedFd,
    is_shared: bool,
}

impl Acceptor {
    /// Must be called on an event loop. The error is the kernel's, which has no memory for one more socket or lets
    /// this user watch no more of them.
    pub fn new(socket: OwnedFd) -> io::Result<Acceptor> {
        let is_shared = is_shared(&socket)?;
        let source = match is_shared {
            true => register_shared(&socket)?,
            false => register(&socket, Writing::HasRoom)?,
        };
        Ok(Acceptor { source, socket, is_shared })
    }

    /// Hears of no more connections, since another process accepts them. True where it may have been woken for one in
    /// place of that: what waits is still to be taken here.
    pub fn leave(&self) -> bool {
        self.source.deregister(&self.socket);
        self.is_shared
    }

    /// Waits for the next connection.
    pub async fn accept(&self) -> io::Result<Tcp> {
        self.accept_unheard().await?.register()
    }

    /// The same, and the connection may still go to another thread.
    pub async fn accept_unheard(&self) -> io::Result<Accepted> {
        std::future::poll_fn(|context| {
            loop {
                ready!(self.source.poll_readable(context));
                ready!(self.source.poll_turn(context));
                match self.accept_now() {
                    // The edge came for all that wait: there may be more.
                    Ok(socket) => return Poll::Ready(Ok(Accepted(socket))),
                    Err(Errno::AGAIN) => self.source.is_drained(),
                    Err(error) => return Poll::Ready(Err(io::Error::from(error))),
                }
            }
        })
        .await
    }

    /// A connection that is waiting already, if there is one. Asks the socket itself: the event loop may
    /// not have heard of it yet, and closing the socket would turn it away.
    pub fn accept_waiting(&self) -> Option<Tcp> {
        Accepted(self.accept_now().ok()?).register().ok()
    }

    fn accept_now(&self) -> Result<OwnedFd, Errno> {
        loop {
            match accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                // That one is gone before it was ours, or a signal came.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                accepted => return accepted,
            }
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.source.deregister(&self.socket);
    }
}
