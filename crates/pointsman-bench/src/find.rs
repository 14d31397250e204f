//! The saturation point of a real server: trials of the generator, as the search asks for them.

mod report;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pointsman_measure::search::{
    Findings, Goal, NoResult, Phase, Record as Judged, Search, Seen, Step, Trial,
};
use pointsman_measure::verdict::{Colour, Verdict, verdict};

use crate::outcome::{ServerUse, Void};
use crate::plan::{Arrivals, Load, Plan};
use crate::quiet::wait_for_quiet;
use crate::{Ceiling, Fault, Machine, Negotiated, Outcome, Progress, run_whole};

/// How often a trial is begun whose first request is not answered: a server that was overloaded may need a moment.
const BEGINNINGS_MAX: u32 = 3;
/// Such a moment.
const MOMENT: Duration = Duration::from_secs(1);
/// It is waited so long at most for others of the host to leave the machine alone, behind a trial that they have disturbed.
const QUIET_WITHIN: Duration = Duration::from_secs(20);

/// What is searched, and for what.
#[derive(Clone, Debug)]
pub struct Find {
    /// How requests are made. Its load, times and seed are those of each trial.
    pub plan: Plan,
    /// How requests of a trial are spread.
    pub arrivals: Arrivals,
    /// What a rate has to meet.
    pub goal: Goal,
    /// No trial begins later than so long after the first; then it ends with what is known. `None`: no bound but the
    /// goal's number of trials.
    pub within: Option<Duration>,
    /// What the generator reaches before null servers, where that was measured.
    pub ceiling: Option<Ceiling>,
}

/// What rates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Requests.
    Requests,
    /// Handshakes: each connection is new, and has as many requests as any other.
    Handshakes,
}

/// What is seen on the way.
#[derive(Clone, Copy, Debug)]
pub enum Sight<'a> {
    /// A trial runs, of which this is the state once a second.
    Running(&'a Trial, &'a Progress),
    /// A trial has ended.
    Ended(&'a Tried),
    /// Others of the host have disturbed it: the next waits until they are quiet.
    Waits,
}

/// A trial that was run.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What was asked for and seen.
    pub judged: Judged,
    /// Whether the generator was in control.
    pub verdict: Verdict,
    /// CPU time of the server for each of what is counted, in microseconds, where its process is known.
    pub server_us: Option<f64>,
    /// Why it is no result at all, and the search ended with it.
    pub voids: Vec<Void>,
}

/// What came of a search.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was asked for.
    pub asked: Find,
    /// What the rates count.
    pub counted: Counted,
    /// How it ended.
    pub ending: Ending,
    /// All trials in their order, the red ones too, and the one that was void.
    pub trials: Vec<Tried>,
    /// What handshakes of all trials agreed on, the most frequent first.
    pub negotiated: Vec<(Negotiated, u64)>,
    /// The addresses that were measured.
    pub addresses: Vec<std::net::SocketAddr>,
    /// Where it was asked from.
    pub machine: Machine,
    /// When it began, in seconds since 1970.
    pub began_unix_s: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// How much of that it waited for others of the host to be quiet.
    pub waited_seconds: f64,
    /// What cut it short; `None`: the search came to its end, or somebody wanted no more of it.
    pub cut: Option<Cut>,
    /// Whether somebody wanted no more of it before that: trials that had ended by then count.
    pub was_interrupted: bool,
}

/// Why a search is not at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What there was no more of.
    pub by: CutBy,
    /// Of which phases there would have been more trials.
    pub missing: Vec<Phase>,
}

/// What there was no more of for a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutBy {
    /// Its time, [`Find::within`].
    Time,
    /// Its trials, [`Goal::trials_max`].
    Trials,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// With rates.
    Found(Box<Findings>),
    /// Without.
    None(NoResult),
    /// A trial was void, so that none counts.
    Void {
        /// Its rate.
        rate_per_s: f64,
        /// Why.
        voids: Vec<Void>,
    },
}

impl Found {
    /// The rates, if there are any.
    pub fn findings(&self) -> Option<&Findings> {
        match &self.ending {
            Ending::Found(findings) => Some(findings),
            Ending::None(_) | Ending::Void { .. } => None,
        }
    }

    /// Whether the generator was in control: red where nothing was found, amber where a trial that counts was.
    pub fn colour(&self) -> Colour {
        let counted =
            self.trials.iter().map(|tried| tried.verdict.colour).filter(|colour| *colour != Colour::Red);
        match self.ending {
            Ending::Found(_) => {
                counted.chain(self.cut.as_ref().map(|_| Colour::Amber)).max().unwrap_or(Colour::Red)
            }
            Ending::None(_) | Ending::Void { .. } => Colour::Red,
        }
    }

