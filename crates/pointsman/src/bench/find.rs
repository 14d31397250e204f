//! `pointsman bench find`: the saturation point by itself.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::{Arg, Parser};
use pointsman_bench::{Arrivals, Fault, Find, Interrupt, Ladder, Load, Plan, Rung, Sight};
use pointsman_measure::report::{Document, Run};
use pointsman_measure::search::{Goal, Phase, Trial};
use pointsman_measure::verdict::Colour;

use super::agent_options;
use super::identity::identity_for;
use super::load::refuse;
use super::output::{self, Output};
use super::plan_options::{self, ARRIVALS, PlanOptions, rate, text, time};
use super::progress::{ProgressLine, bar};
use super::share_options::{self, share};
use super::told::told;
use super::with_options;
use crate::units;
use crate::usage::{beside, number, one_of};

const HELP: &str = "\
pointsman bench find URL... [OPTION...]

    The rates that a server sustains and reaches, by trials of many loads: see docs/guide/bench.md. Rates are requests a
    second, with `--handshake full` or `resumed` handshakes a second; with `--persistent` they are requests again.

search
    --p99 TIME               the goal: the 99th percentile of the response time; 100ms
    --loss SHARE             what may be unanswered; 1%
    --failures SHARE         what may fail; 0.1%
    --trial TIME             how long a trial is measured (those of ramp and sweep three fifths of it); 5s
    --warm-up TIME           load before a trial, which does not count; a fifth of its time
    --from N                 the rate that it begins with; 10
    --to N                   it asks for no more; 1M
    --width SHARE            how near to each other a good and a bad load have to come; 2%
    --within TIME            no trial begins later; it ends with what is known
    --clients N              a closed loop in its place: the most that 1 to N clients reach, and how many that takes; without a goal
                             and bounds of rates
    --ceiling                what the generator reaches before null servers is measured first (some 3 s)
";

const EXIT: &str = "
exit status: 0 found; 1 no result: nothing found, void, a trial that could not be run, or the generator was not in control
(red); 2 not measured
Ctrl-C ends it with what was measured by then, and exit status 130 (SIGTERM: 143); a second one at once
";

/// Options of other commands that say what is looked for here, or given in another way.
const OTHERS: [&str; 2] = ["rate", "time"];

/// A trial's warm-up, if nobody says, as a share of its time.
const WARM_UP_SHARE: f64 = 0.2;

/// The command line.
#[derive(Debug)]
struct Options {
    plan: Plan,
    arrivals: Arrivals,
    goal: Goal,
    clients: Option<u32>,
    within: Option<Duration>,
    ceiling: bool,
    output: Output,
}

/// What was read of the options that only this command has.
#[derive(Debug, Default)]
struct Own {
    goal: Goal,
    trial: Option<Duration>,
    warm_up: Option<Duration>,
    arrivals: Option<Arrivals>,
    clients: Option<u32>,
    within: Option<Duration>,
    ceiling: bool,
    /// The first option that only the search for a rate has.
    of_rates: Option<&'static str>,
}

/// Options that only the search for a rate has.
const OF_RATES: [&str; 6] = ["p99", "loss", "failures", "from", "to", "width"];

