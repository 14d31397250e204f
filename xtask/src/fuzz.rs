//! `cargo xtask fuzz`: cargo-fuzz over each target, from the project's own vectors, with a line for each.
//!
//! What it finds to be new goes into the target folder; only what fails is kept, in `fuzz/corpus`, by hand.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use lexopt::{Arg, ValueExt};

use crate::failure::{Because, Failure, Result};
use crate::packages::locate;
use crate::project::{Project, succeed};

/// What to run, for how many inputs, and from where libFuzzer's choices start.
pub(crate) struct Options {
    runs: u64,
    seed: u32,
    targets: Vec<String>,
}

impl Options {
    pub(crate) fn read(mut arguments: lexopt::Parser) -> Result<Self> {
        let mut options = Self { runs: 1_000_000, seed: 1, targets: Vec::new() };
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("runs") => options.runs = arguments.value()?.parse()?,
                Arg::Long("seed") => options.seed = arguments.value()?.parse()?,
                Arg::Value(target) => options.targets.push(target.string()?),
                other => return Err(other.unexpected().into()),
            }
        }
        // libFuzzer takes no inputs for a success, and draws a seed of its own for 0.
        match (options.runs, options.seed) {
            (0, _) => Err(Failure::usage("`--runs` goes from 1")),
            (_, 0) => Err(Failure::usage("`--seed` goes from 1")),
            _ => Ok(options),
        }
    }
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    // Cargo finds its subcommands on the path and beside itself.
    let cargo = std::env::var_os("CARGO_HOME").map(|home| Path::new(&home).join("bin/cargo-fuzz"));
    if locate("cargo-fuzz").is_none() && !cargo.is_some_and(|file| file.is_file()) {
        let help = "cargo install cargo-fuzz --locked, and rustup toolchain install nightly";
        return Err(Failure::new(format!("missing: cargo-fuzz\nhelp: {help}")));
    }
    let known = known(project)?;
    let chosen = if options.targets.is_empty() { &known } else { &options.targets };
    if let Some(unknown) = chosen.iter().find(|target| !known.contains(target)) {
        return Err(Failure::usage(format!(
            "no such target: `{unknown}`\nhelp: there are {}",
            known.join(", ")
        )));
    }
    let mut failed = Vec::new();
    for target in chosen {
        let started = Instant::now();
        let outcome = fuzz(project, target, options);
        note(project, &line_of(target, options, started.elapsed().as_secs_f64(), &outcome))?;
        match outcome {
            Ok(inputs) => println!("{target}: {inputs} inputs, nothing wrong"),
            Err(failure) => {
                println!("{target}: FAILED: {failure}");
                failed.push(target.as_str());
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(format!("failed: {}", failed.join(", ")))) }
}

/// The targets by the files they stand in.
fn known(project: &Project) -> Result<Vec<String>> {
    let folder = project.root().join("fuzz/fuzz_targets");
    let doing = || format!("cannot read `{}`", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).because(doing)? {
        let path = entry.because(doing)?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// A line for `target/fuzz/runs`, in the form of those that the tests of generated inputs leave there.
fn line_of(target: &str, options: &Options, seconds: f64, outcome: &Result<u64>) -> String {
    let (inputs, result) = match outcome {
        Ok(inputs) => (*inputs, "fine"),
        Err(_) => (options.runs, "FAILED"),
    };
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seed = options.seed;
    format!(
        "unix={unix} by=libfuzzer target={target} inputs={inputs} seed={seed} seconds={seconds:.1} result={result}\n"
    )
}

/// Keeps a line about a run behind those of the runs before it.
fn note(project: &Project, line: &str) -> Result<()> {
    let path = project.target().join("fuzz/runs");
    let doing = || format!("cannot write `{}`", path.display());
    let mut file = std::fs::File::options().append(true).create(true).open(&path).because(doing)?;
    file.write_all(line.as_bytes()).because(doing)
}

/// Runs one target; returns how many inputs libFuzzer says it tried.
fn fuzz(project: &Project, target: &str, options: &Options) -> Result<u64> {
    let runs = options.runs;
    let folder = project.target().join("fuzz").join(target);
    let found = folder.join("found");
    std::fs::create_dir_all(&found).because(|| format!("cannot make `{}`", found.display()))?;
    let mut seeds = project.cargo();
    seeds.args(["run", "--quiet", "--package", "pointsman-fuzzing", "--example", "write_seeds", "--"]);
    succeed(seeds.arg(target).arg(&folder))?;
    let log = folder.join("log");
    let output = std::fs::File::create(&log).because(|| format!("cannot write `{}`", log.display()))?;
    let errors = output.try_clone().because(|| format!("cannot write `{}`", log.display()))?;
    // The first folder is where new inputs go.
    let corpus = project.root().join("fuzz/corpus").join(target);
    let dictionary = OsString::from(format!("-dict={}", folder.join("tokens").display()));
    let mut command = Command::new("cargo");
    command.current_dir(project.root()).args(["+nightly", "fuzz", "run", "--target-dir"]);
    // Cargo names itself and its toolchain to what it runs; the other toolchain must not hear of them.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command.arg(project.target().join("fuzz/build")).arg(target).args([
        &found,
        &folder.join("seeds"),
        &corpus,
    ]);
    command.arg("--").arg(format!("-runs={runs}")).arg(format!("-seed={}", options.seed)).arg(dictionary);
    command.args(["-max_len=2048", "-timeout=25", "-print_final_stats=1"]).stdout(output).stderr(errors);
    println!("{target}: {runs} inputs, see {}", log.display());
    let outcome = succeed(&mut command);
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    match outcome.is_ok().then(|| executed(&text)).flatten() {
        Some(inputs) if inputs >= runs => Ok(inputs),
        _ => Err(Failure::new(last_lines(&text))),
    }
}

/// `stat::number_of_executed_units: 1000000`
fn executed(text: &str) -> Option<u64> {
    let count = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?;
    count.trim().parse().ok()
}

fn last_lines(text: &str) -> String {
    const LINES: usize = 30;
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Options> {
        Options::read(lexopt::Parser::from_args(words))
    }

    #[test]
    fn a_run_of_no_inputs_is_refused() {
        let options = read(&["--runs", "7", "--seed", "3", "path"]).expect("as it is meant");
        assert_eq!(
            (options.runs, options.seed, options.targets.as_slice()),
            (7, 3, &["path".to_owned()][..])
        );
        for words in [["--runs", "0"], ["--seed", "0"], ["--runs", "many"], ["--seed", "-1"]] {
            assert!(read(&words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_run_leaves_a_line() {
        let options = read(&["--runs", "7"]).expect("as it is meant");
        let line = |outcome| line_of("path", &options, 1.25, &outcome);
        let fine = " by=libfuzzer target=path inputs=9 seed=1 seconds=1.2 result=fine\n";
        assert!(line(Ok(9)).starts_with("unix=") && line(Ok(9)).ends_with(fine), "{}", line(Ok(9)));
        let failed = " by=libfuzzer target=path inputs=7 seed=1 seconds=1.2 result=FAILED\n";
        assert!(line(Err(Failure::new("a crash"))).ends_with(failed));
    }

    #[test]
    fn what_libfuzzer_counts_is_read() {
        let text =
            "Done 5 runs in 0 second(s)\nstat::number_of_executed_units: 1000001\nstat::peak_rss_mb: 5\n";
        assert_eq!(executed(text), Some(1_000_001));
        assert_eq!(executed("==1== ERROR: libFuzzer: deadly signal"), None);
        assert_eq!(last_lines(&"x\n".repeat(99)).lines().count(), 30);
    }
}
