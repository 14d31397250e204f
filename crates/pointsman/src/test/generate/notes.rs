//! What no test is made for, as comments with the reasons.

use pointsman_analysis::{Missing, Reach, Sample, Samples, Unshown, Why};
use pointsman_rules::{Field, OwnedValue, Program, RuleIndex, spelling};

use super::writing;
use crate::check::{doubt, plural};

/// So many comments are written.
const NOTES_MAX: usize = 1000;
/// So many rules are named in one.
const NAMED_MAX: usize = 1000;
/// So many values of one field stand in one comment.
const VALUES_MAX: usize = 100;

/// What a test is to show.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    rule: RuleIndex,
    /// That the condition of its rule is true.
    is_true: bool,
    /// In words.
    pub(super) name: String,
    /// Where it is about a border: the words before the value, and the value.
    beside: Option<(String, String)>,
}

/// What no test shows, and why.
#[derive(Debug)]
pub(super) struct Untold {
    shown: Shown,
    why: String,
}

impl Shown {
    pub(super) fn of_sample(program: &Program, sample: &Sample) -> Shown {
        let values = |field: &Field| {
            let mut values = sample.values.iter().filter(|(said, _)| said == field);
            values.next().map(|(_, values)| values.as_slice()).unwrap_or_default()
        };
        Shown::new(program, sample.rule, &sample.why, values)
    }

    fn new<'v>(
        program: &Program,
        rule: RuleIndex,
        why: &Why,
        values: impl Fn(&Field) -> &'v [OwnedValue],
    ) -> Shown {
        let label = label(program, rule);
        let next = || self::label(program, RuleIndex(rule.0.saturating_add(1)));
        let mut beside = None;
        let name = match why {
            Why::True => label,
            Why::False => format!("not {label}"),
            Why::Unknown => format!("{label} ends unknown"),
            Why::TrueForNext => format!("{label} before {}", next()),
            Why::Holds(test) => format!("{label} with {}", spelling::test(test)),
            Why::Fails(test) => format!("{label} without {}", spelling::test(test)),
            Why::Beside(test) => {
                let value = match values(&test.field) {
                    [value] => writing::shown(value),
                    values => plural(values.len(), "value"),
                };
                let (before, value) = beside.insert((format!("{label} where {} is", test.field), value));
                format!("{before} {value}")
            }
        };
        Shown { rule, is_true: matches!(why, Why::True), name, beside }
    }

    pub(super) fn untold(self, why: String) -> Untold {
        Untold { shown: self, why }
    }
}

impl Untold {
    pub(super) fn of_missing(program: &Program, missing: &Missing) -> Untold {
        let Missing { rule, why, values, unshown } = missing;
        let shown = Shown::new(program, *rule, why, |_| values);
        let sentence = match (unshown, why) {
            (Unshown::Never(others), _) => {
                let none = match why {
                    Why::Holds(_) | Why::Fails(_) => "that alone never decides it",
                    _ => "there is no such request",
                };
                match others.as_slice() {
                    [] => none.to_owned(),
                    others => format!("{none}, because of {}", labels(program, others)),
                }
            }
            (Unshown::Unknown(doubt), _) => {
                format!("it is unknown whether there is such a request: {}", doubt::sentence(doubt))
            }
            (Unshown::OtherHere, _) => "no request that comes to this listener has it".to_owned(),
            (Unshown::Stopped(other), _) => format!("{} takes it before", label(program, *other)),
            (Unshown::NotThere, _) => "no request with it was found that comes to the rule".to_owned(),
            (Unshown::NoRequest, _) => "no request was found that has it".to_owned(),
        };
        shown.untold(sentence)
    }
}

/// What no test could be made for, as comments, rule by rule.
pub(super) fn notes(program: &Program, samples: &Samples, untold: Vec<Untold>) -> String {
    let mut of_rules: Vec<(RuleIndex, String)> = Vec::new();
    let mut untold = untold;
    untold.sort_by_key(|untold| untold.shown.rule);
    let mut untold = untold.into_iter().peekable();
    for (index, reach) in (0..).map(RuleIndex).zip(&samples.reach) {
        let label = label(program, index);
        let has_label = !label.starts_with('#');
        if let Some(why) = of_reach(program, reach, has_label) {
            of_rules.push((index, format!("{label}: {why}")));
        }
        let mut own = Vec::new();
        while let Some(next) = untold.next_if(|next| next.shown.rule <= index) {
            // Of a rule without a label it is said once.
            if has_label || !next.shown.is_true {
                own.push(next);
            }
        }
        of_rules.extend(lines(own).into_iter().map(|line| (index, line)));
        if samples.partly.binary_search(&index).is_ok() {
            of_rules.push((index, format!("{label}: it has more borders than are looked at")));
        }
    }
    of_rules.extend(lines(untold.collect()).into_iter().map(|line| (RuleIndex(u32::MAX), line)));
    let more = of_rules.len().saturating_sub(NOTES_MAX);
    let written = of_rules.iter().take(NOTES_MAX);
    let mut notes: String =
        written.map(|(_, line)| format!("# {}\n", line.replace(char::is_control, "?"))).collect();
    if more > 0 {
        notes.push_str(&format!("# and {}\n", plural(more, "more comment")));
    }
    notes
}

/// Why no test shows that a rule is true.
fn of_reach(program: &Program, reach: &Reach, has_label: bool) -> Option<String> {
    Some(match reach {
        Reach::Reached if has_label => return None,
        Reach::Reached => "it has no label, and no test can expect it".to_owned(),
        Reach::Unknown(doubt) => {
            format!("it is unknown whether it is ever true: {}", doubt::sentence(doubt))
        }
        Reach::Never(others) if others.is_empty() => "its condition is never true".to_owned(),
        Reach::Never(others) => format!("no request makes it true, because of {}", labels(program, others)),
    })
}

/// One line for each, and one for all values of a field with the same reason.
fn lines(all: Vec<Untold>) -> Vec<String> {
    struct Line {
        what: String,
        values: Vec<String>,
        why: String,
    }
    let mut lines: Vec<Line> = Vec::new();
    for Untold { shown, why } in all {
        let Some((what, value)) = shown.beside else {
            lines.push(Line { what: shown.name, values: Vec::new(), why });
            continue;
        };
        let same = lines
            .iter_mut()
            .find(|line| line.what == what && line.why == why && line.values.len() < VALUES_MAX);
        match same {
            Some(line) if line.values.contains(&value) => {}
            Some(line) => line.values.push(value),
            None => lines.push(Line { what, values: vec![value], why }),
        }
    }
    let line = |Line { what, values, why }: Line| match values.as_slice() {
        [] => format!("{what}: {why}"),
        values => format!("{what} {}: {why}", values.join(", ")),
    };
    lines.into_iter().map(line).collect()
}

fn labels(program: &Program, rules: &[RuleIndex]) -> String {
    let labels: Vec<_> = rules.iter().take(NAMED_MAX).map(|rule| label(program, *rule)).collect();
    labels.join(", ")
}

fn label(program: &Program, rule: RuleIndex) -> String {
    match program.rule(rule) {
        Some(rule) => rule.label.to_string(),
        None => "no rule".to_owned(),
    }
}
