//! The stages of a search, one after the other.

use std::collections::VecDeque;

use super::boundary::{Boundary, boundary};
use super::bracket::{Bracket, Next};
use super::curve;
use super::found::{self, Findings, Limit, NoResult, Rate};
use super::goal::{BadGoal, Goal};
use super::stage::{Stage, next_of};
use super::trial::{Phase, Record, Seen, Trial};
use crate::Random;

/// How often a load is tried whose trials are red.
const RED_TRIES: u32 = 3;
/// The same where the client was in control at that load or a greater one: something else is in its way, which passes.
const DISTURBED_TRIES: u32 = 10;
/// Shares of the greatest good load that are confirmed, and how often each.
const CONFIRMED: [f64; 4] = [0.90, 0.95, 1.00, 1.05];
const CONFIRMATIONS: usize = 6;
/// How often the confirmation may begin anew around another load.
const ROUNDS_MAX: u32 = 4;
/// A boundary that is known less well than this many of the goal's widths, on each side, gets another round.
const WIDE: f64 = 1.0;
/// How far the load is moved where the whole confirmation passes, or none of it.
const MOVE: f64 = 1.12;
/// How often a boundary is given up that later trials contradict.
const REOPENED_MAX: u32 = 3;
/// What a ramp and a bisection need that go on from there.
const BRACKET: usize = 30;
/// Trials of loads from this share of the boundary on fail, but for chance.
const BEYOND: f64 = 1.15;
/// So many of them say something.
const BEYOND_TRIALS_MIN: usize = 3;
/// Shares of the sustained demand that are swept, up and down.
const SWEPT: [f64; 11] = [0.10, 0.25, 0.40, 0.55, 0.70, 0.80, 0.90, 1.00, 1.10, 1.20, 1.30];
const ZOOMS: u32 = 8;
const PEAK_TRIALS: usize = 8;
const PEAK_TRIALS_MAX: usize = 32;
/// What the stages after the bracket need.
const RESERVED: usize = CONFIRMED.len() * CONFIRMATIONS + AFTER_CONFIRMATION;
const AFTER_CONFIRMATION: usize = 2 * SWEPT.len() + ZOOMS as usize + PEAK_TRIALS;

/// What a search wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<'s> {
    /// This trial run, and [`Search::saw`] called with what was seen.
    Run(Trial),
    /// Nothing more: it has ended.
    Found(&'s Findings),
    /// Nothing more: there is no result.
    None(NoResult),
}

/// A search for the saturation point.
#[derive(Clone, Debug)]
pub struct Search {
    goal: Goal,
    random: Random,
    records: Vec<Record>,
    stage: Stage,
    pending: Option<Trial>,
    red_tries: u32,
    /// The least load at which the client was not in control.
    client_ceiling: f64,
    /// How often a boundary was given up.
    reopened: u32,
    /// The number of the first trial behind the confirmation.
    swept_from: usize,
    /// Of which phases there would have been more trials, had any been left.
    missing: Vec<Phase>,
}

impl Search {
    /// A search that is to meet a goal; the seed decides the order of the confirmation and the seeds of the trials.
    ///
    /// # Errors
    /// A goal that cannot be.
    pub fn new(goal: Goal, seed: u64) -> Result<Self, BadGoal> {
        goal.check()?;
        let stage = Stage::Bracket(Bracket::new(&goal));
        Ok(Self {
            goal,
            random: Random::new(seed),
            records: Vec::new(),
            stage,
            pending: None,
            red_tries: 0,
            client_ceiling: f64::INFINITY,
            reopened: 0,
            swept_from: 0,
            missing: Vec::new(),
        })
    }

