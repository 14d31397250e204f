//! Candidates that are asked beside the rules that serve.

use std::collections::BTreeSet;

use pointsman_e2e::{Client, Origin, Setup, Switch, ends, pointsman, until};
use serde_json::Value;

pointsman_e2e::for_threads!(
    counts_are_those_of_a_replay,
    only_the_rules_that_serve_decide,
    it_ends_in_four_ways,
    what_is_wrong_with_a_candidate,
    bodies_are_read_for_those_that_serve,
    requests_are_shown_as_in_the_log,
    other_configurations,
    the_command_waits_and_says
);

pub(crate) const DRY_RUN: &str = "/api/v1/dry-run";
pub(crate) const OF_RULES: &str = "/api/v1/listeners/shop/rules/dry-run";
const OLD: &str = "R1: if (path under \"/fast\") { routeTo(b); }\nR2: if (path == \"/no\") { reject(404); }\n\
                   R3: if (path == \"/tag\") { setHeader(\"x-a\", \"1\"); routeTo(split(90: a, 10: b)); }\n";
/// Another status, another name of a rule, another header, another share, and a rule more.
const NEW: &str = "R1: if (path under \"/fast\") { routeTo(b); }\nNO: if (path == \"/no\") { reject(403); }\n\
                   R3: if (path == \"/tag\") { setHeader(\"x-a\", \"2\"); routeTo(split(90: a, 10: b)); }\n\
                   ALL: { routeTo(a); }\n";

fn two(threads: usize, a: &Origin, b: &Origin) -> Setup {
    Setup::new(threads).rules(OLD).pool("a", &[a]).pool("b", &[b]).with_token()
}

/// Begins one that would last for an hour.
#[track_caller]
pub(crate) fn begin(switch: &Switch, target: &str, rules: &str) -> Value {
    let (answer, said) = switch.admin_ask("POST", &format!("{target}?seconds=3600"), "", rules);
    assert_eq!((answer.status(), &said["state"]), (200, &"running".into()), "{said}");
    said
}

pub(crate) fn end(switch: &Switch) -> Value {
    let (answer, said) = switch.admin_ask("DELETE", DRY_RUN, "", "");
    assert_eq!((answer.status(), &said["state"]), (200, &"ended".into()), "{said}");
    said
}

pub(crate) fn counts(report: &Value) -> [u64; 5] {
    ["decisions", "same", "other_rule", "changed", "untold"]
        .map(|name| report[name].as_u64().expect("a count"))
}

/// Kind, old way, new way and count of each group, in whatever order.
pub(crate) fn groups(report: &Value) -> BTreeSet<String> {
    let groups = report["groups"].as_array().expect("a list").iter();
    let shown =
        groups.map(|group| ["kind", "old", "new", "count"].map(|name| group[name].to_string()).join(" "));
    shown.collect()
}

/// Each request is counted once, on whatever thread it comes, as a replay of the log counts it.
fn counts_are_those_of_a_replay(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let switch = two(threads, &a, &b).start();
    begin(&switch, OF_RULES, NEW);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut client = switch.client();
                for path in ["/", "/fast/a", "/no", "/tag", "/x?y=z", "/fast/%6cast", "/no"] {
                    client.get(path);
                }
            });
        }
    });
    let report = end(&switch);
    assert_eq!(counts(&report), [42, 12, 12, 18, 0], "{report}");
    assert_eq!(report["listeners"][0]["decisions"], 42);
    switch.expect_log_lines(42);
    std::fs::write(switch.folder().join("access.log"), switch.output().text()).expect("a writable folder");
    std::fs::write(switch.folder().join("new.rules"), NEW).expect("a writable folder");
    let words = ["replay", "access.log", "new.rules", "--old", "pointsman.toml", "--json"];
    let replayed = pointsman(switch.folder(), &words);
    let replayed: Value = serde_json::from_str(&replayed.stdout).expect("JSON");
    assert_eq!(counts(&replayed), counts(&report), "{replayed}");
    assert_eq!(groups(&replayed), groups(&report));
    assert_eq!(report["groups"].as_array().expect("a list").len(), 3, "{report}");
    // Behind its end nothing is counted.
    switch.client().get("/no");
    assert_eq!(counts(&switch.admin_shows(DRY_RUN)), counts(&report));
    let total = |result| switch.metric("pointsman_dry_run_decisions_total", &[("result", result)]);
    assert_eq!(["same", "other_rule", "changed", "untold"].map(total), [12.0, 12.0, 18.0, 0.0]);
    begin(&switch, OF_RULES, NEW);
    switch.client().get("/no");
    assert_eq!(counts(&end(&switch)), [1, 0, 0, 1, 0]);
    assert_eq!(total("changed"), 19.0);
}

