//! What there is to say of a few rules of a set: of one that was just changed, where all the others were looked at before.

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_rules::{Condition, Exit, Program, Rule, RuleIndex};

use super::doubt::Doubt;
use super::findings::{Code, Finding, Report, is_empty};
use super::meetings::{LOOKED_AT_MAX, Meetings};
use super::question::{Answer, reading_steps};
use super::rooms::{Rooms, Standing};
use super::states::States;
use crate::witness::Witness;
use crate::{Effort, Setting};

/// The findings among [`findings`](super::findings()) that are about these rules or name them, and what no rule decides. The
/// rule behind the last is the final `else:`. Only the rules that may meet one of them are asked about, and those that no
/// request is seen to come to.
#[must_use]
pub fn findings_about(
    program: &Arc<Program>,
    rules: &[RuleIndex],
    setting: &Setting,
    effort: Effort,
) -> Vec<Finding> {
    let about: BTreeSet<u32> =
        rules.iter().filter(|rule| program.rule(**rule).is_some()).map(|rule| rule.0).collect();
    let mut report = Report::new(program, setting, effort);
    let rooms = report.rooms(Standing::True);
    let met = report.met_by(&about, &rooms);
    let mut live = report.look_at_each(&met);
    let deserted = report.deserted(&about, &met);
    live.extend(report.look_at_each(&deserted));
    live.sort_unstable();
    report.look_at_the_rest();
    report.look_for_redundant(&live, &rooms);
    report.look_for_pairs(&live, &rooms, Some(&about));
    report.own_up();
    let mut findings = report.findings;
    findings.retain(|finding| {
        let is_about = |rule: &RuleIndex| about.contains(&rule.0);
        // Of pairs that were not settled each has one of these rules.
        let is_of_pairs = finding.code == Code::Unknown && finding.others.is_empty();
        finding.code == Code::Gap
            || is_of_pairs
            || is_cut_short(finding)
            || is_about(&finding.rule)
            || finding.others.iter().any(is_about)
    });
    findings
}

/// Whether more of it would be known with more time: what is not said then may be about any rule.
fn is_cut_short(finding: &Finding) -> bool {
    finding.doubts.iter().any(|in_doubt| matches!(in_doubt.doubt, Doubt::Steps | Doubt::Time))
}

impl<'p> Report<'p> {
    /// These rules, and those that may get other requests because of them, of such as make their conditions true.
    fn met_by(&mut self, about: &BTreeSet<u32>, rooms: &[Rooms<'p>]) -> BTreeSet<u32> {
        let end = u32::try_from(self.program.rules.len()).unwrap_or(u32::MAX);
        let everyone = 0..end;
        let meetings = Meetings::new(everyone.clone().collect(), rooms);
        let mut looks = LOOKED_AT_MAX;
        let mut met = about.clone();
        for index in about {
            let (rule, own) = (self.program.rules.get(*index as usize), rooms.get(*index as usize));
            // The last block takes what comes, whatever that is.
            let (Some(rule), Some(own)) = (rule, own) else { return everyone.collect() };
            // What it sends there would not come to what stands there, whatever these ask for themselves.
            for block in [&rule.then, &rule.otherwise] {
                if let Exit::Goto(to) = block.exit {
                    met.extend(to.0..end);
                }
            }
            // Where it ends unknown it may decide, too.
            let unless_false = self.acts(*index, States::UNKNOWN).then(|| self.room_unless_false(*index));
            // What it does where it is false it does with requests that have nothing in common.
            let acts_on_all = !is_empty(&rule.otherwise) || matches!(rule.condition, Condition::Always);
            let own = unless_false.as_ref().unwrap_or(own);
            match meetings.of(own, everyone.clone(), &mut looks).filter(|_| !acts_on_all) {
                Some(found) => met.extend(found),
                None => return everyone.collect(),
            }
        }
        met
    }

    /// Says of some rules what is said of each by itself. Those that some request reaches.
    fn look_at_each(&mut self, rules: &BTreeSet<u32>) -> Vec<u32> {
        let program = self.program;
        let mut live = Vec::new();
        for index in rules {
            if program.rules.get(*index as usize).is_some_and(|rule| self.look_at(*index, rule)) {
                live.push(*index);
            }
        }
        live
    }

    /// The rules behind `about`, but for `met`, that nothing is seen to come to, or to take the else block of: that may be
    /// because of these, whatever requests the rules ask for.
    fn deserted(&mut self, about: &BTreeSet<u32>, met: &BTreeSet<u32>) -> BTreeSet<u32> {
        let program = self.program;
        let mut deserted = BTreeSet::new();
        let Some(first) = about.first() else { return deserted };
        // One request shows this of most rules: that which none of them decides.
        let mut seen = vec![States::NONE; program.rules.len()];
        let end = u32::try_from(program.rules.len()).unwrap_or(u32::MAX);
        if let Answer::Yes(witness) = self.ask(end, States::TRUE) {
            self.see(&witness, &mut seen);
        }
        // The last ones first: what comes to them has mostly come to those before.
        for (index, rule) in (0..end).zip(&program.rules).rev().take_while(|(index, _)| index > first) {
            let wanted = if has_else(rule) { States::FALSE } else { States::ALL };
            let is_seen = seen.get(index as usize).is_some_and(|seen| seen.and(wanted) != States::NONE);
            if is_seen || met.contains(&index) {
                continue;
            }
            match self.ask(index, wanted) {
                Answer::Yes(witness) => self.see(&witness, &mut seen),
                Answer::No(_) | Answer::Unknown(Doubt::Steps | Doubt::Time) => {
                    deserted.insert(index);
                }
                // It has nothing to do with these that no request could be made for it.
                Answer::Unknown(_) => {}
            }
            // It is owned up to with this one.
            if self.analyst.is_used_up() {
                deserted.insert(index);
                break;
            }
        }
        deserted
    }

    /// Notes which rules a request comes to, and what their conditions come to there.
    fn see(&mut self, witness: &Witness, seen: &mut [States]) {
        let reading = usize::try_from(reading_steps(witness)).unwrap_or(usize::MAX);
        if !self.analyst.take(seen.len().saturating_add(reading)) {
            return;
        }
        for (rule, states) in self.analyst.visited(witness) {
            if let Some(known) = seen.get_mut(rule as usize) {
                *known = known.or(states);
            }
        }
    }
}

/// Whether something comes of it where its condition is false.
fn has_else(rule: &Rule) -> bool {
    !is_empty(&rule.otherwise) && !matches!(rule.condition, Condition::Always)
}
