//! Handshakes that fail: what the metrics and the access log say of them.

use pointsman_e2e::{Authority, Client, Origin, Setup, Switch, TlsClient, until};

pointsman_e2e::for_threads!(reasons_of_a_failure, client_certificates, no_word_no_line);

/// A TLS 1.2 hello that offers one cipher suite, the RSA key exchange with AES in CBC mode, which nobody should
/// take.
const OLD_CIPHER: &[u8] = b"\x16\x03\x01\x00\x49\x01\x00\x00\x45\x03\x03\
    01234567890123456789012345678901\x00\x00\x02\x00\x2f\x01\x00\
    \x00\x1a\x00\x0a\x00\x04\x00\x02\x00\x1d\x00\x0b\x00\x02\x01\x00\x00\x0d\x00\x04\x00\x02\x04\x03\x00\x17\x00\x00";

/// A hello of TLS 1.1, which no listener speaks.
const OLD_VERSION: &[u8] = b"\x16\x03\x01\x00\x41\x01\x00\x00\x3d\x03\x02\
    01234567890123456789012345678901\x00\x00\x02\x00\x2f\x01\x00\
    \x00\x12\x00\x0a\x00\x04\x00\x02\x00\x1d\x00\x0b\x00\x02\x01\x00\x00\x17\x00\x00";

/// A whole hello of one byte.
const BROKEN: &[u8] = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00";

fn failures(switch: &Switch, reason: &str) -> f64 {
    switch.metric("pointsman_tls_handshake_failures_total", &[("listener", "shop"), ("reason", reason)])
}

/// One more of that reason, and of no other; and a line with it.
fn check(switch: &Switch, reason: &str, fail: impl FnOnce()) {
    let all = |result: &str| switch.metric("pointsman_tls_handshakes_total", &[("result", result)]);
    let before = (failures(switch, reason), all("failed"));
    fail();
    until(reason, || (failures(switch, reason) > before.0).then_some(()));
    let after = (failures(switch, reason), all("failed"));
    assert_eq!(after, (before.0 + 1.0, before.1 + 1.0), "{reason}");
    let start = format!("TLS handshake: {reason}");
    let entry = switch
        .log_entry(reason, |entry| entry["error"].as_str().is_some_and(|error| error.starts_with(&start)));
    assert_eq!((&entry["listener"], &entry["client_ip"]), (&"shop".into(), &"127.0.0.1".into()), "{entry}");
    let is_answered = entry["error"].as_str().is_some_and(|error| error.ends_with("a plain HTTP request"));
    assert!(entry["total_us"].is_u64() && entry.get("status").is_some() == is_answered, "{entry}");
}

fn says(switch: &Switch, bytes: &[u8]) {
    let mut client = Client::plain(switch.address("shop"));
    client.send(bytes);
    client.everything();
}

fn reasons_of_a_failure(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "min_version = \"1.3\"");
    let new = setup.pool("standard", &[&origin]).start();
    let fails = |switch: &Switch, trust: TlsClient| {
        // With TLS 1.3 the client may hear of it only behind its own part of the handshake.
        if let Ok(mut client) = switch.tls_client(&trust, "shop.example") {
            client.everything();
        }
    };
    check(&new, "no_shared_version", || fails(&new, TlsClient::v12(&authority)));
    check(&new, "no_shared_protocol", || fails(&new, TlsClient::new(&authority).alpn(&["h3"])));
    check(&new, "server_certificate", || fails(&new, TlsClient::new(&Authority::new("other CA"))));
    check(&new, "not_tls", || says(&new, b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
    check(&new, "not_tls", || says(&new, b"SSH-2.0-client\r\n"));
    check(&new, "malformed", || says(&new, BROKEN));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let old = setup.limits("handshake_ms_max = 200").pool("standard", &[&origin]).start();
    check(&old, "no_shared_cipher", || says(&old, OLD_CIPHER));
    check(&old, "no_shared_version", || says(&old, OLD_VERSION));
    check(&old, "timeout", || says(&old, &OLD_CIPHER[..20]));
    // None of them was a request.
    for switch in [&new, &old] {
        assert!(switch.metric("pointsman_requests_total", &[]) < 0.5, "{}", switch.metrics());
    }
    assert_eq!(origin.connections(), 0);
}

fn client_certificates(threads: usize) {
    let (authority, other, origin) =
        (Authority::new("test CA"), Authority::new("other CA"), Origin::new("origin"));
    let keys = "client_ca = \"ca.crt\"\nclient_auth = \"require\"";
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), keys);
    let switch = setup.file("ca.crt", &authority.pem()).pool("standard", &[&origin]).start();
    let stranger = TlsClient::identified(&authority, &other.client("stranger", &[]));
    for trust in [TlsClient::new(&authority), stranger, TlsClient::v12(&authority)] {
        check(&switch, "client_certificate", || {
            if let Ok(mut client) = switch.tls_client(&trust, "shop.example") {
                client.everything();
            }
        });
    }
}

/// A balancer that only looks whether somebody is there is counted, and fills no log.
fn no_word_no_line(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.limits("handshake_ms_max = 200").pool("standard", &[&origin]).start();
    drop(Client::plain(switch.address("shop")));
    until("closed", || (failures(&switch, "closed") > 0.5).then_some(()));
    assert!(Client::plain(switch.address("shop")).closes());
    until("timeout", || (failures(&switch, "timeout") > 0.5).then_some(()));
    let mut client = switch.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
    assert_eq!(client.get("/").status(), 200);
    assert_eq!(switch.log_of("/")["status"], 200);
    switch.expect_log_lines(1);
}
