//! What is done to a request on its way to the rule that decides it.

use pointsman_rules::{Audience, Effect, Idle, Program, Subject, pace};

use super::Comparison;
use super::candidates::Pair;
use super::ends::{End, Outcome, block};
use super::settling::Look;
use crate::logic::question::Pattern;
use crate::logic::states::States;
use crate::logic::walk::{Step, Walk, truth};
use crate::witness::Witness;

/// Of more rules than these it is not told apart how they come out.
const PATTERN_RULES_MAX: usize = 64;

/// What a request showed.
pub(super) enum Seen {
    /// Other things are done to it.
    Other,
    /// Another copy would be made of it, which there never is of such a request; all else is the same.
    OtherCopy,
    /// The same, as to all requests that fit this pattern.
    Same(Pattern),
}

/// What of the effects on a way is committed at its end, and comes to something there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commits {
    /// What is noticed of all.
    For(Audience),
    /// What is where the request is refused as unknown.
    WithRefusal,
}

impl Commits {
    /// Where there is a server, all may be noticed.
    pub(super) const ALL: Commits = Commits::For(Audience::Server);

    /// At an outcome.
    fn at(outcome: Outcome<'_>) -> Commits {
        match outcome {
            Outcome::RefusedAsUnknown => Commits::WithRefusal,
            Outcome::Terminal(terminal) => Commits::For(terminal.audience()),
            Outcome::Routed { .. } | Outcome::DefaultPool => Commits::ALL,
        }
    }

    fn of(self, effects: &[Effect]) -> impl Iterator<Item = &Effect> {
        effects.iter().filter(move |effect| match self {
            Commits::For(audience) => effect.idle(audience).is_none(),
            Commits::WithRefusal => effect.is_committed_with_refusal(),
        })
    }
}

/// Where an effect stands among those that are the same in both programs: behind so many rules.
type Placed<'p> = (usize, &'p Effect);

/// The rules that do something to a request and let it go on.
pub(super) fn carriers(joint: &Program, walk: &Walk) -> Vec<u32> {
    let rules = (0..).zip(pace::each(&joint.rules)).map(|(rule, _)| rule);
    rules.filter(|rule| States::EACH.into_iter().any(|on| carries(joint, walk, *rule, on))).collect()
}

/// Whether a rule does something and lets the request go on where its condition comes to this.
pub(super) fn carries(joint: &Program, walk: &Walk, rule: u32, on: States) -> bool {
    walk.step(rule, on) != Step::Decides && !effects(joint, rule, on).is_empty()
}

/// What is done to a request where the condition of a rule comes to this.
pub(super) fn effects(joint: &Program, rule: u32, on: States) -> &[Effect] {
    block(joint, rule, on).map(|block| block.effects.as_slice()).unwrap_or_default()
}

impl<'p> Comparison<'p> {
    /// The carriers of one program before one of its ends.
    fn carriers_before(&self, end: End) -> &[u32] {
        let first = if end.rule < self.middle { 0 } else { self.middle };
        let from = self.carriers.partition_point(|rule| *rule < first);
        let to = self.carriers.partition_point(|rule| *rule < end.rule);
        self.carriers.get(from..to).unwrap_or_default()
    }

    /// Whether its counterpart does not do the same, or is perhaps not visited with it.
    pub(super) fn is_odd(&self, carrier: u32, commits: Commits) -> bool {
        let Some(other) = self.alignment.counterpart(carrier) else { return true };
        let of = |rule, on| commits.of(effects(self.joint, rule, on));
        let differs = |on| !of(carrier, on).eq(of(other, on));
        let is_jumped_over = [carrier, other].into_iter().any(|rule| self.alignment.is_jumped_over(rule));
        self.alignment.has_strays() && is_jumped_over || States::EACH.into_iter().any(differs)
    }

    /// Whether both programs do the same in a carrier, where a request comes to these ends.
    fn is_tight(&self, carrier: u32, pair: Pair) -> bool {
        let behind = if carrier < self.middle { pair.new } else { pair.old };
        let counterpart = self.alignment.counterpart(carrier);
        counterpart.is_some_and(|other| other < behind.rule) && !self.is_odd(carrier, self.commits(pair))
    }

    /// What is committed at two ends with the same outcome.
    fn commits(&self, pair: Pair) -> Commits {
        Commits::at(self.ends.outcome(pair.old))
    }

    /// Whether the rules that decide do something else themselves.
    pub(super) fn does_other_itself(&self, pair: Pair) -> bool {
        let commits = self.commits(pair);
        let [old, new] = [pair.old, pair.new].map(|end| commits.of(effects(self.joint, end.rule, end.on)));
        !old.eq(new)
    }

    /// Whether something else may be done to a request that comes to these ends, which have the same outcome.
    pub(super) fn may_do_otherwise(&mut self, pair: Pair) -> bool {
        if self.does_other_itself(pair) {
            return true;
        }
        let count = self.carriers_before(pair.old).len() + self.carriers_before(pair.new).len();
        if count > 0 && !self.analyst.take(count) {
            return true;
        }
        [pair.old, pair.new]
            .into_iter()
            .any(|end| self.carriers_before(end).iter().any(|carrier| !self.is_tight(*carrier, pair)))
    }

