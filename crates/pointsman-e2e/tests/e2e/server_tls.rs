//! TLS to servers, as they see it.

use std::net::ToSocketAddrs;

use pointsman_e2e::{
    Authority, Origin, Pair, Pattern, RawOrigin, Setup, Switch, Then, TlsServer, echo, ok, until,
};

pointsman_e2e::for_threads!(
    trusted,
    kept_connections,
    sessions_are_resumed,
    names,
    certificates_that_are_not_taken,
    self_signed_and_listed,
    not_checked,
    our_certificate,
    farewells_between_requests,
    large_bodies,
    answer_beside_the_upload,
    the_next_server,
    no_tls_there,
    no_handshake_in_time,
    reload_of_the_authorities,
    idle_connections_give_memory_back,
);

const CA: &str = "tls = { ca = \"ca.crt\", name = \"server.example\" }";

/// A server over TLS, and what its certificate comes from.
struct Site {
    authority: Authority,
    origin: Origin,
}

impl Site {
    fn new() -> Self {
        let authority = Authority::new("server CA");
        let origin = Origin::secured("origin", &TlsServer::new(&authority.server(&["server.example"])), echo);
        Site { authority, origin }
    }

    fn setup(&self, threads: usize, keys: &str) -> Setup {
        Setup::new(threads).file("ca.crt", &self.authority.pem()).pool_with("standard", keys, &[&self.origin])
    }
}

/// The name is sent and checked, `http/1.1` is agreed on, and the request arrives as it does otherwise.
fn trusted(threads: usize) {
    let site = Site::new();
    let switch = site.setup(threads, CA).start();
    let answer = switch.client().ask("POST", "/x", "Content-Length: 0\r\n");
    assert_eq!((answer.status(), answer.server()), (200, "origin"));
    let [shaken] = &site.origin.shaken()[..] else { panic!("{:?}", site.origin.shaken()) };
    assert_eq!((shaken.sni.as_deref(), shaken.alpn.as_deref()), (Some("server.example"), Some("http/1.1")));
    assert_eq!(shaken.certificate, None);
    let request = site.origin.last();
    assert_eq!(request.target(), "/x");
    assert_eq!(request.head.field("host"), Some("shop.example"));
    assert_eq!(request.head.field("x-forwarded-proto"), Some("http"));
}

/// Requests share connections as over plain ones, whatever tickets come on them meanwhile.
fn kept_connections(threads: usize) {
    for tls in [TlsServer::new, TlsServer::v12] {
        let authority = Authority::new("server CA");
        let origin = Origin::secured("origin", &tls(&authority.server(&["server.example"])), ok);
        let setup = Setup::new(threads).file("ca.crt", &authority.pem());
        let switch = setup.pool_with("standard", CA, &[&origin]).start();
        let mut client = switch.client();
        for number in 0..20 {
            assert_eq!(client.get(&format!("/{number}")).status(), 200);
        }
        // These look at the socket itself before they take a kept connection.
        for _ in 0..5 {
            assert_eq!(client.ask("POST", "/", "Content-Length: 0\r\n").status(), 200);
        }
        assert_eq!((origin.connections(), origin.count()), (1, 25));
        assert_eq!(switch.log_of("/19")["reused"], true);
    }
}

/// With either version a second connection is a short handshake.
fn sessions_are_resumed(threads: usize) {
    for tls in [TlsServer::new, TlsServer::v12] {
        let authority = Authority::new("server CA");
        let pair = authority.server(&["server.example"]);
        let origin = Origin::secured("origin", &tls(&pair), |exchange| {
            ok(exchange);
            Then::Close
        });
        let keys = format!("{CA}\nidle_connections_max = 0");
        let setup = Setup::new(threads).file("ca.crt", &authority.pem());
        let setup = setup.pool_with("standard", &keys, &[&origin]);
        let switch = setup.start();
        for _ in 0..4 {
            assert_eq!(switch.get("/").status(), 200);
        }
        // Nothing changes for this pool.
        switch.reload(&setup.rules("{ setHeader(\"x-new\", \"1\"); }"), 2);
        assert_eq!(switch.get("/").status(), 200);
        let resumed: Vec<_> = origin.shaken().iter().map(|shaken| shaken.resumed).collect();
        assert_eq!(resumed, [false, true, true, true, true]);
    }
}

