//! Who makes load, with which words, and what each says of it.

use std::path::Path;
use std::process::{Command, Stdio};

use pointsman_bench::ticks_per_second;
use pointsman_measure::verdict::Measure;
use serde_json::Value;

use super::LOAD_CORE;
use super::server::Server;
use crate::failure::{Because, Failure, Result};
use crate::packages::located;
use crate::peers::LoadOutcome;
use crate::project::written_with;

/// Ours, as tables call it.
pub(super) const OURS: &str = "pointsman";

/// Something that several generators do in the same way.
#[derive(Debug)]
pub(super) struct Contest {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// What the figures are of.
    pub(super) unit: &'static str,
    pub(super) is_over_tls: bool,
    /// Connections at a time.
    connections: u32,
    /// Whether each request has a connection of its own.
    is_fresh: bool,
    /// Whether what the server answers a second is known beforehand, [`super::server::STEADY_PER_S`].
    is_steady: bool,
    pub(super) contestants: &'static [Contestant],
    pub(super) bar: Bar,
}

/// What ours is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bar {
    /// It costs so many times as much as this one at most.
    Cost(Contestant, f64),
    /// Its rate is that of each of the others, to this share.
    Rate(f64),
}

/// A generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contestant {
    Ours,
    Wrk,
    H2load,
    STime,
}

/// A core that is taken so much is full.
const FULL: f64 = 0.75;

/// How far apart rates may be that are the server's: generators begin and end each in its own way.
const RATE_APART: f64 = 0.02;

use Contestant::{H2load, Ours, STime, Wrk};

pub(super) const CONTESTS: &[Contest] = &[
    Contest {
        name: "keep",
        what: "HTTP/1.1 on 64 kept connections",
        unit: "request",
        is_over_tls: false,
        connections: 64,
        is_fresh: false,
        is_steady: false,
        contestants: &[Ours, Wrk, H2load],
        bar: Bar::Cost(H2load, 1.0),
    },
    Contest {
        name: "keep-tls",
        what: "the same under TLS 1.3, AES-128-GCM",
        unit: "request",
        is_over_tls: true,
        connections: 64,
        is_fresh: false,
        is_steady: false,
        contestants: &[Ours, Wrk, H2load],
        bar: Bar::Cost(H2load, 1.0),
    },
    Contest {
        name: "handshake",
        what: "a full handshake for each request, one at a time; TLS 1.3, X25519, ECDSA P-256",
        unit: "handshake",
        is_over_tls: true,
        connections: 1,
        is_fresh: true,
        is_steady: false,
        contestants: &[Ours, STime, Wrk],
        bar: Bar::Cost(STime, 0.5),
    },
    Contest {
        name: "rate",
        what: "a server that answers 5,000 a second, HTTP/1.1 on 64 kept connections",
        unit: "request",
        is_over_tls: false,
        connections: 64,
        is_fresh: false,
        is_steady: true,
        contestants: &[Ours, Wrk, H2load],
        bar: Bar::Rate(RATE_APART),
    },
    Contest {
        name: "rate-tls",
        what: "the same under TLS 1.3, AES-128-GCM",
        unit: "request",
        is_over_tls: true,
        connections: 64,
        is_fresh: false,
        is_steady: true,
        contestants: &[Ours, Wrk, H2load],
        bar: Bar::Rate(RATE_APART),
    },
];

impl Contest {
    pub(super) fn named(name: &str) -> Result<&'static Contest> {
        let names = || CONTESTS.iter().map(|contest| format!("`{}`", contest.name)).collect::<Vec<_>>();
        let unknown = || Failure::usage(format!("no contest `{name}`: there are {}", names().join(", ")));
        CONTESTS.iter().find(|contest| contest.name == name).ok_or_else(unknown)
    }
}

/// What a generator did in its turn, and what that cost it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Round {
    pub(super) contestant: Contestant,
    pub(super) number: usize,
    pub(super) requests: u64,
    /// Of these, answers that came in the time.
    pub(super) in_time: u64,
    pub(super) seconds: f64,
    pub(super) errors: u64,
    /// User and system, in seconds.
    pub(super) cpu: [f64; 2],
    /// Of ours: the colour of its verdict.
    pub(super) colour: Option<String>,
    /// Why it is no result, whatever others say of theirs: what disturbed ours, but for a core that was full.
    pub(super) disturbed: Vec<String>,
}

impl Round {
    pub(super) fn rate(&self) -> f64 {
        self.in_time as f64 / self.seconds
    }

    /// CPU time of the generator, in microseconds.
    pub(super) fn us_each(&self) -> f64 {
        (self.cpu[0] + self.cpu[1]) * 1e6 / self.requests as f64
    }

    /// The share of its core that it used.
    pub(super) fn busy(&self) -> f64 {
        (self.cpu[0] + self.cpu[1]) / self.seconds
    }

