//! `cargo xtask check`: everything that must be green, with the tests counted at the end.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use lexopt::Arg;

use crate::conformance;
use crate::console;
use crate::differential;
use crate::failure::{Because, Failure, Result};
use crate::interop;
use crate::packages::{self, Tool};
use crate::project::{Project, succeed, written};
use crate::tidy;

/// What the tests call beyond cargo.
const TOOLS: &[Tool] = &[
    Tool { program: "curl", package: "curl" },
    Tool { program: "openssl", package: "openssl" },
    Tool { program: "nginx", package: "nginx" },
    // No program, but a file that nginx loads.
    Tool { program: "/usr/lib/nginx/modules/ngx_stream_module.so", package: "libnginx-mod-stream" },
    Tool { program: "haproxy", package: "haproxy" },
    Tool { program: "chromium", package: "chromium" },
    Tool { program: "softhsm2-util", package: "softhsm2" },
    Tool { program: "dpkg-shlibdeps", package: "dpkg-dev" },
    Tool { program: "strip", package: "binutils" },
];

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Each,
    /// With what takes too long for each check.
    Nightly,
}

impl Extent {
    pub(crate) fn read(mut arguments: lexopt::Parser) -> Result<Self> {
        let mut extent = Self::Each;
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("nightly") => extent = Self::Nightly,
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(extent)
    }
}

/// Runs every step even when an earlier one failed, so that one run shows all there is to mend.
pub(crate) fn run(project: &Project, extent: Extent) -> Result<()> {
    let mut report = Report { started: Instant::now(), failures: Vec::new() };
    report.step("programs that tests call", || packages::ensure(TOOLS));
    report.step("clients and servers of others", || interop::ensure(project));
    report.step("cargo xtask console --check", || console::check(project));
    report.step("cargo fmt --check", || succeed(project.cargo().args(["fmt", "--all", "--check"])));
    report.step("cargo clippy", || {
        let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        succeed(project.cargo().args(words))
    });
    report.step("cargo check of fuzz/", || fuzz_targets(project));
    report.step("cargo xtask tidy", || tidy::run(project));
    report.step("cargo doc", || {
        let words = ["doc", "--no-deps", "--workspace", "--quiet"];
        succeed(project.cargo().args(words).env("RUSTDOCFLAGS", "-D warnings"))
    });
    // The end-to-end tests start this binary; cargo does not build another package's for them.
    report.step("cargo build", || succeed(project.cargo().args(["build", "--package", "pointsman"])));
    if pointsman_e2e::SPEAKS_HTTP2 {
        report.step("cargo xtask conformance --short", || {
            conformance::run(project, &conformance::Options::of_check())
        });
    }
    if extent == Extent::Nightly {
        report.step("cargo xtask differential", || {
            differential::run(project, &differential::Options::of_check())
        });
    }
    let mut tally = Tally::default();
    report.step("cargo test", || {
        let words = ["test", "--workspace", "--no-fail-fast"];
        tally = count(project.cargo().args(words))?;
        if tally.failed == 0 { Ok(()) } else { Err(Failure::new(format!("{} failed", tally.failed))) }
    });
    report.finish(tally)
}

/// What pictures of the console need.
pub(crate) fn prepare_browser(project: &Project) -> Result<()> {
    packages::ensure(&TOOLS.iter().copied().filter(|tool| tool.program == "chromium").collect::<Vec<_>>())?;
    interop::ensure(project)
}

/// What cargo-fuzz runs is a workspace of its own, which nothing else reads. libFuzzer itself is not built for it:
/// to check types its name is enough, and no C++ compiler is asked for.
///
/// Its crates are few more than the switch's own. Where they cannot be had it is skipped, except where `CI` is set.
fn fuzz_targets(project: &Project) -> Result<()> {
    let cargo = |words: &[&str]| {
        let mut cargo = project.cargo();
        cargo.args(words).args(["--manifest-path", "fuzz/Cargo.toml"]);
        cargo.env("CUSTOM_LIBFUZZER_PATH", "/usr/lib/libFuzzer.a");
        cargo
    };
    let outcome = succeed(cargo(&["check", "--quiet"]).arg("--target-dir").arg(project.target()));
    if outcome.is_ok() || std::env::var_os("CI").is_some() {
        return outcome;
    }
    let is_sound = written(&mut cargo(&["metadata", "--format-version=1", "--no-deps", "--offline"])).is_ok();
    match written(&mut cargo(&["fetch"])) {
        Err(failure) if is_sound => {
            println!("skipped: the crates of fuzz/ cannot be had: {failure}");
            Ok(())
        }
        _ => outcome,
    }
}

