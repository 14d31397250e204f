//! The proxies of a scenario, started, and shown to do the same thing.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::child::Child;
use super::load::Load;
use super::scenario::Scenario;
use super::{PROXY_CORE, Ports, haproxy, nginx, ours};
use crate::failure::{Because, Failure, Result};
use crate::packages::located;
use crate::project::written;

/// The name of our own switch in every table.
pub(super) const OURS: &str = "pointsman";

/// A proxy that serves.
pub(super) struct Proxy {
    pub(super) name: &'static str,
    pub(super) port: u16,
    pub(super) child: Child,
}

/// The proxies of a scenario.
pub(super) struct Lineup {
    proxies: Vec<Proxy>,
    certificate: Option<Certificate>,
}

/// The files of a throw-away certificate, and the client's side of the same choices.
pub(super) struct Certificate {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    /// Certificate and key in one file, as HAProxy wants them.
    pub(super) both: PathBuf,
    openssl_conf: PathBuf,
}

impl Lineup {
    pub(super) fn start(
        scenario: &Scenario,
        origin: &Ports,
        switch: Option<&Path>,
        folder: &Path,
    ) -> Result<Self> {
        std::fs::create_dir_all(folder).because(|| format!("cannot make `{}`", folder.display()))?;
        let certificate = scenario.tls.then(|| Certificate::make(folder)).transpose()?;
        let mut lineup = Self { proxies: Vec::new(), certificate };
        let files = lineup.certificate.as_ref();

        let port = free_port()?;
        let text = nginx::configuration(scenario, origin, port, files, folder);
        let file = save(folder, "nginx.conf", &text)?;
        let words: [OsString; 4] = ["-p".into(), folder.into(), "-c".into(), file.into()];
        let nginx = Proxy::start("nginx", port, &located("nginx")?, &words, folder)?;

        let port = free_port()?;
        let file = save(folder, "haproxy.cfg", &haproxy::configuration(scenario, origin, port, files))?;
        let haproxy = Proxy::start(
            "haproxy",
            port,
            &located("haproxy")?,
            &["-db".into(), "-f".into(), file.into()],
            folder,
        )?;

        let ours = match switch {
            Some(binary) => {
                let port = free_port()?;
                let file = save(folder, "bench.toml", &ours::configuration(origin, port, files))?;
                save(folder, "bench.rules", &ours::rules(scenario))?;
                let words: [OsString; 3] = ["run".into(), "--config".into(), file.into()];
                Some(Proxy::start(OURS, port, binary, &words, folder)?)
            }
            None => None,
        };
        lineup.proxies = ours.into_iter().chain([nginx, haproxy]).collect();
        for proxy in &lineup.proxies {
            lineup.prove(scenario, proxy)?;
        }
        Ok(lineup)
    }

    /// The proxies, each round beginning with another one.
    pub(super) fn in_turn(&self, round: usize) -> impl Iterator<Item = &Proxy> {
        let count = self.proxies.len();
        (0..count).map(move |place| &self.proxies[(round + place) % count])
    }

    /// The client's TLS choices.
    pub(super) fn openssl_conf(&self) -> Option<&Path> {
        self.certificate.as_ref().map(|files| files.openssl_conf.as_path())
    }

    /// The request goes to the right pool, the answer is whole, the server hears who the client is, and
    /// TLS is what it is said to be: a proxy that does less than the others would seem the faster one.
    fn prove(&self, scenario: &Scenario, proxy: &Proxy) -> Result<()> {
        let load = Load { scenario, port: proxy.port, openssl_conf: self.openssl_conf() };
        let wrong = |what: &str, seen: &str| Err(Failure::new(format!("{}: {what}:\n{seen}", proxy.name)));
        let (answer, seen) = (load.head_of(scenario.answer)?, load.body_of("seen")?);
        let length = if scenario.answer == "1m" { "content-length: 1048576" } else { "content-length: 1024" };
        let pool = format!("x-pool: {}", scenario.pool);
        for line in ["http/1.1 200", length, &pool] {
            if !answer.to_lowercase().lines().any(|there| there.starts_with(line)) {
                return wrong(&format!("the answer has no `{line}`"), &answer);
            }
        }
        let seen = seen.to_lowercase();
        if !seen.contains("x-forwarded-for: 127.0.0.1") || seen.contains("connection: close") {
            return wrong("the server does not see the client, or is not kept alive", &seen);
        }
        if scenario.tls {
            let agreed = load.tls_agreed()?;
            if !["TLSv1.3", "TLS_AES_128_GCM_SHA256", "X25519"].iter().all(|word| agreed.contains(word)) {
                return wrong("TLS agreed on something else", &agreed);
            }
        }
        Ok(())
    }
}

impl Proxy {
    fn start(
        name: &'static str,
        port: u16,
        program: &Path,
        words: &[OsString],
        folder: &Path,
    ) -> Result<Self> {
        let mut child = Child::start(name, PROXY_CORE, program, words, &folder.join(format!("{name}.log")))?;
        child.wait_for_port(port)?;
        Ok(Self { name, port, child })
    }
}

impl Certificate {
    /// ECDSA P-256, signed by itself.
    fn make(folder: &Path) -> Result<Self> {
        let file = |name: &str| folder.join(name);
        let (certificate, key) = (file("bench.crt"), file("bench.key"));
        let mut openssl = Command::new(located("openssl")?);
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        openssl.args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
        written(openssl.arg("-out").arg(&certificate).arg("-keyout").arg(&key))?;
        let read =
            |path: &PathBuf| std::fs::read_to_string(path).because(|| "cannot read a certificate".into());
        let both = save(folder, "bench.pem", &(read(&certificate)? + &read(&key)?))?;
        // A server that leaves the choice to the client must not end up with another cipher.
        let conf = "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = client\n[client]\n\
                    MinProtocol = TLSv1.3\nCiphersuites = TLS_AES_128_GCM_SHA256\nGroups = X25519\n";
        let openssl_conf = save(folder, "openssl.cnf", conf)?;
        Ok(Self { certificate, key, both, openssl_conf })
    }
}

/// A port nobody listens on now. Peers cannot be asked which one they took, so they are told.
fn free_port() -> Result<u16> {
    let taken = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    Ok(taken.because(|| "cannot find a free port".into())?.port())
}

fn save(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, text).because(|| format!("cannot write `{}`", path.display()))?;
    Ok(path)
}
