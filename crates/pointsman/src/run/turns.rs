//! Whoever changes what serves, or has something read for it, one at a time, in the order in which they came.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// How many there may be before one more client of the admin listener is turned away: fewer than have places there, so that who
/// only looks has one.
const TURNS_MAX: usize = 16;

/// All of them.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<Row>>);

#[derive(Default)]
struct Row {
    /// The first has its turn; of the others, who is to hear that it has come.
    places: VecDeque<(u64, Option<Waker>)>,
    /// Of the last place that was taken.
    number: u64,
}

/// A place in the row, which lasts as long as any copy of it, on whatever thread.
#[derive(Clone)]
pub(super) struct Turn(Arc<Place>);

struct Place {
    turns: Turns,
    number: u64,
}

impl Turns {
    /// A place behind all others.
    pub(super) fn take(&self) -> Turn {
        let mut row = self.row();
        row.number += 1;
        let number = row.number;
        row.places.push_back((number, None));
        Turn(Arc::new(Place { turns: self.clone(), number }))
    }

    /// The same, where there are not too many.
    pub(super) fn take_if_few(&self) -> Option<Turn> {
        let are_few = self.row().places.len() < TURNS_MAX;
        are_few.then(|| self.take())
    }

    /// Whether there is nobody.
    pub(super) fn are_none(&self) -> bool {
        self.row().places.is_empty()
    }

    fn row(&self) -> MutexGuard<'_, Row> {
        // Whoever held it left it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Whether all before it are done.
    pub(super) fn has_come(&self) -> bool {
        self.0.turns.row().places.front().is_some_and(|(number, _)| *number == self.0.number)
    }

    /// Waits for that. Only one task may.
    pub(super) async fn comes(&self) {
        poll_fn(|context| {
            let mut row = self.0.turns.row();
            let at = row.places.iter().position(|(number, _)| *number == self.0.number);
            match at.map(|at| (at, &mut row.places[at])) {
                // A place is in the row as long as it lasts.
                None | Some((0, _)) => Poll::Ready(()),
                Some((_, (_, waiting))) => {
                    *waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut row = self.turns.row();
        row.places.retain(|(number, _)| *number != self.number);
        let next = row.places.front_mut().and_then(|(_, waiting)| waiting.take());
        drop(row);
        next.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    use super::*;

    #[derive(Default)]
    struct Heard(AtomicUsize);

    impl Wake for Heard {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn turns_come_in_their_order_and_end_with_their_last_copy() {
        let turns = Turns::default();
        let [first, second, third] = [(); 3].map(|()| turns.take());
        assert!(first.has_come() && !second.has_come() && !third.has_come());
        let heard = Arc::new(Heard::default());
        let waker = Waker::from(heard.clone());
        let mut context = Context::from_waker(&waker);
        let mut waiting = Box::pin(third.comes());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        // One that is given up before it came holds nobody up.
        drop(second);
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        let copy = first.clone();
        drop(first);
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        std::thread::spawn(move || drop(copy)).join().expect("it ended");
        assert_eq!(heard.0.load(Ordering::SeqCst), 1);
        assert!(waiting.as_mut().poll(&mut context).is_ready());
        assert!(!turns.are_none());
        drop(waiting);
        drop(third);
        assert!(turns.are_none());
    }

    #[test]
    fn where_there_are_too_many_there_is_none_for_a_client() {
        let turns = Turns::default();
        let mut taken: Vec<_> = (0..TURNS_MAX).filter_map(|_| turns.take_if_few()).collect();
        assert_eq!(taken.len(), TURNS_MAX);
        assert!(turns.take_if_few().is_none());
        drop(turns.take());
        taken.pop();
        assert!(turns.take_if_few().is_some());
    }
}
