//! Tests of one field against plain texts, decided together: the field is looked up once, and so is each value.

use std::ops::{ControlFlow, Range};

use crate::pattern::under;
use crate::subject::TextRoom;
use crate::{Entry, Field, Op, Over, Subject, Test, Truth, Value};

/// `field == "a"`, `field startsWith "/b"`, `field under "/c"` and `field in ["d", "e"]`, of one field.
#[derive(Debug)]
pub(super) struct Group {
    field: Field,
    /// The numbers of its tests, which follow each other.
    pub(super) tests: Range<u32>,
    literals: Literals,
    /// What follows from the literals, those of one literal beside each other.
    consequences: Vec<Consequence>,
}

/// In the order of their bytes, each once.
#[derive(Debug, Default)]
struct Literals {
    /// How each begins: most can be told apart by that, and it is near at hand.
    heads: Vec<u64>,
    literals: Vec<Literal>,
}

/// A text that a value is compared with.
#[derive(Debug)]
struct Literal {
    text: Box<[u8]>,
    /// The longest other literal that this one starts with.
    shorter: Option<usize>,
    consequences: Range<usize>,
}

/// A test that is true of a value which stands in this relation to the literal.
#[derive(Debug)]
struct Consequence {
    relation: Relation,
    /// Its place among the tests of the group.
    test: usize,
}

/// How a value that begins with a literal stands to it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Relation {
    Equals,
    StartsWith,
    Under,
}

/// The literals of a test that a group can decide, or nothing for any other test.
///
/// Only what is true or false of each value by itself: "any" is then false until one value makes it true.
pub(super) fn literals_of(test: &Test) -> Option<Vec<(&[u8], Relation)>> {
    if test.over != Over::Any || test.fold_case {
        return None;
    }
    match &test.op {
        Op::TextEquals(text) => Some(vec![(text, Relation::Equals)]),
        Op::StartsWith(text) => Some(vec![(text, Relation::StartsWith)]),
        Op::Under(text) => Some(vec![(text, Relation::Under)]),
        Op::In(entries) => entries.iter().map(in_entry).collect(),
        _ => None,
    }
}

fn in_entry(entry: &Entry) -> Option<(&[u8], Relation)> {
    match entry {
        Entry::Text(text) => Some((text, Relation::Equals)),
        _ => None,
    }
}

impl Group {
    /// A group of `tests`, all of `field` and each with [`literals_of`], numbered from `first`.
    pub(super) fn new(field: &Field, first: u32, tests: &[&Test]) -> Group {
        let mut found: Vec<(&[u8], Consequence)> = Vec::new();
        for (place, test) in tests.iter().enumerate() {
            let literals = literals_of(test).unwrap_or_default().into_iter();
            found.extend(literals.map(|(text, relation)| (text, Consequence { relation, test: place })));
        }
        found.sort_by_key(|(text, _)| *text);
        let (mut literals, mut consequences) = (Literals::default(), Vec::new());
        for (text, consequence) in found {
            consequences.push(consequence);
            let end = consequences.len();
            match literals.literals.last_mut() {
                Some(last) if &*last.text == text => last.consequences.end = end,
                _ => {
                    let shorter = literals.longest_start(text);
                    literals.push(Literal { text: text.into(), shorter, consequences: end - 1..end });
                }
            }
        }
        let count = u32::try_from(tests.len()).unwrap_or(u32::MAX);
        Group { field: field.clone(), tests: first..first + count, literals, consequences }
    }

    /// What each of its tests comes to. A field that may yet have values makes unknown what is not true.
    pub(super) fn decide<S: Subject + ?Sized>(&self, subject: &S, truths: &mut [Option<Truth>]) {
        truths.fill(Some(Truth::False));
        let mut unless_true = Truth::False;
        subject.each(&self.field, &mut |value| {
            match value {
                Value::Text(text) => self.see(text, truths),
                Value::Nothing => {}
                Value::Unknown(cause) => unless_true = unless_true.or(Truth::Unknown(cause)),
                other => self.see(other.text(&mut TextRoom::default()), truths),
            }
            ControlFlow::Continue(())
        });
        if let Some(cause) = subject.unsettled(&self.field) {
            unless_true = unless_true.or(Truth::Unknown(cause));
        }
        if unless_true != Truth::False {
            truths
                .iter_mut()
                .filter(|truth| **truth == Some(Truth::False))
                .for_each(|truth| *truth = Some(unless_true));
        }
    }

    fn see(&self, value: &[u8], truths: &mut [Option<Truth>]) {
        // The value begins with this literal and all shorter ones that it begins with.
        let mut next = self.literals.longest_start(value);
        while let Some(literal) = next.and_then(|at| self.literals.literals.get(at)) {
            for consequence in &self.consequences[literal.consequences.clone()] {
                let holds = match consequence.relation {
                    Relation::Equals => value.len() == literal.text.len(),
                    Relation::StartsWith => true,
                    Relation::Under => under(&literal.text, value),
                };
                if holds && let Some(truth) = truths.get_mut(consequence.test) {
                    *truth = Some(Truth::True);
                }
            }
            next = literal.shorter;
        }
    }
}

impl Literals {
    fn push(&mut self, literal: Literal) {
        self.heads.push(head(&literal.text));
        self.literals.push(literal);
    }

