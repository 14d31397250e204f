//! nginx as a server that nobody here wrote.

use std::net::SocketAddr;

use pointsman_e2e::{Authority, Client, Nginx, Setup, TlsClient, installed};

pointsman_e2e::for_threads!(files, proxy_headers, tls);

fn files(threads: usize) {
    if !installed("nginx") {
        return;
    }
    let large = "0123456789abcdef".repeat(128 * 1024);
    let nginx = Nginx::start(&[("large.txt", &large)], |[address]: [SocketAddr; 1]| {
        format!(
            "server {{
               listen {address}; root .;
               location = /seen {{ return 200 \"$request_method $request_uri $http_x_forwarded_for $host\"; }}
               location = /compressed {{ gzip on; gzip_min_length 1; gzip_types text/plain; alias ./large.txt; }}
             }}"
        )
    });
    let switch = Setup::new(threads).pool_at("standard", "", &[("nginx", nginx.address(0))]).start();
    let mut client = switch.client();
    assert_eq!(client.get("/x/../seen?a=b").text(), "GET /seen?a=b 127.0.0.1 shop.example");
    assert!(client.get("/large.txt").text() == large, "the file changed on its way");
    assert_eq!(client.ask("HEAD", "/large.txt", "").head.field("content-length"), Some("2097152"));
    let part = client.ask("GET", "/large.txt", "Range: bytes=16-31\r\n");
    assert_eq!((part.status(), part.text().as_str()), (206, "0123456789abcdef"));
    let tag = part.head.field("etag").expect("nginx sends one").to_owned();
    assert_eq!(client.ask("GET", "/large.txt", &format!("If-None-Match: {tag}\r\n")).status(), 304);
    assert_eq!(client.get("/absent").status(), 404);
    // What nginx compresses on the fly comes in chunks.
    let packed = client.ask("GET", "/compressed", "Accept-Encoding: gzip\r\n");
    assert_eq!(packed.head.field("transfer-encoding"), Some("chunked"));
    assert!(packed.body.bytes.len() < large.len() / 10);
    for _ in 0..100 {
        assert_eq!(client.get("/seen").status(), 200);
    }
}

/// Whom nginx takes a client for by the PROXY header.
const PROXIED: &str = "location = /who { return 200 \"$proxy_protocol_addr $proxy_protocol_port \
                       $proxy_protocol_server_port $http_x_forwarded_for\"; }";

/// nginx knows the client by either version of the PROXY protocol.
fn proxy_headers(threads: usize) {
    if !installed("nginx") {
        return;
    }
    let nginx = Nginx::start(&[], |[address]: [SocketAddr; 1]| {
        format!("server {{ listen {address} proxy_protocol; {PROXIED} }}")
    });
    for version in ["v1", "v2"] {
        let keys = format!("proxy_protocol = \"{version}\"");
        let switch = Setup::new(threads).pool_at("standard", &keys, &[("nginx", nginx.address(0))]).start();
        let ours = switch.address("shop").port();
        let mut clients = [switch.client(), switch.client()];
        for _ in 0..3 {
            for client in &mut clients {
                let expected = format!("127.0.0.1 {} {ours} 127.0.0.1", client.local().port());
                assert_eq!(client.get("/who").text(), expected, "{version}");
            }
        }
    }
}

/// TLS at nginx: a certificate that is checked, one that it wants, sessions, and a PROXY header in front of it all.
fn tls(threads: usize) {
    if !installed("nginx") {
        return;
    }
    let authority = Authority::new("server CA");
    let (pair, ours) = (authority.server(&["nginx.example"]), authority.client("switch", &[]));
    let large = "0123456789abcdef".repeat(128 * 1024);
    let ca = authority.pem();
    let files =
        [("n.crt", &*pair.certificate), ("n.key", &*pair.key), ("ca.crt", &*ca), ("large.txt", &*large)];
    let nginx = Nginx::start(&files, |[address]: [SocketAddr; 1]| {
        format!(
            "server {{
               listen {address} ssl proxy_protocol; root .; ssl_protocols TLSv1.2 TLSv1.3;
               ssl_certificate n.crt; ssl_certificate_key n.key;
               ssl_client_certificate ca.crt; ssl_verify_client optional;
               location = /tls {{
                 return 200 \"$ssl_protocol $ssl_server_name $ssl_client_verify $proxy_protocol_port\";
               }}
               location = /close {{ keepalive_timeout 0; return 200 \"$ssl_session_reused\"; }}
             }}"
        )
    });
    let pool = "proxy_protocol = \"v2\"\n\
                tls = { ca = \"ca.crt\", name = \"nginx.example\", certificate = \"us.crt\", key = \"us.key\" }";
    let setup = Setup::new(threads).file("ca.crt", &ca).pair("us", &ours);
    let setup = setup.tls(&authority.server(&["shop.example"]), "");
    let switch = setup.pool_at("standard", pool, &[("nginx", nginx.address(0))]).start();
    let mut client: Client =
        switch.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
    let expected = format!("TLSv1.3 nginx.example SUCCESS {}", client.local().port());
    for _ in 0..3 {
        assert_eq!(client.get("/tls").text(), expected);
    }
    assert!(client.get("/large.txt").text() == large, "the file changed on its way");
    // The connection before it was a full handshake of this switch.
    assert_eq!(client.get("/close").text(), ".");
    assert_eq!(client.get("/close").text(), "r");
}
