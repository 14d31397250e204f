//! What came of the handshakes: distributions of their phases, and what is left when our own part and the wire are taken
//! away.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use pointsman_bench::{Agreements, Negotiated};
use pointsman_measure::statistics::{block_length, bootstrap, quantile_bootstrap};
use pointsman_measure::verdict::{Colour, Measure, Reason, SelfMeasures, Verdict, verdict};
use pointsman_measure::{Interval, Random};

use super::phases::{Moments, Phase};
use super::plan::{Plan, Wanted};
use super::predict::{self, Prediction};
use super::shake::Shaken;
use crate::crypto;
use crate::operation::Signature;
use crate::work::Trouble;

/// All of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was asked for.
    pub plan: Plan,
    /// The server's address.
    pub address: SocketAddr,
    /// When it began, in seconds of Unix.
    pub began_unix_s: u64,
    /// As in the plan.
    pub series: Vec<Measured>,
    /// What the predictions stand on.
    pub primitives: Option<crypto::Outcome>,
    /// Why this is no result.
    pub voids: Vec<Void>,
    /// What the thread that did the handshakes and its machine say of themselves.
    pub watched: SelfMeasures,
    /// Connections that the capture had no room for.
    pub connections_not_captured: u64,
    /// How far it was when somebody wanted no more of it, in words: handshakes that were done by then count.
    pub interrupted: Option<String>,
}

impl Outcome {
    /// What was measured of the client, in the handshakes and in the primitives behind the predictions: the worse of both.
    pub fn self_measures(&self) -> SelfMeasures {
        let of_primitives = self.primitives.as_ref().map(crypto::Outcome::self_measures).unwrap_or_default();
        let worse = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::max);
        let mut unknown = self.watched.unknown.clone();
        unknown
            .extend(of_primitives.unknown.iter().filter(|measure| !self.watched.unknown.contains(measure)));
        SelfMeasures {
            steal_share: worse(self.watched.steal_share, of_primitives.steal_share),
            waited_share: worse(self.watched.waited_share, of_primitives.waited_share),
            switches_per_s: worse(self.watched.switches_per_s, of_primitives.switches_per_s),
            unknown,
            ..self.watched.clone()
        }
    }

    /// Whether the machine let the client be: green, amber or red, with the reasons. At best it is amber where answers were
    /// errors: a handshake is one all the same, and what came behind it is not what was asked for.
    pub fn verdict(&self) -> Verdict {
        let mut all = verdict(&self.self_measures());
        for series in self.series.iter().filter(|series| series.errors() > 0) {
            let (errors, answers) = (series.errors(), series.answers.values().sum::<u64>());
            let text = format!(
                "{}: {errors} of {answers} answers were errors ({}), so their phase is that of errors",
                series.name,
                series.answers_said()
            );
            all.reasons.push(Reason { colour: Colour::Amber, measure: Measure::Answers, text });
            all.colour = all.colour.max(Colour::Amber);
        }
        all.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.colour));
        all
    }
}

/// Why a run is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Void {
    /// A word for machines.
    pub code: &'static str,
    /// A sentence for people.
    pub sentence: String,
}

/// A time in all handshakes of a series, in µs.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The median, with its interval.
    pub median: Interval,
    /// All values, ascending.
    pub sorted: Vec<f64>,
}

/// A series.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What it was to be.
    pub name: String,
    /// What was agreed on, and how often.
    pub negotiated: Vec<(Negotiated, u64)>,
    /// Handshakes that failed.
    pub failed: u64,
    /// How often the request behind the handshake was answered with which status; nothing stands for what is no HTTP/1.
    pub answers: BTreeMap<Option<u16>, u64>,
    /// Bytes that the server sent up to its Finished, in the last handshake.
    pub flight_bytes: u64,
    /// The key of the server's certificate, if it is of a kind that is measured.
    pub key: Option<Signature>,
    /// Certificates that the server sent.
    pub certificates: usize,
    /// Each phase that there was: by the wall clock, and the median of what we computed in it, in µs.
    pub phases: Vec<(Phase, Distribution, f64)>,
    /// From when TCP was connected until a request could be sent.
    pub handshake: Option<Distribution>,
    /// One round trip: TCP's handshake, without what our side computed for it.
    pub round_trip: Option<Distribution>,
    /// Round trips in which the handshake waits for the server.
    pub round_trips: u32,
    /// What is left for the server: what was waited, less the round trips. Nothing where that is less than nothing: its work
    /// and the wire cannot be told apart.
    pub server: Option<Distribution>,
    /// What we computed ourselves.
    pub client: Option<Distribution>,
    /// What the primitives say of the server.
    pub servers: Option<Prediction>,
    /// And of us.
    pub clients: Option<Prediction>,
}

