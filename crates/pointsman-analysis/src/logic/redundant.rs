//! Rules that could as well not be there.
//!
//! What a rule takes, others may take to the same end, and without it something may become of a request all the same, or of another
//! one: where a body is looked into, or a field taken away, because of all rules together. So it is asked for that, too.

use std::collections::BTreeSet;
use std::ops::Range;

use pointsman_rules::{Block, Condition, Exit, Field, Rule, Terminal};

use super::doubt::Doubt;
use super::findings::{Code, Report};
use super::meetings::{LOOKED_AT_MAX, Meetings};
use super::odd_names;
use super::question::{Answer, Question, Way};
use super::rooms::{Rooms, Standing, rule_may_end_unknown};
use super::states::States;
use super::walk::Step;

/// Of so many rules behind one it is asked at most whether they do otherwise.
const ASKED_BEHIND_MAX: usize = 256;

/// The rules that may do otherwise than one before them, by what their conditions come to there.
struct Behind<'k, 'p> {
    on_true: Meetings<'k, 'p>,
    on_unknown: Meetings<'k, 'p>,
    on_false: Vec<u32>,
    /// How many rules may still be looked at.
    looks: usize,
    /// Those without which a field with an odd name may stay that is taken away with them.
    hiding: BTreeSet<u32>,
}

/// Whether a rule changes anything.
enum Change {
    /// These do the same in its place.
    Nothing(Vec<u32>),
    Something,
    Unknown(Doubt),
}

fn names_bodies(rule: &Rule) -> bool {
    rule.condition.any_test(&|test| matches!(test.field, Field::Payload(_)))
}

/// Whether a body must be well-formed for a condition to be settled.
fn looks_into_bodies(condition: &Condition) -> bool {
    condition.any_test(&|test| test.field.is_in_body())
}

impl<'p> Report<'p> {
    /// Says which rules change nothing. `live` are those that some request reaches, `rooms` what conditions leave that are
    /// true.
    pub(super) fn look_for_redundant(&mut self, live: &[u32], rooms: &[Rooms<'_>]) {
        let end = u32::try_from(self.program.rules.len()).unwrap_or(u32::MAX);
        // Nobody asks for the room of the others.
        let not_false: Vec<_> = (0..end).map(|rule| self.room_unless_false(rule)).collect();
        let deciding = |on| -> Vec<u32> { (0..end).filter(|rule| self.acts(*rule, on)).collect() };
        let mut behind = Behind {
            on_true: Meetings::new(deciding(States::TRUE), rooms),
            on_unknown: Meetings::new(deciding(States::UNKNOWN), &not_false),
            on_false: deciding(States::FALSE),
            looks: LOOKED_AT_MAX,
            hiding: odd_names::sole_namers(self.program, self.analyst.setting()),
        };
        for index in live {
            let Some(own) = rooms.get(*index as usize) else { continue };
            match self.change(*index, own, &mut behind) {
                Change::Something => {}
                Change::Unknown(doubt) => self.unsettled_redundant.push((*index, doubt)),
                Change::Nothing(others) => {
                    let message = format!("without {} every request is decided alike", self.name(*index));
                    let help =
                        format!("{} {} what it takes, to the same end", self.names(&others), take(&others));
                    self.add(Code::Redundant, *index, &others, message, Some(help));
                }
            }
        }
    }

    /// What the condition of a rule that may decide where it is unknown leaves where it is not false.
    pub(super) fn room_unless_false(&mut self, index: u32) -> Rooms<'p> {
        match self.program.rules.get(index as usize).filter(|_| self.acts(index, States::UNKNOWN)) {
            Some(rule) => Rooms::of(&rule.condition, Standing::NotFalse, &mut self.analyst),
            None => Rooms::default(),
        }
    }

