//! Every rule that the papers print, against the decisions in `testdata/rules/papers/decisions.txt`.

mod script;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointsman_http::Framing;
use pointsman_rules::ast::{Item, Rule};
use pointsman_rules::{
    Colour, Decision, Diagnostic, Effect, Evidence, HeaderEdit, Outcome, Program, Severity, Side, Stickiness,
    TargetId, Terminal, Truth, Truths, compile, format, parse,
};
use pointsman_view::{BodyOptions, BodyPaths, Inspection, PathOptions, RequestView, normal_form};

use crate::head::{believed, head};
use script::{Request, Set};

#[test]
fn as_printed() {
    check(|set| {
        let findings = compile(&set.rules, &set.targets()).map_or_else(|all| all, |set| set.warnings);
        let warnings = findings.iter().filter(|finding| finding.severity == Severity::Warning);
        let said: Vec<_> = warnings
            .map(|warning| format!("{} ({})", warning.message, warning.help.as_deref().unwrap_or_default()))
            .collect();
        let mut failures = decided(set, &set.rules);
        if said != set.warnings {
            failures.push(format!("{}: the warnings are {said:?}", set.line));
        }
        failures
    });
}

/// The modern form means the same.
#[test]
fn as_formatted() {
    check(|set| match format(&set.rules) {
        Ok(modern) => decided(set, &modern),
        Err(findings) => vec![format!("{}: {}", set.line, rendered(&findings, &set.rules))],
    });
}

/// "Every" rule: those of the files beside the decisions, word by word.
#[test]
fn no_rule_is_without_a_decision() {
    let decided: HashSet<String> = sets().iter().flat_map(|set| texts(&set.rules)).collect();
    let folder = std::fs::read_dir(papers()).expect("the papers are there");
    let paths = folder.map(|entry| entry.expect("an entry").path());
    let mut rules = 0;
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "rules")) {
        for text in texts(&read(&path)) {
            assert!(decided.contains(&text), "{}: no decision about\n{text}", path.display());
            rules += 1;
        }
    }
    assert!(rules >= 26, "the papers have lost rules: {rules}");
}

fn check(failures: impl Fn(&Set) -> Vec<String>) {
    let failures: Vec<String> = sets().iter().flat_map(failures).collect();
    assert!(failures.is_empty(), "decisions.txt:\n{}", failures.join("\n"));
}

/// What goes otherwise than `set` says when its rules are written as `rules`.
fn decided(set: &Set, rules: &str) -> Vec<String> {
    match compile(rules, &set.targets()) {
        Ok(compiled) => run(set, &Arc::new(compiled.program)),
        Err(findings) => vec![format!("{}: {}", set.line, rendered(&findings, rules))],
    }
}

/// Plays the requests. Each rule must hold for one of them and not for another.
fn run(set: &Set, program: &Arc<Program>) -> Vec<String> {
    let mut failures = Vec::new();
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    for request in &set.requests {
        let (seen, held) = decide(request, program);
        if seen != request.decision {
            failures.push(format!("{}: it is {seen}", request.line));
        }
        for label in held {
            *taken.entry(label).or_default() += 1;
        }
    }
    for rule in program.rules.iter().chain(&program.fallback) {
        let count = taken.get(&*rule.label).copied().unwrap_or_default();
        if (count == 0) != set.takes_nothing || count == set.requests.len() {
            let of = set.requests.len();
            failures.push(format!("{}: `{}` holds for {count} of {of} requests", set.line, rule.label));
        }
    }
    failures
}

/// The decision as the file spells it, and the rules that held on the way to it. The body comes byte by byte.
fn decide<'p>(request: &Request, program: &'p Arc<Program>) -> (String, Vec<&'p str>) {
    let head = match head(&request.head) {
        Ok(head) => head,
        Err(refusal) => return (format!("no request {}", refusal.status()), Vec::new()),
    };
    let mut scratch = Vec::new();
    let path = match normal_form(head.path_and_query(&request.head), PathOptions::default(), &mut scratch) {
        Ok(path) => path,
        Err(refusal) => return (format!("no request {}", refusal.status()), Vec::new()),
    };
    check_framing(request, head.framing());
    let view = RequestView::new(&head, &request.head, &request.connection, path, believed(&[]));
    let paths = Arc::new(BodyPaths::new(program));
    let mut body =
        Inspection::new(Evidence::new(program), paths, &head, &request.head, &BodyOptions::default());
    let mut content = request.body.chunks(1);
    let mut truths = Truths::default();
    while waits(&program.decide(&view.with_body(body.evidence()), &mut truths)) {
        match content.next() {
            Some(byte) => body.feed(byte),
            None => body.finish(),
        }
    }
    let view = view.with_body(body.evidence());
    let explanation = program.explain(&view);
    let seen = spelled(program, &program.decide(&view, &mut truths), &view);
    assert_eq!(seen, spelled(program, &explanation.decision, &view), "line {}", request.line);
    let held = explanation.visited.iter().filter(|visited| visited.result == Truth::True);
    (seen, held.map(|visited| visited.label).collect())
}

