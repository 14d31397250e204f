//! `cargo xtask saturation`: nginx, HAProxy, Apache and the switch, each until it is full, as `pointsman bench find` sees it.
//!
//! Each of them answers by itself, over TLS, on one core. The load comes from the other one, in turns whose order is drawn anew
//! in each round. The servers get a part of their core alone: the generator must have more than the fastest of them can take, or
//! the figures would be its own.

mod bench;
mod contender;
mod report;
mod search;
mod throttle;

use std::path::{Path, PathBuf};

use lexopt::{Arg, ValueExt};
use pointsman_bench::read_time;
use pointsman_e2e::{Authority, Random};

use crate::failure::{Because, Failure, Result};
use crate::packages::{self, Tool};
use crate::peers::{Machine, Precedence};
use crate::project::{Project, succeed};
use contender::{CONTENDERS, Contender, Kind};
use report::Report;
use search::{MODES, Mode, Searches};
pub(crate) use throttle::run as run_throttle;

/// The servers have this core, of which the throttle takes its part; the generator has the other.
const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;

/// A search is made so often at most in a round: again, behind all others, where the generator was not in control, as while the
/// machine's host has other work.
const ATTEMPTS: usize = 3;

const TOOLS: &[Tool] = &[
    Tool { program: "nginx", package: "nginx" },
    Tool { program: "haproxy", package: "haproxy" },
    // The program and its modules, without the service and its configuration.
    Tool { program: "apache2", package: "apache2-bin" },
    Tool { program: "curl", package: "curl" },
    Tool { program: "openssl", package: "openssl" },
    Tool { program: "taskset", package: "util-linux" },
];

/// Whose versions are told.
const PROGRAMS: &[(&str, &str)] =
    &[("nginx", "-v"), ("haproxy", "-v"), ("apache2", "-v"), ("openssl", "version")];

/// What is measured, and for how long.
pub(crate) struct Options {
    /// Of a trial of handshakes, in milliseconds.
    trial_ms: u32,
    rounds: usize,
    /// Of its core that a server gets, in hundredths, where it is not what the mode says.
    share_percent: Option<u32>,
    seed: u64,
    modes: Vec<&'static Mode>,
    contenders: Vec<Kind>,
    /// Measured in place of the release binary.
    binary: Option<PathBuf>,
    build: bool,
    /// Where the page and the figures go.
    output: Option<PathBuf>,
}

impl Options {
    pub(crate) fn read(mut arguments: lexopt::Parser) -> Result<Self> {
        let mut options = Self {
            trial_ms: 800,
            rounds: 3,
            share_percent: None,
            seed: 1,
            modes: Vec::new(),
            contenders: Vec::new(),
            binary: None,
            build: true,
            output: None,
        };
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("trial") => options.trial_ms = milliseconds(&arguments.value()?.string()?)?,
                Arg::Long("rounds") => options.rounds = arguments.value()?.parse()?,
                Arg::Long("share") => options.share_percent = Some(arguments.value()?.parse()?),
                Arg::Long("seed") => options.seed = arguments.value()?.parse()?,
                Arg::Long("of") => options.modes.push(Mode::named(&arguments.value()?.string()?)?),
                Arg::Long("server") => options.contenders.push(Kind::named(&arguments.value()?.string()?)?),
                Arg::Long("binary") => options.binary = Some(arguments.value()?.into()),
                Arg::Long("output") => options.output = Some(arguments.value()?.into()),
                Arg::Long("no-build") => options.build = false,
                other => return Err(other.unexpected().into()),
            }
        }
        if !(1..=100).contains(&options.rounds)
            || !options.share_percent.is_none_or(|share| (5..=100).contains(&share))
        {
            return Err(Failure::usage("rounds go from 1 to 100, the share from 5 to 100 per cent"));
        }
        if options.modes.is_empty() {
            options.modes = MODES.iter().collect();
        }
        if options.contenders.is_empty() {
            options.contenders = CONTENDERS.to_vec();
        }
        Ok(options)
    }
}

impl Options {
    /// What the throttle leaves of the servers' core is theirs, whatever else the machine does. Where there is none there may
    /// be no right to that.
    fn precedence_of_servers(&self) -> Precedence {
        match self.share_percent {
            Some(100) => Precedence::Usual,
            _ => Precedence::Preferred,
        }
    }
}

