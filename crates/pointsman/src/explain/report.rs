//! An explanation as text for people and as JSON for programs.

use std::sync::Arc;

use pointsman_analysis::Needed;
use pointsman_rules::{
    Cause, Colour, Culprit, Lines, Program, Rule, ShownValue, Span, Subject, Truth, VisitedExit, VisitedRule,
    spelling,
};
use serde_json::{Value, json};

use super::asked::Asked;
use super::near::Near;
use super::outcome::{Action, End, Verdict};
use crate::check::finding::span_to_json;
use crate::check::terminal::{Style, cell};

/// Everything there is to say about a request, or about a connection that is passed on as it is.
#[derive(Debug)]
pub(super) struct Report {
    /// Absent where the head is refused, and nobody can say what was asked.
    pub(super) asked: Option<Asked>,
    pub(super) notes: Vec<String>,
    pub(super) steps: Vec<Step>,
    /// Nothing where there is none, and none is spoken of.
    pub(super) needed: Needed,
    /// Behind so many bytes of what was given the body begins.
    pub(super) body_from: Option<usize>,
    pub(super) verdict: Verdict,
    pub(super) near: Near,
    /// The text of the rules.
    pub(super) source: Arc<str>,
}

/// A rule that was asked.
#[derive(Debug)]
pub(crate) struct Step {
    label: String,
    result: Truth,
    because: Option<Because>,
    exit: String,
    span: Span,
    /// All tests of its condition, in the order of the text, as far as they are told.
    tests: Vec<Because>,
    tests_left_out: usize,
}

/// A test, what it came to, and the values that it saw.
#[derive(Debug)]
struct Because {
    test: String,
    span: Span,
    field: String,
    result: Truth,
    values: Vec<ShownValue>,
    values_left_out: usize,
    /// Why there may be more of them.
    unsettled: Option<Cause>,
}

impl Step {
    pub(crate) fn new(program: &Program, visited: &VisitedRule<'_>) -> Step {
        let rule = program.rule(visited.index);
        let because = visited.culprit.as_ref().map(|culprit| Because::of(culprit, rule));
        let exit = match visited.exit {
            _ if visited.result.is_unread() => "waits".to_owned(),
            VisitedExit::Next => "next".to_owned(),
            VisitedExit::Skipped => "skipped".to_owned(),
            VisitedExit::Decided => "decides".to_owned(),
            VisitedExit::Goto(index) => {
                format!("goto {}", program.rule(index).map_or("?", |rule| &*rule.label))
            }
        };
        let label = visited.label.to_owned();
        let (span, tests) = (visited.span, Vec::new());
        Step { label, result: visited.result, because, exit, span, tests, tests_left_out: 0 }
    }

    /// The same with what each test of its condition has seen.
    pub(super) fn with_tests(program: &Program, visited: &VisitedRule<'_>, subject: &dyn Subject) -> Step {
        let rule = program.rule(visited.index);
        let (seen, tests_left_out) = visited.seen(program, subject);
        let tests = seen.iter().map(|seen| Because::of(seen, rule)).collect();
        Step { tests, tests_left_out, ..Step::new(program, visited) }
    }

    /// Why its condition is not true; nothing where it is.
    pub(crate) fn why(&self) -> Option<String> {
        self.because.as_ref().map(Because::sentence)
    }

    /// Where the request goes from it: `next`, `goto LABEL`, `skipped`, `decides`.
    pub(crate) fn exit(&self) -> &str {
        &self.exit
    }

    fn to_json(&self, lines: &Lines<'_>) -> Value {
        let mut object = json!({ "rule": self.label, "result": word(self.result), "then": self.exit });
        object["span"] = span_to_json(self.span, lines);
        if let Truth::Unknown(cause) = self.result {
            object["cause"] = json!(cause.to_string());
        }
        if let Some(because) = &self.because {
            object["test"] = because.to_json(lines);
        }
        object["tests"] = self.tests.iter().map(|test| test.to_json(lines)).collect();
        object["tests_left_out"] = json!(self.tests_left_out);
        object
    }
}

