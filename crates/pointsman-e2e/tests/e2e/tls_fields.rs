//! Rules over the fields of a TLS connection.

use base64::prelude::{BASE64_STANDARD, Engine};
use pointsman_e2e::{Authority, Client, Origin, Setup, TlsClient, installed, sha256_hex, tool};

pointsman_e2e::for_threads!(of_the_session, of_the_client, names_with_a_dot, on_plain_connections);

/// Each field is put into a header, so that the origin tells what a rule saw.
const SHOWN: &str = r#"
if (tls.sni == "shop.example") { setHeader("x-sni", "${tls.sni}"); }
if (tls.version == "1.3") { setHeader("x-version", "1.3"); } else { setHeader("x-version", "not 1.3"); }
if (tls.version == "1.2") { setHeader("x-version", "1.2"); }
if (tls.cipher startsWith "TLS_") { setHeader("x-cipher", "${tls.cipher}"); }
if (tls.alpn == "http/1.1") { setHeader("x-alpn", "${tls.alpn}"); }
if (tls.resumed == true) { setHeader("x-resumed", "yes"); }
if (tls.resumed == false) { setHeader("x-resumed", "no"); }
if (tls.resumed) { setHeader("x-bare", "yes"); }
if (!tls.resumed) { addHeader("x-bare", "no"); }
if (proto == "https" && scheme == "https") { setHeader("x-scheme", "https"); }
"#;

fn of_the_session(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "").rules(SHOWN);
    let switch = setup.pool("standard", &[&origin]).start();
    for (trust, version) in [(TlsClient::v12(&authority), "1.2"), (TlsClient::v13(&authority), "1.3")] {
        let offered = trust.clone().alpn(&["h3", "http/1.1"]);
        for resumed in ["no", "yes"] {
            let mut client = switch.tls_client(&offered, "shop.example").expect("a handshake");
            assert_eq!(client.get("/").status(), 200);
            let head = origin.last().head;
            assert_eq!(head.field("x-sni"), Some("shop.example"));
            assert_eq!(head.field("x-version"), Some(version));
            assert_eq!(head.field("x-cipher"), client.cipher().as_deref());
            assert_eq!(head.field("x-alpn"), Some("http/1.1"));
            assert_eq!(head.field("x-resumed"), Some(resumed), "TLS {version}");
            assert_eq!(head.all("x-bare"), [resumed], "TLS {version}");
            assert_eq!(head.field("x-scheme"), Some("https"));
            assert_eq!(head.field("x-forwarded-proto"), Some("https"));
            let entry = switch.log_entry("an entry of this version", |entry| entry["tls"] == version);
            assert_eq!(entry["sni"], "shop.example");
        }
        let silent = trust.without_sni();
        let mut client = switch.tls_client(&silent, "shop.example").expect("a handshake");
        assert_eq!(client.get("/").status(), 200);
        let head = origin.last().head;
        assert_eq!((head.field("x-sni"), head.field("x-alpn")), (None, None));
    }
}

/// A dot at the end says only that the name is whole: the certificate and the field are those of the name without it.
fn names_with_a_dot(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let keys = "certificates = [{ certificate = \"second.crt\", key = \"second.key\" }]";
    let setup = Setup::new(threads).tls(&authority.server(&["first.example"]), keys).rules(SHOWN);
    let setup = setup.pair("second", &authority.server(&["shop.example"])).file("ca.pem", &authority.pem());
    let switch = setup.pool("standard", &[&origin]).start();
    if !installed("openssl") {
        return;
    }
    let client = "openssl s_client -quiet -verify_quiet -CAfile ca.pem -verify_return_error -verify_hostname shop.example";
    let request = "GET / HTTP/1.1\\r\\nHost: shop.example\\r\\nConnection: close\\r\\n\\r\\n";
    let line = format!(
        "printf '{request}' | {client} -connect {} -servername Shop.Example.",
        switch.address("shop")
    );
    let finished = tool(switch.folder(), "sh", &["-c", &line]).expect("a shell");
    assert!(finished.stdout.starts_with("HTTP/1.1 200"), "{}", finished.output());
    assert_eq!(origin.last().head.field("x-sni"), Some("shop.example"));
    assert_eq!(switch.log_of("/")["sni"], "shop.example");
}

fn of_the_client(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let known = authority.client("known", &["one.example", "two.example"]);
    let fingerprint = sha256_hex(&known.der);
    let rules = format!(
        r#"if (tls.client.subject == "CN=known") {{ setHeader("x-subject", "R1"); }}
        if (tls.client.san == "two.example" && count(tls.client.san) == 2) {{ setHeader("x-san", "R2"); }}
        if (tls.client.fingerprint == "{fingerprint}") {{ setHeader("x-fingerprint", "R3"); }}
        if (tls.client.certificate exists) {{ setHeader("client-cert", ":${{tls.client.certificate}}:"); }}
        if (header["client-cert"] exists || header["x-ssl-client-cn"] exists) {{ reject(403, "forged"); }}
        if (tls.client.san endsWith ".example" && first(tls.client.san) == "one.example") {{ tag(both); }}
        if (!(tls.client.subject exists)) {{ reject(403, "who are you"); }}"#
    );
    let keys = "client_ca = \"ca.crt\"\nclient_auth = \"request\"";
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), keys).rules(&rules);
    let switch = setup.file("ca.crt", &authority.pem()).pool("standard", &[&origin]).start();
    let mut client = switch
        .tls_client(&TlsClient::identified(&authority, &known), "shop.example")
        .expect("a good certificate");
    let forged = "Client-Cert: :MAA=:\r\nX-SSL-Client-CN: root\r\nSSL-Client-Verify: SUCCESS";
    client.send(format!("GET /known HTTP/1.1\r\nHost: shop.example\r\n{forged}\r\n\r\n"));
    assert_eq!(client.response().status(), 200);
    let head = origin.last().head;
    let certificate = BASE64_STANDARD.encode(&known.der);
    assert_eq!(head.field("client-cert"), Some(&*format!(":{certificate}:")));
    assert!(head.field("x-ssl-client-cn").or(head.field("ssl-client-verify")).is_none(), "{head:?}");
    assert_eq!(head.field("x-subject"), Some("R1"));
    assert_eq!(head.field("x-san"), Some("R2"));
    assert_eq!(head.field("x-fingerprint"), Some("R3"));
    assert_eq!(switch.log_of("/known")["tags"], serde_json::json!(["both"]));
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example");
    assert_eq!(client.expect("no certificate").get("/").status(), 403);
}

/// A plain and a TLS listener may share rules; on the plain one the fields are absent.
fn on_plain_connections(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let rules = r#"if (!(tls.version exists)) { redirect(308, "https://${host}${path}"); }"#;
    let setup = Setup::new(threads).rules(rules).tls(&authority.server(&["shop.example"]), "");
    let setup = setup.pool("standard", &[&origin]).another_listener("plain").rules(rules);
    let switch = setup.start();
    let answer = Client::plain(switch.address("plain")).get("/a");
    assert_eq!(answer.status(), 308);
    assert_eq!(answer.head.field("location"), Some("https://shop.example/a"));
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example");
    assert_eq!(client.expect("a handshake").get("/a").status(), 200);
}
