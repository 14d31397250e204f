//! What a replay has found, as text for people and as JSON for programs.

use pointsman_rules::Colour;
use serde_json::{Value, json};

use super::comparison::Way;
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
        let groups = self.groups();
        let (outcomes, rules): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(_, group)| group.is_outcome);
        self.section(&mut text, "decided otherwise", self.changed, Style::Red, &outcomes, colour);
        self.section(&mut text, "by another rule, alike", self.other_rule, Style::Yellow, &rules, colour);
        if self.ungrouped > 0 {
            text.push_str(&format!("{} more of other kinds\n\n", self.ungrouped));
        }
        if self.untold > 0 {
            let title = cell("cannot be told", 0, Style::Yellow, colour);
            text.push_str(&format!("{title}: {}; these were not written down\n", self.untold));
            for (name, count) in self.wanted() {
                text.push_str(&format!("  {count:>8}  {}\n", shown(name.as_bytes())));
            }
            samples(&mut text, &self.untold_samples);
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

    fn section(
        &self,
        text: &mut String,
        title: &str,
        count: u64,
        style: Style,
        groups: &[(&(Way, Way), &Group)],
        colour: Colour,
    ) {
        if count == 0 {
            return;
        }
        text.push_str(&format!("{}: {count}\n", cell(title, 0, style, colour)));
        for ((then, now), group) in groups.iter().take(GROUPS_SHOWN_MAX) {
            let count = group.count;
            text.push_str(&format!("  {count:>8}  {}  becomes  {}\n", then.text(), now.text()));
            samples(text, &group.samples);
        }
        if let Some(more @ 1..) = groups.len().checked_sub(GROUPS_SHOWN_MAX) {
            text.push_str(&format!("            and {} more\n", plural(more, "kind")));
        }
        text.push('\n');
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

    /// `1000 decisions: 12 change, 950 stay, 38 cannot be told`
    pub(super) fn summary(&self) -> String {
        let mut summary = format!(
            "{}: {} otherwise, {} alike",
            plural(usize::try_from(self.compared).unwrap_or(usize::MAX), "decision"),
            self.changed,
            self.same + self.other_rule + self.refused
        );
        for (count, what) in [(self.untold, "cannot be told"), (self.unreadable, "unreadable")] {
            if count > 0 {
                summary.push_str(&format!(", {count} {what}"));
            }
        }
        summary
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
            "old": then.to_json(),
            "new": now.to_json(),
            "count": self.count,
            "samples": samples_json(&self.samples),
        })
    }
}

fn samples(text: &mut String, samples: &[Sample]) {
    for sample in samples {
        text.push_str(&format!("            line {}: {}\n", sample.line, sample.request));
    }
}

fn samples_json(samples: &[Sample]) -> Value {
    samples.iter().map(|sample| json!({ "line": sample.line, "request": sample.request })).collect()
}

impl Way {
    /// `R1 -> fast`
    fn text(&self) -> String {
        format!("{} -> {}", self.rule, self.outcome)
    }

    fn to_json(&self) -> Value {
        json!({ "rule": self.rule, "outcome": self.outcome })
    }
}