    /// What is done to a request in both programs; nothing where it is too much to be told apart.
    pub(super) fn look_at_effects(&mut self, pair: Pair, witness: &Witness, look: Look) -> Option<Seen> {
        let (mut old, old_pattern) = self.way(pair, pair.old, witness)?;
        let (mut new, new_pattern) = self.way(pair, pair.new, witness)?;
        if look == Look::PastCopies {
            [&mut old, &mut new].into_iter().for_each(Way::leave_out_copies);
        }
        if noticed(&old.all) != noticed(&new.all) {
            [&mut old, &mut new].into_iter().for_each(Way::leave_out_copies);
            let is_same = noticed(&old.all) == noticed(&new.all);
            let is_of_copies = is_same && witness.changes_protocol(self.analyst.setting());
            return Some(if is_of_copies { Seen::OtherCopy } else { Seen::Other });
        }
        let mut pattern = [old_pattern, new_pattern].concat();
        if old.loose != new.loose {
            pattern.extend(old.tight);
        }
        pattern.sort_unstable();
        pattern.dedup();
        (pattern.len() <= PATTERN_RULES_MAX).then_some(Seen::Same(pattern))
    }

    /// The way of a request to an end, and how the rules come out that it hangs on.
    fn way(&mut self, pair: Pair, end: End, witness: &Witness) -> Option<(Way<'p>, Pattern)> {
        let part = self.analyst.across.as_ref()?.part(end.rule);
        let (first, program) = (part.first, part.program);
        let seen = part.see(witness, self.analyst.setting(), |subject| {
            // What a rule comes to that is not visited is all the same, as long as those jump alike that are.
            let visited = self.visited(first, end, program, subject);
            let before = || visited.iter().copied().filter(|(rule, _)| *rule < end.rule);
            let is_carrier = |rule: u32| self.carriers.binary_search(&rule).is_ok();
            let is_tight = |rule: u32| is_carrier(rule) && self.is_tight(rule, pair);
            let jumps = |rule: u32| self.analyst.walk.jumps_of(rule).next().is_some();
            let matters = |rule: u32| is_carrier(rule) && !is_tight(rule) || jumps(rule);
            let mut way = self.done(pair, &visited);
            let tight = before().filter(|(rule, _)| is_tight(*rule));
            way.tight = tight.take(PATTERN_RULES_MAX + 1).collect();
            let loose = before().filter(|(rule, _)| matters(*rule));
            let loose: Pattern = loose.take(PATTERN_RULES_MAX + 1).collect();
            (way, loose)
        });
        self.analyst.take((end.rule - first) as usize / 8 + 1);
        seen
    }

    /// The rules that a request visits on its way to an end, with what they come to.
    fn visited<S: Subject + ?Sized>(
        &self,
        first: u32,
        end: End,
        program: &Program,
        subject: &S,
    ) -> Vec<(u32, States)> {
        let (mut at, mut visited) = (first, Vec::new());
        while at <= end.rule {
            pace::step();
            let on = truth(program, at - first, subject);
            visited.push((at, on));
            at = match self.analyst.walk.step(at, on) {
                Step::Next => at + 1,
                Step::Goto(to) => to.max(at + 1),
                Step::Decides => break,
            };
        }
        visited
    }

    /// What these rules do.
    fn done(&self, pair: Pair, visited: &[(u32, States)]) -> Way<'p> {
        let mut way = Way { all: Vec::new(), loose: Vec::new(), tight: Vec::new() };
        let (mut place, commits) = (0, self.commits(pair));
        for (rule, on) in visited {
            let placed = commits.of(effects(self.joint, *rule, *on)).map(|effect| (place, effect));
            let is_end = [pair.old.rule, pair.new.rule].contains(rule);
            if !is_end && self.is_tight(*rule, pair) && self.carriers.binary_search(rule).is_ok() {
                way.all.extend(placed);
                place += 1;
            } else {
                let placed: Vec<_> = placed.collect();
                way.all.extend(&placed);
                way.loose.extend(placed);
            }
        }
        way
    }
}

/// What holds of effects: of those that take each other's place the last does.
fn noticed<'p>(placed: &[Placed<'p>]) -> Vec<&'p Effect> {
    let holds = |place: usize, effect: &Effect| {
        !placed.iter().skip(place + 1).any(|(_, later)| later.overrides(effect))
    };
    let effects = placed.iter().enumerate().map(|(place, (_, effect))| (place, *effect));
    effects.filter(|(place, effect)| holds(*place, effect)).map(|(_, effect)| effect).collect()
}

/// What is done to a request on its way.
struct Way<'p> {
    all: Vec<Placed<'p>>,
    /// By the rules whose counterparts may do otherwise, and by the one that decides.
    loose: Vec<Placed<'p>>,
    /// How the others come out.
    tight: Pattern,
}

impl Way<'_> {
    fn leave_out_copies(&mut self) {
        for placed in [&mut self.all, &mut self.loose] {
            placed.retain(|(_, effect)| effect.idle(Audience::Tunnel) != Some(Idle::NoCopy));
        }
    }
}
