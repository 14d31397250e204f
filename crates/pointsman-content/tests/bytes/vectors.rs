//! Vector files: a case has a title, settings, the bytes of a body, and what is made of them.

use std::collections::BTreeMap;
use std::path::Path;

/// One case of a vector file.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) title: String,
    /// The first word behind `>`.
    pub(crate) kind: String,
    /// What follows it: `name=value`.
    pub(crate) settings: BTreeMap<String, String>,
    /// The lines of the body, escapes resolved.
    pub(crate) body: Vec<u8>,
    /// The line behind `--`.
    pub(crate) outcome: String,
    /// The lines that follow it.
    pub(crate) expected: Vec<String>,
}

/// The cases of a vector file below `testdata/content/`.
pub(crate) fn cases(name: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/content").join(name);
    let file = std::fs::read_to_string(path).expect("a vector file");
    let mut cases: Vec<Case> = Vec::new();
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        if let Some(title) = line.strip_prefix("== ") {
            assert!(title.ends_with(')'), "`{title}` names the section that it tests");
            cases.push(Case {
                title: title.to_owned(),
                kind: String::new(),
                settings: BTreeMap::new(),
                body: Vec::new(),
                outcome: String::new(),
                expected: Vec::new(),
            });
            continue;
        }
        let case = cases.last_mut().expect("a title comes first");
        if let Some(settings) = line.strip_prefix("> ") {
            let mut words = settings.split(' ');
            case.kind = words.next().unwrap_or_default().to_owned();
            for word in words {
                let (name, value) = word.split_once('=').expect("name=value");
                case.settings.insert(name.to_owned(), value.to_owned());
            }
        } else if let Some(outcome) = line.strip_prefix("-- ") {
            case.outcome = outcome.to_owned();
        } else if case.outcome.is_empty() {
            case.body.extend(unescaped(line));
        } else {
            case.expected.push(line.to_owned());
        }
    }
    assert!(cases.iter().all(|case| !case.outcome.is_empty()), "each case expects something");
    cases
}

impl Case {
    /// A setting, escapes resolved.
    pub(crate) fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.settings.get(name).map(|value| unescaped(value))
    }

    /// A setting that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.settings.get(name).map(|value| value.parse().expect("a number"))
    }

    /// Holds what came out, in whatever pieces, against what is expected: what differs is added to `wrong`.
    pub(crate) fn check(&self, pieces: &str, outcome: &str, lines: &[String], wrong: &mut Vec<String>) {
        if self.outcome != outcome || self.expected != lines {
            let got = format!("-- {outcome}\n{}", lines.join("\n"));
            let expected = format!("-- {}\n{}", self.outcome, self.expected.join("\n"));
            wrong.push(format!("{} ({pieces})\nexpected:\n{expected}\ngot:\n{got}", self.title));
        }
    }
}

/// Shows the first of what is wrong.
pub(crate) fn assert_none(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} wrong, such as\n{}",
        wrong.len(),
        wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
    );
}

/// Resolves `\\`, `\t`, `\r`, `\n`, `\s` (a space), `\xNN`, and `\(N:text)`, which is N times the text.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let bytes = unescaped_until(&mut rest, None);
    assert!(rest.is_empty(), "{text}");
    bytes
}

fn unescaped_until(rest: &mut &[u8], end: Option<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((&byte, after)) = rest.split_first() {
        *rest = after;
        if byte != b'\\' {
            if Some(byte) == end {
                return bytes;
            }
            bytes.push(byte);
            continue;
        }
        let (escape, after) = after.split_first().expect("something behind a backslash");
        *rest = after;
        bytes.push(match escape {
            b'\\' => b'\\',
            b't' => b'\t',
            b'r' => b'\r',
            b'n' => b'\n',
            b's' => b' ',
            b'x' => {
                let (digits, after) = after.split_at(2);
                *rest = after;
                let digits = std::str::from_utf8(digits).expect("two hex digits");
                u8::from_str_radix(digits, 16).expect("two hex digits")
            }
            b'(' => {
                let colon = after.iter().position(|&byte| byte == b':').expect("`\\(N:text)`");
                *rest = &after[colon + 1..];
                let times = std::str::from_utf8(&after[..colon]).expect("a number");
                bytes.extend(unescaped_until(rest, Some(b')')).repeat(times.parse().expect("a number")));
                continue;
            }
            other => panic!("unknown escape `{}`", *other as char),
        });
    }
    assert!(end.is_none(), "`\\(` without its `)`");
    bytes
}

/// Text as a line of a vector file: what is not printable is escaped.
pub(crate) fn escaped(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\\' => "\\\\".to_owned(),
            '\r' => "\\r".to_owned(),
            '\n' => "\\n".to_owned(),
            '\t' => "\\t".to_owned(),
            '\u{feff}' => "\\u{feff}".to_owned(),
            character if character.is_control() => format!("\\x{:02x}", u32::from(character)),
            character => character.to_string(),
        })
        .collect()
}
