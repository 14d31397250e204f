//! The thread that looks names up, and when it does.

use std::collections::HashMap;
use std::future::pending;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use pointsman_config::{DnsLimits, DnsSettings, Lookup};
use pointsman_net::{EventLoop, Task, Timers, spawn};

use crate::lookup::Tools;
use crate::resolver::Shared;

/// How long after a failure a name is looked up again, at most.
const RETRY_MS_MAX: u32 = 30_000;

/// The thread, until it is told to end.
pub(crate) fn run(event_loop: &EventLoop, shared: &Arc<Shared>) {
    event_loop.run(async {
        let timers = Timers::default();
        let mut desk =
            Desk { shared: shared.clone(), timers: timers.clone(), watched: HashMap::new(), settings: None };
        let tick = || match shared.is_over() {
            true => ControlFlow::Break(()),
            false => {
                if let Some((lookups, settings)) = shared.take_orders() {
                    desk.rearrange(lookups, settings);
                }
                ControlFlow::Continue(())
            }
        };
        timers.run(tick).await;
    });
}

/// What is being looked up.
struct Desk {
    shared: Arc<Shared>,
    timers: Timers,
    watched: HashMap<Lookup, Task>,
    settings: Option<DnsSettings>,
}

impl Desk {
    /// Goes on with names that are looked up as before, begins with those that are new, and leaves the others be.
    fn rearrange(&mut self, lookups: Vec<Lookup>, settings: DnsSettings) {
        let mut before = std::mem::take(&mut self.watched);
        if self.settings.as_ref() != Some(&settings) {
            before.drain().for_each(|(_, task)| task.abort());
            self.settings = Some(settings.clone());
        }
        let tools = Rc::new(Tools { timers: self.timers.clone(), settings });
        for lookup in lookups {
            let task = before.remove(&lookup).unwrap_or_else(|| {
                let watch = watch(self.shared.clone(), tools.clone(), lookup.clone());
                spawn(watch)
            });
            self.watched.insert(lookup, task);
        }
        before.into_values().for_each(|gone| gone.abort());
    }
}

/// Looks one name up again and again.
async fn watch(shared: Arc<Shared>, tools: Rc<Tools>, lookup: Lookup) {
    let limits = tools.settings.limits;
    let mut pause = tools.timers.deadline();
    let mut failures = 0;
    loop {
        let before = shared.found(&lookup);
        let outcome = tools.look_up(&lookup, before.as_ref()).await;
        let wait_ms = match &outcome {
            Ok(answer) => {
                failures = 0;
                answer_ms(answer.ttl_s, &limits)
            }
            Err(_) => {
                failures += 1;
                retry_ms(failures, &limits)
            }
        };
        shared.note(&lookup, outcome.map(|answer| answer.found));
        let waited = pause.within(wait_ms, pending::<()>()).await;
        debug_assert!(waited.is_err());
    }
}

/// How long an answer holds.
fn answer_ms(ttl_s: u32, limits: &DnsLimits) -> u32 {
    ttl_s.saturating_mul(1000).clamp(limits.ttl_ms_min, limits.ttl_ms_max)
}

/// How long after so many failures in a row the name is looked up again.
fn retry_ms(failures: u32, limits: &DnsLimits) -> u32 {
    let doubled = 1_u32.checked_shl(failures - 1).unwrap_or(u32::MAX).saturating_mul(limits.ttl_ms_min);
    doubled.min(RETRY_MS_MAX.max(limits.ttl_ms_min)).min(limits.ttl_ms_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_hold_within_bounds() {
        let limits = DnsLimits::default();
        for (ttl_s, expected) in [(0, 1000), (1, 1000), (7, 7000), (300, 300_000), (u32::MAX, 300_000)] {
            assert_eq!(answer_ms(ttl_s, &limits), expected, "{ttl_s}");
        }
    }

    #[test]
    fn after_failures_it_takes_longer_and_longer() {
        let limits = DnsLimits::default();
        let first: Vec<_> = (1..=7).map(|failures| retry_ms(failures, &limits)).collect();
        assert_eq!(first, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        assert_eq!(retry_ms(u32::MAX, &limits), 30_000);
        let quick = DnsLimits { ttl_ms_min: 100, ttl_ms_max: 300, ..limits };
        assert_eq!((1..=3).map(|failures| retry_ms(failures, &quick)).collect::<Vec<_>>(), [100, 200, 300]);
    }
}
