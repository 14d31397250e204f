//! Certificates, versions and resumption, as clients see them.

use pointsman_e2e::{Authority, Client, Origin, Setup, Switch, TlsClient, until};

pointsman_e2e::for_threads!(
    inline_table,
    certificate_by_sni,
    minimum_version,
    both_versions,
    key_exchange,
    handshakes_are_told_apart,
    alpn,
    resumption,
    no_tickets,
    resumption_over_a_reload,
    plain_http_on_a_tls_port,
    scheme_of_a_target,
    no_handshake,
    slow_handshake,
    close_notify
);

fn shop(threads: usize, authority: &Authority, keys: &str, origin: &Origin) -> Switch {
    let pair = authority.server(&["shop.example"]);
    Setup::new(threads).tls(&pair, keys).pool("standard", &[origin]).start()
}

/// The short form of the configuration.
fn inline_table(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let keys = "tls = { certificate = \"a.crt\", key = \"a.key\" }";
    let setup = Setup::new(threads).listener(keys).pair("a", &authority.server(&["shop.example"]));
    let switch = setup.pool("standard", &[&origin]).start();
    assert!(switch.said().contains("tls=true"), "{}", switch.said());
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example");
    assert_eq!(client.expect("a handshake").get("/").status(), 200);
}

/// By exact name, by wildcard (one label), and the first one for all others and for no name at all.
fn certificate_by_sni(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let first = authority.server(&["shop.example", "www.shop.example"]);
    let wild = authority.server(&["*.wild.example"]);
    let exact = authority.server(&["exact.wild.example"]);
    let more = "certificates = [ { certificate = \"wild.crt\", key = \"wild.key\" }, \
                { certificate = \"exact.crt\", key = \"exact.key\" } ]";
    let setup = Setup::new(threads).tls(&first, more).pair("wild", &wild).pair("exact", &exact);
    let switch = setup.pool("standard", &[&origin]).start();
    let trust = TlsClient::new(&authority);
    let shown = |name: &str| {
        let mut client = switch.tls_client(&trust, name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(client.get("/").status(), 200);
        client.certificate()
    };
    assert_eq!(shown("shop.example"), first.der);
    assert_eq!(shown("www.shop.example"), first.der);
    assert_eq!(shown("a.wild.example"), wild.der);
    assert_eq!(shown("exact.wild.example"), exact.der);
    assert_eq!(shown("EXACT.wild.example"), exact.der);
    let silent = trust.clone().without_sni();
    let client = switch.tls_client(&silent, "shop.example").expect("the first certificate");
    assert_eq!(client.certificate(), first.der);
    // The wildcard covers one label, so these get the first certificate, which their client refuses.
    for name in ["wild.example", "a.b.wild.example", "other.example"] {
        let error = switch.tls_client(&trust, name).err().unwrap_or_else(|| panic!("{name} was served"));
        assert!(error.to_string().contains("not valid for name"), "{name}: {error}");
    }
}

/// `min_version = "1.3"` leaves TLS 1.2 out.
fn minimum_version(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let switch = shop(threads, &authority, "min_version = \"1.3\"", &origin);
    assert!(switch.tls_client(&TlsClient::v12(&authority), "shop.example").is_err());
    let client = switch.tls_client(&TlsClient::v13(&authority), "shop.example");
    assert_eq!(client.expect("TLS 1.3").get("/").status(), 200);
}

/// By default both.
fn both_versions(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let switch = shop(threads, &authority, "", &origin);
    for trust in [TlsClient::v12(&authority), TlsClient::v13(&authority)] {
        let mut client = switch.tls_client(&trust, "shop.example").expect("a handshake");
        for _ in 0..3 {
            assert_eq!(client.get("/").status(), 200);
        }
    }
}

/// A client that can is asked for the hybrid key exchange first.
fn key_exchange(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let switch = shop(threads, &authority, "", &origin);
    let client = switch.tls_client(&TlsClient::v13(&authority), "shop.example").expect("a handshake");
    assert_eq!(client.group().as_deref(), Some("X25519MLKEM768"));
}

/// By version, group and session, in metrics and in the traffic that the console looks at.
fn handshakes_are_told_apart(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let setup = setup.another_listener("plain").default_pool("standard").pool("standard", &[&origin]);
    let switch = setup.start();
    // The second handshake of each goes on with the session of the first.
    for trust in [TlsClient::v12(&authority), TlsClient::v13(&authority)] {
        for _ in 0..2 {
            let mut client = switch.tls_client(&trust, "shop.example").expect("a handshake");
            assert_eq!(client.get("/").status(), 200);
        }
    }
    let mut stranger = Client::plain(switch.address("shop"));
    stranger.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    stranger.everything();
    let shown = until("all are counted", || {
        let shown = switch.admin_shows("/api/v1/traffic");
        (shown["listeners"][0]["tls"]["failures"]["not_tls"] == 1).then_some(shown)
    });
    let tls = &shown["listeners"][0]["tls"];
    assert_eq!((&tls["full"], &tls["resumed"]), (&2.into(), &2.into()), "{tls}");
    assert_eq!(tls["versions"], serde_json::json!({ "1.2": 2, "1.3": 2 }), "{tls}");
    let groups = tls["groups"].as_object().expect("groups");
    assert_eq!(groups.values().filter_map(serde_json::Value::as_u64).sum::<u64>(), 4, "{tls}");
    assert_eq!((&tls["groups"]["X25519MLKEM768"], &tls["groups"]["none"]), (&2.into(), &1.into()), "{tls}");
    assert!(shown["listeners"][1]["tls"].is_null(), "it speaks no TLS");
    for (group, count) in groups {
        let counted = switch.metric("pointsman_tls_groups_total", &[("listener", "shop"), ("group", group)]);
        assert_eq!(Some(counted), count.as_f64(), "{group}");
    }
    for version in ["1.2", "1.3"] {
        let labels = [("listener", "shop"), ("version", version)];
        assert_eq!(switch.metric("pointsman_tls_versions_total", &labels), 2.0);
    }
}

/// HTTP/2 is agreed on before HTTP/1.1; a client that insists on something else is refused; one that offers
/// nothing is served.
fn alpn(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let switch = shop(threads, &authority, "", &origin);
    let offers =
        |protocols: &[&str]| switch.tls_client(&TlsClient::new(&authority).alpn(protocols), "shop.example");
    for (offered, agreed) in [(&["http/1.1", "h2"][..], "h2"), (&["h3", "http/1.1"], "http/1.1")] {
        let client = offers(offered).expect("a common protocol");
        assert_eq!(client.alpn().as_deref(), Some(agreed));
    }
    assert_eq!(offers(&[]).expect("no ALPN").alpn(), None);
    assert!(offers(&["h3"]).is_err());
}

/// The second handshake of a client is a short one, with both versions and on every thread.
fn resumption(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let switch = shop(threads, &authority, "", &origin);
    for trust in [TlsClient::v12(&authority), TlsClient::v13(&authority)] {
        for number in 0..10 {
            let mut client = switch.tls_client(&trust, "shop.example").expect("a handshake");
            assert_eq!(client.resumed(), number > 0, "{:?}, connection {number}", client.version());
            // With TLS 1.3 the tickets come after the handshake, before the answer.
            assert_eq!(client.get("/").status(), 200);
        }
    }
}

/// `tickets = false`: always a full handshake.
fn no_tickets(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let switch = shop(threads, &authority, "tickets = false", &origin);
    for trust in [TlsClient::v12(&authority), TlsClient::v13(&authority)] {
        for _ in 0..3 {
            let mut client = switch.tls_client(&trust, "shop.example").expect("a handshake");
            assert!(!client.resumed(), "{:?}", client.version());
            assert_eq!(client.get("/").status(), 200);
        }
    }
}

/// A reload does not throw the ticket keys away.
fn resumption_over_a_reload(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let pair = authority.server(&["shop.example"]);
    let setup = Setup::new(threads).tls(&pair, "").pool("standard", &[&origin]);
    let switch = setup.start();
    let trust = TlsClient::v13(&authority);
    let mut client = switch.tls_client(&trust, "shop.example").expect("a handshake");
    assert_eq!(client.get("/").status(), 200);
    switch.reload(&setup.rules("{ setHeader(\"x-new\", \"1\"); }"), 2);
    let mut client = switch.tls_client(&trust, "shop.example").expect("a handshake");
    assert!(client.resumed());
    assert_eq!(client.get("/").status(), 200);
}

/// A client that forgot the `s` of `https` reads what is wrong, and no server sees anything.
fn plain_http_on_a_tls_port(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let switch = shop(threads, &authority, "", &origin);
    for start in [&b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut plain = Client::plain(switch.address("shop"));
        // Byte by byte up to where it can be told.
        for byte in &start[..6] {
            plain.send([*byte]);
        }
        plain.send(&start[6..]);
        let answer = plain.response();
        assert_eq!((answer.status(), answer.text().contains("TLS port")), (400, true), "{answer:?}");
        assert!(plain.closes());
    }
    let entry = switch.log_entry("a refusal", |entry| entry["status"] == 400);
    assert_eq!(entry["error"], "TLS handshake: not_tls: a plain HTTP request", "{entry}");
    assert_eq!(origin.connections(), 0);
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example");
    assert_eq!(client.expect("a handshake").get("/").status(), 200);
}

/// Over TLS a whole URL is one of `https`, and its host that of `Host`.
fn scheme_of_a_target(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let switch = shop(threads, &authority, "", &origin);
    let ask = |target: &str| {
        let mut client = switch.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
        client.send(format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        let status = client.response().status();
        (status, status == 200 || client.closes())
    };
    assert_eq!(ask("https://shop.example/x"), (200, true));
    assert_eq!(origin.last().target(), "/x");
    assert_eq!(ask("http://shop.example/y"), (421, true));
    assert_eq!(ask("ws://shop.example/y"), (400, true));
    assert_eq!(origin.count(), 1);
}

/// A client that connects and leaves.
fn no_handshake(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let switch = shop(threads, &authority, "", &origin);
    for _ in 0..10 {
        drop(Client::plain(switch.address("shop")));
    }
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example");
    assert_eq!(client.expect("a handshake").get("/").status(), 200);
}

/// A handshake has a deadline of its own.
fn slow_handshake(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.limits("handshake_ms_max = 200").pool("standard", &[&origin]).start();
    let mut silent = Client::plain(switch.address("shop"));
    assert!(silent.closes());
    let mut half = Client::plain(switch.address("shop"));
    half.send(b"\x16\x03\x01\x02\x00\x01");
    assert!(half.closes());
}

/// An answer that ends with the connection ends with a close_notify, so that it cannot be cut unseen;
/// one that is cut ends without.
fn close_notify(threads: usize) {
    let authority = Authority::new("test CA");
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    let whole = Origin::saying("whole", format!("{answer}0\r\n\r\n"), pointsman_e2e::Then::KeepAlive);
    let cut = Origin::saying("cut", answer, pointsman_e2e::Then::Close);
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let setup = setup.rules("if (path == \"/cut\") { routeTo(broken); }");
    let switch = setup.pool("standard", &[&whole]).pool("broken", &[&cut]).start();
    let ask = |path: &str| {
        let client = switch.tls_client(&TlsClient::new(&authority), "shop.example");
        let mut client = client.expect("a handshake");
        client.send(format!("GET {path} HTTP/1.0\r\nHost: shop.example\r\n\r\n"));
        client.try_response().map(|answer| answer.text())
    };
    assert_eq!(ask("/whole").expect("a whole answer"), "half");
    assert!(ask("/cut").is_err());
}
