//! What the control thread sees of the thread that looks names up.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pointsman_config::{Answers, DnsSettings, Found, Lookup};
use pointsman_net::EventLoop;

use crate::ask::Fault;
use crate::desk;

/// News that wait to be told; more are dropped, the oldest first.
const NEWS_MAX: usize = 1024;

/// Looks names up on a thread of its own, which begins with the first of them and ends when this is dropped.
#[derive(Default)]
pub struct Resolver {
    shared: Arc<Shared>,
    is_running: AtomicBool,
}

/// What has become of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It stands for something else now.
    Changed(Lookup, Found),
    /// It could not be looked up, for this reason, though it could before. Whether what it stood for is still known.
    Failed(Lookup, String, bool),
    /// It can be again, and stands for what it did.
    Back(Lookup),
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |lookup: &Lookup| format!("name={} record={}", lookup.name(), lookup.record());
        match self {
            News::Changed(lookup, found) => write!(f, "dns answer {} found={}", place(lookup), listed(found)),
            News::Failed(lookup, why, keeps) => {
                let rest = if *keeps { "the last answer holds" } else { "there is no answer yet" };
                write!(f, "dns failed {} why=\"{why}\": {rest}", place(lookup))
            }
            News::Back(lookup) => write!(f, "dns answers again {}", place(lookup)),
        }
    }
}

/// So many of an answer are named; the others are counted.
const LISTED_MAX: usize = 8;

fn listed(found: &Found) -> String {
    let named: Vec<_> = match found {
        Found::Addresses(addresses) => addresses.iter().take(LISTED_MAX).map(ToString::to_string).collect(),
        Found::Services(members) => members.iter().take(LISTED_MAX).map(ToString::to_string).collect(),
    };
    match found.count().saturating_sub(LISTED_MAX) {
        0 => named.join(","),
        more => format!("{},+{more}", named.join(",")),
    }
}

/// What became of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is an answer.
    Answered,
    /// There is no such name.
    NoName,
    /// It has no such record.
    Empty,
    /// Nobody answered in time.
    Timeout,
    /// A name server did not say.
    Refused,
    /// What came is no answer, or leads nowhere.
    Malformed,
    /// No name server could be reached.
    Unreachable,
}

impl Outcome {
    /// All of them, with what they are called in metrics.
    pub const ALL: [(Outcome, &str); 7] = [
        (Outcome::Answered, "answered"),
        (Outcome::NoName, "no_name"),
        (Outcome::Empty, "empty"),
        (Outcome::Timeout, "timeout"),
        (Outcome::Refused, "refused"),
        (Outcome::Malformed, "malformed"),
        (Outcome::Unreachable, "unreachable"),
    ];

    fn of(fault: &Fault) -> Outcome {
        match fault {
            Fault::NoName => Outcome::NoName,
            Fault::Empty => Outcome::Empty,
            Fault::Timeout => Outcome::Timeout,
            Fault::Refused(_) => Outcome::Refused,
            Fault::Malformed | Fault::Aliases | Fault::NotAName => Outcome::Malformed,
            Fault::Io(_) => Outcome::Unreachable,
        }
    }
}

/// How it stands with a name.
#[derive(Clone, Debug)]
pub struct NameState {
    /// What is looked up.
    pub lookup: Lookup,
    /// How many addresses, or servers, it stands for.
    pub found_count: usize,
    /// Whether it could not be looked up the last time.
    pub is_failing: bool,
    /// How often it was looked up, by what became of that.
    pub outcomes: Vec<(&'static str, u64)>,
}

impl Resolver {
    /// Looks these names up from now on, and no others. What is known of the others is forgotten.
    ///
    /// # Errors
    /// The system gives no thread or event loop.
    pub fn watch(&self, lookups: Vec<Lookup>, settings: &DnsSettings) -> io::Result<()> {
        let is_needed = !lookups.is_empty();
        {
            let mut state = self.shared.lock();
            let mut before = std::mem::take(&mut state.table);
            let known = |lookup: &Lookup| (lookup.clone(), before.remove(lookup).unwrap_or_default());
            state.table = lookups.iter().map(known).collect();
            state.orders = Some((lookups, settings.clone()));
        }
        // Who waits for a name that nobody wants any more waits no longer.
        self.shared.settled.notify_all();
        self.shared.has_orders.store(true, Ordering::Release);
        if is_needed && !self.is_running.load(Ordering::Relaxed) {
            self.begin()?;
            self.is_running.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn begin(&self) -> io::Result<()> {
        let shared = self.shared.clone();
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::Builder::new().name("names".to_owned()).spawn(move || {
            let (Ok(()) | Err(_)) = match EventLoop::new() {
                Ok(event_loop) => {
                    let told = ready.send(Ok(()));
                    desk::run(&event_loop, &shared);
                    told
                }
                Err(error) => ready.send(Err(error)),
            };
        })?;
        is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("the thread ended before it began")))
    }