impl Own {
    /// Reads the value of an option. False: it is none of these.
    fn take(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        self.of_rates = self.of_rates.or(OF_RATES.into_iter().find(|of_rates| *of_rates == name));
        let goal = &mut self.goal;
        match name {
            "p99" => goal.p99_us_max = u64::try_from(time(&text(parser)?)?.as_micros()).unwrap_or(u64::MAX),
            "loss" => goal.achieved_share_min = 1.0 - share(&text(parser)?)?,
            "failures" => goal.errors_share_max = share(&text(parser)?)?,
            "from" => goal.rate_min = rate(&text(parser)?)?,
            "to" => goal.rate_max = rate(&text(parser)?)?,
            "width" => goal.width = share(&text(parser)?)?,
            "trial" => self.trial = Some(time(&text(parser)?)?),
            "warm-up" => self.warm_up = Some(time(&text(parser)?)?),
            "within" => self.within = Some(time(&text(parser)?)?),
            "arrivals" => self.arrivals = Some(one_of("--arrivals", &text(parser)?, &ARRIVALS)?),
            "clients" => self.clients = Some(number("--clients", parser)?),
            "ceiling" => self.ceiling = true,
            "rate" => return Err("it looks for the rate itself: `--from` and `--to` are its bounds".into()),
            "time" => return Err("`--trial` is the time of a trial, `--within` of the whole".into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes the times of trials into the goal and the plan.
    fn times(&mut self, plan: &mut Plan) {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let trial = self.trial.unwrap_or(Duration::from_millis(self.goal.fine_ms));
        let warm_up = self.warm_up.unwrap_or(trial.mul_f64(WARM_UP_SHARE));
        (self.goal.fine_ms, self.goal.coarse_ms) =
            (ms(trial), ms(trial.mul_f64(0.6)).max(u64::from(!trial.is_zero())));
        self.goal.warm_up_ms = ms(warm_up);
        (plan.time, plan.warm_up) = (trial, warm_up);
    }
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let (mut own, mut plan, mut output) = (Own::default(), PlanOptions::default(), Output::default());
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long(name) => {
                    let name = name.to_owned();
                    if !own.take(&name, &mut parser)?
                        && !plan.take(&name, &mut parser)?
                        && !output.take(&name, &mut parser)?
                    {
                        return Err(lexopt::Error::UnexpectedOption(format!("--{name}")));
                    }
                }
                Arg::Value(url) => plan.url(url)?,
                Arg::Short(_) => return Err(argument.unexpected()),
            }
        }
        let load = match (own.clients, own.arrivals) {
            (Some(_), Some(_)) => {
                return Err("`--arrivals` is for an open loop, and `--clients` makes a closed one".into());
            }
            (Some(_), None) if let Some(name) = own.of_rates => {
                return Err(format!(
                    "`--{name}` is for the search for a rate, and `--clients` looks for the most that a closed loop reaches"
                )
                .into());
            }
            (Some(0), _) => return Err("`--clients` is 1 or more".into()),
            (Some(clients), None) => Load::Closed { clients },
            (None, arrivals) => {
                Load::Open { rate: own.goal.rate_min, arrivals: arrivals.unwrap_or_default() }
            }
        };
        let mut plan = plan.plan_of(load)?;
        own.times(&mut plan);
        Ok(Some(Options {
            plan,
            arrivals: own.arrivals.unwrap_or_default(),
            goal: own.goal,
            clients: own.clients,
            within: own.within,
            ceiling: own.ceiling,
            output,
        }))
    }
}

/// Searches, and says what was found.
pub(super) fn find(arguments: Vec<OsString>, interrupt: &Interrupt) -> ExitCode {
    with_options(
        Options::read(arguments),
        &[
            HELP,
            &beside(HELP, plan_options::HELP, &OTHERS),
            agent_options::HELP,
            share_options::HELP,
            output::HELP,
            EXIT,
        ],
        |mut options| {
            options.plan.interrupt = interrupt.clone();
            carry_out(options)
        },
    )
}

fn carry_out(options: Options) -> ExitCode {
    match searched(&options) {
        Ok((run, is_whole)) => {
            let status = u8::from(run.colour == Colour::Red || !is_whole);
            let text = told(&run);
            let title = format!("Saturation of {}", options.plan.targets[0].url);
            options.output.give(&Document { title, runs: vec![run] }, &text, status)
        }
        Err(fault) => refuse(&fault),
    }
}

/// What was found, and whether all trials could be run.
fn searched(options: &Options) -> Result<(Run, bool), Fault> {
    let plan = options.plan.clone();
    let ceiling = if options.ceiling {
        Some(pointsman_bench::ceiling(&plan, &identity_for(&plan.offer)?)?)
    } else {
        None
    };
    let url = plan.targets[0].url.to_string();
    let name = options.output.name(&url);
    let mut line = ProgressLine::new();
    if let Some(clients_max) = options.clients {
        let asked = Ladder { plan, clients_max, within: options.within, ceiling };
        let found = pointsman_bench::climb(&asked, &mut |rung| line.say(|| of_rung(rung)));
        line.end();
        let found = found?;
        return Ok((output::began(found.report(name), found.began_unix_s), found.not_run.is_none()));
    }
    let (arrivals, goal) = (options.arrivals, options.goal.clone());
    let asked = Find { plan, arrivals, goal, within: options.within, ceiling };
    let found = pointsman_bench::find(&asked, &mut |sight| line.say(|| of_sight(sight)));
    line.end();
    let found = found?;
    Ok((output::began(found.report(name), found.began_unix_s), true))
}

/// Phases in their order, and about how many trials each has.
const PHASES: [(Phase, usize); 6] = [
    (Phase::Ramp, 14),
    (Phase::Bisection, 24),
    (Phase::Confirmation, 24),
    (Phase::Sweep, 22),
    (Phase::Zoom, 8),
    (Phase::Peak, 8),
];

/// How far a search has come, about: from 0 to 1. Which phase it is in is known, and how many trials that takes not always.
fn come(trial: &Trial) -> f64 {
    let all: usize = PHASES.iter().map(|(_, trials)| trials).sum();
    let before: usize =
        PHASES.iter().take_while(|(phase, _)| *phase != trial.phase).map(|(_, trials)| trials).sum();
    let usual = PHASES.iter().find(|(phase, _)| *phase == trial.phase).map_or(0, |(_, trials)| *trials);
    let number = trial.number as usize;
    number.clamp(before, before + usual) as f64 / all as f64
}

