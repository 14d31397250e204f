//! The servers that are measured: each answers by itself, over TLS 1.3, without tickets, on one core.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use pointsman_e2e::Pair;

use super::SERVER_CORE;
use crate::failure::{Because, Failure, Result};
use crate::generators::{CONTENT_BYTES, nginx_configuration};
use crate::packages::located;
use crate::peers::{Child, Place, Precedence, free_port};
use crate::project::written;

/// Where Debian keeps Apache's modules.
const APACHE_MODULES: &str = "/usr/lib/apache2/modules";

/// Which server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Nginx,
    Haproxy,
    Apache,
    Ours,
}

use Kind::{Apache, Haproxy, Nginx, Ours};

/// All of them; ratios are to the first.
pub(super) const CONTENDERS: &[Kind] = &[Nginx, Haproxy, Apache, Ours];

impl Kind {
    pub(super) fn named(name: &str) -> Result<Self> {
        let names =
            || CONTENDERS.iter().map(|kind| format!("`{}`", kind.name())).collect::<Vec<_>>().join(", ");
        let found = CONTENDERS.iter().copied().find(|kind| kind.name() == name);
        found.ok_or_else(|| Failure::usage(format!("no server `{name}`: there are {}", names())))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Nginx => "nginx",
            Haproxy => "haproxy",
            Apache => "apache",
            Ours => "pointsman",
        }
    }

    /// How it answers.
    pub(super) fn manner(self) -> &'static str {
        match self {
            Nginx => "`return 200` with a text, one process without a master",
            Haproxy => "`http-request return` with a string, one thread",
            Apache => "a file that mod_file_cache holds in memory, event MPM, one process of 400 threads",
            Ours => "a rule `else: respond(200, …)`, one thread, metrics on",
        }
    }
}

/// A server that serves; it ends when it is dropped.
pub(super) struct Contender {
    pub(super) kind: Kind,
    pub(super) port: u16,
    /// The head and content of an answer, as it was seen before anything was measured.
    pub(super) answer: String,
    child: Child,
}

impl Contender {
    pub(super) fn start(
        kind: Kind,
        binary: &Path,
        pair: &Pair,
        (folder, precedence): (&Path, Precedence),
    ) -> Result<Self> {
        let folder = folder.join(kind.name());
        std::fs::create_dir_all(&folder).because(|| format!("cannot make `{}`", folder.display()))?;
        let certificate = save(&folder, "server.crt", &pair.certificate)?;
        let key = save(&folder, "server.key", &pair.key)?;
        let port = free_port()?;
        let site = Site { folder: &folder, port, certificate: &certificate, key: &key };
        let (program, words): (PathBuf, Vec<OsString>) = match kind {
            Nginx => {
                let text = nginx_configuration(&folder, (free_port()?, port), (&certificate, &key));
                let file = save(&folder, "nginx.conf", &text)?;
                (located("nginx")?, vec!["-p".into(), (&folder).into(), "-c".into(), file.into()])
            }
            Haproxy => {
                let both = format!("{}{}", pair.certificate, pair.key);
                save(&folder, "server.pem", &both)?;
                let file = save(&folder, "haproxy.cfg", &site.haproxy())?;
                (located("haproxy")?, vec!["-db".into(), "-f".into(), file.into()])
            }
            Apache => {
                save(&folder, "index.txt", &content())?;
                let file = save(&folder, "apache.conf", &site.apache())?;
                apache(file)?
            }
            Ours => {
                save(&folder, "bench.rules", &format!("else: respond(200, \"{}\");\n", content()))?;
                let file = save(&folder, "bench.toml", &site.ours())?;
                (binary.to_path_buf(), vec!["run".into(), "--config".into(), file.into()])
            }
        };
        let log = folder.join("output.log");
        let mut child =
            Child::start(kind.name(), Place { cores: &[SERVER_CORE], precedence }, &program, &words, &log)?;
        child.wait_for_port(port)?;
        let answer = answer(kind, port)?;
        Ok(Self { kind, port, answer, child })
    }

    pub(super) fn url(&self) -> String {
        format!("https://127.0.0.1:{}/index.txt", self.port)
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn expect_running(&mut self) -> Result<()> {
        self.child.expect_running()
    }
}

/// It becomes another user where it can, and the kernel forgets then whose end is to be its own. So it has a space of
/// process numbers to itself, where that can be: it ends with the first process there, which is a shell.
fn apache(configuration: PathBuf) -> Result<(PathBuf, Vec<OsString>)> {
    let (program, words) = (located("apache2")?, ["-X".into(), "-f".into(), configuration.into()]);
    let unshare = located("unshare")?;
    let alone = ["--pid", "--fork", "--kill-child", "sh", "-c", "\"$0\" \"$@\"; exit $?"];
    let can_be = Command::new(&unshare).args(alone).arg("true").output();
    if !can_be.is_ok_and(|output| output.status.success()) {
        return Ok((program, words.into()));
    }
    let before = alone.into_iter().map(OsString::from).chain([program.into()]);
    Ok((unshare, before.chain(words).collect()))
}

/// What all of them answer with.
fn content() -> String {
    "x".repeat(CONTENT_BYTES)
}

/// What a configuration is made of.
struct Site<'a> {
    folder: &'a Path,
    port: u16,
    certificate: &'a Path,
    key: &'a Path,
}

