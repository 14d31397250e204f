//! `pointsman reload`: the running switch reads its files again, or says what that would change.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::Arg;
use pointsman_rules::Colour;
use serde_json::Value;

use crate::admin_client::TlsOptions;
use crate::asking::{Answer, Asker, text};
use crate::check::terminal;
use crate::usage::wrong_options;
use crate::{WRONG_USE, say};

const HELP: &str = "\
pointsman reload [--config FILE] [--dry-run] [--json] [--ca FILE] [--cert FILE [--key FILE]]

    --config FILE    or `-c FILE`: the configuration of the running switch, whose `[admin]` says where it is;
                     pointsman.toml where none is named
    --dry-run        change nothing: say what the rules on disk decide otherwise than those that serve
    --json           the answer as JSON; of a dry run the differences, as `pointsman diff --json` writes them
    --ca FILE        authorities of the certificate of the admin listener; without it the certificate itself is trusted,
                     which the configuration names
    --cert FILE      a client certificate, shown instead of a token
    --key FILE       its key, where it does not stand in the same file

exit status: 0 reloaded, or proved to be equal; 1 different; 2 not reloaded; 3 not settled
";

/// Asks the running switch.
pub(crate) fn reload(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    let colours = [terminal::colour(&io::stdout()), terminal::colour(&io::stderr())];
    // One answer has what goes to both.
    let colour = if colours == [Colour::Ansi; 2] { Colour::Ansi } else { Colour::Never };
    let asked = Asker::of(&options.config, &options.tls, "a reload").and_then(|asker| {
        let (dry_run, colour) = (options.dry_run, colour == Colour::Ansi);
        asker.ask("POST", &format!("/api/v1/reload?dry_run={dry_run}&colour={colour}"), "")
    });
    let (out, errors, status) = match asked {
        Ok(answer) => options.told(&answer),
        Err(complaint) => (String::new(), complaint, WRONG_USE),
    };
    let said = say(&mut io::stdout(), &out, status);
    if say(&mut io::stderr(), &errors, 0) == ExitCode::SUCCESS { said } else { ExitCode::FAILURE }
}

struct Options {
    config: PathBuf,
    dry_run: bool,
    json: bool,
    tls: TlsOptions,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let config = PathBuf::from("pointsman.toml");
        let mut options = Options { config, dry_run: false, json: false, tls: TlsOptions::default() };
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("config") | Arg::Short('c') => options.config = parser.value()?.into(),
                Arg::Long("dry-run") => options.dry_run = true,
                Arg::Long("json") => options.json = true,
                Arg::Long(option) if TlsOptions::know(option) => {
                    let option = option.to_owned();
                    options.tls.take(&option, parser.value()?.into());
                }
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Value(file) => {
                    let file = file.to_string_lossy();
                    return Err(
                        format!("unexpected argument `{file}`; write `reload --config {file}`").into()
                    );
                }
                _ => return Err(argument.unexpected()),
            }
        }
        Ok(Some(options))
    }

    /// What is said on standard output and standard error, and the exit status.
    fn told(&self, answer: &Answer) -> (String, String, u8) {
        let body = &answer.body;
        let mut errors = text(body, "text");
        errors.push_str(&self.other_configuration(body));
        if answer.status != 200 {
            let out = if self.json { format!("{body:#}\n") } else { String::new() };
            errors.push_str(&format!("error: {}\n", text(body, "detail")));
            return (out, errors, WRONG_USE);
        }
        for key in body["waits_for_restart"].as_array().into_iter().flatten() {
            let key = key.as_str().unwrap_or_default();
            errors.push_str(&format!("warning: the new value of `{key}` takes effect at the next start\n"));
        }
        if !self.dry_run {
            let line = format!("reloaded generation={}\n", body["generation"]);
            return (if self.json { format!("{body:#}\n") } else { line }, errors, 0);
        }
        let out = match self.json {
            true => format!("{:#}\n", body["difference"]),
            false => text(body, "difference_text"),
        };
        errors.push_str(&format!("{}\n", text(body, "summary")));
        let status = match body["verdict"].as_str() {
            Some("equal") => 0,
            Some("different") => 1,
            _ => 3,
        };
        (out, errors, status)
    }

    /// A switch may have been started with another file than the one that says where it is.
    fn other_configuration(&self, body: &Value) -> String {
        let ours = self.config.canonicalize().unwrap_or_else(|_| self.config.clone());
        match body["configuration"].as_str() {
            Some(theirs) if theirs != ours.display().to_string() => {
                format!("note: the switch reads `{theirs}`, and not `{}`\n", ours.display())
            }
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(words: &[&str]) -> Result<Option<Options>, lexopt::Error> {
        Options::read(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn options_are_read() {
        let options = read(&["--config", "a.toml", "--dry-run", "--json"]).expect("good").expect("no help");
        assert_eq!((options.config, options.dry_run, options.json), (PathBuf::from("a.toml"), true, true));
        assert!(read(&["--help"]).expect("good").is_none());
        let error = read(&["a.toml"]).err().expect("it is wrong").to_string();
        assert_eq!(error, "unexpected argument `a.toml`; write `reload --config a.toml`");
        assert!(read(&["--dry"]).is_err());
    }

    #[test]
    fn answers_are_told() {
        let check = |words: &[&str], status, body: Value, expected: (&str, &str, u8)| {
            let options = read(words).expect("good").expect("no help");
            let (out, errors, code) = options.told(&Answer { status, body });
            assert_eq!((&*out, &*errors, code), expected, "{words:?}");
        };
        let dry = |verdict: &str| json!({ "verdict": verdict, "summary": "s", "difference_text": "d\n", "text": "" });
        check(&["--dry-run"], 200, dry("equal"), ("d\n", "s\n", 0));
        check(&["--dry-run"], 200, dry("different"), ("d\n", "s\n", 1));
        check(&["--dry-run"], 200, dry("not settled"), ("d\n", "s\n", 3));
        let done = json!({ "generation": 7, "waits_for_restart": ["threads"], "text": "warning: odd\n" });
        let errors = "warning: odd\nwarning: the new value of `threads` takes effect at the next start\n";
        check(&[], 200, done, ("reloaded generation=7\n", errors, 0));
        let bad = json!({ "detail": "no", "text": "a.toml: ^\n" });
        check(&[], 422, bad.clone(), ("", "a.toml: ^\nerror: no\n", 2));
        check(&["--json"], 422, bad.clone(), (&format!("{bad:#}\n"), "a.toml: ^\nerror: no\n", 2));
    }
}
