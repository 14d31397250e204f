//! The same over HTTP/2, of the client or to the server.

use pointsman_e2e::h2_wire::{flag, setting};
use pointsman_e2e::{H2Client, H2Origin, Setup, until};

use super::{
    JSON, RULES, Shop, XML, chunked_head, chunks, head, json_order, json_order_first, xml_order,
    xml_order_first,
};
use crate::http2::begin;
use crate::server_http2::H2;

pointsman_e2e::for_threads!(
    large_orders_by_streams,
    bound_by_its_first_bytes,
    malformed_at_the_end_of_a_stream,
    a_stream_that_waits_to_be_asked,
    streams_that_are_reset,
    streams_that_wait_hold_up_no_others,
    to_servers_of_http2,
    malformed_at_the_end_to_http2,
    sent_again_to_another_connection
);

const LARGE: usize = 8 * 1024 * 1024;

fn post(client: &mut H2Client, stream: u32, media_type: &str, more: &[(&str, &str)]) {
    client.post(stream, "/orders", &[&[("content-type", media_type)], more].concat());
}

fn large_orders_by_streams(threads: usize) {
    let shop = Shop::start(threads);
    let mut client = begin(&shop.switch);
    for (stream, media_type, body) in [(1, XML, xml_order(LARGE, 1)), (3, JSON, json_order(LARGE, 1))] {
        post(&mut client, stream, media_type, &[]);
        client.send_content(stream, flag::END_STREAM, &body).expect("the switch reads");
        assert_eq!(client.answer(stream).field("x-server").as_deref(), Some("standard"));
        assert!(shop.standard.last().body.bytes == body, "{media_type}: it changed on its way");
    }
}

/// With a length and without: the server has the head before the second KiB is sent.
fn bound_by_its_first_bytes(threads: usize) {
    let shop = Shop::start(threads);
    let body = json_order_first(LARGE, 60_000);
    let length = body.len().to_string();
    let mut client = begin(&shop.switch);
    let fields: [&[(&str, &str)]; 2] = [&[], &[("content-length", &length)]];
    for (count, more) in fields.into_iter().enumerate() {
        let stream = 1 + 2 * count as u32;
        post(&mut client, stream, JSON, more);
        client.send_content(stream, 0, &body[..1024]).expect("the switch reads");
        shop.fast.wait_for_requests(count + 1);
        client.send_content(stream, flag::END_STREAM, &body[1024..]).expect("the switch reads");
        assert_eq!(client.answer(stream).field("x-server").as_deref(), Some("fast"));
        assert!(shop.fast.last().body.bytes == body, "it changed on its way");
    }
}

fn malformed_at_the_end_of_a_stream(threads: usize) {
    let shop = Shop::start(threads);
    let mut body = xml_order_first(300_000, 60_000);
    body.extend_from_slice(b"<");
    let mut client = begin(&shop.switch);
    post(&mut client, 1, XML, &[]);
    client.send_content(1, 0, &body[..1024]).expect("the switch reads");
    shop.fast.wait_for_requests(1);
    client.send_content(1, flag::END_STREAM, &body[1024..]).expect("the switch reads");
    assert_eq!(client.answer(1).status(), 400);
    shop.fast.wait_for_ends(1);
    shop.has_no_whole_order();
    // The other streams of the connection go on.
    assert_eq!(client.fetch(3, "/").status(), 200);
}

fn a_stream_that_waits_to_be_asked(threads: usize) {
    let shop = Shop::start(threads);
    let mut client = begin(&shop.switch);
    post(&mut client, 1, JSON, &[("expect", "100-continue")]);
    client.wait("100", |client| !client.seen(1).interim.is_empty());
    client.send_content(1, flag::END_STREAM, &json_order(10, 60_000)).expect("the switch reads");
    let answer = client.answer(1);
    assert_eq!((answer.status(), answer.interim.len()), (200, 1));
    assert_eq!(shop.fast.last().head.field("expect"), None);
}

/// What is held for a stream is let go with it.
fn streams_that_are_reset(threads: usize) {
    let shop = Shop::start(threads);
    let mut client = begin(&shop.switch);
    post(&mut client, 1, XML, &[]);
    client.send_content(1, 0, &xml_order(300_000, 1)[..200_000]).expect("the switch reads");
    let listener = [("listener", "shop")];
    let held = || shop.switch.metric("pointsman_held_bytes", &listener);
    until("it to be held", || (held() > 100_000.0).then_some(()));
    client.send(&pointsman_e2e::Frame::rst_stream(1, 8)).expect("the switch reads");
    until("it to be let go", || (held() == 0.0).then_some(()));
    until("it to wait no more", || {
        (shop.switch.metric("pointsman_requests_waiting", &listener) == 0.0).then_some(())
    });
    assert_eq!(client.fetch(3, "/").status(), 200);
    assert_eq!(shop.standard.count(), 1);
}

