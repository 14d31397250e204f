//! Guards over members of a JSON object, which an array of such objects walks round: a batch of JSON-RPC is one.

use std::collections::HashSet;

use crate::parser::shorten;
use crate::{
    Condition, Diagnostic, Field, Findings, JsonStep, Payload, Place, Program, Severity, Span, pace,
};

/// Notes each member of the outermost object by which a rule refuses, where no rule refuses an array by it.
pub(super) fn note(program: &Program, findings: &mut Findings) {
    if !program.payloads.iter().any(|payload| matches!(payload.place, Place::Json(_))) {
        return;
    }
    let (mut guarded, mut covered) = (Vec::new(), HashSet::new());
    for rule in pace::each(program.rules.iter().chain(&program.fallback)) {
        for (block, holds) in [(&rule.then, true), (&rule.otherwise, false)] {
            if block.refuses() {
                gather(&rule.condition, holds, &mut |payload, at| match steps(payload) {
                    Some([JsonStep::Each, rest @ ..]) => drop(covered.insert(rest)),
                    Some(steps @ [JsonStep::Member(_), ..]) => guarded.push((steps, payload, at)),
                    _ => {}
                });
            }
        }
    }
    let mut told = HashSet::new();
    for (steps, payload, at) in guarded {
        // `json[*] exists` refuses every array.
        let is_covered = covered.contains(steps) || covered.contains::<[JsonStep]>(&[]);
        if is_covered || !told.insert(steps) {
            continue;
        }
        let within = shorten(payload.spelling.trim_start_matches("json"));
        let field = shorten(&payload.spelling);
        let message = format!("`{field}` has no value in an array: a batch such as `[{{…}}]` is not refused");
        let help = format!("ask for `json[*]{within}`, too, or refuse arrays with `json[*] exists`");
        let finding = Diagnostic::warning(at, message).help(help);
        findings.add(Diagnostic { severity: Severity::Note, ..finding });
    }
}

fn steps(payload: &Payload) -> Option<&[JsonStep]> {
    match &payload.place {
        Place::Json(steps) => Some(steps),
        _ => None,
    }
}

/// Shows the fields of the body whose values make a condition come to `holds`.
fn gather<'p>(condition: &'p Condition, holds: bool, see: &mut impl FnMut(&'p Payload, Span)) {
    match condition {
        Condition::Always => {}
        Condition::Not(inner) => gather(inner, !holds, see),
        Condition::And(parts) | Condition::Or(parts) => {
            parts.iter().for_each(|part| gather(part, holds, see))
        }
        // Without a value the comparison is false: only where it is to be true the value is needed.
        Condition::Test(test) if holds => {
            if let Field::Payload(payload) = &test.field {
                see(payload, test.span);
            }
        }
        Condition::Test(_) => {}
    }
}
