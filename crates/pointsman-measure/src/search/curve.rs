//! Demanded against achieved: one point for each load, and where the next one should be.

use super::trial::Record;
use crate::Random;
use crate::statistics::{
    Bend, Direction, Estimate, Interval, Knee, isotonic, knee, mean, mean_estimate, percentiles,
};

/// How often the trials of each load are drawn anew for the knee.
const RESAMPLES: usize = 300;
/// Loads that reach this share of the most are taken to reach the same.
pub(super) const SAME: f64 = 0.995;
/// Loads this near to each other, as a share, get no point between them.
const GAP_MIN: f64 = 0.01;

/// What all trials of one load came to.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvePoint {
    /// The load that was asked for, in requests per second.
    pub rate_per_s: f64,
    /// How many trials count.
    pub trials: u32,
    /// What was offered on average.
    pub offered_per_s: f64,
    /// What was answered, with its interval where there are two trials or more.
    pub achieved_per_s: Estimate,
    /// Failed by offered on average.
    pub errors_share: f64,
    /// The middle of the trials' medians of the response time, in µs.
    pub p50_us: u64,
    /// The same of their 90th percentiles.
    pub p90_us: u64,
    /// The same of their 99th percentiles.
    pub p99_us: u64,
}

/// The points in ascending order of load, of the trials that count.
pub(super) fn curve(records: &[Record]) -> Vec<CurvePoint> {
    by_load(records).into_iter().map(|trials| point(&trials)).collect()
}

fn by_load(records: &[Record]) -> Vec<Vec<&Record>> {
    let mut counted: Vec<&Record> = records.iter().filter(|record| record.counts()).collect();
    counted.sort_by(|left, right| left.trial.rate_per_s.total_cmp(&right.trial.rate_per_s));
    counted
        .chunk_by(|left, right| left.trial.rate_per_s == right.trial.rate_per_s)
        .map(<[_]>::to_vec)
        .collect()
}

fn point(trials: &[&Record]) -> CurvePoint {
    let of = |figure: fn(&Record) -> f64| trials.iter().map(|record| figure(record)).collect::<Vec<f64>>();
    let middle = |figure: fn(&Record) -> u64| {
        let mut figures: Vec<u64> = trials.iter().map(|record| figure(record)).collect();
        figures.sort_unstable();
        figures[(figures.len() - 1) / 2]
    };
    let achieved = of(|record| record.seen.achieved_per_s);
    let achieved = mean_estimate(&achieved).unwrap_or(Estimate::plain(0.0));
    // Trials that counted the same are not the same: each could have been one request apart.
    let one = trials.iter().map(|record| one_request(record)).fold(0.0, f64::max);
    let achieved =
        Estimate { bounds: achieved.bounds.map(|(low, high)| (low - one, high + one)), ..achieved };
    CurvePoint {
        rate_per_s: trials[0].trial.rate_per_s,
        trials: trials.len() as u32,
        offered_per_s: mean(&of(|record| record.seen.offered_per_s)),
        // Student's interval of two trials is wide, and knows nothing of rates.
        achieved_per_s: achieved.map(|rate| rate.max(0.0)),
        errors_share: mean(&of(|record| record.seen.errors_share)),
        p50_us: middle(|record| record.seen.p50_us),
        p90_us: middle(|record| record.seen.p90_us),
        p99_us: middle(|record| record.seen.p99_us),
    }
}

/// What one request more or less in a trial is, a second.
pub(super) fn one_request(record: &Record) -> f64 {
    1_000.0 / record.trial.measured_ms as f64
}

