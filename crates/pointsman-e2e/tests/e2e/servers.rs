//! Connections to servers: kept, shared, retried, given up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_e2e::{Client, Origin, Setup, Then, ok};

pointsman_e2e::for_threads!(
    reused,
    shared_by_clients,
    refused_then_next,
    all_refuse,
    no_retry_of_post,
    first_server_breaks_off,
    body_too_long_to_send_again,
    busy_connections_are_not_shared,
    large_head,
    idle_connections_are_capped,
    head_that_dribbles,
    posts_to_a_server_that_closes,
    body_behind_an_answer_to_head,
    bare_addresses
);

/// A client's requests go over one connection.
fn reused(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = switch.client();
    for number in 0..20 {
        assert_eq!(client.get(&format!("/{number}")).status(), 200);
    }
    assert_eq!(origin.connections(), 1);
}

/// Clients one after the other share, thread by thread.
fn shared_by_clients(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    for number in 0..20 {
        assert_eq!(switch.get(&format!("/{number}")).status(), 200);
    }
    assert!(origin.connections() <= threads, "{} connections", origin.connections());
}

/// A server that refuses the connection took nothing: the next one of the pool gets the request,
/// whatever its method.
fn refused_then_next(threads: usize) {
    let alive = Origin::new("alive");
    let servers = [("dead", Origin::dead_address()), ("alive", alive.address())];
    let switch = Setup::new(threads).pool_at("standard", "", &servers).start();
    for method in ["GET", "PUT", "POST"] {
        for _ in 0..4 {
            let answer = switch.client().ask(method, "/", "Content-Length: 0\r\n");
            assert_eq!((answer.status(), answer.server()), (200, "alive"), "{method}");
        }
    }
}

/// Nobody is there.
fn all_refuse(threads: usize) {
    let servers = [("one", Origin::dead_address()), ("two", Origin::dead_address())];
    let switch = Setup::new(threads).pool_at("standard", "tries_max = 5", &servers).start();
    let mut client = switch.client();
    for _ in 0..3 {
        assert_eq!(client.get("/").status(), 502);
    }
    assert!(switch.log_of("/")["error"].is_string());
}

/// After a byte of it was sent, a POST is not sent again: not to this server, not to another.
fn no_retry_of_post(threads: usize) {
    let breaks = |exchange: &mut pointsman_e2e::Exchange<'_>| {
        exchange.body();
        Then::Close
    };
    let origins = [Origin::answering("one", breaks), Origin::answering("two", breaks)];
    let switch = Setup::new(threads).pool("standard", &[&origins[0], &origins[1]]).start();
    let answer = switch.client().ask("POST", "/", "Content-Length: 0\r\n");
    assert_eq!(answer.status(), 502);
    assert_eq!(origins.iter().map(Origin::count).sum::<usize>(), 1);
}

/// A GET that a server drops goes to another one of the pool.
fn first_server_breaks_off(threads: usize) {
    let seen = Arc::new(AtomicUsize::new(0));
    let origin = |name| {
        let seen = seen.clone();
        Origin::answering(name, move |exchange| {
            if seen.fetch_add(1, Ordering::SeqCst) == 0 { Then::Close } else { ok(exchange) }
        })
    };
    let origins = [origin("one"), origin("two")];
    let switch = Setup::new(threads).pool("standard", &[&origins[0], &origins[1]]).start();
    assert_eq!(switch.get("/").status(), 200);
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    assert_eq!(switch.log_of("/")["tries"], 2);
}

/// A PUT is idempotent, but a body that went on is no longer there to be sent again.
fn body_too_long_to_send_again(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        // Enough of the body that the switch cannot have kept what came before.
        let mut bytes = 0;
        while bytes < 1024 * 1024 {
            bytes += exchange.piece().map_or(usize::MAX / 2, |piece| piece.len());
        }
        Then::Close
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = switch.client();
    client.send("PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 8388608\r\n\r\n");
    // The switch may stop reading when the server is gone.
    drop(client.try_send(vec![b'x'; 2 * 1024 * 1024]));
    assert_eq!(client.response().status(), 502);
    assert_eq!(origin.count(), 1);
}

