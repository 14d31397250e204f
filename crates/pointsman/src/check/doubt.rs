//! Why something is unknown, in words and as JSON.

use pointsman_analysis::{Doubt, Doubted, DoubtedTests, InDoubt, rule_names};
use pointsman_rules::{Program, RuleIndex, spelling};
use serde_json::{Value, json};

/// So many doubts are told; the rest is counted.
const TOLD_MAX: usize = 5;

/// Why, in a sentence's worth.
pub(crate) fn sentence(doubt: &Doubt) -> String {
    match doubt {
        Doubt::Steps => "the work was too much: its steps are used up".to_owned(),
        Doubt::Time => "the time for it was over".to_owned(),
        Doubt::Many => "there is more of it than is looked at".to_owned(),
        Doubt::Values(tests) => {
            format!("no value was found{}, nor that there is none", with(tests, " that fits "))
        }
        Doubt::Request(tests) => {
            format!("no request was found{}, nor that there is none", with(tests, " whose fields fit "))
        }
        Doubt::Coded(tests) => {
            let tests = with(tests, " for ");
            format!(
                "bodies in content codings are made up to 64 KiB, and a longer one is needed{tests}; ask for the coding or for the \
                 length alone, or show such a request to `explain`"
            )
        }
        Doubt::Unconfirmed(tests) => {
            format!("a request was made{}, and the rules do not bear it out", with(tests, " that fits "))
        }
        Doubt::Needs(_) => {
            let fields: Vec<_> = doubt.fields().iter().map(|field| format!("`{field}`")).collect();
            let fields =
                if fields.is_empty() { "what an action needs".to_owned() } else { fields.join(", ") };
            format!("an action of the rule needs {fields}, and it was not settled whether that is known")
        }
        Doubt::NoRequests => "rules of listeners that read no requests are not looked at".to_owned(),
        Doubt::Remembered => {
            "`sticky_scope` is `listener`: a client goes on to the target that a sticky rule has sent it to"
                .to_owned()
        }
    }
}

fn with(DoubtedTests { first, more }: &DoubtedTests, lead: &str) -> String {
    let tests = first.iter().map(|Doubted(test)| format!("`{}`", spelling::test(test)));
    let more = (*more > 0).then(|| format!("{more} more"));
    let tests: Vec<_> = tests.chain(more).collect();
    match tests.split_last() {
        None => String::new(),
        Some((last, [])) => format!("{lead}what is asked of {last}"),
        Some((last, others)) => format!("{lead}what is asked of {} and {last}", others.join(", ")),
    }
}

/// A line for each, which names its rules where there are several doubts.
pub(crate) fn lines(doubts: &[InDoubt], program: &Program) -> Vec<String> {
    let line = |InDoubt { rules, doubt }: &InDoubt| match doubts {
        [_] => sentence(doubt),
        _ => format!("{}: {}", rule_names(program, rules), sentence(doubt)),
    };
    let mut lines: Vec<_> = doubts.iter().take(TOLD_MAX).map(line).collect();
    match doubts.len().saturating_sub(TOLD_MAX) {
        0 => {}
        1 => lines.push("and 1 more reason".to_owned()),
        more => lines.push(format!("and {more} more reasons")),
    }
    lines
}

/// Each with its rules.
pub(crate) fn all_to_json(doubts: &[InDoubt], program: &Program) -> Value {
    let one = |InDoubt { rules, doubt }: &InDoubt| {
        let mut object = to_json(doubt);
        let rules: Vec<_> = rules.iter().map(|rule| label(program, *rule)).collect();
        object["rules"] = json!(rules);
        object
    };
    doubts.iter().map(one).collect()
}

