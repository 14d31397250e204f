//! Listeners that read the ClientHello alone (`protocol = "tls-passthrough"`): the server ends TLS.

use std::io::Write;
use std::time::{Duration, Instant};

use pointsman_e2e::{
    Authority, Client, Origin, RawOrigin, Setup, Switch, TlsClient, TlsServer, echo, read_some, until,
};

pointsman_e2e::for_threads!(
    the_server_ends_tls,
    by_name_and_protocol,
    in_pieces,
    broken_hellos,
    rejected_and_discarded,
    the_next_server,
    no_server,
    slow_hellos,
    silent_clients,
    proxied,
    what_servers_are_told,
    counted_and_logged,
    drained,
);

const ACCESS_DENIED: &[u8] = &[21, 3, 3, 0, 2, 2, 49];
const INTERNAL_ERROR: &[u8] = &[21, 3, 3, 0, 2, 2, 80];

fn passthrough(threads: usize) -> Setup {
    Setup::new(threads).listener("protocol = \"tls-passthrough\"")
}

/// A server that says its name when the first bytes have come, and those bytes.
fn named(name: &'static str) -> RawOrigin {
    RawOrigin::serving(move |mut socket, _| {
        let mut space = vec![0; 64 * 1024];
        let mut is_first = true;
        while let Ok(count @ 1..) = read_some(&mut socket, &mut space) {
            let name = if std::mem::take(&mut is_first) { name } else { "" };
            if socket.write_all(&[name.as_bytes(), &space[..count]].concat()).is_err() {
                return;
            }
        }
    })
}

fn raw(switch: &Switch) -> Client {
    let mut client = switch.client();
    client.begin_tunnel();
    client
}

fn hello(name: &str, protocols: &[&str]) -> Vec<u8> {
    TlsClient::new(&Authority::new("test CA")).alpn(protocols).hello(name)
}

/// A hello with a name that no library would send.
fn renamed(name: &str, other: &str) -> Vec<u8> {
    let mut wire = hello(name, &[]);
    let at = wire.windows(name.len()).position(|part| part == name.as_bytes()).expect("the name");
    wire[at..at + name.len()].copy_from_slice(other.as_bytes());
    wire
}

/// Sends a hello, and expects a server to say its name and have all of it.
fn reaches(switch: &Switch, server: &str, hello: &[u8]) {
    let mut client = raw(switch);
    client.send(hello);
    let expected = [server.as_bytes(), hello].concat();
    let mut came = Vec::new();
    while came.len() < expected.len() {
        came.extend(client.piece().expect("open").expect("more"));
    }
    assert_eq!(came, expected, "from `{server}`");
}

/// Clients verify the certificate of the server, and see no other; connections go on as they like.
fn the_server_ends_tls(threads: usize) {
    let authority = Authority::new("test CA");
    let secured = |name: &str| {
        let pair = authority.server(&[&format!("{name}.example")]);
        (Origin::secured(name, &TlsServer::new(&pair), echo), pair)
    };
    let ((shop, shop_pair), (blog, blog_pair)) = (secured("shop"), secured("blog"));
    let setup = passthrough(threads).rules("R1: if (tls.sni == \"blog.example\") { routeTo(blog); }");
    let switch = setup.pool("standard", &[&shop]).pool("blog", &[&blog]).start();
    for trust in [TlsClient::v12(&authority), TlsClient::v13(&authority)] {
        for (name, pair) in [("shop", &shop_pair), ("blog", &blog_pair)] {
            let mut client = switch.tls_client(&trust, &format!("{name}.example")).expect("a handshake");
            assert_eq!(client.certificate(), pair.der);
            for _ in 0..2 {
                assert_eq!(client.get("/").server(), name);
            }
        }
    }
    assert_eq!(shop.shaken()[0].sni.as_deref(), Some("shop.example"));
    assert_eq!((shop.connections(), blog.connections()), (2, 2));
}

