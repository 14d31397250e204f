//! A verdict, for people.

use std::fmt::Write as _;

use pointsman_measure::verdict::{Colour, Verdict};

/// What was measured until somebody wanted no more of it, in a line; nothing where nobody did.
pub(super) fn interrupted(how_far: Option<&str>) -> String {
    how_far.map(|words| format!("  interrupted, so amber at best: {words}\n")).unwrap_or_default()
}

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
