//! What an operator can set of TLS and see of it: hosts beside the server name, handshakes by address, ends of certificates.

use pointsman_e2e::{Authority, Client, Origin, Setup, Switch, TlsClient, ok, until};

use crate::http2_names::several;

pointsman_e2e::for_threads!(misdirected_over_http1, handshakes_of_an_address, ends_of_certificates);

/// The status of a request for `host` on a connection whose handshake named `name`, or nobody.
fn status(switch: &Switch, authority: &Authority, name: Option<&str>, host: &str) -> u16 {
    let mut trust = TlsClient::new(authority).alpn(&["http/1.1"]);
    if name.is_none() {
        trust = trust.without_sni();
    }
    let client = switch.tls_client(&trust, name.unwrap_or("shop.example"));
    let mut client = client.expect("a handshake");
    client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    client.response().status()
}

fn misdirected_over_http1(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let start = |mode: &str| {
        let setup = several(threads, &authority).listener(mode);
        setup.pool("standard", &[&origin]).start()
    };
    let switches = [start(""), start("misdirected = \"certificate\""), start("misdirected = \"name\"")];
    for (name, host, expected) in [
        (Some("shop.example"), "shop.example", [200, 200, 200]),
        (Some("shop.example"), "SHOP.example.:8443", [200, 200, 200]),
        (Some("shop.example"), "www.shop.example", [200, 200, 421]),
        (Some("a.wild.example"), "b.wild.example", [200, 200, 421]),
        (Some("shop.example"), "other.example", [200, 421, 421]),
        (Some("shop.example"), "127.0.0.1", [200, 421, 421]),
        // Who named nobody was shown the first certificate.
        (None, "shop.example", [200, 200, 200]),
        (None, "other.example", [200, 421, 421]),
    ] {
        let came = [0, 1, 2].map(|at| status(&switches[at], &authority, name, host));
        assert_eq!(came, expected, "{host} on a connection to {name:?}");
    }
    // A client of HTTP/1.0 need not name a host.
    let mut client =
        switches[2].tls_client(&TlsClient::new(&authority).alpn(&[]), "shop.example").expect("a handshake");
    client.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(client.response().status(), 200);
}

fn handshakes_of_an_address(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let setup = setup.limits("handshakes_per_address_per_second_max = 1");
    let switch = setup.pool("standard", &[&origin]).start();
    let trust = TlsClient::new(&authority);
    let mut kept = switch.tls_client(&trust, "shop.example").expect("the first of a second");
    let refused = || switch.metric("pointsman_refusals_total", &[("reason", "handshakes_per_address")]);
    until("one is too many", || {
        let tried = switch.tls_client(&trust, "shop.example");
        (tried.is_err() && refused() > 0.5).then_some(())
    });
    // Plain requests are answered in words, and who is there is served on.
    let mut plain = Client::plain(switch.address("shop"));
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(plain.response().status(), 400);
    assert_eq!(kept.get("/").status(), 200);
    until("another second", || switch.tls_client(&trust, "shop.example").ok());
}

fn ends_of_certificates(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let keys = "client_ca = \"ca.crt\"\nclient_auth = \"request\"";
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), keys);
    let switch = setup.file("ca.crt", &authority.pem()).pool("standard", &[&origin]).start();
    for role in ["own", "authority"] {
        let value = |name: &str| switch.metric(name, &[("listener", "shop"), ("role", role)]);
        let (end_s, days) =
            (value("pointsman_certificate_not_after_seconds"), value("pointsman_certificate_days_left"));
        assert!(days >= 1.0, "{role}: {days}");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
        let left = (end_s - now.as_secs_f64()) / 86_400.0;
        assert!((left - days).abs() < 1.1, "{role}: {left} days left, {days} told");
    }
}
