//! Servers of others that say what they read, on ports of their own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Because, Failure, Result};
use crate::interop;
use crate::packages::{self, Tool, located};
use crate::process::{Process, Start};
use crate::project::{Project, succeed};

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Go,
    Nginx,
    Node,
    Python,
    Flask,
    Php,
}

pub(super) const KINDS: [Kind; 6] = [Kind::Go, Kind::Nginx, Kind::Node, Kind::Python, Kind::Flask, Kind::Php];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Nginx => "nginx",
            Self::Node => "node",
            Self::Python => "python",
            Self::Flask => "flask",
            Self::Php => "php",
        }
    }

    /// Share of the mutants: the slower a server, the fewer.
    pub(super) fn weight(self) -> usize {
        match self {
            Self::Go => 6,
            Self::Nginx => 4,
            Self::Node => 4,
            Self::Python => 3,
            Self::Flask => 2,
            Self::Php => 2,
        }
    }

    /// Whether it reads what a rule is about.
    pub(super) fn reads(self, rule: &str) -> bool {
        let is_body = ["form", "json", "xml", "size", "length", "guard-form", "guard-json"]
            .iter()
            .any(|part| rule.starts_with(part));
        match self {
            // `$arg_auth` is as it was written: to compare it with a decoded value shows nothing.
            Self::Nginx => !is_body && rule != "guard-query",
            // Debian keeps PHP's XML in a package of its own, and Node has none.
            Self::Php | Self::Node => !rule.starts_with("xml"),
            _ => true,
        }
    }
}

/// A running server.
pub(super) struct Reader {
    pub(super) kind: Kind,
    pub(super) port: u16,
    /// What nginx writes before each field.
    pub(super) mark: String,
    _process: Process,
}

/// Installs what the servers stand on.
pub(super) fn install(project: &Project, kinds: &[Kind]) -> Result<()> {
    let sources = project.root().join("xtask/readers");
    let folder = project.target().join("readers");
    std::fs::create_dir_all(&folder).because(|| format!("cannot make `{}`", folder.display()))?;
    for kind in kinds {
        match kind {
            Kind::Go => {
                packages::ensure(&[Tool { program: "go", package: "golang-go" }])?;
                let mut go = Command::new(located("go")?);
                go.current_dir(sources.join("go")).args(["build", "-o"]).arg(folder.join("go-reader"));
                succeed(go.arg("."))?;
            }
            Kind::Nginx => packages::ensure(&[Tool { program: "nginx", package: "nginx" }])?,
            Kind::Node => interop::node(&sources.join("node"), &folder.join("node"))?,
            Kind::Flask => interop::python(&sources.join("requirements.txt"), &folder.join("python"))?,
            Kind::Python => packages::ensure(&[Tool { program: "python3", package: "python3" }])?,
            Kind::Php => packages::ensure(&[Tool { program: "php", package: "php-cli" }])?,
        }
    }
    Ok(())
}

impl Reader {
    pub(super) fn start(project: &Project, kind: Kind, folder: &Path) -> Result<Self> {
        let sources = project.root().join("xtask/readers");
        let installed = project.target().join("readers");
        let mark = format!("<{:016x}>", std::process::id().wrapping_mul(0x9e37_79b9));
        let (program, arguments): (PathBuf, Vec<OsString>) = match kind {
            Kind::Go => (installed.join("go-reader"), Vec::new()),
            Kind::Nginx => return nginx(folder, mark),
            Kind::Node => {
                (located("node")?, vec![sources.join("node/reader.js").into(), installed.join("node").into()])
            }
            // Without files of bytecode in the tree.
            Kind::Python => (located("python3")?, vec!["-B".into(), sources.join("python_reader.py").into()]),
            Kind::Flask => (
                installed.join("python/bin/python"),
                vec!["-B".into(), sources.join("flask_reader.py").into()],
            ),
            Kind::Php => {
                let settings =
                    ["-d", "display_errors=0", "-d", "log_errors=0", "-S", "127.0.0.1:0"].map(OsString::from);
                // One process serves one request at a time.
                let words = [OsString::from("PHP_CLI_SERVER_WORKERS=3"), located("php")?.into()];
                let words = words.into_iter().chain(settings).chain([sources.join("php/reader.php").into()]);
                (located("env")?, words.collect())
            }
        };
        let log = folder.join(format!("{}.log", kind.name()));
        let start = Start { name: kind.name(), program: &program, arguments: &arguments, log: &log };
        let mut process = Process::start(&start)?;
        let port = process.wait_for(port)?;
        Ok(Self { kind, port, mark: String::new(), _process: process })
    }
}

