//! Assertions and questions: conditions as those of rules, and destinations by name. Nothing that they name is added to the
//! program.

use std::collections::HashMap;

use crate::ast::{self, Item};
use crate::engine::number_further;
use crate::parser::{parse_question, shorten};
use crate::{
    Assertion, Assertions, Claim, Destination, Diagnostic, Program, Span, TargetId, TargetName, Targets,
    Tests,
};

use super::Compiler;
use super::targets::Idle;

impl Tests {
    /// `can <condition> reach <target>?` about the same rules, as the assertion that none can; with what was probably not
    /// meant.
    ///
    /// # Errors
    /// Everything that is wrong with the question, in the order of its text.
    pub fn question(
        &self,
        source: &str,
        program: &Program,
        targets: &Targets,
    ) -> Result<(Assertions, Vec<Diagnostic>), Vec<Diagnostic>> {
        let (question, findings) = parse_question(source);
        let mut compiler = self.compiler(source, program, targets, findings);
        let asked = question.and_then(|question| {
            let condition = compiler.condition(&question.condition);
            let destination = compiler.destination(&question.destination)?;
            if let (Destination::Target { surely, perhaps, .. }, ast::Destination::Target(name), true) =
                (&destination, &question.destination, compiler.targets.are_any())
                && surely.is_empty()
                && perhaps.is_empty()
            {
                let (finding, is_named) = compiler.nobody_sends_to(name);
                if !is_named {
                    compiler.findings.add(Diagnostic { severity: crate::Severity::Error, ..finding });
                    return None;
                }
                compiler.findings.add(finding);
            }
            let (name, span) = ("".into(), question.span);
            Some(Assertion { name, span, claim: Claim::Never, condition: condition?, destination })
        });
        let failed = compiler.findings.any_error();
        let mut assertions =
            Assertions { list: asked.into_iter().collect(), payloads: compiler.sorted_payloads() };
        let findings = compiler.findings.into_sorted();
        if failed || assertions.list.is_empty() {
            return Err(findings);
        }
        number_further(program, &mut assertions.list);
        Ok((assertions, findings))
    }
}

impl<'a> Compiler<'a> {
    /// The assertions of a file, their tests not yet numbered.
    pub(super) fn assertions(&mut self, file: &'a ast::RuleFile) -> Vec<Assertion> {
        let mut names: HashMap<&str, Span> = HashMap::new();
        let mut assertions = Vec::new();
        for item in &file.items {
            if self.findings.overflowed() {
                break;
            }
            let Item::Assert(assertion) = item else { continue };
            let name = &assertion.name;
            if let Some(first) = names.insert(&name.text, name.span) {
                let line = self.line(first);
                let message = format!("there are two assertions with the name `{}`", shorten(&name.text));
                self.error(name.span, message, format!("line {line} has it; names of assertions are unique"));
            }
            assertions.extend(self.assertion(assertion));
        }
        assertions
    }

    fn assertion(&mut self, assertion: &ast::Assertion) -> Option<Assertion> {
        let condition = self.condition(&assertion.condition);
        let destination = self.destination(&assertion.destination)?;
        // Of a broken rule nobody knows where it sends.
        if let (Destination::Target { surely, perhaps, .. }, ast::Destination::Target(name)) =
            (&destination, &assertion.destination)
            && surely.is_empty()
            && perhaps.is_empty()
            && self.targets.are_any()
            && !self.findings.any_error()
        {
            let (finding, _) = self.nobody_sends_to(name);
            self.findings.add(finding);
        }
        Some(Assertion {
            name: assertion.name.text.clone(),
            span: assertion.span,
            claim: assertion.claim,
            condition: condition?,
            destination,
        })
    }

    /// What a destination means; a pool that no rule names is one, too.
    fn destination(&mut self, written: &ast::Destination) -> Option<Destination> {
        let name = match written {
            ast::Destination::Ending(_, ending) => return Some(Destination::Ending(*ending)),
            ast::Destination::Target(name) => self.target_name(name)?,
        };
        let (mut surely, mut perhaps) = (Vec::new(), Vec::new());
        for (target, id) in self.targets.ids() {
            match leads(target, &name) {
                Some(true) => surely.push(id),
                Some(false) => perhaps.push(id),
                None => {}
            }
        }
        let by_number = |id: &TargetId| id.0;
        surely.sort_unstable_by_key(by_number);
        perhaps.sort_unstable_by_key(by_number);
        Some(Destination::Target { name, surely, perhaps })
    }

    /// That no rule does, and whether some name it nevertheless.
    fn nobody_sends_to(&self, name: &ast::Name) -> (Diagnostic, bool) {
        let message = format!("no rule sends to `{}`", shorten(&name.text));
        if let Some((how, help)) = self.idle(&name.text) {
            return (Diagnostic::warning(name.span, format!("{message}: {how}")).help(help), true);
        }
        let named: Vec<_> = self.targets.ids().map(|(target, _)| target.to_string()).collect();
        let pools = self.targets.ids().map(|(target, _)| &*target.pool);
        let mut known: Vec<_> = named.iter().map(String::as_str).chain(pools).collect();
        known.sort_unstable();
        let help = match self.nearest(&name.text, known) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "without a configuration a target is one that the rules name".to_owned(),
        };
        (Diagnostic::warning(name.span, message).help(help), false)
    }

    /// How rules name a target to which none sends requests, and what that means; nothing where none names it.
    pub(super) fn idle(&self, name: &str) -> Option<(&'static str, &'static str)> {
        Some(match self.targets.idle(&self.targets.known_name(name)?)? {
            Idle::Copies => ("only copies go there", "what `mirror` sends is a copy, and not the request"),
            Idle::NoShare => ("its share is 0 %", "a target with a share of 0 % gets no request"),
        })
    }
}

/// Whether a target leads to a destination whenever it is chosen, or only may.
fn leads(target: &TargetName, destination: &TargetName) -> Option<bool> {
    if target.pool != destination.pool {
        return None;
    }
    match (&target.server, &destination.server) {
        (_, None) => Some(true),
        (None, Some(_)) => Some(false),
        (Some(target), Some(destination)) => (target == destination).then_some(true),
    }
}