/// Of the pool, of a server, or what its address says: an address is looked for among the certificate's
/// addresses, and no name is sent.
fn names(threads: usize) {
    let authority = Authority::new("server CA");
    let by_name = Origin::secured("name", &TlsServer::new(&authority.server(&["a.example"])), ok);
    let by_address = Origin::secured("address", &TlsServer::new(&authority.server(&["127.0.0.1"])), ok);
    let by_host = Origin::secured("host", &TlsServer::new(&authority.server(&["localhost"])), ok);
    let servers = |name: &str| format!("tls = {{ ca = \"ca.crt\"{name} }}");
    let host =
        format!("[pool.host]\nservers = [\"localhost:{}\"]\n{}\n", by_host.address().port(), servers(""));
    let own = format!(
        "[pool.own]\nservers = [{{ address = \"{}\", tls_name = \"a.example\" }}]\n{}\n",
        by_name.address(),
        servers(", name = \"b.example\"")
    );
    let rules = "if (path == \"/host\") { routeTo(host); }\nif (path == \"/own\") { routeTo(own); }";
    let setup = Setup::new(threads).file("ca.crt", &authority.pem()).rules(rules);
    let setup = setup.pool_with("standard", &servers(""), &[&by_address]).raw(&host).raw(&own);
    let switch = setup.start();
    // Some machines call `localhost` what nobody listens on here.
    let localhost = ("localhost", 0).to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    let is_there = localhost.is_some_and(|address| address.ip() == by_host.address().ip());
    for (path, origin, sni) in [
        ("/", &by_address, None),
        ("/host", &by_host, Some("localhost")),
        ("/own", &by_name, Some("a.example")),
    ] {
        if path == "/host" && !is_there {
            continue;
        }
        assert_eq!(switch.get(path).text(), origin.name());
        assert_eq!(origin.shaken()[0].sni.as_deref(), sni, "{path}");
    }
}

fn fails(switch: &Switch, path: &str, kind: &str, error: &str) {
    let labels = [("pool", "standard"), ("kind", kind)];
    let count = || switch.metric("pointsman_server_failures_total", &labels);
    let before = count();
    let answer = switch.get(path);
    assert_eq!((answer.status(), answer.text().trim_end()), (502, error), "{path}");
    let entry = switch.log_of(path);
    assert_eq!((&entry["error"], &entry["status"]), (&error.into(), &502.into()), "{entry}");
    until(kind, || (count() > before).then_some(()));
}

fn certificates_that_are_not_taken(threads: usize) {
    let (authority, other) = (Authority::new("server CA"), Authority::new("another CA"));
    for (pair, kind, error) in [
        (
            other.server(&["server.example"]),
            "tls_untrusted",
            "TLS with the server: its certificate is from no trusted authority",
        ),
        (
            authority.server(&["other.example", "127.0.0.1"]),
            "tls_wrong_name",
            "TLS with the server: its certificate is for another name",
        ),
        (
            authority.expired_server(&["server.example"]),
            "tls_expired",
            "TLS with the server: its certificate has expired",
        ),
        (
            authority.client("server.example", &["server.example"]),
            "tls_certificate",
            "TLS with the server: its certificate cannot be used",
        ),
    ] {
        let origin = Origin::secured("origin", &TlsServer::new(&pair), ok);
        let setup = Setup::new(threads).file("ca.crt", &authority.pem());
        let switch = setup.pool_with("standard", CA, &[&origin]).start();
        fails(&switch, "/x", kind, error);
        assert_eq!(origin.count(), 0);
    }
}

