//! Rules that could as well not be there.

use pointsman_rules::{Block, Exit, Rule, Terminal};

use super::findings::{Code, Report};
use super::keys::Keys;
use super::question::{Answer, Question, Way};
use super::states::States;
use super::walk::Step;

/// Of so many rules behind one it is asked at most whether they do otherwise.
const ASKED_BEHIND_MAX: usize = 64;

impl Report<'_> {
    /// Says which rules change nothing. `live` are those that some request reaches.
    pub(super) fn look_for_redundant(&mut self, live: &[u32], keys: &[Keys<'_>]) {
        for index in live {
            let Some(others) = self.takers_instead(*index, keys) else { continue };
            let message = format!("without {} every request is decided alike", self.name(*index));
            let help = format!("{} {} what it takes, to the same end", self.names(&others), take(&others));
            self.add(Code::Redundant, *index, &others, message, Some(help));
        }
    }

    /// The rules that take all that this one takes, and do the same with it. Nothing where there is something that none
    /// does, or where that is not settled.
    fn takers_instead(&mut self, index: u32, keys: &[Keys<'_>]) -> Option<Vec<u32>> {
        let rule = self.program.rules.get(index as usize)?;
        let terminal = plain_end(rule)?;
        let end = self.analyst.walk.len();
        let removed = Some((index, States::TRUE));
        let Answer::No(takers) =
            self.analyst.ask(Question { rule: end, states: States::ALL, removed, way: Way::Otherwise })
        else {
            return None;
        };
        let takers: Vec<_> = takers.into_iter().filter(|taker| *taker > index).collect();
        let last = *takers.last()?;
        if self.analyst.walk.step(index, States::UNKNOWN) == Step::Decides
            && !matches!(self.ask(index, States::UNKNOWN), Answer::No(_))
        {
            return None;
        }
        let own = keys.get(index as usize)?;
        let mut asked = 0;
        for other in index + 1..=last {
            let states = self.different(other, terminal);
            let may_meet = keys.get(other as usize).is_none_or(|keys| keys.may_meet(own));
            if states == States::NONE || !may_meet {
                continue;
            }
            asked += 1;
            let question = Question { rule: other, states, removed, way: Way::Walk };
            if asked > ASKED_BEHIND_MAX || !matches!(self.analyst.ask(question), Answer::No(_)) {
                return None;
            }
        }
        Some(takers)
    }

    /// In which states a rule does something else than to end so.
    fn different(&self, index: u32, terminal: &Terminal) -> States {
        let differs = |on: &States| match self.analyst.walk.block(self.program, index, *on) {
            Some(block) => {
                !block.effects.is_empty() || matches!(&block.exit, Exit::Terminal(end) if end != terminal)
            }
            None => self.analyst.walk.step(index, *on) == Step::Decides,
        };
        States::EACH.into_iter().filter(differs).fold(States::NONE, States::or)
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
