//! What is asked about rules while somebody writes them: the admin API answers, and nothing changes.

use std::sync::mpsc::{self, TryRecvError};
use std::thread;

use pointsman_e2e::{ADMIN_TOKEN, Client, Origin, Setup, Switch};
use serde_json::{Value, json};

use crate::published_rules::{RULES, file, version};

pointsman_e2e::for_threads!(
    findings_have_their_places,
    rules_that_do_not_compile_are_answered,
    only_what_has_changed_is_looked_at,
    a_check_ends_in_time,
    a_newer_check_ends_the_older,
    changes_wait_for_no_check,
    requests_are_explained,
    questions_that_say_nothing_are_refused,
    rules_are_formatted,
    the_vocabulary_is_that_of_the_configuration,
    versions_are_compared,
    what_is_typed_is_not_audited
);

const CHECK: &str = "/api/v1/listeners/shop/rules/check";
/// With time enough on a machine that is busy with other tests: the work gives way to all of them.
const PATIENT: &str = "/api/v1/listeners/shop/rules/check?within_ms=10000";
const EXPLAIN: &str = "/api/v1/listeners/shop/rules/explain";
const SERVING: &str =
    "R1: if (path under \"/a\") { routeTo(a); }\nR2: if (method == \"POST\") { routeTo(b); }\n";

fn two(threads: usize) -> (Setup, [Origin; 2]) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = Setup::new(threads).rules(SERVING).pool("a", &[&a]).pool("b", &[&b]).with_token();
    (setup, [a, b])
}

fn post(switch: &Switch, target: &str, body: &str) -> Value {
    let (answer, said) = switch.admin_ask("POST", target, "", body);
    assert_eq!(answer.status(), 200, "{said}");
    said
}

/// The text that a place of a finding covers.
fn covered<'t>(text: &'t str, span: &Value) -> &'t str {
    let at = |name: &str| usize::try_from(span[name].as_u64().expect("a number")).expect("a place");
    &text[at("start")..at("end")]
}

/// A conflict, shown at the condition that it is about, with a request that decides it so when it is asked.
fn findings_have_their_places(threads: usize) {
    let (setup, _origins) = two(threads);
    let switch = setup.start();
    let new = format!("{SERVING}# größer\nNEW: if (host == \"shop.example\") {{ routeTo(b); }}\n");
    let said = post(&switch, PATIENT, &new);
    assert_eq!((&said["compiles"], &said["is_settled"]), (&json!(true), &json!(true)), "{said}");
    assert_eq!((&said["about"], &said["changed"]), (&json!("changed"), &json!(["NEW"])));
    assert_eq!(said["rules_version"], version(&switch));
    let findings = said["findings"].as_array().expect("a list");
    let conflict =
        findings.iter().find(|finding| finding["code"] == "conflict").unwrap_or_else(|| panic!("{said}"));
    assert_eq!((&conflict["rule"], &conflict["others"]), (&json!("NEW"), &json!(["R1"])), "{conflict}");
    assert_eq!(covered(&new, &conflict["span"]), "host == \"shop.example\"");
    let span = &conflict["span"];
    let ends =
        ["line", "column", "end_line", "end_column"].map(|name| span[name].as_u64().expect("a number"));
    assert_eq!(ends, [4, 10, 4, 32], "{span}");
    // Its request, asked as it is shown, comes to the first of the two.
    let witness = &conflict["witness"];
    let mut question = witness["explain"].clone();
    (question["request"], question["rules"]) = (witness["request"].clone(), json!(new));
    let explained = post(&switch, EXPLAIN, &question.to_string());
    assert_eq!(explained["decision"]["rule"], "R1", "{explained}");
    // What the command says of the same rules is the same.
    let all = post(&switch, &format!("{CHECK}?about=all&within_ms=10000"), &new);
    assert_eq!(all["changed"], Value::Null);
    setup.rules(&new).write(switch.folder());
    let finished = setup_check(&switch);
    let served = switch.admin_shows(PATIENT);
    let of_served = post(&switch, &format!("{CHECK}?about=all&within_ms=10000"), SERVING);
    assert_eq!((&served["about"], &served["findings"]), (&json!("all"), &of_served["findings"]));
    let told = |said: &Value| -> Vec<(Value, Value)> {
        let findings = said["findings"].as_array().expect("a list").iter();
        findings.map(|finding| (finding["message"].clone(), finding["span"].clone())).collect()
    };
    assert_eq!(told(&all), told(&finished));
}

