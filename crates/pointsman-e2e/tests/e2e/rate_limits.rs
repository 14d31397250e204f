//! Requests that are too much for a class.

use pointsman_e2e::{Origin, Response, Setup, Switch};

pointsman_e2e::for_threads!(
    all_together,
    by_key,
    by_address_behind_proxies,
    all_classes_or_none,
    whatever_was_decided,
    nothing_for_what_is_unknown,
    decided_by_the_body,
    over_a_reload,
    only_what_is_named
);

/// Who is refused because a rule cannot be decided has taken nothing. Of what was done on the way only the tag is left: also
/// a header that cannot be made is not what is wrong.
fn nothing_for_what_is_unknown(threads: usize) {
    let origin = Origin::new("one");
    let rules = "R1: { tag(counted); limitRate(few); setResponseHeader(\"x-way\", \"${query[\"k\"]}\"); }\n\
                 R2: if (header[\"x-n\"] > 5) { reject(402); }\n";
    let switch = setup(threads, rules, &class("few", "", 1), &origin).start();
    for _ in 0..3 {
        let answer = switch.client().ask("GET", "/?k=%0A", "X-N: none\r\n");
        assert_eq!((answer.status(), answer.head.field("x-way")), (400, None));
    }
    let line = switch.log_entry("a request that is not decided", |line| line["status"] == 400);
    assert_eq!((&line["tags"], &line["unknown"]), (&serde_json::json!(["counted"]), &"not a number".into()));
    assert_eq!(switch.metric("pointsman_limited_requests_total", &[("class", "few")]), 0.0);
}

/// A class that fills far more slowly than a test takes.
fn class(name: &str, key: &str, burst: u32) -> String {
    let key = if key.is_empty() { String::new() } else { format!("key = '{key}'\n") };
    format!("[limit.{name}]\n{key}per_minute = 1\nburst = {burst}\n")
}

fn setup(threads: usize, rules: &str, classes: &str, origin: &Origin) -> Setup {
    Setup::new(threads).rules(rules).pool("standard", &[origin]).raw(classes)
}

/// How many of so many requests get through, each on a connection of its own, whose thread may be any.
fn passed(switch: &Switch, count: usize, fields: &str) -> usize {
    let ask = |_| switch.client().ask("GET", "/", fields);
    (0..count).map(ask).filter(|answer: &Response| answer.status() == 200).count()
}

fn all_together(threads: usize) {
    let origin = Origin::new("one");
    let rules = "R1: if (path == \"/\") { limitRate(few); tag(counted); }";
    let switch = setup(threads, rules, &class("few", "", 7), &origin).start();
    assert_eq!(passed(&switch, 20, ""), 7);
    assert_eq!(origin.requests().len(), 7);
    let mut client = switch.client();
    let refused = client.get("/");
    assert_eq!((refused.status(), refused.text().as_str()), (429, "too many requests\n"));
    let seconds: u64 =
        refused.head.field("retry-after").and_then(|value| value.parse().ok()).expect("seconds");
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert_eq!(client.get("/free").status(), 200, "the connection goes on");
    let line = switch.log_entry("a request that is too much", |line| line["status"] == 429);
    assert_eq!((&line["limit"], &line["tags"][0]), (&"few".into(), &"counted".into()));
    assert!(line.get("pool").is_none() && line.get("error").is_none(), "{line}");
    assert_eq!(switch.metric("pointsman_limited_requests_total", &[("class", "few")]), 14.0);
    assert_eq!(switch.metric("pointsman_refusals_total", &[("listener", "shop"), ("reason", "rate")]), 14.0);
}

fn by_key(threads: usize) {
    let origin = Origin::new("one");
    let classes = class("few", "header[\"x-api-key\"]", 3);
    let switch = setup(threads, "R1: { limitRate(few); }", &classes, &origin).start();
    for key in ["a", "b", "A", ""] {
        assert_eq!(passed(&switch, 8, &format!("X-Api-Key: {key}\r\n")), 3, "{key}");
    }
    assert_eq!(passed(&switch, 8, ""), 3, "who has no key shares a bucket with all others without one");
    assert_eq!(passed(&switch, 8, "X-Api-Key: a\r\nX-Api-Key: new\r\n"), 0, "the first value counts");
}

