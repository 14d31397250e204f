//! Whom a stream may ask for on its connection: the certificate that was shown must stand for it, and its scheme must
//! be the connection's.

use pointsman_e2e::{Authority, Client, H2Client, Origin, Setup, Switch, TlsClient, ok};

use crate::http2::begin;

pointsman_e2e::for_threads!(several_certificates, one_certificate, behind_a_trusted_proxy, schemes);

struct Asks<'a> {
    switch: &'a Switch,
    authority: &'a Authority,
}

impl Asks<'_> {
    /// The status of a request for `host` on a connection whose handshake named `name`, or nobody.
    fn status(&self, name: Option<&str>, host: &str) -> u16 {
        let mut trust = TlsClient::new(self.authority).alpn(&["h2"]);
        if name.is_none() {
            trust = trust.without_sni();
        }
        let client = Client::tls(self.switch.address("shop"), &trust, name.unwrap_or("shop.example"));
        let mut client = H2Client::begin(client.expect("a handshake"));
        client.ask(1, "GET", "/", &[(":authority", host)]);
        let status = client.answer(1).status();
        // The connection is as good as before.
        client.ask(3, "GET", "/", &[(":authority", name.unwrap_or("shop.example"))]);
        assert_eq!(client.answer(3).status(), 200);
        status
    }
}

/// A listener with three certificates.
pub(crate) fn several(threads: usize, authority: &Authority) -> Setup {
    let more = "certificates = [ { certificate = \"wild.crt\", key = \"wild.key\" }, \
                { certificate = \"other.crt\", key = \"other.key\" } ]";
    Setup::new(threads)
        .tls(&authority.server(&["shop.example", "www.shop.example"]), more)
        .pair("wild", &authority.server(&["*.wild.example"]))
        .pair("other", &authority.server(&["other.example"]))
}

/// One that would be shown another certificate is sent to a connection of its own, with 421.
fn several_certificates(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let switch = several(threads, &authority).pool("standard", &[&origin]).start();
    let asks = Asks { switch: &switch, authority: &authority };
    for (name, host, status) in [
        (Some("shop.example"), "shop.example", 200),
        (Some("shop.example"), "SHOP.example:8443", 200),
        (Some("shop.example"), "www.shop.example", 200),
        (Some("www.shop.example"), "shop.example", 200),
        (Some("shop.example"), "other.example", 421),
        (Some("shop.example"), "a.wild.example", 421),
        (Some("other.example"), "shop.example", 421),
        (Some("a.wild.example"), "b.wild.example", 200),
        (Some("a.wild.example"), "other.example", 421),
        (Some("a.wild.example"), "wild.example", 421),
        // Who named nobody was shown the first one, which is also for whoever has none.
        (None, "shop.example", 200),
        (None, "www.shop.example", 200),
        (None, "127.0.0.1", 200),
        (None, "other.example", 421),
        (Some("shop.example"), "127.0.0.1", 421),
        (Some("shop.example"), "nobody.example", 421),
        (Some("other.example"), "127.0.0.1", 421),
        (Some("other.example"), "[::1]", 421),
    ] {
        assert_eq!(asks.status(name, host), status, "{host} on a connection to {name:?}");
    }
    assert_eq!(switch.log_entry("a refusal", |entry| entry["status"] == 421)["version"], "2");
}

/// What it is not for is asked for on a connection of its own, by its name or by none.
fn one_certificate(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.pool("standard", &[&origin]).start();
    let asks = Asks { switch: &switch, authority: &authority };
    for (name, host, status) in [
        (Some("shop.example"), "Shop.Example:1", 200),
        (Some("shop.example"), "other.example", 421),
        (None, "10.0.0.1", 200),
        (None, "other.example:1", 200),
    ] {
        assert_eq!(asks.status(name, host), status, "{host} on a connection to {name:?}");
    }
}

/// A proxy in front has clients of all names on one connection.
fn behind_a_trusted_proxy(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let setup = several(threads, &authority).listener("trusted_proxies = [\"127.0.0.1\"]");
    let switch = setup.pool("standard", &[&origin]).start();
    let asks = Asks { switch: &switch, authority: &authority };
    for host in ["other.example", "a.wild.example", "127.0.0.1"] {
        assert_eq!(asks.status(Some("shop.example"), host), 200, "{host}");
    }
}

/// Only a trusted proxy may speak for another scheme than its own.
fn schemes(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let setup = Setup::new(threads).pool("standard", &[&origin]).another_listener("behind");
    let switch = setup.listener("trusted_proxies = [\"127.0.0.1\"]").start();
    let mut client = begin(&switch);
    client.ask(1, "GET", "/", &[(":scheme", "https")]);
    assert_eq!(client.answer(1).status(), 421);
    client.ask(3, "GET", "/", &[(":scheme", "http")]);
    assert_eq!(client.answer(3).status(), 200);
    let mut client = H2Client::begin(Client::plain(switch.address("behind")));
    client.ask(1, "GET", "/", &[(":scheme", "https")]);
    assert_eq!(client.answer(1).status(), 200);
}
