//! What a run was made on, with and how, as its report says it.

use std::collections::BTreeMap;

use pointsman_measure::report::Run;
use serde_json::Value;

use crate::{Machine, Plan};

/// A run of a report that was made on this machine: its machine and versions, and nothing else yet.
pub fn provenance(name: &str, machine: &Machine) -> Run {
    let mut run = Run::named(name);
    let pairs = [
        ("processor", machine.cpu.clone()),
        ("cores", machine.cores.to_string()),
        ("memory", machine.memory.clone()),
        ("kernel", machine.kernel.clone()),
        ("host", machine.host.clone()),
    ];
    run.machine.extend(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)));
    if let Some(governor) = &machine.governor {
        run.machine.insert("governor".to_owned(), governor.clone());
    }
    run.versions =
        machine.versions.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    run
}

impl Plan {
    /// Everything that another run would need to be the same, by the names that its JSON has.
    pub fn settings(&self) -> BTreeMap<String, String> {
        texts(&crate::json::settings(self))
    }
}

/// Each value of a document as a text, by its way through it. What is not set has no line.
pub fn texts(value: &Value) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    flatten("", value, &mut texts);
    texts
}

fn flatten(way: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    let below = |key: &str| if way.is_empty() { key.to_owned() } else { format!("{way}.{key}") };
    match value {
        Value::Null => {}
        Value::Object(entries) => entries.iter().for_each(|(key, value)| flatten(&below(key), value, into)),
        Value::Array(values) if values.iter().all(|value| !value.is_object() && !value.is_array()) => {
            if !values.is_empty() {
                into.insert(way.to_owned(), values.iter().map(text).collect::<Vec<_>>().join(", "));
            }
        }
        // One of a kind needs no number.
        Value::Array(values) if values.len() == 1 => flatten(way, &values[0], into),
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                flatten(&format!("{way}[{at}]"), value, into);
            }
        }
        other => drop(into.insert(way.to_owned(), text(other))),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Load, Target, Url};

    #[test]
    fn settings_are_those_of_the_json_in_lines() {
        let mut texts = BTreeMap::new();
        let value = json!({"a": 1.5, "b": {"c": "d", "e": null}, "f": ["g", 2], "h": [], "i": [{"j": true}], "k": [{"l": 1}, [3]]});
        flatten("", &value, &mut texts);
        let lines: Vec<String> = texts.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(lines, ["a=1.5", "b.c=d", "f=g, 2", "i.j=true", "k[0].l=1", "k[1]=3"]);
    }

    #[test]
    fn a_run_says_where_with_what_and_how_it_was_made() {
        let machine = Machine::look();
        let run = provenance("a", &machine);
        assert_eq!(run.machine["kernel"], machine.kernel);
        for name in ["pointsman", "rustls", "aws-lc-rs"] {
            assert!(run.versions.contains_key(name), "{name}");
        }
        let url = Url::parse("http://127.0.0.1:81/a").expect("a URL");
        let target =
            Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Default::default() };
        let settings = Plan::new(vec![target], Load::Closed { clients: 3 }).settings();
        assert_eq!(settings["targets.url"], "http://127.0.0.1:81/a");
        assert_eq!((settings["load.loop"].as_str(), settings["load.clients"].as_str()), ("closed", "3"));
    }
}
