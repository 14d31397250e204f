//! The figures: a table for people, JSON for the rest.

use std::fmt;
use std::time::Duration;

use pointsman_bench::Spent;
use serde_json::{Map, Value, json};

use super::load::Outcome;
use super::scenario::{Beside, Comparison, Measure, Scenario};
use super::statistics::Spread;

/// A proxy that used less than this share of what the core had for it waited for the load.
const SATURATED_MIN: f64 = 0.95;

/// What is known of a round. The first is the one that counts.
struct Column {
    key: &'static str,
    title: &'static str,
    digits: usize,
}

const CPU_TIME: &[Column] = &[
    Column { key: "us_per_request", title: "us/request", digits: 2 },
    Column { key: "user_us", title: "user", digits: 2 },
    Column { key: "system_us", title: "system", digits: 2 },
    Column { key: "requests_per_second", title: "requests/s", digits: 0 },
    Column { key: "busy", title: "busy", digits: 2 },
    Column { key: SATURATION, title: "of its part", digits: 2 },
];
const SATURATION: &str = "saturation";

const IDLE_MEMORY: &[Column] = &[
    Column { key: "bytes_per_connection", title: "bytes/conn", digits: 0 },
    Column { key: "resident_kib_before", title: "KiB before", digits: 0 },
    Column { key: "resident_kib_after", title: "KiB after", digits: 0 },
];

fn columns(measure: Measure) -> &'static [Column] {
    match measure {
        Measure::CpuTime => CPU_TIME,
        Measure::IdleMemory => IDLE_MEMORY,
    }
}

/// What a round's account is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// How long was looked.
    pub(super) length: Duration,
    /// How many of the proxy's threads could carry the load.
    pub(super) threads: usize,
    /// Processes that computed on the proxy's core.
    pub(super) spinners: usize,
}

/// One proxy in one round.
#[derive(Clone, Debug)]
pub(super) struct Round {
    proxy: &'static str,
    measure: Measure,
    /// As the measure's columns say.
    values: Vec<f64>,
    /// With an error the round does not count.
    errors: u64,
}

impl Round {
    pub(super) fn of_load(proxy: &'static str, outcome: &Outcome, spent: Spent, window: Window) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "counts of a few minutes are far below 2^52")]
        let (requests, threads, sharers) =
            (outcome.requests.max(1) as f64, window.threads as f64, (window.spinners + 1) as f64);
        let [user_us, system_us] = [spent.user, spent.system].map(|seconds| seconds * 1e6 / requests);
        let (ran, length) = (spent.user + spent.system, window.length.as_secs_f64());
        // The spinners take the rest of a core that the proxy leaves; without them, the proxy may have waited for
        // one that it shares with the load, and a thread beside those that carry the load at the same time. Of more threads
        // than any of these has, nobody would say how long they waited.
        let waited = if window.spinners == 0 { spent.waited.unwrap_or_default() } else { 0.0 };
        let saturation = ((ran + waited) * sharers / length / threads).min(1.0);
        Self {
            proxy,
            measure: Measure::CpuTime,
            values: vec![
                user_us + system_us,
                user_us,
                system_us,
                requests / outcome.seconds,
                ran / length,
                saturation,
            ],
            // A run without requests tells nothing.
            errors: outcome.errors + u64::from(outcome.requests == 0),
        }
    }

    /// Resident memory before and after so many connections, in bytes.
    pub(super) fn of_memory(proxy: &'static str, before: u64, after: u64, connections: u32) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "memory of a process is far below 2^52 bytes")]
        let (before, after) = (before as f64, after as f64);
        Self {
            proxy,
            measure: Measure::IdleMemory,
            values: vec![(after - before) / f64::from(connections), before / 1024.0, after / 1024.0],
            errors: 0,
        }
    }

