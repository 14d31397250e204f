//! A run that goes on: what its agents have said of it so far.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::link::Lost;
use super::patience;
use crate::clock::{SECOND_NS, now_ns};
use crate::outcome::LostAgent;
use crate::part::Part;
use crate::server_watch::{Looked, SEARCH_LEAD_NS, ServerWatch};
use crate::worker::Timeline;
use crate::{Fault, Plan, Progress};

pub(super) struct Under<'p> {
    plan: &'p Plan,
    timeline: Timeline,
    /// Of each agent, what came of its part.
    pub(super) parts: Vec<Option<Part>>,
    /// Those that are lost.
    pub(super) lost: Vec<LostAgent>,
    has_lost: Vec<bool>,
    /// Nobody wants more of it: parts need not be whole.
    is_cut: bool,
    /// When those that have not said what came of it are lost, too.
    late_ns: u64,
    /// What each agent has said that others have not said yet.
    progress: Vec<VecDeque<Progress>>,
    /// What each has said of all its time.
    tallies: Vec<Tally>,
    /// The server's processes, if they are on this machine.
    server: Option<ServerWatch>,
    /// At them, at both ends of the measured time.
    looks: [Option<Looked>; 2],
    /// Who has come by shortly before the first is known.
    has_searched: bool,
    /// When the measured time begins, by this machine's clock, in seconds since 1970.
    pub(super) began_unix_s: u64,
}

/// Answers and failures since the load began.
#[derive(Clone, Copy, Default)]
struct Tally {
    told_s: f64,
    answered: f64,
    failed: f64,
}

