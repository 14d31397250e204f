//! An answer, for people and for programs.

use std::collections::BTreeMap;

use pointsman_analysis::{Barred, Proof, Setting, rule_names, rules_in};
use pointsman_rules::{Destination, Program, RuleIndex};
use serde_json::{Value, json};

use crate::check::doubt;
use crate::check::meaning::Shown;

/// So many lines say why there is no such request.
const REASONS_MAX: usize = 20;

/// That it is not known.
const UNKNOWN: u8 = 3;

/// What there is to say.
pub(super) struct Answer {
    destination: String,
    kind: Kind,
}

enum Kind {
    Yes {
        rule: String,
        decision: String,
        witness: Shown,
        before: Option<Box<Shown>>,
    },
    /// Since no request makes the condition true.
    Never,
    /// The rules that lead there, together where the same keep requests from them.
    No(Vec<Reason>),
    Unknown {
        /// Whether it is no for clients that are not remembered.
        is_for_new: bool,
        names: String,
        /// Why, line by line, and for programs.
        lines: Vec<String>,
        rules: Vec<String>,
        reasons: Value,
    },
}

struct Reason {
    /// As people read it.
    text: String,
    rules: Vec<String>,
    by: Vec<String>,
}

impl Answer {
    /// What follows from whether no request gets there.
    pub(super) fn new(
        proof: &Proof,
        destination: &Destination,
        program: &Program,
        setting: &Setting,
    ) -> Answer {
        let kind = match proof {
            Proof::Broken(all) => match all.first() {
                Some(broken) => Kind::Yes {
                    rule: label(program, broken.rule),
                    decision: broken.decision.clone(),
                    witness: Shown::new(&broken.witness, program, setting),
                    before: broken
                        .before
                        .as_ref()
                        .map(|before| Box::new(Shown::new(before, program, setting))),
                },
                None => Kind::Never,
            },
            Proof::Unknown(doubts) => {
                let is_for_new = proof.holds_for_new_clients();
                let rules = rules_in(doubts);
                Kind::Unknown {
                    is_for_new,
                    names: rule_names(program, &rules),
                    lines: doubt::lines(doubts, program),
                    rules: rules.iter().map(|rule| label(program, *rule)).collect(),
                    reasons: doubt::all_to_json(doubts, program),
                }
            }
            Proof::Empty => Kind::Never,
            Proof::Holds(barred) => Kind::No(Reason::of(barred, program)),
        };
        Answer { destination: destination.to_string(), kind }
    }

    pub(super) fn status(&self) -> u8 {
        match self.kind {
            Kind::Yes { .. } => 0,
            Kind::Never | Kind::No(_) => 1,
            Kind::Unknown { .. } => UNKNOWN,
        }
    }

    pub(super) fn text(&self) -> String {
        let destination = &self.destination;
        match &self.kind {
            Kind::Yes { decision, witness, before, .. } => {
                let before = before.as_ref().map(|before| format!("{}\n", before.text_before()));
                format!("yes: {decision}\n{}\n{}", witness.text(), before.unwrap_or_default())
            }
            Kind::Never => "no: no request makes the condition true\n".to_owned(),
            Kind::No(reasons) if reasons.is_empty() => format!("no: no rule leads to `{destination}`\n"),
            Kind::No(reasons) => {
                let lines = reasons.iter().take(REASONS_MAX).map(|reason| format!("  {}\n", reason.text));
                let lines: String = lines.collect();
                let rest = match reasons.len().saturating_sub(REASONS_MAX) {
                    0 => String::new(),
                    1 => "  and 1 more reason\n".to_owned(),
                    more => format!("  and {more} more reasons\n"),
                };
                format!("no: no such request reaches `{destination}`\n{lines}{rest}")
            }
            Kind::Unknown { is_for_new: true, names, lines, .. } => {
                let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
                format!(
                    "unknown: no such request of a client that is not remembered reaches `{destination}`; \
                     one that stays where {names} sent it may\n{lines}"
                )
            }
            Kind::Unknown { names, lines, .. } => {
                let by = if names.is_empty() { String::new() } else { format!(" by {names}") };
                let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
                format!(
                    "unknown: it could not be settled whether such a request reaches `{destination}`{by}\n{lines}"
                )
            }
        }
    }

    pub(super) fn json(&self) -> String {
        let mut object = match &self.kind {
            Kind::Yes { rule, decision, witness, before } => {
                let mut object = json!({
                    "answer": "yes",
                    "rule": rule,
                    "decision": decision,
                    "witness": witness.to_json(),
                });
                if let Some(before) = before {
                    object["before"] = before.to_json();
                }
                object
            }
            Kind::Never => json!({ "answer": "no", "reasons": [] }),
            Kind::No(reasons) => {
                let reasons: Vec<Value> = reasons.iter().map(Reason::to_json).collect();
                json!({ "answer": "no", "reasons": reasons })
            }
            Kind::Unknown { rules, reasons, .. } => {
                json!({ "answer": "unknown", "rules": rules, "reasons": reasons })
            }
        };
        object["version"] = json!(1);
        object["destination"] = json!(self.destination);
        format!("{object:#}\n")
    }
}

impl Reason {
    /// In the order of the first rules that lead there.
    fn of(barred: &[Barred], program: &Program) -> Vec<Reason> {
        let mut groups: Vec<(Vec<RuleIndex>, &[RuleIndex])> = Vec::new();
        let mut places: BTreeMap<&[RuleIndex], usize> = BTreeMap::new();
        for Barred { rule, by } in barred {
            let place = *places.entry(by).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((rules, _)) => rules.push(*rule),
                None => groups.push((vec![*rule], by)),
            }
        }
        groups.into_iter().map(|(rules, by)| Reason::new(&rules, by, program)).collect()
    }

    fn new(rules: &[RuleIndex], by: &[RuleIndex], program: &Program) -> Reason {
        let (leading, barring) = (rule_names(program, rules), rule_names(program, by));
        let is_behind_all = |rule: &RuleIndex| program.rule(*rule).is_none();
        let lead = match rules {
            [rule] if is_behind_all(rule) => "what no rule decides gets there".to_owned(),
            [_] => format!("{leading} leads there"),
            _ => format!("{leading} lead there"),
        };
        let to = match rules {
            [rule] if is_behind_all(rule) => "",
            [_] => " to it",
            _ => " to them",
        };
        let text = match by {
            [] if rules.len() == 1 => format!("{lead}, and its own condition takes none"),
            [] => format!("{lead}, and their own conditions take none"),
            [_] => format!("{lead}, and {barring} leaves none{to}"),
            _ => format!("{lead}, and {barring} leave none{to}"),
        };
        let labels = |rules: &[RuleIndex]| rules.iter().map(|rule| label(program, *rule)).collect();
        Reason { text, rules: labels(rules), by: labels(by) }
    }

    fn to_json(&self) -> Value {
        json!({ "rules": self.rules, "by": self.by })
    }
}

/// The label of a rule; `default` where none decides.
fn label(program: &Program, rule: RuleIndex) -> String {
    program.rule(rule).map_or_else(|| "default".to_owned(), |rule| rule.label.to_string())
}
