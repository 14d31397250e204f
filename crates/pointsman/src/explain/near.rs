//! What a request would have to have to come to rules that it misses.

use pointsman_analysis::{Change, Doubt, Effort, InDoubt, Miss, Missed, Misses, misses, rule_names};
use pointsman_rules::{Cause, Colour, OwnedValue, Program, RuleIndex, Subject};
use serde_json::{Value, json};

use super::place::Place;
use super::report::shown;
use crate::check::doubt;
use crate::check::terminal::{Style, cell};

/// Steps of the analyst; it takes part of a second to use them up.
const STEPS: u64 = 20_000_000;

/// So many rules are shown where none is asked for.
const SHOWN_MAX: usize = 3;

/// Characters of a value, and values of a field, that are shown to people.
const VALUE_CHARS_MAX: usize = 60;
const VALUES_MAX: usize = 4;

/// What is looked for, and how much is tried for it.
pub(super) struct Sought {
    missed: Missed,
    effort: Effort,
}

/// How a request misses rules.
#[derive(Debug, Default)]
pub(super) struct Near {
    /// The label of the rule that was asked for.
    asked: Option<String>,
    rules: Vec<Rule>,
    unknown: Option<Unknown>,
    /// The body is not known to its end, and with it what another request would have.
    is_left_out: bool,
}

/// What was not looked through: these rules, or without any which come closest.
#[derive(Debug)]
struct Unknown {
    labels: Vec<String>,
    /// What there is of them, in words.
    names: String,
    doubt: Doubt,
}

/// A rule, and what would have to be otherwise for it to be asked, and be true.
#[derive(Debug)]
struct Rule {
    label: String,
    changes: Vec<Change>,
}

/// As much as is tried where nobody waits for the answer to something else.
pub(crate) fn effort() -> Effort {
    Effort::new(STEPS)
}

impl Sought {
    /// The error is a text for people.
    pub(super) fn new(
        label: Option<&str>,
        program: Option<&Program>,
        effort: Effort,
    ) -> Result<Sought, String> {
        Ok(Sought { missed: missed(label, program)?, effort })
    }
}

/// The rules to look at; the error is a text for people.
fn missed(label: Option<&str>, program: Option<&Program>) -> Result<Missed, String> {
    let Some(label) = label else { return Ok(Missed::Closest(SHOWN_MAX)) };
    let rules = program.into_iter().flat_map(|program| program.rules.iter().chain(&program.fallback));
    let mut named = (0..).map(RuleIndex).zip(rules).filter(|(_, rule)| &*rule.label == label);
    match named.next() {
        Some((index, _)) => Ok(Missed::Rule(index)),
        None => {
            let label = shown(label.as_bytes());
            Err(format!(
                "error: no rule has the label `{label}`\n\
                 help: `--miss` takes the label of a rule, `else`, or `#3` for the third rule where it has none\n"
            ))
        }
    }
}

impl Near {
    /// What is missed by a subject whose body is read to its end.
    pub(super) fn of(place: &Place, subject: &dyn Subject, Sought { missed, effort }: Sought) -> Near {
        let Some(program) = &place.program else { return Near::default() };
        let label = |index: RuleIndex| program.rule(index).map_or("?", |rule| &rule.label).to_owned();
        let Misses { found, unknown } = misses(program, &place.setting(), subject, missed, effort);
        let asked = match missed {
            Missed::Rule(index) => Some(label(index)),
            Missed::Closest(_) => None,
        };
        let rule = |miss: Miss| Rule { label: label(miss.rule), changes: miss.changes };
        let unknown = unknown.map(|InDoubt { rules, doubt }| Unknown {
            labels: rules.iter().map(|rule| label(*rule)).collect(),
            names: rule_names(program, &rules),
            doubt,
        });
        Near { asked, rules: found.into_iter().map(rule).collect(), unknown, is_left_out: false }
    }