/// What the command says of the configuration of a switch.
fn setup_check(switch: &Switch) -> Value {
    let finished = pointsman_e2e::pointsman(
        switch.folder(),
        &["check", "--json", "--rule", "R1", "--rule", "R2", "--rule", "NEW", "pointsman.toml"],
    );
    serde_json::from_str(&finished.stdout).expect("JSON")
}

/// Each error with its place, as many as there are; and what only the configuration knows to be wrong.
fn rules_that_do_not_compile_are_answered(threads: usize) {
    let (setup, _origins) = two(threads);
    let switch = setup.start();
    let bad = "R1: { routeTo(nowhere); }\nR2: if (pth == \"/\") { routeTo(b); }\n";
    let said = post(&switch, PATIENT, bad);
    assert_eq!(said["compiles"], false, "{said}");
    let findings = said["findings"].as_array().expect("a list");
    let shown: Vec<_> = findings
        .iter()
        .map(|finding| (&finding["code"], &finding["rule"], covered(bad, &finding["span"])))
        .collect();
    assert_eq!(
        shown,
        [(&json!("invalid"), &json!("R1"), "nowhere"), (&json!("invalid"), &json!("R2"), "pth")]
    );
    assert!(findings.iter().all(|finding| finding["witness"].is_null() && finding["others"] == json!([])));
    assert!(findings[1]["help"].as_str().expect("help").contains("`path`"), "{}", findings[1]);
    for odd in ["", "\u{0}", "R1: {", "😀", "else:"] {
        post(&switch, PATIENT, odd);
    }
    let mut client = Client::plain(switch.admin());
    client.send(format!(
        "POST {CHECK} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nContent-Length: 2\r\n\r\n"
    ));
    client.send([0xc3, 0x28]);
    assert_eq!(client.response().status(), 400);
    let (answer, _) = switch.admin_ask("POST", &format!("{CHECK}?about=some"), "", "");
    assert_eq!(answer.status(), 400);
    let (answer, _) = switch.admin_ask("POST", "/api/v1/listeners/none/rules/check", "", "");
    assert_eq!(answer.status(), 404);
    // A listener without a pool has rules that end in `else:`.
    let origin = Origin::new("sa");
    let closed = "R1: if (path == \"/\") { reject(); }\nelse: routeTo(a);\n";
    let pool = format!("[pool.a]\nservers = [\"{}\"]", origin.address());
    let switch = Setup::new(threads).rules(closed).with_token().top(&pool).start();
    assert_eq!(post(&switch, PATIENT, closed)["compiles"], true);
    let open = post(&switch, PATIENT, "R1: if (path == \"/\") { reject(); }\n");
    assert_eq!(open["compiles"], false, "{open}");
    let message = open["findings"][0]["message"].as_str().expect("a sentence");
    assert!(message.starts_with("nothing takes what"), "{open}");
}

