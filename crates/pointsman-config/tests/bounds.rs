//! What is said about a configuration is bounded, and so is the work for it. Nothing here takes a time, but
//! without the bounds this would take minutes.

use std::error::Error;
use std::fs;

use pointsman_config::{Colour, Plan};

type TestResult = Result<(), Box<dyn Error>>;

/// Kept of errors and of warnings, with a line for the others.
const FINDINGS_MAX: usize = 2 * 1_000 + 2;

/// A finding with the piece of its line, its help and its frame.
const DRAWING_BYTES_MAX: usize = 1_500;

/// Loads a configuration with this many more lines; returns the message of the last finding.
fn check(head: &str, count: usize, line: impl Fn(usize) -> String) -> Result<String, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pointsman.toml");
    let lines: String = (0..count).map(line).collect();
    fs::write(&path, format!("{head}{lines}"))?;
    let problems = Plan::check_only(&path).err().ok_or("loaded in spite of it")?;
    let findings = problems.diagnostics().count();
    assert!(findings <= FINDINGS_MAX, "{findings}");
    let drawn = problems.render(Colour::Never);
    assert!(drawn.len() <= findings * DRAWING_BYTES_MAX, "{} of {findings}", drawn.len());
    let last = problems.diagnostics().last().ok_or("no findings")?;
    Ok(last.1.message.clone())
}

const POOLS: &str = "[pool.standard]\nservers = [\"127.0.0.1:9001\"]\n";

#[test]
fn unknown_keys() -> TestResult {
    let last = check("", 20_000, |number| format!("key{number} = 1\n"))?;
    assert_eq!(last, "and at least 19001 more errors");
    let inline = format!("{POOLS}[[listener]]\nname = \"a\"\nbind = \"127.0.0.1:0\"\npool = \"standard\"\n");
    let last = check(&(inline + "limits = { x = 1"), 20_000, |number| format!(", key{number} = 1"))?;
    assert!(!last.is_empty());
    Ok(())
}

#[test]
fn names_of_pools_that_are_not_there() -> TestResult {
    let last = check(POOLS, 6_000, |number| match number % 2 {
        0 => format!("[pool.pool{number}]\nservers = [\"127.0.0.1:9001\"]\n"),
        _ => {
            format!("[[listener]]\nname = \"a{number}\"\nbind = \"127.0.0.1:0\"\npool = \"pol{number}\"\n")
        }
    })?;
    assert_eq!(last, "and at least 2000 more errors");
    Ok(())
}

#[test]
fn addresses_that_are_bound_twice() -> TestResult {
    let last = check(POOLS, 3_000, |number| {
        format!("[[listener]]\nname = \"a{number}\"\nbind = \"127.0.0.1:80\"\npool = \"standard\"\n")
    })?;
    assert_eq!(last, "and at least 1999 more errors");
    Ok(())
}

#[test]
fn what_is_no_toml() -> TestResult {
    let last = check("", 20_000, |_| "] [ \" = ".to_owned())?;
    assert!(!last.is_empty());
    let last = check("", 5_000, |_| "] = [\n".to_owned())?;
    assert!(last.starts_with("and at least "), "{last}");
    Ok(())
}