    pub(super) fn counts(&self) -> bool {
        self.errors == 0 && self.requests > 0 && self.disturbed.is_empty()
    }
}

impl Contestant {
    pub(super) fn name(self) -> &'static str {
        match self {
            Ours => OURS,
            Wrk => "wrk",
            H2load => "h2load",
            STime => "s_time",
        }
    }

    pub(super) fn run(
        self,
        contest: &Contest,
        server: &Server,
        binary: &Path,
        seconds: u32,
        number: usize,
    ) -> Result<Round> {
        let mut command = Command::new("timeout");
        // All end by themselves; a server that hangs must not hang us.
        command.args(["--foreground", &(seconds + 30).to_string(), "taskset", "--cpu-list"]);
        command.arg(LOAD_CORE.to_string());
        self.words(&mut command, contest, server, binary, seconds)?;
        command.env("OPENSSL_CONF", &server.openssl_conf).stdin(Stdio::null());
        let before = children_cpu()?;
        // Ours says by 1 that it is red: what its reasons are decides.
        let statuses: &[i32] = if matches!(self, Ours) { &[0, 1] } else { &[0] };
        let text = written_with(&mut command, statuses)?;
        let after = children_cpu()?;
        let cpu = [after[0] - before[0], after[1] - before[1]];
        let own = if matches!(self, Ours) { run_of_ours(&text) } else { Value::Null };
        let outcome = match self {
            Ours => of_ours(&own),
            Wrk => LoadOutcome::read(&text),
            H2load => LoadOutcome::of_h2load(&text),
            STime => of_s_time(&text, seconds),
        };
        let unread = || Failure::new(format!("cannot read what {} says:\n{text}", self.name()));
        let LoadOutcome { requests, seconds, errors } = outcome.ok_or_else(unread)?;
        let mut round = Round {
            contestant: self,
            number,
            requests,
            in_time: requests,
            seconds,
            errors,
            cpu,
            colour: None,
            disturbed: Vec::new(),
        };
        if let Ours = self {
            // Ours waits for the answers to all that it asked; the others leave when the time is up.
            round.in_time = in_time_of_ours(&own).ok_or_else(unread)?;
            (round.colour, round.disturbed) = verdict_of_ours(&own, round.busy()).ok_or_else(unread)?;
        }
        Ok(round)
    }

    fn words(
        self,
        command: &mut Command,
        contest: &Contest,
        server: &Server,
        binary: &Path,
        seconds: u32,
    ) -> Result<()> {
        let ports = if contest.is_steady { &server.steady } else { &server.full };
        let (scheme, port) = if contest.is_over_tls { ("https", ports.tls) } else { ("http", ports.plain) };
        let url = format!("{scheme}://127.0.0.1:{port}/");
        let (connections, time) = (contest.connections.to_string(), format!("{seconds}s"));
        // The server closes, as it does behind HTTP/1.0: our ports stay free.
        let end = "Connection: close";
        match self {
            Ours => {
                command.arg(binary).args(["bench", "load", &url, "--clients", &connections]);
                command.args(["--threads", "1", "--time", &time, "--warm-up", "0s", "--json"]);
                if contest.is_over_tls {
                    command.args(["--insecure", "--groups", "X25519", "--tls-version", "1.3"]);
                    command.args(["--suites", "TLS_AES_128_GCM_SHA256"]);
                }
                if contest.is_fresh {
                    command.args(["--handshake", "full", "--header", end]);
                }
            }
            Wrk => {
                command.arg(located("wrk")?).args(["--threads", "1", "--timeout", "10s"]);
                command.args(["--connections", &connections, "--duration", &time]);
                if contest.is_fresh {
                    command.args(["--header", end]);
                }
                command.arg(url);
            }
            H2load => {
                command.arg(located("h2load")?).args(["--h1", "--threads", "1", "--clients", &connections]);
                command.args(["--tls13-ciphers", "TLS_AES_128_GCM_SHA256", "--groups", "X25519"]);
                command.args(["--duration", &seconds.to_string()]).arg(url);
            }
            STime => {
                command.arg(located("openssl")?).args(["s_time", "-new", "-tls1_3", "-www", "/", "-time"]);
                command.arg(seconds.to_string()).args(["-connect", &format!("127.0.0.1:{port}")]);
            }
        }
        Ok(())
    }
}

/// The one run of the bench's own JSON; null where there is none.
fn run_of_ours(text: &str) -> Value {
    let document: Value = serde_json::from_str(text.trim()).unwrap_or_default();
    document["runs"][0].clone()
}

fn of_ours(run: &Value) -> Option<LoadOutcome> {
    let outcome = &run["outcome"];
    let requests = &outcome["requests"];
    let errors = requests["failed"].as_u64()? + requests["unsent"].as_u64()?;
    let voids = outcome["voids"].as_array()?.len() as u64;
    Some(LoadOutcome {
        requests: requests["answered"].as_u64()?,
        seconds: outcome["seconds"].as_f64()?,
        errors: errors + voids,
    })
}