/// The median of fewer values than this is bounded by none of them at 95 %.
const BOUNDED_FROM: usize = 6;

/// Why a server's share is not told.
pub const SERVER_UNKNOWN: &str = "less was waited than round trips take, as where client and server have one core, or the wire is not even";

/// A series while it is measured.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    moments: Vec<Moments>,
    agreements: Agreements,
    pub(crate) negotiated: Vec<(Negotiated, u64)>,
    pub(crate) failed: u64,
    answers: BTreeMap<Option<u16>, u64>,
    pub(crate) first_failure: Option<Trouble>,
    flight_bytes: u64,
    certificates: usize,
    key: Option<Signature>,
}

impl Seen {
    pub(crate) fn take(&mut self, shaken: Shaken) {
        self.moments.push(shaken.moments);
        *self.answers.entry(shaken.status).or_default() += 1;
        self.agreements.count(shaken.negotiated);
        self.negotiated = self.agreements.clone().into_sorted();
        self.flight_bytes = shaken.flight_bytes;
        // A resumed handshake shows none, and remembers them.
        if let Some(certificate) = shaken.certificates.first() {
            self.key = predict::key(certificate);
            self.certificates = shaken.certificates.len();
        }
    }

    pub(crate) fn failed(&mut self, trouble: Trouble) {
        self.failed += 1;
        self.first_failure.get_or_insert(trouble);
    }
}

impl Measured {
    pub(crate) fn of(wanted: &Wanted, seen: Seen, random: &mut Random) -> Measured {
        let moments = &seen.moments;
        let mut each = |of: &dyn Fn(&Moments) -> Option<f64>| {
            let values: Vec<f64> = moments.iter().filter_map(of).collect();
            Distribution::of(&values, random)
        };
        let us = |ns: u64| ns as f64 / 1e3;
        let phases = Phase::ALL.into_iter().filter_map(|phase| {
            let wall = each(&|moments| moments.span(phase).map(|span| us(span.wall_ns)))?;
            let own = each(&|moments| moments.span(phase).map(|span| us(span.own_ns)))?;
            Some((phase, wall, own.median.estimate))
        });
        let phases = phases.collect();
        let trip = |moments: &Moments| moments.span(Phase::Connect).map(|span| us(span.waited_ns()));
        let round_trip = each(&trip);
        let client = each(&|moments| Some(us(moments.own_ns())));
        let handshake = each(&|moments| Some(us(moments.handshake().wall_ns)));
        let round_trips = 1
            + u32::from(moments.iter().any(|moments| moments.finished_read.is_some()))
            + u32::from(
                seen.negotiated.iter().any(|(agreed, _)| agreed.kind == pointsman_bench::Kind::Retried),
            );
        let pairs: Vec<(f64, f64)> =
            moments.iter().map(|moments| (us(moments.waited_ns()), trip(moments).unwrap_or(0.0))).collect();
        let server = Distribution::beyond(&pairs, f64::from(round_trips), random)
            .filter(|server| server.median.estimate >= 0.0);
        Measured {
            name: wanted.name(),
            failed: seen.failed,
            answers: seen.answers,
            flight_bytes: seen.flight_bytes,
            key: seen.key,
            certificates: seen.certificates,
            phases,
            handshake,
            round_trips,
            server,
            client,
            round_trip,
            servers: None,
            clients: None,
            negotiated: seen.negotiated,
        }
    }

    /// Answers of no status of success.
    pub fn not_2xx(&self) -> u64 {
        self.count_of(|status| !status.is_some_and(|status| (200..300).contains(&status)))
    }

    /// Answers of 400 and more, as `load` counts failures, and what is no HTTP/1.
    pub fn errors(&self) -> u64 {
        self.count_of(|status| status.is_none_or(|status| status >= 400))
    }

    fn count_of(&self, is_one: impl Fn(Option<u16>) -> bool) -> u64 {
        self.answers.iter().filter(|(status, _)| is_one(**status)).map(|(_, count)| count).sum()
    }

    /// How often which status: `20 × 200, 1 × 503`.
    pub fn answers_said(&self) -> String {
        let said = |(status, count): (&Option<u16>, &u64)| match status {
            Some(status) => format!("{count} × {status}"),
            None => format!("{count} × no HTTP/1"),
        };
        self.answers.iter().map(said).collect::<Vec<_>>().join(", ")
    }

    /// Whether there were handshakes, and what the server took of them cannot be told.
    pub fn server_is_unknown(&self) -> bool {
        self.handshake.is_some() && self.server.is_none()
    }

