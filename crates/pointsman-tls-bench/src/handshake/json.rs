//! What came of the handshakes as JSON.

use pointsman_bench::Negotiated;
use serde_json::{Map, Value, json};

use super::outcome::{Distribution, Measured, Outcome, SERVER_UNKNOWN};
use super::predict::Prediction;
use crate::crypto_json::interval;

impl Outcome {
    /// All of it; times are in µs, and all values of a distribution stand there in ascending order.
    pub fn json(&self) -> Value {
        let plan = &self.plan;
        let series: Vec<Value> = self.series.iter().map(measured).collect();
        json!({
            "version": 1,
            "kind": "handshake",
            "began_unix_s": self.began_unix_s,
            "settings": {
                "url": plan.url.to_string(),
                "handshakes": plan.count,
                "series": plan.series.iter().map(|wanted| json!({
                    "kind": wanted.kind.name(),
                    "version": wanted.offer.version.map(|version| version.name()),
                    "suites": wanted.offer.suites, "groups": wanted.offer.groups,
                })).collect::<Vec<_>>(),
                "ca": plan.ca, "verify": plan.verify, "server_name": plan.server_name,
                "certificate": plan.certificate.as_ref().map(|files| &files.certificate),
                "timeout_ms": plan.timeout.as_millis() as u64,
                "close": match plan.close {
                    pointsman_bench::Close::Fin => "fin",
                    pointsman_bench::Close::Reset => "reset",
                },
                "predicted_with": plan.predicted_with.as_ref().map(crate::Library::name),
                "key_log": plan.key_log, "capture": plan.capture, "seed": plan.seed,
            },
            "address": self.address.to_string(),
            "series": series,
            "primitives": self.primitives.as_ref().map(crate::crypto::Outcome::json),
            "watched": {
                "stolen_share": self.watched.steal_share, "waited_share": self.watched.waited_share,
                "switches_per_second": self.watched.switches_per_s,
            },
            "connections_not_captured": self.connections_not_captured,
            "voids": self.voids.iter()
                .map(|void| json!({"code": void.code, "sentence": void.sentence})).collect::<Vec<_>>(),
        })
    }
}

fn measured(series: &Measured) -> Value {
    let phases: Vec<Value> = series
        .phases
        .iter()
        .map(|(phase, times, own)| {
            let mut value = distribution(times);
            value["phase"] = json!(phase.name());
            value["own_median"] = json!(own);
            value["waits_for_the_server"] = json!(phase.is_servers());
            value
        })
        .collect();
    let negotiated = |(agreed, count): &(Negotiated, u64)| {
        json!({
            "kind": agreed.kind.name(), "version": agreed.version, "suite": agreed.suite,
            "group": agreed.group, "protocol": agreed.protocol, "count": count,
        })
    };
    let each = |times: &Option<Distribution>| times.as_ref().map(distribution);
    let statuses: Map<String, Value> = series
        .answers
        .iter()
        .map(|(status, count)| (status.map_or("none".to_owned(), |status| status.to_string()), json!(count)))
        .collect();
    json!({
        "name": series.name,
        "negotiated": series.negotiated.iter().map(negotiated).collect::<Vec<_>>(),
        "failed": series.failed,
        "statuses": statuses, "answers_not_2xx": series.not_2xx(),
        "server_flight_bytes": series.flight_bytes,
        "server_certificates": series.certificates,
        "server_key": series.key.map(crate::Signature::name),
        "phases_us": phases,
        "handshake_us": each(&series.handshake),
        "round_trip_us": each(&series.round_trip),
        "round_trips": series.round_trips,
        "server_us": each(&series.server),
        "server_unknown": series.server_is_unknown().then_some(SERVER_UNKNOWN),
        "client_us": each(&series.client),
        "predicted_server": series.servers.as_ref().map(prediction),
        "predicted_client": series.clients.as_ref().map(prediction),
        "unexplained_us": series.unexplained().as_ref().map(|rest| {
            of_median(series.server.as_ref().is_some_and(Distribution::is_bounded), rest)
        }),
    })
}

fn distribution(times: &Distribution) -> Value {
    json!({
        "median": of_median(times.is_bounded(), &times.median),
        "p90": times.quantile(0.9), "p99": times.quantile(0.99), "max": times.quantile(1.0),
        "values": times.sorted,
    })
}

/// Of too few values the range is not known.
fn of_median(is_bounded: bool, median: &pointsman_measure::statistics::Interval) -> Value {
    let mut value = interval(median);
    if !is_bounded {
        (value["low"], value["high"]) = (Value::Null, Value::Null);
    }
    value
}

fn prediction(prediction: &Prediction) -> Value {
    let steps = prediction.steps.iter();
    let steps = steps
        .map(|step| json!({"operation": step.operation.to_string(), "us": step.us.map(|us| us.estimate)}));
    json!({
        "us": prediction.us().estimate, "interval_us": interval(&prediction.us()),
        "whole": prediction.is_whole(),
        "missing": prediction.missing,
        "steps": steps.collect::<Vec<_>>(),
    })
}
