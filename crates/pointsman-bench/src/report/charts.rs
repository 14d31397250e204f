//! What is drawn of an outcome.

use hdrhistogram::Histogram;
use pointsman_measure::chart::{Axis, Chart, Content, Layer, Line};

use super::{hanging_together, ms, quantile_of, rates};
use crate::negotiated::Kind;
use crate::outcome::Outcome;
use crate::plan::Load;
use crate::record::{BATCH_NS, Batch};

/// Points of a line over time at most: more would be finer than a page is.
const POINTS_MAX: usize = 150;
/// Points of a percentile curve for each digit.
const POINTS_A_DECADE: u32 = 10;

pub(super) fn charts(outcome: &Outcome) -> Vec<Chart> {
    let mut charts = vec![latency(outcome), throughput(outcome), over_time(outcome)];
    let kinds_seen = outcome.record.handshakes.iter().filter(|count| **count > 0).count();
    if kinds_seen > 0 {
        charts.push(connections(outcome));
    }
    if kinds_seen > 1 {
        charts.push(kinds(outcome));
    }
    charts
}

pub(crate) fn chart(id: &str, title: &str, x: Axis, y: Axis, lines: Vec<Line>) -> Chart {
    Chart { id: id.to_owned(), title: title.to_owned(), x, y, content: Content::Lines(lines) }
}

/// Response and service time by how rare they are.
fn latency(outcome: &Outcome) -> Chart {
    let record = &outcome.record;
    let together = hanging_together(outcome);
    let lines = vec![
        percentiles("response, from due", &record.response, Some(together)),
        percentiles("service, from begun", &record.service, None),
    ];
    chart(
        "latency",
        "Latency by percentile",
        Axis::logarithmic("one request of so many takes longer (100: p99)"),
        Axis::logarithmic("ms"),
        lines,
    )
}

fn connections(outcome: &Outcome) -> Chart {
    let record = &outcome.record;
    let lines = vec![
        percentiles("TCP connect", &record.connect, None),
        percentiles("TLS handshake", &record.handshake, None),
    ];
    chart(
        "handshakes",
        "Connections by percentile",
        Axis::logarithmic("one connection of so many takes longer (100: p99)"),
        Axis::logarithmic("ms"),
        lines,
    )
}

/// A band over these places: it has a gap where nobody knows from where to where it goes.
pub(crate) fn band(places: impl Iterator<Item = (f64, Option<(f64, f64)>)>) -> Vec<(f64, f64, f64)> {
    let place = |(x, bounds): (f64, Option<(f64, f64)>)| {
        let (low, high) = bounds.unwrap_or((f64::NAN, f64::NAN));
        (x, low, high)
    };
    let all: Vec<_> = places.map(place).collect();
    if all.iter().all(|(_, low, _)| low.is_nan()) { Vec::new() } else { all }
}

/// A line through the quantiles 1 − 1/x, and its band where it is known how much the times hang together.
fn percentiles(name: &str, times: &Histogram<u64>, together: Option<f64>) -> Line {
    let mut line = Line { name: name.to_owned(), ..Line::default() };
    let mut bounds = Vec::new();
    for step in 0.. {
        let rarity = 10_f64.powf(f64::from(step) / f64::from(POINTS_A_DECADE));
        if rarity > times.len() as f64 {
            break;
        }
        let Some(found) = quantile_of(times, 1.0 - 1.0 / rarity, together.unwrap_or(1.0)) else { break };
        // So that 3.1622776 does not stand on the page.
        let x = (rarity * 1000.0).round() / 1000.0;
        line.points.push((x, ms(found.estimate)));
        if together.is_some() {
            // Where the times do not bound it, nothing is known.
            bounds.push((x, Some((ms(found.low), ms(found.high))).filter(|_| found.low < found.high)));
        }
    }
    line.band = band(bounds.into_iter());
    line
}

/// Neighbouring tenths of a second in groups, each with its middle, in seconds.
fn grouped<T>(series: &[T]) -> impl Iterator<Item = (f64, &[T])> {
    let group = series.len().div_ceil(POINTS_MAX).max(1);
    let seconds = BATCH_NS as f64 / 1e9;
    series.chunks(group).enumerate().map(move |(at, values)| {
        let middle = ((at * group) as f64 + values.len() as f64 / 2.0) * seconds;
        ((middle * 1000.0).round() / 1000.0, values)
    })
}

/// The mean of each group.
fn smoothed(series: &[f64]) -> Vec<(f64, f64)> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    grouped(series).map(|(middle, values)| (middle, mean(values))).collect()
}

