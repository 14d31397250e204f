//! Explanations of requests with bodies, against `testdata/explain/bodies.txt`.
//!
//! `UPDATE_EXPECT=1` writes what is expected anew.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use pointsman_rules::Colour;

use super::{Options, reported};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/explain/bodies.txt");

/// The lines of a case: rules behind `rules| `, the request behind `> ` and `| `, what is printed behind `= `.
#[derive(Default)]
struct Case<'a> {
    written: Vec<&'a str>,
    rules: String,
    head: String,
    body: Vec<u8>,
    expected: String,
}

#[test]
fn bodies_are_explained() {
    let file = fs::read_to_string(FILE).expect("the vectors are there");
    let (top, rest) = file.split_at(file.find("== ").expect("a case"));
    let mut anew = top.to_owned();
    let mut wrong = Vec::new();
    for text in rest.split_inclusive("\n\n") {
        let case = Case::read(text);
        let printed = case.printed();
        if printed != case.expected {
            wrong.push(format!("{}\nprints:\n{printed}", case.written[0]));
        }
        for line in &case.written {
            writeln!(anew, "{line}").expect("memory");
        }
        for line in printed.lines() {
            writeln!(anew, "{}", format!("= {line}").trim_end()).expect("memory");
        }
        anew.push('\n');
    }
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(FILE, anew.trim_end().to_owned() + "\n").expect("a writable file");
        return;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

impl<'a> Case<'a> {
    fn read(text: &'a str) -> Case<'a> {
        let mut case = Case::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("=", printed) => {
                    case.expected.push_str(printed);
                    case.expected.push('\n');
                    continue;
                }
                ("==", _) => {}
                ("rules|", rule) => writeln!(case.rules, "{rule}").expect("memory"),
                (">", field) => write!(case.head, "{field}\r\n").expect("memory"),
                ("|", content) => case.body.extend(content.replace("\\r\\n", "\r\n").bytes()),
                _ => panic!("`{line}` does not stand here"),
            }
            case.written.push(line);
        }
        case
    }

    /// The text for people, without the lines that stand before the first rule, but for notes; or the error.
    fn printed(&self) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, content).expect("a writable folder");
            path
        };
        let options = Options {
            rules: write("a.rules", self.rules.as_bytes()),
            request: Some(write("a.http", &[self.head.as_bytes(), b"\r\n", &self.body].concat())),
            ..Options::default()
        };
        match reported(&options, Colour::Never) {
            Err(error) => error.replace(&folder.path().join(Path::new("")).display().to_string(), ""),
            Ok(report) => {
                let text = report.text(Colour::Never);
                let (asked, decided) = text.split_once("\n\n").expect("a line between them");
                let notes = asked.lines().filter(|line| line.starts_with("  note"));
                notes.map(|note| format!("{note}\n")).collect::<String>() + decided
            }
        }
    }
}
