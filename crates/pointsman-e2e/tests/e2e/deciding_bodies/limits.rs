//! How much is held, for how long, and who is asked to send it.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pointsman_e2e::{Client, Origin, RawOrigin, Setup, until};

use super::{
    JSON, RULES, Shop, XML, chunked_head, chunks, head, head_with, json_order, xml_order, xml_order_first,
};

pointsman_e2e::for_threads!(
    more_than_may_be_held,
    more_than_may_be_held_is_sent_on,
    what_is_wrong_behind_what_may_be_held,
    more_than_there_is_room_for,
    who_sends_nothing_holds_nothing,
    bodies_that_each_need_more,
    who_finds_no_room_in_time,
    who_has_the_turn_uses_it,
    who_drips_gives_way,
    who_waits_for_a_server_has_no_turn,
    who_has_nothing_to_say_has_no_turn,
    a_client_that_waits_to_be_asked,
    a_client_that_waits_in_vain,
    slow_bodies_end,
    a_reload_meanwhile,
    a_drain_meanwhile
);

const HOLD: &str = "hold_bytes_max = 100_000";

/// A body may be as long as what may be held, and no byte more, wherever it is cut.
fn more_than_may_be_held(threads: usize) {
    let shop = Shop::with(threads, RULES, |setup| setup.limits(HOLD));
    let order = |bytes: usize| {
        let (start, end) = ("<purchase>", "</purchase>");
        format!("{start}{}{end}", " ".repeat(bytes - start.len() - end.len())).into_bytes()
    };
    let body = order(100_000);
    assert_eq!(shop.post(XML, &body).server(), "standard");
    assert!(shop.standard.last().body.bytes == body, "it changed on its way");
    let body = order(100_001);
    let answer = shop.post(XML, &body);
    assert_eq!(answer.status(), 413, "{}", answer.text());
    let mut client = shop.client();
    client.send(chunked_head(XML));
    client.try_send(chunks(&body, 3000)).ok();
    assert_eq!(client.response().status(), 413);
    assert_eq!(shop.standard.count(), 1);
    let reason = [("listener", "shop"), ("reason", "content_limit")];
    let refused = || shop.switch.metric("pointsman_refusals_total", &reason);
    until("both to be counted", || (refused() == 2.0).then_some(()));
    assert_eq!(shop.switch.metric("pointsman_held_bytes", &[("listener", "shop")]), 0.0);
}

/// Where the rules take what could not be decided, the rest is streamed, and still looked into.
fn more_than_may_be_held_is_sent_on(threads: usize) {
    for (policy, server) in [("routeTo(quick)", "fast"), ("skip", "standard")] {
        let rules = format!("on_unknown {policy};\n{RULES}");
        let shop = Shop::with(threads, &rules, |setup| setup.limits(HOLD));
        let body = xml_order(2_000_000, 1);
        let answer = shop.post(XML, &body);
        assert_eq!((answer.status(), answer.server()), (200, server), "{policy}");
        let origin = if server == "fast" { &shop.fast } else { &shop.standard };
        assert!(origin.last().body.bytes == body, "it changed on its way");
        let broken = [&body[..], b"<"].concat();
        let mut client = shop.client();
        client.send(chunked_head(XML));
        client.send(chunks(&broken, 50_000));
        assert_eq!(client.response().status(), 400);
        origin.wait_for_ends(1);
        assert!(!origin.last().complete);
    }
    // In full validates what may be held.
    let shop = Shop::with(threads, &format!("validate full;\n{RULES}"), |setup| setup.limits(HOLD));
    let body = xml_order_first(2_000_000, 60_000);
    assert_eq!(shop.post(XML, &body).server(), "fast");
    assert!(shop.fast.last().body.bytes == body, "it changed on its way");
}

/// That it is too long has decided; what is wrong behind that is refused, also where it is one more limit, and however
/// it comes.
fn what_is_wrong_behind_what_may_be_held(threads: usize) {
    let deep = ["<a>".repeat(70), "</a>".repeat(70)].concat();
    let body = ["<purchase>", &" ".repeat(110_000), &deep, "</purchase>"].concat().into_bytes();
    for rules in ["on_unknown routeTo(quick);\n", "on_unknown skip;\n", "validate full;\non_unknown skip;\n"]
    {
        let shop = Shop::with(threads, &format!("{rules}{RULES}"), |setup| setup.limits(HOLD));
        assert_eq!(shop.post(XML, &body).status(), 413, "{rules}");
        for bytes in [100, 3000, 200_000] {
            let mut client = shop.client();
            client.send(chunked_head(XML));
            client.try_send(chunks(&body, bytes)).ok();
            assert_eq!(client.response().status(), 413, "{rules}");
        }
        shop.has_no_whole_order();
    }
}

