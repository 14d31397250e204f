//! The tests of one question as variables of a SAT solver, and conditions over them as clauses.

use std::collections::BTreeMap;

use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface, SolverOpts, lbool};
use pointsman_rules::{Condition, Field, Op, Over, Test, pace};

use super::bounds::{Beside, Bounds};
use super::lemmas::{Lemma, Lemmas};
use super::states::States;
use crate::Effort;

/// A solver learns at most so many clauses for one answer.
const LEARNT_MAX: u64 = 20_000;
/// What is longer is told in pieces: a clause is read from its beginning for each literal of it that falls.
const LITERALS_MAX: usize = 256;

/// What conditions there are, as far as a question needs them. Each rule that plays a part is an assumption.
pub(super) struct World<'p> {
    solver: Solver<Patience>,
    /// Holds always.
    yes: Lit,
    tests: BTreeMap<u32, Known>,
    bounds: Bounds<'p, Known>,
    /// Tests that no lemma was looked up for.
    fresh: Vec<u32>,
}

/// A test and its two variables: one and its negation, where it cannot end unknown.
#[derive(Clone, Copy)]
struct Known {
    is_true: Lit,
    is_false: Lit,
}

/// What the solver says.
pub(super) enum Said {
    /// All of it can stand together; the model is there to be asked.
    Stands,
    /// It cannot, for what these assumptions say.
    Falls(Vec<Lit>),
    GaveUp,
}