/// The middle of the gap that is widest where throughput or latency bends most, between two loads:
/// what a person does by hand who zooms in. None where no gap is left.
pub(super) fn zoom(points: &[CurvePoint], (load_min, load_max): (f64, f64)) -> Option<f64> {
    let points: Vec<&CurvePoint> =
        points.iter().filter(|point| (load_min..=load_max).contains(&point.rate_per_s)).collect();
    // Latency that falls while load rises is noise, and would look like a bend.
    let latencies: Vec<(f64, f64)> =
        points.iter().map(|point| (point.p90_us as f64, f64::from(point.trials))).collect();
    let axes: [Vec<f64>; 3] = [
        unit(points.iter().map(|point| point.rate_per_s)),
        unit(points.iter().map(|point| point.achieved_per_s.value)),
        unit(isotonic(&latencies, Direction::Rising).into_iter()),
    ];
    let [x, achieved, latency] = &axes;
    let turn = |y: &[f64], at: usize| {
        let slope = |from: usize| (y[from + 1] - y[from]) / (x[from + 1] - x[from]).max(1e-9);
        if at == 0 || at + 1 >= y.len() { 0.0 } else { (slope(at) - slope(at - 1)).abs() }
    };
    let bends = |at: usize| turn(achieved, at) + turn(latency, at);
    let worth = |at: usize| (x[at + 1] - x[at]) * (bends(at) + bends(at + 1));
    let is_wide = |at: &usize| points[at + 1].rate_per_s > points[*at].rate_per_s * (1.0 + GAP_MIN);
    let best = (0..points.len().saturating_sub(1))
        .filter(is_wide)
        .max_by(|left, right| worth(*left).total_cmp(&worth(*right)))?;
    Some(f64::midpoint(points[best].rate_per_s, points[best + 1].rate_per_s))
}

fn unit(values: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let (low, high) =
        values.clone().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let spread = (high - low).max(f64::MIN_POSITIVE);
    values.map(|value| (value - low) / spread).collect()
}

/// The load that was answered most. Of loads that reach the same to within half a per cent the greatest: there the
/// server, not what was offered, is what limits. Neighbours are averaged, so that one lucky trial does not win, and what a
/// load was answered beyond its demand says nothing of the server: more arrivals than usual fell into its trials.
pub(super) fn most_answered(points: &[CurvePoint]) -> Option<f64> {
    let smooth: Vec<(f64, f64)> = points
        .iter()
        .enumerate()
        .map(|(at, point)| {
            let near = |other: &&CurvePoint| (other.rate_per_s / point.rate_per_s - 1.0).abs() <= 0.03;
            let around: Vec<&CurvePoint> =
                points[at.saturating_sub(1)..points.len().min(at + 2)].iter().filter(near).collect();
            let trials: f64 = around.iter().map(|near| f64::from(near.trials)).sum();
            let sum: f64 = around.iter().map(|near| f64::from(near.trials) * near.achieved_per_s.value).sum();
            (point.rate_per_s, (sum / trials).min(point.rate_per_s))
        })
        .collect();
    let most = smooth.iter().map(|point| point.1).fold(0.0, f64::max);
    smooth.into_iter().rev().find(|point| point.1 >= SAME * most && most > 0.0).map(|point| point.0)
}

/// The knee of the 90th percentile over the load, from the least load to `load_max`, with an interval: the trials of
/// each load drawn anew, and no narrower than the distance to the neighbouring loads.
pub(super) fn latency_knee(
    records: &[Record],
    load_max: f64,
    random: &mut Random,
) -> Option<(Knee, Interval)> {
    let mut loads = by_load(records);
    loads.retain(|trials| trials[0].trial.rate_per_s <= load_max);
    let found = knee_of(loads.iter().map(Vec::as_slice))?;
    let drawn = (0..RESAMPLES).filter_map(|_| {
        let resampled: Vec<Vec<&Record>> = loads
            .iter()
            .map(|trials| (0..trials.len()).map(|_| trials[random.below(trials.len())]).collect())
            .collect();
        knee_of(resampled.iter().map(Vec::as_slice)).map(|knee| knee.x)
    });
    let (low, high) = percentiles(drawn.collect())?;
    let rates: Vec<f64> = loads.iter().map(|trials| trials[0].trial.rate_per_s).collect();
    let before = rates.iter().rev().find(|rate| **rate < found.x).unwrap_or(&found.x);
    let after = rates.iter().find(|rate| **rate > found.x).unwrap_or(&found.x);
    let interval = Interval { estimate: found.x, low: low.min(*before), high: high.max(*after) };
    Some((found, interval))
}

