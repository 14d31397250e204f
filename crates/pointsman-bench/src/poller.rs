//! Which sockets of a thread are ready, and when the next request is due.
//!
//! Sockets are registered once and heard of at edges. A wait ends by a timer of the kernel that counts in
//! nanoseconds, a little early, and the rest is spun: a request that is due is sent within microseconds.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::clock::SECOND_NS;

/// Events fetched from the kernel at a time: few, so that what falls due meanwhile does not wait for them.
const EVENTS_MAX: usize = 64;

/// How much earlier than wanted the timer rings: what waking up takes. It is spun away.
const SPIN_NS: u64 = 30_000;

/// The timer's number among the sockets.
const TIMER: usize = u32::MAX as usize;

/// What was heard of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The number that it was registered under.
    pub(crate) number: usize,
    /// Which of those that have had this number it is.
    turn: u32,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer has closed, or the socket broke: there is an end to read.
    pub(crate) ended: bool,
}

impl Ready {
    /// There may be more to read, of which no edge tells.
    pub(crate) fn unread(self) -> Ready {
        Ready { readable: true, writable: false, ..self }
    }
}

/// The sockets of one thread.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed_ns: u64,
    /// By number: which of those that have had it is the last. What is heard of sockets comes in batches, and while one is
    /// worked through a socket may close and another one take its number: what was heard of the first is not the second's.
    turns: Vec<u32>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &timer, data(TIMER, 0), edge)?;
        Ok(Poller { epoll, timer, armed_ns: 0, turns: Vec::new() })
    }

    /// Hears of a socket at every change from now on, until it is closed. Numbers are used again, and so are small.
    pub(crate) fn watch(&mut self, socket: impl AsFd, number: usize) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let flags = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
        if number >= self.turns.len() {
            self.turns.resize(number + 1, 0);
        }
        self.turns[number] = self.turns[number].wrapping_add(1);
        Ok(epoll::add(&self.epoll, socket, data(number, self.turns[number]), flags)?)
    }

    /// Whether it is still of the socket that has its number.
    pub(crate) fn is_of_now(&self, ready: &Ready) -> bool {
        self.turns.get(ready.number) == Some(&ready.turn)
    }

    /// Hears of a listening socket for as long as somebody waits there.
    pub(crate) fn watch_listener(&self, socket: impl AsFd, number: usize) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, data(number, 0), epoll::EventFlags::IN)?)
    }

    /// Appends what is ready to `ready`, and waits for it until `due_ns` where nothing is. It may return earlier with
    /// nothing.
    pub(crate) fn wait(&mut self, now_ns: u64, due_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let sleeps = due_ns > now_ns + SPIN_NS;
        if sleeps {
            self.arm(due_ns - SPIN_NS)?;
        }
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_MAX];
        let timeout = if sleeps { None } else { Some(&AT_ONCE) };
        let events = match epoll::wait(&self.epoll, &mut room, timeout) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            use epoll::EventFlags as Flags;
            let (data, flags) = (event.data.u64(), event.flags);
            let (number, turn) = ((data & u64::from(u32::MAX)) as usize, (data >> 32) as u32);
            if number == TIMER {
                self.armed_ns = 0;
                continue;
            }
            ready.push(Ready {
                number,
                turn,
                readable: flags.intersects(Flags::IN | Flags::RDHUP | Flags::HUP | Flags::ERR),
                writable: flags.intersects(Flags::OUT | Flags::HUP | Flags::ERR),
                ended: flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR),
            });
        }
        Ok(())
    }

    fn arm(&mut self, at_ns: u64) -> io::Result<()> {
        if self.armed_ns == at_ns {
            return Ok(());
        }
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let at = Timespec { tv_sec: (at_ns / SECOND_NS) as i64, tv_nsec: (at_ns % SECOND_NS) as i64 };
        let when = Itimerspec { it_interval: once, it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &when)?;
        self.armed_ns = at_ns;
        Ok(())
    }
}

/// What the kernel keeps of a socket for us.
fn data(number: usize, turn: u32) -> epoll::EventData {
    epoll::EventData::new_u64(u64::from(turn) << 32 | number as u64)
}

/// Whether a wait that began now would be spun away: nothing is due yet, and something soon.
pub(crate) fn spins(now_ns: u64, due_ns: u64) -> bool {
    (now_ns + 1..=now_ns + SPIN_NS).contains(&due_ns)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::clock::now_ns;

    #[test]
    fn what_was_heard_of_a_socket_is_not_the_next_ones() {
        let mut poller = Poller::new().expect("descriptors");
        let heard = |poller: &mut Poller| {
            let mut ready = Vec::new();
            poller.wait(0, 0, &mut ready).expect("epoll");
            ready
        };
        let pair = || UnixStream::pair().expect("descriptors");
        let (first, other_end) = pair();
        poller.watch(&first, 3).expect("epoll");
        drop(other_end);
        let of_first = heard(&mut poller);
        assert!(of_first[0].ended && poller.is_of_now(&of_first[0]));
        // Between what is heard and what is done about it, another one takes the number.
        drop(first);
        let (second, mut other_end) = pair();
        poller.watch(&second, 3).expect("epoll");
        assert_eq!(of_first[0].number, 3);
        assert!(!poller.is_of_now(&of_first[0]), "the end of the first is not that of the second");
        other_end.write_all(b"x").expect("room");
        let of_second = heard(&mut poller);
        assert!(!of_second[0].ended && poller.is_of_now(&of_second[0]));
    }

    #[test]
    fn a_wait_ends_when_the_time_comes() {
        let mut poller = Poller::new().expect("descriptors");
        let mut ready = Vec::new();
        for wait_ns in [0, 10_000, 200_000, 3_000_000] {
            let due_ns = now_ns() + wait_ns;
            let mut now = now_ns();
            while now < due_ns {
                poller.wait(now, due_ns, &mut ready).expect("epoll");
                now = now_ns();
            }
            assert!(ready.is_empty());
        }
    }
}
