//! What a process hands to the one that takes its place: texts and listening sockets, over a Unix socket that is the
//! standard input of the new one.
//!
//! No descriptor has to be named by its number, which only `unsafe` code could make a socket of again, and nothing of it
//! stands in arguments or in the environment, where others could read it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// Sockets that go with one parcel.
pub const PARCEL_SOCKETS_MAX: usize = 64;

/// Bytes of the text of one.
pub const PARCEL_BYTES_MAX: usize = 4096;

/// One end of the way between two processes. What is sent arrives whole and in order.
#[derive(Debug)]
pub struct Line(OwnedFd);

/// A text, and the sockets that it is about.
#[derive(Debug)]
pub struct Parcel {
    /// As it was sent.
    pub text: Vec<u8>,
    /// As they were sent: the same sockets, in this process.
    pub sockets: Vec<OwnedFd>,
}

impl Line {
    /// Two ends.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn pair() -> io::Result<(Line, OwnedFd)> {
        let kind = SocketType::SEQPACKET;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        Ok((Line(ours), theirs))
    }

    /// The end that this process was started with, as its standard input.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn of_standard_input() -> io::Result<Line> {
        Ok(Line(io::stdin().as_fd().try_clone_to_owned()?))
    }

    /// The end that came as a socket of a parcel.
    pub fn of_socket(socket: OwnedFd) -> Line {
        Line(socket)
    }

    /// Sends a text, once there is room for it. Holds up the thread, for as long as the other process is there and takes
    /// nothing.
    ///
    /// # Errors
    /// Where the other process is gone.
    pub fn send_in_turn(&self, text: &[u8]) -> io::Result<()> {
        loop {
            match self.send(text, &[]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll_until(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)?;
                }
                sent => return sent,
            }
        }
    }

    /// Whether the other process closes its end within so long. Holds up the thread.
    ///
    /// # Errors
    /// What the system says where it cannot be watched.
    pub fn closes_within(&self, ms: u32) -> io::Result<bool> {
        // Only the end itself is heard of, which need not be asked for.
        poll_until(&mut [PollFd::new(&self.0, PollFlags::empty())], Some(ms))
    }

    /// Sends one, at once or not at all.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where too many are under way; another where the other process is gone.
    pub fn send(&self, text: &[u8], sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
        // Counted, for the room may have some to spare: it is larger than it need be where it begins well aligned.
        let fits = sockets.len() <= PARCEL_SOCKETS_MAX && (1..=PARCEL_BYTES_MAX).contains(&text.len());
        let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(PARCEL_SOCKETS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        if !fits || !sockets.is_empty() && !control.push(SendAncillaryMessage::ScmRights(sockets)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match sendmsg(&self.0, &[IoSlice::new(text)], &mut control, flags) {
            // Of descriptors, too, only so many may be under way.
            Err(Errno::TOOMANYREFS) => Err(io::ErrorKind::WouldBlock.into()),
            sent => Ok(sent.map(drop)?),
        }
    }

    /// The next one, if it has come.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where none has; [`io::ErrorKind::UnexpectedEof`] where none will, since the other
    /// process has closed its end; [`io::ErrorKind::InvalidData`] where some of it was lost.
    pub fn receive(&self) -> io::Result<Parcel> {
        let mut text = vec![0; PARCEL_BYTES_MAX];
        let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(PARCEL_SOCKETS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(&mut text)], &mut control, flags) {
                Err(Errno::INTR) => {}
                received => break received?,
            }
        };
        let sockets = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
            _ => None,
        });
        let sockets = sockets.flatten().collect();
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        match received.bytes {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => {
                text.truncate(bytes);
                Ok(Parcel { text, sockets })
            }
        }
    }

    /// The next one, waited for so long. Holds up the thread.
    ///
    /// # Errors
    /// As [`Line::receive`]; [`io::ErrorKind::TimedOut`] where none has come in time.
    pub fn receive_within(&self, ms: u32) -> io::Result<Parcel> {
        match poll_until(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(ms))? {
            true => self.receive(),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Waits for one of these. Says whether it came in time.
fn poll_until(watched: &mut [PollFd<'_>], ms: Option<u32>) -> io::Result<bool> {
    let max =
        ms.map(|ms| Timespec { tv_sec: i64::from(ms / 1000), tv_nsec: i64::from(ms % 1000) * 1_000_000 });
    loop {
        match poll(watched, max.as_ref()) {
            Err(Errno::INTR) => {}
            polled => return Ok(polled? > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (Line, Line) {
        let (ours, theirs) = Line::pair().expect("descriptors");
        (ours, Line(theirs))
    }

    #[test]
    fn parcels_arrive_whole_and_then_the_end() {
        let (giver, taker) = pair();
        let sockets: Vec<_> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("loopback")).collect();
        let borrowed: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
        giver.send(b"keys", &[]).expect("room");
        giver.send(b"sockets", &borrowed).expect("room");
        assert_eq!(taker.receive_within(1000).expect("it was sent").text, b"keys");
        let parcel = taker.receive().expect("it was sent");
        assert_eq!(parcel.text, b"sockets");
        for (ours, theirs) in sockets.iter().zip(parcel.sockets) {
            let theirs = TcpListener::from(theirs);
            assert_eq!(ours.local_addr().expect("bound"), theirs.local_addr().expect("bound"));
        }
        assert_eq!(taker.receive().expect_err("no more").kind(), io::ErrorKind::WouldBlock);
        assert_eq!(taker.receive_within(0).expect_err("no more").kind(), io::ErrorKind::TimedOut);
        drop(giver);
        assert_eq!(taker.receive_within(1000).expect_err("gone").kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_a_full_way_says_so() {
        let (giver, taker) = pair();
        let socket = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let many = vec![socket.as_fd(); PARCEL_SOCKETS_MAX + 1];
        let kind = |sent: io::Result<()>| sent.expect_err("it is not sent").kind();
        assert_eq!(kind(giver.send(b"x", &many)), io::ErrorKind::InvalidInput);
        assert_eq!(kind(giver.send(b"", &[])), io::ErrorKind::InvalidInput);
        assert_eq!(kind(giver.send(&[0; PARCEL_BYTES_MAX + 1], &[])), io::ErrorKind::InvalidInput);
        let full = (0..100_000).find_map(|_| giver.send(b"x", &many[1..2]).err()).expect("it has a limit");
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(taker.receive().expect("it was sent").sockets.len(), 1);
        drop(taker);
        assert!(giver.send(b"x", &[]).is_err(), "nobody is there");
    }
    #[test]
    fn a_line_of_its_own_is_heard_to_its_end() {
        const PARCELS: u32 = 20_000;
        let (giver, taker) = pair();
        let (line, theirs) = Line::pair().expect("descriptors");
        giver.send(b"line", &[theirs.as_fd()]).expect("room");
        drop(theirs);
        let socket = taker.receive().expect("it was sent").sockets.pop().expect("one");
        assert!(!line.closes_within(0).expect("it can be watched"));
        let takes = std::thread::spawn(move || {
            let taker = Line::of_socket(socket);
            for number in 0..PARCELS {
                let text = taker.receive_within(10_000).expect("more is sent").text;
                assert_eq!(text, number.to_le_bytes());
            }
        });
        // More than there is room for at once.
        (0..PARCELS).for_each(|number| line.send_in_turn(&number.to_le_bytes()).expect("somebody takes it"));
        assert!(line.closes_within(10_000).expect("it can be watched"));
        takes.join().expect("all came in order");
        assert!(line.send_in_turn(b"x").is_err(), "nobody is there");
    }
}
