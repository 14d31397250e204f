//! Streams are requests like any: each is routed, edited, answered and logged by itself.

use std::collections::HashSet;

use pointsman_e2e::{H2Answer, H2Client, Origin, Setup, Switch, ok};

pointsman_e2e::for_threads!(
    each_stream_is_routed_by_itself,
    stickiness,
    rules_see_what_they_see_of_http1,
    messages_are_edited,
    answers_of_rules,
    a_discarded_stream_is_reset,
    a_rule_resets_a_stream,
    the_log_and_the_metrics
);

pub(crate) fn begin(switch: &Switch) -> H2Client {
    H2Client::begin(switch.client())
}

/// One connection, and a server for each of its streams by path, field and cookie.
fn each_stream_is_routed_by_itself(threads: usize) {
    let origins = ["a", "b", "c", "d"].map(|name| Origin::answering(name, ok));
    let rules = "if (path under \"/a\") { routeTo(a); }
                 if (header[\"x-to\"] == \"b\") { routeTo(b); }
                 if (cookie[\"to\"] == \"c\") { routeTo(c); }";
    let setup = Setup::new(threads).rules(rules).default_pool("d");
    let setup = origins.iter().fold(setup, |setup, origin| setup.pool(origin.name(), &[origin]));
    let switch = setup.start();
    let mut client = begin(&switch);
    let asked = [
        ("a", "/a/1", vec![]),
        ("b", "/1", vec![("x-to", "b")]),
        ("c", "/1", vec![("cookie", "x=y"), ("cookie", "to=c")]),
        ("d", "/1", vec![("x-to", "c"), ("cookie", "to=b")]),
    ];
    // All are asked before the first answer is read.
    for number in 0..40_u32 {
        let (_, path, fields) = &asked[number as usize % 4];
        client.ask(2 * number + 1, "GET", path, fields);
    }
    for number in 0..40_u32 {
        let answer = client.answer(2 * number + 1);
        assert_eq!((answer.status(), answer.text().as_str()), (200, asked[number as usize % 4].0));
    }
    for origin in &origins {
        assert_eq!(origin.count(), 10, "{}", origin.name());
    }
}

/// A cookie is given out on a stream, and honoured on the next; no server sees it.
fn stickiness(threads: usize) {
    let origins: Vec<_> = (0..6).map(|number| Origin::answering(&format!("s{number}"), ok)).collect();
    let servers: Vec<&Origin> = origins.iter().collect();
    let rules = "R1: if (path == \"/field\") { routeTo(standard, STICKY_ON(cookie[\"sid\"])); }
                 R2: { routeTo(standard, STICKY_ON_COOKIE); }";
    let switch = Setup::new(threads).rules(rules).pool("standard", &servers).start();
    let mut client = begin(&switch);
    let mut given = HashSet::new();
    for number in 0..12 {
        let first = client.fetch(4 * number + 1, "/");
        let set = first.field("set-cookie").expect("a cookie");
        let (cookie, _) = set.split_once(';').expect("attributes");
        assert!(cookie.starts_with("pm_route="), "{set}");
        client.ask(4 * number + 3, "GET", "/", &[("cookie", "a=b"), ("cookie", cookie)]);
        let second = client.answer(4 * number + 3);
        assert_eq!((second.text(), second.field("set-cookie")), (first.text(), None));
        given.insert(first.text());
    }
    assert!(given.len() > 1, "12 clients on {given:?}");
    let cookies = origins.iter().flat_map(Origin::requests).filter_map(|request| {
        let cookie = request.head.field("cookie")?;
        Some(cookie.to_owned())
    });
    assert_eq!(cookies.collect::<HashSet<_>>(), HashSet::from(["a=b".to_owned()]));
    let by_field = |client: &mut H2Client, stream| {
        client.ask(stream, "GET", "/field", &[("cookie", "sid=7")]);
        client.answer(stream).text()
    };
    let first = by_field(&mut client, 101);
    for stream in [103, 105, 107, 109] {
        assert_eq!(by_field(&mut client, stream), first);
    }
}

/// The same rule takes the same request of either version; only `version` tells them apart.
fn rules_see_what_they_see_of_http1(threads: usize) {
    let (yes, no) = (Origin::answering("yes", ok), Origin::answering("no", ok));
    let rules = "if (version == \"2\" && path == \"/only2\") { respond(200, \"two\"); }
                 if (version == \"1.1\" && path == \"/only2\") { respond(200, \"one\"); }
                 if (method == \"POST\" && host == \"shop.example\" && path == \"/a/b\" && query == \"q=1%20\"
                     && query[\"q\"] == \"1 \" && header[\"x-a\"] == \"1\" && count(header[\"x-b\"]) == 2
                     && header[\"cookie\"] == \"a=b; c=d\" && cookie[\"c\"] == \"d\" && content_length == 3
                     && content_type == \"text/plain\" && srcip == 127.0.0.1 && header[\"host\"] exists
                     && !(header[\"te\"] exists)) { routeTo(yes); }";
    let setup = Setup::new(threads).rules(rules).pool("yes", &[&yes]).pool("no", &[&no]).default_pool("no");
    let switch = setup.start();
    let mut one = switch.client();
    one.send(
        "POST /x/../a/b?q=1%20 HTTP/1.1\r\nHost: Shop.Example\r\nX-A: 1\r\nx-b: 1\r\nx-b: 2\r\nCookie: a=b; c=d\r\n\
         Content-Length: 3\r\nContent-Type: Text/Plain; charset=x\r\n\r\nabc",
    );
    assert_eq!(one.response().text(), "yes");
    assert_eq!(one.get("/only2").text(), "one");
    let mut two = begin(&switch);
    let fields = [
        (":authority", "Shop.Example"),
        ("x-a", "1"),
        ("x-b", "1"),
        ("x-b", "2"),
        ("cookie", "a=b"),
        ("te", "trailers"),
        ("cookie", "c=d"),
        ("content-length", "3"),
        ("content-type", "Text/Plain; charset=x"),
    ];
    two.post(1, "/x/../a/b?q=1%20", &fields);
    two.send_content(1, 1, b"abc").expect("the switch reads");
    assert_eq!(two.answer(1).text(), "yes");
    assert_eq!(two.fetch(3, "/only2").text(), "two");
    // A server cannot tell by which of them it came.
    let [first, second] = yes.requests().try_into().expect("two requests");
    let shown = |request: &pointsman_e2e::Request| {
        let mut fields: Vec<_> = request
            .head
            .fields
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
            .collect();
        fields.retain(|(name, _)| name != "via");
        fields.sort();
        (request.head.start.clone(), fields, request.body.clone())
    };
    assert_eq!(shown(&first), shown(&second));
    assert_eq!(
        second.head.field("via").map(|via| via.starts_with("2.0 ")),
        first.head.field("via").map(|_| true)
    );
}

/// What rules write reaches the server, and the client, whose fields are in small letters.
fn messages_are_edited(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nX-Old: 1\r\nServer: s\r\nKeep-Alive: 5\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 2\r\n\r\nok");
        pointsman_e2e::Then::KeepAlive
    });
    let rules =
        "R1: { setHeader(\"X-New\", \"${path}\"); removeHeader(\"X-Secret\"); rewritePath(\"/a\", \"/b\");
        setResponseHeader(\"X-Rule\", \"${version}\"); removeResponseHeader(\"Server\");
        addResponseHeader(\"X-Old\", \"2\"); routeTo(standard); }";
    let switch = Setup::new(threads).rules(rules).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.ask(1, "GET", "/a/x", &[("x-secret", "1")]);
    let answer = client.answer(1);
    let old: Vec<_> =
        answer.fields.iter().filter(|(name, _)| name == b"x-old").map(|(_, value)| value).collect();
    assert_eq!((answer.text().as_str(), old), ("ok", vec![&b"1".to_vec(), &b"2".to_vec()]));
    assert_eq!(answer.field("x-rule").as_deref(), Some("2"));
    for name in ["server", "keep-alive", "connection", "x-hop", "transfer-encoding"] {
        assert_eq!(answer.field(name), None, "{name}");
    }
    let request = origin.last();
    assert_eq!((request.target(), request.head.field("x-new")), ("/b/x", Some("/a/x")));
    assert_eq!(request.head.field("x-secret"), None);
}

/// Redirects, responses and rejections are answers of a stream, also while its content comes, and leave the
/// connection as it is.
fn answers_of_rules(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let rules = "if (path == \"/moved\") { redirect(308, \"https://${host}/new\"); }
                 if (path == \"/said\") { respond(200, \"by ${version}\"); }
                 if (path == \"/nothing\") { respond(204, \"\"); }
                 if (path == \"/no\") { reject(403, \"not you\"); }";
    let switch = Setup::new(threads).rules(rules).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    let said = |answer: &H2Answer| (answer.status(), answer.text());
    let moved = client.fetch(1, "/moved");
    assert_eq!((moved.status(), moved.field("location").as_deref()), (308, Some("https://shop.example/new")));
    assert_eq!(said(&client.fetch(3, "/said")), (200, "by 2".to_owned()));
    assert_eq!(said(&client.fetch(5, "/no")), (403, "not you\n".to_owned()));
    assert_eq!(said(&client.fetch(7, "/nothing")), (204, String::new()));
    client.ask(9, "HEAD", "/said", &[]);
    let head = client.answer(9);
    assert_eq!((said(&head), head.field("content-length").as_deref()), ((200, String::new()), Some("4")));
    // The rest of the content is not wanted, which a reset without an error says (RFC 9113 section 8.1).
    client.post(11, "/no", &[]);
    assert_eq!(client.answer(11).status(), 403);
    client.wait("a reset", |client| client.seen(11).reset.is_some());
    assert_eq!(client.seen(11).reset, Some(0));
    assert_eq!(client.fetch(13, "/").text(), "origin");
    assert_eq!((origin.count(), client.goaway()), (1, None));
}

/// A discarded stream ends without an answer, and nothing else does.
fn a_discarded_stream_is_reset(threads: usize) {
    let client = streams_are_reset(threads, "discard()");
    assert_eq!(client.seen(3).fields, []);
}

/// So does one that a rule resets, with a code of its own.
fn a_rule_resets_a_stream(threads: usize) {
    let client = streams_are_reset(threads, "reject(reset)");
    assert_eq!(client.seen(3).reset, Some(2), "INTERNAL_ERROR");
}

/// Streams are reset by what a rule does with them, with a body or without, and the one beside them is answered.
fn streams_are_reset(threads: usize, by: &str) -> H2Client {
    let (origin, go) = crate::drain::held();
    let rules = format!("if (path == \"/gone\") {{ {by}; }}");
    let switch = Setup::new(threads).rules(&rules).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    client.ask(1, "GET", "/", &[]);
    origin.wait_for_requests(1);
    client.ask(3, "GET", "/gone", &[]);
    client.reset(3);
    client.post(5, "/gone", &[]);
    client.reset(5);
    go.send(()).expect("the origin is there");
    assert_eq!((client.answer(1).status(), client.goaway()), (200, None));
    client
}

/// A line and a count for each stream, and one connection for all.
fn the_log_and_the_metrics(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let rules = "R1: if (path == \"/no\") { tag(bad); reject(); }";
    let switch = Setup::new(threads).rules(rules).pool("standard", &[&origin]).start();
    let mut client = begin(&switch);
    for number in 0..10 {
        let path = format!("/x{number}");
        client.post(2 * number + 1, &path, &[("content-length", "5")]);
        client.send_content(2 * number + 1, 1, b"12345").expect("the switch reads");
    }
    for number in 0..10 {
        assert_eq!(client.answer(2 * number + 1).text(), "origin");
        let entry = switch.log_of(&format!("/x{number}"));
        let shown = ["version", "method", "host", "rule", "pool", "server"].map(|key| &entry[key]);
        assert_eq!(shown, ["2", "POST", "shop.example", "(default)", "standard", "origin"], "{entry}");
        assert_eq!(entry["status"], 200);
        assert!(
            entry["request_bytes"].as_u64() > Some(30) && entry["response_bytes"].as_u64() > Some(20),
            "{entry}"
        );
        assert!(entry.get("error").is_none(), "{entry}");
    }
    assert_eq!(client.fetch(21, "/no").status(), 403);
    let entry = switch.log_of("/no");
    assert_eq!(
        (&entry["rule"], &entry["tags"][0], &entry["version"]),
        (&"R1".into(), &"bad".into(), &"2".into())
    );
    let shop = [("listener", "shop")];
    let waits = [
        ("pointsman_connections_total", 1.0),
        ("pointsman_connections_open", 1.0),
        ("pointsman_requests_total", 11.0),
        ("pointsman_refusals_total", 1.0),
    ];
    for (name, value) in waits {
        figure(&switch, name, &shop, value);
    }
    figure(&switch, "pointsman_server_requests_total", &[("server", "origin")], 10.0);
    drop(client);
    figure(&switch, "pointsman_connections_open", &shop, 0.0);
    switch.expect_log_lines(11);
}

/// Waits for a metric: threads hand their figures over from time to time.
pub(crate) fn figure(switch: &Switch, name: &str, labels: &[(&str, &str)], value: f64) {
    pointsman_e2e::until(&format!("{name} {labels:?} of {value}"), || {
        ((switch.metric(name, labels) - value).abs() < 0.5).then_some(())
    });
}