    /// Why it is not green, a sentence each: of trials how many had which reason, and the first of them in full.
    pub fn reasons(&self) -> Vec<String> {
        match &self.ending {
            Ending::None(why) => vec![self.why_none(why)],
            Ending::Void { rate_per_s, voids } => {
                voids.iter().map(|void| format!("void at {rate_per_s:.1}/s: {}", void.sentence)).collect()
            }
            Ending::Found(_) => self.cut.as_ref().map(Cut::told).into_iter().collect(),
        }
        .into_iter()
        .chain(reasons(self.trials.iter().map(|tried| &tried.verdict)))
        .collect()
    }

    /// Why there is no result. That no trials were left is not why, where there would have been more.
    fn why_none(&self, why: &NoResult) -> String {
        match why {
            NoResult::OutOfTrials if self.was_interrupted => {
                "there were too few trials by then to find a boundary".to_owned()
            }
            NoResult::OutOfTrials if self.cut.as_ref().is_some_and(|cut| cut.by == CutBy::Time) => {
                "the time was up before a boundary was found".to_owned()
            }
            _ => why.to_string(),
        }
    }
}

impl Cut {
    /// Where the time is up there are no trials either, and the one that would have been the next is among those that are missing.
    fn of(is_time_up: bool, missing: &[Phase]) -> Option<Cut> {
        let by = if is_time_up { CutBy::Time } else { CutBy::Trials };
        (!missing.is_empty()).then(|| Cut { by, missing: missing.to_vec() })
    }

    /// What is not there of the search.
    fn told(&self) -> String {
        let why = match self.by {
            CutBy::Time => "the time was up",
            CutBy::Trials => "the trials were used up",
        };
        let missing: Vec<String> = self.missing.iter().map(Phase::to_string).collect();
        format!("{why} before the search was at its end: no more trials of {} were run", missing.join(", "))
    }
}

impl CutBy {
    /// As JSON has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CutBy::Time => "time",
            CutBy::Trials => "trials",
        }
    }
}

/// The reasons of many verdicts, the most frequent measure first: how often, and the first of its sentences.
pub(crate) fn reasons<'v>(verdicts: impl Iterator<Item = &'v Verdict>) -> Vec<String> {
    let mut seen: Vec<(Colour, String, String, usize)> = Vec::new();
    let mut trials = 0;
    for verdict in verdicts {
        trials += 1;
        for reason in &verdict.reasons {
            let measure = reason.measure.to_string();
            match seen.iter_mut().find(|known| known.0 == reason.colour && known.1 == measure) {
                Some(known) => known.3 += 1,
                None => seen.push((reason.colour, measure, reason.text.clone(), 1)),
            }
        }
    }
    seen.sort_by_key(|known| std::cmp::Reverse((known.0, known.3)));
    let said = seen.into_iter().map(|(colour, measure, text, count)| {
        format!("{count} of {trials} trials {colour}: {measure}, such as: {text}")
    });
    said.collect()
}

