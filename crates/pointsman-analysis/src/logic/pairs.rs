//! Pairs of rules that some request has both: the first decides it, and the second would do something else with it.

mod groups;
mod kin;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pointsman_rules::{Condition, Exit};

use self::kin::{Kin, Kinship};
use super::doubt::{Doubt, InDoubt, by_doubt};
use super::findings::{Code, Finding, Report};
use super::meetings::{LOOKED_AT_MAX, Meetings};
use super::question::{Answer, Question, Way};
use super::rooms::Rooms;
use super::states::States;

/// So many pairs are asked about.
const PAIRS_MAX: u64 = 30_000;
/// Of so many rules that ask for the same fields, others than a further one, each is asked about; of more only until one
/// conflicts with it.
const ALIKE_MAX: usize = 8;

/// So many rules in doubt about what they are to others are named.
const DOUBTED_MAX: usize = 100;
/// With so many others each.
const DOUBTED_OTHERS_MAX: usize = 100;

/// Two rules that some request has both.
struct Overlap {
    first: u32,
    second: u32,
    /// Whether they have nothing to do with each other, as far as is seen without asking.
    are_strangers: bool,
    /// Nothing where it was not asked, since another pair shows that such rules overlap.
    witness: Option<Box<crate::Witness>>,
}

/// What two rules are to each other.
enum Pair {
    Conflict(Box<crate::Witness>),
    Exception(Box<crate::Witness>),
    Nothing,
    Unknown(Doubt),
}

/// All pairs so far.
#[derive(Default)]
struct Pairs {
    conflicts: Vec<Overlap>,
    exceptions: Vec<Overlap>,
    /// What a rule is to others before it, where that is not settled, and why.
    unsettled: BTreeMap<u32, Vec<(u32, Doubt)>>,
    /// How many more are not settled, and why.
    more_unsettled: Vec<(u64, Doubt)>,
    asked: u64,
    /// Of a rule, and of fields that later ones ask for: how many of these were shown to conflict with it.
    shown_of_first: HashMap<(u32, usize), usize>,
}

impl Pairs {
    /// Of a pair that was asked about it is not settled what one is to the other.
    fn own_up(&mut self, first: u32, second: u32, doubt: Doubt) {
        // What the budget leaves says nothing of these two.
        if matches!(doubt, Doubt::Steps | Doubt::Time | Doubt::Many) {
            return self.own_up_to_many(1, doubt);
        }
        let has_room = self.unsettled.len() < DOUBTED_MAX || self.unsettled.contains_key(&second);
        let others = self.unsettled.get(&second).map_or(0, Vec::len);
        if has_room && others < DOUBTED_OTHERS_MAX {
            self.unsettled.entry(second).or_default().push((first, doubt));
        } else {
            self.own_up_to_many(1, doubt.kind());
        }
    }

    /// So many pairs are not looked at, or not named.
    fn own_up_to_many(&mut self, count: u64, doubt: Doubt) {
        if count == 0 {
            return;
        }
        match self.more_unsettled.iter_mut().find(|(_, known)| *known == doubt) {
            Some((counted, _)) => *counted += count,
            None => self.more_unsettled.push((count, doubt)),
        }
    }
}

impl<'p> Report<'p> {
    /// Says which rules conflict, and which are exceptions from others. `live` are those that some request reaches, `rooms`
    /// what conditions leave that are true. Where only some are of interest, one of each pair is `about` them.
    pub(super) fn look_for_pairs(
        &mut self,
        live: &[u32],
        rooms: &[Rooms<'_>],
        about: Option<&BTreeSet<u32>>,
    ) {
        let decides = |index: &u32| {
            let rule = self.program.rules.get(*index as usize);
            rule.is_some_and(|rule| {
                matches!(rule.then.exit, Exit::Terminal(_)) && !matches!(rule.condition, Condition::Always)
            })
        };
        let deciding: Vec<u32> = live.iter().copied().filter(decides).collect();
        let kin = Kin::of(self.program, &deciding);
        let meetings = Meetings::new(deciding.clone(), rooms);
        let mut pairs = Pairs::default();
        let is_met = |first: u32, own: &Rooms<'_>| {
            deciding.binary_search(&first).is_ok()
                && rooms.get(first as usize).is_some_and(|rooms| rooms.may_meet(own))
        };
        let mut looks = LOOKED_AT_MAX;
        for (place, second) in (0_u64..).zip(deciding.iter().copied()) {
            let Some(own) = rooms.get(second as usize) else { continue };
            let before = match about.filter(|about| !about.contains(&second)) {
                None => meetings.of(own, 0..second, &mut looks),
                Some(about) => {
                    Some(about.range(..second).filter(|first| is_met(**first, own)).copied().collect())
                }
            };
            let Some(before) = before else {
                pairs.own_up_to_many(place, Doubt::Many);
                continue;
            };
            self.analyst.take(before.len() / 8);
            self.look_at_pairs(&before, second, &kin, &mut pairs);
        }
        let Pairs { conflicts, exceptions, unsettled, more_unsettled, .. } = pairs;
        self.report_conflicts(conflicts, &kin);
        self.report_exceptions(exceptions);
        self.report_unsettled(unsettled, more_unsettled, deciding.len());
    }

