//! The proxies of a scenario, started, and shown to do the same thing.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::child::{Child, Place, Precedence};
use super::load::Load;
use super::scenario::{POOLS, Program, Rules, Scenario, Setup, Threads};
use super::{LOAD_CORE, PROXY_CORE, Ports, haproxy, nginx, ours};
use crate::failure::{Because, Failure, Result};
use crate::packages::located;
use crate::project::written;

/// A proxy that serves: its processes, and where they listen.
pub(super) struct Proxy {
    pub(super) name: &'static str,
    /// One for each of its threads.
    pub(super) ports: Vec<u16>,
    pub(super) log: Option<PathBuf>,
    /// Where it is not as many as the scenario says.
    pub(super) connections: Option<u32>,
    children: Vec<Child>,
}

/// What starts the proxies of a scenario.
pub(super) struct Lineup<'a> {
    scenario: &'a Scenario,
    origin: &'a Ports,
    switch: Option<&'a Path>,
    folder: &'a Path,
    /// How many processes share the proxies' core, and are let have their turns.
    spinners: usize,
    /// How many rules our switch has before the scenario's.
    rules_before: usize,
    certificate: Option<Certificate>,
    /// What each request carries.
    upload: Option<PathBuf>,
}

/// The files of a throw-away certificate, and the client's side of the same choices.
pub(super) struct Certificate {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    /// Certificate and key in one file, as HAProxy wants them.
    pub(super) both: PathBuf,
    openssl_conf: PathBuf,
}

impl<'a> Lineup<'a> {
    pub(super) fn of(
        scenario: &'a Scenario,
        origin: &'a Ports,
        switch: Option<&'a Path>,
        folder: &'a Path,
        (spinners, rules_before): (usize, usize),
    ) -> Result<Self> {
        make(folder)?;
        let certificate = scenario.tls.then(|| Certificate::make(folder)).transpose()?;
        let upload = match scenario.upload_bytes {
            0 => None,
            bytes => Some(save(folder, "upload", &"x".repeat(bytes))?),
        };
        Ok(Self { scenario, origin, switch, folder, spinners, rules_before, certificate, upload })
    }