impl Site<'_> {
    fn haproxy(&self) -> String {
        let (port, folder) = (self.port, self.folder.display());
        let content = content();
        format!(
            "global\n  nbthread 1\n  maxconn 4000\n  tune.ssl.cachesize 0\n  \
             ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256\n  ssl-default-bind-curves X25519\n  \
             ssl-default-bind-options ssl-min-ver TLSv1.3 no-tls-tickets\n\
             defaults\n  mode http\n  timeout client 60s\n\
             frontend bench\n  bind 127.0.0.1:{port} ssl crt {folder}/server.pem\n  \
             http-request return status 200 content-type text/plain string {content}\n"
        )
    }

    /// The event MPM as Debian has it, in one process, and no module that is not needed.
    fn apache(&self) -> String {
        let (port, folder) = (self.port, self.folder.display());
        let modules = ["mpm_event", "authz_core", "mime", "file_cache", "ssl"];
        let modules: String = modules
            .map(|module| format!("LoadModule {module}_module {APACHE_MODULES}/mod_{module}.so\n"))
            .concat();
        let (certificate, key) = (self.certificate.display(), self.key.display());
        format!(
            "{modules}ServerName localhost\nServerRoot \"{folder}\"\nPidFile \"{folder}/apache.pid\"\n\
             DefaultRuntimeDir \"{folder}\"\nErrorLog \"{folder}/error.log\"\nLogLevel warn\nServerTokens Prod\n\
             User nobody\nGroup nogroup\nTypesConfig /dev/null\nAddType text/plain .txt\n\
             Listen 127.0.0.1:{port}\nListenBacklog 1024\nStartServers 1\nServerLimit 1\nThreadsPerChild 400\n\
             ThreadLimit 400\nMaxRequestWorkers 400\nMinSpareThreads 1\nMaxSpareThreads 400\n\
             AsyncRequestWorkerFactor 64\nMaxConnectionsPerChild 0\nTimeout 60\nKeepAlive On\n\
             KeepAliveTimeout 60\nMaxKeepAliveRequests 0\nDocumentRoot \"{folder}\"\nFileETag None\n\
             MMapFile \"{folder}/index.txt\"\n\
             <Directory \"{folder}\">\n  Options FollowSymLinks\n  AllowOverride None\n  Require all granted\n</Directory>\n\
             SSLEngine on\nSSLCertificateFile \"{certificate}\"\nSSLCertificateKeyFile \"{key}\"\n\
             SSLProtocol TLSv1.3\nSSLCipherSuite TLSv1.3 TLS_AES_128_GCM_SHA256\n\
             SSLOpenSSLConfCmd Groups X25519\nSSLSessionTickets off\nSSLSessionCache none\n"
        )
    }

    fn ours(&self) -> String {
        let (port, certificate, key) = (self.port, self.certificate.display(), self.key.display());
        format!(
            "threads = 1\nwatch_ms = 0\n\n[[listener]]\nname = \"bench\"\nbind = \"127.0.0.1:{port}\"\n\
             rules = \"bench.rules\"\n\
             tls = {{ certificate = \"{certificate}\", key = \"{key}\", min_version = \"1.3\", tickets = false }}\n\n\
             [admin]\nbind = \"127.0.0.1:0\"\n"
        )
    }
}

/// What it answers: the same as the others, or it would seem faster for what it leaves out.
fn answer(kind: Kind, port: u16) -> Result<String> {
    let mut curl = Command::new(located("curl")?);
    curl.args(["--silent", "--show-error", "--insecure", "--http1.1", "--max-time", "10", "--include"]);
    let answer = written(curl.arg(format!("https://127.0.0.1:{port}/index.txt")))?.replace('\r', "");
    let (head, body) = answer.split_once("\n\n").unwrap_or_default();
    let is_kept = !head.to_ascii_lowercase().contains("connection: close");
    if !head.starts_with("HTTP/1.1 200") || body != content() || !is_kept {
        return Err(Failure::new(format!("{} answers something else:\n{answer}", kind.name())));
    }
    Ok(answer)
}

fn save(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let file = folder.join(name);
    std::fs::write(&file, text).because(|| format!("cannot write `{}`", file.display()))?;
    Ok(file)
}