    /// What is to be done now; the same until [`saw`](Self::saw) is called.
    pub fn step(&mut self) -> Step<'_> {
        if self.pending.is_none() {
            self.pending = self.plan();
        }
        match (self.pending, &self.stage) {
            (Some(trial), _) => Step::Run(trial),
            (None, Stage::Found(findings)) => Step::Found(findings),
            (None, Stage::None(why)) => Step::None(*why),
            // `plan` goes on until a trial or an end.
            (None, _) => unreachable!("a stage without a trial is an end"),
        }
    }

    /// What was seen of the trial that [`step`](Self::step) named; ignored where it named none.
    pub fn saw(&mut self, seen: Seen) {
        let Some(trial) = self.pending.take() else { return };
        let record = Record { trial, seen, shortfall: self.goal.shortfall(&seen) };
        self.records.push(record);
        if record.counts() {
            self.red_tries = 0;
            self.advance(Some(record.passed()));
            return;
        }
        // What others of the host do says nothing of a load, and passes.
        if record.was_disturbed() && self.disturbed() < self.disturbed_max() {
            return;
        }
        self.red_tries += 1;
        let is_disturbed = record.was_disturbed() || self.was_in_control_at(trial.rate_per_s);
        if self.red_tries >= if is_disturbed { DISTURBED_TRIES } else { RED_TRIES } {
            self.red_tries = 0;
            if !is_disturbed {
                self.client_ceiling = self.client_ceiling.min(trial.rate_per_s);
            }
            self.advance(None);
        }
    }

    /// Whether a trial counts at that load or a greater one, so that a red one there is not for want of a better client.
    fn was_in_control_at(&self, rate_per_s: f64) -> bool {
        self.records.iter().any(|record| record.counts() && record.trial.rate_per_s >= rate_per_s)
    }

    /// No trial more: it ends with what is known by now, which may be no result.
    pub fn end(&mut self) {
        self.pending = None;
        self.goal.trials_max = 0;
    }

    /// Of which phases there were no more trials because too few were left, in their order; of none where the search had as
    /// many as it wanted.
    pub fn missing(&self) -> &[Phase] {
        &self.missing
    }

    fn misses(&mut self, phase: Phase) {
        if !self.missing.contains(&phase) {
            self.missing.push(phase);
        }
    }

    /// All trials so far, the red ones too.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The goal as it was given.
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// Takes the trial that has been run off the plan: passed, failed, or not to be measured.
    fn advance(&mut self, passed: Option<bool>) {
        match (&mut self.stage, passed) {
            (Stage::Bracket(bracket), Some(passed)) => bracket.saw(passed),
            (Stage::Bracket(bracket), None) => bracket.cannot_measure(),
            (
                Stage::Confirmation { queue, .. } | Stage::Sweep { queue, .. } | Stage::Peak { queue, .. },
                _,
            ) => {
                queue.pop_front();
            }
            (Stage::Zoom { left, .. }, _) => *left = left.saturating_sub(1),
            (Stage::Again { rate, sustained, .. }, Some(passed)) => {
                let mut bracket = Bracket::onwards(&self.goal, sustained.demanded_per_s, Some(*rate));
                bracket.saw(passed);
                self.stage = Stage::Bracket(bracket);
                self.client_ceiling = f64::INFINITY;
                self.reopened += 1;
            }
            (Stage::Again { sustained, is_swept, .. }, None) => {
                let (sustained, is_swept) = (*sustained, *is_swept);
                self.go_on(sustained, is_swept);
            }
            (Stage::Found(_) | Stage::None(_), _) => {}
        }
    }

    /// The next trial, through as many stages as have come to their end.
    fn plan(&mut self) -> Option<Trial> {
        loop {
            let left = self.left();
            let ceiling = self.client_ceiling;
            if let Some(phase) = self.stage.wanted().filter(|_| left == 0) {
                self.misses(phase);
            }
            match &mut self.stage {
                Stage::Bracket(bracket) => match bracket.next() {
                    next @ (Next::Coarse(_) | Next::Fine(_)) if left <= RESERVED => {
                        let is_ramp = matches!(next, Next::Coarse(_));
                        self.misses(if is_ramp { Phase::Ramp } else { Phase::Bisection });
                        self.stage = Stage::None(NoResult::OutOfTrials);
                    }
                    Next::Coarse(rate) => return Some(self.trial(Phase::Ramp, rate)),
                    Next::Fine(rate) => return Some(self.trial(Phase::Bisection, rate)),
                    Next::Bracketed { low, limit } => self.confirm(low, limit, 1),
                    Next::Nothing(why) => self.stage = Stage::None(why),
                },
                Stage::Confirmation { queue, .. } => match next_of(queue, ceiling, left) {
                    Some(rate) => return Some(self.trial(Phase::Confirmation, rate)),
                    None => self.confirmed(),
                },
                Stage::Again { rate, .. } if left > 0 => {
                    let rate = *rate;
                    return Some(self.trial(Phase::Bisection, rate));
                }
                Stage::Again { .. } => self.advance(None),
                Stage::Sweep { queue, sustained } => match next_of(queue, ceiling, left) {
                    Some(rate) => return Some(self.trial(Phase::Sweep, rate)),
                    None => {
                        let sustained = *sustained;
                        self.swept(sustained);
                    }
                },
                Stage::Zoom { left: zooms, sustained } => {
                    let points = curve::curve(&self.records);
                    let at = |share: f64| share * sustained.demanded_per_s;
                    let range = (at(SWEPT[0]), at(SWEPT[SWEPT.len() - 1]));
                    let next = curve::zoom(&points, range).filter(|rate| *rate < ceiling);
                    let (next, sustained) = (next.filter(|_| *zooms > 0), *sustained);
                    match next {
                        Some(rate) if left > PEAK_TRIALS => return Some(self.trial(Phase::Zoom, rate)),
                        Some(_) => {
                            self.misses(Phase::Zoom);
                            self.ask_again(sustained, true);
                        }
                        None => self.ask_again(sustained, true),
                    }
                }
                Stage::Peak { queue, .. } => match next_of(queue, ceiling, left) {
                    Some(rate) => return Some(self.trial(Phase::Peak, rate)),
                    None => self.peaked(left),
                },
                Stage::Found(_) | Stage::None(_) => return None,
            }
        }
    }

    fn trial(&mut self, phase: Phase, rate_per_s: f64) -> Trial {
        let measured_ms = match phase {
            Phase::Ramp | Phase::Sweep => self.goal.coarse_ms,
            Phase::Bisection | Phase::Confirmation | Phase::Zoom | Phase::Peak => self.goal.fine_ms,
        };
        Trial {
            number: self.records.len() as u32,
            phase,
            rate_per_s,
            warm_up_ms: self.goal.warm_up_ms,
            measured_ms,
            seed: self.random.bits(),
        }
    }

    fn confirm(&mut self, centre: f64, limit: Limit, round: u32) {
        let loads = CONFIRMED.into_iter().map(|share| share * centre);
        // Nothing above what the search, or the client, can do.
        let mut queue: Vec<f64> = loads
            .filter(|load| limit == Limit::Server || *load <= centre)
            .flat_map(|load| std::iter::repeat_n(load, CONFIRMATIONS))
            .collect();
        self.random.shuffle(&mut queue);
        self.stage = Stage::Confirmation { queue: queue.into(), centre, limit, round };
    }

    /// A round has been run, or what there were trials for: there is a boundary within what was tried, or another round around
    /// another load.
    fn confirmed(&mut self) {
        let Stage::Confirmation { ref queue, centre, limit, round } = self.stage else { return };
        // Where trials were used up before, nothing is known of what was not run.
        let is_whole = queue.is_empty();
        let not_in_control = match is_whole {
            true => NoResult::ClientNotInControl { rate_per_s: centre },
            false => NoResult::OutOfTrials,
        };
        if limit != Limit::Server {
            match found::at_least(&self.records, centre, limit) {
                Some(sustained) => self.ask_again(sustained, false),
                None => self.stage = Stage::None(not_in_control),
            }
            return;
        }
        let (passed, tried) = self.of_round(centre);
        let found = self.boundary_around(centre);
        let within = found.filter(|boundary| {
            let at = boundary.demanded.estimate / centre;
            (CONFIRMED[0]..=CONFIRMED[CONFIRMED.len() - 1]).contains(&at)
        });
        let left = self.left();
        if let Some(boundary) = within {
            let is_wide = boundary.demanded.half_width_share() > WIDE * self.goal.width;
            let wants_another = is_wide && round < ROUNDS_MAX;
            if wants_another && left >= RESERVED {
                self.confirm(boundary.demanded.estimate, limit, round + 1);
                return;
            }
            if wants_another {
                self.misses(Phase::Confirmation);
            }
            self.sweep(found::sustained(&boundary));
            return;
        }
        // The second round that passes in full: what failed there has passed.
        let is_false = tried > 0 && passed == tried && round > 1;
        if is_false && self.reopen(centre * CONFIRMED[CONFIRMED.len() - 1]) {
            return;
        }
        if tried == 0 || !is_whole {
            self.stage = Stage::None(not_in_control);
        } else if round >= ROUNDS_MAX {
            self.stage = Stage::None(NoResult::Unsteady);
        } else if left < RESERVED {
            self.misses(Phase::Confirmation);
            self.stage = Stage::None(NoResult::OutOfTrials);
        } else {
            let towards = if passed * 2 > tried { centre * MOVE } else { centre / MOVE };
            self.confirm(towards.clamp(self.goal.rate_min, self.goal.rate_max), limit, round + 1);
        }
    }

    /// The peak has had its trials, or needs more to be known well enough.
    fn peaked(&mut self, left: usize) {
        let Stage::Peak { sustained, .. } = self.stage else { return };
        if self.is_given_up(&sustained) {
            return;
        }
        let findings = found::findings(&self.records, &self.goal, sustained, &mut self.random);
        let is_wide = |rate: &Rate| rate.answered_per_s.half_width_share() > WIDE * self.goal.width;
        let of_peak = |record: &&Record| record.trial.phase == Phase::Peak;
        let tried = self.records[self.swept_from..].iter().filter(of_peak).count();
        // Above what the client can do nothing more is tried, and the interval stays wide.
        let wide = findings.peak.as_ref().filter(|peak| {
            is_wide(peak) && tried < PEAK_TRIALS_MAX && peak.demanded_per_s < self.client_ceiling
        });
        if let Some(peak) = wide {
            if left >= PEAK_TRIALS {
                let queue = VecDeque::from([peak.demanded_per_s; PEAK_TRIALS]);
                self.stage = Stage::Peak { queue, sustained };
                return;
            }
            self.misses(Phase::Peak);
        }
        self.stage = Stage::Found(Box::new(findings));
    }

    /// The sweep has been run: unless it contradicts the boundary, the curve is zoomed.
    fn swept(&mut self, sustained: Rate) {
        if !self.is_given_up(&sustained) {
            self.stage = Stage::Zoom { left: ZOOMS, sustained };
        }
    }

    /// Before the limit is taken for the client's, a load above it is tried once more.
    fn ask_again(&mut self, sustained: Rate, is_swept: bool) {
        if sustained.limit == Limit::Client && self.may_reopen() {
            let rate = self.client_ceiling.min(sustained.demanded_per_s * MOVE).min(self.goal.rate_max);
            self.stage = Stage::Again { rate, sustained, is_swept };
        } else {
            self.go_on(sustained, is_swept);
        }
    }

    /// To the sweep, or from behind it to the peak.
    fn go_on(&mut self, sustained: Rate, is_swept: bool) {
        if !is_swept {
            self.sweep(sustained);
            return;
        }
        let points = curve::curve(&self.records);
        let load = curve::most_answered(&points).unwrap_or(sustained.demanded_per_s);
        self.stage = Stage::Peak { queue: VecDeque::from([load; PEAK_TRIALS]), sustained };
    }

    /// Whether trials behind the confirmation contradict the boundary, because most of those well above it pass: a stall of
    /// the machine may have stood where it seemed to be. Then the search goes on above them, or there is no result.
    fn is_given_up(&mut self, sustained: &Rate) -> bool {
        let least = BEYOND * sustained.demanded_per_s;
        let beyond: Vec<&Record> = self.records[self.swept_from..]
            .iter()
            .filter(|record| record.counts() && record.trial.rate_per_s >= least)
            .collect();
        let passed = beyond.iter().filter(|record| record.passed());
        let (count, greatest) =
            passed.fold((0, 0.0), |(count, most), record| (count + 1, record.trial.rate_per_s.max(most)));
        if sustained.limit != Limit::Server || beyond.len() < BEYOND_TRIALS_MIN || count * 2 <= beyond.len() {
            return false;
        }
        if !self.reopen(greatest) {
            // Who ended it knows no more than that.
            self.stage = Stage::None(match self.goal.trials_max {
                0 => NoResult::OutOfTrials,
                _ => NoResult::Contradicted { rate_per_s: sustained.demanded_per_s },
            });
        }
        true
    }

    /// Gives a boundary up: the ramp goes on above a load that passed. Not where that has been done too often, or too few
    /// trials are left.
    fn reopen(&mut self, low: f64) -> bool {
        if !self.may_reopen() {
            return false;
        }
        self.reopened += 1;
        self.stage = Stage::Bracket(Bracket::onwards(&self.goal, low.min(self.goal.rate_max), None));
        true
    }

    fn may_reopen(&mut self) -> bool {
        let (may, can) = (self.reopened < REOPENED_MAX, self.left() >= BRACKET + RESERVED);
        if may && !can {
            self.misses(Phase::Bisection);
        }
        may && can
    }

    /// How many trials there may still be. Those that others of the host have disturbed are none of them.
    fn left(&self) -> usize {
        let own = self.records.len() - self.disturbed().min(self.disturbed_max());
        (self.goal.trials_max as usize).saturating_sub(own)
    }

    fn disturbed(&self) -> usize {
        self.records.iter().filter(|record| record.was_disturbed()).count()
    }

    /// So many disturbed trials are run again as if there had been none.
    fn disturbed_max(&self) -> usize {
        self.goal.trials_max as usize / 2
    }

    /// How many confirmations around a load passed, of how many that count.
    fn of_round(&self, centre: f64) -> (usize, usize) {
        let loads = CONFIRMED.map(|share| share * centre);
        let of_round = |record: &&Record| {
            record.trial.phase == Phase::Confirmation
                && loads.contains(&record.trial.rate_per_s)
                && record.counts()
        };
        let tried: Vec<&Record> = self.records.iter().filter(of_round).collect();
        (tried.iter().filter(|record| record.passed()).count(), tried.len())
    }

    /// The boundary over all fine trials that are not far from a load.
    fn boundary_around(&mut self, centre: f64) -> Option<Boundary> {
        let is_near = |record: &&Record| (0.8..=1.25).contains(&(record.trial.rate_per_s / centre));
        let fine: Vec<&Record> = self
            .records
            .iter()
            .filter(|record| record.counts() && record.trial.phase != Phase::Ramp)
            .filter(is_near)
            .collect();
        boundary(&fine, self.goal.width, &mut self.random)
    }

    fn sweep(&mut self, sustained: Rate) {
        let up = SWEPT.into_iter().map(|share| share * sustained.demanded_per_s);
        let mut loads: Vec<f64> = up.filter(|load| *load <= self.goal.rate_max).collect();
        loads.extend(loads.clone().into_iter().rev());
        self.swept_from = self.records.len();
        self.stage = Stage::Sweep { queue: loads.into(), sustained };
    }
}
