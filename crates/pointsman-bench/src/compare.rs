//! Which of two servers is faster, by blocks of trials that take turns.

mod report;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pointsman_measure::Random;
use pointsman_measure::compare::{BLOCKS_MAX, BLOCKS_MIN, Comparison, Measured, Side, Turn, compare, turns};
use pointsman_measure::verdict::{Colour, SelfMeasures, Verdict, verdict};

use crate::find::reasons;
use crate::negotiated::{Agreements, Negotiated};
use crate::outcome::{Outcome, Void};
use crate::plan::{Handshakes, Load, Plan};
use crate::{Ceiling, Fault, Machine, Progress, run_whole};

/// What may fail of a trial's requests: where it is more, the trial is void.
pub(crate) const FAILED_SHARE_MAX: f64 = 0.01;

/// What is compared.
#[derive(Clone, Debug)]
pub struct Compare {
    /// How the first is asked. Its seed is where the order and the seeds of all trials come from.
    pub a: Plan,
    /// How the second is asked.
    pub b: Plan,
    /// Blocks of A against B, beside which there are as many of A against itself.
    pub blocks: u32,
    /// What the generator reaches before null servers, where that was measured.
    pub ceiling: Option<Ceiling>,
}

/// What is compared of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Right answers a second, in a closed loop.
    Rate,
    /// Median of the response time.
    P50,
    /// Its 99th percentile.
    P99,
    /// CPU time of the server for an answer.
    CpuPerRequest,
    /// CPU time of the server for a handshake.
    CpuPerHandshake,
}

/// What is seen on the way.
#[derive(Clone, Copy, Debug)]
pub enum Bout<'a> {
    /// A trial runs, the first of which is 0, of so many; this is the state once a second.
    Running(usize, usize, Side, &'a Progress),
    /// It has ended.
    Ended(&'a Fought),
}

/// A trial that was run.
#[derive(Clone, Debug)]
pub struct Fought {
    /// Whose turn it was.
    pub turn: Turn,
    /// The figures, by [`Quantity::ALL`]; `None` where there is none.
    pub figures: [Option<f64>; Quantity::ALL.len()],
    /// Whether the generator was in control.
    pub verdict: Verdict,
    /// The share of its requests that failed in any way, 0 to 1.
    pub failed_share: f64,
    /// Why it does not count.
    pub voids: Vec<Void>,
}

/// What a quantity came to.
#[derive(Clone, Debug)]
pub struct Weighed {
    /// Which.
    pub quantity: Quantity,
    /// Its geometric mean for A and for B, over the trials that count.
    pub means: [f64; 2],
    /// B by A.
    pub comparison: Comparison,
}

/// What came of a comparison.
#[derive(Clone, Debug)]
pub struct Compared {
    /// What was asked for.
    pub asked: Compare,
    /// All trials in their order.
    pub trials: Vec<Fought>,
    /// What could be compared; nothing where too few blocks are whole.
    pub weighed: Vec<Weighed>,
    /// What handshakes of all trials agreed on, of A and of B, the most frequent first.
    pub negotiated: [Vec<(Negotiated, u64)>; 2],
    /// Where it was asked from.
    pub machine: Machine,
    /// When it began, in seconds since 1970.
    pub began_unix_s: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl Quantity {
    /// All of them, in this order.
    pub const ALL: [Quantity; 5] =
        [Quantity::Rate, Quantity::P50, Quantity::P99, Quantity::CpuPerRequest, Quantity::CpuPerHandshake];

    /// A name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Rate => "right answers",
            Quantity::P50 => "response p50",
            Quantity::P99 => "response p99",
            Quantity::CpuPerRequest => "server's CPU a request",
            Quantity::CpuPerHandshake => "server's CPU a handshake",
        }
    }

    /// In what it is counted.
    pub fn unit(self) -> &'static str {
        match self {
            Quantity::Rate => "1/s",
            Quantity::P50 | Quantity::P99 => "ms",
            Quantity::CpuPerRequest | Quantity::CpuPerHandshake => "µs",
        }
    }

    /// Of a run, if it has it.
    fn of(self, outcome: &Outcome) -> Option<f64> {
        let response = &outcome.record.response;
        let ms = |quantile| (!response.is_empty()).then(|| response.value_at_quantile(quantile) as f64 / 1e6);
        let server = outcome.server.as_ref();
        let found = match self {
            // An open loop's rate is what was asked for.
            Quantity::Rate => matches!(outcome.plan.load, Load::Closed { .. }).then(|| outcome.right_rate()),
            Quantity::P50 => ms(0.5),
            Quantity::P99 => ms(0.99),
            Quantity::CpuPerRequest => server.and_then(|server| server.us_per_request),
            Quantity::CpuPerHandshake if outcome.plan.handshakes == Handshakes::Keep => None,
            Quantity::CpuPerHandshake => server.and_then(|server| server.us_per_handshake),
        };
        found.filter(|figure| *figure > 0.0)
    }
}

