//! How much of a body must be read before each rule is settled: known before any request comes.
//!
//! The walk waits at each rule whose condition is not settled, so that a rule costs what it needs itself and what the
//! rules on the way to it need to be passed.

mod need;
#[cfg(test)]
mod tests;
mod wording;

use self::need::{Kind, Need, Needs};
pub use self::need::{Reach, Why};
use crate::{Condition, Exit, Field, OnUnknown, Program, Rule, RuleIndex, Span};

/// What one rule may cost of a body of a kind that rules look into; of another one, and where there is none, the head
/// is enough. What costs most of several kinds counts.
#[derive(Clone, Debug)]
pub struct BodyCost<'p> {
    /// Which rule; the index of the final `else:` is the number of rules, and one more stands for a request that no
    /// rule decides.
    pub rule: RuleIndex,
    /// What must have been read at the least when it decides, or is passed if it never decides.
    pub earliest: Extent<'p>,
    /// What must have been read at the most.
    pub latest: Extent<'p>,
}

/// A part of a body that must have been read, and for whose sake.
#[derive(Clone, Copy, Debug)]
pub struct Extent<'p> {
    /// How far.
    pub reach: Reach,
    /// What asks for that; nothing where the head is enough.
    pub blame: Option<Blame<'p>>,
    /// Whether values of other fields must have been read, too.
    pub others: bool,
}

/// What asks for a part of a body.
#[derive(Clone, Copy, Debug)]
pub struct Blame<'p> {
    /// The rule, this one or an earlier one.
    pub rule: RuleIndex,
    /// Whether its condition has to be true there; otherwise false.
    pub holds: bool,
    /// The field.
    pub field: &'p Field,
    /// Where the test stands in the source; nothing for a text or a stickiness that names the field.
    pub span: Option<Span>,
    /// Why so much of it.
    pub why: Why,
}

/// Of so many fields it is known whether rules on the way to a rule want a value of them.
const FIELDS_MAX: usize = 64;

/// What must have been read when a place of the walk is reached: by the shortest way and by the longest.
#[derive(Clone, Debug)]
struct Arrival<'p> {
    earliest: Extent<'p>,
    /// Where those fields have a value of which `absent` speaks.
    latest: Extent<'p>,
    /// The same where a field has none: of each the most. A condition that wants a value of it rules that out.
    absent: Vec<Extent<'p>>,
}

/// What must have been read when a rule decides, and when it is passed.
#[derive(Clone, Debug, Default)]
struct Settled<'p> {
    decides: Option<Arrival<'p>>,
    passes: Option<Arrival<'p>>,
}

impl Program {
    /// What each rule may cost of a body, in their order; rules that are never asked are left out. Nothing where no rule
    /// names a field of the body.
    #[must_use]
    pub fn body_costs(&self) -> Vec<BodyCost<'_>> {
        if self.payloads.is_empty() { Vec::new() } else { self.costs_among(&Kind::of(self)) }
    }

    /// The same of bodies of some kinds.
    fn costs_among(&self, kinds: &[Kind]) -> Vec<BodyCost<'_>> {
        let mut costs = vec![Settled::default(); self.rules.len() + 2];
        for kind in kinds {
            for (all, one) in costs.iter_mut().zip(self.costs_of(*kind)) {
                all.decides = Arrival::either(all.decides.take(), one.decides);
                all.passes = Arrival::either(all.passes.take(), one.passes);
            }
        }
        let costs = costs.into_iter().enumerate().filter_map(|(rule, cost)| {
            let arrival = cost.decides.or(cost.passes)?;
            Some(BodyCost { rule: numbered(rule), earliest: arrival.earliest, latest: arrival.at_worst() })
        });
        costs.collect()
    }

    /// What a body of a kind costs when each rule is settled; nothing of those that are never asked.
    fn costs_of(&self, kind: Kind) -> Vec<Settled<'_>> {
        let rules = self.rules.len() + usize::from(self.fallback.is_some());
        let mut arrivals: Vec<Option<Arrival<'_>>> = vec![None; rules + 1];
        if let Some(first) = arrivals.first_mut() {
            *first = Some(Arrival { earliest: Extent::HEAD, latest: Extent::HEAD, absent: Vec::new() });
        }
        let mut costs = vec![Settled::default(); self.rules.len() + 1];
        for ((index, rule), cost) in self.rules.iter().chain(&self.fallback).enumerate().zip(&mut costs) {
            // Jumps go forward, so that all ways to a rule are known before it.
            let Some(arrival) = arrivals.get_mut(index).and_then(Option::take) else { continue };
            let branches = self.branches(numbered(index), rule, &arrival, kind);
            for (arrival, to) in &branches {
                let settled = if let To::Nowhere = to { &mut cost.decides } else { &mut cost.passes };
                *settled = Arrival::either(settled.take(), Some(arrival.clone()));
            }
            for (arrival, to) in branches {
                let place = match to {
                    To::Nowhere => continue,
                    To::Next => index + 1,
                    To::Rule(target) => target.0 as usize,
                };
                if let Some(there) = arrivals.get_mut(place) {
                    *there = Arrival::either(there.take(), Some(arrival));
                }
            }
        }
        costs.push(Settled { decides: arrivals.pop().flatten(), passes: None });
        costs
    }

    /// What must have been read when each branch of a rule is taken, and where the walk goes then.
    fn branches<'p>(
        &self,
        index: RuleIndex,
        rule: &'p Rule,
        arrival: &Arrival<'p>,
        kind: Kind,
    ) -> Vec<(Arrival<'p>, To)> {
        let mut branches = Vec::with_capacity(3);
        let mut skipped: Option<Arrival<'p>> = None;
        for (holds, block) in [(true, &rule.then), (false, &rule.otherwise)] {
            let Some(needs) = rule.condition.needs(holds, kind) else { continue };
            let settled = arrival.and(needs, index, holds);
            let ready = settled.and(Needs::of_block(block, kind), index, holds);
            // A value that a block names may be unknown, too.
            if !block.awaits.is_empty() {
                skipped = Arrival::either(skipped, Some(ready.clone()));
            }
            if !matches!(rule.condition, Condition::Always) {
                skipped = Arrival::either(skipped, Some(settled));
            }
            let to = match &block.exit {
                Exit::Terminal(_) => To::Nowhere,
                Exit::Next => To::Next,
                Exit::Goto(target) => To::Rule(*target),
            };
            branches.push((ready.where_it_wants(&rule.condition, holds), to));
        }
        if self.on_unknown == OnUnknown::Skip
            && let Some(mut skipped) = skipped
        {
            if let Some(need) = rule.condition.repeated() {
                let repeated = arrival.earliest.longer(Extent::of(need, index, true));
                skipped.earliest = skipped.earliest.shorter(repeated);
            }
            branches.push((skipped, To::Next));
        }
        branches
    }
}

