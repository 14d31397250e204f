//! What rules mean together: what the analyst proves of them.

use std::collections::HashSet;
use std::sync::Arc;

use pointsman_analysis::{Code, Doubt, Effort, Finding, Setting, Witness, findings, findings_about};
use pointsman_rules::{Diagnostic, Program, RuleIndex};
use serde_json::{Value, json};

use super::doubt;
use super::printed::Printed;

/// Steps for one rule set where one setting is asked about; it takes seconds to use them up.
pub(crate) const STEPS: u64 = 400_000_000;

/// Rules are asked about one by one at a further listener where they are not more than one of so many.
const ASKED_AGAIN_SHARE: usize = 8;

/// A finding of the analyst.
#[derive(Debug)]
pub(super) struct Meaning {
    /// As it is drawn: its witness is part of the help.
    pub(super) diagnostic: Diagnostic,
    code: &'static str,
    rule: Option<String>,
    others: Vec<String>,
    help: Option<String>,
    witness: Option<Shown>,
    /// What its client asked for before.
    before: Option<Shown>,
    /// Of what is unknown, why it is.
    reasons: Option<Value>,
    /// Whether it is unknown because the time was over.
    is_late: bool,
    /// The name of the assertion that it is about.
    pub(super) assertion: Option<String>,
}

/// A request, and what `explain` is to be told besides.
#[derive(Debug)]
pub(crate) struct Shown {
    printed: Printed,
    /// Where it is sent to, if the configuration has several listeners.
    listener: Option<Box<str>>,
    /// What becomes of it behind its decision, where its body is wrong.
    spoilt: Option<String>,
}

/// Of what there is something to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Of all rules.
    All,
    /// Of these alone, and of what no rule decides.
    Rules(Vec<RuleIndex>),
    /// Of nothing: what was named is not there.
    Nothing,
}

impl About {
    /// Of the rules with these labels, or of all where none is named.
    pub(super) fn named(program: &Program, labels: &[String]) -> About {
        let rules: Vec<_> = labels.iter().filter_map(|label| labelled(program, label)).collect();
        match (labels.is_empty(), rules.is_empty()) {
            (true, _) => About::All,
            (false, true) => About::Nothing,
            (false, false) => About::Rules(rules),
        }
    }
}

/// The rule with a label; `#3` is the third, if it has none, and `else` the last block.
pub(super) fn labelled(program: &Program, label: &str) -> Option<RuleIndex> {
    let mut rules = program.rules.iter().chain(&program.fallback);
    let position = rules.position(|rule| &*rule.label == label)?;
    u32::try_from(position).ok().map(RuleIndex)
}

impl Meaning {
    /// What holds of a program wherever it is used.
    pub(super) fn of(
        program: &Arc<Program>,
        settings: &[Setting],
        about: &About,
        effort: &Effort,
    ) -> Vec<Meaning> {
        let found = |setting: &Setting| match about {
            About::All => findings(program, setting, effort.clone()),
            About::Rules(rules) => findings_about(program, rules, setting, effort.clone()),
            About::Nothing => Vec::new(),
        };
        let mut known = HashSet::new();
        // Where the rest goes makes no difference to what rules mean, nor what a listener is called.
        let mut different =
            settings.iter().filter(|setting| known.insert(format!("{:?}", setting.of_any_name())));
        let Some(first) = different.next() else { return Vec::new() };
        let mut common = found(first);
        let mut given_up = Vec::new();
        for setting in different {
            let found = match (about, asked_again(&common, program)) {
                (About::All, Some(rules)) => findings_about(program, &rules, setting, effort.clone()),
                _ => found(setting),
            };
            let is_there = |one: &Finding| found.iter().any(|other| are_alike(one, other));
            common.retain(|one| is_given_up(one) || is_there(one));
            let is_new =
                |one: &Finding| is_given_up(one) && !(is_of_pairs(one) && common.iter().any(is_of_pairs));
            given_up.extend(found.into_iter().filter(is_new).map(|finding| (finding, setting)));
        }
        given_up.retain(|(one, _)| !common.iter().any(|known| known.message == one.message));
        let common = common.into_iter().map(|finding| (finding, first)).chain(given_up);
        common.map(|(finding, setting)| Meaning::new(finding, program, setting)).collect()
    }