impl Fought {
    /// Whether it is a result.
    pub fn counts(&self) -> bool {
        self.voids.is_empty() && self.verdict.colour != Colour::Red
    }

    /// Whether there was a trial at all.
    pub fn was_run(&self) -> bool {
        !self.voids.iter().any(Void::is_not_run)
    }
}

impl Compared {
    /// Red where nothing could be compared, else the worst of the trials that count, and amber where some could not be run.
    pub fn colour(&self) -> Colour {
        let counted = self.trials.iter().filter(|trial| trial.counts()).map(|trial| trial.verdict.colour);
        let cut_short = (!self.is_whole()).then_some(Colour::Amber);
        if self.weighed.is_empty() {
            Colour::Red
        } else {
            counted.chain(cut_short).max().unwrap_or(Colour::Red)
        }
    }

    /// Whether all trials could be run.
    pub fn is_whole(&self) -> bool {
        self.trials.iter().all(Fought::was_run)
    }

    /// How far it was when somebody wanted no more of it, where that is why not.
    fn how_far(&self) -> Option<String> {
        let was_interrupted = !self.is_whole() && self.asked.a.interrupt.has_come();
        let run = self.trials.iter().filter(|trial| trial.was_run()).count();
        was_interrupted.then(|| format!("{run} of {} trials had ended by then", self.trials.len()))
    }

    /// Why it is not green.
    pub fn reasons(&self) -> Vec<String> {
        let nothing = self.weighed.is_empty().then(|| {
            format!("fewer than {BLOCKS_MIN} blocks of either kind are whole: there is nothing to compare")
        });
        let void: Vec<&Fought> = self.trials.iter().filter(|trial| !trial.voids.is_empty()).collect();
        let voids = void.first().map(|first| {
            let sentence = &first.voids[0].sentence;
            format!("{} of {} trials void, such as: {sentence}", void.len(), self.trials.len())
        });
        nothing
            .into_iter()
            .chain(voids)
            .chain(reasons(self.trials.iter().map(|trial| &trial.verdict)))
            .collect()
    }
}