impl<'p> World<'p> {
    pub(super) fn new() -> World<'p> {
        let mut solver = Solver::new(SolverOpts::default(), Patience::default());
        let yes = Lit::new(solver.new_var_default(), true);
        solver.add_clause_reuse(&mut vec![yes]);
        World { solver, yes, tests: BTreeMap::new(), bounds: Bounds::default(), fresh: Vec::new() }
    }

    /// What holds always.
    pub(super) fn yes(&self) -> Lit {
        self.yes
    }

    pub(super) fn variable(&mut self) -> Lit {
        Lit::new(self.solver.new_var_default(), true)
    }

    /// One of them holds.
    pub(super) fn clause(&mut self, mut literals: Vec<Lit>) {
        while literals.len() > LITERALS_MAX {
            let further = literals.split_off(LITERALS_MAX - 1);
            let is_among_further = self.variable();
            literals.push(is_among_further);
            self.solver.add_clause_reuse(&mut literals);
            literals = further;
            literals.push(!is_among_further);
        }
        self.solver.add_clause_reuse(&mut literals);
    }

    /// A literal that holds only where the condition comes to one of `states`.
    pub(super) fn require(&mut self, condition: &'p Condition, states: States) -> Lit {
        if states == States::ALL {
            return self.yes;
        }
        if states == States::NONE {
            return !self.yes;
        }
        match condition {
            Condition::Always if states.covers(States::TRUE) => self.yes,
            Condition::Always => !self.yes,
            Condition::Not(inner) => self.require(inner, states.negated()),
            Condition::Test(test) => self.require_test(test, states),
            Condition::And(parts) | Condition::Or(parts) => match Split::of(condition, states) {
                Split::Every => {
                    let all = parts.iter().map(|part| self.require(part, states)).collect();
                    self.all(all)
                }
                Split::Some => {
                    let any = parts.iter().map(|part| self.require(part, states)).collect();
                    self.any(any)
                }
                Split::Both(first, second) => {
                    let both = [first, second].map(|states| self.require(condition, states));
                    self.all(both.into())
                }
                Split::Either(first, second) => {
                    let either = [first, second].map(|states| self.require(condition, states));
                    self.any(either.into())
                }
            },
        }
    }

    fn require_test(&mut self, test: &'p Test, states: States) -> Lit {
        let known = self.know(test);
        match states {
            States::TRUE => known.is_true,
            States::FALSE => known.is_false,
            States::NOT_TRUE => !known.is_true,
            States::NOT_FALSE => !known.is_false,
            States::UNKNOWN => self.all(vec![!known.is_true, !known.is_false]),
            _ => self.any(vec![known.is_true, known.is_false]),
        }
    }

    fn know(&mut self, test: &'p Test) -> Known {
        if let Some(known) = self.tests.get(&test.number()) {
            return *known;
        }
        let is_true = self.variable();
        let is_false = if may_end_unknown(test) { self.variable() } else { !is_true };
        self.clause(vec![!is_true, !is_false]);
        let known = Known { is_true, is_false };
        self.tests.insert(test.number(), known);
        self.fresh.push(test.number());
        let Beside { weaker, stronger } = self.bounds.insert(test, known);
        weaker.into_iter().for_each(|weaker| self.follows(known, weaker));
        stronger.into_iter().for_each(|stronger| self.follows(stronger, known));
        known
    }

    /// Where one test is true another one is, and where that is false the one is.
    fn follows(&mut self, from: Known, test: Known) {
        self.clause(vec![!from.is_true, test.is_true]);
        self.clause(vec![!test.is_false, from.is_false]);
    }

    fn all(&mut self, parts: Vec<Lit>) -> Lit {
        if let [part] = parts.as_slice() {
            return *part;
        }
        let all = self.variable();
        for part in parts {
            self.clause(vec![!all, part]);
        }
        all
    }

    fn any(&mut self, mut parts: Vec<Lit>) -> Lit {
        if let [part] = parts.as_slice() {
            return *part;
        }
        let any = self.variable();
        parts.push(!any);
        self.clause(parts);
        any
    }

    /// Tells the solver what is known of the tests that came since.
    pub(super) fn learn(&mut self, lemmas: &Lemmas) {
        for test in std::mem::take(&mut self.fresh) {
            for lemma in lemmas.of(test) {
                self.forbid(lemma, None);
            }
        }
    }

    /// The tests of a lemma do not come to what it says, or `unless` does not hold. Nothing where one is not there.
    pub(super) fn forbid(&mut self, lemma: &Lemma, unless: Option<Lit>) {
        let mut clause: Vec<Lit> = unless.map(|guard| !guard).into_iter().collect();
        for (test, states) in lemma {
            let Some(known) = self.tests.get(test) else { return };
            match *states {
                States::TRUE => clause.push(!known.is_true),
                States::FALSE => clause.push(!known.is_false),
                States::NOT_TRUE => clause.push(known.is_true),
                States::NOT_FALSE => clause.push(known.is_false),
                States::UNKNOWN => clause.extend([known.is_true, known.is_false]),
                // It says nothing of this one, and so nothing that could be told.
                _ => return,
            }
        }
        self.clause(clause);
    }

    /// Whether all clauses and assumptions can stand together.
    pub(super) fn solve(&mut self, assumptions: &[Lit], effort: &mut Effort) -> Said {
        let before = self.solver.num_propagations() + self.solver.num_decisions();
        self.solver.cb_mut().learnt = 0;
        let said = self.solver.solve_limited(assumptions);
        let after = self.solver.num_propagations() + self.solver.num_decisions();
        if !effort.take(1 + (after - before) / 8) {
            return Said::GaveUp;
        }
        if said == lbool::TRUE {
            return Said::Stands;
        }
        if said != lbool::FALSE {
            return Said::GaveUp;
        }
        let guilty = |assumption: &&Lit| self.solver.unsat_core_contains_var(assumption.var());
        Said::Falls(assumptions.iter().filter(guilty).copied().collect())
    }

    /// Whether a literal holds in the model.
    pub(super) fn holds(&self, literal: Lit) -> bool {
        self.solver.value_lit(literal) == lbool::TRUE
    }

    fn state(&self, test: &Test) -> States {
        match self.tests.get(&test.number()) {
            Some(known) if self.holds(known.is_true) => States::TRUE,
            Some(known) if self.holds(known.is_false) => States::FALSE,
            _ => States::UNKNOWN,
        }
    }

    /// Literals that hold where a test comes to one of [`States::EACH`]; none of a test that plays no part.
    pub(super) fn stays(&self, test: &Test, state: States) -> Vec<Lit> {
        match self.tests.get(&test.number()) {
            None => Vec::new(),
            Some(known) if state == States::TRUE => vec![known.is_true],
            Some(known) if state == States::FALSE => vec![known.is_false],
            Some(known) => vec![!known.is_true, !known.is_false],
        }
    }

    /// What a condition comes to in the model.
    pub(super) fn state_of(&self, condition: &Condition) -> States {
        let least = |parts: &[Condition], settles: States, otherwise: States| {
            let mut result = otherwise;
            for part in parts {
                let state = self.state_of(part);
                if state == settles {
                    return settles;
                }
                if state == States::UNKNOWN {
                    result = state;
                }
            }
            result
        };
        match condition {
            Condition::Always => States::TRUE,
            Condition::Not(inner) => self.state_of(inner).negated(),
            Condition::And(parts) => least(parts, States::FALSE, States::TRUE),
            Condition::Or(parts) => least(parts, States::TRUE, States::FALSE),
            Condition::Test(test) => self.state(test),
        }
    }

    /// Adds to `matters` what tests have to come to, as they do in the model, for the condition to come to one of
    /// `states`, which it does in the model.
    pub(super) fn choose(&self, condition: &'p Condition, states: States, matters: &mut Matters<'p>) {
        if states == States::ALL {
            return;
        }
        match condition {
            Condition::Always => {}
            Condition::Not(inner) => self.choose(inner, states.negated(), matters),
            Condition::Test(test) => matters.add(test, states, self.state(test)),
            Condition::And(parts) | Condition::Or(parts) => match Split::of(condition, states) {
                Split::Every => parts.iter().for_each(|part| self.choose(part, states, matters)),
                Split::Some => {
                    let fitting = || parts.iter().filter(|part| states.covers(self.state_of(part)));
                    let chosen =
                        fitting().find(|part| matters.implies(part, states)).or_else(|| fitting().next());
                    if let Some(part) = chosen {
                        self.choose(part, states, matters);
                    }
                }
                Split::Both(first, second) => {
                    self.choose(condition, first, matters);
                    self.choose(condition, second, matters);
                }
                Split::Either(..) => self.choose(condition, self.state_of(condition), matters),
            },
        }
    }
}

