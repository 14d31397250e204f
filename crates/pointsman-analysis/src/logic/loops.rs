//! Redirects that lead back to the rule that they come from: a client follows them until it gives up.

use std::collections::BTreeSet;

use pointsman_rules::{DecidedBy, Exit, Outcome, Rule, RuleIndex, Terminal, Truths};

use super::findings::{Code, Finding, Report};
use super::question::reading_steps;
use crate::witness::{Witness, with_subject};

/// Redirects that are followed. Browsers give up after 20.
const HOPS_MAX: usize = 20;

/// A redirect of a request, and the rule that it comes from.
struct Hop {
    rule: u32,
    location: String,
    keeps_method: bool,
}

impl Report<'_> {
    /// Follows the redirect that a request gets, and says so where it comes back.
    pub(super) fn look_for_loop(&mut self, first: u32, witness: &Witness) {
        if !self.program.rule(RuleIndex(first)).is_some_and(redirects) {
            return;
        }
        let (mut rules, mut locations) = (Vec::new(), Vec::<String>::new());
        let mut at = witness.clone();
        let seen_again = loop {
            let Some(hop) = self.hop(&at) else { return };
            if rules.is_empty() && hop.rule != first {
                return;
            }
            rules.push(hop.rule);
            let is_again = locations.contains(&hop.location);
            locations.push(hop.location.clone());
            if is_again || locations.len() > HOPS_MAX {
                break is_again;
            }
            let Some(next) = at.redirected(&hop.location, hop.keeps_method) else { return };
            at = next;
        };
        // A rule that leads into a loop of others is no part of it.
        if !rules.iter().skip(1).any(|rule| *rule == first) {
            return;
        }
        let others: BTreeSet<u32> = rules.iter().copied().filter(|rule| *rule != first).collect();
        let is_said = self.findings.iter().any(|finding| {
            finding.code == Code::RedirectLoop
                && (finding.rule.0 == first || others.contains(&finding.rule.0))
        });
        if is_said {
            return;
        }
        let others: Vec<u32> = others.into_iter().collect();
        let message = match others.as_slice() {
            [] => format!("the redirect of {} leads back to it", self.name(first)),
            others => format!(
                "the redirect of {} leads back to it through {}",
                self.name(first),
                self.names(others)
            ),
        };
        let help = match locations.as_slice() {
            [.., last] if seen_again => format!("the client asks for `{last}` again and again"),
            [one, two, ..] => {
                format!(
                    "the client is sent to `{one}`, then to `{two}`, and gives up after {HOPS_MAX} redirects"
                )
            }
            _ => format!("the client gives up after {HOPS_MAX} redirects"),
        };
        let finding = self.finding(Code::RedirectLoop, first, &others, message, Some(help));
        self.findings.push(Finding { witness: Some(witness.clone()), ..finding });
    }

    /// The redirect that the rules have for a request.
    fn hop(&mut self, witness: &Witness) -> Option<Hop> {
        if !self.analyst.take(usize::try_from(reading_steps(witness)).unwrap_or(usize::MAX)) {
            return None;
        }
        let (program, setting) = (self.program, self.analyst.setting);
        let hop = with_subject(program, &self.analyst.paths, witness, setting, |subject| {
            let decision = program.decide(subject, &mut Truths::default());
            let (DecidedBy::Rule { index, .. }, Outcome::Terminal(Terminal::Redirect { status, location })) =
                (decision.by, decision.outcome)
            else {
                return None;
            };
            // A value that cannot be filled in refuses the request.
            decision.committed(subject).ok()?;
            let mut bytes = Vec::new();
            location.render_location(subject, &mut bytes);
            let keeps_method = matches!(status, 307 | 308);
            Some(Hop { rule: index.0, location: String::from_utf8(bytes).ok()?, keeps_method })
        });
        hop.flatten()
    }
}

fn redirects(rule: &Rule) -> bool {
    [&rule.then, &rule.otherwise]
        .into_iter()
        .any(|block| matches!(block.exit, Exit::Terminal(Terminal::Redirect { .. })))
}