fn of_sight(sight: Sight) -> String {
    match sight {
        Sight::Running(trial, progress) => format!(
            "{} {}, trial {}: {}/s demanded  {:.0}/{:.0} s  {}/s  lag {}",
            bar(come(trial)),
            trial.phase,
            trial.number + 1,
            units::rate(trial.rate_per_s),
            progress.at_seconds,
            progress.of_seconds,
            units::rate(progress.rate),
            units::duration(Some(progress.lag_ns as f64 / 1e9)),
        ),
        Sight::Ended(tried) => {
            let (trial, seen) = (&tried.judged.trial, &tried.judged.seen);
            let outcome = match (tried.judged.counts(), tried.judged.passed()) {
                _ if !tried.voids.is_empty() => "void",
                (false, _) => "red: no result",
                (true, true) => "meets the goal",
                (true, false) => "does not meet the goal",
            };
            format!(
                "{} {}, trial {}: {}/s demanded  {}/s answered, {outcome}",
                bar(come(trial)),
                trial.phase,
                trial.number + 1,
                units::rate(trial.rate_per_s),
                units::rate(seen.achieved_per_s),
            )
        }
        Sight::Waits => "waiting for others of the host to be quiet".to_owned(),
    }
}

fn of_rung(rung: Rung) -> String {
    match rung {
        Rung::Running(clients, progress) => format!(
            "{clients} clients  {:.0}/{:.0} s  {}/s",
            progress.at_seconds,
            progress.of_seconds,
            units::rate(progress.rate)
        ),
        Rung::Ended(climbed) => format!(
            "{} clients: {}/s, {}",
            climbed.clients,
            units::rate(climbed.rate),
            if climbed.voids.is_empty() { climbed.verdict.colour.to_string() } else { "void".to_owned() }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Option<Options>, lexopt::Error> {
        Options::read(words.split_ascii_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn options_are_read() {
        let words = "http://127.0.0.1:81/ --p99 20ms --loss 2% --failures 0.01 --trial 2s --from 100 --to 5k \
                     --width 5% --within 10m --arrivals uniform --handshake keep --seed 7 --ceiling --json";
        let options = read(words).expect("good").expect("no help");
        let goal = Goal {
            p99_us_max: 20_000,
            achieved_share_min: 0.98,
            errors_share_max: 0.01,
            rate_min: 100.0,
            rate_max: 5_000.0,
            warm_up_ms: 400,
            coarse_ms: 1_200,
            fine_ms: 2_000,
            width: 0.05,
            ..Goal::default()
        };
        assert_eq!(options.goal, goal);
        assert_eq!((options.within, options.plan.seed), (Some(Duration::from_secs(600)), 7));
        assert!(options.ceiling && options.arrivals == Arrivals::Uniform && options.clients.is_none());
        let usual = read("http://127.0.0.1:81/").expect("good").expect("no help");
        assert_eq!(usual.goal, Goal::default(), "the documented values");
        let closed =
            read("http://127.0.0.1:81/ --clients 64 --trial 1s --warm-up 0").expect("good").expect("no help");
        assert_eq!((closed.clients, closed.plan.time), (Some(64), Duration::from_secs(1)));
        assert_eq!((closed.plan.load, closed.plan.warm_up), (Load::Closed { clients: 64 }, Duration::ZERO));
        assert!(read("--help").expect("good").is_none());
        for bad in [
            "",
            "http://a/ --rate 5",
            "http://a/ --time 5s",
            "http://a/ --loss 5",
            "http://a/ --loss x",
            "http://a/ --clients 0",
            "http://a/ --clients 4 --arrivals uniform",
            "http://a/ --clients 4 --p99 10ms",
            "http://a/ --loss 1% --clients 4",
            "http://a/ --clients 4 --failures 1%",
            "http://a/ --clients 4 --from 10",
            "http://a/ --clients 4 --to 10",
            "http://a/ --clients 4 --width 2%",
            "http://a/ --clients 4 --connections 9",
            "http://a/ --what",
            "http://a/ -x",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_bar_never_goes_beyond_its_phase() {
        let at = |phase, number| {
            come(&Trial { number, phase, rate_per_s: 1.0, warm_up_ms: 1, measured_ms: 1, seed: 1 })
        };
        assert_eq!((at(Phase::Ramp, 0), at(Phase::Ramp, 90)), (0.0, 0.14));
        assert_eq!((at(Phase::Bisection, 5), at(Phase::Peak, 200)), (0.14, 1.0));
        assert!(at(Phase::Sweep, 70) < at(Phase::Sweep, 75));
    }
}
