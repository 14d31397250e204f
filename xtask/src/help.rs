//! What the commands are, and what each of them takes.

use std::fmt::Write;

/// A command of `cargo xtask`, as its help shows it.
struct Command {
    /// Its name and what may stand behind it.
    usage: &'static str,
    /// What it does, in a line.
    what: &'static str,
    /// Its arguments with their meaning, defaults included.
    arguments: &'static [(&'static str, &'static str)],
    /// What else is to be known.
    more: &'static str,
}

const NO_BUILD: (&str, &str) = ("--no-build", "take the release binaries that are there");

const COMMANDS: &[Command] = &[
    Command {
        usage: "demo [ARGUMENT…]",
        what: "build the switch and show it at work",
        arguments: &[("ARGUMENT", "for `pointsman demo`: with `--once` it ends behind its requests")],
        more: "The first build takes some minutes. The switch is then target/release/pointsman.",
    },
    Command {
        usage: "check [--nightly]",
        what: "everything that must be green, tests last",
        arguments: &[("--nightly", "also what takes too long for each check: a short differential run")],
        more: "Format, clippy, the fuzz targets' types, tidy, documentation, build, all tests. It goes on behind a\n\
               step that failed, and ends with `N passed, N failed`.",
    },
    Command {
        usage: "tidy",
        what: "the rules about the code itself",
        arguments: &[],
        more: "Lengths of files and functions, names, links, reasons of dependencies, ARCHITECTURE.md, README.md.",
    },
    Command {
        usage: "console [--check]",
        what: "build the console and keep what was built, for the switch to have in it",
        arguments: &[("--check", "keep nothing, and fail where it is not what is kept")],
        more: "Needs Node and npm. Its sources are in crates/pointsman-admin/console, what is kept in dist there.",
    },
    Command {
        usage: "screenshots [--check]",
        what: "the console's pictures in docs/guide, taken again",
        arguments: &[("--check", "keep none, and fail where one differs by more than it may")],
        more: "Needs Chromium, starts the switch with servers and traffic of its own, and says how much of each picture is new.\n\
               What differs too much is left in the temporary folder.",
    },
    Command {
        usage: "endure [NAME]",
        what: "crowds, large bodies, shortages, reloads: each fault with its figure and bound",
        arguments: &[("NAME", "a module, a test or a part of `module::test`; without it: all of them")],
        more: "An unknown NAME is answered with those there are.",
    },
    Command {
        usage: "storm [NAME]",
        what: "servers killed, stalled, slowed and restarted under load; rules and the binary replaced",
        arguments: &[("NAME", "a module, a test or a part of `module::test`; without it: all of them")],
        more: "POINTSMAN_STORM_SEED=N makes other choices. An unknown NAME is answered with those there are.",
    },
    Command {
        usage: "package deb [--no-build]",
        what: "a Debian package of the release binary, in target/package",
        arguments: &[NO_BUILD],
        more: "What it holds stands in packaging/, beside the files for a container.",
    },
    Command {
        usage: "fuzz [--runs N] [--seed N] [TARGET…]",
        what: "libFuzzer over each target, with a line for each",
        arguments: &[
            ("--runs N", "inputs for each target, from 1; without it 1000000"),
            ("--seed N", "where libFuzzer's choices start, from 1; without it 1"),
            ("TARGET", "one of fuzz/fuzz_targets; without it: all of them"),
        ],
        more: "It needs cargo-fuzz and a nightly toolchain.",
    },
    Command {
        usage: "differential [--mutants N] [--seed N] [--replay FILE]… [--release] [--no-build] [ORIGIN…]",
        what: "mutated requests through refusing rules to servers of others, which say what they read",
        arguments: &[
            ("--mutants N", "how many requests, from 1; without it 100000"),
            ("--seed N", "where the choices start; without it 1"),
            ("--replay FILE", "send the request of a vector again, and nothing else"),
            ("--release", "take the release binary in place of the debug one"),
            ("--no-build", "take the debug binary that is there"),
            ("ORIGIN", "go, nginx, node, python, flask or php; without it: all of them"),
        ],
        more: "CONTRIBUTING.md says what counts as a failure. Vectors of failures are left in target/differential.",
    },
    Command {
        usage: "soak [--minutes N] [--no-build]",
        what: "mixed load: memory stays flat, no answer is wrong, the log tells all",
        arguments: &[("--minutes N", "how long, from 0.5 to 1440; without it 10"), NO_BUILD],
        more: "",
    },
    Command {
        usage: "bench-peers [--seconds N] [--rounds N] [--scenario NAME]… [--rules-before N] [--alone] [--strict] [--no-build]",
        what: "CPU time per request and memory per idle connection beside nginx and HAProxy",
        arguments: &[
            ("--seconds N", "how long each measurement takes, from 1 to 600; without it 4"),
            ("--rounds N", "how often each is made, from 1 to 100; without it 5"),
            ("--scenario NAME", "only these; an unknown one is answered with those there are"),
            ("--rules-before N", "ours has so many more rules before each scenario's; without it none"),
            ("--alone", "each proxy has its core to itself"),
            ("--strict", "a missed bar is a failure"),
            NO_BUILD,
        ],
        more: "docs/guide/benchmarks.md says what is measured, and how.",
    },
    Command {
        usage: "generators [--seconds N] [--rounds N] [--of NAME]… [--server NAME] [--binary FILE] [--strict] [--no-build]",
        what: "CPU time of `pointsman bench load` beside wrk, h2load and openssl s_time",
        arguments: &[
            ("--seconds N", "how long each turn takes, from 1 to 600; without it 4"),
            ("--rounds N", "how many turns each has, from 1 to 100; without it 5"),
            ("--of NAME", "only these contests; an unknown one is answered with those there are"),
            ("--server NAME", "nginx, or null for that of the bench; without it nginx"),
            ("--binary FILE", "measured in place of the release build"),
            ("--strict", "a missed bar is a failure"),
            NO_BUILD,
        ],
        more: "docs/guide/benchmarks.md says what is measured, and how.",
    },
    Command {
        usage: "saturation [--trial TIME] [--rounds N] [--share PERCENT] [--of NAME]… [--server NAME]… [--seed N] [--output FOLDER] [--binary FILE] [--no-build]",
        what: "nginx, HAProxy, Apache and the switch by `pointsman bench find`: full handshakes, and kept connections",
        arguments: &[
            (
                "--trial TIME",
                "how long a trial of handshakes is measured, from 200ms to 60s; without it 800ms",
            ),
            ("--rounds N", "how often each search is made, from 1 to 100; without it 3"),
            (
                "--share PERCENT",
                "what a server gets of its core, from 5 to 100; without it 40 for handshakes, 25 for kept connections",
            ),
            ("--of NAME", "only these modes, handshake or keep"),
            ("--server NAME", "only these; an unknown one is answered with those there are"),
            ("--seed N", "what the order of searches and their draws begin with; without it 1"),
            ("--output FOLDER", "where saturation.html and saturation.json go; without it target/saturation"),
            ("--binary FILE", "measured, and measuring, in place of the release build"),
            NO_BUILD,
        ],
        more: "docs/guide/benchmarks.md says what is measured, and how.",
    },
    Command {
        usage: "conformance [--of NAME] [--short] [--no-build]",
        what: "h2spec before the switch: cases passed, failed and skipped",
        arguments: &[
            ("--of NAME", "pointsman, or nginx in its place; without it pointsman"),
            ("--short", "one server behind, and only what an RFC demands, as `check` has it"),
            ("--no-build", "take the debug binary that is there"),
        ],
        more: "docs/guide/conformance.md says what is run, and what was looked at and is not.",
    },
];

