//! The figures: a table for people, JSON for the rest.

use std::fmt;
use std::path::Path;

use serde_json::{Value, json};

use super::cpu::Time;
use super::lineup::OURS;
use super::load::Outcome;
use super::machine::Machine;
use super::scenario::Scenario;
use super::statistics::Spread;
use super::{LOAD_CORE, Options, PROXY_CORE, WARM_UP_SECONDS};
use crate::failure::Because;

/// One proxy in one round.
#[derive(Clone, Debug)]
pub(super) struct Round {
    proxy: &'static str,
    user_us: f64,
    system_us: f64,
    requests_per_second: f64,
    /// Share of its core that the proxy used; far below 1 it was not saturated.
    busy: f64,
    requests: u64,
    errors: u64,
}

impl Round {
    pub(super) fn new(proxy: &'static str, outcome: Outcome, spent: Time, ticks_per_second: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "counts of a few minutes are far below 2^52")]
        let (ticks, requests) = (
            [spent.user_ticks as f64, spent.system_ticks as f64].map(|ticks| ticks / ticks_per_second as f64),
            outcome.requests.max(1) as f64,
        );
        let [user_us, system_us] = ticks.map(|seconds| seconds * 1e6 / requests);
        Self {
            proxy,
            user_us,
            system_us,
            requests_per_second: requests / outcome.seconds,
            busy: ticks.iter().sum::<f64>() / outcome.seconds,
            requests: outcome.requests,
            // A run without requests tells nothing.
            errors: outcome.errors + u64::from(outcome.requests == 0),
        }
    }

    fn us(&self) -> f64 {
        self.user_us + self.system_us
    }

    fn json(&self) -> Value {
        json!({
            "us_per_request": self.us(), "user_us": self.user_us, "system_us": self.system_us,
            "requests_per_second": self.requests_per_second, "busy": self.busy,
            "requests": self.requests, "errors": self.errors,
        })
    }
}

impl fmt::Display for Round {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (proxy, us, rate) = (self.proxy, self.us(), self.requests_per_second);
        write!(out, "{proxy:<9} {us:8.2} us  {rate:8.0} requests/s")?;
        if self.errors > 0 { write!(out, "  {} errors, does not count", self.errors) } else { Ok(()) }
    }
}

/// A scenario's figures.
pub(super) struct Result {
    scenario: &'static str,
    about: &'static str,
    rows: Vec<Row>,
}

/// A proxy's figures in a scenario.
struct Row {
    proxy: &'static str,
    /// Over the rounds without errors; absent when every one had some.
    figures: Option<Figures>,
    rounds: Vec<Round>,
}

struct Figures {
    us: Spread,
    user_us: Spread,
    system_us: Spread,
    requests_per_second: Spread,
    busy: Spread,
}

impl Result {
    pub(super) fn of(scenario: &Scenario, rounds: &[Round]) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        for round in rounds {
            match rows.iter_mut().find(|row| row.proxy == round.proxy) {
                Some(row) => row.rounds.push(round.clone()),
                None => rows.push(Row { proxy: round.proxy, figures: None, rounds: vec![round.clone()] }),
            }
        }
        for row in &mut rows {
            row.figures = Figures::of(&row.rounds);
        }
        Self { scenario: scenario.name, about: scenario.about, rows }
    }

    /// How many rounds had errors.
    pub(super) fn flagged(&self) -> usize {
        self.rows.iter().flat_map(|row| &row.rounds).filter(|round| round.errors > 0).count()
    }

    /// Our median over a peer's, for each peer.
    fn ratios(&self) -> Vec<(&'static str, f64)> {
        let us = |row: &Row| Some(row.figures.as_ref()?.us.median);
        let Some(ours) = self.rows.iter().find(|row| row.proxy == OURS).and_then(us) else {
            return Vec::new();
        };
        let peers = self.rows.iter().filter(|row| row.proxy != OURS);
        peers.filter_map(|row| Some((row.proxy, ours / us(row)?))).collect()
    }

    fn json(&self) -> Value {
        let proxies: serde_json::Map<_, _> =
            self.rows.iter().map(|row| (row.proxy.to_owned(), row.json())).collect();
        let ratios: serde_json::Map<_, _> =
            self.ratios().into_iter().map(|(peer, ratio)| (peer.to_owned(), json!(ratio))).collect();
        json!({
            "scenario": self.scenario, "about": self.about, "proxies": proxies,
            "ratios": ratios, "rounds_with_errors": self.flagged(),
        })
    }
}