    pub(super) fn new(finding: Finding, program: &Program, setting: &Setting) -> Meaning {
        let name = |index: &RuleIndex| program.rule(*index).map(|rule| rule.label.to_string());
        let witness = finding.witness.map(|witness| Shown::new(&witness, program, setting));
        let reasons = (!finding.doubts.is_empty()).then(|| doubt::all_to_json(&finding.doubts, program));
        let why = doubt::lines(&finding.doubts, program);
        let before = finding.before.map(|before| Shown::new(&before, program, setting));
        let lines = finding.help.iter().cloned().chain(why).chain(witness.as_ref().map(Shown::text));
        let lines: Vec<_> = lines.chain(before.as_ref().map(Shown::text_before)).collect();
        let diagnostic = Diagnostic {
            severity: finding.severity,
            span: finding.span,
            message: finding.message,
            help: (!lines.is_empty()).then(|| lines.join("\n")),
        };
        Meaning {
            diagnostic,
            code: finding.code.word(),
            rule: name(&finding.rule),
            others: finding.others.iter().filter_map(name).collect(),
            help: finding.help,
            witness,
            before,
            reasons,
            is_late: finding.doubts.iter().any(|in_doubt| matches!(in_doubt.doubt, Doubt::Time)),
            assertion: None,
        }
    }

    /// Whether there was time enough to settle it.
    pub(super) fn is_in_time(&self) -> bool {
        !self.is_late
    }

    /// Adds to a finding what only these have.
    pub(super) fn complete(&self, object: &mut Value) {
        object["code"] = json!(self.code);
        object["others"] = json!(self.others);
        if let Some(rule) = &self.rule {
            object["rule"] = json!(rule);
        }
        if let Some(fields) = object.as_object_mut() {
            fields.remove("help");
        }
        if let Some(help) = &self.help {
            object["help"] = json!(help);
        }
        if let Some(reasons) = &self.reasons {
            object["reasons"] = reasons.clone();
        }
        if let Some(assertion) = &self.assertion {
            object["assertion"] = json!(assertion);
        }
        if let Some(witness) = &self.witness {
            object["witness"] = witness.to_json();
        }
        if let Some(before) = &self.before {
            object["before"] = before.to_json();
        }
    }
}

/// The rules of which it is asked again whether the same is said of them at another listener. Nothing where they are so many
/// that all rules are looked at sooner.
fn asked_again(common: &[Finding], program: &Program) -> Option<Vec<RuleIndex>> {
    let known = common.iter().filter(|finding| !is_given_up(finding) && finding.code != Code::Gap);
    let mut rules = Vec::new();
    for finding in known {
        rules.push(finding.rule);
        if is_of_two(finding) {
            rules.extend(&finding.others);
        }
    }
    rules.sort_unstable();
    rules.dedup();
    (rules.len() * ASKED_AGAIN_SHARE <= program.rules.len()).then_some(rules)
}

/// Whether two findings say the same. Pairs of rules may be told together with others.
fn are_alike(one: &Finding, other: &Finding) -> bool {
    let pairs = |finding: &Finding| -> Vec<(RuleIndex, RuleIndex)> {
        let rule = finding.rule;
        finding.others.iter().map(|other| (rule.min(*other), rule.max(*other))).collect()
    };
    let shares_pair = || {
        let known = pairs(other);
        is_of_two(one) && pairs(one).iter().any(|pair| known.contains(pair))
    };
    one.code == other.code && (one.rule == other.rule || shares_pair())
}

fn is_of_two(finding: &Finding) -> bool {
    matches!(finding.code, Code::Conflict | Code::Exception)
}

/// Whether it counts pairs that were not settled.
fn is_of_pairs(finding: &Finding) -> bool {
    finding.code == Code::Unknown && finding.others.is_empty() && is_given_up(finding)
}

/// Whether it was too much to settle at one of several listeners: what holds at the others may then hold at all of them.
fn is_given_up(finding: &Finding) -> bool {
    finding.doubts.iter().any(|in_doubt| matches!(in_doubt.doubt, Doubt::Steps | Doubt::Time | Doubt::Many))
}

impl Shown {
    pub(crate) fn new(witness: &Witness, program: &Program, setting: &Setting) -> Shown {
        Shown {
            printed: Printed::new(witness, setting),
            listener: setting.listener.clone(),
            spoilt: witness.spoilt(program, setting).map(|spoilt| spoilt.to_string()),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut object = self.printed.to_json();
        if let Some(listener) = &self.listener {
            object["listener"] = json!(listener);
        }
        if let Some(spoilt) = &self.spoilt {
            object["note"] = json!(spoilt);
        }
        object
    }

    /// The request line by line, and what stands behind it.
    pub(crate) fn text(&self) -> String {
        self.text_led_by("for instance")
    }

    /// The same of what the client of another request asked for before.
    pub(crate) fn text_before(&self) -> String {
        self.text_led_by("behind this of the same client")
    }

    fn text_led_by(&self, lead: &str) -> String {
        let lead = match self.printed.options.as_str() {
            "" => format!("{lead}:"),
            options => format!("{lead}, with `{options}`:"),
        };
        let notes = self.printed.note().into_iter().chain(self.spoilt.clone());
        let notes = notes.map(|note| format!("note: {note}"));
        let lines: Vec<_> = [lead].into_iter().chain(self.printed.lines()).chain(notes).collect();
        lines.join("\n")
    }
}
