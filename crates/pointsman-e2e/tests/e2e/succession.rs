//! SIGUSR2: a new process takes the place of the running one, and nobody is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::mpsc::Sender;

use pointsman_e2e::{Client, Origin, Setup, Switch, program};

use crate::drain::held;
use crate::http2::begin;

pointsman_e2e::for_threads!(
    on_one_address,
    twice,
    to_fewer_and_to_more_threads,
    with_tables_of_their_own,
    keys_are_passed_on,
    an_open_exchange,
    a_silent_connection_asks_once_more,
    silent_connections_end_in_time,
    http2_is_told,
    a_unix_socket,
    listeners_come_and_go,
    a_listener_of_another_name,
    the_admin_listener,
    a_bad_configuration,
    a_binary_that_fails,
    a_binary_that_is_never_ready,
    told_to_end_meanwhile,
);

fn setup(threads: usize, origin: &Origin) -> Setup {
    Setup::new(threads).pool("standard", &[origin])
}

/// What a process says where it listens is said by the next one alike, port 0 or not.
fn on_one_address(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = setup(threads, &origin).start();
    let before = switch.id();
    switch.upgrade();
    assert_ne!(switch.id(), before);
    switch.wait_for_predecessors();
    assert_eq!(switch.get("/").status(), 200);
    let said = switch.said();
    let listening: Vec<_> = said.lines().filter(|line| line.starts_with("listening ")).collect();
    assert_eq!((listening.len(), listening[0]), (2, listening[1]), "{said}");
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0), "the first process");
    assert_eq!(switch.said().matches("drained").count(), 2);
}

fn twice(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = setup(threads, &origin).start();
    for _ in 0..2 {
        switch.upgrade();
        switch.wait_for_predecessors();
        assert_eq!(switch.get("/").status(), 200);
    }
}

/// Whoever connects gets to a thread that accepts, whichever socket the kernel chose for it.
fn to_fewer_and_to_more_threads(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = setup(threads, &origin).start();
    for others in [2, 3, 1, 4] {
        switch.upgrade_to(&setup(others, &origin));
        switch.wait_for_predecessors();
        for _ in 0..40 {
            assert_eq!(switch.get("/").status(), 200);
        }
    }
}

/// Threads that have descriptor tables of their own, before and after, or only after. Where the system refuses them they
/// share one, and the same holds.
fn with_tables_of_their_own(threads: usize) {
    let origin = Origin::new("origin");
    let own = |threads| setup(threads, &origin).top("own_descriptor_tables = true");
    let mut switch = setup(threads, &origin).start();
    for others in [own(threads), own(2), setup(3, &origin)] {
        switch.upgrade_to(&others);
        switch.wait_for_predecessors();
        for _ in 0..20 {
            assert_eq!(switch.get("/").status(), 200);
        }
    }
}

/// Where the operator has set no key, it is a random one, but the same.
fn keys_are_passed_on(threads: usize) {
    let origins: Vec<_> = (0..6).map(|number| Origin::new(&format!("s{number}"))).collect();
    let servers: Vec<_> = origins.iter().collect();
    // The comment keeps the key of other tests out.
    let setup = Setup::new(threads).top("# no sticky_key");
    let setup = setup.rules("R1: { routeTo(standard, STICKY_ON_IP); }").pool("standard", &servers);
    let mut switch = setup.start();
    let before = switch.get("/");
    for _ in 0..2 {
        switch.upgrade();
        assert_eq!(switch.get("/").server(), before.server());
    }
}

/// A switch whose old process drains, with a request there that waits until its server is told to go on.
fn replaced_amid_exchange(threads: usize) -> (Origin, Sender<()>, Switch, Client) {
    let (origin, go) = held();
    let mut switch = setup(threads, &origin).start();
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    origin.wait_for_requests(1);
    switch.upgrade();
    // An answer before that need not say that its connection ends.
    switch.wait_for_line("draining connections=");
    (origin, go, switch, client)
}