impl Because {
    fn of(seen: &Culprit<'_>, rule: Option<&Rule>) -> Because {
        Because {
            test: rule
                .and_then(|rule| spelling::test_at(&rule.condition, seen.span))
                .map_or_else(|| seen.field.to_string(), spelling::test),
            span: seen.span,
            field: seen.field.to_string(),
            result: seen.result,
            values: seen.values.clone(),
            values_left_out: seen.values_left_out,
            unsettled: seen.unsettled,
        }
    }

    fn to_json(&self, lines: &Lines<'_>) -> Value {
        let values: Vec<_> = self.values.iter().map(value_to_json).collect();
        let mut object = json!({
            "text": self.test, "field": self.field, "result": word(self.result),
            "values": values, "values_left_out": self.values_left_out,
            "span": span_to_json(self.span, lines),
        });
        if let Truth::Unknown(cause) = self.result {
            object["cause"] = json!(cause.to_string());
        }
        if let Some(cause) = self.unsettled {
            object["unsettled"] = json!(cause.to_string());
        }
        object
    }

    /// `method == "POST" is false: method is GET`
    fn sentence(&self) -> String {
        let Because { test, field, result, values, values_left_out, unsettled, .. } = self;
        let mut values = match (values.as_slice(), values_left_out, unsettled) {
            ([], _, Some(cause)) => format!("unknown ({cause})"),
            ([], _, None) => "absent".to_owned(),
            (values, 0, _) => listed(values),
            (values, more, _) => format!("{} and {more} more", listed(values)),
        };
        if let ([_, ..], Some(cause)) = (self.values.as_slice(), unsettled) {
            values.push_str(&format!(", further ones unknown ({cause})"));
        }
        format!("{test} is {}: {field} is {values}", word(*result))
    }
}

