//! What the kernel says about the switch, second by second, and whether its memory stayed flat.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::failure::{Because, Failure, Result};

/// Growth that allocators and tables may show without anything being kept.
const GROWTH_KIB: u64 = 2048;
const GROWTH_PERCENT: u64 = 5;
/// Growth of the line through the second half that is still noise. A soak answers some hundred thousand
/// requests a minute: a byte kept for each of them is more than this.
const SLOPE_KIB_PER_MINUTE_MAX: f64 = 128.0;
/// A slope of fewer minutes than this says more about the warming up of allocators than about a leak.
pub(super) const JUDGED_FROM: Duration = Duration::from_secs(600);

/// How long a number must stay to be settled: many ticks of the switch's threads.
const SETTLED_FOR: Duration = Duration::from_millis(500);

/// One look, about a second after the one before.
#[derive(Clone, Copy)]
struct Sample {
    after: Duration,
    resident_kib: u64,
    descriptors: usize,
}

/// All seconds of the load.
#[derive(Default)]
pub(super) struct Samples(Vec<Sample>);

impl Samples {
    /// Looks, so long after the start of the load.
    pub(super) fn take(&mut self, process: u32, after: Duration) -> Result<()> {
        let path = format!("/proc/{process}/status");
        let text = std::fs::read_to_string(&path).because(|| "the switch is gone".into())?;
        let resident_kib =
            resident_kib(&text).ok_or_else(|| Failure::new(format!("cannot read `{path}`")))?;
        self.0.push(Sample { after, resident_kib, descriptors: descriptors(process)? });
        Ok(())
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn latest(&self) -> String {
        let Some(sample) = self.0.last() else { return String::new() };
        format!(
            "{} s: {} KiB resident, {} descriptors;",
            sample.after.as_secs(),
            sample.resident_kib,
            sample.descriptors
        )
    }

    /// Writes every look into a file: seconds, KiB resident, descriptors.
    pub(super) fn keep(&self, path: &Path) -> Result<()> {
        let line = |sample: &Sample| {
            let Sample { after, resident_kib, descriptors } = sample;
            format!("{:.1} {resident_kib} {descriptors}\n", after.as_secs_f64())
        };
        let text: String = self.0.iter().map(line).collect();
        std::fs::write(path, text).because(|| format!("cannot write `{}`", path.display()))
    }

    pub(super) fn most_descriptors(&self) -> usize {
        self.0.iter().map(|sample| sample.descriptors).max().unwrap_or(0)
    }

    /// The second fifth beside the last, the first one being for warming up, and the line through the second
    /// half.
    pub(super) fn memory(&self) -> Option<Memory> {
        let fifth = self.0.len() / 5;
        let last = self.0.len().checked_sub(fifth)?;
        let early_kib = median(self.0.get(fifth..2 * fifth)?)?;
        let late_kib = median(&self.0[last..])?;
        let most_kib = self.0.iter().map(|sample| sample.resident_kib).max()?;
        let slope_kib_per_minute = slope_kib_per_minute(&self.0[self.0.len() / 2..])?;
        Some(Memory { early_kib, late_kib, most_kib, slope_kib_per_minute })
    }
}

/// Resident memory early and late, and where it goes.
#[derive(Debug, PartialEq)]
pub(super) struct Memory {
    early_kib: u64,
    late_kib: u64,
    most_kib: u64,
    slope_kib_per_minute: f64,
}

impl Memory {
    pub(super) fn is_flat(&self) -> bool {
        let allowed = GROWTH_KIB.max(self.early_kib * GROWTH_PERCENT / 100);
        self.late_kib <= self.early_kib + allowed && self.slope_kib_per_minute <= SLOPE_KIB_PER_MINUTE_MAX
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Memory { early_kib, late_kib, most_kib, slope_kib_per_minute } = self;
        write!(out, "resident memory: {early_kib} KiB in the second fifth, {late_kib} KiB in the last, ")?;
        write!(
            out,
            "{most_kib} KiB at most;\nslope over the second half: {slope_kib_per_minute:+.1} KiB/min, "
        )?;
        write!(out, "at most {SLOPE_KIB_PER_MINUTE_MAX:+.1}")
    }
}

/// Descriptors of a process once their number stays: threads take their listening sockets a moment after the start.
pub(super) fn settled_descriptors(process: u32) -> Result<usize> {
    let mut before = descriptors(process)?;
    loop {
        std::thread::sleep(SETTLED_FOR);
        let now = descriptors(process)?;
        if now == before {
            return Ok(now);
        }
        before = now;
    }
}

/// Those of all its tables.
pub(super) fn descriptors(process: u32) -> Result<usize> {
    let tables = pointsman_e2e::descriptors_of(process).because(|| "the switch is gone".into())?;
    Ok(tables.into_iter().sum())
}

fn resident_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// The slope of the line that is nearest to the samples, by least squares. Nothing where all of them are of one
/// moment.
fn slope_kib_per_minute(samples: &[Sample]) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a count of samples, and of KiB that fit into memory")]
    let points: Vec<(f64, f64)> =
        samples.iter().map(|at| (at.after.as_secs_f64() / 60.0, at.resident_kib as f64)).collect();
    #[expect(clippy::cast_precision_loss, reason = "a count of samples")]
    let count = points.len() as f64;
    let (minutes, kib) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (minutes_mean, kib_mean) = (minutes / count, kib / count);
    let (above, below) = points.iter().fold((0.0, 0.0), |sum, (minutes, kib)| {
        let from_mean = minutes - minutes_mean;
        (sum.0 + from_mean * (kib - kib_mean), sum.1 + from_mean * from_mean)
    });
    (below > 0.0).then_some(above / below)
}

