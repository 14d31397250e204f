//! What trials of a size and a series come to together.

use pointsman_measure::Random;
use pointsman_measure::statistics::{Estimate, mean_estimate, ratio_of_pairs};
use pointsman_measure::verdict::Colour;

use super::{Bulk, Hauled};
use crate::find::reasons;

/// What bodies of a size came to in a series.
#[derive(Clone, Debug)]
pub struct Row {
    /// Bytes of each body.
    pub size: u64,
    /// Which of the series.
    pub series: usize,
    /// Trials that count, of so many.
    pub counted: usize,
    /// The same.
    pub trials: usize,
    /// Bytes of bodies a second. Nothing: no trial counts.
    pub payload_per_s: Option<Estimate>,
    /// Answers a second, in the mean.
    pub answers_per_s: f64,
    /// CPU time of the generator for a MiB, in microseconds.
    pub own_us_per_mib: Option<Estimate>,
    /// The same of the server, where its process is known.
    pub server_us_per_mib: Option<Estimate>,
    /// Bytes a second as times those of the first series, from rounds in which both count; without bounds where those
    /// are fewer than four. Nothing of the first one itself.
    pub times_first: Option<Estimate>,
    /// The suite that was agreed on; empty: none.
    pub suite: &'static str,
    /// Whether it may be believed: red where no trial counts, amber where some do not.
    pub colour: Colour,
    /// Why not.
    pub reasons: Vec<String>,
}

impl Hauled {
    /// Whether it is a result.
    pub fn counts(&self) -> bool {
        self.voids.is_empty() && self.verdict.colour != Colour::Red
    }
}

/// Of each size each series.
pub(super) fn rows(asked: &Bulk, series: usize, trials: &[Hauled], random: &mut Random) -> Vec<Row> {
    let of = |size: u64, number: usize| -> Vec<&Hauled> {
        trials.iter().filter(|trial| trial.size == size && trial.series == number).collect()
    };
    let mut rows = Vec::new();
    for size in &asked.sizes {
        let first = of(*size, 0);
        for number in 0..series {
            let own = of(*size, number);
            let times_first = if number > 0 { times(&first, &own, random) } else { None };
            rows.push(Row { times_first, ..row(*size, number, &own) });
        }
    }
    rows
}

fn row(size: u64, series: usize, trials: &[&Hauled]) -> Row {
    let counting: Vec<&Hauled> = trials.iter().copied().filter(|trial| trial.counts()).collect();
    let mean = |of: &dyn Fn(&Hauled) -> Option<f64>| {
        let values: Vec<f64> = counting.iter().filter_map(|trial| of(trial)).collect();
        mean_estimate(&values)
    };
    // Trials that came to the same are not the same: each could have been a body apart.
    let one = counting.iter().map(|trial| size as f64 / trial.seconds).fold(0.0, f64::max);
    // Nothing is below nothing, however far trials are apart.
    let widened = |by: f64| {
        move |found: Estimate| Estimate {
            bounds: found.bounds.map(|(low, high)| ((low - by).max(0.0), high + by)),
            ..found
        }
    };
    let (colour, reasons) = judged(trials, &counting);
    Row {
        size,
        series,
        counted: counting.len(),
        trials: trials.len(),
        payload_per_s: mean(&|trial| Some(trial.payload_per_s)).map(widened(one)),
        answers_per_s: mean(&|trial| Some(trial.answers_per_s)).map_or(0.0, |found| found.value),
        own_us_per_mib: mean(&|trial| trial.own_us_per_mib).map(widened(0.0)),
        server_us_per_mib: mean(&|trial| trial.server_us_per_mib).map(widened(0.0)),
        times_first: None,
        suite: trials.iter().map(|trial| trial.suite).find(|suite| !suite.is_empty()).unwrap_or_default(),
        colour,
        reasons,
    }
}

fn judged(trials: &[&Hauled], counting: &[&Hauled]) -> (Colour, Vec<String>) {
    let opened: u64 = counting.iter().map(|trial| trial.opened).sum();
    let opened = (opened > 0).then(|| {
        format!(
            "{opened} connections were opened in the measured time, and their handshakes are in the CPU time"
        )
    });
    let void: Vec<&&Hauled> = trials.iter().filter(|trial| !trial.voids.is_empty()).collect();
    let voids = void.first().map(|first| {
        format!("{} of {} trials void, such as: {}", void.len(), trials.len(), first.voids[0].sentence)
    });
    let worst = counting.iter().map(|trial| trial.verdict.colour).max();
    let colour = match worst {
        None => Colour::Red,
        Some(_) if counting.len() < trials.len() || opened.is_some() => Colour::Amber,
        Some(worst) => worst,
    };
    let of_generator = reasons(trials.iter().map(|trial| &trial.verdict));
    (colour, voids.into_iter().chain(opened).chain(of_generator).collect())
}

