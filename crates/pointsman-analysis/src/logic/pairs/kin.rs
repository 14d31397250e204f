//! Which fields rules ask for, and what two of them ask of the same one.

use std::collections::{BTreeMap, HashMap};

use pointsman_rules::{Condition, Field, Op, Over, Program, Test};

use crate::logic::question::Analyst;
use crate::space::has_one_value;

/// Rules by the fields that their conditions name.
pub(super) struct Kin<'p> {
    /// The fields of each kin, by number and in order; and whether all that it asks of one is what stands inside.
    fields: Vec<Vec<(usize, bool)>>,
    of_rule: HashMap<u32, usize>,
    /// What rules look for inside of each such field.
    inside: HashMap<(u32, usize), Inside<'p>>,
    /// The only test of a field that rules ask for once, where it has to hold and the field has one value.
    needed: HashMap<(u32, usize), &'p Test>,
}

/// What two rules are to each other, by what they ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kinship {
    /// They have no field in common, but for such as have room for what both look for: some request is to be expected that
    /// has both.
    Strangers,
    /// The same, unless one of them asks for a part of what the other one does.
    PerhapsStrangers,
    /// No request has both: the values of a field that one of them takes are none of the other's.
    Apart,
    /// Nothing is known.
    Close,
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
        let mut kin = Kin {
            fields: Vec::new(),
            of_rule: HashMap::new(),
            inside: HashMap::new(),
            needed: HashMap::new(),
        };
        for rule in rules {
            let Some(condition) = program.rules.get(*rule as usize).map(|rule| &rule.condition) else {
                continue;
            };
            let mut found: BTreeMap<usize, Option<Inside<'p>>> = BTreeMap::new();
            let mut asked: BTreeMap<usize, usize> = BTreeMap::new();
            condition.each_test(&mut |test| {
                let fresh = numbers.len();
                let number = *numbers.entry(&test.field).or_insert(fresh);
                *asked.entry(number).or_default() += 1;
                // What asks twice for one field may ask for more than either.
                found.entry(number).and_modify(|inside| *inside = None).or_insert_with(|| inside_of(test));
            });
            for test in needed(condition) {
                let number = numbers.get(&test.field).filter(|number| asked.get(*number) == Some(&1));
                kin.needed.extend(number.map(|number| ((*rule, *number), test)));
            }
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

    /// What two rules are to each other.
    pub(super) fn of_two(&self, one: u32, other: u32, analyst: &mut Analyst<'p>) -> Kinship {
        let fields = |rule: u32| self.fields.get(self.of_rule(rule)).map(Vec::as_slice).unwrap_or_default();
        let others = fields(other);
        let mut kinship = Kinship::Strangers;
        for (field, _) in fields(one) {
            if others.binary_search_by_key(field, |(field, _)| *field).is_err() {
                continue;
            }
            let inside = [one, other].map(|rule| self.inside.get(&(rule, *field)));
            if matches!(inside, [Some(one), Some(other)] if one.leaves_room_for(other)) {
                continue;
            }
            let needed = [one, other].map(|rule| self.needed.get(&(rule, *field)));
            let [Some(one), Some(other)] = needed else {
                kinship = Kinship::Close;
                continue;
            };
            match analyst.meet(one, other) {
                Some(false) => return Kinship::Apart,
                Some(true) if kinship != Kinship::Close && is_free(&one.field) => {
                    kinship = Kinship::PerhapsStrangers;
                }
                Some(true) | None => kinship = Kinship::Close,
            }
        }
        kinship
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

/// The tests that have to hold where a condition does, of fields with one value.
fn needed(condition: &Condition) -> Vec<&Test> {
    let parts = match condition {
        Condition::And(parts) => parts.as_slice(),
        only => std::slice::from_ref(only),
    };
    let mut tests = Vec::new();
    for part in parts {
        if let Condition::Test(test) = part
            && test.over == Over::Any
            && has_one_value(&test.field)
        {
            tests.push(test);
        }
    }
    tests
}

/// Whether almost any text may be its value: others are of a few, whatever they have room for.
fn is_free(field: &Field) -> bool {
    matches!(
        field,
        Field::Host
            | Field::Url
            | Field::Path
            | Field::Query
            | Field::QueryParam(_)
            | Field::Header(_)
            | Field::Cookie(_)
            | Field::ContentType
            | Field::Payload(_)
            | Field::TlsSni
            | Field::TlsClientSubject
            | Field::TlsClientSan
    )
}

/// What a test looks for, where it may stand anywhere behind the beginning of a text.
fn inside_of(test: &Test) -> Option<Inside<'_>> {
    match &test.op {
        _ if !is_free(&test.field) => None,
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
    use std::sync::Arc;

    use pointsman_rules::{Targets, compile};

    use super::{Kin, Kinship};
    use crate::logic::question::Analyst;
    use crate::{Effort, Setting};

    /// By the places of two rules, what they are to each other.
    fn kinships(source: &str, pairs: &[(u32, u32)]) -> Vec<Kinship> {
        let program = Arc::new(compile(source, &Targets::Any).expect("it compiles").program);
        let setting = Setting::default();
        let mut analyst = Analyst::new(&program, &setting, Effort::new(1_000_000));
        let rules: Vec<u32> = (0..).take(program.rules.len()).collect();
        let kin = Kin::of(&program, &rules);
        let mut of_two = |(one, other): &(u32, u32)| {
            let kinship = kin.of_two(*one, *other, &mut analyst);
            assert_eq!(kin.of_two(*other, *one, &mut analyst), kinship, "{one} {other}");
            kinship
        };
        pairs.iter().map(&mut of_two).collect()
    }

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
        let found = kinships(source, &[(0, 3), (2, 0), (2, 3), (0, 1)]);
        assert_eq!(found, [Kinship::Close, Kinship::Strangers, Kinship::Strangers, Kinship::Close]);
    }

    #[test]
    fn what_only_looks_inside_is_in_nobody_s_way() {
        let source = r#"
            if (path matches "/a/.*[.](gif|png)$") { discard(); }
            if (path contains "/b/") { discard(); }
            if (path like "*/c/*" && host == "a") { discard(); }
            if (path contains "/e/" && path startsWith "/f") { discard(); }
            if (path contains "/b") { discard(); }
            if (path matches "[.](php|asp)$") { discard(); }
            if (path matches "/c/.*[.](gif|png)$") { discard(); }
            if (path like "*.css") { discard(); }
        "#;
        let strangers = [(0, 1), (0, 2), (0, 4), (0, 6), (1, 5), (2, 7)];
        assert_eq!(kinships(source, &strangers), [Kinship::Strangers; 6]);
        // One is part of the other; what is asked for twice is not known.
        assert_eq!(kinships(source, &[(1, 4), (1, 3)]), [Kinship::PerhapsStrangers, Kinship::Close]);
        // The ends are others.
        assert_eq!(kinships(source, &[(0, 5), (5, 7), (6, 7)]), [Kinship::Apart; 3]);
    }

    #[test]
    fn what_needs_other_values_is_apart() {
        let source = r#"
            if (path matches "^/[a-z]{2}/one/?$") { discard(); }
            if (path matches "^/two/(new|[0-9]+)$" && method == "GET") { discard(); }
            if (path matches "^/[a-z]+/on" && host like "a*") { discard(); }
            if (lower(path) matches "^/[a-z]{2}/one$") { discard(); }
            if (path matches "^/two/" || host like "b*") { discard(); }
            if (header["x"] matches "^a") { discard(); }
            if (header["x"] matches "^b") { discard(); }
            if (tls.cipher contains "AES") { discard(); }
            if (tls.cipher contains "CHACHA") { discard(); }
            if (tls.cipher like "TLS13_AES*") { discard(); }
            if (tls.cipher like "TLS13_CHACHA*") { discard(); }
        "#;
        let [apart, perhaps, close] = [Kinship::Apart, Kinship::PerhapsStrangers, Kinship::Close];
        let found = kinships(source, &[(0, 1), (1, 2), (0, 2), (0, 3), (0, 4), (2, 4), (5, 6)]);
        assert_eq!(found, [apart, apart, perhaps, close, close, close, close]);
        // No cipher is of both kinds, whatever there would be room for.
        assert_eq!(kinships(source, &[(7, 8), (9, 10)]), [close, apart]);
    }
}
