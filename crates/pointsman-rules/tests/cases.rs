//! Tests of rule sets: what they expect is held against what is decided, and they may stand in files of their own.

use std::ops::ControlFlow;
use std::sync::Arc;

use pointsman_rules::{
    Compiled, Evidence, Field, Program, Scope, Subject, Targets, TestCase, Tests, Truths, Value, compile,
    compile_for,
};

/// A test's own fields and nothing else.
struct Listed<'a> {
    test: &'a TestCase,
    evidence: Evidence,
}

impl Subject for Listed<'_> {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        let values = self.test.given.iter().filter(|given| given.field == *field);
        let _seen_enough = values.map(|given| given.value.as_value()).try_for_each(see);
    }

    fn unsettled(&self, field: &Field) -> Option<pointsman_rules::Cause> {
        self.evidence.unsettled(field)
    }

    fn evidence(&self) -> Option<&Evidence> {
        Some(&self.evidence)
    }
}

fn is_met(program: &Arc<Program>, test: &TestCase) -> bool {
    let mut evidence = Evidence::new(program);
    test.show_body(program, &mut evidence, |_| false);
    let subject = Listed { test, evidence };
    let decision = program.decide(&subject, &mut Truths::default());
    test.expected.is_met(&decision) && test.has_effects(&decision, &subject)
}

/// The test that a request is to come to this.
fn case(tests: &Tests, program: &Program, request: &str, expected: &str) -> TestCase {
    let source = format!("test \"a\" {{ request {request} expect {expected} }}");
    let (further, warnings) = tests.further(&source, program, &Targets::Any).expect("a test");
    assert_eq!(warnings, [], "{source}");
    further.cases.into_iter().next().expect("one")
}

