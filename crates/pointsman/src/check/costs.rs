//! What rules may cost of a body, rule by rule.

use std::collections::HashMap;

use pointsman_rules::{Extent, Program, Reach, Validate};
use serde_json::{Value, json};

/// So many rules of the same cost are named, then counted.
const NAMED_MAX: usize = 8;

/// The costs of a rule set that names fields of the body.
#[derive(Debug)]
pub(super) struct BodyCosts {
    file: String,
    validate: Validate,
    /// In the order of the first rule of each.
    groups: Vec<Group>,
}

/// Rules that cost the same for the same reason.
#[derive(Debug)]
struct Group {
    rules: Vec<String>,
    sentence: String,
    earliest: Value,
    latest: Value,
}

impl BodyCosts {
    /// Nothing where the rules never look into a body.
    pub(super) fn of(file: &str, program: &Program) -> Option<BodyCosts> {
        let mut groups: Vec<Group> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for cost in program.body_costs() {
            let name = cost.name(program).to_owned();
            let sentence = cost.sentence(program);
            let place = *places.entry(sentence.clone()).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.rules.push(name),
                None => groups.push(Group {
                    rules: vec![name],
                    sentence,
                    earliest: to_json(&cost.earliest, program),
                    latest: to_json(&cost.latest, program),
                }),
            }
        }
        let costs = BodyCosts { file: file.to_owned(), validate: program.validate, groups };
        (!costs.groups.is_empty()).then_some(costs)
    }

    /// For people: a line for rules that are alike.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}: what is read of a body when a rule decides\n", self.file);
        for group in &self.groups {
            text.push_str(&format!("  {}: {}\n", group.names(), group.sentence));
        }
        if self.validate == Validate::Full {
            text.push_str(
                "  validate full: a body goes on its way when the whole of it has proved well-formed\n",
            );
        }
        text
    }

    /// For programs.
    pub(super) fn to_json(&self) -> Value {
        let groups = self.groups.iter().map(|group| {
            json!({ "rules": group.rules, "earliest": group.earliest, "latest": group.latest, "text": group.sentence })
        });
        let validate = match self.validate {
            Validate::Stream => "stream",
            Validate::Full => "full",
        };
        json!({ "file": self.file, "validate": validate, "groups": groups.collect::<Vec<_>>() })
    }
}

impl Group {
    fn names(&self) -> String {
        let named = &self.rules[..self.rules.len().min(NAMED_MAX)];
        match self.rules.len() - named.len() {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        }
    }
}

fn to_json(extent: &Extent<'_>, program: &Program) -> Value {
    let reach = match extent.reach {
        Reach::Head => "head",
        Reach::Value => "value",
        Reach::Scope => "scope",
        Reach::Body => "body",
    };
    let mut object = json!({ "reach": reach });
    if let Some(blame) = &extent.blame {
        object["field"] = json!(blame.field.to_string());
        object["rule"] = json!(program.rule(blame.rule).map(|rule| &*rule.label));
        if let Some(span) = blame.span {
            object["span"] = json!({ "start": span.start, "end": span.end });
        }
    }
    if let Some(because) = extent.because(program) {
        object["because"] = json!(because);
    }
    object
}

#[cfg(test)]
mod tests {
    use pointsman_rules::{Targets, compile};

    use super::*;

    fn costs(rules: &str) -> Option<BodyCosts> {
        BodyCosts::of("a.rules", &compile(rules, &Targets::Any).expect("a rule set").program)
    }

    #[test]
    fn rules_that_are_alike_share_a_line() {
        let alike: String =
            (0..20).map(|n| format!("H{n}: if (host == \"{n}\") {{ routeTo(a); }}\n")).collect();
        let rules = format!("{alike}R1: if (!(json[*] == 1)) {{ reject(); }}\nelse: routeTo(a);\n");
        let costs = costs(&rules).expect("it names a field of the body");
        let text = costs.text();
        let lines: Vec<_> = text.lines().collect();
        let negated = "R1 negates `json[*]`; `first(json[*])` would not";
        assert_eq!(
            lines,
            [
                "a.rules: what is read of a body when a rule decides",
                "  H0, H1, H2, H3, H4, H5, H6, H7 and 12 more: the head",
                &format!("  R1: the whole body, because {negated}"),
                "  else: up to a value of `json[*]` that fits",
                "  validate full: a body goes on its way when the whole of it has proved well-formed",
            ]
        );
        let json = costs.to_json();
        assert_eq!(json["validate"], "full");
        assert_eq!(json["groups"][0]["rules"].as_array().map(Vec::len), Some(20));
        assert_eq!(json["groups"][0]["latest"], json!({ "reach": "head" }));
        let latest = &json["groups"][1]["latest"];
        assert_eq!(
            (&latest["reach"], &latest["field"], &latest["rule"]),
            (&json!("body"), &json!("json[*]"), &json!("R1"))
        );
        assert_eq!(latest["because"], negated);
        let start =
            latest["span"]["start"].as_u64().and_then(|start| usize::try_from(start).ok()).expect("a place");
        assert!(rules[start..].starts_with("json[*] == 1"));
    }

    #[test]
    fn a_set_that_never_looks_into_a_body_has_no_costs() {
        assert!(costs("R1: if (path == \"/\") { reject(); }").is_none());
    }
}
