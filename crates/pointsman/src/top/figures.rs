//! A view for programs.

use serde_json::{Map, Value, json};

use super::view::{ByStatus, Durations, STATUS, Traffic, View};

/// One object. Rates are a second's, times seconds; `null` where nothing ended.
pub(super) fn json(view: &View) -> Value {
    let listeners = view.listeners.iter().map(|(name, traffic)| {
        let mut listener = self::traffic(traffic);
        listener.insert("name".to_owned(), json!(name));
        Value::Object(listener)
    });
    let errors = view
        .errors
        .iter()
        .map(|fault| json!({ "of": fault.of, "reason": fault.why, "per_second": fault.per_s }));
    let servers = view.servers.iter().map(|row| {
        json!({
            "pool": row.pool,
            "server": row.server,
            "state": row.state.name(),
            "requests_per_second": row.requests_per_s,
            "failures_per_second": row.failures_per_s,
            "retries_per_second": row.retries_per_s,
            "p50_seconds": row.durations.p50_s,
            "p99_seconds": row.durations.p99_s,
            "in_flight": whole(row.in_flight),
            "idle_connections": whole(row.idle_connections),
        })
    });
    let rules = view.rules.iter().map(|row| {
        json!({
            "listener": row.listener,
            "rule": row.rule,
            "hits_per_second": row.hits_per_s,
            "hits": whole(row.hits),
            "status_per_second": row.status_per_s.map(by_status),
            "p50_seconds": row.durations.p50_s,
            "p99_seconds": row.durations.p99_s,
        })
    });
    json!({
        "version": 1,
        "switch_version": view.version,
        "generation": whole(view.generation),
        "uptime_seconds": view.uptime_s,
        "interval_seconds": view.interval_s,
        "in_flight": whole(view.in_flight),
        "all": self::traffic(&view.all),
        "listeners": listeners.collect::<Vec<_>>(),
        "errors": errors.collect::<Vec<_>>(),
        "servers": servers.collect::<Vec<_>>(),
        "rules": rules.collect::<Vec<_>>(),
    })
}

fn traffic(traffic: &Traffic) -> Map<String, Value> {
    let Durations { p50_s, p99_s } = traffic.durations;
    let figures = [
        ("requests_per_second", json!(traffic.requests_per_s)),
        ("status_per_second", by_status(traffic.status_per_s)),
        ("p50_seconds", json!(p50_s)),
        ("p99_seconds", json!(p99_s)),
        ("received_bytes_per_second", json!(traffic.received_bytes_per_s)),
        ("sent_bytes_per_second", json!(traffic.sent_bytes_per_s)),
        ("connections_open", whole(traffic.connections_open)),
        ("tunnels_open", whole(traffic.tunnels_open)),
        ("requests_waiting", whole(traffic.requests_waiting)),
    ];
    figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn by_status(per_s: ByStatus) -> Value {
    STATUS.iter().zip(per_s).map(|(name, per_s)| ((*name).to_owned(), json!(per_s))).collect()
}

/// A count without a decimal point.
fn whole(count: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts, which were whole before"
    )]
    let count = count as u64;
    json!(count)
}