    /// What the server took and the prediction does not explain, in µs; nothing without both.
    pub fn unexplained(&self) -> Option<Interval> {
        let predicted = self.servers.as_ref().map(Prediction::us)?;
        Some(self.server.as_ref()?.median.minus(predicted))
    }
}

impl Distribution {
    /// Handshakes follow each other, so blocks of them are drawn for the interval. Nothing of no values.
    fn of(values: &[f64], random: &mut Random) -> Option<Distribution> {
        let median = quantile_bootstrap(values, 0.5, block_length(values.len()), random)?;
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Distribution { median, sorted })
    }

    /// What was waited, less so many round trips as they are in the median: of pairs of both, from the same handshakes. The
    /// round trip is as uncertain as what was waited, so both are drawn together for the interval.
    fn beyond(pairs: &[(f64, f64)], round_trips: f64, random: &mut Random) -> Option<Distribution> {
        let (mut waited, mut trips) = (Vec::new(), Vec::new());
        let median = bootstrap(pairs, block_length(pairs.len()), random, |pairs| {
            waited.clear();
            trips.clear();
            waited.extend(pairs.iter().map(|(waited, _)| *waited));
            trips.extend(pairs.iter().map(|(_, trip)| *trip));
            middle(&mut waited) - round_trips * middle(&mut trips)
        })?;
        let mut trips: Vec<f64> = pairs.iter().map(|(_, trip)| *trip).collect();
        let wire = round_trips * middle(&mut trips);
        let mut sorted: Vec<f64> = pairs.iter().map(|(waited, _)| waited - wire).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Distribution { median, sorted })
    }

    /// Where the median is; nothing where there are too few values to say so.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.is_bounded().then_some((self.median.low, self.median.high))
    }

    /// Whether an interval of it says anything.
    pub fn is_bounded(&self) -> bool {
        self.sorted.len() >= BOUNDED_FROM
    }

    /// The least value that so much of them, from 0 to 1, do not exceed.
    pub fn quantile(&self, quantile: f64) -> f64 {
        let rank = (self.sorted.len() as f64 * quantile).ceil() as usize;
        self.sorted.get(rank.saturating_sub(1).min(self.sorted.len() - 1)).copied().unwrap_or(0.0)
    }
}

/// The median, as a value that was seen; 0 of nothing.
fn middle(values: &mut [f64]) -> f64 {
    let rank = values.len().div_ceil(2).saturating_sub(1);
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(rank, f64::total_cmp).1 }
}

#[cfg(test)]
mod tests {
    use super::super::phases::Stamp;
    use super::super::plan::KindWanted;
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let times = Distribution::of(&values, &mut Random::new(1)).expect("values");
        let few = |count: usize| Distribution::of(&values[..count], &mut Random::new(1)).expect("values");
        assert!(times.interval().is_some() && few(6).interval().is_some());
        assert!([1, 3, 5].iter().all(|count| few(*count).interval().is_none()), "there are too few");
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|quantile| times.quantile(quantile)), [1.0, 50.0, 99.0, 100.0]);
        assert!(times.median.covers(50.0));
        assert_eq!(Distribution::of(&[], &mut Random::new(1)), None);
    }

    #[test]
    fn no_share_is_less_than_nothing() {
        let at = |us: u64| Stamp { wall_ns: us * 1_000, cpu_ns: 0 };
        let wanted = Wanted { kind: KindWanted::Full, offer: pointsman_tls::Offer::default() };
        for (connected, is_unknown) in [(10, false), (400, true)] {
            let moments = Moments {
                connected: at(connected),
                hello_sent: at(connected + 1),
                first_byte: at(connected + 90),
                flight_read: at(connected + 91),
                finished_sent: at(connected + 92),
                ..Moments::default()
            };
            let seen = Seen { moments: vec![moments; 20], ..Seen::default() };
            let measured = Measured::of(&wanted, seen, &mut Random::new(1));
            assert_eq!(measured.server_is_unknown(), is_unknown, "{:?}", measured.server);
        }
    }

    #[test]
    fn the_servers_share_is_as_uncertain_as_the_round_trip() {
        let mut random = Random::new(3);
        // What was waited is always the same; only the round trips differ.
        let pairs: Vec<(f64, f64)> = (0..200).map(|_| (500.0, 100.0 + 10.0 * random.normal())).collect();
        let share = Distribution::beyond(&pairs, 2.0, &mut random).expect("values");
        assert!(share.median.covers(300.0), "{:?}", share.median);
        assert!(share.median.high - share.median.low > 1.0, "{:?}", share.median);
        assert_eq!((share.quantile(0.5), share.sorted.len()), (share.median.estimate, 200));
        assert_eq!(Distribution::beyond(&[], 1.0, &mut random), None);
    }
}
