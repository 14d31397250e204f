//! Which fields rules ask for.

use std::collections::{BTreeMap, HashMap};

use pointsman_rules::{Field, Op, Program, Test};

/// Rules by the fields that their conditions name.
pub(super) struct Kin<'p> {
    /// The fields of each kin, by number and in order; and whether all that it asks of one is what stands inside.
    fields: Vec<Vec<(usize, bool)>>,
    of_rule: HashMap<u32, usize>,
    /// What rules look for inside of each such field.
    inside: HashMap<(u32, usize), Inside<'p>>,
}

/// What may stand anywhere behind the beginning of a text.
#[derive(Clone, Copy, Debug)]
struct Inside<'p> {
    /// As it is written: of a regex, what it is found by is among it.
    text: &'p [u8],
    /// What the text has to end with, as it is written; empty where anything may follow.
    end: &'p [u8],
}

impl<'p> Kin<'p> {
    /// Of some rules.
    pub(super) fn of(program: &'p Program, rules: &[u32]) -> Kin<'p> {
        let mut numbers: HashMap<&Field, usize> = HashMap::new();
        let mut known: HashMap<Vec<(usize, bool)>, usize> = HashMap::new();
        let mut kin = Kin { fields: Vec::new(), of_rule: HashMap::new(), inside: HashMap::new() };
        for rule in rules {
            let Some(condition) = program.rules.get(*rule as usize).map(|rule| &rule.condition) else {
                continue;
            };
            let mut found: BTreeMap<usize, Option<Inside<'p>>> = BTreeMap::new();
            condition.each_test(&mut |test| {
                let fresh = numbers.len();
                let number = *numbers.entry(&test.field).or_insert(fresh);
                // What asks twice for one field may ask for more than either.
                found.entry(number).and_modify(|inside| *inside = None).or_insert_with(|| inside_of(test));
            });
            let fields = found.iter().map(|(number, inside)| (*number, inside.is_some())).collect();
            kin.inside
                .extend(found.into_iter().filter_map(|(number, inside)| Some(((*rule, number), inside?))));
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

    /// Whether two rules have no field in common, but for such as both only look for something inside of, which is not the
    /// same and ends alike: a value has room for what both look for.
    pub(super) fn are_strangers(&self, one: u32, other: u32) -> bool {
        let fields = |rule: u32| self.fields.get(self.of_rule(rule)).map(Vec::as_slice).unwrap_or_default();
        let others = fields(other);
        fields(one).iter().all(|(field, _)| {
            if others.binary_search_by_key(field, |(field, _)| *field).is_err() {
                return true;
            }
            let inside = [one, other].map(|rule| self.inside.get(&(rule, *field)));
            matches!(inside, [Some(one), Some(other)] if one.leaves_room_for(other))
        })
    }
}

impl Inside<'_> {
    /// Neither is part of the other, and both can end the text where they have to.
    fn leaves_room_for(&self, other: &Inside<'_>) -> bool {
        let holds = |all: &[u8], part: &[u8]| memchr::memmem::find(all, part).is_some();
        let can_end = self.end.is_empty() || other.end.is_empty() || self.end == other.end;
        can_end && !holds(self.text, other.text) && !holds(other.text, self.text)
    }
}

/// What a test looks for, where it may stand anywhere behind the beginning of a text.
fn inside_of(test: &Test) -> Option<Inside<'_>> {
    match &test.op {
        Op::Contains(text) => Some(Inside { text, end: b"" }),
        Op::Like(pattern) => {
            let text = pattern.strip_prefix(b"*")?;
            let end = text.iter().rposition(|byte| *byte == b'*').map_or(text, |at| &text[at + 1..]);
            Some(Inside { text: text.strip_suffix(b"*").unwrap_or(text), end })
        }
        Op::Matches(regex) => {
            let pattern = regex.as_str();
            let without_classes = pattern.replace("[^", "[");
            if without_classes.contains('^') || without_classes.contains(r"\A") {
                return None;
            }
            let ends = pattern.ends_with('$') || pattern.ends_with(r"\z");
            let behind = pattern.rfind(".*").map_or(0, |at| at + ".*".len());
            // What is not tied to the end from the last gap on may be tied to it somewhere else.
            let is_simple = ends || !(pattern.contains('$') || pattern.contains(r"\z"));
            let end = if ends { &pattern.as_bytes()[behind..] } else { b"" };
            is_simple.then_some(Inside { text: pattern.as_bytes(), end })
        }
        _ => None,
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
            if (path contains "/b") { discard(); }
            if (path matches "[.](php|asp)$") { discard(); }
            if (path matches "/c/.*[.](gif|png)$") { discard(); }
            if (path like "*.css") { discard(); }
        "#;
        let program = compile(source, &Targets::Any).expect("it compiles").program;
        let kin = Kin::of(&program, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(kin.are_strangers(0, 1) && kin.are_strangers(0, 2) && kin.of_rule(0) == kin.of_rule(1));
        assert!(!kin.are_strangers(0, 3) && !kin.are_strangers(1, 4) && !kin.are_strangers(3, 4));
        // One is part of the other; the ends are others, and the same.
        assert!(!kin.are_strangers(1, 5) && !kin.are_strangers(5, 1) && kin.are_strangers(0, 5));
        assert!(!kin.are_strangers(0, 6) && !kin.are_strangers(6, 8) && !kin.are_strangers(7, 8));
        assert!(kin.are_strangers(0, 7) && kin.are_strangers(1, 6) && kin.are_strangers(2, 8));
    }
}
