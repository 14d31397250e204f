//! `cargo xtask generators`: `pointsman bench load` beside wrk, h2load and `openssl s_time`.
//!
//! All of them ask the same server in one run, in turns, each alone on a core of its own: what disturbs the machine disturbs
//! all of them. What counts is what a generator costs, its own CPU time a request or a handshake, and that they agree on
//! the rate where they measure the same.

mod contestant;
mod report;
mod server;

use std::path::PathBuf;

use lexopt::{Arg, ValueExt};

use crate::failure::{Because, Failure, Result};
use crate::packages::{self, Tool};
use crate::peers::Machine;
use crate::project::Project;
use crate::turns::Turns;
use contestant::{CONTESTS, Contest, Round};
pub(crate) use server::{CONTENT_BYTES, configuration as nginx_configuration};
use server::{Server, ServerKind};

/// The server has this core to itself, the generator whose turn it is the other.
const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;

const TOOLS: &[Tool] = &[
    Tool { program: "nginx", package: "nginx" },
    Tool { program: "wrk", package: "wrk" },
    Tool { program: "h2load", package: "nghttp2-client" },
    Tool { program: "openssl", package: "openssl" },
    Tool { program: "taskset", package: "util-linux" },
];

/// Whose versions are told.
const PROGRAMS: &[(&str, &str)] =
    &[("nginx", "-v"), ("wrk", "-v"), ("h2load", "--version"), ("openssl", "version")];

/// What is measured, and for how long.
pub(crate) struct Options {
    turns: Turns,
    server: ServerKind,
    contests: Vec<&'static Contest>,
    /// Measured in place of the release binary.
    binary: Option<PathBuf>,
}

impl Options {
    pub(crate) fn read(mut arguments: lexopt::Parser) -> Result<Self> {
        let mut options =
            Self { turns: Turns::default(), server: ServerKind::Nginx, contests: Vec::new(), binary: None };
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("server") => options.server = ServerKind::named(&arguments.value()?.string()?)?,
                Arg::Long("of") => options.contests.push(Contest::named(&arguments.value()?.string()?)?),
                Arg::Long("binary") => options.binary = Some(arguments.value()?.into()),
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
        if options.contests.is_empty() {
            options.contests = CONTESTS.iter().collect();
        }
        Ok(options)
    }
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    packages::ensure(TOOLS)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            if options.turns.build {
                project.build_release("pointsman")?;
            }
            project.release_binary("pointsman")?
        }
    };
    let machine = Machine::look(project, true, PROGRAMS)?;
    machine.print();
    let folder = project.target().join("generators");
    std::fs::create_dir_all(&folder).because(|| format!("cannot make `{}`", folder.display()))?;
    let server = Server::start(options.server, &binary, &folder)?;
    let mut results = Vec::new();
    for contest in &options.contests {
        let mut rounds: Vec<Round> = Vec::new();
        for number in 0..options.turns.rounds {
            // Whoever was first is last the next time.
            for place in 0..contest.contestants.len() {
                let contestant = &contest.contestants[(place + number) % contest.contestants.len()];
                rounds.push(contestant.run(contest, &server, &binary, options.turns.seconds, number)?);
            }
        }
        let result = report::Result::of(contest, rounds);
        report::print(&result);
        results.push(result);
    }
    let file = project.target().join("generators.json");
    report::write(&file, &machine, options, &results)?;
    println!("\nwritten to {}", file.display());
    let missed = results.iter().filter(|result| result.is_missed()).count();
    let flagged: u64 = results.iter().map(report::Result::errors).sum();
    println!("bars missed: {missed}");
    if flagged > 0 {
        return Err(Failure::new(format!("{flagged} requests failed, and their rounds do not count")));
    }
    match options.turns.strict && missed > 0 {
        true => Err(Failure::new(format!("{missed} bars are missed"))),
        false => Ok(()),
    }
}
