//! The client's side: wrk and h2load for load, curl and openssl to look at one answer.

use std::path::Path;
use std::process::{Command, Stdio};

use super::scenario::{Scenario, Speech};
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
    /// The file that each request carries.
    pub(super) upload: Option<&'a Path>,
}

/// What wrk or h2load says about a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
    /// Socket errors, timeouts, streams that were reset and answers other than 2xx and 3xx.
    pub(crate) errors: u64,
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
        match self.scenario.speech {
            Speech::Http1 => {
                command.arg(located("wrk")?).args(["--threads", "1", "--timeout", "10s"]);
                command.args(["--connections", &self.connections.to_string()]);
                command.args(["--duration", &format!("{seconds}s")]);
            }
            Speech::Http2 { streams } => {
                command.arg(located("h2load")?).args(["--max-concurrent-streams", &streams.to_string()]);
                command.args(["--tls13-ciphers", "TLS_AES_128_GCM_SHA256", "--groups", "X25519"]);
                command.args(["--clients", &self.connections.to_string()]);
                command.args(["--duration", &seconds.to_string()]);
                if let Some(upload) = self.upload {
                    command.arg("--data").arg(upload);
                }
            }
        }
        for line in self.scenario.header_lines() {
            command.args(["--header", &line]);
        }
        let text = written(self.with_tls(command.arg(self.scenario.url(self.port, self.scenario.answer))))?;
        let outcome = if self.scenario.is_http2() { Outcome::of_h2load(&text) } else { Outcome::read(&text) };
        outcome.ok_or_else(|| Failure::new(format!("cannot read what the load generator says:\n{text}")))
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
        let version = match (self.scenario.is_http2(), self.scenario.tls) {
            (false, _) => "--http1.1",
            (true, true) => "--http2",
            (true, false) => "--http2-prior-knowledge",
        };
        command.args(["--silent", "--show-error", "--insecure", version, "--max-time", "10"]);
        if let Some(upload) = self.upload {
            command.arg("--data-binary").arg(format!("@{}", upload.display()));
        }
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

    pub(crate) fn read(text: &str) -> Option<Self> {
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

    /// h2load counts what was done when its time was over; what was under way then is neither.
    pub(crate) fn of_h2load(text: &str) -> Option<Self> {
        let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
        let count = |line: &str, word: &str| {
            line.split(", ").find_map(|count| count.strip_suffix(word)?.trim().parse::<u64>().ok())
        };
        let seconds = seconds_of(line("finished in ")?.split(',').next()?)?;
        let (requests, statuses) = (line("requests: ")?, line("status codes: ")?);
        let broken = count(requests, "failed")? + count(requests, "timeout")?;
        let refused = count(statuses, "4xx")? + count(statuses, "5xx")?;
        Some(Self { requests: count(requests, "succeeded")?, seconds, errors: broken + refused })
    }
}

/// `4.00s`, `900.00ms` or `1.10m`, as wrk and h2load write times.
fn seconds_of(time: &str) -> Option<f64> {
    if let Some(thousandths) = time.strip_suffix("ms") {
        return thousandths.parse::<f64>().ok().map(|thousandths| thousandths / 1000.0);
    }
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
        assert_eq!(seconds_of("900.00ms"), Some(0.9));
    }

    #[test]
    fn what_h2load_says_is_read() {
        let text = "starting benchmark...\nfinished in 2.00s, 127388.00 req/s, 8.75MB/s\n\
                    requests: 260 total, 300 started, 260 done, 254 succeeded, 6 failed, 4 errored, 1 timeout\n\
                    status codes: 254 2xx, 1 3xx, 2 4xx, 3 5xx\n";
        assert_eq!(Outcome::of_h2load(text), Some(Outcome { requests: 254, seconds: 2.0, errors: 12 }));
        assert_eq!(Outcome::of_h2load("finished in 2.00s"), None);
    }
}
