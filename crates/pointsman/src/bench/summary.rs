//! What came of a run, for people.

use std::fmt::Write as _;

use pointsman_bench::{ErrorKind, Kind, Load, Outcome, Times};

use super::judged::judged;
use crate::units;

/// One time after another, with the same percentiles.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// A few lines.
pub(super) fn summary(outcome: &Outcome) -> String {
    let mut text = String::new();
    let (Ok(()) | Err(_)) = write(&mut text, outcome);
    text
}

fn write(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let record = &outcome.record;
    let demand = match outcome.plan.load {
        Load::Open { rate, .. } if outcome.plan.session.is_some() => {
            format!("{} sessions/s demanded", units::rate(rate))
        }
        Load::Open { rate, .. } => format!("{} requests/s demanded", units::rate(rate)),
        Load::Closed { clients } if outcome.plan.session.is_some() => format!("{clients} users"),
        Load::Closed { clients } => format!("{clients} clients"),
    };
    writeln!(text, "{}: {demand}, {:.1} s", outcome.plan.targets[0].url, outcome.seconds)?;
    writeln!(
        text,
        "  {} requests/s answered, {}; {} due, {} answered, {} failed, {} unsent, {} held back",
        units::rate(outcome.rate()),
        units::bytes_per_s(record.bytes_in_time() as f64 / outcome.seconds),
        record.due,
        record.answered,
        record.failed(),
        record.unsent,
        record.held_back,
    )?;
    // Those that failed: an answer that was expected is none of them, whatever its status.
    for kind in ErrorKind::ALL.into_iter().filter(|kind| record.errors_of(*kind) > 0) {
        let statuses =
            if kind == ErrorKind::Status { statuses(&record.failed_statuses) } else { String::new() };
        writeln!(text, "  failed: {} {}{statuses}", record.errors_of(kind), kind.name())?;
    }
    shares(text, outcome)?;
    handshakes(text, outcome)?;
    writeln!(
        text,
        "\n  {:<12}{:>10}{}",
        "",
        "mean",
        QUANTILES.map(|(name, _)| format!("{name:>10}")).concat()
    )?;
    let rows = [
        ("response", &record.response),
        ("service", &record.service),
        ("first byte", &record.first_byte),
        ("connect", &record.connect),
        ("handshake", &record.handshake),
        ("send lag", &record.lag),
        ("held back", &record.held),
    ];
    let time = |ns: f64| units::duration(Some(ns / 1e9));
    for (name, times) in rows.into_iter().filter(|(_, times)| !times.is_empty()) {
        let cells =
            QUANTILES.map(|(_, quantile)| format!("{:>10}", time(times.value_at_quantile(quantile) as f64)));
        writeln!(text, "  {name:<12}{:>10}{}", time(times.mean()), cells.concat())?;
    }
    sessions(text, outcome)?;
    writeln!(text)?;
    generator(text, outcome)?;
    agents(text, outcome)?;
    text.push_str(&judged(&outcome.verdict()));
    for void in &outcome.voids {
        writeln!(text, "  VOID, not a result: {}", void.sentence)?;
    }
    Ok(())
}

/// Each status, and how often it came: ` (3 × 404, 1 × 503)`.
fn statuses(counts: &[u64]) -> String {
    let came = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let said: Vec<String> = came.map(|(status, count)| format!("{count} × {status}")).collect();
    if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) }
}

/// What became of users, and of each step.
fn sessions(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let (Some(record), Some(script)) = (&outcome.record.sessions, &outcome.plan.session) else {
        return Ok(());
    };
    writeln!(
        text,
        "\n  {} sessions/s ended; {} due, {} ended, {} failed, {} unsent, {} under way at the end",
        units::rate(record.ended_per_s(outcome.seconds)),
        record.due,
        record.ended,
        record.failed,
        record.unsent,
        record.cut(),
    )?;
    let names = QUANTILES.map(|(name, _)| format!("{name:>10}")).concat();
    writeln!(text, "  {:<24}{:>10}{names}", "", "mean")?;
    let time = |ns: f64| units::duration(Some(ns / 1e9));
    let mut row = |name: &str, times: &Times, end: &str| {
        let cells = match times.is_empty() {
            true => String::new(),
            false => QUANTILES
                .map(|(_, quantile)| format!("{:>10}", time(times.value_at_quantile(quantile) as f64)))
                .concat(),
        };
        let mean = if times.is_empty() { "none".to_owned() } else { time(times.mean()) };
        writeln!(text, "  {name:<24}{mean:>10}{cells}{end}")
    };
    row("whole session", &record.whole, "")?;
    row("of it waiting", &record.waited, "")?;
    for (number, (step, came)) in script.steps.iter().zip(&record.steps).enumerate() {
        let name: String = format!("{} {}", number + 1, step.name).chars().take(23).collect();
        row(&name, &came.response, &format!("   {} answered, {} failed", came.answered, came.failed))?;
    }
    Ok(())
}