/// What could never be held is not waited for.
fn more_than_there_is_room_for(threads: usize) {
    let shop = Shop::with(threads, RULES, |setup| setup.top("hold_total_bytes_max = 1_048_576"));
    assert_eq!(shop.post(XML, &xml_order(900_000, 1)).status(), 200);
    assert_eq!(shop.post(XML, &xml_order(1_100_000, 1)).status(), 413);
}

const TOTAL: &str = "hold_total_bytes_max = 1_048_576";
/// Bodies of so many bytes cannot all be held.
const LONG: usize = 900_000;

fn held(shop: &Shop, listener: &str) -> f64 {
    shop.switch.metric("pointsman_held_bytes", &[("listener", listener)])
}

fn wait_for_waiting(shop: &Shop, count: usize) {
    let waiting = || shop.switch.metric("pointsman_requests_waiting", &[("listener", "shop")]);
    until("them to wait", || (waiting() == count as f64).then_some(()));
}

/// A head takes no room of those that are held, nor does a small body beside it: so many pieces of 16 KiB there are not.
fn who_sends_nothing_holds_nothing(threads: usize) {
    let shop = Shop::with(threads, RULES, |setup| setup.top(TOTAL));
    let begin = |start: &str| {
        let mut client = shop.client();
        client.send(head(JSON, 50));
        client.send(start);
        client
    };
    let _silent: Vec<_> = (0..70).map(|count| begin(if count % 2 == 0 { "" } else { "{" })).collect();
    wait_for_waiting(&shop, 70);
    assert_eq!(held(&shop, "shop"), 0.0);
    for body in [json_order(10, 60_000), json_order(300_000, 60_000)] {
        let mut client = shop.client();
        client.send(head(JSON, body.len()));
        wait_for_waiting(&shop, 71);
        client.send(&body);
        assert_eq!(client.response().server(), "fast");
    }
    assert_eq!(held(&shop, "shop"), 0.0);
}

/// None of them can be held whole beside the others: one after the other goes on all the same.
fn bodies_that_each_need_more(threads: usize) {
    let shop = Shop::with(threads, RULES, |setup| setup.top(TOTAL));
    let body = xml_order(LONG, 60_000);
    let begin = || {
        let mut client = shop.client();
        client.send(head(XML, body.len()));
        client.send(&body[..LONG / 2]);
        client
    };
    let clients: Vec<_> = (0..4).map(|_| begin()).collect();
    wait_for_waiting(&shop, 4);
    std::thread::scope(|scope| {
        for mut client in clients {
            let rest = &body[LONG / 2..];
            scope.spawn(move || {
                client.send(rest);
                let answer = client.response();
                assert_eq!((answer.status(), answer.server()), (200, "fast"), "{}", answer.text());
            });
        }
    });
    assert!(shop.fast.requests().iter().all(|request| request.body.bytes == body));
    assert_eq!(held(&shop, "shop"), 0.0);
}

/// Sends all but the last byte of what takes all but 48 KiB of the room.
fn fill(shop: &Shop, body: &[u8]) -> Client {
    let mut client = shop.client();
    client.send(head(XML, body.len()));
    client.send(&body[..body.len() - 1]);
    until("all room to be taken", || (held(shop, "shop") == 999_424.0).then_some(()));
    client
}

/// A piece of 16 KiB and fifteen of 64 KiB, beside what lies with the head.
fn filling() -> Vec<u8> {
    xml_order(980_000, 1)
}

fn begin_long(client: &mut Client, body: &[u8]) {
    client.send(head(XML, body.len()));
    client.send(&body[..60_000]);
}

/// Who finds no room waits until there is some, or it is its turn, or for as long as a body may pause.
fn who_finds_no_room_in_time(threads: usize) {
    let shop = Shop::with(threads, RULES, |setup| {
        setup.top(TOTAL).rules(RULES).another_listener("impatient").limits("body_ms_max = 200")
    });
    let all = filling();
    let mut first = fill(&shop, &all);
    let body = xml_order(200_000, 1);
    let mut second = shop.client();
    begin_long(&mut second, &body);
    until("its turn", || (held(&shop, "shop") == 999_424.0 + 81_920.0).then_some(()));
    let mut third = Client::plain(shop.switch.address("impatient"));
    third.send(head(XML, body.len()));
    third.try_send(&body).ok();
    let answer = third.response();
    assert_eq!((answer.status(), answer.text().as_str()), (503, "no room left to hold the body\n"));
    assert_eq!(answer.head.field("retry-after"), Some("1"));
    assert_eq!(shop.standard.count(), 0);

    second.send(&body[60_000..]);
    first.send(&all[all.len() - 1..]);
    for client in [&mut second, &mut first] {
        let answer = client.response();
        assert_eq!((answer.status(), answer.server()), (200, "standard"), "{}", answer.text());
    }
    assert_eq!((held(&shop, "shop"), held(&shop, "impatient")), (0.0, 0.0));
    let reason = [("listener", "impatient"), ("reason", "hold")];
    assert_eq!(shop.switch.metric("pointsman_refusals_total", &reason), 1.0);
}

