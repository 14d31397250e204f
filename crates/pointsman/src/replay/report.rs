//! What a replay has found, as text for people and as JSON for programs.

use pointsman_rules::{Colour, Way};
use serde_json::{Value, json};

use super::tally::{Group, LISTENERS_MAX, Sample, Tally};
use crate::check::plural;
use crate::check::terminal::{Style, cell};
use crate::explain::report::shown;

/// So many groups are shown to people, of other outcomes and of other rules each; programs see all.
const GROUPS_SHOWN_MAX: usize = 100;

impl Tally {
    /// For people.
    pub(super) fn text(&self, colour: Colour) -> String {
        let mut text = String::new();
        let rows = self.groups().into_iter().map(|((then, now), group)| Row {
            is_outcome: group.is_outcome,
            then,
            now,
            count: group.count,
            samples: group.samples.iter().map(Sample::text).collect(),
        });
        let rows: Vec<_> = rows.collect();
        changes(&mut text, &rows, (self.changed, self.other_rule), colour);
        if self.ungrouped > 0 {
            text.push_str(&format!("{} more of other kinds\n\n", self.ungrouped));
        }
        if self.untold > 0 {
            let title = cell(CANNOT_BE_TOLD, 0, Style::Yellow, colour);
            text.push_str(&format!("{title}: {}; these were not written down\n", self.untold));
            for (name, count) in self.wanted() {
                text.push_str(&format!("  {count:>8}  {}\n", shown(name.as_bytes())));
            }
            self.untold_samples.iter().for_each(|sample| show_sample(&mut text, &sample.text()));
            text.push('\n');
        }
        if self.unreadable > 0 {
            text.push_str(&format!(
                "{}: {}\n",
                cell("unreadable", 0, Style::Yellow, colour),
                self.unreadable
            ));
            for (line, reason) in &self.unreadable_lines {
                text.push_str(&format!("  line {line}: {reason}\n"));
            }
            if self.unreadable > self.unreadable_lines.len() as u64 {
                text.push_str("  …\n");
            }
            text.push('\n');
        }
        for note in self.notes() {
            text.push_str(&format!("note: {note}\n"));
        }
        text
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.refused > 0 {
            notes.push(format!("refused before a rule is asked, then and now: {}", self.refused));
        }
        if self.undecided > 0 {
            notes.push(format!("lines of what no rule was asked about: {}", self.undecided));
        }
        if self.elsewhere > 0 {
            notes.push(format!("lines of other listeners: {}", self.elsewhere));
        }
        if self.is_empty() {
            let what = if self.undecided + self.elsewhere == 0 { "is empty" } else { "has none of them" };
            notes.push(format!("there was nothing to decide: the log {what}"));
        }
        if self.against_log > 0 {
            notes.push(format!(
                "decided otherwise by the old rules than the log says: {}; they are not those that it was written by",
                self.against_log
            ));
        }
        if self.listeners.len() > 1 && self.elsewhere == 0 {
            let named: Vec<_> = self
                .listeners
                .iter()
                .take(LISTENERS_MAX)
                .map(|name| format!("`{}`", shown(name.as_bytes())))
                .collect();
            let more = if self.listeners.len() > LISTENERS_MAX { " and others" } else { "" };
            notes.push(format!("the log is of the listeners {}{more}", named.join(", ")));
        }
        notes
    }

    /// In a line.
    pub(super) fn summary(&self) -> String {
        let rest = [(self.untold, CANNOT_BE_TOLD), (self.unreadable, "unreadable")];
        summary(self.compared, self.changed, self.same + self.other_rule + self.refused, &rest)
    }

