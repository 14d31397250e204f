//! nginx as a server that nobody here wrote.

use std::net::SocketAddr;

use pointsman_e2e::{Nginx, Setup, installed};

pointsman_e2e::for_threads!(files);

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