/// All room is taken by the first, the second has the turn, and the third has sent all that it has.
struct Crowded {
    _first: Client,
    slow: Client,
    honest: Client,
}

impl Crowded {
    fn with(shop: &Shop, body: &[u8]) -> Self {
        let first = fill(shop, &filling());
        let (mut slow, mut honest) = (shop.client(), shop.client());
        begin_long(&mut slow, body);
        until("its turn", || (held(shop, "shop") == 999_424.0 + 81_920.0).then_some(()));
        honest.send(head(XML, body.len()));
        honest.send(body);
        Self { _first: first, slow, honest }
    }
}

/// Whose turn it is and who sends nothing gives way to those who do, and to nobody else.
fn who_has_the_turn_uses_it(threads: usize) {
    let shop = Shop::with(threads, RULES, |setup| setup.top(TOTAL));
    let body = xml_order(200_000, 1);
    let Crowded { _first, mut slow, mut honest } = Crowded::with(&shop, &body);
    assert_eq!(honest.response().status(), 200);
    assert_eq!(slow.response().status(), 503);
    assert!(slow.closes());
    // What takes no more than is left does not wait for anybody.
    assert_eq!(shop.post(JSON, &json_order(20_000, 60_000)).server(), "fast");
}

/// A byte now and then is no use of it.
fn who_drips_gives_way(threads: usize) {
    let shop = Shop::with(threads, RULES, |setup| setup.top(TOTAL));
    let body = xml_order(200_000, 1);
    let Crowded { _first, mut slow, mut honest } = Crowded::with(&shop, &body);
    let mut drops = body[60_000..].iter();
    until("the other one's turn", || {
        // Each look asks the switch for its figures, so that drops come hundreds of times a second.
        let is_waited = held(&shop, "shop") > 0.0 && shop.standard.count() == 0;
        slow.try_send([*drops.next().expect("not all of it")]).ok();
        (!is_waited).then_some(())
    });
    assert_eq!(honest.response().status(), 200);
    assert_eq!(slow.response().status(), 503);
}

/// A body that its server has got is in nobody's way, however long the answer takes.
fn who_waits_for_a_server_has_no_turn(threads: usize) {
    let (got, all) = (Arc::new(AtomicUsize::new(0)), xml_order(LONG, 60_000));
    let counted = got.clone();
    let mute = RawOrigin::serving(move |mut socket, _| {
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = socket.read(&mut bytes) {
            counted.fetch_add(count, Ordering::SeqCst);
        }
    });
    let rules = "R: if (xml.purchase/totalAmount > 52000) { routeTo(mute); }\nelse: routeTo(usual);\n";
    let shop =
        Shop::with(threads, rules, |setup| setup.top(TOTAL).pool_at("mute", "", &[("slow", mute.address())]));
    let _first = fill(&shop, &filling());
    let mut second = shop.client();
    second.send(head(XML, all.len()));
    second.send(&all);
    until("the server to have it", || (got.load(Ordering::SeqCst) > all.len()).then_some(()));
    assert_eq!(shop.post(XML, &xml_order(200_000, 1)).server(), "standard");
}

/// It goes on to the next at once, however many have waited for longer.
fn who_has_nothing_to_say_has_no_turn(threads: usize) {
    let shop = Shop::with(threads, RULES, |setup| setup.top(TOTAL));
    let _first = fill(&shop, &filling());
    let body = xml_order(200_000, 60_000);
    let head = head(XML, body.len());
    // All that lies with the head: for more they want room.
    let begin = || {
        let mut client = shop.client();
        client.send([head.as_bytes(), &body[..16_000 - head.len()]].concat());
        client
    };
    let _silent: Vec<_> = (0..60).map(|_| begin()).collect();
    wait_for_waiting(&shop, 61);
    assert_eq!(shop.post(XML, &body).server(), "fast");
    assert_eq!(held(&shop, "shop"), 999_424.0);
}

