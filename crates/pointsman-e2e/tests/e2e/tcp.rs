//! Listeners of which nothing is read (`protocol = "tcp"`): bytes go to a server as they are.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpStream};
use std::time::{Duration, Instant};

use pointsman_e2e::{Client, Origin, PATIENCE, Pattern, RawOrigin, Setup, Switch, until};

use crate::upgrades::echo;

pointsman_e2e::for_threads!(
    lines_come_back,
    by_address,
    much_both_ways,
    each_side_may_end_first,
    rejected_and_discarded,
    the_next_server,
    no_server,
    proxied,
    kept_by_address,
    counted_and_logged,
    too_many,
    to_the_least_busy,
    idle_for_too_long,
    drained,
    cut_in_a_drain,
    outlives_a_reload,
);

const LENGTH: u64 = 16 * 1024 * 1024;

/// A server that says its name, as those of mail do, and then whatever it hears.
fn named(name: &'static str) -> RawOrigin {
    RawOrigin::serving(move |mut socket, _| {
        if socket.write_all(name.as_bytes()).is_ok() {
            echo(&mut socket);
        }
    })
}

fn tcp(threads: usize) -> Setup {
    Setup::new(threads).listener("protocol = \"tcp\"")
}

fn setup(threads: usize, server: &RawOrigin) -> Setup {
    tcp(threads).pool_at("standard", "", &[("s", server.address())])
}

fn raw(mut client: Client) -> Client {
    client.begin_tunnel();
    client
}

fn dial(switch: &Switch) -> Client {
    raw(switch.client())
}

fn from(switch: &Switch, last: u8) -> Client {
    raw(Client::plain_from(local(last), switch.address("shop")))
}

/// What a new connection brings. One that is reset at once may not even seem to have been there.
fn first_of(switch: &Switch, last: u8) -> Result<Option<Vec<u8>>> {
    raw(Client::try_plain_from(local(last), switch.address("shop"))?).piece()
}

fn local(last: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, last).into()
}

fn lines_come_back(threads: usize) {
    let server = named("220 mail\r\n");
    let switch = setup(threads, &server).start();
    let mut client = dial(&switch);
    client.expect_body(b"220 mail\r\n");
    for line in ["EHLO a\r\n", "\0\u{1}\r\n", "GET / HTTP/1.1\r\n\r\n"] {
        client.send(line);
        client.expect_body(line.as_bytes());
    }
    client.finish_sending();
    assert!(client.closes());
    assert_eq!(server.connections(), 1);
}

fn by_address(threads: usize) {
    let (one, other) = (named("one"), named("other"));
    let rules = "R1: if (srcip == 127.0.0.2 && proto == \"tcp\") { routeTo(other); }";
    let setup = setup(threads, &one).rules(rules).pool_at("other", "", &[("s", other.address())]);
    let switch = setup.start();
    from(&switch, 1).expect_body(b"one");
    from(&switch, 2).expect_body(b"other");
}