    /// For programs.
    pub(super) fn json(&self) -> String {
        let groups: Vec<_> = self.groups().into_iter().map(|(ways, group)| group.to_json(ways)).collect();
        let wanted: Vec<_> =
            self.wanted().into_iter().map(|(name, count)| json!({ "what": name, "count": count })).collect();
        let lines = self.unreadable_lines.iter();
        let lines: Vec<_> = lines.map(|(line, reason)| json!({ "line": line, "reason": reason })).collect();
        let report = json!({
            "version": 1,
            "lines": self.lines,
            "bytes": self.bytes,
            "cut_off": self.cut_off,
            "decisions": self.compared,
            "same": self.same,
            "changed": self.changed,
            "other_rule": self.other_rule,
            "untold": self.untold,
            "refused": self.refused,
            "undecided": self.undecided,
            "elsewhere": self.elsewhere,
            "unreadable": self.unreadable,
            "against_log": self.against_log,
            "ungrouped": self.ungrouped,
            "groups": groups,
            "not_written_down": wanted,
            "untold_samples": samples_json(&self.untold_samples),
            "unreadable_lines": lines,
        });
        format!("{report:#}\n")
    }
}

impl Group {
    fn to_json(&self, (then, now): &(Way, Way)) -> Value {
        json!({
            "kind": if self.is_outcome { "changed" } else { "other_rule" },
            "old": way_json(then),
            "new": way_json(now),
            "count": self.count,
            "samples": samples_json(&self.samples),
        })
    }
}

impl Sample {
    fn text(&self) -> String {
        format!("line {}: {}", self.line, self.request)
    }
}

/// What is said of decisions that nobody can compare.
pub(crate) const CANNOT_BE_TOLD: &str = "cannot be told";

/// `1000 decisions: 12 otherwise, 950 alike, 38 cannot be told`
pub(crate) fn summary(compared: u64, changed: u64, alike: u64, rest: &[(u64, &str)]) -> String {
    let compared = plural(usize::try_from(compared).unwrap_or(usize::MAX), "decision");
    let mut summary = format!("{compared}: {changed} otherwise, {alike} alike");
    for (count, what) in rest.iter().filter(|(count, _)| *count > 0) {
        summary.push_str(&format!(", {count} {what}"));
    }
    summary
}

/// Requests that have changed alike.
pub(crate) struct Row<'a> {
    /// Whether something else comes of them; otherwise only another rule decides.
    pub(crate) is_outcome: bool,
    pub(crate) then: &'a Way,
    pub(crate) now: &'a Way,
    pub(crate) count: u64,
    pub(crate) samples: Vec<String>,
}

/// Writes what has changed for people: so many are decided otherwise, and so many by another rule alike. The rows are in
/// their order.
pub(crate) fn changes(
    text: &mut String,
    rows: &[Row<'_>],
    (changed, other_rule): (u64, u64),
    colour: Colour,
) {
    let sections = [
        ("decided otherwise", changed, Style::Red, true),
        ("by another rule, alike", other_rule, Style::Yellow, false),
    ];
    for (title, count, style, is_outcome) in sections.into_iter().filter(|(_, count, ..)| *count > 0) {
        text.push_str(&format!("{}: {count}\n", cell(title, 0, style, colour)));
        let rows: Vec<_> = rows.iter().filter(|row| row.is_outcome == is_outcome).collect();
        for row in rows.iter().take(GROUPS_SHOWN_MAX) {
            text.push_str(&format!("  {:>8}  {}  becomes  {}\n", row.count, row.then, row.now));
            row.samples.iter().for_each(|sample| show_sample(text, sample));
        }
        if let Some(more @ 1..) = rows.len().checked_sub(GROUPS_SHOWN_MAX) {
            text.push_str(&format!("            and {} more\n", plural(more, "kind")));
        }
        text.push('\n');
    }
}

fn show_sample(text: &mut String, sample: &str) {
    text.push_str(&format!("            {sample}\n"));
}

fn samples_json(samples: &[Sample]) -> Value {
    samples.iter().map(|sample| json!({ "line": sample.line, "request": sample.request })).collect()
}

/// For programs.
pub(crate) fn way_json(way: &Way) -> Value {
    json!({ "rule": way.rule, "outcome": way.outcome })
}
