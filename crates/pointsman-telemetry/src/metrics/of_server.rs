//! Families of servers: what was counted of them, and how they stand.

use std::sync::Arc;

use super::ServerNow;
use super::of_outcomes::{Row, render_durations, render_statuses};
use crate::event::{Hedge, ServerFailure};
use crate::exposition::{Exposition, Kind, Label};
use crate::family::{ServerMetrics, ServerSlot};
use crate::slots::Counter;

pub(super) fn render_servers(
    page: &mut Exposition<'_>,
    servers: &[Arc<ServerMetrics>],
    now: &dyn Fn(&str, &str) -> Option<ServerNow>,
) {
    let simple = |page: &mut Exposition<'_>, name: &str, help: &str, counter: fn(&ServerSlot) -> &Counter| {
        page.family(name, Kind::Counter, help);
        for server in servers {
            page.sample(name, &server_labels(server), server.slots.sum(counter));
        }
    };
    let name = "pointsman_server_requests_total";
    page.family(name, Kind::Counter, "Requests that a server was the last to get.");
    let rows: Vec<Row<'_>> = servers
        .iter()
        .map(|server| Row { labels: server_labels(server).into(), total: server.total() })
        .collect();
    for Row { labels, total } in &rows {
        page.sample(name, labels, total.requests());
    }
    let (name, help) =
        ("pointsman_server_responses_total", "What became of those requests, by class of the status sent.");
    render_statuses(page, (name, help), &rows);
    let (name, help) = (
        "pointsman_server_request_duration_seconds",
        "From the first byte of those requests to the end of the answer.",
    );
    render_durations(page, (name, help), &rows);
    simple(page, "pointsman_server_retries_total", "Attempts at a server after a failed one.", |slot| {
        &slot.retries
    });
    let (name, help) = (
        "pointsman_server_retries_over_budget_total",
        "Failed attempts at a server that were the last because the pool had no further one left.",
    );
    simple(page, name, help, |slot| &slot.retries_refused);
    let (name, help) =
        ("pointsman_hedges_total", "Attempts at a server beside a slow one, by what became of them.");
    let outcomes = Hedge::ALL.map(|(_, label)| label);
    render_kinds(page, servers, (name, help), ("outcome", &outcomes), |slot| &slot.hedges);
    let (name, help) = ("pointsman_server_failures_total", "Failed attempts at a server, by kind.");
    let kinds = ServerFailure::ALL.map(|(_, label)| label);
    render_kinds(page, servers, (name, help), ("kind", &kinds), |slot| &slot.failures);
    render_servers_now(page, servers, now);
    let name = "pointsman_server_idle_connections";
    page.family(name, Kind::Gauge, "Connections to a server kept for later use.");
    for server in servers {
        page.sample(name, &server_labels(server), server.idle_connections());
    }
}

/// What is counted of servers by kinds; `label` is what tells those apart, and what it says of each.
fn render_kinds(
    page: &mut Exposition<'_>,
    servers: &[Arc<ServerMetrics>],
    (name, help): (&str, &str),
    (label, kinds): (&str, &[&str]),
    counters: fn(&ServerSlot) -> &[Counter],
) {
    page.family(name, Kind::Counter, help);
    for server in servers {
        for (kind, said) in kinds.iter().enumerate() {
            let [pool, server_name] = server_labels(server);
            let count = server.slots.sum(|slot| &counters(slot)[kind]);
            page.sample(name, &[pool, server_name, (label, said)], count);
        }
    }
}

fn render_servers_now(
    page: &mut Exposition<'_>,
    servers: &[Arc<ServerMetrics>],
    now: &dyn Fn(&str, &str) -> Option<ServerNow>,
) {
    let found =
        servers.iter().filter_map(|server| now(server.pool(), server.name()).map(|now| (server, now)));
    let found: Vec<_> = found.collect();
    let name = "pointsman_server_in_flight_requests";
    page.family(name, Kind::Gauge, "Requests at a server now.");
    for (server, now) in &found {
        page.sample(name, &server_labels(server), now.in_flight);
    }
    let standings =
        || found.iter().filter_map(|(server, now)| now.standing.as_ref().map(|now| (server, now)));
    let name = "pointsman_server_up";
    page.family(name, Kind::Gauge, "Whether a server is up, as far as probes say.");
    for (server, now) in standings() {
        page.sample(name, &server_labels(server), u64::from(now.is_up));
    }
    let name = "pointsman_server_ejected";
    page.family(
        name,
        Kind::Gauge,
        "Whether a server gets nothing for a while because requests failed there.",
    );
    for (server, now) in standings() {
        page.sample(name, &server_labels(server), u64::from(now.is_ejected));
    }
    let name = "pointsman_server_ejections_total";
    page.family(name, Kind::Counter, "How often a server was ejected.");
    for (server, now) in standings() {
        page.sample(name, &server_labels(server), now.ejections);
    }
    let name = "pointsman_server_admission";
    page.family(name, Kind::Gauge, "What was set by hand of a server.");
    for (server, now) in standings() {
        let [pool, server] = server_labels(server);
        page.sample(name, &[pool, server, ("admission", now.admission)], 1u64);
    }
    let name = "pointsman_server_probes_total";
    page.family(name, Kind::Counter, "Probes of a server, by what became of them.");
    for (server, now) in standings() {
        for (outcome, count) in &now.probes {
            let [pool, server] = server_labels(server);
            page.sample(name, &[pool, server, ("outcome", outcome)], *count);
        }
    }
}

fn server_labels(server: &ServerMetrics) -> [Label<'_>; 2] {
    [("pool", server.pool()), ("server", server.name())]
}