/// Searches, and calls `observe` once a second and behind each trial.
///
/// # Errors
/// When the goal cannot be, the plan contradicts itself, or the first trial cannot be run. Where a later one cannot, the
/// search is void.
pub fn find(asked: &Find, observe: &mut dyn FnMut(Sight)) -> Result<Found, Fault> {
    asked.plan.refuse_sessions("a search")?;
    let mut search =
        Search::new(asked.goal.clone(), asked.plan.seed).map_err(|bad| Fault::new(bad.to_string()))?;
    let (counted, of_each) = counted(&asked.plan);
    let began = Instant::now();
    let began_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let interrupt = &asked.plan.interrupt;
    let (mut is_time_up, mut was_interrupted) = (false, false);
    let mut waited = Duration::ZERO;
    let mut trials = Vec::new();
    let mut agreed = crate::negotiated::Agreements::default();
    let (mut machine, mut addresses) = (None, Vec::new());
    let ending = loop {
        if !is_time_up && !was_interrupted && !trials.is_empty() && interrupt.has_come() {
            was_interrupted = true;
            search.end();
        }
        let trial = match search.step() {
            Step::Run(trial) => trial,
            Step::Found(findings) => break Ending::Found(Box::new(findings.clone())),
            Step::None(why) => break Ending::None(why),
        };
        // Where it was at its end by then nothing is cut.
        if asked.left(began).is_zero() {
            is_time_up = true;
            search.end();
            continue;
        }
        let mut outcome = match tried(asked, &trial, of_each, observe) {
            Ok(outcome) => outcome,
            Err(fault) if trials.is_empty() => return Err(fault),
            // The search ends with what is known.
            Err(_) if interrupt.has_come() => continue,
            // The trials before it are told.
            Err(fault) => {
                break Ending::Void { rate_per_s: trial.rate_per_s, voids: vec![Void::not_run(&fault)] };
            }
        };
        asked.ceiling.iter().for_each(|ceiling| ceiling.hold_against(&mut outcome));
        agreed.add_all(&outcome.negotiated);
        let voids: Vec<Void> = outcome.voids.iter().filter(|void| !is_of_load(void)).cloned().collect();
        let verdict = verdict_of_trial(&outcome, &asked.goal);
        let seen =
            Seen { control: verdict.colour, is_disturbed: verdict.is_disturbed(), ..seen(&outcome, of_each) };
        let judged = judge(&mut search, trial, seen, voids.is_empty());
        (machine, addresses) = (Some(outcome.machine), outcome.addresses);
        let server_us = outcome.server.and_then(|server| counted.of_server(&server));
        trials.push(Tried { judged, verdict, server_us, voids: voids.clone() });
        let ended = &trials[trials.len() - 1];
        observe(Sight::Ended(ended));
        if !voids.is_empty() {
            break Ending::Void { rate_per_s: trial.rate_per_s, voids };
        }
        // What agents see of their hosts is theirs.
        if ended.judged.was_disturbed() && outcome.agents.is_empty() {
            observe(Sight::Waits);
            waited += wait_for_quiet(asked.left(began).min(QUIET_WITHIN), interrupt);
        }
    };
    // Who wanted no more of it knows.
    let missing = if was_interrupted { &[] } else { search.missing() };
    Ok(Found {
        asked: asked.clone(),
        counted,
        ending,
        trials,
        negotiated: agreed.into_sorted(),
        addresses,
        machine: machine.unwrap_or_else(Machine::look),
        began_unix_s,
        seconds: began.elapsed().as_secs_f64(),
        waited_seconds: waited.as_secs_f64(),
        cut: Cut::of(is_time_up, missing),
        was_interrupted,
    })
}

impl Find {
    /// How much of the time is left in which trials may begin.
    fn left(&self, began: Instant) -> Duration {
        self.within.map_or(Duration::MAX, |within| within.saturating_sub(began.elapsed()))
    }
}

impl Counted {
    /// What the server spent on each of it, in microseconds.
    fn of_server(self, server: &ServerUse) -> Option<f64> {
        match self {
            Counted::Requests => server.us_per_request,
            Counted::Handshakes => server.us_per_handshake,
        }
    }
}

/// What a trial is to the search; a void one is told, and nothing to it.
fn judge(search: &mut Search, trial: Trial, seen: Seen, is_run: bool) -> Judged {
    if !is_run {
        return Judged { trial, seen: Seen { control: Colour::Red, ..seen }, shortfall: None };
    }
    search.saw(seen);
    *search.records().last().expect("one was seen just now")
}

/// What is counted, and how many requests each of it is.
fn counted(plan: &Plan) -> (Counted, f64) {
    match plan.requests_a_handshake() {
        None => (Counted::Requests, 1.0),
        Some(requests) => (Counted::Handshakes, f64::from(requests)),
    }
}

fn tried(
    asked: &Find,
    trial: &Trial,
    of_each: f64,
    observe: &mut dyn FnMut(Sight),
) -> Result<Outcome, Fault> {
    let plan = Plan {
        load: Load::Open { rate: trial.rate_per_s * of_each, arrivals: asked.arrivals },
        warm_up: Duration::from_millis(trial.warm_up_ms),
        time: Duration::from_millis(trial.measured_ms),
        seed: trial.seed,
        ..asked.plan.clone()
    };
    let mut beginnings = 1;
    loop {
        match run_whole(&plan, &mut |progress| observe(Sight::Running(trial, progress))) {
            Err(fault) if plan.interrupt.has_come() => return Err(fault),
            Err(_) if beginnings < BEGINNINGS_MAX && trial.number > 0 => {
                beginnings += 1;
                std::thread::sleep(MOMENT);
            }
            Err(fault) if trial.number > 0 => {
                let rate = trial.rate_per_s;
                return Err(Fault::new(format!("{fault} (in trial {}, at {rate:.1}/s)", trial.number + 1)));
            }
            ran => return ran,
        }
    }
}

/// That nothing was answered is how a trial fails, not how a search does.
fn is_of_load(void: &Void) -> bool {
    void.code == "no answers" || void.is_of_short_time()
}

/// The verdict on a trial. Where load is above what a server can do, all connections that there may be wait for it, and
/// what comes beside them is never sent: that is what the server's end looks like, and the trial fails its goal
/// by it, unless the server was in time with all that it was sent: then their number is the limit, which is the
/// generator's. Where that itself is late too, or has no core, other measures say so: its threads' work, and how long
/// they waited for a core.
pub fn verdict_of_trial(outcome: &Outcome, goal: &Goal) -> Verdict {
    outcome.verdict_by(&|outcome| verdict_of_one(outcome, goal))
}

