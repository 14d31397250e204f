//! Whether the generator was in control of a run: what it measured of itself, and the verdict on it.

use pointsman_measure::statistics::Little;
use pointsman_measure::verdict::{SelfMeasures, Verdict, verdict};

use crate::outcome::{Outcome, ThreadUse};
use crate::record::ErrorKind;

impl Outcome {
    /// What the generator measured of itself. `p99_us_max` is the limit on the 99th percentile of the response time that
    /// the run is held to, in microseconds: where there is one, the send lag has to be small beside it.
    pub fn self_measures(&self, p99_us_max: Option<u64>) -> SelfMeasures {
        let (record, generator) = (&self.record, &self.generator);
        let busiest = |of: fn(&ThreadUse) -> f64| generator.threads.iter().map(of).reduce(f64::max);
        SelfMeasures {
            send_lag_p99_us: (!record.lag.is_empty()).then(|| record.lag.value_at_quantile(0.99) / 1_000),
            slo_p99_us: p99_us_max,
            unsent: record.unsent,
            cpu_share: busiest(|thread| thread.cpu),
            steal_share: Some(generator.stolen),
            switches_per_s: busiest(|thread| thread.involuntary_switches as f64)
                .map(|switches| switches / self.seconds),
            ports_exhausted: record.errors_of(ErrorKind::Ports),
            descriptors_exhausted: record.errors_of(ErrorKind::Descriptors),
            little: Some(Little {
                in_flight: generator.little.under_way,
                rate_per_s: record.answered as f64 / self.seconds,
                time_s: record.service.mean() / 1e9,
            }),
            ..SelfMeasures::default()
        }
    }

    /// Whether the generator was in control: green, amber or red, with the reasons.
    pub fn verdict(&self) -> Verdict {
        verdict(&self.self_measures(None))
    }
}
