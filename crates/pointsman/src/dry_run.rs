//! `pointsman dry-run`: what new rules would decide otherwise of the requests that come, while others serve.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use lexopt::{Arg, ValueExt};
use pointsman_rules::Colour;
use serde_json::Value;

use crate::admin_client::TlsOptions;
use crate::asking::{Answer, Asker, text};
use crate::check::{input, terminal};
use crate::percent::encoded;
use crate::usage::{number, wrong_options};
use crate::{WRONG_USE, say};

const HELP: &str = "\
pointsman dry-run [RULES] [--listener NAME] [--for TIME] [--decisions N] [--config FILE] [--json]
pointsman dry-run --show | --end [--config FILE] [--json]

asks new rules beside those that serve about the requests that come, and says what they would decide otherwise; they
decide nothing. RULES is a rule set, - for standard input, that takes the place of those of a listener; without it the
configuration and the rules on disk are asked, as a reload would read them

    --listener NAME  whose rules RULES takes the place of; may be left out where one listener has rules
    --for TIME       how long: 30s, 10m, 24h at most; 60s where nothing is said
    --decisions N    it ends as soon as so many decisions have been compared
    --show           what the one that goes on, or was last, has found so far
    --end            ends the one that goes on, and shows what it has found
    --config FILE    or `-c FILE`: the configuration of the running switch, whose `[admin]` says where it is;
                     pointsman.toml where none is named
    --json           the report as JSON, as `GET /api/v1/dry-run` gives it
    --ca FILE        authorities of the certificate of the admin listener; without it the certificate itself is trusted,
                     which the configuration names
    --cert FILE      a client certificate, shown instead of a token
    --key FILE       its key, where it does not stand in the same file

it ends with the dry-run; one that is interrupted leaves that going on, and `--show` and `--end` find it
exit status: 0 nothing would change; 1 something would; 2 not begun; 3 nothing was decided, or not all can be told
";

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(500);
const ROUTE: &str = "/api/v1/dry-run";

/// Asks the running switch, and waits.
pub(crate) fn dry_run(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    let (out, errors, status) = match options.asked() {
        Ok(answer) => options.told(&answer),
        Err(complaint) => (String::new(), complaint, WRONG_USE),
    };
    let said = say(&mut io::stdout(), &out, status);
    if say(&mut io::stderr(), &errors, 0) == ExitCode::SUCCESS { said } else { ExitCode::FAILURE }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Begin,
    Show,
    End,
}

