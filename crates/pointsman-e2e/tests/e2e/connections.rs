//! One connection of a client, several servers; and how many connections there may be.

use pointsman_e2e::{Authority, Client, Origin, Setup, TlsClient, skipped};

pointsman_e2e::for_threads!(
    several_servers,
    discarded,
    reset_by_a_rule,
    connections_max,
    ipv6,
    several_addresses,
    no_host,
    many_clients
);

/// Every request of a connection is routed by itself.
fn several_servers(threads: usize) {
    let origins: Vec<Origin> = (0..4).map(|number| Origin::new(&format!("s{number}"))).collect();
    let mut setup = Setup::new(threads).pool("standard", &[&origins[0]]);
    let mut rules = String::new();
    for origin in &origins[1..] {
        let name = origin.name();
        setup = setup.pool(name, &[origin]);
        rules.push_str(&format!("if (path under \"/{name}\") {{ routeTo({name}); }}\n"));
    }
    let switch = setup.rules(&rules).start();
    let mut client = switch.client();
    for round in 0..3 {
        for name in ["s2", "s0", "s3", "s1", "s2"] {
            let answer = client.get(&format!("/{name}/{round}"));
            assert_eq!((answer.status(), answer.server()), (200, name));
        }
    }
    assert_eq!(origins[3].connections(), 1, "the connection to a server is kept");
}

/// `discard()` ends the connection without a byte, also after an answer, and cleanly: without a reset,
/// and on TLS with a close_notify.
fn discarded(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let setup =
        Setup::new(threads).rules("if (path == \"/gone\") { discard(); }").pool("standard", &[&origin]);
    let (plain, pair) = (setup.clone().start(), authority.server(&["shop.example"]));
    let tls = setup.tls(&pair, "").start();
    for after_an_answer in [false, true] {
        let secret = tls.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
        for mut client in [plain.client(), secret] {
            if after_an_answer {
                assert_eq!(client.get("/").status(), 200);
            }
            client.send("GET /gone HTTP/1.1\r\nHost: shop.example\r\n\r\n");
            let error = client.try_response().expect_err("no answer");
            // What the client of these tests says of an orderly end; others are errors of TCP or TLS.
            assert_eq!(error.to_string(), "closed before an answer");
        }
    }
    assert_eq!(origin.count(), 2);
    assert_eq!(plain.log_of("/gone")["rule"], "#1");
}

