//! Texts that mean more than their bytes: regexes, replacements and templates.

use std::cell::OnceCell;

use regex::bytes::RegexBuilder;

use crate::ast::Quoted;
use crate::group::{Group, NoGroup};
use crate::lexer::Meaning;
use crate::parser::{parse_field, shorten};
use crate::rewrite::{Reference, reference};
use crate::{Diagnostic, Matcher, Piece, Span, Template, schema};

use super::Compiler;

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
                Reference::None => len == 1,
            };
            if !known {
                let group = quoted.text.get(start..at).unwrap_or("$");
                let message = match named {
                    Reference::None => "`$` names no group".to_owned(),
                    _ => format!("the regex has no group for `{}`", shorten(group)),
                };
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
        let (mut pieces, mut literal, mut sound, mut at) = (Vec::new(), Vec::new(), true, 0);
        // Looked up for errors only: a text of a megabyte may have fifty thousand sound fields.
        let place = OnceCell::new();
        while let Some(dollar) = memchr::memchr(b'$', &text.as_bytes()[at..]) {
            let open = at + dollar;
            literal.extend_from_slice(&text.as_bytes()[at..open]);
            if !text[open..].starts_with("${") {
                at = open + 1;
                if text[at..].starts_with('$') {
                    at += 1;
                } else {
                    self.stray_dollar(quoted, &place, open);
                    sound = false;
                }
                literal.push(b'$');
                continue;
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal).into()));
            }
            let Some(close) = closing_brace(&text[open..]) else {
                let at = self.inside(quoted, (open, open + 2));
                self.error(
                    at,
                    "`${` is not closed",
                    "a field in a text is written `${path}`, a dollar sign `$$`",
                );
                return None;
            };
            let name = (open + 2, open + close);
            match self.template_piece(quoted, &place, name) {
                Some(piece) => pieces.push(piece),
                None => sound = false,
            }
            at = open + close + 1;
        }
        literal.extend_from_slice(&text.as_bytes()[at..]);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal.into()));
        }
        sound.then_some(Template(pieces))
    }

    /// A dollar sign that names nothing: other proxies write `$1` and `$host`.
    fn stray_dollar(&mut self, quoted: &Quoted, place: &OnceCell<Meaning>, dollar: usize) {
        let behind = &quoted.text[dollar + 1..];
        let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(behind.len());
        let word = &behind[..end];
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let help = if is_number {
            format!(
                "a group of the condition's regex is written `${{{}}}`, a dollar sign `$$`",
                shorten(word)
            )
        } else if parse_field(word).is_ok_and(|named| self.resolved(&named).is_ok()) {
            format!("a field in a text is written `${{{word}}}`, a dollar sign `$$`")
        } else {
            "a dollar sign in a text is written `$$`".to_owned()
        };
        let at = place.get_or_init(|| Meaning::of(self.source, quoted.span)).span(dollar, dollar + 1 + end);
        let shown = shorten(&quoted.text[dollar..dollar + 1 + end]);
        self.error(at, format!("`{shown}` names no field and no group"), help);
    }

    /// What stands in `${…}`: a group of the condition's regex, or a field.
    fn template_piece(
        &mut self,
        quoted: &Quoted,
        place: &OnceCell<Meaning>,
        (start, end): (usize, usize),
    ) -> Option<Piece> {
        let name = &quoted.text[start..end];
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        let found = Group::of(&self.holding, name);
        let is_field = !is_number && schema::ENTRIES.iter().any(|entry| entry.name == name);
        let (message, help) = match found {
            Ok(_) if is_field => (
                format!("`{}` is a field and a group of the condition's regex", shorten(name)),
                "give the group another name",
            ),
            Ok(group) => return Some(Piece::Group(Box::new(group))),
            Err(NoGroup::Absent) if !is_number => return self.template_field(quoted, place, (start, end)),
            Err(why) => no_group(why, name),
        };
        let at = place.get_or_init(|| Meaning::of(self.source, quoted.span)).span(start, end);
        self.error(at, message, help);
        None
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

fn no_group(why: NoGroup, name: &str) -> (String, &'static str) {
    let name = shorten(name);
    match why {
        NoGroup::Absent => (
            format!("no regex that holds here has a group `{name}`"),
            "groups are those of `matches` in the condition of the same rule, not behind `!` or in `else`; they count from 1",
        ),
        NoGroup::Ambiguous => (
            format!("several regexes of the condition have a group `{name}`"),
            "give the group a name, `(?<id>…)`, and write `${id}`",
        ),
        NoGroup::Partial => (
            format!("not every alternative of the condition has a group `{name}`"),
            "write the alternatives as rules of their own",
        ),
        NoGroup::Body => (
            format!("the group `{name}` is in the body"),
            "groups are those of a regex over a field of the head",
        ),
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
