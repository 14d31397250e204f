//! Errors, warnings and notes about a source text, for people.

use std::borrow::Cow;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::Lines;

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
        self.draw(name, &Lines::of(source), colour)
    }

    fn draw(&self, name: &str, lines: &Lines<'_>, colour: Colour) -> String {
        let excerpt = Excerpt::around(self.span, lines);
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let snippet = Snippet::source(excerpt.text)
            .line_start(excerpt.line)
            .annotation(AnnotationKind::Primary.span(excerpt.start..excerpt.end));
        let title = level.primary_title(&self.message);
        let mut group = match excerpt.column {
            // Counted in what is drawn it would be another one.
            Some(column) => {
                let origin = Origin::path(name).line(excerpt.line).char_column(column);
                title.element(origin).element(snippet)
            }
            None => title.element(snippet.path(name)),
        };
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

/// Findings drawn under their lines of `source`, which `name` calls, an empty line after each.
pub fn draw<'d>(
    findings: impl IntoIterator<Item = &'d Diagnostic>,
    name: &str,
    source: &str,
    colour: Colour,
) -> String {
    let lines = Lines::of(source);
    let drawings = findings.into_iter().map(|finding| finding.draw(name, &lines, colour));
    drawings.map(|drawing| format!("{}\n\n", drawing.trim_end())).collect()
}

impl Span {
    /// From the start of one to the end of another.
    pub(crate) fn to(self, end: Span) -> Span {
        Span { start: self.start, end: end.end.max(self.start) }
    }

    /// The text it covers; empty where it does not fit `source`.
    pub fn of(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

/// The lines a span touches. Only they are drawn, so that only they are laid out: a file may
/// have a million lines and a thousand findings.
struct Excerpt<'a> {
    text: Cow<'a, str>,
    line: usize,
    start: usize,
    end: usize,
    /// Where the span begins in its line, if the text is not the whole line.
    column: Option<usize>,
}

/// A span over more lines than this is drawn at its first line only.
const EXCERPT_LINES_MAX: usize = 8;

/// Of longer lines only what is around the span is drawn. Laying out a line costs more than its length.
const EXCERPT_BYTES_MAX: usize = 2_000;

/// How much of a long line is drawn on each side of its span, and of the span itself.
const WINDOW_BYTES: usize = 100;

impl<'a> Excerpt<'a> {
    fn around(span: Span, lines: &Lines<'a>) -> Self {
        let start = lines.boundary(span.start as usize);
        let end = lines.boundary(span.end as usize).max(start);
        let (line, last_line) = (lines.line_of(start), lines.line_of(end));
        let first = lines.bytes_of(line);
        let last = lines.bytes_of(last_line);
        if last_line - line < EXCERPT_LINES_MAX && last.end - first.start <= EXCERPT_BYTES_MAX {
            let text = Cow::from(&lines.source()[first.start..last.end]);
            return Excerpt { text, line, start: start - first.start, end: end - first.start, column: None };
        }
        let end = end.min(first.end);
        if first.len() <= EXCERPT_BYTES_MAX {
            let text = Cow::from(&lines.source()[first.clone()]);
            return Excerpt { text, line, start: start - first.start, end: end - first.start, column: None };
        }
        let end = lines.boundary(end.min(start + WINDOW_BYTES)).max(start);
        let from = lines.boundary(start.saturating_sub(WINDOW_BYTES)).max(first.start);
        let to = lines.boundary(end + WINDOW_BYTES).min(first.end);
        let cut = |is_cut| if is_cut { "\u{2026}" } else { "" };
        let head = cut(from > first.start);
        let text = format!("{head}{}{}", &lines.source()[from..to], cut(to < first.end));
        let column = lines.position(u32::try_from(start).unwrap_or(u32::MAX)).1;
        let shifted = |at: usize| at - from + head.len();
        Excerpt { text: text.into(), line, start: shifted(start), end: shifted(end), column: Some(column) }
    }
}