/// The candidate takes nothing of a class, remembers nobody, sends no copy and draws no lot.
fn only_the_rules_that_serve_decide(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let class = "[limit.few]\nper_minute = 1\nburst = 1\n";
    let switch =
        two(threads, &a, &b).rules("R1: { routeTo(a); }\nR2: { limitRate(few); }\n").raw(class).start();
    let candidate = "R1: { limitRate(few); mirror(b); setResponseHeader(\"x-b\", \"1\"); \
                     routeTo(split(50: a, 50: b), STICKY_ON_COOKIE); }\n";
    begin(&switch, OF_RULES, candidate);
    let mut client = switch.client();
    for _ in 0..20 {
        let answer = client.get("/");
        assert_eq!((answer.status(), answer.server()), (200, "sa"));
        assert_eq!((answer.head.field("x-b"), answer.head.field("set-cookie")), (None, None));
    }
    let report = end(&switch);
    assert_eq!(counts(&report), [20, 0, 0, 20, 0], "{report}");
    assert_eq!(report["groups"][0]["old"]["outcome"], "a");
    let new = report["groups"][0]["new"]["outcome"].as_str().expect("text");
    assert_eq!(new, "split");
    assert_eq!((b.count(), switch.metric("pointsman_sticky_clients", &[])), (0, 0.0));
    assert_eq!(switch.metric("pointsman_limited_requests_total", &[]), 0.0);
    assert_eq!(switch.metric("pointsman_rule_hits_total", &[("rule", "R1")]), 20.0);
}

/// By time, by count, by hand and by other rules; what it has found stays to be seen.
fn it_ends_in_four_ways(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    assert_eq!(switch.admin_get(DRY_RUN).status(), 404);
    assert_eq!(switch.admin_ask("DELETE", DRY_RUN, "", "").0.status(), 404);
    let has_ended =
        || until("its end", || Some(switch.admin_shows(DRY_RUN)).filter(|said| said["state"] == "ended"));
    let begun = |query: &str| {
        let (answer, said) = switch.admin_ask("POST", &format!("{OF_RULES}{query}"), "", NEW);
        assert_eq!(answer.status(), 200, "{said}");
    };
    begun("?seconds=1&why=a%20look");
    let said = has_ended();
    assert_eq!(
        (&said["ended_by"], &said["elapsed_ms"], &said["n"]),
        (&"time".into(), &1000.into(), &1.into())
    );
    assert_eq!((&said["who"], &said["why"]), (&"deploy".into(), &"a look".into()));
    begun("?decisions=3");
    let mut client = switch.client();
    for _ in 0..3 {
        client.get("/");
    }
    let said = has_ended();
    assert_eq!((&said["ended_by"], &said["decisions"]), (&"decisions".into(), &3.into()));
    // One at a time, and by hand only the one that is meant.
    begin(&switch, OF_RULES, NEW);
    let (answer, said) = switch.admin_ask("POST", DRY_RUN, "", "");
    assert_eq!(answer.status(), 409, "{said}");
    let id = switch.admin_shows(DRY_RUN)["id"].clone();
    let (answer, said) = switch.admin_ask("DELETE", DRY_RUN, "If-Match: \"3\"\r\n", "");
    assert_eq!((answer.status(), &said["id"]), (412, &id));
    let (answer, said) = switch.admin_ask("DELETE", DRY_RUN, &format!("If-Match: {id}\r\n"), "");
    assert_eq!((answer.status(), &said["ended_by"]), (200, &"told".into()));
    assert_eq!(end(&switch)["ended_by"], "told");
    // Whoever gives it an id ends it by that, though they were not answered.
    begun("?seconds=3600&id=mine-1");
    assert_eq!(switch.admin_shows(DRY_RUN)["id"], "mine-1");
    let (answer, said) = switch.admin_ask("DELETE", DRY_RUN, "If-Match: \"mine-1\"\r\n", "");
    assert_eq!((answer.status(), answer.head.field("etag")), (200, Some("\"mine-1\"")), "{said}");
    // Under way while requests come: what they were compared with is no more.
    begin(&switch, OF_RULES, NEW);
    client.get("/");
    switch.reload(&setup.rules(NEW), 2);
    client.get("/");
    let said = has_ended();
    assert_eq!((&said["ended_by"], &said["decisions"]), (&"published".into(), &1.into()));
    let (answer, said) = switch.admin_ask("POST", OF_RULES, "If-Match: \"other\"\r\n", NEW);
    assert_eq!(answer.status(), 412, "{said}");
    assert_eq!(switch.metric("pointsman_dry_run_running", &[]), 0.0);
    switch.wait_for_line("dry-run ended n=5");
    let said = switch.said();
    let lines: Vec<_> = said.lines().filter(|line| line.starts_with("dry-run ")).collect();
    let began =
        |n: u8, seconds: u32| format!("dry-run began n={n} listener=shop seconds={seconds} by=deploy");
    let ended = |n: u8, by: &str, decisions: u8| {
        format!("dry-run ended n={n} by={by} decisions={decisions} changed=0 other_rule={decisions} untold=0")
    };
    let expected = [
        (began(1, 1), ended(1, "time", 0)),
        (began(2, 60), ended(2, "decisions", 3)),
        (began(3, 3600), ended(3, "told", 0)),
        (began(4, 3600), ended(4, "told", 0)),
        (began(5, 3600), ended(5, "published", 1)),
    ];
    assert_eq!(lines, expected.iter().flat_map(|(began, ended)| [began, ended]).collect::<Vec<_>>());
}