struct Report {
    started: Instant,
    failures: Vec<String>,
}

impl Report {
    fn step(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        println!("== {name}");
        let started = Instant::now();
        let outcome = work();
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => println!("== {name}: fine after {seconds:.1} s"),
            Err(failure) => {
                println!("== {name}: FAILED after {seconds:.1} s");
                self.failures.push(format!("{name}: {failure}"));
            }
        }
    }

    /// The last line counts tests; a step other than the tests that failed counts as one. It always comes.
    fn finish(self, tally: Tally) -> Result<()> {
        println!("== {:.1} s in all", self.started.elapsed().as_secs_f64());
        for failure in &self.failures {
            println!("failed: {failure}");
        }
        println!("{} passed, {} failed", tally.passed, self.failed(tally));
        if self.failures.is_empty() { Ok(()) } else { Err(Failure::new("check failed")) }
    }

    fn failed(&self, tally: Tally) -> usize {
        let without_tests = self.failures.iter().filter(|failure| !failure.starts_with("cargo test")).count();
        let tests_did_not_end = self.failures.len() > without_tests && tally.failed == 0;
        tally.failed + without_tests + usize::from(tests_did_not_end)
    }
}

/// What libtest counted, over all test binaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
}

impl Tally {
    /// Adds the counts of a line such as `test result: ok. 3 passed; 0 failed; 0 ignored; …`.
    fn read(&mut self, line: &str) {
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split(';') {
            match count.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse::<usize>().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse::<usize>().unwrap_or(0),
                _ => {}
            }
        }
    }
}

/// Runs the tests, passing their output through, and counts.
fn count(command: &mut Command) -> Result<Tally> {
    let mut child = command.stdout(Stdio::piped()).spawn().because(|| "cannot run the tests".into())?;
    let mut tally = Tally::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.because(|| "cannot read the tests' output".into())?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            tally.read(&line);
        }
    }
    let status = child.wait().because(|| "cannot wait for the tests".into())?;
    // A binary that does not compile, or dies, leaves no result line behind.
    if !status.success() && tally.failed == 0 {
        tally.failed = 1;
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nightly_runs_more() {
        let read = |words: &[&str]| Extent::read(lexopt::Parser::from_args(words)).ok();
        assert_eq!(read(&[]), Some(Extent::Each));
        assert_eq!(read(&["--nightly"]), Some(Extent::Nightly));
        assert_eq!(read(&["--weekly"]), None);
    }

    #[test]
    fn results_are_summed() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "the test result: ok. 100 passed; 0 failed",
        ] {
            tally.read(line);
        }
        assert_eq!(tally, Tally { passed: 13, failed: 2 });
    }

    #[test]
    fn a_step_that_fails_counts_and_stops_no_other() {
        let mut report = Report { started: Instant::now(), failures: Vec::new() };
        let tally = Tally { passed: 7, failed: 2 };
        assert_eq!(report.failed(Tally { failed: 0, ..tally }), 0);
        report.step("programs that tests call", || Err(Failure::new("missing: nginx")));
        assert_eq!(report.failed(Tally { failed: 0, ..tally }), 1);
        let mut ran = false;
        report.step("cargo test", || {
            ran = true;
            Err(Failure::new("2 failed"))
        });
        assert!(ran);
        assert_eq!(report.failed(tally), 3);
        // Tests that could not even be built count as one.
        assert_eq!(report.failed(Tally { failed: 0, ..tally }), 2);
        assert!(report.finish(tally).is_err());
    }

    #[test]
    fn tests_that_die_count_as_failed() {
        let tally = count(Command::new("sh").args(["-c", "exit 101"])).expect("a shell");
        assert_eq!(tally, Tally { passed: 0, failed: 1 });
    }
}
