//! What becomes of requests, by the rule that decided: in the metrics and the admin API.

use pointsman_e2e::{Origin, Setup, Switch, until};

use crate::drain::held;
use crate::http2::begin;

pointsman_e2e::for_threads!(
    by_status_and_duration,
    over_http2_and_of_bodies_that_decide,
    reloads_keep_what_was_counted,
    a_rule_that_is_gone_hears_of_its_last_request,
    so_many_rules_by_name,
    connections_without_requests
);

const RULES: &str = "R1: if (path under \"/gold\") { routeTo(fast); }\n\
                     R2: if (path == \"/no\") { reject(403, \"no\"); }\n\
                     R3: if (path == \"/never\") { routeTo(fast); }\n";

const RESPONSES: &str = "pointsman_rule_responses_total";
const DURATIONS: &str = "pointsman_rule_request_duration_seconds";

fn setup(threads: usize, origin: &Origin) -> Setup {
    Setup::new(threads).rules(RULES).pool("standard", &[origin]).pool("fast", &[origin])
}

/// Waits until as much is counted: a client may have its answer before.
fn wait_for(switch: &Switch, rule: &str, status: &str, count: u32) {
    until(&format!("{count} answers of {status} by {rule}"), || {
        let seen = switch.metric(RESPONSES, &[("rule", rule), ("status", status)]);
        assert!(seen < f64::from(count) + 0.5, "{rule} {status} {seen}");
        (seen > f64::from(count) - 0.5).then_some(())
    });
}

/// Each rule by itself, what no rule decided, and nothing of a rule that never did.
fn by_status_and_duration(threads: usize) {
    let origin = Origin::new("origin");
    let dead = [("gone", Origin::free_address())];
    let rules = format!("{RULES}R4: if (path == \"/dead\") {{ routeTo(dead); }}\n");
    let switch = setup(threads, &origin).rules(&rules).pool_at("dead", "", &dead).start();
    for (path, status, times) in [("/gold", 200, 5), ("/no", 403, 3), ("/", 200, 2), ("/dead", 502, 1)] {
        for _ in 0..times {
            assert_eq!(switch.get(path).status(), status, "{path}");
        }
    }
    for (rule, status, count) in
        [("R1", "2xx", 5), ("R2", "4xx", 3), ("(default)", "2xx", 2), ("R4", "5xx", 1)]
    {
        wait_for(&switch, rule, status, count);
        let of_rule = [("listener", "shop"), ("rule", rule)];
        assert_eq!(switch.metric(RESPONSES, &of_rule), f64::from(count), "of no other status");
        assert_eq!(switch.metric("pointsman_rule_hits_total", &of_rule), f64::from(count));
        let is = |name: &str| (switch.metric(name, &of_rule) - f64::from(count)).abs() < 0.5;
        until("as many durations", || is(&format!("{DURATIONS}_count")).then_some(()));
        until("their sum", || (switch.metric(&format!("{DURATIONS}_sum"), &of_rule) > 0.0).then_some(()));
    }
    let page = switch.metrics();
    assert!(page.contains("rule_hits_total{listener=\"shop\",rule=\"R3\"} 0"), "{page}");
    assert!(!page.contains("responses_total{listener=\"shop\",rule=\"R3\""), "it has never decided\n{page}");
    // What rules decided is what the listener has.
    assert_eq!(switch.metric(RESPONSES, &[]), switch.metric("pointsman_requests_total", &[]), "{page}");
    let shown = shown(&switch);
    assert_eq!(shown["rules"][1]["responses"]["4xx"], 3, "{shown}");
    let never = serde_json::json!({ "rule": "R3", "hits": 0, "responses": null, "durations": null });
    assert_eq!(shown["rules"][2], never);
    assert_eq!(shown["other"], serde_json::json!({ "responses": null, "durations": null }));
    durations_are_those_of_the_metrics(&switch, "R1", &shown["rules"][0]["durations"]);
}

/// What the admin API says of the rules.
fn shown(switch: &Switch) -> serde_json::Value {
    let shown = switch.admin_get("/api/v1/listeners/shop/rules").text();
    serde_json::from_str(&shown).expect("JSON")
}

fn durations_are_those_of_the_metrics(switch: &Switch, rule: &str, durations: &serde_json::Value) {
    let of_rule = [("rule", rule)];
    let is = |member: &str, metric: &str, unit: f64| {
        let expected = switch.metric(&format!("{DURATIONS}_{metric}"), &of_rule);
        let said = durations[member].as_f64().expect("a number") / unit;
        assert!((said - expected).abs() < 1e-6, "{member} {expected}: {durations}");
    };
    is("count", "count", 1.0);
    is("sum_us", "sum", 1e6);
    assert_ne!(durations["count"], 0);
    let buckets = durations["buckets"].as_array().expect("a list");
    for bucket in buckets {
        let bound =
            bucket["up_to_us"].as_f64().map_or("+Inf".to_owned(), |bound_us| (bound_us / 1e6).to_string());
        let of_bucket = [("rule", rule), ("le", &bound)];
        let expected = switch.metric(&format!("{DURATIONS}_bucket"), &of_bucket);
        assert_eq!(bucket["count"].as_f64(), Some(expected), "{bound}: {durations}");
    }
    let counts: Vec<_> = buckets.iter().map(|bucket| bucket["count"].as_u64()).collect();
    assert!(counts.is_sorted() && counts.last() == Some(&durations["count"].as_u64()), "{durations}");
}