/// All of it is shown with its place, and nothing begins.
fn what_is_wrong_with_a_candidate(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    let bad = "R1: { routeTo(nowhere); }\nR2: if (pth == \"/\") { routeTo(b); }\n";
    let check = |target: &str, rules: &str| {
        let (answer, said) = switch.admin_ask("POST", target, "", rules);
        assert_eq!(answer.status(), 422, "{said}");
        let findings = said["findings"].as_array().expect("a list").iter();
        assert_eq!(findings.map(|found| &found["line"]).collect::<Vec<_>>(), [1, 2]);
        assert!(said["text"].as_str().expect("text").contains("^^^"), "{said}");
    };
    check(OF_RULES, bad);
    let (answer, _) = switch.admin_ask("POST", "/api/v1/listeners/none/rules/dry-run", "", NEW);
    assert_eq!(answer.status(), 404);
    setup.clone().rules(bad).write(switch.folder());
    check(DRY_RUN, "");
    // Rules are for what serves, and not for what somebody is writing.
    let (answer, said) = switch.admin_ask("POST", OF_RULES, "", NEW);
    assert_eq!(answer.status(), 409, "{said}");
    assert_eq!(switch.admin_get(DRY_RUN).status(), 404);
    assert_eq!(switch.get("/fast").server(), "sb");
    assert!(!switch.said().contains("reload refused"), "{}", switch.said());
}

/// Nobody waits for a body for the candidate's sake: what comes with the head is looked into, and what is read anyway.
fn bodies_are_read_for_those_that_serve(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let new = "R1: if (json.b > 1) { routeTo(b); }\n";
    let head = |bytes: usize| {
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n"
        )
    };
    let (small, large) = ("{\"b\": 2}", "{\"b\": 1}");
    let post = |client: &mut Client, body: &str| {
        client.send(head(body.len()) + body);
        assert_eq!(client.response().status(), 200);
    };
    let switch = two(threads, &a, &b).rules("R0: if (path == \"/x\") { reject(); }\n").start();
    begin(&switch, OF_RULES, new);
    let mut client = switch.client();
    post(&mut client, small);
    post(&mut client, large);
    let decided = switch.admin_shows(DRY_RUN);
    assert_eq!(counts(&decided), [2, 1, 0, 1, 0], "{decided}");
    // The head comes alone, and is sent on at once.
    client.send(head(small.len()));
    until("its decision", || (switch.admin_shows(DRY_RUN)["decisions"] == 3).then_some(()));
    client.send(small);
    assert_eq!(client.response().status(), 200);
    let decided = end(&switch);
    assert_eq!(counts(&decided), [3, 1, 0, 1, 1], "{decided}");
    assert_eq!(decided["untold_because"]["needs_body"], 1);
    assert!(decided["text"].as_str().expect("text").contains("need more of the body"), "{decided}");
    // Where the rules that serve read it the candidate learns of other fields of it.
    let switch = two(threads, &a, &b).rules("R0: if (json.a > 1) { reject(); }\n").start();
    begin(&switch, OF_RULES, new);
    let mut client = switch.client();
    for body in [small, large, "{\"b\": \"x\"}", "[]"] {
        client.send(head(body.len()));
        let waiting = || switch.metric("pointsman_requests_waiting", &[]) == 1.0;
        until("it waits for the body", || waiting().then_some(()));
        client.send(body);
        assert_eq!(client.response().status(), 200);
    }
    let decided = end(&switch);
    assert_eq!(counts(&decided), [4, 2, 0, 2, 0], "{decided}");
    let outcomes = groups(&decided);
    assert!(outcomes.iter().any(|group| group.contains("unknown(not a number)")), "{outcomes:?}");
}