fn median(samples: &[Sample]) -> Option<u64> {
    let mut sorted: Vec<u64> = samples.iter().map(|sample| sample.resident_kib).collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(kib: impl IntoIterator<Item = u64>) -> Samples {
        let sample = |(second, resident_kib)| Sample {
            after: Duration::from_secs(second),
            resident_kib,
            descriptors: 9,
        };
        Samples((0..).zip(kib).map(sample).collect())
    }

    #[test]
    fn the_slope_is_that_of_the_nearest_line() {
        let slope = |kib: &[u64]| slope_kib_per_minute(&samples(kib.iter().copied()).0);
        assert_eq!(slope(&[7]), None);
        for (kib, wanted) in [
            (vec![500; 9], 0.0),
            (vec![10, 12, 14, 16], 120.0),
            (vec![16, 14, 12, 10], -120.0),
            // By hand: the mean is 13, and (-1.5·-3 + -0.5·7 + 0.5·-3 + 1.5·-1) / 5 = -0.4 a second.
            (vec![10, 20, 10, 12], -24.0),
        ] {
            let seen = slope(&kib).expect("more than a moment");
            assert!((seen - wanted).abs() < 1e-6, "{kib:?}: {seen}");
        }
    }

    #[test]
    fn a_slow_leak_is_seen_by_its_slope() {
        let noise = |second: u64| (second * 7919) % 900;
        let leaks = |kib_per_minute| {
            samples((0..600).map(move |second| 30_000 + noise(second) + second * kib_per_minute / 60))
        };
        let memory = leaks(180).memory().expect("enough samples");
        assert!(memory.late_kib - memory.early_kib < GROWTH_KIB, "the medians are fine");
        assert!(!memory.is_flat(), "{memory}");
        assert!(leaks(60).memory().expect("enough samples").is_flat());
    }

    #[test]
    fn growth_after_the_first_fifth_is_seen() {
        let warms_up = (0..100).map(|second| if second < 20 { second * 1000 } else { 20_000 });
        assert!(samples(warms_up).memory().expect("enough samples").is_flat());
        let leaks = (0..100).map(|second| 20_000 + second * 40);
        assert!(!samples(leaks).memory().expect("enough samples").is_flat());
        let steps = (0..100).map(|second| if second < 40 { 200_000 } else { 204_000 });
        assert!(samples(steps).memory().expect("enough samples").is_flat());
        assert_eq!(samples([1, 2]).memory(), None);
    }

    #[test]
    fn our_own_status_is_read() {
        let mut samples = Samples::default();
        samples.take(std::process::id(), Duration::ZERO).expect("a process like any other");
        assert!(samples.0[0].resident_kib > 100 && samples.0[0].descriptors > 2);
        assert!(samples.take(u32::MAX, Duration::ZERO).is_err());
        assert_eq!(resident_kib("VmPeak:\t 9 kB\nVmRSS:\t    1234 kB\n"), Some(1234));
    }
}