/// A time of a trial.
fn milliseconds(text: &str) -> Result<u32> {
    let time = read_time(text).map_err(Failure::usage)?;
    let ms = u32::try_from(time.as_millis()).ok().filter(|ms| (200..=60_000).contains(ms));
    ms.ok_or_else(|| Failure::usage("a trial takes from 200ms to 60s"))
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    packages::ensure(TOOLS)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            if options.build {
                project.build_release("pointsman")?;
            }
            project.release_binary("pointsman")?
        }
    };
    let machine = Machine::look(project, true, PROGRAMS)?;
    machine.print();
    let folder = project.target().join("saturation");
    // What an earlier run left behind says nothing about this one.
    if folder.exists() {
        std::fs::remove_dir_all(&folder).because(|| format!("cannot empty `{}`", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).because(|| format!("cannot make `{}`", folder.display()))?;
    let pair = Authority::new("saturation").server(&["localhost"]);
    let mut contenders = Vec::new();
    for kind in &options.contenders {
        contenders.push(Contender::start(*kind, &binary, &pair, (&folder, options.precedence_of_servers()))?);
    }
    let mut searches = Searches::new(&binary, &folder, options);
    for mode in &options.modes {
        searches.estimate(mode, &contenders)?;
    }
    let mut report = Report::default();
    let mut random = Random::new(options.seed);
    for round in 1..=options.rounds {
        let mut due = drawn(&options.modes, contenders.len(), &mut random);
        for _ in 0..ATTEMPTS {
            let mut again = Vec::new();
            for (mode, number) in due {
                contenders[number].expect_running()?;
                let found = searches.search(mode, &contenders[number], round)?;
                if !found.counts() {
                    again.push((mode, number));
                }
                report.take(found);
            }
            due = again;
        }
    }
    report.print();
    let output = options.output.clone().unwrap_or_else(|| folder.clone());
    std::fs::create_dir_all(&output).because(|| format!("cannot make `{}`", output.display()))?;
    report.write(&output.join("saturation.json"), &machine, options, &contenders)?;
    draw(&binary, &report, &folder, &output.join("saturation.html"))?;
    println!("\nwritten to {}", output.display());
    match report.without_a_result() {
        0 => Ok(()),
        without => Err(Failure::new(format!(
            "in {without} searches the generator was not in control, {ATTEMPTS} times each, and they do not count"
        ))),
    }
}

/// All pairs of a mode and the number of a server, in an order by chance.
fn drawn(modes: &[&'static Mode], contenders: usize, random: &mut Random) -> Vec<(&'static Mode, usize)> {
    let all = modes.iter().flat_map(|mode| (0..contenders).map(move |number| (*mode, number)));
    let mut pairs: Vec<_> = all.collect();
    for last in (1..pairs.len()).rev() {
        pairs.swap(last, random.below(last + 1));
    }
    pairs
}

/// One page of the runs in the middle, beside each other.
fn draw(binary: &Path, report: &Report, folder: &Path, page: &Path) -> Result<()> {
    let files = report.write_middle_runs(folder)?;
    let mut command = std::process::Command::new(binary);
    command.args(["bench", "report", "--title", "Saturation of nginx, HAProxy, Apache and Pointsman", "-o"]);
    succeed(command.arg(page).args(files))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Options> {
        Options::read(lexopt::Parser::from_args(words))
    }

    #[test]
    fn options_are_read() {
        let options = read(&[
            "--trial", "200ms", "--rounds", "5", "--of", "keep", "--server", "nginx", "--share", "30",
        ]);
        let options = options.expect("as it is meant");
        assert_eq!((options.trial_ms, options.rounds, options.share_percent), (200, 5, Some(30)));
        assert_eq!((options.modes.len(), options.contenders.as_slice()), (1, &[Kind::Nginx][..]));
        let usual = read(&[]).expect("as it is meant");
        assert_eq!((usual.modes.len(), usual.contenders.len(), usual.build), (2, 4, true));
        for words in [
            ["--trial", "1x"],
            ["--trial", "9ms"],
            ["--rounds", "0"],
            ["--share", "4"],
            ["--of", "x"],
            ["--server", "y"],
        ] {
            assert!(read(&words).is_err(), "{words:?}");
        }
    }
}
