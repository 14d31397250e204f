//! Orders that are not in order: no server gets one whole.

use pointsman_e2e::{ends, folder};

use super::{
    JSON, RULES, Shop, XML, chunked_head, chunks, head, head_with, json_order_first, xml_order,
    xml_order_first,
};

pointsman_e2e::for_threads!(
    malformed_at_the_end,
    malformed_at_the_end_in_chunks,
    what_follows_is_the_next_request,
    malformed_before_it_is_decided,
    a_key_again_behind_the_decision,
    the_end_is_cut_off,
    framing_is_broken_behind_the_decision,
    what_is_wrong_is_logged_and_counted,
    rules_may_take_what_is_wrong,
    validated_in_full,
    what_happens_is_explained
);

const LARGE: usize = 300_000;

/// Bodies whose last byte is too much, or wrong.
fn broken_at_their_ends() -> [(&'static str, Vec<u8>); 3] {
    let mut unclosed = xml_order_first(LARGE, 60_000);
    unclosed.pop();
    unclosed.push(b' ');
    let mut second = xml_order_first(LARGE, 60_000);
    second.extend_from_slice(b"<a/>");
    let mut behind = json_order_first(LARGE, 60_000);
    behind.push(b'}');
    [(XML, unclosed), (XML, second), (JSON, behind)]
}

/// The server that was chosen early has all but the last byte, and never all of it.
fn malformed_at_the_end(threads: usize) {
    let shop = Shop::start(threads);
    for (count, (media_type, body)) in broken_at_their_ends().iter().enumerate() {
        let mut client = shop.client();
        client.send(head(media_type, body.len()));
        client.send(&body[..1000]);
        shop.fast.wait_for_requests(count + 1);
        client.send(&body[1000..]);
        assert_eq!(client.response().status(), 400);
        shop.fast.wait_for_ends(count + 1);
        let last = shop.fast.last();
        assert!(!last.complete && last.body.bytes.len() < body.len());
        assert!(body.starts_with(&last.body.bytes), "{media_type}: it changed on its way");
        // What is wrong with a body that came whole is no reason to leave its client.
        assert_eq!(client.get("/").server(), "standard");
    }
    shop.has_no_whole_order();
}

/// Without a length the last byte of content waits, too, whatever frames it.
fn malformed_at_the_end_in_chunks(threads: usize) {
    let shop = Shop::start(threads);
    for (count, (media_type, body)) in broken_at_their_ends().iter().enumerate() {
        let framed = chunks(body, 4099);
        let mut client = shop.client();
        client.send(chunked_head(media_type));
        // All but the last chunk.
        client.send(&framed[..framed.len() - 5]);
        shop.fast.wait_for_requests(count + 1);
        client.send(&framed[framed.len() - 5..]);
        assert_eq!(client.response().status(), 400);
        shop.fast.wait_for_ends(count + 1);
        let last = shop.fast.last();
        assert!(!last.complete && last.body.bytes.len() < body.len());
    }
    shop.has_no_whole_order();
}

/// Whatever a body is, what comes behind it in the same read is no part of it, and is not lost.
fn what_follows_is_the_next_request(threads: usize) {
    let shop = Shop::start(threads);
    let next = "GET /next HTTP/1.1\r\nHost: shop.example\r\n\r\n";
    let (mut decided, mut followed) = (0, 0);
    for (media_type, body) in broken_at_their_ends() {
        let body = [&body[..200], &body[LARGE..]].concat();
        let framed = chunks(&body, 4099);
        for (head, body) in [(head(media_type, body.len()), body), (chunked_head(media_type), framed)] {
            for cut in [next.len(), 20] {
                let (now, later) = next.split_at(cut);
                let mut client = shop.client();
                client.send([head.as_bytes(), &body[..180]].concat());
                decided += 1;
                shop.fast.wait_for_requests(decided);
                client.send([&body[180..], now.as_bytes()].concat());
                assert_eq!(client.response().status(), 400, "{media_type}");
                client.send(later);
                let answer = client.response();
                assert_eq!((answer.status(), answer.server()), (200, "standard"), "{media_type}");
                followed += 1;
                assert_eq!((shop.standard.count(), shop.standard.last().head.word(1)), (followed, "/next"));
            }
        }
    }
    shop.has_no_whole_order();
}

/// Nobody was asked for: no server hears of it.
fn malformed_before_it_is_decided(threads: usize) {
    let shop = Shop::start(threads);
    for (media_type, body, status) in [
        (XML, "<purchase><totalAmount>60000</purchase>", 400),
        (XML, "<!DOCTYPE a><purchase><totalAmount>60000</totalAmount></purchase>", 400),
        (XML, "<?xml version=\"1.0\" encoding=\"EBCDIC\"?><purchase/>", 415),
        (JSON, "{\"order\":{\"total\":1,\"total\":60000}}", 400),
        (JSON, "{\"order\":{\"total\":\"much\"}}", 400),
        (JSON, "{\"order\":", 400),
        ("application/json; charset=utf-7", "{\"order\":{\"total\":60000}}", 415),
    ] {
        let mut client = shop.client();
        client.send([head(media_type, body.len()).as_bytes(), body.as_bytes()].concat());
        let answer = client.response();
        assert_eq!(answer.status(), status, "{body}: {}", answer.text());
        if media_type.contains("charset") {
            // Its head says it: nobody looks for the end.
            assert!(client.closes());
            continue;
        }
        // All of it came: the next request can be read.
        let next = head(media_type, body.len());
        client.send(next);
        client.send(body);
        assert_eq!(client.response().status(), status, "{body}, again");
    }
    assert_eq!((shop.fast.count(), shop.standard.count()), (0, 0));
}

/// A repeated key makes nonsense of what was decided by the first one.
fn a_key_again_behind_the_decision(threads: usize) {
    let shop = Shop::start(threads);
    let body = format!("{{\"order\":{{\"total\":60000,\"note\":\"{}\",\"total\":1}}}}", "x".repeat(LARGE));
    let mut client = shop.client();
    client.send(head(JSON, body.len()));
    client.send(&body[..100]);
    shop.fast.wait_for_requests(1);
    client.send(&body[100..]);
    assert_eq!(client.response().status(), 400);
    shop.fast.wait_for_ends(1);
    shop.has_no_whole_order();
    // All at once it is no better.
    let small = "{\"order\":{\"total\":60000,\"total\":1}}";
    assert_eq!(shop.post(JSON, small.as_bytes()).status(), 400);
    shop.has_no_whole_order();
}

/// A client that leaves amid its body, held or on its way, is no whole request to anybody.
fn the_end_is_cut_off(threads: usize) {
    let shop = Shop::start(threads);
    for (body, server) in [(xml_order(LARGE, 1), None), (xml_order_first(LARGE, 60_000), Some(&shop.fast))] {
        let mut client = shop.client();
        client.send(head(XML, body.len()));
        client.send(&body[..LARGE / 2]);
        if let Some(server) = server {
            server.wait_for_requests(1);
        }
        client.finish_sending();
        assert!(client.closes());
        if let Some(server) = server {
            server.wait_for_ends(1);
        }
    }
    assert_eq!(shop.standard.count(), 0);
    shop.has_no_whole_order();
}

fn framing_is_broken_behind_the_decision(threads: usize) {
    let shop = Shop::start(threads);
    let body = xml_order_first(LARGE, 60_000);
    let mut framed = chunks(&body, 5000);
    let last = framed.len() - 3;
    framed[last] = b'x';
    let mut client = shop.client();
    client.send(chunked_head(XML));
    client.send(&framed[..1000]);
    shop.fast.wait_for_requests(1);
    client.send(&framed[1000..]);
    assert_eq!(client.response().status(), 400);
    shop.fast.wait_for_ends(1);
    shop.has_no_whole_order();
}

fn what_is_wrong_is_logged_and_counted(threads: usize) {
    let shop = Shop::start(threads);
    let refused =
        |reason| shop.switch.metric("pointsman_refusals_total", &[("listener", "shop"), ("reason", reason)]);
    for (path, media_type, body, reason, said) in [
        ("/1", XML, "<a></b>", "content_malformed", "XML: "),
        ("/2", JSON, "{\"order\":{\"total\":60000}}}", "content_malformed", "JSON: "),
        ("/3", JSON, "{\"order\":{\"total\":1,\"total\":2}}", "content_duplicate_key", "JSON: "),
        ("/4", "text/xml; charset=klingon", "<a/>", "content_encoding", ""),
    ] {
        let before = refused(reason);
        let mut client = shop.client();
        client.send(head(media_type, body.len()).replace("/orders", path));
        client.send(body);
        assert_ne!(client.response().status(), 200, "{body}");
        let line = shop.switch.log_of(path);
        let error = line["error"].as_str().expect("a sentence");
        assert!(error.starts_with(said) && !error.is_empty(), "{error}");
        assert_eq!(refused(reason), before + 1.0, "{body}");
    }
}

/// `on_unknown` may send on what is not as it should be, as it came.
fn rules_may_take_what_is_wrong(threads: usize) {
    let body = b"<purchase><totalAmount>60000</purchase>";
    let early = b"<purchase><totalAmount>60000</totalAmount></nonsense>";
    for (policy, server) in [("routeTo(quick)", "fast"), ("skip", "standard")] {
        let shop = Shop::with(threads, &format!("on_unknown {policy};\n{RULES}"), |setup| setup);
        let answer = shop.post(XML, body);
        assert_eq!((answer.status(), answer.server()), (200, server));
        let line = shop.switch.log_of("/orders");
        let logged = if server == "fast" { ("R1", Some("malformed")) } else { ("else", None) };
        assert_eq!((line["rule"].as_str(), line["unknown"].as_str()), (Some(logged.0), logged.1), "{line}");
        assert_eq!(line["error"].as_str(), None, "{line}");
        let origin = if server == "fast" { &shop.fast } else { &shop.standard };
        assert_eq!(origin.last().body.bytes, body);
        // What decided came before what is wrong, however it was cut.
        assert_eq!(shop.post(XML, early).status(), 400, "{policy}");
        let mut client = shop.client();
        client.send(head_with(XML, "Transfer-Encoding: chunked\r\n"));
        client.send(chunks(body, 1));
        assert_eq!(client.response().server(), server);
    }
}

/// `explain` says what becomes of an order that is decided and then wrong, however it comes.
fn what_happens_is_explained(threads: usize) {
    let body = b"<purchase><totalAmount>60000</totalAmount></nonsense>";
    let decided = b"<purchase><totalAmount>60000</totalAmount>".len();
    let head = head(XML, body.len());
    let request = format!("{head}{}", String::from_utf8_lossy(body));
    for (validate, code, said) in [
        (
            "stream",
            0,
            "the server never gets its last byte, and the client gets 400 unless an answer has begun",
        ),
        ("full", 1, "R1: refused with 400: XML: "),
    ] {
        let rules = format!("validate {validate};\n{RULES}");
        let folder = folder(&[("a.rules", &rules), ("order.http", &request)]);
        ends(folder.path(), &["explain", "a.rules", "order.http"], code, &[said]);
        let shop = Shop::with(threads, &rules, |setup| setup);
        assert_eq!(shop.post(XML, body).status(), 400);
        let mut client = shop.client();
        client.send([head.as_bytes(), &body[..decided]].concat());
        let begins = usize::from(validate == "stream");
        shop.fast.wait_for_requests(begins);
        client.send(&body[decided..]);
        assert_eq!(client.response().status(), 400);
        shop.fast.wait_for_ends(begins);
        shop.has_no_whole_order();
        assert_eq!((shop.fast.count(), shop.standard.count()), (begins, 0), "{validate}");
    }
}

/// Nothing goes to a server before all of it has proved well-formed.
fn validated_in_full(threads: usize) {
    let shop = Shop::with(threads, &format!("validate full;\n{RULES}"), |setup| setup);
    for (media_type, body) in broken_at_their_ends() {
        assert_eq!(shop.post(media_type, &body).status(), 400);
        let mut client = shop.client();
        client.send(chunked_head(media_type));
        client.send(chunks(&body, 70_000));
        assert_eq!(client.response().status(), 400);
    }
    assert_eq!((shop.fast.count(), shop.standard.count()), (0, 0));
    let body = xml_order_first(LARGE, 60_000);
    assert_eq!(shop.post(XML, &body).server(), "fast");
    assert!(shop.fast.last().body.bytes == body, "it changed on its way");
}
