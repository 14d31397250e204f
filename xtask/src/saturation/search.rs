//! Searches for saturation, by `pointsman bench find`, one at a time.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Options;
use super::bench::Bench;
use super::contender::{Contender, Kind};
use super::throttle::Throttle;
use crate::failure::{Failure, Result};

/// What is known beforehand comes from so many clients, for so long.
const ESTIMATE_CLIENTS: u32 = 32;
const ESTIMATE_MS: u32 = 1_000;
/// A search begins with this share of what they reached: far below what they sustain, for what fails there ends it.
const FROM_SHARE: f64 = 0.2;
/// Of a trial, and its warm-up beside that.
const WARM_UP_SHARE: f64 = 0.25;
/// How near a good and a bad load come.
const WIDTH_PERCENT: u32 = 6;
/// So many times a trial of handshakes a search may last: it has some 80 trials, and there is more to one than what is measured.
const TRIALS_MAX: u32 = 300;

/// What connections are like.
#[derive(Debug)]
pub(super) struct Mode {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// What rates count.
    pub(super) unit: &'static str,
    /// The 99th percentile of the response time that a sustained rate keeps.
    pub(super) p99_ms: u32,
    /// What a server gets of its core, in hundredths: so much that the generator is to have a quarter of its own left when it asks
    /// the fastest for 1.3 times what that sustains, as a search does.
    share_percent: u32,
    /// How long a trial is beside one of handshakes.
    trial_share: f64,
    /// Whether each request has a connection of its own.
    is_fresh: bool,
}

pub(super) const MODES: &[Mode] = &[
    Mode {
        name: "handshake",
        what: "a new connection and a full handshake for each request",
        unit: "handshakes/s",
        p99_ms: 50,
        share_percent: 40,
        trial_share: 1.0,
        is_fresh: true,
    },
    Mode {
        name: "keep",
        what: "kept connections",
        unit: "requests/s",
        // With a short limit few connections are enough to show that a server is late.
        p99_ms: 5,
        share_percent: 25,
        // It has some twenty times as many requests.
        trial_share: 0.5,
        is_fresh: false,
    },
];

impl Mode {
    pub(super) fn named(name: &str) -> Result<&'static Mode> {
        let names = || MODES.iter().map(|mode| format!("`{}`", mode.name)).collect::<Vec<_>>();
        let unknown = || Failure::usage(format!("no mode `{name}`: there are {}", names().join(", ")));
        MODES.iter().find(|mode| mode.name == name).ok_or_else(unknown)
    }

    pub(super) fn share_percent(&self, options: &Options) -> u32 {
        options.share_percent.unwrap_or(self.share_percent)
    }

    pub(super) fn trial_ms(&self, options: &Options) -> u32 {
        (f64::from(options.trial_ms) * self.trial_share) as u32
    }

    pub(super) fn words(&self) -> &'static [&'static str] {
        match self.is_fresh {
            // The server closes, as it does behind HTTP/1.0: our ports stay free.
            true => &["--handshake", "full", "--header", "Connection: close"],
            false => &["--handshake", "keep"],
        }
    }

    /// Connections of a search: more than the fastest has under way when it is as late as it may be, or they, and not the
    /// server, would be the limit.
    fn connections(&self, fastest_per_s: f64) -> Option<u32> {
        let under_way = fastest_per_s * f64::from(self.p99_ms) / 1e3;
        (!self.is_fresh).then_some((1.5 * under_way).ceil().clamp(16.0, 3_000.0) as u32)
    }
}

/// What a search found.
pub(super) struct Found {
    pub(super) mode: &'static Mode,
    pub(super) kind: Kind,
    pub(super) round: usize,
    /// What was left of the core to the server while it was measured, from 0 to 1.
    pub(super) left: f64,
    /// The run as `--save` has it.
    pub(super) run: Value,
}

/// All searches of a run.
pub(super) struct Searches<'a> {
    binary: &'a Path,
    folder: &'a Path,
    options: &'a Options,
    /// What each reached in a closed loop, a second.
    estimates: Vec<(&'static str, Kind, f64)>,
}

impl<'a> Searches<'a> {
    pub(super) fn new(binary: &'a Path, folder: &'a Path, options: &'a Options) -> Self {
        Self { binary, folder, options, estimates: Vec::new() }
    }

