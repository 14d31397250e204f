//! `cargo xtask differential`: mutated requests through the switch to servers of others, which say what they read.
//!
//! A request that reached a server though the server read a value that a refusing rule should have met is a failure.

mod bytes;
mod campaign;
mod client;
mod dice;
mod draft;
mod findings;
mod mutations;
mod readers;
mod reading;
mod request;
mod rules;
mod site;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lexopt::{Arg, ValueExt};

use crate::failure::{Because, Failure, Result};
use crate::packages::{self, Tool};
use crate::project::{Project, succeed};
use campaign::{Counts, Extent, Outcome, Results};
use client::Connections;
use dice::Dice;
use findings::Vector;
use readers::{Kind, Reader};
use rules::RULES;
use site::Site;

const TOOLS: &[Tool] = &[Tool { program: "setpriv", package: "util-linux" }];

/// What `check --nightly` runs of it.
const NIGHTLY_MUTANTS: u64 = 50_000;
const NIGHTLY_MAX: Duration = Duration::from_secs(300);
/// From so many requests straight to a server on, each rule must have been met there.
const DIRECT_MIN: u64 = 40;
/// The same of a guard: few mutations have another value than it asks for.
const DIRECT_MIN_OF_GUARD: u64 = 1000;

/// What is run.
pub(crate) struct Options {
    extent: Extent,
    kinds: Vec<Kind>,
    binary: Binary,
    replay: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    /// With the assertions of a debug build: a broken invariant ends it.
    Debug,
    Release,
    /// The debug binary that is there.
    Built,
}

impl Options {
    pub(crate) fn read(mut arguments: lexopt::Parser) -> Result<Self> {
        let mut options = Self {
            extent: Extent { mutants: 100_000, seed: 1, time_max: None },
            kinds: Vec::new(),
            binary: Binary::Debug,
            replay: Vec::new(),
        };
        let mut names = Vec::new();
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("mutants") => options.extent.mutants = arguments.value()?.parse()?,
                Arg::Long("seed") => options.extent.seed = arguments.value()?.parse()?,
                Arg::Long("release") => options.binary = Binary::Release,
                Arg::Long("no-build") => options.binary = Binary::Built,
                Arg::Long("replay") => options.replay.push(arguments.value()?.into()),
                Arg::Value(name) => names.push(name.string()?),
                other => return Err(other.unexpected().into()),
            }
        }
        if options.extent.mutants == 0 {
            return Err(Failure::usage("`--mutants` goes from 1"));
        }
        options.kinds = readers::chosen(&names)?;
        Ok(options)
    }

    /// What `cargo xtask check --nightly` runs: the switch is built by then.
    pub(crate) fn of_check() -> Self {
        let extent = Extent { mutants: NIGHTLY_MUTANTS, seed: 1, time_max: Some(NIGHTLY_MAX) };
        Self { extent, kinds: readers::KINDS.to_vec(), binary: Binary::Built, replay: Vec::new() }
    }
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    packages::ensure(TOOLS)?;
    readers::install(project, &options.kinds)?;
    let binary = switch(project, options.binary)?;
    let folder = project.target().join("differential");
    // What an earlier run left behind says nothing about this one.
    if folder.exists() && options.replay.is_empty() {
        std::fs::remove_dir_all(&folder).because(|| format!("cannot empty `{}`", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).because(|| format!("cannot make `{}`", folder.display()))?;
    let readers: Vec<Reader> =
        options.kinds.iter().map(|kind| Reader::start(project, *kind, &folder)).collect::<Result<_>>()?;
    let mut site = Site::start(&binary, readers, &folder)?;
    if !options.replay.is_empty() {
        return replay(&site, &options.replay);
    }
    plain_requests(&site)?;
    let wrong = kept_vectors(project, &site)?;
    wrong.iter().for_each(|line| println!("kept vector {line}"));
    let started = Instant::now();
    let results = campaign::run(&site, options.extent);
    site.switch.expect_running()?;
    report(&results, started.elapsed(), &folder)?;
    match wrong.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} vectors of testdata/differential went wrong"))),
    }
}

