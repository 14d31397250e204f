//! What of a listener is more than a figure: handshakes, and what was counted of it all together.

use std::sync::Arc;

use super::of_rule::OutcomeCounts;

use crate::event::{Handshake, HandshakeFailure, Refusal};
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
        }
    }
}

pub(super) fn render_handshakes(page: &mut Exposition<'_>, listeners: &[Arc<ListenerMetrics>]) {
    let failed = |listener: &ListenerMetrics, why: HandshakeFailure| {
        listener.slots.sum(|slot| &slot.handshake_failures[why as usize])
    };
    let name = "pointsman_tls_handshakes_total";
    page.family(name, Kind::Counter, "TLS handshakes by their result.");
    for listener in listeners {
        for (how, label) in Handshake::ALL {
            let count = listener.slots.sum(|slot| &slot.handshakes[how as usize]);
            page.sample(name, &[("listener", listener.name()), ("result", label)], count);
        }
        let count = HandshakeFailure::ALL.iter().map(|(why, _)| failed(listener, *why)).sum();
        page.sample(name, &[("listener", listener.name()), ("result", "failed")], count);
    }
    let name = "pointsman_tls_handshake_failures_total";
    page.family(name, Kind::Counter, "TLS handshakes that failed, by reason.");
    for listener in listeners {
        for (why, label) in HandshakeFailure::ALL {
            page.sample(name, &[("listener", listener.name()), ("reason", label)], failed(listener, why));
        }
    }
}
