//! The command line: which command, and its exit status.

mod admin_client;
mod ask;
mod asking;
mod bench;
mod check;
mod demo;
mod diff;
mod dry_run;
mod explain;
mod format;
mod http_request;
mod percent;
mod reload;
mod replay;
mod run;
mod test;
mod top;
mod units;
mod usage;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use pointsman_rules::Suggestions;

/// Fewer cycles and less fragmentation than the system's allocator, under every thread alike.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Wrong use, or input that cannot be read.
pub(crate) const WRONG_USE: u8 = 2;

const HELP: &str = "\
pointsman, a secure content switch

    pointsman run [--config FILE]        start the switch (pointsman.toml)
    pointsman check [--json] [--fail-on LEVEL] FILE...
                                         findings in configurations (.toml) and rules
    pointsman fmt [--check] FILE...      the one form of rules
    pointsman explain RULES [REQUEST]    what the rules say of a raw request or a connection, rule by rule
    pointsman ask RULES QUESTION         whether a request gets somewhere: can <condition> reach <target>?
    pointsman test RULES [TESTS...]      the tests of rules, and which rules they take
    pointsman replay LOG NEW [--old OLD] which recorded requests new rules decide otherwise
    pointsman diff OLD NEW               which requests new rules decide otherwise, whatever requests there are
    pointsman reload [--dry-run]         the running switch reads its files again, or what that would change
    pointsman dry-run [RULES]            what new rules would decide otherwise of the requests that come, while others serve
    pointsman top [--once] [--json]      what the running switch does now: rates, times, rules, servers
    pointsman bench COMMAND              a test bench for any web server: load, the most it can do, which of two is faster,
                                         handshakes, primitives of TLS, workloads, reports (`bench --help`)
    pointsman demo                       five servers, a TLS switch, a few requests to watch
    pointsman COMMAND --help             more of a command
    pointsman --version

exit status: 0 fine, 1 findings or differences, 2 wrong use or unreadable input, 3 cannot be told
";

fn main() -> ExitCode {
    // Where the system refuses, its limits end the process as they would any other.
    let (Ok(()) | Err(_)) = pointsman_net::survive_limits();
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<OsString> = arguments.collect();
    match command.to_str() {
        Some("run") => run::run(rest),
        Some("check") => check::check(rest),
        Some("fmt") => format::format(rest),
        Some("explain") => explain::explain(rest),
        Some("ask") => ask::ask(rest),
        Some("test") => test::test(rest),
        Some("replay") => replay::replay(rest),
        Some("diff") => diff::diff(rest),
        Some("reload") => reload::reload(rest),
        Some("dry-run") => dry_run::dry_run(rest),
        Some("top") => top::top(rest),
        Some("bench") => bench::bench(rest),
        Some("demo") => demo::demo(rest),
        Some("--help" | "-h" | "help") => say(&mut std::io::stdout(), HELP, 0),
        Some("--version" | "-V") => {
            let version = concat!("pointsman ", env!("CARGO_PKG_VERSION"), "\n");
            say(&mut std::io::stdout(), version, 0)
        }
        Some("") => say(&mut std::io::stderr(), HELP, WRONG_USE),
        _ => usage::wrong_use(&no_command(&command.to_string_lossy())),
    }
}

fn no_command(word: &str) -> String {
    const COMMANDS: [&str; 13] = [
        "run", "check", "fmt", "explain", "ask", "test", "replay", "diff", "reload", "dry-run", "top",
        "bench", "demo",
    ];
    const OTHER_NAMES: [(&str, &str); 10] = [
        ("format", "fmt"),
        ("validate", "check"),
        ("lint", "check"),
        ("start", "run"),
        ("serve", "run"),
        ("compare", "diff"),
        ("trace", "explain"),
        ("why", "explain"),
        ("stats", "top"),
        ("status", "top"),
    ];
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == word).map(|(_, command)| *command);
    match other.or_else(|| Suggestions::default().nearest(word, COMMANDS)) {
        Some(command) => format!("no command `{word}`; did you mean `{command}`?"),
        None => format!("no command `{word}`"),
    }
}

fn say(to: &mut impl Write, text: &str, status: u8) -> ExitCode {
    // A reader that has gone away needs no answer, and there is nobody else to tell.
    match to.write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(status),
        Err(_) => ExitCode::from(status.max(1)),
    }
}
