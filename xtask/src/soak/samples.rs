//! What the kernel says about the switch, second by second, and whether its memory stayed flat.

use std::fmt;

use crate::failure::{Because, Failure, Result};

/// Growth that allocators and tables may show without anything being kept.
const GROWTH_KIB: u64 = 2048;
const GROWTH_PERCENT: u64 = 5;

/// One second.
#[derive(Clone, Copy)]
struct Sample {
    resident_kib: u64,
    descriptors: usize,
}

/// All seconds of the load.
#[derive(Default)]
pub(super) struct Samples(Vec<Sample>);

impl Samples {
    pub(super) fn take(&mut self, process: u32) -> Result<()> {
        let path = format!("/proc/{process}/status");
        let text = std::fs::read_to_string(&path).because(|| "the switch is gone".into())?;
        let resident_kib =
            resident_kib(&text).ok_or_else(|| Failure::new(format!("cannot read `{path}`")))?;
        self.0.push(Sample { resident_kib, descriptors: descriptors(process)? });
        Ok(())
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn latest(&self) -> String {
        let Some(sample) = self.0.last() else { return String::new() };
        format!(
            "{} s: {} KiB resident, {} descriptors;",
            self.0.len(),
            sample.resident_kib,
            sample.descriptors
        )
    }

    pub(super) fn most_descriptors(&self) -> usize {
        self.0.iter().map(|sample| sample.descriptors).max().unwrap_or(0)
    }

    /// The second fifth beside the last: the first one is for warming up.
    pub(super) fn memory(&self) -> Option<Memory> {
        let fifth = self.0.len() / 5;
        let last = self.0.len().checked_sub(fifth)?;
        let early_kib = median(self.0.get(fifth..2 * fifth)?)?;
        let late_kib = median(&self.0[last..])?;
        let most_kib = self.0.iter().map(|sample| sample.resident_kib).max()?;
        Some(Memory { early_kib, late_kib, most_kib })
    }
}

/// Resident memory early and late.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Memory {
    early_kib: u64,
    late_kib: u64,
    most_kib: u64,
}

impl Memory {
    pub(super) fn is_flat(&self) -> bool {
        let allowed = GROWTH_KIB.max(self.early_kib * GROWTH_PERCENT / 100);
        self.late_kib <= self.early_kib + allowed
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Memory { early_kib, late_kib, most_kib } = self;
        let verdict = if self.is_flat() { "flat" } else { "NOT FLAT" };
        write!(out, "resident memory: {early_kib} KiB in the second fifth, {late_kib} KiB in the last, ")?;
        write!(out, "{most_kib} KiB at most: {verdict}")
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

fn median(samples: &[Sample]) -> Option<u64> {
    let mut sorted: Vec<u64> = samples.iter().map(|sample| sample.resident_kib).collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(kib: impl IntoIterator<Item = u64>) -> Samples {
        Samples(kib.into_iter().map(|resident_kib| Sample { resident_kib, descriptors: 9 }).collect())
    }

    #[test]
    fn growth_after_the_first_fifth_is_seen() {
        let warms_up = (0..100).map(|second| if second < 20 { second * 1000 } else { 20_000 });
        assert!(samples(warms_up).memory().expect("enough samples").is_flat());
        let leaks = (0..100).map(|second| 20_000 + second * 40);
        assert!(!samples(leaks).memory().expect("enough samples").is_flat());
        let large = (0..100).map(|second| 200_000 + second * 40);
        assert!(samples(large).memory().expect("enough samples").is_flat());
        assert_eq!(samples([1, 2]).memory(), None);
    }

    #[test]
    fn our_own_status_is_read() {
        let mut samples = Samples::default();
        samples.take(std::process::id()).expect("a process like any other");
        assert!(samples.0[0].resident_kib > 100 && samples.0[0].descriptors > 2);
        assert!(samples.take(u32::MAX).is_err());
        assert_eq!(resident_kib("VmPeak:\t 9 kB\nVmRSS:\t    1234 kB\n"), Some(1234));
    }
}