/// `port 1234`, or PHP's `Development Server (http://127.0.0.1:1234) started`.
fn port(said: &str) -> Option<u16> {
    said.lines().find_map(|line| {
        let (_, rest) = line.split_once("port ").or_else(|| line.split_once("(http://127.0.0.1:"))?;
        rest.split([')', ' ']).next()?.parse().ok()
    })
}

/// nginx cannot take any port and say which: a port that was free a moment ago is taken.
fn nginx(folder: &Path, mark: String) -> Result<Reader> {
    let folder = folder.join("nginx");
    std::fs::create_dir_all(&folder).because(|| format!("cannot make `{}`", folder.display()))?;
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).because(|| "no free port".into())?;
    let port = free.local_addr().because(|| "no free port".into())?.port();
    drop(free);
    let file = folder.join("nginx.conf");
    std::fs::write(&file, nginx_configuration(&folder, port, &mark))
        .because(|| "cannot write nginx.conf".into())?;
    let arguments = ["-c".into(), file.into(), "-p".into(), folder.clone().into()];
    let log = folder.join("log");
    let start = Start { name: "nginx", program: &located("nginx")?, arguments: &arguments, log: &log };
    let mut process = Process::start(&start)?;
    process.wait_for_port(port)?;
    Ok(Reader { kind: Kind::Nginx, port, mark, _process: process })
}

fn nginx_configuration(folder: &Path, port: u16, mark: &str) -> String {
    let fields = [
        ("path", "$uri"),
        ("host", "$host"),
        ("query.my_plan", "$arg_my_plan"),
        ("query.auth", "$arg_auth"),
        ("cookie.my_plan", "$cookie_my_plan"),
        ("cookie.auth", "$cookie_auth"),
        ("header.x-role", "$http_x_role"),
        ("header.x-user", "$http_x_user"),
        ("header.x-scope", "$http_x_scope"),
        ("header.x-key", "$http_x_key"),
    ];
    let text: String = fields.iter().map(|(field, variable)| format!("{mark}{field}={variable}")).collect();
    let folder = folder.display();
    let answer = |more: &str| format!("return 200 \"{text}{more}\\n\";");
    let mount = format!("{mark}mount=/admin");
    format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log crit;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\naccess_log off;\nkeepalive_requests 1000000;\nclient_body_temp_path {folder}/body;\nproxy_temp_path {folder}/proxy;\n\
         fastcgi_temp_path {folder}/fastcgi;\nuwsgi_temp_path {folder}/uwsgi;\nscgi_temp_path {folder}/scgi;\nadd_header X-Reader nginx;\n\
         server {{\nlisten 127.0.0.1:{port};\nlocation / {{ {} }}\nlocation = /admin {{ {} }}\nlocation /admin/ {{ {} }}\n}}\n}}\n",
        answer(""),
        answer(&mount),
        answer(&mount)
    )
}

/// The servers named on the command line; all of them without a name.
pub(super) fn chosen(names: &[String]) -> Result<Vec<Kind>> {
    if names.is_empty() {
        return Ok(KINDS.to_vec());
    }
    let known = |name: &String| {
        KINDS.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let all: Vec<_> = KINDS.iter().map(|kind| kind.name()).collect();
            Failure::usage(format!("no such origin: `{name}`\nhelp: there are {}", all.join(", ")))
        })
    };
    names.iter().map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read() {
        assert_eq!(port("port 1234\n"), Some(1234));
        assert_eq!(
            port("[1] [x] PHP 8.2 Development Server (http://127.0.0.1:39705) started\n"),
            Some(39705)
        );
        assert_eq!(port("port \n"), None);
    }

    #[test]
    fn an_unknown_origin_is_a_mistake() {
        assert_eq!(chosen(&["php".to_owned()]).expect("it is known"), [Kind::Php]);
        assert_eq!(chosen(&[]).expect("all"), KINDS);
        assert!(chosen(&["ruby".to_owned()]).is_err());
    }
}
