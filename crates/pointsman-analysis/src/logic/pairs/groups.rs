//! Pairs as they are told: those of one rule together.

use std::collections::{BTreeMap, HashMap};

use pointsman_rules::{Exit, Severity};

use super::kin::Kin;
use super::{ALIKE_MAX, Overlap};
use crate::logic::findings::{Code, Finding, Report};
use crate::logic::redundant::take;

/// So many groups of conflicts are shown, and so many of exceptions.
const GROUPS_MAX: usize = 100;

/// What the pairs of a group have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Common {
    Second(u32),
    /// The first answers itself.
    Guard(u32),
    /// And what fields the later ones ask for.
    First(u32, usize),
}

/// Pairs that are told in one finding.
#[derive(Default)]
struct Group {
    /// The rule that it is about, of the first pair that was shown; those that it was shown to overlap; and the request that
    /// shows the first.
    shown: Option<(u32, Vec<u32>, Box<crate::Witness>)>,
    /// Rules that were not asked, or are told together with the first.
    more: Vec<u32>,
}

impl Report<'_> {
    pub(super) fn report_conflicts(&mut self, conflicts: Vec<Overlap>, kin: &Kin<'_>) {
        let (conflicts, guarded) = conflicts.into_iter().partition(|overlap| self.routes(overlap.first));
        self.report_guards(guarded);
        self.report_routes(conflicts, kin);
    }

    /// Rules that answer requests themselves which others behind them would take: that is how guards are written.
    fn report_guards(&mut self, guarded: Vec<Overlap>) {
        let groups = grouped(guarded, |overlap| Common::Guard(overlap.first));
        self.add_groups(groups, "guards", |report, group| {
            let (guard, seconds, witness) = group.shown?;
            let (name, names) = (report.name(guard), report.names(&seconds));
            let message = format!("{name} answers itself some requests that {names} would take");
            let help = (!group.more.is_empty()).then(|| report.expected_of(&group.more));
            let finding = report.finding(Code::Conflict, guard, &seconds, message, help);
            Some(Finding { witness: Some(*witness), severity: Severity::Note, ..finding })
        });
    }

    fn report_routes(&mut self, conflicts: Vec<Overlap>, kin: &Kin<'_>) {
        let mut of_first: HashMap<(u32, usize), usize> = HashMap::new();
        let mut of_second: HashMap<(u32, usize), usize> = HashMap::new();
        for Overlap { first, second, are_strangers, .. } in &conflicts {
            if *are_strangers {
                *of_first.entry((*first, kin.of_rule(*second))).or_default() += 1;
                *of_second.entry((*second, kin.of_rule(*first))).or_default() += 1;
            }
        }
        let common = |overlap: &Overlap| {
            let Overlap { first, second, .. } = *overlap;
            let with_first = of_first.get(&(first, kin.of_rule(second))).copied().unwrap_or_default();
            let with_second = of_second.get(&(second, kin.of_rule(first))).copied().unwrap_or_default();
            match with_first > with_second.max(ALIKE_MAX) {
                true => Common::First(first, kin.of_rule(second)),
                false => Common::Second(second),
            }
        };
        let groups = grouped(conflicts, common);
        self.add_groups(groups, "conflicts", |report, group| {
            let (second, firsts, witness) = group.shown?;
            let message = format!(
                "{} would do something else with some requests that {} {}",
                report.name(second),
                report.names(&firsts),
                take(&firsts)
            );
            let labels = report.labels(&firsts);
            let advice =
                format!("the first of them decides; `allow conflict({labels})` says that it is meant");
            let advice = match firsts.iter().find(|first| report.allows(**first, second)) {
                Some(first) => format!("{advice}; {} says so of a rule behind it", report.name(*first)),
                None => advice,
            };
            let help = match group.more.as_slice() {
                [] => advice,
                more => format!("{}; {advice}", report.expected_of(more)),
            };
            let finding = report.finding(Code::Conflict, second, &firsts, message, Some(help));
            Some(Finding { witness: Some(*witness), ..finding })
        });
    }

    /// Of rules that were not asked.
    fn expected_of(&self, rules: &[u32]) -> String {
        let asks = if rules.len() == 1 { "asks" } else { "ask" };
        format!("the same is to be expected of {}, which {asks} for the same fields", self.names(rules))
    }

    /// Whether what a rule takes goes to a server.
    fn routes(&self, rule: u32) -> bool {
        let rule = self.program.rules.get(rule as usize);
        rule.is_some_and(|rule| matches!(&rule.then.exit, Exit::Terminal(terminal) if terminal.routes()))
    }

    pub(super) fn report_exceptions(&mut self, exceptions: Vec<Overlap>) {
        let groups = grouped(exceptions, |overlap| Common::Second(overlap.second));
        self.add_groups(groups, "exceptions", |report, group| {
            let (second, firsts, witness) = group.shown?;
            let is_are = if firsts.len() == 1 { "is an exception" } else { "are exceptions" };
            let message = format!("{} {is_are} from {}", report.names(&firsts), report.name(second));
            let finding = report.finding(Code::Exception, second, &firsts, message, None);
            Some(Finding { witness: Some(*witness), ..finding })
        });
    }

    /// Adds as many as are shown, and says how many there are.
    fn add_groups(&mut self, groups: Vec<Group>, what: &str, told: impl Fn(&Self, Group) -> Option<Finding>) {
        let total = groups.len();
        let mut shown: Vec<_> =
            groups.into_iter().take(GROUPS_MAX).filter_map(|group| told(self, group)).collect();
        if let (true, Some(last)) = (total > GROUPS_MAX, shown.last_mut()) {
            let count = format!("of {total} groups of {what} these are the first {GROUPS_MAX}");
            last.help = Some(last.help.take().map_or(count.clone(), |help| format!("{help}; {count}")));
        }
        self.findings.extend(shown);
    }

    /// As `allow conflict` takes them, as far as rules have labels.
    fn labels(&self, rules: &[u32]) -> String {
        let labels =
            rules.iter().filter_map(|rule| self.program.rules.get(*rule as usize)).map(|rule| &*rule.label);
        let labels: Vec<_> = labels.filter(|label| !label.starts_with('#')).take(5).collect();
        if labels.is_empty() { "LABEL".to_owned() } else { labels.join(", ") }
    }
}

/// In the order of their first pairs.
fn grouped(overlaps: Vec<Overlap>, common: impl Fn(&Overlap) -> Common) -> Vec<Group> {
    let mut places: BTreeMap<Common, usize> = BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for overlap in overlaps {
        let common = common(&overlap);
        let place = *places.entry(common).or_insert_with(|| {
            groups.push(Group::default());
            groups.len() - 1
        });
        let Some(Group { shown, more }) = groups.get_mut(place) else { continue };
        match (shown, common, overlap.witness) {
            (shown @ None, Common::Guard(_), Some(witness)) => {
                *shown = Some((overlap.first, vec![overlap.second], witness));
            }
            (Some((_, seconds, _)), Common::Guard(_), Some(_)) => seconds.push(overlap.second),
            (shown @ None, _, Some(witness)) => *shown = Some((overlap.second, vec![overlap.first], witness)),
            (Some((_, firsts, _)), Common::Second(_), Some(_)) => firsts.push(overlap.first),
            (_, Common::Second(_), None) => more.push(overlap.first),
            (_, Common::First(..) | Common::Guard(_), _) => more.push(overlap.second),
        }
    }
    groups
}
