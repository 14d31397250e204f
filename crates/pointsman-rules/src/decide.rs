//! The walk over the rules, from the first to the one that decides.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use crate::engine::Engine;
use crate::{
    Block, Cause, Effect, Exit, OnUnknown, Program, Rule, RuleIndex, Subject, TargetId, Terminal, Truth,
    Truths, Value,
};

/// So many rules behind the one that a decision waited at are asked one by one. Looking up which of the others may hold
/// takes about as long.
const NEAR_RULES_MAX: u32 = 16;

/// What the rules say about a subject.
#[derive(Clone, Debug)]
pub struct Decision<'r> {
    /// Which rule decided.
    pub by: DecidedBy<'r>,
    /// What it decided.
    pub outcome: Outcome<'r>,
    /// What was collected on the way, in order; committed together with the outcome. Of a request that is refused as
    /// unknown nothing is committed but its tags, so nothing else is here.
    pub effects: SmallVec<[&'r Effect; 4]>,
}

/// Which rule decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy<'r> {
    /// A rule: one of the list, or the final `else:`, whose index is the list's length.
    Rule {
        /// Its position.
        index: RuleIndex,
        /// Its label.
        label: &'r str,
    },
    /// None of them.
    Nothing,
}

/// What was decided.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'r> {
    /// What the rule's terminal action says.
    Terminal(&'r Terminal),
    /// The rule's condition ended unknown, and `on_unknown routeTo` names who takes that.
    RouteUnknown {
        /// Who takes it; not sticky.
        target: TargetId,
        /// Why it is unknown.
        cause: Cause,
    },
    /// The rule's condition ended unknown, and `on_unknown reject` refuses that with
    /// [`Cause::status`].
    Refused(Cause),
    /// No rule decided: the listener's default pool takes it.
    DefaultPool,
    /// Nothing is decided yet: the rule's condition is [`Cause::Unread`]. Ask again when more of the subject is known.
    Waits,
}

impl<'r> DecidedBy<'r> {
    /// The rule's label, for people.
    #[must_use]
    pub fn label(self) -> Option<&'r str> {
        match self {
            DecidedBy::Rule { label, .. } => Some(label),
            DecidedBy::Nothing => None,
        }
    }
}

