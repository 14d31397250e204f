//! Every request that `check`, `diff` and `ask` show as a proof is put, as it is printed, before `explain`, which parses it and
//! asks the engine: it has to do what was said of it. Nothing of the analyst is asked again.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pointsman_e2e::{ends, folder, pointsman, tool};
use serde_json::Value;
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Of a body so long not all is written.
const REST_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Rule sets of which each rule is left out once, so many at most.
const LEFT_OUT_MAX: usize = 8;

/// A folder in which requests are explained.
struct Stand(TempDir);

/// What `explain` says of a request.
struct Explained {
    /// Nothing where no rule decided, nor the final `else`.
    rule: Option<String>,
    action: Option<String>,
    /// `refused with 400`, where the switch does so by itself, before a rule decides or behind it.
    refused: Option<String>,
}

impl Stand {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), contents).expect("a writable folder");
    }

    fn json(&self, words: &[&str], codes: &[i32]) -> Value {
        let finished = pointsman(self.path(), words);
        assert!(codes.contains(&finished.code), "{words:?}\n{}", finished.output());
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// What becomes of a witness, as it is printed. Nothing where too little of its body is, or the options cannot be typed.
    fn explain(&self, rules: &str, witness: &Value) -> Option<Explained> {
        let request = witness["request"].as_str().expect("a text");
        let words = typed(witness["options"].as_str().expect("a text"))?;
        let mut whole = match witness["request_base64"].as_str() {
            Some(base64) => STANDARD.decode(base64).expect("base64"),
            None => request.as_bytes().to_vec(),
        };
        if let Some(bytes) = witness["more_bytes"].as_u64() {
            if bytes > REST_BYTES_MAX {
                return None;
            }
            let is_chunked = request.to_ascii_lowercase().contains("transfer-encoding: chunked");
            let rest = witness["more_of"].as_str().expect("a byte");
            whole.extend(rest.repeat(usize::try_from(bytes).expect("a body")).into_bytes());
            whole.extend_from_slice(if is_chunked { b"\r\n0\r\n\r\n" } else { b"" });
        }
        self.write("request", &whole);
        let all: Vec<&str> = ["explain", "--json", rules, "request"]
            .into_iter()
            .chain(words.iter().map(String::as_str))
            .collect();
        let finished = pointsman(self.path(), &all);
        if finished.code == 2 && finished.stderr.contains("holds no whole body") {
            return None;
        }
        assert_ne!(finished.code, 2, "{words:?}\n{request}\n{}", finished.output());
        let explained: Value = serde_json::from_str(&finished.stdout).expect("JSON");
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let decision = &explained["decision"];
        let is_refused_at_once = explained["request"].is_null();
        assert!(!is_refused_at_once, "the codec refuses it: {words:?}\n{request}\n{}", finished.output());
        let refused = &decision["refused"];
        let refused = (!refused.is_null()).then(|| format!("refused with {}", refused["status"]));
        Some(Explained { rule: text(&decision["rule"]), action: text(&decision["action"]), refused })
    }
}

/// The words of a command line; nothing where one is written as only some shells read it.
fn typed(line: &str) -> Option<Vec<String>> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while !rest.is_empty() {
        let (word, behind) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'')?,
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        if word.contains('$') || word.contains('\\') {
            return None;
        }
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    Some(words)
}

/// Rule sets that compile by themselves, in the form that `fmt` gives them.
fn sources() -> Vec<(PathBuf, String)> {
    let folders = ["testdata/rules", "examples"].map(|name| Path::new(ROOT).join(name));
    let of = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
    };
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| of(folder))
        .flat_map(|folder| if folder.is_dir() { of(&folder) } else { Vec::new() })
        .filter(|path| path.extension().is_some_and(|name| name == "rules"))
        .collect();
    files.sort();
    let texts = files.into_iter().filter_map(|path| {
        let text = fs::read_to_string(&path).ok()?;
        let folder = folder(&[("a.rules", &text)]);
        if pointsman(folder.path(), &["check", "--fail-on", "error", "a.rules"]).code != 0 {
            return None;
        }
        ends(folder.path(), &["fmt", "a.rules"], 0, &[]);
        Some((path, fs::read_to_string(folder.path().join("a.rules")).expect("it is there")))
    });
    texts.collect()
}

/// The items of a rule set as `fmt` writes it, with the comments behind each.
fn items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in text.lines() {
        let begins = !line.is_empty() && !line.starts_with([' ', ')', '}', '#']);
        match items.last_mut() {
            Some(last) if !begins => *last += &format!("{line}\n"),
            _ => items.push(format!("{line}\n")),
        }
    }
    items
}

