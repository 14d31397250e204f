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

/// Sockets of one address or path, for so many threads: a list for each round of them. Of the first round each thread
/// has one; where more were handed over than there are threads, some have further ones, since what waits to be accepted
/// waits at each of them.
///
/// # Errors
/// When there is no descriptor left, or the system lets nobody listen there any more.
pub fn adopt(handed: Vec<OwnedFd>, ipv6: Ipv6, threads: usize) -> io::Result<Vec<Vec<OwnedFd>>> {
    let mut rounds: Vec<Vec<OwnedFd>> = Vec::new();
    for socket in handed {
        prepare(&socket)?;
        if is_shared(&socket)? {
            let clones = (1..threads).map(|_| socket.try_clone());
            let mut all = clones.collect::<io::Result<Vec<_>>>()?;
            all.push(socket);
            rounds.push(all);
            continue;
        }
        match rounds.iter_mut().find(|round| round.len() < threads) {
            Some(round) => round.push(socket),
            None => rounds.push(vec![socket]),
        }
    }
    if let Some(first) = rounds.first_mut() {
        let address = SockRef::from(&first[0]).local_addr()?.as_socket();
        while first.len() < threads {
            let address: SocketAddr = address.ok_or(io::ErrorKind::Unsupported)?;
            first.push(socket(address, ipv6)?.into());
        }
    }
    Ok(rounds)
}

/// Makes it what it would be had this process opened it.
fn prepare(socket: &OwnedFd) -> io::Result<()> {
    fcntl_setfd(socket, FdFlags::CLOEXEC)?;
    let socket = SockRef::from(socket);
    socket.set_nonblocking(true)?;
    match socket.domain()? {
        Domain::UNIX => Ok(()),
        _ => hand_down(socket),
    }
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

    /// How many each round has.
    fn rounds(sockets: usize, threads: usize) -> Vec<usize> {
        let bound = bind(address(), Ipv6::Dual, sockets).expect("loopback");
        let rounds = adopt(bound.sockets, Ipv6::Dual, threads).expect("descriptors");
        assert!(rounds.iter().flatten().all(|socket| is_bound_to(socket, bound.address, Ipv6::Dual)));
        rounds.iter().map(Vec::len).collect()
    }

    #[test]
    fn every_socket_has_a_thread_and_every_thread_a_socket() {
        assert_eq!(rounds(4, 4), [4]);
        assert_eq!(rounds(4, 2), [2, 2]);
        assert_eq!(rounds(5, 2), [2, 2, 1]);
        assert_eq!(rounds(2, 4), [4]);
        assert_eq!(rounds(3, 1), [1, 1, 1]);
    }

    #[test]
    fn one_that_cannot_have_others_beside_it_is_shared() {
        let listener = TcpListener::bind(address()).expect("loopback");
        let bound = listener.local_addr().expect("bound");
        let rounds = adopt(vec![listener.into()], Ipv6::Dual, 3).expect("descriptors");
        assert_eq!(rounds.iter().map(Vec::len).collect::<Vec<_>>(), [3]);
        assert!(is_shared(&rounds[0][0]).expect("a socket"));
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
