//! Hostile text never panics; valid text keeps its meaning and its comments when it is formatted.

use pointsman_rules::{Colour, Targets, compile, format, parse};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use regex::Regex;

const SOUP: &[&str] = &[
    "R1:",
    "R2:",
    "if",
    "If",
    "else",
    "else:",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ";",
    "=",
    "==",
    "= =",
    "!=",
    "<",
    ">",
    "!",
    "&&",
    "||",
    "&",
    "|",
    "..",
    "->",
    "..",
    "path",
    "header[\"a\"]",
    "header[",
    "srcip",
    "url",
    "tls.resumed",
    "xml.a/b[1]",
    "xml.",
    "json.a[*]",
    "json[\"",
    "purchase:1.subTotal:2.",
    "a:0.",
    "0x80c6a2d9",
    "0x",
    "5",
    "-1.5e3",
    "1e99999",
    "10.0.0.1",
    "10.0.0.0/8",
    "10.0.0.0/99",
    "::1",
    "fe80::/10",
    "\"text\"",
    "\"${path}\"",
    "\"${query[\"k\"]}\"",
    "\"${\"",
    "\"a(b\"",
    "\"open",
    "“typo”",
    "‘it\"s’",
    "exists",
    "in",
    "matches",
    "like",
    "under",
    "contains",
    "match(",
    "strcmp(",
    "strstr(",
    "atoi(",
    "lower(",
    "all(",
    "count(",
    "NULL",
    "true",
    "routeTo(",
    "routeTo(a);",
    "return",
    "goto",
    "goto R2;",
    "reject(403);",
    "discard();",
    "setHeader(",
    "rewritePath(\"a(b)\", \"$1$2\");",
    "tag(x);",
    "allow",
    "conflict(",
    "split(",
    "routeTo(split(90: a, 9.5: b.c, 0.5: d), STICKY_ON_IP);",
    "STICKY_ON(",
    "STICKY_ON_IP",
    "on_unknown",
    "skip;",
    "validate",
    "stream;",
    "namespace",
    "test \"a\" {",
    "request",
    "expect",
    "assert \"a\":",
    "never",
    "# comment\n",
    "\n",
    "\n\n",
    "\r",
    "\t",
    "\u{feff}",
    "\u{a0}",
    "\0",
    "é",
    "%",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..200)) {
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_soup_is_read(words in vec(select(SOUP), 0..60), gap in select(&["", " ", "\n"][..])) {
        survives(&words.join(gap));
    }

    #[test]
    fn a_damaged_file_is_read(text in file(with_payload()), at in any::<prop::sample::Index>(), word in select(SOUP)) {
        let mut damaged: Vec<char> = text.chars().collect();
        let at = at.index(damaged.len());
        damaged.splice(at..(at + word.len() % 3).min(damaged.len()), word.chars());
        survives(&damaged.into_iter().collect::<String>());
    }

    #[test]
    fn formatting_keeps_the_meaning(text in file(condition(HEAD_LEAVES.to_vec()))) {
        let modern = formatted(&text);
        let (before, after) = (program(&text), program(&modern));
        prop_assert!(before.is_ok(), "{before:?}");
        prop_assert_eq!(after, before);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    /// What does not run yet means something too: the same errors.
    #[test]
    fn formatting_keeps_what_is_refused(text in file(with_payload())) {
        prop_assert_eq!(program(&formatted(&text)), program(&text));
    }
}

/// The modern form of a valid text, with its comments.
fn formatted(text: &str) -> String {
    let modern = format(text).expect("the generated file is valid");
    assert_eq!(format(&modern).as_ref(), Ok(&modern));
    assert_eq!(comments(&modern), comments(text));
    modern
}

/// Reads, compiles, draws and formats; nothing may panic, and what formats is stable.
fn survives(text: &str) {
    let (_, findings) = parse(text);
    for finding in findings {
        assert!(
            finding.span.start <= finding.span.end && finding.span.end as usize <= text.len(),
            "{finding:?}"
        );
        finding.render("soup.rules", text, Colour::Never);
    }
    let targets = Targets::known([("a", vec!["s", "b"]), ("b", vec!["s"])]);
    if let Err(findings) = compile(text, &targets) {
        for finding in findings {
            finding.render("soup.rules", text, Colour::Ansi);
        }
    }
    if let Ok(modern) = format(text) {
        assert_eq!(format(&modern).as_ref(), Ok(&modern));
        assert_eq!(comments(&modern), comments(text));
    }
}

/// The comments of a text, sorted: some move up to the head of their rule.
fn comments(text: &str) -> Vec<String> {
    let (file, _) = parse(text);
    let spans = file.comments.iter().map(|comment| comment.span.start as usize..comment.span.end as usize);
    let mut comments: Vec<_> = spans.map(|span| text[span].to_owned()).collect();
    comments.sort();
    comments
}

/// The compiled program without its places and what is odd about it, or what is wrong.
fn program(text: &str) -> Result<String, Vec<String>> {
    let spans = Regex::new(r"Span \{ start: \d+, end: \d+ \}").expect("a regex");
    match compile(text, &Targets::Any) {
        Ok(compiled) => {
            let odd: Vec<_> = compiled.warnings.iter().map(|warning| &warning.message).collect();
            Ok(spans.replace_all(&format!("{:?} {odd:?}", compiled.program), "_").into_owned())
        }
        Err(findings) => Err(findings.into_iter().map(|finding| finding.message).collect()),
    }
}

/// A valid file with odd white space and comments between its tokens.
fn file(condition: impl Strategy<Value = Vec<String>>) -> impl Strategy<Value = String> {
    let rules = vec((condition, vec(effect(), 0..3), terminal(), prop::option::of(terminal())), 1..4);
    (rules, vec(gap(), 1..200)).prop_map(|(rules, gaps)| {
        let mut words = Vec::new();
        for (number, (condition, effects, terminal, otherwise)) in rules.into_iter().enumerate() {
            words.extend([format!("L{number}"), ":".into(), "if".into(), "(".into()]);
            words.extend(condition);
            words.extend([")".into(), "{".into()]);
            words.extend(effects.into_iter().flatten());
            words.extend(terminal);
            words.push("}".into());
            if let Some(otherwise) = otherwise {
                words.push("else".into());
                words.extend(otherwise);
            }
        }
        words.extend(["else", ":", "routeTo", "(", "rest", ")", ";"].map(String::from));
        let mut gaps = gaps.iter().cycle();
        words.iter().flat_map(|word| [&**word, gaps.next().copied().unwrap_or(" ")]).collect()
    })
}

fn gap() -> impl Strategy<Value = &'static str> {
    select(
        &[
            " ",
            " ",
            " ",
            " ",
            " ",
            "  ",
            "\n",
            "\n",
            "\n\n\n",
            " # one\n",
            "\n  # two\n",
            "\n\n#three \n",
            "\r\n",
        ][..],
    )
}

