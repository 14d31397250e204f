//! What another server is asked for, for which requests, how often, and how long that may take.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use pointsman_e2e::{Exchange, Origin, Setup, Switch, Then, ok};

pointsman_e2e::for_threads!(
    stalled_then_next,
    stalled_and_not_said,
    stalled_in_the_head,
    torn_in_the_head,
    statuses,
    the_last_answer_is_passed_on,
    methods,
    nothing_at_all,
    all_tries_together,
    used_up,
    what_costs_nothing,
    a_body_that_is_held
);

/// Servers that stall as long as the sender lives, each after it has said this much.
fn stalling<const COUNT: usize>(says: &'static str) -> ([Origin; COUNT], Sender<()>) {
    let (alive, over) = channel::<()>();
    let over: Arc<Mutex<Receiver<()>>> = Arc::new(Mutex::new(over));
    let origins = std::array::from_fn(|number| {
        let over = over.clone();
        Origin::answering(&format!("stalled{number}"), move |exchange: &mut Exchange<'_>| {
            exchange.send(says);
            over.lock().expect("no panic under the lock").recv().unwrap_or_default();
            Then::Close
        })
    });
    (origins, alive)
}

/// Servers of which the first that is asked does something else than answer.
fn first_fails(
    first: impl Fn(&mut Exchange<'_>) -> Then + Send + Sync + 'static,
) -> ([Origin; 2], Arc<AtomicUsize>) {
    let (seen, first) = (Arc::new(AtomicUsize::new(0)), Arc::new(first));
    let origins = ["one", "two"].map(|name| {
        let (seen, first) = (seen.clone(), first.clone());
        Origin::answering(name, move |exchange: &mut Exchange<'_>| {
            match seen.fetch_add(1, Ordering::SeqCst) {
                0 => first(exchange),
                _ => ok(exchange),
            }
        })
    });
    (origins, seen)
}

fn before(threads: usize, keys: &str, origins: &[Origin]) -> Switch {
    let servers: Vec<_> = origins.iter().map(|origin| (origin.name(), origin.address())).collect();
    Setup::new(threads).pool_at("standard", keys, &servers).start()
}

const ON_TIMEOUT: &str = "retry_on = [\"connect\", \"reset\", \"timeout\"]\ntries_max = 4\ntry_ms_max = 200";

/// Whatever is idempotent goes to the server that answers, and no other one is asked twice.
fn stalled_then_next(threads: usize) {
    let (stalled, _alive) = stalling::<2>("");
    let well = Origin::new("well");
    let servers = [
        ("a", stalled[0].address()),
        ("b", stalled[1].address()),
        ("well", well.address()),
        ("dead", Origin::dead_address()),
    ];
    let switch = Setup::new(threads).pool_at("standard", ON_TIMEOUT, &servers).start();
    let mut client = switch.client();
    for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
        for _ in 0..3 {
            let answer = client.ask(method, "/", "Content-Length: 0\r\n");
            assert_eq!((answer.status(), answer.server()), (200, "well"), "{method}");
        }
    }
    assert!(stalled.iter().map(Origin::count).sum::<usize>() > 0, "none was asked");
    let (before, well_before) = (stalled.iter().map(Origin::count).sum::<usize>(), well.count());
    let statuses: Vec<_> =
        (0..4).map(|_| client.ask("POST", "/", "Content-Length: 0\r\n").status()).collect();
    let asked = stalled.iter().map(Origin::count).sum::<usize>() - before;
    assert_eq!(
        statuses.iter().filter(|status| **status == 504).count(),
        asked,
        "{statuses:?}: a POST is sent once"
    );
    assert_eq!(well.count() - well_before, 4 - asked);
}

/// Where it does not stand in `retry_on`, who is too slow is not followed by another.
fn stalled_and_not_said(threads: usize) {
    let (stalled, _alive) = stalling::<2>("");
    let switch = before(threads, "try_ms_max = 150", &stalled);
    assert_eq!(switch.get("/").status(), 504);
    assert_eq!(stalled.iter().map(Origin::count).sum::<usize>(), 1);
    assert_eq!(switch.log_of("/")["tries"], 1);
}

