//! nginx as a server that nobody here wrote.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use pointsman_e2e::{Authority, Client, Origin, PATIENCE, Setup, TlsClient, installed};

pointsman_e2e::for_threads!(files, proxy_headers, tls);

/// A running nginx. It is killed when it is dropped.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// nginx cannot say which free port it took, so one is chosen for it; if somebody else was quicker, another.
///
/// `options` are those of its `listen`, `keys` further lines of its server.
fn start(folder: &Path, options: &str, keys: &str) -> (Nginx, SocketAddr) {
    for _ in 0..5 {
        let address = Origin::dead_address();
        std::fs::write(folder.join("nginx.conf"), configuration(address, options, keys))
            .expect("a writable folder");
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder).args(["-e", "stderr", "-c", "nginx.conf"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut nginx = Nginx(child.expect("it is installed"));
        let until = Instant::now() + PATIENCE;
        while nginx.0.try_wait().expect("it is ours").is_none() && Instant::now() < until {
            if TcpStream::connect(address).is_ok() {
                return (nginx, address);
            }
            std::thread::yield_now();
        }
    }
    panic!("nginx does not start");
}

/// One process in the foreground, everything inside its folder.
fn configuration(address: SocketAddr, options: &str, keys: &str) -> String {
    format!(
        "daemon off; master_process off; pid nginx.pid; events {{ }}
         http {{
           access_log off; keepalive_requests 10000; default_type text/plain;
           client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
           uwsgi_temp_path uwsgi; scgi_temp_path scgi;
           server {{
             listen {address} {options}; root .; {keys}
             location = /seen {{ return 200 \"$request_method $request_uri $http_x_forwarded_for $host\"; }}
             location = /compressed {{ gzip on; gzip_min_length 1; gzip_types text/plain; alias ./large.txt; }}
           }}
         }}\n"
    )
}

fn files(threads: usize) {
    if !installed("nginx") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let large = "0123456789abcdef".repeat(128 * 1024);
    std::fs::write(folder.path().join("large.txt"), &large).expect("a writable folder");
    let (_nginx, address) = start(folder.path(), "", "");
    let switch = Setup::new(threads).pool_at("standard", "", &[("nginx", address)]).start();
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
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_nginx, address) = start(folder.path(), "proxy_protocol", PROXIED);
    for version in ["v1", "v2"] {
        let keys = format!("proxy_protocol = \"{version}\"");
        let switch = Setup::new(threads).pool_at("standard", &keys, &[("nginx", address)]).start();
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
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in [("n.crt", &pair.certificate), ("n.key", &pair.key), ("ca.crt", &authority.pem())] {
        std::fs::write(folder.path().join(name), text).expect("a writable folder");
    }
    let large = "0123456789abcdef".repeat(128 * 1024);
    std::fs::write(folder.path().join("large.txt"), &large).expect("a writable folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let keys = format!(
        "ssl_certificate {}; ssl_certificate_key {}; ssl_client_certificate {}; ssl_verify_client optional; \
         ssl_protocols TLSv1.2 TLSv1.3; \
         location = /tls {{ return 200 \"$ssl_protocol $ssl_server_name $ssl_client_verify $proxy_protocol_port\"; }}
         location = /close {{ keepalive_timeout 0; return 200 \"$ssl_session_reused\"; }}",
        file("n.crt"),
        file("n.key"),
        file("ca.crt")
    );
    let (_nginx, address) = start(folder.path(), "ssl proxy_protocol", &keys);
    let setup = Setup::new(threads).file("ca.crt", &authority.pem()).pair("us", &ours);
    let pool = "proxy_protocol = \"v2\"\n\
                tls = { ca = \"ca.crt\", name = \"nginx.example\", certificate = \"us.crt\", key = \"us.key\" }";
    let setup = setup.tls(&authority.server(&["shop.example"]), "");
    let switch = setup.pool_at("standard", pool, &[("nginx", address)]).start();
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
