//! What a candidate sees of requests of every kind, and what may change beside it.

use pointsman_e2e::h2_wire::flag;
use pointsman_e2e::{Frame, H2Client, Origin, Setup, Switch, ok, until};
use serde_json::Value;

use crate::dry_runs::{DRY_RUN, OF_RULES, begin, counts, end, groups};

pointsman_e2e::for_threads!(
    the_same_rules_say_the_same,
    streams_are_requests,
    effects_that_nobody_can_count,
    what_changes_beside_it,
    an_upgrade_ends_it
);

/// Rules of every kind that wait for bodies, jump, and leave things to chance.
const ALL_KINDS: &str = "
R1: if (xml.purchase/totalAmount > 52000) { routeTo(b, STICKY_ON_IP); }
R2: if (json.order.items[*].price >= 99.95) { tag(dear); setHeader(\"x-class\", \"gold\"); }
R3: if (form[\"user\"] == \"root\") { reject(403, \"no\"); }
R4: if (method == \"GET\") { goto R6; } else { goto R5; }
R5: if (body.size > 20000) { routeTo(b); }
R6: if (path under \"/split\") { limitRate(few); routeTo(split(50: a, 50: b), STICKY_ON_COOKIE); }
R7: if (upgrade == \"websocket\" || header[\"x-odd\"] exists) { respond(200, \"${path}\"); }
R8: if (query[\"q\"] matches \"^[a-z]+$\" && count(cookie[\"c\"]) < 2) { redirect(302, \"/${query[\"q\"]}\"); }
";

/// A request over HTTP/1.1 with a body of this type.
fn posted(path: &str, kind: &str, body: &str) -> String {
    let bytes = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: shop.example\r\nContent-Type: {kind}\r\nContent-Length: {bytes}\r\n\r\n{body}"
    )
}

/// The same in chunks of so many bytes.
fn chunked(path: &str, kind: &str, body: &str, chunk_bytes: usize) -> String {
    let chunks = body
        .as_bytes()
        .chunks(chunk_bytes)
        .map(|chunk| format!("{:x}\r\n{}\r\n", chunk.len(), std::str::from_utf8(chunk).expect("ASCII")));
    format!(
        "POST {path} HTTP/1.1\r\nHost: shop.example\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        chunks.collect::<String>()
    )
}

/// Bodies at the borders of what is read, sound ones and others.
fn bodies() -> Vec<(&'static str, String)> {
    let xml = |amount: &str| format!("<purchase><totalAmount>{amount}</totalAmount></purchase>");
    let json = |price: &str| format!("{{\"order\":{{\"items\":[{{\"price\":1}},{{\"price\":{price}}}]}}}}");
    let deep = |levels: usize| "<a>".repeat(levels) + &"</a>".repeat(levels);
    let padded = |bytes: usize| format!("{{\"pad\":\"{}\"}}", "x".repeat(bytes - 10));
    vec![
        ("text/xml", xml("52001")),
        ("text/xml", xml("52000")),
        ("text/xml", xml("much")),
        ("text/xml", xml("60000").replace("</purchase>", "")),
        ("text/xml", format!("<!DOCTYPE a>{}", xml("1"))),
        ("text/xml", deep(64)),
        ("text/xml", deep(65)),
        ("text/xml", String::new()),
        ("application/json", json("99.95")),
        ("application/json", json("99.94")),
        ("application/json", json("null")),
        ("application/json", json("1").replace("order", "order\":1,\"order")),
        ("application/json", padded(20_000)),
        ("application/json", padded(20_001)),
        ("application/json", padded(29_999)),
        ("application/json", padded(30_000)),
        ("application/json", padded(30_001)),
        ("application/x-www-form-urlencoded", "user=root&a=b".to_owned()),
        ("application/x-www-form-urlencoded", "a=1&".repeat(1001)),
        ("application/x-www-form-urlencoded", format!("user={}", "r".repeat(5000))),
        ("text/plain", "hello".to_owned()),
    ]
}

fn setup(threads: usize, a: &Origin, b: &Origin) -> Setup {
    Setup::new(threads)
        .rules(ALL_KINDS)
        .limits("hold_bytes_max = 30_000")
        .pool("a", &[a])
        .pool("b", &[b])
        .raw("[limit.few]\nper_minute = 3\nburst = 3\n")
        .with_token()
}

/// Whatever comes, however it comes: each decision is compared, and none is otherwise.
fn the_same_rules_say_the_same(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let switch = setup(threads, &a, &b).start();
    begin(&switch, OF_RULES, ALL_KINDS);
    let ask = |request: &str, in_pieces: bool| {
        let mut client = switch.client();
        match (in_pieces, request.find("\r\n\r\n")) {
            (true, Some(end)) => {
                let (head, body) = request.split_at(end + 4);
                client.send(head);
                // What refuses it by its head may close behind that.
                body.as_bytes().chunks(body.len() / 3 + 1).for_each(|piece| drop(client.try_send(piece)));
            }
            _ => client.send(request),
        }
        client.response().status()
    };
    for (kind, body) in bodies() {
        for path in ["/", "/split"] {
            for in_pieces in [false, true] {
                ask(&posted(path, kind, &body), in_pieces);
                ask(&chunked(path, kind, &body, 1000), in_pieces);
            }
        }
    }
    let mut client = switch.client();
    let heads =
        ["/?q=abc", "/?q=A", "/split/x", "/split/y?q=z", "/%2e%2e/split", "/?q=a&q=B"].map(|target| {
            format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\nCookie: c=1\r\nX-Odd_: 1\r\n\r\n")
        });
    // At once, with bodies between them.
    let pipelined =
        heads.join(&*posted("/", "application/json", "{\"order\":{\"items\":[{\"price\":100}]}}"));
    client.send(&pipelined);
    (0..2 * heads.len() - 1).for_each(|_| drop(client.response()));
    let upgrade = format!(
        "GET /ws HTTP/1.1\r\nHost: shop.example\r\n{}{}\r\n",
        crate::upgrades::WEBSOCKET,
        crate::upgrades::KEY
    );
    assert_eq!(ask(&upgrade, false), 200);
    let mut streams = H2Client::begin(switch.client());
    let mut stream = 1;
    for (kind, body) in bodies() {
        let length = body.len().to_string();
        for more in [vec![("content-type", kind)], vec![("content-type", kind), ("content-length", &length)]]
        {
            streams.post(stream, "/", &more);
            drop(streams.send_content(stream, flag::END_STREAM, body.as_bytes()));
            drop(streams.outcome(stream));
            stream += 2;
        }
    }
    let report = end(&switch);
    let hits = switch.metric("pointsman_rule_hits_total", &[]);
    let [decisions, same, rest @ ..] = counts(&report);
    assert_eq!((same, rest), (decisions, [0; 3]), "{report:#}");
    assert!(decisions > 200);
    assert_eq!(decisions.to_string(), hits.to_string(), "each that was decided");
}

/// Heads of streams are read as any; of a body is seen what the rules that serve wait for.
fn streams_are_requests(threads: usize) {
    let (a, b) = (Origin::answering("sa", ok), Origin::answering("sb", ok));
    let live = "R1: if (json.a == 1) { routeTo(b); }\n";
    let candidate = "R1: if (json.a == 1) { routeTo(a); }\nR2: if (path under \"/c\" && host == \"shop.example\") \
                     { reject(404); }\nR3: if (json.b == 1) { reject(400); }\n";
    let switch = setup(threads, &a, &b).rules(live).start();
    begin(&switch, OF_RULES, candidate);
    let mut client = H2Client::begin(switch.client());
    let json = [("content-type", "application/json")];
    // One beside the other on one connection.
    for stream in [1, 3, 5, 7] {
        client.post(stream, if stream == 5 { "/c" } else { "/" }, &json);
    }
    for (stream, body) in [(7, "{\"b\": 1}"), (1, "{\"a\": 1}"), (5, "{\"b\": 2}"), (3, "{\"a\": 2}")] {
        client.send(&Frame::data(stream, flag::END_STREAM, body)).expect("the switch reads");
    }
    for stream in [1, 3, 5, 7] {
        assert_eq!(client.answer(stream).text(), if stream == 1 { "sb" } else { "sa" });
    }
    client.ask(9, "GET", "/c/d", &[("cookie", "a=b")]);
    assert_eq!(client.answer(9).status(), 200);
    let report = end(&switch);
    assert_eq!(counts(&report), [5, 1, 0, 4, 0], "{report:#}");
    let outcomes = groups(&report);
    let of = |text: &str| outcomes.iter().filter(|group| group.contains(text)).count();
    assert_eq!((of("reject(404)"), of("reject(400)"), outcomes.len()), (1, 1, 3), "{outcomes:?}");
    // Where the rules that serve do not wait for it, the body of a stream comes behind its head.
    let switch = setup(threads, &a, &b).rules("R1: if (path == \"/x\") { reject(404); }\n").start();
    begin(&switch, OF_RULES, "R1: if (json.a == 1) { reject(404); }\n");
    let mut client = H2Client::begin(switch.client());
    client.post(1, "/", &json);
    until("its decision", || (counts(&switch.admin_shows(DRY_RUN))[0] == 1).then_some(()));
    client.send(&Frame::data(1, flag::END_STREAM, "{\"a\": 1}")).expect("the switch reads");
    assert_eq!(client.answer(1).status(), 200);
    assert_eq!(counts(&end(&switch)), [1, 0, 0, 0, 1]);
    // Where the candidate reads heads otherwise, it reads those of streams again.
    let rules = "R1: if (path == \"/a/b\") { routeTo(b); }\n";
    let setup = setup(threads, &a, &b).rules(rules);
    let switch = setup.start();
    setup.listener("merge_slashes = true\nodd_names = \"refuse\"").write(switch.folder());
    begin(&switch, DRY_RUN, "");
    let mut client = H2Client::begin(switch.client());
    for (stream, path, name) in [(1, "/a//b", "x-a"), (3, "/a/b", "x-a"), (5, "/a/b", "x_a"), (7, "/", "x-a")]
    {
        client.ask(stream, "GET", path, &[(name, "1"), ("cookie", "a=b"), ("cookie", "c=d")]);
        assert_eq!(client.answer(stream).status(), 200);
    }
    let report = end(&switch);
    assert_eq!(counts(&report), [4, 2, 0, 2, 0], "{report:#}");
    let outcomes = groups(&report);
    assert!(outcomes.iter().any(|group| group.contains("(refused)")), "{outcomes:?}");
}

/// Hundreds of rules that only add effects come together in ever new ways, of which no more is kept than there is room for.
fn effects_that_nobody_can_count(threads: usize) {
    const RULES: usize = 400;
    const REQUESTS: usize = 300;
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let rules = |value: &str| {
        let rule = |number: usize| {
            format!(
                "if (query[\"q\"] contains \".{number}.\") {{ setHeader(\"x-{number}\", \"{value}\"); }}\n"
            )
        };
        (0..RULES).map(rule).collect::<String>()
    };
    let switch = setup(threads, &a, &b).rules(&rules("1")).limits("headers_max = 128").start();
    begin(&switch, OF_RULES, &rules("2"));
    let mut client = switch.client();
    for request in 0..REQUESTS {
        let some: String = (0..20).map(|place| format!(".{}.", (request * 7 + place * 19) % RULES)).collect();
        assert_eq!(client.get(&format!("/?q={some}")).status(), 200);
    }
    let report = end(&switch);
    assert_eq!(counts(&report), [REQUESTS as u64, 0, 0, REQUESTS as u64, 0], "{}", report["summary"]);
    let groups = report["groups"].as_array().expect("a list");
    let grouped: u64 = groups.iter().filter_map(|group| group["count"].as_u64()).sum();
    assert_eq!(grouped + report["ungrouped"].as_u64().expect("a count"), REQUESTS as u64);
    let longest = groups.iter().filter_map(|group| group["old"]["outcome"].as_str()).map(str::len).max();
    assert!(longest.is_some_and(|bytes| bytes < 600), "{longest:?}");
}

/// Servers, threads and a reload of what serves already leave it alone; what decides otherwise ends it.
fn what_changes_beside_it(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = setup(threads, &a, &b).rules("R1: if (path == \"/b\") { routeTo(b); }\n");
    let switch = setup.start();
    let candidate = "R1: if (path == \"/c\") { routeTo(b); }\n";
    let ask = || ["/b", "/c", "/"].map(|path| switch.get(path).status());
    let state = || {
        let said = switch.admin_shows(DRY_RUN);
        (said["ended_by"].clone(), counts(&said))
    };
    begin(&switch, OF_RULES, candidate);
    ask();
    switch.reload(&setup, 2);
    ask();
    assert_eq!(state(), (Value::Null, [6, 2, 0, 4, 0]), "the same was read again");
    let weight =
        |body| switch.admin_ask("PATCH", "/api/v1/pools/a/servers/sa", "If-Match: *\r\n", body).0.status();
    assert_eq!(weight("{\"weight\": 3}"), 200);
    ask();
    assert_eq!(state(), (Value::Null, [9, 3, 0, 6, 0]), "a server has changed");
    for (generation, other) in [(4, threads + 2), (5, 1)] {
        let text = setup.text().replace(&format!("threads = {threads}\n"), &format!("threads = {other}\n"));
        std::fs::write(switch.folder().join("pointsman.toml"), text).expect("a writable folder");
        switch.signal("HUP");
        until("it serves", || {
            (switch.metric("pointsman_plan_generation", &[]) == f64::from(generation)).then_some(())
        });
        for _ in 0..4 {
            ask();
        }
    }
    assert_eq!(state(), (Value::Null, [33, 11, 0, 22, 0]), "more threads, and fewer");
    assert_eq!(groups(&switch.admin_shows(DRY_RUN)).len(), 2, "all threads have found the same");
    switch.reload(&setup.clone().default_pool("b"), 6);
    ask();
    assert_eq!(state(), ("published".into(), [33, 11, 0, 22, 0]), "another default pool");
    let line = switch.wait_for_line("dry-run ended n=1 by=published");
    assert_eq!(line, "dry-run ended n=1 by=published decisions=33 changed=22 other_rule=0 untold=0");
    begin(&switch, OF_RULES, candidate);
    switch.reload(&setup.clone().listener("merge_slashes = true"), 7);
    assert_eq!(state(), ("published".into(), [0; 5]), "heads are read otherwise");
}

/// The process that comes knows nothing of it, so what was counted is said by the one that goes.
fn an_upgrade_ends_it(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let mut switch = setup(threads, &a, &b).rules("R1: { routeTo(a); }\n").start();
    let begins = |switch: &Switch| {
        let begun = begin(switch, OF_RULES, "R1: { routeTo(b); }\n");
        assert_eq!(begun["n"], 1, "it counts anew");
        begun["id"].clone()
    };
    let first = begins(&switch);
    assert_eq!(switch.get("/").status(), 200);
    switch.upgrade();
    let line = switch.wait_for_line("dry-run ended");
    assert_eq!(line, "dry-run ended n=1 by=drained decisions=1 changed=1 other_rule=0 untold=0");
    assert_eq!(switch.admin_get(DRY_RUN).status(), 404);
    // Though it has the same number it is another one.
    let other = begins(&switch);
    assert_ne!(first, other);
    let ends = |id: &Value| {
        switch.admin_ask("DELETE", "/api/v1/dry-run", &format!("If-Match: {id}\r\n"), "").0.status()
    };
    assert_eq!(ends(&first), 412);
    let began = |line: &&String| **line == "dry-run began n=1 listener=shop seconds=3600 by=deploy";
    until("both have said so", || (switch.errors().all().iter().filter(began).count() == 2).then_some(()));
}
