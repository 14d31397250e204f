//! When load begins, when what comes of it counts, and when it ends.

use crate::Plan;
use crate::record::BATCH_NS;

/// The times of a run, the same for all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    pub(crate) begin_ns: u64,
    /// The measured time is from here …
    pub(crate) from_ns: u64,
    /// … to here; nothing is begun any more.
    pub(crate) to_ns: u64,
}

impl Timeline {
    /// Before it is known when load begins: nothing is due yet, and nothing is measured.
    pub(crate) const TO_COME: Timeline = Timeline { begin_ns: u64::MAX, from_ns: u64::MAX, to_ns: u64::MAX };

    /// That of a plan whose load begins then.
    pub(crate) fn of(plan: &Plan, begin_ns: u64) -> Timeline {
        let from_ns = begin_ns + plan.warm_up.as_nanos() as u64;
        Timeline { begin_ns, from_ns, to_ns: from_ns + measured_ns(plan) }
    }

    /// When load ends that is to end now: with a whole tenth of the measured time, so late that all hear of it. Nothing: the
    /// measured time has not begun.
    pub(crate) fn ends_soon_ns(&self, now_ns: u64, lead_ns: u64) -> Option<u64> {
        let measured_ns = now_ns.checked_sub(self.from_ns)?;
        Some(self.to_ns.min(self.from_ns + (measured_ns + lead_ns).next_multiple_of(BATCH_NS)))
    }

    pub(crate) fn measures(&self, time_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&time_ns)
    }
}

/// How long a plan is measured: whole batches.
fn measured_ns(plan: &Plan) -> u64 {
    (plan.time.as_nanos() as u64).next_multiple_of(BATCH_NS)
}

/// How many those are.
pub(crate) fn batches(plan: &Plan) -> usize {
    (measured_ns(plan) / BATCH_NS) as usize
}