/// A stream, and a request that its body decides, have a rule as any other.
fn over_http2_and_of_bodies_that_decide(threads: usize) {
    let origin = Origin::new("origin");
    let rules = "R1: if (json.a == 1) { routeTo(fast); }\n\
                 R2: if (header[\"x\"] exists) { reject(404, \"no\"); }\nelse: routeTo(fast);\n";
    let switch = Setup::new(threads).rules(rules).pool("fast", &[&origin]).start();
    let post = |body: &str| {
        let lines = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        let mut client = switch.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: shop.example\r\n{lines}\r\n"));
        client.send(body);
        client.response().status()
    };
    assert_eq!(post("{\"a\": 1}"), 200);
    wait_for(&switch, "R1", "2xx", 1);
    // Nobody can say what it holds, so R1 refuses it.
    assert_eq!(post("{\"a\": "), 400);
    wait_for(&switch, "R1", "4xx", 1);
    let mut client = begin(&switch);
    client.ask(1, "GET", "/", &[("x", "y")]);
    assert_eq!(client.answer(1).status(), 404);
    wait_for(&switch, "R2", "4xx", 1);
}

/// Rules that keep their names keep their figures, wherever they stand.
fn reloads_keep_what_was_counted(threads: usize) {
    let origin = Origin::new("origin");
    let switch = setup(threads, &origin).start();
    for _ in 0..3 {
        assert_eq!(switch.get("/gold").status(), 200);
        assert_eq!(switch.get("/no").status(), 403);
    }
    wait_for(&switch, "R1", "2xx", 3);
    wait_for(&switch, "R2", "4xx", 3);
    let rules = "new: if (path == \"/new\") { respond(201, \"\"); }\nR1: if (path under \"/gold\") { routeTo(fast); }\n";
    switch.reload(&setup(threads, &origin).rules(rules), 2);
    assert_eq!(switch.get("/new").status(), 201);
    for _ in 0..2 {
        assert_eq!(switch.get("/gold").status(), 200);
    }
    wait_for(&switch, "new", "2xx", 1);
    wait_for(&switch, "R1", "2xx", 5);
    let timed = || switch.metric(&format!("{DURATIONS}_count"), &[("rule", "R1")]);
    until("their durations", || (timed() > 4.5).then_some(()));
    until("R2 to be forgotten", || (!switch.metrics().contains("rule=\"R2\"")).then_some(()));
}

/// The rule that decided has what it decided, also where a reload has taken it away meanwhile.
fn a_rule_that_is_gone_hears_of_its_last_request(threads: usize) {
    let (origin, go) = held();
    let switch = Setup::new(threads)
        .rules("R1: if (path == \"/slow\") { routeTo(standard); }\n")
        .pool("standard", &[&origin])
        .start();
    let mut client = switch.client();
    client.send("GET /slow HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    origin.wait_for_requests(1);
    let others = Setup::new(threads).rules("R2: { routeTo(standard); }\n").pool("standard", &[&origin]);
    switch.reload(&others, 2);
    go.send(()).expect("the origin is there");
    assert_eq!(client.response().status(), 200);
    wait_for(&switch, "R1", "2xx", 1);
    assert_eq!(switch.metric(RESPONSES, &[("rule", "R2")]), 0.0);
}

/// Those that decide first have names; the others count together, and nothing is lost.
fn so_many_rules_by_name(threads: usize) {
    let origin = Origin::new("origin");
    let rules: String = (0..2000)
        .map(|number| format!("R{number}: if (path == \"/{number}\") {{ respond(204, \"\"); }}\n"))
        .collect();
    let admin = |max: usize| format!("[admin]\nbind = \"127.0.0.1:0\"\nmetrics_rules_max = {max}\n");
    let setup = |max| Setup::new(threads).top(&admin(max)).rules(&rules).pool("standard", &[&origin]);
    let switch = setup(2).start();
    let ask = |numbers: &[usize]| {
        let mut client = switch.client();
        for number in numbers {
            assert_eq!(client.get(&format!("/{number}")).status(), 204);
        }
    };
    ask(&[1999]);
    wait_for(&switch, "R1999", "2xx", 1);
    ask(&[5]);
    wait_for(&switch, "R5", "2xx", 1);
    ask(&[7, 8, 9, 5, 1999, 7]);
    wait_for(&switch, "(other)", "2xx", 4);
    wait_for(&switch, "R1999", "2xx", 2);
    wait_for(&switch, "R5", "2xx", 2);
    let page = switch.metrics();
    let told = page.lines().filter(|line| line.starts_with(RESPONSES)).count();
    assert_eq!(told, 3 * 6, "two rules and the others\n{page}");
    // How often each decided is told of all.
    assert_eq!(switch.metric("pointsman_rule_hits_total", &[("rule", "R7")]), 2.0);
    let shown = shown(&switch);
    let of = |rule: usize| (&shown["rules"][rule]["hits"], shown["rules"][rule]["responses"].is_null());
    assert_eq!([of(5), of(7), of(8)], [(&2.into(), false), (&2.into(), true), (&1.into(), true)]);
    assert_eq!(shown["other"]["responses"]["2xx"], 4, "{}", shown["other"]);
    durations_are_those_of_the_metrics(&switch, "(other)", &shown["other"]["durations"]);
    // A reload with room for more gives it to those that have not decided yet.
    switch.reload(&setup(3), 2);
    ask(&[7]);
    wait_for(&switch, "(other)", "2xx", 5);
    ask(&[1000]);
    wait_for(&switch, "R1000", "2xx", 1);
}

/// A connection of which no request is read has a rule, and no status.
fn connections_without_requests(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads)
        .listener("protocol = \"tcp\"")
        .rules("R1: if (srcip == 127.0.0.1) { routeTo(standard); }\n")
        .pool("standard", &[&origin])
        .start();
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().status(), 200);
    drop(client);
    wait_for(&switch, "R1", "none", 1);
    assert_eq!(
        switch.metric(&format!("{DURATIONS}_count"), &[("rule", "R1")]),
        0.0,
        "a tunnel takes as long as it likes"
    );
}
