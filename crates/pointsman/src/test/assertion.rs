//! Assertions in files of tests: each counts as a test, which passes where it is proved.

use std::fmt::Write;

use pointsman_analysis::{Effort, Finding, Proof, Setting, prove};
use pointsman_rules::{Assertion, Program};

use super::suite::{Suite, TestFile};
use super::trial::Verdict;
use crate::check::meaning::{STEPS, Shown};

/// The assertions of a file with what became of them, in the order of its text.
pub(super) fn all<'f>(suite: &Suite, file: &'f TestFile) -> impl Iterator<Item = (&'f Assertion, Verdict)> {
    let setting = suite.place.known();
    let proofs = match file.assertions.list.as_slice() {
        [] => Vec::new(),
        _ => prove(&suite.program, &file.assertions, &setting, Effort::new(STEPS)),
    };
    let verdict = |assertion: &Assertion, proof: &Proof| match proof {
        Proof::Holds(_) => Verdict::Passed,
        // What says nothing of any request is not what was meant.
        Proof::Empty | Proof::Broken(_) | Proof::Unknown(_) => {
            let findings = proof.findings(assertion, &suite.program);
            Verdict::Impossible(
                findings
                    .iter()
                    .map(|finding| said(finding, &suite.program, &setting))
                    .collect::<Vec<_>>()
                    .join("\n        "),
            )
        }
    };
    let proofs: Vec<_> =
        file.assertions.list.iter().zip(&proofs).map(|(a, proof)| (a, verdict(a, proof))).collect();
    proofs.into_iter()
}

/// A finding with its request, indented as the sentences of tests are.
fn said(finding: &Finding, program: &Program, setting: &Setting) -> String {
    let mut said = finding.message.clone();
    if let Some(witness) = &finding.witness {
        for (at, line) in Shown::new(witness, program, setting).text().lines().enumerate() {
            let indent = if at == 0 { "" } else { "  " };
            write!(said, "\n        {indent}{line}").expect("a text takes all");
        }
    }
    said.trim_end().to_owned()
}
