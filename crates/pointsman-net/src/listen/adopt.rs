//! Listening sockets that were open before this process, and now are its own.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::{FdFlags, fcntl_setfd};
use socket2::{Domain, SockAddr, SockRef};

use super::{Ipv6, hand_down, socket, with_port};

/// Whether threads accept on one socket together, as on that of a path. The other kind shares its address with others
/// of its kind (`SO_REUSEPORT`), and each has an owner.
pub fn is_shared(socket: &OwnedFd) -> io::Result<bool> {
    let socket = SockRef::from(socket);
    Ok(socket.domain()? == Domain::UNIX || !socket.reuse_port()?)
}

/// Whether a socket listens on this path.
pub fn is_bound_to_path(socket: &OwnedFd, path: &Path) -> bool {
    SockAddr::unix(path).is_ok_and(|path| is_listening(socket, &path, Ipv6::Dual))
}

/// Whether a socket listens on this address, and takes what one takes that is opened for it.
pub fn is_bound_to(socket: &OwnedFd, address: SocketAddr, ipv6: Ipv6) -> bool {
    is_listening(socket, &address.into(), ipv6)
}

fn is_listening(socket: &OwnedFd, address: &SockAddr, ipv6: Ipv6) -> bool {
    let socket = SockRef::from(socket);
    let is_there = socket.local_addr().is_ok_and(|bound| is_same(&bound, address));
    let takes_the_same = || match address.is_ipv6() {
        true => socket.only_v6().is_ok_and(|only| only == (ipv6 == Ipv6::Only)),
        false => true,
    };
    is_there && socket.is_listener().is_ok_and(|listens| listens) && takes_the_same()
}

/// The address that a socket listens on, in the form that it was asked for in.
///
/// # Errors
/// When it is no socket of an address.
pub fn bound_to(socket: &OwnedFd, asked: SocketAddr) -> io::Result<SocketAddr> {
    let bound = SockRef::from(socket).local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
    Ok(with_port(asked, bound))
}

/// Makes a socket that was handed over what it would be had this process opened it.
///
/// # Errors
/// When it is no socket, or not of a kind that is listened on.
pub fn adopt(socket: &OwnedFd) -> io::Result<()> {
    fcntl_setfd(socket, FdFlags::CLOEXEC)?;
    let socket = SockRef::from(socket);
    socket.set_nonblocking(true)?;
    match socket.domain()? {
        Domain::UNIX => Ok(()),
        _ => hand_down(socket),
    }
}

/// Another socket on the address of one that shares it, for another thread.
///
/// # Errors
/// When there is no descriptor left, or the system lets nobody listen there any more.
pub fn bind_beside(one: &OwnedFd, ipv6: Ipv6) -> io::Result<OwnedFd> {
    let address = SockRef::from(one).local_addr()?.as_socket();
    Ok(socket(address.ok_or(io::ErrorKind::Unsupported)?, ipv6)?.into())
}

/// By address where they have one: the kernel's own form of it has bytes that nobody asked for.
fn is_same(one: &SockAddr, other: &SockAddr) -> bool {
    match (one.as_socket(), other.as_socket()) {
        (Some(SocketAddr::V6(one)), Some(SocketAddr::V6(other))) => {
            (one.ip(), one.port(), one.scope_id()) == (other.ip(), other.port(), other.scope_id())
        }
        (Some(one), Some(other)) => one == other,
        _ => one.as_pathname().is_some() && one.as_pathname() == other.as_pathname(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::super::bind;
    use super::*;

    fn address() -> SocketAddr {
        "127.0.0.1:0".parse().expect("an address")
    }

    #[test]
    fn another_one_is_bound_beside_one_that_shares_its_address() {
        let one = bind(address(), Ipv6::Dual, 1).expect("loopback");
        let other = bind_beside(&one.sockets[0], Ipv6::Dual).expect("descriptors");
        assert!(is_bound_to(&other, one.address, Ipv6::Dual));
        assert!(!is_shared(&other).expect("a socket"));
    }

    #[test]
    fn one_that_cannot_have_others_beside_it_is_shared() {
        let listener = TcpListener::bind(address()).expect("loopback");
        let bound = listener.local_addr().expect("bound");
        let socket = OwnedFd::from(listener);
        adopt(&socket).expect("a socket");
        assert!(is_shared(&socket).expect("a socket"));
        assert!(bind_beside(&socket, Ipv6::Dual).is_err());
        TcpStream::connect(bound).expect("it listens");
    }

    #[test]
    fn another_address_and_what_does_not_listen_are_not_it() {
        let one = bind(address(), Ipv6::Dual, 1).expect("loopback");
        let other = bind(address(), Ipv6::Dual, 1).expect("loopback");
        assert!(!is_bound_to(&one.sockets[0], other.address, Ipv6::Dual));
        let client: OwnedFd = TcpStream::connect(one.address).expect("it listens").into();
        let own = SockRef::from(&client).local_addr().expect("bound").as_socket().expect("TCP");
        assert!(!is_bound_to(&client, own, Ipv6::Dual));
    }
}