/// The same without the rule of this label; nothing where it has none, or another one leads to it.
fn without(text: &str, label: &str) -> Option<String> {
    let begins = |item: &String| item.lines().any(|line| line.starts_with(&format!("{label}:")));
    let items = items(text);
    let rest: String = items.iter().filter(|item| !begins(item)).map(String::as_str).collect();
    let is_of_name = |byte: char| byte.is_ascii_alphanumeric() || byte == '_' || byte == '-';
    let is_named = rest.split(|byte: char| !is_of_name(byte)).any(|word| word == label);
    let stands = label != "else" && !is_named && !labels(&rest).is_empty();
    (items.iter().any(begins) && stands).then_some(rest)
}

fn labels(text: &str) -> Vec<String> {
    let label = |item: &String| {
        let line = item.lines().find(|line| !line.starts_with('#') && !line.is_empty())?;
        let (label, _) = line.split_once(": ")?;
        let is_label = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        (is_label && label != "else").then(|| label.to_owned())
    };
    items(text).iter().filter_map(label).collect()
}

#[test]
fn of_findings() {
    let stand = Stand(folder(&[]));
    let (mut gaps, mut pairs, mut refuted) = (0, 0, 0);
    for (path, text) in sources() {
        stand.write("a.rules", &text);
        let report = stand.json(&["check", "--json", "--fail-on", "error", "a.rules"], &[0, 1]);
        for finding in report["findings"].as_array().expect("a list") {
            let (code, witness) = (finding["code"].as_str().expect("a code"), &finding["witness"]);
            if witness.is_null() || !finding["before"].is_null() {
                continue;
            }
            let Some(seen) = stand.explain("a.rules", witness) else { continue };
            let at = format!("{}: {finding:#}\n{:?}", path.display(), seen.rule);
            let rule = finding["rule"].as_str();
            match code {
                "gap" => {
                    assert!(seen.rule.is_none() || seen.rule.as_deref() == Some("else"), "{at}");
                    gaps += 1;
                }
                "conflict" | "exception" => {
                    let others = finding["others"].as_array().expect("a list");
                    let names: Vec<&str> = others.iter().filter_map(Value::as_str).chain(rule).collect();
                    let first = seen.rule.as_deref().expect("a rule decides");
                    assert!(names.contains(&first), "{at}");
                    // The other one takes it, too, where the first is not there.
                    let Some(rest) = without(&text, first) else { continue };
                    stand.write("rest.rules", &rest);
                    let Some(then) = stand.explain("rest.rules", witness) else { continue };
                    assert!(
                        then.rule.as_deref().is_some_and(|second| names.contains(&second)),
                        "{at} {rest}"
                    );
                    assert_ne!((then.action, then.refused), (seen.action, seen.refused), "{at}");
                    pairs += 1;
                }
                "redirect loop" => assert_eq!(seen.rule.as_deref(), rule, "{at}"),
                "assertion refuted" => {
                    assert_eq!(seen.rule.as_deref(), rule, "{at}");
                    refuted += 1;
                }
                code => panic!("{code} has a witness: {at}"),
            }
        }
    }
    assert!(gaps >= 5 && pairs >= 10, "{gaps} gaps, {pairs} pairs, {refuted} assertions");
}

#[test]
fn of_differences() {
    let stand = Stand(folder(&[]));
    let mut ways_seen = 0;
    for (path, text) in sources() {
        stand.write("old.rules", &text);
        for label in labels(&text).iter().take(LEFT_OUT_MAX) {
            let Some(rest) = without(&text, label) else { continue };
            stand.write("new.rules", &rest);
            let report = stand.json(&["diff", "--json", "old.rules", "new.rules"], &[0, 1, 3]);
            let ways = report["compared"][0]["ways"].as_array().expect("a list");
            for way in ways {
                let sides = ["old", "new"].map(|side| {
                    let seen = stand.explain(&format!("{side}.rules"), &way["witness"])?;
                    let said = way[side]["rule"].as_str().expect("a rule").split(' ').next();
                    let at = format!("{} without {label}: {side} of {way:#}", path.display());
                    match &seen.rule {
                        Some(rule) => assert_eq!(said, Some(rule.as_str()), "{at}"),
                        None => assert!(
                            way[side]["rule"].as_str().is_some_and(|rule| rule.contains("default")),
                            "{at}"
                        ),
                    }
                    let action = way[side]["action"].as_str().expect("an action");
                    match &seen.refused {
                        Some(refused) => {
                            let is_said = action.starts_with(&format!("{refused}:"))
                                || action.contains(&refused.replace("refused with ", "on_unknown reject, "));
                            assert!(is_said, "{refused} and not {action}, {at}");
                        }
                        None => assert!(!action.contains("refused with"), "{at}"),
                    }
                    Some(seen)
                });
                ways_seen += usize::from(sides.iter().all(Option::is_some));
                // What the switch refuses either way does not differ, unless a rule says so and does something beside it.
                let all_are_refused =
                    sides.iter().flatten().filter(|seen| seen.refused.is_some()).count() == 2;
                let is_of_switch = ["old", "new"].iter().any(|side| {
                    way[side]["action"].as_str().is_some_and(|action| action.starts_with("refused with"))
                });
                assert!(!(all_are_refused && is_of_switch), "{}: {way:#}", path.display());
            }
        }
    }
    assert!(ways_seen >= 20, "{ways_seen}");
}

