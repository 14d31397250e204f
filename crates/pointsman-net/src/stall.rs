//! Whether the other end of a connection takes what it is sent, when there is no room for more.
//!
//! Room is a poor sign of it: the kernel tells of none before a third of its buffer is free, which is more than
//! a slow reader takes in minutes. What it has taken, only the kernel knows. It is asked by `sock_diag(7)`, the
//! way of `ss`: `SIOCOUTQ` would be shorter, but there is no safe call for it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use socket2::SockRef;

/// Looks at what was taken, in the time in which nothing may be taken.
const LOOKS: u32 = 4;

/// A wait for room in a socket. Make it anew whenever there was room.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    ms_max: u32,
    /// Bytes taken in all, at the last look.
    taken: Option<u64>,
    /// For how long it has been that many.
    still_ms: u32,
}

impl Stall {
    /// A wait that is over when the other end takes nothing for `ms_max`, found out at most a quarter of that
    /// later.
    pub fn new(ms_max: u32) -> Stall {
        Stall { ms_max, taken: None, still_ms: 0 }
    }

    /// Milliseconds to wait before the next look.
    pub fn look_ms(&self) -> u32 {
        self.ms_max.div_ceil(LOOKS)
    }

    /// Compares how many bytes were taken in all with what the last look said. Says whether the wait goes on. Where
    /// nobody knows what was taken, it has its time and no more.
    #[must_use]
    pub fn goes_on(&mut self, taken: Option<u64>) -> bool {
        let is_more = taken.is_some() && taken != self.taken;
        self.still_ms = if is_more { 0 } else { self.still_ms.saturating_add(self.look_ms()) };
        self.taken = taken;
        self.still_ms < self.ms_max
    }
}

/// `UDIAG_SHOW_RQLEN` and `UNIX_DIAG_RQLEN` of `linux/unix_diag.h`.
const SHOW_QUEUES: u32 = 0x10;
const QUEUES: u16 = 4;
/// Where the first attribute stands in an answer about a Unix socket: behind the message's head and what names it.
const ATTRIBUTES_AT: usize = MESSAGE_HEAD_BYTES + 16;

/// `SOCK_DIAG_BY_FAMILY` of `linux/sock_diag.h`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` of `linux/netlink.h`.
const REQUEST: u16 = 1;
const MESSAGE_HEAD_BYTES: usize = 16;
/// Where `idiag_wqueue` stands in an answer: behind the message's head, four bytes, the socket's identity, its
/// timer and what it has to read.
const WRITE_QUEUE_AT: usize = MESSAGE_HEAD_BYTES + 4 + 48 + 8;

/// Bytes that were written to a socket and are not acknowledged. Of a Unix socket: memory that the kernel has for what
/// the peer has not read, which is more than the bytes, and is freed piece by piece.
pub(crate) fn unacknowledged(socket: SockRef<'_>) -> io::Result<u32> {
    let (local, peer) = (socket.local_addr()?, socket.peer_addr()?);
    if local.is_unix() {
        let inode = u32::try_from(rustix::fs::fstat(&*socket)?.st_ino).map_err(io::Error::other)?;
        return ask(&unix_question(inode))
            .and_then(|answer| unix_queued(&answer).ok_or_else(|| io::ErrorKind::InvalidData.into()));
    }
    let (Some(local), Some(peer)) = (local.as_socket(), peer.as_socket()) else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    ask(&question(local, peer))
        .and_then(|answer| queued(&answer).ok_or_else(|| io::ErrorKind::InvalidData.into()))
}

/// What the kernel answers.
fn ask(question: &[u8]) -> io::Result<Vec<u8>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = SocketType::DGRAM;
    let asks = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, Some(netlink::SOCK_DIAG))?;
    rustix::net::send(&asks, question, SendFlags::NOSIGNAL)?;
    let mut answer = vec![0; 512];
    // It is there when the question has been taken.
    let (bytes, _) = rustix::net::recv(&asks, &mut answer[..], RecvFlags::empty())?;
    answer.truncate(bytes);
    Ok(answer)
}

/// `unix_diag_req` of `linux/unix_diag.h`, for one socket.
fn unix_question(inode: u32) -> Vec<u8> {
    const ANY_STATE: u32 = u32::MAX;
    let mut text = Vec::with_capacity(40);
    text.extend(40_u32.to_ne_bytes());
    text.extend(BY_FAMILY.to_ne_bytes());
    text.extend(REQUEST.to_ne_bytes());
    text.extend([0; 8]);
    text.extend([AddressFamily::UNIX.as_raw() as u8, 0, 0, 0]);
    text.extend(ANY_STATE.to_ne_bytes());
    text.extend(inode.to_ne_bytes());
    text.extend(SHOW_QUEUES.to_ne_bytes());
    // No cookie.
    text.extend([u8::MAX; 8]);
    text
}

