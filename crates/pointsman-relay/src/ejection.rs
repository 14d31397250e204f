//! Servers where requests fail are left alone for a while: what each try hears goes to the breaker of its server.
//!
//! Requests read the breaker. It is written by who hears of a failure, by who passes after one, and by who begins a trial.

use std::sync::Arc;

use pointsman_balance::{Breaker, BreakerLimits, ejected_max};
use pointsman_config::PoolLimits;
use pointsman_net::Clock;

use crate::local::LocalServer;
use crate::standing::Standing;

/// What a pool says of the breakers of its servers.
#[derive(Debug)]
pub(crate) struct Ejection {
    limits: BreakerLimits,
    /// How many of the pool's servers may be ejected at a time.
    ejected_max: usize,
    standings: Vec<Arc<Standing>>,
}

/// What a try has heard of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// An answer that is the server's own.
    Passed,
    /// No answer, or one that says that there is nobody behind it.
    Failed,
}

impl Heard {
    /// What an answer's status says.
    pub(crate) fn of_status(status: u16) -> Heard {
        if matches!(status, 502..=504) { Heard::Failed } else { Heard::Passed }
    }
}

impl Ejection {
    /// `None`: the pool ejects nobody.
    pub(crate) fn of_pool(limits: &PoolLimits, standings: Vec<Arc<Standing>>) -> Option<Ejection> {
        (limits.outlier_failures_max > 0).then(|| Ejection {
            limits: BreakerLimits {
                failures_max: limits.outlier_failures_max,
                open_ms: limits.outlier_ms,
                open_ms_max: limits.outlier_ms_max,
            },
            ejected_max: ejected_max(standings.len(), limits.outlier_ejected_percent_max),
            standings,
        })
    }

    /// Whether more are ejected than may be, those that wait for a trial to pass among them.
    fn is_too_much(&self) -> bool {
        self.standings.iter().filter(|standing| !standing.breaker().is_closed()).count() > self.ejected_max
    }
}

fn why_ejected(before: Breaker, limits: BreakerLimits) -> String {
    match (before.is_closed(), limits.failures_max) {
        (false, _) => "the request on trial failed".to_owned(),
        (true, 1) => "a request failed".to_owned(),
        (true, failures) => format!("{failures} requests failed in a row"),
    }
}

impl LocalServer {
    /// Lets the breaker hear what came of a try.
    pub(crate) fn hear(&self, heard: Heard, is_trial: bool, clock: Clock) {
        let Some(ejection) = &self.ejection else { return };
        let now_ms = clock.round_us() / 1000;
        match heard {
            // What most requests find, and all that they do.
            Heard::Passed if !is_trial && self.standing.breaker().is_at_rest() => {}
            Heard::Passed => {
                let before = self.standing.change_breaker(|breaker| breaker.passed(is_trial, now_ms));
                if is_trial && !before.is_closed() {
                    self.standing.comes_back("the request on trial passed", clock.round_us());
                }
            }
            Heard::Failed => {
                let limits = ejection.limits;
                let before =
                    self.standing.change_breaker(|breaker| breaker.failed(is_trial, now_ms, limits).0);
                let (_, opens) = before.failed(is_trial, now_ms, limits);
                if !opens {
                    return;
                }
                // Looked at behind the change: of two that open at once one at least sees the other.
                if before.is_closed() && ejection.is_too_much() {
                    self.standing.change_breaker(|_| before);
                } else {
                    self.standing.was_ejected(&why_ejected(before, limits), clock.round_us());
                }
            }
        }
    }

    /// Begins a trial, where its server is to be tried out. `None`: somebody else does so already.
    pub(crate) fn try_out(&self, clock: Clock) -> Option<bool> {
        let now_ms = clock.round_us() / 1000;
        let Some(ejection) = &self.ejection else { return Some(false) };
        if !self.standing.breaker().is_half_open(now_ms) {
            return Some(false);
        }
        let begins = |breaker: Breaker| breaker.try_out(now_ms, ejection.limits).unwrap_or(breaker);
        let before = self.standing.change_breaker(begins);
        match (before.is_half_open(now_ms), before.is_open(now_ms)) {
            (true, _) => Some(true),
            (_, true) => None,
            // It has passed meanwhile.
            _ => Some(false),
        }
    }
}
