//! Tests of rules whose fields depend on each other do what their names say.

use std::fmt::Write as _;

use pointsman_analysis::ProxyHeader;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Of fields that are made of each other, or of one line, or of a body that a request has one of.
const ASKED: &[&str] = &[
    "json.a == 5",
    "json.a > 7",
    "json.a exists",
    "count(json.b[*]) > 1",
    r#"xml.r/b == "x""#,
    "xml.r/b > 3",
    r#"form["f"] == "x""#,
    r#"form["f"] exists"#,
    "body.size > 10",
    "body.size == 0",
    "body.size exists",
    "content_length > 10",
    "content_length == 0",
    "content_length exists",
    r#"header["content-length"] exists"#,
    r#"header["content-length"] == "30""#,
    r#"header["transfer-encoding"] exists"#,
    r#"content_type == "application/json""#,
    r#"content_type endsWith "xml""#,
    "content_type exists",
    r#"header["content-type"] contains "charset""#,
    r#"header["content-type"] exists"#,
    r#"method == "POST""#,
    r#"method == "GET""#,
    r#"host == "a.example""#,
    r#"host endsWith ".example""#,
    r#"header["host"] exists"#,
    r#"header["host"] contains ":""#,
    r#"url == "/a?k=1""#,
    r#"url startsWith "/b""#,
    r#"path == "/a""#,
    r#"path under "/b""#,
    "query exists",
    r#"query["k"] == "1""#,
    r#"query["k"] exists"#,
    r#"version == "1.0""#,
    r#"version == "2""#,
    r#"scheme == "https""#,
    r#"proto == "http""#,
    r#"tls.version == "1.2""#,
    "tls.alpn exists",
    r#"tls.sni == "a.example""#,
    "tls.sni exists",
    "dstport == 443",
    "dstip == 127.0.0.1",
    "srcip in [10.0.0.0/8]",
    "clientip == 10.0.0.1",
    r#"header["x-forwarded-for"] exists"#,
    r#"cookie["c"] == "1""#,
    r#"header["cookie"] contains "c=""#,
    r#"header["cookie"] exists"#,
    r#"upgrade == "websocket""#,
    r#"header["connection"] exists"#,
    r#"url startsWith "https://""#,
    r#"url == "*""#,
    r#"path == "*""#,
    r#"content_type endsWith "+json""#,
    r#"tls.alpn == "h2""#,
    r#"tls.cipher contains "_RSA_""#,
    "tls.resumed",
    "count(tls.client.san) > 1",
    r#"tls.client.subject exists"#,
    r#"header["forwarded"] exists"#,
];

fn conditions() -> impl Strategy<Value = String> {
    let test = (select(ASKED), any::<bool>())
        .prop_map(|(test, is_plain)| if is_plain { test.to_owned() } else { format!("!({test})") });
    prop_oneof![
        3 => test.clone(),
        2 => vec(test.clone(), 2..4).prop_map(|parts| parts.join(" && ")),
        1 => vec(test, 2..4).prop_map(|parts| parts.join(" || ")),
    ]
}

fn sources() -> impl Strategy<Value = String> {
    let block = select(vec!["routeTo(a);", "routeTo(b);", "reject(403);", "tag(t);"]);
    let policy = select(vec!["", "on_unknown skip;\n", "on_unknown routeTo(c);\n"]);
    (policy, vec((conditions(), block), 2..6)).prop_map(|(policy, rules)| {
        let rules = (0..).zip(rules).fold(String::new(), |mut rules, (at, (condition, block))| {
            writeln!(rules, "R{at}: if ({condition}) {{ {block} }}").expect("memory takes it");
            rules
        });
        format!("{policy}{rules}else: routeTo(d);\n")
    })
}

/// Where the rules stand: by themselves, or at a listener of plain requests or of TLS.
fn places() -> impl Strategy<Value = Option<bool>> {
    select(vec![None, None, Some(false), Some(true)])
}

fn at(listener: Option<bool>, source: &str) -> Suite {
    let mut suite = suite(source, Vec::new());
    if let Some(is_tls) = listener {
        let place = &mut suite.place;
        (place.listener, place.is_tls, place.proxy_header) = ("shop".into(), is_tls, ProxyHeader::Off);
        place.takes_unix = false;
        place.binds = vec!["127.0.0.1:443".parse().expect("an address")];
    }
    suite
}

/// What is wrong with a test by its name: the condition of the rule that it is called after is something else.
fn misnamed(case: &TestCase, suite: &Suite) -> Option<String> {
    let mut coverage = Coverage::new(&suite.program);
    let verdict = trial::run(case, &suite.place, &suite.program, &mut coverage);
    if verdict != Verdict::Passed {
        return Some(format!("{}: {verdict:?}", case.name));
    }
    let (label, expected) = match case.name.strip_prefix("not ") {
        Some(label) => (label, "false"),
        None => match case.name.split_once(' ') {
            None => (&*case.name, "true"),
            Some((label, rest)) if rest.starts_with("before ") => (label, "true"),
            Some((label, "ends unknown")) => (label, "unknown"),
            Some(_) => return None,
        },
    };
    let seen = coverage.to_json();
    let rules = seen["rules"].as_array().expect("rules");
    let rule = rules.iter().find(|rule| rule["rule"] == label).expect("its rule");
    (rule[expected] != 1).then(|| format!("`{}`: {label} is not {expected}", case.name))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 2 / 5))]
    #[test]
    fn tests_do_what_their_names_say(source in sources(), listener in places()) {
        let suite = at(listener, &source);
        let generated = Generated::of(&suite, 10_000);
        let read = suite.beside.further(&generated.text, &suite.program, &suite.targets);
        let (Further { cases, .. }, _) = read.unwrap_or_else(|wrong| panic!("{}{wrong:?}", generated.text));
        for case in &cases {
            prop_assert_eq!(misnamed(case, &suite), None, "{:?}\n{}\n{}", listener, source, generated.text);
        }
        // Each side of a rule has one, or it is said why not.
        let coverage = coverage(&suite, &generated);
        prop_assert_eq!(
            silent(&coverage, &generated), Vec::<String>::new(),
            "{:?}\n{}\n{}", listener, source, generated.text
        );
        // What tests cannot say is only that a field has no more values before a fault of its body.
        let unsaid = generated.text.lines().find(|line| line.contains("no test can say") && !line.ends_with(NO_MORE_VALUES));
        prop_assert_eq!(unsaid, None, "{:?}\n{}\n{}", listener, source, generated.text);
    }
}
