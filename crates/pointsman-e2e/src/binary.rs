//! Finds the binary under test, and runs it to its end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

use tempfile::TempDir;

use crate::Lines;

/// A command that ran to its end.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Finished {
    /// Both outputs: for messages whose place is not the point.
    #[must_use]
    pub fn output(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }
}

/// Runs `pointsman` with these words in a folder, to its end.
///
/// # Panics
/// When it does not end in time.
pub fn pointsman(folder: &Path, words: &[&str]) -> Finished {
    let mut command = Command::new(program());
    command.args(words).current_dir(folder);
    finish(command)
}

/// The same of a command that is to end with this status, and to say these words.
///
/// # Panics
/// When it does otherwise.
#[track_caller]
pub fn ends(folder: &Path, words: &[&str], code: i32, said: &[&str]) -> Finished {
    let finished = pointsman(folder, words);
    assert_eq!(finished.code, code, "{words:?}\n{}", finished.output());
    for word in said {
        assert!(finished.output().contains(word), "`{word}` is missing in:\n{}", finished.output());
    }
    finished
}

/// A temporary folder with these files, each with what is in it.
///
/// # Panics
/// When it cannot be written.
#[must_use]
pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, contents) in files {
        std::fs::write(folder.path().join(name), contents).expect("a writable folder");
    }
    folder
}

/// Runs a program of the system in a folder, to its end; nothing when it is not installed, which is said.
///
/// # Panics
/// When it does not end in time.
#[must_use]
pub fn tool(folder: &Path, program: &str, words: &[&str]) -> Option<Finished> {
    installed(program).then(|| {
        let mut command = Command::new(program);
        command.args(words).current_dir(folder);
        finish(command)
    })
}

/// Whether a program of the system is installed; says so when it is not.
///
/// # Panics
/// In CI, where everything is to be there.
#[must_use]
pub fn installed(program: &str) -> bool {
    let found = Command::new(program)
        .arg("-V")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    said_where_missing(found, program)
}

/// The same of what is no program of its own.
pub(crate) fn installed_file(path: &str) -> bool {
    said_where_missing(Path::new(path).is_file(), path)
}

fn said_where_missing(found: bool, what: &str) -> bool {
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{what} is not installed, and CI skips nothing");
        skipped(&format!("{what} is not installed"));
    }
    found
}

/// Says that a test ends here because the machine lacks something. The notice goes past the harness, which
/// shows nothing that a passing test prints: a test that was skipped must not look like one that ran.
pub fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Nobody listens to what cannot be said.
    drop(writeln!(std::io::stderr(), "skipped: {test}: {why}"));
}

fn finish(mut command: Command) -> Finished {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let stdout = Lines::of(child.stdout.take().expect("piped"));
    let stderr = Lines::of(child.stderr.take().expect("piped"));
    if !(stdout.wait_for_end() && stderr.wait_for_end()) {
        child.kill().expect("it is ours");
        panic!("{command:?} does not end:\n{}\n{}", stdout.text(), stderr.text());
    }
    let status = child.wait().expect("it is ours");
    let code = status.code().unwrap_or_else(|| panic!("{command:?} was killed:\n{}", stderr.text()));
    Finished { code, stdout: stdout.text(), stderr: stderr.text() }
}

/// The binary: `POINTSMAN_BIN`, or the one beside the running test, built first if it is missing or
/// older than the sources. Cargo does not build a binary for another package's tests by itself.
///
/// # Panics
/// When it does not build.
#[must_use]
pub fn program() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Some(path) = std::env::var_os("POINTSMAN_BIN") {
            return PathBuf::from(path);
        }
        let exe = std::env::current_exe().expect("a test has a path");
        // target/<profile>/deps/e2e-<hash>
        let profile = exe.ancestors().nth(2).expect("tests stand in a target folder");
        let binary = profile.join("pointsman");
        let built = std::fs::metadata(&binary).and_then(|data| data.modified());
        if built.map_or(true, |built| newest_source(&workspace().join("crates")) > built) {
            build(profile.ends_with("release"));
        }
        binary
    })
}

fn build(release: bool) {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--package", "pointsman"]).current_dir(workspace());
    if release {
        command.arg("--release");
    }
    let status = command.status().expect("cargo runs the tests, so it is there");
    assert!(status.success(), "pointsman does not build");
}

/// The folder of the whole project.
///
/// # Panics
/// Never: this crate stands in it.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/pointsman-e2e")
}

fn newest_source(folder: &Path) -> SystemTime {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let times = entries.map(|entry| {
        let path = entry.path();
        if path == Path::new(env!("CARGO_MANIFEST_DIR")) {
            return SystemTime::UNIX_EPOCH;
        }
        if path.is_dir() {
            return newest_source(&path);
        }
        entry.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}
