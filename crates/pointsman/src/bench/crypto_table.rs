//! What primitives cost, for people.

use std::fmt::Write as _;

use pointsman_measure::Interval;
use pointsman_tls_bench::crypto::{Outcome, Row};
use pointsman_tls_bench::{Place, Primitive, instructions, processor_flags};

use super::judged::{interrupted, judged};
use crate::units;

/// A line for each operation and provider; the speed-up is beside the first provider.
pub(super) fn table(outcome: &Outcome) -> String {
    let mut text = String::new();
    let (Ok(()) | Err(_)) = write(&mut text, outcome);
    text
}

fn write(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let plan = &outcome.plan;
    let providers: Vec<String> =
        plan.providers.iter().map(|provider| format!("{} {}", provider.name(), provider.version())).collect();
    writeln!(
        text,
        "{}; {} rounds of {} ms in turns",
        providers.join(", "),
        plan.rounds,
        plan.round_time.as_millis()
    )?;
    let names = plan.providers.iter().map(|provider| provider.name().len()).max().unwrap_or(0).max(8);
    for depth in &plan.depths {
        match depth {
            1 => writeln!(text, "\none at a time")?,
            depth => writeln!(text, "\n{depth} at a time")?,
        }
        writeln!(
            text,
            "  {:<32}{:<names$}{:>20}{:>9}{:>9}{:>9}{:>21}  done by",
            "", "", "a second", "CPU us", "p50", "p99", "times the first",
        )?;
        for row in outcome.rows.iter().filter(|row| row.depth == *depth) {
            let provider = plan.providers[row.provider].name();
            writeln!(text, "  {:<32}{provider:<names$}{}", row.operation.to_string(), figures(row))?;
        }
    }
    writeln!(text)?;
    for unable in &outcome.unable {
        let name = plan.providers[unable.provider].name();
        let size = match unable.primitive {
            Primitive::Cipher(_, bytes) => format!(" {bytes} B"),
            _ => String::new(),
        };
        writeln!(text, "  not measured: {}{size} by {name}: {}", unable.primitive.name(), unable.why)?;
    }
    engaged(text, outcome)?;
    write!(text, "{}{}", interrupted(outcome.interrupted.as_deref()), judged(&outcome.verdict()))
}

fn figures(row: &Row) -> String {
    let figures = &row.figures;
    let bytes = match row.operation.bytes() {
        0 => String::new(),
        bytes => format!("  {}", units::bytes_per_s(figures.rate.estimate * bytes as f64)),
    };
    let at = |quantile: f64| {
        let times = figures.latency.as_ref();
        times.map_or("-".to_owned(), |times| us(times.value_at_quantile(quantile) as f64 / 1e3))
    };
    let factor = times_the_first(figures.speed_up.as_ref());
    format!(
        "{:>12} ±{:>4.1} %{:>9}{:>9}{:>9}{factor}  {}{bytes}",
        units::rate(figures.rate.estimate),
        figures.rate.half_width_share() * 100.0,
        us(figures.cpu_us.estimate),
        at(0.5),
        at(0.99),
        figures.engaged.word(),
    )
}

/// However long it is, it stands apart from what is before it.
fn times_the_first(factor: Option<&Interval>) -> String {
    let words = factor.map(|of| format!("{:.2} ({:.2} to {:.2})", of.estimate, of.low, of.high));
    format!(" {:>20}", words.unwrap_or_default())
}

/// Three digits that count.
fn us(us: f64) -> String {
    match us {
        us if us < 10.0 => format!("{us:.2}"),
        us if us < 100.0 => format!("{us:.1}"),
        us => format!("{us:.0}"),
    }
}

/// Was an accelerator engaged? One line for all that the cores do, one for each operation that they do not.
fn engaged(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let plan = &outcome.plan;
    let is_plain = |row: &&Row| {
        row.figures.engaged.place == Place::Cores && row.figures.engaged.claims_hardware != Some(true)
    };
    let plain = outcome.rows.iter().filter(is_plain).count();
    if plain > 0 {
        let all = outcome.rows.len();
        writeln!(text, "  done by the cores themselves, without an accelerator: {plain} of {all} rows")?;
    }
    let flags = processor_flags();
    let mut made_for: Vec<String> =
        plan.primitives.iter().flat_map(|primitive| instructions(*primitive, &flags)).collect();
    made_for.sort();
    made_for.dedup();
    if !made_for.is_empty() {
        writeln!(text, "  instructions of these cores that are made for it: {}", made_for.join(", "))?;
    }
    for row in outcome.rows.iter().filter(|row| !is_plain(row)) {
        let name = plan.providers[row.provider].name();
        let sentence = row.figures.engaged.sentence();
        writeln!(text, "  {} by {name}, {} at a time: {sentence}", row.operation, row.depth)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ratios_stand_apart() {
        let of = |estimate: f64| times_the_first(Some(&Interval::around(estimate, 1.0)));
        assert_eq!(of(8911.0), " 8911.00 (8910.00 to 8912.00)");
        assert_eq!([of(2.0), times_the_first(None)].map(|cell| cell.len()), [21, 21]);
    }
}
