//! Certificates that are shown, and replaced while the switch runs.

use std::path::Path;

use pointsman_e2e::{Authority, Origin, Pair, Setup, Switch, Then, TlsClient, TlsServer, ok, sha256_hex};
use serde_json::Value;

pointsman_e2e::for_threads!(
    certificates_are_shown,
    another_one_in_its_place,
    a_new_certificate_for_the_same_key,
    a_pair_in_one_file,
    what_is_of_no_use_changes_nothing,
    what_a_pool_shows,
);

const ALL: &str = "/api/v1/certificates";

fn start(threads: usize, origin: &Origin, pair: &Pair) -> Switch {
    let setup = Setup::new(threads).tls(pair, "").pool("standard", &[origin]).with_token();
    setup.start()
}

fn get(switch: &Switch, target: &str) -> Value {
    let said = switch.admin_shows(target);
    assert!(!said.to_string().contains("PRIVATE"), "{said}");
    said
}

/// The only certificate.
fn shown(switch: &Switch) -> Value {
    let all = get(switch, ALL)["certificates"].clone();
    assert_eq!(all.as_array().expect("a list").len(), 1, "{all}");
    all[0].clone()
}

fn replace(switch: &Switch, pem: &str) -> (u16, Value) {
    let known = shown(switch);
    let (id, fingerprint) = (known["id"].as_str(), known["fingerprint"].as_str());
    let target = format!("{ALL}/{}", id.expect("an id"));
    let lines = format!("If-Match: \"{}\"\r\n", fingerprint.expect("a fingerprint"));
    let (answer, said) = switch.admin_ask("PUT", &target, &lines, pem);
    assert!(!said.to_string().contains("PRIVATE"), "{said}");
    (answer.status(), said)
}

fn both(pair: &Pair) -> String {
    format!("{}{}", pair.certificate, pair.key)
}

fn file(switch: &Switch, name: &str) -> String {
    std::fs::read_to_string(switch.folder().join(name)).expect("it is there")
}

/// Whether a client gets an answer under this certificate.
#[track_caller]
fn serves(switch: &Switch, authority: &Authority, pair: &Pair) {
    let config = TlsClient::new(authority);
    let mut client = switch.tls_client(&config, "shop.example").expect("a handshake");
    assert_eq!(client.get("/").status(), 200);
    assert_eq!(shown(switch)["fingerprint"], sha256_hex(&pair.der));
}