/// Those that were asked for.
fn shares(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let said: Vec<String> = outcome
        .shares()
        .iter()
        .filter_map(|share| {
            let asked = percent(share.asked?);
            Some(format!("{} {} ({asked} asked)", percent(share.came_out), share.name))
        })
        .collect();
    if !said.is_empty() {
        writeln!(text, "  of these: {}", said.join(", "))?;
    }
    match outcome.record.sent_again {
        0 => Ok(()),
        count => writeln!(text, "  {count} sent again behind the end of a connection"),
    }
}

fn handshakes(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let record = &outcome.record;
    if outcome.negotiated.is_empty() {
        return Ok(());
    }
    let kinds = Kind::ALL.into_iter().zip(record.handshakes).filter(|(_, count)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    writeln!(
        text,
        "  {} handshakes/s ({})",
        units::rate(outcome.handshake_rate()),
        if kinds.is_empty() { "none in the measured time".to_owned() } else { kinds.join(", ") },
    )?;
    for (agreed, count) in &outcome.negotiated {
        let group = if agreed.group.is_empty() { "no group" } else { agreed.group };
        let protocol = if agreed.protocol.is_empty() { "no ALPN" } else { agreed.protocol };
        let kind = agreed.kind.name();
        writeln!(text, "  {count} × TLS {}, {}, {group}, {protocol}, {kind}", agreed.version, agreed.suite)?;
    }
    Ok(())
}

fn generator(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let generator = &outcome.generator;
    let threads: Vec<String> = generator
        .threads
        .iter()
        .map(|thread| {
            let Some(thread) = thread else { return "unknown".to_owned() };
            let waited =
                thread.waited.map_or("unknown".to_owned(), |share| format!("{:.1} %", share * 100.0));
            format!(
                "{:.0} % (and {:.0} % spun, waited for a core {waited}, {} switches)",
                thread.work() * 100.0,
                thread.spun * 100.0,
                thread.involuntary_switches
            )
        })
        .collect();
    let stolen = generator.stolen.map_or("unknown".to_owned(), |share| format!("{:.1} %", share * 100.0));
    writeln!(text, "  generator: CPU {}; stolen {stolen}", threads.join(", "))?;
    writeln!(
        text,
        "  under way: {:.2} counted, {:.2} by rate × time (known to {:.2}; {:.1} % apart beyond that)",
        generator.little.under_way,
        generator.little.rate_times_time,
        generator.little.known_to,
        generator.little.gap() * 100.0,
    )?;
    if let Some(ceiling) = outcome.ceiling {
        writeln!(text, "  before null servers it reaches {} requests/s", units::rate(ceiling))?;
    }
    limits(text, outcome)?;
    if let Some(why) = &outcome.server_unknown {
        return writeln!(text, "  server: unknown: {why}");
    }
    let Some(server) = &outcome.server else { return Ok(()) };
    let us = |value: Option<f64>| value.map_or("-".to_owned(), |us| format!("{us:.1} us"));
    writeln!(
        text,
        "  server: {:.2} s user, {:.2} s system; {} CPU a request, {} a handshake",
        server.spent.user,
        server.spent.system,
        us(server.us_per_request),
        us(server.us_per_handshake),
    )
}

/// What was taken of what there is, and what was left behind.
fn limits(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let (record, generator) = (&outcome.record, &outcome.generator);
    let known = |count: Option<u64>| count.map_or("unknown".to_owned(), |count| count.to_string());
    let ports = outcome.ports_share().map_or(String::new(), |share| format!(" ({:.1} %)", share * 100.0));
    writeln!(
        text,
        "  at most {} connections ({} opened in the measured time), {} of {} descriptors, {} ports{ports}",
        record.connections_most,
        record.opened,
        known(generator.descriptors_most),
        generator.descriptors_max,
        known(generator.ports_most),
    )?;
    if record.first_open < record.first_wanted {
        let (wanted, opened, open) = (record.first_wanted, record.first_opened, record.first_open);
        writeln!(
            text,
            "  of {wanted} connections that were to be open first {opened} could be opened, and {open} were open when the \
             load began"
        )?;
    }
    if let Some(listening) = generator.listening.filter(|listening| listening.drops > 0) {
        let (drops, overflows) = (listening.drops, listening.overflows);
        writeln!(
            text,
            "  listening sockets of this machine dropped {drops} connections, {overflows} because of a full queue"
        )?;
    }
    match (record.left_of_warm_up, record.left_waiting) {
        (0, _) => Ok(()),
        (left, waiting) => writeln!(
            text,
            "  warm-up: {left} requests had no answer when it ended, {waiting} of them waited for a connection"
        ),
    }
}

/// A line of each: what it was answered, and whether it was in control.
fn agents(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    for agent in &outcome.agents {
        let (own, record) = (&agent.outcome, &agent.outcome.record);
        let p99 = match record.response.is_empty() {
            true => "-".to_owned(),
            false => units::duration(Some(record.response.value_at_quantile(0.99) as f64 / 1e9)),
        };
        writeln!(
            text,
            "  agent {}: {}/s, {} due, {} answered, {} failed, p99 {p99}; {}; clock known to {}",
            agent.name,
            units::rate(own.rate()),
            record.due,
            record.answered,
            record.failed(),
            own.verdict().colour,
            units::duration(Some(agent.clock.known_to_s())),
        )?;
    }
    Ok(())
}
