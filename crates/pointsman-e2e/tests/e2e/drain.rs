//! SIGTERM: what was begun is ended, nothing new is taken, exit status 0.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use pointsman_e2e::{
    Authority, Origin, RawOrigin, Setup, Switch, Then, TlsClient, descriptors_of_this_process, ok, until,
};

pointsman_e2e::for_threads!(
    idle,
    open_exchange,
    open_exchange_over_tls,
    silent_before_the_handshake,
    body_on_its_way,
    over_the_limit,
    each_that_is_cut_is_logged,
    many_that_are_cut_are_logged,
    lingering,
    cut_until_close,
    health,
    interrupted,
    copies_hold_nobody_up
);

/// What the log says of an exchange that a drain has cut.
const CUT: &str = "cut off: the drain was over";

/// An origin that answers when it is told to.
pub(crate) fn held() -> (Origin, Sender<()>) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = Origin::answering("held", move |exchange| {
        exchange.body();
        // The test may have ended.
        may_go.lock().expect("no panic under the lock").recv().unwrap_or_default();
        ok(exchange)
    });
    (origin, go)
}

/// Idle connections are closed at once.
fn idle(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let (mut used, mut unused) = (switch.client(), switch.client());
    assert_eq!(used.get("/").status(), 200);
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    assert!(used.closes() && unused.closes());
    let said = switch.said();
    assert!(said.contains("draining connections=") && said.trim_end().ends_with("drained"), "{said}");
}

/// A request under way gets its answer, which says that the connection ends; meanwhile nobody new.
fn open_exchange(threads: usize) {
    let (origin, go) = held();
    let mut switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let address = switch.address("shop");
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    origin.wait_for_requests(1);
    switch.signal("TERM");
    switch.wait_for_line("draining connections=");
    refuses(&switch, address);
    go.send(()).expect("the origin is there");
    let answer = client.response();
    assert_eq!((answer.status(), answer.server()), (200, "held"));
    assert_eq!(answer.head.field("connection"), Some("close"));
    assert!(client.closes());
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// A TLS client that has not said a word is idle: a drain does not wait for its handshake.
fn silent_before_the_handshake(threads: usize) {
    let authority = Authority::new("test CA");
    let origin = Origin::new("origin");
    // Longer than any test may take.
    let limits = "[listener.limits]\nhandshake_ms_max = 600000";
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), limits);
    let mut switch = setup.pool("standard", &[&origin]).start();
    let mut silent = TcpStream::connect(switch.address("shop")).expect("it listens");
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    assert_eq!(silent.read(&mut [0; 16]).ok(), Some(0));
}