impl Program {
    /// What the rules say about `subject`: the first rule that decides, decides. `truths` is room that the caller
    /// keeps for the next decision, about any subject and of any program.
    pub fn decide<S: Subject + ?Sized>(&self, subject: &S, truths: &mut Truths) -> Decision<'_> {
        if self.engine.is_idle() {
            return self.interpret(subject, |_| {});
        }
        self.decide_by(&self.engine, subject, truths)
    }

    pub(crate) fn decide_by<S: Subject + ?Sized>(
        &self,
        engine: &Engine,
        subject: &S,
        truths: &mut Truths,
    ) -> Decision<'_> {
        engine.begin(truths);
        let next = |from| {
            let (index, truth) = engine.next(from, subject, truths)?;
            let rule = self.rule(index)?;
            Some((index, rule, rule.awaited(truth, subject)))
        };
        self.walk(RuleIndex(0), next, |_| {})
    }

    /// What the rules from `from` on say, where those before it have nothing more to say: their effects are left out.
    pub(crate) fn decide_from<S: Subject + ?Sized>(
        &self,
        engine: &Engine,
        from: RuleIndex,
        subject: &S,
        truths: &mut Truths,
    ) -> Decision<'_> {
        engine.begin(truths);
        let mut near = NEAR_RULES_MAX;
        let next = |from| {
            let (index, truth) = engine.next_near(from, &mut near, subject, truths)?;
            let rule = self.rule(index)?;
            Some((index, rule, rule.awaited(truth, subject)))
        };
        self.walk(from, next, |_| {})
    }

    /// What the rules behind the one at `index` say, as if there were no others; what those before collect is left out.
    pub fn decide_behind<S: Subject + ?Sized>(
        &self,
        index: RuleIndex,
        subject: &S,
        truths: &mut Truths,
    ) -> Decision<'_> {
        let from = RuleIndex(index.0.saturating_add(1));
        if self.engine.is_idle() {
            return self.interpret_from(from, subject, |_| {});
        }
        self.decide_from(&self.engine, from, subject, truths)
    }

    /// What [`Program::decide`] says, rule by rule: slow and obvious, for comparison.
    pub fn decide_plainly<S: Subject + ?Sized>(&self, subject: &S) -> Decision<'_> {
        self.interpret(subject, |_| {})
    }

    /// The rule at `index`, the final `else:` among them.
    #[must_use]
    pub fn rule(&self, index: RuleIndex) -> Option<&Rule> {
        let position = index.0 as usize;
        match self.rules.get(position) {
            None if position == self.rules.len() => self.fallback.as_ref(),
            rule => rule,
        }
    }

    /// The plain interpreter, rule by rule: it is what the engine's decisions are measured by.
    pub(crate) fn interpret<'r, S: Subject + ?Sized>(
        &'r self,
        subject: &S,
        watch: impl FnMut(Visit<'r>),
    ) -> Decision<'r> {
        self.interpret_from(RuleIndex(0), subject, watch)
    }

    fn interpret_from<'r, S: Subject + ?Sized>(
        &'r self,
        from: RuleIndex,
        subject: &S,
        watch: impl FnMut(Visit<'r>),
    ) -> Decision<'r> {
        let next = |index| {
            let rule = self.rule(index)?;
            Some((index, rule, rule.truth(subject)))
        };
        self.walk(from, next, watch)
    }

    /// Visits rules from `from` on in order and tells `watch` of each; ends because every step goes forward.
    ///
    /// `next` finds the rule to visit from a position on, and what its condition comes to. It may pass over rules
    /// that are false and say nothing about that.
    fn walk<'r>(
        &'r self,
        mut from: RuleIndex,
        mut next: impl FnMut(RuleIndex) -> Option<(RuleIndex, &'r Rule, Truth)>,
        mut watch: impl FnMut(Visit<'r>),
    ) -> Decision<'r> {
        let mut effects: SmallVec<[&'r Effect; 4]> = SmallVec::new();
        while let Some((index, rule, truth)) = next(from) {
            let step = self.step(rule, truth);
            watch(Visit { index, rule, truth, step });
            if let Step::Run(block) = step
                && !block.effects.is_empty()
            {
                effects.extend(&block.effects);
            }
            match step.destination() {
                Destination::Next => from = RuleIndex(index.0 + 1),
                Destination::Rule(target) => from = forward(index, target),
                Destination::Decided(outcome) => {
                    let by = DecidedBy::Rule { index, label: &rule.label };
                    if let Outcome::Refused(_) | Outcome::Waits = outcome {
                        effects.retain(|effect: &mut &Effect| effect.is_committed_with_refusal());
                    }
                    return Decision { by, outcome, effects };
                }
            }
        }
        Decision { by: DecidedBy::Nothing, outcome: Outcome::DefaultPool, effects }
    }

    fn step<'r>(&self, rule: &'r Rule, truth: Truth) -> Step<'r> {
        match (truth, self.on_unknown) {
            (Truth::Unknown(Cause::Unread), _) => Step::Settle(Outcome::Waits),
            (Truth::True, _) => Step::Run(&rule.then),
            (Truth::False, _) => Step::Run(&rule.otherwise),
            (Truth::Unknown(_), OnUnknown::Skip) => Step::Skip,
            (Truth::Unknown(cause), OnUnknown::Reject) => Step::Settle(Outcome::Refused(cause)),
            (Truth::Unknown(cause), OnUnknown::RouteTo(target)) => {
                Step::Settle(Outcome::RouteUnknown { target, cause })
            }
        }
    }
}

impl Rule {
    /// What the condition comes to, with what the block needs that it leads to: slow and obvious.
    pub fn truth<S: Subject + ?Sized>(&self, subject: &S) -> Truth {
        self.awaited(self.condition.eval(subject), subject)
    }

    /// What the condition comes to once the block that it leads to has all that it needs: it is part of the condition.
    #[inline]
    fn awaited<S: Subject + ?Sized>(&self, truth: Truth, subject: &S) -> Truth {
        let block = match truth {
            Truth::True => &self.then,
            Truth::False => &self.otherwise,
            Truth::Unknown(_) => return truth,
        };
        if block.awaits.is_empty() { truth } else { block.awaited(subject).unwrap_or(truth) }
    }
}

impl Block {
    /// What is not known, now or ever, of that which it needs.
    fn awaited<S: Subject + ?Sized>(&self, subject: &S) -> Option<Truth> {
        let unknown = self.awaits.iter().filter_map(|field| {
            let mut first = None;
            subject.each(field, &mut |value| {
                first = Some(if let Value::Unknown(cause) = value { Some(cause) } else { None });
                ControlFlow::Break(())
            });
            first.unwrap_or_else(|| subject.unsettled(field)).map(Truth::Unknown)
        });
        unknown.reduce(Truth::and)
    }
}