/// Compares, and calls `observe` once a second and behind each trial.
///
/// # Errors
/// When a plan contradicts itself, or the first trial of either cannot be run. Where a later one cannot, it and those behind
/// it are void, and blocks that are whole count.
pub fn contest(asked: &Compare, observe: &mut dyn FnMut(Bout)) -> Result<Compared, Fault> {
    if !(BLOCKS_MIN..=BLOCKS_MAX).contains(&asked.blocks) {
        return Err(Fault::new(format!("a comparison has {BLOCKS_MIN} to {BLOCKS_MAX} blocks")));
    }
    asked.a.refuse_sessions("a comparison")?;
    asked.b.refuse_sessions("a comparison")?;
    let mut random = Random::new(asked.a.seed);
    let turns = turns(asked.blocks, &mut random);
    let began = Instant::now();
    let began_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut trials = Vec::with_capacity(turns.len());
    let mut machine = None;
    let mut agreed = [Agreements::default(), Agreements::default()];
    let mut was_run = [false, false];
    for (at, turn) in turns.iter().enumerate() {
        let is_b = turn.side == Side::B;
        let plan = if is_b { &asked.b } else { &asked.a };
        // A and B count on together.
        let plan = Plan { seed: turn.seed, numbers: asked.a.numbers.clone(), ..plan.clone() };
        let running = &mut |progress: &Progress| observe(Bout::Running(at, turns.len(), turn.side, progress));
        let mut outcome = match run_whole(&plan, running) {
            Ok(outcome) => outcome,
            Err(fault) if !was_run[usize::from(is_b)] => return Err(fault),
            Err(fault) => {
                // What cannot be asked now is asked no more: a server that comes back is not the one that was there before.
                trials.extend(turns[at..].iter().map(|turn| not_fought(*turn, &fault)));
                break;
            }
        };
        was_run[usize::from(is_b)] = true;
        asked.ceiling.iter().for_each(|ceiling| ceiling.hold_against(&mut outcome));
        trials.push(fought(*turn, &outcome));
        agreed[usize::from(is_b)].add_all(&outcome.negotiated);
        machine = Some(outcome.machine);
        observe(Bout::Ended(&trials[trials.len() - 1]));
    }
    let weighed = Quantity::ALL.into_iter().filter_map(|quantity| weigh(quantity, &trials, &mut random));
    Ok(Compared {
        asked: asked.clone(),
        weighed: weighed.collect(),
        trials,
        negotiated: agreed.map(Agreements::into_sorted),
        machine: machine.unwrap_or_else(Machine::look),
        began_unix_s,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Where more of a trial's requests failed than may.
pub(crate) fn too_many_failed(outcome: &Outcome) -> Option<Void> {
    let failed_share = outcome.record.failed_share();
    (failed_share > FAILED_SHARE_MAX).then(|| Void {
        code: "failed",
        sentence: format!(
            "{:.1} % of the requests failed, and times and costs of failures are none of answers",
            failed_share * 100.0
        ),
    })
}

fn fought(turn: Turn, outcome: &Outcome) -> Fought {
    Fought {
        turn,
        figures: Quantity::ALL.map(|quantity| quantity.of(outcome)),
        verdict: outcome.verdict(),
        failed_share: outcome.record.failed_share(),
        voids: outcome.voids.iter().cloned().chain(too_many_failed(outcome)).collect(),
    }
}

fn not_fought(turn: Turn, fault: &Fault) -> Fought {
    Fought {
        turn,
        figures: [None; Quantity::ALL.len()],
        verdict: verdict(&SelfMeasures::default()),
        failed_share: 0.0,
        voids: vec![Void::not_run(fault)],
    }
}

fn weigh(quantity: Quantity, trials: &[Fought], random: &mut Random) -> Option<Weighed> {
    let figure = |trial: &Fought| trial.figures[quantity as usize].filter(|_| trial.counts());
    let measured: Vec<Measured> =
        trials.iter().map(|trial| Measured { turn: trial.turn, figure: figure(trial) }).collect();
    let comparison = compare(&measured, random)?;
    let mean = |is_b: bool| {
        let of_side = trials.iter().filter(|trial| (trial.turn.side == Side::B) == is_b);
        let logs: Vec<f64> = of_side.filter_map(figure).map(f64::ln).collect();
        (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
    };
    Some(Weighed { quantity, means: [mean(false), mean(true)], comparison })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use pointsman_measure::compare::Difference;

    /// Blocks in which B takes a tenth more CPU, and the trials of some turns are red or void.
    fn trials(is_red: impl Fn(usize) -> bool, is_void: impl Fn(usize) -> bool) -> Vec<Fought> {
        let mut random = Random::new(3);
        let turns = turns(8, &mut random);
        let fought = turns.into_iter().enumerate().map(|(at, turn)| {
            let noise = (0.002 * random.normal()).exp();
            let us = if turn.side == Side::B { 110.0 } else { 100.0 } * noise;
            let unsent = u64::from(is_red(at));
            let void = Void { code: "resumed", sentence: "it resumed".to_owned() };
            Fought {
                turn,
                figures: [None, Some(1.0), None, Some(us), None],
                verdict: verdict(&SelfMeasures { unsent, ..SelfMeasures::default() }),
                failed_share: 0.0,
                voids: if is_void(at) { vec![void] } else { Vec::new() },
            }
        });
        fought.collect()
    }

    fn compared(trials: Vec<Fought>) -> Compared {
        let plan = Plan::new(Vec::new(), Load::Closed { clients: 1 });
        let mut random = Random::new(1);
        let weighed = Quantity::ALL.into_iter().filter_map(|quantity| weigh(quantity, &trials, &mut random));
        Compared {
            asked: Compare { a: plan.clone(), b: plan, blocks: 8, ceiling: None },
            weighed: weighed.collect(),
            trials,
            negotiated: Default::default(),
            machine: Machine::look(),
            began_unix_s: 0,
            seconds: 1.0,
        }
    }

    #[test]
    fn each_quantity_that_was_measured_is_compared() {
        let found = compared(trials(|_| false, |_| false));
        let quantities: Vec<Quantity> = found.weighed.iter().map(|weighed| weighed.quantity).collect();
        assert_eq!(quantities, [Quantity::P50, Quantity::CpuPerRequest]);
        let cpu = &found.weighed[1];
        assert!(cpu.comparison.ratio.covers(1.1) && !cpu.comparison.ratio.covers(1.05), "{cpu:?}");
        assert_eq!(cpu.comparison.difference, Difference::More);
        assert!((cpu.means[0] - 100.0).abs() < 0.5 && (cpu.means[1] - 110.0).abs() < 0.5, "{cpu:?}");
        assert_eq!((found.colour(), found.reasons().len()), (Colour::Green, 0));
        assert_eq!(found.weighed[0].comparison.difference, Difference::NotShown);
    }

    #[test]
    fn what_was_agreed_on_stands_by_side() {
        let agreed = |suite| Negotiated {
            kind: crate::Kind::Full,
            offered_session: false,
            version: "1.3",
            suite,
            group: "X25519",
            protocol: "h2",
        };
        let mut found = compared(trials(|_| false, |_| false));
        assert_eq!(found.report("plain").tables.len(), 2, "no handshakes");
        found.negotiated =
            ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"].map(|suite| vec![(agreed(suite), 9)]);
        let run = found.report("both");
        for (table, side, suite) in [(2, "A", "TLS_AES_128_GCM_SHA256"), (3, "B", "TLS_AES_256_GCM_SHA384")] {
            let table = &run.tables[table];
            assert!(table.title.ends_with(side) && table.rows[0].contains(&suite.into()), "{table:?}");
        }
        let json = run.outcome.expect("it has all");
        assert_eq!(json["negotiated"]["b"][0]["suite"], "TLS_AES_256_GCM_SHA384", "{json}");
    }

    #[test]
    fn who_fails_fast_is_not_faster() {
        let manner =
            crate::Manner { capacity: Some(100.0), service: crate::Service::Limiter, ..Default::default() };
        let any = std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0));
        let server = crate::NullServer::start(any, &manner).expect("loopback");
        let url = crate::Url::parse(&format!("http://{}/", server.address())).expect("a URL");
        let body = crate::Body::None;
        let target = crate::Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body };
        // A client whose request failed waits a hundredth of a second: sixteen of them ask 1,600 times a second.
        let mut plan = Plan::new(vec![target], Load::Closed { clients: 16 });
        (plan.warm_up, plan.time) = (Duration::from_millis(300), Duration::from_millis(700));
        let outcome = run_whole(&plan, &mut |_| {}).expect("it answers");
        let turn = turns(8, &mut Random::new(1))[0];
        let fought = fought(turn, &outcome);
        let rate = fought.figures[Quantity::Rate as usize].expect("a closed loop");
        assert!((50.0..150.0).contains(&rate) && outcome.rate() > 2.0 * rate, "{rate} {}", outcome.rate());
        assert!(fought.failed_share > 0.3 && !fought.counts(), "{fought:?}");
        assert_eq!(fought.voids[0].code, "failed");
        let json = compared(vec![fought]).json();
        assert!(json["trials"][0]["failed_share"].as_f64().is_some_and(|share| share > 0.3), "{json}");
    }

    #[test]
    fn blocks_before_the_end_count() {
        let all = trials(|_| false, |_| false);
        let with_rest_of = |run: usize| {
            let rest = all[run..].iter().map(|trial| not_fought(trial.turn, &Fault::new("nobody is there")));
            compared(all[..run].iter().cloned().chain(rest).collect())
        };
        let some = with_rest_of(40);
        assert_eq!((some.colour(), some.is_whole()), (Colour::Amber, false));
        assert!(some.weighed.iter().all(|weighed| weighed.comparison.blocks == 5), "{:?}", some.weighed);
        assert_eq!(some.reasons(), ["24 of 64 trials void, such as: nobody is there"]);
        let table = &some.report("some").tables[1];
        assert_eq!(table.rows.len(), 3);
        let runs: f64 = table
            .rows
            .iter()
            .filter_map(|row| match row[1] {
                pointsman_measure::table::Cell::Number(number) => Some(number),
                _ => None,
            })
            .sum();
        assert_eq!(runs, 40.0, "what was not run failed nowhere");
        let none = with_rest_of(20);
        assert_eq!((none.colour(), none.weighed.len()), (Colour::Red, 0));
    }

    #[test]
    fn red_and_void_trials_take_their_blocks_along() {
        let found = compared(trials(|at| at == 0, |at| at == 20));
        assert!(found.weighed.iter().all(|weighed| weighed.comparison.blocks >= 6), "{:?}", found.weighed);
        assert_eq!(found.colour(), Colour::Green, "of those that count");
        let said = found.reasons();
        assert_eq!(said[0], "1 of 64 trials void, such as: it resumed");
        assert!(said[1].starts_with("1 of 64 trials red: unsent arrivals"), "{said:?}");
        let none = compared(trials(|at| at % 4 == 0, |_| false));
        assert!(none.weighed.is_empty() && none.colour() == Colour::Red);
        assert!(none.reasons()[0].contains("nothing to compare"), "{:?}", none.reasons());
    }
}
