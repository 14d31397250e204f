//! Conditions that are too long for a line, over several.

use crate::ast::{Condition, Predicate};

use super::INDENT;
use super::spelling::Spelling;

/// Longest line that the formatter makes, where it can be broken at all.
pub(super) const LINE_CHARS_MAX: usize = 100;

impl Spelling<'_> {
    /// The lines of a condition, each with its line break.
    pub(super) fn broken_condition(&self, condition: &Condition) -> String {
        let mut out = String::new();
        self.break_condition(condition, "", 1, &mut out);
        out
    }

    /// Puts `condition` on lines of its own, `joint` before it.
    fn break_condition(&self, condition: &Condition, joint: &str, depth: usize, out: &mut String) {
        match condition {
            Condition::And(parts) => self.break_parts(parts, joint, "&& ", depth, out),
            Condition::Or(parts) => self.break_parts(parts, joint, "|| ", depth, out),
            other => self.break_part(other, joint, depth, out),
        }
    }

    fn break_parts(&self, parts: &[Condition], joint: &str, own: &str, depth: usize, out: &mut String) {
        for (index, part) in parts.iter().enumerate() {
            self.break_part(part, if index == 0 { joint } else { own }, depth, out);
        }
    }

    fn break_part(&self, part: &Condition, joint: &str, depth: usize, out: &mut String) {
        let indent = INDENT.repeat(depth);
        let flat = self.condition(part);
        if indent.len() + joint.len() + flat.chars().count() > LINE_CHARS_MAX {
            match part {
                Condition::Group(_, inner) => {
                    out.push_str(&format!("{indent}{joint}(\n"));
                    self.break_condition(inner, "", depth + 1, out);
                    out.push_str(&format!("{indent})\n"));
                    return;
                }
                Condition::Not(_, inner) => {
                    let inner = match &**inner {
                        Condition::Group(_, inner) => inner,
                        other => other,
                    };
                    out.push_str(&format!("{indent}{joint}!(\n"));
                    self.break_condition(inner, "", depth + 1, out);
                    out.push_str(&format!("{indent})\n"));
                    return;
                }
                Condition::Test(test) => {
                    if let Predicate::In { entries, bare: false, .. } = &test.predicate {
                        out.push_str(&format!("{indent}{joint}{} in [\n", self.operand(&test.operand)));
                        let entries = entries.iter().map(|entry| self.entry(entry));
                        fill(entries, &INDENT.repeat(depth + 1), out);
                        out.push_str(&format!("{indent}]\n"));
                        return;
                    }
                }
                _ => {}
            }
        }
        out.push_str(&format!("{indent}{joint}{flat}\n"));
    }
}

/// As many entries to a line as it takes.
fn fill(entries: impl Iterator<Item = String>, indent: &str, out: &mut String) {
    let mut line = String::new();
    for entry in entries {
        let width = indent.len() + line.chars().count() + entry.chars().count() + 2;
        if !line.is_empty() && width > LINE_CHARS_MAX {
            out.push_str(&format!("{indent}{}\n", line.trim_end()));
            line.clear();
        }
        line.push_str(&entry);
        line.push_str(", ");
    }
    if !line.is_empty() {
        out.push_str(&format!("{indent}{}\n", line.trim_end()));
    }
}