#[test]
fn of_answers() {
    let stand = Stand(folder(&[]));
    let questions =
        fs::read_to_string(Path::new(ROOT).join("testdata/ask/questions.txt")).expect("they are there");
    let (mut rules, mut confirmed) = (String::new(), 0);
    let mut was_question = false;
    for line in questions.lines() {
        if let Some(rule) = line.strip_prefix("rules| ") {
            if was_question {
                rules.clear();
            }
            was_question = false;
            rules += &format!("{rule}\n");
            continue;
        }
        let Some(question) = line.strip_prefix("? ") else { continue };
        was_question = true;
        stand.write("a.rules", &rules);
        let finished = pointsman(stand.path(), &["ask", "--json", "a.rules", question]);
        if finished.code != 0 {
            continue;
        }
        let answer: Value = serde_json::from_str(&finished.stdout).expect("JSON");
        let Some(seen) = stand.explain("a.rules", &answer["witness"]) else { continue };
        assert_eq!(
            seen.rule.as_deref(),
            answer["rule"].as_str().filter(|rule| !rule.contains("default")),
            "{question}"
        );
        // And its condition is true of it.
        let condition = question.trim_start_matches("can ").rsplit_once(" reach ").expect("a question").0;
        let settings = rules.lines().filter(|line| line.starts_with("namespace"));
        let settings: String = settings.map(|line| format!("{line}\n")).collect();
        stand.write(
            "condition.rules",
            format!("{settings}C: if ({condition}) {{ routeTo(yes); }}\nelse: routeTo(no);\n"),
        );
        let Some(seen) = stand.explain("condition.rules", &answer["witness"]) else { continue };
        assert_eq!(seen.rule.as_deref(), Some("C"), "{question}\n{answer:#}");
        confirmed += 1;
    }
    assert!(confirmed >= 5, "{confirmed}");
}

/// Of bodies that are no text the bytes are printed, too, and the command that writes them to a file.
#[test]
fn of_bodies_that_cannot_be_typed() {
    let rules = r#"FORM: if (form["f"] == "1" && content_type == "multipart/form-data") { routeTo(form); }
DEFLATE: if (json.a == "1" && header["content-encoding"] == "deflate") { routeTo(deflate); }
GZIP: if (json.a == "1" && header["content-encoding"] == "gzip") { routeTo(gzip); }
CHUNKS: if (json.a == "2" && header["transfer-encoding"] exists) { routeTo(chunks); }
LONG: if (json.a == "3" && body.size == 60000) { routeTo(long); }
else: routeTo(none);
"#;
    let stand = Stand(folder(&[("a.rules", rules)]));
    for (label, target) in
        [("FORM", "form"), ("DEFLATE", "deflate"), ("GZIP", "gzip"), ("CHUNKS", "chunks"), ("LONG", "long")]
    {
        let question = format!("can method == \"POST\" reach {target}?");
        let answer = stand.json(&["ask", "--json", "a.rules", &question], &[0]);
        let witness = &answer["witness"];
        assert!(witness["request_base64"].is_string(), "{answer:#}");
        let seen = stand.explain("a.rules", witness).expect("all of it is printed");
        assert_eq!(seen.rule.as_deref(), Some(label), "{answer:#}");
        let note = "note: this text is not its bytes; they are written by `";
        let text = ends(stand.path(), &["ask", "a.rules", &question], 0, &[note]).stdout;
        assert!(text.lines().all(|line| line.len() < 1_000), "{text}");
        let command = text.split_once(note).and_then(|(_, behind)| behind.split_once('`'));
        let (command, _) = command.expect("a command");
        let Some(written) = tool(stand.path(), "sh", &["-c", command]) else { return };
        assert_eq!(written.code, 0, "{}", written.output());
        let said = format!("{label}: routeTo({target});");
        ends(stand.path(), &["explain", "a.rules", "request.txt"], 0, &[&said]);
    }
}