/// What an answer about a Unix socket says of what it has written.
fn unix_queued(answer: &[u8]) -> Option<u32> {
    let mut attributes =
        answer.get(ATTRIBUTES_AT..).filter(|_| answer.get(4..6) == Some(&BY_FAMILY.to_ne_bytes()))?;
    loop {
        let length = usize::from(u16::from_ne_bytes(attributes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?);
        if kind == QUEUES {
            // What it has to read stands before it.
            return Some(u32::from_ne_bytes(attributes.get(8..12)?.try_into().ok()?));
        }
        // Each begins where four divides; one shorter than its own head would never end.
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

/// `inet_diag_req_v2` of `linux/inet_diag.h`, for one connection.
fn question(local: SocketAddr, peer: SocketAddr) -> Vec<u8> {
    const TCP: u8 = 6;
    const ANY_STATE: u32 = u32::MAX;
    const NO_COOKIE: [u8; 8] = [u8::MAX; 8];
    let (family, interface) = match local {
        SocketAddr::V4(_) => (AddressFamily::INET, 0),
        SocketAddr::V6(local) => (AddressFamily::INET6, local.scope_id()),
    };
    let mut text = Vec::with_capacity(72);
    text.extend(72_u32.to_ne_bytes());
    text.extend(BY_FAMILY.to_ne_bytes());
    text.extend(REQUEST.to_ne_bytes());
    // A number and a sender, which nobody looks at.
    text.extend([0; 8]);
    text.extend([family.as_raw() as u8, TCP, 0, 0]);
    text.extend(ANY_STATE.to_ne_bytes());
    text.extend(local.port().to_be_bytes());
    text.extend(peer.port().to_be_bytes());
    text.extend(address_bytes(local.ip()));
    text.extend(address_bytes(peer.ip()));
    text.extend(interface.to_ne_bytes());
    text.extend(NO_COOKIE);
    text
}

fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// What an answer says; an error has another kind.
fn queued(answer: &[u8]) -> Option<u32> {
    let kind = answer.get(4..6)?;
    let queue = answer.get(WRITE_QUEUE_AT..WRITE_QUEUE_AT + 4)?;
    (kind == BY_FAMILY.to_ne_bytes()).then_some(u32::from_ne_bytes(queue.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_wait_ends_when_nothing_was_taken_for_its_time() {
        let looks = [Some(5), Some(5), Some(5), Some(6), Some(6), Some(6), Some(6), Some(6)];
        let mut stall = Stall::new(1000);
        assert_eq!(stall.look_ms(), 250);
        let went_on = looks.map(|taken| stall.goes_on(taken));
        assert_eq!(went_on, [true, true, true, true, true, true, true, false]);
    }

    #[test]
    fn without_a_word_of_the_kernel_a_wait_has_its_time() {
        let mut stall = Stall::new(10);
        let went_on = [None; 4].map(|taken| stall.goes_on(taken));
        assert_eq!(went_on, [true, true, true, false]);
    }

    #[test]
    fn the_kernel_says_what_the_other_end_has_not_taken() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let mut writer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
            let (mut reader, _) = listener.accept().expect("connected");
            writer.set_nonblocking(true).expect("open");
            let mut written = 0;
            while let Ok(bytes) = writer.write(&[0; 64 * 1024]) {
                written += bytes;
            }
            let before = unacknowledged(SockRef::from(&writer)).expect("asked");
            assert!(before > 0 && before as usize <= written, "{before} of {written}");
            reader.read_exact(&mut vec![0; written - before as usize]).expect("open");
            while unacknowledged(SockRef::from(&writer)).expect("asked") == before {
                reader.read_exact(&mut [0; 1024]).expect("more");
            }
        }
    }

    #[test]
    fn of_a_unix_socket_too() {
        let (mut writer, mut reader) = std::os::unix::net::UnixStream::pair().expect("descriptors");
        writer.set_nonblocking(true).expect("open");
        let mut written = 0;
        while let Ok(bytes) = writer.write(&[0; 16 * 1024]) {
            written += bytes;
        }
        // Where the kernel has no such answers, a wait has its time and no more.
        let Ok(before) = unacknowledged(SockRef::from(&writer)) else { return };
        assert!(before as usize >= written, "{before} for {written}");
        reader.read_exact(&mut vec![0; written]).expect("open");
        assert_eq!(unacknowledged(SockRef::from(&writer)).expect("as before"), 0);
    }

    #[test]
    fn what_is_no_answer_says_nothing() {
        assert_eq!(unix_queued(&[0; 200]), None);
        assert_eq!(unix_queued(&[20; 40]), None);
        assert_eq!(queued(b""), None);
        assert_eq!(queued(&[2; 36]), None);
        assert_eq!(queued(&[2; 200]), None);
    }
}
