//! What is looked at for those who ask about rules and change nothing: a few at a time, in threads that give way, and beside
//! all turns, so that nobody who changes something waits for who types.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// All of them, the oldest first: those that are looked at, and those that wait for that.
#[derive(Clone)]
pub(super) struct Enquiries {
    places: Arc<Mutex<VecDeque<Standing>>>,
    at_once_max: usize,
    places_max: usize,
}

/// Who asks what: a newer enquiry of the same asker takes the place of an older one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asker {
    pub(super) who: Option<String>,
    /// What tells the windows of one person apart, which they have chosen; without it none of them is told apart.
    pub(super) client: Option<String>,
    /// About what.
    pub(super) about: &'static str,
}

struct Standing {
    /// Whether it is of no use any more; no other one has the same.
    is_over: Arc<AtomicBool>,
    asker: Asker,
    waiting: Option<Waker>,
}

/// One that lasts as long as this, on whatever thread.
pub(super) struct Enquiry {
    all: Enquiries,
    /// Whether it is of no use any more; no other one has the same.
    is_over: Arc<AtomicBool>,
}

/// A newer enquiry has taken its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overtaken;

impl Enquiries {
    /// Those of whoever is known, and those of all others: nobody has a place there that nobody knows.
    pub(super) fn of_admin() -> [Enquiries; 2] {
        [Enquiries::new(3, 16), Enquiries::new(1, 8)]
    }

    /// So many are looked at at once, and so many are there altogether.
    fn new(at_once_max: usize, places_max: usize) -> Enquiries {
        Enquiries { places: Arc::default(), at_once_max, places_max }
    }

    /// One more; nothing where there are too many. What the same asker asked before is of no use from now on, where they say
    /// which client they are.
    pub(super) fn begin(&self, asker: Asker) -> Option<Enquiry> {
        let mut places = self.places();
        if places.len() >= self.places_max {
            return None;
        }
        let mut overtaken = Vec::new();
        for older in places.iter_mut().filter(|older| older.asker.client.is_some() && older.asker == asker) {
            older.is_over.store(true, Ordering::Relaxed);
            overtaken.extend(older.waiting.take());
        }
        let is_over = Arc::new(AtomicBool::new(false));
        places.push_back(Standing { is_over: is_over.clone(), asker, waiting: None });
        drop(places);
        overtaken.into_iter().for_each(Waker::wake);
        Some(Enquiry { all: self.clone(), is_over })
    }

    fn places(&self) -> MutexGuard<'_, VecDeque<Standing>> {
        // Whoever held it left it whole.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Enquiry {
    /// Waits until it can be looked at.
    pub(super) async fn comes(&self) -> Result<(), Overtaken> {
        poll_fn(|context| {
            if self.is_over() {
                return Poll::Ready(Err(Overtaken));
            }
            let mut places = self.all.places();
            let place = places.iter().position(|standing| Arc::ptr_eq(&standing.is_over, &self.is_over));
            match place.and_then(|place| places.get_mut(place).filter(|_| place >= self.all.at_once_max)) {
                // One that stands there as long as it lasts.
                None => Poll::Ready(Ok(())),
                Some(standing) => {
                    standing.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Whether a newer one has taken its place.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// The same for who looks at it meanwhile.
    pub(super) fn ends(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let is_over = self.is_over.clone();
        move || is_over.load(Ordering::Relaxed)
    }
}

impl Drop for Enquiry {
    fn drop(&mut self) {
        let mut places = self.all.places();
        places.retain(|standing| !Arc::ptr_eq(&standing.is_over, &self.is_over));
        let waiting = places.iter_mut().take(self.all.at_once_max);
        let next: Vec<Waker> = waiting.filter_map(|standing| standing.waiting.take()).collect();
        drop(places);
        next.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    fn asker(client: Option<&str>) -> Asker {
        Asker { who: Some("deploy".to_owned()), client: client.map(str::to_owned), about: "check" }
    }

    fn has_come(enquiry: &Enquiry) -> Option<Result<(), Overtaken>> {
        match pin!(enquiry.comes()).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(came) => Some(came),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_few_are_looked_at_and_the_others_wait() {
        let all = Enquiries::new(2, 3);
        let [first, second, third] = [(); 3].map(|()| all.begin(asker(None)).expect("there is room"));
        assert!(all.begin(asker(None)).is_none());
        assert_eq!([&first, &second, &third].map(has_come), [Some(Ok(())), Some(Ok(())), None]);
        std::thread::spawn(move || drop(first)).join().expect("it ended");
        assert_eq!(has_come(&third), Some(Ok(())));
        assert!(all.begin(asker(None)).is_some());
        assert!(!second.is_over());
    }

    #[test]
    fn a_newer_one_of_the_same_client_ends_the_older() {
        let all = Enquiries::new(1, 4);
        let first = all.begin(asker(Some("a"))).expect("there is room");
        let other = all.begin(asker(Some("b"))).expect("there is room");
        let ends = first.ends();
        let second = all.begin(asker(Some("a"))).expect("there is room");
        assert!(first.is_over() && ends() && !other.is_over());
        assert_eq!(has_come(&second), None);
        let third = all.begin(asker(Some("a"))).expect("there is room");
        assert_eq!([&second, &other, &third].map(has_come), [Some(Err(Overtaken)), None, None]);
        let elsewhere = Asker { about: "explain", ..asker(Some("a")) };
        assert!(all.begin(elsewhere).is_none(), "there is room for so many");
        drop((first, second));
        assert_eq!(has_come(&other), Some(Ok(())));
        drop(other);
        assert_eq!(has_come(&third), Some(Ok(())));
    }
}