struct Options {
    act: Act,
    rules: Option<PathBuf>,
    listener: Option<String>,
    seconds: Option<u32>,
    decisions: Option<u32>,
    config: PathBuf,
    json: bool,
    tls: TlsOptions,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut options = Options {
            act: Act::Begin,
            rules: None,
            listener: None,
            seconds: None,
            decisions: None,
            config: PathBuf::from("pointsman.toml"),
            json: false,
            tls: TlsOptions::default(),
        };
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("config") | Arg::Short('c') => options.config = parser.value()?.into(),
                Arg::Long("listener") => options.listener = Some(parser.value()?.string()?),
                Arg::Long("for") => options.seconds = Some(seconds(&parser.value()?.string()?)?),
                Arg::Long("decisions") => options.decisions = Some(number("--decisions", &mut parser)?),
                Arg::Long("show") => options.act = Act::Show,
                Arg::Long("end") => options.act = Act::End,
                Arg::Long("json") => options.json = true,
                Arg::Long(option) if TlsOptions::know(option) => {
                    let option = option.to_owned();
                    options.tls.take(&option, parser.value()?.into());
                }
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Value(file) if options.rules.is_none() => options.rules = Some(file.into()),
                _ => return Err(argument.unexpected()),
            }
        }
        options.fit().map(|()| Some(options))
    }

    fn fit(&self) -> Result<(), lexopt::Error> {
        let is_begun = self.rules.is_some() || self.listener.is_some();
        let is_bounded = self.seconds.is_some() || self.decisions.is_some();
        if self.act != Act::Begin && (is_begun || is_bounded) {
            return Err("`--show` and `--end` are about what goes on already".into());
        }
        match (&self.rules, &self.listener) {
            (None, Some(_)) => {
                Err("`--listener` says whose rules RULES takes the place of, and there is none".into())
            }
            (Some(rules), _) if !input::is_standard(rules) && input::is_configuration(rules) => {
                let name = rules.display();
                Err(format!(
                    "`{name}` is a configuration; without RULES the one on disk is asked that the switch reads"
                )
                .into())
            }
            _ if self.decisions == Some(0) => Err("`--decisions` is at least 1".into()),
            _ => Ok(()),
        }
    }

    /// What the switch says at the end; the error is a text for people.
    fn asked(&self) -> Result<Answer, String> {
        let asker = Asker::of(&self.config, &self.tls, "a dry-run")?;
        let colour = terminal::colour(&io::stdout()) == Colour::Ansi;
        let shown = format!("{ROUTE}?colour={colour}");
        match self.act {
            Act::Show => asker.ask("GET", &shown, ""),
            Act::End => asker.ask("DELETE", &shown, ""),
            Act::Begin => {
                let begun = self.begin(&asker, colour)?;
                until_ended(begun, || {
                    thread::sleep(LOOK);
                    asker.ask("GET", &shown, "")
                })
            }
        }
    }

    fn begin(&self, asker: &Asker, colour: bool) -> Result<Answer, String> {
        let mut query = format!("?colour={colour}");
        let bounds = [("seconds", self.seconds), ("decisions", self.decisions)];
        for (name, value) in bounds.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            query.push_str(&format!("&{name}={value}"));
        }
        let Some(path) = &self.rules else { return asker.ask("POST", &format!("{ROUTE}{query}"), "") };
        let rules = input::text(path).map_err(|message| format!("error: {message}\n"))?;
        let listener = match &self.listener {
            Some(name) => name.clone(),
            None => only_listener(&asker.ask("GET", "/api/v1/plan", "")?.body)?,
        };
        let name = encoded(listener.as_bytes());
        asker.ask("POST", &format!("/api/v1/listeners/{name}/rules/dry-run{query}"), &rules)
    }

    /// What is said on standard output and standard error, and the exit status.
    fn told(&self, answer: &Answer) -> (String, String, u8) {
        let body = &answer.body;
        let json = || if self.json { format!("{body:#}\n") } else { String::new() };
        if answer.status != 200 {
            let errors = format!("{}error: {}\n", text(body, "text"), text(body, "detail"));
            return (json(), errors, WRONG_USE);
        }
        let out = if self.json { json() } else { text(body, "text") };
        let mut errors = match body["ended_by"].as_str() {
            Some("published") => {
                "note: it has ended because other rules serve now, or other settings\n".to_owned()
            }
            Some("drained") => "note: it has ended because the switch drains\n".to_owned(),
            None => "note: it goes on\n".to_owned(),
            Some(_) => String::new(),
        };
        errors.push_str(&format!("{}\n", text(body, "summary")));
        (out, errors, status(body))
    }
}

/// A change weighs more than what nobody can tell.
fn status(report: &Value) -> u8 {
    let count = |name: &str| report[name].as_u64().unwrap_or_default();
    match (count("changed"), count("untold"), count("decisions")) {
        (1.., ..) => 1,
        (0, 1.., _) | (0, _, 0) => 3,
        (0, 0, 1..) => 0,
    }
}

/// Looks again and again until what has begun has ended.
fn until_ended(begun: Answer, look: impl Fn() -> Result<Answer, String>) -> Result<Answer, String> {
    let id = begun.body["id"].clone();
    let mut answer = begun;
    while answer.status == 200 && answer.body["state"] == "running" {
        answer = look()?;
        if answer.status == 404 {
            return Err("error: the switch has begun anew since, and what was found is gone with the one before; its \
                        standard error says how many decisions there were\n"
                .to_owned());
        }
        if answer.status == 200 && answer.body["id"] != id {
            return Err(
                "error: another dry-run has begun since, and this one is no longer to be seen\n".to_owned()
            );
        }
    }
    Ok(answer)
}

/// The one listener of a plan that has rules; the error is a text for people.
fn only_listener(plan: &Value) -> Result<String, String> {
    let listeners = plan["listeners"].as_array().into_iter().flatten();
    let names: Vec<_> =
        listeners.filter(|one| !one["rules"].is_null()).filter_map(|one| one["name"].as_str()).collect();
    match names.as_slice() {
        [only] => Ok((*only).to_owned()),
        [] => Err("error: no listener of the switch has rules\n\
                   help: name a file with `rules` in the configuration and reload\n"
            .to_owned()),
        several => {
            let several: Vec<_> = several.iter().map(|name| format!("`{name}`")).collect();
            Err(format!(
                "error: several listeners have rules\nhelp: `--listener NAME` says which of them: {}\n",
                several.join(", ")
            ))
        }
    }
}

