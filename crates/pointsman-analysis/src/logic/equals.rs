//! Rules whose conditions are equal, whatever their order and spelling: found without a search, so that no budget hides them.

use std::collections::HashMap;

use pointsman_rules::{Condition, Entry, Field, OnUnknown, Op, Over, Program, pace};

use super::states::States;
use super::walk::{Step, Walk};

/// A condition in one form: negations at the tests, parts sorted and each once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Form {
    Always(bool),
    /// A test by its number here, and whether it is negated.
    Test(u32, bool),
    And(Vec<Form>),
    Or(Vec<Form>),
}

/// Field, quantifier, case folding and comparison of a test: tests with equal ones ask the same.
type Asked<'p> = (&'p Field, Over, bool, Op);

/// The first rule before each that has the same condition and decides what makes it true.
#[derive(Debug)]
pub(super) struct Equals {
    earlier: HashMap<u32, u32>,
}

impl Equals {
    #[expect(clippy::mutable_key_type, reason = "of a regex only its text is compared, never its cache")]
    pub(super) fn of(program: &Program, walk: &Walk) -> Equals {
        let mut numbers: HashMap<Asked<'_>, u32> = HashMap::new();
        let mut first: HashMap<Form, u32> = HashMap::new();
        let mut earlier = HashMap::new();
        for (index, rule) in (0..).zip(pace::each(&program.rules)) {
            let form = form(&rule.condition, false, &mut numbers);
            if let Some(known) = first.get(&form) {
                earlier.insert(index, *known);
                continue;
            }
            // An action over the body may be skipped where its value is unknown.
            let is_skipped = program.on_unknown == OnUnknown::Skip && !rule.then.awaits.is_empty();
            let decides = walk.step(index, States::TRUE) == Step::Decides && !is_skipped;
            // What it takes comes to no later rule, and nothing gets around it.
            if decides && walk.over(index).next().is_none() {
                first.insert(form, index);
            }
        }
        Equals { earlier }
    }

    /// The rule that leaves a rule no request to make its condition true.
    pub(super) fn before(&self, rule: u32) -> Option<u32> {
        self.earlier.get(&rule).copied()
    }
}

#[expect(clippy::mutable_key_type, reason = "of a regex only its text is compared, never its cache")]
fn form<'p>(condition: &'p Condition, negated: bool, numbers: &mut HashMap<Asked<'p>, u32>) -> Form {
    match condition {
        Condition::Always => Form::Always(!negated),
        Condition::Not(inner) => form(inner, !negated, numbers),
        Condition::Test(test) => {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let asked = (&test.field, test.over, test.fold_case, plain(&test.op));
            Form::Test(*numbers.entry(asked).or_insert(next), negated)
        }
        Condition::And(parts) | Condition::Or(parts) => {
            let is_and = matches!(condition, Condition::And(_)) != negated;
            let mut forms = Vec::with_capacity(parts.len());
            for part in parts {
                match (form(part, negated, numbers), is_and) {
                    (Form::And(inner), true) | (Form::Or(inner), false) => forms.extend(inner),
                    (other, _) => forms.push(other),
                }
            }
            pace::sort(&mut forms);
            forms.dedup();
            match forms.pop() {
                Some(only) if forms.is_empty() => only,
                last => {
                    forms.extend(last);
                    if is_and { Form::And(forms) } else { Form::Or(forms) }
                }
            }
        }
    }
}

/// A list of one value is that value; the order of a list makes no difference.
fn plain(op: &Op) -> Op {
    let Op::In(entries) = op else { return op.clone() };
    match entries.as_slice() {
        [Entry::Text(text)] => Op::TextEquals(text.clone()),
        [Entry::Number(number)] => Op::NumberEquals(number.clone()),
        [Entry::Network(network)] => Op::IpIn(*network),
        entries => {
            let mut spelled: Vec<_> = entries.iter().map(|entry| (format!("{entry:?}"), entry)).collect();
            spelled.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            spelled.dedup_by(|one, other| one.1 == other.1);
            Op::In(spelled.into_iter().map(|(_, entry)| entry.clone()).collect())
        }
    }
}
