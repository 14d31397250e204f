//! What went on between two looks at `/metrics`, as figures to show.

use std::collections::BTreeMap;

use pointsman_telemetry::OTHER_RULES;

use super::scrape::{Labels, Scrape, has, label};

/// What stands beside two scrapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Between the two.
    pub(super) seconds: f64,
    /// When the second was, since 1970.
    pub(super) now_s: f64,
}

/// What the switch does.
#[derive(Debug, PartialEq)]
pub(super) struct View {
    pub(super) version: String,
    pub(super) generation: f64,
    pub(super) uptime_s: f64,
    /// What the rates are over.
    pub(super) interval_s: f64,
    /// Requests at servers now.
    pub(super) in_flight: f64,
    /// Of all listeners together.
    pub(super) all: Traffic,
    pub(super) listeners: Vec<(String, Traffic)>,
    /// What went wrong in the interval, what is most often first.
    pub(super) errors: Vec<Fault>,
    /// By pool, in it those first that get nothing.
    pub(super) servers: Vec<ServerRow>,
    /// What is hit most first.
    pub(super) rules: Vec<RuleRow>,
}

/// Classes of status, as the metric names them.
pub(super) const STATUS: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// A figure for each of [`STATUS`].
pub(super) type ByStatus = [f64; STATUS.len()];

/// What passes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Traffic {
    pub(super) requests_per_s: f64,
    pub(super) status_per_s: ByStatus,
    pub(super) durations: Durations,
    pub(super) received_bytes_per_s: f64,
    pub(super) sent_bytes_per_s: f64,
    pub(super) connections_open: f64,
    pub(super) tunnels_open: f64,
    pub(super) requests_waiting: f64,
}

/// How long those requests took that ended in the interval; absent where none did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Durations {
    pub(super) p50_s: Option<f64>,
    pub(super) p99_s: Option<f64>,
}

/// Something that went wrong.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    /// `refusal`, `server` or `handshake`.
    pub(super) of: &'static str,
    /// The reason or kind, as the metric names it.
    pub(super) why: String,
    pub(super) per_s: f64,
}

/// How a rule is hit, and what becomes of that; or those together that have no place of their own, which have rows for their
/// hits besides.
#[derive(Debug, PartialEq)]
pub(super) struct RuleRow {
    pub(super) listener: String,
    pub(super) rule: String,
    pub(super) hits_per_s: f64,
    pub(super) hits: f64,
    /// Absent where the switch counts them together with other rules', or the rule has never decided.
    pub(super) status_per_s: Option<ByStatus>,
    pub(super) durations: Durations,
}

/// How a server does.
#[derive(Debug, PartialEq)]
pub(super) struct ServerRow {
    pub(super) pool: String,
    pub(super) server: String,
    pub(super) state: State,
    pub(super) requests_per_s: f64,
    pub(super) failures_per_s: f64,
    pub(super) retries_per_s: f64,
    pub(super) durations: Durations,
    pub(super) in_flight: f64,
    pub(super) idle_connections: f64,
}

/// What keeps requests from a server, what weighs most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Down,
    Ejected,
    Disabled,
    Draining,
    Up,
    /// The live plan does not name it any more.
    Left,
}

impl RuleRow {
    /// Whether it stands for several, whose hits other rows have, too.
    pub(super) fn is_of_others(&self) -> bool {
        self.rule == OTHER_RULES
    }
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            State::Down => "down",
            State::Ejected => "ejected",
            State::Disabled => "disabled",
            State::Draining => "draining",
            State::Up => "up",
            State::Left => "left",
        }
    }
}

impl View {
    /// What changed from one scrape to the next. A switch that was started between them began at 0.
    pub(super) fn between(before: &Scrape, now: &Scrape, times: Times) -> View {
        let started = now.sum(STARTED, &[]);
        let uptime_s = (times.now_s - started).max(0.0);
        let nothing = Scrape::default();
        let is_same = before.sum(STARTED, &[]) == started;
        let before = if is_same { before } else { &nothing };
        let interval_s = if is_same { times.seconds } else { times.seconds.min(uptime_s) };
        let change = Change { before, now, seconds: interval_s.max(SHORTEST_S) };
        let version = now.family("pointsman_build_info").next();
        let durations = change.durations(DURATIONS, |labels| label(labels, "listener"));
        let listeners = now.family("pointsman_connections_open").map(|(labels, _)| {
            let name = label(labels, "listener");
            let durations = durations.get(name).copied().unwrap_or_default();
            (name.to_owned(), change.traffic(&[("listener", name)], durations))
        });
        let of_all = change.durations(DURATIONS, |_| ()).remove(&()).unwrap_or_default();
        View {
            version: version.map_or("", |(labels, _)| label(labels, "version")).to_owned(),
            generation: now.sum("pointsman_plan_generation", &[]),
            uptime_s,
            interval_s,
            in_flight: now.sum(IN_FLIGHT, &[]),
            all: change.traffic(&[], of_all),
            listeners: listeners.collect(),
            errors: change.errors(),
            servers: change.servers(),
            rules: change.rules(),
        }
    }
}

