//! Conditions made ready for many subjects: tests that rules share are asked once, tests of one field together, and
//! only rules that what was seen does not rule out are visited.
//!
//! It says what the plain interpreter in `eval.rs` says, only sooner; property tests hold it to that.

mod asks;
mod certificate;
mod choice;
mod formula;
mod literals;
mod names;
mod numbering;
mod planning;
mod postings;
mod questions;
mod rarest;
mod reading;
mod scale;
mod signs;
mod stabs;
#[cfg(test)]
mod tests;
mod trie;

pub(crate) use self::asks::NONE;
use self::asks::{Asks, Numbers, offset};
pub use self::certificate::{Certificate, Unseparated};
use self::formula::{Claim, Formula};
pub(crate) use self::numbering::{number_further, number_tests};
use self::planning::{Candidate, Planner};
use self::postings::{Postings, Walk};
use self::questions::Questions;
pub(crate) use self::reading::Reading;
use crate::evidence::Gathered;
use crate::{Exit, OnUnknown, Rule, RuleIndex, Subject, Test, Truth, Truths, pace};

/// The conditions of a program's rules, the fallback's among them.
#[derive(Debug)]
pub(crate) struct Engine {
    /// One a rule, in their order.
    lines: Vec<Line>,
    /// The guards of all lines, one line's behind another's: claims that a condition is false without, parts of an
    /// "and" at its top.
    guards: Vec<Claim>,
    asks: Asks,
    pub(crate) questions: Questions,
    /// Of few rules none: each is visited.
    postings: Option<Postings>,
    pub(crate) certificate: Certificate,
}

/// A rule's condition.
#[derive(Debug)]
struct Line {
    guards_start: u32,
    guards_end: u32,
    /// The parts that are no guards.
    rest: Box<[Formula]>,
    /// Nothing happens when it is false.
    is_silent: bool,
}

/// How large what is simple may get before it is made fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Up to this many rules each is visited: to find out which may hold takes longer.
    pub(crate) plain_rules_max: usize,
    /// A longer list of rules is told apart by further fields.
    pub(crate) list_rules_max: usize,
    /// Up to this many fields of a kind that has names each is looked up by itself.
    pub(crate) few_names_max: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { plain_rules_max: 16, list_rules_max: 32, few_names_max: 16 }
    }
}

/// What the engine may be made of, whatever the number of rules.
#[cfg(test)]
pub(crate) fn engines(program: &crate::Program) -> Vec<Engine> {
    let rules = program.rules.iter().chain(&program.fallback);
    let engine = |(plain_rules_max, list_rules_max, few_names_max)| {
        let sizes = Sizes { plain_rules_max, list_rules_max, few_names_max };
        Engine::new(rules.clone(), program.on_unknown, sizes)
    };
    [(usize::MAX, 0, 0), (0, 2, 0), (0, 32, 16)].map(engine).into()
}