    /// The longest literal that `text` starts with.
    ///
    /// What stands between a start of `text` and `text` itself starts with it too. So the greatest literal that is
    /// not beyond `text` either is the longest start or starts with it, and the way over shorter ones leads there.
    fn longest_start(&self, text: &[u8]) -> Option<usize> {
        let head = head(text);
        let mut beyond = self.heads.partition_point(|other| *other < head);
        if self.heads.get(beyond) == Some(&head) {
            let alike = self.heads[beyond..].partition_point(|other| *other == head);
            let alike = &self.literals[beyond..beyond + alike];
            beyond += alike.partition_point(|literal| *literal.text <= *text);
        }
        let mut next = beyond.checked_sub(1);
        while let Some(at) = next {
            let literal = &self.literals[at];
            if text.starts_with(&literal.text) {
                break;
            }
            next = literal.shorter;
        }
        next
    }
}

/// The first eight bytes as a number. Texts with smaller heads are smaller themselves: where one of them ended,
/// and zeros stand for what is not there, the other goes on.
fn head(text: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = text.len().min(head.len());
    head[..len].copy_from_slice(&text[..len]);
    u64::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::{MadeUpSubject, MadeUpValue};
    use crate::{Cause, Span};

    fn test(op: Op) -> Test {
        Test { span: Span::default(), field: Field::Path, over: Over::Any, fold_case: false, op }
    }

    fn equals(text: &str) -> Test {
        test(Op::TextEquals(text.as_bytes().into()))
    }

    fn starts_with(text: &str) -> Test {
        test(Op::StartsWith(text.as_bytes().into()))
    }

    fn is_under(text: &str) -> Test {
        test(Op::Under(text.as_bytes().into()))
    }

    /// The positions of the tests that are true of the values, one by one with the interpreter's.
    fn check(tests: &[Test], values: &[&str], expected: &[usize]) {
        let group = Group::new(&Field::Path, 0, &tests.iter().collect::<Vec<_>>());
        let values = values.iter().map(|value| MadeUpValue::Text(value.as_bytes().to_vec())).collect();
        let mut subject = MadeUpSubject { fields: vec![(Field::Path, values)], unsettled: vec![] };
        for (unsettled, otherwise) in
            [(vec![], Truth::False), (vec![(Field::Path, Cause::Limit)], Truth::Unknown(Cause::Limit))]
        {
            subject.unsettled = unsettled;
            let mut truths = vec![None; tests.len()];
            group.decide(&subject, &mut truths);
            for (place, test) in tests.iter().enumerate() {
                let truth = if expected.contains(&place) { Truth::True } else { otherwise };
                assert_eq!(truths[place], Some(truth), "{test:?} on {subject:?}");
                assert_eq!(test.eval(&subject), truth, "{test:?} on {subject:?}");
            }
        }
    }

    #[test]
    fn every_start_of_a_value_is_found() {
        let tests = ["/a/b/c", "/", "/a/x", "/a", "", "/b", "/a/b"].map(starts_with);
        check(&tests, &["/a/b/zzz"], &[1, 3, 4, 6]);
        check(&tests, &["/a/b/c"], &[0, 1, 3, 4, 6]);
        check(&tests, &["x"], &[4]);
        check(&tests, &[""], &[4]);
        check(&tests, &["/b", "/a/xy"], &[1, 2, 3, 4, 5]);
        check(&tests, &[], &[]);
    }

    #[test]
    fn literals_that_begin_alike_are_told_apart() {
        let tests =
            ["/a/long/", "/a/long/a", "/a/long/ab", "/a/long/b", "/a/lon", "x", "x\0"].map(starts_with);
        check(&tests, &["/a/long/ab"], &[0, 1, 2, 4]);
        check(&tests, &["/a/long/aa"], &[0, 1, 4]);
        check(&tests, &["/a/long/c"], &[0, 4]);
        check(&tests, &["/a/long/"], &[0, 4]);
        check(&tests, &["/a/long"], &[4]);
        check(&tests, &["x"], &[5]);
        check(&tests, &["x\0\0"], &[5, 6]);
        check(&tests, &["x\x01"], &[5]);
    }

    #[test]
    fn one_literal_serves_several_tests() {
        let list = Op::In(vec![Entry::Text(b"/b"[..].into()), Entry::Text(b"/a"[..].into())]);
        let tests = [equals("/a"), starts_with("/a"), is_under("/a"), is_under("/a/"), test(list)];
        check(&tests, &["/a"], &[0, 1, 2, 4]);
        check(&tests, &["/a/"], &[1, 2, 3]);
        check(&tests, &["/ab"], &[1]);
        check(&tests, &["/b"], &[4]);
    }

    #[test]
    fn what_is_more_than_texts_has_no_literals() {
        let mixed = Op::In(vec![Entry::Text(b"5"[..].into()), Entry::Number(5.into())]);
        for op in [mixed, Op::TextDiffers(b"a"[..].into()), Op::EndsWith(b"a"[..].into()), Op::Exists] {
            assert!(literals_of(&test(op)).is_none());
        }
        assert!(literals_of(&Test { fold_case: true, ..equals("a") }).is_none());
        assert!(literals_of(&Test { over: Over::All, ..equals("a") }).is_none());
        assert!(literals_of(&equals("a")).is_some());
    }
}