/// The same of what one machine did.
fn verdict_of_one(outcome: &Outcome, goal: &Goal) -> Verdict {
    let mut measures = outcome.self_measures(Some(goal.p99_us_max));
    measures.unsent = 0;
    // Above its end every server makes them wait, and whether that is ours is asked below.
    measures.held_back_share = 0.0;
    let record = &outcome.record;
    if record.held_back * 200 > record.due {
        // They were sent when a connection was free, and no sooner.
        measures.gaps = None;
        // More connections may have sustained more where each answer came in time and the goal was missed all the same.
        let service = &record.service;
        let is_in_time = !service.is_empty() && service.value_at_quantile(0.99) / 1_000 <= goal.p99_us_max;
        if is_in_time && goal.shortfall(&seen(outcome, 1.0)).is_some() {
            measures.held_back = record.held_back;
        }
    }
    verdict(&measures)
}

/// What was seen by a client in control.
fn seen(outcome: &Outcome, of_each: f64) -> Seen {
    let us = |quantile: f64| response_ns(outcome, quantile) / 1_000;
    Seen {
        offered_per_s: outcome.demanded() / of_each,
        achieved_per_s: outcome.right_rate() / of_each,
        edge_per_s: edge(outcome) / outcome.seconds / of_each,
        errors_share: outcome.record.failed_share(),
        p50_us: us(0.5),
        p90_us: us(0.9),
        p99_us: us(0.99),
        control: Colour::Green,
        is_disturbed: false,
    }
}

/// By how many requests the answers of a trial may fall short of what was due in it, by chance: one, and two standard
/// deviations of how many are on their way at a moment, where each stays for the median of the response time.
fn edge(outcome: &Outcome) -> f64 {
    let on_their_way = outcome.demanded() * response_ns(outcome, 0.5) as f64 / 1e9;
    1.0 + 2.0 * on_their_way.min(outcome.generator.little.under_way).sqrt()
}

/// A percentile of the response time in which what was never sent waited for as long as the longest, and no less than the
/// timeout.
fn response_ns(outcome: &Outcome, quantile: f64) -> u64 {
    let record = &outcome.record;
    let answered = record.response.len();
    let rank = (quantile * (answered + record.unsent) as f64).ceil();
    if rank > answered as f64 {
        return record.response.max().max(outcome.plan.timeout.as_nanos() as u64);
    }
    record.response.value_at_quantile(rank / (answered.max(1)) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Handshakes;
    use crate::{Script, Url};

    fn asked(plan: Plan) -> Find {
        Find { plan, arrivals: Arrivals::Poisson, goal: Goal::default(), within: None, ceiling: None }
    }

    #[test]
    fn handshakes_are_counted_where_each_has_as_many_requests() {
        let mut plan = Plan::new(Vec::new(), Load::Closed { clients: 1 });
        assert_eq!(counted(&plan), (Counted::Requests, 1.0));
        for handshakes in [Handshakes::Full, Handshakes::Resumed(0.5)] {
            (plan.handshakes, plan.requests_per_connection, plan.shares.persistent) =
                (handshakes, None, None);
            assert_eq!(counted(&plan), (Counted::Handshakes, 1.0));
            plan.requests_per_connection = Some(4);
            assert_eq!(counted(&plan), (Counted::Handshakes, 4.0));
            plan.shares.persistent = Some(0.5);
            assert_eq!(counted(&plan), (Counted::Requests, 1.0), "some have one, others have four");
            plan.requests_per_connection = None;
            assert_eq!(counted(&plan), (Counted::Requests, 1.0), "there is no end to them");
        }
    }

    #[test]
    fn sessions_of_users_are_not_searched() {
        let base = Url::parse("http://127.0.0.1:9/").expect("a URL");
        let script = Script::parse("GET /", Some(&base), &mut |_| unreachable!("it names no file"));
        let plan = Plan::of_sessions(script.expect("a script"), Load::Closed { clients: 1 });
        let ladder = crate::Ladder { plan: plan.clone(), clients_max: 2, within: None, ceiling: None };
        let compare = crate::Compare { a: plan.clone(), b: plan.clone(), blocks: 8, ceiling: None };
        let faults = [
            find(&asked(plan), &mut |_| {}).expect_err("sessions"),
            crate::climb(&ladder, &mut |_| {}).expect_err("sessions"),
            crate::contest(&compare, &mut |_| {}).expect_err("sessions"),
        ];
        for fault in faults {
            assert!(fault.advice().is_some_and(|help| help.contains("bench load --session")), "{fault:?}");
        }
    }
}