/// The client's address, not the proxy's; one /64 of IPv6 is one client.
fn by_address_behind_proxies(threads: usize) {
    let origin = Origin::new("one");
    let setup = setup(threads, "R1: { limitRate(few); }", &class("few", "clientip", 2), &origin);
    let switch = setup.listener("trusted_proxies = [\"127.0.0.1\"]").start();
    let of = |address: &str| passed(&switch, 5, &format!("X-Forwarded-For: {address}\r\n"));
    assert_eq!((of("192.0.2.1"), of("192.0.2.2"), of("192.0.2.1")), (2, 2, 0));
    assert_eq!((of("2001:db8::1"), of("2001:db8::ffff"), of("2001:db8:0:1::1")), (2, 0, 2));
}

/// What is refused for one class takes nothing of the other, and a class that is named twice is taken once.
fn all_classes_or_none(threads: usize) {
    let origin = Origin::new("one");
    let rules = "R1: { limitRate(many); } \
                 R2: if (header[\"x-few\"] exists) { limitRate(few); limitRate(many); }";
    let classes = class("few", "", 2) + &class("many", "", 6);
    let switch = setup(threads, rules, &classes, &origin).start();
    assert_eq!(passed(&switch, 10, "X-Few: 1\r\n"), 2);
    assert_eq!(passed(&switch, 10, ""), 4);
}

/// The answer takes the place of any other; what the rules add to that is not committed.
fn whatever_was_decided(threads: usize) {
    let origin = Origin::new("one");
    for action in
        ["reject(403)", "respond(200, \"no\")", "redirect(302, \"/\")", "discard()", "routeTo(standard)"]
    {
        let rules =
            format!("R1: {{ limitRate(none); setResponseHeader(\"x-a\", \"1\"); }} R2: {{ {action}; }}");
        let classes = class("none", "", 1) + "status = 503\n";
        let switch = setup(threads, &rules, &classes, &origin).start();
        let ask = || {
            let mut client = switch.client();
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            client.try_response().ok().map(|answer| (answer.status(), answer.head.field("x-a").is_some()))
        };
        assert_ne!(ask(), Some((503, false)), "{action}");
        assert_eq!(ask(), Some((503, false)), "{action}");
    }
}

/// A body that is decided by what it says takes its share then; the body of what is refused may be any.
fn decided_by_the_body(threads: usize) {
    let origin = Origin::new("one");
    let rules = "R1: if (json.big == true) { limitRate(few); routeTo(standard); }";
    let switch = setup(threads, rules, &class("few", "", 2), &origin).start();
    let send = |body: &str| {
        let mut client = switch.client();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        client.response().status()
    };
    let statuses: Vec<_> = (0..3).map(|_| send("{\"big\": true}")).collect();
    assert_eq!((statuses, send("{\"big\": false}")), (vec![200, 200, 429], 200));
}

/// What was taken stays taken, and a new burst counts from there.
fn over_a_reload(threads: usize) {
    let origin = Origin::new("one");
    let with = |burst| setup(threads, "R1: { limitRate(few); }", &class("few", "clientip", burst), &origin);
    let switch = with(3).start();
    assert_eq!(passed(&switch, 5, ""), 3);
    switch.reload(&with(3).listener("merge_slashes = true"), 2);
    assert_eq!(passed(&switch, 5, ""), 0);
    switch.reload(&with(5), 3);
    assert_eq!(passed(&switch, 5, ""), 2);
}

fn only_what_is_named(threads: usize) {
    let origin = Origin::new("one");
    let rules = "R1: if (path under \"/api\") { limitRate(few); }";
    let switch = setup(threads, rules, &class("few", "", 1), &origin).start();
    assert_eq!(passed(&switch, 10, ""), 10);
}
