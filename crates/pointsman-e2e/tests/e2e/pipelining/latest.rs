//! `pipeline = "latest"`: a newer request takes the place of the one before it.

use super::{Over, Shop, expect, get, gets};

pointsman_e2e::for_threads!(
    it_is_overtaken,
    late_answers_are_nobodys,
    only_the_newest_of_many_goes_on,
    an_answer_that_has_begun_ends_the_connection,
    an_answer_that_is_whole_stays,
    what_may_have_an_effect_is_finished,
    an_unsafe_request_overtakes
);

const OVERTAKEN: &str = "overtaken by a newer request";

/// It is answered in its place all the same, and its server let go.
fn it_is_overtaken(threads: usize) {
    for over in [Over::Plain, Over::Tls] {
        let shop = Shop::with(threads, "latest", over, |setup| setup);
        let mut client = shop.client();
        client.send(get("/a/never/1"));
        shop.stage.wait_for("GET /a/never/1");
        client.send("HEAD /b/never/2 HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        shop.stage.wait_for("closed /a/never/1");
        shop.stage.wait_for("HEAD /b/never/2");
        client.send(get("/c/3"));
        let overtaken = client.response();
        assert_eq!((overtaken.status(), overtaken.text()), (503, format!("{OVERTAKEN}\n")));
        assert_eq!(overtaken.head.field("connection"), None);
        shop.stage.wait_for("closed /b/never/2");
        assert_eq!(client.response_to_head().status(), 503);
        expect(&mut client, "/c/3");
        for (path, server) in [("/a/never/1", "a"), ("/b/never/2", "b")] {
            let entry = shop.switch.log_of(path);
            let expected = (&OVERTAKEN.into(), &503.into(), &server.into());
            assert_eq!((&entry["error"], &entry["status"], &entry["server"]), expected, "{entry}");
        }
        let overtaken = shop.switch.metric("pointsman_refusals_total", &[("reason", "overtaken")]);
        assert!((overtaken - 2.0).abs() < 0.5, "{overtaken}");
        client.send(get("/a/4"));
        expect(&mut client, "/a/4");
    }
}

/// Three servers: the fast one is asked last and answers first, and what the slow ones then say reaches nobody.
fn late_answers_are_nobodys(threads: usize) {
    for over in [Over::Plain, Over::Tls] {
        let shop = Shop::with(threads, "latest", over, |setup| setup);
        let mut client = shop.client();
        let slow = ["/a/gated/1", "/b/half/gated/2"];
        for target in slow {
            client.send(get(target));
            shop.stage.wait_for(&format!("GET {target}"));
        }
        client.send(get("/c/3"));
        for _ in slow {
            assert_eq!(client.response().status(), 503);
        }
        expect(&mut client, "/c/3");
        for target in slow.into_iter().rev() {
            assert!(!shop.stage.has(&format!("answers {target}")), "{target} was waited for");
            shop.stage.open(target);
            shop.stage.wait_for(&format!("answers {target}"));
        }
        for target in ["/a/4", "/b/5", "/c/6"] {
            client.send(get(target));
            expect(&mut client, target);
        }
    }
}

/// Those that come together are looked at together: only the last one is sent to a server.
fn only_the_newest_of_many_goes_on(threads: usize) {
    let shop = Shop::open(threads, "latest");
    let mut client = shop.client();
    client.send(gets(&["/a/1", "/b/2", "/a/3", "/c/4"]));
    for path in ["/a/1", "/b/2", "/a/3"] {
        assert_eq!(client.response().status(), 503);
        let entry = shop.switch.log_of(path);
        assert_eq!((&entry["error"], entry.get("server")), (&OVERTAKEN.into(), None), "{entry}");
    }
    expect(&mut client, "/c/4");
    assert_eq!(shop.stage.told(), ["GET /c/4", "answers /c/4"]);
}

fn an_answer_that_has_begun_ends_the_connection(threads: usize) {
    for over in [Over::Plain, Over::Tls] {
        let shop = Shop::with(threads, "latest", over, |setup| setup);
        let mut client = shop.client();
        client.send(get("/a/half/1"));
        assert_eq!(client.head().field("x-server"), Some("a"));
        client.send(get("/b/2"));
        assert!(client.rest().is_err(), "half an answer looks whole");
        let entry = shop.switch.log_of("/a/half/1");
        assert_eq!((&entry["error"], &entry["status"]), (&OVERTAKEN.into(), &200.into()), "{entry}");
        shop.wait_in_flight("a", 0.0);
        let entry = shop.switch.log_of("/b/2");
        let expected = (&"an answer before it ended the connection".into(), None);
        assert_eq!((&entry["error"], entry.get("status")), expected, "{entry}");
        assert!(!shop.stage.has("GET /b/2"));
        shop.stage.open("/a/half/1");
    }
}

/// What the switch has of an answer is sent, whatever comes.
fn an_answer_that_is_whole_stays(threads: usize) {
    let shop = Shop::open(threads, "latest");
    let mut client = shop.client();
    for round in 0..20 {
        let targets = [format!("/a/{round}"), format!("/b/{round}")];
        client.send(get(&targets[0]));
        shop.stage.wait_for(&format!("sent {}", targets[0]));
        shop.wait_in_flight("a", 0.0);
        client.send(get(&targets[1]));
        expect(&mut client, &targets[0]);
        expect(&mut client, &targets[1]);
    }
}

/// A server may have done already what it was asked to, so its answer is waited for.
fn what_may_have_an_effect_is_finished(threads: usize) {
    for (method, content) in [("POST", "Content-Length: 3\r\n\r\nabc"), ("DELETE", "\r\n")] {
        let shop = Shop::open(threads, "latest");
        let mut client = shop.client();
        client.send(format!("{method} /a/gated/1 HTTP/1.1\r\nHost: shop.example\r\n{content}"));
        shop.stage.wait_for(&format!("{method} /a/gated/1"));
        client.send(gets(&["/b/2", "/c/3"]));
        shop.stage.open("/a/gated/1");
        expect(&mut client, "/a/gated/1");
        assert_eq!(client.response().status(), 503);
        expect(&mut client, "/c/3");
        shop.stage.expect_order("answers /a/gated/1", "GET /c/3");
    }
}

fn an_unsafe_request_overtakes(threads: usize) {
    let shop = Shop::open(threads, "latest");
    let mut client = shop.client();
    client.send(get("/a/never/1"));
    shop.stage.wait_for("GET /a/never/1");
    client.send("POST /b/2 HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(client.response().status(), 503);
    expect(&mut client, "/b/2");
    shop.stage.wait_for("closed /a/never/1");
}
