//! Where rules send a request, for each of the three values that their conditions come to.

use pointsman_rules::{
    Block, DecidedBy, Decision, Exit, OnUnknown, Outcome, Program, Rule, RuleIndex, Subject, Truths, pace,
};

use super::states::States;

/// What a rule does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Next,
    Goto(u32),
    Decides,
}

/// A `goto` of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jump {
    pub(super) from: u32,
    /// What the condition comes to there.
    pub(super) on: States,
    pub(super) to: u32,
}

/// What all rules do.
#[derive(Debug)]
pub(super) struct Walk {
    /// Of each rule where its condition is true, false, and unknown. The final `else:` is the last.
    steps: Vec<[Step; 3]>,
    /// In the order of the rules.
    jumps: Vec<Jump>,
    /// How far the jumps up to each lead at most.
    reach: Vec<u32>,
}

/// What came of a request on its way to a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// A rule decided it, or sent it beyond; these rules before it were visited, and jumped.
    Stopped { by: u32, jumped: Vec<u32> },
    /// It came there, and the rule's condition comes to this.
    Arrived(States),
}

/// What becomes of a request where a rule that decides it is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instead {
    /// This rule does the same with it.
    Same(u32),
    Other,
}

impl Walk {
    pub(super) fn new(program: &Program) -> Walk {
        let all = pace::each(program.rules.iter().chain(&program.fallback));
        Walk::of_steps(all.map(|rule| of(rule, program.on_unknown)).collect())
    }

    /// Of programs that are [`Program::joined`]: each decides what is unknown as it says, and behind its rules all.
    pub(super) fn joined(joint: &Program, programs: [&Program; 2]) -> Walk {
        let mut rules = pace::each(&joint.rules);
        let mut steps = Vec::with_capacity(joint.rules.len());
        for program in programs {
            let len = program.rules.len() + program.fallback.iter().len();
            steps.extend(rules.by_ref().take(len).map(|rule| of(rule, program.on_unknown)));
            steps.extend(rules.next().map(|_| [Step::Decides; 3]));
        }
        Walk::of_steps(steps)
    }

    fn of_steps(steps: Vec<[Step; 3]>) -> Walk {
        let mut jumps = Vec::new();
        for (from, steps) in (0..).zip(&steps) {
            for (on, step) in States::EACH.into_iter().zip(steps) {
                if let Step::Goto(to) = *step {
                    jumps.push(Jump { from, on, to });
                }
            }
        }
        let furthest = |so_far: &mut u32, jump: &Jump| {
            *so_far = jump.to.max(*so_far);
            Some(*so_far)
        };
        let reach = jumps.iter().scan(0, furthest).collect();
        Walk { steps, jumps, reach }
    }

    /// What a rule does where its condition comes to one of [`States::EACH`].
    pub(super) fn step(&self, rule: u32, on: States) -> Step {
        let steps = self.steps.get(rule as usize).copied().unwrap_or([Step::Next; 3]);
        States::EACH.into_iter().zip(steps).find(|(each, _)| *each == on).map_or(Step::Next, |(_, step)| step)
    }

    /// Whether a rule jumps before a request has come to `target`.
    pub(super) fn jumps_before(&self, target: u32) -> bool {
        self.jumps.first().is_some_and(|jump| jump.from < target)
    }

    /// Whether a rule behind one jumps, or it does itself.
    pub(super) fn jumps_behind(&self, rule: u32) -> bool {
        self.jumps.last().is_some_and(|jump| jump.from >= rule)
    }

    /// How many rules there are, the final `else:` among them.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }

    /// What a rule does where its condition comes to one of [`States::EACH`]; nothing where it ends unknown.
    pub(super) fn block<'p>(&self, program: &'p Program, rule: u32, on: States) -> Option<&'p Block> {
        let rule = program.rule(RuleIndex(rule))?;
        match on {
            States::TRUE => Some(&rule.then),
            States::FALSE => Some(&rule.otherwise),
            _ => None,
        }
    }

    /// In which states a rule lets a request go on that is to come to `target`.
    pub(super) fn passing(&self, rule: u32, target: u32) -> States {
        let passes = |on: &States| match self.step(rule, *on) {
            Step::Next => true,
            Step::Goto(to) => to <= target,
            Step::Decides => false,
        };
        States::EACH.into_iter().filter(passes).fold(States::NONE, States::or)
    }

    /// The jumps over a rule, by their places; those from the nearest rules first.
    pub(super) fn over(&self, rule: u32) -> impl Iterator<Item = (usize, Jump)> + '_ {
        let before = self.jumps.partition_point(|jump| jump.from < rule);
        let near = (0..before).rev().map_while(move |place| {
            let (jump, reach) = (self.jumps.get(place)?, self.reach.get(place)?);
            (*reach > rule).then_some((place, *jump))
        });
        near.filter(move |(_, jump)| jump.to > rule)
    }

    /// The jumps of a rule, by their places.
    pub(super) fn jumps_of(&self, rule: u32) -> impl Iterator<Item = (usize, Jump)> + '_ {
        let first = self.jumps.partition_point(|jump| jump.from < rule);
        let own = (first..).zip(self.jumps.get(first..).unwrap_or_default());
        own.map(|(place, jump)| (place, *jump)).take_while(move |(_, jump)| jump.from == rule)
    }

    pub(super) fn jump(&self, place: usize) -> Option<Jump> {
        self.jumps.get(place).copied()
    }

    /// Whether some `goto` names the rule.
    pub(super) fn is_target(&self, rule: u32) -> bool {
        self.jumps.iter().any(|jump| jump.to == rule)
    }

    /// Asks the rules, all but `removed`, what becomes of a subject on its way to `target`. Nothing where they do not
    /// decide for want of something.
    pub(super) fn follow<S: Subject + ?Sized>(
        &self,
        program: &Program,
        subject: &S,
        target: u32,
        removed: Option<u32>,
        truths: &mut Truths,
    ) -> Option<Passage> {
        let decided_by = self.decided_by(&program.decide(subject, truths))?;
        let is_straight = removed.is_none() && self.over(target).next().is_none();
        let any_jump = self.jumps_before(target);
        let passage = if is_straight && decided_by >= target {
            Passage::Arrived(truth(program, target, subject))
        } else if is_straight && !any_jump {
            Passage::Stopped { by: decided_by, jumped: Vec::new() }
        } else if let (Some(removed), false) = (removed, any_jump) {
            self.follow_without(program, subject, target, (removed, decided_by), truths)?
        } else {
            self.follow_plainly(program, subject, target, removed)
        };
        // The engine has the last word.
        let agrees = removed.is_some()
            || match &passage {
                Passage::Stopped { by, .. } => {
                    *by == decided_by || self.step_of(*by, program, subject) != Step::Decides
                }
                Passage::Arrived(on) => match self.step(target, *on) {
                    Step::Decides => decided_by == target,
                    Step::Next | Step::Goto(_) => decided_by > target || self.is_end(target),
                },
            };
        agrees.then_some(passage)
    }

    /// The rule that decided, or the one behind the last; nothing where none did for want of something.
    fn decided_by(&self, decision: &Decision<'_>) -> Option<u32> {
        match (decision.by, decision.outcome) {
            (_, Outcome::Waits) => None,
            (DecidedBy::Rule { index, .. }, _) => Some(index.0),
            (DecidedBy::Nothing, _) => Some(self.len()),
        }
    }

    /// The next rule behind one that would stop a subject: the one behind the last where none does, and nothing where they do
    /// not decide for want of something.
    pub(super) fn next_stop<S: Subject + ?Sized>(
        &self,
        program: &Program,
        subject: &S,
        behind: u32,
        truths: &mut Truths,
    ) -> Option<u32> {
        self.decided_by(&program.decide_behind(RuleIndex(behind), subject, truths))
    }

    /// The same without one rule, where none jumps and it is known which decides with that rule.
    fn follow_without<S: Subject + ?Sized>(
        &self,
        program: &Program,
        subject: &S,
        target: u32,
        (removed, with_it): (u32, u32),
        truths: &mut Truths,
    ) -> Option<Passage> {
        let by = if with_it == removed {
            self.decided_by(&program.decide_behind(RuleIndex(removed), subject, truths))?
        } else {
            with_it
        };
        Some(if by < target {
            Passage::Stopped { by, jumped: Vec::new() }
        } else {
            Passage::Arrived(truth(program, target, subject))
        })
    }

    fn follow_plainly<S: Subject + ?Sized>(
        &self,
        program: &Program,
        subject: &S,
        target: u32,
        removed: Option<u32>,
    ) -> Passage {
        let (mut at, mut jumped) = (0, Vec::new());
        while at < target {
            let step = if removed == Some(at) { Step::Next } else { self.step_of(at, program, subject) };
            match step {
                Step::Next => at += 1,
                // The one that is removed has to be visited, too.
                Step::Goto(to) if to <= target && removed.is_none_or(|over| over <= at || to <= over) => {
                    jumped.push(at);
                    at = to.max(at + 1);
                }
                Step::Goto(_) | Step::Decides => return Passage::Stopped { by: at, jumped },
            }
        }
        Passage::Arrived(truth(program, target, subject))
    }

    /// The rules that a subject comes to, and what their conditions come to.
    pub(super) fn visited<S: Subject + ?Sized>(&self, program: &Program, subject: &S) -> Vec<(u32, States)> {
        let (mut at, mut visited) = (0, Vec::new());
        while at < self.len() {
            let on = truth(program, at, subject);
            visited.push((at, on));
            at = match self.step(at, on) {
                Step::Next => at + 1,
                Step::Goto(to) => to.max(at + 1),
                Step::Decides => break,
            };
        }
        visited
    }

    /// Asks the rules behind `removed` what becomes of a subject without it, and without what is done to it before.
    pub(super) fn otherwise<S: Subject + ?Sized>(
        &self,
        program: &Program,
        subject: &S,
        removed: u32,
        truths: &mut Truths,
    ) -> (Instead, Vec<u32>) {
        if !self.jumps_behind(removed) {
            return (self.behind(program, subject, removed, truths).0, Vec::new());
        }
        let end = self.block(program, removed, truth(program, removed, subject)).map(|block| &block.exit);
        let (mut at, mut jumped) = (removed + 1, Vec::new());
        while at < self.len() {
            let on = truth(program, at, subject);
            let block = self.block(program, at, on);
            if block.is_some_and(|block| !block.effects.is_empty()) {
                return (Instead::Other, jumped);
            }
            match self.step(at, on) {
                Step::Next => at += 1,
                Step::Goto(to) => {
                    jumped.push(at);
                    at = to.max(at + 1);
                }
                Step::Decides => {
                    let is_same = match (end, block.map(|block| &block.exit)) {
                        (Some(Exit::Terminal(one)), Some(Exit::Terminal(other))) => one == other,
                        _ => false,
                    };
                    let instead = if is_same { Instead::Same(at) } else { Instead::Other };
                    return (instead, jumped);
                }
            }
        }
        (Instead::Other, jumped)
    }

    /// The same where none of them jumps; and the next rule that stops it, as [`Self::next_stop`] has it.
    pub(super) fn behind<S: Subject + ?Sized>(
        &self,
        program: &Program,
        subject: &S,
        removed: u32,
        truths: &mut Truths,
    ) -> (Instead, Option<u32>) {
        let end = self.block(program, removed, truth(program, removed, subject)).map(|block| &block.exit);
        let decision = program.decide_behind(RuleIndex(removed), subject, truths);
        let instead = match (decision.by, decision.outcome, end) {
            (DecidedBy::Rule { index, .. }, Outcome::Terminal(other), Some(Exit::Terminal(one)))
                if one == other && decision.effects.is_empty() =>
            {
                Instead::Same(index.0)
            }
            _ => Instead::Other,
        };
        (instead, self.decided_by(&decision))
    }

    fn step_of<S: Subject + ?Sized>(&self, rule: u32, program: &Program, subject: &S) -> Step {
        self.step(rule, truth(program, rule, subject))
    }

    /// Whether it is behind all rules, the final `else:` among them.
    fn is_end(&self, rule: u32) -> bool {
        rule as usize >= self.steps.len()
    }
}

/// What the condition of a rule comes to; true behind the last.
pub(super) fn truth<S: Subject + ?Sized>(program: &Program, rule: u32, subject: &S) -> States {
    program.rule(RuleIndex(rule)).map_or(States::TRUE, |rule| States::of(rule.truth(subject)))
}

fn of(rule: &Rule, on_unknown: OnUnknown) -> [Step; 3] {
    let exit = |block: &Block| match block.exit {
        Exit::Next => Step::Next,
        Exit::Goto(target) => Step::Goto(target.0),
        Exit::Terminal(_) => Step::Decides,
    };
    let unknown = match on_unknown {
        OnUnknown::Skip => Step::Next,
        OnUnknown::Reject | OnUnknown::RouteTo(_) => Step::Decides,
    };
    [exit(&rule.then), exit(&rule.otherwise), unknown]
}
