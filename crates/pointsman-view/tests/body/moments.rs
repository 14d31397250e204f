//! When conditions are settled: at which byte of a body.

use pointsman_rules::{Cause, Outcome, Truths};
use pointsman_view::{Connection, PathOptions, RequestView, TrustedProxies, normal_form};

use crate::case::{Case, program};

/// After how many bytes of the body the rules decide, asked at each news; nothing where only its end does.
fn decided_after(case: &Case, rules: &str) -> (Option<usize>, String) {
    let program = program(rules);
    let mut inspection = case.inspection_for(&program);
    let connection = Connection { src: None, dst: None, proxied: None, tls: None };
    let request = b"POST / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut head = pointsman_http::RequestHead::default();
    assert_eq!(head.parse(request, &pointsman_http::HeadLimits::default()), Ok(true));
    let mut scratch = Vec::new();
    let path = normal_form(b"/", PathOptions::default(), &mut scratch).expect("a path");
    let trusted = TrustedProxies { networks: &[], unix: false };
    let view = RequestView::new(&head, request, &connection, path, trusted);
    let mut truths = Truths::default();
    for at in 0..=case.body.len() {
        if at > 0 {
            inspection.feed(&case.body[at - 1..at]);
        }
        if at > 0 && !inspection.take_news() {
            continue;
        }
        let decision = program.decide(&view.with_body(inspection.evidence()), &mut truths);
        if !matches!(decision.outcome, Outcome::Waits) {
            return (Some(at), shown(&decision.outcome, decision.by.label()));
        }
    }
    inspection.finish();
    let decision = program.decide(&view.with_body(inspection.evidence()), &mut truths);
    (None, shown(&decision.outcome, decision.by.label()))
}

fn shown(outcome: &Outcome<'_>, label: Option<&str>) -> String {
    match outcome {
        Outcome::Refused(cause) => format!("{cause}"),
        Outcome::Waits => "waits".to_owned(),
        _ => label.unwrap_or("nobody").to_owned(),
    }
}

const XML: &str = "text/xml";
const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// `R` routes where its condition holds. The mark `¦` stands where it is decided; without one that is the end.
#[track_caller]
fn check(content_type: &str, condition: &str, body: &str, by: &str) {
    let rules = format!("R: if ({condition}) {{ routeTo(a); }} else: routeTo(b);");
    let expected = body.find('¦');
    let case = Case::of(content_type, &[], body.replace('¦', "").as_bytes());
    assert_eq!(decided_after(&case, &rules), (expected, by.to_owned()), "{condition}: {body}");
}

#[test]
fn the_byte_that_settles_it() {
    check(XML, "xml.o/t > 5", "<o><t>9</t>¦<t>1</t></o>", "R");
    check(XML, "xml.o/t > 5", "<o><t>1</t><t>2</t></o>¦", "else");
    check(XML, "xml.o/t[1] > 5", "<o><t>1</t>¦<t>2</t></o>", "else");
    check(XML, "first(xml.o/t) > 5", "<o><t>1</t>¦<t>2</t></o>", "else");
    check(XML, "all(xml.o/t) > 5", "<o><t>1</t>¦<t>2</t></o>", "else");
    check(XML, "once(xml.o/t) > 5", "<o><t>9</t><t>¦9</t></o>", "duplicate");
    check(XML, "count(xml.o/t) > 1", "<o><t>9</t><t>9</t></o>¦", "R");
    check(XML, "xml.o/t exists", "<o><t>¦9</t></o>", "R");
    check(XML, "xml.o/@id == \"7\"", "<o id=\"7\">¦<t>9</t></o>", "R");
    check(XML, "xml.p exists", "<order>¦<t>9</t></order>", "else");
    check(XML, "xml.//t > 5", "<t>1<t>9</t>¦</t>", "R");
    check(XML, "first(xml.//t) > 5", "<t>1<t>9</t></t>¦", "else");
    check(XML, "xml.o/t > 5", "<o><t>1</t><t></u¦></o>", "malformed");
    check(XML, "json.a == 1", "¦<o/>", "else");
    check(JSON, "json.a == 1", "{\"a\":1,¦\"b\":2}", "R");
    check(JSON, "json.a == \"x\"", "{\"a\":\"x\"¦,\"b\":2}", "R");
    check(JSON, "json.a == 1", "{\"b\":2}¦", "else");
    check(JSON, "json.a exists", "{\"b\":2,\"a\":[¦]}", "R");
    check(JSON, "json[*] == 3", "[1,2,3,¦4]", "R");
    check(JSON, "!(json.a == 1) && json.b == 2", "{\"b\":2,\"a\":1}¦", "else");
    check(JSON, "json.a == 1 || body.size > 5", "{\"a\":1}¦", "R");
    check(FORM, "form[\"a\"] == \"1\"", "b=2&a=1&¦c=3", "R");
    check(FORM, "form[\"a\"] == \"1\"", "b=2&a=1", "R");
    check(FORM, "form[\"a\"] == \"1\"", "b=2", "else");
    check(FORM, "body.size == 3", "b=2", "R");
}

/// Nothing that comes later changes what is said after giving up.
#[test]
fn giving_up_ends_what_is_not_known() {
    let case = Case::of(JSON, &["json.a", "json.b", "body.size"], b"{\"a\":1,\"b\":2]");
    let mut inspection = case.inspection();
    inspection.feed(&case.body[..8]);
    inspection.give_up(Cause::Limit);
    let known = ["json.a: 1", "json.b: ?limit", "body.size: ?limit"];
    assert_eq!(case.known(&inspection), known);
    assert!(inspection.is_reading(), "it goes on to be looked at");
    inspection.feed(&case.body[8..]);
    assert_eq!(case.known(&inspection)[..3], known);
    let fault = inspection.fault().map(|fault| (fault.cause(), fault.to_string()));
    assert_eq!(
        fault,
        Some((
            Cause::Malformed,
            "JSON: `,` or the end of the object or array is expected at byte 12".to_owned()
        ))
    );
    assert!(!inspection.is_reading());
}

/// Behind the decision nothing is kept, and what is wrong is still found.
#[test]
fn behind_the_decision_the_rest_is_checked() {
    let case = Case::of(JSON, &["json[*]", "body.size"], b"[1,2,3}");
    let mut inspection = case.inspection();
    inspection.feed(b"[1,2");
    inspection.conclude();
    inspection.feed(b",3");
    assert!(inspection.fault().is_none() && inspection.is_reading());
    inspection.feed(b"}");
    assert!(inspection.fault().is_some() && !inspection.is_reading());
    assert_eq!(case.known(&inspection)[0], "json[*]: 1 | (malformed) ?malformed");
}