/// `{"kind": "request", "fields": […], "tests": […], "text": "…"}`
pub(crate) fn to_json(doubt: &Doubt) -> Value {
    let kind = match doubt {
        Doubt::Steps => "steps",
        Doubt::Time => "time",
        Doubt::Many => "many",
        Doubt::Values(_) => "values",
        Doubt::Request(_) => "request",
        Doubt::Coded(_) => "coded",
        Doubt::Unconfirmed(_) => "unconfirmed",
        Doubt::Needs(_) => "needs",
        Doubt::NoRequests => "no requests",
        Doubt::Remembered => "remembered",
    };
    let fields: Vec<_> = doubt.fields().iter().map(ToString::to_string).collect();
    let tests: Vec<_> = doubt.tests().iter().map(|Doubted(test)| spelling::test(test)).collect();
    let mut object = json!({ "kind": kind, "fields": fields, "tests": tests, "text": sentence(doubt) });
    if let more @ 1.. = doubt.more_tests() {
        object["more_tests"] = json!(more);
    }
    object
}

/// The label of a rule; `default` where none decides.
fn label(program: &Program, rule: RuleIndex) -> String {
    program.rule(rule).map_or_else(|| "default".to_owned(), |rule| rule.label.to_string())
}

#[cfg(test)]
mod tests {
    use pointsman_rules::{Targets, compile};

    use super::*;

    #[test]
    fn every_doubt_has_words() {
        let source =
            "A: if (host == \"a\" && path == \"/\") { reject(); }\nB: if (json.a == 1) { reject(); }";
        let program = compile(source, &Targets::Any).expect("a rule set").program;
        let (mut tests, mut fields) = (Vec::new(), Vec::new());
        program.rules[0].condition.each_test(&mut |test| tests.push(Doubted(test.clone())));
        program.rules[1].condition.each_test(&mut |test| fields.push(test.field.clone()));
        let of = |tests: &[Doubted], more| DoubtedTests { first: tests.to_vec(), more };
        let rows = [
            (Doubt::Steps, "steps", "the work was too much: its steps are used up"),
            (Doubt::Many, "many", "there is more of it than is looked at"),
            (Doubt::Time, "time", "the time for it was over"),
            (
                Doubt::Values(of(&tests[..1], 0)),
                "values",
                "no value was found that fits what is asked of `host == \"a\"`, nor that there is none",
            ),
            (
                Doubt::Request(of(&tests, 0)),
                "request",
                "no request was found whose fields fit what is asked of `host == \"a\"` and `path == \"/\"`, nor that there is none",
            ),
            (
                Doubt::Request(of(&tests, 93)),
                "request",
                "no request was found whose fields fit what is asked of `host == \"a\"`, `path == \"/\"` and 93 more, nor that there is none",
            ),
            (
                Doubt::Coded(of(&tests[..1], 0)),
                "coded",
                "bodies in content codings are made up to 64 KiB, and a longer one is needed for what is asked of `host == \"a\"`; ask for the coding or for the length alone, or show such a request to `explain`",
            ),
            (
                Doubt::Unconfirmed(of(&[], 0)),
                "unconfirmed",
                "a request was made, and the rules do not bear it out",
            ),
            (
                Doubt::Needs(fields),
                "needs",
                "an action of the rule needs `json.a`, and it was not settled whether that is known",
            ),
            (Doubt::NoRequests, "no requests", "rules of listeners that read no requests are not looked at"),
            (
                Doubt::Remembered,
                "remembered",
                "`sticky_scope` is `listener`: a client goes on to the target that a sticky rule has sent it to",
            ),
        ];
        for (doubt, kind, text) in rows {
            let object = to_json(&doubt);
            assert_eq!((&object["kind"], &object["text"]), (&json!(kind), &json!(text)));
            assert_eq!(object["fields"].as_array().map(Vec::len), Some(doubt.fields().len()));
            let more = text.contains("93").then_some(93);
            assert_eq!(object["more_tests"].as_u64(), more);
        }
    }

    #[test]
    fn several_doubts_name_their_rules() {
        let program = compile("A: { reject(); }", &Targets::Any).expect("a rule set").program;
        let one = |doubt| InDoubt { rules: vec![RuleIndex(0)], doubt };
        assert_eq!(lines(&[one(Doubt::Many)], &program), ["there is more of it than is looked at"]);
        let many = lines(&vec![one(Doubt::Many); TOLD_MAX + 2], &program);
        assert!(many[0].starts_with("`A`: ") && many.last().is_some_and(|last| last == "and 2 more reasons"));
    }
}