/// Not more than the access log has, and to nobody who is not known.
fn requests_are_shown_as_in_the_log(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    for (top, has_query) in [("", false), ("[access_log]\npath = \"-\"\nquery = true", true)] {
        let switch = two(threads, &a, &b).top(top).start();
        begin(&switch, OF_RULES, NEW);
        for _ in 0..9 {
            let answer = switch.client().ask("GET", "/%6eo?token=secret", "Authorization: Bearer secret\r\n");
            assert_eq!(answer.status(), 404);
        }
        let report = end(&switch);
        let samples = report["groups"][0]["samples"].as_array().expect("a list");
        assert!((1..=3).contains(&samples.len()), "{report}");
        let sample = &samples[0];
        let seen = ["client", "method", "host", "path"].map(|name| sample[name].as_str().unwrap_or_default());
        assert_eq!(seen, ["127.0.0.1", "GET", sample["host"].as_str().expect("a host"), "/no"]);
        assert_eq!(sample["query"], if has_query { "token=secret".into() } else { Value::Null });
        assert_eq!(report.to_string().contains("secret"), has_query);
        let stranger: Value = serde_json::from_str(&switch.admin_get(DRY_RUN).text()).expect("JSON");
        assert_eq!((counts(&stranger), groups(&stranger)), (counts(&report), groups(&report)));
        assert_eq!(stranger["groups"][0]["samples"], serde_json::json!([]));
        assert!(!stranger["text"].as_str().expect("text").contains("127.0.0.1"), "{stranger}");
    }
}

/// What stands on disk is asked as its own configuration has it: paths are read its way, connections are decided too, and
/// of a listener that is no more nothing can be told.
fn other_configurations(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let slashes = "R1: if (path == \"/a/b\") { routeTo(b); }\n";
    let setup = two(threads, &a, &b).rules(slashes);
    let raw = |setup: &Setup| {
        setup.clone().another_listener("raw").listener("protocol = \"tcp\"").rules("T1: { routeTo(a); }\n")
    };
    let switch = raw(&setup).another_listener("gone").start();
    let merging = setup.clone().listener("merge_slashes = true");
    raw(&merging).rules("T1: { routeTo(b); }\n").write(switch.folder());
    begin(&switch, DRY_RUN, "");
    for path in ["/a//b", "/a/b", "/c"] {
        switch.client().get(path);
    }
    assert_eq!(Client::plain(switch.address("raw")).get("/").server(), "sa");
    assert_eq!(Client::plain(switch.address("gone")).get("/").status(), 200);
    let report = end(&switch);
    let of = |index: usize| counts(&report["listeners"][index]);
    assert_eq!([of(0), of(1), of(2)], [[3, 2, 0, 1, 0], [1, 0, 0, 1, 0], [1, 0, 0, 0, 1]], "{report}");
    let text = report["text"].as_str().expect("text");
    assert!(text.contains("a connection from 127.0.0.1"), "{text}");
    assert!(text.contains("no such listener"), "{text}");
}

/// The command ends with the dry-run, and its status says what came of it.
fn the_command_waits_and_says(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let switch = two(threads, &a, &b).start();
    let files = [("new.rules", NEW), ("same.rules", OLD), ("bad.rules", "R1: { routeTo(nowhere); }")];
    for (name, text) in files {
        std::fs::write(switch.folder().join(name), text).expect("a writable folder");
    }
    let run = |words: &[&str], code: i32, said: &[&str]| {
        ends(switch.folder(), &[&["dry-run"], words].concat(), code, said)
    };
    let beside = |rules: &str, code: i32, said: &[&str]| {
        std::thread::scope(|scope| {
            let words = [rules, "--for", "1h", "--decisions", "2", "--listener", "shop"];
            let running = scope.spawn(move || run(&words, code, said));
            until("it", || (switch.metric("pointsman_dry_run_running", &[]) == 1.0).then_some(()));
            switch.client().get("/no");
            switch.client().get("/fast");
            running.join().expect("it says so");
        });
    };
    let changed = "1  R2 -> reject(404)  becomes  NO -> reject(403)";
    beside("new.rules", 1, &[changed, "GET ", "/no from 127.0.0.1", "2 decisions: 1 otherwise, 1 alike"]);
    beside("same.rules", 0, &["2 decisions: 0 otherwise, 2 alike"]);
    run(&["bad.rules"], 2, &["shop.rules:1:", "`nowhere`", "^^^", "nothing has changed"]);
    run(&["--for", "1s"], 3, &["0 decisions"]);
    let json = run(&["--show", "--json"], 3, &[]);
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&json["n"], &json["ended_by"]), (&3.into(), &"time".into()));
    begin(&switch, DRY_RUN, "");
    run(&["new.rules"], 2, &["a dry-run goes on"]);
    switch.client().get("/");
    run(&["--show"], 0, &["note: it goes on", "1 decision: 0 otherwise, 1 alike"]);
    run(&["--end"], 0, &["1 decision: 0 otherwise, 1 alike"]);
}
