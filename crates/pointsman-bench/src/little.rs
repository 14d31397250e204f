//! Little's law over a run: what the connections held, beside what is reported of the answers.

use pointsman_measure::statistics;
use serde::{Deserialize, Serialize};

use crate::record::{ErrorKind, Record};

/// So many requests have to be met by looks before these say how much varies.
const MET_MIN: u64 = 30;

/// Little's law: what is under way is what comes a second times how long it stays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Little {
    /// Requests under way in the mean, as the connections held them at moments that were drawn by chance.
    pub under_way: f64,
    /// Answers a second times the mean service time, as both are reported.
    pub rate_times_time: f64,
    /// How far the two may be apart though nothing is wrong, in requests.
    pub known_to: f64,
}

impl Little {
    /// Of a run of so many seconds, whose requests had at most `timeout_s`. `work` is the share of a core that each thread of
    /// the generator worked, all added up.
    pub(crate) fn of(record: &Record, seconds: f64, timeout_s: f64, work: f64) -> Little {
        let looks: Vec<f64> = record.looks.iter().map(|held| *held as f64).collect();
        let under_way = mean(&looks);
        let service_s = record.service.mean() / 1e9;
        let rate_times_time = record.completed_in_time() as f64 / seconds * service_s;
        let seen = mean(&looks.iter().map(|held| (held - under_way).powi(2)).collect::<Vec<_>>());
        // Where answers are so quick that few looks met one, what those show of their variance is chance, too: that of
        // independent arrivals is the mean.
        let met: u64 = record.looks.iter().sum();
        let variance = if met < MET_MIN { seen.max(rate_times_time) } else { seen };
        // Three standard errors of the mean.
        let by_chance = 3.0 * (variance / looks.len().max(1) as f64).sqrt();
        // The law is that of a system which ends as full as it began.
        let (early, late) = looks.split_at(looks.len() / 2);
        let grown = (mean(late) - mean(early)).abs();
        // What is under way at either end counts on one side alone, with a part of its time.
        let at_the_ends = 2.0 * under_way * service_s / seconds;
        // What has no answer was under way, and has no service time.
        let in_time: u64 = record.batches.iter().map(|batch| batch.failed).sum();
        let lost = in_time.max(record.failed()).saturating_sub(record.errors_of(ErrorKind::Status));
        let without_answer = lost as f64 * timeout_s.min(seconds) / seconds;
        // A thread that works on one request of its own looks at none.
        let known_to = by_chance + grown + at_the_ends + without_answer + work;
        Little {
            under_way,
            rate_times_time,
            // Where all that was answered had been due before the measured time, no service time is reported of it.
            known_to: if record.service.is_empty() { under_way } else { known_to },
        }
    }

    /// How far the two are apart beyond what they are known to, beside the first; 0 where nothing was under way.
    pub fn gap(&self) -> f64 {
        let Little { under_way, rate_times_time, known_to } = *self;
        if under_way <= 0.0 {
            return 0.0;
        }
        statistics::Little { in_flight: under_way, rate_per_s: rate_times_time, time_s: 1.0, known_to }.gap()
    }
}

/// Of nothing 0: the sum of no numbers is -0.
fn mean(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |sum, value| sum + value) / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND_NS;

    /// A second in which so many were under way at each look, and 400 were answered after 20 ms.
    fn record(held: impl Fn(u64) -> u64) -> Record {
        let mut record = Record::new(10);
        (0..).zip(&mut record.looks).for_each(|(at, look)| *look = held(at));
        record.batches.iter_mut().for_each(|batch| batch.completed = 40);
        record.service.saturating_record_n(SECOND_NS / 50, 400);
        record
    }

    #[test]
    fn what_is_held_and_what_is_reported_must_agree() {
        let of = |record: &Record| Little::of(record, 1.0, 10.0, 0.0);
        let right = of(&record(|_| 8));
        assert!((right.rate_times_time - 8.0).abs() < 0.1 && right.gap() == 0.0, "{right:?}");
        for held in [4, 16] {
            let wrong = of(&record(|_| held));
            assert!(wrong.gap() > 0.4, "{wrong:?}");
        }
        let mut forgotten = record(|_| 8);
        forgotten.batches.iter_mut().for_each(|batch| batch.completed = 20);
        assert!(of(&forgotten).gap() > 0.4, "{:?}", of(&forgotten));
        let mut wrong_clock = record(|_| 8);
        wrong_clock.service.reset();
        wrong_clock.service.saturating_record_n(SECOND_NS / 25, 400);
        assert!(of(&wrong_clock).gap() > 0.4, "{:?}", of(&wrong_clock));
    }

    #[test]
    fn nothing_under_way_is_nothing() {
        let nothing = Little::of(&Record::new(0), 0.0, 10.0, 0.0);
        assert_eq!(format!("{:.2}", nothing.under_way), "0.00", "{nothing:?}");
    }

    #[test]
    fn nothing_is_said_of_what_is_not_known() {
        // A queue that grows, one that varies, one whose requests were given up.
        let grows = Little::of(&record(|at| at * 2), 1.0, 10.0, 0.0);
        let varies = Little::of(&record(|at| 17 * (at % 2)), 1.0, 10.0, 0.0);
        let mut lost = record(|_| 16);
        lost.errors[ErrorKind::Timeout as usize] = 8;
        let lost = Little::of(&lost, 1.0, 10.0, 0.0);
        let mut before = record(|_| 8);
        before.service.reset();
        let before = Little::of(&before, 1.0, 10.0, 0.0);
        // Answers so quick that no look met one.
        let mut quick = record(|_| 0);
        quick.service.reset();
        quick.service.saturating_record_n(SECOND_NS / 10_000, 400);
        let quick = Little::of(&quick, 1.0, 10.0, 0.0);
        assert!(quick.known_to > quick.rate_times_time, "{quick:?}");
        for little in [grows, varies, lost, before, quick] {
            assert_eq!(little.gap(), 0.0, "{little:?}");
        }
    }
}