/// Half a head is nothing that a client has seen.
fn stalled_in_the_head(threads: usize) {
    let (stalled, _alive) = stalling::<1>("HTTP/1.1 200 OK\r\nX-Half: ");
    let well = Origin::new("well");
    let servers = [("stalled", stalled[0].address()), ("well", well.address())];
    let switch = Setup::new(threads).pool_at("standard", ON_TIMEOUT, &servers).start();
    for _ in 0..4 {
        assert_eq!(switch.get("/").server(), "well");
    }
    assert!(stalled[0].count() > 0, "it was not asked");
    let failures =
        switch.metric("pointsman_server_failures_total", &[("server", "stalled"), ("kind", "timeout")]);
    assert!((failures - stalled[0].count() as f64).abs() < 0.5, "{failures}");
}

fn torn_in_the_head(threads: usize) {
    let torn = |exchange: &mut Exchange<'_>| {
        exchange.send("HTTP/1.1 200 OK\r\nX-Half: ");
        Then::Close
    };
    let (origins, seen) = first_fails(torn);
    let switch = before(threads, "", &origins);
    assert_eq!(switch.get("/").status(), 200);
    assert_eq!(seen.load(Ordering::SeqCst), 2);
}

/// Of these three each by itself, and no other status.
fn statuses(threads: usize) {
    let lines = ["500 Oops", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"];
    for line in lines {
        let status: u16 = line[..3].parse().expect("three digits");
        let fails = move |exchange: &mut Exchange<'_>| {
            exchange.body();
            exchange.answer(line, "with a body")
        };
        for (keys, is_tried) in [
            (format!("retry_on = [\"status-{}\"]", status.max(502)), status > 500),
            ("retry_on = [\"connect\", \"reset\", \"timeout\"]".to_owned(), false),
        ] {
            let (origins, seen) = first_fails(fails);
            let switch = before(threads, &keys, &origins);
            let answer = switch.get("/");
            let expected = if is_tried { (200, 2) } else { (status, 1) };
            assert_eq!((answer.status(), seen.load(Ordering::SeqCst)), expected, "{keys}");
            let (origins, _) = first_fails(fails);
            let switch = before(threads, &keys, &origins);
            assert_eq!(switch.client().ask("POST", "/", "Content-Length: 0\r\n").status(), status, "{keys}");
        }
    }
}

/// Where all say so, or none is left, the client gets what the last one said, and not a word of the switch.
fn the_last_answer_is_passed_on(threads: usize) {
    for (tries_max, asked) in [(2, 2), (5, 3)] {
        let fails =
            |exchange: &mut Exchange<'_>| exchange.answer("503 Service Unavailable", "come back later");
        let origins = ["one", "two", "three"].map(|name| Origin::answering(name, fails));
        let keys = format!("retry_on = [\"status-503\"]\ntries_max = {tries_max}");
        let switch = before(threads, &keys, &origins);
        let mut client = switch.client();
        for round in 1..=3 {
            let answer = client.get("/");
            assert_eq!((answer.status(), answer.text().as_str()), (503, "come back later"));
            assert_eq!(origins.iter().map(Origin::count).sum::<usize>(), asked * round);
        }
    }
}

/// After a byte was sent, only these.
fn methods(threads: usize) {
    for (keys, repeated) in [
        ("retry_methods = \"any\"", ["GET", "POST", "PUT", "PATCH"].as_slice()),
        ("retry_methods = \"safe\"", &["GET"]),
        ("retry_methods = [\"POST\"]", &["POST"]),
        ("retry_methods = []", &[]),
    ] {
        for method in ["GET", "POST", "PUT", "PATCH"] {
            let (origins, seen) = first_fails(|exchange| {
                exchange.body();
                Then::Close
            });
            let switch = before(threads, keys, &origins);
            let answer = switch.client().ask(method, "/", "Content-Length: 0\r\n");
            let expected = if repeated.contains(&method) { (200, 2) } else { (502, 1) };
            assert_eq!((answer.status(), seen.load(Ordering::SeqCst)), expected, "{keys}, {method}");
        }
    }
}

/// `[]` is one try, also where nobody could be connected to.
fn nothing_at_all(threads: usize) {
    let well = Origin::new("well");
    let servers = [("dead", Origin::dead_address()), ("well", well.address())];
    let switch = Setup::new(threads).pool_at("standard", "retry_on = []", &servers).start();
    let statuses: Vec<_> = (0..8).map(|_| switch.get("/").status()).collect();
    let failed = statuses.iter().filter(|status| **status == 502).count();
    assert!(failed > 0 && failed + well.count() == 8, "{statuses:?}");
}