/// `30s`, `10m` or `1h`, in seconds.
fn seconds(text: &str) -> Result<u32, lexopt::Error> {
    let (digits, unit) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
    let factor = match unit {
        "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    let seconds =
        digits.parse::<u32>().ok().zip(factor).and_then(|(count, factor)| count.checked_mul(factor));
    match seconds {
        Some(seconds @ 1..=86_400) => Ok(seconds),
        _ => Err(format!("`--for {text}`: a time is as `30s`, `10m` or `1h`, from 1s to 24h").into()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;

    fn read(words: &[&str]) -> Result<Option<Options>, lexopt::Error> {
        Options::read(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn options_are_read() {
        let options = read(&["new.rules", "--for", "10m", "--decisions", "7", "--listener", "shop"]);
        let options = options.expect("good").expect("no help");
        assert_eq!((options.seconds, options.decisions, options.act), (Some(600), Some(7), Act::Begin));
        assert_eq!(options.rules, Some(PathBuf::from("new.rules")));
        for (text, expected) in [("1s", Some(1)), ("24h", Some(86_400)), ("2min", Some(120))] {
            assert_eq!(seconds(text).ok(), expected, "{text}");
        }
        for text in ["", "30", "s", "0s", "25h", "1d", "-1s", "99999999999s", "4294967295h"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        for words in [
            &["--show", "--for", "1s"][..],
            &["--end", "new.rules"],
            &["--listener", "shop"],
            &["pointsman.toml"],
            &["a", "b"],
            &["--decisions", "0"],
        ] {
            assert!(read(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn reports_are_told() {
        let options = read(&[]).expect("good").expect("no help");
        let report = |changed: u64, untold: u64, decisions: u64| {
            json!({ "changed": changed, "untold": untold, "decisions": decisions, "text": "t\n", "summary": "s",
                    "ended_by": "time" })
        };
        for (body, expected) in
            [(report(1, 1, 3), 1), (report(0, 1, 3), 3), (report(0, 0, 0), 3), (report(0, 0, 3), 0)]
        {
            let told = options.told(&Answer { status: 200, body });
            assert_eq!(told, ("t\n".to_owned(), "s\n".to_owned(), expected));
        }
        let body = json!({ "detail": "no", "text": "a.rules: ^\n" });
        let told = options.told(&Answer { status: 422, body });
        assert_eq!(told, (String::new(), "a.rules: ^\nerror: no\n".to_owned(), WRONG_USE));
    }

    #[test]
    fn it_waits_for_its_own() {
        let answer = |n: u64, state: &str| Answer { status: 200, body: json!({ "id": n, "state": state }) };
        let looks = Cell::new(0);
        let look = |n: u64| {
            looks.set(looks.get() + 1);
            Ok(answer(n, if looks.get() == 3 { "ended" } else { "running" }))
        };
        let ended = until_ended(answer(4, "running"), || look(4)).expect("it ends");
        assert_eq!((looks.get(), &ended.body["state"]), (3, &"ended".into()));
        assert!(until_ended(answer(4, "running"), || look(5)).is_err());
        let anew = until_ended(answer(4, "running"), || Ok(Answer { status: 404, body: json!({}) }));
        assert!(anew.is_err_and(|said| said.contains("begun anew")));
        let refused = Answer { status: 409, body: json!({}) };
        assert_eq!(until_ended(refused, || look(4)).map(|answer| answer.status).ok(), Some(409));
    }

    #[test]
    fn the_listener_is_the_one_with_rules() {
        let plan = |rules: &[Value]| {
            let listeners: Vec<_> = rules
                .iter()
                .zip(["a", "b"])
                .map(|(rules, name)| json!({ "name": name, "rules": rules }))
                .collect();
            only_listener(&json!({ "listeners": listeners }))
        };
        assert_eq!(plan(&[Value::Null, json!({})]).as_deref(), Ok("b"));
        assert!(plan(&[Value::Null]).is_err_and(|text| text.contains("no listener")));
        assert!(plan(&[json!({}), json!({})]).is_err_and(|text| text.contains("`a`, `b`")));
        assert_eq!(encoded("a b/ü".as_bytes()), "a%20b%2F%C3%BC");
    }
}
