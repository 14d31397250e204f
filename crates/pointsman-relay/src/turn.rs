//! Whose turn it is where bodies that are held have used up their room: one of them at a time goes on all the same,
//! the one that has waited longest. So there is always one that comes to its end, and makes room for the others.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use crate::ahead::Pace;

/// While others wait, whoever has the turn is waited for so long, the less the more they are, and a second longer for
/// each so many bytes.
const TURN_US: u64 = 1_000_000;
const TURN_US_MIN: u64 = 100_000;
const TURN_BYTES_PER_SECOND: u64 = 64 * 1024;

/// What the threads share of it.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    is_taken: AtomicBool,
    waiting: AtomicUsize,
}

/// Those of a thread that wait for room. Between threads it is whoever looks first.
#[derive(Debug)]
pub(crate) struct HoldQueue {
    turns: Arc<Turns>,
    numbers: Cell<u64>,
    waiting: RefCell<BTreeMap<u64, Waker>>,
}

/// A place in the queue, for as long as it is waited.
pub(crate) struct QueuePlace {
    queue: Rc<HoldQueue>,
    number: u64,
}

/// The right to hold more than there is room for. It comes back when nothing is held by it any more.
#[derive(Debug)]
pub(crate) struct Turn(Rc<HoldQueue>);

/// A body's turn, and how far it had come when that began.
pub(crate) struct InTurn {
    pub(crate) turn: Rc<Turn>,
    since: Pace,
}

impl HoldQueue {
    pub(crate) fn new(turns: Arc<Turns>) -> Rc<HoldQueue> {
        Rc::new(HoldQueue { turns, numbers: Cell::new(0), waiting: RefCell::default() })
    }

    /// A number to wait by: lower ones come first.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.replace(self.numbers.get() + 1)
    }

    pub(crate) fn wait(self: &Rc<Self>, number: u64) -> QueuePlace {
        self.turns.waiting.fetch_add(1, Ordering::Relaxed);
        self.waiting.borrow_mut().insert(number, Waker::noop().clone());
        QueuePlace { queue: self.clone(), number }
    }

    /// Tells whoever has waited longest to look again.
    fn wake_first(&self) {
        let first = self.waiting.borrow().first_key_value().map(|(_, waker)| waker.clone());
        first.into_iter().for_each(Waker::wake);
    }

    /// How many wait, on all threads.
    pub(crate) fn waiting(&self) -> usize {
        self.turns.waiting.load(Ordering::Relaxed)
    }
}

impl QueuePlace {
    /// The turn, if nobody has it and nobody of this thread has waited for longer.
    pub(crate) fn take_turn(&self, pace: Pace) -> Option<InTurn> {
        let is_mine = self.is_first() && !self.queue.turns.is_taken.swap(true, Ordering::AcqRel);
        is_mine.then(|| InTurn { turn: Rc::new(Turn(self.queue.clone())), since: pace })
    }

