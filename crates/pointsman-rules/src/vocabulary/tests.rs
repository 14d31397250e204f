//! The vocabulary is what the compiler reads, no more and no less.

use std::collections::BTreeSet;

use super::*;
use crate::parser::{WORD_OPERATORS, WRAPPERS};
use crate::{Targets, compile, compile_for};

const SCOPES: [Scope; 3] = [Scope::Requests, Scope::Connections, Scope::Hellos];

fn is_good(rules: &str, scope: Scope) -> bool {
    compile_for(rules, &Targets::Any, scope).is_ok()
}

/// Whatever the grammar has is here, and the compiler takes what is.
#[test]
fn every_field_is_told() {
    for scope in SCOPES {
        let told = fields(scope);
        let names: BTreeSet<&str> = told.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), told.len(), "each once");
        for entry in schema::ENTRIES.iter().filter(|entry| entry.group != Group::Mail) {
            let spelling = match entry.key {
                Key::Required => format!("{}[\"name\"]", entry.name),
                _ => entry.name.to_owned(),
            };
            let is_known = is_good(&format!("if ({spelling} exists) {{ reject(); }}"), scope);
            assert_eq!(names.contains(entry.name), is_known, "{spelling} {scope:?}");
        }
    }
    for entry in fields(Scope::Requests) {
        assert!(entry.doc.ends_with(['.', '`']) && entry.doc.len() > 20, "{} has a sentence", entry.name);
        let value = match entry.value_type {
            "ip" => "10.0.0.1",
            "integer" => "1",
            "boolean" => "true",
            _ => "\"a\"",
        };
        let spelling = entry.spelling.replace("PATH", "a");
        let rules = format!("if ({spelling} == {value}) {{ reject(); }}");
        assert!(is_good(&rules, Scope::Requests), "{rules}");
    }
    let many = |name: &str| {
        fields(Scope::Requests).into_iter().find(|entry| entry.name == name).map(|entry| entry.is_many_valued)
    };
    let said = ["path", "header", "query", "tls.client.san", "form", "json.", "xml.", "body.size"].map(many);
    let [no, yes] = [Some(false), Some(true)];
    assert_eq!(said, [no, yes, yes, yes, yes, yes, yes, no]);
}

#[test]
fn every_action_is_told() {
    for scope in SCOPES {
        let told = actions(scope);
        for action in ACTIONS {
            let arguments = action.parameters.iter().filter(|parameter| parameter.is_required);
            let arguments: Vec<_> = arguments.map(|parameter| argument(parameter.of)).collect();
            let call = match action.name {
                "goto" => "goto R9".to_owned(),
                "allow" => "allow conflict(R0)".to_owned(),
                name => format!("{name}({})", arguments.join(", ")),
            };
            let rules = format!(
                "R0: if (srcport == 1) {{ reject(); }} R1: if (srcport == 2) {{ {call}; }} \
                 R9: if (srcport == 3) {{ reject(); }}"
            );
            let is_told = told.iter().any(|told| told.name == action.name);
            assert_eq!(is_told, is_good(&rules, scope), "{rules} {scope:?}");
            assert!(action.doc.ends_with('.'), "{}", action.name);
        }
    }
    assert!(compile("R1: { unheard(); }", &Targets::Any).is_err());
}

fn argument(of: ParameterKind) -> &'static str {
    match of {
        ParameterKind::Target | ParameterKind::Pool => "a",
        ParameterKind::Status => "302",
        ParameterKind::Stickiness => "STICKY_ON_IP",
        ParameterKind::Bandwidth | ParameterKind::Limit | ParameterKind::Word => "a",
        ParameterKind::Label | ParameterKind::Labels => "R9",
        ParameterKind::Text | ParameterKind::Template | ParameterKind::Regex | ParameterKind::Header => {
            "\"x-a\""
        }
    }
}

#[test]
fn every_operator_and_function_is_told() {
    for operator in WORD_OPERATORS {
        assert!(OPERATORS.iter().any(|(word, _)| word.name == *operator), "{operator}");
    }
    let fields = [
        ("text", "path", "\"/a\""),
        ("integer", "srcport", "1"),
        ("ip", "srcip", "10.0.0.1"),
        ("boolean", "tls.resumed", "true"),
    ];
    for (word, types) in OPERATORS {
        for (of, field, value) in fields {
            let test = match word.name {
                "exists" => format!("{field} exists"),
                "in" => format!("{field} in [{value}]"),
                name => format!("{field} {name} {value}"),
            };
            let rules = format!("if ({test}) {{ reject(); }}");
            assert_eq!(is_good(&rules, Scope::Requests), types.contains(&of), "{rules}");
        }
    }
    let told: BTreeSet<&str> = FUNCTIONS.iter().map(|word| word.name).collect();
    assert_eq!(told, WRAPPERS.iter().copied().collect());
    for Word { name, .. } in FUNCTIONS {
        assert!(
            is_good(&format!("if ({name}(srcport) == 1) {{ reject(); }}"), Scope::Requests)
                || *name == "lower"
        );
    }
}

#[test]
fn settings_and_stickinesses_are_read() {
    for Word { spelling, .. } in SETTINGS {
        let rules = format!("{} else: routeTo(a);", spelling.replace("TARGET", "a"));
        assert!(is_good(&rules, Scope::Requests), "{rules}");
    }
    for scope in SCOPES {
        let told = stickinesses(scope);
        for (name, _) in STICKINESSES {
            let key = if *name == "STICKY_ON" { "(srcip)" } else { "" };
            let rules = format!("else: routeTo(a, {name}{key});");
            let is_told = told.iter().any(|word| word.name == *name);
            assert_eq!(is_told, is_good(&rules, scope), "{rules} {scope:?}");
        }
    }
}
