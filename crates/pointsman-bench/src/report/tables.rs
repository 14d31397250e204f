//! What is listed of an outcome.

use pointsman_measure::table::{Cell, Table};

use super::ms;
use crate::negotiated::Negotiated;
use crate::outcome::Outcome;
use crate::outcome::ThreadUse;
use crate::record::ErrorKind;

pub(super) fn tables(outcome: &Outcome) -> Vec<Table> {
    let all = [
        times(outcome),
        ends(outcome),
        agreed(AGREED, &outcome.negotiated),
        agents(outcome),
        lost(outcome),
        threads(outcome),
        limits(outcome),
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

pub(crate) fn table(title: &str, columns: &[&str], rows: Vec<Vec<Cell>>) -> Table {
    Table {
        title: title.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        rows,
    }
}

fn times(outcome: &Outcome) -> Table {
    let record = &outcome.record;
    let rows = [
        ("response, from when it was due", &record.response),
        ("service, from when it was begun", &record.service),
        ("first byte, from when it was sent", &record.first_byte),
        ("TCP connect", &record.connect),
        ("TLS handshake", &record.handshake),
        ("send lag of the generator", &record.lag),
        ("held back, for a connection", &record.held),
    ];
    let rows = rows.into_iter().filter(|(_, times)| !times.is_empty()).map(|(name, times)| {
        let at = |quantile| Cell::Number(ms(times.value_at_quantile(quantile) as f64));
        vec![
            name.into(),
            (times.len() as f64).into(),
            Cell::Number((ms(times.mean()) * 1e6).round() / 1e6),
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            at(1.0),
        ]
    });
    table("Times, in ms", &["time", "count", "mean", "p50", "p90", "p99", "p99.9", "maximum"], rows.collect())
}

/// What became of the requests that were due.
fn ends(outcome: &Outcome) -> Table {
    let record = &outcome.record;
    let mut counts = vec![
        ("due".to_owned(), record.due),
        ("begun".to_owned(), record.begun),
        ("unsent".to_owned(), record.unsent),
        ("held back".to_owned(), record.held_back),
        ("of the warm-up, without an answer when it ended".to_owned(), record.left_of_warm_up),
        ("answered".to_owned(), record.answered),
    ];
    let statuses = record.statuses.iter().enumerate().filter(|(_, count)| **count > 0);
    counts.extend(statuses.map(|(status, count)| (format!("answered with {status}"), *count)));
    let failed = ErrorKind::ALL.into_iter().zip(record.errors).filter(|(_, count)| *count > 0);
    counts.extend(failed.map(|(kind, count)| (format!("failed: {}", kind.name()), count)));
    let rows = counts.into_iter().map(|(name, count)| vec![Cell::Text(name), (count as f64).into()]);
    table("What became of requests", &["", "requests"], rows.collect())
}

/// The usual title of [`agreed`].
pub(crate) const AGREED: &str = "What handshakes agreed on, in the whole run";

/// What handshakes agreed on. No rows: there were none.
pub(crate) fn agreed(title: &str, negotiated: &[(Negotiated, u64)]) -> Table {
    let rows = negotiated.iter().map(|(agreed, count)| {
        vec![
            (*count as f64).into(),
            agreed.kind.name().into(),
            format!("TLS {}", agreed.version).as_str().into(),
            agreed.suite.into(),
            agreed.group.into(),
            agreed.protocol.into(),
        ]
    });
    table(title, &["handshakes", "kind", "version", "suite", "group", "protocol"], rows.collect())
}

fn threads(outcome: &Outcome) -> Table {
    let rows = outcome.generator.threads.iter().enumerate().map(|(at, thread)| {
        let percent = |share: f64| Cell::Number((share * 1000.0).round() / 10.0);
        let of = |cell: &dyn Fn(&ThreadUse) -> Cell| thread.as_ref().map_or(Cell::Empty, cell);
        vec![
            ((at + 1) as f64).into(),
            of(&|thread| percent(thread.cpu)),
            of(&|thread| percent(thread.spun)),
            of(&|thread| thread.waited.map_or(Cell::Empty, percent)),
            of(&|thread| (thread.involuntary_switches as f64).into()),
        ]
    });
    table(
        "Threads of the generator",
        &["thread", "CPU, %", "of it spun, %", "waited for a core, %", "interruptions"],
        rows.collect(),
    )
}

/// What it took of what it may have, and what listening sockets had no room for.
fn limits(outcome: &Outcome) -> Table {
    let (record, generator) = (&outcome.record, &outcome.generator);
    let of_a_pair = outcome.plan.sources.count().max(1) * outcome.addresses.len().max(1) as u64;
    let ports =
        generator.ports.map_or(Cell::Empty, |ports| Cell::Number(f64::from(ports) * of_a_pair as f64));
    let row = |name: &str, most: Option<u64>, limit: Cell| {
        vec![name.into(), most.map_or(Cell::Empty, |most| (most as f64).into()), limit]
    };
    let mut rows = vec![
        row("connections", Some(record.connections_most), (outcome.plan.connections_max as f64).into()),
        row("descriptors", generator.descriptors_most, (generator.descriptors_max as f64).into()),
        row("local ports", generator.ports_most, ports),
    ];
    if record.first_wanted > 0 {
        let wanted = (record.first_wanted as f64).into();
        rows.push(row("connections open when the load began", Some(record.first_open), wanted));
    }
    if let Some(listening) = generator.listening {
        rows.push(row(
            "connections for which a listening queue was full",
            Some(listening.overflows),
            Cell::Empty,
        ));
        rows.push(row("connections that listening sockets dropped", Some(listening.drops), Cell::Empty));
    }
    table("Limits", &["", "at most", "limit"], rows)
}

/// Agents that were lost. No rows: there were none.
fn lost(outcome: &Outcome) -> Table {
    let rows = outcome.lost.iter().map(|lost| {
        vec![
            lost.name.as_str().into(),
            Cell::Number((lost.after_s * 10.0).round() / 10.0),
            lost.why.as_str().into(),
            lost.told_s.into(),
            (lost.answered as f64).into(),
            (lost.failed as f64).into(),
        ]
    });
    let columns =
        ["agent", "lost after, s", "how", "told of, s, warm-up and all", "answered in it", "failed in it"];
    table("Agents that were lost", &columns, rows.collect())
}

/// What each agent's part came to: times are those of its own requests. No rows: there were none.
fn agents(outcome: &Outcome) -> Table {
    let rows = outcome.agents.iter().map(|agent| {
        let (own, record) = (&agent.outcome, &agent.outcome.record);
        let at = |quantile| match record.response.is_empty() {
            true => "-".into(),
            false => Cell::Number(ms(record.response.value_at_quantile(quantile) as f64)),
        };
        vec![
            agent.name.as_str().into(),
            own.machine.host.as_str().into(),
            own.verdict().colour.to_string().as_str().into(),
            own.rate().into(),
            (record.due as f64).into(),
            (record.failed() as f64).into(),
            (record.unsent as f64).into(),
            at(0.5),
            at(0.99),
            Cell::Number((agent.clock.known_to_s() * 1e6).round() / 1e3),
        ]
    });
    let columns = [
        "agent",
        "machine",
        "in control",
        "answered, 1/s",
        "due",
        "failed",
        "unsent",
        "p50, ms",
        "p99, ms",
        "clock known to, ms",
    ];
    table("Agents", &columns, rows.collect())
}
