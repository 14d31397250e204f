//! Each target over its seeds, its corpus and generated inputs.
//!
//! `POINTSMAN_FUZZ_INPUTS` says how many are generated for each target, `POINTSMAN_FUZZ_SEED` which.
#![expect(clippy::print_stdout, reason = "a long run is worth its figures: `cargo test -- --show-output`")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use pointsman_fuzzing::{Run, TARGETS, run};

type TestResult = Result<(), Box<dyn Error>>;

const INPUTS: u64 = 10_000;
const SEED: u64 = 1;

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn number(variable: &str, default: u64) -> Result<u64, Box<dyn Error>> {
    match env::var(variable) {
        Ok(text) => text.parse().map_err(|_| format!("{variable} is no number: `{text}`").into()),
        Err(_) => Ok(default),
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
    let what = Run {
        inputs: number("POINTSMAN_FUZZ_INPUTS", INPUTS)?,
        seed: number("POINTSMAN_FUZZ_SEED", SEED)?,
        corpus: corpus(name)?,
    };
    match run(target, &what) {
        Ok(inputs) => println!("{name}: {inputs} inputs"),
        Err(failure) => panic!("{failure}"),
    }
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

targets! { http_request http_response http_body path fields view rules config }

/// What cargo-fuzz runs is built by no other command here, so this much of it is looked at.
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
