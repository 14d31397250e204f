//! What servers get of an order beside its bytes, and what they do to it.

use pointsman_e2e::{Authority, Origin, Setup, Then, TlsClient, until};

use super::{JSON, RULES, Shop, XML, chunked_head, chunks, head, head_with, xml_order, xml_order_first};

pointsman_e2e::for_threads!(
    over_tls,
    coded_orders,
    values_in_headers_and_stickiness,
    sent_again_where_that_is_safe,
    an_answer_before_all_is_sent,
    an_answer_begun_before_the_fault,
    a_rejection_amid_the_body,
    what_the_log_says,
    cut_by_the_end_of_the_drain
);

fn over_tls(threads: usize) {
    let authority = Authority::new("test CA");
    let shop = Shop::with(threads, RULES, |setup| setup.tls(&authority.server(&["shop.example"]), ""));
    for body in [xml_order(2_000_000, 60_000), xml_order_first(2_000_000, 60_000)] {
        let client = shop.switch.tls_client(&TlsClient::new(&authority), "shop.example");
        let mut client = client.expect("a handshake");
        client.send(head(XML, body.len()));
        client.send(&body);
        assert_eq!(client.response().server(), "fast");
        assert!(shop.fast.last().body.bytes == body, "it changed on its way");
    }
}

/// What rules see is what was coded; what the server gets is what was sent.
fn coded_orders(threads: usize) {
    // `<purchase><totalAmount>60000</totalAmount></purchase>`
    let coded = b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\xb3\x29\x28\x2d\x4a\xce\x48\x2c\x4e\xb5\xb3\x29\xc9\x2f\x49\xcc\
        \x71\xcc\xcd\x2f\xcd\x2b\xb1\x33\x33\0\x02\x1b\x7d\x64\x21\x1b\x7d\xb8\x52\0\xf8\x3b\xa2\x5c\x35\0\0\0";
    let shop = Shop::start(threads);
    let post = |coding: &str, body: &[u8]| {
        let fields = format!("Content-Encoding: {coding}\r\nContent-Length: {}\r\n", body.len());
        let mut client = shop.client();
        client.send(head_with(XML, &fields));
        for byte in body {
            client.try_send([*byte]).ok();
        }
        client.response()
    };
    assert_eq!(post("gzip", coded).server(), "fast");
    assert_eq!(shop.fast.last().body.bytes, coded);
    assert_eq!(shop.fast.last().head.field("content-encoding"), Some("gzip"));
    assert_eq!(post("x-gzip", coded).server(), "fast");
    // Its checksum is wrong, which is known at its end.
    let mut wrong = coded.to_vec();
    wrong[coded.len() - 8] ^= 1;
    assert_eq!(post("gzip", &wrong).status(), 400);
    assert_eq!(post("compress", coded).status(), 415);
    let whole = shop.fast.requests().iter().filter(|request| request.complete).count();
    assert_eq!((whole, shop.standard.count()), (2, 0));
}

/// What the body says goes where rules put it, and keeps a client by its own word.
fn values_in_headers_and_stickiness(threads: usize) {
    let (one, two) = (Origin::new("one"), Origin::new("two"));
    let rules = "R1: if (json.user exists) { setHeader(\"x-user\", \"<${json.user}>\"); \
        routeTo(usual, STICKY_ON(json.user)); }\nelse: respond(200, \"size ${body.size}\");";
    let switch = Setup::new(threads).rules(rules).pool("usual", &[&one, &two]).start();
    let ask = |user: &str| {
        let body = format!("{{\"items\":[{}0],\"user\":\"{user}\"}}", "1,".repeat(40_000));
        let mut client = switch.client();
        client.send(head(JSON, body.len()));
        client.send(body);
        client.response().server().to_owned()
    };
    for user in ["ann", "bob", "eve", "joe", "kim"] {
        let server = ask(user);
        assert_eq!(ask(user), server);
        let origin = if server == "one" { &one } else { &two };
        assert_eq!(origin.last().head.field("x-user"), Some(&*format!("<{user}>")));
    }
    let mut client = switch.client();
    client.send(chunked_head("text/plain"));
    client.send(chunks(&[b'x'; 70_000], 999));
    assert_eq!(client.response().text(), "size 70000");
    assert_eq!(client.get("/").text(), "size ");
}

/// A server that breaks off amid what was held: another one gets all of it, if the method allows.
fn sent_again_where_that_is_safe(threads: usize) {
    let broken = Origin::answering("broken", |exchange| {
        exchange.piece();
        Then::Reset
    });
    let sound = Origin::new("sound");
    let setup = Setup::new(threads).rules("if (xml.none exists) { reject(); }");
    let switch = setup.pool("usual", &[&broken, &sound]).start();
    let body = xml_order(500_000, 1);
    for method in ["PUT", "PUT", "POST", "POST"] {
        let before = broken.count();
        let mut client = switch.client();
        client.send(head(XML, body.len()).replace("POST", method));
        client.send(&body);
        let answer = client.response();
        match (method, broken.count() > before) {
            ("POST", true) => assert_eq!(answer.status(), 502),
            _ => {
                assert_eq!((answer.status(), answer.server()), (200, "sound"), "{}", answer.text());
                assert!(sound.last().body.bytes == body, "it changed on its way");
            }
        }
    }
    assert!(broken.count() > 0 && sound.count() > 0);
}

