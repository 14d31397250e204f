//! What was found wrong while one source text is read: a list that every reader of the text adds to.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use pointsman_rules::{Diagnostic, Lines, Severity, Span};

/// A value with its place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spanned<T> {
    /// What was written.
    pub(crate) value: T,
    /// Where.
    pub(crate) span: Span,
}

/// The findings about one source text.
///
/// A cell, so that nested readers can share it while each holds its own part of the text.
pub(crate) struct Findings<'s> {
    lines: Lines<'s>,
    kept: RefCell<pointsman_rules::Findings>,
    /// Lines that are no TOML, by number. What could be read of them is not what was meant, so nothing else is
    /// said about them.
    torn: BTreeSet<usize>,
}

impl<'s> Findings<'s> {
    /// A list that starts with what is no TOML at all.
    pub(crate) fn around(source: &'s str, errors: Vec<Diagnostic>) -> Self {
        let lines = Lines::of(source);
        let touched = |span: Span| lines.line(span.start)..=lines.line(span.end);
        let torn = errors.iter().flat_map(|error| touched(error.span)).collect();
        let mut kept = pointsman_rules::Findings::default();
        kept.extend(errors);
        Self { lines, kept: RefCell::new(kept), torn }
    }

    /// Whether some of the text could not be read.
    pub(crate) fn is_torn(&self) -> bool {
        !self.torn.is_empty()
    }

    /// Adds an error.
    pub(crate) fn error(&self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.add(Severity::Error, span, message.into(), help.into());
    }

    /// Whether some finding forbids to use what was read.
    pub(crate) fn has_errors(&self) -> bool {
        self.kept.borrow().any_error()
    }

    /// Whether there are more errors than are reported: a help line for one more would not be read.
    pub(crate) fn overflowed(&self) -> bool {
        self.kept.borrow().overflowed()
    }

    /// The number of the line, from 1, in which a span begins.
    pub(crate) fn line(&self, span: Span) -> usize {
        self.lines.line(span.start)
    }

    /// ``did you mean `x`?``, or else what is there to choose from.
    pub(crate) fn did_you_mean(&self, written: &str, candidates: &[&str], plural: &str) -> String {
        if self.overflowed() {
            return String::new();
        }
        match self.kept.borrow().suggestions().nearest(written, candidates.iter().copied()) {
            Some(candidate) => format!("did you mean `{candidate}`?"),
            None => choices(candidates, plural),
        }
    }

    /// Adds a note.
    pub(crate) fn note(&self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.add(Severity::Note, span, message.into(), help.into());
    }

    /// Adds a warning.
    pub(crate) fn warning(&self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.add(Severity::Warning, span, message.into(), help.into());
    }

    /// The findings in the order of the text.
    pub(crate) fn into_sorted(self) -> Vec<Diagnostic> {
        self.kept.into_inner().into_sorted()
    }

    fn add(&self, severity: Severity, span: Span, message: String, help: String) {
        let last = self.lines.line(span.end.saturating_sub(1).max(span.start));
        if self.torn.range(self.line(span)..=last).next().is_some() {
            return;
        }
        let help = (!help.is_empty()).then_some(help);
        self.kept.borrow_mut().add(Diagnostic { severity, span, message, help });
    }
}

/// ``the keys are `a`, `b` and `c` ``.
fn choices(candidates: &[&str], plural: &str) -> String {
    const SHOWN_MAX: usize = 20;
    let shown = candidates.iter().take(SHOWN_MAX);
    let quoted: Vec<String> = shown.map(|candidate| format!("`{candidate}`")).collect();
    match quoted.as_slice() {
        [] => format!("there are no {plural}"),
        [only] => format!("there is only {only}"),
        all if candidates.len() > SHOWN_MAX => {
            format!("the {plural} are {} and {} more", all.join(", "), candidates.len() - SHOWN_MAX)
        }
        [rest @ .., last] => format!("the {plural} are {} and {last}", rest.join(", ")),
    }
}

/// A span out of a range of bytes; sources are far smaller than 4 GiB.
pub(crate) fn span(range: Range<usize>) -> Span {
    let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
    Span { start: narrow(range.start), end: narrow(range.end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_listed_as_in_a_sentence() {
        assert_eq!(choices(&[], "pools"), "there are no pools");
        assert_eq!(choices(&["fast"], "pools"), "there is only `fast`");
        assert_eq!(choices(&["fast", "slow", "lame"], "pools"), "the pools are `fast`, `slow` and `lame`");
        let many = choices(&["a"; 22], "pools");
        assert!(many.ends_with("`a`, `a` and 2 more"), "{many}");
    }
}
