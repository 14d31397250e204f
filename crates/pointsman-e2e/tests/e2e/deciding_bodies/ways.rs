//! Orders that are in order, whichever way they come.

use super::{JSON, RULES, Shop, XML, chunked_head, chunks, head, json_order, xml_order};

pointsman_e2e::for_threads!(
    large_orders_arrive_as_they_were,
    small_orders_of_every_kind,
    another_media_type,
    many_orders_on_one_connection,
    a_byte_a_packet,
    no_body_no_fields
);

const LARGE: usize = 8 * 1024 * 1024;

/// What they cost is known at their end: all of them is held, and goes on as it came.
fn large_orders_arrive_as_they_were(threads: usize) {
    let shop = Shop::start(threads);
    for (media_type, body) in [(XML, xml_order(LARGE, 100)), (JSON, json_order(LARGE, 100))] {
        let answer = shop.post(media_type, &body);
        assert_eq!((answer.status(), answer.server()), (200, "standard"), "{}", answer.text());
        assert!(shop.standard.last().body.bytes == body, "{media_type}: it changed on its way");

        let mut client = shop.client();
        client.send(chunked_head(media_type));
        client.send(chunks(&body, 65_521));
        let answer = client.response();
        assert_eq!((answer.status(), answer.server()), (200, "standard"), "{}", answer.text());
        assert!(shop.standard.last().body.bytes == body, "{media_type}, chunked: it changed on its way");
    }
    assert_eq!(shop.fast.count(), 0);
    let held = [("listener", "shop")];
    assert_eq!(shop.switch.metric("pointsman_held_bytes", &held), 0.0);
    assert_eq!(shop.switch.metric("pointsman_requests_waiting", &held), 0.0);
}

fn small_orders_of_every_kind(threads: usize) {
    let shop = Shop::start(threads);
    let form = "application/x-www-form-urlencoded";
    let multipart = "multipart/form-data; boundary=x";
    let part = |total: u32| {
        format!("--x\r\nContent-Disposition: form-data; name=\"total\"\r\n\r\n{total}\r\n--x--\r\n")
            .into_bytes()
    };
    for (media_type, body, server) in [
        (XML, xml_order(0, 100), "standard"),
        (XML, xml_order(0, 60_000), "fast"),
        ("text/XML; charset=utf-8", xml_order(0, 60_000), "fast"),
        ("application/soap+xml", xml_order(0, 60_000), "fast"),
        (JSON, json_order(0, 52_000), "standard"),
        (JSON, json_order(0, 52_001), "fast"),
        (form, b"item=1&total=60000".to_vec(), "fast"),
        (form, b"item=1&total=600".to_vec(), "standard"),
        (multipart, part(60_000), "fast"),
        (multipart, part(600), "standard"),
        // Another media type has none of these fields.
        ("text/plain", json_order(0, 60_000), "standard"),
        ("", xml_order(0, 60_000), "standard"),
    ] {
        let answer = shop.post(media_type, &body);
        let said = String::from_utf8_lossy(&body).into_owned();
        assert_eq!((answer.status(), answer.server()), (200, server), "{media_type}: {said}");
        let origin = if server == "fast" { &shop.fast } else { &shop.standard };
        assert_eq!(origin.last().body.bytes, body, "{media_type}");
    }
}

/// What a rule refuses is not let in by leaving out what it is, unless the listener says so.
fn another_media_type(threads: usize) {
    let rules = "R1: if (json.order.total > 52000) { reject(403); }";
    for (keys, status, sniffed) in [
        ("", 415, 415),
        ("body_kind = \"absent\"", 200, 200),
        ("body_kind = \"unknown\"", 415, 415),
        ("body_kind = \"sniff\"", 200, 403),
    ] {
        let shop = Shop::with(threads, rules, |setup| setup.listener(keys));
        for media_type in ["text/plain", ""] {
            assert_eq!(shop.post(media_type, b"order=60000").status(), status, "{keys}, {media_type}");
            let order = json_order(10, 60_000);
            assert_eq!(shop.post(media_type, &order).status(), sniffed, "{keys}, {media_type}");
            let mut client = shop.client();
            client.send(chunked_head(media_type));
            client.try_send(chunks(&order, 7)).ok();
            assert_eq!(client.response().status(), sniffed, "{keys}, {media_type}, chunked");
        }
    }
}

/// What comes behind a body that was held is the next request.
fn many_orders_on_one_connection(threads: usize) {
    for mode in ["hold", "concurrent", "latest"] {
        many_orders(threads, mode);
    }
}

fn many_orders(threads: usize, mode: &str) {
    let shop = Shop::with(threads, RULES, |setup| setup.listener(&format!("pipeline = \"{mode}\"")));
    let mut client = shop.client();
    let bodies = [xml_order(200_000, 1), xml_order(10, 2), xml_order(70_000, 3)];
    for round in 0..3 {
        let all: Vec<u8> = bodies
            .iter()
            .flat_map(|body| [head(XML, body.len()).into_bytes(), body.clone()].concat())
            .collect();
        client.send(all);
        for (number, body) in bodies.iter().enumerate() {
            let answer = client.response();
            assert_eq!((answer.status(), answer.server()), (200, "standard"));
            let came = &shop.standard.requests()[round * bodies.len() + number];
            assert!(came.complete && came.body.bytes == *body, "it changed on its way");
        }
    }
}

fn a_byte_a_packet(threads: usize) {
    let shop = Shop::start(threads);
    for (media_type, body) in [(XML, xml_order(100, 60_000)), (JSON, json_order(100, 60_000))] {
        for is_chunked in [false, true] {
            let (head, sent) = match is_chunked {
                false => (head(media_type, body.len()), body.clone()),
                true => (chunked_head(media_type), chunks(&body, 1)),
            };
            let mut client = shop.client();
            client.send(head);
            for byte in sent {
                client.send([byte]);
            }
            let answer = client.response();
            assert_eq!((answer.status(), answer.server()), (200, "fast"), "{media_type}");
            assert_eq!(shop.fast.last().body.bytes, body, "{media_type}");
        }
    }
}

fn no_body_no_fields(threads: usize) {
    let shop = Shop::start(threads);
    assert_eq!(shop.switch.get("/").server(), "standard");
    let answer = shop.client().ask("POST", "/", "Content-Length: 0\r\nContent-Type: text/xml\r\n");
    assert_eq!(answer.server(), "standard");
}
