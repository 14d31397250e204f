//! How a dry-run begins and ends: by the control thread, as all else that threads are to know.

use std::fmt;
use std::sync::Arc;

use pointsman_config::Plan;

use super::findings::Findings;
use super::{Candidate, DryRunCounts, DryRunGroup};
use crate::live::Live;
use crate::switch::Switch;

/// When a dry-run ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DryRunLimits {
    /// How long it lasts.
    pub ms_max: u64,
    /// How many decisions are compared. It is looked at a few times a second: some more may have been.
    pub decisions_max: Option<u64>,
}

/// Why a dry-run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRunEnd {
    /// Its time was over.
    Time,
    /// As many decisions were compared as were to be.
    Decisions,
    /// Somebody said so.
    Told,
    /// What serves decides otherwise than what it was compared with, or may.
    Published,
    /// The switch drains: another process may serve.
    Drained,
}

impl DryRunEnd {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DryRunEnd::Time => "time",
            DryRunEnd::Decisions => "decisions",
            DryRunEnd::Told => "told",
            DryRunEnd::Published => "published",
            DryRunEnd::Drained => "drained",
        }
    }
}

/// A dry-run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DryRunEnded {
    /// Which: the first since the start is 1.
    pub number: u64,
    /// Why.
    pub why: DryRunEnd,
    /// What it has counted, of all listeners.
    pub counts: DryRunCounts,
}

/// As a line of standard error.
impl fmt::Display for DryRunEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DryRunEnded { number, why, counts } = self;
        let (decisions, untold, why) = (counts.decisions(), counts.untold(), why.name());
        write!(
            f,
            "dry-run ended n={number} by={why} decisions={decisions} changed={} other_rule={} untold={untold}",
            counts.changed, counts.other_rule
        )
    }
}

/// A dry-run goes on already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DryRunGoesOn;

/// What the last dry-run has found, or finds.
#[derive(Clone, Debug)]
pub struct DryRunFound {
    /// Which it is: the first since the start is 1.
    pub number: u64,
    /// For how long it has gone on.
    pub elapsed_ms: u64,
    /// Absent while it goes on.
    pub ended: Option<DryRunEnd>,
    /// By listener, in the order of the plan.
    pub listeners: Vec<(Arc<str>, DryRunCounts)>,
    /// The largest first, those of other outcomes before those of other rules.
    pub groups: Vec<DryRunGroup>,
    /// Decisions that differ and are in none of these.
    pub ungrouped: u64,
}

/// The last dry-run, and what is left of those before.
#[derive(Default)]
pub(crate) struct DryRun {
    last: Option<Run>,
    /// Candidates that some thread may still hold. They are never freed on a thread that serves.
    retired: Vec<Arc<Candidate>>,
    /// What those found that were before the last.
    before: DryRunCounts,
    /// Ends that nobody has heard of yet.
    ends: Vec<DryRunEnded>,
}

struct Run {
    number: u64,
    /// Absent once it has ended.
    candidate: Option<Arc<Candidate>>,
    findings: Arc<Findings>,
    began_us: u64,
    until_us: u64,
    decisions_max: Option<u64>,
    ended: Option<(DryRunEnd, u64)>,
}

impl Run {
    fn counts(&self) -> DryRunCounts {
        let counts = self.findings.counts();
        counts.iter().fold(DryRunCounts::default(), |sum, (_, counts)| sum.plus(*counts))
    }
}

impl DryRun {
    /// What stays beside `live`, which is about to serve: a candidate whose dry-run goes on beside the same rules. It ends
    /// where they are others.
    pub(crate) fn beside(&mut self, live: &Live, now_us: u64) -> Option<Arc<Candidate>> {
        let candidate = self.last.as_ref()?.candidate.clone()?;
        if candidate.is_beside(live) {
            return Some(candidate);
        }
        self.end(DryRunEnd::Published, now_us);
        None
    }

    fn end(&mut self, why: DryRunEnd, now_us: u64) {
        let Some(run) = &mut self.last else { return };
        if let Some(candidate) = run.candidate.take() {
            let why = if now_us >= run.until_us { DryRunEnd::Time } else { why };
            run.findings.end();
            run.ended = Some((why, now_us.min(run.until_us)));
            self.ends.push(DryRunEnded { number: run.number, why, counts: run.counts() });
            self.retired.push(candidate);
        }
    }
}