    /// What could not be settled of pairs of so many rules: that of one rule together.
    fn report_unsettled(
        &mut self,
        unsettled: BTreeMap<u32, Vec<(u32, Doubt)>>,
        more: Vec<(u64, Doubt)>,
        rules: usize,
    ) {
        let further = if unsettled.is_empty() { "" } else { "further " };
        for (second, firsts) in unsettled {
            let others: Vec<_> = firsts.iter().map(|(first, _)| *first).collect();
            let message =
                format!("it is unknown whether {} conflicts with {}", self.name(second), self.names(&others));
            let finding = self.finding(Code::Unknown, second, &others, message, None);
            self.findings.push(Finding { doubts: by_doubt(firsts), ..finding });
        }
        for (unsettled, doubt) in more {
            let pairs = if unsettled == 1 { "pair" } else { "pairs" };
            let message = format!(
                "{unsettled} {further}{pairs} of {rules} rules could not be settled: whether they conflict is unknown"
            );
            let finding = self.finding(Code::Unknown, 0, &[], message, None);
            let in_doubt = InDoubt { rules: Vec::new(), doubt };
            self.findings.push(Finding { doubts: vec![in_doubt], ..finding });
        }
    }

    /// Asks what a rule is to those before it.
    fn look_at_pairs(&mut self, before: &[u32], second: u32, kin: &Kin<'p>, pairs: &mut Pairs) {
        let mut meant = before.to_vec();
        meant.retain(|first| !self.ends_alike(*first, second) && !self.allows(second, *first));
        let mut left = Vec::with_capacity(meant.len());
        // How many ask for the same fields, and whether one of them was shown to conflict.
        let mut alike: HashMap<usize, (usize, bool)> = HashMap::new();
        for first in meant {
            let are_strangers = match kin.of_two(first, second, &mut self.analyst) {
                Kinship::Apart => continue,
                Kinship::Strangers => true,
                Kinship::PerhapsStrangers => {
                    self.onward.is_apart(first, second) && self.onward.is_apart(second, first)
                }
                Kinship::Close => false,
            };
            if are_strangers {
                alike.entry(kin.of_rule(first)).or_default().0 += 1;
            }
            left.push((first, are_strangers));
        }
        for (first, are_strangers) in left {
            let (mine, its) = (kin.of_rule(first), kin.of_rule(second));
            let of_second = alike.get(&mine).is_some_and(|(count, shown)| *count > ALIKE_MAX && *shown);
            let of_first = pairs.shown_of_first.get(&(first, its)).is_some_and(|shown| *shown >= ALIKE_MAX);
            if are_strangers && (of_second || of_first) {
                pairs.conflicts.push(Overlap { first, second, are_strangers, witness: None });
                continue;
            }
            if pairs.asked == PAIRS_MAX || self.analyst.is_used_up() {
                let doubt = if pairs.asked == PAIRS_MAX { Doubt::Many } else { self.analyst.used_up() };
                pairs.own_up_to_many(1, doubt);
                continue;
            }
            pairs.asked += 1;
            match self.pair(first, second) {
                Pair::Conflict(witness) => {
                    pairs.conflicts.push(Overlap { first, second, are_strangers, witness: Some(witness) });
                    if are_strangers {
                        alike.entry(mine).or_default().1 = true;
                        *pairs.shown_of_first.entry((first, its)).or_default() += 1;
                    }
                }
                Pair::Exception(witness) => {
                    pairs.exceptions.push(Overlap { first, second, are_strangers, witness: Some(witness) });
                }
                Pair::Nothing => {}
                Pair::Unknown(doubt) => pairs.own_up(first, second, doubt),
            }
        }
    }

    fn pair(&mut self, first: u32, second: u32) -> Pair {
        let removed = Some((first, States::TRUE));
        let both = Question { rule: second, states: States::TRUE, removed, way: Way::Walk };
        let witness = match self.analyst.ask(both) {
            Answer::Yes(witness) => witness,
            Answer::No(_) => return Pair::Nothing,
            Answer::Unknown(doubt) => return Pair::Unknown(doubt),
        };
        match (self.has_its_own(first, second), self.has_its_own(second, first)) {
            (Ok(true), Ok(true)) => Pair::Conflict(witness),
            (Ok(false), Ok(true)) => Pair::Exception(witness),
            (Err(doubt), _) | (_, Err(doubt)) => Pair::Unknown(doubt),
            (_, Ok(false)) => Pair::Nothing,
        }
    }

    /// Whether the condition of a rule is true of some request of which that of another one is not.
    fn has_its_own(&mut self, rule: u32, other: u32) -> Result<bool, Doubt> {
        if self.onward.is_apart(rule, other) {
            return Ok(true);
        }
        let removed = Some((other, States::NOT_TRUE));
        match self.analyst.ask(Question { rule, states: States::TRUE, removed, way: Way::Apart }) {
            Answer::Yes(_) => Ok(true),
            Answer::No(_) => Ok(false),
            Answer::Unknown(doubt) => Err(doubt),
        }
    }

    fn ends_alike(&self, first: u32, second: u32) -> bool {
        let end = |index: u32| match &self.program.rules.get(index as usize)?.then.exit {
            Exit::Terminal(terminal) => Some(terminal),
            _ => None,
        };
        end(first) == end(second)
    }

    /// Whether a rule says that it may conflict with another one. It is meant of one before it, which decides then: where
    /// the two change places, it is not meant any more.
    fn allows(&self, rule: u32, other: u32) -> bool {
        let blocks = self.program.rules.get(rule as usize).map(|rule| [&rule.then, &rule.otherwise]);
        let mut allowed = blocks.iter().flatten().flat_map(|block| &block.allows);
        allowed.any(|allowed| allowed.0 == other)
    }
}