/// A certificate that stands among the authorities is taken from the server itself, for its name and in its time.
fn self_signed_and_listed(threads: usize) {
    let (pair, other) = (Pair::self_signed(&["server.example"]), Pair::self_signed(&["server.example"]));
    let origin = Origin::secured("origin", &TlsServer::new(&pair), ok);
    let setup = Setup::new(threads).file("ca.crt", &pair.certificate).pool_with("standard", CA, &[&origin]);
    assert_eq!(setup.start().get("/").status(), 200);
    let untrusted = "TLS with the server: its certificate is from no trusted authority";
    fails(&setup.clone().file("ca.crt", &other.certificate).start(), "/x", "tls_untrusted", untrusted);
    let setup = Setup::new(threads).file("ca.crt", &pair.certificate);
    let keys = CA.replace("server.example", "other.example");
    let switch = setup.pool_with("standard", &keys, &[&origin]).start();
    fails(&switch, "/x", "tls_wrong_name", "TLS with the server: its certificate is for another name");
}

/// `verify = false` takes any certificate, and is said aloud.
fn not_checked(threads: usize) {
    let pair = Authority::new("some CA").expired_server(&["other.example"]);
    for tls in [TlsServer::new, TlsServer::v12] {
        let origin = Origin::secured("origin", &tls(&pair), ok);
        let setup = Setup::new(threads).pool_with("standard", "tls = { verify = false }", &[&origin]);
        let switch = setup.start();
        assert_eq!(switch.get("/").status(), 200);
        assert!(switch.said().contains("certificates are not checked"), "{}", switch.said());
    }
}

/// A server that asks for a certificate gets it; without one, or with another, it refuses the connection, also behind
/// the handshake.
fn our_certificate(threads: usize) {
    let (authority, clients) = (Authority::new("server CA"), Authority::new("client CA"));
    let pair = authority.server(&["server.example"]);
    let ours = clients.client("switch", &[]);
    let shown =
        "tls = { ca = \"ca.crt\", name = \"server.example\", certificate = \"us.crt\", key = \"us.key\" }";
    for tls in [TlsServer::demanding(&pair, &clients), TlsServer::demanding_v12(&pair, &clients)] {
        let origin = Origin::secured("origin", &tls, ok);
        let setup = Setup::new(threads).file("ca.crt", &authority.pem()).pair("us", &ours);
        let switch = setup.clone().pool_with("standard", shown, &[&origin]).start();
        assert_eq!(switch.get("/").status(), 200);
        assert_eq!(origin.shaken()[0].certificate.as_ref(), Some(&ours.der));
        let refused = setup.clone().pool_with("standard", CA, &[&origin]).start();
        assert_eq!(refused.get("/none").status(), 502);
        let stranger = setup.pair("us", &authority.client("switch", &[]));
        let stranger = stranger.pool_with("standard", shown, &[&origin]).start();
        assert_eq!(stranger.get("/other").status(), 502);
        for (switch, path) in [(&refused, "/none"), (&stranger, "/other")] {
            let entry = switch.log_of(path);
            let error = "TLS with the server: it does not take our certificate, or wants one";
            let broken = "TLS with the server: it broke off with an alert";
            assert!([error, broken].map(Some).contains(&entry["error"].as_str()), "{entry}");
        }
        assert_eq!(origin.count(), 1);
    }
}

/// A server that closes a kept connection, with a word or without: the next request goes over another one.
fn farewells_between_requests(threads: usize) {
    for then in [Then::Close, Then::Cut, Then::Reset] {
        let authority = Authority::new("server CA");
        let tls = TlsServer::new(&authority.server(&["server.example"]));
        let origin = Origin::secured("origin", &tls, move |exchange| {
            ok(exchange);
            then
        });
        let setup = Setup::new(threads).file("ca.crt", &authority.pem());
        let switch = setup.pool_with("standard", CA, &[&origin]).start();
        let mut client = switch.client();
        for number in 1..=5 {
            assert_eq!(client.get("/").status(), 200, "{then:?}");
            assert_eq!(origin.connections(), number, "{then:?}");
        }
        // A request that is not sent twice: kept or not, the connection has ended.
        origin.wait_for_ends(5);
        assert_eq!(client.ask("POST", "/", "Content-Length: 0\r\n").status(), 200, "{then:?}");
    }
}

