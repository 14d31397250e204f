//! Which rules and which of their branches tests have taken.

use pointsman_rules::{Condition, Explanation, Program, Rule, RuleIndex, Truth};
use serde_json::{Value, json};

/// How often tests have asked the rules of a set, and what came of it.
#[derive(Debug)]
pub(super) struct Coverage {
    rules: Vec<Taken>,
}

/// How often the condition of a rule was true, false and unknown.
#[derive(Debug)]
struct Taken {
    label: String,
    /// A block without a condition has no other branch.
    is_unconditional: bool,
    is_true: u32,
    is_false: u32,
    is_unknown: u32,
}

impl Coverage {
    /// Of a set that no test has asked yet.
    pub(super) fn new(program: &Program) -> Coverage {
        let rules = program.rules.iter().chain(&program.fallback);
        Coverage { rules: rules.map(Taken::new).collect() }
    }

    /// Adds the way of one test.
    pub(super) fn add(&mut self, explanation: &Explanation<'_>) {
        for visited in &explanation.visited {
            let RuleIndex(index) = visited.index;
            let Some(taken) = self.rules.get_mut(index as usize) else { continue };
            match visited.result {
                Truth::True => taken.is_true += 1,
                Truth::False => taken.is_false += 1,
                Truth::Unknown(_) => taken.is_unknown += 1,
            }
        }
    }

    /// Rules whose condition was true for some test, and all rules.
    pub(super) fn rules(&self) -> (usize, usize) {
        (self.rules.iter().filter(|taken| taken.is_true > 0).count(), self.rules.len())
    }

    /// Branches that some test took, and all of them: two for each rule, one for a block without a condition.
    pub(super) fn branches(&self) -> (usize, usize) {
        let branches = self.rules.iter().flat_map(Taken::branches);
        branches.fold((0, 0), |(taken, all), times| (taken + usize::from(times > 0), all + 1))
    }

    /// The rules of which something was never taken, and what, in their order.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.rules.iter().filter_map(|taken| Some((&*taken.label, taken.gap()?)))
    }

    pub(super) fn to_json(&self) -> Value {
        let (taken, all) = self.branches();
        let rules = self.rules.iter().map(|taken| {
            json!({
                "rule": taken.label, "true": taken.is_true, "false": taken.is_false, "unknown": taken.is_unknown,
            })
        });
        json!({ "branches": all, "taken": taken, "percent": percent(taken, all), "rules": rules.collect::<Vec<_>>() })
    }
}

impl Taken {
    fn new(rule: &Rule) -> Taken {
        Taken {
            label: rule.label.to_string(),
            is_unconditional: matches!(rule.condition, Condition::Always),
            is_true: 0,
            is_false: 0,
            is_unknown: 0,
        }
    }

    fn branches(&self) -> impl Iterator<Item = u32> {
        let otherwise = (!self.is_unconditional).then_some(self.is_false);
        [self.is_true].into_iter().chain(otherwise)
    }

    fn gap(&self) -> Option<&'static str> {
        let (is_true, is_false) = (self.is_true > 0, self.is_false > 0);
        Some(match (is_true, is_false, self.is_unknown > 0) {
            (true, _, _) if self.is_unconditional => return None,
            (true, true, _) => return None,
            (false, false, false) => "never asked",
            (false, false, true) => "never true and never false",
            (false, true, _) => "never true",
            (true, false, _) => "never false",
        })
    }
}

/// A share in percent, rounded down; 100 of nothing.
pub(super) fn percent(part: usize, whole: usize) -> usize {
    (part * 100).checked_div(whole).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use pointsman_rules::{Targets, compile};

    use super::*;

    #[test]
    fn branches_are_counted_and_gaps_are_named() {
        let rules = "R1: if (path == \"/\") { tag(x); }
                     R2: if (host == \"a\") { tag(x); }
                     R3: if (host == \"b\") { tag(x); }
                     R4: { tag(x); }
                     R5: if (host == \"c\") { tag(x); }
                     else: routeTo(a);";
        let program = compile(rules, &Targets::Any).expect("a rule set").program;
        let mut coverage = Coverage::new(&program);
        assert_eq!((coverage.rules(), coverage.branches()), ((0, 6), (0, 10)));
        let taken = [(1, 1, 0), (1, 0, 0), (0, 2, 0), (1, 0, 0), (0, 0, 1), (0, 0, 0)];
        for (rule, (is_true, is_false, is_unknown)) in coverage.rules.iter_mut().zip(taken) {
            (rule.is_true, rule.is_false, rule.is_unknown) = (is_true, is_false, is_unknown);
        }
        assert_eq!((coverage.rules(), coverage.branches()), ((3, 6), (5, 10)));
        let gaps: Vec<_> = coverage.gaps().collect();
        let expected = [
            ("R2", "never false"),
            ("R3", "never true"),
            ("R5", "never true and never false"),
            ("else", "never asked"),
        ];
        assert_eq!(gaps, expected);
        assert_eq!(coverage.to_json()["percent"], 50);
    }

    #[test]
    fn the_way_of_a_request_is_counted() {
        let rules = "R1: if (path == \"/\") { goto R3; } R2: if (path > 5) { tag(x); } R3: { tag(y); }";
        let program = compile(rules, &Targets::Any).expect("a rule set").program;
        let mut coverage = Coverage::new(&program);
        coverage.add(&program.explain(&Path(b"/")));
        coverage.add(&program.explain(&Path(b"/x")));
        let counts: Vec<_> =
            coverage.rules.iter().map(|rule| (rule.is_true, rule.is_false, rule.is_unknown)).collect();
        assert_eq!(counts, [(1, 1, 0), (0, 0, 1), (1, 0, 0)]);
    }

    struct Path(&'static [u8]);

    impl pointsman_rules::Subject for Path {
        fn each(
            &self,
            _: &pointsman_rules::Field,
            see: &mut dyn FnMut(pointsman_rules::Value<'_>) -> std::ops::ControlFlow<()>,
        ) {
            let _only_one = see(pointsman_rules::Value::Text(self.0));
        }
    }

    #[test]
    fn shares_are_rounded_down() {
        assert_eq!([percent(0, 0), percent(2, 3), percent(3, 3)], [100, 66, 100]);
    }
}
