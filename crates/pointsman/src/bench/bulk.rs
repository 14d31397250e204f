//! `pointsman bench bulk`: bytes a second by the size of bodies, and by cipher suite.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::{Arg, Parser};
use pointsman_bench::{Bulk, Haul, Hauled, Interrupt, Load, Plan, SIZE_BYTES_MAX, Way, haul};
use pointsman_measure::report::Document;
use pointsman_measure::table::csv;
use pointsman_measure::verdict::Colour;

use super::agent_options;
use super::load::refuse;
use super::output::{self, Output, TableFiles};
use super::plan_options::{self, PlanOptions, text, time};
use super::progress::{ProgressLine, bar};
use super::told::tabled;
use super::with_options;
use crate::units;
use crate::usage::{beside, number};

const HELP: &str = "\
pointsman bench bulk URL... [OPTION...]

    Bodies of each size are asked for over connections that are kept, in a closed loop. `{size}` in a URL or a field is the
    number of bytes: https://127.0.0.1:8443/bytes/{size}. Each URL is measured with each suite of `--suites` alone, in turns,
    and stands beside the first. See docs/guide/bench.md.

bodies
    --upload                 bodies go to the server, as those of requests (POST, or `--method`), and `{size}` need not be said
    --sizes N,N,...          bytes of the bodies (`16k`, `1M`: times 1024); 1k,16k,256k,1M,4M
    --clients N              how many ask at a time; 4
    --rounds N               how often each size of each series is measured; 4
    --time TIME              how long each time; 1s
    --warm-up TIME           load before that, which does not count; 300ms
    --pid PID,...            the process of each URL's server on this machine
    --csv FILE, --xlsx FILE  the table
";

const EXIT: &str = "
exit status: 0 measured; 1 measured, and some of it is no result: void, or the generator was not in control; 2 not measured
Ctrl-C ends it with what was measured by then, and exit status 130 (SIGTERM: 143); a second one at once
";

/// What is measured, if nobody says.
const SIZES: [u64; 5] = [1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20];
const CLIENTS: u32 = 4;
const ROUNDS: u32 = 4;
const TIME: Duration = Duration::from_secs(1);
const WARM_UP: Duration = Duration::from_millis(300);

/// Options of other commands that say what is given here in another way, or not at all.
const OTHERS: [&str; 13] = [
    "rate",
    "arrivals",
    "weights",
    "session",
    "handshake",
    "requests-per-connection",
    "connections",
    "opened",
    "persistent",
    "pipelined",
    "pipeline-depth",
    "tls",
    "tls-port",
];

/// The command line.
#[derive(Debug)]
struct Options {
    bulk: Bulk,
    output: Output,
    tables: TableFiles,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let (mut plan, mut output, mut tables) =
            (PlanOptions::default(), Output::default(), TableFiles::default());
        let (mut urls, mut processes, mut sizes) = (Vec::new(), None, SIZES.to_vec());
        let mut way = Way::Down;
        let (mut clients, mut rounds, mut trial, mut warm_up) = (CLIENTS, ROUNDS, TIME, WARM_UP);
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long("upload") => way = Way::Up,
                Arg::Long("sizes") => sizes = read_sizes(&text(&mut parser)?)?,
                Arg::Long("clients") => clients = number("--clients", &mut parser)?,
                Arg::Long("rounds") => rounds = number("--rounds", &mut parser)?,
                Arg::Long("time") => trial = time(&text(&mut parser)?)?,
                Arg::Long("warm-up") => warm_up = time(&text(&mut parser)?)?,
                Arg::Long("pid") => processes = Some(text(&mut parser)?),
                Arg::Long(name) => {
                    let name = name.to_owned();
                    let is_known = !OTHERS.contains(&name.as_str())
                        && (plan.take(&name, &mut parser)?
                            || output.take(&name, &mut parser)?
                            || tables.take(&name, &mut parser)?);
                    if !is_known {
                        return Err(lexopt::Error::UnexpectedOption(format!("--{name}")));
                    }
                }
                Arg::Value(url) => urls.push(url),
                Arg::Short(_) => return Err(argument.unexpected()),
            }
        }
        let processes = processes.map(|word| plan_options::processes(&word, urls.len())).transpose()?;
        let of = |(at, url): (usize, OsString)| -> Result<Plan, lexopt::Error> {
            let mut options = plan.clone();
            options.url(url)?;
            let mut plan = options.plan_of(Load::Closed { clients })?;
            if way == Way::Up {
                // Where no method was said, it is that of requests without bodies.
                let of_get = plan.targets.iter_mut().filter(|target| target.method == "GET");
                of_get.for_each(|target| "POST".clone_into(&mut target.method));
            }
            let server_process = processes.as_ref().map(|processes| processes[at]);
            Ok(Plan { time: trial, warm_up, server_process, ..plan })
        };
        let mut plans: Vec<Plan> = urls.into_iter().enumerate().map(of).collect::<Result<_, _>>()?;
        if plans.iter().any(Plan::is_over_tls) {
            plans = plans.into_iter().map(Plan::with_tls_where_it_is).collect();
        }
        let [first, others @ ..] = &mut plans[..] else {
            return Err("a URL is needed, such as `https://127.0.0.1:8443/bytes/{size}`".into());
        };
        // An agent serves one controller.
        others.iter_mut().for_each(|other| other.agents.clone_from(&first.agents));
        Ok(Some(Options { bulk: Bulk { plans, way, sizes, rounds }, output, tables }))
    }
}

