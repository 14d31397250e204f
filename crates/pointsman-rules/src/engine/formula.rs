//! Conditions over the numbers of shared tests, with every "not" beside a test.

use crate::{Condition, Truth};

/// What a [`Condition`] means once its tests have numbers.
///
/// Kleene's "not" goes into "and" and "or" (De Morgan), and "and" inside "and" needs no brackets; both hold with
/// causes too, as the laws in `truth.rs` show.
#[derive(Debug)]
pub(super) enum Formula {
    Constant(bool),
    Claim(Claim),
    And(Vec<Formula>),
    Or(Vec<Formula>),
}

/// A test or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) test: u32,
    /// What the test comes to where the claim is false: false, or true for a negation.
    pub(super) fails: Truth,
}

impl Claim {
    /// What it comes to where its test comes to `truth`.
    #[inline]
    pub(super) fn of(self, truth: Truth) -> Truth {
        if self.fails == Truth::True { !truth } else { truth }
    }
}

impl Formula {
    pub(super) fn new(condition: &Condition) -> Formula {
        Formula::build(condition, false)
    }

    fn build(condition: &Condition, is_negated: bool) -> Formula {
        match condition {
            Condition::Always => Formula::Constant(!is_negated),
            Condition::Test(test) => Formula::Claim(Claim { test: test.number, fails: is_negated.into() }),
            Condition::Not(inner) => Formula::build(inner, !is_negated),
            Condition::And(parts) | Condition::Or(parts) => {
                let is_and = matches!(condition, Condition::And(_)) != is_negated;
                let mut built = Vec::with_capacity(parts.len());
                for part in parts {
                    match (Formula::build(part, is_negated), is_and) {
                        (Formula::And(inner), true) | (Formula::Or(inner), false) => built.extend(inner),
                        (part, _) => built.push(part),
                    }
                }
                if is_and { Formula::And(built) } else { Formula::Or(built) }
            }
        }
    }

    /// What it comes to, where `truth` tells what a test does.
    pub(super) fn eval(&self, truth: &mut impl FnMut(u32) -> Truth) -> Truth {
        match self {
            Formula::Constant(holds) => (*holds).into(),
            Formula::Claim(claim) => claim.of(truth(claim.test)),
            Formula::And(parts) => {
                let mut result = Truth::True;
                for part in parts {
                    result = result.and(part.eval(truth));
                    if result == Truth::False {
                        break;
                    }
                }
                result
            }
            Formula::Or(parts) => {
                let mut result = Truth::False;
                for part in parts {
                    result = result.or(part.eval(truth));
                    if result == Truth::True {
                        break;
                    }
                }
                result
            }
        }
    }
}