    fn json(&self) -> Value {
        let named = columns(self.measure).iter().zip(&self.values);
        let mut map: Map<_, _> = named.map(|(column, value)| (column.key.to_owned(), json!(value))).collect();
        map.insert("errors".to_owned(), json!(self.errors));
        Value::Object(map)
    }
}

impl fmt::Display for Round {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:<13}", self.proxy)?;
        for (column, value) in columns(self.measure).iter().zip(&self.values) {
            write!(out, "  {} {value:.*}", column.title, column.digits)?;
        }
        if self.errors > 0 { write!(out, "  {} errors, does not count", self.errors) } else { Ok(()) }
    }
}

/// A scenario's figures.
pub(super) struct Result {
    scenario: &'static str,
    about: &'static str,
    spinners: usize,
    columns: &'static [Column],
    rows: Vec<Row>,
    verdicts: Vec<Verdict>,
}

/// A proxy's figures in a scenario.
struct Row {
    proxy: &'static str,
    /// For each column, over the rounds without errors; empty when every one had some.
    spreads: Vec<Spread>,
    rounds: Vec<Round>,
}

/// What a comparison came to. Nothing, where a proxy did not take part or had errors in every round.
struct Verdict {
    comparison: Comparison,
    value: Option<f64>,
}

impl Result {
    pub(super) fn of(scenario: &Scenario, rounds: &[Round], spinners: usize) -> Self {
        let columns = columns(scenario.measure);
        let mut rows: Vec<Row> = Vec::new();
        for round in rounds {
            match rows.iter_mut().find(|row| row.proxy == round.proxy) {
                Some(row) => row.rounds.push(round.clone()),
                None => {
                    rows.push(Row { proxy: round.proxy, spreads: Vec::new(), rounds: vec![round.clone()] });
                }
            }
        }
        for row in &mut rows {
            row.spreads = spreads(columns, &row.rounds);
        }
        let median = |name: &str| rows.iter().find(|row| row.proxy == name)?.figure();
        let value = |comparison: &Comparison| match comparison.beside {
            Beside::Nothing => median(comparison.of),
            Beside::Over(other) => Some(median(comparison.of)? / median(other)?),
            Beside::Beyond(other) => Some(median(comparison.of)? - median(other)?),
        };
        let verdicts = scenario.comparisons.iter().map(|c| Verdict { comparison: *c, value: value(c) });
        let verdicts = verdicts.collect();
        Self { scenario: scenario.name, about: scenario.about, spinners, columns, rows, verdicts }
    }

    /// How many rounds had errors.
    pub(super) fn flagged(&self) -> usize {
        self.rows.iter().flat_map(|row| &row.rounds).filter(|round| round.errors > 0).count()
    }

    /// How many bars were not shown to be met.
    pub(super) fn missed(&self) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.is_met() == Some(false)).count()
    }

    pub(super) fn name(&self) -> &'static str {
        self.scenario
    }

    /// Whether some proxy waited for the load, where the figures are of a backlog.
    pub(super) fn is_unsaturated(&self) -> bool {
        self.spinners > 0 && !self.unsaturated().is_empty()
    }

    /// Who waited for the load, and how much of its part of the core it used.
    fn unsaturated(&self) -> Vec<(&'static str, f64)> {
        let Some(column) = self.columns.iter().position(|column| column.key == SATURATION) else {
            return Vec::new();
        };
        let shares = self.rows.iter().filter_map(|row| Some((row.proxy, row.spreads.get(column)?.median)));
        shares.filter(|(_, share)| *share < SATURATED_MIN).collect()
    }

    pub(super) fn json(&self) -> Value {
        let proxies: Map<_, _> =
            self.rows.iter().map(|row| (row.proxy.to_owned(), row.json(self.columns))).collect();
        json!({
            "scenario": self.scenario, "about": self.about, "proxies": proxies,
            "comparisons": self.verdicts.iter().map(Verdict::json).collect::<Vec<_>>(),
            "unsaturated": self.unsaturated().iter().map(|(proxy, _)| *proxy).collect::<Vec<_>>(),
            "rounds_with_errors": self.flagged(), "bars_missed": self.missed(), "spinners": self.spinners,
        })
    }
}

