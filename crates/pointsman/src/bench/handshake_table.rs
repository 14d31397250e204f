//! What handshakes took, for people: tables, and a diagram of their phases.

use std::fmt::Write as _;

use pointsman_bench::Kind;
use pointsman_tls_bench::handshake::{Distribution, Measured, Outcome, Phase, Prediction, SERVER_UNKNOWN};

use super::judged::{interrupted, judged};
use crate::check::plural;

/// Columns of the diagram.
const COLUMNS: f64 = 60.0;

/// The tables of all series.
pub(super) fn table(outcome: &Outcome) -> String {
    let mut text = String::new();
    let (Ok(()) | Err(_)) = write(&mut text, outcome);
    text
}

fn write(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let plan = &outcome.plan;
    writeln!(
        text,
        "{} at {}: {} handshakes of each series, one at a time",
        plan.url, outcome.address, plan.count
    )?;
    let longest = outcome.series.iter().map(whole).fold(0.0, f64::max);
    for series in &outcome.series {
        writeln!(text, "\n{}", series.name)?;
        agreed(text, series)?;
        phases(text, series, longest)?;
        shares(text, series)?;
        if let Some(library) = &plan.predicted_with {
            predicted(text, series, library.name())?;
        }
    }
    if outcome.connections_not_captured > 0 {
        let count = outcome.connections_not_captured;
        writeln!(text, "\nthe capture is full: {count} connections are not in it")?;
    }
    for void in &outcome.voids {
        writeln!(text, "VOID, not a result: {}", void.sentence)?;
    }
    write!(text, "{}{}", interrupted(outcome.interrupted.as_deref()), judged(&outcome.verdict()))
}

fn agreed(text: &mut String, series: &Measured) -> std::fmt::Result {
    for (agreed, count) in &series.negotiated {
        let group = if agreed.group.is_empty() { "no group" } else { agreed.group };
        writeln!(
            text,
            "  {count} × TLS {}, {}, {group}, {}",
            agreed.version,
            agreed.suite,
            agreed.kind.name()
        )?;
    }
    let key = series.key.map_or("of another kind", |key| key.name());
    let (bytes, certificates) = (series.flight_bytes, plural(series.certificates, "certificate"));
    // Who goes on with a session is shown no certificate: key and chain are those of the handshake that began it.
    let goes_on = series.negotiated.iter().all(|(agreed, _)| agreed.kind == Kind::Resumed);
    let flight = if goes_on {
        format!("it sent {certificates} when the session began, and sends {bytes} bytes")
    } else {
        format!("it sends {bytes} bytes in {certificates} and the rest")
    };
    writeln!(text, "  the server's key is {key}; {flight} of its flight")?;
    writeln!(text, "  it answered the request behind it with {}", series.answers_said())
}

/// The median from nothing to the first byte of the answer.
fn whole(series: &Measured) -> f64 {
    series.phases.iter().map(|(_, times, _)| times.median.estimate).sum()
}

fn phases(text: &mut String, series: &Measured, longest: f64) -> std::fmt::Result {
    let heads = ["median us", "interval", "p90", "p99", "own CPU"];
    let [median, interval, p90, p99, own] = heads;
    writeln!(text, "  {:<25}{median:>10}{interval:>20}{p90:>10}{p99:>10}{own:>9}", "")?;
    let scale = COLUMNS / longest.max(f64::EPSILON);
    let mut before = 0.0;
    for (phase, times, own) in &series.phases {
        let took = times.median.estimate;
        let bar = bar(*phase, before * scale, took * scale);
        let cells = cells(times);
        writeln!(text, "  {:<25}{cells}{own:>9.1}  {bar}", phase.name())?;
        before += took;
    }
    writeln!(text, "  {:<25}{:>70}  # ours, ~ waiting for the server, - other", "", "")
}

fn cells(times: &Distribution) -> String {
    let interval = times.interval().map_or("-".to_owned(), |(low, high)| format!("{low:.1} to {high:.1}"));
    let [p90, p99] = [0.9, 0.99].map(|quantile| times.quantile(quantile));
    format!("{:>10.1}{interval:>20}{p90:>10.1}{p99:>10.1}", times.median.estimate)
}

/// Where the phase lies in the whole, and who works in it.
fn bar(phase: Phase, from: f64, length: f64) -> String {
    let mark = if phase.is_servers() {
        "~"
    } else if phase.is_ours() {
        "#"
    } else {
        "-"
    };
    let (from, to) = (from.round() as usize, (from + length).round() as usize);
    format!("{}{}", " ".repeat(from), mark.repeat((to - from).max(1)))
}

fn shares(text: &mut String, series: &Measured) -> std::fmt::Result {
    let trips = format!("one round trip, of {}", series.round_trips);
    let rows = [
        ("whole handshake", &series.handshake),
        (trips.as_str(), &series.round_trip),
        ("the server's share", &series.server),
        ("our own share", &series.client),
    ];
    for (name, times) in rows {
        if let Some(times) = times {
            writeln!(text, "  {name:<25}{}", cells(times))?;
        }
    }
    if series.server_is_unknown() {
        writeln!(text, "  {:<25}unknown: {SERVER_UNKNOWN}", "the server's share")?;
    }
    Ok(())
}

fn predicted(text: &mut String, series: &Measured, library: &str) -> std::fmt::Result {
    let sides =
        [("server", &series.servers, &series.server), ("we ourselves", &series.clients, &series.client)];
    for (who, prediction, measured) in sides {
        let (Some(prediction), Some(measured)) = (prediction, measured) else { continue };
        let rest = measured.median.minus(prediction.us());
        let range = match measured.is_bounded() {
            true => format!(" ({:+.1} to {:+.1})", rest.low, rest.high),
            false => String::new(),
        };
        writeln!(
            text,
            "  predicted, {who}: {:.1} us ({}); measured {:.1}; unexplained {:+.1}{range}",
            prediction.us().estimate,
            steps(prediction),
            measured.median.estimate,
            rest.estimate,
        )?;
        for missing in &prediction.missing {
            writeln!(text, "    not in the prediction: {missing}")?;
        }
    }
    if series.servers.is_none() {
        return match series.negotiated.len() {
            1 => writeln!(text, "  nothing is predicted: it was interrupted"),
            _ => writeln!(text, "  nothing is predicted: handshakes did not agree on one thing"),
        };
    }
    writeln!(text, "  assumed: the server computes with {library}, on a machine like this one")
}

fn steps(prediction: &Prediction) -> String {
    let step = |step: &pointsman_tls_bench::handshake::Step| match step.us {
        Some(us) => format!("{} {:.1}", step.operation, us.estimate),
        None => format!("{} not measured", step.operation),
    };
    prediction.steps.iter().map(step).collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_lie_where_their_phases_do() {
        assert_eq!(bar(Phase::Connect, 0.0, 3.2), "---");
        assert_eq!(bar(Phase::FirstByte, 3.2, 4.0), "   ~~~~");
        assert_eq!(bar(Phase::Hello, 2.0, 0.1), "  #", "what is short is seen");
    }
}
