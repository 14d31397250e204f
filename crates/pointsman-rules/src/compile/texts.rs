//! Texts that mean more than their bytes: regexes, replacements and templates.

use std::cell::OnceCell;

use regex::bytes::RegexBuilder;

use crate::ast::Quoted;
use crate::lexer::Meaning;
use crate::parser::{parse_field, shorten};
use crate::rewrite::{Reference, reference};
use crate::{Diagnostic, Matcher, Piece, Span, Template};

use super::Compiler;

/// So many dollar signs of a text are looked at, whether a field's name stands behind one.
const BARE_FIELDS_MAX: usize = 16;

/// Largest compiled regex.
const REGEX_BYTES_MAX: usize = 1 << 20;

impl Compiler<'_> {
    /// A regex over bytes, in which `.` takes any of them: in Unicode mode a request could dodge
    /// a rule with a byte that is no UTF-8, and without `s` with a line feed in a query.
    pub(super) fn regex(&mut self, quoted: &Quoted) -> Option<Matcher> {
        if let Some(Some(known)) = self.regexes.get(&quoted.text) {
            return Some(known.clone());
        }
        let built = RegexBuilder::new(&quoted.text)
            .unicode(false)
            .dot_matches_new_line(true)
            .size_limit(REGEX_BYTES_MAX)
            .build();
        let regex = match built {
            Ok(regex) => Some(Matcher::from(regex)),
            Err(regex::Error::Syntax(report)) => {
                let fault = SyntaxFault::read(&report, &quoted.text);
                let at = fault.at.map_or(quoted.span, |at| self.inside(quoted, at));
                let help = "regexes are those of the Rust crate `regex`, over bytes: no look-around, no back-references";
                self.error(at, format!("this is no regex: {}", fault.message), help);
                None
            }
            Err(_) => {
                let message = format!("this regex takes more than {} KiB", REGEX_BYTES_MAX >> 10);
                self.error(quoted.span, message, "make its repetitions smaller");
                None
            }
        };
        self.regexes.insert(quoted.text.clone(), regex.clone());
        regex
    }

    /// Every group that a replacement names must be there.
    pub(super) fn check_replacement(&mut self, regex: &Matcher, quoted: &Quoted) -> Option<()> {
        let text = quoted.text.as_bytes();
        let (mut at, mut sound) = (0, Some(()));
        let place = OnceCell::new();
        while let Some(dollar) = memchr::memchr(b'$', &text[at..]) {
            let start = at + dollar;
            let (named, len) = reference(&text[start + 1..]);
            at = start + 1 + len;
            let known = match named {
                Reference::Number(number) => number < regex.captures_len(),
                Reference::Name(name) => regex.capture_names().flatten().any(|known| known == name),
                Reference::None => true,
            };
            if !known {
                let group = quoted.text.get(start..at).unwrap_or("$");
                let message = format!("the regex has no group for `{}`", shorten(group));
                let help = "groups are counted by their `(`, from 1; `$$` is a dollar sign";
                let place = place.get_or_init(|| Meaning::of(self.source, quoted.span));
                self.error(place.span(start, at), message, help);
                sound = None;
            }
        }
        sound
    }

    /// A text with fields in it: `https://${host}${path}`.
    pub(super) fn template(&mut self, quoted: &Quoted) -> Option<Template> {
        let text = &*quoted.text;
        if let Some(at) = text.find(|c: char| c.is_control() && c != '\t') {
            let len = text[at..].chars().next().map_or(1, char::len_utf8);
            let at = self.inside(quoted, (at, at + len));
            self.error(at, "a control character cannot stand in a header or an answer", "take it out");
            return None;
        }
        self.warn_of_bare_field(quoted);
        let (mut pieces, mut sound, mut at) = (Vec::new(), true, 0);
        // Looked up for errors only: a text of a megabyte may have fifty thousand sound fields.
        let place = OnceCell::new();
        while let Some(found) = text[at..].find("${") {
            let open = at + found;
            if open > at {
                pieces.push(Piece::Literal(text.as_bytes()[at..open].into()));
            }
            let Some(close) = closing_brace(&text[open..]) else {
                let at = self.inside(quoted, (open, open + 2));
                self.error(at, "`${` is not closed", "a field in a text is written `${path}`");
                return None;
            };
            let name = (open + 2, open + close);
            match self.template_field(quoted, &place, name) {
                Some(piece) => pieces.push(piece),
                None => sound = false,
            }
            at = open + close + 1;
        }
        if at < text.len() {
            pieces.push(Piece::Literal(text.as_bytes()[at..].into()));
        }
        sound.then_some(Template(pieces))
    }

    /// `$host` is what other proxies write, and a text like any other here.
    fn warn_of_bare_field(&mut self, quoted: &Quoted) {
        let names = quoted.text.match_indices('$').filter_map(|(at, _)| {
            let name = &quoted.text[at + 1..];
            let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
            Some((at, name.get(..end).filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))?))
        });
        // Of a text of a megabyte the first few tell enough.
        for (at, name) in names.take(BARE_FIELDS_MAX) {
            if parse_field(name).is_ok_and(|named| self.resolved(&named).is_ok()) {
                let message = format!("`${name}` stands for itself");
                let help = format!("a field in a text is written `${{{name}}}`");
                let span = self.inside(quoted, (at, at + 1 + name.len()));
                self.findings.add(Diagnostic::warning(span, message).help(help));
                return;
            }
        }
    }

    fn template_field(
        &mut self,
        quoted: &Quoted,
        place: &OnceCell<Meaning>,
        (start, end): (usize, usize),
    ) -> Option<Piece> {
        let findings = match parse_field(&quoted.text[start..end]) {
            Ok(named) => match self.resolved(&named) {
                Ok(field) => return Some(Piece::Field(field)),
                Err(finding) => vec![finding],
            },
            Err(findings) => findings,
        };
        let place = place.get_or_init(|| Meaning::of(self.source, quoted.span));
        for finding in findings {
            let Span { start: from, end: to } = finding.span;
            let span = place.span(start + from as usize, start + to as usize);
            self.findings.add(Diagnostic { span, ..finding });
        }
        None
    }

    /// The place in the source of a range of a quoted text's meaning.
    fn inside(&self, quoted: &Quoted, (start, end): (usize, usize)) -> Span {
        Meaning::of(self.source, quoted.span).span(start, end)
    }
}

/// The `}` that ends `${…}`; one inside a key's quotes does not.
fn closing_brace(text: &str) -> Option<usize> {
    let mut in_key = false;
    text.char_indices().find_map(|(at, c)| {
        in_key ^= c == '"';
        (c == '}' && !in_key).then_some(at)
    })
}

/// What the regex crate says about a pattern. It says it in a drawing only.
struct SyntaxFault {
    message: String,
    /// A range of bytes in the pattern.
    at: Option<(usize, usize)>,
}

impl SyntaxFault {
    fn read(report: &str, pattern: &str) -> Self {
        let message = report
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("error: "))
            .unwrap_or("it cannot be read")
            .to_owned();
        let carets = report.lines().find(|line| {
            line.contains('^') && line.starts_with("    ") && line.chars().all(|c| c == ' ' || c == '^')
        });
        let at = carets.and_then(|line| {
            let first = line.find('^')?.checked_sub(4)?;
            let count = line[first + 4..].bytes().take_while(|b| *b == b'^').count();
            Some((byte_of_char(pattern, first), byte_of_char(pattern, first + count)))
        });
        SyntaxFault { message, at }
    }
}

fn byte_of_char(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
}