/// Two requests at once need two connections; afterwards both are kept.
fn busy_connections_are_not_shared(threads: usize) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = Origin::answering("origin", move |exchange| {
        if exchange.target() == "/held" {
            may_go.lock().expect("no panic under the lock").recv().expect("the test is there");
        }
        ok(exchange)
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let (mut held, mut free) = (switch.client(), switch.client());
    held.send("GET /held HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    origin.wait_for_requests(1);
    assert_eq!(free.get("/free").status(), 200);
    go.send(()).expect("the origin is there");
    assert_eq!(held.response().status(), 200);
    assert_eq!(origin.connections(), 2);
    for client in [&mut held, &mut free] {
        assert_eq!(client.get("/again").status(), 200);
    }
    assert_eq!(origin.connections(), 2);
}

/// Heads near their limits pass, both ways.
fn large_head(threads: usize) {
    let long = "x".repeat(12_000);
    let answer = format!("HTTP/1.1 200 OK\r\nX-Long: {long}\r\nContent-Length: 0\r\n\r\n");
    let origin = Origin::saying("origin", answer, Then::KeepAlive);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client: Client = switch.client();
    let answer = client.ask("GET", "/", &format!("X-Long: {long}\r\n"));
    assert_eq!(answer.head.field("x-long"), Some(long.as_str()));
    assert_eq!(origin.last().head.field("x-long"), Some(long.as_str()));
}

/// Idle connections over the cap of the process are closed.
fn idle_connections_are_capped(threads: usize) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = Origin::answering("origin", move |exchange| {
        may_go.lock().expect("no panic under the lock").recv().unwrap_or_default();
        ok(exchange)
    });
    let setup = Setup::new(threads).top("upstream_idle_connections_max = 1");
    let switch = setup.pool("standard", &[&origin]).start();
    for round in 1..=2 {
        let mut clients: Vec<Client> = (0..3).map(|_| switch.client()).collect();
        for client in &mut clients {
            client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        }
        origin.wait_for_requests(3 * round);
        for _ in 0..3 {
            go.send(()).expect("the origin is there");
        }
        for client in &mut clients {
            assert_eq!(client.response().status(), 200);
        }
    }
    // Three at first; then two more at least, for one was kept.
    assert!(origin.connections() >= 5, "{} connections", origin.connections());
}

/// `response_ms_max` runs from the last byte of a request to the end of the answer's head, however often
/// a byte of that head comes.
fn head_that_dribbles(threads: usize) {
    let (enough, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let origin = Origin::answering("origin", move |exchange| {
        let wait = wait.lock().expect("no panic under the lock");
        exchange.send("HTTP/1.1 200 OK\r\nX-Long: ");
        while wait.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
            exchange.send("x");
        }
        Then::Close
    });
    let switch = Setup::new(threads).pool_with("standard", "response_ms_max = 300", &[&origin]).start();
    assert_eq!(switch.client().ask("POST", "/", "Content-Length: 0\r\n").status(), 504);
    drop(enough);
}

/// A server that closes after each answer without a word about it: a request that is already there and
/// cannot be sent twice goes over another connection. The GET before them may find the connection of the
/// round before it closed, and is sent again.
fn posts_to_a_server_that_closes(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        ok(exchange);
        Then::Close
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let post = "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n\r\nbody";
    for round in 1..=20 {
        let mut client = switch.client();
        client.send(["GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n", post, post].concat());
        let statuses = [(); 3].map(|()| client.response().status());
        assert_eq!(statuses, [200, 200, 200], "round {round}");
        assert_eq!((origin.count(), origin.connections()), (3 * round, 3 * round));
    }
}

/// A body behind the answer to HEAD, in a packet of its own, is never taken for the answer to the next
/// request, which is already there.
fn body_behind_an_answer_to_head(threads: usize) {
    let stray = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let origin = Origin::answering("origin", move |exchange| {
        if exchange.method() != "HEAD" {
            return ok(exchange);
        }
        exchange.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", stray.len()));
        exchange.send(stray);
        Then::KeepAlive
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    for round in 0..20 {
        let mut client = switch.client();
        let fields = "HTTP/1.1\r\nHost: shop.example";
        client.send(format!("HEAD / {fields}\r\n\r\nGET / {fields}\r\n\r\n"));
        assert_eq!(client.response_to_head().status(), 200);
        let answer = client.response();
        assert_eq!((answer.status(), answer.text().as_str()), (200, "origin"), "round {round}");
    }
}

/// A server may be written as an address only, which is then its name, or by a host name.
fn bare_addresses(threads: usize) {
    let origin = Origin::new("origin");
    let address = origin.address();
    let pools = format!(
        "[pool.standard]\nservers = [\"{address}\"]\n[pool.named]\nservers = [\"localhost:{}\"]",
        address.port()
    );
    let rules = "if (path == \"/named\") { routeTo(named); }";
    let switch = Setup::new(threads).rules(rules).raw(&pools).start();
    assert_eq!(switch.get("/bare").server(), "origin");
    assert_eq!(switch.log_of("/bare")["server"], address.to_string());
    assert_eq!(switch.get("/named").server(), "origin");
}