    /// What is missed by a subject of whose body the end is not known.
    pub(super) fn not_looked_for() -> Near {
        Near { is_left_out: true, ..Near::default() }
    }

    /// Whether misses were looked for at all.
    pub(super) fn are_looked_for(&self) -> bool {
        !self.is_left_out && self.unknown.as_ref().is_none_or(|unknown| !unknown.labels.is_empty())
    }

    /// For people; empty where there is nothing to say.
    pub(super) fn text(&self, colour: Colour) -> String {
        if self.is_left_out {
            return "\nnearest misses are not looked for: the end of the body is not there, or not held\n"
                .to_owned();
        }
        let unknown = self.unknown.as_ref().map(Unknown::text).unwrap_or_default();
        let mut text = match (&self.asked, self.rules.as_slice()) {
            (Some(label), []) if unknown.is_empty() => {
                return format!("\nno request near this one was found that takes `{label}`\n");
            }
            (_, []) => return unknown,
            _ => "\nnearest misses\n".to_owned(),
        };
        let width = self.rules.iter().map(|rule| rule.label.chars().count()).max().unwrap_or(0);
        for rule in &self.rules {
            let mut label = rule.label.as_str();
            if rule.changes.is_empty() {
                let label = cell(label, width, Style::Cyan, colour);
                text.push_str(&format!("  {label}  none: it is true for the request as it is\n"));
            }
            for Change { field, old, old_unsettled, new, new_unsettled } in &rule.changes {
                let cell = cell(label, width, Style::Cyan, colour);
                let (old, new) = (listed(old, *old_unsettled), listed(new, *new_unsettled));
                text.push_str(&format!("  {cell}  {field}: {old} -> {new}\n"));
                label = "";
            }
        }
        text + &unknown
    }

    pub(super) fn to_json(&self) -> Value {
        let rules = self.rules.iter().map(|Rule { label, changes }| {
            let changes = changes.iter().map(|change| {
                let values = |values: &[OwnedValue]| values.iter().map(value_to_json).collect::<Vec<_>>();
                let (old, new) = (values(&change.old), values(&change.new));
                let mut object = json!({ "field": change.field.to_string(), "old": old, "new": new });
                for (name, cause) in
                    [("old_unsettled", change.old_unsettled), ("new_unsettled", change.new_unsettled)]
                {
                    if let Some(cause) = cause {
                        object[name] = json!(cause.to_string());
                    }
                }
                object
            });
            json!({ "rule": label, "changes": changes.collect::<Vec<_>>() })
        });
        rules.collect()
    }

    /// What was not looked through, and why.
    pub(super) fn unknown_to_json(&self) -> Value {
        let one = |Unknown { labels, doubt, .. }: &Unknown| {
            let mut object = doubt::to_json(doubt);
            object["rules"] = json!(labels);
            object
        };
        self.unknown.iter().map(one).collect()
    }
}

impl Unknown {
    /// For people.
    fn text(&self) -> String {
        let why = doubt::sentence(&self.doubt);
        match self.labels.as_slice() {
            [] => format!("\nnearest misses are not looked for: {why}\n"),
            _ => format!("\nnot looked through for nearest misses: {}: {why}\n", self.names),
        }
    }
}

