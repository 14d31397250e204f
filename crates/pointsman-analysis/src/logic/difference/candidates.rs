//! Which ends of two programs are asked about together: those that one request may come to, as far as that is seen without
//! asking, and that may do otherwise.

use std::ops::Range;

use pointsman_rules::{Rule, pace};

use super::alignment::may_come_to;
use super::effects::{Commits, carries};
use super::ends::End;
use super::{Comparison, States};
use crate::logic::meetings::{LOOKED_AT_MAX, Meetings};
use crate::logic::question::{Answer, Question, Way};
use crate::logic::rooms::{Rooms, Standing};
use crate::logic::walk::Step;

/// So many pairs are asked about; those beyond are unknown.
const PAIRS_MAX: usize = 200_000;

/// Ends of the old program and of the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) old: End,
    pub(super) new: End,
}

/// What is to be asked.
#[derive(Default)]
pub(super) struct Candidates {
    /// In their order, each once.
    pub(super) pairs: Vec<Pair>,
    /// Ends of which it is not known with which others they have to be asked.
    pub(super) given_up: Vec<End>,
}

/// What conditions leave, of the rules that are asked for it.
struct Room<'p> {
    on_true: Vec<Rooms<'p>>,
    on_unknown: Vec<Rooms<'p>>,
    none: Rooms<'p>,
}

/// Ends by the room that they leave.
struct Field<'k, 'p> {
    on_true: Meetings<'k, 'p>,
    on_unknown: Meetings<'k, 'p>,
    on_false: Vec<u32>,
}

/// An end, or a rule that does something, whose partners are sought.
#[derive(Clone, Copy)]
struct Sought {
    end: End,
    /// Whether all ends are asked with it, or only those of rules without a counterpart.
    is_open: bool,
}

impl<'p> Comparison<'p> {
    pub(super) fn candidates(&mut self) -> Candidates {
        let mut candidates = Candidates::default();
        let ends: Vec<End> = pace::each(0..self.end).flat_map(|rule| self.ends_of(rule)).collect();
        for old in pace::each(&ends).copied().filter(|end| end.rule < self.middle) {
            if let Some(rule) = self.alignment.counterpart(old.rule) {
                let pair = Pair { old, new: End { rule, on: old.on } };
                let is_other = self.ends.outcome(pair.old) != self.ends.outcome(pair.new);
                if is_other || self.does_other_itself(pair) {
                    candidates.pairs.push(pair);
                }
            }
        }
        let sought = self.sought(&ends);
        self.look_around(&ends, &sought, &mut candidates);
        pace::sort(&mut candidates.pairs);
        candidates.pairs.dedup();
        candidates
    }