/// The switch asks for what it wants to know, and the server is not asked again.
fn a_client_that_waits_to_be_asked(threads: usize) {
    let shop = Shop::start(threads);
    for (media_type, body) in [(XML, xml_order(100_000, 60_000)), (JSON, json_order(10, 60_000))] {
        let length = format!("Content-Length: {}\r\nExpect: 100-continue\r\n", body.len());
        let mut client = shop.client();
        client.send(head_with(media_type, &length));
        assert_eq!(client.head().word(1), "100");
        client.send(&body);
        let answer = client.response();
        assert_eq!((answer.status(), answer.server(), answer.interim.len()), (200, "fast", 0));
        assert!(shop.fast.last().body.bytes == body);
        assert_eq!(shop.fast.last().head.field("expect"), None);
    }
    // What the head decides goes on as ever.
    let rules = format!("R0: if (path == \"/orders\") {{ routeTo(quick); }}\n{RULES}");
    let shop = Shop::with(threads, &rules, |setup| setup);
    let mut client = shop.client();
    client.send(head_with(XML, "Content-Length: 4\r\nExpect: 100-continue\r\n"));
    shop.fast.wait_for_requests(1);
    assert_eq!(shop.fast.last().head.field("expect"), Some("100-continue"));
    client.send("<a/>");
    assert_eq!(client.response().server(), "fast");
}

/// A body that is refused before it is asked for is not asked for.
fn a_client_that_waits_in_vain(threads: usize) {
    let rules = format!("R0: if (path == \"/orders\") {{ reject(403); }}\n{RULES}");
    let shop = Shop::with(threads, &rules, |setup| setup);
    let mut client = shop.client();
    client.send(head_with(XML, "Content-Length: 4\r\nExpect: 100-continue\r\n"));
    assert_eq!(client.head().word(1), "403");

    let shop = Shop::with(threads, RULES, |setup| setup.limits("body_bytes_max = 1000"));
    let mut client = shop.client();
    client.send(head_with(XML, "Content-Length: 1001\r\nExpect: 100-continue\r\n"));
    assert_eq!(client.head().word(1), "413");
    let body = xml_order(2000, 1);
    let mut client = shop.client();
    client.send(chunked_head(XML));
    client.try_send(chunks(&body, 500)).ok();
    assert_eq!(client.response().status(), 413);
    assert_eq!(shop.standard.count(), 0);
}

fn slow_bodies_end(threads: usize) {
    let shop = Shop::with(threads, RULES, |setup| setup.limits("body_ms_max = 200"));
    let body = xml_order(1000, 1);
    let mut client = shop.client();
    client.send(head(XML, body.len()));
    client.send(&body[..500]);
    assert_eq!(client.response().status(), 408);
    assert!(client.closes());
    assert_eq!(shop.standard.count(), 0);
    let reason = [("listener", "shop"), ("reason", "body_timeout")];
    assert_eq!(shop.switch.metric("pointsman_refusals_total", &reason), 1.0);
}

/// A request is decided by the rules that it met.
fn a_reload_meanwhile(threads: usize) {
    let (standard, fast) = (Origin::new("standard"), Origin::new("fast"));
    let setup = |rules: &str| {
        let setup = Setup::new(threads).rules(rules);
        setup.pool("usual", &[&standard]).pool("quick", &[&fast])
    };
    let switch = setup(RULES).start();
    let body = xml_order(200_000, 60_000);
    let mut client = switch.client();
    client.send(head(XML, body.len()));
    client.send(&body[..100_000]);
    let waiting = || switch.metric("pointsman_requests_waiting", &[("listener", "shop")]);
    until("it to wait", || (waiting() == 1.0).then_some(()));
    switch.reload(&setup("R9: if (body.size > 1) { reject(403); }"), 2);
    assert_eq!(switch.client().ask("POST", "/", "Content-Length: 2\r\n").status(), 403);
    client.send(&body[100_000..]);
    let answer = client.response();
    assert_eq!((answer.status(), answer.server()), (200, "fast"));
    assert_eq!(switch.log_of("/orders")["rule"], "R1");
}

/// A drain lets what waits for its body come to its end.
fn a_drain_meanwhile(threads: usize) {
    let mut shop = Shop::start(threads);
    let body = xml_order(200_000, 60_000);
    let mut client = shop.client();
    client.send(head(XML, body.len()));
    client.send(&body[..100_000]);
    let waiting = || shop.switch.metric("pointsman_requests_waiting", &[("listener", "shop")]);
    until("it to wait", || (waiting() == 1.0).then_some(()));
    shop.switch.signal("TERM");
    until("the drain", || (shop.switch.admin_get("/health").status() == 503).then_some(()));
    client.send(&body[100_000..]);
    let answer = client.response();
    assert_eq!((answer.status(), answer.server()), (200, "fast"));
    assert_eq!(shop.switch.wait_for_exit(), Some(0));
}
