//! What goes wrong with one of several requests, and what becomes of the others.

use pointsman_e2e::{Client, Setup};

use super::{Over, Shop, expect, get, gets};

pointsman_e2e::for_threads!(
    an_answer_that_breaks_off_drops_those_behind_it,
    one_that_breaks_off_before_its_turn_is_replaced,
    an_answer_without_a_length_is_the_last,
    a_malformed_request_is_refused_in_its_turn,
    a_client_that_resets_leaves_nothing,
    a_client_that_ends_gets_its_answers,
    a_client_that_takes_nothing,
    cut_by_a_drain,
    little_memory
);

const DROPPED: &str = "an answer before it ended the connection";

fn expect_unanswered(shop: &Shop, path: &str, error: &str) {
    let entry = shop.switch.log_of(path);
    assert_eq!((&entry["error"], entry.get("status")), (&error.into(), None), "{entry}");
}

/// Nothing of the answers behind it is sent, and their servers are let go.
fn an_answer_that_breaks_off_drops_those_behind_it(threads: usize) {
    for over in [Over::Plain, Over::Tls] {
        let shop = Shop::with(threads, "concurrent", over, |setup| setup);
        let mut client = shop.client();
        client.send(gets(&["/a/half/dies/1", "/b/2", "/c/never/3"]));
        // Its head has gone out before the rest is known to be missing.
        assert_eq!(client.head().field("x-server"), Some("a"));
        shop.stage.wait_for("answers /b/2");
        shop.stage.wait_for("GET /c/never/3");
        shop.wait_in_flight("b", 0.0);
        shop.stage.open("/a/half/dies/1");
        assert!(client.rest().is_err(), "half an answer looks whole");
        shop.stage.wait_for("closed /c/never/3");
        let entry = shop.switch.log_of("/a/half/dies/1");
        let expected = (&"the server closed the connection".into(), &200.into());
        assert_eq!((&entry["error"], &entry["status"]), expected, "{entry}");
        expect_unanswered(&shop, "/b/2", DROPPED);
        expect_unanswered(&shop, "/c/never/3", DROPPED);
    }
}

/// The client has seen nothing of it: it gets 502 in that place, and all others.
fn one_that_breaks_off_before_its_turn_is_replaced(threads: usize) {
    for over in [Over::Plain, Over::Tls] {
        let shop = Shop::with(threads, "concurrent", over, |setup| setup);
        let mut client = shop.client();
        client.send(gets(&["/a/gated/1", "/b/dies/2", "/d/3", "/c/4"]));
        shop.stage.wait_for("answers /b/dies/2");
        shop.stage.wait_for("answers /c/4");
        for server in ["b", "c", "d"] {
            shop.wait_in_flight(server, 0.0);
        }
        shop.stage.open("/a/gated/1");
        expect(&mut client, "/a/gated/1");
        for error in ["the server closed the connection\n", "the server refused the connection\n"] {
            let answer = client.response();
            assert_eq!((answer.status(), answer.text().as_str()), (502, error));
            assert_eq!((answer.server(), answer.head.field("connection")), ("", None));
        }
        expect(&mut client, "/c/4");
        let entry = shop.switch.log_of("/b/dies/2");
        let expected = (&"the server closed the connection".into(), &502.into());
        assert_eq!((&entry["error"], &entry["status"]), expected, "{entry}");
        client.send(get("/b/5"));
        expect(&mut client, "/b/5");
    }
}

fn an_answer_without_a_length_is_the_last(threads: usize) {
    let shop = Shop::open(threads, "concurrent");
    let mut client = shop.client();
    client.send(gets(&["/a/gated/1", "/b/until-close/2", "/c/3"]));
    for target in ["/b/until-close/2", "/c/3"] {
        shop.stage.wait_for(&format!("answers {target}"));
    }
    shop.wait_in_flight("c", 0.0);
    shop.stage.open("/a/gated/1");
    expect(&mut client, "/a/gated/1");
    let last = expect(&mut client, "/b/until-close/2");
    assert_eq!(last.head.field("connection"), Some("close"));
    assert!(client.closes());
    expect_unanswered(&shop, "/c/3", DROPPED);
}

fn a_malformed_request_is_refused_in_its_turn(threads: usize) {
    for mode in ["concurrent", "latest"] {
        let shop = Shop::open(threads, mode);
        let mut client = shop.client();
        let malformed = "GET /b/2 HTTP/1.1\r\nHost: shop.example\r\nHost: shop.example\r\n\r\n";
        client.send(format!("{}{malformed}{}", get("/a/gated/1"), get("/c/3")));
        shop.stage.wait_for("GET /a/gated/1");
        shop.stage.open("/a/gated/1");
        expect(&mut client, "/a/gated/1");
        let refused = client.response();
        assert_eq!((refused.status(), refused.head.field("connection")), (400, Some("close")));
        assert!(client.closes());
        assert_eq!(shop.stage.told(), ["GET /a/gated/1", "answers /a/gated/1"]);
    }
}

