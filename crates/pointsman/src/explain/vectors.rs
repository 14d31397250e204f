//! Explanations of requests with bodies, and of what requests miss, against `testdata/explain/*.txt`.
//!
//! `UPDATE_EXPECT=1` writes what is expected anew.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use pointsman_rules::Colour;

use super::{Options, reported};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/explain");

/// The lines of a case: rules behind `rules| `, the label of a rule that is missed behind `miss| `, the request behind `> ` and `| `, what is printed behind `= `.
#[derive(Default)]
struct Case<'a> {
    written: Vec<&'a str>,
    rules: String,
    miss: Option<String>,
    head: String,
    body: Vec<u8>,
    expected: String,
}

#[test]
fn bodies_are_explained() {
    check("bodies.txt");
}

#[test]
fn misses_are_found() {
    check("misses.txt");
}

fn check(name: &str) {
    let path = Path::new(FOLDER).join(name);
    let file = fs::read_to_string(&path).expect("the vectors are there");
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
        fs::write(&path, anew.trim_end().to_owned() + "\n").expect("a writable file");
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
                ("miss|", label) => case.miss = Some(label.to_owned()),
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
            miss: self.miss.clone(),
            ..Options::default()
        };
        match reported(&options, Colour::Never) {
            Err(error) => error.replace(&folder.path().join(Path::new("")).display().to_string(), ""),
            Ok(report) => {
                let text = report.text(Colour::Never);
                let (asked, decided) = text.split_once("\n\n").unwrap_or(("", &text));
                let notes = asked.lines().filter(|line| line.starts_with("  note"));
                notes.map(|note| format!("{note}\n")).collect::<String>() + decided
            }
        }
    }
}

/// Beyond what the listener holds nothing decides, however little of that is content.
#[test]
fn a_body_is_read_as_far_as_it_is_held() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("a writable folder");
        path
    };
    write("a.rules", "R1: if (json.z == 1) { routeTo(a); }\n");
    let listener = "[[listener]]\nname = \"a\"\nbind = \"127.0.0.1:0\"\nrules = \"a.rules\"\npool = \"a\"\n\
                    limits.hold_bytes_max = 16384\n[pool.a]\nservers = [\"127.0.0.1:1\"]\n";
    let rules = write("a.toml", listener);
    let content = |bytes: usize| format!("{:width$}", "{\"a\":2}", width = bytes);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    let announced = |bytes| format!("{head}Content-Length: {bytes}\r\n\r\n{}", content(bytes));
    // A chunk of five bytes takes ten.
    let chunks: String = (0..2000).map(|_| "5\r\n     \r\n").collect();
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n7\r\n{{\"a\":2,\r\n{chunks}0\r\n\r\n");
    for (name, request, expected) in [
        ("fits", announced(16_384), "decided after 7 of 16384 bytes of the body"),
        ("settles", announced(20_000), "decided after 7 of 20000 bytes of the body"),
        ("chunked beyond", chunked, "decided after 8192 of 10007 bytes of the body"),
        (
            "beyond",
            format!("{head}Content-Length: 20000\r\n\r\n{}", content(20_000).replace('}', " ")),
            "decided after 16384 of 20000 bytes of the body",
        ),
    ] {
        let options =
            Options { rules: rules.clone(), request: Some(write(name, &request)), ..Options::default() };
        let text = reported(&options, Colour::Never).expect("a report").text(Colour::Never);
        assert!(text.contains(expected), "{name}: {text}");
        let is_limited = text.contains("refused with 413: the condition ended unknown: limit");
        assert_eq!(is_limited, name.contains("beyond"), "{name}: {text}");
    }
}