/// Measures each size of each series.
pub(super) fn bulk(arguments: Vec<OsString>, interrupt: &Interrupt) -> ExitCode {
    with_options(
        Options::read(arguments),
        &[HELP, &beside(HELP, plan_options::HELP, &OTHERS), agent_options::HELP, output::HELP, EXIT],
        |mut options| {
            options.bulk.plans.iter_mut().for_each(|plan| plan.interrupt = interrupt.clone());
            carry_out(options)
        },
    )
}

fn carry_out(options: Options) -> ExitCode {
    let mut line = ProgressLine::new();
    let found = haul(&options.bulk, &mut |seen| line.say(|| of_haul(seen)));
    line.end();
    let found = match found {
        Ok(found) => found,
        Err(fault) => return refuse(&fault),
    };
    let urls = options.bulk.plans.iter().flat_map(|plan| &plan.targets).map(|target| target.url.to_string());
    let urls = urls.collect::<Vec<_>>().join(", ");
    let run = output::began(found.report(options.output.name(&urls)), found.began_unix_s);
    let table = run.tables.first().map(csv).unwrap_or_default();
    let troubles = options.tables.give(&table, &run.tables);
    let status = u8::from(found.rows.iter().any(|row| row.colour == Colour::Red));
    let text = tabled(&run);
    let document = Document { title: format!("Bytes a second by size: {urls}"), runs: vec![run] };
    options.output.give_beside(troubles, &document, &text, status)
}

fn of_haul(seen: Haul) -> String {
    match seen {
        Haul::Running(at, of, series, size, progress) => format!(
            "{} trial {} of {of}: {size} B {}  {:.0}/{:.0} s  {}",
            bar(at as f64 / of as f64),
            at + 1,
            series.name,
            progress.at_seconds,
            progress.of_seconds,
            units::bytes_per_s(progress.bytes_rate),
        ),
        Haul::Ended(Hauled { size, verdict, voids, payload_per_s, .. }) => {
            let void = if voids.is_empty() { "" } else { ", void" };
            format!("{size} B: {}, {}{void}", units::bytes_per_s(*payload_per_s), verdict.colour)
        }
    }
}

/// `100`, `16k`, `1M`, `1G`, in their order.
fn read_sizes(words: &str) -> Result<Vec<u64>, String> {
    let size = |word: &str| {
        let (digits, factor) = match word.as_bytes().last() {
            Some(b'k') => (&word[..word.len() - 1], 1 << 10),
            Some(b'M') => (&word[..word.len() - 1], 1 << 20),
            Some(b'G') => (&word[..word.len() - 1], 1 << 30),
            _ => (word, 1),
        };
        let size = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        size.filter(|size| (1..=SIZE_BYTES_MAX).contains(size))
            .ok_or_else(|| format!("a size is a number of bytes from 1 to 1G, such as `16k`, not `{word}`"))
    };
    words.split(',').map(|word| size(word.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Option<Options>, lexopt::Error> {
        Options::read(words.split_ascii_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn options_are_read() {
        let usual = read("http://127.0.0.1/{size}").expect("good").expect("no help").bulk;
        assert_eq!((usual.sizes.as_slice(), usual.rounds, usual.plans[0].time), (&SIZES[..], ROUNDS, TIME));
        assert_eq!(usual.plans[0].load, Load::Closed { clients: CLIENTS });
        let words = "https://127.0.0.1:8443/{size} http://127.0.0.1:8080/{size} --sizes 100,16k,1M --clients 2 --rounds 3 \
                     --suites A,B --pid 4,5 --time 200ms --warm-up 50ms --csv a.csv --json --threads 1";
        let options = read(words).expect("good").expect("no help");
        assert_ne!((options.output, options.tables), (Output::default(), TableFiles::default()));
        let bulk = options.bulk;
        assert_eq!((bulk.sizes, bulk.rounds), (vec![100, 16 << 10, 1 << 20], 3));
        let [first, second] = bulk.plans.as_slice() else { panic!("two") };
        assert_eq!((first.server_process, second.server_process), (Some(4), Some(5)));
        assert_eq!((first.time.as_millis(), second.warm_up.as_millis()), (200, 50));
        assert_eq!(first.offer.suites, ["A", "B"]);
        assert_eq!((usual.way, usual.plans[0].targets[0].method.as_str()), (Way::Down, "GET"));
        let up = read("http://127.0.0.1/ --upload").expect("good").expect("no help").bulk;
        assert_eq!((up.way, up.plans[0].targets[0].method.as_str()), (Way::Up, "POST"));
        let put = read("http://127.0.0.1/ --upload --method PUT").expect("good").expect("no help").bulk;
        assert_eq!(put.plans[0].targets[0].method, "PUT");
        assert!(read("--help").expect("good").is_none());
        for bad in [
            "",
            "http://a/{size} --sizes x",
            "http://a/{size} --sizes 0",
            "http://a/{size} --sizes 2G",
            "http://a/{size} --sizes 99999999999999999999k",
            "http://a/{size} --rate 5",
            "http://a/{size} --handshake full",
            "http://a/{size} --pid 5,6",
            "http://a/{size} -x",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