fn by_name_and_protocol(threads: usize) {
    let servers = ["default", "one", "many", "acme", "nameless"].map(|name| (name, named(name)));
    let rules = "R1: if (tls.alpn == \"acme-tls/1\") { routeTo(acme); }\n\
                 R2: if (tls.sni == \"one.example\") { routeTo(one); }\n\
                 R3: if (tls.sni endsWith \".many.example\") { routeTo(many); }\n\
                 R4: if (!(tls.sni exists) && proto == \"tls\") { routeTo(nameless); }";
    let mut setup = passthrough(threads).rules(rules);
    for (name, server) in &servers {
        setup = setup.pool_at(name, "", &[("s", server.address())]);
    }
    let switch = setup.start();
    reaches(&switch, "one", &hello("one.example", &[]));
    reaches(&switch, "one", &hello("ONE.example", &["h2", "http/1.1"]));
    reaches(&switch, "many", &hello("a.many.example", &[]));
    reaches(&switch, "default", &hello("many.example", &[]));
    reaches(&switch, "default", &hello("one.example.org", &[]));
    reaches(&switch, "acme", &hello("one.example", &["acme-tls/1"]));
    reaches(&switch, "acme", &hello("one.example", &["h2", "acme-tls/1"]));
    let nameless = TlsClient::new(&Authority::new("test CA")).without_sni().hello("one.example");
    reaches(&switch, "nameless", &nameless);
    reaches(&switch, "nameless", &renamed("a.example", "127.0.0.1"));
    reaches(&switch, "one", &renamed("one.example1", "one.example."));
}

/// The same message in records of so many bytes.
fn records(hello: &[u8], bytes: usize) -> Vec<u8> {
    let record = |part: &[u8]| {
        let length = u16::try_from(part.len()).expect("it fits").to_be_bytes();
        [&[22, 3, 1][..], &length, part].concat()
    };
    hello[5..].chunks(bytes).flat_map(record).collect()
}

/// However a hello comes, the server gets it as it came, and what follows it too.
fn in_pieces(threads: usize) {
    let (one, other) = (named("one"), named("other"));
    let setup = passthrough(threads).rules("R1: if (tls.sni == \"one.example\") { routeTo(one); }");
    let setup = setup.pool_at("standard", "", &[("s", other.address())]);
    let switch = setup.pool_at("one", "", &[("s", one.address())]).start();
    let whole = hello("one.example", &["h2"]);
    for (record_bytes, write_bytes) in [(16_384, 1), (16_384, 100), (16, 16_384), (16, 5), (100, 1)] {
        let wire = records(&whole, record_bytes);
        let mut client = raw(&switch);
        for part in wire.chunks(write_bytes) {
            client.send(part);
        }
        client.send("and more");
        client.finish_sending();
        let came = client.rest().expect("an orderly end").bytes;
        let expected = [b"one", &wire[..], b"and more"].concat();
        assert!(came == expected, "records of {record_bytes} in writes of {write_bytes}: {came:?}");
    }
    assert_eq!(other.connections(), 0);
}

