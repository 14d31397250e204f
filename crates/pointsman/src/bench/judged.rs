//! A verdict, for people.

use std::fmt::Write as _;

use pointsman_measure::verdict::{Colour, Verdict};

/// Its colour and its reasons, a line each.
pub(super) fn judged(verdict: &Verdict) -> String {
    let said = match verdict.colour {
        Colour::Green => "green: the generator was in control",
        Colour::Amber => "amber: it counts, and it should be known that",
        Colour::Red => "RED, not a result: the generator was not in control",
    };
    let mut text = format!("  {said}\n");
    for reason in &verdict.reasons {
        let (Ok(()) | Err(_)) = writeln!(text, "    {} ({}): {}", reason.measure, reason.colour, reason.text);
    }
    text
}