fn times(first: &[&Hauled], own: &[&Hauled], random: &mut Random) -> Option<Estimate> {
    let pair = |trial: &&Hauled| {
        let beside = first.iter().find(|beside| beside.round == trial.round && beside.counts())?;
        trial.counts().then_some((beside.payload_per_s, trial.payload_per_s))
    };
    let pairs: Vec<(f64, f64)> = own.iter().filter_map(pair).collect();
    if pairs.is_empty() {
        return None;
    }
    let logs: f64 = pairs.iter().map(|(beside, own)| (own / beside).ln()).sum();
    let plain = Estimate::plain((logs / pairs.len() as f64).exp());
    Some(ratio_of_pairs(&pairs, random).map_or(plain, Estimate::from))
}

#[cfg(test)]
mod tests {
    use pointsman_measure::verdict::{SelfMeasures, verdict};

    use super::super::Way;
    use super::*;
    use crate::Void;

    /// Two series of which the second has twice the payload; `change` makes something else of a trial.
    fn found(change: impl Fn(&mut Hauled)) -> Vec<Row> {
        let asked = Bulk { plans: Vec::new(), way: Way::Down, sizes: vec![1024], rounds: 5 };
        let mut random = Random::new(1);
        let mut trials = Vec::new();
        for round in 0..asked.rounds {
            for series in 0..2 {
                let payload_per_s = 1e6 * (series + 1) as f64 * (0.01 * random.normal()).exp();
                let mut trial = Hauled {
                    round,
                    series,
                    size: 1024,
                    payload_per_s,
                    answers_per_s: payload_per_s / 1024.0,
                    seconds: 1.0,
                    own_us_per_mib: Some(100.0),
                    server_us_per_mib: None,
                    opened: 0,
                    suite: "X",
                    verdict: verdict(&SelfMeasures::default()),
                    voids: Vec::new(),
                };
                change(&mut trial);
                trials.push(trial);
            }
        }
        rows(&asked, 2, &trials, &mut random)
    }

    #[test]
    fn series_stand_beside_the_first() {
        let rows = found(|_| {});
        let [first, second] = rows.as_slice() else { panic!("{rows:?}") };
        assert!(first.times_first.is_none() && first.colour == Colour::Green && first.reasons.is_empty());
        let times = second.times_first.expect("five pairs");
        let (low, high) = times.bounds.expect("five pairs");
        assert!(1.9 < low && low < 2.0 && 2.0 < high && high < 2.1, "{times:?}");
        let payload = first.payload_per_s.and_then(|payload| payload.bounds).expect("five trials");
        assert!(payload.0 < 1e6 && 1e6 < payload.1, "{payload:?}");
        assert_eq!(first.own_us_per_mib.map(|found| found.value), Some(100.0));
        assert!(first.server_us_per_mib.is_none());
    }

    #[test]
    fn what_came_to_the_same_is_known_to_a_body_of_a_trial() {
        let rows = found(|trial| (trial.payload_per_s, trial.seconds) = (1e6, 0.5));
        let bounds: Vec<_> =
            rows.iter().map(|row| row.payload_per_s.and_then(|found| found.bounds)).collect();
        assert_eq!(bounds, [Some((1e6 - 2048.0, 1e6 + 2048.0)); 2]);
    }

    #[test]
    fn what_does_not_count_is_in_no_figure() {
        let void = || Void { code: "size", sentence: "too short".to_owned() };
        let some = found(|trial| {
            if trial.round < 2 && trial.series == 1 {
                trial.payload_per_s = 1.0;
                trial.voids.push(void());
            }
        });
        assert_eq!((some[1].colour, some[1].counted, some[1].trials), (Colour::Amber, 3, 5));
        assert_eq!(some[1].reasons, ["2 of 5 trials void, such as: too short"]);
        let times = some[1].times_first.expect("three pairs");
        assert!((times.value - 2.0).abs() < 0.1 && times.bounds.is_none(), "no interval of three: {times:?}");
        let single = found(|trial| trial.voids.extend((trial.round > 0).then(void)));
        let [first, second] = [0, 1].map(|at| (single[at].payload_per_s, single[at].own_us_per_mib));
        let bounds = [first.0, first.1, second.0, second.1].map(|found| found.expect("a trial").bounds);
        assert_eq!(bounds, [None; 4], "no interval of one");
        let none =
            found(|trial| trial.verdict = verdict(&SelfMeasures { unsent: 1, ..SelfMeasures::default() }));
        assert!(none.iter().all(|row| row.colour == Colour::Red && row.payload_per_s.is_none()), "{none:?}");
        assert!(none[1].times_first.is_none() && none[0].reasons[0].starts_with("5 of 5 trials red"));
    }

    #[test]
    fn handshakes_in_the_measured_time_are_told() {
        let rows = found(|trial| trial.opened = 2);
        assert_eq!(rows[0].colour, Colour::Amber);
        assert!(rows[0].reasons[0].starts_with("10 connections were opened"), "{:?}", rows[0].reasons);
    }
}
