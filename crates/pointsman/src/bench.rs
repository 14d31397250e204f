//! `pointsman bench`: load on a web server, and whether its figures can be believed.

mod agent;
mod agent_options;
mod bulk;
mod compare;
mod crypto;
mod crypto_table;
mod find;
mod handshake;
mod handshake_table;
mod identity;
mod interruption;
mod judged;
mod load;
mod null;
mod output;
mod plan_options;
mod progress;
mod report;
mod session_options;
mod share_options;
mod summary;
mod told;
mod workload;

use std::ffi::OsString;
use std::process::ExitCode;

use self::interruption::interruptible;
use crate::usage::{wrong_options, wrong_use};
use crate::{WRONG_USE, say};

const HELP: &str = "\
pointsman bench COMMAND

    crypto         what the primitives of TLS cost, by library, program and token; whether an accelerator works
    handshake URL  handshakes one at a time: their phases, and what of them the primitives explain
    load URL...    so many requests, or so many clients, for a while: how many are answered, and how soon
    bulk URL...    bytes a second by the size of bodies, and by cipher suite
    find URL...    the rates that a server sustains and reaches, by trials of many loads
    compare A B    which of two is faster, and whether this machine can tell
    workload FILE URL
                   a WebBench workload with ever more clients; orders in XML that grow
    report FILE... results that were kept, drawn side by side
    agent          makes load for a controller on another machine (`load --agents`, and others)
    null           a server that does nothing but answer: what the generator itself can do
    COMMAND --help more of a command
";

/// Which of the bench's commands.
pub(crate) fn bench(mut arguments: Vec<OsString>) -> ExitCode {
    let command = if arguments.is_empty() { OsString::new() } else { arguments.remove(0) };
    match command.to_str() {
        Some("crypto") => interruptible(arguments, crypto::run),
        Some("handshake") => interruptible(arguments, handshake::run),
        Some("load") => interruptible(arguments, load::load),
        Some("bulk") => interruptible(arguments, bulk::bulk),
        Some("find") => interruptible(arguments, find::find),
        Some("compare") => interruptible(arguments, compare::compare),
        Some("workload") => interruptible(arguments, workload::workload),
        Some("report") => report::report(arguments),
        Some("agent") => agent::agent(arguments),
        Some("null") => null::null(arguments),
        Some("--help" | "-h" | "help") => say(&mut std::io::stdout(), HELP, 0),
        Some("") => say(&mut std::io::stderr(), HELP, WRONG_USE),
        _ => wrong_use(&format!(
            "`bench` has no command `{}`; there are `crypto`, `handshake`, `load`, `bulk`, `find`, `compare`, \
             `workload`, `report`, `agent` and `null`",
            command.to_string_lossy()
        )),
    }
}

/// Does what a command's options say, unless its help was asked for, or they are wrong.
fn with_options<T>(
    read: Result<Option<T>, lexopt::Error>,
    help: &[&str],
    carry_out: impl FnOnce(T) -> ExitCode,
) -> ExitCode {
    match read {
        Ok(Some(options)) => carry_out(options),
        Ok(None) => say(&mut std::io::stdout(), &help.concat(), 0),
        Err(error) => wrong_options(&help.concat(), &error),
    }
}

/// Nothing was measured, for this reason.
fn refuse_words(words: &str, help: Option<&str>) -> ExitCode {
    let help = help.map(|help| format!("help: {help}\n")).unwrap_or_default();
    say(&mut std::io::stderr(), &format!("error: {words}\n{help}"), WRONG_USE)
}