impl Engine {
    /// The engine for these rules.
    pub(crate) fn new<'r>(
        rules: impl Iterator<Item = &'r Rule> + Clone,
        on_unknown: OnUnknown,
        sizes: Sizes,
    ) -> Engine {
        let rules = pace::each(rules);
        let numbers = Numbers::of(rules.clone().map(|rule| &rule.condition));
        let formulas: Vec<Formula> = rules.clone().map(|rule| Formula::new(&rule.condition)).collect();
        let is_small = formulas.len() <= sizes.plain_rules_max;
        let asks = Asks::new(&numbers, is_small, sizes);
        let (mut postings, mut certificate) = (None, Certificate::of_all(formulas.len()));
        if !is_small {
            // A rule that is skipped all the same is waited for, where the body may yet say of it.
            let skips = on_unknown == OnUnknown::Skip;
            let heeds_unknown = !skips || numbers.any_of_body();
            let candidates = rules.clone().zip(&formulas).map(|(rule, formula)| Candidate {
                formula,
                is_silent: rule.otherwise.is_empty(),
                decides: matches!(rule.then.exit, Exit::Terminal(_)) && !(skips && heeds_unknown),
            });
            let mut planner = Planner::new(candidates.collect(), &asks, heeds_unknown, sizes.list_rules_max);
            planner.plan();
            certificate = Certificate::new(&planner, &numbers);
            postings = Some(planner.postings);
            pace::drop_each(planner.signs);
        }
        let (mut lines, mut guards) = (Vec::with_capacity(formulas.len()), Vec::new());
        for (rule, formula) in rules.zip(formulas) {
            lines.push(Line::new(rule, formula, &asks, &mut guards));
        }
        let questions = Questions::new(&numbers, &asks);
        Engine { lines, guards, asks, questions, postings, certificate }
    }

    pub(crate) fn reading(&self, number: u32) -> Option<&Reading> {
        self.asks.readings.get(number as usize)
    }

    /// A test that may be asked by itself: none of the head that is read off what values show.
    pub(crate) fn lone_test(&self, number: u32) -> Option<&Test> {
        self.asks.lone_test(self.asks.ask(number))
    }

    /// The reading that a test is read off.
    pub(crate) fn read_off(&self, number: u32) -> Option<u32> {
        let ask = self.asks.ask(number);
        ask.is_read_off().then_some(ask.reading)
    }

    /// What such a test comes to by what was gathered of its reading.
    pub(crate) fn of_gathered(&self, number: u32, gathered: &Gathered) -> Truth {
        self.asks.of_gathered(self.asks.ask(number), gathered)
    }

    /// How many signs a value may show.
    pub(crate) fn signs_count(&self) -> usize {
        self.asks.signs_count
    }

    /// Whether it would save nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.postings.is_none() && self.asks.is_idle()
    }

    /// Makes `truths` ready for a subject that nothing is known of.
    pub(crate) fn begin(&self, truths: &mut Truths) {
        truths.forget(self.asks.slots, self.asks.readings.len(), self.asks.signs_count);
        if let Some(postings) = &self.postings {
            postings.begin(truths);
        }
    }

    /// The first rule from `from` on that does not simply do nothing because it is false, and what its condition
    /// comes to. Within one decision `from` never goes back.
    pub(crate) fn next<S: Subject + ?Sized>(
        &self,
        from: RuleIndex,
        subject: &S,
        truths: &mut Truths,
    ) -> Option<(RuleIndex, Truth)> {
        let mut at = from.0;
        loop {
            if let Some(postings) = &self.postings {
                let walk = Walk { postings, asks: &self.asks, subject };
                let cursor = walk.next(at, truths)?;
                at = cursor.least;
                if walk.is_true(cursor, truths) {
                    return Some((RuleIndex(at), Truth::True));
                }
            }
            let line = self.lines.get(at as usize)?;
            let truth = self.eval(line, subject, truths);
            if truth != Truth::False || !line.is_silent {
                return Some((RuleIndex(at), truth));
            }
            at += 1;
        }
    }

    /// The same, asking the next rules one by one as long as `near` says. What has become known of a body is not looked
    /// up for all rules then.
    pub(crate) fn next_near<S: Subject + ?Sized>(
        &self,
        from: RuleIndex,
        near: &mut u32,
        subject: &S,
        truths: &mut Truths,
    ) -> Option<(RuleIndex, Truth)> {
        let mut at = from.0;
        while *near > 0 {
            *near -= 1;
            let line = self.lines.get(at as usize)?;
            let truth = self.eval_by(line, &mut |test| self.asks.truth_alone(test, subject, truths));
            if truth != Truth::False || !line.is_silent {
                return Some((RuleIndex(at), truth));
            }
            at += 1;
        }
        self.next(RuleIndex(at), subject, truths)
    }

    fn eval<S: Subject + ?Sized>(&self, line: &Line, subject: &S, truths: &mut Truths) -> Truth {
        self.eval_by(line, &mut |test| self.asks.truth(test, subject, truths))
    }

    #[inline]
    fn eval_by(&self, line: &Line, truth: &mut impl FnMut(u32) -> Truth) -> Truth {
        let mut result = Truth::True;
        for guard in &self.guards[line.guards_start as usize..line.guards_end as usize] {
            result = result.and(guard.of(truth(guard.test)));
            if result == Truth::False {
                return result;
            }
        }
        for part in &line.rest {
            result = result.and(part.eval(truth));
            if result == Truth::False {
                return result;
            }
        }
        result
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        pace::step();
    }
}

impl Line {
    /// Adds its guards to `guards`, those that take little effort first: which is asked first changes nothing
    /// about what a condition comes to.
    fn new(rule: &Rule, formula: Formula, asks: &Asks, guards: &mut Vec<Claim>) -> Line {
        let parts = match formula {
            Formula::And(parts) => parts,
            Formula::Constant(true) => Vec::new(),
            other => vec![other],
        };
        let guards_start = guards.len();
        let mut rest = Vec::new();
        for part in parts {
            match part {
                Formula::Claim(claim) => guards.push(claim),
                part => rest.push(part),
            }
        }
        guards[guards_start..].sort_by_key(|guard| asks.ask(guard.test).effort);
        Line {
            guards_start: offset(guards_start),
            guards_end: offset(guards.len()),
            rest: rest.into(),
            is_silent: rule.otherwise.is_empty(),
        }
    }
}