/// The tries of a request end with its time, and so does its upload.
fn all_tries_together(threads: usize) {
    let (stalled, _alive) = stalling::<3>("");
    let keys = "retry_on = [\"timeout\"]\ntries_max = 16\ntry_ms_max = 400\nrequest_ms_max = 600";
    let switch = before(threads, keys, &stalled);
    assert_eq!(switch.get("/").status(), 504);
    assert_eq!(switch.log_of("/")["tries"], 2);
    let mut client = switch.client();
    client.send("PUT /slow HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 10\r\n\r\nhalf");
    assert_eq!(client.response().status(), 408, "it is the client that is waited for");
}

/// Of ten seconds so many for each, and a part of the requests: then the first failure is the answer, and says so.
fn used_up(threads: usize) {
    for (keys, requests, again, ends_over) in [
        ("retries_percent_max = 0\nretries_per_second_min = 1", 25, 10, true),
        ("retries_percent_max = 20\nretries_per_second_min = 0", 30, 6, false),
        ("retries_percent_max = 50\nretries_per_second_min = 1", 20, 20, false),
        ("retries_percent_max = 0\nretries_per_second_min = 0", 5, 0, true),
    ] {
        for (cause, fails) in [("reset", None), ("status-503", Some("503 Service Unavailable"))] {
            let origins = ["one", "two"].map(|name| {
                Origin::answering(name, move |exchange: &mut Exchange<'_>| match fails {
                    Some(line) => exchange.answer(line, ""),
                    None => Then::Close,
                })
            });
            let keys = format!("retry_on = [\"{cause}\"]\nidle_connections_max = 0\n{keys}");
            let switch = before(threads, &keys, &origins);
            let began = std::time::Instant::now();
            for number in 1..=requests {
                assert!(switch.get(&format!("/{number}")).status() >= 502);
            }
            // What left the window meanwhile, on a machine that is too busy, came back.
            if began.elapsed().as_secs() < 8 {
                assert_eq!(origins.iter().map(Origin::count).sum::<usize>(), requests + again, "{keys}");
                let refused = switch.metric("pointsman_server_retries_over_budget_total", &[]);
                assert!((refused - (requests - again) as f64).abs() < 0.5, "{refused}: {keys}");
                let line = switch.log_of(&format!("/{requests}"));
                let expected = if ends_over { (Some(1), Some(true)) } else { (Some(2), None) };
                assert_eq!((line["tries"].as_u64(), line["over_budget"].as_bool()), expected, "{keys}");
            }
        }
    }
}

/// Who found no server asks for the first time at the next one; and who finds a connection closed that was kept.
fn what_costs_nothing(threads: usize) {
    let well = Origin::new("well");
    let servers = [("dead", Origin::dead_address()), ("well", well.address())];
    let keys = "retries_percent_max = 0\nretries_per_second_min = 0";
    let switch = Setup::new(threads).pool_at("standard", keys, &servers).start();
    for _ in 0..20 {
        assert_eq!(switch.get("/").status(), 200);
    }
    assert!(switch.metric("pointsman_server_retries_total", &[("server", "well")]) > 0.5);
    assert!(switch.metric("pointsman_server_retries_over_budget_total", &[]) < 0.5);
}

/// A body that came with its head is held whole, and sent again.
fn a_body_that_is_held(threads: usize) {
    let (stalled, _alive) = stalling::<1>("");
    let well = Origin::answering("well", pointsman_e2e::echo);
    let servers = [("stalled", stalled[0].address()), ("well", well.address())];
    let switch = Setup::new(threads).pool_at("standard", ON_TIMEOUT, &servers).start();
    for round in 0..4 {
        let mut client = switch.client();
        client.send("PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 9\r\n\r\nall of it");
        let answer = client.response();
        assert_eq!(answer.status(), 200, "round {round}");
        assert!(answer.text().contains("\"body_bytes\":9"), "{}", answer.text());
    }
    assert!(stalled[0].count() > 0, "it was not asked");
}
