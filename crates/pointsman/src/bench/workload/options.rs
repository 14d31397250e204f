//! The options of `pointsman bench workload`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};
use pointsman_bench::{Arrivals, Load, Plan};
use pointsman_measure::workload::{CLIENTS, ITEMS, ITEMS_MAX};

use super::super::agent_options;
use super::super::output::{self, Output, TableFiles};
use super::super::plan_options::{self, PlanOptions, time};
use super::super::share_options;
use crate::usage::{beside, number};

const HELP: &str = "\
pointsman bench workload FILE URL [OPTION...]
pointsman bench workload --orders[=N,N,...] URL [OPTION...]

FILE is a workload in WebBench's syntax, URL a place without a path. It is run with each number of clients in turn.

mix
    --clients N,N,...        how many; 1,4,8,12 and so on to 60
    --delay TIME             each client begins so much later than the one before; the warm-up is that much longer
    `--think`, `--time`, `--warm-up`, `--persistent` and others, as below: the same in each step

orders: a purchase order in XML is sent to the URL, ever larger, thirty times each
    --orders[=N,N,...]       items of each; 1,2,5,10 and so on to 5000
    --repeat N               how often each; 30
    --every TIME             from one order to the next; 100ms

tables
    --csv FILE               a row for each number of clients or items
    --xlsx FILE              a workbook with a sheet for each table
";

const EXIT: &str = "
exit status: 0 measured; 1 measured, and not a result, or not all of it could be run; 2 not measured
Ctrl-C ends it with what was measured by then, and exit status 130 (SIGTERM: 143); a second one at once
";

/// Steps of a run, at most.
const STEPS_MAX: usize = 100;

/// Options of other commands that say what is given here in another way.
const OTHERS: [&str; 4] = ["rate", "arrivals", "weights", "method"];

pub(super) fn help() -> String {
    let plan = beside(HELP, plan_options::HELP, &OTHERS);
    [HELP, &plan, agent_options::HELP, share_options::HELP, output::HELP, EXIT].concat()
}

/// What is run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    Ladder { file: PathBuf, clients: Vec<u32> },
    Orders { items: Vec<u32>, every_ms: u64, repeat: u32 },
}

impl What {
    /// The load of its first step.
    fn load(&self) -> Load {
        match self {
            What::Ladder { clients, .. } => Load::Closed { clients: clients[0] },
            What::Orders { every_ms, .. } => every(*every_ms),
        }
    }
}

/// An order each so many milliseconds.
pub(super) fn every(every_ms: u64) -> Load {
    Load::Open { rate: 1e3 / every_ms as f64, arrivals: Arrivals::Uniform }
}

/// The command line.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) what: What,
    /// Of each step, but for its load.
    pub(super) plan: Plan,
    pub(super) output: Output,
    pub(super) tables: TableFiles,
}

#[derive(Default)]
struct Own {
    clients: Option<Vec<u32>>,
    delay: Option<Duration>,
    orders: Option<Vec<u32>>,
    repeat: Option<u32>,
    every: Option<Duration>,
    /// The option that says what is sent.
    body: Option<String>,
    tables: TableFiles,
}

impl Options {
    /// Nothing where help is wanted.
    pub(super) fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let (mut own, mut plan, mut output) = (Own::default(), PlanOptions::default(), Output::default());
        let mut values = Vec::new();
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long(name) => {
                    let name = name.to_owned();
                    if ["body", "body-file", "template"].contains(&name.as_str()) {
                        own.body = Some(name.clone());
                    }
                    let is_known = own.take(&name, &mut parser)?
                        || !OTHERS.contains(&name.as_str())
                            && (plan.take(&name, &mut parser)? || output.take(&name, &mut parser)?);
                    if !is_known {
                        return Err(lexopt::Error::UnexpectedOption(format!("--{name}")));
                    }
                }
                Arg::Value(value) => values.push(value),
                Arg::Short(_) => return Err(argument.unexpected()),
            }
        }
        let what = own.what(&mut values)?;
        values.into_iter().try_for_each(|url| plan.url(url))?;
        let plan = plan.plan_of(what.load())?;
        let Own { delay, tables, .. } = own;
        Ok(Some(Options { what, plan: Plan { delay, ..plan }, output, tables }))
    }
}