fn switch(project: &Project, binary: Binary) -> Result<PathBuf> {
    if binary == Binary::Release {
        project.build_release("pointsman")?;
        return project.release_binary("pointsman");
    }
    if binary == Binary::Debug {
        succeed(project.cargo().args(["build", "--package", "pointsman"]))?;
    }
    Ok(project.target().join("debug/pointsman"))
}

/// The plainest request of each rule: a server reads what is forbidden, and the switch refuses it. A guard passes it.
fn plain_requests(site: &Site) -> Result<()> {
    let mut connections = Connections::default();
    let mut wrong = Vec::new();
    for (rule, kind) in site::pairs(site.readers.iter().map(|reader| reader.kind)) {
        let (rule, Some(port)) = (&RULES[rule], site.port(rule, kind)) else { continue };
        let Some(reader) = site.readers.iter().find(|reader| reader.kind == kind) else { continue };
        let request = rule.draft(&mut Dice::new(1, 0)).request().bytes();
        let mut send = |port| campaign::sent_bytes(&mut connections, port, &request, false, rule, reader);
        let (direct, through) = (send(reader.port), send(port));
        let is_met = rule.is_positive() || matches!(rule.name, "all" | "strip");
        let is_direct_right = matches!(&direct, Ok(Outcome::Read(found)) if found.is_some() == is_met);
        let is_through_right = match &through {
            Ok(Outcome::Refused) => is_met && rule.name != "strip",
            Ok(Outcome::Read(found)) => found.is_none() && (!is_met || rule.name == "strip"),
            _ => false,
        };
        if !is_direct_right || !is_through_right {
            wrong.push(format!(
                "{} before {}: straight {direct:?}, through the switch {through:?}",
                rule.name,
                kind.name()
            ));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("plain requests went wrong:\n{}", wrong.join("\n"))))
    }
}

/// Sends vectors again and prints what became of each.
fn replay(site: &Site, files: &[PathBuf]) -> Result<()> {
    let mut failed = 0;
    for file in files {
        let Some((through, direct)) = sent_again(site, file)? else {
            return Err(Failure::usage(format!("`{}`: its rule or its origin does not run", file.display())));
        };
        println!("{}: {through:?}; straight to the origin: {direct:?}", file.display());
        failed += usize::from(!matches!(&through, Ok(outcome) if !matches!(outcome, Outcome::Read(Some(_)))));
    }
    if failed == 0 {
        Ok(())
    } else {
        Err(Failure::new(format!("{failed} of {} vectors still fail", files.len())))
    }
}

/// What is wrong with the vectors in `testdata/differential`: known spellings that pass, or that show nothing.
fn kept_vectors(project: &Project, site: &Site) -> Result<Vec<String>> {
    let folder = project.root().join("testdata/differential");
    let doing = || format!("cannot read `{}`", folder.display());
    let entries = std::fs::read_dir(&folder).because(doing)?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()
        .because(doing)?;
    files.sort();
    let mut wrong = Vec::new();
    for file in files {
        // Other origins than these may have been asked for.
        let Some((through, direct)) = sent_again(site, &file)? else { continue };
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !matches!(direct, Ok(Outcome::Read(Some(_)))) {
            wrong.push(format!("{name}: the origin does not read the value any more: {direct:?}"));
        }
        if matches!(through, Err(_) | Ok(Outcome::Read(Some(_)))) {
            wrong.push(format!("{name}: {through:?}"));
        }
    }
    Ok(wrong)
}

type Sent = std::io::Result<Outcome>;

/// The outcome through the switch and straight; `None` where the pair does not run.
fn sent_again(site: &Site, file: &Path) -> Result<Option<(Sent, Sent)>> {
    let vector = Vector::read(file)?;
    let rule = RULES.iter().position(|rule| rule.name == vector.rule);
    let reader = site.readers.iter().find(|reader| reader.kind.name() == vector.reader);
    let (Some(rule), Some(reader)) = (rule, reader) else { return Ok(None) };
    let Some(port) = site.port(rule, reader.kind) else { return Ok(None) };
    let mut connections = Connections::default();
    let Vector { request, has_own_connection, .. } = &vector;
    let mut send = |port| {
        campaign::sent_bytes(&mut connections, port, request, *has_own_connection, &RULES[rule], reader)
    };
    Ok(Some((send(port), send(reader.port))))
}