/// Rules that are as they serve are not looked at again, wherever their lines are by now.
fn only_what_has_changed_is_looked_at(threads: usize) {
    let (setup, _origins) = two(threads);
    let switch = setup.start();
    assert_eq!(post(&switch, PATIENT, SERVING)["changed"], json!([]));
    let laid_out = SERVING.replace("{ ", "{\n    ").replace("; }", ";\n}\n");
    assert_eq!(post(&switch, PATIENT, &laid_out)["changed"], json!([]));
    let moved = format!("FIRST: if (path == \"/first\") {{ reject(); }}\n{SERVING}");
    assert_eq!(post(&switch, PATIENT, &moved)["changed"], json!(["FIRST"]));
    // What is set for all rules is about all of them.
    assert_eq!(post(&switch, PATIENT, &format!("on_unknown skip;\n{SERVING}"))["changed"], Value::Null);
    // What is said of others is for who asks for all.
    let shadowed = format!("{SERVING}R3: if (path under \"/a/b\") {{ routeTo(b); }}\n");
    let (_, said) = switch.admin_ask("PUT", RULES, "If-Match: *\r\n", &shadowed);
    assert!(said["rules_version"].is_string(), "{said}");
    let codes = |target: &str| -> Vec<String> {
        let said = post(&switch, target, &shadowed);
        let findings = said["findings"].as_array().expect("a list").iter();
        findings.map(|finding| finding["code"].as_str().expect("a word").to_owned()).collect()
    };
    assert!(codes(&format!("{PATIENT}&about=all")).contains(&"unreachable".to_owned()));
    assert!(!codes(PATIENT).contains(&"unreachable".to_owned()));
}

/// So many rules of which each may meet each: it takes long to say what they mean together.
fn many(count: usize) -> String {
    let rule = |number: usize| {
        format!(
            "R{number}: if (path contains \"/{number}/\" && header[\"x-{number}\"] like \"*{number}?\") {{ routeTo(a); }}\n"
        )
    };
    (0..count).map(rule).collect()
}

/// What could not be looked at is unknown, and said to be.
fn a_check_ends_in_time(threads: usize) {
    let (setup, _origins) = two(threads);
    let switch = setup.start();
    let text = many(300);
    let said = post(&switch, &format!("{CHECK}?about=all&within_ms=1"), &text);
    assert_eq!(said["is_settled"], false, "{said}");
    let findings = said["findings"].as_array().expect("a list");
    let is_late = |finding: &Value| finding["reasons"][0]["kind"] == "time";
    assert!(findings.iter().any(|finding| finding["code"] == "unknown" && is_late(finding)), "{said}");
}

/// Sends a check, and does not wait for its answer.
fn begin(switch: &Switch, target: &str, body: &str) -> Client {
    let mut client = Client::plain(switch.admin());
    let length = body.len();
    client.send(format!(
        "POST {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nContent-Length: \
         {length}\r\n\r\n{body}"
    ));
    client
}

/// Of two checks of one window the older is not waited for; another window's goes on.
fn a_newer_check_ends_the_older(threads: usize) {
    let (setup, _origins) = two(threads);
    let switch = setup.start();
    let long = many(1000);
    let target = |client: &str| format!("{CHECK}?about=all&within_ms=10000&client={client}");
    let mut older: Vec<_> = (0..6).map(|_| begin(&switch, &target("one"), &long)).collect();
    // What was sent first may be read last: newer ones come until each older one is answered.
    let (reading, read) = mpsc::channel::<()>();
    let statuses: Vec<_> = thread::scope(|scope| {
        let (switch, target) = (&switch, target("one"));
        scope.spawn(move || {
            while read.try_recv() != Err(TryRecvError::Disconnected) {
                let (answer, said) = switch.admin_ask("POST", &target, "", SERVING);
                assert!([200, 409].contains(&answer.status()), "{said}");
            }
        });
        let _reading = reading;
        older.iter_mut().map(|client| client.response().status()).collect()
    });
    assert_eq!(statuses, [409; 6]);
    for client in ["one", "two"] {
        assert_eq!(post(&switch, &target(client), SERVING)["compiles"], true);
    }
}

