//! Configurations and what is said about them: `testdata/config/*.toml`, each with the expected output in a
//! `.stderr` file beside it, or none where nothing is to be said.
//!
//! `UPDATE_EXPECT=1` writes what is said now.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use pointsman_config::{Colour, Plan};

const FOLDER: &str = "../../testdata/config";

#[test]
fn vectors() -> Result<(), Box<dyn Error>> {
    let mut different = Vec::new();
    for path in configurations()? {
        let said = said_about(&path);
        let expected = path.with_extension("stderr");
        if env::var_os("UPDATE_EXPECT").is_some() {
            match said.is_empty() {
                true => remove(&expected)?,
                false => fs::write(&expected, &said)?,
            }
        } else if said != read_or_empty(&expected)? {
            different.push(format!("{}: {said}", path.display()));
        }
    }
    assert!(different.is_empty(), "UPDATE_EXPECT=1 accepts this:\n\n{}", different.join("\n"));
    Ok(())
}

fn configurations() -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(FOLDER)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    assert!(!paths.is_empty(), "no configurations in {FOLDER}");
    Ok(paths)
}

/// The output as it is seen by somebody who stands in the folder.
fn said_about(path: &Path) -> String {
    let problems = match Plan::check_only(path) {
        Ok(loaded) => loaded.warnings,
        Err(problems) => problems,
    };
    problems.render(Colour::Never).replace(&format!("{FOLDER}/"), "")
}

fn read_or_empty(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other,
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
