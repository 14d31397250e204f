//! A finding as JSON, for other programs.

use pointsman_rules::ast::Item;
use pointsman_rules::{Diagnostic, Lines, Severity, Span};
use serde_json::{Value, json};

use super::{Language, Text};

/// The findings of a text, each an object.
pub(super) fn to_json(text: &Text) -> Vec<Value> {
    let rules = match text.language {
        Language::Rules => labels(&text.source),
        Language::Toml => Vec::new(),
    };
    let lines = Lines::of(&text.source);
    let plain = text.diagnostics.iter().map(|finding| object(text, finding, &lines, &rules));
    let meant = text.meanings.iter().map(|meaning| {
        let mut object = object(text, &meaning.diagnostic, &lines, &rules);
        meaning.complete(&mut object);
        object
    });
    plain.chain(meant).collect()
}

fn object(text: &Text, finding: &Diagnostic, lines: &Lines<'_>, rules: &[(Span, String)]) -> Value {
    let span = finding.span;
    let (severity, code) = match finding.severity {
        Severity::Error => ("error", "invalid"),
        Severity::Warning => ("warning", "advice"),
        Severity::Note => ("note", "advice"),
    };
    let mut object = json!({
        "code": code,
        "severity": severity,
        "file": text.name,
        "span": span_to_json(span, lines),
        "message": finding.message,
    });
    if let Some(help) = &finding.help {
        object["help"] = json!(help);
    }
    let before = rules.partition_point(|(place, _)| place.start <= span.start);
    let rule = rules[..before].last().filter(|(place, _)| span.end <= place.end);
    if let Some((_, label)) = rule {
        object["rule"] = json!(label);
    }
    object
}

/// A place in a text: its bytes, and both of its ends as line and column.
pub(crate) fn span_to_json(span: Span, lines: &Lines<'_>) -> Value {
    let ((line, column), (end_line, end_column)) = (lines.position(span.start), lines.position(span.end));
    json!({
        "start": span.start, "end": span.end,
        "line": line, "column": column, "end_line": end_line, "end_column": end_column,
    })
}

/// The rules of a text with their labels, as far as it can be read.
fn labels(source: &str) -> Vec<(Span, String)> {
    let mut number = 0;
    let mut rules = Vec::new();
    for item in pointsman_rules::parse(source).0.items {
        match item {
            Item::Rule(rule) => {
                number += 1;
                let label = rule.label.map_or_else(|| format!("#{number}"), |label| label.text.into());
                rules.push((rule.span, label));
            }
            Item::Fallback(rule) => rules.push((rule.span, "else".to_owned())),
            Item::Setting(_) | Item::Test(_) | Item::Assert(_) => {}
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_name_their_rule() {
        let source = "R1: if (path == \"/\") { reject(); }\n{ routeTo(a); }\nelse: { nothing(); }\n";
        let Err(diagnostics) = pointsman_rules::compile(source, &pointsman_rules::Targets::Any) else {
            panic!("it should not compile");
        };
        let text = Text {
            name: "a.rules".into(),
            language: Language::Rules,
            source: source.into(),
            diagnostics,
            meanings: Vec::new(),
        };
        let findings = to_json(&text);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0]["rule"], "else");
        assert_eq!(findings[0]["code"], "invalid");
        assert_eq!((&findings[0]["span"]["line"], &findings[0]["file"]), (&json!(3), &json!("a.rules")));
        assert_eq!(labels(source)[1].1, "#2");
    }
}