const RULES: &str = "
on_unknown routeTo(careful);
namespace p = \"urn:orders\";
R1: if (xml.p:order/p:total > 100) { routeTo(fast); }
R2: if (path == \"/no\") { reject(404); }
R3: if (path == \"/gone\") { discard(); }
R4: if (path == \"/old\") { redirect(301, \"/new\"); }
R5: if (path == \"/health\") { respond(200, \"ok\"); }
R6: if (path == \"/careful\") { routeTo(careful); } else { goto R8; }
R8: if (json.flag exists && path == \"/json\") { routeTo(fast.one); }
R9: if (path == \"/else\") { tag(x); } else { goto R10; }
R10: { tag(y); }
";

#[test]
fn what_is_expected_is_held_against_what_is_decided() {
    let compiled = compile(RULES, &Targets::Any).expect("a rule set");
    let program = Arc::new(compiled.program);
    for (request, expected, others) in [
        ("xml.p:order/p:total 101", "R1 -> fast", "R1 -> careful|R2 -> fast|default|R1 -> unknown"),
        ("xml.p:order/p:total \"x\"", "R1 -> unknown", "R1 -> careful|R1 -> unknown(limit)|default"),
        ("xml.p:order/p:total \"x\"", "R1 -> unknown(not a number)", "R1 -> fast"),
        ("xml.p:order/p:total 7 body unknown(limit)", "R1 -> unknown(limit)", "R1 -> unknown(malformed)"),
        ("path \"/no\"", "R2 -> reject", "R2 -> reject(403)|R2 -> discard|R3 -> reject"),
        ("path \"/no\"", "R2 -> reject(404)", "R2 -> respond(404)"),
        ("path \"/gone\"", "R3 -> discard", "R3 -> reject"),
        ("path \"/old\"", "R4 -> redirect(301)", "R4 -> redirect(302)|R4 -> respond"),
        ("path \"/health\"", "R5 -> respond(200)", "R5 -> respond(404)|R5 -> redirect"),
        ("path \"/careful\"", "R6 -> careful", "R6 -> unknown|R6 -> fast"),
        ("path \"/json\" json.flag null", "R8 -> fast.one", "R8 -> fast"),
        ("path \"/json\"", "default", "R8 -> fast.one"),
        ("path \"/json\" json.flag absent", "default", "R8 -> fast.one"),
        ("path \"/json\" body unknown(malformed)", "R1 -> unknown(malformed)", "default|R8 -> unknown"),
        (
            "path \"/json\" xml.p:order/p:total absent body unknown(malformed)",
            "R8 -> unknown(malformed)",
            "default|R1 -> unknown",
        ),
        (
            "path \"/json\" xml.p:order/p:total absent json.flag absent body unknown(malformed)",
            "default",
            "R8 -> unknown|R1 -> unknown",
        ),
    ] {
        let case = |expected: &str| case(&compiled.tests, &program, request, expected);
        let met = case(expected);
        assert!(is_met(&program, &met), "{met:?}");
        for other in others.split('|') {
            assert!(!is_met(&program, &case(other)), "{request}: {other}");
        }
    }
}

/// All of them, in order, with their fields filled in; what a test does not say it does not see.
#[test]
fn effects_are_held_against_what_is_committed() {
    let rules = r#"
R1: if (method == "PUT") { setHeader("X-Class", "${query["c"]}"); tag(put); }
R2: if (path under "/old") { rewritePath("^/old", "/new"); rewritePath("w$", "x"); routeTo(fast); }
R3: if (path == "/r") { removeHeader("a"); addResponseHeader("b", "c"); reject(404); }
R4: if (path > 5) { routeTo(fast); }
else: routeTo(slow);
"#;
    let compiled = compile(rules, &Targets::Any).expect("a rule set");
    let program = Arc::new(compiled.program);
    for (request, expected, others) in [
        (
            r#"method "PUT" query["c"] "gold" path "5""#,
            r#"else -> slow with setHeader("x-class", "gold") tag(put)"#,
            r#"tag(put) setHeader("x-class", "gold")|setHeader("x-class", "gold")|nothing|tag(put)"#,
        ),
        (
            r#"method "PUT" query["c"] "a\nb" path "5""#,
            r#"else -> slow with setHeader("x-class", "a\nb") tag(put)"#,
            "nothing",
        ),
        (
            r#"path "/old/w""#,
            r#"R2 -> fast with rewritePath("/new/w") rewritePath("/new/x")"#,
            r#"rewritePath("/new/x")|nothing|rewritePath("/new/w") rewritePath("/new/w")"#,
        ),
        (
            r#"path "/r""#,
            r#"R3 -> reject with removeHeader("A") addResponseHeader("b", "c")"#,
            r#"removeHeader("b") addResponseHeader("b", "c")|removeHeader("a") addHeader("b", "c")|removeHeader("a") setResponseHeader("b", "c")"#,
        ),
        // Refused as unknown: of all that nothing but the tag is committed.
        (
            r#"path "x" method "PUT""#,
            "R4 -> unknown with tag(put)",
            r#"nothing|setHeader("x-class", "") tag(put)"#,
        ),
        (r#"path "5""#, "else -> slow with nothing", "tag(put)"),
    ] {
        let case = |expected: &str| case(&compiled.tests, &program, request, expected);
        let (outcome, _) = expected.split_once(" with ").expect("effects");
        for met in [expected, outcome] {
            assert!(is_met(&program, &case(met)), "{request}: {met}");
        }
        for other in others.split('|') {
            assert!(!is_met(&program, &case(&format!("{outcome} with {other}"))), "{request}: {other}");
        }
    }
}

fn further(compiled: &Compiled, source: &str) -> Vec<String> {
    let findings = compiled.tests.further(source, &compiled.program, &Targets::Any);
    let findings = findings.map_or_else(|errors| errors, |(_, warnings)| warnings);
    findings.into_iter().map(|finding| format!("{:?}: {}", finding.severity, finding.message)).collect()
}

#[test]
fn a_file_of_its_own_knows_the_rules_and_adds_nothing_to_them() {
    let source = "namespace p = \"urn:p\"; on_unknown skip; if (xml.p:a == \"x\") { routeTo(fast); }";
    let compiled = compile(source, &Targets::Any).expect("a rule set");
    for (tests, expected) in [
        ("test \"a\" { request xml.p:a 1 expect default }", &[][..]),
        ("test \"a\" { request xml.q:a 1 expect default }", &["Error: the prefix `q` is not declared"]),
        ("test \"a\" { request json.a 1 expect default }", &["Warning: no rule asks for `json.a`"]),
        ("test \"a\" { request json.a 1 expect else -> fast }", &["Error: the rule set has no `else:`"]),
        ("test \"a\" { request path \"/\" expect R1 -> fast }", &["Error: no rule has the label `R1`"]),
        (
            "R2: if (path == \"/\") { reject(); }",
            &["Error: a file of tests holds tests and assertions alone"],
        ),
        ("on_unknown skip;", &["Error: a file of tests holds tests and assertions alone"]),
        ("assert \"a\": never (path == \"/\") -> fast;", &[]),
        ("assert \"a\": never (xml.q:b == \"/\") -> fast;", &["Error: the prefix `q` is not declared"]),
        ("test \"a\" { request", &["Error: expected a field, found the end of the file"]),
    ] {
        let mut found = further(&compiled, tests);
        found.retain(|finding| !finding.contains("no rule asks for") || tests.contains("default"));
        assert_eq!(found, expected, "{tests}");
    }
    assert_eq!(compiled.program.payloads.len(), 1);
    assert_eq!(compiled.program.targets.len(), 1);
}

/// A test that nobody runs costs nothing: the program is the same.
#[test]
fn tests_leave_no_trace_in_the_program() {
    let rules = "R1: if (json.a == \"x\") { routeTo(fast); }\nelse: routeTo(slow);\n";
    let tests = "test \"a\" { request json.b 1 xml.c 2 expect R1 -> slow }\n";
    let [alone, beside] = [rules.to_owned(), format!("{rules}{tests}")]
        .map(|source| compile(&source, &Targets::Any).expect("a rule set"));
    assert_eq!(format!("{:?}", alone.program), format!("{:?}", beside.program));
    assert_eq!((alone.tests.cases.len(), beside.tests.cases.len()), (0, 1));
}

#[test]
fn connections_are_tested_by_what_is_known_of_them() {
    let rules = "R1: if (tls.alpn == \"h2\") { routeTo(fast); }\n";
    let test = "test \"a\" { request tls.alpn \"h2\" tls.alpn \"http/1.1\" expect R1 -> fast }";
    let messages = |scope| {
        let findings = compile_for(&format!("{rules}{test}"), &Targets::Any, scope).err().unwrap_or_default();
        findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>()
    };
    assert_eq!(messages(Scope::Hellos), [""; 0]);
    assert_eq!(messages(Scope::Requests), ["`tls.alpn` has one value at most"]);
    let unknown = "`tls.alpn` is not known here: no request is read";
    assert_eq!(messages(Scope::Connections), [unknown; 3]);
}
