//! By which of its tests a rule is filed.

use super::formula::Formula;
use crate::Truth;

/// An "or" of more tests is visited for every subject.
const DISJUNCTION_MAX: usize = 32;

/// The tests of a formula of which one must hold.
pub(super) struct Choice {
    pub(super) score: u64,
    pub(super) tests: Vec<u32>,
}

impl Formula {
    /// The tests of which one must hold, or be unknown, for the formula to be anything but false: those with the best
    /// score. Nothing where there are none.
    pub(super) fn choice(&self, score: &impl Fn(u32) -> Option<u64>) -> Option<Choice> {
        match self {
            Formula::Constant(true) => None,
            Formula::Constant(false) => Some(Choice { score: 0, tests: Vec::new() }),
            Formula::Claim(claim) if claim.fails == Truth::False => {
                score(claim.test).map(|score| Choice { score, tests: vec![claim.test] })
            }
            Formula::Claim(_) => None,
            Formula::And(parts) => {
                parts.iter().filter_map(|part| part.choice(score)).min_by_key(|choice| choice.score)
            }
            Formula::Or(parts) => {
                let mut all = Choice { score: 0, tests: Vec::new() };
                for part in parts {
                    let choice = part.choice(score)?;
                    all.score += choice.score;
                    all.tests.extend(choice.tests);
                    if all.tests.len() > DISJUNCTION_MAX {
                        return None;
                    }
                }
                Some(all)
            }
        }
    }

    /// Calls `each` for the tests that the formula may be true by.
    pub(super) fn each_claim(&self, each: &mut impl FnMut(u32)) {
        match self {
            Formula::Constant(_) => {}
            Formula::Claim(claim) if claim.fails == Truth::False => each(claim.test),
            Formula::Claim(_) => {}
            Formula::And(parts) | Formula::Or(parts) => parts.iter().for_each(|part| part.each_claim(each)),
        }
    }
}
