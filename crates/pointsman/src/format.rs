//! `pointsman fmt`: rule sets in their one form.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::Arg;
use pointsman_rules::Colour;

use crate::check::{input, terminal};
use crate::usage::wrong_options;
use crate::{WRONG_USE, say};

const HELP: &str = "\
pointsman fmt [--check] FILE...

    FILE       a rule set; it is rewritten in place (`-`: standard input to standard output)
    --check    change nothing, name the files that would change

exit status: 0 fine, 1 with --check: a file would change, 2 wrong use, or a file that cannot be read or written
";

/// Formats each file, or says which would change.
pub(crate) fn format(arguments: Vec<OsString>) -> ExitCode {
    let (mode, files) = match read_options(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    let colour = terminal::colour(&io::stderr());
    let (mut printed, mut complaints, mut status) = (String::new(), String::new(), 0);
    for path in &files {
        match format_file(path, mode, colour) {
            Ok(Outcome::Same) => {}
            Ok(Outcome::Printed(text)) => printed.push_str(&text),
            Ok(Outcome::WouldChange) => {
                printed.push_str(&format!("{}\n", input::name(path)));
                status = status.max(1);
            }
            Err(complaint) => {
                complaints.push_str(&complaint);
                status = WRONG_USE;
            }
        }
    }
    let said = say(&mut io::stdout(), &printed, status);
    if say(&mut io::stderr(), &complaints, 0) == ExitCode::SUCCESS { said } else { ExitCode::FAILURE }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Rewrite,
    Check,
}

/// Nothing where help is wanted.
fn read_options(arguments: Vec<OsString>) -> Result<Option<(Mode, Vec<PathBuf>)>, lexopt::Error> {
    let (mut mode, mut files) = (Mode::Rewrite, Vec::new());
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("check") => mode = Mode::Check,
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            Arg::Value(file) => files.push(file.into()),
            _ => return Err(argument.unexpected()),
        }
    }
    match files.is_empty() {
        true => Err("`fmt` needs a file: pointsman fmt FILE...".into()),
        false => Ok(Some((mode, files))),
    }
}

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It is as it should be, or is now.
    Same,
    /// It is not, and was only to be looked at.
    WouldChange,
    /// Standard input in its one form.
    Printed(String),
}

/// Formats a file; the error is a text for people.
fn format_file(path: &Path, mode: Mode, colour: Colour) -> Result<Outcome, String> {
    let complaint = |message: String| format!("error: {message}\n");
    if input::is_configuration(path) {
        return Err(complaint(format!("`{}` is a configuration; `fmt` is for rules files", path.display())));
    }
    let source = input::text(path).map_err(complaint)?;
    let formatted = pointsman_rules::format(&source)
        .map_err(|findings| pointsman_rules::draw(&findings, &input::name(path), &source, colour))?;
    match mode {
        Mode::Check if formatted == source => Ok(Outcome::Same),
        Mode::Check => Ok(Outcome::WouldChange),
        Mode::Rewrite if input::is_standard(path) => Ok(Outcome::Printed(formatted)),
        Mode::Rewrite if formatted == source => Ok(Outcome::Same),
        Mode::Rewrite => replace(path, &formatted).map(|()| Outcome::Same).map_err(|error| {
            complaint(format!("cannot write `{}`: {}", path.display(), pointsman_config::reason(&error)))
        }),
    }
}

/// Puts `text` in the place of a file, with its permissions. By a rename, so that a switch that reads the
/// file meanwhile sees the old text or the new one, and a full disk costs nothing.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // The file that a symbolic link leads to is meant, not the link.
    let path = fs::canonicalize(path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut new = tempfile::Builder::new().prefix(".pointsman-fmt-").tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
    new.as_file().sync_all()?;
    new.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    const OLD: &str = "R1: If (URL = = “/a”) { route_to(\"fast\"); } # why\n";

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_only_when_it_changes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (path, link) = (folder.path().join("a.rules"), folder.path().join("link.rules"));
        fs::write(&path, OLD).expect("a writable folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("our own file");
        symlink(&path, &link).expect("a writable folder");
        let run = |path: &Path, mode| format_file(path, mode, Colour::Never);

        assert_eq!(run(&path, Mode::Check), Ok(Outcome::WouldChange));
        assert_eq!(fs::read_to_string(&path).expect("it is there"), OLD);
        assert_eq!(run(&link, Mode::Rewrite), Ok(Outcome::Same));
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        let written = fs::metadata(&path).expect("it is there");
        assert_eq!(written.permissions().mode() & 0o777, 0o640);
        assert_eq!(run(&path, Mode::Check), Ok(Outcome::Same));
        assert_eq!(run(&path, Mode::Rewrite), Ok(Outcome::Same));
        assert_eq!(fs::metadata(&path).expect("it is there").ino(), written.ino(), "nothing was to be done");
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 2, "nothing is left behind");
    }

    #[test]
    fn a_configuration_is_no_rule_set() {
        let complaint = format_file(Path::new("pm.toml"), Mode::Check, Colour::Never);
        let expected = "error: `pm.toml` is a configuration; `fmt` is for rules files\n";
        assert_eq!(complaint, Err(expected.to_owned()));
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.rules");
        fs::write(&path, "R1: if (path == { }").expect("a writable folder");
        let complaint = format_file(&path, Mode::Rewrite, Colour::Never).expect_err("it is broken");
        assert!(complaint.contains("a.rules") && complaint.contains('^'), "{complaint}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "R1: if (path == { }");
    }
}