/// Their heads decide: what waits takes nothing of the connection's window.
fn streams_that_wait_hold_up_no_others(threads: usize) {
    let rules = format!("R0: if (path == \"/free\") {{ routeTo(usual); }}\n{RULES}");
    let shop = Shop::with(threads, &rules, |setup| setup.top("hold_total_bytes_max = 1_048_576"));
    let body = xml_order(980_000, 1);
    let mut first = shop.client();
    first.send(head(XML, body.len()));
    first.send(&body[..body.len() - 1]);
    let held = || shop.switch.metric("pointsman_held_bytes", &[("listener", "shop")]);
    until("all room to be taken", || (held() == 999_424.0).then_some(()));
    let mut client = begin(&shop.switch);
    // More than the connection's window, none of which is read while the others wait for the turn of the first.
    for stream in [1, 3, 5, 7, 9, 11] {
        client.turn();
        post(&mut client, stream, XML, &[]);
        let room = client.room(stream).min(250_000);
        client.send_content(stream, 0, &body[..room]).expect("there is leave");
    }
    client.post(13, "/free", &[]);
    client.send_content(13, flag::END_STREAM, &body[..300_000]).expect("the switch reads");
    assert_eq!(client.answer(13).field("x-server").as_deref(), Some("standard"));
    assert_eq!(shop.standard.last().body.bytes.len(), 300_000);
    first.send(&body[body.len() - 1..]);
    assert_eq!(first.response().status(), 200);
}

fn before_http2(threads: usize, server: &H2Origin) -> Setup {
    let setup = Setup::new(threads).rules(RULES);
    setup.pool_at("usual", H2, &[("a", server.address())]).pool_at("quick", H2, &[("b", server.address())])
}

fn to_servers_of_http2(threads: usize) {
    let server = H2Origin::echoing(&[(setting::INITIAL_WINDOW_SIZE, 1000)]);
    let switch = before_http2(threads, &server).start();
    for body in [xml_order(1_000_000, 1), xml_order_first(1_000_000, 60_000)] {
        let mut client = switch.client();
        client.send(head(XML, body.len()));
        client.send(&body);
        assert_eq!(client.response().text(), "/orders");
        assert!(server.last().body == body, "it changed on its way");
        let mut client = switch.client();
        client.send(chunked_head(XML));
        client.send(chunks(&body, 7001));
        assert_eq!(client.response().text(), "/orders");
        assert!(server.last().body == body, "it changed on its way");
    }
}

/// The stream is reset, and never ended.
fn malformed_at_the_end_to_http2(threads: usize) {
    let server = H2Origin::serving(&[], |peer| {
        while let Some(request) = peer.next_head() {
            peer.wait(|peer| {
                let request = peer.request(request.stream);
                request.is_whole || request.reset.is_some()
            });
        }
    });
    let switch = before_http2(threads, &server).start();
    let mut body = xml_order_first(300_000, 60_000);
    body.pop();
    body.push(b' ');
    for (count, is_chunked) in [false, true].into_iter().enumerate() {
        let (head, sent) = match is_chunked {
            false => (head(XML, body.len()), body.clone()),
            true => (chunked_head(XML), chunks(&body, 5000)),
        };
        let mut client = switch.client();
        client.send(head);
        client.send(&sent[..1024]);
        server.wait_for_requests(count + 1);
        client.send(&sent[1024..]);
        assert_eq!(client.response().status(), 400);
        until("the stream to be reset", || server.last().reset.is_some().then_some(()));
        assert!(!server.last().is_whole);
    }
}

/// What is held may be sent again where the server has not looked at it.
fn sent_again_to_another_connection(threads: usize) {
    const REFUSED_STREAM: u32 = 7;
    let server = H2Origin::serving(&[], |peer| {
        let mut refused = 0;
        while let Some(request) = peer.next_whole() {
            if refused < 2 {
                refused += 1;
                peer.send(&pointsman_e2e::Frame::rst_stream(request.stream, REFUSED_STREAM));
            } else {
                peer.answer(request.stream, "200", &[], b"fine");
            }
        }
    });
    let switch = before_http2(threads, &server).start();
    let body = xml_order(60_000, 1);
    let mut client = switch.client();
    client.send(head(XML, body.len()));
    client.send(&body);
    assert_eq!(client.response().status(), 200);
    assert_eq!(switch.log_of("/orders")["tries"], 3);
    let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
    assert!(bodies == [body.clone(), body.clone(), body], "it changed on its way");
}
