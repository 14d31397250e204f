//! Rule texts: what is wrong is said in its place, what is right keeps its meaning when it is formatted, and
//! a decision is the walk that its explanation tells.

use std::ops::ControlFlow;

use pointsman_rules::{
    Cause, Colour, DecidedBy, Diagnostic, Exit, Field, OnUnknown, Outcome, Program, RuleIndex, Severity,
    Subject, Targets, Truth, Truths, Value, VisitedExit, compile, format, parse,
};

use crate::random::{Random, hash};

pub(crate) const TOKENS: &[&str] = &[
    "if (",
    "If (",
    ") {",
    "}",
    " else ",
    "else: ",
    "R1: ",
    "; ",
    "goto R2;",
    "routeTo(a);",
    "routeTo(a, STICKY);",
    "return",
    "reject(403);",
    "discard();",
    "redirect(302, \"https://${host}${path}\");",
    "respond(200, \"ok\");",
    "setHeader(\"x\", \"${path}\");",
    "removeHeader(\"x\");",
    "rewritePath(\"^/(a)\", \"/$1\");",
    "tag(\"x\");",
    "&&",
    "||",
    "!",
    "(",
    ")",
    "[",
    "]",
    ",",
    "..",
    "==",
    "= =",
    "!=",
    "<",
    ">=",
    "path",
    "url",
    "host",
    "method",
    "srcip",
    "clientip",
    "header[\"x\"]",
    "query[\"k\"]",
    "cookie[\"c\"]",
    "tls.resumed",
    "json.a[0]",
    "xml.a/b",
    "exists",
    "in [",
    "matches",
    "like",
    "under",
    "contains",
    "startsWith",
    "endsWith",
    "lower(",
    "all(",
    "count(",
    "first(",
    "once(",
    "match(",
    "strcmp(",
    "strstr(",
    "atoi(",
    "NULL",
    "true",
    "on_unknown reject;",
    "on_unknown skip;",
    "on_unknown routeTo(a);",
    "10.0.0.0/8",
    "::1",
    "10.0.0.1 .. 10.0.0.9",
    "(1..5)",
    "1.5e3",
    "-1",
    "0x80c6a2d9",
    "1e99999",
    "\"/a\"",
    "\"",
    "“b”",
    "\"a(b\"",
    "\"${\"",
    "\\",
    "# c\n",
    "\n",
    "\r",
    "\t",
    "\u{feff}",
    "\u{a0}",
    "é",
    "\0",
    "test \"t\" {",
    "assert \"a\":",
    "allow conflict(R1);",
];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    let text = &String::from_utf8_lossy(input);
    let (_, findings) = parse(text);
    in_place(&findings, text);
    let known = Targets::known([("a", vec!["s", "b"]), ("standard", vec!["big"]), ("fast", vec!["server1"])]);
    match compile(text, &known) {
        Ok(compiled) => in_place(&compiled.warnings, text),
        Err(findings) => in_place(&findings, text),
    }
    let meaning = meaning(text);
    match format(text) {
        Ok(modern) => {
            assert_eq!(format(&modern).as_ref(), Ok(&modern), "what is formatted stays as it is");
            assert_eq!(comments(&modern), comments(text), "the comments");
            assert_eq!(self::meaning(&modern), meaning, "the meaning of {modern}");
        }
        Err(_) => assert!(meaning.is_err(), "what cannot be formatted means nothing"),
    }
    if let Ok(compiled) = compile(text, &Targets::Any) {
        let mut random = Random::of(input);
        for _ in 0..4 {
            decided_as_explained(&compiled.program, &MadeUp::of(text, random.next()));
        }
    }
}

/// Every finding has a sentence and a place; the first few are drawn, which takes longer than all the rest.
pub(crate) fn in_place(findings: &[Diagnostic], text: &str) {
    const DRAWN: usize = 2;
    for finding in findings.iter().take(DRAWN) {
        assert!(!finding.render("a.rules", text, Colour::Never).is_empty());
    }
    for finding in findings {
        assert!(!finding.message.is_empty());
        let (start, end) = (finding.span.start as usize, finding.span.end as usize);
        assert!(text.get(start..end).is_some(), "{finding:?}");
    }
}

/// The program without its places and what is odd about it, or how many things are wrong. What they are called
/// is another matter: a sentence about an older spelling names what was written.
fn meaning(text: &str) -> Result<String, usize> {
    match compile(text, &Targets::Any) {
        Ok(compiled) => {
            let program = without_spans(&format!("{:?}", compiled.program));
            Ok(compiled.warnings.iter().fold(program, |all, warning| all + "\n" + &warning.message))
        }
        Err(findings) => Err(findings.iter().filter(|finding| finding.severity == Severity::Error).count()),
    }
}

