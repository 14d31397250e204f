//! `cargo xtask bench-peers`: CPU time per request of the switch beside nginx and HAProxy.
//!
//! All three get the same rules in the same order, the same servers behind them and the same load, on one
//! core of their own and in turns, so that what disturbs the machine disturbs all of them. Everything runs
//! on the loopback of this machine and ends with the command.

mod child;
mod haproxy;
mod idle;
mod lineup;
mod load;
mod loaded;
mod machine;
mod nginx;
mod ours;
mod record;
mod report;
mod scenario;
mod statistics;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lexopt::{Arg, ValueExt};

use crate::failure::{Because, Failure, Result};
use crate::packages::{self, Tool};
use crate::project::Project;
use crate::turns::Turns;
pub(crate) use child::{Child, Place, Precedence};
use lineup::Lineup;
pub(crate) use lineup::free_port;
pub(crate) use load::Outcome as LoadOutcome;
pub(crate) use machine::Machine;
use scenario::{Measure, SCENARIOS, Scenario};
pub(crate) use statistics::Spread;

/// The proxy under test has this core to itself.
const PROXY_CORE: usize = 0;
/// The servers behind it and the load generator share this one.
const LOAD_CORE: usize = 1;
/// Processes that compute on the proxy's core beside it, so that the load generator's core can bring more than the
/// proxy's part of its own can carry.
const SPINNERS: usize = 4;
const WARM_UP_SECONDS: u32 = 1;
/// Rounds that a bar must have been met over.
const STRICT_ROUNDS_MIN: usize = 5;

const TOOLS: &[Tool] = &[
    Tool { program: "nginx", package: "nginx" },
    Tool { program: "haproxy", package: "haproxy" },
    Tool { program: "wrk", package: "wrk" },
    Tool { program: "h2load", package: "nghttp2-client" },
    Tool { program: "curl", package: "curl" },
    Tool { program: "openssl", package: "openssl" },
    Tool { program: "taskset", package: "util-linux" },
];

/// Whose versions are told.
const PROGRAMS: &[(&str, &str)] =
    &[("nginx", "-v"), ("haproxy", "-v"), ("wrk", "-v"), ("openssl", "version")];

/// What is measured, and for how long.
pub(crate) struct Options {
    turns: Turns,
    scenarios: Vec<&'static Scenario>,
    /// The proxy has its core to itself, and waits for the load. Otherwise it always finds a backlog.
    alone: bool,
    /// How many rules our switch has before those of each scenario.
    rules_before: usize,
}

impl Options {
    pub(crate) fn read(mut arguments: lexopt::Parser) -> Result<Self> {
        let mut options =
            Self { turns: Turns::default(), scenarios: Vec::new(), alone: false, rules_before: 0 };
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("scenario") => {
                    options.scenarios.push(Scenario::named(&arguments.value()?.string()?)?)
                }
                Arg::Long("alone") => options.alone = true,
                Arg::Long("rules-before") => options.rules_before = arguments.value()?.parse()?,
                Arg::Long(name) => {
                    let name = name.to_owned();
                    if !options.turns.take(&name, &mut arguments)? {
                        return Err(lexopt::Error::UnexpectedOption(format!("--{name}")).into());
                    }
                }
                other => return Err(other.unexpected().into()),
            }
        }
        options.turns.check()?;
        if options.scenarios.is_empty() {
            options.scenarios = SCENARIOS.iter().filter(|scenario| options.suits(scenario)).collect();
        }
        Ok(options)
    }

    /// What is given back of the start, which is a lot with thousands of rules, hides what connections cost.
    fn suits(&self, scenario: &Scenario) -> bool {
        self.rules_before == 0 || matches!(scenario.measure, Measure::CpuTime)
    }

    /// How many processes are to be in the proxy's way.
    fn spinners(&self, scenario: &Scenario) -> usize {
        if self.alone || scenario.is_alone { 0 } else { SPINNERS }
    }
}