fn knee_of<'r>(loads: impl Iterator<Item = &'r [&'r Record]>) -> Option<Knee> {
    let (rates, latencies): (Vec<f64>, Vec<(f64, f64)>) = loads
        .map(point)
        .map(|point| (point.rate_per_s, (point.p90_us as f64, f64::from(point.trials))))
        .unzip();
    let smooth = isotonic(&latencies, Direction::Rising);
    let points: Vec<(f64, f64)> = rates.into_iter().zip(smooth).collect();
    knee(&points, Bend::Convex)
}

#[cfg(test)]
mod tests {
    use super::super::trial::{Phase, counted};
    use super::*;

    const ANY: (f64, f64) = (0.0, f64::INFINITY);

    fn at(rate_per_s: f64, achieved_per_s: f64, p90_us: u64) -> CurvePoint {
        CurvePoint {
            rate_per_s,
            trials: 2,
            offered_per_s: rate_per_s,
            achieved_per_s: Interval::around(achieved_per_s, 1.0).into(),
            errors_share: 0.0,
            p50_us: p90_us / 2,
            p90_us,
            p99_us: p90_us * 2,
        }
    }

    #[test]
    fn no_rate_is_below_0() {
        let record = |achieved_per_s| counted(Phase::Ramp, 100.0, achieved_per_s, 1);
        let points = curve(&[record(10.0), record(90.0)]);
        let achieved = points[0].achieved_per_s;
        assert_eq!((points.len(), achieved.value), (1, 50.0));
        assert!(achieved.bounds.is_some_and(|(low, high)| low == 0.0 && high > 100.0), "{achieved:?}");
        // What was counted the same twice is known to a request of a trial, which was one of 1 ms.
        let same = curve(&[record(7_000.0), record(7_000.0)])[0].achieved_per_s;
        assert_eq!(same.bounds, Some((6_000.0, 8_000.0)));
        // Of a single trial nobody knows how near it is.
        assert_eq!(curve(&[record(10.0)])[0].achieved_per_s, Estimate::plain(10.0));
    }

    #[test]
    fn the_next_point_is_where_the_curve_bends() {
        let points = [100.0, 200.0, 300.0, 400.0, 600.0, 700.0, 800.0]
            .map(|load: f64| at(load, load.min(500.0), 1_000));
        let next = zoom(&points, ANY).expect("gaps are wide");
        assert_eq!(next, 500.0);
        assert_eq!(zoom(&points[..1], ANY), None);
        assert_eq!(zoom(&[], ANY), None);
        let close = [100.0, 100.5].map(|load| at(load, load, 1_000));
        assert_eq!(zoom(&close, ANY), None);
    }

    #[test]
    fn the_greatest_load_of_a_plateau_and_the_top_of_a_hill() {
        let plateau = [400.0, 500.0, 550.0, 600.0].map(|load: f64| at(load, load.min(500.0), 1_000));
        assert_eq!(most_answered(&plateau), Some(600.0));
        let hill = [400.0, 500.0, 550.0, 600.0].map(|load: f64| at(load, load.min(1_000.0 - load), 1_000));
        assert_eq!(most_answered(&hill), Some(500.0));
        // The load below the capacity was lucky, and the others were not.
        let lucky = [(470.0, 512.0), (520.0, 495.0), (560.0, 505.0), (600.0, 490.0)];
        let lucky = lucky.map(|(load, achieved)| at(load, achieved, 1_000));
        assert_eq!(most_answered(&lucky), Some(560.0));
        assert_eq!(most_answered(&[]), None);
    }
}