/// It gets its answer from the old process, which says that the connection ends.
fn an_open_exchange(threads: usize) {
    let (origin, go, mut switch, mut client) = replaced_amid_exchange(threads);
    let mut other = switch.client();
    other.send("GET /other HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    origin.wait_for_requests(2);
    (0..2).for_each(|_| go.send(()).expect("the origin is there"));
    let answer = client.response();
    assert_eq!((answer.status(), answer.head.field("connection")), (200, Some("close")));
    assert!(client.closes());
    assert_eq!(other.response().status(), 200);
    switch.wait_for_predecessors();
}

/// Connections that wait for their next request, or for their first, are not closed under it.
fn a_silent_connection_asks_once_more(threads: usize) {
    let origin = Origin::new("origin");
    let keys = "upgrade_idle_ms_max = 600000\ndrain_ms_max = 600000";
    let mut switch = setup(threads, &origin).top(keys).start();
    let (mut used, mut unused) = (switch.client(), switch.client());
    assert_eq!(used.get("/").status(), 200);
    // So that it has been accepted.
    unused.send("G");
    let mut late = switch.client();
    switch.upgrade();
    assert_eq!(late.get("/").status(), 200);
    // The old process learns of it a moment later than this test.
    while used.get("/").head.field("connection").is_none() {}
    unused.send("ET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert_eq!(unused.response().head.field("connection"), Some("close"));
    assert!(used.closes() && unused.closes());
    drop(late);
    switch.wait_for_predecessors();
}

fn silent_connections_end_in_time(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = setup(threads, &origin).top("upgrade_idle_ms_max = 50").start();
    let mut client = switch.client();
    assert_eq!(client.get("/").status(), 200);
    switch.upgrade();
    assert!(client.closes());
    switch.wait_for_predecessors();
}

/// A connection of HTTP/2 is told at once, however long silent ones may wait.
fn http2_is_told(threads: usize) {
    let (origin, go) = held();
    let keys = "upgrade_idle_ms_max = 600000\ndrain_ms_max = 600000";
    let mut switch = setup(threads, &origin).top(keys).start();
    let (mut busy, mut idle) = (begin(&switch), begin(&switch));
    busy.ask(1, "GET", "/", &[]);
    idle.turn();
    origin.wait_for_requests(1);
    switch.upgrade();
    busy.wait("GOAWAY with the last stream", |client| client.goaway() == Some((1, 0)));
    assert_eq!(idle.ending(), Some(0));
    go.send(()).expect("the origin is there");
    assert_eq!(busy.answer(1).status(), 200);
    assert_eq!(busy.ending(), Some(0));
    switch.wait_for_predecessors();
}

/// The file stays where it is, and goes with the last process.
fn a_unix_socket(threads: usize) {
    let origin = Origin::new("origin");
    let on_socket = |threads| setup(threads, &origin).listener("bind = \"unix:shop.sock\"");
    let mut switch = on_socket(threads).start();
    let path = switch.folder().join("shop.sock");
    for others in [2, 1] {
        switch.upgrade_to(&on_socket(others));
        switch.wait_for_predecessors();
        for _ in 0..10 {
            assert_eq!(Client::unix(&path).get("/").status(), 200);
        }
    }
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    assert!(!path.exists());
}

/// What the new configuration adds is opened, what it leaves out is closed.
fn listeners_come_and_go(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = setup(threads, &origin).another_listener("old").start();
    let old = switch.address("old");
    switch.upgrade_to(&setup(threads, &origin).another_listener("new"));
    switch.wait_for_predecessors();
    assert_eq!(Client::plain(switch.address("new")).get("/").status(), 200);
    assert!(std::net::TcpStream::connect(old).is_err());
    assert_eq!(switch.get("/").status(), 200);
}

/// An address that another listener has now is passed on to that one.
fn a_listener_of_another_name(threads: usize) {
    let origin = Origin::new("origin");
    let address = Origin::free_address();
    let named = |name| setup(threads, &origin).named(name).listener(&format!("bind = \"{address}\""));
    let mut switch = named("shop").start();
    switch.upgrade_to(&named("store"));
    switch.wait_for_predecessors();
    assert_eq!(Client::plain(address).get("/").status(), 200);
}

/// It answers for the new process as soon as that serves.
fn the_admin_listener(threads: usize) {
    let (_origin, go, mut switch, mut client) = replaced_amid_exchange(threads);
    assert_eq!(switch.admin_get("/health").status(), 200);
    assert!(switch.metric("pointsman_requests_total", &[]) < 1.0, "it counts its own");
    go.send(()).expect("the origin is there");
    assert_eq!(client.response().status(), 200);
    switch.wait_for_predecessors();
}

/// The old process goes on with the plan that it has.
fn fails(switch: &mut Switch, why: &str) {
    let before = switch.id();
    let mut client = switch.client();
    assert_eq!(client.get("/").status(), 200);
    let said = switch.errors().all().len();
    switch.signal("USR2");
    switch.errors().wait_after(said, why, |line| {
        let says_so = line.starts_with("upgrade failed: ") && line.contains(why);
        (says_so && line.ends_with("; this process goes on")).then_some(())
    });
    let answer = client.get("/");
    assert_eq!((answer.status(), answer.head.field("connection")), (200, None));
    assert_eq!((switch.get("/").status(), switch.id()), (200, before));
}

fn a_bad_configuration(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = setup(threads, &origin).start();
    setup(threads, &origin).top("thread = 1").write(switch.folder());
    fails(&mut switch, "the new process ended: exit status: 2");
    // Another one that only the start finds.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let bind = format!("bind = \"{}\"", taken.local_addr().expect("bound"));
    setup(threads, &origin).another_listener("taken").listener(&bind).write(switch.folder());
    fails(&mut switch, "the new process ended: exit status: 1");
    switch.upgrade_to(&setup(threads, &origin));
    switch.wait_for_predecessors();
    assert_eq!(switch.get("/").status(), 200);
}

/// A switch whose binary can be replaced.
fn replaceable(setup: Setup) -> (Switch, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("pointsman");
    install(&path, &fs::read(program()).expect("the binary"));
    (setup.program(&path).start(), path, folder)
}

/// As a package does it: the old file goes on under no name.
fn install(path: &std::path::Path, contents: &[u8]) {
    let next = path.with_extension("next");
    fs::write(&next, contents).expect("a writable folder");
    fs::set_permissions(&next, fs::Permissions::from_mode(0o755)).expect("it is ours");
    fs::rename(&next, path).expect("a writable folder");
}

fn a_binary_that_fails(threads: usize) {
    let origin = Origin::new("origin");
    let (mut switch, path, _folder) = replaceable(setup(threads, &origin));
    install(&path, b"#!/bin/sh\nexit 3\n");
    fails(&mut switch, "the new process ended: exit status: 3");
    install(&path, b"#!/bin/sh\nkill -ABRT $$\n");
    fails(&mut switch, "the new process ended: signal: 6");
    install(&path, &fs::read(program()).expect("the binary"));
    switch.upgrade();
    switch.wait_for_predecessors();
    assert_eq!(switch.get("/").status(), 200);
}

fn a_binary_that_is_never_ready(threads: usize) {
    let origin = Origin::new("origin");
    let (mut switch, path, _folder) = replaceable(setup(threads, &origin).top("upgrade_ms_max = 200"));
    install(&path, b"#!/bin/sh\nexec tail -f /dev/null\n");
    fails(&mut switch, "the new process was not ready in 200 ms");
}

/// Who is told to end does, and the process that was to take its place with it.
fn told_to_end_meanwhile(threads: usize) {
    let origin = Origin::new("origin");
    let (mut switch, path, _folder) = replaceable(setup(threads, &origin).with_token());
    install(&path, b"#!/bin/sh\nexec tail -f /dev/null\n");
    switch.signal("USR2");
    switch.wait_for_line("upgrade begins pid=");
    switch.signal("HUP");
    switch.wait_for_line("reload refused: an upgrade is under way");
    let version =
        switch.admin_shows("/api/v1/pools")["configuration_version"].as_str().expect("a version").to_owned();
    let server = "/api/v1/pools/standard/servers/origin";
    for (method, target, body) in [
        ("POST", "/api/v1/reload", ""),
        ("PUT", &format!("{server}/state"), "{\"state\":\"disabled\"}"),
        ("PATCH", server, "{\"weight\":2}"),
        ("DELETE", "/api/v1/pools/standard/sticky-clients", ""),
        ("DELETE", "/api/v1/pools/standard/sticky-clients/0123456789abcdef", ""),
        ("DELETE", "/api/v1/sticky-targets", ""),
    ] {
        let (answer, said) = switch.admin_ask(method, target, &format!("If-Match: \"{version}\"\r\n"), body);
        assert_eq!(answer.status(), 503, "{said}");
    }
    switch.signal("USR2");
    switch.wait_for_line("upgrade refused: one is under way");
    switch.signal("TERM");
    // Its standard error ends when both have.
    assert_eq!(switch.wait_for_exit(), Some(0));
}