impl<'p> Under<'p> {
    /// One that begins then, with so many agents.
    pub(super) fn new(plan: &'p Plan, timeline: Timeline, agents: usize) -> Result<Under<'p>, Fault> {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let until_then = Duration::from_nanos(timeline.from_ns.saturating_sub(now_ns()));
        let last = plan.timeout + patience(plan);
        Ok(Under {
            plan,
            timeline,
            parts: vec![None; agents],
            lost: Vec::new(),
            has_lost: vec![false; agents],
            is_cut: false,
            late_ns: timeline.to_ns + last.as_nanos() as u64,
            progress: vec![VecDeque::new(); agents],
            tallies: vec![Tally::default(); agents],
            server: ServerWatch::find(plan)?,
            looks: [None, None],
            has_searched: false,
            began_unix_s: (unix + until_then).as_secs(),
        })
    }

    /// Whether anything is waited for.
    pub(super) fn is_on(&self) -> bool {
        !self.has_all() || self.next_look_ns().is_some()
    }

    /// Whether nothing more can come of any agent.
    pub(super) fn has_all(&self) -> bool {
        self.parts.iter().zip(&self.has_lost).all(|(part, is_lost)| part.is_some() || *is_lost)
    }

    /// Whether it is a part of this run: all of it, unless it was ended.
    pub(super) fn takes(&self, part: &Part) -> bool {
        part.is_of(self.plan) && (part.is_whole(self.plan) || self.is_cut || !self.lost.is_empty())
    }

    /// Nobody wants more of it. When all load ends, and nothing where it ends at once: the measured time has not begun.
    pub(super) fn cut_short(&mut self, lead_ns: u64) -> Option<u64> {
        self.is_cut = true;
        let now_ns = now_ns();
        let ends_ns = self.timeline.ends_soon_ns(now_ns, lead_ns);
        self.timeline.to_ns = ends_ns.unwrap_or(now_ns);
        let last = self.plan.timeout + patience(self.plan);
        self.late_ns = self.late_ns.min(self.timeline.to_ns + last.as_nanos() as u64);
        ends_ns
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Agents that should have said by now what came of it.
    pub(super) fn late(&self) -> Vec<usize> {
        let is_missing = |index: &usize| self.parts[*index].is_none() && !self.has_lost[*index];
        let missing = (0..self.parts.len()).filter(is_missing);
        if now_ns() < self.late_ns { Vec::new() } else { missing.collect() }
    }

    /// This agent is lost; what it has said stays. The others have a while to say what they have.
    pub(super) fn lose(&mut self, index: usize, name: &str, why: &Lost) {
        let now_ns = now_ns();
        let Tally { told_s, answered, failed } = self.tallies[index];
        self.has_lost[index] = true;
        self.late_ns = self.late_ns.min(now_ns + patience(self.plan).as_nanos() as u64);
        self.lost.push(LostAgent {
            name: name.to_owned(),
            after_s: now_ns.saturating_sub(self.timeline.begin_ns) as f64 / SECOND_NS as f64,
            why: why.to_string(),
            told_s,
            answered: answered.round() as u64,
            failed: failed.round() as u64,
        });
    }

    /// When the server's process is to be looked at next, if it is.
    fn next_look_ns(&self) -> Option<u64> {
        let has_time = self.timeline.to_ns >= self.timeline.from_ns;
        self.server.as_ref().filter(|_| has_time && self.lost.is_empty())?;
        match self.looks {
            [None, _] if !self.has_searched => Some(self.timeline.from_ns.saturating_sub(SEARCH_LEAD_NS)),
            [None, _] => Some(self.timeline.from_ns),
            [_, None] => Some(self.timeline.to_ns),
            _ => None,
        }
    }

    /// How long until then.
    pub(super) fn wait(&self) -> Duration {
        let until_ns = |at_ns: u64| Duration::from_nanos(at_ns.saturating_sub(now_ns()));
        self.next_look_ns().map_or(Duration::MAX, until_ns)
    }

    /// Looks at the server's process, where that is due.
    pub(super) fn look(&mut self) {
        if self.next_look_ns().is_none_or(|at_ns| now_ns() < at_ns) {
            return;
        }
        let Some(server) = self.server.as_mut() else { return };
        match (&self.looks, self.has_searched) {
            ([None, _], false) => {
                server.search();
                self.has_searched = true;
            }
            ([None, _], true) => self.looks[0] = Some(server.look()),
            _ => self.looks[1] = Some(server.last_look()),
        }
    }

    /// At both ends of the measured time, where it had both.
    pub(super) fn looks_of_whole(&mut self) -> Option<(Looked, Looked)> {
        let [before, after] = std::mem::take(&mut self.looks);
        before.zip(after)
    }

    /// Each agent's part, where there is one; none has measured longer than another.
    pub(super) fn into_parts(mut self) -> Vec<Option<Part>> {
        let batches = self.parts.iter().flatten().map(|part| part.record.batches.len()).min();
        self.parts.iter_mut().flatten().for_each(|part| part.cut_to(batches.unwrap_or_default()));
        self.parts
    }

    /// Passes on what all have said of the same second.
    pub(super) fn progress(&mut self, index: usize, progress: Progress, observe: &mut dyn FnMut(&Progress)) {
        let tally = &mut self.tallies[index];
        let since_s = (progress.at_seconds - tally.told_s).max(0.0);
        tally.answered += progress.rate * since_s;
        tally.failed += progress.failed_rate * since_s;
        tally.told_s = progress.at_seconds;
        self.progress[index].push_back(progress);
        if self.progress.iter().any(VecDeque::is_empty) {
            return;
        }
        let mut all = Progress { is_measured: true, ..Progress::default() };
        for progress in self.progress.iter_mut().filter_map(VecDeque::pop_front) {
            (all.at_seconds, all.of_seconds) = (progress.at_seconds, progress.of_seconds);
            all.is_measured &= progress.is_measured;
            all.rate += progress.rate;
            all.failed_rate += progress.failed_rate;
            all.bytes_rate += progress.bytes_rate;
            all.under_way += progress.under_way;
            all.connections += progress.connections;
            all.lag_ns = all.lag_ns.max(progress.lag_ns);
        }
        observe(&all);
    }
}
