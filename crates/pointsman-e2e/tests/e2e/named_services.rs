//! Servers that the records of a service name (SRV): who they are, who comes first, and what becomes of changes.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use pointsman_e2e::{Authority, Manner, NameServer, Origin, Setup, Switch, TlsServer, ok, pointsman, until};
use serde_json::Value;

use crate::servers_at_run_time::change;

pointsman_e2e::for_threads!(
    servers_come_and_go,
    priorities_and_weights,
    backups_come_behind_all_priorities,
    a_set_is_taken_when_its_servers_are_known,
    failures_keep_the_last_set,
    a_service_that_nobody_knows_yet,
    only_so_many_count,
    added_and_taken_out_at_run_time,
    certificates_are_for_the_domain,
);

const SERVICE: &str = "_http._tcp.shop.example";

/// A pool of one server that is written, if there is one, and the service.
fn pool(keys: &str, written: &[&Origin]) -> String {
    let written: String = written
        .iter()
        .map(|origin| format!("{{ name = \"{}\", address = \"{}\" }}, ", origin.name(), origin.address()))
        .collect();
    format!(
        "[pool.standard]\nbalance = \"weighted-round-robin\"\n{keys}\n\
         servers = [{{ service = \"{SERVICE}\" }}, {written}]\n"
    )
}

fn setup(threads: usize, names: &NameServer, keys: &str, written: &[&Origin]) -> Setup {
    Setup::new(threads).raw(&pool(keys, written)).raw(&names.table("answer_ms_max = 100")).with_token()
}

/// A record for an origin, whose target is `NAME.example`, which is there.
fn record(names: &NameServer, origin: &Origin, priority: u16, weight: u16) -> String {
    let target = format!("{}.example", origin.name());
    names.set(&target, &["0 127.0.0.1"]);
    format!("0 {priority} {weight} {} {target}", origin.address().port())
}