    /// Where a rule decides.
    fn ends_of(&self, rule: u32) -> impl Iterator<Item = End> + use<'p> {
        let of = self.joint.rules.get(rule as usize);
        let decides = |on: &States| {
            self.analyst.walk.step(rule, *on) == Step::Decides && of.is_some_and(|of| may_come_to(of, *on))
        };
        let states: Vec<_> = States::EACH.into_iter().filter(decides).collect();
        states.into_iter().map(move |on| End { rule, on })
    }

    /// The rules of the program that an end is of.
    fn side(&self, end: End) -> Range<u32> {
        if end.rule < self.middle { 0..self.middle } else { self.middle..self.end }
    }

    fn other_side(&self, end: End) -> Range<u32> {
        if end.rule < self.middle { self.middle..self.end } else { 0..self.middle }
    }

    /// The ends whose partners have to be found.
    fn sought(&mut self, ends: &[End]) -> Vec<Sought> {
        let mut sought = Vec::new();
        for end in pace::each(ends).copied() {
            let is_open = match self.alignment.counterpart(end.rule) {
                None => !self.is_taken_in_place(end),
                Some(other) if self.alignment.has_strays() && self.alignment.is_jumped_over(other) => true,
                Some(_) => continue,
            };
            sought.push(Sought { end, is_open });
        }
        sought
    }

    /// Whether what a rule without a counterpart decides never passes the one that stands in its place.
    fn is_taken_in_place(&mut self, end: End) -> bool {
        let Some(other) = self.alignment.in_place(end.rule) else { return false };
        let range = self.other_side(end);
        let passing = self.analyst.walk.passing(other, range.end.saturating_sub(1));
        if self.alignment.is_jumped_over(other) || self.alignment.has_strays() || passing == States::ALL {
            return false;
        }
        let removed = Some((end.rule, end.on));
        let question = Question { rule: other, states: passing, removed, way: Way::Apart };
        passing == States::NONE || matches!(self.analyst.ask(question), Answer::No(_))
    }

    fn look_around(&mut self, ends: &[End], sought: &[Sought], candidates: &mut Candidates) {
        let odd: Vec<u32> =
            self.carriers.iter().copied().filter(|carrier| self.is_odd(*carrier, Commits::ALL)).collect();
        if sought.is_empty() && odd.is_empty() {
            return;
        }
        let asks_all = !odd.is_empty() || sought.iter().any(|sought| sought.is_open);
        let is_asked = |rule: u32| asks_all || self.alignment.counterpart(rule).is_none();
        let asked: Vec<bool> = pace::each(0..self.end).map(is_asked).collect();
        let room = self.room(ends, &asked);
        // There are two sets.
        let mut looks = 2 * LOOKED_AT_MAX;
        let alone = Field::new(ends, &room, |rule| self.alignment.counterpart(rule).is_none());
        let all = asks_all.then(|| Field::new(ends, &room, |_| true));
        for Sought { end, is_open } in pace::each(sought).copied() {
            let field = all.as_ref().filter(|_| is_open).unwrap_or(&alone);
            let Some(met) = field.of(room.of(end), &self.other_side(end), &mut looks) else {
                candidates.given_up.push(end);
                continue;
            };
            let pairs: Vec<_> = met.into_iter().map(|other| self.pair(end, other)).collect();
            self.keep(pairs, end, candidates);
        }
        for carrier in pace::each(odd) {
            let states: Vec<_> = States::EACH.into_iter().filter(|on| self.carries(carrier, *on)).collect();
            for on in states {
                let acts = End { rule: carrier, on };
                let behind = carrier + 1..self.side(acts).end;
                let met = all.as_ref().and_then(|all| all.of(room.of(acts), &behind, &mut looks));
                let Some(met) = met else {
                    candidates.given_up.push(acts);
                    continue;
                };
                let counterpart =
                    |end: End| Some(End { rule: self.alignment.counterpart(end.rule)?, on: end.on });
                let pairs: Vec<_> =
                    met.into_iter().filter_map(|end| Some(self.pair(end, counterpart(end)?))).collect();
                self.keep(pairs, acts, candidates);
            }
        }
    }

    fn carries(&self, rule: u32, on: States) -> bool {
        self.joint.rules.get(rule as usize).is_some_and(|of| may_come_to(of, on))
            && carries(self.joint, &self.analyst.walk, rule, on)
    }

    fn pair(&self, one: End, other: End) -> Pair {
        if one.rule < self.middle { Pair { old: one, new: other } } else { Pair { old: other, new: one } }
    }

    /// Keeps those of some pairs of an end that have to be asked.
    fn keep(&mut self, pairs: Vec<Pair>, of: End, candidates: &mut Candidates) {
        for pair in pace::each(pairs) {
            if !self.may_be_together(pair) || !self.may_differ(pair) {
                continue;
            }
            if candidates.pairs.len() >= PAIRS_MAX {
                candidates.given_up.push(of);
                return;
            }
            candidates.pairs.push(pair);
        }
    }

    /// Whether a request may come to both, as far as the order of the rules says.
    fn may_be_together(&self, pair: Pair) -> bool {
        let Pair { old, new } = pair;
        let (of_old, of_new) = (self.alignment.counterpart(old.rule), self.alignment.counterpart(new.rule));
        let has_strays = self.alignment.has_strays();
        // The counterpart of one end decides before the other end, where it is visited.
        let passes = |counterpart: Option<u32>, end: End| match counterpart {
            Some(counterpart) => {
                counterpart > end.rule || has_strays && self.alignment.is_jumped_over(counterpart)
            }
            None => true,
        };
        if of_old == Some(new.rule) {
            return old.on == new.on;
        }
        let is_alone = of_old.is_none() || of_new.is_none();
        (is_alone || has_strays) && passes(of_old, new) && passes(of_new, old)
    }

    fn may_differ(&mut self, pair: Pair) -> bool {
        self.ends.outcome(pair.old) != self.ends.outcome(pair.new) || self.may_do_otherwise(pair)
    }

    fn room(&mut self, ends: &[End], asked: &[bool]) -> Room<'p> {
        let unknown_matters = ends.iter().any(|end| end.on == States::UNKNOWN);
        let joint = self.joint;
        let mut of_all = |standing, matters: &dyn Fn(&Rule) -> bool| -> Vec<Rooms<'p>> {
            let asked = pace::each(joint.rules.iter().zip(asked));
            asked
                .map(|(rule, is_asked)| match *is_asked && matters(rule) {
                    true => Rooms::of(&rule.condition, standing, &mut self.analyst),
                    false => Rooms::default(),
                })
                .collect()
        };
        Room {
            on_true: of_all(Standing::True, &|_| true),
            // Where the else block waits for something, a condition may be false and yet not known to be.
            on_unknown: of_all(Standing::NotFalse, &|rule| {
                unknown_matters && rule.otherwise.awaits.is_empty()
            }),
            none: Rooms::default(),
        }
    }
}

impl<'p> Room<'p> {
    fn of(&self, end: End) -> &Rooms<'p> {
        let rooms = match end.on {
            States::TRUE => self.on_true.get(end.rule as usize),
            States::UNKNOWN => self.on_unknown.get(end.rule as usize),
            _ => None,
        };
        rooms.unwrap_or(&self.none)
    }
}

impl<'k, 'p> Field<'k, 'p> {
    fn new(ends: &[End], room: &'k Room<'p>, is_in: impl Fn(u32) -> bool) -> Field<'k, 'p> {
        let of = |on| -> Vec<u32> {
            let ends = pace::each(ends).filter(|end| end.on == on && is_in(end.rule));
            ends.map(|end| end.rule).collect()
        };
        Field {
            on_true: Meetings::new(of(States::TRUE), &room.on_true),
            on_unknown: Meetings::new(of(States::UNKNOWN), &room.on_unknown),
            on_false: of(States::FALSE),
        }
    }

    /// Those within a range that may be met where so much is left. Nothing where too many had to be looked at.
    fn of(&self, own: &Rooms<'p>, range: &Range<u32>, looks: &mut usize) -> Option<Vec<End>> {
        let mut found = Vec::new();
        for (on, meetings) in [(States::TRUE, &self.on_true), (States::UNKNOWN, &self.on_unknown)] {
            let met = meetings.of(own, range.clone(), looks)?;
            found.extend(met.into_iter().map(|rule| End { rule, on }));
        }
        let first = self.on_false.partition_point(|rule| *rule < range.start);
        let behind = self.on_false.partition_point(|rule| *rule < range.end);
        let on_false = self.on_false.get(first..behind).unwrap_or_default();
        *looks = looks.checked_sub(on_false.len())?;
        found.extend(on_false.iter().map(|rule| End { rule: *rule, on: States::FALSE }));
        Some(found)
    }
}