fn words(text: &'static str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}

/// Comparisons that run.
const HEAD_LEAVES: &[&str] = &[
    "path == \"/a\"",
    "path = = “/a”",
    "URL ! = “/b”",
    "host endsWith \".example\"",
    "tls.resumed",
    "! tls.resumed",
    "header [ \"x-a\" ] > 99.95",
    "count ( header [ \"x\" ] ) in 3 .. 5",
    "srcip in [ 10.0.0.0/8 , 2001:db8::/32 , 10.0.0.1 .. 10.0.0.9 ]",
    "saddr == 0x80c6a2d9",
    "match ( url , \"a+$\" )",
    "! match ( url , \"a+$\" )",
    "strcmp ( url , \"s\" ) == 0",
    "strcmp ( url , \"s\" ) < 0",
    "strcmp ( url , \"a.+\" ) == 0",
    "URL in [ “*a” , \"/b\" ]",
    "strstr ( url , \"s\" ) != NULL",
    "strstr ( url , \"s\" ) == NULL",
    "atoi ( query [ \"n\" ] ) <= 5",
    "lower ( first ( cookie [ \"c\" ] ) ) like \"a*\"",
    "query exists",
    "all ( header [ \"x\" ] ) in ( 3 .. 5 )",
];

/// Comparisons that are refused when they are compiled.
const PAYLOAD_LEAVES: &[&str] = &["purchase:1.subTotal:2. > 5", "json.a[0][\"b\"] == 1"];

fn with_payload() -> impl Strategy<Value = Vec<String>> {
    condition([HEAD_LEAVES, PAYLOAD_LEAVES].concat())
}

fn condition(leaves: Vec<&'static str>) -> impl Strategy<Value = Vec<String>> {
    let leaf = select(leaves).prop_map(words);
    leaf.prop_recursive(4, 16, 4, |inner| {
        let joint = select(&["&&", "||"][..]);
        prop_oneof![
            (inner.clone(), joint, inner.clone()).prop_map(|(left, joint, right)| [
                left,
                vec![joint.to_owned()],
                right
            ]
            .concat()),
            (inner, select(&["(", "! ("][..])).prop_map(|(inner, open)| [
                words(open),
                inner,
                vec![")".to_owned()]
            ]
            .concat()),
        ]
    })
}

fn effect() -> impl Strategy<Value = Vec<String>> {
    select(
        &[
            "setHeader ( \"x-a\" , \"${path}${query[\"k\"]}\" ) ;",
            "addResponseHeader ( “x-b” , ‘it\"s’ ) ;",
            "removeHeader ( \"X-C\" ) ;",
            "rewritePath ( \"^/(a)\" , \"/$1\" ) ;",
            "tag ( \"word\" ) ;",
            "allow conflict ( L0 ) ;",
        ][..],
    )
    .prop_map(words)
}

fn terminal() -> impl Strategy<Value = Vec<String>> {
    select(
        &[
            "routeTo ( a ) ;",
            "return route_to ( \"b\" , STICKY ) ;",
            "routeTo ( \"two.words\" , STICKY_ON ( cookie [ \"sid\" ] ) ) ;",
            "reject ( ) ;",
            "reject ( 403 , \"no\" ) ;",
            "discard ( ) ;",
            "redirect ( 302 , \"https://${host}/\" ) ;",
            "respond ( 200 , \"ok\" ) ;",
            "routeTo ( “pool-x” , NONSTICKY ) ;",
        ][..],
    )
    .prop_map(words)
}
