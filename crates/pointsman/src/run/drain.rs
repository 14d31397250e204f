//! The beginning of the drain, and whoever waits for something that it makes pointless.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

/// Whether the switch drains.
#[derive(Default)]
pub(super) struct Drain {
    has_begun: Cell<bool>,
    /// Who is to hear of it; nobody holds the waker of one who is done.
    waiting: RefCell<Vec<Weak<Cell<Option<Waker>>>>>,
}

impl Drain {
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// It begins: all hear of it who wait, and have a turn before this one goes on.
    pub(super) async fn begin(&self) {
        self.has_begun.set(true);
        let waiting = self.waiting.take();
        let wakers = waiting.iter().filter_map(Weak::upgrade).filter_map(|waker| waker.take());
        wakers.for_each(Waker::wake);
        let mut has_waited = false;
        poll_fn(|context| {
            if std::mem::replace(&mut has_waited, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// What `work` comes to, or nothing where the drain begins before its end. What can be done without waiting is done in
    /// a drain, too.
    pub(super) async fn or_begins<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let own = Rc::new(Cell::new(None));
        {
            let mut waiting = self.waiting.borrow_mut();
            waiting.retain(|other| other.strong_count() > 0);
            waiting.push(Rc::downgrade(&own));
        }
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.has_begun() => Poll::Ready(None),
            Poll::Pending => {
                own.set(Some(context.waker().clone()));
                Poll::Pending
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::Context;

    use super::*;

    #[test]
    fn who_waits_hears_of_it_and_who_is_done_is_forgotten() {
        let drain = Drain::default();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..100 {
            let mut done = pin!(drain.or_begins(ready(7)));
            assert_eq!(done.as_mut().poll(&mut context), Poll::Ready(Some(7)));
        }
        assert_eq!(drain.waiting.borrow().len(), 1);
        let mut waits = pin!(drain.or_begins(pending::<()>()));
        assert!(waits.as_mut().poll(&mut context).is_pending());
        let mut begins = pin!(drain.begin());
        assert!(begins.as_mut().poll(&mut context).is_pending());
        assert_eq!(waits.as_mut().poll(&mut context), Poll::Ready(None));
        assert!(begins.as_mut().poll(&mut context).is_ready());
        let mut late = pin!(drain.or_begins(ready(8)));
        assert_eq!(late.as_mut().poll(&mut context), Poll::Ready(Some(8)));
    }
}
