//! What is said of small rule sets, one by one.

use super::super::{Code, Doubt, Finding, findings};
use super::{program, with_reasons};
use crate::{ClientCertificates, Effort, OddFields, ProxyHeader, Setting};
use pointsman_rules::Severity;

const EFFORT: u64 = 50_000_000;

/// `unreachable R2 by R1`; of what takes the rest, only where it is asked for.
fn said(source: &str) -> Vec<String> {
    let program = program(source);
    let line = |finding: &Finding| {
        let rules = with_reasons(&program, finding.rule, &finding.others);
        format!("{} {rules}", finding.code.word())
    };
    let found = findings(&program, &Setting::default(), Effort::new(50_000_000));
    for finding in &found {
        let has_witness =
            matches!(finding.code, Code::Gap | Code::Conflict | Code::Exception | Code::RedirectLoop);
        assert_eq!(finding.witness.is_some(), has_witness, "{finding:?}");
    }
    found.iter().map(line).collect()
}

fn check(rules: &str, expected: &[&str]) {
    let source = format!("{rules} last: {{ routeTo(last); }}");
    assert_eq!(said(&source), expected, "{source}");
}

#[test]
fn conditions_that_are_never_true() {
    check("R1: if (srcport > 5000 && srcport < 4000) { discard(); }", &["contradiction R1"]);
    check(r#"R1: if (xml.a == "x" && json.b == "y") { discard(); }"#, &["contradiction R1"]);
    check(r#"R1: if (scheme == "http" && proto == "https") { discard(); }"#, &["contradiction R1"]);
    check(r#"R1: if (host == "A") { discard(); }"#, &["contradiction R1"]);
    check("R1: if (method == \"G T\" || path == \"a\") { discard(); }", &["contradiction R1"]);
    // Two lines may say both.
    check(r#"R1: if (header["a"] == "x" && header["a"] == "y") { discard(); }"#, &[]);
    check(r#"R1: if (all(header["a"]) == "x" && header["a"] == "y") { discard(); }"#, &["contradiction R1"]);
}

/// However small the budget is, and however the conditions are spelled.
#[test]
fn equal_conditions_are_found_without_a_budget() {
    let source = r#"
        R1: if (path == "/a" && (host == "x" || method in ["GET", "PUT"])) { reject(404); }
        R2: if (srcip in [10.0.0.0/8]) { tag(a); }
        R3: if ((method in ["PUT", "GET"] || host == "x") && path == "/a" && path == "/a") { routeTo(a); }
        R4: if (!(!(srcip in [10.0.0.0/8]))) { routeTo(b); }
        R5: if (srcip == 10.0.0.0/8) { routeTo(c); } else { reject(403); }
        R6: if (path in ["/a"] && !(host != "x") && method == "PUT") { routeTo(d); }
    "#;
    let program = program(source);
    let found = findings(&program, &Setting::default(), Effort::new(0));
    let unreachable: Vec<_> = found
        .iter()
        .filter(|finding| finding.code == Code::Unreachable)
        .map(|finding| with_reasons(&program, finding.rule, &finding.others))
        .collect();
    assert_eq!(unreachable, ["R3 by R1", "R5 by R4"]);
    // What is left is one finding for each question.
    let unknown: Vec<_> = found.iter().filter(|finding| finding.code == Code::Unknown).collect();
    assert!(unknown.len() <= 3, "{unknown:#?}");
}

#[test]
fn redirects_that_lead_back() {
    check(r#"R1: if (path under "/a") { redirect(301, "/a/b${path}"); }"#, &["redirect loop R1"]);
    check(
        r#"R1: if (path under "/a") { rewritePath("^/a", "/b"); redirect(302, "${path}"); }"#,
        &["redirect loop R1"],
    );
    check(r#"R1: if (path matches "^/(?:en/)?$") { redirect(302, "/en/"); }"#, &["redirect loop R1"]);
    check(r#"R1: if (path == "/a" && host == "x") { redirect(302, "http://x/a"); }"#, &["redirect loop R1"]);
    check(
        r#"R1: if (path == "/a") { redirect(302, "/b"); } R2: if (path == "/b") { redirect(302, "/a?x"); }"#,
        &["redirect loop R1 by R2"],
    );
    // R1 leads into the loop of R2, and is no part of it.
    check(
        r#"R1: if (path == "/a") { redirect(302, "/b"); } R2: if (path == "/b") { redirect(302, "//${host}/b"); }"#,
        &["redirect loop R2"],
    );
    check(
        r#"R1: if (path startsWith "/a/") { routeTo(a); } else { redirect(302, "/${path}"); }"#,
        &["redirect loop R1", "unreachable last by R1"],
    );
    // What comes to an end, and what leads elsewhere.
    check(r#"R1: if (path matches "^/old(/.*)$") { redirect(301, "${1}"); }"#, &[]);
    check(r#"R1: if (host == "a") { redirect(301, "http://b${url}"); }"#, &[]);
    check(r#"R1: if (scheme == "http") { redirect(301, "https://${host}${url}"); }"#, &[]);
    check(r#"R1: if (host == "a") { redirect(301, "http://a:8080${url}"); }"#, &[]);
    check(r#"R1: if (method == "POST") { redirect(303, "${path}"); }"#, &[]);
}

#[test]
fn rules_that_hide_others() {
    check(
        r#"R1: if (path under "/a") { discard(); } R2: if (path matches "^/a/[0-9]+$") { reject(); }"#,
        &["unreachable R2 by R1"],
    );
    check(
        "R1: if (srcip in [10.0.0.0/9]) { discard(); } R2: if (srcip in [10.128.0.0/9]) { discard(); }
         R3: if (srcip in [10.0.0.0/8]) { reject(); }",
        &["unreachable R3 by R1 R2"],
    );
    check("R1: if (json.a > 5) { discard(); } R2: if (json.a > 7) { reject(); }", &["unreachable R2 by R1"]);
    check(
        r#"R1: if (xml.a/b > 5) { discard(); } R2: if (xml.a[1]/b[2] > 7) { reject(); }
           R3: if (json.a[*] == "x") { discard(); } R4: if (json.a[2] == "x" && path == "/") { reject(); }"#,
        &["unreachable R2 by R1", "unreachable R4 by R3"],
    );
    check(
        "R1: if (json.a[*] > 5) { discard(); } else { reject(); } R2: { reject(); }",
        &["unreachable R2 by R1", "unreachable last by R1"],
    );
    check(
        "R1: if (dstport < 80) { goto R3; } R2: { discard(); } R3: if (dstport > 90) { reject(); } else { reject(); }",
        &["unreachable R3 by R1 R2", "unreachable last by R3"],
    );
}

#[test]
fn pairs_of_rules() {
    let both = r#"R1: if (path under "/a") { routeTo(a); } R2: if (method == "PUT") { BLOCK }"#;
    check(&both.replace("BLOCK", "routeTo(b);"), &["conflict R2 by R1"]);
    check(&both.replace("BLOCK", "allow conflict(R1); routeTo(b);"), &[]);
    // It is said of a rule before: where the two change places, it is not meant any more.
    let moved = r#"R2: if (method == "PUT") { allow conflict(R1); routeTo(b); } R1: if (path under "/a") { routeTo(a); }"#;
    check(moved, &["conflict R1 by R2"]);
    check(&both.replace("BLOCK", "routeTo(a);"), &[]);
    check(
        r#"R1: if (path == "/a/b") { routeTo(a); } R2: if (path under "/a") { routeTo(b); }"#,
        &["exception R2 by R1"],
    );
    check(
        r#"R1: if (path == "/a") { routeTo(a); } R2: if (path under "/a") { routeTo(a); }"#,
        &["redundant R1 by R2"],
    );
}

/// A rule may do nothing for what is decided, and all the same keep bodies from being looked into, or say how they are read.
#[test]
fn rules_that_bodies_hang_on() {
    let before = |last: &str| {
        format!(
            r#"on_unknown skip; R1: if (path == "/a") {{ BLOCK }} R2: if ({last}) {{ BLOCK }} R3: if (path under "/a") {{ BLOCK }}"#
        )
        .replace("BLOCK", "routeTo(web);")
    };
    check(&before(r#"json.x == "1""#), &[]);
    check(&before(r#"host == "b" && xml.x == "1""#), &[]);
    // It is decided without the body, and nothing but its length is asked for.
    check(&before(r#"path == "/a" || json.x == "1""#), &["redundant R1 by R2"]);
    check(&before(r#"path == "/b" && json.x == "1""#), &["redundant R1 by R3"]);
    check(&before("body.size > 5"), &["redundant R1 by R3"]);
    // What the first refuses by is read otherwise for that.
    let jumps = |field: &str| {
        format!(
            r#"R0: if ({field} == "1") {{ goto R1; }} R1: if (path == "/a") {{ reject(403); }}
               R2: if (path == "/b") {{ routeTo(b); }} R3: if (path under "/a") {{ reject(403); }}"#
        )
    };
    check(&jumps("host"), &["redundant R1 by R3"]);
    check(&jumps("json.x"), &[]);
}

/// A rule may alone name what odd names are likened to.
#[test]
fn rules_that_odd_names_hang_on() {
    let redundant = |rules: &str, odd_fields: &OddFields| {
        let program = program(rules);
        let limit_keys = vec![("by-a".into(), "x-a".into())];
        let setting = Setting { odd_fields: odd_fields.clone(), limit_keys, ..Setting::default() };
        let found = findings(&program, &setting, Effort::new(EFFORT));
        let redundant = found.iter().filter(|finding| finding.code == Code::Redundant);
        redundant.map(|finding| finding.rule.0).collect::<Vec<_>>()
    };
    let both = r#"R1: if (header["x-a"] == "1") { routeTo(d); } R2: if (header["x_a"] == "1") { routeTo(c); } else: routeTo(d);"#;
    let names = || vec!["x-a".into(), "x_a".into()];
    let none: Vec<u32> = Vec::new();
    assert_eq!(redundant(both, &OddFields::Keep(names())), none);
    assert_eq!(redundant(both, &OddFields::Drop), [0]);
    // A class is keyed by it, so that it is named all the same.
    let keyed = r#"R0: if (path == "/b") { limitRate(by-a); }
                   R1: if (header["x-a"] == "1") { routeTo(d); } R2: if (path == "/a") { routeTo(d); } else: routeTo(d);"#;
    assert_eq!(redundant(keyed, &OddFields::Keep(vec!["x-a".into()])), [1, 2]);
    let free = keyed.replace("by-a", "of-all");
    assert_eq!(redundant(&free, &OddFields::Keep(vec!["x-a".into()])), [2]);
    let again = both.replace(r#"header["x_a"]"#, r#"path == "/a" && header["x-a"]"#);
    assert_eq!(
        redundant(&again, &OddFields::Keep(vec!["x-a".into()])),
        none,
        "it takes what the second would"
    );
    let again = again.replace("routeTo(c)", "routeTo(d)");
    assert_eq!(redundant(&again, &OddFields::Keep(vec!["x-a".into()])), [0]);
}

/// No body may be so deep as these paths lead: no request is made of them, however long that would take.
#[test]
fn paths_deeper_than_bodies() {
    for path in [format!("xml.a{}", "//a".repeat(3_000)), format!("json{}", "[*]".repeat(3_000))] {
        let rules = format!("R1: if ({path} == 5) {{ reject(); }} last: {{ routeTo(a); }}");
        let found = findings(&program(&rules), &Setting::default(), Effort::new(50_000_000));
        assert!(found.iter().any(|finding| finding.code == Code::Unknown), "{found:?}");
    }
}

/// What is the same for every request of a listener is so for the rules, too.
#[test]
fn what_a_listener_fixes() {
    let rules = r#"R1: if (scheme == "http" && path == "/a") { reject(); }
        R2: if (tls.version == "1.3" && path == "/b") { reject(); }
        R3: if (proto == "https" && path == "/c") { reject(); }
        R4: if (dstport == 8443 && path == "/d") { reject(); }
        R5: if (dstport != 8443 && path == "/e") { reject(); }
        R6: if (dstip == 192.0.2.1 && path == "/f") { reject(); }
        last: { routeTo(a); }"#;
    let of = |speaks_tls, bind: &str, proxy_header| {
        let binds = vec![bind.parse().expect("an address")];
        let setting = Setting {
            speaks_tls: Some(speaks_tls),
            binds,
            takes_unix: false,
            proxy_header,
            ..Setting::default()
        };
        let found = findings(&program(rules), &setting, Effort::new(50_000_000));
        let told = found.iter().map(|finding| (finding.code.word(), finding.rule.0 + 1));
        told.collect::<Vec<_>>()
    };
    let never = |rules: &[u32]| rules.iter().map(|rule| ("contradiction", *rule)).collect::<Vec<_>>();
    assert_eq!(of(true, "192.0.2.1:8443", ProxyHeader::Off), never(&[1, 5]));
    assert_eq!(of(false, "192.0.2.2:80", ProxyHeader::Off), never(&[2, 3, 4, 6]));
    assert_eq!(of(false, "0.0.0.0:80", ProxyHeader::Off), never(&[2, 3, 4]));
    assert_eq!(of(true, "192.0.2.1:8443", ProxyHeader::Unsaid), never(&[1, 5]));
}

/// Where no connection comes to a Unix socket every request has addresses.
#[test]
fn what_has_an_address() {
    let rules = r#"R1: if (!(srcip in [0.0.0.0/0, ::/0])) { reject(); }
        R2: if (!(clientip exists) && path == "/b") { reject(); }
        R3: if (!(dstport >= 0) && path == "/c") { reject(); }
        R4: if (srcip in [0.0.0.0/0, ::/0]) { routeTo(a); }
        R5: if (path == "/e") { reject(); }"#;
    let of = |takes_unix, proxy_header| {
        let trusted_proxies = vec!["10.0.0.0/8".parse().expect("a network")];
        let setting = Setting { takes_unix, proxy_header, trusted_proxies, ..Setting::default() };
        let found = findings(&program(rules), &setting, Effort::new(50_000_000));
        let told = found.iter().map(|finding| (finding.code.word(), finding.rule.0 + 1));
        told.collect::<Vec<_>>()
    };
    let proved = [("contradiction", 1), ("contradiction", 2), ("contradiction", 3), ("unreachable", 5)];
    for proxy_header in [ProxyHeader::Off, ProxyHeader::Required] {
        assert_eq!(of(false, proxy_header), proved);
    }
    let found = of(true, ProxyHeader::Off);
    assert!(proved[..3].iter().all(|proved| !found.contains(proved)), "{found:?}");
}

/// What a listener does not agree on with anybody, what everybody who comes to it has, and who is let in.
#[test]
fn what_a_listener_agrees_on() {
    const CONDITIONS: [&str; 12] = [
        r#"tls.version == "1.2""#,
        "tls.resumed",
        r#"tls.cipher contains "_RSA_""#,
        r#"tls.alpn == "h2""#,
        "!(tls.client.subject exists)",
        "tls.client.san exists && !(tls.client.fingerprint exists)",
        "srcip == 192.0.2.9",
        r#"version == "2" && tls.cipher startsWith "TLS_ECDHE""#,
        r#"tls.cipher == "TLS_NONE""#,
        r#"tls.alpn == "h2" && version == "1.1""#,
        r#"tls.version == "1.3" && tls.cipher startsWith "TLS_ECDHE""#,
        r#"!(tls.alpn exists) && version == "2" && scheme == "https""#,
    ];
    let rule = |(at, condition): (usize, &&str)| {
        format!("if (path == \"/{at}\" && ({condition})) {{ reject(); }}\n")
    };
    let rules: String = CONDITIONS.iter().enumerate().map(rule).collect();
    let never = |setting: &Setting| {
        let found = findings(&program(&rules), setting, Effort::new(50_000_000));
        assert!(found.iter().all(|finding| finding.code != Code::Unknown), "{setting:?} {found:#?}");
        let never = found.iter().filter(|finding| finding.code == Code::Contradiction);
        never.map(|finding| char::from(b'A' + finding.rule.0 as u8)).collect::<String>()
    };
    let with = |change: &dyn Fn(&mut Setting)| {
        let mut setting = Setting { speaks_tls: Some(true), ..Setting::default() };
        change(&mut setting);
        never(&setting)
    };
    assert_eq!(never(&Setting::default()), "FIJKL");
    assert_eq!(with(&|_| ()), "FIJKL");
    assert_eq!(with(&|setting| setting.tls.takes_tls12 = false), "ACFHIJKL");
    assert_eq!(with(&|setting| setting.tls.resumes = false), "BFIJKL");
    assert_eq!(with(&|setting| setting.tls.signs_by_rsa = false), "CFIJKL");
    assert_eq!(with(&|setting| setting.tls.signs_by_ecdsa = false), "FIJKL");
    assert_eq!(with(&|setting| setting.tls.names_http2 = false), "DFHIJKL");
    assert_eq!(with(&|setting| setting.takes_http2 = false), "DFHIJKL");
    assert_eq!(with(&|setting| setting.takes_http1 = false), "FIJK");
    assert_eq!(with(&|setting| setting.tls.clients = ClientCertificates::Always), "EFIJKL");
    assert_eq!(with(&|setting| setting.speaks_tls = Some(false)), "ABCDFHIJKL");
    let behind = |setting: &mut Setting| {
        setting.proxy_header = ProxyHeader::Required;
        setting.trusted_proxies = vec!["10.0.0.0/8".parse().expect("a network")];
    };
    assert_eq!(with(&behind), "FGIJKL");
}

/// Who names clients need not be a proxy of some network, and some listeners take HTTP/1 alone.
#[test]
fn what_a_listener_believes_and_takes() {
    let never = |rules: &str, setting: &Setting| {
        let found = findings(&program(rules), setting, Effort::new(50_000_000));
        found.iter().any(|finding| finding.code.word() == "contradiction")
    };
    let strict = Setting { may_trust_others: false, proxy_header: ProxyHeader::Off, ..Setting::default() };
    let other = "if (clientip == 192.0.2.1 && srcip == 192.0.2.2) { reject(); }\nelse: routeTo(a);\n";
    assert!(never(other, &strict));
    // Of two with an address one may be a proxy; whoever comes to a Unix socket has none.
    assert!(never(other, &Setting { trusts_unix: true, ..strict.clone() }));
    let trusted_proxies = vec!["192.0.2.2/32".parse().expect("a network")];
    assert!(!never(other, &Setting { trusted_proxies, ..strict.clone() }));
    let of_http2 = "if (version == \"2\") { reject(); }\nelse: routeTo(a);\n";
    let shown = |setting: &Setting| {
        let found = findings(&program(of_http2), setting, Effort::new(50_000_000));
        found.iter().any(|finding| {
            finding.witness.as_ref().is_some_and(|witness| witness.to_string().contains("HTTP/2"))
        })
    };
    assert!(!shown(&Setting { takes_http2: false, ..strict }));
}

/// Who answers itself before others is no warning, and who routes before a refusal is.
#[test]
fn guards() {
    const ANSWERS: [(&str, Severity); 5] = [
        ("routeTo(a);", Severity::Warning),
        ("reject();", Severity::Note),
        ("discard();", Severity::Note),
        ("redirect(302, \"https://a.example/\");", Severity::Note),
        ("respond(200, \"well\");", Severity::Note),
    ];
    for (answer, severity) in ANSWERS {
        let rules = format!(
            r#"R1: if (path under "/a") {{ {answer} }} R2: if (method == "PUT") {{ routeTo(b); }}
               R3: if (srcport < 1024) {{ reject(429); }}"#
        );
        let found = findings(&program(&rules), &Setting::default(), Effort::new(50_000_000));
        let conflicts = found.iter().filter(|finding| finding.code == Code::Conflict);
        let pair = |one: u32, other: u32| (one.min(other), one.max(other));
        let pairs_of = |finding: &Finding| {
            let (rule, severity) = (finding.rule.0, finding.severity);
            let pairs = finding.others.iter().map(|other| (pair(rule, other.0), severity));
            pairs.collect::<Vec<_>>()
        };
        let mut pairs: Vec<_> = conflicts.flat_map(pairs_of).collect();
        pairs.sort_by_key(|(pair, _)| *pair);
        assert_eq!(pairs, [((0, 1), severity), ((0, 2), severity), ((1, 2), Severity::Warning)], "{answer}");
    }
}

/// Of the one conflict that there is, the rules behind it and in front, and what is said about others.
fn told(source: &str) -> (String, String) {
    let found = findings(&program(source), &Setting::default(), Effort::new(100_000_000));
    let conflicts: Vec<_> = found.iter().filter(|finding| finding.code == Code::Conflict).collect();
    let [conflict] = conflicts.as_slice() else { panic!("{found:#?}") };
    assert!(conflict.witness.is_some(), "{conflict:?}");
    (conflict.message.clone(), conflict.help.clone().unwrap_or_default())
}

/// Each rule of a crowd conflicts with one that asks for other fields.
#[test]
fn conflicts_of_a_crowd_are_one() {
    let crowd = |count: usize| -> String {
        let rule = |at| format!("K{at}: if (first(query[\"k\"]) == \"{at}\") {{ routeTo(k{at}); }}\n");
        (0..count).map(rule).collect()
    };
    let one = "One: if (path under \"/m\") { routeTo(one); }\n";
    let others = "the same is to be expected of `K1`, `K2`, `K3`, `K4`, `K5` and 4 more rules, which ask for the same fields";
    let (message, help) = told(&format!("{}{one}", crowd(10)));
    assert_eq!(message, "`One` would do something else with some requests that `K0` takes");
    assert!(
        help.starts_with(others) && help.ends_with("`allow conflict(K0)` says that it is meant"),
        "{help}"
    );
    let (message, help) = told(&format!("{one}{}", crowd(10)));
    assert_eq!(message, "`K0` would do something else with some requests that `One` takes");
    assert!(help.starts_with(others), "{help}");
    let (message, help) = told(&format!("{}{one}", crowd(3)));
    assert_eq!(message, "`One` would do something else with some requests that `K0`, `K1` and `K2` take");
    assert!(help.starts_with("the first of them decides"), "{help}");
    let meant = one.replace("routeTo", "allow conflict(K0); routeTo");
    let (message, _) = told(&format!("{}{meant}", crowd(10)));
    assert_eq!(message, "`One` would do something else with some requests that `K1` takes");
}

#[test]
fn rules_without_which_all_is_the_same() {
    let rule = |at: usize| {
        format!("V{at}: if (first(header[\"v\"]) startsWith \"{at}.\") {{ routeTo(a{}); }}\n", at % 90)
    };
    let rules: String = (0..200).map(rule).collect();
    assert_eq!(
        said(&format!("{rules}else: routeTo(a7);")),
        ["gap else", "redundant V7 by else", "redundant V97 by else", "redundant V187 by else"]
    );
}

#[test]
fn what_is_left() {
    let past_two_jumps = r#"on_unknown skip;
        R0: if (!(count(header["a"]) > 1)) { goto R2; }
        R1: if (header["a"] == "x") { routeTo(a); } else { goto R3; }
        R2: if (header["a"] == "x") { routeTo(a); } else { routeTo(a); }
        R3: if (header["a"] == "x") { routeTo(a); }"#;
    assert_eq!(said(past_two_jumps), ["unreachable R3 by R1 R2", "gap nobody"]);
    assert_eq!(said(r#"R1: if (method == "GET") { routeTo(a); }"#), ["gap nobody"]);
    assert_eq!(said(r#"R1: if (method == "GET") { routeTo(a); } else: routeTo(b);"#), ["gap else"]);
    assert_eq!(
        said(r#"R1: if (method == "GET") { routeTo(a); } else { routeTo(c); } else: routeTo(b);"#),
        ["unreachable else by R1"]
    );
}

/// What is not settled says why, and which tests it is about.
#[test]
fn doubts_have_their_reasons() {
    let of = |source: &str, steps: u64| {
        let program = program(source);
        let found = findings(&program, &Setting::default(), Effort::new(steps));
        let doubts = found.into_iter().flat_map(|finding| finding.doubts);
        doubts.map(|in_doubt| in_doubt.doubt).collect::<Vec<_>>()
    };
    let fields = |doubt: &Doubt| doubt.fields().iter().map(ToString::to_string).collect::<Vec<_>>();
    let made_of_each_other =
        of(r#"if (count(cookie["c"]) > 1 && all(header["cookie"]) == "d=1") { discard(); }"#, EFFORT);
    assert!(matches!(made_of_each_other[..], [Doubt::Request(_), ..]), "{made_of_each_other:?}");
    assert_eq!(fields(&made_of_each_other[0]), [r#"cookie["c"]"#, r#"header["cookie"]"#]);
    let is_none = |n: u32| format!(" && !(first(header[\"x\"]) matches \"^a{{{n}}}$\")");
    let many: String = (1..60).map(is_none).collect();
    let not_found = of(&format!("if (first(header[\"x\"]) matches \"^a+$\"{many}) {{ discard(); }}"), EFFORT);
    assert!(matches!(not_found[..], [Doubt::Values(_), ..]), "{not_found:?}");
    assert_eq!(fields(&not_found[0]), [r#"header["x"]"#]);
    let no_steps = of(r#"if (path == "/") { discard(); }"#, 0);
    assert!(no_steps.iter().all(|doubt| *doubt == Doubt::Steps) && !no_steps.is_empty(), "{no_steps:?}");
    assert!(of(r#"if (path == "/") { discard(); }"#, EFFORT).is_empty());
}

/// What is not settled of pairs is told once for each rule, with the names of the others.
#[test]
fn pairs_that_are_not_settled_are_named() {
    let source = r#"R1: if (count(cookie["c"]) > 1) { routeTo(a); }
                    R2: if (count(cookie["e"]) > 1) { routeTo(b); }
                    R3: if (all(header["cookie"]) == "d=1") { routeTo(c); }
                    last: { routeTo(d); }"#;
    let found = findings(&program(source), &Setting::default(), Effort::new(EFFORT));
    let unsettled: Vec<_> = found.iter().filter(|finding| finding.code == Code::Unknown).collect();
    let messages: Vec<_> = unsettled.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(messages, ["it is unknown whether `R3` conflicts with `R1` and `R2`"], "{found:#?}");
    assert_eq!(unsettled[0].doubts.len(), 2);
}

/// What a parser takes is less than what a rule can ask for.
#[test]
fn values_that_no_parser_takes_are_not_proposed() {
    check("R1: if (body.size == 0) { discard(); }", &["contradiction R1"]);
    check(r#"R1: if (body.size exists && body.size < 1) { discard(); }"#, &["contradiction R1"]);
    check(r#"R1: if (header["host"] contains ":") { discard(); }"#, &[]);
    check(r#"R1: if (header["host"] contains "/") { discard(); }"#, &["contradiction R1"]);
    check(r#"R1: if (header["content-length"] exists) { discard(); }"#, &[]);
    check(r#"R1: if (header["content-length"] > 100 && json.a == 5) { discard(); }"#, &[]);
    check(r#"R1: if (header["transfer-encoding"] exists && json.a == 5) { discard(); }"#, &[]);
}
