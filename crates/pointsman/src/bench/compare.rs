//! `pointsman bench compare`: which of two is faster, and whether this machine can tell.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::{Arg, Parser};
use pointsman_bench::{Bout, Compare, Fault, Interrupt, Plan};
use pointsman_measure::compare::{BLOCKS, Side};
use pointsman_measure::report::{Document, Run};
use pointsman_measure::verdict::Colour;

use super::agent_options;
use super::identity::identity_for;
use super::load::refuse;
use super::output::{self, Output};
use super::plan_options::{self, PlanOptions, text, time};
use super::progress::{ProgressLine, bar};
use super::share_options;
use super::told::told;
use super::with_options;
use crate::units;
use crate::usage::{beside, number};

const HELP: &str = "\
pointsman bench compare URL-A URL-B (--rate N | --clients N) [OPTION...]

    Trials of both take turns, A B B A, and others of A with itself say what this machine makes of no difference: see
    docs/guide/bench.md. Compared are the rate (in a closed loop), the median and the 99th percentile of the response
    time, and with `--pid` the CPU time of a request and of a handshake.

comparison
    --blocks N               blocks of A against B, and as many of A against itself, four trials each; 8
    --trial TIME             how long a trial is measured; 2s
    --warm-up TIME           load before that, which does not count; 500ms
    --pid PID,PID            the processes of both servers on this machine
    --ceiling                what the generator reaches before null servers is measured first (some 3 s)
";

const EXIT: &str = "
exit status: 0 compared, whatever came of it; 1 nothing could be compared (void, or the generator was not in control), or not all
trials could be run; 2 not measured
Ctrl-C ends it with what was measured by then, and exit status 130 (SIGTERM: 143); a second one at once
";

/// The times of a trial, if nobody says.
const TRIAL: Duration = Duration::from_secs(2);
const WARM_UP: Duration = Duration::from_millis(500);

/// The command line.
#[derive(Debug)]
struct Options {
    a: Plan,
    b: Plan,
    blocks: u32,
    ceiling: bool,
    output: Output,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let (mut plan, mut output) = (PlanOptions::default(), Output::default());
        let (mut urls, mut processes) = (Vec::new(), None);
        let (mut trial, mut warm_up, mut blocks, mut ceiling) = (TRIAL, WARM_UP, BLOCKS, false);
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long("blocks") => blocks = number("--blocks", &mut parser)?,
                Arg::Long("trial") => trial = time(&text(&mut parser)?)?,
                Arg::Long("warm-up") => warm_up = time(&text(&mut parser)?)?,
                Arg::Long("ceiling") => ceiling = true,
                Arg::Long("pid") => processes = Some(plan_options::processes(&text(&mut parser)?, 2)?),
                Arg::Long("time") => return Err("`--trial` is the time of a trial".into()),
                Arg::Long(name) => {
                    let name = name.to_owned();
                    if !plan.take(&name, &mut parser)? && !output.take(&name, &mut parser)? {
                        return Err(lexopt::Error::UnexpectedOption(format!("--{name}")));
                    }
                }
                Arg::Value(url) => urls.push(url),
                Arg::Short(_) => return Err(argument.unexpected()),
            }
        }
        let [a, b]: [OsString; 2] =
            urls.try_into().map_err(|_| "two URLs are needed: what is compared with what".to_owned())?;
        let of = |url: OsString, process: Option<u32>| -> Result<Plan, lexopt::Error> {
            let mut options = plan.clone();
            options.url(url)?;
            Ok(Plan { time: trial, warm_up, server_process: process, ..options.plan()? })
        };
        let process = |side: usize| processes.as_ref().map(|processes| processes[side]);
        let (mut a, mut b) = (of(a, process(0))?, of(b, process(1))?);
        if a.is_over_tls() || b.is_over_tls() {
            (a, b) = (a.with_tls_where_it_is(), b.with_tls_where_it_is());
        }
        // An agent serves one controller.
        let b = Plan { agents: a.agents.clone(), ..b };
        Ok(Some(Options { a, b, blocks, ceiling, output }))
    }
}

