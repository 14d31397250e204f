//! What a request that comes to a rule shows of the rules behind it: much of what would be asked about them is answered
//! by it.

use std::collections::HashMap;

use super::findings::Report;
use super::question::{Analyst, reading_steps};
use super::walk::Instead;
use crate::witness::{Witness, with_subject};

/// So many rules behind one are known that would take its request, too.
const TAKERS_MAX: usize = 64;

/// Looking on takes about so many steps.
const STEPS: u64 = 50;

/// What would become of requests behind the rules that take them.
#[derive(Debug, Default)]
pub(super) struct Onward {
    of_rule: HashMap<u32, OfRule>,
}

#[derive(Debug)]
struct OfRule {
    /// Whether something else would become of its request without it.
    ends_otherwise: bool,
    /// Whether its request has passed all rules before it.
    passed_all: bool,
    /// The rules behind it that would decide its request: all before `known_to`.
    takers: Vec<u32>,
    known_to: u32,
}

impl Onward {
    /// Whether it is shown that something else becomes of some request that a rule takes without it.
    pub(super) fn ends_otherwise(&self, rule: u32) -> bool {
        self.of_rule.get(&rule).is_some_and(|known| known.ends_otherwise)
    }

    /// Whether it is shown that the condition of a rule is true of some request of which that of another one is not. Both
    /// decide where they are true, and some request comes to each.
    pub(super) fn is_apart(&self, rule: u32, other: u32) -> bool {
        self.of_rule.get(&rule).is_some_and(|known| match other < rule {
            true => known.passed_all,
            false => other < known.known_to && !known.takers.contains(&other),
        })
    }
}

impl Report<'_> {
    /// Looks what would become of a request behind the rule that it comes to, and whose condition it makes true.
    pub(super) fn look_on(&mut self, rule: u32, witness: &Witness) {
        if let Some(known) = self.analyst.onward(rule, witness) {
            self.onward.of_rule.insert(rule, known);
        }
    }
}

impl Analyst<'_> {
    /// Nothing where rules jump: then they would have to be asked one by one.
    fn onward(&mut self, rule: u32, witness: &Witness) -> Option<OfRule> {
        let (program, walk, truths) = (self.program, &self.walk, &mut self.truths);
        if walk.jumps_behind(rule) || !self.effort.take(STEPS + reading_steps(witness)) {
            return None;
        }
        with_subject(program, &self.paths, witness, self.setting, |subject| {
            let (instead, mut next) = walk.behind(program, subject, rule, truths);
            let (mut takers, mut known_to) = (Vec::new(), rule + 1);
            while let Some(taker) = next.filter(|_| takers.len() < TAKERS_MAX) {
                known_to = taker + 1;
                if taker >= walk.len() {
                    break;
                }
                takers.push(taker);
                next = walk.next_stop(program, subject, taker, truths);
            }
            let passed_all = !walk.jumps_before(rule);
            OfRule { ends_otherwise: instead == Instead::Other, passed_all, takers, known_to }
        })
    }
}
