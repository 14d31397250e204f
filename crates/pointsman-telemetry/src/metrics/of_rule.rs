//! Families of rules, of which there may be very many: what became of what they decided is told by name of the first so many
//! that decide, and of all others together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::of_outcomes::{Row, render_durations, render_statuses};
use crate::exposition::{Exposition, Kind, Label};
use crate::family::{ListenerMetrics, RuleMetrics};
use crate::histogram::{BUCKETS, bound_us};
use crate::outcomes::{STATUS, Total};

/// What metrics call rules without a place of their own, all together. No label of a rule has brackets.
pub const OTHER_RULES: &str = "(other)";

/// How many rules may have a place of their own, and how many have one. Written when a rule decides for the first time.
#[derive(Debug, Default)]
pub(crate) struct RulePlaces {
    max: AtomicU32,
    taken: AtomicU32,
}

/// What was counted of a rule since the start.
#[derive(Clone, Debug)]
pub struct RuleCounts {
    /// Its label.
    pub rule: String,
    /// How often it decided.
    pub hits: u64,
    /// What became of that. Absent where it is counted together with other rules.
    pub outcomes: Option<OutcomeCounts>,
}

/// What became of requests: of what a rule decided, or several, of a listener or a server.
#[derive(Clone, Debug)]
pub struct OutcomeCounts {
    /// What the clients were sent, by class of status: `none`, `1xx` … `5xx`.
    pub responses: [(&'static str, u64); STATUS.len()],
    /// How long the requests took, without tunnels.
    pub durations: Durations,
}

/// How long requests took: from the first byte of each to the end of its answer.
#[derive(Clone, Debug)]
pub struct Durations {
    /// How many there were.
    pub count: u64,
    /// Of all together, microseconds.
    pub sum_us: u64,
    /// How many took no longer than so many microseconds, in their order; at last, without a bound, all.
    pub up_to_us: Vec<(Option<u64>, u64)>,
}

impl RulePlaces {
    pub(super) fn set_max(&self, max: u32) {
        self.max.store(max, Ordering::Relaxed);
    }

    /// Takes a place for a rule, if there is one.
    pub(crate) fn take(&self) -> bool {
        let max = self.max.load(Ordering::Relaxed);
        let more = |taken| (taken < max).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// That of a rule is free again, if it had one. Nobody may hold the rule any more.
    pub(super) fn give_back(&self, rule: &RuleMetrics) {
        self.taken.fetch_sub(u32::from(rule.has_place()), Ordering::Relaxed);
    }
}

impl RuleCounts {
    pub(super) fn of(rule: &RuleMetrics) -> RuleCounts {
        let outcomes = rule.total().as_ref().map(OutcomeCounts::of);
        RuleCounts { rule: rule.label().to_owned(), hits: rule.hits(), outcomes }
    }
}

impl Default for OutcomeCounts {
    /// Of no requests.
    fn default() -> OutcomeCounts {
        OutcomeCounts::of(&Total::default())
    }
}

/// The bounds of durations, microseconds, in their order; above the last one there is one more bucket.
pub fn duration_bounds_us() -> impl Iterator<Item = u64> {
    (0..BUCKETS).filter_map(bound_us)
}

impl OutcomeCounts {
    pub(super) fn of(total: &Total) -> OutcomeCounts {
        let mut responses = STATUS.map(|class| (class, 0));
        responses.iter_mut().zip(total.statuses).for_each(|((_, count), counted)| *count = counted);
        let up_to_us: Vec<_> = total.up_to().collect();
        let count = up_to_us.last().map_or(0, |(_, all)| *all);
        OutcomeCounts { responses, durations: Durations { count, sum_us: total.sum_us, up_to_us } }
    }
}

pub(super) fn render_rules(
    page: &mut Exposition<'_>,
    listeners: &[Arc<ListenerMetrics>],
    rules: &[Arc<RuleMetrics>],
) {
    let name = "pointsman_rule_hits_total";
    page.family(name, Kind::Counter, "Requests that a rule decided.");
    for rule in rules {
        page.sample(name, &labels(rule.listener(), rule.label()), rule.hits());
    }
    let named = rules.iter().filter_map(|rule| {
        let labels = labels(rule.listener(), rule.label()).into();
        Some(Row { labels, total: rule.total()? })
    });
    let others = listeners.iter().filter_map(|listener| {
        let labels = labels(listener.name(), OTHER_RULES).into();
        Some(Row { labels, total: listener.total_of_other_rules()? })
    });
    let rows: Vec<_> = named.chain(others).collect();
    let (name, help) = (
        "pointsman_rule_responses_total",
        "What became of what a rule decided, by class of the status sent.",
    );
    render_statuses(page, (name, help), &rows);
    let (name, help) = (
        "pointsman_rule_request_duration_seconds",
        "From the first byte of a request that a rule decided to the end of its answer.",
    );
    render_durations(page, (name, help), &rows);
}

fn labels<'a>(listener: &'a str, rule: &'a str) -> [Label<'a>; 2] {
    [("listener", listener), ("rule", rule)]
}