/// The same through TLS.
fn open_exchange_over_tls(threads: usize) {
    let authority = Authority::new("test CA");
    let (origin, go) = held();
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let mut switch = setup.pool("standard", &[&origin]).start();
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example");
    let mut client = client.expect("a handshake");
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    origin.wait_for_requests(1);
    switch.signal("TERM");
    switch.wait_for_line("draining connections=");
    go.send(()).expect("the origin is there");
    assert_eq!(client.response().server(), "held");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// So does one whose body the client has not finished.
fn body_on_its_way(threads: usize) {
    let (origin, go) = held();
    let mut switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = switch.client();
    client.send("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 6\r\n\r\nabc");
    origin.wait_for_requests(1);
    switch.signal("TERM");
    switch.wait_for_line("draining connections=");
    client.send("def");
    go.send(()).expect("the origin is there");
    assert_eq!(client.response().server(), "held");
    assert_eq!(origin.last().body.bytes, b"abcdef");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// What does not end in time is ended.
fn over_the_limit(threads: usize) {
    let (origin, _go) = held();
    let mut switch = Setup::new(threads).top("drain_ms_max = 200").pool("standard", &[&origin]).start();
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    origin.wait_for_requests(1);
    switch.signal("TERM");
    assert!(client.closes());
    assert_eq!(switch.wait_for_exit(), Some(1));
    assert_eq!(switch.log_of("/")["error"], CUT);
}

/// Each exchange that is cut leaves a line, wherever it is; an idle connection leaves none.
fn each_that_is_cut_is_logged(threads: usize) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = Origin::answering("origin", move |exchange| {
        if exchange.target() == "/answered" {
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
            // Until the test ends.
            may_go.lock().expect("no panic under the lock").recv().unwrap_or_default();
        }
        exchange.body();
        Then::Close
    });
    let mut switch = Setup::new(threads).top("drain_ms_max = 0").pool("standard", &[&origin]).start();
    let (mut answered, mut uploading, _idle) = (switch.client(), switch.client(), switch.client());
    answered.send("GET /answered HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert_eq!(answered.head().word(1), "200");
    uploading.send("POST /uploading HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 9\r\n\r\nhalf");
    origin.wait_for_requests(2);
    switch.signal("TERM");
    assert!(answered.rest().is_err(), "an answer that was cut looks whole");
    assert!(uploading.closes());
    assert_eq!(switch.wait_for_exit(), Some(1));
    let entry = switch.log_of("/answered");
    assert_eq!((&entry["error"], &entry["status"]), (&CUT.into(), &200.into()), "{entry}");
    let entry = switch.log_of("/uploading");
    assert_eq!((&entry["error"], entry.get("status")), (&CUT.into(), None), "{entry}");
    switch.expect_log_lines(2);
    drop(go);
}

/// More connections than one round of an event loop has turns for.
fn many_that_are_cut_are_logged(threads: usize) {
    const CONNECTIONS: usize = 1500;
    assert!(descriptors_of_this_process() > 4 * CONNECTIONS as u64, "the limit on open files is too low");
    let server = RawOrigin::silent();
    let setup =
        Setup::new(threads).top("drain_ms_max = 0").pool_at("standard", "", &[("s", server.address())]);
    let mut switch = setup.start();
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| switch.client()).collect();
    clients.iter_mut().for_each(|client| client.send("GET /cut HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
    until("every request at its server", || (server.connections() >= CONNECTIONS).then_some(()));
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(1));
    switch.expect_log_lines(CONNECTIONS);
    let lines = switch.output().all();
    assert!(lines.iter().all(|line| line.contains(CUT)), "{lines:?}");
}

/// A connection that closes behind its answer is listened to for a moment, which is all that a drain waits for.
fn lingering(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = Setup::new(threads).top("drain_ms_max = 600000").pool("standard", &[&origin]).start();
    let mut client = switch.client();
    assert_eq!(client.ask("GET", "/", "Connection: close\r\n").status(), 200);
    // The client leaves its own side open.
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// An answer without a length that the drain cuts ends in a reset, or it would look whole.
fn cut_until_close(threads: usize) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let origin = Origin::answering("origin", move |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\n\r\nhalf");
        // Until the test ends.
        may_go.lock().expect("no panic under the lock").recv().unwrap_or_default();
        Then::Close
    });
    let mut switch = Setup::new(threads).top("drain_ms_max = 200").pool("standard", &[&origin]).start();
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert_eq!(client.head().word(1), "200");
    client.expect_body(b"half");
    switch.signal("TERM");
    let error = client.rest().expect_err("an answer that was cut looks whole");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(switch.wait_for_exit(), Some(1));
    drop(go);
}

/// Who asks for the health of a switch that drains is told to go elsewhere.
fn health(threads: usize) {
    let (origin, go) = held();
    let mut switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    origin.wait_for_requests(1);
    assert_eq!(switch.admin_get("/health").status(), 200);
    switch.signal("TERM");
    switch.wait_for_line("draining connections=");
    assert_eq!(switch.admin_get("/health").status(), 503);
    go.send(()).expect("the origin is there");
    assert_eq!(client.response().status(), 200);
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// SIGINT, as a terminal sends it, drains too.
fn interrupted(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = Setup::new(threads).pool("standard", &[&origin]).start();
    assert_eq!(switch.get("/").status(), 200);
    switch.signal("INT");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// The listener is gone: a connection is refused, or (a thread was just accepting) closed unserved. Whoever has taken the
/// port since is not asked.
pub(crate) fn refuses(switch: &Switch, address: std::net::SocketAddr) {
    let until = std::time::Instant::now() + pointsman_e2e::PATIENCE;
    while let Ok(mut late) = TcpStream::connect(address) {
        if !switch.listens_on(address) {
            return;
        }
        late.set_read_timeout(Some(pointsman_e2e::PATIENCE)).expect("an open socket");
        let came = late.read(&mut [0; 1]);
        assert!(!matches!(came, Ok(1..)), "a new connection is served");
        assert!(std::time::Instant::now() < until, "the listener still listens");
    }
}

/// They have a second behind the last client, and no more: nobody waits for what comes of them.
fn copies_hold_nobody_up(threads: usize) {
    let (origin, (stalls, _go)) = (Origin::answering("origin", ok), held());
    let setup = Setup::new(threads).rules("R1: { mirror(shadow); }").default_pool("standard");
    let setup = setup.pool("standard", &[&origin]).pool("shadow", &[&stalls]);
    let mut switch = setup.top("drain_ms_max = 600_000\nmirror_ms_max = 600_000").start();
    assert_eq!(switch.get("/").server(), "origin");
    stalls.wait_for_requests(1);
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    assert!(switch.said().trim_end().ends_with("drained"), "{}", switch.said());
}
