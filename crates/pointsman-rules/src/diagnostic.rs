//! Errors, warnings and notes about a source text, for people.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// A range of bytes in a source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Note,
    /// Probably not what was meant.
    Warning,
    /// Cannot be used.
    Error,
}

/// One finding. Messages are lower case, without a full stop, with user text in backticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub span: Span,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// Whether a rendering may use terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Text only, for files and tests.
    Never,
    /// ANSI escapes, for terminals.
    Ansi,
}

impl Diagnostic {
    /// An error.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Error, span, message: message.into(), help: None }
    }

    /// A warning.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, span, message: message.into(), help: None }
    }

    /// The same with a line that says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The finding drawn under its line of `source`, which `name` calls.
    pub fn render(&self, name: &str, source: &str, colour: Colour) -> String {
        let excerpt = Excerpt::around(self.span, source);
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let snippet = Snippet::source(excerpt.text)
            .line_start(excerpt.line)
            .path(name)
            .annotation(AnnotationKind::Primary.span(excerpt.start..excerpt.end));
        let mut group = level.primary_title(&self.message).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = match colour {
            Colour::Never => Renderer::plain(),
            Colour::Ansi => Renderer::styled(),
        };
        renderer.render(&[group])
    }
}

impl Span {
    /// From the start of one to the end of another.
    pub(crate) fn to(self, end: Span) -> Span {
        Span { start: self.start, end: end.end.max(self.start) }
    }

    /// The text it covers; empty where it does not fit `source`.
    pub(crate) fn of(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

/// The number of the line, from 1, in which byte `at` stands.
pub(crate) fn line_of(source: &str, at: u32) -> usize {
    let head = source.as_bytes().get(..at as usize).unwrap_or(source.as_bytes());
    1 + head.iter().filter(|b| **b == b'\n').count()
}

/// The lines a span touches. Only they are drawn, so that only they are laid out: a file may
/// have a million lines and ten thousand findings.
struct Excerpt<'a> {
    text: &'a str,
    line: usize,
    start: usize,
    end: usize,
}

/// A span over more lines than this is drawn at its first line only.
const EXCERPT_LINES_MAX: usize = 8;

impl<'a> Excerpt<'a> {
    fn around(span: Span, source: &'a str) -> Self {
        let start = floor_boundary(source, span.start as usize);
        let mut end = floor_boundary(source, span.end as usize).max(start);
        let first = source[..start].rfind('\n').map_or(0, |at| at + 1);
        if source[start..end].bytes().filter(|b| *b == b'\n').count() >= EXCERPT_LINES_MAX {
            end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        }
        let last = source[end..].find('\n').map_or(source.len(), |at| end + at);
        Excerpt {
            text: &source[first..last],
            line: line_of(source, u32::try_from(first).unwrap_or(u32::MAX)),
            start: start - first,
            end: end - first,
        }
    }
}

fn floor_boundary(source: &str, at: usize) -> usize {
    let mut at = at.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// After so many errors the rest of a file is not worth reading.
const ERRORS_MAX: usize = 1_000;

/// Findings as they are made.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Diagnostic>,
    errors: usize,
}

impl Findings {
    /// Keeps a finding, up to a bound that no reader reaches.
    pub(crate) fn add(&mut self, finding: Diagnostic) {
        let is_error = finding.severity == Severity::Error;
        self.errors += usize::from(is_error);
        if self.errors > ERRORS_MAX {
            if self.errors == ERRORS_MAX + 1 && is_error {
                let message = format!("more than {ERRORS_MAX} errors: the rest is not reported");
                self.list.push(Diagnostic::error(finding.span, message));
            }
            return;
        }
        if self.list.len() < 10 * ERRORS_MAX {
            self.list.push(finding);
        }
    }

    /// Whether there is an error.
    pub(crate) fn any_error(&self) -> bool {
        self.errors > 0
    }

    /// Whether there are more errors than are reported.
    pub(crate) fn overflowed(&self) -> bool {
        self.errors > ERRORS_MAX
    }

    /// Every finding in the order of the text.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|finding| (finding.span.start, finding.span.end));
        self.list
    }
}

/// The candidate that `word` was probably meant to be.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // Longer words are no slips of the finger, and the distance costs the product of the lengths.
    const WORD_BYTES_MAX: usize = 64;
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let folded = word.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= WORD_BYTES_MAX)
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
