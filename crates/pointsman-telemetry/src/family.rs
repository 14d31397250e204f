//! The counters of listeners, rules and servers, behind handles that carry their names.

use crate::event::{Handshake, HandshakeFailure, Hedge, Mirrored, Refusal, ServerFailure};
use crate::histogram::Histogram;
use crate::json::quoted;
use crate::slots::{Counter, Slots};

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
    pub(crate) slots: Slots<RuleSlot>,
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
    /// By hundreds; the first is "no answer".
    pub(crate) requests: [Counter; 6],
    pub(crate) received_bytes: Counter,
    pub(crate) sent_bytes: Counter,
    pub(crate) duration: Histogram,
    pub(crate) handshakes: [Counter; Handshake::ALL.len()],
    pub(crate) handshake_failures: [Counter; HandshakeFailure::ALL.len()],
    pub(crate) refusals: [Counter; Refusal::ALL.len()],
    pub(crate) mirrored: [Counter; Mirrored::ALL.len()],
}

#[derive(Debug, Default)]
pub(crate) struct RuleSlot {
    pub(crate) hits: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct LimitSlot {
    pub(crate) limited: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct BandwidthSlot {
    pub(crate) bytes: Counter,
    pub(crate) waits: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct ServerSlot {
    /// As those of a listener are.
    pub(crate) responses: [Counter; 6],
    pub(crate) duration: Histogram,
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
}

impl RuleMetrics {
    pub(crate) fn new(listener: &str, label: &str, threads: usize) -> RuleMetrics {
        RuleMetrics { listener: listener.into(), label: label.into(), slots: Slots::new(threads) }
    }

    /// The name of the listener that the rule stands on.
    pub fn listener(&self) -> &str {
        &self.listener
    }

    /// The rule's label.
    pub fn label(&self) -> &str {
        &self.label
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
        (0..6).map(|class| self.slots.sum(|slot| &slot.responses[class])).sum()
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
