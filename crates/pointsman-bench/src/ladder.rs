//! The most that a server answers in a closed loop, and how many clients that takes: for servers that are used so, and
//! SURFnet's third method.

mod report;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pointsman_measure::Random;
use pointsman_measure::statistics::{Interval, Scalability, mean_interval, scalability};
use pointsman_measure::verdict::{Colour, FewerClients, SelfMeasures, SmallestNumber, Verdict, verdict};

use crate::find::reasons;
use crate::negotiated::{Agreements, Negotiated};
use crate::outcome::{Outcome, Void};
use crate::plan::{Load, Plan};
use crate::{Ceiling, Fault, Machine, Progress, run_whole};

/// Trials of each number of clients that is compared with another.
const COMPARED: usize = 6;
/// How often a trial is run again whose generator was not in control.
const RED_TRIES: usize = 3;
/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Ladder {
    /// How requests are made. Its load and its seed are those of each trial.
    pub plan: Plan,
    /// The greatest number of clients that is tried.
    pub clients_max: u32,
    /// No trial begins later than so long after the first.
    pub within: Option<Duration>,
    /// What the generator reaches before null servers, where that was measured.
    pub ceiling: Option<Ceiling>,
}

/// What is seen on the way.
#[derive(Clone, Copy, Debug)]
pub enum Rung<'a> {
    /// A trial of so many clients runs, of which this is the state once a second.
    Running(u32, &'a Progress),
    /// It has ended.
    Ended(&'a Climbed),
}

/// A trial that was run.
#[derive(Clone, Debug)]
pub struct Climbed {
    /// How many clients.
    pub clients: u32,
    /// Right answers a second.
    pub rate: f64,
    /// Percentiles of the response time, in microseconds.
    pub p50_us: u64,
    /// The same.
    pub p99_us: u64,
    /// Whether the generator was in control.
    pub verdict: Verdict,
    /// CPU time of the server for a request, in microseconds, where its process is known.
    pub server_us: Option<f64>,
    /// Why it is no result.
    pub voids: Vec<Void>,
}

impl Climbed {
    /// Whether it is a result at all.
    pub fn counts(&self) -> bool {
        self.voids.is_empty() && self.verdict.colour != Colour::Red
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Top {
    /// What was asked for.
    pub asked: Ladder,
    /// All trials in their order, the red ones too.
    pub trials: Vec<Climbed>,
    /// The number of clients with the most answers, and how many: fresh trials there.
    pub peak: Option<(u32, Interval)>,
    /// The least number of clients with which the generator was not in control: the peak is a lower bound then.
    pub not_in_control: Option<u32>,
    /// What one client less than those reaches.
    pub fewer: Option<FewerClients>,
    /// A number of clients that reaches more than those of the peak, which then was none, and how many times as much.
    pub more: Option<(u32, Interval)>,
    /// The smallest number of clients that reaches the same; `None`: there may be a smaller one than `enough`.
    pub smallest: Option<u32>,
    /// The least number of clients that is known to reach the same.
    pub enough: Option<u32>,
    /// How throughput grows with clients.
    pub law: Option<Scalability>,
    /// Why none of it counts.
    pub voids: Vec<Void>,
    /// What handshakes of all trials agreed on, the most frequent first.
    pub negotiated: Vec<(Negotiated, u64)>,
    /// Where it was asked from.
    pub machine: Machine,
    /// When it began, in seconds since 1970.
    pub began_unix_s: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Whether the time was up before it was at its end.
    pub was_cut_short: bool,
    /// Whether somebody wanted no more of it before that: trials that had ended by then stay.
    pub was_interrupted: bool,
    /// Why a trial could not be run, and with it those behind it.
    pub not_run: Option<String>,
}

impl Ladder {
    /// What one answer of a trial is a second.
    fn one_per_s(&self) -> f64 {
        1.0 / self.plan.time.as_secs_f64()
    }

    /// Where the mean of these rates of trials is. Those that are the same could each have been one answer apart.
    fn interval_of(&self, rates: &[f64]) -> Option<Interval> {
        mean_interval(rates)
            .map(|mean| mean.widened((mean.low - self.one_per_s()).max(0.0), mean.high + self.one_per_s()))
    }
}

impl Top {
    /// Red where nothing was found or more clients may reach more, else the worst of the trials that count.
    pub fn colour(&self) -> Colour {
        if self.peak.is_none() || !self.voids.is_empty() {
            return Colour::Red;
        }
        let counted = self.trials.iter().filter(|trial| trial.counts()).map(|trial| trial.verdict.colour);
        let bounded = self.not_in_control.map(|_| Colour::Amber).or(self.more.map(|_| Colour::Amber));
        let open = self.open_question().map(|(colour, _)| colour).or(self.unclear().map(|_| Colour::Amber));
        let bounded = bounded.or(self.not_run.as_ref().map(|_| Colour::Amber));
        let bounded = bounded.or(self.was_cut_short.then_some(Colour::Amber));
        counted.chain([self.of_clients().colour]).chain(bounded).chain(open).max().unwrap_or(Colour::Red)
    }

    /// Why it is not green.
    pub fn reasons(&self) -> Vec<String> {
        let voids = self.voids.iter().map(|void| format!("void: {}", void.sentence));
        let has_another = !self.voids.is_empty() || self.not_run.is_some();
        let nothing = (self.peak.is_none() && !has_another).then(|| {
            let why = if self.was_interrupted {
                "there were too few trials by then to find a peak"
            } else if self.was_cut_short {
                "the time was up"
            } else {
                "the generator was never in control"
            };
            why.to_owned()
        });
        let cut_short = (self.peak.is_some() && self.was_cut_short)
            .then(|| "the time was up before it was known how few clients reach as much".to_owned());
        let not_run = self.not_run.as_ref().map(|why| format!("it ended before its time: {why}"));
        let bound = self.not_in_control.map(|clients| {
            format!("with {clients} clients the generator was not in control: more may reach more")
        });
        let more = self.more.map(|(clients, Interval { estimate, low, high })| {
            format!("{clients} clients reach {estimate:.3} ({low:.3} to {high:.3}) times as much: the peak is not with those that it was looked for with")
        });
        let of_clients = self.of_clients();
        let of_clients = of_clients.reasons.iter().map(|reason| reason.text.clone());
        voids
            .chain(not_run)
            .chain(nothing)
            .chain(cut_short)
            .chain(bound)
            .chain(more)
            .chain(of_clients)
            .chain(self.open_question().map(|(_, sentence)| sentence))
            .chain(self.unclear())
            .chain(reasons(self.trials.iter().map(|trial| &trial.verdict)))
            .collect()
    }

    /// Whether all clients were enough, where the most there may be were needed for the peak.
    fn of_clients(&self) -> Verdict {
        let fewer_clients = self.fewer.filter(|_| self.takes_all());
        verdict(&SelfMeasures { fewer_clients, ..SelfMeasures::default() })
    }

    /// Where it is not known whether fewer clients would reach as much; with all of them that is [told](Self::of_clients) already,
    /// and so it is where there was no time.
    fn unclear(&self) -> Option<String> {
        let is_told = self.smallest.is_some() || self.was_cut_short || self.was_interrupted;
        let enough = self.enough.filter(|enough| !is_told && *enough < self.asked.clients_max)?;
        Some(format!("whether {} clients reach as much as {enough} is not known", enough - 1))
    }

    fn takes_all(&self) -> bool {
        self.peak.is_some_and(|(clients, _)| clients == self.asked.clients_max)
    }

    /// Where the peak is with all clients, and what one less reaches is not known.
    fn open_question(&self) -> Option<(Colour, String)> {
        if !self.takes_all() || self.fewer.is_some() {
            return None;
        }
        Some(match self.asked.clients_max {
            1 => (Colour::Red, "one client was all that there was: more may reach more".to_owned()),
            all => (
                Colour::Amber,
                format!(
                    "what {} of {all} clients reach is not known: more than {all} may reach more",
                    all - 1
                ),
            ),
        })
    }
}

/// Climbs, and calls `observe` once a second and behind each trial.
///
/// # Errors
/// When the plan contradicts itself, or the first trial cannot be run. Where a later one cannot, the trials before it stay.
pub fn climb(asked: &Ladder, observe: &mut dyn FnMut(Rung)) -> Result<Top, Fault> {
    asked.plan.refuse_sessions("a ladder of clients")?;
    let mut climber = Climber {
        asked,
        observe,
        random: Random::new(asked.plan.seed),
        began: Instant::now(),
        trials: Vec::new(),
        agreed: Agreements::default(),
        machine: None,
    };
    let began_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut top = Top {
        asked: asked.clone(),
        trials: Vec::new(),
        peak: None,
        not_in_control: None,
        fewer: None,
        more: None,
        smallest: None,
        enough: None,
        law: None,
        voids: Vec::new(),
        negotiated: Vec::new(),
        machine: Machine::look(),
        began_unix_s,
        seconds: 0.0,
        was_cut_short: false,
        was_interrupted: false,
        not_run: None,
    };
    match climber.climb(&mut top) {
        Ok(()) => {}
        Err(Stop::TimeIsUp) => top.was_cut_short = true,
        Err(Stop::Void(voids)) => top.voids = voids,
        Err(Stop::Fault(fault)) if climber.trials.is_empty() => return Err(fault),
        Err(Stop::Fault(_)) if asked.plan.interrupt.has_come() => top.was_interrupted = true,
        Err(Stop::Fault(fault)) => top.not_run = Some(fault.to_string()),
    }
    top.law = scalability(&climber.means());
    top.seconds = climber.began.elapsed().as_secs_f64();
    top.trials = climber.trials;
    top.negotiated = climber.agreed.into_sorted();
    top.machine = climber.machine.unwrap_or(top.machine);
    Ok(top)
}

/// Why there are no more trials.
enum Stop {
    TimeIsUp,
    Void(Vec<Void>),
    Fault(Fault),
}

struct Climber<'c> {
    asked: &'c Ladder,
    observe: &'c mut dyn FnMut(Rung),
    random: Random,
    began: Instant,
    trials: Vec<Climbed>,
    agreed: Agreements,
    machine: Option<Machine>,
}

impl Climber<'_> {
    fn climb(&mut self, top: &mut Top) -> Result<(), Stop> {
        let mut rungs = rungs(self.asked.clients_max);
        for (at, clients) in rungs.clone().into_iter().enumerate() {
            if self.trial(clients)?.is_none() {
                // More clients make the generator no better.
                rungs.truncate(at);
                top.not_in_control = Some(clients);
                break;
            }
        }
        for clients in rungs.into_iter().rev() {
            self.trial(clients)?;
        }
        let most = self.means().into_iter().max_by(|left, right| left.1.total_cmp(&right.1));
        let Some((clients, _)) = most else { return Ok(()) };
        let all = clients as u32;
        let with_all = self.compared(all)?;
        top.peak = top.asked.interval_of(&with_all).map(|interval| (all, interval));
        let mut smallest = SmallestNumber::new(all, with_all, self.asked.one_per_s());
        while let Some(clients) = smallest.next() {
            let rates = self.compared(clients)?;
            let compared = smallest.saw(&rates, &mut self.random);
            if clients + 1 == all {
                top.fewer = compared;
            }
            let more = compared.map(|compared| compared.ratio).filter(|ratio| ratio.low > 1.0);
            top.more = more.map(|ratio| (clients, ratio)).or(top.more);
            // Known so far, if there is no time for more.
            top.enough = top.peak.map(|_| smallest.smallest());
        }
        top.enough = top.peak.map(|_| smallest.smallest());
        top.smallest = top.enough.filter(|_| smallest.is_known());
        Ok(())
    }

    /// Rates of several trials that count; fewer where the generator was not in control.
    fn compared(&mut self, clients: u32) -> Result<Vec<f64>, Stop> {
        let mut rates = Vec::with_capacity(COMPARED);
        for _ in 0..COMPARED {
            match self.trial(clients)? {
                Some(rate) => rates.push(rate),
                None => break,
            }
        }
        Ok(rates)
    }

    /// The rate of a trial that counts; none where the generator was not in control, however often it was tried.
    fn trial(&mut self, clients: u32) -> Result<Option<f64>, Stop> {
        for _ in 0..RED_TRIES {
            if self.asked.within.is_some_and(|within| self.began.elapsed() >= within) {
                return Err(Stop::TimeIsUp);
            }
            let plan =
                Plan { load: Load::Closed { clients }, seed: self.random.bits(), ..self.asked.plan.clone() };
            let mut outcome =
                run_whole(&plan, &mut |progress| (self.observe)(Rung::Running(clients, progress)))
                    .map_err(Stop::Fault)?;
            self.asked.ceiling.iter().for_each(|ceiling| ceiling.hold_against(&mut outcome));
            let climbed = climbed(clients, &outcome);
            self.agreed.add_all(&outcome.negotiated);
            self.machine = Some(outcome.machine);
            let rate = climbed.counts().then_some(climbed.rate);
            self.trials.push(climbed);
            (self.observe)(Rung::Ended(&self.trials[self.trials.len() - 1]));
            if !outcome.voids.is_empty() {
                return Err(Stop::Void(outcome.voids));
            }
            if rate.is_some() {
                return Ok(rate);
            }
        }
        Ok(None)
    }

    /// Clients and mean rate of each number that was tried, in ascending order.
    fn means(&self) -> Vec<(f64, f64)> {
        means(&self.trials)
    }
}

fn means(trials: &[Climbed]) -> Vec<(f64, f64)> {
    by_clients(trials)
        .into_iter()
        .filter(|(_, rates)| !rates.is_empty())
        .map(|(clients, rates)| (f64::from(clients), rates.iter().sum::<f64>() / rates.len() as f64))
        .collect()
}

/// The rates of the trials that count, by number of clients in ascending order; of none where no trial counts.
fn by_clients(trials: &[Climbed]) -> Vec<(u32, Vec<f64>)> {
    let mut all: Vec<&Climbed> = trials.iter().collect();
    all.sort_by_key(|trial| trial.clients);
    let rates =
        |group: &[&Climbed]| group.iter().filter(|trial| trial.counts()).map(|trial| trial.rate).collect();
    let groups = all.chunk_by(|left, right| left.clients == right.clients);
    groups.map(|group| (group[0].clients, rates(group))).collect()
}

/// 1, 2, 4, 8 and so on, and the greatest.
fn rungs(clients_max: u32) -> Vec<u32> {
    let doubled = std::iter::successors(Some(1_u32), |clients| clients.checked_mul(2));
    doubled.take_while(|clients| *clients < clients_max).chain([clients_max]).collect()
}

fn climbed(clients: u32, outcome: &Outcome) -> Climbed {
    let record = &outcome.record;
    let us = |quantile: f64| record.response.value_at_quantile(quantile) / 1_000;
    Climbed {
        clients,
        rate: outcome.right_rate(),
        p50_us: us(0.5),
        p99_us: us(0.99),
        verdict: outcome.verdict(),
        server_us: outcome.server.and_then(|server| server.us_per_request),
        voids: outcome.voids.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_double_up_to_the_greatest() {
        assert_eq!(rungs(1), [1]);
        assert_eq!(rungs(8), [1, 2, 4, 8]);
        assert_eq!(rungs(11), [1, 2, 4, 8, 11]);
    }

    fn climbed_to(clients: u32, rate: f64) -> Climbed {
        let verdict = verdict(&SelfMeasures::default());
        Climbed { clients, rate, p50_us: 1, p99_us: 1, verdict, server_us: None, voids: Vec::new() }
    }

    /// One trial at the peak, with so many clients.
    fn top(peak: u32, clients_max: u32) -> Top {
        let plan = Plan::new(Vec::new(), Load::Closed { clients: 1 });
        Top {
            asked: Ladder { plan, clients_max, within: None, ceiling: None },
            trials: vec![climbed_to(peak, 100.0)],
            peak: Some((peak, Interval { estimate: 100.0, low: 99.0, high: 101.0 })),
            not_in_control: None,
            fewer: None,
            more: None,
            smallest: Some(peak),
            enough: Some(peak),
            law: None,
            voids: Vec::new(),
            negotiated: Vec::new(),
            machine: Machine::look(),
            began_unix_s: 0,
            seconds: 1.0,
            was_cut_short: false,
            was_interrupted: false,
            not_run: None,
        }
    }

    #[test]
    fn throughput_is_known_where_there_was_more_than_one_trial_and_to_an_answer_of_them() {
        use pointsman_measure::chart::Content;
        let trials = [(1, 100.0), (2, 150.0), (4, 200.0), (1, 100.0), (4, 200.0)];
        let mut trials = trials.map(|(clients, rate)| climbed_to(clients, rate)).to_vec();
        let void = Void::not_run(&Fault::new("nobody is there"));
        trials.push(Climbed { voids: vec![void], ..climbed_to(3, 10.0) });
        let report = Top { trials, ..top(4, 8) }.report("it");
        let Content::Lines(lines) = &report.charts[0].content else { panic!("lines") };
        assert_eq!(lines[0].points, [(1.0, 100.0), (2.0, 150.0), (4.0, 200.0)]);
        let [one, two, three, four] = lines[0].band[..] else { panic!("{:?}", lines[0].band) };
        // Trials of ten seconds.
        assert_eq!((one, four), ((1.0, 99.9, 100.1), (4.0, 199.9, 200.1)));
        for (clients, (at, low, high)) in [(2.0, two), (3.0, three)] {
            assert!(at == clients && low.is_nan() && high.is_nan(), "{clients}: {low} to {high}");
        }
    }

    #[test]
    fn where_more_clients_may_reach_more_it_is_not_green() {
        for (peak, clients_max, colour, said) in [
            (1, 1, Colour::Red, "one client was all that there was: more may reach more"),
            (8, 8, Colour::Amber, "what 7 of 8 clients reach is not known: more than 8 may reach more"),
            (4, 8, Colour::Green, ""),
        ] {
            let top = top(peak, clients_max);
            assert_eq!((top.colour(), top.reasons().concat().as_str()), (colour, said));
        }
        let cut_short = Top { was_cut_short: true, smallest: None, enough: Some(3), ..top(4, 8) };
        assert!(cut_short.answer().ends_with("with 4 clients. 3 clients are enough for that."));
        assert_eq!(
            (cut_short.colour(), cut_short.reasons()),
            (
                Colour::Amber,
                vec!["the time was up before it was known how few clients reach as much".to_owned()]
            )
        );
        let unclear = Top { smallest: None, ..top(4, 8) };
        assert_eq!(
            (unclear.colour(), unclear.reasons()),
            (Colour::Amber, vec!["whether 3 clients reach as much as 4 is not known".to_owned()])
        );
        let json = unclear.json();
        let same = FewerClients { clients: 8, ratio: Interval { estimate: 1.0, low: 0.99, high: 1.01 } };
        let of_all = Top { smallest: None, enough: Some(5), fewer: Some(same), ..top(8, 8) };
        assert!(of_all.answer().ends_with("with 8 clients. 5 clients are enough for that."));
        assert!(json["smallest_clients"].is_null() && json["enough_clients"] == 4, "{json}");
        let ratio = Interval { estimate: 1.05, low: 1.04, high: 1.06 };
        let passed_over = Top { more: Some((3, ratio)), ..top(4, 8) };
        assert_eq!((passed_over.colour(), passed_over.reasons().len()), (Colour::Amber, 1));
        assert!(passed_over.answer().starts_with("At least 100 "), "{}", passed_over.answer());
        let mut ended = Top { not_run: Some("nobody is there".to_owned()), ..top(4, 8) };
        assert_eq!(
            (ended.colour(), ended.reasons()),
            (Colour::Amber, vec!["it ended before its time: nobody is there".to_owned()])
        );
        ended.peak = None;
        assert_eq!((ended.colour(), ended.reasons().len()), (Colour::Red, 1));
        let table = &ended.report("ended").tables[0];
        assert_eq!(table.rows.len(), 1, "what was run is told");
    }
}