/// Both directions at once, through pipes and buffers.
fn much_both_ways(threads: usize) {
    let server = RawOrigin::serving(|mut socket, _| {
        let mut reader = socket.try_clone().expect("a descriptor");
        let hears = std::thread::spawn(move || {
            let (mut pattern, mut space) = (Pattern::default(), vec![0; 64 * 1024]);
            while let Ok(count @ 1..) = reader.read(&mut space) {
                pattern.expect(&space[..count]);
            }
            pattern.position()
        });
        let mut pattern = Pattern::default();
        while pattern.position() < LENGTH && socket.write_all(pattern.next(LENGTH)).is_ok() {}
        let heard = hears.join().expect("the bytes in order");
        // Only who heard all of it says so.
        if heard == LENGTH {
            drop(socket.write_all(b"all"));
        }
    });
    let switch = setup(threads, &server).start();
    let mut socket = TcpStream::connect(switch.address("shop")).expect("it listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("an open socket");
    let mut writer = socket.try_clone().expect("a descriptor");
    let says = std::thread::spawn(move || {
        let mut pattern = Pattern::default();
        while pattern.position() < LENGTH {
            let left = LENGTH - pattern.position();
            writer.write_all(pattern.next(left)).expect("it reads");
        }
        writer.shutdown(Shutdown::Write).expect("open");
    });
    let (mut pattern, mut space) = (Pattern::default(), vec![0; 64 * 1024]);
    while pattern.position() < LENGTH {
        let room = space.len().min(usize::try_from(LENGTH - pattern.position()).expect("it fits"));
        let count = socket.read(&mut space[..room]).expect("open");
        assert_ne!(count, 0, "{} bytes came", pattern.position());
        pattern.expect(&space[..count]);
    }
    says.join().expect("all of it was sent");
    let mut rest = String::new();
    socket.read_to_string(&mut rest).expect("an orderly end");
    assert_eq!(rest, "all");
}

fn each_side_may_end_first(threads: usize) {
    // What the client says last is answered; what the server says last is followed by what the client still says.
    let answers = RawOrigin::serving(|mut socket, _| {
        let mut all = String::new();
        if socket.read_to_string(&mut all).is_ok() {
            drop(socket.write_all(all.to_uppercase().as_bytes()));
        }
    });
    let switch = setup(threads, &answers).start();
    let mut client = dial(&switch);
    client.send("whole");
    client.finish_sending();
    client.expect_body(b"WHOLE");
    assert!(client.closes());

    let (told, tells) = std::sync::mpsc::channel();
    let told = std::sync::Mutex::new(told);
    let ends = RawOrigin::serving(move |mut socket, _| {
        drop(socket.write_all(b"bye"));
        drop(socket.shutdown(Shutdown::Write));
        let mut all = String::new();
        drop(socket.read_to_string(&mut all));
        // The test may be over.
        told.lock().expect("no panic under the lock").send(all).unwrap_or_default();
    });
    let switch = setup(threads, &ends).start();
    let mut client = dial(&switch);
    assert_eq!(client.rest().expect("an orderly end").bytes, b"bye");
    client.send("and more");
    client.finish_sending();
    assert_eq!(tells.recv_timeout(PATIENCE).as_deref(), Ok("and more"));
}

fn rejected_and_discarded(threads: usize) {
    let server = named("one");
    let rules =
        "R1: if (srcip == 127.0.0.2) { tag(\"no\"); reject(); }\nR2: if (srcip == 127.0.0.3) { discard(); }";
    let switch = setup(threads, &server).rules(rules).start();
    let error = first_of(&switch, 2).expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let entry = switch.log_entry("the rejected one", |line| line["rule"] == "R1");
    assert_eq!(entry["error"], "a rule refused the connection", "{entry}");
    assert_eq!((entry.get("status"), entry.get("server")), (None, None), "{entry}");
    assert_eq!(from(&switch, 3).piece().expect("an orderly end"), None);
    from(&switch, 1).expect_body(b"one");
    assert_eq!(server.connections(), 1);
    let refused = switch.metric("pointsman_refusals_total", &[("reason", "rule")]);
    assert!((refused - 2.0).abs() < 0.5, "{refused}");
}

fn the_next_server(threads: usize) {
    let server = named("alive");
    let servers = [("dead", Origin::dead_address()), ("alive", server.address())];
    let switch = tcp(threads).pool_at("standard", "", &servers).start();
    for _ in 0..4 {
        dial(&switch).expect_body(b"alive");
    }
    let failed = switch.metric("pointsman_server_failures_total", &[("server", "dead"), ("kind", "connect")]);
    let again = switch.metric("pointsman_server_retries_total", &[("server", "alive")]);
    assert!(failed > 0.5 && (failed - again).abs() < 0.5, "{failed} failed, {again} again");
}

fn no_server(threads: usize) {
    let switch = tcp(threads).pool_at("standard", "", &[("dead", Origin::dead_address())]).start();
    let error = dial(&switch).piece().expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let entry = switch.log_entry("the end", |_| true);
    assert_eq!(entry["error"], "the server refused the connection", "{entry}");
}

/// A PROXY header in names the client to rules, and one goes on to the server.
fn proxied(threads: usize) {
    let server = RawOrigin::serving(|mut socket, _| echo(&mut socket));
    let keys = "proxy_protocol = \"required\"\ntrusted_proxies = [\"127.0.0.1\"]";
    let rules = "R1: if (clientip != 192.0.2.7 || srcip != 127.0.0.1) { reject(); }";
    let setup = tcp(threads).listener(keys).rules(rules);
    let switch = setup.pool_at("standard", "proxy_protocol = \"v1\"", &[("s", server.address())]).start();
    let port = switch.address("shop").port();
    let mut client = dial(&switch);
    client.send("PROXY TCP4 192.0.2.7 198.51.100.1 40000 443\r\nfirst");
    client.expect_body(format!("PROXY TCP4 192.0.2.7 127.0.0.1 40000 {port}\r\nfirst").as_bytes());
    let mut other = dial(&switch);
    other.send("PROXY TCP4 192.0.2.8 198.51.100.1 40000 443\r\n");
    let error = other.piece().expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

fn kept_by_address(threads: usize) {
    let servers = [named("a"), named("b"), named("c")];
    let places: Vec<_> = ["a", "b", "c"].into_iter().zip(servers.iter().map(RawOrigin::address)).collect();
    let rules = "else: routeTo(standard, STICKY_ON_IP);";
    let switch = tcp(threads).rules(rules).pool_at("standard", "", &places).start();
    let mut seen = std::collections::BTreeSet::new();
    for last in 1..20 {
        let said = || from(&switch, last).piece().expect("open").expect("a name");
        let first = said();
        assert_eq!(said(), first, "127.0.0.{last}");
        seen.insert(first);
    }
    assert!(seen.len() > 1, "clients are spread");
}

fn counted_and_logged(threads: usize) {
    let server = named("one");
    let switch =
        setup(threads, &server).rules("R1: if (srcip exists) { tag(\"x\"); routeTo(standard); }").start();
    let mut client = dial(&switch);
    client.send("12345");
    client.expect_body(b"one12345");
    let metric = |name: &str| switch.metric(name, &[]);
    assert!((metric("pointsman_tunnels_open") - 1.0).abs() < 0.5);
    assert!((metric("pointsman_server_in_flight_requests") - 1.0).abs() < 0.5);
    let local = client.local();
    client.finish_sending();
    assert!(client.closes());
    let entry = switch.log_entry("its end", |_| true);
    assert_eq!(entry["client"], local.to_string(), "{entry}");
    for (key, value) in
        [("listener", "shop"), ("client_ip", "127.0.0.1"), ("rule", "R1"), ("pool", "standard")]
    {
        assert_eq!(entry[key], value, "{entry}");
    }
    assert_eq!((&entry["server"], &entry["tags"][0]), (&"s".into(), &"x".into()), "{entry}");
    assert_eq!((entry["request_bytes"].as_u64(), entry["response_bytes"].as_u64()), (Some(5), Some(8)));
    assert!(entry["total_us"].as_u64() >= entry["connected_us"].as_u64(), "{entry}");
    for absent in ["status", "method", "path", "version", "error", "tls", "sni"] {
        assert_eq!(entry.get(absent), None, "{entry}");
    }
    until("it is counted", || (metric("pointsman_received_bytes_total") > 4.5).then_some(()));
    assert!((metric("pointsman_sent_bytes_total") - 8.0).abs() < 0.5);
    assert!((metric("pointsman_tunnels_total") - 1.0).abs() < 0.5);
    assert!((metric("pointsman_server_requests_total") - 1.0).abs() < 0.5);
    assert!(metric("pointsman_requests_total") < 0.5, "a connection is no request");
    assert!(metric("pointsman_tunnels_open") + metric("pointsman_server_in_flight_requests") < 0.5);
}

/// Who is over a limit is not answered in HTTP.
fn too_many(threads: usize) {
    let server = named("one");
    let switch = setup(threads, &server).limits("connections_max = 1").start();
    let mut first = dial(&switch);
    first.expect_body(b"one");
    assert!(!matches!(first_of(&switch, 1), Ok(Some(_))));
    first.finish_sending();
    assert!(first.closes());
    until("there is room again", || {
        matches!(first_of(&switch, 1), Ok(Some(said)) if said == b"one").then_some(())
    });
}

fn to_the_least_busy(threads: usize) {
    let servers = [named("a"), named("b")];
    let places = [("a", servers[0].address()), ("b", servers[1].address())];
    let switch = tcp(threads).pool_at("standard", "balance = \"least-connections\"", &places).start();
    let mut open: Vec<_> = (0..8).map(|_| dial(&switch)).collect();
    for client in &mut open {
        client.piece().expect("open").expect("a name");
    }
    let of = |server| switch.metric("pointsman_server_in_flight_requests", &[("server", server)]);
    let (a, b) = (of("a"), of("b"));
    assert!((a + b - 8.0).abs() < 0.5 && a > 0.5 && b > 0.5, "{a} and {b}");
}

fn idle_for_too_long(threads: usize) {
    let server = named("one");
    let switch = setup(threads, &server).limits("tunnel_idle_ms_max = 100").start();
    let mut client = dial(&switch);
    client.expect_body(b"one");
    assert!(client.closes());
    let entry = switch.log_entry("its end", |_| true);
    assert_eq!(entry["error"], "nothing came through the tunnel in time", "{entry}");
}

/// It goes on for its time, and ends in order.
fn drained(threads: usize) {
    let server = named("one");
    let mut switch = setup(threads, &server).top("tunnel_drain_ms_max = 500").start();
    let mut client = dial(&switch);
    client.expect_body(b"one");
    let began = Instant::now();
    switch.signal("TERM");
    switch.wait_for_line("draining connections=1");
    client.send("still here");
    client.expect_body(b"still here");
    assert_eq!(client.piece().expect("an orderly end"), None);
    assert!(began.elapsed() >= Duration::from_millis(450), "{:?}", began.elapsed());
    drop(client);
    assert_eq!(switch.wait_for_exit(), Some(0));
    let entry = switch.log_entry("its end", |_| true);
    assert_eq!(entry["error"], "the tunnel was closed: the switch drains", "{entry}");
}

/// What is still on its way when the drain is over.
fn cut_in_a_drain(threads: usize) {
    let server = RawOrigin::serving(|mut socket, _| while socket.write_all(&[7; 64 * 1024]).is_ok() {});
    let mut switch = setup(threads, &server).top("drain_ms_max = 100").start();
    let _reads_nothing = dial(&switch);
    until("a connection to the server", || (server.connections() == 1).then_some(()));
    switch.signal("TERM");
    switch.wait_for_line("drain cut connections=1");
    let entry = switch.log_entry("its end", |_| true);
    assert_eq!(entry["error"], "cut off: the drain was over", "{entry}");
    switch.wait_for_exit();
}

/// A reload leaves what is open alone; new connections meet the new rules.
fn outlives_a_reload(threads: usize) {
    let server = named("one");
    let switch = setup(threads, &server).start();
    let mut client = dial(&switch);
    client.expect_body(b"one");
    switch.reload(&setup(threads, &server).rules("else: reject();"), 2);
    client.send("on");
    client.expect_body(b"on");
    until("the new rules hold", || first_of(&switch, 1).is_err().then_some(()));
}
