//! What a condition asks to be equal, by which it is seen at once that two rules do not meet.

use std::collections::HashMap;

use pointsman_rules::{Condition, Entry, Field, Op, Over, Test};

/// Of a field with one value, which texts it may have where a condition is true.
#[derive(Debug, Default)]
pub(super) struct Keys<'p>(Vec<(&'p Field, Vec<&'p [u8]>)>);

impl<'p> Keys<'p> {
    pub(super) fn of(condition: &'p Condition) -> Keys<'p> {
        let mut keys = Keys::default();
        keys.add(condition);
        keys
    }

    fn add(&mut self, condition: &'p Condition) {
        match condition {
            Condition::And(parts) => parts.iter().for_each(|part| self.add(part)),
            Condition::Test(test) => self.0.extend(equal(test).map(|texts| (&test.field, texts))),
            _ => {}
        }
    }

    /// Whether both conditions may be true of one request, as far as that is seen here.
    pub(super) fn may_meet(&self, other: &Keys<'_>) -> bool {
        self.0.iter().all(|(field, texts)| {
            let same_field = other.0.iter().filter(|(name, _)| name == field);
            same_field.into_iter().all(|(_, others)| texts.iter().any(|text| others.contains(text)))
        })
    }
}

/// The texts of which the field's one value is one.
fn equal(test: &Test) -> Option<Vec<&[u8]>> {
    let has_one_value = matches!(
        test.field,
        Field::Proto
            | Field::Scheme
            | Field::TlsSni
            | Field::TlsVersion
            | Field::TlsCipher
            | Field::TlsAlpn
            | Field::TlsClientSubject
            | Field::TlsClientFingerprint
            | Field::Method
            | Field::Host
            | Field::Url
            | Field::Path
            | Field::Query
            | Field::Version
    );
    if !has_one_value || test.fold_case || test.over == Over::Count {
        return None;
    }
    match &test.op {
        Op::TextEquals(text) => Some(vec![text]),
        Op::In(entries) => entries
            .iter()
            .map(|entry| match entry {
                Entry::Text(text) => Some(&**text),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

/// Rules by what they ask to be equal.
pub(super) struct Index<'k, 'p> {
    keys: &'k [Keys<'p>],
    /// Which rules ask a field to be a text.
    asking: HashMap<(&'p Field, &'p [u8]), Vec<u32>>,
    /// Which rules ask nothing such of a field.
    free: HashMap<&'p Field, Vec<u32>>,
}

impl<'k, 'p> Index<'k, 'p> {
    /// Of these rules, in their order.
    pub(super) fn new(rules: &[u32], keys: &'k [Keys<'p>]) -> Index<'k, 'p> {
        let mut index = Index { keys, asking: HashMap::new(), free: HashMap::new() };
        let of = |rule: &u32| keys.get(*rule as usize);
        for (rule, keys) in rules.iter().filter_map(|rule| Some((*rule, of(rule)?))) {
            for (field, texts) in &keys.0 {
                index.free.entry(field).or_default();
                for text in texts {
                    index.asking.entry((field, text)).or_default().push(rule);
                }
            }
        }
        for (field, free) in &mut index.free {
            let asks_nothing = |keys: &Keys<'_>| !keys.0.iter().any(|(name, _)| name == field);
            free.extend(rules.iter().copied().filter(|rule| of(rule).is_some_and(asks_nothing)));
        }
        index
    }

    /// The rules before one that may meet it, by the field that leaves the fewest; nothing where it asks nothing.
    pub(super) fn before(&self, rule: u32) -> Option<Vec<u32>> {
        let own = self.keys.get(rule as usize)?;
        let lists = |field: &'p Field, texts: &[&'p [u8]]| -> Vec<&[u32]> {
            let asking = texts.iter().filter_map(|text| self.asking.get(&(field, *text)));
            asking
                .chain(self.free.get(field))
                .map(|rules| rules.split_at(rules.partition_point(|r| *r < rule)).0)
                .collect()
        };
        let fewest = own
            .0
            .iter()
            .map(|(field, texts)| lists(field, texts))
            .min_by_key(|lists| lists.iter().map(|list| list.len()).sum::<usize>())?;
        let mut before: Vec<u32> = fewest.concat();
        before.sort_unstable();
        before.dedup();
        before.retain(|other| self.keys.get(*other as usize).is_some_and(|keys| keys.may_meet(own)));
        Some(before)
    }
}

#[cfg(test)]
mod tests {
    use pointsman_rules::{Targets, compile};

    use super::{Index, Keys};

    #[test]
    fn rules_that_cannot_meet_are_not_compared() {
        let source = r#"
            if (host == "a" && path == "/x") { discard(); }
            if (host in ["a", "b"]) { discard(); }
            if (host == "b" && lower(path) == "/y") { discard(); }
            if (path == "/y") { discard(); }
            if (host == "a" && path == "/y") { discard(); }
            if (host == "c" || path == "/z") { discard(); }
        "#;
        let program = compile(source, &Targets::Any).expect("it compiles").program;
        let keys: Vec<_> = program.rules.iter().map(|rule| Keys::of(&rule.condition)).collect();
        let rules: Vec<u32> = (0..6).collect();
        let index = Index::new(&rules, &keys);
        assert_eq!(index.before(4), Some(vec![1, 3]));
        assert_eq!(index.before(2), Some(vec![1]));
        assert_eq!(index.before(3), Some(vec![1, 2]));
        assert_eq!(index.before(5), None);
    }
}
