//! The measures, and what of each is allowed.

use std::fmt;

use super::{Colour, Reason};
use crate::statistics::{Exponentiality, LITTLE_GAP_MAX, Little};

/// What a load generator can measure of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// How much later than intended requests went out.
    SendLag,
    /// Arrivals that never went out.
    Unsent,
    /// Arrivals that waited for one of the client's own connections.
    Connections,
    /// The busiest generator thread's share of its core.
    Cpu,
    /// Time that a generator thread could have run and had no core.
    Waited,
    /// Time that the hypervisor took.
    Steal,
    /// Times that a generator thread was put off its core.
    Switches,
    /// Local ports: how many were taken, and connections that found none (EADDRNOTAVAIL).
    Ports,
    /// File descriptors: how many there were, and sockets that found none (EMFILE, ENFILE).
    Descriptors,
    /// Queues of listening sockets of this machine.
    ListenQueue,
    /// Requests of the warm-up that were answered in the measured time.
    WarmUp,
    /// SYNs sent again.
    SynRetransmits,
    /// L = λ W.
    Little,
    /// Whether the gaps between sends are those of a Poisson process.
    Gaps,
    /// What the same generator reaches against a server that does nothing.
    NullServer,
    /// What one client less reaches.
    FewerClients,
    /// How many answers were errors.
    Answers,
    /// How much of the time there was of a trial that was interrupted.
    Interrupted,
    /// What the server's processes spent, where that was to be known.
    Server,
}

/// What was measured in a trial; what is `None` was not.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SelfMeasures {
    /// The 99th percentile of actual less intended send time, in µs.
    pub send_lag_p99_us: Option<u64>,
    /// The limit on the 99th percentile of the response time, in µs, if there is one: the lag may be 5 % of it.
    pub slo_p99_us: Option<u64>,
    /// Arrivals that were due and never sent.
    pub unsent: u64,
    /// Arrivals that waited for a connection, because the client may have no more, where the server was in time with what it
    /// had been sent: 0 where it was not.
    pub held_back: u64,
    /// The share of the requests that waited for a connection, for whatever reason, from 0 to 1.
    pub held_back_share: f64,
    /// What was answered beside what was due, because the warm-up had left it behind, by what was due.
    pub warm_up_share: f64,
    /// Connections that were to be open before the load and were not when it began, by all that were to be, from 0 to 1.
    pub not_open_share: f64,
    /// The busiest generator thread's CPU time by wall-clock time, from 0 to 1.
    pub cpu_share: Option<f64>,
    /// The time that a generator thread could have run and had no core, by wall-clock time, from 0 to 1; of the thread
    /// that waited longest.
    pub waited_share: Option<f64>,
    /// Steal time by wall-clock time, from 0 to 1.
    pub steal_share: Option<f64>,
    /// Involuntary context switches of the busiest thread in a second.
    pub switches_per_s: Option<f64>,
    /// Connects that found no local port.
    pub ports_exhausted: u64,
    /// Sockets that found no descriptor.
    pub descriptors_exhausted: u64,
    /// Local ports that were taken at most, by all that there are; 0 where that is not known.
    pub ports_share: f64,
    /// Descriptors that there were at most, by those that there may be; 0 where that is not known.
    pub descriptors_share: f64,
    /// Connections that a listening socket of this machine had no room for, by all that were tried; None where the server is
    /// on another machine.
    pub listen_drop_share: Option<f64>,
    /// SYNs sent again by SYNs sent, from 0 to 1.
    pub syn_retransmit_share: Option<f64>,
    /// What was counted and what was timed.
    pub little: Option<Little>,
    /// The test of the gaps, where arrivals were to be a Poisson process.
    pub gaps: Option<Exponentiality>,
    /// Requests per second against the null server, by requests per second in this trial.
    pub null_server_factor: Option<f64>,
    /// The comparison with one client less.
    pub fewer_clients: Option<super::FewerClients>,
    /// What was to be measured and could not be. Without its own CPU time and waiting nobody knows whether a generator was
    /// in control.
    pub unknown: Vec<Measure>,
}