fn a_client_that_resets_leaves_nothing(threads: usize) {
    for over in [Over::Plain, Over::Tls] {
        let shop = Shop::with(threads, "concurrent", over, |setup| setup);
        let mut client = shop.client();
        client.send(gets(&["/a/never/1", "/b/2", "/c/never/3"]));
        shop.stage.wait_for("GET /a/never/1");
        shop.stage.wait_for("GET /c/never/3");
        shop.stage.wait_for("answers /b/2");
        shop.wait_in_flight("b", 0.0);
        client.reset();
        for target in ["/a/never/1", "/c/never/3"] {
            shop.stage.wait_for(&format!("closed {target}"));
        }
        for target in ["/a/never/1", "/b/2", "/c/never/3"] {
            expect_unanswered(&shop, target, "the client closed the connection");
        }
    }
}

/// It may have said all, and wait.
fn a_client_that_ends_gets_its_answers(threads: usize) {
    let shop = Shop::open(threads, "concurrent");
    let mut client = shop.client();
    client.send(gets(&["/a/gated/1", "/b/2", "/c/3"]));
    client.finish_sending();
    for target in ["/b/2", "/c/3"] {
        shop.stage.wait_for(&format!("answers {target}"));
    }
    shop.stage.open("/a/gated/1");
    for target in ["/a/gated/1", "/b/2", "/c/3"] {
        expect(&mut client, target);
    }
    assert!(client.closes());
}

/// It is one answer that it does not take; the others are only behind that.
fn a_client_that_takes_nothing(threads: usize) {
    let limits = |setup: Setup| setup.limits("write_ms_max = 300");
    let shop = Shop::with(threads, "concurrent", Over::Plain, limits);
    let mut client = Client::cramped(shop.switch.address("shop"), 4096);
    client.send(gets(&["/a/big/1", "/b/2"]));
    shop.stage.wait_for("answers /b/2");
    let entry = shop.switch.log_of("/a/big/1");
    let expected = (&"the client took nothing of the answer in time".into(), &200.into());
    assert_eq!((&entry["error"], &entry["status"]), expected, "{entry}");
    expect_unanswered(&shop, "/b/2", DROPPED);
    let refused = shop.switch.metric("pointsman_refusals_total", &[("reason", "write_timeout")]);
    assert!((refused - 1.0).abs() < 0.5, "{refused}");
}

fn cut_by_a_drain(threads: usize) {
    let mut shop = Shop::with(threads, "concurrent", Over::Plain, |setup| setup.top("drain_ms_max = 0"));
    let mut client = shop.client();
    client.send(gets(&["/a/half/1", "/b/2", "/c/never/3"]));
    assert_eq!(client.head().field("x-server"), Some("a"));
    shop.stage.wait_for("answers /b/2");
    shop.stage.wait_for("GET /c/never/3");
    shop.wait_in_flight("b", 0.0);
    shop.switch.signal("TERM");
    assert!(client.rest().is_err(), "an answer that was cut looks whole");
    assert_eq!(shop.switch.wait_for_exit(), Some(1));
    assert_eq!(shop.switch.log_of("/a/half/1")["status"], 200);
    for target in ["/b/2", "/c/never/3"] {
        expect_unanswered(&shop, target, "cut off: the drain was over");
    }
}

/// Requests that find no memory beside others wait for their turn instead.
fn little_memory(threads: usize) {
    for over in [Over::Plain, Over::Tls] {
        let memory = "buffer_bytes_max = 1048576\nupstream_idle_connections_max = 100";
        let shop = Shop::with(threads, "concurrent", over, |setup| {
            setup.top(memory).limits("pipeline_requests_max = 64\npipeline_bytes_max = 100000000")
        });
        let mut client = shop.client();
        let targets: Vec<_> = (0..64).map(|number| format!("/b/{number}")).collect();
        client.send(format!(
            "{}{}",
            get("/a/gated/1"),
            targets.iter().map(|target| get(target)).collect::<String>()
        ));
        shop.stage.wait_for("GET /b/0");
        shop.stage.open("/a/gated/1");
        expect(&mut client, "/a/gated/1");
        for target in &targets {
            expect(&mut client, target);
        }
    }
}
