//! An outcome as a report shows it: figures with their intervals, charts and tables.

mod charts;
mod ladder;
mod not_run;
mod orders;
mod tables;

pub(crate) use charts::{band, chart};
use hdrhistogram::Histogram;
pub use ladder::{ladder, ladder_csv};
pub use not_run::NotRun;
pub use orders::{OrderOutcome, orders};
use pointsman_measure::report::{Figure, Run};
use pointsman_measure::statistics::{Interval, batch_means, quantile_ranks};
use pointsman_measure::verdict::Colour;
pub(crate) use tables::{AGREED, agreed, table};

use crate::outcome::Outcome;
use crate::plan::Load;
use crate::provenance::provenance;
use crate::record::{BATCH_NS, Batch};

impl Outcome {
    /// The run as a report shows it, under this name. A run that is void is red, whatever the verdict on its client.
    pub fn report(&self, name: &str) -> Run {
        let verdict = self.verdict();
        let voids = self.voids.iter().map(|void| void.sentence.clone());
        let mut run = provenance(name, &self.machine);
        run.settings = self.plan.settings();
        run.colour = if self.voids.is_empty() { verdict.colour } else { Colour::Red };
        run.reasons = voids.chain(verdict.reasons.iter().map(|reason| reason.text.clone())).collect();
        run.answer = answer(self);
        run.figures = figures(self);
        run.charts = charts::charts(self);
        run.tables = tables::tables(self);
        run.outcome = Some(self.json());
        run
    }
}

/// Milliseconds of nanoseconds.
fn ms(ns: f64) -> f64 {
    ns / 1e6
}

/// What is seen of a tenth of a second, a second.
fn rates(outcome: &Outcome, of: fn(&Batch) -> u64) -> Vec<f64> {
    let per_second = 1e9 / BATCH_NS as f64;
    outcome.record.batches.iter().map(|batch| of(batch) as f64 * per_second).collect()
}

/// From where to where what was answered a second is, where that is known. However even it was, one answer more or less is
/// chance.
fn answered_bounds(outcome: &Outcome) -> Option<(f64, f64)> {
    let one = 1.0 / outcome.seconds;
    let (low, high) = bounds_around(outcome.rate(), &rates(outcome, |batch| batch.completed))?;
    Some(((low - one).max(0.0), high + one))
}

/// From where to where a mean over time is, where that is known. What fills no batch is in the mean, and not in those of the
/// batches.
fn bounds_around(mean: f64, series: &[f64]) -> Option<(f64, f64)> {
    let found = batch_means(series)?.mean;
    Some((found.low.min(mean).max(0.0), found.high.max(mean)))
}

fn answer(outcome: &Outcome) -> String {
    let record = &outcome.record;
    let rate = round(outcome.rate());
    let demand = match outcome.plan.load {
        Load::Open { .. } => format!("{rate} of {} requests a second", round(outcome.demanded())),
        Load::Closed { clients: 1 } => format!("{rate} requests a second of one client"),
        Load::Closed { clients } => format!("{rate} requests a second of {clients} clients"),
    };
    let handshakes = match outcome.handshake_rate() {
        0.0 => String::new(),
        rate => format!(", with {} handshakes a second", round(rate)),
    };
    let failed = match record.failed() {
        0 => "none failed".to_owned(),
        failed => format!("{failed} of {} failed", record.due),
    };
    let times = match record.response.is_empty() {
        true => String::new(),
        false => format!(
            "; half of them within {}, 99 of a hundred within {}",
            time(record.response.value_at_quantile(0.5)),
            time(record.response.value_at_quantile(0.99)),
        ),
    };
    format!("{demand} were answered{handshakes}; {failed}{times}.")
}