    /// What waits for these names, on whatever thread.
    pub fn waiter(&self, lookups: Vec<Lookup>) -> Waiter {
        Waiter { shared: self.shared.clone(), lookups }
    }

    /// Of which of these names nothing is known by now, and why.
    pub fn unknown(&self, lookups: &[Lookup]) -> HashMap<Lookup, String> {
        let state = self.shared.lock();
        let unknown = lookups.iter().filter_map(|lookup| Some((lookup.clone(), state.why_unknown(lookup)?)));
        unknown.collect()
    }

    /// Whether each of these names has been looked up once.
    pub fn are_settled(&self, lookups: &[Lookup]) -> bool {
        let state = self.shared.lock();
        lookups.iter().all(|lookup| state.is_settled(lookup))
    }

    /// What is known by now.
    pub fn answers(&self) -> Answers {
        let state = self.shared.lock();
        let known = state.table.iter();
        known.filter_map(|(lookup, entry)| Some((lookup.clone(), entry.found.clone()?))).collect()
    }

    /// Whether [`Resolver::answers`] or [`Resolver::are_settled`] may say something else than when this was last asked.
    pub fn take_changed(&self) -> bool {
        std::mem::take(&mut self.shared.lock().has_changed)
    }

    /// What tells of one name, from whatever thread asks.
    pub fn reader(&self, lookup: Lookup) -> Reader {
        Reader { shared: self.shared.clone(), lookup }
    }

    /// What has become of names since this was last asked.
    pub fn take_news(&self) -> Vec<News> {
        self.shared.lock().news.drain(..).collect()
    }

    /// How it stands with every name, in their order.
    pub fn states(&self) -> Vec<NameState> {
        let state = self.shared.lock();
        let mut states: Vec<_> = state.table.iter().map(|(lookup, entry)| entry.state(lookup)).collect();
        states.sort_by(|one, other| one.lookup.cmp(&other.lookup));
        states
    }
}

/// Waits for names, as long as they are [watched](Resolver::watch).
pub struct Waiter {
    shared: Arc<Shared>,
    lookups: Vec<Lookup>,
}

impl Waiter {
    /// Waits until each of them has been looked up once, and no longer than until then.
    pub fn wait_until(&self, until: Instant) {
        drop(self.shared.wait(&self.lookups, until.saturating_duration_since(Instant::now())));
    }
}

/// Tells what is known of one name, as long as it is [watched](Resolver::watch).
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
    lookup: Lookup,
}

impl Reader {
    /// What is known of it, as soon as it has been looked up once, and after this time at the latest.
    ///
    /// # Errors
    /// Why nothing is.
    pub fn known_within(&self, max: Duration) -> Result<Found, String> {
        let state = self.shared.wait(std::slice::from_ref(&self.lookup), max);
        let found = state.table.get(&self.lookup).and_then(|entry| entry.found.clone());
        found.ok_or_else(|| state.why_unknown(&self.lookup).unwrap_or_default())
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
    }
}

/// What both threads see.
#[derive(Default)]
pub(crate) struct Shared {
    is_over: AtomicBool,
    has_orders: AtomicBool,
    state: Mutex<State>,
    /// Something was looked up.
    settled: Condvar,
}

