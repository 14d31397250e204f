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
            // Where it is because of several, each of them may have changed.
            _ => vec![(code, own, finding.others.contains(&RuleIndex(rule)).then_some(rule))],
        }
    });
    told.filter(|(code, own, other)| (*own == rule || *other == Some(rule)) && *code != Code::Unknown)
        .collect()
}

proptest! {
    #[test]
    fn findings_about_a_rule_are_those_of_all(source in sources(), of in any::<prop::sample::Index>()) {
        let program = program(&source);
        let of = of.index(program.rules.len() + program.fallback.iter().len()) as u32;
        let all = findings(&program, &Setting::default(), Effort::new(10_000_000));
        let found = findings_about(&program, &[RuleIndex(of)], &Setting::default(), Effort::new(10_000_000));
        prop_assert_eq!(of_rule(&found, of), of_rule(&all, of), "{} {:#?} {:#?}", source, found, all);
        let gap = |found: &[Finding]| found.iter().any(|finding| finding.code == Code::Gap);
        prop_assert_eq!(gap(&found), gap(&all));
    }
}

/// Says what is said of other rules because of one: the same as among all.
#[track_caller]
fn check(source: &str, of: u32, expected: &[(Code, u32)]) {
    let program = program(source);
    let [all, found] = [
        findings(&program, &Setting::default(), Effort::new(10_000_000)),
        findings_about(&program, &[RuleIndex(of)], &Setting::default(), Effort::new(10_000_000)),
    ];
    let named = |found: &[Finding]| -> Vec<(Code, u32)> {
        let names = found.iter().filter(|finding| finding.others.contains(&RuleIndex(of)));
        names.map(|finding| (finding.code, finding.rule.0)).collect()
    };
    assert_eq!(named(&all), expected);
    assert_eq!(named(&found), named(&all));
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
    check(source, 0, &[(Code::Unreachable, 3)]);
}

/// A rule leaves nothing to an else block by taking what the condition does not ask for.
#[test]
fn else_blocks_that_get_nothing_are_looked_at() {
    let source = r#"
        R0: if (path == "*") { reject(403); }
        R1: if (path startsWith "/") { routeTo(a); } else { routeTo(b); }
    "#;
    check(source, 0, &[(Code::DeadElse, 1)]);
}

/// Rules that take all requests together leave none to those behind, whatever these ask for, nor to what one of them jumps to.
#[test]
fn rules_that_nothing_comes_to_are_looked_at() {
    let source = r#"
        R0: if (path startsWith "/") { reject(403); }
        R1: if (path == "*") { reject(404); }
        R2: if (path startsWith "/x") { routeTo(b); }
        else: routeTo(c);
    "#;
    check(source, 1, &[(Code::Unreachable, 2), (Code::Unreachable, 3)]);
    let source = r#"
        R0: if (path startsWith "/a") { reject(403); }
        R1: if (path startsWith "/a") { goto R3; }
        R2: if (path startsWith "/") { routeTo(b); } else { routeTo(c); }
        R3: if (path startsWith "/b") { routeTo(a); }
    "#;
    check(source, 0, &[(Code::Unreachable, 1), (Code::DeadGotoTarget, 3)]);
}

/// A rule that ends unknown answers requests that it does not ask for.
#[test]
fn what_a_rule_answers_unknown_is_looked_at() {
    let source = r#"
        R0: if (once(json.x[*]) > 5) { reject(403); }
        R1: if (first(json.x[*]) < 3 && count(json.x[*]) > 1) { routeTo(b); }
        else: routeTo(c);
    "#;
    check(source, 0, &[(Code::Unreachable, 1)]);
    check(&format!("on_unknown skip; {source}"), 0, &[]);
}

/// The last block has a place of its own behind the rules.
#[test]
fn the_last_block_is_a_rule_too() {
    let program = program(
        "R0: if (path startsWith \"/\") { reject(403); }\nR1: if (path == \"*\") { discard(); }\nelse: routeTo(c);",
    );
    let found = findings_about(&program, &[RuleIndex(2)], &Setting::default(), Effort::new(1_000_000));
    let found: Vec<_> = found.iter().map(|finding| (finding.code, finding.rule.0)).collect();
    assert_eq!(found, [(Code::Unreachable, 2)]);
}

/// It is said of others because of it, too.
#[test]
fn the_last_block_takes_the_place_of_rules() {
    let source =
        "R0: if (path == \"/a\") { routeTo(x); }\nR1: if (path == \"/b\") { routeTo(y); }\nelse: routeTo(x);";
    check(source, 2, &[(Code::Redundant, 0)]);
}

/// What there was no time for is owned up to, whatever rule it is about.
#[test]
fn what_is_not_looked_at_is_unknown() {
    let rule = |at| {
        format!(
            "R{at}: if (path startsWith \"/{at}\" || path startsWith \"/\") {{ tag(\"t\"); }} else {{ tag(\"u\"); }}\n"
        )
    };
    let source =
        format!("R0: if (path == \"*\") {{ reject(403); }}\n{}", (1..20).map(rule).collect::<String>());
    let program = program(&source);
    let found = |steps| findings_about(&program, &[RuleIndex(0)], &Setting::default(), Effort::new(steps));
    let all = of_rule(&found(u64::MAX), 0);
    assert_eq!(all.iter().filter(|(code, ..)| *code == Code::DeadElse).count(), 19);
    for steps in (0..24).map(|power| 1 << power) {
        let found = found(steps);
        let is_owned_up = found.iter().any(|finding| finding.code == Code::Unknown);
        assert!(is_owned_up || of_rule(&found, 0) == all, "{steps}");
    }
}
