//! What there is to say of a few rules of a set: of one that was just changed, where all the others were looked at before.

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_rules::{Condition, Exit, Program, RuleIndex};

use super::findings::{Code, Finding, Report, is_empty};
use super::meetings::{LOOKED_AT_MAX, Meetings};
use super::rooms::{Rooms, Standing};
use crate::{Effort, Setting};

/// The findings among [`findings`](super::findings()) that are about these rules or name them, and what no rule decides.
/// Only the rules that may meet one of them are asked about.
#[must_use]
pub fn findings_about(
    program: &Arc<Program>,
    rules: &[RuleIndex],
    setting: &Setting,
    effort: Effort,
) -> Vec<Finding> {
    let about: BTreeSet<u32> =
        rules.iter().map(|rule| rule.0).filter(|rule| (*rule as usize) < program.rules.len()).collect();
    let mut report = Report::new(program, setting, effort);
    let rooms = report.rooms(Standing::True);
    let met = met_by(program, &about, &rooms);
    let mut live = Vec::new();
    for (index, rule) in (0..).zip(&program.rules).filter(|(index, _)| met.contains(index)) {
        if report.look_at(index, rule) {
            live.push(index);
        }
    }
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
            || is_about(&finding.rule)
            || finding.others.iter().any(is_about)
    });
    findings
}

/// These rules, and those that may get other requests because of them.
fn met_by(program: &Program, about: &BTreeSet<u32>, rooms: &[Rooms<'_>]) -> BTreeSet<u32> {
    let end = u32::try_from(program.rules.len()).unwrap_or(u32::MAX);
    let everyone = 0..end;
    let meetings = Meetings::new(everyone.clone().collect(), rooms);
    let mut looks = LOOKED_AT_MAX;
    let mut met = about.clone();
    for index in about {
        let (rule, own) = (program.rules.get(*index as usize), rooms.get(*index as usize));
        let (Some(rule), Some(own)) = (rule, own) else { continue };
        // What it sends there would not come to what stands there, whatever these ask for themselves.
        for block in [&rule.then, &rule.otherwise] {
            if let Exit::Goto(to) = block.exit {
                met.extend(to.0..end);
            }
        }
        // What it does where it is false it does with requests that have nothing in common.
        let acts_on_all = !is_empty(&rule.otherwise) || matches!(rule.condition, Condition::Always);
        match meetings.of(own, everyone.clone(), &mut looks).filter(|_| !acts_on_all) {
            Some(found) => met.extend(found),
            None => return everyone.collect(),
        }
    }
    met
}
