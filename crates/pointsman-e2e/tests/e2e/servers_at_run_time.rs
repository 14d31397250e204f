//! Servers that are drained, added, changed and taken out by the admin API.

use std::collections::BTreeSet;

use pointsman_e2e::{Client, Origin, Setup, Switch, until};
use serde_json::{Value, json};

use crate::drain::held;
use crate::published_rules;

pointsman_e2e::for_threads!(
    set_by_hand,
    sticky_clients_stay_with_one_that_drains,
    by_hand_survives_reloads_and_upgrades,
    what_has_become_of_a_server,
    added_changed_and_taken_out,
    one_that_leaves_ends_what_it_does,
    only_what_was_read_is_changed,
    what_would_be_wrong_changes_nothing,
    what_a_refused_reload_has_left_is_kept,
);

const POOL: &str = "/api/v1/pools/standard";

fn two(threads: usize, a: &Origin, b: &Origin) -> Setup {
    Setup::new(threads).pool("standard", &[a, b]).with_token()
}

fn server(switch: &Switch, name: &str) -> Value {
    switch.admin_shows(&format!("{POOL}/servers/{name}"))
}

/// Sets the state of a server of the usual pool.
pub(crate) fn set(switch: &Switch, name: &str, state: &str, query: &str) -> Value {
    let target = format!("{POOL}/servers/{name}/state{query}");
    let (answer, said) = switch.admin_ask("PUT", &target, "", &json!({ "state": state }).to_string());
    assert_eq!(answer.status(), 200, "{said}");
    said
}

/// Asks for a change of the configuration as it is now.
pub(crate) fn change(switch: &Switch, method: &str, name: &str, body: &str) -> (u16, Value) {
    let version =
        switch.admin_shows("/api/v1/pools")["configuration_version"].as_str().expect("a version").to_owned();
    let target = format!("{POOL}/servers/{name}?why=ticket%204");
    let (answer, said) = switch.admin_ask(method, &target, &format!("If-Match: \"{version}\"\r\n"), body);
    if answer.status() == 200 {
        let tag = format!("\"{}\"", said["configuration_version"].as_str().expect("a version"));
        assert_eq!(answer.head.field("etag"), Some(&*tag));
    }
    (answer.status(), said)
}

fn configuration(switch: &Switch) -> String {
    std::fs::read_to_string(switch.folder().join("pointsman.toml")).expect("it is there")
}