/// Three digits that count, or all before the point.
pub(crate) fn round(value: f64) -> String {
    match value.abs() {
        small if small < 10.0 => format!("{value:.2}"),
        small if small < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn time(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e6 => format!("{} µs", round(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", round(ns / 1e6)),
        ns => format!("{} s", round(ns / 1e9)),
    }
}

fn figures(outcome: &Outcome) -> Vec<Figure> {
    let record = &outcome.record;
    let plain = |name: &str, unit: &str, value: f64| Figure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value: Some(value).filter(|value| value.is_finite()),
        interval: None,
    };
    let over_time = |name: &str, unit: &str, value: f64, series: &[f64]| Figure {
        interval: bounds_around(value, series),
        ..plain(name, unit, value)
    };
    let due = record.due.max(1) as f64;
    // The first four are drawn large: how many, how many not, and how soon.
    let mut figures = vec![
        Figure { interval: answered_bounds(outcome), ..plain("answered", "1/s", outcome.rate()) },
        plain("failed", "%", 100.0 * record.failed() as f64 / due),
    ];
    let together = hanging_together(outcome);
    for (name, quantile) in
        [("response p50", 0.5), ("response p99", 0.99), ("response p90", 0.9), ("response p99.9", 0.999)]
    {
        if let Some(found) = quantile_of(&record.response, quantile, together) {
            let interval = Some((ms(found.low), ms(found.high))).filter(|_| found.low < found.high);
            figures.push(Figure { interval, ..plain(name, "ms", ms(found.estimate)) });
        }
    }
    if let Load::Open { .. } = outcome.plan.load {
        figures.push(plain("demanded", "1/s", outcome.demanded()));
        figures.push(plain("unsent", "requests", record.unsent as f64));
    }
    figures.push(over_time(
        "received",
        "MB/s",
        record.bytes_in_time() as f64 / outcome.seconds / 1e6,
        &rates(outcome, |batch| batch.bytes).iter().map(|bytes| bytes / 1e6).collect::<Vec<_>>(),
    ));
    if outcome.handshake_rate() > 0.0 {
        figures.push(plain("handshakes", "1/s", outcome.handshake_rate()));
    }
    if let Some(server) = &outcome.server {
        let costs = [
            ("server's CPU a request", server.us_per_request),
            ("server's CPU a handshake", server.us_per_handshake),
        ];
        figures.extend(costs.into_iter().filter_map(|(name, us)| Some(plain(name, "µs", us?))));
    }
    figures
}

/// How many requests say as much as one that is independent of the others, at least 1: the variance of the mean response
/// time, by batches, beside what it would be without any connection between requests.
fn hanging_together(outcome: &Outcome) -> f64 {
    let times = &outcome.record.response;
    let batches = outcome.record.batches.iter().filter(|batch| batch.completed > 0);
    let means: Vec<f64> = batches.map(|batch| batch.response_ns as f64 / batch.completed as f64).collect();
    let Some(means) = batch_means(&means) else { return 1.0 };
    // Half of an interval at 95 % is about two standard errors.
    let of_mean = ((means.mean.high - means.mean.low) / 4.0).powi(2);
    let independent = times.stdev().powi(2) / times.len().max(1) as f64;
    let factor = of_mean / independent;
    if factor.is_finite() { factor.max(1.0) } else { 1.0 }
}

/// A quantile with its interval, in nanoseconds; the interval is empty where there are too few times to bound it. None of
/// no times.
fn quantile_of(times: &Histogram<u64>, quantile: f64, together: f64) -> Option<Interval> {
    if times.is_empty() {
        return None;
    }
    let estimate = times.value_at_quantile(quantile) as f64;
    let fewer = (times.len() as f64 / together) as u64;
    let at = |rank: u64| times.value_at_quantile((rank as f64 / fewer as f64).min(1.0)) as f64;
    let bounds = quantile_ranks(fewer, quantile).map(|ranks| (at(ranks.low), at(ranks.high)));
    let (low, high) = bounds.unwrap_or((estimate, estimate));
    Some(Interval { estimate, low: low.min(estimate), high: high.max(estimate) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_within_its_bounds_whatever_fills_no_batch() {
        let mut even = vec![0.0];
        even.extend([100.0; 40]);
        let mean = even.iter().sum::<f64>() / 41.0;
        assert_eq!(bounds_around(mean, &even), Some((mean, 100.0)));
        assert_eq!(bounds_around(1.0, &[1.0; 19]), None);
    }

    #[test]
    fn a_quantile_has_an_interval_that_is_wider_where_requests_hang_together() {
        let mut times = Histogram::new_with_bounds(64, 1_000_000_000, 3).expect("bounds");
        (1..=10_000_u64).for_each(|us| times.record(us * 1_000).expect("in the bounds"));
        let of = |together| quantile_of(&times, 0.99, together).expect("there are times");
        let (alone, together) = (of(1.0), of(9.0));
        assert!((alone.estimate / 9_900_000.0 - 1.0).abs() < 0.002, "{alone:?}");
        assert!(alone.low < alone.estimate && alone.estimate < alone.high);
        let factor = (together.high - together.low) / (alone.high - alone.low);
        assert!((2.5..4.5).contains(&factor), "{factor}");
        let few = quantile_of(&times, 0.99, 100.0).expect("there are times");
        assert_eq!((few.low, few.high), (few.estimate, few.estimate), "p99 needs 368 times");
        assert_eq!(quantile_of(&Histogram::new(3).expect("digits"), 0.5, 1.0), None);
    }

    #[test]
    fn figures_in_sentences_are_short() {
        assert_eq!([0.1234, 12.34, 1234.5].map(round), ["0.12", "12.3", "1234"]);
        assert_eq!([1_500, 2_340_000, 3_000_000_000].map(time), ["1.50 µs", "2.34 ms", "3.00 s"]);
    }
}