    /// Whether there are rules that take all that this one takes, and do the same with it.
    fn change(&mut self, index: u32, own: &Rooms<'_>, behind: &mut Behind<'_, '_>) -> Change {
        let rule = self.program.rules.get(index as usize);
        let Some(terminal) = rule.and_then(plain_end) else { return Change::Something };
        // Without it bodies may be read, or checked, otherwise, whatever is decided.
        if rule.is_some_and(names_bodies) || self.refuses_by_bodies(index, terminal) {
            return Change::Something;
        }
        if behind.hiding.contains(&index) {
            return Change::Something;
        }
        if self.onward.ends_otherwise(index) {
            return Change::Something;
        }
        let end = self.analyst.walk.len();
        let removed = Some((index, States::TRUE));
        let question = Question { rule: end, states: States::ALL, removed, way: Way::Otherwise };
        let mut takers = match self.analyst.ask(question) {
            Answer::Yes(_) => return Change::Something,
            Answer::Unknown(doubt) => return Change::Unknown(doubt),
            Answer::No(takers) => takers,
        };
        takers.retain(|taker| *taker > index);
        let Some(last) = takers.last().copied() else { return Change::Something };
        if self.analyst.walk.step(index, States::UNKNOWN) == Step::Decides {
            match self.ask(index, States::UNKNOWN) {
                Answer::Yes(_) => return Change::Something,
                Answer::Unknown(doubt) => return Change::Unknown(doubt),
                Answer::No(_) => {}
            }
        }
        let Some(others) = behind.of(own, index + 1..last.saturating_add(1)) else {
            return Change::Unknown(Doubt::Many);
        };
        let (mut asked, mut in_doubt) = (0, None);
        for other in others {
            let states = self.different(other, terminal);
            if states == States::NONE {
                continue;
            }
            if asked == ASKED_BEHIND_MAX {
                return Change::Unknown(Doubt::Many);
            }
            asked += 1;
            match self.analyst.ask(Question { rule: other, states, removed, way: Way::Walk }) {
                Answer::Yes(_) => return Change::Something,
                Answer::Unknown(doubt) => in_doubt = in_doubt.or(Some(doubt)),
                Answer::No(_) => {}
            }
        }
        in_doubt.map_or(Change::Nothing(takers), Change::Unknown)
    }

    /// Whether a rule jumps to this one to refuse something: by that it is known which bodies refuse, and how bodies of no known
    /// media type are read.
    fn refuses_by_bodies(&self, index: u32, terminal: &Terminal) -> bool {
        let goes_on = matches!(terminal, Terminal::RouteTo { .. } | Terminal::Split(_));
        !goes_on && !self.program.payloads.is_empty() && self.analyst.walk.is_target(index)
    }

    /// Whether a rule does more than to let requests go on, where its condition comes to one of [`States::EACH`].
    pub(super) fn acts(&self, index: u32, on: States) -> bool {
        match self.analyst.walk.block(self.program, index, on) {
            Some(block) => !block.effects.is_empty() || matches!(block.exit, Exit::Terminal(_)),
            None => {
                let decides = self.analyst.walk.step(index, on) == Step::Decides;
                (decides || self.looks_on(index)) && rule_may_end_unknown(self.program, index)
            }
        }
    }

    /// Whether a rule looks into bodies and lets go on what ends unknown: where all it asks of a body is not known, the body is
    /// looked into, and refused behind the decision where it is wrong.
    fn looks_on(&self, index: u32) -> bool {
        self.program.rules.get(index as usize).is_some_and(|rule| looks_into_bodies(&rule.condition))
    }

    /// In which states a rule does something else than to end so.
    fn different(&self, index: u32, terminal: &Terminal) -> States {
        let differs = |on: &States| match self.analyst.walk.block(self.program, index, *on) {
            Some(block) => {
                !block.effects.is_empty() || matches!(&block.exit, Exit::Terminal(end) if end != terminal)
            }
            None => self.analyst.walk.step(index, *on) == Step::Decides || self.looks_on(index),
        };
        States::EACH.into_iter().filter(differs).fold(States::NONE, States::or)
    }
}

impl Behind<'_, '_> {
    /// Those within `range` that may do otherwise with what a rule takes, in their order. Nothing where there are too many
    /// to look at.
    fn of(&mut self, own: &Rooms<'_>, range: Range<u32>) -> Option<Vec<u32>> {
        let mut others = self.on_true.of(own, range.clone(), &mut self.looks)?;
        others.extend(self.on_unknown.of(own, range.clone(), &mut self.looks)?);
        others.extend(self.on_false.iter().filter(|rule| range.contains(rule)));
        others.sort_unstable();
        others.dedup();
        Some(others)
    }
}

/// The terminal action of a rule that does nothing else.
pub(super) fn plain_end(rule: &Rule) -> Option<&Terminal> {
    let is_plain = |block: &Block| block.effects.is_empty();
    match &rule.then.exit {
        Exit::Terminal(terminal) if is_plain(&rule.then) && super::findings::is_empty(&rule.otherwise) => {
            Some(terminal)
        }
        _ => None,
    }
}

pub(super) fn take(rules: &[u32]) -> &'static str {
    if rules.len() == 1 { "takes" } else { "take" }
}
