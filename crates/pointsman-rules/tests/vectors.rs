//! Rule texts from `testdata/rules` against what is said about them and how they are formatted.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pointsman_rules::{Colour, Diagnostic, Targets, compile, format};
use regex::Regex;

/// Compares with the file `expected`, or writes it when `UPDATE_EXPECT` is set.
fn check(actual: &str, expected: &Path) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(expected, actual).expect("the expectation can be written");
        return;
    }
    let wanted = std::fs::read_to_string(expected).unwrap_or_default();
    assert_eq!(actual, wanted, "{} differs; UPDATE_EXPECT=1 rewrites it", expected.display());
}

#[test]
fn findings() {
    for path in vectors("errors").chain(vectors("warnings")).chain(vectors("papers")) {
        let source = read(&path);
        let findings = match compile(&source, &targets(&source)) {
            Ok(compiled) => compiled.warnings,
            Err(findings) => findings,
        };
        check(&rendered(&findings, &path, &source), &path.with_extension("stderr"));
    }
}

#[test]
fn formatted() {
    for path in vectors("fmt").chain(vectors("papers")) {
        let source = read(&path);
        let modern =
            format(&source).unwrap_or_else(|findings| panic!("{}", rendered(&findings, &path, &source)));
        check(&modern, &path.with_extension("fmt"));
        assert_eq!(format(&modern).as_ref(), Ok(&modern), "{} is not stable", path.display());
    }
}

/// Each rule that the papers print, by itself: its modern form, or what is said about it.
#[test]
fn printed_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/rules/printed.txt");
    let text = read(&path);
    let (head, sections) = text.split_once("\n== ").expect("sections");
    let mut actual = head.to_owned();
    let mut number = 0;
    for section in sections.split("\n== ") {
        let (name, source) = section.split_once('\n').expect("a name and a rule");
        let source = source.split("\n-- ").next().unwrap_or(source).trim_end().to_owned() + "\n";
        number += 1;
        write!(actual, "\n== {name}\n{source}").expect("writing to a string");
        let (kind, said) = match format(&source) {
            Ok(modern) => {
                assert_eq!(format(&modern).as_ref(), Ok(&modern), "{name} is not stable");
                assert!(compile(&source, &Targets::Any).is_ok(), "{name} does not compile");
                ("modern", modern)
            }
            Err(findings) => ("misprint", rendered(&findings, Path::new("printed"), &source)),
        };
        write!(actual, "-- {kind}\n{}\n", said.trim_end()).expect("writing to a string");
    }
    assert_eq!(number, 45, "43 printed rules, two of them with and without the table that they need");
    check(&actual, &path);
}

#[test]
fn compiled() {
    let spans = Regex::new(r"span: Span \{ start: \d+, end: \d+ \}, |number: \d+, ").expect("a regex");
    for path in vectors("compiled") {
        let source = read(&path);
        let program = match compile(&source, &targets(&source)) {
            Ok(compiled) => compiled.program,
            Err(findings) => panic!("{}", rendered(&findings, &path, &source)),
        };
        let mut lines = format!("{:?}\n{:?}\n", program.targets, program.on_unknown);
        for rule in program.rules.iter().chain(&program.fallback) {
            writeln!(lines, "{}", spans.replace_all(&format!("{rule:?}"), "")).expect("writing to a string");
        }
        check(&lines, &path.with_extension("program"));
    }
}

/// What each rule may cost of a body.
#[test]
fn costs() {
    for path in vectors("costs") {
        let source = read(&path);
        let program = match compile(&source, &targets(&source)) {
            Ok(compiled) => compiled.program,
            Err(findings) => panic!("{}", rendered(&findings, &path, &source)),
        };
        let mut lines = String::new();
        for cost in program.body_costs() {
            writeln!(lines, "{}: {}", cost.name(&program), cost.sentence(&program))
                .expect("writing to a string");
        }
        check(&lines, &path.with_extension("costs"));
    }
}

#[test]
fn reference() {
    assert!(examples("docs/reference/rules.md") > 5, "the reference has lost its examples");
}

#[test]
fn guides() {
    for (page, least) in [("bodies", 4), ("balancing", 3), ("deploy", 1), ("from-nginx-and-haproxy", 1)] {
        assert!(examples(&format!("docs/guide/{page}.md")) >= least, "{page}.md has lost its examples");
    }
}

/// Every example of the page is in modern form, and compiles unless it says that it cannot. How many there are.
fn examples(page: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = read(&path);
    let mut blocks = text.split("\n```");
    let mut examples = 0;
    while let (Some(_), Some(block)) = (blocks.next(), blocks.next()) {
        let (kind, example) = block.split_once('\n').expect("a fence and its lines");
        if !kind.starts_with("rules") {
            continue;
        }
        let example = format!("{example}\n");
        assert_eq!(format(&example).as_ref(), Ok(&example));
        let findings = compile(&example, &Targets::Any).err().unwrap_or_default();
        assert_eq!(findings.is_empty(), kind == "rules", "{}", rendered(&findings, &path, &example));
        examples += 1;
    }
    examples
}

fn vectors(folder: &str) -> impl Iterator<Item = PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/rules").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the vectors are there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rules"));
    paths.sort();
    assert!(!paths.is_empty(), "no vectors in {}", folder.display());
    paths.into_iter()
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).expect("a readable vector")).into_owned()
}

/// A first line `# targets: fast(server1 server2) images()` names the pools and their servers.
fn targets(source: &str) -> Targets {
    let Some(line) = source.lines().next().and_then(|line| line.strip_prefix("# targets: ")) else {
        return Targets::Any;
    };
    Targets::known(line.split_terminator(')').map(|pool| {
        let (name, servers) = pool.split_once('(').expect("pool(servers)");
        (name.trim(), servers.split_whitespace().collect())
    }))
}

fn rendered(findings: &[Diagnostic], path: &Path, source: &str) -> String {
    let name = path.file_name().expect("a name").to_string_lossy();
    let mut out = String::new();
    for finding in findings {
        writeln!(out, "{}\n", finding.render(&name, source, Colour::Never)).expect("writing to a string");
    }
    out
}