    /// What all of them reach about, so that searches begin near to it.
    pub(super) fn estimate(&mut self, mode: &'static Mode, contenders: &[Contender]) -> Result<()> {
        let throttle = Throttle::start(mode.share_percent(self.options), self.folder)?;
        for contender in contenders {
            let file = self.folder.join(format!("{}-{}-estimate.json", mode.name, contender.kind.name()));
            let mut bench = Bench::new("load", (self.binary, contender, mode), self.options, file);
            bench.add(&["--clients", &ESTIMATE_CLIENTS.to_string(), "--warm-up", "300ms"]);
            bench.add(&["--time", &format!("{ESTIMATE_MS}ms")]);
            // A generator that is not in control in a closed loop says so by its status, and the rate is good enough here.
            let (_, said) = bench.run(ESTIMATE_MS + 30_000)?;
            let outcome = &bench.saved().unwrap_or_default()["outcome"];
            let (answered, failed) =
                (outcome["requests"]["answered"].as_u64(), outcome["requests"]["failed"].as_u64());
            let rate = answered.zip(outcome["seconds"].as_f64());
            let rate = rate.map(|(answered, seconds)| answered as f64 / seconds);
            let Some(rate) = rate.filter(|rate| *rate > 0.0 && failed == Some(0)) else {
                let name = contender.kind.name();
                return Err(Failure::new(format!("{name} does not answer well: {failed:?} failed\n{said}")));
            };
            println!("{} {}: about {rate:.0}/s", mode.name, contender.kind.name());
            self.estimates.push((mode.name, contender.kind, rate));
        }
        throttle.left().map(drop)
    }

    /// Searches, and reads what was found.
    pub(super) fn search(&self, mode: &'static Mode, contender: &Contender, round: usize) -> Result<Found> {
        let (kind, name) = (contender.kind, contender.kind.name());
        let of_mode = self.estimates.iter().filter(|(of, ..)| *of == mode.name);
        let fastest = of_mode.clone().map(|(.., rate)| *rate).fold(0.0, f64::max);
        let own = of_mode.clone().find(|(_, of, _)| *of == kind).map_or(10.0, |(.., rate)| *rate);
        let (trial_ms, within_ms) = (mode.trial_ms(self.options), self.options.trial_ms * TRIALS_MAX);
        let file = self.file(mode, kind, round);
        let mut bench = Bench::new("find", (self.binary, contender, mode), self.options, file);
        let ms = |ms: u32| format!("{ms}ms");
        bench.add(&["--trial", &ms(trial_ms), "--within", &ms(within_ms)]);
        bench.add(&["--warm-up", &ms((f64::from(trial_ms) * WARM_UP_SHARE) as u32)]);
        bench.add(&["--from", &format!("{:.1}", FROM_SHARE * own), "--width", &format!("{WIDTH_PERCENT}%")]);
        bench.add(&["--p99", &ms(mode.p99_ms), "--pid", &contender.id().to_string()]);
        bench.add(&["--seed", &(self.options.seed * 1_000 + round as u64).to_string()]);
        bench.add(&["--name", &format!("{name}, {}", mode.name)]);
        if let Some(connections) = mode.connections(fastest) {
            let connections = connections.to_string();
            bench.add(&["--connections", &connections, "--opened", &connections]);
        }
        let throttle = Throttle::start(mode.share_percent(self.options), self.folder)?;
        let (status, said) = bench.run(within_ms * 2 + 60_000)?;
        let left = throttle.left()?;
        // 1: it is no result, and the file says why.
        if !matches!(status.code(), Some(0 | 1)) {
            return Err(Failure::new(format!("{}: {status}\n{said}", bench.shown())));
        }
        let run = bench.saved()?;
        let (colour, answer) = (&run["verdict"]["colour"], &run["answer"]);
        let part = format!("{:.1} % of the core", left * 100.0);
        println!("round {round}, {} {name}, {part}: {}: {}", mode.name, plain(colour), plain(answer));
        for reason in run["verdict"]["reasons"].as_array().into_iter().flatten() {
            println!("    {}", plain(reason));
        }
        Ok(Found { mode, kind, round, left, run })
    }

    fn file(&self, mode: &Mode, kind: Kind, round: usize) -> PathBuf {
        self.folder.join(format!("{}-{}-{round}.json", mode.name, kind.name()))
    }
}

/// A text without its quotes.
fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_more_than_are_under_way_in_time() {
        let keep = Mode::named("keep").expect("there");
        assert_eq!(keep.connections(40_000.0), Some(300));
        assert_eq!(keep.connections(100.0), Some(16));
        assert_eq!(Mode::named("handshake").expect("there").connections(40_000.0), None);
        assert!(Mode::named("other").is_err());
    }
}