/// Compares, and says what came of it.
pub(super) fn compare(arguments: Vec<OsString>, interrupt: &Interrupt) -> ExitCode {
    with_options(
        Options::read(arguments),
        &[
            HELP,
            &beside(HELP, plan_options::HELP, &["time"]),
            agent_options::HELP,
            share_options::HELP,
            output::HELP,
            EXIT,
        ],
        |mut options| {
            for plan in [&mut options.a, &mut options.b] {
                plan.interrupt = interrupt.clone();
            }
            carry_out(options)
        },
    )
}

fn carry_out(options: Options) -> ExitCode {
    match compared(&options) {
        Ok((run, is_whole)) => {
            let status = u8::from(run.colour == Colour::Red || !is_whole);
            let (text, title) = (told(&run), run.name.clone());
            options.output.give(&Document { title, runs: vec![run] }, &text, status)
        }
        Err(fault) => refuse(&fault),
    }
}

/// What came of it, and whether all trials could be run.
fn compared(options: &Options) -> Result<(Run, bool), Fault> {
    let (a, b) = (options.a.clone(), options.b.clone());
    let usual = format!("A {} against B {}", a.targets[0].url, b.targets[0].url);
    let ceiling =
        if options.ceiling { Some(pointsman_bench::ceiling(&a, &identity_for(&a.offer)?)?) } else { None };
    let mut line = ProgressLine::new();
    let asked = Compare { a, b, blocks: options.blocks, ceiling };
    let found = pointsman_bench::contest(&asked, &mut |bout| line.say(|| of_bout(bout)));
    line.end();
    let found = found?;
    Ok((output::began(found.report(options.output.name(&usual)), found.began_unix_s), found.is_whole()))
}

fn of_bout(bout: Bout) -> String {
    let name = |side: Side| if side == Side::B { "B" } else { "A" };
    match bout {
        Bout::Running(at, of, side, progress) => format!(
            "{} trial {} of {of}: {}  {:.0}/{:.0} s  {}/s",
            bar(at as f64 / of as f64),
            at + 1,
            name(side),
            progress.at_seconds,
            progress.of_seconds,
            units::rate(progress.rate),
        ),
        Bout::Ended(fought) => {
            let void = if fought.voids.is_empty() { "" } else { ", void" };
            format!("{}: {}{void}", name(fought.turn.side), fought.verdict.colour)
        }
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
        let words =
            "http://127.0.0.1:81/ http://127.0.0.1:82/ --clients 4 --pid 12,34 --blocks 5 --trial 1s --json";
        let options = read(words).expect("good").expect("no help");
        assert_eq!((options.a.server_process, options.b.server_process), (Some(12), Some(34)));
        assert_eq!((options.blocks, options.a.time, options.b.warm_up), (5, Duration::from_secs(1), WARM_UP));
        assert_eq!(options.b.targets[0].url.to_string(), "http://127.0.0.1:82/");
        let words = "http://127.0.0.1:81/ https://127.0.0.1:82/ --clients 4 --groups X25519 --insecure";
        let options = read(words).expect("good").expect("no help");
        assert!(options.a.verify && options.a.offer.groups.is_empty(), "what is said of TLS is of B");
        assert_eq!((options.b.verify, options.b.offer.groups), (false, vec!["X25519".to_owned()]));
        assert!(read("--help").expect("good").is_none());
        for bad in [
            "",
            "http://a/ --clients 1",
            "http://a/ http://b/",
            "http://a/ http://b/ http://c/ --clients 1",
            "http://a/ http://b/ --clients 1 --pid 5",
            "http://a/ http://b/ --clients 1 --time 5s",
            "http://a/ http://b/ --clients 1 -x",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
