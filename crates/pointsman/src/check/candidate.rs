//! Rules that are to take the place of some that serve: what is found in them. Nothing is read but their text.

use std::sync::Arc;

use pointsman_analysis::{Effort, Setting};
use pointsman_config::{Listener, Plan, Protocol, RuleSet, named_fields, open_end};
use pointsman_rules::{Compiled, Diagnostic, Program, RuleIndex, Scope, Severity, Span, compile_for};
use serde_json::{Value, json};

use super::asserted::Asserted;
use super::changed::changed;
use super::costs::BodyCosts;
use super::finding::to_json;
use super::meaning::{About, Meaning};
use super::{Language, Text};
use crate::explain::place::Place;

/// What serves: a copy, which no reload changes.
pub(crate) struct Served {
    pub(crate) plan: Plan,
    pub(crate) set: RuleSet,
}

/// Other rules for a file of what serves, compiled for each use of it.
pub(crate) struct Candidate {
    pub(crate) source: Arc<str>,
    compiled: Vec<(Scope, Arc<Program>, pointsman_rules::Tests)>,
    /// What is wrong with them, or odd, before it is asked what they mean together.
    pub(crate) findings: Vec<Diagnostic>,
}

impl Served {
    /// The listeners that have these rules.
    pub(crate) fn users(&self) -> impl Iterator<Item = &Listener> {
        self.plan.users_of(&self.set.path)
    }

    pub(crate) fn compile(&self, source: Arc<str>) -> Candidate {
        let mut scopes: Vec<Scope> = self.users().map(|listener| listener.protocol.scope()).collect();
        scopes.dedup();
        let mut candidate = Candidate { source, compiled: Vec::new(), findings: Vec::new() };
        for scope in scopes {
            let found = match compile_for(&candidate.source, &self.plan.targets, scope) {
                Ok(Compiled { program, warnings, tests }) => {
                    candidate.compiled.push((scope, Arc::new(program), tests));
                    warnings
                }
                Err(findings) => findings,
            };
            candidate.add(found);
        }
        for listener in self.users().filter(|listener| listener.default_pool.is_none()) {
            let open = candidate.program(listener).and_then(|program| open_end(program));
            let end = u32::try_from(candidate.source.trim_end().len()).unwrap_or(u32::MAX);
            candidate.add(open.map(|open| {
                let span = open.fallback.unwrap_or(Span { start: end, end });
                Diagnostic::error(span, open.sentence(&self.set.name)).help(open.help())
            }));
        }
        candidate
    }

    /// A listener as it would be with other rules, which stand here for its own where they compile.
    pub(crate) fn place(&self, listener: &Listener, candidate: &Candidate) -> Option<Place> {
        let program = candidate.program(listener)?;
        let mut place = Place::of_listener(listener, &self.plan, &[]);
        place.named_fields = named_fields(program, &self.plan.limits);
        place.program = Some(program.clone());
        place.source = candidate.source.clone();
        Some(place)
    }
}

impl Candidate {
    /// Whether they could serve.
    pub(crate) fn compiles(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Error)
    }

    fn program(&self, listener: &Listener) -> Option<&Arc<Program>> {
        let scope = listener.protocol.scope();
        self.compiled.iter().find(|(known, ..)| *known == scope).map(|(_, program, _)| program)
    }

    /// What several uses of a text have in common is said once.
    fn add(&mut self, findings: impl IntoIterator<Item = Diagnostic>) {
        for finding in findings {
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
    }
}

/// What of other rules is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of them.
    All,
    /// Those that are not as they serve.
    Changed,
}

/// What there is to say of other rules, as `check --json` says it; what `effort` does not reach is unknown.
pub(crate) fn look_at(served: &Served, source: &str, wanted: Wanted, effort: &Effort) -> Value {
    let candidate = served.compile(source.into());
    let changed = match wanted {
        Wanted::All => None,
        Wanted::Changed => changed(&served.set.source, source),
    };
    let (mut asserted, mut meanings) = (Asserted::default(), Vec::new());
    let mut labels = changed.as_ref().map(|_| Vec::new());
    if candidate.compiles() {
        for (scope, program, tests) in &candidate.compiled {
            if let (Some(labels), Some(rules)) = (&mut labels, &changed) {
                *labels = labels_of(program, rules);
            }
            let settings = served.settings(*scope, &candidate);
            meanings.extend(Meaning::of(program, &settings, &about(changed.as_deref(), program), effort));
            let proofs = Asserted::of(program, &tests.assertions, &settings, effort);
            asserted.add(proofs.0);
            meanings.extend(proofs.1);
        }
    }
    let body_costs = candidate
        .compiled
        .iter()
        .filter_map(|(_, program, _)| Some(BodyCosts::of(&served.set.name, program)?.to_json()));
    let body_costs: Vec<_> = body_costs.collect();
    let is_settled = meanings.iter().all(Meaning::is_in_time);
    let compiles = candidate.compiles();
    let text = Text {
        name: served.set.name.clone(),
        language: Language::Rules,
        source: candidate.source,
        diagnostics: candidate.findings,
        meanings,
    };
    let Asserted { stated, proved } = asserted;
    json!({
        "version": 1,
        "rules_version": served.set.version(),
        "compiles": compiles,
        "is_settled": is_settled,
        "about": if wanted == Wanted::All { "all" } else { "changed" },
        "changed": labels,
        "findings": complete(to_json(&text)),
        "body_costs": body_costs,
        "assertions": { "stated": stated, "proved": proved },
    })
}

impl Served {
    /// How the listeners of a scope see requests with other rules; nothing of those that read none.
    fn settings(&self, scope: Scope, candidate: &Candidate) -> Vec<Setting> {
        let users = self
            .users()
            .filter(|listener| listener.protocol == Protocol::Http && listener.protocol.scope() == scope);
        users.filter_map(|listener| Some(self.place(listener, candidate)?.setting())).collect()
    }
}

fn about(changed: Option<&[RuleIndex]>, program: &Program) -> About {
    match changed {
        // Of most of them it is as soon said of all.
        Some(rules) if rules.len() < program.rules.len() => About::Rules(rules.to_vec()),
        _ => About::All,
    }
}

fn labels_of(program: &Program, rules: &[RuleIndex]) -> Vec<String> {
    rules.iter().filter_map(|rule| Some(program.rule(*rule)?.label.to_string())).collect()
}

/// All members, null and empty ones too: whoever shows findings need not ask what there is.
fn complete(mut findings: Vec<Value>) -> Vec<Value> {
    for finding in findings.iter_mut().filter_map(Value::as_object_mut) {
        for absent in ["rule", "help", "witness", "before", "assertion"] {
            finding.entry(absent).or_insert(Value::Null);
        }
        for empty in ["others", "reasons"] {
            finding.entry(empty).or_insert(json!([]));
        }
    }
    findings
}