fn waits(decision: &Decision<'_>) -> bool {
    matches!(decision.outcome, Outcome::Waits)
}

fn spelled(program: &Program, decision: &Decision<'_>, view: &RequestView<'_>) -> String {
    let mut line = format!("{} -> ", decision.by.label().unwrap_or("none"));
    line += &match decision.outcome {
        Outcome::Terminal(Terminal::RouteTo { target, sticky }) => {
            format!("{} {}", target_name(program, *target), sticky_name(sticky))
        }
        Outcome::Terminal(Terminal::Reject { status, reason: None }) => format!("reject {status}"),
        Outcome::Terminal(Terminal::Reject { status, reason: Some(reason) }) => {
            format!("reject {status} \"{reason}\"")
        }
        Outcome::Terminal(Terminal::Reset) => "reject reset".to_owned(),
        Outcome::Terminal(Terminal::Discard) => "discard".to_owned(),
        Outcome::Refused(cause) => format!("refused {} ({cause})", cause.status()),
        Outcome::DefaultPool => "default pool".to_owned(),
        ref other => format!("{other:?}, which no paper prints"),
    };
    for effect in &decision.effects {
        match effect {
            Effect::Header { side: Side::Request, name, edit: HeaderEdit::Set(value) } => {
                let mut bytes = Vec::new();
                value.render(view, &mut bytes).expect("a value that fits into a line");
                write!(line, " with setHeader {name} {}", String::from_utf8_lossy(&bytes)).expect("memory");
            }
            other => write!(line, " with {other:?}, which no paper prints").expect("memory"),
        }
    }
    line
}

fn target_name(program: &Program, target: TargetId) -> String {
    let target = &program.targets[target.0 as usize];
    match &target.server {
        Some(server) => format!("{}.{server}", target.pool),
        None => target.pool.to_string(),
    }
}

fn sticky_name(sticky: &Stickiness) -> String {
    match sticky {
        Stickiness::None => "NON_STICKY".to_owned(),
        Stickiness::Ip => "STICKY_ON_IP".to_owned(),
        Stickiness::IpPort => "STICKY_ON_IP_PORT".to_owned(),
        Stickiness::Cookie => "STICKY_ON_COOKIE".to_owned(),
        Stickiness::TlsSession => "STICKY_ON_TLS_SESSION".to_owned(),
        Stickiness::Field(field) => format!("STICKY_ON({field})"),
    }
}

fn check_framing(request: &Request, framing: Framing) {
    let announced = match framing {
        Framing::None => 0,
        Framing::Length(length) => length,
        other => panic!("line {}: {other:?}", request.line),
    };
    assert_eq!(announced, request.body.len() as u64, "line {}: the length of the body", request.line);
}

/// The rules of a text, each on one line with single spaces.
fn texts(source: &str) -> Vec<String> {
    let (file, _) = parse(source);
    let rules = file.items.iter().filter_map(|item| match item {
        Item::Rule(rule) | Item::Fallback(rule) => Some(&**rule),
        _ => None,
    });
    let text = |rule: &Rule| &source[rule.span.start as usize..rule.span.end as usize];
    rules.map(|rule| text(rule).split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn rendered(findings: &[Diagnostic], rules: &str) -> String {
    let parts = findings.iter().map(|finding| finding.render("rules", rules, Colour::Never));
    parts.collect::<Vec<_>>().join("\n")
}

fn sets() -> Vec<Set> {
    script::sets(&read(&papers().join("decisions.txt")))
}

fn papers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/rules/papers")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
