//! What a row of probes says of a server: up after so many that passed, down after so many that failed.

/// How many probes in a row change what is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// That pass, of a server that is down.
    pub rise: u32,
    /// That fail, of one that is up.
    pub fall: u32,
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probed {
    /// The server answered as it should.
    Passed,
    /// It did not.
    Failed,
}

/// What is said of a server, and how many probes in a row have spoken against that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeRow {
    /// `None`: the next probe decides alone.
    said: Option<Probed>,
    against: u32,
}

impl ProbeRow {
    /// Goes on from what is said already, if anything is.
    #[must_use]
    pub fn from(said: Option<Probed>) -> ProbeRow {
        ProbeRow { said, against: 0 }
    }

    /// Hears of another probe. Returns what is said from now on, where that changes.
    pub fn hear(&mut self, probed: Probed, thresholds: Thresholds) -> Option<Probed> {
        let needed = match (self.said, probed) {
            (Some(said), probed) if said == probed => {
                self.against = 0;
                return None;
            }
            (None, _) => 1,
            (Some(_), Probed::Passed) => thresholds.rise,
            (Some(_), Probed::Failed) => thresholds.fall,
        };
        self.against += 1;
        if self.against < needed {
            return None;
        }
        *self = ProbeRow::from(Some(probed));
        Some(probed)
    }
}

/// How long to wait for the next probe: `interval_ms`, shortened or lengthened by up to `jitter_percent` of it, so that
/// probes of many switches and servers do not fall together.
#[must_use]
pub fn probe_wait_ms(interval_ms: u32, jitter_percent: u32, random: u64) -> u32 {
    let swing_ms = u64::from(interval_ms) * u64::from(jitter_percent.min(100)) / 100;
    let shift_ms = ((u128::from(random) * u128::from(2 * swing_ms + 1)) >> 64) as u64;
    let wait_ms = u64::from(interval_ms) - swing_ms + shift_ms;
    u32::try_from(wait_ms).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn probed(passes: bool) -> Probed {
        if passes { Probed::Passed } else { Probed::Failed }
    }

    /// The definition: what the last whole run says that was long enough; before there is one, the first probe.
    fn defined(probes: &[bool], thresholds: Thresholds) -> Option<Probed> {
        let ends_run = |end: usize| {
            let run = |length: u32, passes: bool| {
                let length = length as usize;
                end >= length && probes[end - length..end].iter().all(|probe| *probe == passes)
            };
            match (run(thresholds.rise, true), run(thresholds.fall, false)) {
                (true, _) => Some(Probed::Passed),
                (_, true) => Some(Probed::Failed),
                _ => None,
            }
        };
        (1..=probes.len()).rev().find_map(ends_run).or(probes.first().map(|first| probed(*first)))
    }

    #[test]
    fn a_probe_that_agrees_begins_the_count_anew() {
        let thresholds = Thresholds { rise: 2, fall: 3 };
        let mut row = ProbeRow::default();
        let said: Vec<_> = "+--+---+-++"
            .chars()
            .map(|probe| match row.hear(probed(probe == '+'), thresholds) {
                Some(Probed::Passed) => 'U',
                Some(Probed::Failed) => 'D',
                None => '.',
            })
            .collect();
        assert_eq!(said.iter().collect::<String>(), "U.....D...U");
    }

    proptest! {
        #[test]
        fn what_is_said_is_what_the_last_run_says(
            probes in vec(any::<bool>(), 0..60),
            rise in 1u32..5,
            fall in 1u32..5,
        ) {
            let thresholds = Thresholds { rise, fall };
            let (mut row, mut said) = (ProbeRow::default(), None);
            for (at, probe) in probes.iter().enumerate() {
                if let Some(change) = row.hear(probed(*probe), thresholds) {
                    prop_assert_ne!(said, Some(change), "a change that is none");
                    said = Some(change);
                }
                prop_assert_eq!(said, defined(&probes[..=at], thresholds));
            }
        }

        #[test]
        fn a_wait_is_within_its_jitter(interval_ms in 1u32..86_400_001, jitter in 0u32..101, random: u64) {
            let wait = u64::from(probe_wait_ms(interval_ms, jitter, random));
            let swing = u64::from(interval_ms) * u64::from(jitter) / 100;
            prop_assert!(wait.abs_diff(u64::from(interval_ms)) <= swing);
        }
    }

    #[test]
    fn both_ends_of_the_jitter_come() {
        let waits = [0, u64::MAX / 2, u64::MAX].map(|random| probe_wait_ms(1000, 10, random));
        assert_eq!(waits, [900, 1000, 1100]);
    }
}
