//! Fields of the body whose paths differ only in case: hardly ever are both meant.

use std::collections::HashMap;

use crate::parser::shorten;
use crate::{Diagnostic, Field, Findings, PayloadId, Program, pace};

/// Warns of each path that an earlier one spells in another case. A rule that names both means both.
pub(super) fn warn(program: &Program, findings: &mut Findings) {
    let mut first: HashMap<String, PayloadId> = HashMap::new();
    let mut twins: HashMap<PayloadId, PayloadId> = HashMap::new();
    for payload in &program.payloads {
        let known = *first.entry(payload.spelling.to_lowercase()).or_insert(payload.id);
        if known != payload.id {
            twins.insert(payload.id, known);
        }
    }
    if twins.is_empty() {
        return;
    }
    for rule in pace::each(&program.rules) {
        let mut named = Vec::new();
        rule.condition.each_test(&mut |test| {
            if let Field::Payload(payload) = &test.field {
                named.push((payload, test.span));
            }
        });
        for (payload, at) in &named {
            let Some(twin) = twins.get(&payload.id) else { continue };
            if named.iter().any(|(other, _)| other.id == *twin) {
                twins.remove(&payload.id);
                continue;
            }
            let other = program.payloads.iter().find(|other| other.id == *twin);
            let other = other.map_or("", |other| &*other.spelling);
            let message =
                format!("`{}` and `{}` differ only in case", shorten(&payload.spelling), shorten(other));
            let help =
                "names of elements and members are told apart by case; write one of them in both places";
            findings.add(Diagnostic::warning(*at, message).help(help));
            twins.remove(&payload.id);
        }
    }
}
