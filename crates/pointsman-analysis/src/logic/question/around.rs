//! The rules around the one that is asked about: which are taken into account, and how a request passes them.
//!
//! A rule that no `goto` leads over is visited by every request that comes further. Where some do, one variable says that
//! it is visited, and one for each of these jumps that it is taken.

use std::collections::BTreeMap;

use batsat::Lit;
use pointsman_rules::{Condition, Rule};

use super::Trial;
use super::came::Stop;
use crate::Effort;
use crate::logic::doubt::Doubt;
use crate::logic::states::States;
use crate::logic::walk::Jump;
use crate::logic::world::Matters;

/// So many jumps over one rule are taken into account.
const JUMPS_OVER_MAX: usize = 256;

impl<'p> Trial<'_, 'p> {
    /// Tells the solver that where all of `given` hold, the condition of a rule, with what its block needs, comes to one
    /// of `states`.
    pub(super) fn require(&mut self, rule: u32, states: States, given: &[Lit]) {
        let Some(rule) = self.analyst.rule(rule) else { return };
        let given: Vec<_> = given.iter().map(|literal| !*literal).collect();
        let wide = condition_states(rule, states);
        let literal = self.world.require(&rule.condition, wide);
        self.world.clause(given.iter().copied().chain([literal]).collect());
        if wide != states {
            // What a block needs is known, as long as nothing is found otherwise.
            let needed = [&rule.then, &rule.otherwise].into_iter().flat_map(|block| &block.awaits);
            let assumed = self.in_doubt(Doubt::Needs(needed.cloned().collect()));
            let literal = self.world.require(&rule.condition, states);
            self.world.clause(given.into_iter().chain([!assumed, literal]).collect());
        }
    }

    /// Tells the solver that some rule's condition comes to something else than the pattern says.
    pub(super) fn forbid(&mut self, pattern: &[(u32, States)]) {
        let differs = |(rule, states): &(u32, States)| {
            let rule = self.analyst.rule(*rule)?;
            Some(self.world.require(&rule.condition, condition_states(rule, states.others())))
        };
        let differs = pattern.iter().filter_map(differs).collect();
        self.world.clause(differs);
    }

    /// To which rule a request has to come that passes a rule.
    fn bound(&self, rule: u32) -> u32 {
        match self.question.removed {
            Some((removed, _)) if rule < removed => removed,
            _ => self.question.rule,
        }
    }

    /// Takes a rule into account.
    pub(super) fn activate(&mut self, rule: u32, effort: &mut Effort) {
        let assumed = self.world.variable();
        self.active.insert(rule, assumed);
        let visited = self.visited(rule, effort);
        let passing = self.analyst.walk.passing(rule, self.bound(rule));
        self.require(rule, passing, &[assumed, visited]);
        let own: Vec<_> = self.analyst.walk.jumps_of(rule).collect();
        for (place, jump) in own {
            if let Some(taken) = self.jumps.get(&place).copied() {
                self.define(jump, taken, assumed);
            }
        }
    }

    /// That a rule is visited. Only where a `goto` leads over it that is taken, it need not be.
    fn visited(&mut self, rule: u32, effort: &mut Effort) -> Lit {
        if let Some(visited) = self.visits.get(&rule) {
            return *visited;
        }
        let over = self.over(rule);
        if over.is_empty() {
            return self.world.yes();
        }
        let visited = self.world.variable();
        self.visits.insert(rule, visited);
        if over.len() > JUMPS_OVER_MAX || !effort.take(over.len() as u64) {
            return visited;
        }
        let taken: Vec<_> = over.into_iter().map(|(place, jump)| self.taken(place, jump)).collect();
        self.world.clause(taken.into_iter().chain([visited]).collect());
        visited
    }

    /// The jumps over a rule that lead no further than to where the request has to come.
    fn over(&self, rule: u32) -> Vec<(usize, Jump)> {
        let over = self.analyst.walk.over(rule);
        let counts = |(_, jump): &(usize, Jump)| {
            let is_removed = self.question.removed.is_some_and(|(removed, _)| jump.from == removed);
            jump.to <= self.bound(jump.from) && !is_removed
        };
        over.filter(counts).take(JUMPS_OVER_MAX + 1).collect()
    }

    /// A jump is taken where its rule is visited and says so, and only there.
    fn define(&mut self, jump: Jump, taken: Lit, assumed: Lit) {
        let visited = self.visits.get(&jump.from).copied().unwrap_or(self.world.yes());
        self.world.clause(vec![!assumed, !taken, visited]);
        self.require(jump.from, jump.on, &[assumed, taken]);
        self.require(jump.from, jump.on.others(), &[assumed, visited, !taken]);
    }

    /// That a jump is taken.
    fn taken(&mut self, place: usize, jump: Jump) -> Lit {
        if let Some(taken) = self.jumps.get(&place) {
            return *taken;
        }
        let taken = self.world.variable();
        // Of two jumps the one that leads over the other is not taken with it.
        let others: Vec<_> = self.jumps.iter().map(|(place, other)| (*place, *other)).collect();
        for (other_place, other) in others {
            let Some(other_jump) = self.analyst.walk.jump(other_place) else { continue };
            let leads_over = |a: Jump, b: Jump| a.from < b.from && b.from < a.to;
            if leads_over(jump, other_jump) || leads_over(other_jump, jump) || jump.from == other_jump.from {
                self.world.clause(vec![!taken, !other]);
            }
        }
        self.jumps.insert(place, taken);
        if let Some(assumed) = self.active.get(&jump.from).copied() {
            self.define(jump, taken, assumed);
        }
        taken
    }

    /// The tests that make the model one.
    pub(super) fn matters(&self, active: &BTreeMap<u32, Lit>) -> Matters<'p> {
        let mut matters = Matters::default();
        for (condition, states) in &self.also {
            self.world.choose(condition, *states, &mut matters);
        }
        if let Some(given) = &self.analyst.given {
            self.world.choose(given.condition, States::TRUE, &mut matters);
        }
        let mut choose = |rule: u32, states: States| {
            if let Some(rule) = self.analyst.rule(rule) {
                let wide = condition_states(rule, states);
                let states = if self.comes_to(&rule.condition, states) { states } else { wide };
                self.world.choose(&rule.condition, states, &mut matters);
            }
        };
        choose(self.question.rule, self.question.states);
        if let Some((removed, states)) = self.question.removed {
            choose(removed, states);
        }
        for pattern in self.patterns {
            let others = pattern.iter().map(|(rule, states)| (*rule, states.others()));
            let stands = |(rule, states): &(u32, States)| {
                let rule = self.analyst.rule(*rule);
                rule.is_some_and(|rule| self.comes_to(&rule.condition, condition_states(rule, *states)))
            };
            if let Some((rule, states)) = others.into_iter().find(stands) {
                choose(rule, states);
            }
        }
        for rule in active.keys().copied() {
            let is_visited = self.visits.get(&rule).is_none_or(|visited| self.world.holds(*visited));
            if !is_visited {
                continue;
            }
            let mut states = self.analyst.walk.passing(rule, self.bound(rule));
            for (place, jump) in self.analyst.walk.jumps_of(rule) {
                if let Some(taken) = self.jumps.get(&place) {
                    let is_taken = self.world.holds(*taken);
                    states = states.and(if is_taken { jump.on } else { jump.on.others() });
                }
            }
            choose(rule, states);
        }
        matters
    }

    fn comes_to(&self, condition: &'p Condition, states: States) -> bool {
        states.covers(self.world.state_of(condition))
    }

    /// A rule stopped a request that should have passed. Says whether there was something to learn from that.
    pub(super) fn learn_of(&mut self, stop: Stop, effort: &mut Effort) -> bool {
        let Stop { by: rule, jumped, further } = stop;
        if !self.active.contains_key(&rule) {
            self.activate(rule, effort);
            self.activate_all(further, effort);
            return true;
        }
        // The solver thought that other jumps are taken.
        let over = self.over(rule).into_iter();
        let taken =
            over.filter(|(place, _)| self.jumps.get(place).is_some_and(|taken| self.world.holds(*taken)));
        let thought: Vec<_> = taken.map(|(_, jump)| jump.from).collect();
        if self.activate_all(thought.into_iter().chain(jumped), effort) {
            return true;
        }
        // Or one leads over a rule that jumped: it would not have been visited.
        let taken = self.jumps.iter().filter(|(_, taken)| self.world.holds(**taken));
        let jumps = taken.filter_map(|(place, _)| self.analyst.walk.jump(*place));
        let thought: Vec<_> = jumps.map(|jump| jump.from).collect();
        self.activate_all(thought, effort)
    }

    /// Says whether any of them was not taken into account yet.
    fn activate_all(&mut self, rules: impl IntoIterator<Item = u32>, effort: &mut Effort) -> bool {
        let mut anything_new = false;
        for rule in rules {
            if !self.active.contains_key(&rule) {
                self.activate(rule, effort);
                anything_new = true;
            }
        }
        anything_new
    }
}

/// What a rule's condition by itself may come to, where it comes to one of `states` with what its blocks need.
fn condition_states(rule: &Rule, states: States) -> States {
    if !states.covers(States::UNKNOWN) {
        return states;
    }
    let waits = [(&rule.then, States::TRUE), (&rule.otherwise, States::FALSE)];
    waits.into_iter().filter(|(block, _)| !block.awaits.is_empty()).fold(states, |all, (_, on)| all.or(on))
}