/// While checks go on, what changes something is done.
fn changes_wait_for_no_check(threads: usize) {
    let (setup, _origins) = two(threads);
    let switch = setup.start();
    let long = many(1000);
    let mut checks: Vec<_> = (0..3)
        .map(|number| begin(&switch, &format!("{CHECK}?about=all&within_ms=10000&client={number}"), &long))
        .collect();
    let new = "R1: { routeTo(b); }\n";
    let (answer, said) = switch.admin_ask("PUT", RULES, "If-Match: *\r\n", new);
    assert_eq!(answer.status(), 200, "{said}");
    assert_eq!((switch.get("/").server(), &*file(&switch)), ("sb", new));
    // They are of no use to anybody any more.
    let newer = (0..3).map(|number| begin(&switch, &format!("{CHECK}?client={number}"), ""));
    let mut newer: Vec<_> = newer.collect();
    assert!(newer.iter_mut().all(|client| client.response().status() == 200));
    assert!(checks.iter_mut().all(|client| client.response().status() == 409));
}

/// By the rules that serve for whoever reads, and by others for who may change: each test with what it has seen.
fn requests_are_explained(threads: usize) {
    let (setup, _origins) = two(threads);
    let switch = setup.start();
    let request = "POST /b HTTP/1.1\nHost: shop.example\nContent-Type: application/json\nContent-Length: 7\n\n{\"n\":7}";
    let serving = "/api/v1/listeners/shop/explain";
    let question = json!({ "request": request, "srcip": "10.0.0.9", "miss": "R1" }).to_string();
    let mut reader = Client::plain(switch.admin());
    let length = question.len();
    reader.send(format!(
        "POST {serving} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{question}"
    ));
    let said: Value = serde_json::from_str(&reader.response().text()).expect("JSON");
    assert_eq!(said["decision"]["rule"], "R2", "{said}");
    assert_eq!(said["request"]["client"], "10.0.0.9:40000");
    let tests = &said["rules"][0]["tests"];
    assert_eq!((&tests[0]["result"], &tests[0]["values"]), (&json!("false"), &json!(["/b"])), "{said}");
    assert_eq!(covered(SERVING, &tests[0]["span"]), "path under \"/a\"");
    assert!(covered(SERVING, &said["rules"][1]["span"]).starts_with("R2: if"), "{said}");
    assert_eq!(said["misses"][0]["rule"], "R1");
    // Other rules, which look into the body.
    let rules = "R1: if (method == \"POST\" && json.n > 5) { routeTo(b); }\n";
    let question = json!({ "request": request, "rules": rules }).to_string();
    let said = post(&switch, EXPLAIN, &question);
    let body_from = usize::try_from(said["body_from"].as_u64().expect("a number")).expect("a place");
    assert_eq!(&request[body_from..], "{\"n\":7}");
    assert!(said["body_bytes_needed"].as_u64().is_some_and(|bytes| (5..8).contains(&bytes)), "{said}");
    let tests = said["rules"][0]["tests"].as_array().expect("a list");
    let seen: Vec<_> = tests.iter().map(|test| (&test["result"], &test["values"][0])).collect();
    let [yes, post_, seven] = [json!("true"), json!("POST"), json!("7")];
    assert_eq!(seen, [(&yes, &post_), (&yes, &seven)], "{said}");
    let base64 = json!({ "request_base64": "R0VUIC9hIEhUVFAvMS4xDQpIb3N0OiBhDQoNCg==" }).to_string();
    let (answer, said) = switch.admin_ask("POST", serving, "", &base64);
    assert_eq!((answer.status(), &said["decision"]["rule"]), (200, &json!("R1")), "{said}");
    // A request that the switch refuses is one, too.
    let (_, said) =
        switch.admin_ask("POST", serving, "", &json!({ "request": "GET / HTTP/1.1\r\n\r\n" }).to_string());
    assert_eq!(said["decision"]["refused"]["status"], 400, "{said}");
}