/// What an answer of each group took in the mean, in milliseconds. Where nothing was answered nothing is known.
fn mean_times(batches: &[Batch]) -> Vec<(f64, f64)> {
    let mean = |values: &[Batch]| {
        let (took, answers) = values.iter().fold((0.0, 0), |(took, answers), batch| {
            (took + batch.response_ns as f64, answers + batch.completed)
        });
        (answers > 0).then(|| ms(took / answers as f64))
    };
    grouped(batches).filter_map(|(middle, values)| Some((middle, mean(values)?))).collect()
}

fn throughput(outcome: &Outcome) -> Chart {
    let line = |name: &str, of: fn(&Batch) -> u64| Line {
        name: name.to_owned(),
        points: smoothed(&rates(outcome, of)),
        ..Line::default()
    };
    let mut lines = vec![line("answered", |batch| batch.completed)];
    if let Load::Open { .. } = outcome.plan.load {
        // Requests, also where sessions of several of them are what arrives.
        let rate = outcome.demanded();
        let points = vec![(0.0, rate), (outcome.seconds, rate)];
        lines.push(Line { name: "demanded".to_owned(), points, ..Line::default() });
    }
    if outcome.record.failed() > 0 {
        lines.push(line("failed", |batch| batch.failed));
    }
    chart(
        "throughput",
        "Throughput over time",
        Axis::from_zero("seconds"),
        Axis::from_zero("requests a second"),
        lines,
    )
}

fn over_time(outcome: &Outcome) -> Chart {
    let points = mean_times(&outcome.record.batches);
    let lines = vec![Line { name: "mean response time".to_owned(), points, ..Line::default() }];
    chart("response", "Response time over time", Axis::from_zero("seconds"), Axis::from_zero("ms"), lines)
}

fn kinds(outcome: &Outcome) -> Chart {
    let layers =
        Kind::ALL.into_iter().zip(outcome.record.handshakes_in_time()).filter(|(_, count)| *count > 0);
    let layers = layers
        .map(|(kind, count)| Layer {
            name: kind.name().to_owned(),
            values: vec![count as f64 / outcome.seconds],
        })
        .collect();
    Chart {
        id: "kinds".to_owned(),
        title: "Handshakes by kind".to_owned(),
        x: Axis::linear(""),
        y: Axis::from_zero("handshakes a second"),
        content: Content::Bars { categories: vec!["measured".to_owned()], layers },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_curve_ends_with_the_rarest() {
        let mut times = Histogram::new_with_bounds(64, 1_000_000_000, 3).expect("bounds");
        (1..=1_000_u64).for_each(|us| times.record(us * 1_000).expect("in the bounds"));
        let line = percentiles("a", &times, Some(1.0));
        assert_eq!(line.points.len(), 31);
        assert_eq!((line.points[0].0, line.points[10].0, line.points[30].0), (1.0, 10.0, 1000.0));
        assert!((line.points[10].1 - 0.9).abs() < 0.002 && (line.points[30].1 - 1.0).abs() < 0.002);
        let (known, unknown): (Vec<_>, Vec<_>) = line.band.iter().partition(|(_, low, high)| low < high);
        assert!(known.len() > 10 && unknown.iter().all(|(_, low, high)| low.is_nan() && high.is_nan()));
        assert_eq!(percentiles("a", &Histogram::new(3).expect("digits"), None).points, []);
    }

    #[test]
    fn a_band_goes_through_no_place_whose_range_nobody_knows() {
        let of = |bounds: &[Option<(f64, f64)>]| -> Vec<Option<(f64, f64)>> {
            let places = band((0..).map(f64::from).zip(bounds.iter().copied()));
            let known = |(_, low, high): (f64, f64, f64)| (!low.is_nan()).then_some((low, high));
            places.into_iter().map(known).collect()
        };
        let known = Some((1.0, 2.0));
        assert_eq!(of(&[known, None, known]), [known, None, known]);
        assert_eq!(of(&[None, None]), [], "what is never known is no band");
    }

    #[test]
    fn where_nothing_is_answered_no_time_is_drawn() {
        let answered =
            |completed, ms: u64| Batch { completed, response_ns: ms * 1_000_000, ..Batch::default() };
        let stalled = [answered(2, 20), answered(0, 0), answered(0, 0), answered(1, 250)];
        assert_eq!(mean_times(&stalled), [(0.05, 10.0), (0.35, 250.0)]);
        // In groups each answer counts as much as another.
        let long: Vec<Batch> = stalled.into_iter().cycle().take(4 * POINTS_MAX).collect();
        let points = mean_times(&long);
        assert!(points.len() == POINTS_MAX && points.iter().all(|point| point.1 == 90.0), "{points:?}");
    }

    #[test]
    fn lines_over_time_have_a_bound() {
        let series: Vec<f64> = (0..100_000).map(f64::from).collect();
        let points = smoothed(&series);
        assert!(points.len() <= POINTS_MAX && points.len() > POINTS_MAX / 2);
        assert_eq!(smoothed(&[1.0, 3.0]), [(0.05, 1.0), (0.15, 3.0)]);
    }
}
