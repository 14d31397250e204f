//! nginx, that nobody here wrote: as a server behind the switch, and in the switch's place, where a test must first
//! show that its own ends are right.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;

use crate::binary::installed_file;
use crate::{Origin, PATIENCE, Pair, installed};

/// A running nginx in a folder of its own. It is killed when it is dropped.
pub struct Nginx {
    child: Child,
    folder: TempDir,
    addresses: Vec<SocketAddr>,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Nginx {
    /// Starts it with what `http` makes of so many free addresses, as the inside of its `http` block. `files` stand
    /// in its folder.
    ///
    /// nginx cannot say which free port it took, so they are chosen for it; if somebody else was quicker, others.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start<const COUNT: usize>(
        files: &[(&str, &str)],
        http: impl Fn([SocketAddr; COUNT]) -> String,
    ) -> Self {
        Self::run(files, |addresses| configuration(&http(addresses)))
    }

    /// The same with the inside of its `stream` block: it passes bytes on and reads no requests.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn passing<const COUNT: usize>(stream: impl Fn([SocketAddr; COUNT]) -> String) -> Self {
        Self::run(&[], |addresses| {
            let inside = stream(addresses);
            format!("load_module {STREAM_MODULE}; {MAIN} stream {{ {inside} }}\n")
        })
    }

    fn run<const COUNT: usize>(
        files: &[(&str, &str)],
        configuration: impl Fn([SocketAddr; COUNT]) -> String,
    ) -> Self {
        for _ in 0..5 {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let addresses = [(); COUNT].map(|()| Origin::free_address());
            let write = |name: &str, text: &str| {
                std::fs::write(folder.path().join(name), text).expect("a writable folder");
            };
            write("nginx.conf", &configuration(addresses));
            files.iter().for_each(|(name, text)| write(name, text));
            let mut command = Command::new("nginx");
            command.arg("-p").arg(folder.path()).args(["-e", "error.log", "-c", "nginx.conf"]);
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let child = child.expect("it is installed");
            let mut nginx = Self { child, folder, addresses: addresses.to_vec() };
            if nginx.becomes_ready() {
                return nginx;
            }
        }
        panic!("nginx does not start");
    }

    /// In the switch's place: HTTP/2 in plain text at its first address and under TLS at its second, HTTP/1 and
    /// WebSocket at the third, with a server of HTTP/1 behind, or of gRPC for the service that is the peers'.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn before(server: SocketAddr, pair: &Pair) -> Self {
        let files = [("shop.crt", pair.certificate.as_str()), ("shop.key", pair.key.as_str())];
        Self::start(&files, |[plain, tls, http1]: [SocketAddr; 3]| {
            let mut text = String::from("map $http_upgrade $hop { default upgrade; '' ''; }\n");
            for listen in [format!("{plain} http2"), format!("{tls} ssl http2"), http1.to_string()] {
                writeln!(
                    text,
                    "server {{ listen {listen}; ssl_certificate shop.crt; ssl_certificate_key shop.key;
                       client_max_body_size 0; large_client_header_buffers 4 32k;
                       location /test.Echo/ {{ grpc_pass grpc://{server}; grpc_set_header Host $http_host; }}
                       location / {{
                         proxy_pass http://{server}; proxy_http_version 1.1; proxy_set_header Host $http_host;
                         proxy_set_header Connection $hop; proxy_set_header Upgrade $http_upgrade;
                       }} }}"
                )
                .expect("memory");
            }
            text
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self, index: usize) -> SocketAddr {
        self.addresses[index]
    }

    /// Its process, which is one.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it complained about.
    #[must_use]
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }

    fn becomes_ready(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        while self.child.try_wait().expect("it is ours").is_none() && Instant::now() < until {
            if self.addresses.iter().all(|address| TcpStream::connect(address).is_ok()) {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }
}

/// Passes bytes on; Debian has it in a package of its own.
const STREAM_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";
const MAIN: &str = "daemon off; master_process off; pid nginx.pid; events { }";

/// Whether nginx is installed, and can pass bytes on ([`Nginx::passing`]); says so when not.
///
/// # Panics
/// In CI, where everything is to be there.
#[must_use]
pub fn installed_nginx_passes() -> bool {
    installed("nginx") && installed_file(STREAM_MODULE)
}

/// One process in the foreground, everything inside its folder.
fn configuration(http: &str) -> String {
    format!(
        "{MAIN}
         http {{
           access_log off; keepalive_requests 10000; default_type text/plain;
           client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
           uwsgi_temp_path uwsgi; scgi_temp_path scgi;
           {http}
         }}\n"
    )
}