/// A quantity is fine up to the first bound and red above the second.
struct Bounds {
    green_max: f64,
    amber_max: f64,
}

const SEND_LAG_US_MAX: f64 = 1_000.0;
const SEND_LAG_OF_SLO_MAX: f64 = 0.05;
/// A lag of more than three times what is fine is red.
const SEND_LAG_RED_FACTOR: f64 = 3.0;
const CPU: Bounds = Bounds { green_max: 0.75, amber_max: 0.90 };
const WAITED: Bounds = Bounds { green_max: 0.05, amber_max: 0.20 };
const STEAL: Bounds = Bounds { green_max: 0.01, amber_max: 0.05 };
const SWITCHES_PER_S: Bounds = Bounds { green_max: 200.0, amber_max: f64::INFINITY };
const SYN_RETRANSMITS: Bounds = Bounds { green_max: 0.0, amber_max: 0.01 };
/// What is left beyond it goes soon, and the kernel searches long for a port among few.
const OF_A_LIMIT: Bounds = Bounds { green_max: 0.75, amber_max: f64::INFINITY };
const LISTEN_DROPS: Bounds = Bounds { green_max: 0.0, amber_max: 0.01 };
const HELD_BACK: Bounds = Bounds { green_max: 0.01, amber_max: f64::INFINITY };
const NOT_OPEN: Bounds = Bounds { green_max: 0.0, amber_max: 0.5 };
const WARM_UP: Bounds = Bounds { green_max: 0.01, amber_max: 0.10 };
const LITTLE: Bounds = Bounds { green_max: LITTLE_GAP_MAX, amber_max: 0.10 };
/// As 1 / factor: 1.5 times as much as was measured is fine, less than 1.1 times red.
const NULL_SERVER: Bounds = Bounds { green_max: 1.0 / 1.5, amber_max: 1.0 / 1.1 };
/// The level of the test on gaps.
const GAPS_LEVEL: f64 = 0.01;

impl Bounds {
    /// None where the value is fine. What is no number is red.
    fn colour(&self, value: f64) -> Option<Colour> {
        if value <= self.green_max {
            None
        } else if value <= self.amber_max {
            Some(Colour::Amber)
        } else {
            Some(Colour::Red)
        }
    }
}

impl SelfMeasures {
    pub(super) fn reasons(&self) -> Vec<Reason> {
        let found = [
            self.send_lag(),
            count(Measure::Unsent, self.unsent, "arrivals were due and never sent"),
            count(
                Measure::Connections,
                self.held_back,
                "requests waited for a connection, and the server was in time with the others: `--connections` is what \
                 limits the rate",
            ),
            share(
                Measure::Cpu,
                self.cpu_share,
                &CPU,
                "of its core is what the busiest generator thread took",
            ),
            share(
                Measure::Waited,
                self.waited_share,
                &WAITED,
                "of the time a generator thread could have run and had no core",
            ),
            share(Measure::Steal, self.steal_share, &STEAL, "of the time went to other machines of the host"),
            self.switches(),
            count(Measure::Ports, self.ports_exhausted, "connections found no local port"),
            count(Measure::Descriptors, self.descriptors_exhausted, "sockets found no descriptor"),
            share(
                Measure::SynRetransmits,
                self.syn_retransmit_share,
                &SYN_RETRANSMITS,
                "of the SYNs were sent again",
            ),
            share(
                Measure::Little,
                self.little.map(|little| little.gap()),
                &LITTLE,
                "is the gap of Little's law",
            ),
            self.unlike_poisson(),
            self.near_the_ceiling(),
            self.fewer_clients.and_then(|fewer| fewer.reason()),
        ];
        found.into_iter().chain(self.of_limits()).flatten().chain(self.of_unknown()).collect()
    }