impl Own {
    fn take(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "clients" => self.clients = Some(numbers(&parser.value()?.string()?, 1_000_000)?),
            "delay" => self.delay = Some(time(&parser.value()?.string()?)?),
            "orders" => {
                self.orders = Some(match parser.optional_value() {
                    Some(value) => numbers(&value.string()?, ITEMS_MAX)?,
                    None => ITEMS.to_vec(),
                });
            }
            "repeat" => self.repeat = Some(number("--repeat", parser)?),
            "every" => self.every = Some(time(&parser.value()?.string()?)?),
            _ => return self.tables.take(name, parser),
        }
        Ok(true)
    }

    /// What is run; takes the file from the values.
    fn what(&mut self, values: &mut Vec<OsString>) -> Result<What, String> {
        let Some(items) = self.orders.take() else {
            if self.repeat.is_some() || self.every.is_some() {
                return Err("`--repeat` and `--every` are for `--orders`".to_owned());
            }
            if values.len() != 2 {
                return Err(
                    "a workload and a URL are needed, such as `static.wl http://127.0.0.1:8080`".to_owned()
                );
            }
            let clients = self.clients.take().unwrap_or_else(|| CLIENTS.to_vec());
            return Ok(What::Ladder { file: values.remove(0).into(), clients });
        };
        if self.clients.is_some() || self.delay.is_some() {
            return Err("orders are sent one after the other: `--clients` and `--delay` are for a workload"
                .to_owned());
        }
        if let Some(name) = &self.body {
            return Err(format!("an order is what is sent: `--{name}` is for a workload"));
        }
        if values.len() != 1 {
            return Err("orders are sent to one URL, such as `http://127.0.0.1:8080/orders`".to_owned());
        }
        let every_ms = self.every.map_or(100, |every| every.as_millis() as u64);
        let repeat = self.repeat.unwrap_or(30);
        // The measured time is whole tenths of a second.
        let is_whole = (every_ms * u64::from(repeat)).is_multiple_of(100);
        match (1..=60_000).contains(&every_ms) && (1..=10_000).contains(&repeat) && is_whole {
            true => Ok(What::Orders { items, every_ms, repeat }),
            false => {
                Err("`--every` times `--repeat` makes whole tenths of a second: 100ms times 30 does"
                    .to_owned())
            }
        }
    }
}

/// `1,4,8`.
fn numbers(words: &str, most: u32) -> Result<Vec<u32>, String> {
    let number = |word: &str| word.trim().parse().ok().filter(|number| (1..=most).contains(number));
    let numbers: Option<Vec<u32>> = words.split(',').map(number).collect();
    numbers.filter(|numbers| numbers.len() <= STEPS_MAX).ok_or_else(|| {
        format!("up to {STEPS_MAX} numbers from 1 to {most} are wanted, such as `1,4,8`, not `{words}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Option<Options>, lexopt::Error> {
        Options::read(words.split_ascii_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn a_ladder_is_the_papers_where_nothing_is_said() {
        let options = read("a.wl http://127.0.0.1:81").expect("good").expect("no help");
        assert_eq!(options.what, What::Ladder { file: "a.wl".into(), clients: CLIENTS.to_vec() });
        let words = "a.wl http://127.0.0.1:81 --clients 1,20 --delay 5ms --think 1s --time 2s --csv a.csv --xlsx a.xlsx";
        let options = read(words).expect("good").expect("no help");
        assert_eq!(options.what, What::Ladder { file: "a.wl".into(), clients: vec![1, 20] });
        assert_eq!(options.plan.delay, Some(Duration::from_millis(5)));
        assert_ne!(options.tables, TableFiles::default());
        assert!(read("--help").expect("good").is_none());
    }

    #[test]
    fn orders_are_sent_thirty_times() {
        let options = read("--orders http://127.0.0.1:81/o").expect("good").expect("no help");
        assert_eq!(options.what, What::Orders { items: ITEMS.to_vec(), every_ms: 100, repeat: 30 });
        let options = read("--orders=3,4 --every 50ms --repeat 10 http://127.0.0.1:81/o")
            .expect("good")
            .expect("no help");
        assert_eq!(options.what, What::Orders { items: vec![3, 4], every_ms: 50, repeat: 10 });
        let options = read("--orders --connections 7 --opened 4 http://127.0.0.1:81/o")
            .expect("good")
            .expect("no help");
        assert_eq!((options.plan.connections_max, options.plan.opened_first), (7, 4));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for bad in [
            "",
            "a.wl",
            "a.wl http://a/ http://b/",
            "a.wl http://127.0.0.1/ --rate 5",
            "a.wl http://127.0.0.1/ --clients 0",
            "a.wl http://127.0.0.1/ --clients a",
            "a.wl http://127.0.0.1/ --repeat 3",
            "--orders a.wl http://127.0.0.1/",
            "--orders http://127.0.0.1/ --clients 3",
            "--orders http://127.0.0.1/ --body x",
            "--orders http://127.0.0.1/ --template /nowhere",
            "a.wl http://127.0.0.1/ --connections 7",
            "--orders=0 http://127.0.0.1/",
            "--orders http://127.0.0.1/ --every 7ms --repeat 3",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