pub(crate) fn run(project: &Project, options: Options) -> Result<()> {
    machine::cores()?;
    packages::ensure(TOOLS)?;
    let binaries = Binaries::ready(project, options.turns.build)?;
    let machine = Machine::look(project, binaries.switch.is_some(), PROGRAMS)?;
    machine.print();
    let folder = project.target().join("bench-peers");
    // What an earlier run left behind says nothing about this one.
    if folder.exists() {
        std::fs::remove_dir_all(&folder).because(|| format!("cannot empty `{}`", folder.display()))?;
    }
    let (origin, ports) = start_origin(&binaries.own, &folder)?;
    let mut results = Vec::new();
    for scenario in &options.scenarios {
        let folder = folder.join(scenario.name);
        let extras = (options.spinners(scenario), options.rules_before);
        let lineup = Lineup::of(scenario, &ports, binaries.switch.as_deref(), &folder, extras)?;
        let rounds = match scenario.measure {
            Measure::CpuTime => loaded::measure(scenario, &lineup, &options, &folder)?,
            Measure::IdleMemory => {
                idle::measure(scenario, &lineup, options.turns.rounds, &binaries.own, &folder)?
            }
        };
        results.push(report::Result::of(scenario, &rounds, options.spinners(scenario)));
        report::print(&results[results.len() - 1]);
    }
    drop(origin);
    let file = project.target().join("bench-peers.json");
    record::write(&file, &machine, &options, &results)?;
    println!("\nwritten to {}", file.display());
    let flagged: usize = results.iter().map(report::Result::flagged).sum();
    let missed: usize = results.iter().map(report::Result::missed).sum();
    println!("bars missed: {missed}");
    if flagged > 0 {
        return Err(Failure::new(format!("{flagged} rounds had errors and do not count")));
    }
    if options.turns.strict {
        strictly(&options, &results, missed)?;
    }
    Ok(())
}

/// What a strict run does not forgive.
fn strictly(options: &Options, results: &[report::Result], missed: usize) -> Result<()> {
    let unsaturated: Vec<_> =
        results.iter().filter(|result| result.is_unsaturated()).map(report::Result::name).collect();
    if missed > 0 {
        Err(Failure::new(format!("{missed} bars are missed")))
    } else if options.turns.rounds < STRICT_ROUNDS_MIN {
        Err(Failure::new(format!("fewer than {STRICT_ROUNDS_MIN} rounds prove nothing")))
    } else if !unsaturated.is_empty() {
        Err(Failure::new(format!("a proxy waited for the load in {}", unsaturated.join(", "))))
    } else {
        Ok(())
    }
}

/// Keeps a core busy for the rest of the benchmark, at the same priority as the proxy.
pub(crate) fn spin() -> Result<()> {
    let longest = Duration::from_secs(3600);
    let started = Instant::now();
    while started.elapsed() < longest {
        for number in 0..100_000_u32 {
            std::hint::black_box(number);
        }
    }
    Ok(())
}

struct Binaries {
    /// Absent only when nothing was to be built and nothing is there.
    switch: Option<PathBuf>,
    /// This program, which is the servers and the idle clients, too.
    own: PathBuf,
}

impl Binaries {
    fn ready(project: &Project, build: bool) -> Result<Self> {
        if build {
            project.build_release("pointsman")?;
            // The servers live in this program; without optimisation they would be the bottleneck.
            project.build_release("xtask")?;
        }
        let switch = project.release_binary("pointsman").ok();
        if switch.is_none() {
            println!("note: there is no release build of the switch; its peers are measured alone");
        }
        let own = std::env::current_exe().because(|| "cannot find my own binary".into())?;
        Ok(Self { switch, own: project.release_binary("xtask").unwrap_or(own) })
    }
}

type Ports = [u16; crate::origin::LISTENERS];

fn start_origin(binary: &Path, folder: &Path) -> Result<(Child, Ports)> {
    std::fs::create_dir_all(folder).because(|| format!("cannot make `{}`", folder.display()))?;
    let log = folder.join("origin.log");
    let mut origin =
        Child::start("the origin", Place::on(&[origin_core()]), binary, &["origin".into()], &log)?;
    let ports = origin.wait_for_log(|text| {
        let numbers: Vec<u16> = text.lines().next()?.split(' ').map_while(|word| word.parse().ok()).collect();
        numbers.try_into().ok()
    })?;
    Ok((origin, ports))
}

/// With a third core the servers take it, so that the load generator can bring more.
fn origin_core() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores > LOAD_CORE + 1 { LOAD_CORE + 1 } else { LOAD_CORE }
}