    /// What of it hangs on how many there may be of something, or on what was before.
    fn of_limits(&self) -> [Option<Reason>; 6] {
        [
            share(
                Measure::Connections,
                Some(self.held_back_share),
                &HELD_BACK,
                "of the requests waited for a connection, because as many as there may be (`--connections`) were taken",
            ),
            share(
                Measure::Connections,
                Some(self.not_open_share),
                &NOT_OPEN,
                "of the connections that were to be open before the load (`--opened`) were not when it began",
            ),
            share(
                Measure::Ports,
                Some(self.ports_share),
                &OF_A_LIMIT,
                "of the local ports were taken at a time, which are all that connections to one place can have",
            ),
            share(
                Measure::Descriptors,
                Some(self.descriptors_share),
                &OF_A_LIMIT,
                "of the descriptors that the process may have were open at a time",
            ),
            share(
                Measure::ListenQueue,
                self.listen_drop_share,
                &LISTEN_DROPS,
                "of the connections found no room in the queue of a listening socket of this machine",
            ),
            share(
                Measure::WarmUp,
                Some(self.warm_up_share),
                &WARM_UP,
                "of what was due was answered besides, because the warm-up had left it behind",
            ),
        ]
    }

    fn of_unknown(&self) -> impl Iterator<Item = Reason> {
        self.unknown.iter().map(|measure| Reason {
            colour: match measure {
                // Who does not know how long it waited knows how late it sent.
                Measure::Cpu => Colour::Red,
                _ => Colour::Amber,
            },
            measure: *measure,
            text: format!("{measure}: unknown, for the kernel's account of it could not be read"),
        })
    }

    pub(super) fn not_measured(&self) -> Vec<Measure> {
        let measured = [
            (Measure::SendLag, self.send_lag_p99_us.is_some()),
            (Measure::Cpu, self.cpu_share.is_some()),
            (Measure::Waited, self.waited_share.is_some()),
            (Measure::Steal, self.steal_share.is_some()),
            (Measure::Switches, self.switches_per_s.is_some()),
            (Measure::SynRetransmits, self.syn_retransmit_share.is_some()),
            (Measure::ListenQueue, self.listen_drop_share.is_some()),
            (Measure::Little, self.little.is_some()),
            (Measure::Gaps, self.gaps.is_some()),
            (Measure::NullServer, self.null_server_factor.is_some()),
            (Measure::FewerClients, self.fewer_clients.is_some()),
        ];
        measured.into_iter().filter(|(_, is_there)| !is_there).map(|(measure, _)| measure).collect()
    }

    fn send_lag(&self) -> Option<Reason> {
        let lag = self.send_lag_p99_us? as f64;
        let of_slo = self.slo_p99_us.map_or(f64::INFINITY, |slo| SEND_LAG_OF_SLO_MAX * slo as f64);
        let green_max = SEND_LAG_US_MAX.min(of_slo);
        let colour = Bounds { green_max, amber_max: SEND_LAG_RED_FACTOR * green_max }.colour(lag)?;
        let text = format!(
            "one request of a hundred went out {lag:.0} µs or more after its time; {green_max:.0} µs are fine"
        );
        Some(Reason { colour, measure: Measure::SendLag, text })
    }

    fn switches(&self) -> Option<Reason> {
        let seen = self.switches_per_s?;
        let colour = SWITCHES_PER_S.colour(seen)?;
        let text = format!(
            "the busiest generator thread was put off its core {seen:.0} times a second; {:.0} are fine",
            SWITCHES_PER_S.green_max
        );
        Some(Reason { colour, measure: Measure::Switches, text })
    }

    fn unlike_poisson(&self) -> Option<Reason> {
        let gaps = self.gaps.filter(|gaps| !gaps.passes(GAPS_LEVEL))?;
        let text =
            format!("the gaps between sends are not those of a Poisson process (A² = {:.2})", gaps.statistic);
        Some(Reason { colour: Colour::Amber, measure: Measure::Gaps, text })
    }

    fn near_the_ceiling(&self) -> Option<Reason> {
        let factor = self.null_server_factor?;
        let inverse = if factor > 0.0 { 1.0 / factor } else { f64::INFINITY };
        let colour = NULL_SERVER.colour(inverse)?;
        let text = format!(
            "against a server that does nothing the client reaches {factor:.2} times this rate; 1.5 times is fine"
        );
        Some(Reason { colour, measure: Measure::NullServer, text })
    }
}