const STARTED: &str = "pointsman_start_time_seconds";
const IN_FLIGHT: &str = "pointsman_server_in_flight_requests";
const DURATIONS: &str = "pointsman_request_duration_seconds_bucket";
/// No rate is over less.
const SHORTEST_S: f64 = 0.001;

/// Two scrapes of the same process.
struct Change<'a> {
    before: &'a Scrape,
    now: &'a Scrape,
    seconds: f64,
}

impl Change<'_> {
    /// How much a counter rose. One that is lower was forgotten meanwhile and began anew.
    fn rise(&self, name: &str, labels: &Labels, now: f64) -> f64 {
        let before = self.before.at(name, labels).unwrap_or_default();
        if now < before { now } else { now - before }
    }

    fn rise_of_all(&self, name: &str, wanted: &[(&str, &str)]) -> f64 {
        let family = self.now.family(name).filter(|(labels, _)| has(labels, wanted));
        family.fold(0.0, |sum, (labels, now)| sum + self.rise(name, labels, now))
    }

    fn rate(&self, name: &str, wanted: &[(&str, &str)]) -> f64 {
        self.rise_of_all(name, wanted) / self.seconds
    }

    fn traffic(&self, wanted: &[(&str, &str)], durations: Durations) -> Traffic {
        let of_status = |status| {
            let wanted = [wanted, &[("status", status)]].concat();
            self.rate("pointsman_requests_total", &wanted)
        };
        let status_per_s = STATUS.map(of_status);
        Traffic {
            requests_per_s: status_per_s.iter().sum(),
            status_per_s,
            durations,
            received_bytes_per_s: self.rate("pointsman_received_bytes_total", wanted),
            sent_bytes_per_s: self.rate("pointsman_sent_bytes_total", wanted),
            connections_open: self.now.sum("pointsman_connections_open", wanted),
            tunnels_open: self.now.sum("pointsman_tunnels_open", wanted),
            requests_waiting: self.now.sum("pointsman_requests_waiting", wanted),
        }
    }

    /// How long what has the same key took, by the buckets of a name.
    fn durations<'a, K: Ord>(&'a self, name: &str, key: impl Fn(&'a Labels) -> K) -> BTreeMap<K, Durations> {
        // Bounds and how many were no longer.
        let mut by_key: BTreeMap<K, Vec<(f64, f64)>> = BTreeMap::new();
        for (labels, now) in self.now.family(name) {
            let Ok(bound) = label(labels, "le").parse::<f64>() else { continue };
            let rise = self.rise(name, labels, now);
            let buckets = by_key.entry(key(labels)).or_default();
            match buckets.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, count)) => *count += rise,
                None => buckets.push((bound, rise)),
            }
        }
        let durations = by_key.into_iter().map(|(key, mut buckets)| {
            buckets.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            (key, Durations { p50_s: quantile(&buckets, 0.5), p99_s: quantile(&buckets, 0.99) })
        });
        durations.collect()
    }

    fn errors(&self) -> Vec<Fault> {
        let families = [
            ("refusal", "pointsman_refusals_total", "reason"),
            ("server", "pointsman_server_failures_total", "kind"),
            ("handshake", "pointsman_tls_handshake_failures_total", "reason"),
        ];
        let mut faults = Vec::new();
        for (of, name, why) in families {
            let mut by_reason: BTreeMap<&str, f64> = BTreeMap::new();
            for (labels, now) in self.now.family(name) {
                *by_reason.entry(label(labels, why)).or_default() += self.rise(name, labels, now);
            }
            let seen = by_reason.into_iter().filter(|(_, rise)| *rise > 0.0);
            faults.extend(seen.map(|(why, rise)| Fault {
                of,
                why: why.to_owned(),
                per_s: rise / self.seconds,
            }));
        }
        faults.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
        faults
    }

    fn servers(&self) -> Vec<ServerRow> {
        // The kinds of a server's failures stand apart on the page.
        let mut failures: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        let name = "pointsman_server_failures_total";
        for (labels, now) in self.now.family(name) {
            let server = (label(labels, "pool"), label(labels, "server"));
            *failures.entry(server).or_default() += self.rise(name, labels, now);
        }
        let durations = self.durations("pointsman_server_request_duration_seconds_bucket", |labels| {
            (label(labels, "pool"), label(labels, "server"))
        });
        let requests = "pointsman_server_requests_total";
        let rows = self.now.family(requests).map(|(labels, now)| {
            let (pool, server) = (label(labels, "pool"), label(labels, "server"));
            let retries = "pointsman_server_retries_total";
            let retried = self.now.at(retries, labels).unwrap_or_default();
            ServerRow {
                pool: pool.to_owned(),
                server: server.to_owned(),
                state: self.state(labels),
                requests_per_s: self.rise(requests, labels, now) / self.seconds,
                failures_per_s: failures.get(&(pool, server)).copied().unwrap_or_default() / self.seconds,
                retries_per_s: self.rise(retries, labels, retried) / self.seconds,
                durations: durations.get(&(pool, server)).copied().unwrap_or_default(),
                in_flight: self.now.at(IN_FLIGHT, labels).unwrap_or_default(),
                idle_connections: self
                    .now
                    .at("pointsman_server_idle_connections", labels)
                    .unwrap_or_default(),
            }
        });
        let mut rows: Vec<ServerRow> = rows.collect();
        rows.sort_by(|a, b| (&a.pool, a.state, &a.server).cmp(&(&b.pool, b.state, &b.server)));
        rows
    }

    /// What an operator has set comes first: it is so whatever probes say.
    fn state(&self, server: &Labels) -> State {
        let set = |admission: &str| {
            let mut labels = server.clone();
            labels.push(("admission".to_owned(), admission.to_owned()));
            self.now.at("pointsman_server_admission", &labels) == Some(1.0)
        };
        match self.now.at("pointsman_server_up", server) {
            None => State::Left,
            _ if set("disabled") => State::Disabled,
            _ if set("draining") => State::Draining,
            Some(0.0) => State::Down,
            _ if self.now.at("pointsman_server_ejected", server) == Some(1.0) => State::Ejected,
            Some(_) => State::Up,
        }
    }

    fn rules(&self) -> Vec<RuleRow> {
        let key = |labels| (label(labels, "listener"), label(labels, "rule"));
        let durations = self.durations("pointsman_rule_request_duration_seconds_bucket", key);
        let mut statuses: BTreeMap<_, ByStatus> = BTreeMap::new();
        let responses = "pointsman_rule_responses_total";
        for (labels, now) in self.now.family(responses) {
            let Some(class) = STATUS.iter().position(|class| label(labels, "status") == *class) else {
                continue;
            };
            statuses.entry(key(labels)).or_default()[class] +=
                self.rise(responses, labels, now) / self.seconds;
        }
        let name = "pointsman_rule_hits_total";
        let rows = self.now.family(name).map(|(labels, hits)| {
            let (listener, rule) = key(labels);
            RuleRow {
                listener: listener.to_owned(),
                rule: rule.to_owned(),
                hits_per_s: self.rise(name, labels, hits) / self.seconds,
                hits,
                status_per_s: statuses.get(&(listener, rule)).copied(),
                durations: durations.get(&(listener, rule)).copied().unwrap_or_default(),
            }
        });
        let mut rows: Vec<RuleRow> = rows.collect();
        let others = statuses.iter().filter(|((_, rule), _)| *rule == OTHER_RULES);
        let others: Vec<RuleRow> = others
            .map(|((listener, rule), status_per_s)| {
                let of_them =
                    rows.iter().filter(|row| row.listener == *listener && row.status_per_s.is_none());
                let (hits_per_s, hits) =
                    of_them.fold((0.0, 0.0), |(rate, sum), row| (rate + row.hits_per_s, sum + row.hits));
                RuleRow {
                    listener: (*listener).to_owned(),
                    rule: (*rule).to_owned(),
                    hits_per_s,
                    hits,
                    status_per_s: Some(*status_per_s),
                    durations: durations.get(&(*listener, *rule)).copied().unwrap_or_default(),
                }
            })
            .collect();
        rows.extend(others);
        rows.sort_by(|a, b| b.hits_per_s.total_cmp(&a.hits_per_s).then(b.hits.total_cmp(&a.hits)));
        rows
    }
}

/// The value that a part of all did not exceed, as Prometheus' `histogram_quantile` says it: evenly spread within a
/// bucket, and of what is beyond the last bound that bound.
fn quantile(buckets: &[(f64, f64)], part: f64) -> Option<f64> {
    let total = buckets.last()?.1;
    if total <= 0.0 {
        return None;
    }
    let rank = part * total;
    let (mut lower, mut below) = (0.0, 0.0);
    for &(bound, count) in buckets {
        if count >= rank {
            let is_last = bound.is_infinite();
            return Some(if is_last {
                lower
            } else {
                lower + (bound - lower) * (rank - below) / (count - below)
            });
        }
        (lower, below) = (bound, count);
    }
    Some(lower)
}

#[cfg(test)]
mod tests;