impl Switch {
    /// Whether a dry-run goes on, which has neither had its time nor its decisions.
    pub fn is_in_dry_run(&mut self) -> bool {
        self.end_dry_run_in_time(self.now_us());
        self.dry_run.last.as_ref().is_some_and(|run| run.candidate.is_some())
    }

    /// Lets a plan be asked beside the one that serves, from the next request on that begins. Gives the number of the
    /// dry-run: the first since the start is 1.
    ///
    /// # Errors
    /// One goes on already.
    pub fn begin_dry_run(&mut self, plan: Plan, limits: DryRunLimits) -> Result<u64, DryRunGoesOn> {
        if self.is_in_dry_run() {
            return Err(DryRunGoesOn);
        }
        let now_us = self.now_us();
        let live = self.live.clone();
        let dry_run = &mut self.dry_run;
        let number = dry_run.last.as_ref().map_or(0, |run| run.number) + 1;
        let until_us = now_us.saturating_add(limits.ms_max.saturating_mul(1000));
        let candidate = Arc::new(Candidate::new(plan, &live, until_us));
        let findings = candidate.findings.clone();
        if let Some(run) = dry_run.last.take() {
            dry_run.before = dry_run.before.plus(run.counts());
        }
        dry_run.last = Some(Run {
            number,
            candidate: Some(candidate.clone()),
            findings,
            began_us: now_us,
            until_us,
            decisions_max: limits.decisions_max,
            ended: None,
        });
        self.shared.put_beside(Some(candidate));
        Ok(number)
    }

    /// Ends a dry-run that goes on. What it has found stays to be seen.
    pub fn end_dry_run(&mut self) {
        self.end_dry_run_for(DryRunEnd::Told);
    }

    /// Those that have ended since this was last asked.
    pub fn take_ended_dry_runs(&mut self) -> Vec<DryRunEnded> {
        std::mem::take(&mut self.dry_run.ends)
    }

    /// What the last one has found, or finds; nothing where there was none.
    pub fn dry_run(&self) -> Option<DryRunFound> {
        let run = self.dry_run.last.as_ref()?;
        let ended_us = run.ended.map_or(self.now_us(), |(_, at_us)| at_us).min(run.until_us);
        let listeners = run.findings.counts();
        let (groups, beyond) = run.findings.groups();
        let ungrouped = listeners.iter().map(|(_, counts)| counts.ungrouped).sum::<u64>() + beyond;
        Some(DryRunFound {
            number: run.number,
            elapsed_ms: ended_us.saturating_sub(run.began_us) / 1000,
            ended: run.ended.map(|(why, _)| why),
            listeners,
            groups,
            ungrouped,
        })
    }

    /// Whether one goes on, and what all have counted since the start.
    pub fn dry_run_counts(&self) -> (bool, DryRunCounts) {
        let DryRun { last, before, .. } = &self.dry_run;
        let is_going_on = last.as_ref().is_some_and(|run| run.candidate.is_some());
        (is_going_on, last.as_ref().map_or(*before, |run| before.plus(run.counts())))
    }

    /// Ends one that has had its time or its decisions. Gives the candidates that no thread holds any more.
    pub(crate) fn clear_up_dry_run(&mut self) -> Vec<Arc<Candidate>> {
        let now_us = self.now_us();
        self.end_dry_run_in_time(now_us);
        self.dry_run.retired.extract_if(.., |candidate| Arc::strong_count(candidate) == 1).collect()
    }

    fn end_dry_run_in_time(&mut self, now_us: u64) {
        let Some(run) = self.dry_run.last.as_ref().filter(|run| run.candidate.is_some()) else { return };
        let why = match run.decisions_max {
            _ if now_us >= run.until_us => DryRunEnd::Time,
            Some(max) if run.counts().decisions() >= max => DryRunEnd::Decisions,
            _ => return,
        };
        self.dry_run.end(why, now_us);
        self.shared.put_beside(None);
    }

    /// Ends one that goes on, for a reason that is none of its own.
    pub(crate) fn end_dry_run_for(&mut self, why: DryRunEnd) {
        if self.is_in_dry_run() {
            let now_us = self.now_us();
            self.dry_run.end(why, now_us);
            self.shared.put_beside(None);
        }
    }
}
