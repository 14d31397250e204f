//! Numbers that the same values are compared with, in their order: what is above one of them is above all lower ones.
//!
//! That holds for each value, for whatever a test asks of several, and for what is unknown: a value that is no number is
//! none for every bound. So the solver need not learn it pair by pair.

use std::collections::{BTreeMap, HashMap};

use pointsman_rules::{Decimal, Field, Op, Order, Over, Test};

/// What is known of tests that compare with a bound.
#[derive(Debug)]
pub(super) struct Bounds<'p, T> {
    /// By place along the numbers: just before a bound, or just behind it.
    sides: HashMap<Side<'p>, BTreeMap<(&'p Decimal, bool), T>>,
}

/// What is compared, and on which side of the bound it is to be.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Side<'p> {
    field: &'p Field,
    over: Over,
    is_above: bool,
}

/// The tests next to one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Beside<T> {
    /// True wherever it is.
    pub(super) weaker: Option<T>,
    /// True only where it is.
    pub(super) stronger: Option<T>,
}

impl<T> Default for Bounds<'_, T> {
    fn default() -> Self {
        Bounds { sides: HashMap::new() }
    }
}

impl<'p, T: Copy> Bounds<'p, T> {
    /// Adds a test, if it is such; those next to it.
    pub(super) fn insert(&mut self, test: &'p Test, known: T) -> Beside<T> {
        let Op::NumberOrder(order, bound) = &test.op else { return Beside { weaker: None, stronger: None } };
        let (is_above, is_behind) = match order {
            Order::Greater => (true, true),
            Order::GreaterOrEqual => (true, false),
            Order::LessOrEqual => (false, true),
            Order::Less => (false, false),
        };
        let side = Side { field: &test.field, over: test.over, is_above };
        let (places, place) = (self.sides.entry(side).or_default(), (bound, is_behind));
        let lower = places.range(..place).next_back().map(|(_, known)| *known);
        let higher = places.range(place..).next().map(|(_, known)| *known);
        places.insert(place, known);
        match is_above {
            true => Beside { weaker: lower, stronger: higher },
            false => Beside { weaker: higher, stronger: lower },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use pointsman_rules::{Test, Truth};

    use super::super::tests::{program, subjects};
    use super::{Beside, Bounds};

    fn rank(truth: Truth) -> u8 {
        match truth {
            Truth::False => 0,
            Truth::Unknown(_) => 1,
            Truth::True => 2,
        }
    }

    #[test]
    fn tests_are_no_less_true_than_stronger_ones() {
        let mut source = String::new();
        for over in ["FIELD", "all(FIELD)", "first(FIELD)", "once(FIELD)", "count(FIELD)"] {
            for bound in [3, 1, 9, 5] {
                for order in ["<", ">", "<=", ">="] {
                    let field = over.replace("FIELD", r#"header["a"]"#);
                    source += &format!("if ({field} {order} {bound}) {{ tag(t); }}\n");
                }
            }
        }
        let program = program(&source);
        let (mut bounds, mut tests, mut pairs) =
            (Bounds::default(), HashMap::<u32, &Test>::new(), Vec::new());
        for rule in &program.rules {
            rule.condition.each_test(&mut |test| {
                let Beside { weaker, stronger } = bounds.insert(test, test.number());
                tests.insert(test.number(), test);
                pairs.extend(weaker.map(|weaker| (test.number(), weaker)));
                pairs.extend(stronger.map(|stronger| (stronger, test.number())));
            });
        }
        // Each but the first of its side has one beside it at least.
        assert!(pairs.len() >= tests.len() - 10, "{pairs:?}");
        for subject in subjects(&program) {
            for (stronger, weaker) in &pairs {
                let truths = [stronger, weaker].map(|number| tests[number].eval(&subject));
                assert!(rank(truths[0]) <= rank(truths[1]), "{:?} {:?}", tests[stronger], tests[weaker]);
            }
        }
    }
}