    /// Who takes part. Our own switch does when there is a build of it.
    pub(super) fn setups(&self) -> Vec<&'static Setup> {
        let is_there = |setup: &&Setup| self.switch.is_some() || setup.program != Program::Ours;
        self.scenario.setups.iter().filter(is_there).collect()
    }

    /// Starts a proxy and shows that it does what it should.
    pub(super) fn start(&self, setup: &Setup) -> Result<Proxy> {
        let folder = self.folder.join(setup.name.replace(' ', "-"));
        make(&folder)?;
        let log = setup.logs.then(|| folder.join("access.log"));
        let mut proxy = Proxy {
            name: setup.name,
            ports: Vec::new(),
            log,
            connections: setup.connections,
            children: Vec::new(),
        };
        match setup.threads {
            Threads::One => {
                proxy.add(self.process(setup, &[PROXY_CORE], 1, &folder, proxy.log.as_deref())?)
            }
            Threads::TwoProcesses => {
                for core in [PROXY_CORE, LOAD_CORE] {
                    let folder = folder.join(core.to_string());
                    make(&folder)?;
                    proxy.add(self.process(setup, &[core], 1, &folder, None)?);
                }
            }
            Threads::Two => {
                let cores = [PROXY_CORE, LOAD_CORE];
                let (child, port) = self.process(setup, &cores, cores.len(), &folder, None)?;
                child.spread_threads("shard-", &cores)?;
                proxy.add((child, port));
                // As much load as for two processes.
                proxy.ports.push(port);
            }
        }
        for port in &proxy.ports {
            self.prove(setup, *port)?;
        }
        Ok(proxy)
    }

    fn process(
        &self,
        setup: &Setup,
        cores: &[usize],
        threads: usize,
        folder: &Path,
        log: Option<&Path>,
    ) -> Result<(Child, u16)> {
        let (scenario, origin, files) = (self.scenario, self.origin, self.certificate.as_ref());
        let port = free_port()?;
        let (program, words): (PathBuf, Vec<OsString>) = match setup.program {
            Program::Nginx | Program::NginxJit => {
                let mut text = nginx::configuration(scenario, origin, port, files, log, folder);
                if setup.program == Program::NginxJit {
                    text.insert_str(0, "pcre_jit on;\n");
                }
                let file = save(folder, "nginx.conf", &text)?;
                (located("nginx")?, vec!["-p".into(), folder.into(), "-c".into(), file.into()])
            }
            Program::Haproxy => {
                let text = haproxy::configuration(scenario, origin, port, files, folder);
                if let Rules::TenantsLookedUp(count) = scenario.rules {
                    save(folder, haproxy::MAP, &haproxy::map(count))?;
                }
                let file = save(folder, "haproxy.cfg", &text)?;
                (located("haproxy")?, vec!["-db".into(), "-f".into(), file.into()])
            }
            Program::Ours => {
                let text = ours::configuration(origin, port, threads, files, log);
                let file = save(folder, "bench.toml", &text)?;
                let rules = setup.rules.unwrap_or(scenario.rules);
                save(folder, "bench.rules", &ours::rules(rules, self.rules_before))?;
                let binary = self.switch.ok_or_else(|| Failure::new("there is no build of the switch"))?;
                (binary.to_path_buf(), vec!["run".into(), "--config".into(), file.into()])
            }
        };
        let precedence = if self.spinners > 0 { Precedence::Waits } else { Precedence::Usual };
        let place = Place { cores, precedence };
        let mut child = Child::start(setup.name, place, &program, &words, &folder.join("output.log"))?;
        child.wait_for_port(port)?;
        Ok((child, port))
    }

    pub(super) fn spinners(&self) -> usize {
        self.spinners
    }

    /// The certificate that clients trust.
    pub(super) fn authority(&self) -> Option<&Path> {
        self.certificate.as_ref().map(|files| files.certificate.as_path())
    }

    /// The client's TLS choices.
    pub(super) fn openssl_conf(&self) -> Option<&Path> {
        self.certificate.as_ref().map(|files| files.openssl_conf.as_path())
    }

    /// What each request carries.
    pub(super) fn upload(&self) -> Option<&Path> {
        self.upload.as_deref()
    }

    /// The request goes to the right pool, the answer is whole, the server hears who the client is, and
    /// TLS is what it is said to be: a proxy that does less than the others would seem the faster one.
    fn prove(&self, setup: &Setup, port: u16) -> Result<()> {
        let (scenario, name) = (self.scenario, setup.name);
        let load = Load {
            scenario,
            port,
            core: LOAD_CORE,
            connections: 1,
            openssl_conf: self.openssl_conf(),
            upload: self.upload(),
        };
        let wrong = |what: &str, seen: &str| Err(Failure::new(format!("{name}: {what}:\n{seen}")));
        let (answer, seen) = (load.head_of(scenario.answer)?, load.body_of("seen")?);
        let length = if scenario.answer == "1m" { "content-length: 1048576" } else { "content-length: 1024" };
        let pool = if setup.rules.is_some() { POOLS.len() - 1 } else { scenario.pool };
        let pool = format!("x-pool: {pool}");
        let start = if scenario.is_http2() { "http/2 200" } else { "http/1.1 200" };
        for line in [start, length, &pool] {
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
    fn add(&mut self, (child, port): (Child, u16)) {
        self.children.push(child);
        self.ports.push(port);
    }

    pub(super) fn ids(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
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
        // By default it would be an authority's, which clients may refuse from a server.
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
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
pub(crate) fn free_port() -> Result<u16> {
    let taken = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    Ok(taken.because(|| "cannot find a free port".into())?.port())
}

fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).because(|| format!("cannot make `{}`", folder.display()))
}

fn save(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, text).because(|| format!("cannot write `{}`", path.display()))?;
    Ok(path)
}
