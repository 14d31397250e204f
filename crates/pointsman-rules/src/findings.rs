//! Findings as they are made, up to bounds that no reader reaches.

use crate::{Diagnostic, Severity, Span, Suggestions};

/// After so many errors the rest of a text is not worth reading; likewise after so many warnings and notes.
const KEPT_MAX: usize = 1_000;

/// The findings about one source text, in the order they were made.
#[derive(Debug, Default)]
pub struct Findings {
    errors: Kept,
    /// Warnings and notes.
    advice: Kept,
    suggestions: Suggestions,
}

/// The first findings of a kind, and what is known of the others.
#[derive(Debug, Default)]
struct Kept {
    list: Vec<Diagnostic>,
    left_out: usize,
    worst_left_out: Option<(Severity, Span)>,
}

impl Findings {
    /// Keeps a finding, or counts it where there are too many.
    pub fn add(&mut self, finding: Diagnostic) {
        match finding.severity {
            Severity::Error => self.errors.add(finding),
            Severity::Warning | Severity::Note => self.advice.add(finding),
        }
    }

    /// Keeps what there is.
    pub fn extend(&mut self, findings: impl IntoIterator<Item = Diagnostic>) {
        findings.into_iter().for_each(|finding| self.add(finding));
    }

    /// Whether there is an error.
    pub fn any_error(&self) -> bool {
        !self.errors.list.is_empty()
    }

    /// Whether there are more errors than are reported.
    pub fn overflowed(&self) -> bool {
        self.errors.left_out > 0
    }

    /// For help lines.
    pub fn suggestions(&self) -> &Suggestions {
        &self.suggestions
    }

    /// Every finding in the order of the text, and at their end how many were left out.
    pub fn into_sorted(self) -> Vec<Diagnostic> {
        let more = [self.errors.more("error"), self.advice.more("warning")];
        let mut list = self.errors.list;
        list.extend(self.advice.list);
        list.sort_by_key(|finding| (finding.span.start, finding.span.end));
        list.extend(more.into_iter().flatten());
        list
    }
}

impl Kept {
    fn add(&mut self, finding: Diagnostic) {
        if self.list.len() < KEPT_MAX {
            self.list.push(finding);
            return;
        }
        self.left_out += 1;
        if self.worst_left_out.is_none_or(|(worst, _)| worst < finding.severity) {
            self.worst_left_out = Some((finding.severity, finding.span));
        }
    }

    /// One line about those that were left out. A text is not read to its end for the sake of their number.
    fn more(&self, what: &str) -> Option<Diagnostic> {
        let (severity, span) = self.worst_left_out?;
        let message = match self.left_out {
            1 => format!("and at least 1 more {what}"),
            number => format!("and at least {number} more {what}s"),
        };
        Some(Diagnostic { severity, span, message, help: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_and_no_error_is_lost() {
        let at = |start| Span { start, end: start + 1 };
        let mut findings = Findings::default();
        for start in 0..3000 {
            findings.add(Diagnostic::warning(at(start), "odd"));
        }
        assert!(!findings.any_error());
        findings.add(Diagnostic::error(at(7), "wrong"));
        assert!(findings.any_error() && !findings.overflowed());
        for start in 0..1001 {
            findings.add(Diagnostic::error(at(start), "wrong"));
        }
        assert!(findings.overflowed());
        let list = findings.into_sorted();
        assert_eq!(list.len(), 2 * KEPT_MAX + 2);
        let last: Vec<_> = list[2 * KEPT_MAX..].iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(last, ["and at least 2 more errors", "and at least 2000 more warnings"]);
        assert!(list[..2 * KEPT_MAX].is_sorted_by_key(|finding| finding.span.start));
    }
}
