//! An explanation as text for people and as JSON for programs.

use pointsman_rules::{Colour, Program, Truth, VisitedExit, VisitedRule};
use serde_json::{Value, json};

use super::asked::Asked;
use super::outcome::{Action, End, Verdict};
use super::spelling;
use crate::check::terminal::{Style, cell};

/// Everything there is to say about a request, or about a connection that is passed on as it is.
#[derive(Debug)]
pub(super) struct Report {
    /// Absent where the head is refused, and nobody can say what was asked.
    pub(super) asked: Option<Asked>,
    pub(super) notes: Vec<String>,
    pub(super) steps: Vec<Step>,
    pub(super) verdict: Verdict,
}

/// A rule that was asked.
#[derive(Debug)]
pub(crate) struct Step {
    label: String,
    result: Truth,
    because: Option<Because>,
    exit: String,
}

/// The test that kept a condition from being true.
#[derive(Debug)]
struct Because {
    test: String,
    field: String,
    result: Truth,
    values: Vec<String>,
    values_left_out: usize,
}

impl Step {
    pub(crate) fn new(program: &Program, visited: &VisitedRule<'_>) -> Step {
        let rule = program.rule(visited.index);
        let because = visited.culprit.as_ref().map(|culprit| Because {
            test: rule
                .and_then(|rule| spelling::test_at(&rule.condition, culprit.span))
                .map_or_else(|| culprit.field.to_string(), spelling::test),
            field: culprit.field.to_string(),
            result: culprit.result,
            values: culprit.values.clone(),
            values_left_out: culprit.values_left_out,
        });
        let exit = match visited.exit {
            VisitedExit::Next => "next".to_owned(),
            VisitedExit::Skipped => "skipped".to_owned(),
            VisitedExit::Decided => "decides".to_owned(),
            VisitedExit::Goto(index) => {
                format!("goto {}", program.rule(index).map_or("?", |rule| &*rule.label))
            }
        };
        Step { label: visited.label.to_owned(), result: visited.result, because, exit }
    }

    /// Why its condition is not true; nothing where it is.
    pub(crate) fn why(&self) -> Option<String> {
        self.because.as_ref().map(Because::sentence)
    }

    /// Where the request goes from it: `next`, `goto LABEL`, `skipped`, `decides`.
    pub(crate) fn exit(&self) -> &str {
        &self.exit
    }

    fn to_json(&self) -> Value {
        let mut object = json!({ "rule": self.label, "result": word(self.result), "then": self.exit });
        if let Truth::Unknown(cause) = self.result {
            object["cause"] = json!(cause.to_string());
        }
        if let Some(because) = &self.because {
            object["test"] = json!({
                "text": because.test, "field": because.field, "result": word(because.result),
                "values": because.values, "values_left_out": because.values_left_out,
            });
        }
        object
    }
}

impl Because {
    /// `method == "POST" is false: method is GET`
    fn sentence(&self) -> String {
        let Because { test, field, result, values, values_left_out } = self;
        let values = match (values.as_slice(), values_left_out) {
            ([], _) => "absent".to_owned(),
            (values, 0) => listed(values),
            (values, more) => format!("{} and {more} more", listed(values)),
        };
        format!("{test} is {}: {field} is {values}", word(*result))
    }
}

fn listed(values: &[String]) -> String {
    let quoted: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
    quoted.join(", ")
}

impl Report {
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
            text.push_str(&format!("  with {}\n", line_of(effect)));
        }
        if let Some(bytes @ 1..) = self.asked.as_ref().map(Asked::body_bytes) {
            text.push_str(&format!("  0 of {bytes} body bytes were needed\n"));
        }
        text
    }

    /// The explanation for programs.
    pub(super) fn json(&self) -> String {
        let steps: Vec<_> = self.steps.iter().map(Step::to_json).collect();
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
            report["body_bytes_needed"] = json!(0);
        }
        format!("{report:#}\n")
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
        match c.is_control() {
            true => text.extend(c.escape_default()),
            false => text.push(c),
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
        for (body_bytes, expected) in [(0, false), (2, true)] {
            let mut asked = AskedRequest::default();
            asked.body_bytes = body_bytes;
            let asked = Asked::Request(asked);
            let verdict = Verdict::refused(400, "why".to_owned());
            let report = Report { asked: Some(asked), notes: Vec::new(), steps: Vec::new(), verdict };
            let text = report.text(Colour::Never);
            assert_eq!(text.contains("0 of 2 body bytes were needed"), expected, "{text}");
            assert_eq!(text.contains("body bytes"), expected, "{text}");
        }
    }
}