/// A server may answer what it has not read, and read on.
fn an_answer_before_all_is_sent(threads: usize) {
    let early = || {
        Origin::answering("early", |exchange| {
            exchange.piece();
            exchange.answer("200 OK", "early");
            exchange.body();
            Then::KeepAlive
        })
    };
    let origin = early();
    let switch = Setup::new(threads).rules(RULES).pool("usual", &[&origin]).pool("quick", &[&origin]).start();
    for body in [xml_order(3_000_000, 1), xml_order_first(3_000_000, 60_000)] {
        let mut client = switch.client();
        client.send(head(XML, body.len()));
        client.try_send(&body).expect("it is read to its end");
        let answer = client.response();
        assert_eq!((answer.status(), answer.text().as_str()), (200, "early"));
        origin.wait_for_body();
        assert!(origin.last().body.bytes == body, "it changed on its way");
    }
}

/// An answer to a request that proves malformed is broken off, and does not pass for a whole one.
fn an_answer_begun_before_the_fault(threads: usize) {
    let origin = Origin::answering("eager", |exchange| {
        exchange.piece();
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
        exchange.body();
        exchange.send("x".repeat(96));
        Then::KeepAlive
    });
    let switch = Setup::new(threads).rules(RULES).pool("usual", &[&origin]).pool("quick", &[&origin]).start();
    let mut body = xml_order_first(500_000, 60_000);
    body.push(b'<');
    let mut client = switch.client();
    client.send(head(XML, body.len()));
    client.send(&body[..1024]);
    assert_eq!(client.head().word(1), "200");
    client.expect_body(b"some");
    client.try_send(&body[1024..]).ok();
    assert!(client.rest().is_err());
    origin.wait_for_ends(1);
    assert!(!origin.last().complete);
    let line = switch.log_of("/orders");
    assert!(line["error"].as_str().is_some_and(|error| error.starts_with("XML")), "{line}");
}

/// A rule that refuses need not hear the rest; who has said all of it may go on.
fn a_rejection_amid_the_body(threads: usize) {
    let rules =
        "validate stream;\nR1: if (xml.purchase/totalAmount > 52000) { reject(403, \"too dear\"); }\n";
    let shop = Shop::with(threads, rules, |setup| setup);
    let body = xml_order_first(500_000, 60_000);
    let mut client = shop.client();
    client.send(head(XML, body.len()));
    client.send(&body[..1024]);
    let answer = client.response();
    assert_eq!((answer.status(), answer.text().as_str()), (403, "too dear\n"));
    assert!(client.closes());
    for bytes in [100, 100_000] {
        let body = xml_order(bytes, 60_000);
        let mut client = shop.client();
        client.send(head(XML, body.len()));
        client.send(&body);
        assert_eq!(client.response().status(), 403);
        assert_eq!(client.get("/").status(), 200, "the connection goes on");
    }
    assert!(shop.standard.requests().iter().all(|request| request.head.word(0) == "GET"));
}

fn what_the_log_says(threads: usize) {
    let shop = Shop::start(threads);
    for (path, body, sent) in [
        ("/whole", xml_order(100_000, 60_000), usize::MAX),
        ("/early", xml_order_first(100_000, 60_000), usize::MAX),
        ("/small", xml_order(10, 60_000), usize::MAX),
        ("/left", xml_order(100_000, 60_000), 50_000),
    ] {
        let head = head(XML, body.len()).replace("/orders", path);
        let sent = sent.min(body.len());
        let mut client = shop.client();
        client.send(&head);
        client.send(&body[..sent]);
        let is_whole = sent == body.len();
        if is_whole {
            assert_eq!(client.response().status(), 200);
        } else {
            client.finish_sending();
            assert!(client.closes());
        }
        let line = shop.switch.log_of(path);
        assert_eq!(line["request_bytes"], head.len() + sent, "{line}");
        assert_eq!(line["rule"].as_str(), is_whole.then_some("R1"), "{line}");
        assert_eq!(line["pool"].as_str(), is_whole.then_some("quick"), "{line}");
        assert_eq!(line["status"].as_u64(), is_whole.then_some(200), "{line}");
    }
}

fn cut_by_the_end_of_the_drain(threads: usize) {
    let mut shop = Shop::with(threads, RULES, |setup| setup.top("drain_ms_max = 300"));
    let mut client = shop.client();
    client.send(head(XML, 100_000));
    client.send(&xml_order(100_000, 1)[..50_000]);
    let waiting = || shop.switch.metric("pointsman_requests_waiting", &[("listener", "shop")]);
    until("it to wait", || (waiting() == 1.0).then_some(()));
    shop.switch.signal("TERM");
    assert!(client.closes());
    shop.switch.wait_for_exit();
    assert_eq!(shop.switch.log_of("/orders")["error"], "cut off: the drain was over");
}