impl Row {
    fn figure(&self) -> Option<f64> {
        self.spreads.first().map(|spread| spread.median)
    }

    fn counted(&self) -> usize {
        self.rounds.iter().filter(|round| round.errors == 0).count()
    }

    fn json(&self, columns: &[Column]) -> Value {
        let named = columns.iter().zip(&self.spreads);
        let figures: Map<_, _> =
            named.map(|(column, spread)| (column.key.to_owned(), spread.json())).collect();
        json!({
            "figures": figures, "rounds_counted": self.counted(),
            "rounds": self.rounds.iter().map(Round::json).collect::<Vec<_>>(),
        })
    }
}

fn spreads(columns: &[Column], rounds: &[Round]) -> Vec<Spread> {
    let good = || rounds.iter().filter(|round| round.errors == 0);
    (0..columns.len()).filter_map(|column| Spread::of(good().map(|round| round.values[column]))).collect()
}

impl Verdict {
    /// Nothing where there is no bar. What could not be measured does not meet one.
    fn is_met(&self) -> Option<bool> {
        self.comparison.max.map(|max| self.value.is_some_and(|value| value <= max))
    }

    fn json(&self) -> Value {
        let Comparison { of, beside, max } = self.comparison;
        let (over, beyond) = match beside {
            Beside::Nothing => (None, None),
            Beside::Over(other) => (Some(other), None),
            Beside::Beyond(other) => (None, Some(other)),
        };
        json!({
            "of": of, "over": over, "beyond": beyond, "value": self.value, "bar": max, "met": self.is_met()
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { of, beside, max } = self.comparison;
        // A ratio just over its bar should look so; of bytes there are enough.
        let digits = if matches!(beside, Beside::Nothing) { 0 } else { 3 };
        match beside {
            Beside::Nothing => write!(out, "{of}: ")?,
            Beside::Over(other) => write!(out, "{of} / {other}: ")?,
            Beside::Beyond(other) => write!(out, "{of} - {other}: ")?,
        }
        match self.value {
            Some(value) => write!(out, "{value:.digits$}")?,
            None => write!(out, "not measured")?,
        }
        match (max, self.is_met()) {
            (Some(max), Some(true)) => write!(out, ", bar {max:.digits$}: met"),
            (Some(max), _) => write!(out, ", bar {max:.digits$}: MISSED"),
            (None, _) => Ok(()),
        }
    }
}

pub(super) fn print(result: &Result) {
    println!("\n{}: {}", result.scenario, result.about);
    let titles: Vec<_> = result.columns.iter().map(|column| column.title).collect();
    print!("{:<13} {:>10} {:>19}", "proxy", titles[0], "[min-max]");
    titles[1..].iter().for_each(|title| print!(" {title:>10}"));
    println!(" {:>6}", "rounds");
    for row in &result.rows {
        let mut cells = result.columns.iter().zip(&row.spreads);
        let Some((Column { digits, .. }, spread)) = cells.next() else {
            println!("{:<13} every round had errors", row.proxy);
            continue;
        };
        let range = format!("[{:.digits$}-{:.digits$}]", spread.min, spread.max);
        print!("{:<13} {:>10.digits$} {range:>19}", row.proxy, spread.median);
        cells.for_each(|(column, spread)| print!(" {:>10.*}", column.digits, spread.median));
        println!(" {:>6}", row.counted());
    }
    for verdict in &result.verdicts {
        println!("{verdict}");
    }
    for (proxy, share) in result.unsaturated() {
        println!("note: {proxy} used {share:.2} of its part of the core; the load could bring no more");
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::scenario::OURS;

    fn round(proxy: &'static str, requests: u64, errors: u64) -> Round {
        let outcome = Outcome { requests, seconds: 1.0, errors };
        Round::of_load(
            proxy,
            &outcome,
            Spent { user: 0.2, system: 0.6, waited: Some(0.1) },
            Window { length: Duration::from_secs(1), threads: 1, spinners: 0 },
        )
    }

    fn scenario(name: &str) -> &'static Scenario {
        Scenario::named(name).expect("it is there")
    }

    #[test]
    fn cpu_time_is_shared_by_the_requests() {
        let expected = [8.0, 2.0, 6.0, 100_000.0, 0.8, 0.9];
        let values = round(OURS, 100_000, 0).values;
        assert_eq!(values.len(), expected.len());
        for ((value, expected), column) in values.iter().zip(expected).zip(CPU_TIME) {
            assert!((value - expected).abs() < 1e-9, "{}: {value}", column.key);
        }
    }

    #[test]
    fn beside_spinners_a_proxy_must_use_its_part() {
        let outcome = Outcome { requests: 10_000, seconds: 1.0, errors: 0 };
        let window = Window { length: Duration::from_secs(1), threads: 1, spinners: 4 };
        let round =
            |user| Round::of_load(OURS, &outcome, Spent { user, system: 0.1, waited: Some(0.9) }, window);
        for (user, is_unsaturated) in [(0.1, false), (0.095, false), (0.08, true)] {
            let result = Result::of(scenario("plain3"), &[round(user)], 4);
            assert_eq!(result.is_unsaturated(), is_unsaturated, "{user}");
        }
    }

    #[test]
    fn memory_is_shared_by_the_connections() {
        let round = Round::of_memory(OURS, 1 << 20, 3 << 20, 2048);
        assert!((round.values[0] - 1024.0).abs() < 1e-9);
        let result = Result::of(scenario("idle-plain"), &[round], 0);
        assert_eq!(result.missed(), 0);
        assert_eq!(result.verdicts[0].to_string(), "pointsman: 1024, bar 2048: met");
        assert_eq!(result.unsaturated(), []);
    }

    #[test]
    fn ratios_are_of_medians_and_leave_errors_out() {
        let rounds = [
            round(OURS, 125_000, 0),
            round("nginx", 100_000, 0),
            round(OURS, 100, 3),
            round("nginx", 100_000, 0),
            round("haproxy", 0, 0),
        ];
        let result = Result::of(scenario("plain3"), &rounds, 0);
        assert_eq!(result.flagged(), 2);
        let shown: Vec<_> = result.verdicts.iter().map(Verdict::to_string).collect();
        let expected = [
            "pointsman / nginx: 0.800, bar 0.800: met",
            "pointsman / haproxy: not measured, bar 0.720: MISSED",
        ];
        assert_eq!(shown, expected);
        assert_eq!(result.missed(), 1);
        let json = result.json();
        assert_eq!(json["proxies"]["haproxy"]["figures"], json!({}));
        assert_eq!(json["proxies"]["pointsman"]["rounds_counted"], json!(1));
        assert_eq!(
            json["comparisons"][1],
            json!({
                "of": "pointsman", "over": "haproxy", "beyond": null, "value": null, "bar": 0.72, "met": false
            })
        );
        assert_eq!(json["unsaturated"], json!(["pointsman", "nginx"]));
    }

    #[test]
    fn a_ratio_without_a_bar_is_neither_met_nor_missed() {
        let rounds = [round(OURS, 100_000, 0), round("nginx", 110_000, 0), round("haproxy", 200_000, 0)];
        let result = Result::of(scenario("browser3"), &rounds, 0);
        assert_eq!(result.missed(), 1);
        assert_eq!(result.verdicts[1].to_string(), "pointsman / haproxy: 2.000");
        assert_eq!(result.verdicts[0].to_string(), "pointsman / nginx: 1.100, bar 0.800: MISSED");
    }
}
