//! `pointsman bench load` by the command line, before `pointsman bench null`: what is asked for is what its JSON says.

use pointsman_e2e::{Finished, NullServer, ends, folder, pointsman};
use serde_json::Value;

/// What was measured, where it is not void. On a machine that is busy it is no result, which the exit status says as well.
pub(super) fn outcome(finished: &Finished) -> Value {
    assert!((0..=1).contains(&finished.code), "{}", finished.stderr);
    let document: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let run = &document["runs"][0];
    assert_eq!(run["outcome"]["voids"], serde_json::json!([]));
    let is_red = run["verdict"]["colour"] == "red";
    assert_eq!(finished.code, i32::from(is_red), "{}", run["verdict"]);
    run["outcome"].clone()
}

/// What came of a run that is a result.
fn measured(url: &str, words: &[&str]) -> Value {
    let folder = folder(&[]);
    let fixed = ["bench", "load", url, "--insecure", "--time", "600ms", "--warm-up", "200ms", "--json"];
    let finished = pointsman(folder.path(), &[&fixed[..], words].concat());
    let outcome = outcome(&finished);
    let requests = &outcome["requests"];
    let count = |name: &str| requests[name].as_u64().expect("a count");
    assert!(count("answered") > 20, "{words:?} {requests}");
    assert_eq!((count("failed"), count("unsent")), (0, 0), "{words:?} {requests}");
    assert_eq!(count("answered"), count("due"), "{words:?} {requests}");
    assert_eq!(requests["statuses"]["200"], requests["answered"]);
    assert_eq!(outcome["times_ns"]["response"]["count"], requests["answered"]);
    outcome
}

/// Handshakes of a kind, in the whole run.
fn of_kind(outcome: &Value, kind: &str) -> u64 {
    let negotiated = outcome["connections"]["negotiated"].as_array().expect("a list");
    let counts = negotiated.iter().filter(|agreed| agreed["kind"] == kind).map(|agreed| &agreed["count"]);
    counts.map(|count| count.as_u64().expect("a count")).sum()
}

fn protocols(outcome: &Value) -> Vec<&str> {
    let negotiated = outcome["connections"]["negotiated"].as_array().expect("a list");
    negotiated.iter().map(|agreed| agreed["protocol"].as_str().expect("a name")).collect()
}

#[test]
fn http1() {
    let null = NullServer::start(&["--body-bytes", "100"]);
    let url = format!("http://{}/a/{{n}}", null.address());
    let outcome = measured(&url, &["--rate", "300", "--arrivals", "uniform"]);
    let requests = &outcome["requests"];
    assert!((179..=181).contains(&requests["due"].as_u64().expect("a count")), "{requests}");
    assert!(requests["bytes_received"].as_u64() > Some(170 * 100), "{requests}");
    assert_eq!(
        (&outcome["settings"]["protocol"], &outcome["settings"]["streams"]),
        (&"http/1.1".into(), &1.into())
    );
    let closed = measured(&url, &["--clients", "3", "--think", "5ms"]);
    assert!(closed["requests"]["per_second"].as_f64() < Some(601.0), "{}", closed["requests"]);
}

#[test]
fn handshakes() {
    let null = NullServer::start(&["--tls"]);
    let url = null.url("https");
    let full = measured(&url, &["--clients", "2", "--handshake", "full", "--groups", "X25519"]);
    let answered = full["requests"]["answered"].as_u64().expect("a count");
    assert!(of_kind(&full, "full") >= answered && of_kind(&full, "resumed") == 0, "{}", full["connections"]);
    assert_eq!(
        (protocols(&full), &full["connections"]["negotiated"][0]["group"]),
        (vec!["http/1.1"], &"X25519".into())
    );
    let resumed = measured(&url, &["--clients", "2", "--handshake", "resumed"]);
    let answered = resumed["requests"]["answered"].as_u64().expect("a count");
    assert!(of_kind(&resumed, "resumed") + 2 >= answered, "{}", resumed["connections"]);
    assert!(of_kind(&resumed, "full") <= 2, "{}", resumed["connections"]);
}

#[test]
fn http2() {
    let words = ["--http2", "--clients", "20", "--streams", "10"];
    let null = NullServer::start(&["--body-bytes", "1000", "--capacity", "1000"]);
    let plain = measured(&null.url("http"), &words);
    assert_eq!((&plain["settings"]["protocol"], &plain["settings"]["streams"]), (&"h2".into(), &10.into()));
    let little = &plain["generator"]["little"]["under_way"];
    assert!(little.as_f64().is_some_and(|under_way| (18.0..=20.5).contains(&under_way)), "{little}");
    let null = NullServer::start(&["--tls"]);
    let secured = measured(&null.url("https"), &words);
    assert_eq!(
        (protocols(&secured), of_kind(&secured, "full")),
        (vec!["h2"], 2),
        "{}",
        secured["connections"]
    );
}

/// A server that does something else than was asked for makes no result.
#[test]
fn what_is_not_as_asked_is_void() {
    let (folder, null) = (folder(&[]), NullServer::start(&["--tls", "--no-resumption"]));
    let url = null.url("https");
    let fixed =
        ["bench", "load", &url, "--insecure", "--time", "200ms", "--warm-up", "100ms", "--clients", "1"];
    let with = |words: &[&'static str]| [&fixed[..], words].concat();
    ends(folder.path(), &with(&["--handshake", "resumed"]), 1, &["VOID, not a result", "could be resumed"]);
    ends(folder.path(), &with(&["--alpn", "h2,http/1.1"]), 2, &["agreed on `h2` by ALPN, not on `http/1.1`"]);
    ends(
        folder.path(),
        &with(&["--alpn", "h2"]),
        2,
        &["`http/1.1` is spoken, and must be among what ALPN offers"],
    );
    ends(
        folder.path(),
        &with(&["--streams", "2"]),
        2,
        &["connections of HTTP/1.1 have no streams", "--http2"],
    );
    ends(
        folder.path(),
        &with(&["--http2", "--header", "Connection: close"]),
        2,
        &["HTTP/2 has no `connection`"],
    );
}