/// What cannot be a question gets a sentence that says why, in the words of whoever asks.
fn questions_that_say_nothing_are_refused(threads: usize) {
    let (setup, _origins) = two(threads);
    let switch = setup.start();
    let serving = "/api/v1/listeners/shop/explain";
    let request = "GET / HTTP/1.1\nHost: a\n\n";
    for (question, status, expected) in [
        (json!({}), 422, "there is none to explain"),
        (json!({ "request": "GET" }), 422, "no whole head"),
        (json!({ "request": request, "tls": "1.3" }), 422, "`tls` says what never comes"),
        (json!({ "request": request, "srcip": "here" }), 422, "`srcip` takes an address"),
        (json!({ "request": request, "client_fingerprint": "x" }), 422, "`client_fingerprint` takes"),
        (json!({ "request": request, "srcport": "1" }), 400, "`srcport` is a number"),
        (json!({ "request": request, "miss": "R9" }), 422, "no rule has the label `R9`"),
        (json!({ "request": request, "request_base64": "" }), 422, "not both"),
        (json!({ "request_base64": "?" }), 422, "is no base64"),
        (json!({ "request": 7 }), 400, "`request` is a text"),
        (json!({ "request": request, "listener": "shop" }), 400, "no member `listener`"),
    ] {
        let (answer, said) = switch.admin_ask("POST", serving, "", &question.to_string());
        assert_eq!(answer.status(), status, "{question} {said}");
        let detail = said["detail"].as_str().expect("a sentence");
        assert!(detail.contains(expected) && !detail.contains("--"), "{question}: {detail}");
    }
    let wrong = json!({ "request": request, "rules": "R1: {" }).to_string();
    let (answer, said) = switch.admin_ask("POST", EXPLAIN, "", &wrong);
    assert_eq!((answer.status(), &said["findings"][0]["line"]), (422, &json!(1)), "{said}");
    // Rules that are given are for who may change: this one takes none.
    let (answer, _) = switch.admin_ask("POST", serving, "", &wrong);
    assert_eq!(answer.status(), 400);
    let (answer, _) = switch.admin_ask("POST", EXPLAIN, "", &json!({ "request": request }).to_string());
    assert_eq!(answer.status(), 400);
}

fn rules_are_formatted(threads: usize) {
    let (setup, _origins) = two(threads);
    let switch = setup.start();
    let format = "/api/v1/listeners/shop/rules/format";
    let said = post(&switch, format, "R1:if(path==\"/\"){reject();} # why\n");
    assert_eq!(
        (&said["text"], &said["is_changed"]),
        (&json!("R1: if (path == \"/\") { reject(); }  # why\n"), &json!(true)),
        "{said}"
    );
    let text = said["text"].as_str().expect("text");
    assert_eq!(post(&switch, format, text)["is_changed"], false);
    let (answer, said) = switch.admin_ask("POST", format, "", "R1: {");
    assert_eq!((answer.status(), &said["findings"][0]["line"]), (422, &json!(1)), "{said}");
}

/// Fields and actions that rules of a listener can name, and what there is for them.
fn the_vocabulary_is_that_of_the_configuration(threads: usize) {
    let (setup, _origins) = two(threads);
    let keys = "[limit.perclient]\nper_second = 10\n[bandwidth.gold]\nceiling_bytes_per_second = 1000000\n\
                [list.friends]\nentries = [\"10.0.0.0/8\"]";
    let switch = setup.top(keys).start();
    let said = switch.admin_shows("/api/v1/listeners/shop/vocabulary");
    let names = |of: &str| -> Vec<String> {
        let list = said[of].as_array().expect("a list").iter();
        list.map(|entry| entry["name"].as_str().or(entry.as_str()).expect("a name").to_owned()).collect()
    };
    assert_eq!(names("pools"), ["a", "b"]);
    assert_eq!(said["pools"][0]["servers"], json!(["sa"]));
    assert_eq!(
        (names("limits"), names("bandwidths"), names("lists")),
        (vec!["perclient".to_owned()], vec!["gold".to_owned()], vec!["friends".to_owned()])
    );
    let field = said["fields"].as_array().expect("a list").iter().find(|field| field["name"] == "header");
    let field = field.expect("there is one");
    assert_eq!((&field["spelling"], &field["is_many_valued"]), (&json!("header[\"name\"]"), &json!(true)));
    assert!(
        names("actions").contains(&"routeTo".to_owned()) && names("operators").contains(&"under".to_owned())
    );
    let (answer, _) = switch.admin_ask("GET", "/api/v1/listeners/none/vocabulary", "", "");
    assert_eq!(answer.status(), 404);
}

