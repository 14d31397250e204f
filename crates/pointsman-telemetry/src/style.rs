//! What the lines of the access log look like, and which exchanges leave one.

use crate::event::Exchange;
use crate::timestamp::TimeForm;

/// What the lines of the access log look like, and which exchanges leave one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStyle {
    /// What a line looks like.
    pub form: LogForm,
    /// Whether a line of [`LogForm::Common`] or [`LogForm::Combined`] goes on with what JSON lines say beyond it.
    pub details: bool,
    /// How many of the exchanges that went well leave a line.
    pub sample: Sample,
}

/// What a line of the access log looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogForm {
    /// One JSON object.
    Json,
    /// The Common Log Format.
    Common,
    /// The same, with the fields `Referer` and `User-Agent`.
    Combined,
}

/// A sample of many, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample(u32);

/// The first status of those that say that something went wrong here.
const SERVER_ERROR: u16 = 500;

impl LogStyle {
    /// A JSON object for every exchange.
    pub const JSON: LogStyle = LogStyle { form: LogForm::Json, details: false, sample: Sample::ALL };

    /// Whether lines want the fields `Referer` and `User-Agent`.
    pub(crate) fn wants_agent(self) -> bool {
        self.form == LogForm::Combined
    }

    pub(crate) fn time_form(self) -> TimeForm {
        match self.form {
            LogForm::Json => TimeForm::Rfc3339,
            LogForm::Common | LogForm::Combined => TimeForm::CommonLog,
        }
    }
}

impl Sample {
    /// Every one.
    pub const ALL: Sample = Sample(1_000_000);

    /// A sample of so many millionths; more than all is all.
    pub fn per_million(millionths: u32) -> Sample {
        Sample(millionths.min(Self::ALL.0))
    }

    /// In millionths, at most 1,000,000.
    pub fn millionths(self) -> u32 {
        self.0
    }

    /// Whether the next of many that are alike is one of it.
    pub(crate) fn draws(self, chance: &mut fastrand::Rng) -> bool {
        chance.u32(..Self::ALL.0) < self.0
    }
}

/// Chooses which exchanges leave a line.
#[derive(Debug)]
pub(crate) struct Sampler {
    sample: Sample,
    chance: fastrand::Rng,
}

impl Sampler {
    pub(crate) fn new(sample: Sample, seed: u64) -> Sampler {
        Sampler { sample, chance: fastrand::Rng::with_seed(seed) }
    }

    /// Whether the exchange leaves a line. What went wrong always does.
    pub(crate) fn takes(&mut self, exchange: &Exchange<'_>) -> bool {
        self.sample == Sample::ALL
            || exchange.error.is_some()
            || exchange.counts.status >= SERVER_ERROR
            || self.draws()
    }

    /// Whether the next of many that are alike is one of the sample.
    fn draws(&mut self) -> bool {
        self.sample.draws(&mut self.chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Counts;
    use crate::family::ListenerMetrics;

    #[test]
    fn a_sample_is_that_share() {
        for (millionths, least, most) in [(0, 0, 0), (100_000, 9_500, 10_500), (999_999, 99_980, 100_000)] {
            let mut sampler = Sampler::new(Sample::per_million(millionths), 7);
            let taken = (0..100_000).filter(|_| sampler.draws()).count();
            assert!((least..=most).contains(&taken), "{taken} of {millionths}");
        }
    }

    #[test]
    fn what_went_wrong_is_always_taken() {
        let listener = ListenerMetrics::new("shop", 1);
        let status = |status| Exchange::new(Counts { status, ..Counts::new(&listener) });
        let mut none = Sampler::new(Sample::per_million(0), 1);
        assert!(![200, 304, 404, 499].into_iter().any(|well| none.takes(&status(well))));
        assert!([500, 503, 599].into_iter().all(|wrong| none.takes(&status(wrong))));
        assert!(none.takes(&Exchange { error: Some("…"), ..status(200) }));
        assert!(Sampler::new(Sample::per_million(2_000_000), 1).takes(&status(200)));
    }
}
