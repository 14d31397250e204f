//! The server that all generators ask: nginx of the machine, or the null server of the bench.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pointsman_e2e::Authority;

use super::SERVER_CORE;
use crate::failure::{Because, Failure, Result};
use crate::packages::located;
use crate::peers::{Child, Place, free_port};

/// Bytes of each answer's content.
pub(crate) const CONTENT_BYTES: usize = 128;

/// Which server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerKind {
    Nginx,
    Null,
}

impl ServerKind {
    pub(super) fn named(name: &str) -> Result<Self> {
        match name {
            "nginx" => Ok(Self::Nginx),
            "null" => Ok(Self::Null),
            other => Err(Failure::usage(format!("no server `{other}`: there are `nginx` and `null`"))),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Null => "pointsman bench null",
        }
    }
}

/// What the steady server answers a second: far less than it could, so that its rate is known.
pub(super) const STEADY_PER_S: u32 = 5_000;

/// Where a server listens.
pub(super) struct Ports {
    pub(super) plain: u16,
    pub(super) tls: u16,
}

/// A server that answers as much as it can, and one that does [so much](STEADY_PER_S) a second, each with and without TLS. They
/// end when this is dropped.
pub(super) struct Server {
    pub(super) full: Ports,
    pub(super) steady: Ports,
    /// What wrk's library is to offer.
    pub(super) openssl_conf: PathBuf,
    _children: Vec<Child>,
}

impl Server {
    pub(super) fn start(kind: ServerKind, binary: &Path, folder: &Path) -> Result<Self> {
        // The same choices on the client's side, where it has no options for them.
        let conf = "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = client\n[client]\n\
                    MinProtocol = TLSv1.3\nCiphersuites = TLS_AES_128_GCM_SHA256\nGroups = X25519\n";
        let openssl_conf = save(folder, "openssl.cnf", conf)?;
        let (full, mut children) = match kind {
            ServerKind::Nginx => nginx(folder)?,
            ServerKind::Null => null(binary, folder, "null", &[])?,
        };
        let capacity = STEADY_PER_S.to_string();
        let (steady, others) = null(binary, folder, "steady", &["--capacity", &capacity])?;
        children.extend(others);
        Ok(Self { full, steady, openssl_conf, _children: children })
    }
}

fn nginx(folder: &Path) -> Result<(Ports, Vec<Child>)> {
    let pair = Authority::new("generators").server(&["localhost"]);
    let certificate = save(folder, "server.crt", &pair.certificate)?;
    let key = save(folder, "server.key", &pair.key)?;
    let (plain, tls) = (free_port()?, free_port()?);
    let text = configuration(folder, (plain, tls), (&certificate, &key));
    let file = save(folder, "nginx.conf", &text)?;
    let arguments: Vec<OsString> = vec!["-p".into(), folder.into(), "-c".into(), file.into()];
    let log = folder.join("nginx.log");
    let mut child = Child::start("nginx", Place::on(&[SERVER_CORE]), &located("nginx")?, &arguments, &log)?;
    child.wait_for_port(plain)?;
    child.wait_for_port(tls)?;
    Ok((Ports { plain, tls }, vec![child]))
}

/// One process, no log, no resumption, and an answer that is nothing but written.
pub(crate) fn configuration(
    folder: &Path,
    (plain, tls): (u16, u16),
    (certificate, key): (&Path, &Path),
) -> String {
    let (folder, certificate, key) = (folder.display(), certificate.display(), key.display());
    let content = "x".repeat(CONTENT_BYTES);
    format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\n\
         pid {folder}/nginx.pid;\nerror_log stderr warn;\n\
         events {{ worker_connections 4096; multi_accept on; }}\n\
         http {{\n  access_log off;\n  server_tokens off;\n  tcp_nodelay on;\n  keepalive_requests 1000000000;\n  \
         client_body_temp_path {folder}/body;\n  proxy_temp_path {folder}/proxy;\n  \
         fastcgi_temp_path {folder}/fastcgi;\n  uwsgi_temp_path {folder}/uwsgi;\n  scgi_temp_path {folder}/scgi;\n  \
         server {{\n    listen 127.0.0.1:{plain} backlog=1024;\n    listen 127.0.0.1:{tls} ssl backlog=1024;\n    \
         ssl_certificate {certificate};\n    ssl_certificate_key {key};\n    ssl_protocols TLSv1.3;\n    \
         ssl_ecdh_curve X25519;\n    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;\n    \
         ssl_session_tickets off;\n    ssl_session_cache off;\n    \
         location / {{ default_type text/plain; return 200 \"{content}\"; }}\n  }}\n}}\n"
    )
}

/// Two of them: each speaks one thing.
fn null(binary: &Path, folder: &Path, name: &str, words: &[&str]) -> Result<(Ports, Vec<Child>)> {
    let start = |name: &str, own: &[&str]| {
        let bytes = CONTENT_BYTES.to_string();
        let usual = ["bench", "null", "--listen", "127.0.0.1:0", "--body-bytes", &bytes];
        let arguments: Vec<OsString> = usual.iter().chain(words).chain(own).map(OsString::from).collect();
        let log = folder.join(format!("{name}.log"));
        let mut child = Child::start(name, Place::on(&[SERVER_CORE]), binary, &arguments, &log)?;
        let port = child.wait_for_log(|text| {
            let address = text.lines().find_map(|line| line.strip_prefix("listening on "))?;
            address.rsplit_once(':')?.1.trim().parse::<u16>().ok()
        })?;
        Ok::<_, Failure>((port, child))
    };
    let (plain, first) = start(name, &[])?;
    let (tls, second) = start(&format!("{name}-tls"), &["--tls", "--no-resumption"])?;
    Ok((Ports { plain, tls }, vec![first, second]))
}

fn save(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let file = folder.join(name);
    std::fs::write(&file, text).because(|| format!("cannot write `{}`", file.display()))?;
    Ok(file)
}
