//! Servers that have names: looked up at the start, and again when an answer has aged.

use std::net::SocketAddr;

use std::thread::spawn;

use pointsman_e2e::{ADMIN_TOKEN, Client, Manner, NameServer, Origin, Setup, Switch, ok, pointsman, until};

use crate::servers_at_run_time::change;

pointsman_e2e::for_threads!(
    an_address_that_changes,
    one_address_of_several,
    failures_keep_the_last_answer,
    aliases_and_other_detours,
    a_name_that_nobody_knows_yet,
    reloads,
    a_server_that_cannot_be_looked_up,
    a_reload_that_waits_is_told_to_end,
    nobody_else_waits_for_a_name,
);

const NAME: &str = "web.example";

/// Two servers on one port of two addresses.
fn two_on_one_port() -> (Origin, Origin) {
    loop {
        let one = Origin::answering("one", ok);
        let beside = SocketAddr::from(([127, 0, 0, 2], one.address().port()));
        if let Some(two) = Origin::at(beside, "two", ok) {
            return (one, two);
        }
    }
}

fn pool(port: u16) -> String {
    format!("[pool.standard]\nservers = [{{ name = \"web\", address = \"{NAME}:{port}\" }}]\n")
}

fn setup(threads: usize, names: &NameServer, origin: &Origin, keys: &str) -> Setup {
    Setup::new(threads).with_token().raw(&pool(origin.address().port())).raw(&names.table(keys))
}

fn lookups(switch: &Switch, outcome: &str) -> f64 {
    switch.metric("pointsman_dns_lookups_total", &[("name", NAME), ("outcome", outcome)])
}

fn is_failing(switch: &Switch) -> bool {
    switch.metric("pointsman_dns_failing", &[("name", NAME)]) > 0.5
}

