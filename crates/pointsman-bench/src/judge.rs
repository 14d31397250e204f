//! Whether the generator was in control of a run: what it measured of itself, and the verdict on it.

use pointsman_measure::statistics::{Little, exponentiality};
use pointsman_measure::verdict::{Colour, Measure, Reason, SelfMeasures, Verdict, verdict};

use crate::compare::FAILED_SHARE_MAX;
use crate::outcome::{Outcome, ThreadUse};
use crate::plan::{Arrivals, Load};
use crate::record::ErrorKind;

impl Outcome {
    /// What the generator measured of itself. `p99_us_max` is the limit on the 99th percentile of the response time that
    /// the run is held to, in microseconds: where there is one, the send lag has to be small beside it.
    pub fn self_measures(&self, p99_us_max: Option<u64>) -> SelfMeasures {
        let (record, generator) = (&self.record, &self.generator);
        let rate = self.rate();
        // The busiest of them may be one that is not known.
        let threads: Option<Vec<ThreadUse>> = generator.threads.iter().copied().collect();
        let threads = threads.unwrap_or_default();
        let busiest = threads.iter().max_by(|left, right| left.work().total_cmp(&right.work()));
        let waited: Option<Vec<f64>> = threads.iter().map(|thread| thread.waited).collect();
        let waited = waited.and_then(|all| all.into_iter().max_by(f64::total_cmp));
        let share_of_opened = |count: u64| count as f64 / record.opened.max(1) as f64;
        let share_of_tried = |count: u64| count as f64 / (record.opened + count).max(1) as f64;
        let gaps = match self.plan.load {
            Load::Open { arrivals: Arrivals::Poisson, .. } => exponentiality(&record.gaps.sample()),
            _ => None,
        };
        SelfMeasures {
            send_lag_p99_us: (!record.lag.is_empty()).then(|| record.lag.value_at_quantile(0.99) / 1_000),
            slo_p99_us: p99_us_max,
            unsent: record.unsent,
            // Only who knows a goal can tell.
            held_back: 0,
            held_back_share: record.held_back as f64 / record.due.max(1) as f64,
            warm_up_share: self.made_good_share(),
            not_open_share: record.first_wanted.saturating_sub(record.first_open) as f64
                / record.first_wanted.max(1) as f64,
            cpu_share: busiest.map(ThreadUse::work),
            waited_share: waited,
            steal_share: generator.stolen,
            switches_per_s: busiest.map(|thread| thread.involuntary_switches as f64 / generator.seconds),
            ports_exhausted: record.errors_of(ErrorKind::Ports),
            ports_share: self.ports_share().unwrap_or_default(),
            descriptors_share: self.descriptors_share().unwrap_or_default(),
            listen_drop_share: generator.listening.map(|listening| share_of_tried(listening.drops)),
            descriptors_exhausted: record.errors_of(ErrorKind::Descriptors),
            syn_retransmit_share: generator.syns_resent.filter(|_| record.opened > 0).map(share_of_opened),
            little: (rate > 0.0).then(|| Little {
                in_flight: generator.little.under_way,
                rate_per_s: rate,
                time_s: record.service.mean() / 1e9,
                known_to: generator.little.known_to,
            }),
            gaps,
            null_server_factor: self.ceiling.filter(|_| rate > 0.0).map(|ceiling| ceiling / rate),
            fewer_clients: None,
            unknown: self.unknown(),
        }
    }

    /// What of the kernel's accounts could not be read.
    fn unknown(&self) -> Vec<Measure> {
        let generator = &self.generator;
        let is_blind = generator.threads.iter().any(Option::is_none);
        let waits = |thread: &Option<ThreadUse>| thread.is_some_and(|thread| thread.waited.is_some());
        // What listening sockets dropped, where they are ours, is read with the SYNs that were sent again.
        let all = [
            (Measure::Cpu, is_blind),
            (Measure::Waited, !generator.threads.iter().all(waits)),
            (Measure::Steal, generator.stolen.is_none()),
            (Measure::SynRetransmits, generator.syns_resent.is_none()),
            (Measure::ListenQueue, generator.syns_resent.is_none()),
            (Measure::Ports, generator.ports_most.is_none()),
            (Measure::Descriptors, generator.descriptors_most.is_none()),
        ];
        all.into_iter().filter(|(_, is_unknown)| *is_unknown).map(|(measure, _)| measure).collect()
    }

    /// Whether the generator was in control: green, amber or red, with the reasons.
    ///
    /// At best it is amber where the run was interrupted, or where more requests failed than a result may have: a generator
    /// that is in control of a thousand errors has measured no answers.
    pub fn verdict(&self) -> Verdict {
        let mut all = self.verdict_by(&|outcome| verdict(&outcome.self_measures(None)));
        // What was cut short comes before all that is as bad.
        let reasons = [
            (Measure::Interrupted, self.cut_short(), 0),
            (Measure::Answers, self.failures(), usize::MAX),
            (Measure::Server, self.server_unknown.clone(), usize::MAX),
        ];
        for (measure, text, place) in reasons {
            let Some(text) = text else { continue };
            let place = place.min(all.reasons.len());
            all.reasons.insert(place, Reason { colour: Colour::Amber, measure, text });
            all.colour = all.colour.max(Colour::Amber);
        }
        all.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.colour));
        all
    }

    fn cut_short(&self) -> Option<String> {
        let of = self.plan.time.as_secs_f64();
        let measured = self.record.batches.len() as f64 / 10.0;
        let text = if measured + 0.05 < of {
            format!("what counts is {measured:.1} s of the {of:.1} s that were to be measured")
        } else {
            "all of its time was measured, and what was to come behind that was not".to_owned()
        };
        self.was_interrupted.then_some(text)
    }

    fn failures(&self) -> Option<String> {
        let share = self.record.failed_share();
        let text = format!(
            "{:.1} % of the requests failed, so what was measured is partly how fast they fail",
            share * 100.0
        );
        (share > FAILED_SHARE_MAX).then_some(text)
    }

    /// The same by another judge. Agents are judged one by one, and the worst of them is the verdict.
    pub(crate) fn verdict_by(&self, judge: &dyn Fn(&Outcome) -> Verdict) -> Verdict {
        if self.agents.is_empty() {
            return judge(self);
        }
        let mut all = Verdict { colour: Colour::Green, reasons: Vec::new(), not_measured: Vec::new() };
        for agent in &self.agents {
            let one = judge(&agent.outcome);
            all.colour = all.colour.max(one.colour);
            all.reasons.extend(
                one.reasons.into_iter().map(|reason| Reason {
                    text: format!("agent `{}`: {}", agent.name, reason.text),
                    ..reason
                }),
            );
            let news = one.not_measured.iter().filter(|measure| !all.not_measured.contains(measure));
            all.not_measured.extend(news.copied().collect::<Vec<_>>());
        }
        all.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.colour));
        all
    }

    /// Whether its figures may be believed: it is not void, and the generator was in control.
    pub fn is_result(&self) -> bool {
        self.voids.is_empty() && self.verdict().colour != Colour::Red
    }
}