/// What is no hello is told so by an alert, counted and logged, and no server hears of it.
fn broken_hellos(threads: usize) {
    let server = named("one");
    let switch = passthrough(threads).pool_at("standard", "", &[("s", server.address())]).start();
    let good = hello("one.example", &[]);
    let edited = |at: usize, byte: u8| {
        let mut wire = good.clone();
        wire[at] = byte;
        wire
    };
    let names: Vec<_> = (0..33).map(|number| format!("p{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let behind = [&records(&good, 16_384)[..3], &[0, 0][..]].concat();
    let rows = [
        ("SSH", b"SSH-2.0-client\r\n".to_vec(), "not_tls", 10),
        ("a byte", b"x".to_vec(), "not_tls", 10),
        ("SSLv2", b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10".to_vec(), "not_tls", 10),
        ("data", edited(0, 23), "not_tls", 10),
        ("another version", edited(1, 2), "not_tls", 10),
        ("a ServerHello", edited(5, 2), "not_tls", 10),
        ("an empty record", behind, "malformed", 50),
        ("a long record", b"\x16\x03\x01\xff\xff".to_vec(), "malformed", 50),
        ("a long message", b"\x16\x03\x01\x00\x04\x01\xff\xff\xff".to_vec(), "malformed", 50),
        ("a long session", edited(43, 33), "malformed", 50),
        ("33 protocols", hello("one.example", &names), "malformed", 50),
        ("a name with a zero byte", renamed("one.example", "one\0example"), "malformed", 50),
    ];
    for (lines, (what, wire, reason, alert)) in rows.iter().enumerate() {
        let count = || switch.metric("pointsman_tls_handshake_failures_total", &[("reason", reason)]);
        let before = count();
        let mut client = raw(&switch);
        client.send(wire);
        client.expect_body(&[21, 3, 3, 0, 2, 2, *alert]);
        assert!(client.closes(), "{what}");
        until(what, || (count() - before > 0.5).then_some(()));
        until(what, || (switch.log_lines() > lines).then_some(()));
        let start = format!("TLS handshake: {reason}: ");
        let line = switch.output().all().pop().expect("a line");
        assert!(line.contains(&start), "{what}: {line}");
    }
    let mut plain = switch.client();
    plain.send("GET / HTTP/1.1\r\nHost: one.example\r\n\r\n");
    let answer = plain.response();
    assert_eq!((answer.status(), answer.text().contains("TLS port")), (400, true), "{answer:?}");
    assert!(plain.closes());
    assert_eq!(server.connections(), 0);
}

fn rejected_and_discarded(threads: usize) {
    let server = named("one");
    let rules = "R1: if (tls.sni == \"no.example\") { reject(); }\n\
                 R2: if (tls.sni == \"hush.example\") { discard(); }\n\
                 R3: if (tls.sni == \"gone.example\") { reject(reset); }";
    let setup = passthrough(threads).rules(rules);
    let switch = setup.pool_at("standard", "", &[("s", server.address())]).start();
    let mut client = raw(&switch);
    client.send(hello("no.example", &[]));
    assert_eq!(client.rest().expect("an orderly end").bytes, ACCESS_DENIED);
    let mut client = raw(&switch);
    client.send(hello("hush.example", &[]));
    assert_eq!(client.rest().expect("an orderly end").bytes, b"");
    let mut client = raw(&switch);
    client.send(hello("gone.example", &[]));
    assert_eq!(client.piece().expect_err("a reset").kind(), std::io::ErrorKind::ConnectionReset);
    let entry = switch.log_entry("the reset one", |line| line["rule"] == "R3");
    assert_eq!(entry["error"], "a rule reset the connection", "{entry}");
    let entry = switch.log_entry("the rejected one", |line| line["rule"] == "R1");
    assert_eq!((&entry["sni"], entry.get("server")), (&"no.example".into(), None), "{entry}");
    assert_eq!(server.connections(), 0);
}

fn the_next_server(threads: usize) {
    let authority = Authority::new("test CA");
    let pair = authority.server(&["shop.example"]);
    let alive = Origin::secured("alive", &TlsServer::new(&pair), echo);
    let servers = [("dead", Origin::dead_address()), ("alive", alive.address())];
    let switch = passthrough(threads).pool_at("standard", "", &servers).start();
    for _ in 0..3 {
        let mut client = switch.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
        assert_eq!(client.get("/").server(), "alive");
    }
}

fn no_server(threads: usize) {
    let switch = passthrough(threads).pool_at("standard", "", &[("dead", Origin::dead_address())]).start();
    let mut client = raw(&switch);
    client.send(hello("shop.example", &[]));
    assert_eq!(client.rest().expect("an orderly end").bytes, INTERNAL_ERROR);
    let entry = switch.log_entry("its end", |_| true);
    assert_eq!(entry["error"], "the server refused the connection", "{entry}");
}

fn slow_hellos(threads: usize) {
    let server = named("one");
    let setup = passthrough(threads).limits("handshake_ms_max = 200");
    let switch = setup.pool_at("standard", "", &[("s", server.address())]).start();
    let began = Instant::now();
    let mut client = raw(&switch);
    client.send(&hello("shop.example", &[])[..50]);
    assert!(client.closes());
    assert!(began.elapsed() >= Duration::from_millis(150), "{:?}", began.elapsed());
    switch.log_entry("the timeout", |line| line["error"] == "TLS handshake: timeout");
    let refused = switch.metric("pointsman_refusals_total", &[("reason", "handshake_timeout")]);
    assert!((refused - 1.0).abs() < 0.5, "{refused}");
    assert_eq!(server.connections(), 0);
}

/// Who says nothing, or leaves within the hello, is counted and leaves no line.
fn silent_clients(threads: usize) {
    let server = named("one");
    let switch = passthrough(threads).pool_at("standard", "", &[("s", server.address())]).start();
    let mut client = raw(&switch);
    client.finish_sending();
    assert!(client.closes());
    let mut client = raw(&switch);
    client.send(&hello("shop.example", &[])[..50]);
    client.finish_sending();
    assert!(client.closes());
    let closed = || switch.metric("pointsman_tls_handshake_failures_total", &[("reason", "closed")]);
    until("both are counted", || (closed() > 1.5).then_some(()));
    assert_eq!((switch.log_lines(), server.connections()), (0, 0));
}

fn proxied(threads: usize) {
    let server = named("one");
    let keys = "proxy_protocol = \"required\"\ntrusted_proxies = [\"127.0.0.1\"]";
    let setup = passthrough(threads).listener(keys).rules("R1: if (clientip != 192.0.2.7) { reject(); }");
    let switch = setup.pool_at("standard", "proxy_protocol = \"v1\"", &[("s", server.address())]).start();
    let (mut client, wire) = (raw(&switch), hello("shop.example", &[]));
    client.send([b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 443\r\n", &wire[..]].concat());
    client.finish_sending();
    let came = client.rest().expect("an orderly end").bytes;
    let port = switch.address("shop").port();
    let header = format!("PROXY TCP4 192.0.2.7 127.0.0.1 40000 {port}\r\n");
    // The server names itself before whatever came first: the header, with the hello or without.
    let expected = [b"one", header.as_bytes(), &wire[..]].concat();
    assert!(came == expected, "{}", String::from_utf8_lossy(&came));
}

/// Version 2 says for which name the hello asks, and the protocol where it offers one alone; TLS itself is the server's.
fn what_servers_are_told(threads: usize) {
    let server = named("one");
    let pool = "proxy_protocol = \"v2\"";
    let switch = passthrough(threads).pool_at("standard", pool, &[("s", server.address())]).start();
    let nameless = TlsClient::new(&Authority::new("test CA")).without_sni();
    let authority = b"\x02\x00\x0cshop.example";
    for (wire, values) in [
        (hello("shop.example", &[]), &authority[..]),
        (hello("shop.example", &["h2"]), &[b"\x01\x00\x02h2", &authority[..]].concat()),
        (hello("Shop.Example", &["h2", "http/1.1"]), authority),
        (nameless.hello("shop.example"), b""),
    ] {
        let mut client = raw(&switch);
        client.send(&wire);
        client.finish_sending();
        let came = client.rest().expect("an orderly end").bytes;
        let ends = [client.local().port(), switch.address("shop").port()].map(u16::to_be_bytes).concat();
        let block = [&[127, 0, 0, 1, 127, 0, 0, 1], &ends[..], values].concat();
        let bytes = u16::try_from(block.len()).expect("a short block").to_be_bytes();
        let expected = [b"one\r\n\r\n\0\r\nQUIT\n\x21\x11", &bytes[..], &block, &wire].concat();
        assert!(came == expected, "{}\n{}", came.escape_ascii(), expected.escape_ascii());
    }
}

fn counted_and_logged(threads: usize) {
    let server = named("one");
    let switch = passthrough(threads).pool_at("standard", "", &[("s", server.address())]).start();
    let wire = hello("shop.example", &[]);
    reaches(&switch, "one", &wire);
    let entry = switch.log_entry("its end", |_| true);
    for (key, value) in
        [("sni", "shop.example"), ("pool", "standard"), ("server", "s"), ("rule", "(default)")]
    {
        assert_eq!(entry[key], value, "{entry}");
    }
    assert_eq!(entry["request_bytes"].as_u64(), Some(wire.len() as u64), "{entry}");
    assert_eq!((entry.get("tls"), entry.get("status")), (None, None), "{entry}");
    let tunnels = switch.metric("pointsman_tunnels_total", &[]);
    assert!((tunnels - 1.0).abs() < 0.5, "{tunnels}");
}

/// A drain does not wait for who has not said a word, and gives tunnels their time.
fn drained(threads: usize) {
    let authority = Authority::new("test CA");
    let pair = authority.server(&["shop.example"]);
    let shop = Origin::secured("shop", &TlsServer::new(&pair), echo);
    let setup = passthrough(threads).top("tunnel_drain_ms_max = 500").pool("standard", &[&shop]);
    let mut switch = setup.start();
    let mut silent = raw(&switch);
    let mut client = switch.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
    switch.signal("TERM");
    switch.wait_for_line("draining connections=");
    assert!(silent.closes());
    assert_eq!(client.get("/").server(), "shop");
    assert!(client.closes());
    drop(client);
    assert_eq!(switch.wait_for_exit(), Some(0));
}