fn in_time_of_ours(run: &Value) -> Option<u64> {
    run["outcome"]["requests"]["answered_in_time"].as_u64()
}

/// Its colour, and what makes it red. That its core was full is none of that here, where it was: all have theirs full where the
/// server's is not.
fn verdict_of_ours(run: &Value, busy: f64) -> Option<(Option<String>, Vec<String>)> {
    let full = (busy >= FULL).then(|| Measure::Cpu.to_string());
    let colour = run["verdict"]["colour"].as_str()?.to_owned();
    let mut disturbed = Vec::new();
    for reason in run["outcome"]["reasons"].as_array()? {
        let measure = reason["measure"].as_str()?;
        if reason["colour"] == "red" && full.as_deref() != Some(measure) {
            disturbed.push(reason["text"].as_str()?.to_owned());
        }
    }
    Some((Some(colour), disturbed))
}

/// `1234 connections in 5 real seconds, 300 bytes read per connection`. It counts whole seconds, and what it says of them
/// may be one more than it was told.
fn of_s_time(text: &str, seconds: u32) -> Option<LoadOutcome> {
    let line = text.lines().find(|line| line.contains("connections in") && line.contains("real seconds"))?;
    let requests = line.split(' ').next()?.parse().ok()?;
    Some(LoadOutcome { requests, seconds: f64::from(seconds), errors: 0 })
}

/// User and system time of all children that have ended, and of theirs, in seconds.
fn children_cpu() -> Result<[f64; 2]> {
    let text =
        std::fs::read_to_string("/proc/self/stat").because(|| "cannot read `/proc/self/stat`".into())?;
    let read = || -> Option<[f64; 2]> {
        // The name may have spaces and brackets in it; what follows has none. The sixteenth and seventeenth fields of
        // proc_pid_stat(5) are at 13 and 14 behind it.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some([ticks(13)? / ticks_per_second() as f64, ticks(14)? / ticks_per_second() as f64])
    };
    read().ok_or_else(|| Failure::new("`/proc/self/stat` has another form"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::written;

    #[test]
    fn what_generators_say_is_read() {
        let text = "Collecting connection statistics for 4 seconds\n***\n\n\
                    4000 connections in 3.21s; 1246.11 connections/user sec, bytes read 1160000\n\
                    4000 connections in 5 real seconds, 290 bytes read per connection\n";
        assert_eq!(of_s_time(text, 4), Some(LoadOutcome { requests: 4000, seconds: 4.0, errors: 0 }));
        assert_eq!(of_s_time("connect: Connection refused", 4), None);
        let text = r#"{"runs": [{"outcome": {"seconds": 2.0, "voids": [],
                     "requests": {"answered": 10, "failed": 1, "unsent": 2}}}]}"#;
        assert_eq!(of_ours(&run_of_ours(text)), Some(LoadOutcome { requests: 10, seconds: 2.0, errors: 3 }));
        assert_eq!(of_ours(&run_of_ours("{}")), None);
        let text = r#"{"runs": [{"outcome": {"requests": {"answered": 10, "answered_in_time": 9}}}]}"#;
        assert_eq!(
            (in_time_of_ours(&run_of_ours(text)), in_time_of_ours(&run_of_ours("{}"))),
            (Some(9), None)
        );
        let reason = |measure: &str, colour: &str| {
            format!(r#"{{"measure": "{measure}", "colour": "{colour}", "text": "t"}}"#)
        };
        let (full, stolen) = (Measure::Cpu.to_string(), Measure::Steal.to_string());
        for (busy, reasons, disturbed) in [
            (0.9, String::new(), 0),
            (0.9, reason(&full, "red"), 0),
            (0.9, reason(&stolen, "amber"), 0),
            (0.9, format!("{}, {}", reason(&full, "red"), reason(&stolen, "red")), 1),
            // Then it is not known, and not full.
            (0.3, reason(&full, "red"), 1),
        ] {
            let text = format!(
                r#"{{"runs": [{{"verdict": {{"colour": "red"}}, "outcome": {{"reasons": [{reasons}]}}}}]}}"#
            );
            let expected = (Some("red".to_owned()), vec!["t".to_owned(); disturbed]);
            assert_eq!(verdict_of_ours(&run_of_ours(&text), busy), Some(expected), "{text}");
        }
        assert_eq!(verdict_of_ours(&run_of_ours("{}"), 1.0), None);
    }

    #[test]
    fn what_children_cost_is_known() {
        let before = children_cpu().expect("/proc");
        let mut burn = Command::new("sh");
        written(burn.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])).expect("a shell");
        let after = children_cpu().expect("/proc");
        assert!(after[0] + after[1] > before[0] + before[1], "{before:?} {after:?}");
    }
}
