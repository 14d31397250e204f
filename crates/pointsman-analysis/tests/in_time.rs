//! An analysis that is given a time: what it has not come to when that is over is unknown, and what it says is so.

mod sets;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pointsman_analysis::{Code, Doubt, Effort, Finding, Setting, findings};
use pointsman_rules::{Program, Targets, compile};

/// A set with more rules takes too long to be looked at so often.
const RULES_MAX: usize = 400;
/// So many moments of each analysis are its last.
const MOMENTS: u64 = 12;

/// A clock that stands still but for its being looked at, and strikes when that was done so often.
#[derive(Clone)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn new() -> Clock {
        Clock(Arc::new(AtomicU64::new(0)))
    }

    fn effort(&self, strikes_at: u64) -> Effort {
        let Clock(looks) = self.clone();
        Effort::new(u64::MAX).until(move || looks.fetch_add(1, Ordering::Relaxed) >= strikes_at)
    }

    fn looks(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn said(found: &[Finding]) -> BTreeSet<(Code, u32)> {
    found.iter().map(|finding| (finding.code, finding.rule.0)).collect()
}

/// All that a finding names.
fn rules(finding: &Finding) -> BTreeSet<u32> {
    finding.others.iter().chain([&finding.rule]).map(|rule| rule.0).collect()
}

/// Nothing is said that is not so with all the time there is, and where something is left out it is said that the time was
/// over. How often it was looked at the clock.
fn check(name: &str, program: &Arc<Program>) -> u64 {
    let setting = Setting::default();
    let clock = Clock::new();
    let all = findings(program, &setting, clock.effort(u64::MAX));
    let whole = said(&all);
    assert_eq!(whole, said(&findings(program, &setting, Effort::new(u64::MAX))), "{name}");
    let looks = clock.looks();
    for strikes_at in (0..looks).step_by(usize::try_from(looks / MOMENTS).unwrap_or(0).max(1)) {
        let found = findings(program, &setting, Clock::new().effort(strikes_at));
        let is_late = |finding: &Finding| finding.doubts.iter().any(|doubt| doubt.doubt == Doubt::Time);
        // The last that is looked at may make no difference.
        let is_whole = said(&found) == whole;
        assert!(
            is_whole || found.iter().any(is_late),
            "{name} at {strikes_at} of {looks}: no word of the time"
        );
        let known = found.iter().filter(|finding| finding.code != Code::Unknown);
        // Conflicts of which fewer are known are told by other rules of theirs.
        let (conflicts, known): (Vec<_>, Vec<_>) =
            known.cloned().partition(|finding| finding.code == Code::Conflict);
        let known = said(&known);
        assert!(known.is_subset(&whole), "{name} at {strikes_at} of {looks}: {known:?} {whole:?}");
        let is_known = |conflict: &Finding| {
            all.iter()
                .any(|other| other.code == Code::Conflict && !rules(other).is_disjoint(&rules(conflict)))
        };
        let news = conflicts.iter().find(|conflict| !is_known(conflict));
        assert!(news.is_none(), "{name} at {strikes_at} of {looks}: {news:?}");
    }
    looks
}

#[test]
fn what_is_not_settled_in_time_is_unknown() {
    let mut looks = Vec::new();
    for set in sets::all() {
        let program = compile(&set.source, &Targets::Any).expect("a rule set").program;
        if program.rules.len() <= RULES_MAX {
            looks.push(check(set.name, &Arc::new(program)));
        }
    }
    assert!(looks.len() > 3 && looks.iter().any(|looks| *looks > MOMENTS), "{looks:?}");
}