#[derive(Default)]
struct State {
    /// For the thread.
    orders: Option<(Vec<Lookup>, DnsSettings)>,
    /// Whatever is looked up.
    table: HashMap<Lookup, Entry>,
    has_changed: bool,
    news: VecDeque<News>,
}

/// What is known of a name.
#[derive(Default)]
struct Entry {
    found: Option<Found>,
    /// Why the last lookup failed, if it did.
    failure: Option<String>,
    outcomes: [u64; Outcome::ALL.len()],
}

impl Entry {
    fn is_settled(&self) -> bool {
        self.found.is_some() || self.failure.is_some()
    }

    fn state(&self, lookup: &Lookup) -> NameState {
        let counts = Outcome::ALL.iter().zip(self.outcomes).map(|((_, name), count)| (*name, count));
        NameState {
            lookup: lookup.clone(),
            found_count: self.found.as_ref().map_or(0, Found::count),
            is_failing: self.failure.is_some(),
            outcomes: counts.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

impl State {
    fn is_settled(&self, lookup: &Lookup) -> bool {
        self.table.get(lookup).is_some_and(Entry::is_settled)
    }

    fn why_unknown(&self, lookup: &Lookup) -> Option<String> {
        match self.table.get(lookup) {
            Some(Entry { found: Some(_), .. }) => None,
            Some(Entry { failure: Some(why), .. }) => Some(why.clone()),
            _ => Some("no name server answered in time".to_owned()),
        }
    }

    fn tell(&mut self, news: News) {
        if self.news.len() >= NEWS_MAX {
            self.news.pop_front();
        }
        self.news.push_back(news);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever held it left it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until each of these names has been looked up once, at most that long.
    fn wait(&self, lookups: &[Lookup], max: Duration) -> MutexGuard<'_, State> {
        let started = Instant::now();
        let mut state = self.lock();
        let is_awaited =
            |state: &State, lookup| state.table.get(lookup).is_some_and(|entry: &Entry| !entry.is_settled());
        while lookups.iter().any(|lookup| is_awaited(&state, lookup)) {
            let left = max.saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            let waited = self.settled.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// What is to be looked up from now on, if that has changed.
    pub(crate) fn take_orders(&self) -> Option<(Vec<Lookup>, DnsSettings)> {
        if !self.has_orders.swap(false, Ordering::Acquire) {
            return None;
        }
        self.lock().orders.take()
    }

    /// What is known of a name.
    pub(crate) fn found(&self, lookup: &Lookup) -> Option<Found> {
        self.lock().table.get(lookup)?.found.clone()
    }

    /// Takes in what a lookup came to. One that failed takes nothing away.
    pub(crate) fn note(&self, lookup: &Lookup, outcome: Result<Found, Fault>) {
        let mut state = self.lock();
        // Nobody wants to know any more.
        let Some(entry) = state.table.get_mut(lookup) else { return };
        let counted = outcome.as_ref().map_or_else(Outcome::of, |_| Outcome::Answered);
        entry.outcomes[counted as usize] += 1;
        let mut has_changed = !entry.is_settled();
        let news = match outcome {
            Ok(found) => {
                let had_failed = entry.failure.take().is_some();
                let is_other = entry.found.as_ref() != Some(&found);
                entry.found = Some(found.clone());
                match (is_other, had_failed) {
                    (true, _) => {
                        has_changed = true;
                        Some(News::Changed(lookup.clone(), found))
                    }
                    (false, true) => Some(News::Back(lookup.clone())),
                    (false, false) => None,
                }
            }
            Err(fault) => {
                let why = fault.to_string();
                let is_news = entry.failure.as_ref() != Some(&why);
                entry.failure = Some(why.clone());
                let keeps = entry.found.is_some();
                is_news.then(|| News::Failed(lookup.clone(), why, keeps))
            }
        };
        state.has_changed |= has_changed;
        news.into_iter().for_each(|news| state.tell(news));
        drop(state);
        self.settled.notify_all();
    }
}