/// What an `and` or an `or` asks of its parts.
enum Split {
    /// The same of every one.
    Every,
    /// The same of one at least.
    Some,
    /// It has to come to one of each.
    Both(States, States),
    /// It has to come to one of either.
    Either(States, States),
}

impl Split {
    fn of(condition: &Condition, states: States) -> Split {
        let is_and = matches!(condition, Condition::And(_));
        match states {
            States::TRUE | States::NOT_FALSE if is_and => Split::Every,
            States::FALSE | States::NOT_TRUE if !is_and => Split::Every,
            States::TRUE | States::NOT_FALSE | States::FALSE | States::NOT_TRUE => Split::Some,
            States::UNKNOWN => Split::Both(States::NOT_TRUE, States::NOT_FALSE),
            _ => Split::Either(States::TRUE, States::FALSE),
        }
    }
}

/// The tests that matter for something to hold, with what they may come to. All others may come to anything.
#[derive(Debug, Default)]
pub(super) struct Matters<'p> {
    tests: BTreeMap<u32, (&'p Test, States)>,
}

impl<'p> Matters<'p> {
    fn add(&mut self, test: &'p Test, states: States, model: States) {
        // Either of two is the one that the model has.
        let states = if states == States::KNOWN { model } else { states };
        let (_, known) = self.tests.entry(test.number()).or_insert((test, States::ALL));
        *known = known.and(states);
        if !may_end_unknown(test) {
            *known = known.and(States::KNOWN);
        }
    }

    /// Whether what matters already makes a plain test come to one of `states`.
    fn implies(&self, condition: &Condition, states: States) -> bool {
        match condition {
            Condition::Test(test) => {
                self.tests.get(&test.number()).is_some_and(|(_, known)| states.covers(*known))
            }
            Condition::Not(inner) => self.implies(inner, states.negated()),
            _ => false,
        }
    }

    /// In the order of their numbers.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'p Test, States)> + '_ {
        self.tests.values().copied()
    }

    /// All that matters, as something that is not to be.
    pub(super) fn lemma(&self) -> Lemma {
        self.tests.iter().map(|(number, (_, states))| (*number, *states)).collect()
    }
}

/// Whether a test may come to neither true nor false. For those that cannot, one variable does.
pub(super) fn may_end_unknown(test: &Test) -> bool {
    let is_payload = matches!(test.field, Field::Payload(_));
    let is_integer = matches!(test.field, Field::SrcPort | Field::DstPort | Field::ContentLength);
    let reads_text = match test.op {
        Op::Exists
        | Op::IsTrue
        | Op::IsFalse
        | Op::TextEquals(_)
        | Op::TextDiffers(_)
        | Op::TextOrder(..)
        | Op::Contains(_)
        | Op::StartsWith(_)
        | Op::EndsWith(_)
        | Op::Like(_)
        | Op::Matches(_)
        | Op::Under(_)
        | Op::IpIn(_)
        | Op::IpNotIn(_)
        | Op::IpOrder(..) => true,
        Op::NumberEquals(_) | Op::NumberDiffers(_) | Op::NumberOrder(..) | Op::In(_) => false,
    };
    match test.over {
        _ if is_payload => true,
        Over::Once => true,
        Over::Count => false,
        Over::Any | Over::All | Over::First => !(reads_text || is_integer),
    }
}

/// Ends a search that learns too much.
#[derive(Default)]
struct Patience {
    learnt: u64,
}

impl Callbacks for Patience {
    fn on_new_clause(&mut self, _clause: &[Lit], _kind: ClauseKind) {
        self.learnt += 1;
        pace::step();
    }

    fn stop(&self) -> bool {
        self.learnt > LEARNT_MAX
    }
}