/// A version beside what serves, and beside another version.
fn versions_are_compared(threads: usize) {
    let (setup, _origins) = two(threads);
    let switch = setup.start();
    let new = SERVING.replace("under \"/a\"", "under \"/aa\"");
    let (answer, said) = switch.admin_ask("PUT", RULES, "If-Match: *\r\n", &new);
    assert_eq!(answer.status(), 200, "{said}");
    let back = switch.admin_shows("/api/v1/versions/1/diff");
    assert_eq!(back["verdict"], "different", "{back}");
    assert_eq!(switch.admin_shows("/api/v1/versions/2/diff")["verdict"], "equal");
    let forth = switch.admin_shows("/api/v1/versions/2/diff?from=1");
    assert_eq!(forth["verdict"], "different", "{forth}");
    let text = |said: &Value| said["difference_text"].as_str().expect("text").to_owned();
    assert!(text(&forth).contains("POST /a") && text(&back) != text(&forth), "{forth}");
    assert_eq!(switch.admin_ask("GET", "/api/v1/versions/3/diff", "", "").0.status(), 404);
    assert_eq!(switch.admin_ask("GET", "/api/v1/versions/2/diff?from=9", "", "").0.status(), 404);
    assert_eq!(switch.admin_ask("GET", "/api/v1/versions/2/diff?from=x", "", "").0.status(), 400);
    // What nobody has any more cannot be compared.
    setup_without_pool_b(&switch);
    let (answer, said) = switch.admin_ask("GET", "/api/v1/versions/1/diff", "", "");
    assert_eq!(answer.status(), 422, "{said}");
    assert!(said["text"].as_str().expect("text").contains("`b`"), "{said}");
}

/// Lets rules serve that name one pool, with the other pool gone.
fn setup_without_pool_b(switch: &Switch) {
    let (path, rules) = (switch.folder().join("pointsman.toml"), switch.folder().join("shop.rules"));
    let text = std::fs::read_to_string(&path).expect("it is there");
    std::fs::write(&path, text.replace("pool.b", "pool.c")).expect("a writable folder");
    std::fs::write(rules, "R1: { routeTo(a); }\n").expect("a writable folder");
    let (answer, said) = switch.admin_ask("POST", "/api/v1/reload", "", "");
    assert_eq!(answer.status(), 200, "{said}");
}

/// Whoever types leaves no line for every key, and who may not ask does.
fn what_is_typed_is_not_audited(threads: usize) {
    let (setup, _origins) = two(threads);
    let switch = setup.start();
    post(&switch, PATIENT, SERVING);
    post(&switch, "/api/v1/listeners/shop/rules/format", SERVING);
    post(
        &switch,
        EXPLAIN,
        &json!({ "rules": SERVING, "request": "GET / HTTP/1.1\nHost: a\n\n" }).to_string(),
    );
    let mut stranger = Client::plain(switch.admin());
    stranger.send(format!("POST {CHECK} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert_eq!(stranger.response().status(), 401);
    post(&switch, "/api/v1/listeners/shop/rules/validate", SERVING);
    switch.wait_for_line("audit who=deploy");
    let audited: Vec<_> =
        switch.said().lines().filter(|line| line.starts_with("audit ")).map(str::to_owned).collect();
    assert_eq!(audited.len(), 2, "{audited:?}");
    assert!(audited[0].contains("status=401") && audited[1].contains("/validate"), "{audited:?}");
}
