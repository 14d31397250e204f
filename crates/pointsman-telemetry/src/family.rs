//! The counters of listeners, rules and servers, behind handles that carry their names.

use std::sync::{Arc, OnceLock};

use crate::agreed::{TlsGroup, TlsSession, TlsVersion};
use crate::event::{HandshakeFailure, Hedge, Mirrored, Refusal, ServerFailure};
use crate::hits::{Hits, Number};
use crate::json::quoted;
use crate::outcomes::{LazyOutcomes, Outcomes, Total};
use crate::slots::{ByThread, Counter, Slots};

/// The counters of a listener.
#[derive(Debug)]
pub struct ListenerMetrics {
    name: Box<str>,
    /// The name as JSON, for each line of the log.
    pub(crate) quoted: Box<[u8]>,
    pub(crate) slots: Slots<ListenerSlot>,
}

/// The counters of a rule on a listener.
#[derive(Debug)]
pub struct RuleMetrics {
    listener: Box<str>,
    label: Box<str>,
    /// Where all rules count how often they decide, and by which number this one does.
    all_hits: Arc<Hits>,
    number: Number,
    /// Where what it decides is counted under its name, or nothing where it is with that of others. Settled when it first
    /// decides, for as long as some plan or request holds it: figures never move from one name to another.
    place: OnceLock<Option<ByThread<LazyOutcomes>>>,
}

/// The counters of a class of `limitRate`.
#[derive(Debug)]
pub struct LimitMetrics {
    class: Box<str>,
    pub(crate) slots: Slots<LimitSlot>,
}

/// The counters of a class of `bandwidth` in one direction.
#[derive(Debug)]
pub struct BandwidthMetrics {
    class: Box<str>,
    direction: Box<str>,
    pub(crate) slots: Slots<BandwidthSlot>,
}

/// The counters of a server in a pool.
#[derive(Debug)]
pub struct ServerMetrics {
    pool: Box<str>,
    name: Box<str>,
    /// The name as JSON, for each line of the log.
    pub(crate) quoted: Box<[u8]>,
    pub(crate) slots: Slots<ServerSlot>,
}

#[derive(Debug, Default)]
pub(crate) struct ListenerSlot {
    pub(crate) opened: Counter,
    pub(crate) closed: Counter,
    pub(crate) handed_over: Counter,
    pub(crate) tunnels_opened: Counter,
    pub(crate) tunnels_closed: Counter,
    pub(crate) waits_began: Counter,
    pub(crate) waits_ended: Counter,
    pub(crate) held_bytes: Counter,
    pub(crate) released_bytes: Counter,
    pub(crate) outcomes: Outcomes,
    /// Of rules that have no place of their own.
    pub(crate) other_rules: LazyOutcomes,
    pub(crate) received_bytes: Counter,
    pub(crate) sent_bytes: Counter,
    pub(crate) handshakes: [Counter; TlsSession::ALL.len()],
    pub(crate) tls_versions: [Counter; TlsVersion::ALL.len()],
    pub(crate) tls_groups: [Counter; TlsGroup::ALL.len()],
    pub(crate) handshake_failures: [Counter; HandshakeFailure::ALL.len()],
    pub(crate) refusals: [Counter; Refusal::ALL.len()],
    pub(crate) mirrored: [Counter; Mirrored::ALL.len()],
}