/// `reject(reset)` ends the connection without a byte, also after an answer, by a reset: what TLS says at its end is not said.
fn reset_by_a_rule(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let rules = "R1: if (path == \"/gone\") { tag(no); reject(reset); }";
    let setup = Setup::new(threads).rules(rules).pool("standard", &[&origin]);
    let (plain, pair) = (setup.clone().start(), authority.server(&["shop.example"]));
    let pipelined = setup.clone().listener("pipeline = \"concurrent\"").start();
    let tls = setup.tls(&pair, "").start();
    for after_an_answer in [false, true] {
        let secret = tls.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
        for mut client in [plain.client(), pipelined.client(), secret] {
            if after_an_answer {
                assert_eq!(client.get("/").status(), 200);
            }
            client.send("GET /gone HTTP/1.1\r\nHost: shop.example\r\n\r\n");
            let error = client.try_response().expect_err("no answer");
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
    }
    assert_eq!(origin.count(), 3);
    let entry = plain.log_of("/gone");
    assert_eq!((&entry["rule"], &entry["tags"][0]), (&"R1".into(), &"no".into()));
    assert_eq!(plain.metric("pointsman_refusals_total", &[("reason", "rule")]), 2.0);
}

/// The limit holds over all threads, and a connection that ends makes room.
fn connections_max(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).limits("connections_max = 2").pool("standard", &[&origin]).start();
    let (mut first, mut second) = (switch.client(), switch.client());
    assert_eq!(first.get("/1").status(), 200);
    assert_eq!(second.get("/2").status(), 200);
    // The third is either refused with 503, or closed, or waits; it is never served beside the others.
    let mut third = switch.client();
    drop(third.try_send("GET /3 HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
    assert_eq!(second.get("/4").status(), 200);
    assert!(origin.requests().iter().all(|request| request.target() != "/3"));
    drop(first);
    drop(second);
    // One that waited is served now; one that was refused tries again, until the switch has noticed
    // that the others left.
    let mut status = third.try_response().map(|answer| answer.status()).unwrap_or_default();
    for _ in 0..1000 {
        if status == 200 {
            break;
        }
        let mut again = switch.client();
        drop(again.try_send("GET /3 HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        status = again.try_response().map(|answer| answer.status()).unwrap_or_default();
    }
    assert_eq!(status, 200);
}

/// A listener on IPv6, where an address is written in brackets.
fn ipv6(threads: usize) {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return skipped("no IPv6 on this machine");
    }
    let origin = Origin::new("origin");
    let rules = "if (srcip == ::1 && dstip in [::/64]) { setHeader(\"x-rule\", \"six\"); }";
    let setup = Setup::new(threads).listener("bind = \"[::1]:0\"\nforwarded = \"append\"").rules(rules);
    let switch = setup.pool("standard", &[&origin]).start();
    let mut client = switch.client();
    assert_eq!(client.get("/").status(), 200);
    let head = origin.last().head;
    assert_eq!(head.field("x-rule"), Some("six"));
    assert_eq!(head.field("x-forwarded-for"), Some("::1"));
    assert!(head.field("forwarded").is_some_and(|value| value.contains("for=\"[::1]\"")), "{head:?}");
    let entry = switch.log_of("/");
    assert_eq!(entry["client"], client.local().to_string());
    assert_eq!(entry["client_ip"], "::1");
}

/// A listener may have several addresses.
fn several_addresses(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).listener("bind = [\"127.0.0.1:0\", \"127.0.0.2:0\"]");
    let switch = setup.pool("standard", &[&origin]).start();
    let addresses: Vec<_> = switch
        .said()
        .lines()
        .filter_map(|line| line.strip_prefix("listening name=shop address=")?.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(addresses.len(), 2, "{}", switch.said());
    for address in addresses {
        assert_eq!(Client::plain(address).get("/").status(), 200);
    }
}

/// HTTP/1.0 may name no host: a server gets the address that the client connected to, and rules see none.
fn no_host(threads: usize) {
    let origin = Origin::new("origin");
    let rules = "if (host exists) { reject(403); }";
    for bind in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
        if bind.starts_with('[') && std::net::TcpListener::bind(bind).is_err() {
            return skipped("no IPv6 on this machine");
        }
        let setup = Setup::new(threads).listener(&format!("bind = \"{bind}\"\nforwarded = \"append\""));
        let switch = setup.rules(rules).pool("standard", &[&origin]).start();
        let mut client = switch.client();
        client.send("GET / HTTP/1.0\r\n\r\n");
        assert_eq!(client.response().status(), 200, "{bind}");
        let head = origin.last().head;
        let mut address = switch.address("shop");
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        assert_eq!(head.all("host"), [address.to_string()]);
        assert_eq!(head.field("x-forwarded-host"), None);
        assert!(head.field("forwarded").is_some_and(|value| !value.contains("host=")), "{head:?}");
    }
}

/// Many clients at once, each with its own answers.
fn many_clients(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        let target = exchange.target().to_owned();
        exchange.answer("200 OK", &target)
    });
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    std::thread::scope(|scope| {
        for number in 0..32 {
            let mut client = switch.client();
            scope.spawn(move || {
                for round in 0..20 {
                    let target = format!("/{number}/{round}");
                    assert_eq!(client.get(&target).text(), target);
                }
            });
        }
    });
    assert_eq!(origin.count(), 32 * 20);
}
