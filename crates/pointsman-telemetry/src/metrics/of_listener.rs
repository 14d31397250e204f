//! Families of a listener that are more than a figure: handshakes, and how long requests took.

use std::sync::Arc;

use crate::event::{Handshake, HandshakeFailure};
use crate::exposition::{Exposition, Kind, Label, Seconds};
use crate::family::ListenerMetrics;
use crate::histogram::{BUCKETS, Histogram, bound_us};
use crate::slots::Slots;

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

/// The samples of a family of durations, for one of those that have them.
pub(super) fn render_durations<T>(
    page: &mut Exposition<'_>,
    name: &str,
    labels: &[Label<'_>],
    slots: &Slots<T>,
    histogram: fn(&T) -> &Histogram,
) {
    let mut count = 0;
    for bucket in 0..BUCKETS {
        count += slots.sum(|slot| &histogram(slot).buckets[bucket]);
        let bound = bound_us(bucket).map_or("+Inf".to_owned(), |bound_us| Seconds(bound_us).to_string());
        page.sample(&format!("{name}_bucket"), &[labels, &[("le", &bound)]].concat(), count);
    }
    let sum_us = slots.sum(|slot| &histogram(slot).sum_us);
    page.sample_seconds(&format!("{name}_sum"), labels, sum_us);
    page.sample(&format!("{name}_count"), labels, count);
}
