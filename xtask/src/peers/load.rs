//! The client's side: wrk for load, curl and openssl to look at one answer.

use std::path::Path;
use std::process::{Command, Stdio};

use super::scenario::Scenario;
use crate::failure::{Failure, Result};
use crate::packages::located;
use crate::project::written;

/// Requests of a scenario to one port of a proxy.
pub(super) struct Load<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) port: u16,
    /// Where it comes from.
    pub(super) core: usize,
    pub(super) connections: u32,
    pub(super) openssl_conf: Option<&'a Path>,
}

/// What wrk says about a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) requests: u64,
    pub(super) seconds: f64,
    /// Socket errors, timeouts and answers other than 2xx and 3xx.
    pub(super) errors: u64,
}

impl Load<'_> {
    pub(super) fn run(&self, seconds: u32) -> Result<Outcome> {
        let mut command = Command::new("timeout");
        // wrk ends by itself; a proxy that hangs must not hang us.
        command.args(["--foreground", &(seconds + 30).to_string()]).args([
            "taskset",
            "--cpu-list",
            &self.core.to_string(),
        ]);
        command.arg(located("wrk")?).args(["--threads", "1", "--timeout", "10s"]);
        command.args(["--connections", &self.connections.to_string()]);
        command.args(["--duration", &format!("{seconds}s")]);
        for line in self.scenario.header_lines() {
            command.args(["--header", &line]);
        }
        let text = written(self.with_tls(command.arg(self.scenario.url(self.port, self.scenario.answer))))?;
        Outcome::read(&text).ok_or_else(|| Failure::new(format!("cannot read what wrk says:\n{text}")))
    }

    pub(super) fn head_of(&self, name: &str) -> Result<String> {
        self.curl(name, &["--dump-header", "-", "--output", "/dev/null"])
    }

    pub(super) fn body_of(&self, name: &str) -> Result<String> {
        self.curl(name, &[])
    }

    /// What a handshake agrees on, in openssl's words.
    pub(super) fn tls_agreed(&self) -> Result<String> {
        let mut command = Command::new("timeout");
        command.arg("10").arg(located("openssl")?).args(["s_client", "-connect"]);
        command.arg(format!("127.0.0.1:{}", self.port)).stdin(Stdio::null());
        written(self.with_tls(&mut command))
    }

    fn curl(&self, name: &str, words: &[&str]) -> Result<String> {
        let mut command = Command::new(located("curl")?);
        command.args(["--silent", "--show-error", "--insecure", "--http1.1", "--max-time", "10"]);
        for line in self.scenario.header_lines() {
            command.args(["--header", &line]);
        }
        written(command.args(words).arg(self.scenario.url(self.port, name)))
    }

    /// wrk has no option for TLS versions and ciphers, but its library reads a file.
    fn with_tls<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        match self.openssl_conf {
            Some(path) => command.env("OPENSSL_CONF", path),
            None => command,
        }
    }
}

impl Outcome {
    /// Of two generators that ran at the same time.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            seconds: self.seconds.max(other.seconds),
            errors: self.errors + other.errors,
        }
    }

    fn read(text: &str) -> Option<Self> {
        let mut outcome = None;
        let mut errors = 0;
        for line in text.lines().map(str::trim) {
            if let Some((requests, rest)) = line.split_once(" requests in ") {
                let seconds = seconds_of(rest.split(',').next()?)?;
                outcome = Some((requests.parse().ok()?, seconds));
            } else if let Some(counts) = line.strip_prefix("Socket errors: ") {
                errors +=
                    counts.split(", ").filter_map(|c| c.split_once(' ')?.1.parse::<u64>().ok()).sum::<u64>();
            } else if let Some(count) = line.strip_prefix("Non-2xx or 3xx responses: ") {
                errors += count.parse::<u64>().ok()?;
            }
        }
        outcome.map(|(requests, seconds)| Self { requests, seconds, errors })
    }
}

/// `4.00s` or `1.10m`, as wrk writes times.
fn seconds_of(time: &str) -> Option<f64> {
    match time.strip_suffix('s') {
        Some(seconds) => seconds.parse().ok(),
        None => time.strip_suffix('m')?.parse::<f64>().ok().map(|minutes| minutes * 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wrk_says_is_read() {
        let text = "Running 4s test @ http://127.0.0.1:1/\n  1 threads and 64 connections\n  \
                    290000 requests in 4.10s, 350.00MB read\nRequests/sec:  72500.00\n";
        let clean = Outcome { requests: 290_000, seconds: 4.1, errors: 0 };
        assert_eq!(Outcome::read(text), Some(clean.clone()));
        let with_errors = format!(
            "{text}  Socket errors: connect 0, read 2, write 0, timeout 1\n  Non-2xx or 3xx responses: 7\n"
        );
        assert_eq!(Outcome::read(&with_errors), Some(Outcome { errors: 10, ..clean.clone() }));
        assert_eq!(Outcome::read("unable to connect"), None);
        let both = clean.clone().and(Outcome { requests: 10, seconds: 5.0, errors: 2 });
        assert_eq!(both, Outcome { requests: 290_010, seconds: 5.0, errors: 2 });
        assert_eq!(seconds_of("1.50m"), Some(90.0));
    }
}
