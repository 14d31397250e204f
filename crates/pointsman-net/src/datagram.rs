//! Datagrams to one address and from it, on an event loop.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, Protocol, Socket, Type};

use crate::event_loop::register;
use crate::reactor::{Source, Writing};

/// A UDP socket that hears one peer alone.
#[derive(Debug)]
pub struct Udp {
    // Before the socket: its place among the sources goes first.
    source: Source,
    socket: OwnedFd,
}

/// A socket to `peer`, on a port that the kernel draws. What others send there is dropped.
pub fn connect_udp(peer: SocketAddr) -> io::Result<Udp> {
    let kind = Type::DGRAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(peer), kind, Some(Protocol::UDP))?;
    socket.connect(&peer.into())?;
    let socket = OwnedFd::from(socket);
    Ok(Udp { source: register(&socket, Writing::HasRoom)?, socket })
}

impl Udp {
    /// Sends one datagram, or fails: it waits for no room.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next datagram, and how many bytes of it there are in `room`; what has no room there is lost.
    pub async fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        // A short datagram says nothing of whether another one lies behind it.
        const NEVER_SHORT: usize = 0;
        std::future::poll_fn(|context| {
            let read = || Ok(rustix::net::recv(&self.socket, &mut *room, RecvFlags::empty())?.0);
            self.source.poll_read(context, NEVER_SHORT, read)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::EventLoop;

    #[test]
    fn each_datagram_is_heard_and_those_of_others_are_not() {
        let peer = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let address = peer.local_addr().expect("bound");
        EventLoop::new().expect("descriptors").run(async {
            let ours = connect_udp(address).expect("a socket");
            ours.send(b"asked").expect("room");
            let mut room = [0; 16];
            let (length, from) = peer.recv_from(&mut room).expect("sent");
            assert_eq!(&room[..length], b"asked");
            let other = UdpSocket::bind("127.0.0.1:0").expect("loopback");
            other.send_to(b"forged", from).expect("room");
            for said in [&b"one"[..], b"", b"three"] {
                peer.send_to(said, from).expect("room");
            }
            for said in [&b"one"[..], b"", b"three"] {
                let length = ours.receive(&mut room).await.expect("heard");
                assert_eq!(&room[..length], said);
            }
        });
    }

    #[test]
    fn nobody_there_is_an_error() {
        let address = UdpSocket::bind("127.0.0.1:0").and_then(|gone| gone.local_addr()).expect("loopback");
        EventLoop::new().expect("descriptors").run(async {
            let ours = connect_udp(address).expect("a socket");
            ours.send(b"asked").expect("room");
            let error = ours.receive(&mut [0; 16]).await.expect_err("nobody is there");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        });
    }
}
