//! Where requests end, and what becomes of them there.

use pointsman_rules::{Block, Exit, OnUnknown, Program, Stickiness, TargetId, TargetName, Terminal};

use super::RuleSide;
use crate::Spoilt;
use crate::logic::states::States;
use crate::witness::{Setting, Witness};

/// A rule that decides where its condition comes to one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub(super) rule: u32,
    pub(super) on: States,
}

/// What becomes of a request, without what is done to it on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome<'p> {
    Routed {
        pool: &'p str,
        server: Option<&'p str>,
        sticky: &'p Stickiness,
    },
    Terminal(&'p Terminal),
    RefusedAsUnknown,
    /// To whom is not known.
    DefaultPool,
}

/// Why the switch refuses a request for its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The condition of the rule ends unknown.
    AsUnknown,
    /// What is wrong stands behind what decides.
    BehindDecision,
}

/// What the ends of two programs mean.
pub(super) struct Ends<'p> {
    joint: &'p Program,
    sides: [RuleSide<'p>; 2],
    /// The first rule of the second.
    middle: u32,
}

impl<'p> Ends<'p> {
    pub(super) fn new(joint: &'p Program, sides: [RuleSide<'p>; 2], middle: u32) -> Ends<'p> {
        Ends { joint, sides, middle }
    }

    /// The program that an end is of, and its first rule.
    fn side(&self, end: End) -> (&RuleSide<'p>, u32) {
        let [old, new] = &self.sides;
        if end.rule < self.middle { (old, 0) } else { (new, self.middle) }
    }

    /// Why a request that comes to an end is refused there, if it is, by the switch itself.
    pub(super) fn refusal(&self, end: End, witness: &Witness, setting: &Setting) -> Option<Refused> {
        if self.outcome(end) == Outcome::RefusedAsUnknown {
            return Some(Refused::AsUnknown);
        }
        let (side, _) = self.side(end);
        let is_spoilt = matches!(witness.spoilt(side.program, setting), Some(Spoilt::Refused(_)));
        is_spoilt.then_some(Refused::BehindDecision)
    }

    /// Whether both refuse each request with something wrong in its body, where they look into it: what ends unknown is
    /// refused, too, and not passed over or sent somewhere.
    pub(super) fn refuse_what_is_unknown(&self) -> bool {
        self.sides.iter().all(|side| side.program.on_unknown == OnUnknown::Reject)
    }

    pub(super) fn outcome(&self, end: End) -> Outcome<'p> {
        let (side, first) = self.side(end);
        let len = side.program.rules.len() + side.program.fallback.iter().len();
        if (end.rule - first) as usize >= len {
            return side
                .default_pool
                .map_or(Outcome::DefaultPool, |pool| routed(pool, None, &Stickiness::None));
        }
        match block(self.joint, end.rule, end.on).map(|block| &block.exit) {
            Some(Exit::Terminal(Terminal::RouteTo { target, sticky })) => {
                to_target(&self.joint.targets, *target, sticky)
            }
            Some(Exit::Terminal(terminal)) => Outcome::Terminal(terminal),
            // It decides only where the condition is unknown.
            _ => match side.program.on_unknown {
                OnUnknown::RouteTo(target) => to_target(&side.program.targets, target, &Stickiness::None),
                OnUnknown::Reject | OnUnknown::Skip => Outcome::RefusedAsUnknown,
            },
        }
    }
}

fn to_target<'p>(targets: &'p [TargetName], target: TargetId, sticky: &'p Stickiness) -> Outcome<'p> {
    match targets.get(target.0 as usize) {
        Some(TargetName { pool, server }) => routed(pool, server.as_deref(), sticky),
        None => Outcome::DefaultPool,
    }
}

fn routed<'p>(pool: &'p str, server: Option<&'p str>, sticky: &'p Stickiness) -> Outcome<'p> {
    Outcome::Routed { pool, server, sticky }
}

/// What a rule does where its condition comes to one of [`States::EACH`]; nothing where it ends unknown.
pub(super) fn block(program: &Program, rule: u32, on: States) -> Option<&Block> {
    let rule = program.rules.get(rule as usize)?;
    match on {
        States::TRUE => Some(&rule.then),
        States::FALSE => Some(&rule.otherwise),
        _ => None,
    }
}
