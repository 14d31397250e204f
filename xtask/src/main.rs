//! The project's own commands: `cargo xtask demo`, `check`, `tidy`, `endure`, `storm`, `fuzz`,
//! `differential`, `soak`, `bench-peers`, `generators`, `saturation`, `conformance`, `console`, `screenshots` and `package`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool speaks to its caller")]

mod check;
mod conformance;
mod console;
mod crowd;
mod differential;
mod endure;
mod failure;
mod fuzz;
mod generators;
mod help;
mod interop;
mod origin;
mod package;
mod packages;
mod peers;
mod process;
mod project;
mod saturation;
mod soak;
mod tidy;
mod turns;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use lexopt::Arg;

use crate::endure::Group;
use crate::failure::{Failure, Result};
use crate::project::{Project, succeed};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            failure.exit_code()
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = lexopt::Parser::from_env();
    let command = match arguments.next()? {
        Some(Arg::Value(command)) => command,
        Some(Arg::Long("help") | Arg::Short('h')) | None => {
            print!("{}", help::overview());
            return Ok(());
        }
        Some(other) => return Err(other.unexpected().into()),
    };
    let asks = std::env::args_os().skip(2).any(|word| word == "--help" || word == "-h");
    if asks && let Some(text) = command.to_str().and_then(help::of) {
        print!("{text}");
        return Ok(());
    }
    let project = Project::find()?;
    match command.to_str() {
        Some("help") => nothing_more(arguments).map(|()| print!("{}", help::overview())),
        Some("demo") => demo(&project, arguments.raw_args()?.collect()),
        Some("check") => check::run(&project, check::Extent::read(arguments)?),
        Some("tidy") => nothing_more(arguments).and_then(|()| tidy::run(&project)),
        Some("endure") => endure::run(&project, Group::Endure, arguments),
        Some("storm") => endure::run(&project, Group::Storm, arguments),
        Some("package") => package::run(&project, arguments),
        Some("bench-peers") => peers::run(&project, peers::Options::read(arguments)?),
        Some("generators") => generators::run(&project, &generators::Options::read(arguments)?),
        Some("saturation") => saturation::run(&project, &saturation::Options::read(arguments)?),
        Some("conformance") => conformance::run(&project, &conformance::Options::read(arguments)?),
        Some("console") => console::run(&project, console::Then::read(arguments)?),
        Some("screenshots") => screenshots(&project, console::Then::read(arguments)?),
        Some("fuzz") => fuzz::run(&project, &fuzz::Options::read(arguments)?),
        Some("differential") => differential::run(&project, &differential::Options::read(arguments)?),
        Some("soak") => soak::run(&project, &soak::Options::read(arguments)?),
        // What bench-peers starts as processes of their own: servers, clients, and work that is in the way.
        Some("origin") => nothing_more(arguments).and_then(|()| origin::run()),
        Some("crowd") => crowd::run(arguments),
        Some("spin") => nothing_more(arguments).and_then(|()| peers::spin()),
        // What saturation starts, to leave servers a part of their core.
        Some("throttle") => saturation::run_throttle(arguments),
        // What soak pipes the access log into.
        Some("read-log") => nothing_more(arguments).and_then(|()| soak::read_log()),
        _ => Err(Failure::usage(format!("no such command: `{}`\n\n{}", command.display(), help::overview()))),
    }
}

/// Builds the switch and becomes it.
fn demo(project: &Project, arguments: Vec<OsString>) -> Result<()> {
    project.build_release("pointsman")?;
    let binary = project.release_binary("pointsman")?;
    let error = std::process::Command::new(&binary).arg("demo").args(arguments).exec();
    Err(Failure::new(format!("cannot start `{}`: {error}", binary.display())))
}

/// The pictures of the console in its guide, as a browser shows them now: kept, or compared with those that are.
fn screenshots(project: &Project, then: console::Then) -> Result<()> {
    check::prepare_browser(project)?;
    succeed(project.cargo().args(["build", "--package", "pointsman"]))?;
    let words =
        ["test", "--package", "pointsman-e2e", "--test", "e2e", "--", "--nocapture", "console::pictures"];
    let mut tests = project.cargo();
    tests.args(words);
    if then == console::Then::Keep {
        tests.env("UPDATE_EXPECT", "1");
    }
    succeed(&mut tests)
}

fn nothing_more(mut arguments: lexopt::Parser) -> Result<()> {
    match arguments.next()? {
        None => Ok(()),
        Some(more) => Err(more.unexpected().into()),
    }
}