/// Who answers some requests.
fn servers(switch: &Switch) -> BTreeSet<String> {
    (0..8).map(|_| switch.get("/").server().to_owned()).collect()
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

fn set_by_hand(threads: usize) {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let switch = two(threads, &a, &b).start();
    assert_eq!(servers(&switch), names(["a", "b"]));
    for state in ["draining", "disabled"] {
        let said = set(&switch, "a", state, "?why=a%20new%20disk");
        assert_eq!((&said["state"], &said["admission"]), (&state.into(), &state.into()), "{said}");
        assert_eq!(said["why"], "set by deploy: a new disk");
        assert_eq!(servers(&switch), names(["b"]));
        switch.wait_for_line(&format!("server {state} pool=standard server=a by=deploy"));
    }
    set(&switch, "b", "disabled", "");
    assert_eq!(switch.get("/").status(), 503);
    assert_eq!(set(&switch, "a", "enabled", "")["state"], "up");
    assert_eq!(servers(&switch), names(["a"]));
    let line = switch
        .errors()
        .wait_for("an audit line", |line| line.contains("a%20new%20disk").then(|| line.to_owned()));
    assert!(line.starts_with("audit who=deploy ") && line.ends_with("status=200"), "{line}");
    for body in [
        "",
        "{",
        "[]",
        "{}",
        "{\"state\":\"up\"}",
        "{\"state\":1}",
        "{\"state\":\"enabled\",\"x\":1}",
        "{\"state\":\"draining\",\"state\":\"enabled\"}",
    ] {
        let (answer, said) = switch.admin_ask("PUT", &format!("{POOL}/servers/a/state"), "", body);
        assert_eq!(answer.status(), 400, "{body} {said}");
    }
    for target in ["standard/servers/c", "none/servers/a"] {
        let target = format!("/api/v1/pools/{target}/state");
        let (answer, said) = switch.admin_ask("PUT", &target, "", "{\"state\":\"enabled\"}");
        assert_eq!(answer.status(), 404, "{said}");
    }
}

fn sticky_clients_stay_with_one_that_drains(threads: usize) {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let rules = "else: routeTo(standard, STICKY_ON_COOKIE);";
    let switch = two(threads, &a, &b).rules(rules).start();
    let cookies: Vec<(String, String)> = (0..8)
        .map(|_| {
            let answer = switch.get("/");
            let cookie = answer.head.field("set-cookie").expect("it is sticky");
            (cookie.split(';').next().expect("a pair").to_owned(), answer.server().to_owned())
        })
        .collect();
    assert!(cookies.iter().any(|(_, server)| server == "a"), "{cookies:?}");
    let ask = |cookie: &str| {
        let answer = switch.client().ask("GET", "/", &format!("Cookie: {cookie}\r\n"));
        answer.server().to_owned()
    };
    set(&switch, "a", "draining", "");
    for (cookie, server) in &cookies {
        assert_eq!(ask(cookie), *server, "it stays");
    }
    assert_eq!(servers(&switch), names(["b"]), "new clients go elsewhere");
    set(&switch, "a", "disabled", "");
    for (cookie, _) in &cookies {
        assert_eq!(ask(cookie), "b", "now all have moved");
    }
    let moved = cookies.iter().filter(|(_, server)| server == "a").count();
    assert_eq!(server(&switch, "b")["sticky_exceptions"], moved);
}

fn by_hand_survives_reloads_and_upgrades(threads: usize) {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let setup = two(threads, &a, &b);
    let mut switch = setup.start();
    set(&switch, "a", "disabled", "");
    switch.reload(&setup, 2);
    assert_eq!(servers(&switch), names(["b"]));
    switch.upgrade();
    switch.wait_for_predecessors();
    assert_eq!(servers(&switch), names(["b"]));
    let said = server(&switch, "a");
    assert_eq!(
        (&said["state"], &said["why"]),
        (&"disabled".into(), &"set before the upgrade".into()),
        "{said}"
    );
    set(&switch, "a", "enabled", "");
    assert_eq!(servers(&switch), names(["a", "b"]));
}

fn what_has_become_of_a_server(threads: usize) {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let health = "health = { interval_ms = 100, fall = 1, rise = 1 }";
    let switch = Setup::new(threads).pool_with("standard", health, &[&a, &b]).with_token().start();
    let said = switch.admin_shows("/api/v1/pools");
    let pool = &said["pools"][0];
    assert_eq!((&pool["name"], &pool["leaving"]), (&"standard".into(), &json!([])), "{said}");
    assert_eq!(pool["servers"][0]["address"], a.address().to_string());
    assert_eq!(switch.admin_shows(POOL)["servers"][1]["name"], "b");
    until("it is probed", || (server(&switch, "a")["health"] == "up").then_some(()));
    drop(a);
    let said = until("it is down", || Some(server(&switch, "a")).filter(|said| said["state"] == "down"));
    assert_eq!(said["why"], "connection refused", "{said}");
    set(&switch, "a", "disabled", "");
    let said = server(&switch, "a");
    let changes: Vec<_> =
        said["changes"].as_array().expect("a list").iter().map(|change| &change["state"]).collect();
    assert_eq!(changes, ["disabled", "down", "up"], "the newest first: {said}");
    let times: Vec<_> =
        said["changes"].as_array().expect("a list").iter().map(|change| change["when"].as_str()).collect();
    assert!(times[0] >= times[1] && times[1] >= times[2], "{said}");
    assert!(said["before"]["since"].as_str() <= times[2], "{said}");
    assert_eq!(said["since"].as_str(), times[0]);
    let (answer, _) = switch.admin_ask("GET", &format!("{POOL}/servers/none"), "", "");
    assert_eq!(answer.status(), 404);
}

fn added_changed_and_taken_out(threads: usize) {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    let pool = format!(
        "# ours\n[pool.standard]\nbalance = \"weighted-round-robin\" # for weights\nservers = [\n  \
         {{ name = \"a\", address = \"{}\" }}, # the old one\n  # the other\n  {{ name = \"b\", address = \"{}\" }},\n]\n",
        a.address(),
        b.address()
    );
    let setup = Setup::new(threads).default_pool("standard").raw(&pool).with_token();
    let switch = setup.start();
    let before = configuration(&switch);
    let body = json!({ "address": c.address().to_string(), "weight": 2 }).to_string();
    let (status, said) = change(&switch, "PUT", "c", &body);
    assert_eq!((status, &said["generation"]), (200, &2.into()), "{said}");
    let answered = |count: usize| {
        let answered: Vec<_> = (0..count).map(|_| switch.get("/").server().to_owned()).collect();
        ["a", "b", "c"].map(|name| answered.iter().filter(|server| **server == *name).count())
    };
    if threads == 1 {
        assert_eq!(answered(8), [2, 2, 4]);
    }
    let line = format!("  {{ name = \"c\", address = \"{}\", weight = 2 }},\n]\n", c.address());
    assert_eq!(configuration(&switch), before.replace("\n]\n", &format!("\n{line}")));
    // Its standing stays: it is the same server.
    set(&switch, "a", "disabled", "");
    assert_eq!(change(&switch, "PATCH", "a", "{\"weight\":9}").0, 200);
    let said = server(&switch, "a");
    assert_eq!((&said["weight"], &said["state"]), (&9.into(), &"disabled".into()), "{said}");
    assert_eq!(change(&switch, "PATCH", "a", "{\"weight\":null}").0, 200);
    assert_eq!(change(&switch, "DELETE", "c", "").0, 200);
    assert_eq!(configuration(&switch), before);
    assert_eq!(servers(&switch), names(["b"]));
    switch.reload(&setup, 6);
    assert_eq!(servers(&switch), names(["b"]), "what is set by hand is not in the file, and holds");
}

fn one_that_leaves_ends_what_it_does(threads: usize) {
    let (origin, go) = held();
    let other = Origin::new("other");
    let switch = two(threads, &origin, &other).start();
    set(&switch, "other", "disabled", "");
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    origin.wait_for_requests(1);
    set(&switch, "other", "enabled", "");
    let (status, said) = change(&switch, "DELETE", origin.name(), "");
    assert_eq!(status, 200, "{said}");
    let leaving = switch.admin_shows(POOL)["leaving"].clone();
    assert_eq!(leaving, json!([{ "name": origin.name(), "in_flight_requests": 1 }]));
    assert_eq!(servers(&switch), names(["other"]));
    go.send(()).expect("it waits");
    assert_eq!(client.response().status(), 200);
    until("nobody leaves any more", || (switch.admin_shows(POOL)["leaving"] == json!([])).then_some(()));
}

fn only_what_was_read_is_changed(threads: usize) {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    let read = switch.admin_shows(POOL)["configuration_version"].clone();
    let target = &format!("{POOL}/servers/a");
    let (answer, said) = switch.admin_ask("DELETE", target, "", "");
    assert_eq!((answer.status(), &said["configuration_version"]), (428, &read), "{said}");
    assert_eq!(change(&switch, "DELETE", "a", "").0, 200);
    let line = format!("If-Match: \"{}\"\r\n", read.as_str().expect("a version"));
    let (answer, said) = switch.admin_ask("DELETE", &format!("{POOL}/servers/b"), &line, "");
    assert_eq!(
        (answer.status(), &said["configuration_version"]),
        (412, &switch.admin_shows(POOL)["configuration_version"])
    );
    // What somebody else has written is neither lost nor let in unseen.
    let theirs = setup.clone().top("drain_ms_max = 7");
    theirs.write(switch.folder());
    assert_eq!(change(&switch, "PUT", "c", "{\"address\":\"127.0.0.1:1\"}").0, 409);
    assert_eq!(configuration(&switch), theirs.text());
    assert_eq!(servers(&switch), names(["b"]));
}

fn what_would_be_wrong_changes_nothing(threads: usize) {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let switch = two(threads, &a, &b).rules("R1: if (path == \"/a\") { routeTo(a); }").start();
    let before = configuration(&switch);
    for (method, name, body, expected, said_of) in [
        ("PUT", "c", "{}", 422, "address"),
        ("PUT", "c", "{\"address\":\"nonsense\"}", 422, "nonsense"),
        ("PUT", "c", "{\"address\":\"127.0.0.1:1\",\"wieght\":2}", 422, "wieght"),
        ("PATCH", "b", "{\"weight\":0}", 422, "weight"),
        ("PATCH", "b", "{\"weight\":1.5}", 400, "weight"),
        ("PATCH", "b", "{\"name\":\"x\"}", 400, "name"),
        ("PATCH", "b", "{\"weight\":\"\\u0000\\\" ]\"}", 422, "weight"),
        ("PATCH", "c", "{\"weight\":1}", 404, "server"),
        ("DELETE", "c", "", 404, "server"),
        // A rule names it.
        ("DELETE", "a", "", 422, "routeTo"),
        ("PUT", "b", "no", 400, "JSON"),
    ] {
        let (status, said) = change(&switch, method, name, body);
        assert_eq!(status, expected, "{method} {name} {body} {said}");
        assert!(said.to_string().contains(said_of), "{method} {name} {body} {said}");
    }
    assert_eq!(configuration(&switch), before);
    assert_eq!(switch.admin_shows(POOL)["generation"], 1);
    let mut client = Client::plain(switch.admin());
    let long = "x".repeat(70_000);
    client.send(format!("PUT {POOL}/servers/c HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: 70000\r\n\r\n{long}", pointsman_e2e::ADMIN_TOKEN));
    assert_eq!(client.response().status(), 413);
}

/// What somebody has edited, and what a reload has refused, is theirs: no change is written over it, nor lets it in.
fn what_a_refused_reload_has_left_is_kept(threads: usize) {
    const RULES: &str = "R1: { routeTo(standard); }";
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let setup = two(threads, &a, &b).rules(RULES);
    let switch = setup.start();
    let rules_version = switch.admin_shows(published_rules::RULES)["rules_version"].clone();
    let publish = || {
        let tag = format!("If-Match: {rules_version}\r\n");
        switch.admin_ask("PUT", published_rules::RULES, &tag, "else: routeTo(standard);").0.status()
    };
    let refuse = |setup: &Setup| {
        setup.write(switch.folder());
        let before = switch.said().matches("reload refused").count();
        switch.signal("HUP");
        until("it is refused", || (switch.said().matches("reload refused").count() > before).then_some(()));
    };
    refuse(&setup.clone().limits("head_bytes_mx = 1"));
    let (status, said) = change(&switch, "PATCH", "b", "{\"weight\": 3}");
    assert_eq!(status, 409, "{said}");
    assert!(said["detail"].as_str().expect("a sentence").contains("pointsman.toml"), "{said}");
    assert_eq!(publish(), 409);
    assert!(configuration(&switch).contains("head_bytes_mx"));

    refuse(&setup.clone().rules("R1: { routeTo(nowhere); }"));
    assert_eq!((change(&switch, "PATCH", "b", "{\"weight\": 3}").0, publish()), (409, 409));
    assert!(published_rules::file(&switch).contains("nowhere"));

    // As it serves: nothing is anybody's.
    setup.write(switch.folder());
    let (status, said) = change(&switch, "PATCH", "b", "{\"weight\": 3}");
    assert_eq!((status, &said["generation"]), (200, &2.into()), "{said}");
    assert_eq!(publish(), 200);
}
