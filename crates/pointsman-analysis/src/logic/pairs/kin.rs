//! Which fields rules ask for.

use std::collections::HashMap;

use pointsman_rules::{Field, Op, Program, Test};

/// Rules by the fields that their conditions name.
pub(super) struct Kin {
    /// The fields of each kin, by number and in order; and whether all that it asks of one is what stands inside.
    fields: Vec<Vec<(usize, bool)>>,
    of_rule: HashMap<u32, usize>,
}

impl Kin {
    /// Of some rules.
    pub(super) fn of(program: &Program, rules: &[u32]) -> Kin {
        let mut numbers: HashMap<&Field, usize> = HashMap::new();
        let mut known: HashMap<Vec<(usize, bool)>, usize> = HashMap::new();
        let mut kin = Kin { fields: Vec::new(), of_rule: HashMap::new() };
        for rule in rules {
            let Some(condition) = program.rules.get(*rule as usize).map(|rule| &rule.condition) else {
                continue;
            };
            let mut fields = Vec::new();
            condition.each_test(&mut |test| {
                let fresh = numbers.len();
                fields.push((*numbers.entry(&test.field).or_insert(fresh), is_of_inside(test)));
            });
            fields.sort_unstable();
            // What asks for more of a field comes first.
            fields.dedup_by_key(|(field, _)| *field);
            let own = *known.entry(fields).or_insert_with_key(|fields| {
                kin.fields.push(fields.clone());
                kin.fields.len() - 1
            });
            kin.of_rule.insert(*rule, own);
        }
        kin
    }

    /// The same number for rules that name the same fields, and ask as little of them.
    pub(super) fn of_rule(&self, rule: u32) -> usize {
        self.of_rule.get(&rule).copied().unwrap_or(usize::MAX)
    }

    /// Whether two rules have no field in common, but for such as both only look for something inside of: a value has room
    /// for what both look for.
    pub(super) fn are_strangers(&self, one: u32, other: u32) -> bool {
        let fields = |rule: u32| self.fields.get(self.of_rule(rule)).map(Vec::as_slice).unwrap_or_default();
        let others = fields(other);
        fields(one).iter().all(|(field, is_inside)| {
            let place = others.binary_search_by_key(field, |(field, _)| *field);
            let Some((_, both)) = place.ok().and_then(|place| others.get(place)) else { return true };
            *is_inside && *both
        })
    }
}

/// Whether a test looks for something that may stand anywhere behind the beginning of a text.
fn is_of_inside(test: &Test) -> bool {
    match &test.op {
        Op::Contains(_) => true,
        Op::Like(pattern) => pattern.starts_with(b"*"),
        Op::Matches(regex) => {
            let pattern = regex.as_str().replace("[^", "[");
            !pattern.contains('^') && !pattern.contains(r"\A")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use pointsman_rules::{Targets, compile};

    use super::Kin;

    #[test]
    fn rules_are_kin_by_the_fields_that_they_name() {
        let source = r#"
            if (host == "a" && path == "/x") { discard(); }
            if (path under "/y" || lower(host) != "b") { discard(); }
            if (header["host"] == "a") { discard(); }
            if (header["accept"] == "a" && path == "/") { discard(); }
        "#;
        let program = compile(source, &Targets::Any).expect("it compiles").program;
        let kin = Kin::of(&program, &[0, 1, 2, 3]);
        assert_eq!(kin.of_rule(0), kin.of_rule(1));
        assert!(kin.of_rule(2) != kin.of_rule(3) && kin.of_rule(3) != kin.of_rule(0));
        assert!(!kin.are_strangers(0, 3) && kin.are_strangers(2, 0) && kin.are_strangers(2, 3));
    }

    #[test]
    fn what_only_looks_inside_is_in_nobody_s_way() {
        let source = r#"
            if (path matches "/a/.*[.](gif|png)$") { discard(); }
            if (path contains "/b/") { discard(); }
            if (path like "*/c/*" && host == "a") { discard(); }
            if (path matches "^/d") { discard(); }
            if (path contains "/e/" && path startsWith "/f") { discard(); }
        "#;
        let program = compile(source, &Targets::Any).expect("it compiles").program;
        let kin = Kin::of(&program, &[0, 1, 2, 3, 4]);
        assert!(kin.are_strangers(0, 1) && kin.are_strangers(0, 2) && kin.of_rule(0) == kin.of_rule(1));
        assert!(!kin.are_strangers(0, 3) && !kin.are_strangers(1, 4) && !kin.are_strangers(3, 4));
    }
}
