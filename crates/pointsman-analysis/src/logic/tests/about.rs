//! What is said of one rule is what is said of it among all.

use super::*;
use crate::logic::findings_about;

/// What rests on one rule, in a form that does not depend on who is told together with whom.
fn of_rule(found: &[Finding], rule: u32) -> BTreeSet<(Code, u32, Option<u32>)> {
    let told = found.iter().flat_map(|finding| {
        let (code, own) = (finding.code, finding.rule.0);
        let pair = |other: &RuleIndex| (code, own.max(other.0), Some(own.min(other.0)));
        match code {
            Code::Conflict | Code::Exception => finding.others.iter().map(pair).collect(),
            _ => vec![(code, own, None)],
        }
    });
    told.filter(|(code, own, other)| (*own == rule || *other == Some(rule)) && *code != Code::Unknown)
        .collect()
}

proptest! {
    #[test]
    fn findings_about_a_rule_are_those_of_all(source in sources(), of in any::<prop::sample::Index>()) {
        let program = program(&source);
        let of = of.index(program.rules.len()) as u32;
        let all = findings(&program, &Setting::default(), Effort::new(10_000_000));
        let found = findings_about(&program, &[RuleIndex(of)], &Setting::default(), Effort::new(10_000_000));
        prop_assert_eq!(of_rule(&found, of), of_rule(&all, of), "{} {:#?} {:#?}", source, found, all);
        let gap = |found: &[Finding]| found.iter().any(|finding| finding.code == Code::Gap);
        prop_assert_eq!(gap(&found), gap(&all));
    }
}

/// It is said of what a rule jumps to that nothing comes there by it, though the two ask for other requests.
#[test]
fn what_a_rule_jumps_to_is_looked_at() {
    let source = r#"
        R0: if (path startsWith "/a") { goto R2; }
        R1: if (path startsWith "/") { reject(403); }
        R2: if (path == "*") { routeTo(a); }
        R3: if (path startsWith "/b") { routeTo(b); }
    "#;
    let program = program(source);
    let [all, found] = [
        findings(&program, &Setting::default(), Effort::new(10_000_000)),
        findings_about(&program, &[RuleIndex(0)], &Setting::default(), Effort::new(10_000_000)),
    ];
    let named = |found: &[Finding]| -> Vec<(Code, u32)> {
        let names = found.iter().filter(|finding| finding.others.contains(&RuleIndex(0)));
        names.map(|finding| (finding.code, finding.rule.0)).collect()
    };
    assert_eq!(named(&all), [(Code::Unreachable, 3)]);
    assert_eq!(named(&found), named(&all));
}