/// What was begun ends where it began; what begins then goes to the new address. A TTL of 0 counts as the least.
fn an_address_that_changes(threads: usize) {
    let (one, two) = two_on_one_port();
    let names = NameServer::new();
    names.set(NAME, &["0 127.0.0.1"]);
    let switch = setup(threads, &names, &one, "").start();
    let mut kept = switch.client();
    assert_eq!(kept.get("/").server(), "one");
    let mut begun = switch.client();
    begun.send("POST /begun HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    one.wait_for_requests(2);
    names.set(NAME, &["0 127.0.0.2"]);
    assert_eq!(switch.wait_for_line("servers changed"), "servers changed generation=2");
    switch.wait_for_line(&format!("dns answer name={NAME} record=address found=127.0.0.2"));
    // Threads take the new plan when they next look.
    until("a request at the new address", || (switch.get("/").server() == "two").then_some(()));
    until("all threads know", || (0..4 * threads).all(|_| switch.get("/").server() == "two").then_some(()));
    assert_eq!(kept.get("/").server(), "two", "on a connection of before");
    begun.send("lf");
    assert_eq!(begun.response().server(), "one");
    let answered = lookups(&switch, "answered");
    until("it is looked up again", || (lookups(&switch, "answered") > answered).then_some(()));
    // Answers that say the same change nothing.
    assert!((switch.metric("pointsman_plan_generation", &[]) - 2.0).abs() < 0.5);
    assert!(switch.metric("pointsman_reloads_total", &[]) < 0.5);
    // The name stands beside the address, and what became of it is told.
    let server = || switch.admin_shows("/api/v1/pools/standard/servers/web");
    let shown = server();
    let named = format!("{NAME}:{}", one.address().port());
    assert_eq!((&shown["address"], &shown["host"]), (&two.address().to_string().into(), &(*named).into()));
    assert_eq!(shown["service"], serde_json::Value::Null);
    let moved = |from: &Origin, to: &Origin| {
        format!("dns: {named} has moved from {} to {}", from.address(), to.address())
    };
    assert_eq!(
        (&shown["changes"][0]["why"], &shown["changes"][0]["state"]),
        (&moved(&one, &two).into(), &"up".into())
    );
    names.set(NAME, &["0 127.0.0.1"]);
    let back = until("it has moved back", || {
        Some(server()).filter(|shown| shown["changes"][1] != serde_json::Value::Null)
    });
    let whys: Vec<_> =
        back["changes"].as_array().expect("a list").iter().map(|change| change["why"].clone()).collect();
    assert_eq!(whys, [moved(&two, &one), moved(&one, &two)], "the newest first");
    assert!(two.count() > 0 && one.requests().iter().all(|request| request.complete));
}

/// It is the first, and stays as long as it is among the answers, in whatever order they come.
fn one_address_of_several(threads: usize) {
    let (one, two) = two_on_one_port();
    let names = NameServer::new();
    names.set(NAME, &["0 127.0.0.2", "0 127.0.0.1"]);
    let switch = setup(threads, &names, &one, "").start();
    assert_eq!(switch.get("/").server(), "two");
    names.set(NAME, &["0 127.0.0.1", "0 127.0.0.2", "0 127.0.0.3"]);
    switch
        .wait_for_line(&format!("dns answer name={NAME} record=address found=127.0.0.2,127.0.0.1,127.0.0.3"));
    let found = switch.metric("pointsman_dns_found", &[("name", NAME)]);
    assert!((found - 3.0).abs() < 0.5, "{found}");
    assert!((0..8).all(|_| switch.get("/").server() == "two"));
    assert!((switch.metric("pointsman_plan_generation", &[]) - 1.0).abs() < 0.5, "nothing has changed");
    names.set(NAME, &["0 127.0.0.3", "0 127.0.0.1"]);
    switch.wait_for_line("servers changed");
    until("the next is taken", || (switch.get("/").server() == "one").then_some(()));
    drop(two);
}

fn failures_keep_the_last_answer(threads: usize) {
    let origin = Origin::answering("one", ok);
    let names = NameServer::new();
    names.set(NAME, &["0 127.0.0.1"]);
    let keys = "answer_ms_max = 100\nttl_ms_max = 200";
    let switch = setup(threads, &names, &origin, keys).start();
    type Break = fn(&NameServer);
    let ways: [(&str, Break); 4] = [
        ("refused", |names| names.answers(Manner::Failing)),
        ("timeout", |names| names.answers(Manner::Silent)),
        ("no_name", |names| names.forget(NAME)),
        ("empty", |names| names.set(NAME, &[])),
    ];
    for (at, (outcome, breaks)) in ways.into_iter().enumerate() {
        breaks(&names);
        until(outcome, || (lookups(&switch, outcome) > 1.5).then_some(()));
        assert!(is_failing(&switch), "{outcome}");
        assert_eq!(switch.get("/").status(), 200, "{outcome}");
        names.answers(Manner::Well);
        names.set(NAME, &["0 127.0.0.1"]);
        until("it answers again", || (!is_failing(&switch)).then_some(()));
        let said = || switch.said().matches("dns answers again").count();
        until("that is said", || (said() > at).then_some(()));
    }
    assert!((switch.metric("pointsman_plan_generation", &[]) - 1.0).abs() < 0.5);
    let failed = switch.wait_for_line("dns failed");
    assert!(failed.ends_with("why=\"the name server failed\": the last answer holds"), "{failed}");
}

/// Aliases in one answer and over several, an answer over TCP, IPv6, and forgeries before the answer.
fn aliases_and_other_detours(threads: usize) {
    let origin = Origin::answering("one", ok);
    let names = NameServer::new();
    names.set(NAME, &["300 alias.example"]);
    names.set("alias.example", &["300 real.example"]);
    names.set("real.example", &["0 127.0.0.1"]);
    names.answers(Manner::Truncating);
    let switch = setup(threads, &names, &origin, "").start();
    assert_eq!(switch.get("/").server(), "one");
    assert!(names.asked().1 > 0, "over TCP");
    // The least of the times holds.
    names.answers(Manner::BehindForgeries);
    names.set("real.example", &["0 127.0.0.1", "0 127.0.0.9"]);
    switch.wait_for_line(&format!("dns answer name={NAME} record=address found=127.0.0.1,127.0.0.9"));
    assert!(!switch.said().contains("127.6.6.6"), "{}", switch.said());
    names.set("real.example", &["0 ::ffff:127.0.0.1"]);
    switch.wait_for_line(&format!("dns answer name={NAME} record=address found=127.0.0.1"));
    assert_eq!(switch.get("/").server(), "one");
    names.set("real.example", &["0 web.example"]);
    until("a circle is seen", || (lookups(&switch, "empty") > 0.5).then_some(()));
    assert_eq!(switch.get("/").server(), "one");
}

/// By default there is no start; otherwise its servers get nothing until it is there.
fn a_name_that_nobody_knows_yet(threads: usize) {
    let origin = Origin::answering("one", ok);
    let names = NameServer::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    setup(threads, &names, &origin, "").write(folder.path());
    let refused = pointsman(folder.path(), &["run"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    for word in ["cannot look up `web.example`: there is no such name", "^", "at_start", "pointsman.toml"] {
        assert!(refused.stderr.contains(word), "`{word}` is missing in:\n{}", refused.stderr);
    }
    let (asked, _) = names.asked();
    let checked = pointsman(folder.path(), &["check", "pointsman.toml"]);
    assert_eq!(checked.code, 0, "{}", checked.output());
    assert_eq!(names.asked().0, asked, "`check` asks nobody");

    let switch = setup(threads, &names, &origin, "at_start = \"wait\"").start();
    assert_eq!(switch.get("/").status(), 503);
    assert!(switch.metric("pointsman_server_up", &[("server", "web")]) < 0.5);
    assert!(is_failing(&switch));
    names.set(NAME, &["0 127.0.0.1"]);
    until("it is known", || (switch.get("/").status() == 200).then_some(()));
    assert!(switch.metric("pointsman_server_up", &[("server", "web")]) > 0.5);
}

/// A reload asks nobody for what is known, and is refused for a name that is not.
fn reloads(threads: usize) {
    let origin = Origin::answering("one", ok);
    let names = NameServer::new();
    names.set(NAME, &["300 127.0.0.1"]);
    let keys = "answer_ms_max = 100";
    let switch = setup(threads, &names, &origin, keys).start();
    names.answers(Manner::Silent);
    switch.reload(&setup(threads, &names, &origin, keys).listener("merge_slashes = true"), 2);
    assert_eq!(switch.get("/").server(), "one");
    let more = format!("[pool.other]\nservers = [\"other.example:{}\"]", origin.address().port());
    setup(threads, &names, &origin, keys).raw(&more).write(switch.folder());
    switch.signal("HUP");
    let said = || switch.said();
    until("it is refused", || {
        said().contains("cannot look up `other.example`: no name server answered in time").then_some(())
    });
    until("that is counted", || {
        (switch.metric("pointsman_reloads_total", &[("result", "refused")]) > 0.5).then_some(())
    });
    assert_eq!(switch.get("/").server(), "one");
    assert!(!switch.metrics().contains("other.example"), "nobody looks it up any more");
    names.answers(Manner::Well);
    names.set("other.example", &["300 127.0.0.1"]);
    switch.reload(&setup(threads, &names, &origin, keys).raw(&more), 3);
}

/// A server whose name nobody knows is refused with its place, and nothing has changed for who comes behind it.
fn a_server_that_cannot_be_looked_up(threads: usize) {
    let origin = Origin::answering("one", ok);
    let names = NameServer::new();
    names.set(NAME, &["300 127.0.0.1"]);
    let switch = setup(threads, &names, &origin, "answer_ms_max = 100").start();
    let file = || std::fs::read_to_string(switch.folder().join("pointsman.toml")).expect("it is there");
    let before = file();
    let (status, said) = change(&switch, "PUT", "bad", "{\"address\": \"nobody.example:80\"}");
    assert_eq!((status, file()), (422, before), "{said}");
    assert!(
        said["findings"][0]["message"].as_str().expect("a sentence").contains("nobody.example"),
        "{said}"
    );
    assert!(said["text"].as_str().expect("a text").contains("help: "), "{said}");
    let good = format!("{{\"address\": \"{}\"}}", origin.address());
    let (status, said) = change(&switch, "PUT", "good", &good);
    assert_eq!((status, &said["generation"]), (200, &2.into()), "{said}");
}

/// Whoever waits for names does not hold the end up.
fn a_reload_that_waits_is_told_to_end(threads: usize) {
    let origin = Origin::answering("one", ok);
    let names = NameServer::new();
    let with = |keys: &str| {
        let keys = format!("answer_ms_max = 60_000\nstart_ms_max = 600_000\n{keys}");
        let before = Setup::new(threads).pool("standard", &[&origin]).default_pool("standard");
        before.raw(&names.table(&keys))
    };
    let mut switch = with("").start();
    names.answers(Manner::Silent);
    with("").raw(&pool(origin.address().port()).replace("standard", "named")).write(switch.folder());
    switch.signal("HUP");
    until("the name is asked for", || (names.asked().0 > 0).then_some(()));
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// A server whose name is looked up for long stands in the file when it serves, and not before; meanwhile all that looks is
/// answered, and the next change waits.
fn nobody_else_waits_for_a_name(threads: usize) {
    let (one, _two) = two_on_one_port();
    let names = NameServer::new();
    names.set(NAME, &["0 127.0.0.1"]);
    let keys = "answer_ms_max = 60_000\nstart_ms_max = 600_000";
    let mut switch = setup(threads, &names, &one, keys).start();
    let path = switch.folder().join("pointsman.toml");
    let file = || std::fs::read_to_string(&path).expect("it is there");
    let before = file();
    let ask = |method: &str, target: &str, body: &str| {
        let mut client = Client::plain(switch.admin());
        let length = body.len();
        let lines = format!("Host: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nIf-Match: *\r\n");
        client.send(format!("{method} {target} HTTP/1.1\r\n{lines}Content-Length: {length}\r\n\r\n{body}"));
        spawn(move || client.response().status())
    };
    let port = one.address().port();
    let put = |name: &str| {
        let body = format!("{{\"address\": \"{name}:{port}\"}}");
        ask("PUT", &format!("/api/v1/pools/standard/servers/{name}"), &body)
    };
    names.answers(Manner::Late);
    let added = put("other.example");
    let asked_of = |name: &str| switch.metrics().contains(&format!("name=\"{name}\""));
    until("it is looked up", || asked_of("other.example").then_some(()));
    let reloaded = ask("POST", "/api/v1/reload", "");
    assert_eq!(switch.admin_get("/health").status(), 200);
    assert_eq!(switch.admin_shows("/api/v1/plan")["generation"], 1);
    assert_eq!((file(), switch.get("/").server()), (before.clone(), "one"));
    names.set("other.example", &["300 127.0.0.2"]);
    names.answers(Manner::Well);
    assert_eq!((added.join().expect("an answer"), reloaded.join().expect("an answer")), (200, 200));
    let after = file();
    assert!(after.contains("other.example"), "{after}");
    until("it serves", || (switch.get("/").server() == "two").then_some(()));
    // The end waits for none.
    names.answers(Manner::Late);
    let added = put("third.example");
    until("it is looked up", || asked_of("third.example").then_some(()));
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    assert_eq!((added.join().expect("an answer"), file()), (503, after));
}
