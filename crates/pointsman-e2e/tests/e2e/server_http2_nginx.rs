//! nginx as a server of HTTP/2.

use std::collections::HashSet;
use std::net::SocketAddr;

use pointsman_e2e::h2_wire::flag;
use pointsman_e2e::{Authority, Nginx, Origin, Setup, Switch, installed, ok};

use crate::http2::begin;
use crate::server_http2::H2;

pointsman_e2e::for_threads!(plain, over_tls, a_server_that_goes_often);

/// A large file, what was asked for, the number of the connection, and an upload.
fn places(upload: SocketAddr) -> String {
    format!(
        "root .; client_max_body_size 0;
         location = /seen {{ return 200 \"$request_method $request_uri $server_protocol $host\"; }}
         location = /connection {{ return 200 \"$connection\"; }}
         location = /nothing {{ return 204; }}
         location = /compressed {{ gzip on; gzip_min_length 1; gzip_types text/plain; alias ./large.txt; }}
         location = /upload {{ proxy_pass http://{upload}; proxy_http_version 1.1; }}"
    )
}

fn large() -> String {
    "0123456789abcdef".repeat(128 * 1024)
}

fn plain(threads: usize) {
    if !installed("nginx") {
        return;
    }
    let upload = Origin::answering("upload", ok);
    let nginx = Nginx::start(&[("large.txt", &large())], |[address]: [SocketAddr; 1]| {
        format!("server {{ listen {address} http2; {} }}", places(upload.address()))
    });
    let switch = Setup::new(threads).pool_at("standard", H2, &[("nginx", nginx.address(0))]).start();
    messages(&switch, &upload, threads);
}

fn over_tls(threads: usize) {
    if !installed("nginx") {
        return;
    }
    let (authority, upload) = (Authority::new("server CA"), Origin::answering("upload", ok));
    let pair = authority.server(&["nginx.example"]);
    let large = large();
    let files = [("n.crt", &*pair.certificate), ("n.key", &*pair.key), ("large.txt", &*large)];
    let nginx = Nginx::start(&files, |[address]: [SocketAddr; 1]| {
        let keys = "ssl_certificate n.crt; ssl_certificate_key n.key;";
        format!("server {{ listen {address} ssl http2; {keys} {} }}", places(upload.address()))
    });
    let keys = format!("{H2}\ntls = {{ ca = \"ca.crt\", name = \"nginx.example\" }}");
    let setup = Setup::new(threads).file("ca.crt", &authority.pem());
    let switch = setup.pool_at("standard", &keys, &[("nginx", nginx.address(0))]).start();
    messages(&switch, &upload, threads);
}

/// What both versions of clients see of it, and that their requests share its connections.
fn messages(switch: &Switch, upload: &Origin, threads: usize) {
    let (mut first, mut second, large) = (switch.client(), begin(switch), large());
    assert_eq!(first.get("/x/../seen?a=b").text(), "GET /seen?a=b HTTP/2.0 shop.example");
    assert_eq!(second.fetch(1, "/seen").text(), "GET /seen HTTP/2.0 shop.example");
    assert!(first.get("/large.txt").text() == large, "the file changed on its way");
    assert!(second.fetch(3, "/large.txt").text() == large, "the file changed on its way");
    assert_eq!(first.ask("HEAD", "/large.txt", "").head.field("content-length"), Some("2097152"));
    let part = first.ask("GET", "/large.txt", "Range: bytes=16-31\r\n");
    assert_eq!((part.status(), part.text().as_str()), (206, "0123456789abcdef"));
    let tag = part.head.field("etag").expect("nginx sends one").to_owned();
    assert_eq!(first.ask("GET", "/large.txt", &format!("If-None-Match: {tag}\r\n")).status(), 304);
    assert_eq!((first.get("/nothing").status(), first.get("/absent").status()), (204, 404));
    let packed = first.ask("GET", "/compressed", "Accept-Encoding: gzip\r\n");
    assert_eq!(packed.head.field("transfer-encoding"), Some("chunked"));
    assert!(packed.body.bytes.len() < large.len() / 10);
    let body = &large.as_bytes()[..1 << 20];
    first.send(format!("POST /upload HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {}\r\n\r\n", 1 << 20));
    first.send(body);
    assert_eq!(first.response().text(), "upload");
    second.post(5, "/upload", &[]);
    second.send_content(5, flag::END_STREAM, body).expect("the switch reads");
    assert_eq!(second.answer(5).text(), "upload");
    assert!(upload.requests().iter().all(|request| request.body.bytes == body), "it changed on its way");
    // It answers without the body, and wants none of it.
    first.send(format!("POST /seen HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {}\r\n\r\n", 1 << 20));
    drop(first.try_send(body));
    assert_eq!(first.response().text(), "POST /seen HTTP/2.0 shop.example");
    let mut seen = HashSet::new();
    let mut clients: Vec<_> = (0..10).map(|_| switch.client()).collect();
    for _ in 0..20 {
        for client in &mut clients {
            client.send("GET /connection HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        }
        for client in &mut clients {
            seen.insert(client.response().text());
        }
    }
    assert!(seen.len() <= threads, "200 requests over {seen:?}");
}

/// nginx ends each connection behind some requests, with a GOAWAY: none is lost, whatever its method.
fn a_server_that_goes_often(threads: usize) {
    if !installed("nginx") {
        return;
    }
    let upload = Origin::answering("upload", ok);
    let nginx = Nginx::start(&[], |[address]: [SocketAddr; 1]| {
        format!("server {{ listen {address} http2; keepalive_requests 7; {} }}", places(upload.address()))
    });
    let switch = Setup::new(threads).pool_at("standard", H2, &[("nginx", nginx.address(0))]).start();
    let mut clients: Vec<_> = (0..8).map(|_| switch.client()).collect();
    for round in 0..30 {
        for client in &mut clients {
            client.send("POST /upload HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3\r\n\r\nabc");
        }
        for client in &mut clients {
            assert_eq!(client.response().status(), 200, "round {round}");
        }
    }
    assert_eq!(upload.count(), 240);
}
