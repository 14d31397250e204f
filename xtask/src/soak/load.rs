//! wrk, which makes most of the load: plain and TLS, kept alive and not, small answers and large.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::behaviour::Ports;
use crate::failure::Result;
use crate::packages::located;
use crate::process::{Process, Start};

/// What a browser sends.
const BROWSER: [&str; 5] = [
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Accept-Language: en-US,en;q=0.5",
    "Accept-Encoding: gzip, deflate, br",
    "Cookie: session=8f14e45fceea167a5a36dedd4bea2543; theme=dark; consent=yes",
];

/// One wrk for the whole of the soak.
pub(super) struct Load {
    name: &'static str,
    process: Process,
}

struct Kind {
    name: &'static str,
    is_tls: bool,
    connections: u32,
    target: &'static str,
    header: Option<&'static str>,
}

const KINDS: [Kind; 4] = [
    Kind { name: "wrk: plain, kept alive", is_tls: false, connections: 16, target: "/img/1k", header: None },
    Kind { name: "wrk: TLS, kept alive", is_tls: true, connections: 8, target: "/img/1k", header: None },
    Kind {
        name: "wrk: TLS, a handshake each",
        is_tls: true,
        connections: 4,
        target: "/img/1k",
        header: Some("Connection: close"),
    },
    Kind {
        name: "wrk: plain, 1 MiB",
        is_tls: false,
        connections: 2,
        target: "/img/1m",
        header: Some("X-Soak: 1"),
    },
];

impl Load {
    pub(super) fn start_all(ports: &Ports, length: Duration, folder: &Path) -> Result<Vec<Self>> {
        KINDS
            .iter()
            .enumerate()
            .map(|(number, kind)| Self::start(kind, ports, length, folder.join(format!("wrk{number}.log"))))
            .collect()
    }

    fn start(kind: &Kind, ports: &Ports, length: Duration, log: PathBuf) -> Result<Self> {
        let (scheme, port) = if kind.is_tls { ("https", ports.tls) } else { ("http", ports.plain) };
        let mut words = vec!["--threads".into(), "1".into(), "--timeout".into(), "30s".into()];
        words.extend(["--connections".into(), kind.connections.to_string().into()]);
        words.extend(["--duration".into(), format!("{}s", length.as_secs().max(1)).into()]);
        for line in BROWSER.iter().chain(&kind.header) {
            words.extend(["--header".into(), line.into()]);
        }
        words.push(format!("{scheme}://127.0.0.1:{port}{}", kind.target).into());
        let program = located("wrk")?;
        let start = Start { name: kind.name, program: &program, arguments: &words, log: &log };
        Ok(Self { name: kind.name, process: Process::start(&start)? })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// How many requests were answered well, once it has ended.
    pub(super) fn outcome(mut self) -> std::result::Result<u64, String> {
        const END_MAX: Duration = Duration::from_secs(60);
        if self.process.wait_for_exit(END_MAX).is_none() {
            return Err("wrk does not end".to_owned());
        }
        requests(&self.process.said())
    }
}

/// The requests that wrk counts, unless it counts an error.
fn requests(said: &str) -> std::result::Result<u64, String> {
    let lines = || said.lines().map(str::trim);
    if let Some(errors) =
        lines().find(|line| line.starts_with("Socket errors") || line.starts_with("Non-2xx"))
    {
        return Err(errors.to_owned());
    }
    let counted = lines().find_map(|line| line.split_once(" requests in ")?.0.parse().ok());
    counted.ok_or_else(|| format!("wrk says: {said}"))
}

#[cfg(test)]
mod tests {
    use super::requests;

    #[test]
    fn errors_are_seen() {
        let fine = "Running 4s test\n  290000 requests in 4.10s, 350.00MB read\n";
        assert_eq!(requests(fine), Ok(290_000));
        assert!(requests(&format!("{fine}  Non-2xx or 3xx responses: 7\n")).is_err());
        assert!(
            requests(&format!("{fine}  Socket errors: connect 0, read 2, write 0, timeout 1\n")).is_err()
        );
        assert!(requests("unable to connect").is_err());
    }
}