/// One is too many.
fn count(measure: Measure, seen: u64, what: &str) -> Option<Reason> {
    (seen > 0).then(|| Reason { colour: Colour::Red, measure, text: format!("{seen} {what}") })
}

fn share(measure: Measure, seen: Option<f64>, bounds: &Bounds, what: &str) -> Option<Reason> {
    let seen = seen?;
    let colour = bounds.colour(seen)?;
    let text = format!("{:.1} % {what}; {:.0} % are fine", seen * 100.0, bounds.green_max * 100.0);
    Some(Reason { colour, measure, text })
}

impl fmt::Display for Measure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::SendLag => "send lag",
            Self::Connections => "connections",
            Self::Unsent => "unsent arrivals",
            Self::Cpu => "own CPU",
            Self::Waited => "wait for a core",
            Self::Steal => "steal time",
            Self::Switches => "involuntary switches",
            Self::Ports => "local ports",
            Self::Descriptors => "descriptors",
            Self::ListenQueue => "listening queue",
            Self::WarmUp => "warm-up",
            Self::SynRetransmits => "SYN retransmits",
            Self::Little => "Little's law",
            Self::Gaps => "gaps between sends",
            Self::NullServer => "null server",
            Self::FewerClients => "one client less",
            Self::Answers => "answers",
            Self::Interrupted => "interrupted",
            Self::Server => "the server's CPU",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict;
    use super::*;

    fn in_control() -> SelfMeasures {
        SelfMeasures {
            send_lag_p99_us: Some(120),
            slo_p99_us: Some(50_000),
            cpu_share: Some(0.4),
            steal_share: Some(0.0),
            switches_per_s: Some(20.0),
            waited_share: Some(0.01),
            syn_retransmit_share: Some(0.0),
            listen_drop_share: Some(0.0),
            little: Some(Little { in_flight: 5.0, rate_per_s: 500.0, time_s: 0.0101, known_to: 0.0 }),
            gaps: Some(Exponentiality { statistic: 0.5, p_max: 1.0 }),
            null_server_factor: Some(3.0),
            ..SelfMeasures::default()
        }
    }

    /// What becomes of a client in control when one measure changes.
    fn check(change: impl FnOnce(&mut SelfMeasures), expected: Colour, measure: Measure) {
        let mut seen = in_control();
        change(&mut seen);
        let found = verdict(&seen);
        let reasons: Vec<_> = found.reasons.iter().map(|reason| (reason.colour, reason.measure)).collect();
        assert_eq!((found.colour, reasons), (expected, vec![(expected, measure)]), "{found:?}");
    }

    #[test]
    fn a_client_in_control_is_green() {
        let found = verdict(&in_control());
        assert_eq!((found.colour, found.reasons), (Colour::Green, vec![]));
        assert_eq!(found.not_measured, [Measure::FewerClients]);
    }

    #[test]
    fn each_measure_can_spoil_it() {
        use Colour::{Amber, Red};
        check(|seen| seen.send_lag_p99_us = Some(1_001), Amber, Measure::SendLag);
        check(|seen| seen.send_lag_p99_us = Some(3_001), Red, Measure::SendLag);
        check(
            |seen| (seen.send_lag_p99_us, seen.slo_p99_us) = (Some(400), Some(2_000)),
            Red,
            Measure::SendLag,
        );
        check(|seen| seen.unsent = 1, Red, Measure::Unsent);
        check(|seen| seen.held_back = 1, Red, Measure::Connections);
        check(|seen| seen.cpu_share = Some(0.8), Amber, Measure::Cpu);
        check(|seen| seen.cpu_share = Some(0.97), Red, Measure::Cpu);
        check(|seen| seen.cpu_share = Some(f64::NAN), Red, Measure::Cpu);
        check(|seen| (seen.cpu_share, seen.unknown) = (None, vec![Measure::Cpu]), Red, Measure::Cpu);
        check(
            |seen| (seen.waited_share, seen.unknown) = (None, vec![Measure::Waited]),
            Amber,
            Measure::Waited,
        );
        check(|seen| seen.unknown = vec![Measure::ListenQueue], Amber, Measure::ListenQueue);
        check(|seen| seen.waited_share = Some(0.06), Amber, Measure::Waited);
        check(|seen| seen.waited_share = Some(0.21), Red, Measure::Waited);
        check(|seen| seen.steal_share = Some(0.02), Amber, Measure::Steal);
        check(|seen| seen.steal_share = Some(0.3), Red, Measure::Steal);
        check(|seen| seen.switches_per_s = Some(5_000.0), Amber, Measure::Switches);
        check(|seen| seen.ports_exhausted = 2, Red, Measure::Ports);
        check(|seen| seen.descriptors_exhausted = 1, Red, Measure::Descriptors);
        check(|seen| seen.held_back_share = 0.02, Amber, Measure::Connections);
        check(|seen| seen.not_open_share = 0.1, Amber, Measure::Connections);
        check(|seen| seen.not_open_share = 0.6, Red, Measure::Connections);
        check(|seen| seen.ports_share = 0.8, Amber, Measure::Ports);
        check(|seen| seen.descriptors_share = 0.8, Amber, Measure::Descriptors);
        check(|seen| seen.listen_drop_share = Some(0.001), Amber, Measure::ListenQueue);
        check(|seen| seen.listen_drop_share = Some(0.02), Red, Measure::ListenQueue);
        check(|seen| seen.warm_up_share = 0.02, Amber, Measure::WarmUp);
        check(|seen| seen.warm_up_share = 0.2, Red, Measure::WarmUp);
        check(|seen| seen.syn_retransmit_share = Some(0.001), Amber, Measure::SynRetransmits);
        let little = |time_s| Some(Little { in_flight: 5.0, rate_per_s: 500.0, time_s, known_to: 0.0 });
        check(|seen| seen.little = little(0.0105), Amber, Measure::Little);
        check(|seen| seen.little = little(0.02), Red, Measure::Little);
        check(|seen| seen.gaps = Some(Exponentiality { statistic: 9.0, p_max: 0.01 }), Amber, Measure::Gaps);
        check(|seen| seen.null_server_factor = Some(1.2), Amber, Measure::NullServer);
        check(|seen| seen.null_server_factor = Some(1.05), Red, Measure::NullServer);
        check(|seen| seen.null_server_factor = Some(0.0), Red, Measure::NullServer);
    }

    #[test]
    fn stolen_time_is_others_doing_and_a_full_core_is_not() {
        let of = |change: fn(&mut SelfMeasures)| {
            let mut seen = in_control();
            change(&mut seen);
            verdict(&seen).is_disturbed()
        };
        assert!(of(|seen| seen.steal_share = Some(0.3)));
        assert!(of(|seen| (seen.steal_share, seen.send_lag_p99_us) = (Some(0.02), Some(9_000))));
        // Nothing is red; nothing was stolen; and what is its own.
        assert!(!of(|seen| seen.steal_share = Some(0.02)));
        assert!(!of(|seen| seen.send_lag_p99_us = Some(9_000)));
        assert!(!of(|seen| (seen.steal_share, seen.cpu_share) = (Some(0.3), Some(0.95))));
        assert!(!of(|seen| (seen.steal_share, seen.ports_exhausted) = (Some(0.3), 1)));
    }

    #[test]
    fn the_worst_reason_comes_first() {
        let found = verdict(&SelfMeasures { cpu_share: Some(0.8), unsent: 7, ..in_control() });
        assert_eq!(found.colour, Colour::Red);
        assert_eq!(found.reasons[0].text, "7 arrivals were due and never sent");
        assert_eq!(
            found.reasons[1].text,
            "80.0 % of its core is what the busiest generator thread took; 75 % are fine"
        );
    }
}
