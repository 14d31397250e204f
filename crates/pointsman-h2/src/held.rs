//! What a connection holds of an answer's data until it can send it.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};

/// How much is held of one stream.
#[derive(Default)]
pub(crate) struct Held {
    bytes: Cell<usize>,
    /// Bytes of the stream that have left, and of all streams of the connection.
    sent_bytes: Cell<u64>,
    all_sent_bytes: Rc<Cell<u64>>,
    waiting: Cell<Option<Waker>>,
    /// What goes when nothing is held any more.
    companion: Cell<Option<Box<dyn Any>>>,
}

impl Held {
    /// Nothing yet, of a connection whose streams have sent so much together.
    pub(crate) fn new(all_sent_bytes: Rc<Cell<u64>>) -> Rc<Held> {
        Rc::new(Held { all_sent_bytes, ..Held::default() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.get() == 0
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes.get()
    }

    /// Ready when nothing is held any more: it has left, or was thrown away with its stream.
    pub(crate) fn poll_empty(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_empty() {
            return Poll::Ready(());
        }
        self.waiting.set(Some(context.waker().clone()));
        Poll::Pending
    }

    /// Drops `companion` when nothing is held any more.
    pub(crate) fn keep(&self, companion: impl Any) {
        if !self.is_empty() {
            self.companion.set(Some(Box::new(companion)));
        }
    }

    fn give_up(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() - bytes);
        if self.is_empty() {
            self.companion.take();
            if let Some(waker) = self.waiting.take() {
                waker.wake();
            }
        }
    }
}

/// Data that is counted for as long as it is held.
pub(crate) struct Piece {
    data: Bytes,
    held: Rc<Held>,
}

impl Piece {
    pub(crate) fn new(data: &[u8], held: &Rc<Held>) -> Piece {
        held.bytes.set(held.bytes.get() + data.len());
        Piece { data: Bytes::copy_from_slice(data), held: held.clone() }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.data.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.data
    }

    fn advance(&mut self, bytes: usize) {
        self.data.advance(bytes);
        for count in [&self.held.sent_bytes, &*self.held.all_sent_bytes] {
            count.set(count.get() + bytes as u64);
        }
        self.held.give_up(bytes);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.held.give_up(self.data.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_or_was_thrown_away_is_held_no_more() {
        let (sent_bytes, context) = (Rc::default(), Context::from_waker(Waker::noop()));
        let (held, other) = (Held::new(Rc::clone(&sent_bytes)), Held::new(Rc::clone(&sent_bytes)));
        assert!(held.poll_empty(&context).is_ready());
        let (mut first, second) = (Piece::new(b"first", &held), Piece::new(b"second", &held));
        first.advance(2);
        Piece::new(b"third", &other).advance(5);
        assert_eq!((held.sent_bytes(), sent_bytes.get(), first.chunk()), (2, 7, &b"rst"[..]));
        drop(second);
        assert!(held.poll_empty(&context).is_pending() && other.is_empty());
        drop(first);
        assert!(held.poll_empty(&context).is_ready());
        assert_eq!(sent_bytes.get(), 7);
    }

    #[test]
    fn a_companion_goes_with_the_last_of_it() {
        let (held, companion) = (Held::new(Rc::default()), Rc::new(()));
        held.keep(companion.clone());
        assert_eq!(Rc::strong_count(&companion), 1, "nothing is held");
        let (mut first, second) = (Piece::new(b"first", &held), Piece::new(b"", &held));
        held.keep(companion.clone());
        first.advance(4);
        drop(second);
        assert_eq!(Rc::strong_count(&companion), 2);
        drop(first);
        assert_eq!(Rc::strong_count(&companion), 1);
    }
}