fn listed(values: &[ShownValue]) -> String {
    let words = values.iter().map(|value| match value {
        ShownValue::Text(text) => format!("`{text}`"),
        ShownValue::Nothing => "null, an object or an array".to_owned(),
        ShownValue::Unknown(cause) => format!("unknown ({cause})"),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn value_to_json(value: &ShownValue) -> Value {
    match value {
        ShownValue::Text(text) => json!(text),
        ShownValue::Nothing => Value::Null,
        ShownValue::Unknown(cause) => json!({ "unknown": cause.to_string() }),
    }
}

impl Report {
    /// The switch refuses it before a rule is asked, or before one decides.
    pub(super) fn refused(asked: Option<Asked>, notes: Vec<String>, status: u16, reason: &str) -> Report {
        let verdict = Verdict::refused(status, reason.to_owned());
        Report {
            asked,
            notes,
            steps: Vec::new(),
            needed: Needed::default(),
            body_from: None,
            verdict,
            near: Near::default(),
            source: "".into(),
        }
    }

    /// The explanation for people.
    pub(super) fn text(&self, colour: Colour) -> String {
        let mut text = String::new();
        if let Some(asked) = &self.asked {
            text.push_str(&format!("{}\n", cell(asked.line(), 0, Style::Bold, colour)));
            for (name, value) in asked.lines() {
                text.push_str(&format!("  {} {value}\n", cell(name, 8, Style::Dim, colour)));
            }
        }
        for note in &self.notes {
            text.push_str(&format!("  {} {note}\n", cell("note", 8, Style::Yellow, colour)));
        }
        if !self.steps.is_empty() {
            text.push('\n');
        }
        let width = |of: fn(&Step) -> usize| self.steps.iter().map(of).max().unwrap_or(0);
        let labels = width(|step| step.label.chars().count());
        let results = width(|step| step.result.to_string().chars().count());
        let exits = width(|step| step.exit.chars().count());
        for step in &self.steps {
            let line = format!(
                "  {}  {}  {}  {}",
                cell(&step.label, labels, Style::Cyan, colour),
                cell(&step.result.to_string(), results, style(step.result), colour),
                cell(&step.exit, exits, Style::Plain, colour),
                step.because.as_ref().map(Because::sentence).unwrap_or_default(),
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&self.ending(colour));
        text.push_str(&self.near.text(colour));
        text
    }

    fn ending(&self, colour: Colour) -> String {
        let (style, what) = match &self.verdict.end {
            End::Decided { action, .. } => (Style::Green, line_of(action)),
            End::Refused { refusal, reason } => (Style::Red, format!("refused with {refusal}: {reason}")),
        };
        let who = match &self.verdict.rule {
            Some(rule) => format!("{rule}: "),
            None if self.verdict.is_refusal() => String::new(),
            None => "no rule decides: ".to_owned(),
        };
        let mut text = format!("{}\n", cell(&format!("{who}{what}"), 0, style, colour));
        for effect in &self.verdict.effects {
            let idle = effect.idle.map(|idle| format!(", which comes to nothing: {idle}"));
            text.push_str(&format!("  with {}{}\n", line_of(&effect.action), idle.unwrap_or_default()));
        }
        if let Some(needed) = super::body::sentence(&self.needed) {
            text.push_str(&format!("  {needed}\n"));
        }
        text
    }

    /// The explanation for programs.
    pub(super) fn json(&self) -> String {
        format!("{:#}\n", self.to_json())
    }

    pub(super) fn to_json(&self) -> Value {
        let lines = Lines::of(&self.source);
        let steps: Vec<_> = self.steps.iter().map(|step| step.to_json(&lines)).collect();
        let mut report = json!({
            "version": 1,
            "notes": self.notes,
            "rules": steps,
            "decision": self.verdict.to_json(),
        });
        match &self.asked {
            Some(Asked::Connection(asked)) => report["connection"] = asked.to_json(),
            Some(Asked::Request(asked)) => report["request"] = asked.to_json(),
            None => report["request"] = Value::Null,
        }
        if !matches!(self.asked, Some(Asked::Connection(_))) {
            let Needed { bytes, to_its_end, of_bytes } = self.needed;
            report["body_bytes_needed"] = json!(bytes);
            report["body_end_needed"] = json!(to_its_end);
            report["body_bytes"] = json!(of_bytes);
            report["body_from"] = json!(self.body_from);
            report["misses"] = self.near.to_json();
            report["misses_looked_for"] = json!(self.near.are_looked_for());
            report["misses_unknown"] = self.near.unknown_to_json();
        }
        report
    }
}

fn line_of(action: &Action) -> String {
    match &action.value {
        None => action.text.clone(),
        Some(value) => format!("{}  → {value}", action.text),
    }
}

fn word(truth: Truth) -> &'static str {
    match truth {
        Truth::True => "true",
        Truth::False => "false",
        Truth::Unknown(_) => "unknown",
    }
}

fn style(truth: Truth) -> Style {
    match truth {
        Truth::True => Style::Green,
        Truth::False => Style::Dim,
        Truth::Unknown(_) => Style::Yellow,
    }
}

/// Bytes of a request as text that no terminal mistakes for something else.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            // They turn the direction of what stands around them, or break the line.
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => text.extend(c.escape_default()),
            c if c.is_control() => text.extend(c.escape_default()),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::asked::AskedRequest;

    #[test]
    fn a_body_is_spoken_of_where_there_is_one() {
        for (bytes, to_its_end, of_bytes, expected) in [
            (0, false, 0, None),
            (0, false, 2, Some("decided after 0 of 2 bytes of the body")),
            (1, false, 1, Some("decided after 1 of 1 byte of the body")),
            (2, true, 2, Some("decided at the end of the body, behind 2 bytes")),
        ] {
            let needed = Needed { bytes, to_its_end, of_bytes };
            let report = Report {
                asked: Some(Asked::Request(AskedRequest::default())),
                notes: Vec::new(),
                steps: Vec::new(),
                needed,
                body_from: None,
                verdict: Verdict::refused(400, "why".to_owned()),
                near: Near::default(),
                source: "".into(),
            };
            let text = report.text(Colour::Never);
            assert_eq!(text.contains("body"), expected.is_some(), "{text}");
            assert!(expected.is_none_or(|expected| text.ends_with(&format!("  {expected}\n"))), "{text}");
        }
    }
}
