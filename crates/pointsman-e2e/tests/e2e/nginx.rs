//! nginx as a server that nobody here wrote.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use pointsman_e2e::{Origin, PATIENCE, Setup, installed};

pointsman_e2e::for_threads!(files);

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
fn start(folder: &Path) -> (Nginx, SocketAddr) {
    for _ in 0..5 {
        let address = Origin::dead_address();
        std::fs::write(folder.join("nginx.conf"), configuration(address)).expect("a writable folder");
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
fn configuration(address: SocketAddr) -> String {
    format!(
        "daemon off; master_process off; pid nginx.pid; events {{ }}
         http {{
           access_log off; keepalive_requests 10000; default_type text/plain;
           client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
           uwsgi_temp_path uwsgi; scgi_temp_path scgi;
           server {{
             listen {address}; root .;
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
    let (_nginx, address) = start(folder.path());
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
