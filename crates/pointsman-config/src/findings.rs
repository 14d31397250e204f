//! What was found wrong while one source text is read: a list that every reader of the text adds to.

use std::cell::RefCell;
use std::ops::Range;

use pointsman_rules::{Diagnostic, Severity, Span};

/// A value with its place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spanned<T> {
    /// What was written.
    pub(crate) value: T,
    /// Where.
    pub(crate) span: Span,
}

/// The findings about one source text, in the order they were made.
///
/// A cell, so that nested readers can share it while each holds its own part of the text.
pub(crate) struct Findings<'s> {
    source: &'s str,
    list: RefCell<Vec<Diagnostic>>,
    /// Lines that are no TOML. What could be read of them is not what was meant, so nothing else is said
    /// about them.
    torn: Vec<Range<u32>>,
}

impl<'s> Findings<'s> {
    /// A list that starts with what is no TOML at all.
    pub(crate) fn around(source: &'s str, errors: Vec<Diagnostic>) -> Self {
        let torn = errors.iter().map(|error| line_around(source, error.span)).collect();
        Self { source, list: RefCell::new(errors), torn }
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
        self.list.borrow().iter().any(|finding| finding.severity == Severity::Error)
    }

    /// The number of the line, from 1, in which a span begins.
    pub(crate) fn line(&self, span: Span) -> usize {
        let head = self.source.as_bytes().get(..span.start as usize).unwrap_or_default();
        1 + head.iter().filter(|byte| **byte == b'\n').count()
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
        let mut list = self.list.into_inner();
        list.sort_by_key(|finding| (finding.span.start, finding.span.end));
        list
    }

    fn add(&self, severity: Severity, span: Span, message: String, help: String) {
        if self.torn.iter().any(|line| span.start < line.end && line.start < span.end) {
            return;
        }
        let help = (!help.is_empty()).then_some(help);
        self.list.borrow_mut().push(Diagnostic { severity, span, message, help });
    }
}

/// The lines that a span touches, with the last line's break.
fn line_around(source: &str, span: Span) -> Range<u32> {
    let bytes = source.as_bytes();
    let start = bytes.len().min(span.start as usize);
    let end = bytes.len().min(span.end as usize).max(start);
    let first = bytes[..start].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let last = bytes[end..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| end + at + 1);
    let Span { start, end } = self::span(first..last);
    start..end
}

/// A span out of a range of bytes; sources are far smaller than 4 GiB.
pub(crate) fn span(range: Range<usize>) -> Span {
    let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
    Span { start: narrow(range.start), end: narrow(range.end) }
}