/// One rule on the way.
pub(crate) struct Visit<'r> {
    pub(crate) index: RuleIndex,
    pub(crate) rule: &'r Rule,
    pub(crate) truth: Truth,
    pub(crate) step: Step<'r>,
}

/// What a rule does once its condition is known, or known to stay unknown.
#[derive(Clone, Copy)]
pub(crate) enum Step<'r> {
    /// One of its blocks runs.
    Run(&'r Block),
    /// Neither block runs.
    Skip,
    /// The policy for unknown conditions decides.
    Settle(Outcome<'r>),
}

/// Where the walk goes after a step.
pub(crate) enum Destination<'r> {
    Next,
    Rule(RuleIndex),
    Decided(Outcome<'r>),
}

impl<'r> Step<'r> {
    pub(crate) fn destination(self) -> Destination<'r> {
        match self {
            Step::Skip => Destination::Next,
            Step::Settle(outcome) => Destination::Decided(outcome),
            Step::Run(block) => match &block.exit {
                Exit::Next => Destination::Next,
                Exit::Goto(target) => Destination::Rule(*target),
                Exit::Terminal(terminal) => Destination::Decided(Outcome::Terminal(terminal)),
            },
        }
    }
}

/// Invariant: the compiler refuses backward jumps. Should it be broken, the walk still ends.
fn forward(from: RuleIndex, target: RuleIndex) -> RuleIndex {
    debug_assert!(target > from, "goto from {from:?} back to {target:?}");
    target.max(RuleIndex(from.0 + 1))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

    use super::*;
    use crate::Condition;
    use crate::engine::engines;
    use crate::generated::{MadeUpSubject, Telling, crowd_subjects, crowds, programs, subjects};

    /// The walk as the language page tells it, rule by rule, from the back of the story.
    fn slow_decide<'r>(program: &'r Program, subject: &MadeUpSubject, from: usize) -> Decision<'r> {
        let index = RuleIndex(u32::try_from(from).expect("few rules"));
        let (rule, last) = match (program.rules.get(from), &program.fallback) {
            (Some(rule), _) => (rule, false),
            (None, Some(rule)) => (rule, true),
            (None, None) => return nobody(),
        };
        let decided = |outcome| Decision {
            by: DecidedBy::Rule { index, label: &rule.label },
            outcome,
            effects: SmallVec::new(),
        };
        let go_on = |to: usize| if last { nobody() } else { slow_decide(program, subject, to) };
        let block = match rule.condition.eval(subject) {
            Truth::True => &rule.then,
            Truth::False => &rule.otherwise,
            Truth::Unknown(Cause::Unread) => return decided(Outcome::Waits),
            Truth::Unknown(cause) => {
                return match program.on_unknown {
                    OnUnknown::Skip => go_on(from + 1),
                    OnUnknown::Reject => decided(Outcome::Refused(cause)),
                    OnUnknown::RouteTo(target) => decided(Outcome::RouteUnknown { target, cause }),
                };
            }
        };
        let rest = match &block.exit {
            Exit::Next => go_on(from + 1),
            Exit::Goto(target) => go_on(target.0 as usize),
            Exit::Terminal(terminal) => decided(Outcome::Terminal(terminal)),
        };
        let is_refused = matches!(rest.outcome, Outcome::Refused(_) | Outcome::Waits);
        let own = block.effects.iter().filter(|effect| !is_refused || matches!(effect, Effect::Tag(_)));
        Decision { effects: own.chain(rest.effects).collect(), ..rest }
    }

    fn nobody<'r>() -> Decision<'r> {
        Decision { by: DecidedBy::Nothing, outcome: Outcome::DefaultPool, effects: SmallVec::new() }
    }

    fn rule(condition: Condition, effects: &[&str], exit: Exit, otherwise: Exit) -> Rule {
        let effects = effects.iter().map(|tag| Effect::Tag((*tag).into())).collect();
        Rule {
            label: "R".into(),
            span: crate::Span::default(),
            condition,
            then: Block { effects, exit, ..Block::default() },
            otherwise: Block { exit: otherwise, ..Block::default() },
        }
    }

    fn never() -> Condition {
        Condition::Not(Box::new(Condition::Always))
    }

    #[test]
    fn effects_on_the_way_are_committed_with_the_terminal_action() {
        let rules = vec![
            rule(Condition::Always, &["first"], Exit::Next, Exit::Next),
            rule(never(), &["not taken"], Exit::Next, Exit::Next),
            rule(Condition::Always, &["jumps"], Exit::Goto(RuleIndex(4)), Exit::Next),
            rule(Condition::Always, &["jumped over"], Exit::Terminal(Terminal::Discard), Exit::Next),
            rule(Condition::Always, &["last"], Exit::Terminal(Terminal::Discard), Exit::Next),
        ];
        let program = Program::new(rules, None, OnUnknown::Reject, vec![]);
        let decision = program.decide(&MadeUpSubject::default(), &mut Truths::default());
        assert_eq!(decision.by, DecidedBy::Rule { index: RuleIndex(4), label: "R" });
        assert!(matches!(decision.outcome, Outcome::Terminal(Terminal::Discard)));
        let tags = decision.effects.iter().map(|effect| match effect {
            Effect::Tag(tag) => &**tag,
            _ => "not a tag",
        });
        assert_eq!(tags.collect::<Vec<_>>(), ["first", "jumps", "last"]);
    }

    #[test]
    fn without_rules_the_default_pool_takes_it() {
        let program = Program::new(vec![], None, OnUnknown::Reject, vec![]);
        let decision = program.decide(&MadeUpSubject::default(), &mut Truths::default());
        assert_eq!(decision.by.label(), None);
        assert!(matches!(decision.outcome, Outcome::DefaultPool));
    }

    proptest! {
        #[test]
        fn the_interpreter_is_the_definition(program in programs(), subject in subjects()) {
            let expected = slow_decide(&program, &subject, 0);
            prop_assert_eq!(format!("{:?}", program.interpret(&subject, |_| {})), format!("{expected:?}"));
        }

        /// The same room for one subject after another and one program after another, whatever stands in the engine.
        #[test]
        fn decide_is_the_interpreter(
            programs in vec(programs(), 1..3),
            subjects in vec(subjects(), 1..4),
        ) {
            let mut truths = Truths::default();
            for program in &programs {
                let engines = engines(program);
                for subject in &subjects {
                    same(program, &engines, subject, &mut truths);
                }
            }
        }
    }

    fn same(program: &Program, engines: &[Engine], subject: &MadeUpSubject, truths: &mut Truths) {
        let telling = Telling(subject);
        fn said(decision: Decision<'_>) -> (DecidedBy<'_>, String, Vec<*const Effect>) {
            let effects = decision.effects.into_iter().map(std::ptr::from_ref).collect();
            (decision.by, format!("{:?}", decision.outcome), effects)
        }
        let expected = said(program.interpret(subject, |_| {}));
        let context = || format!("{subject:?} and {program:?}");
        assert_eq!(said(program.decide(subject, truths)), expected, "{}", context());
        for engine in engines {
            let found = said(program.decide_by(engine, subject, truths));
            assert_eq!(found, expected, "{}", context());
            let found = said(program.decide_by(engine, &telling, truths));
            assert_eq!(found, expected, "{}", context());
        }
    }

    /// How many pairs of a rule set and a subject are tried: `POINTSMAN_RULES_PAIRS`, or few.
    fn pairs() -> u64 {
        match std::env::var("POINTSMAN_RULES_PAIRS") {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("POINTSMAN_RULES_PAIRS is no number: {text}")),
            Err(_) => 4_000,
        }
    }

    /// Hundreds of rules over few values, so that their lists are long: as many pairs as wanted.
    #[test]
    fn decide_is_the_interpreter_for_crowds_of_rules() {
        const SUBJECTS: usize = 50;
        let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), seeded());
        let mut truths = Truths::default();
        let (mut tried, pairs) = (0, pairs());
        while tried < pairs {
            let new = |runner: &mut TestRunner| crowds().new_tree(runner).map(|tree| tree.current());
            let program = new(&mut runner).expect("a program");
            let engines = engines(&program);
            for _ in 0..SUBJECTS {
                let subject = crowd_subjects().new_tree(&mut runner).expect("a subject").current();
                same(&program, &engines, &subject, &mut truths);
            }
            tried += SUBJECTS as u64;
        }
    }

    /// The same numbers in each short run, others in each long one by `POINTSMAN_FUZZ_SEED`.
    fn seeded() -> TestRng {
        let mut seed = [7; 32];
        let wanted = std::env::var("POINTSMAN_FUZZ_SEED").unwrap_or_default();
        for (place, byte) in seed.iter_mut().zip(wanted.bytes()) {
            *place = byte;
        }
        TestRng::from_seed(RngAlgorithm::ChaCha, &seed)
    }
}