fn without_spans(debug: &str) -> String {
    let mut pieces = debug.split("Span { start: ");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str("Span");
        out.push_str(piece.split_once('}').map_or(piece, |(_, after)| after));
    }
    out
}

/// Sorted: some move up to the head of their rule.
fn comments(text: &str) -> Vec<String> {
    let (file, _) = parse(text);
    let spans = file.comments.iter().map(|comment| comment.span.start as usize..comment.span.end as usize);
    let mut comments: Vec<_> = spans.map(|span| text[span].trim_end().to_owned()).collect();
    comments.sort();
    comments
}

/// The rules that the explanation shows lead, one after the other, to what was decided.
fn decided_as_explained(program: &Program, subject: &MadeUp<'_>) {
    let decision = program.decide(subject, &mut Truths::default());
    let explained = program.explain(subject);
    assert_eq!(format!("{decision:?}"), format!("{:?}", explained.decision));
    let mut expected = RuleIndex(0);
    let mut effects = Vec::new();
    for visited in &explained.visited {
        assert_eq!(visited.index, expected, "a rule out of turn");
        let rule = program.rule(visited.index).expect("a rule that is there");
        let block = match visited.result {
            Truth::True => Some(&rule.then),
            Truth::False => Some(&rule.otherwise),
            Truth::Unknown(_) => None,
        };
        effects.extend(block.iter().flat_map(|block| &block.effects).map(|effect| format!("{effect:?}")));
        let next = match (block.map(|block| &block.exit), program.on_unknown) {
            (Some(Exit::Terminal(_)), _) | (None, OnUnknown::Reject | OnUnknown::RouteTo(_)) => None,
            (Some(Exit::Goto(to)), _) => Some(*to),
            (Some(Exit::Next), _) | (None, OnUnknown::Skip) => Some(RuleIndex(visited.index.0 + 1)),
        };
        assert_eq!(next.is_none(), matches!(visited.exit, VisitedExit::Decided));
        let Some(next) = next else {
            assert_eq!(decision.by, DecidedBy::Rule { index: visited.index, label: &rule.label });
            break;
        };
        assert!(next > visited.index, "the walk goes forward");
        expected = next;
    }
    if let Outcome::Refused(_) = decision.outcome {
        // Of what is refused as unknown the tags alone are kept.
        effects.retain(|effect| effect.starts_with("Tag("));
    }
    let collected: Vec<_> = decision.effects.iter().map(|effect| format!("{effect:?}")).collect();
    assert_eq!(collected, effects, "effects in the order of the walk");
    if decision.by == DecidedBy::Nothing {
        assert!(matches!(decision.outcome, Outcome::DefaultPool) && program.rule(expected).is_none());
    }
}

/// A subject whose values are the words of the rules themselves, so that comparisons often hold.
struct MadeUp<'t> {
    words: Vec<&'t str>,
    seed: u64,
}

impl<'t> MadeUp<'t> {
    fn of(text: &'t str, seed: u64) -> Self {
        let words = text.split(|c: char| c.is_whitespace() || "\"“”,;()[]".contains(c));
        Self { words: words.filter(|word| !word.is_empty()).take(200).collect(), seed }
    }

    fn random(&self, field: &Field) -> Random {
        Random::new(self.seed ^ hash(format!("{field:?}").as_bytes()))
    }
}

impl Subject for MadeUp<'_> {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        let mut random = self.random(field);
        for _ in 0..random.below(4) {
            let word = random.pick(&self.words).copied().unwrap_or_default();
            let value = match field {
                Field::SrcIp | Field::DstIp | Field::ClientIp => {
                    Value::Ip(word.parse().unwrap_or([10, 0, 0, random.below(9) as u8].into()))
                }
                Field::SrcPort | Field::DstPort | Field::ContentLength => {
                    Value::Integer(word.parse().unwrap_or(random.below(9) as u64))
                }
                Field::TlsResumed => Value::Boolean(random.below(2) == 0),
                _ => Value::Text(word.as_bytes()),
            };
            if see(value).is_break() {
                return;
            }
        }
    }

    fn unsettled(&self, field: &Field) -> Option<Cause> {
        let mut random = self.random(field);
        random.next().is_multiple_of(16).then_some(Cause::Limit)
    }
}