fn listed(values: &[OwnedValue], unsettled: Option<Cause>) -> String {
    let words = values.iter().take(VALUES_MAX).map(|value| match value {
        OwnedValue::Nothing => "null, an object or an array".to_owned(),
        OwnedValue::Unknown(cause) => format!("unknown ({cause})"),
        value => format!("`{}`", cut(&text_of(value))),
    });
    let words: Vec<_> = words.collect();
    let known = match values.len().checked_sub(VALUES_MAX) {
        None | Some(0) => words.join(", "),
        Some(more) => format!("{} and {more} more", words.join(", ")),
    };
    match (values.is_empty(), unsettled) {
        (true, None) => "absent".to_owned(),
        (true, Some(cause)) => format!("unknown ({cause})"),
        (false, None) => known,
        (false, Some(cause)) => format!("{known}, further ones unknown ({cause})"),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn text_of(value: &OwnedValue) -> String {
    match value {
        OwnedValue::Text(text) => shown(text),
        OwnedValue::Integer(integer) => integer.to_string(),
        OwnedValue::Ip(ip) => ip.to_canonical().to_string(),
        OwnedValue::Boolean(boolean) => boolean.to_string(),
        OwnedValue::Nothing | OwnedValue::Unknown(_) => String::new(),
    }
}

fn value_to_json(value: &OwnedValue) -> Value {
    match value {
        OwnedValue::Nothing => Value::Null,
        OwnedValue::Unknown(cause) => json!({ "unknown": cause.to_string() }),
        value => json!(text_of(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_listed_and_cut() {
        let text = |text: &str| OwnedValue::Text(text.as_bytes().into());
        let long = "x".repeat(100);
        for (values, expected) in [
            (vec![], "absent".to_owned()),
            (vec![OwnedValue::Integer(80)], "`80`".to_owned()),
            (
                vec![text("a\u{1b}"), OwnedValue::Nothing],
                "`a\\u{1b}`, null, an object or an array".to_owned(),
            ),
            (vec![text("a"); 6], "`a`, `a`, `a`, `a` and 2 more".to_owned()),
            (vec![text(&long)], format!("`{}…`", "x".repeat(VALUE_CHARS_MAX))),
        ] {
            assert_eq!(listed(&values, None), expected);
        }
        let malformed = Some(Cause::Malformed);
        assert_eq!(listed(&[], malformed), "unknown (malformed)");
        let expected = "`1`, further ones unknown (malformed)";
        assert_eq!(listed(&[OwnedValue::Integer(1)], malformed), expected);
    }
    #[test]
    fn what_was_not_looked_through_is_said() {
        let near = |asked: Option<&str>, found: &[&str], left: Option<&[&str]>| {
            let label = |label: &&str| (*label).to_owned();
            let unknown = left.map(|left| Unknown {
                labels: left.iter().map(label).collect(),
                names: left.join(" and "),
                doubt: Doubt::Steps,
            });
            let rule = |label: &&str| Rule { label: (*label).to_owned(), changes: Vec::new() };
            let asked = asked.map(str::to_owned);
            Near { asked, rules: found.iter().map(rule).collect(), unknown, is_left_out: false }
        };
        let all = "\nnearest misses are not looked for: the work was too much: its steps are used up\n";
        let some = "\nnot looked through for nearest misses: R1 and R3: the work was too much: its steps are used up\n";
        let one =
            "\nnot looked through for nearest misses: R1: the work was too much: its steps are used up\n";
        let found = "\nnearest misses\n  R2  none: it is true for the request as it is\n";
        for (near, text, is_looked_for, rules) in [
            (near(None, &[], None), String::new(), true, None),
            (near(None, &[], Some(&[])), all.to_owned(), false, Some(json!([]))),
            (near(None, &[], Some(&["R1", "R3"])), some.to_owned(), true, Some(json!(["R1", "R3"]))),
            (
                near(None, &["R2"], Some(&["R1", "R3"])),
                format!("{found}{some}"),
                true,
                Some(json!(["R1", "R3"])),
            ),
            (near(Some("R1"), &[], Some(&["R1"])), one.to_owned(), true, Some(json!(["R1"]))),
            (
                near(Some("R1"), &[], None),
                "\nno request near this one was found that takes `R1`\n".to_owned(),
                true,
                None,
            ),
        ] {
            assert_eq!(near.text(Colour::Never), text);
            assert_eq!(near.are_looked_for(), is_looked_for, "{text}");
            let unknown = near.unknown_to_json();
            assert_eq!(unknown.get(0).map(|one| one["rules"].clone()), rules, "{text}");
            assert!(rules.is_none() || unknown[0]["kind"] == "steps", "{unknown}");
        }
    }
}
