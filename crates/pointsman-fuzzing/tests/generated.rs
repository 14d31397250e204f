//! Each target over its seeds, its corpus and generated inputs.
//!
//! `POINTSMAN_FUZZ_INPUTS` says how many are generated for each target, `POINTSMAN_FUZZ_SEED` which. A run with the
//! former leaves a line in `fuzz/runs` of the target folder, beside those of `cargo xtask fuzz`.
#![expect(clippy::print_stdout, reason = "a long run is worth its figures: `cargo test -- --show-output`")]

use std::env::VarError;
use std::error::Error;
use std::io::Write;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs};

use pointsman_fuzzing::{Run, TARGETS, run};

type TestResult = Result<(), Box<dyn Error>>;

const INPUTS_VARIABLE: &str = "POINTSMAN_FUZZ_INPUTS";
const SEED_VARIABLE: &str = "POINTSMAN_FUZZ_SEED";
const INPUTS: NonZeroU64 = NonZeroU64::new(10_000).unwrap();
const SEED: NonZeroU64 = NonZeroU64::MIN;

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// What a variable says, if it is set: a run of no inputs would be green and show nothing.
fn number(
    variable: &str,
    said: Result<String, VarError>,
    default: NonZeroU64,
) -> Result<NonZeroU64, Box<dyn Error>> {
    match said {
        Ok(text) => text.parse().map_err(|_| format!("{variable} must be a number from 1: `{text}`").into()),
        Err(VarError::NotPresent) => Ok(default),
        Err(error) => Err(format!("{variable} must be a number from 1: {error}").into()),
    }
}

#[test]
fn a_number_that_is_none_is_refused() {
    let read = |text: &str| number("N", Ok(text.to_owned()), INPUTS);
    assert_eq!(read("7").expect("a number").get(), 7);
    assert_eq!(number("N", Err(VarError::NotPresent), INPUTS).expect("the default"), INPUTS);
    assert!(number("N", Err(VarError::NotUnicode("\u{e9}".into())), INPUTS).is_err());
    for text in ["0", "", "-1", "1e6", "1_000", " 7", "18446744073709551616"] {
        let message = read(text).expect_err(text).to_string();
        assert_eq!(message, format!("N must be a number from 1: `{text}`"));
    }
}

/// The files of a target's corpus, in order.
fn corpus(target: &str) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let folder = fuzz_folder().join("corpus").join(target);
    let mut paths: Vec<_> =
        fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths.iter().map(fs::read).collect::<Result<_, _>>()?)
}

fn check(name: &str) -> TestResult {
    let target = TARGETS.iter().find(|target| target.name == name).ok_or("no such target")?;
    let inputs = number(INPUTS_VARIABLE, env::var(INPUTS_VARIABLE), INPUTS)?.get();
    let seed = number(SEED_VARIABLE, env::var(SEED_VARIABLE), SEED)?.get();
    let started = Instant::now();
    let outcome = run(target, &Run { inputs, seed, corpus: corpus(name)? });
    if env::var_os(INPUTS_VARIABLE).is_some() {
        let (tried, result) = outcome.as_ref().map_or((inputs, "FAILED"), |tried| (*tried, "fine"));
        let seconds = started.elapsed().as_secs_f64();
        note(&format!("target={name} inputs={tried} seed={seed} seconds={seconds:.1} result={result}"))?;
    }
    match outcome {
        Ok(tried) => println!("{name}: {tried} inputs"),
        Err(failure) => panic!("{failure}"),
    }
    Ok(())
}

/// Keeps a line about a long run behind those of the runs before it.
fn note(what: &str) -> TestResult {
    // Cargo makes `tmp` in the target folder for tests.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("fuzz");
    fs::create_dir_all(&folder)?;
    let unix = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut file = fs::File::options().append(true).create(true).open(folder.join("runs"))?;
    // In one piece, for targets that run side by side.
    file.write_all(format!("unix={unix} by=tests {what}\n").as_bytes())?;
    Ok(())
}

/// A test for each target, so that they run side by side, and none is forgotten.
macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() -> TestResult {
                check(stringify!($name))
            }
        )*

        #[test]
        fn every_target_is_tested() {
            let listed: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(listed, [$(stringify!($name)),*]);
        }
    };
}

targets! {
    http_request http_response http_body body path proxy_header tls_hello dns_answer frames h2_request h2_answer fields view rules config bench_files session_script
    field_blocks
}

/// A target that cargo-fuzz does not know is run by nobody there.
#[test]
fn every_target_is_one_of_cargo_fuzz() -> TestResult {
    let manifest = fs::read_to_string(fuzz_folder().join("Cargo.toml"))?;
    for target in TARGETS {
        let name = target.name;
        let file = fs::read_to_string(fuzz_folder().join(format!("fuzz_targets/{name}.rs")))?;
        assert!(file.contains(&format!("pointsman_fuzzing::{name}::check(input)")), "{name}");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
    Ok(())
}