/// There are fewer rules than that.
fn numbered(index: usize) -> RuleIndex {
    RuleIndex(u32::try_from(index).unwrap_or(u32::MAX))
}

/// Where the walk goes.
#[derive(Clone, Copy, Debug)]
enum To {
    Next,
    Rule(RuleIndex),
    Nowhere,
}

impl<'p> Extent<'p> {
    const HEAD: Extent<'p> = Extent { reach: Reach::Head, blame: None, others: false };

    /// The part that a need asks for, in a rule whose condition has to hold or not.
    fn of(need: Need<'p>, rule: RuleIndex, holds: bool) -> Extent<'p> {
        let blame = need.blame.map(|(field, span, why)| Blame { rule, holds, field, span, why });
        Extent { reach: need.reach, blame, others: need.others }
    }

    fn field(self) -> Option<&'p Field> {
        self.blame.map(|blame| blame.field)
    }

    /// The longer of two; the first of those that are alike.
    fn longer(self, other: Extent<'p>) -> Extent<'p> {
        if other.reach > self.reach { other } else { self }
    }

    /// What has been read of both.
    fn with(self, other: Extent<'p>) -> Extent<'p> {
        let is_beside = other.reach == self.reach && self.reach == Reach::Value;
        let others = is_beside && (other.others || self.field() != other.field());
        let longer = self.longer(other);
        Extent { others: longer.others || others, ..longer }
    }

    fn shorter(self, other: Extent<'p>) -> Extent<'p> {
        if other.reach < self.reach { other } else { self }
    }
}

impl<'p> Arrival<'p> {
    /// What must have been read to come further by a rule.
    fn and(&self, needs: Needs<'p>, rule: RuleIndex, holds: bool) -> Arrival<'p> {
        let mut further = Arrival {
            earliest: self.earliest.with(Extent::of(needs.earliest, rule, holds)),
            latest: self.latest.with(Extent::of(needs.latest, rule, holds)),
            absent: self.absent.clone(),
        };
        needs.absent.into_iter().for_each(|need| further.add_absent(Extent::of(need, rule, holds)));
        further
    }

    /// The same where a field has no value.
    fn add_absent(&mut self, extent: Extent<'p>) {
        match self.absent.iter().position(|known| known.field() == extent.field()) {
            Some(place) => self.absent[place] = self.absent[place].longer(extent),
            None if extent.reach <= self.latest.reach => {}
            None if self.absent.len() < FIELDS_MAX => self.absent.push(extent),
            None => self.latest = self.latest.longer(extent),
        }
    }

    /// The same if a condition comes to that: fields of which it wants a value are not absent.
    fn where_it_wants(mut self, condition: &Condition, holds: bool) -> Arrival<'p> {
        self.absent.retain(|absent| !absent.field().is_some_and(|field| condition.wants_value(field, holds)));
        self
    }

    /// What must have been read of any body.
    fn at_worst(&self) -> Extent<'p> {
        self.absent.iter().fold(self.latest, |latest, absent| latest.longer(*absent))
    }

    /// What must have been read by one of two ways, if there are any.
    fn either(one: Option<Arrival<'p>>, other: Option<Arrival<'p>>) -> Option<Arrival<'p>> {
        let (mut one, other) = match (one, other) {
            (Some(one), Some(other)) => (one, other),
            (one, other) => return one.or(other),
        };
        one.earliest = one.earliest.shorter(other.earliest);
        one.latest = one.latest.longer(other.latest);
        other.absent.into_iter().for_each(|extent| one.add_absent(extent));
        Some(one)
    }
}