fn report(results: &Results, took: Duration, folder: &Path) -> Result<()> {
    let text = results
        .findings
        .text(|name| RULES.iter().find(|rule| rule.name == name).map_or("", |rule| rule.condition));
    let files = results.findings.keep(folder)?;
    std::fs::write(folder.join("findings.md"), &text).because(|| "cannot write the findings".into())?;
    print!("{}{text}", table(results));
    for (error, times) in &results.errors {
        println!("{times} times: {error}");
    }
    let seconds = took.as_secs_f64();
    // A count of mutants is far below 2^52.
    #[expect(clippy::cast_precision_loss, reason = "a count of mutants is far below 2^52")]
    let rate = results.mutants as f64 / seconds.max(0.001);
    println!(
        "{} mutants in {seconds:.0} s ({rate:.0}/s), {} groups of findings",
        results.mutants,
        results.findings.len()
    );
    let blind = blind(results);
    match (results.findings.len(), blind.as_slice()) {
        (0, []) => Ok(()),
        (0, blind) => {
            Err(Failure::new(format!("no forbidden value was ever read straight: {}", blind.join(", "))))
        }
        (groups, _) => Err(Failure::new(format!(
            "{groups} groups of findings, {} vectors in {}",
            files.len(),
            folder.display()
        ))),
    }
}

/// Pairs whose server never read a forbidden value of a request that went straight to it: there the run shows nothing.
fn blind(results: &Results) -> Vec<String> {
    let least = |rule: &str| if rule.starts_with("guard-") { DIRECT_MIN_OF_GUARD } else { DIRECT_MIN };
    let is_blind = |rule, counts: &Counts| counts.direct >= least(rule) && counts.direct_forbidden == 0;
    let pairs = results.counts.iter().filter(|((rule, _), counts)| is_blind(rule, counts));
    pairs.map(|((rule, reader), _)| format!("{rule} before {reader}")).collect()
}

fn table(results: &Results) -> String {
    let mut text = format!(
        "{:16} {:8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
        "rule", "origin", "refused", "bad", "closed", "read", "origin's", "straight", "met"
    );
    for ((rule, reader), counts) in &results.counts {
        let Counts { refused, bad, closed, read, reader_refused, direct, direct_forbidden } = counts;
        text += &format!(
            "{rule:16} {reader:8} {refused:8} {bad:8} {closed:8} {read:8} {reader_refused:8} {direct:8} {direct_forbidden:8}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Options> {
        Options::read(lexopt::Parser::from_args(words))
    }

    #[test]
    fn options_are_read() {
        let options = read(&["--mutants", "7", "--seed", "3", "php", "--release"]).expect("as it is meant");
        assert_eq!((options.extent.mutants, options.extent.seed, options.binary), (7, 3, Binary::Release));
        assert_eq!(options.kinds, [Kind::Php]);
        for words in [&["--mutants", "0"][..], &["--mutants", "many"], &["ruby"], &["--replay"]] {
            assert!(read(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_run_that_cannot_fail_fails() {
        let mut results = Results::default();
        results.counts.insert(("path", "go"), Counts { direct: DIRECT_MIN, ..Counts::default() });
        assert_eq!(blind(&results), ["path before go"]);
        let folder = std::env::temp_dir().join(format!("differential-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        assert!(report(&results, Duration::from_secs(1), &folder).is_err());
        results
            .counts
            .insert(("path", "go"), Counts { direct: DIRECT_MIN, direct_forbidden: 1, ..Counts::default() });
        assert!(report(&results, Duration::from_secs(1), &folder).is_ok());
        std::fs::remove_dir_all(&folder).expect("still there");
    }
}