/// Several MiB each way, with a length and in chunks.
fn large_bodies(threads: usize) {
    const LENGTH: u64 = 4 * 1024 * 1024 + 4321;
    let authority = Authority::new("server CA");
    let tls = TlsServer::new(&authority.server(&["server.example"]));
    let origin = Origin::secured("origin", &tls, |exchange| {
        let mut came = Pattern::default();
        while let Some(piece) = exchange.piece() {
            came.expect(&piece);
        }
        let (mut sent, chunked) = (Pattern::default(), exchange.target() == "/chunked");
        exchange.send(match chunked {
            true => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            false => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", came.position()),
        });
        while sent.position() < came.position() {
            let piece = sent.next(came.position() - sent.position()).to_vec();
            match chunked {
                true => {
                    exchange.send([format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat())
                }
                false => exchange.send(&piece),
            }
        }
        if chunked {
            exchange.send("0\r\n\r\n");
        }
        Then::KeepAlive
    });
    let setup = Setup::new(threads).file("ca.crt", &authority.pem());
    let switch = setup.pool_with("standard", CA, &[&origin]).start();
    let mut client = switch.client();
    for path in ["/length", "/chunked", "/length"] {
        client
            .send(format!("POST {path} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {LENGTH}\r\n\r\n"));
        let mut sent = Pattern::default();
        while sent.position() < LENGTH {
            client.send(sent.next(LENGTH - sent.position()));
        }
        assert_eq!(client.head().word(1), "200");
        let mut came = Pattern::default();
        while let Some(piece) = client.piece().expect("the whole body") {
            came.expect(&piece);
        }
        assert_eq!(came.position(), LENGTH, "{path}");
    }
    assert_eq!(origin.connections(), 1);
}

/// A server that answers while the body still comes, and reads on, gets all of it.
fn answer_beside_the_upload(threads: usize) {
    const LENGTH: usize = 3 * 1024 * 1024;
    let authority = Authority::new("server CA");
    let tls = TlsServer::new(&authority.server(&["server.example"]));
    let origin = Origin::secured("origin", &tls, |exchange| {
        exchange.piece();
        exchange.answer("200 OK", "early");
        exchange.body();
        Then::KeepAlive
    });
    let setup = Setup::new(threads).file("ca.crt", &authority.pem());
    let switch = setup.pool_with("standard", CA, &[&origin]).start();
    let mut client = switch.client();
    client.send(format!("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {LENGTH}\r\n\r\n"));
    client.send("x");
    let answer = client.response();
    assert_eq!((answer.status(), answer.text().as_str()), (200, "early"));
    let body = vec![b'x'; LENGTH - 1];
    client.send(&body);
    origin.wait_for_body();
    assert_eq!(origin.last().body.bytes.len(), LENGTH);
}

/// A failed handshake is as good as a refused connection: any request goes on to the next server.
fn the_next_server(threads: usize) {
    let (authority, other) = (Authority::new("server CA"), Authority::new("another CA"));
    let good = Origin::secured("good", &TlsServer::new(&authority.server(&["server.example"])), ok);
    let bad = Origin::secured("bad", &TlsServer::new(&other.server(&["server.example"])), ok);
    let wants = TlsServer::demanding(&authority.server(&["server.example"]), &authority);
    let wants = Origin::secured("wants", &wants, ok);
    let setup = Setup::new(threads).file("ca.crt", &authority.pem());
    let switch = setup.pool_with("standard", CA, &[&bad, &wants, &good]).start();
    for method in ["GET", "POST", "PUT", "DELETE"] {
        let answer = switch.client().ask(method, "/", "Content-Length: 0\r\n");
        assert_eq!((answer.status(), answer.text().as_str()), (200, "good"), "{method}");
    }
    assert_eq!(bad.count() + wants.count(), 0);
}

fn no_tls_there(threads: usize) {
    let plain = RawOrigin::serving(|mut socket, _| {
        use std::io::Write;
        // Whoever reads it hears the same whenever it comes.
        drop(socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
        drop(pointsman_e2e::read_some(&mut socket, &mut [0; 4096]));
    });
    let servers = [("plain", plain.address())];
    let keys = "tls = { verify = false }";
    let switch = Setup::new(threads).pool_at("standard", keys, &servers).start();
    fails(&switch, "/x", "tls", "TLS with the server: it does not speak TLS");
    let closes = RawOrigin::serving(|socket, _| drop(socket.shutdown(std::net::Shutdown::Write)));
    let switch = Setup::new(threads).pool_at("standard", keys, &[("closes", closes.address())]).start();
    fails(&switch, "/y", "tls", "TLS with the server: it closed the connection in the handshake");
}

/// Connecting and the handshake have one time together.
fn no_handshake_in_time(threads: usize) {
    let silent = RawOrigin::silent();
    let keys = "tls = { verify = false }\nconnect_ms_max = 200\ntries_max = 1";
    let switch = Setup::new(threads).pool_at("standard", keys, &[("silent", silent.address())]).start();
    let answer = switch.get("/x");
    assert_eq!(
        (answer.status(), answer.text().trim_end()),
        (504, "no TLS handshake with the server in time")
    );
    assert_eq!(switch.log_of("/x")["error"], "no TLS handshake with the server in time");
}

/// Connections that were made under other authorities serve no more when these are taken away.
fn reload_of_the_authorities(threads: usize) {
    let (site, other) = (Site::new(), Authority::new("another CA"));
    let setup = site.setup(threads, CA);
    let switch = setup.start();
    let mut client = switch.client();
    assert_eq!(client.get("/").status(), 200);
    switch.reload(&setup.clone().file("ca.crt", &other.pem()), 2);
    assert_eq!(client.get("/x").status(), 502);
    switch.reload(&setup, 3);
    assert_eq!(client.get("/").status(), 200);
    assert_eq!(site.origin.count(), 2);
}

/// What idle connections have booked is there for clients when these find too little.
fn idle_connections_give_memory_back(threads: usize) {
    const AT_A_TIME: usize = 8;
    let authority = Authority::new("server CA");
    let tls = TlsServer::new(&authority.server(&["server.example"]));
    let all_are_there = std::sync::Barrier::new(AT_A_TIME);
    let origin = Origin::secured("origin", &tls, move |exchange| {
        all_are_there.wait();
        ok(exchange)
    });
    let setup = Setup::new(threads).file("ca.crt", &authority.pem()).top("buffer_bytes_max = 4194304");
    let switch = setup.pool_with("standard", CA, &[&origin]).start();
    let mut clients: Vec<_> = std::iter::repeat_with(|| switch.client()).take(AT_A_TIME).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.response().status(), 200);
    }
    let kept = || switch.metric("pointsman_server_idle_connections", &[("server", "origin")]);
    until("idle connections", || (kept() > AT_A_TIME as f64 - 0.5).then_some(()));
    let head = format!("GET / HTTP/1.1\r\nHost: shop.example\r\nX-Slow: {}", "a".repeat(15_000));
    let refused = || switch.metric("pointsman_refusals_total", &[("reason", "memory")]);
    while refused() < 0.5 {
        let mut client = switch.client();
        // It may be the one that is refused.
        drop(client.try_send(&head));
        clients.push(client);
    }
    until("no idle connections", || (kept() < 0.5).then_some(()));
}
