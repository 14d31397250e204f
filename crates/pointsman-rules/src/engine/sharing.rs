//! Which tests of a program are the same, which are decided together, and the numbers they have.

use std::collections::HashMap;

use super::group::{Group, literals_of};
use crate::{Condition, Field, Op, Over, Test};

/// From this many texts on it pays to look at a field's values once for all of them; below, the tests by
/// themselves are faster.
const GROUP_LITERALS_MIN: usize = 4;

/// What makes two tests one, wherever they stand.
#[derive(PartialEq, Eq, Hash)]
struct Identity<'r> {
    field: &'r Field,
    over: Over,
    fold_case: bool,
    op: &'r Op,
}

/// The tests of a program, each once.
pub(super) struct Sharing<'r> {
    numbers: HashMap<Identity<'r>, u32>,
    /// They have the first numbers, in this order.
    pub(super) groups: Vec<Group>,
    /// Those of no group: they have the numbers behind.
    pub(super) lone: Vec<Test>,
    /// How many tests are worth remembering, the groups' among them: the first ones. Those behind stand in one
    /// place only.
    pub(super) remembered: usize,
}

impl<'r> Sharing<'r> {
    #[expect(clippy::mutable_key_type, reason = "of a regex only its text is compared, never its cache")]
    pub(super) fn of(conditions: impl IntoIterator<Item = &'r Condition>) -> Sharing<'r> {
        let mut places: HashMap<Identity, usize> = HashMap::new();
        let mut tests = Vec::new();
        for condition in conditions {
            gather(condition, &mut |test| {
                let places = places.entry(Identity::of(test)).or_default();
                *places += 1;
                if *places == 1 {
                    tests.push(test);
                }
            });
        }
        let (groupable, mut lone): (Vec<_>, Vec<_>) =
            tests.into_iter().partition(|test| literals_of(test).is_some());
        let (mut numbers, mut groups, mut next) = (HashMap::with_capacity(places.len()), Vec::new(), 0);
        for members in by_field(groupable) {
            let literals: usize =
                members.iter().map(|test| literals_of(test).unwrap_or_default().len()).sum();
            if literals < GROUP_LITERALS_MIN {
                lone.extend(members);
                continue;
            }
            let group = Group::new(&members[0].field, next, &members);
            numbers.extend(members.into_iter().map(Identity::of).zip(group.tests.clone()));
            next = group.tests.end;
            groups.push(group);
        }
        let stands_once = |test: &&Test| places[&Identity::of(test)] == 1;
        lone.sort_by_key(stands_once);
        let remembered = next as usize + lone.partition_point(|test| !stands_once(test));
        numbers.extend(lone.iter().map(|test| Identity::of(test)).zip(next..));
        Sharing { numbers, groups, lone: lone.into_iter().cloned().collect(), remembered }
    }

    /// The number of a test, which is one of those that the conditions are made of.
    pub(super) fn number(&self, test: &Test) -> u32 {
        self.numbers[&Identity::of(test)]
    }
}

impl<'r> Identity<'r> {
    fn of(test: &'r Test) -> Identity<'r> {
        let Test { span: _, field, over, fold_case, op } = test;
        Identity { field, over: *over, fold_case: *fold_case, op }
    }
}

/// The tests of each field, in the order in which the fields come.
fn by_field(tests: Vec<&Test>) -> Vec<Vec<&Test>> {
    let mut places: HashMap<&Field, usize> = HashMap::new();
    let mut fields: Vec<Vec<&Test>> = Vec::new();
    for test in tests {
        let place = *places.entry(&test.field).or_insert(fields.len());
        if place == fields.len() {
            fields.push(Vec::new());
        }
        fields[place].push(test);
    }
    fields
}

/// Calls `each` for the tests of a condition, from left to right.
fn gather<'r>(condition: &'r Condition, each: &mut impl FnMut(&'r Test)) {
    match condition {
        Condition::Always => {}
        Condition::Not(inner) => gather(inner, each),
        Condition::And(parts) | Condition::Or(parts) => parts.iter().for_each(|part| gather(part, each)),
        Condition::Test(test) => each(test),
    }
}