fn certificates_are_shown(threads: usize) {
    let (origin, authority) = (Origin::new("origin"), Authority::new("one"));
    let pair = authority.server(&["shop.example", "*.shop.example"]);
    let switch = start(threads, &origin, &pair);
    let said = shown(&switch);
    for (key, expected) in [
        ("listeners", r#"["shop"]"#),
        ("names", r#"["shop.example","*.shop.example"]"#),
        ("subject", r#""CN=shop.example""#),
        ("issuer", r#""CN=one""#),
        ("key", r#""ECDSA P-256""#),
        ("chain", "1"),
        ("concerns", "[]"),
    ] {
        assert_eq!(said[key].to_string(), expected, "{key} {said}");
    }
    assert!(said["days_left"].as_u64().is_some_and(|days| days > 1000), "{said}");
    assert!(said["not_after"].as_str().expect("a time") > said["not_before"].as_str().expect("a time"));
    let one = get(&switch, &format!("{ALL}/{}", said["id"].as_str().expect("an id")));
    assert_eq!(one["fingerprint"], sha256_hex(&pair.der));
    let (answer, _) = switch.admin_ask("GET", &format!("{ALL}/none"), "", "");
    assert_eq!(answer.status(), 404);
}

/// New handshakes get it when the answer comes; who is there goes on, and nothing of the key is said.
fn another_one_in_its_place(threads: usize) {
    let (origin, old, new) = (Origin::new("origin"), Authority::new("old"), Authority::new("new"));
    let (before, after) = (old.server(&["shop.example", "gone.example"]), new.server(&["shop.example"]));
    let switch = start(threads, &origin, &before);
    let mut there = switch.tls_client(&TlsClient::new(&old), "shop.example").expect("a handshake");
    assert_eq!(there.get("/").status(), 200);
    let id = shown(&switch)["id"].clone();
    let (status, said) = replace(&switch, &both(&after));
    assert_eq!((status, &said["generation"], &said["id"]), (200, &2.into(), &id), "{said}");
    assert_eq!(said["names_gone"].to_string(), r#"["gone.example"]"#);
    serves(&switch, &new, &after);
    assert_eq!(there.get("/").status(), 200, "it is not cut");
    assert_eq!(
        (file(&switch, "shop.crt"), file(&switch, "shop.key")),
        (after.certificate.clone(), after.key.clone())
    );
    switch.wait_for_line("certificate replaced file=");
    switch.signal("HUP");
    switch.wait_for_line("reloaded generation=3");
    serves(&switch, &new, &after);
    let secret = after.key.lines().nth(1).expect("base64");
    assert!(!switch.said().contains(secret), "the key is said");
}

fn a_new_certificate_for_the_same_key(threads: usize) {
    let (origin, authority) = (Origin::new("origin"), Authority::new("one"));
    let before = authority.server(&["shop.example"]);
    let after = authority.renewed(&before, &["shop.example", "www.shop.example"]);
    let switch = start(threads, &origin, &before);
    let (status, said) = replace(&switch, &after.certificate);
    assert_eq!(status, 200, "{said}");
    serves(&switch, &authority, &after);
    assert_eq!(file(&switch, "shop.key"), before.key);
}

fn a_pair_in_one_file(threads: usize) {
    let (origin, authority) = (Origin::new("origin"), Authority::new("one"));
    let (before, after) = (authority.server(&["shop.example"]), authority.server(&["shop.example"]));
    let tls = "tls = { certificate = \"both.pem\", key = \"both.pem\" }";
    let setup = Setup::new(threads).listener(tls).file("both.pem", &both(&before));
    let switch = setup.pool("standard", &[&origin]).with_token().start();
    let (status, said) = replace(&switch, &both(&after));
    assert_eq!(status, 200, "{said}");
    serves(&switch, &authority, &after);
    assert_eq!(file(&switch, "both.pem"), both(&after));
}

fn what_is_of_no_use_changes_nothing(threads: usize) {
    let (origin, authority, other) = (Origin::new("origin"), Authority::new("one"), Authority::new("other"));
    let pair = authority.server(&["shop.example"]);
    let switch = start(threads, &origin, &pair);
    let new = authority.server(&["shop.example"]);
    for (pem, expected) in [
        (String::new(), "what was sent holds no certificate"),
        (new.key.clone(), "what was sent holds no certificate"),
        (new.certificate.clone(), "shop.key` does not belong to the certificate that was sent"),
        (
            format!("{}{}", new.certificate, pair.key),
            "the key that was sent does not belong to the certificate that was sent",
        ),
        (both(&authority.expired_server(&["shop.example"])), "the certificate that was sent expired"),
        (format!("{}{}{}", new.certificate, other.pem(), new.key), "chain does not hold"),
        (both(&new).replace("MII", "???"), "what was sent is not valid PEM"),
    ] {
        let (status, said) = replace(&switch, &pem);
        let detail = said["detail"].as_str().expect("a sentence");
        assert!(status == 422 && detail.contains(expected), "{expected}: {said}");
        assert!(!new.key.lines().any(|line| line.len() > 20 && detail.contains(line)), "{said}");
    }
    let (answer, _) = switch.admin_ask("PUT", &format!("{ALL}/none"), "If-Match: *\r\n", &both(&new));
    assert_eq!(answer.status(), 404);
    let target = format!("{ALL}/{}", shown(&switch)["id"].as_str().expect("an id"));
    assert_eq!(switch.admin_ask("PUT", &target, "", &both(&new)).0.status(), 428);
    assert_eq!(switch.admin_ask("PUT", &target, "If-Match: \"00\"\r\n", &both(&new)).0.status(), 412);
    serves(&switch, &authority, &pair);
    assert_eq!(
        (file(&switch, "shop.crt"), file(&switch, "shop.key")),
        (pair.certificate.clone(), pair.key.clone())
    );
    let names: Vec<_> = std::fs::read_dir(switch.folder())
        .expect("it is there")
        .map(|entry| entry.expect("it is there").file_name())
        .filter(|name| Path::new(name).extension().is_none())
        .collect();
    assert!(names.is_empty(), "nothing is left behind: {names:?}");
    // With its chain it is good.
    let whole = format!("{}{}{}", new.certificate, authority.pem(), new.key);
    assert_eq!(replace(&switch, &whole).0, 200);
    serves(&switch, &authority, &new);
}

/// Servers see another one from their next connection on.
fn what_a_pool_shows(threads: usize) {
    let (authority, clients) = (Authority::new("server CA"), Authority::new("client CA"));
    let pair = authority.server(&["server.example"]);
    let (before, after) = (clients.client("switch", &[]), clients.client("switch", &["switch.example"]));
    let origin = Origin::secured("origin", &TlsServer::demanding(&pair, &clients), |exchange| {
        ok(exchange);
        Then::Close
    });
    let keys =
        "tls = { ca = \"ca.crt\", name = \"server.example\", certificate = \"us.crt\", key = \"us.key\" }";
    let setup = Setup::new(threads).file("ca.crt", &authority.pem()).pair("us", &before);
    let switch = setup.pool_with("standard", keys, &[&origin]).with_token().start();
    assert_eq!(switch.get("/").status(), 200);
    let said = shown(&switch);
    assert_eq!(said["pools"].to_string(), r#"["standard"]"#, "{said}");
    assert_eq!((said["listeners"].to_string(), said["concerns"].to_string()), ("[]".into(), "[]".into()));
    assert!(said["days_left"].as_u64().is_some_and(|days| days > 1000), "{said}");
    let (status, said) = replace(&switch, &format!("{}{}{}", after.certificate, authority.pem(), after.key));
    assert!(
        status == 422 && said["detail"].as_str().is_some_and(|why| why.contains("chain does not hold")),
        "{said}"
    );
    let (status, said) = replace(&switch, &format!("{}{}{}", after.certificate, clients.pem(), after.key));
    assert_eq!(status, 200, "{said}");
    assert_eq!(switch.get("/").status(), 200);
    let shaken: Vec<_> = origin.shaken().into_iter().map(|shaken| shaken.certificate).collect();
    assert_eq!(shaken, [Some(before.der), Some(after.der)]);
}