impl Row {
    fn json(&self) -> Value {
        let rounds: Vec<_> = self.rounds.iter().map(Round::json).collect();
        json!({"figures": self.figures.as_ref().map(Figures::json), "rounds": rounds})
    }
}

impl Figures {
    fn of(rounds: &[Round]) -> Option<Self> {
        let spread = |figure: fn(&Round) -> f64| {
            Spread::of(rounds.iter().filter(|round| round.errors == 0).map(figure))
        };
        Some(Self {
            us: spread(Round::us)?,
            user_us: spread(|round| round.user_us)?,
            system_us: spread(|round| round.system_us)?,
            requests_per_second: spread(|round| round.requests_per_second)?,
            busy: spread(|round| round.busy)?,
        })
    }

    fn json(&self) -> Value {
        json!({
            "us_per_request": self.us.json(), "user_us": self.user_us.json(), "system_us": self.system_us.json(),
            "requests_per_second": self.requests_per_second.json(), "busy": self.busy.json(),
        })
    }
}

pub(super) fn print(result: &Result) {
    println!("\n{}: {}", result.scenario, result.about);
    println!(
        "{:<10} {:>9} {:>19} {:>8} {:>8} {:>11} {:>5}",
        "proxy", "us/req", "[min-max]", "user", "system", "requests/s", "busy"
    );
    for row in &result.rows {
        match &row.figures {
            Some(Figures { us, user_us, system_us, requests_per_second, busy }) => println!(
                "{:<10} {:>9.2} {:>19} {:>8.2} {:>8.2} {:>11.0} {:>5.2}",
                row.proxy,
                us.median,
                format!("[{:.2}-{:.2}]", us.min, us.max),
                user_us.median,
                system_us.median,
                requests_per_second.median,
                busy.median
            ),
            None => println!("{:<10} every round had errors", row.proxy),
        }
    }
    for (peer, ratio) in result.ratios() {
        println!("{OURS} / {peer}: {ratio:.2}");
    }
    println!();
}

pub(super) fn write(
    file: &Path,
    machine: &Machine,
    options: &Options,
    results: &[Result],
) -> crate::failure::Result<()> {
    let document = json!({
        "machine": machine.json(),
        "settings": {
            "seconds": options.seconds, "rounds": options.rounds, "warm_up_seconds": WARM_UP_SECONDS,
            "proxy_core": PROXY_CORE, "load_core": LOAD_CORE, "backlog": options.backlog,
        },
        "scenarios": results.iter().map(Result::json).collect::<Vec<_>>(),
    });
    std::fs::write(file, format!("{document:#}\n")).because(|| format!("cannot write `{}`", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(proxy: &'static str, requests: u64, errors: u64) -> Round {
        let outcome = Outcome { requests, seconds: 1.0, errors };
        Round::new(proxy, outcome, Time { user_ticks: 20, system_ticks: 80 }, 100)
    }

    #[test]
    fn cpu_time_is_shared_by_the_requests() {
        let round = round(OURS, 100_000, 0);
        assert!((round.us() - 10.0).abs() < 1e-9);
        assert!((round.user_us - 2.0).abs() < 1e-9);
        assert!((round.busy - 1.0).abs() < 1e-9);
    }

    #[test]
    fn ratios_are_of_medians_and_leave_errors_out() {
        let rounds = [
            round(OURS, 200_000, 0),
            round("nginx", 100_000, 0),
            round(OURS, 100, 3),
            round("nginx", 100_000, 0),
            round("haproxy", 0, 0),
        ];
        let result = Result::of(Scenario::named("plain3").expect("it is there"), &rounds);
        assert_eq!(result.flagged(), 2);
        let ratios = result.ratios();
        assert_eq!(ratios.len(), 1);
        assert!((ratios[0].1 - 0.5).abs() < 1e-9);
        assert_eq!(result.json()["proxies"]["haproxy"]["figures"], Value::Null);
    }
}
