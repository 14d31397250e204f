//! What of a listener is more than a figure: handshakes, and what was counted of it all together.

use std::sync::Arc;

use super::of_rule::OutcomeCounts;

use crate::agreed::{TlsGroup, TlsSession, TlsVersion};
use crate::event::{HandshakeFailure, Refusal};
use crate::exposition::{Exposition, Kind};
use crate::family::ListenerMetrics;

/// What was counted of a listener since the start, and what is open there now.
#[derive(Clone, Debug)]
pub struct ListenerCounts {
    /// What became of its requests.
    pub outcomes: OutcomeCounts,
    /// Connections open now.
    pub connections_open: u64,
    /// Clients that it refused, for whatever reason.
    pub refusals: u64,
    /// Its TLS handshakes.
    pub handshakes: HandshakeCounts,
}

/// How many handshakes there were, by what came of them. Each list is whole.
#[derive(Clone, Debug)]
pub struct HandshakeCounts {
    /// Those that began a session, and those that went on with one: `full`, `resumed`.
    pub sessions: Vec<(&'static str, u64)>,
    /// The same by version: `1.2`, `1.3`.
    pub versions: Vec<(&'static str, u64)>,
    /// The same by the group by which keys were exchanged; `none` where none were.
    pub groups: Vec<(&'static str, u64)>,
    /// Those that failed, by reason.
    pub failures: Vec<(&'static str, u64)>,
}

impl ListenerCounts {
    pub(super) fn of(listener: &ListenerMetrics) -> ListenerCounts {
        // In this order, so that what comes and goes meanwhile cannot make it negative.
        let closed = listener.slots.sum(|slot| &slot.closed);
        let opened = listener.slots.sum(|slot| &slot.opened);
        let refused = |(why, _): &(Refusal, _)| listener.slots.sum(|slot| &slot.refusals[*why as usize]);
        ListenerCounts {
            outcomes: OutcomeCounts::of(&listener.total()),
            connections_open: opened.saturating_sub(closed),
            refusals: Refusal::ALL.iter().map(refused).sum(),
            handshakes: HandshakeCounts::of(listener),
        }
    }
}

impl HandshakeCounts {
    fn of(listener: &ListenerMetrics) -> HandshakeCounts {
        let slots = &listener.slots;
        let session = |(session, label)| (label, slots.sum(|slot| &slot.handshakes[session as usize]));
        let version = |(version, label)| (label, slots.sum(|slot| &slot.tls_versions[version as usize]));
        let group = |(group, label)| (label, slots.sum(|slot| &slot.tls_groups[group as usize]));
        let failure = |(why, label)| (label, slots.sum(|slot| &slot.handshake_failures[why as usize]));
        HandshakeCounts {
            sessions: TlsSession::ALL.into_iter().map(session).collect(),
            versions: TlsVersion::ALL.into_iter().map(version).collect(),
            groups: TlsGroup::ALL.into_iter().map(group).collect(),
            failures: HandshakeFailure::ALL.into_iter().map(failure).collect(),
        }
    }

    /// How many failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failures.iter().map(|(_, count)| count).sum()
    }
}

pub(super) fn render_handshakes(page: &mut Exposition<'_>, listeners: &[Arc<ListenerMetrics>]) {
    let counts: Vec<_> =
        listeners.iter().map(|listener| (listener.name(), HandshakeCounts::of(listener))).collect();
    let mut family =
        |(name, help): (&str, &str), label: &str, of: fn(&HandshakeCounts) -> Vec<(&str, u64)>| {
            page.family(name, Kind::Counter, help);
            for (listener, counts) in &counts {
                for (said, count) in of(counts) {
                    page.sample(name, &[("listener", listener), (label, said)], count);
                }
            }
        };
    let results = |counts: &HandshakeCounts| [&counts.sessions[..], &[("failed", counts.failed())]].concat();
    family(("pointsman_tls_handshakes_total", "TLS handshakes by their result."), "result", results);
    let help = "TLS handshakes that succeeded, by version.";
    family(("pointsman_tls_versions_total", help), "version", |counts| counts.versions.clone());
    let help = "TLS handshakes that succeeded, by the group by which keys were exchanged.";
    family(("pointsman_tls_groups_total", help), "group", |counts| counts.groups.clone());
    let help = "TLS handshakes that failed, by reason.";
    family(("pointsman_tls_handshake_failures_total", help), "reason", |counts| counts.failures.clone());
}