/// The service has these records from now on.
fn has(names: &NameServer, records: &[String]) {
    names.set(SERVICE, &records.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Who answers some requests.
fn servers(switch: &Switch) -> BTreeSet<String> {
    (0..16).map(|_| switch.get("/").server().to_owned()).collect()
}

fn serve(switch: &Switch, names: &[&str]) {
    let expected: BTreeSet<String> = names.iter().map(|&name| name.to_owned()).collect();
    until(&format!("{names:?} serve"), || (servers(switch) == expected).then_some(()));
}

fn shown(switch: &Switch) -> Vec<Value> {
    let pool = switch.admin_shows("/api/v1/pools/standard");
    pool["servers"].as_array().expect("a list").clone()
}

fn lookups(switch: &Switch, outcome: &str) -> f64 {
    let labels = [("name", SERVICE), ("record", "service"), ("outcome", outcome)];
    switch.metric("pointsman_dns_lookups_total", &labels)
}

/// Behind the servers that are written; what was begun at one that leaves ends there.
fn servers_come_and_go(threads: usize) {
    let [two, written] = ["two", "written"].map(|name| Origin::answering(name, ok));
    let (may_go, waits) = channel::<()>();
    let waits = Mutex::new(waits);
    let one = Origin::answering("one", move |exchange| {
        if exchange.target() == "/held" {
            // The test may have ended.
            waits.lock().expect("no panic under the lock").recv().unwrap_or_default();
        }
        ok(exchange)
    });
    let names = NameServer::new();
    has(&names, &[record(&names, &one, 0, 1)]);
    let switch = setup(threads, &names, "", &[&written]).start();
    serve(&switch, &["one", "written"]);
    let shown_now = shown(&switch);
    assert_eq!((&shown_now[0]["name"], &shown_now[0]["service"]), (&"written".into(), &Value::Null));
    let name = format!("one.example:{}", one.address().port());
    let first = &shown_now[1];
    assert_eq!(
        (&first["name"], &first["host"], &first["service"]),
        (&(*name).into(), &(*name).into(), &SERVICE.into())
    );
    assert_eq!(first["address"], one.address().to_string());
    let alone = switch.admin_shows(&format!("/api/v1/pools/standard/servers/{name}"));
    let why = alone["changes"][0]["why"].as_str().expect("a text").to_owned();
    assert_eq!(why, format!("dns: {SERVICE} names {name}, at {}", one.address()));

    let mut held = until("a request that waits at `one`", || {
        let (before, mut client) = (one.count() + written.count(), switch.client());
        client.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
        until("it arrives", || (one.count() + written.count() > before).then_some(()));
        (one.requests().last().is_some_and(|request| request.target() == "/held")).then_some(client)
    });
    has(&names, &[record(&names, &two, 0, 1)]);
    switch.wait_for_line("servers changed generation=2");
    serve(&switch, &["two", "written"]);
    let leaving = switch.admin_shows("/api/v1/pools/standard")["leaving"].clone();
    assert_eq!(
        (&leaving[0]["name"], &leaving[0]["in_flight_requests"]),
        (&(*name).into(), &1.into()),
        "{leaving}"
    );
    may_go.send(()).expect("it waits");
    assert_eq!(held.response().server(), "one");
    has(&names, &[record(&names, &two, 0, 1), record(&names, &one, 0, 1)]);
    serve(&switch, &["one", "two", "written"]);
    let found = switch.metric("pointsman_dns_found", &[("name", SERVICE), ("record", "service")]);
    assert!((found - 2.0).abs() < 0.5, "{found}");
    let metric = format!("two.example:{}", two.address().port());
    assert!(
        switch.metric("pointsman_server_requests_total", &[("server", &metric)]) > 0.5,
        "{}",
        switch.metrics()
    );
}

/// The least value serves, and the others when it cannot, one after the other; among its servers weights hold.
fn priorities_and_weights(threads: usize) {
    let origins = ["heavy", "light", "second", "third"].map(|name| Origin::answering(name, ok));
    let [heavy, light, second, third] = origins;
    let names = NameServer::new();
    has(
        &names,
        &[
            record(&names, &third, 30, 1),
            record(&names, &second, 20, 0),
            record(&names, &heavy, 10, 60),
            record(&names, &light, 10, 20),
        ],
    );
    let switch = setup(threads, &names, "health = { interval_ms = 100, fall = 1, rise = 1 }", &[]).start();
    let mut client = switch.client();
    let served: Vec<String> = (0..40).map(|_| client.get("/").server().to_owned()).collect();
    let by = |name: &str| served.iter().filter(|server| *server == name).count();
    // Other threads begin elsewhere in their rotation; one connection is with one thread.
    assert_eq!((by("heavy"), by("light")), (30, 10), "{served:?}");
    drop((heavy, light));
    serve(&switch, &["second"]);
    drop(second);
    serve(&switch, &["third"]);
}

/// What is written as a backup serves when no server of any priority can, and a service of backups behind it by its own
/// priorities.
fn backups_come_behind_all_priorities(threads: usize) {
    const SPARE: &str = "_http._tcp.spare.example";
    let [one, two, sorry, first, second] =
        ["one", "two", "sorry", "first", "second"].map(|name| Origin::answering(name, ok));
    let names = NameServer::new();
    has(&names, &[record(&names, &one, 10, 1), record(&names, &two, 20, 1)]);
    names.set(SPARE, &[&*record(&names, &first, 1, 1), &*record(&names, &second, 2, 1)]);
    let sorry_server = format!("{{ name = \"sorry\", address = \"{}\", backup = true }}", sorry.address());
    let pool = format!(
        "[pool.standard]\nhealth = {{ interval_ms = 100, fall = 1, rise = 1 }}\nservers = [{sorry_server}, \
         {{ service = \"{SPARE}\", backup = true }}, {{ service = \"{SERVICE}\" }}]\n"
    );
    let setup = Setup::new(threads).raw(&pool).raw(&names.table("answer_ms_max = 100")).with_token();
    let switch = setup.default_pool("standard").start();
    serve(&switch, &["one"]);
    drop(one);
    serve(&switch, &["two"]);
    drop(two);
    serve(&switch, &["first", "sorry"]);
    drop((first, sorry));
    serve(&switch, &["second"]);
}

/// Until then the servers of before serve; one without an address is left out, and comes when it has one.
fn a_set_is_taken_when_its_servers_are_known(threads: usize) {
    let [one, two] = ["one", "two"].map(|name| Origin::answering(name, ok));
    let names = NameServer::new();
    has(&names, &[record(&names, &one, 0, 1)]);
    let switch = setup(threads, &names, "", &[]).start();
    let second = record(&names, &two, 0, 1);
    names.forget("two.example");
    has(&names, std::slice::from_ref(&second));
    switch.wait_for_line(&format!("dns answer name={SERVICE} record=service found=two.example"));
    switch.wait_for_line("dns failed name=two.example. record=address why=\"there is no such name\"");
    assert_eq!(servers(&switch), BTreeSet::from(["one".to_owned()]));
    names.set("two.example", &["0 127.0.0.1"]);
    serve(&switch, &["two"]);
    // Half of a set is better than what was before.
    let gone = "0 0 1 9 gone.example".to_owned();
    has(&names, &[record(&names, &one, 0, 1), gone]);
    serve(&switch, &["one"]);
    names.set("gone.example", &["0 127.0.0.1"]);
    until("it is there", || (shown(&switch).len() == 2).then_some(()));
}

fn failures_keep_the_last_set(threads: usize) {
    let one = Origin::answering("one", ok);
    let names = NameServer::new();
    let records = [record(&names, &one, 0, 1)];
    has(&names, &records);
    let switch = setup(threads, &names, "", &[]).start();
    type Break = fn(&NameServer);
    let ways: [(&str, Break); 5] = [
        ("refused", |names| names.answers(Manner::Failing)),
        ("no_name", |names| names.forget(SERVICE)),
        ("empty", |names| names.set(SERVICE, &[])),
        // There is no such service, said outright; and a target that no host has.
        ("empty", |names| names.set(SERVICE, &["0 0 0 80 .", "0 0 0 0 one.example"])),
        ("timeout", |names| names.answers(Manner::Silent)),
    ];
    for (outcome, breaks) in ways {
        let before = lookups(&switch, outcome);
        breaks(&names);
        until(outcome, || (lookups(&switch, outcome) > before + 0.5).then_some(()));
        assert_eq!(switch.get("/").server(), "one", "{outcome}");
        names.answers(Manner::Well);
        let answered = lookups(&switch, "answered");
        has(&names, &records);
        until("it answers again", || (lookups(&switch, "answered") > answered + 0.5).then_some(()));
    }
    assert!((switch.metric("pointsman_plan_generation", &[]) - 1.0).abs() < 0.5);
}

fn a_service_that_nobody_knows_yet(threads: usize) {
    let one = Origin::answering("one", ok);
    let names = NameServer::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    setup(threads, &names, "", &[]).write(folder.path());
    let refused = pointsman(folder.path(), &["run"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let why = "cannot look up `_http._tcp.shop.example`: there is no such name";
    assert!(refused.stderr.contains(why) && refused.stderr.contains('^'), "{}", refused.stderr);
    let asked = names.asked();
    assert_eq!(pointsman(folder.path(), &["check", "pointsman.toml"]).code, 0);
    assert_eq!(names.asked(), asked, "`check` asks nobody");
    let records = [record(&names, &one, 0, 1)];
    names.forget("one.example");
    has(&names, &records);
    let refused = pointsman(folder.path(), &["run"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("none of its servers has an address"), "{}", refused.stderr);

    let wait = Setup::new(threads).raw(&pool("", &[])).with_token();
    let switch = wait.raw(&names.table("answer_ms_max = 100\nat_start = \"wait\"")).start();
    assert_eq!(switch.get("/").status(), 503);
    let waiting = shown(&switch);
    assert_eq!((&waiting[0]["name"], &waiting[0]["state"]), (&SERVICE.into(), &"down".into()));
    names.set("one.example", &["0 127.0.0.1"]);
    until("it is known", || (switch.get("/").status() == 200).then_some(()));
    assert_eq!(shown(&switch).len(), 1);
}

/// Those of the least priority value, whatever their order; of one place the first.
fn only_so_many_count(threads: usize) {
    let [one, two] = ["one", "two"].map(|name| Origin::answering(name, ok));
    let names = NameServer::new();
    let first = record(&names, &one, 1, 1);
    let mut records: Vec<_> = (1..30).map(|port| format!("0 9 1 {port} two.example")).collect();
    records.extend([record(&names, &two, 2, 1), first.clone(), first]);
    has(&names, &records);
    let bound = names.table("members_max = 2");
    let switch = Setup::new(threads).raw(&pool("", &[])).raw(&bound).with_token().start();
    let named: Vec<_> = shown(&switch).iter().map(|server| server["host"].clone()).collect();
    let [one, two] =
        [&one, &two].map(|origin| format!("{}.example:{}", origin.name(), origin.address().port()));
    assert_eq!(named, [one, two]);
    assert_eq!(switch.get("/").server(), "one");
}

/// A target is whatever an answer says, so the domain that was asked for is what a certificate must be for.
fn certificates_are_for_the_domain(threads: usize) {
    let authority = Authority::new("server CA");
    let good = Origin::secured("good", &TlsServer::new(&authority.server(&["shop.example"])), ok);
    let spare = Origin::secured("spare", &TlsServer::new(&authority.server(&["shop.example"])), ok);
    let other = Origin::secured("other", &TlsServer::new(&authority.server(&["other.example"])), ok);
    let names = NameServer::new();
    has(&names, &[record(&names, &good, 0, 1)]);
    let keys = "tls = { ca = \"ca.crt\" }\nidle_connections_max = 0";
    let setup = setup(threads, &names, keys, &[]).file("ca.crt", &authority.pem());
    let switch = setup.start();
    assert_eq!(switch.get("/").server(), "good");
    assert_eq!(good.shaken()[0].sni.as_deref(), Some("shop.example"));
    // Each has its own sessions, also when another one comes.
    has(&names, &[record(&names, &good, 0, 1), record(&names, &spare, 0, 1)]);
    until("both are there", || (spare.count() > 1 || switch.get("/").status() != 200).then_some(()));
    for origin in [&good, &spare] {
        let resumed: Vec<_> = origin.shaken().iter().map(|shaken| shaken.resumed).collect();
        assert!(!resumed[0] && resumed[1..].iter().all(|resumed| *resumed), "{} {resumed:?}", origin.name());
    }
    has(&names, &[record(&names, &other, 0, 1)]);
    until("nobody is believed", || (switch.get("/").status() == 502).then_some(()));
    assert_eq!(other.count(), 0);
}

/// By the admin API, under the name of the service; its servers are nobody's to change.
fn added_and_taken_out_at_run_time(threads: usize) {
    let [one, written] = ["one", "written"].map(|name| Origin::answering(name, ok));
    let names = NameServer::new();
    has(&names, &[record(&names, &one, 0, 1)]);
    let pool = format!("[pool.standard]\nservers = [\"{}\"]\n", written.address());
    let setup = Setup::new(threads).raw(&pool).raw(&names.table("answer_ms_max = 100")).with_token();
    let switch = setup.start();
    serve(&switch, &["written"]);
    let asked = |method: &str, name: &str, body: &str, expected: u16| {
        let (status, said) = change(&switch, method, name, body);
        assert_eq!(status, expected, "{method} {name} {body} {said}");
    };
    asked("PUT", SERVICE, &format!("{{\"service\": \"{SERVICE}\", \"connections_max\": 7}}"), 200);
    serve(&switch, &["one", "written"]);
    let member = format!("one.example:{}", one.address().port());
    asked("DELETE", &member, "", 404);
    asked("PATCH", &member, "{\"weight\": 2}", 404);
    asked("PATCH", SERVICE, "{\"weight\": 2}", 422);
    asked("PUT", "web", &format!("{{\"service\": \"{SERVICE}\"}}"), 422);
    asked("PATCH", SERVICE, "{\"backup\": true, \"connections_max\": null}", 200);
    serve(&switch, &["written"]);
    let text = std::fs::read_to_string(switch.folder().join("pointsman.toml")).expect("it is there");
    assert!(text.contains(&format!("{{ service = \"{SERVICE}\", backup = true }}")), "{text}");
    asked("PATCH", SERVICE, "{\"backup\": null}", 200);
    serve(&switch, &["one", "written"]);
    asked("DELETE", SERVICE, "", 200);
    serve(&switch, &["written"]);
}
