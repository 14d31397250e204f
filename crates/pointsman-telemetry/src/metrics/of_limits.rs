//! Families of classes: what was too much for those of `limitRate`, and what those of `bandwidth` were used for.

use std::sync::Arc;

use crate::exposition::{Exposition, Kind};
use crate::family::{BandwidthMetrics, LimitMetrics};

/// What was counted of a class of bandwidth in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandwidthCounts {
    /// The name of the class.
    pub class: Box<str>,
    /// `to-client` or `to-server`.
    pub direction: Box<str>,
    /// Bytes that it was used for since the start.
    pub bytes: u64,
    /// How often something had to wait for bytes of it.
    pub waits: u64,
    /// What waits for them now.
    pub waiting: u64,
}

impl BandwidthCounts {
    pub(super) fn of(class: &BandwidthMetrics) -> BandwidthCounts {
        // In this order, so that what comes and goes meanwhile cannot make it negative.
        let ended = class.slots.sum(|slot| &slot.waits_ended);
        let waits = class.slots.sum(|slot| &slot.waits);
        BandwidthCounts {
            class: class.class().into(),
            direction: class.direction().into(),
            bytes: class.slots.sum(|slot| &slot.bytes),
            waits,
            waiting: waits.saturating_sub(ended),
        }
    }
}

pub(super) fn render_limits(page: &mut Exposition<'_>, limits: &[Arc<LimitMetrics>]) {
    let name = "pointsman_limited_requests_total";
    page.family(name, Kind::Counter, "Requests that were too much for a class of `limitRate`.");
    for limit in limits {
        page.sample(name, &[("class", limit.class())], limit.slots.sum(|slot| &slot.limited));
    }
}

pub(super) fn render_bandwidth(page: &mut Exposition<'_>, classes: &[Arc<BandwidthMetrics>]) {
    let counts: Vec<_> = classes.iter().map(|class| BandwidthCounts::of(class)).collect();
    let mut family = |name: &str, kind, help: &str, of: fn(&BandwidthCounts) -> u64| {
        page.family(name, kind, help);
        for counts in &counts {
            let labels = [("class", &*counts.class), ("direction", &*counts.direction)];
            page.sample(name, &labels, of(counts));
        }
    };
    let help = "Bytes that a class of `bandwidth` was used for.";
    family("pointsman_bandwidth_bytes_total", Kind::Counter, help, |counts| counts.bytes);
    let help = "How often something had to wait for bytes of a class of `bandwidth`.";
    family("pointsman_bandwidth_waits_total", Kind::Counter, help, |counts| counts.waits);
    let help = "What waits now for bytes of a class of `bandwidth`.";
    family("pointsman_bandwidth_waiting", Kind::Gauge, help, |counts| counts.waiting);
}