/// All commands.
pub(crate) fn overview() -> String {
    let mut text = String::new();
    for Command { usage, what, .. } in COMMANDS {
        // Memory takes all of it.
        let (Ok(()) | Err(_)) = match usage.chars().count() {
            ..=17 => writeln!(text, "cargo xtask {usage:17}  {what}"),
            _ => writeln!(text, "cargo xtask {usage}\n{:31}{what}", ""),
        };
    }
    text + "cargo xtask COMMAND --help     more of a command\n"
}

/// One command with its arguments; `None` where there is none of that name.
pub(crate) fn of(name: &str) -> Option<String> {
    let command = COMMANDS.iter().find(|command| command.name() == name)?;
    let Command { usage, what, arguments, more } = command;
    let mut text = format!("cargo xtask {usage}\n    {what}\n");
    let width = arguments.iter().map(|(argument, _)| argument.len()).max().unwrap_or_default();
    for (argument, meaning) in *arguments {
        let (Ok(()) | Err(_)) = writeln!(text, "    {argument:width$}  {meaning}");
    }
    if !more.is_empty() {
        let (Ok(()) | Err(_)) = writeln!(text, "\n{more}");
    }
    Some(text)
}

impl Command {
    fn name(&self) -> &'static str {
        self.usage.split(' ').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_argument_of_a_usage_has_a_meaning_and_the_other_way_round() {
        for command in COMMANDS {
            let named = |text: &str| -> Vec<String> {
                let words = text.split(['[', ']', '…']).map(str::trim).filter(|word| !word.is_empty());
                words.map(str::to_owned).collect()
            };
            let used = &named(command.usage)[1..];
            let explained: Vec<_> = command.arguments.iter().map(|(argument, _)| *argument).collect();
            assert_eq!(used, explained, "{}", command.usage);
        }
    }

    #[test]
    fn every_command_of_the_overview_has_more() {
        let overview = overview();
        let names = overview.lines().filter_map(|line| line.strip_prefix("cargo xtask ")?.split(' ').next());
        for name in names.filter(|name| *name != "COMMAND") {
            assert!(of(name).is_some_and(|text| text.contains(name)), "{name}");
        }
        assert_eq!(of("endur"), None);
    }
}