    /// Waits until the turn can be taken. Somebody of another thread who gives it back wakes nobody here.
    pub(crate) fn poll_turn(&self, context: &Context<'_>) -> Poll<()> {
        self.queue.waiting.borrow_mut().insert(self.number, context.waker().clone());
        match self.is_first() && !self.queue.turns.is_taken.load(Ordering::Acquire) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn is_first(&self) -> bool {
        self.queue.waiting.borrow().first_key_value().is_some_and(|(first, _)| *first == self.number)
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let is_first = self.is_first();
        self.queue.waiting.borrow_mut().remove(&self.number);
        self.queue.turns.waiting.fetch_sub(1, Ordering::Relaxed);
        if is_first {
            self.queue.wake_first();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.turns.is_taken.store(false, Ordering::Release);
        self.0.wake_first();
    }
}

impl InTurn {
    /// Whether nothing is held by it.
    pub(crate) fn is_unused(&self) -> bool {
        Rc::strong_count(&self.turn) == 1
    }

    /// Whether the client has let so many others wait for longer than what it brought is worth.
    pub(crate) fn is_slow(&self, pace: Pace, others: usize) -> bool {
        let turn_us = (TURN_US / others.max(1) as u64).max(TURN_US_MIN);
        let brought_bytes = pace.read_bytes - self.since.read_bytes;
        let earned_us = brought_bytes.saturating_mul(1_000_000) / TURN_BYTES_PER_SECOND;
        pace.waited_us - self.since.waited_us > turn_us.saturating_add(earned_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_the_first_of_a_thread() {
        let turns = Arc::new(Turns::default());
        let (one, other) = (HoldQueue::new(turns.clone()), HoldQueue::new(turns));
        let (early, late) = (one.number(), one.number());
        let second = one.wait(late);
        let first = one.wait(early);
        let elsewhere = other.wait(other.number());
        assert!(second.take_turn(Pace::default()).is_none(), "another one has waited longer");
        let turn = first.take_turn(Pace::default()).expect("nobody has it");
        assert!(turn.is_unused());
        assert!(elsewhere.take_turn(Pace::default()).is_none(), "there is one in the process");
        drop(first);
        let held_by_it = turn.turn.clone();
        assert!(!turn.is_unused());
        drop(turn);
        assert!(second.take_turn(Pace::default()).is_none(), "something is held by it");
        drop(held_by_it);
        assert!(second.take_turn(Pace::default()).is_some());
        assert!(elsewhere.take_turn(Pace::default()).is_some(), "it was given back unused");
        assert_eq!(one.waiting(), 2);
        drop((second, elsewhere));
        assert_eq!((one.waiting(), other.waiting()), (0, 0));
    }

    #[test]
    fn who_gives_it_back_wakes_the_next() {
        #[derive(Default)]
        struct Woken(AtomicUsize);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let queue = HoldQueue::new(Arc::default());
        let woken = [Arc::new(Woken::default()), Arc::new(Woken::default())];
        let wakers = woken.clone().map(Waker::from);
        let counts = || woken.each_ref().map(|woken| woken.0.load(Ordering::Relaxed));
        let holder = queue.wait(queue.number());
        let turn = holder.take_turn(Pace::default()).expect("nobody has it");
        drop(holder);
        let places = [0, 1].map(|_| queue.wait(queue.number()));
        for (place, waker) in places.iter().zip(&wakers) {
            assert!(place.poll_turn(&Context::from_waker(waker)).is_pending());
        }
        drop(turn);
        assert_eq!(counts(), [1, 0]);
        let [first, second] = places;
        assert!(second.poll_turn(&Context::from_waker(&wakers[1])).is_pending(), "it is not the first");
        assert!(first.poll_turn(&Context::from_waker(&wakers[0])).is_ready());
        drop(first);
        assert_eq!(counts(), [1, 1]);
        assert!(second.poll_turn(&Context::from_waker(&wakers[1])).is_ready());
    }

    #[test]
    fn a_turn_is_as_long_as_what_it_brings_is_worth() {
        let queue = HoldQueue::new(Arc::default());
        let since = Pace { read_bytes: 1000, waited_us: 5_000_000 };
        let turn = queue.wait(queue.number()).take_turn(since).expect("nobody has it");
        let after = |bytes: u64, us: u64| Pace { read_bytes: 1000 + bytes, waited_us: 5_000_000 + us };
        for (bytes, others, us) in [
            (0, 1, 1_000_000),
            (65_536, 1, 2_000_000),
            (0, 4, 250_000),
            (0, 1000, 100_000),
            (6_554, 1000, 200_000),
        ] {
            assert!(!turn.is_slow(after(bytes, us), others), "{bytes} bytes before {others}");
            assert!(turn.is_slow(after(bytes, us + 100), others), "{bytes} bytes before {others}");
        }
        assert!(turn.is_slow(after(65_535, 2_000_000), 1));
    }
}