#[derive(Debug, Default)]
pub(crate) struct LimitSlot {
    pub(crate) limited: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct BandwidthSlot {
    pub(crate) bytes: Counter,
    pub(crate) waits: Counter,
    pub(crate) waits_ended: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct ServerSlot {
    pub(crate) outcomes: Outcomes,
    pub(crate) retries: Counter,
    pub(crate) retries_refused: Counter,
    pub(crate) hedges: [Counter; Hedge::ALL.len()],
    pub(crate) idle_added: Counter,
    pub(crate) idle_removed: Counter,
    pub(crate) failures: [Counter; ServerFailure::ALL.len()],
}

impl ListenerMetrics {
    pub(crate) fn new(name: &str, threads: usize) -> ListenerMetrics {
        ListenerMetrics { name: name.into(), quoted: quoted(name), slots: Slots::new(threads) }
    }

    /// The listener's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What became of its requests.
    pub(crate) fn total(&self) -> Total {
        Total::of(self.slots.iter().map(|slot| &slot.outcomes))
    }

    /// What became of those whose rules have no place of their own; nothing where there were none.
    pub(crate) fn total_of_other_rules(&self) -> Option<Total> {
        let mut seen = self.slots.iter().filter_map(|slot| slot.other_rules.get()).peekable();
        seen.peek().is_some().then(|| Total::of(seen.map(|own| &own.0)))
    }
}

impl RuleMetrics {
    pub(crate) fn new(listener: &str, label: &str, all_hits: &Arc<Hits>) -> RuleMetrics {
        RuleMetrics {
            listener: listener.into(),
            label: label.into(),
            number: all_hits.take(),
            all_hits: all_hits.clone(),
            place: OnceLock::new(),
        }
    }

    /// The name of the listener that the rule stands on.
    pub fn listener(&self) -> &str {
        &self.listener
    }

    /// The rule's label.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// It has decided, on that thread, which alone says so.
    #[inline]
    pub(crate) fn hit(&self, thread: usize) {
        self.all_hits.add(thread, &self.number);
    }

    /// Where it counts by itself what it decides, if it has a place. `take` takes one for so many threads, to begin with; it
    /// is asked once, when the first thread wants to know.
    pub(crate) fn place_or(&self, take: impl FnOnce() -> Option<usize>) -> Option<&ByThread<LazyOutcomes>> {
        self.place.get_or_init(|| take().map(ByThread::new)).as_ref()
    }

    /// Whether it has one, as far as that is settled.
    pub(crate) fn has_place(&self) -> bool {
        matches!(self.place.get(), Some(Some(_)))
    }

    /// How often it decided.
    pub(crate) fn hits(&self) -> u64 {
        self.all_hits.of(&self.number)
    }

    /// What became of that, where it has a place of its own.
    pub(crate) fn total(&self) -> Option<Total> {
        let by_thread = self.place.get()?.as_ref()?;
        Some(Total::of(by_thread.iter().filter_map(|own| own.get()).map(|own| &own.0)))
    }
}

impl Drop for RuleMetrics {
    fn drop(&mut self) {
        self.all_hits.give_back(&self.number);
    }
}

impl LimitMetrics {
    pub(crate) fn new(class: &str, threads: usize) -> LimitMetrics {
        LimitMetrics { class: class.into(), slots: Slots::new(threads) }
    }

    /// The name of the class.
    pub fn class(&self) -> &str {
        &self.class
    }
}

impl BandwidthMetrics {
    pub(crate) fn new(class: &str, direction: &str, threads: usize) -> BandwidthMetrics {
        BandwidthMetrics { class: class.into(), direction: direction.into(), slots: Slots::new(threads) }
    }

    /// The name of the class.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// Whom it is for: `to-client` or `to-server`.
    pub fn direction(&self) -> &str {
        &self.direction
    }
}

impl ServerMetrics {
    pub(crate) fn new(pool: &str, name: &str, threads: usize) -> ServerMetrics {
        ServerMetrics {
            pool: pool.into(),
            name: name.into(),
            quoted: quoted(name),
            slots: Slots::new(threads),
        }
    }

    /// The name of the pool.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// The server's name in the pool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Requests that it was the last to get.
    pub fn requests(&self) -> u64 {
        self.total().requests()
    }

    /// What became of those.
    pub(crate) fn total(&self) -> Total {
        Total::of(self.slots.iter().map(|slot| &slot.outcomes))
    }

    /// Attempts at it that failed.
    pub fn failures(&self) -> u64 {
        (0..ServerFailure::ALL.len()).map(|kind| self.slots.sum(|slot| &slot.failures[kind])).sum()
    }

    /// Connections to it that are kept for later.
    pub fn idle_connections(&self) -> u64 {
        let removed = self.slots.sum(|slot| &slot.idle_removed);
        self.slots.sum(|slot| &slot.idle_added).saturating_sub(removed)
    }
}
