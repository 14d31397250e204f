//! Parameters of a part's head: `form-data; name="a"` and `text/plain; charset=utf-8`.

use super::Wrong;
use crate::Cause;

/// What Content-Disposition says of a part (RFC 7578 section 4.2).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Disposition {
    pub(super) name: Vec<u8>,
    pub(super) filename: Filename,
    /// Whether it is `form-data`. A part with another one is a field to PHP and Werkzeug, and nothing to Go and busboy.
    pub(super) is_form_data: bool,
}

/// What the `filename` of a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filename {
    /// There is none: the part is a field.
    None,
    /// It makes the part a file.
    Some,
    /// It is empty, as browsers write it for a file that was not chosen: a file to PHP and Werkzeug, a field to Go and
    /// busboy.
    Empty,
    /// It is only there as `filename*` or in sections (RFC 2231), or behind a single quote: a field to PHP, a file to Go
    /// and Werkzeug.
    Extended,
}

impl Disposition {
    /// Reads the value of Content-Disposition, strictly: what one parser takes for the name and another does not is no
    /// name.
    pub(super) fn read(value: &[u8]) -> Result<Disposition, Wrong> {
        let (kind, mut rest) = value.split_at(token_bytes(value));
        if kind.is_empty() {
            return Err(Wrong(Cause::Malformed, "a malformed Content-Disposition"));
        }
        let (mut names, mut name, mut filename) = (Vec::new(), None, Filename::None);
        let (mut borders, seen_by_php) = (Vec::new(), borders_of_php(value));
        while !rest.is_empty() {
            let border = value.len() - without_blanks(rest).len();
            let is_hidden = !seen_by_php.contains(&border);
            borders.push(border);
            let (parameter, after) = Parameter::read(rest)?;
            rest = after;
            let lower = parameter.name.to_ascii_lowercase();
            let star = memchr::memchr(b'*', &lower);
            match (&lower[..star.unwrap_or(lower.len())], star.is_some()) {
                (b"name", true) => return Err(Wrong(Cause::Malformed, "`*` in the name of a part")),
                (b"name", false) if is_hidden || parameter.value.starts_with(b"'") => {
                    return Err(Wrong(Cause::Malformed, "a single quote, which PHP takes for a quote"));
                }
                (b"name", false) => name = Some(parameter.field_name()?),
                (b"filename", false) if is_hidden && filename == Filename::None => {
                    filename = Filename::Extended
                }
                (b"filename", _) if is_hidden => {}
                (b"filename", true) if filename != Filename::Some => filename = Filename::Extended,
                (b"filename", false) if !parameter.value.is_empty() => filename = Filename::Some,
                (b"filename", false) if filename == Filename::None => filename = Filename::Empty,
                _ => {}
            }
            names.push(lower);
        }
        if seen_by_php.iter().any(|border| !borders.contains(border)) {
            return Err(Wrong(Cause::Malformed, "a parameter that only PHP sees"));
        }
        names.sort_unstable();
        if names.array_windows().any(|[one, next]| one == next) {
            return Err(Wrong(Cause::Malformed, "a parameter of Content-Disposition twice"));
        }
        let name = name.ok_or(Wrong(Cause::Malformed, "a part without a name"))?;
        Ok(Disposition { name, filename, is_form_data: kind.eq_ignore_ascii_case(b"form-data") })
    }
}

/// Where PHP splits parameters (`php_ap_getword`): single quotes are quotes, too, and a backslash is one only before the
/// quote that ends a text.
fn borders_of_php(value: &[u8]) -> Vec<usize> {
    let (mut borders, mut quote) = (Vec::new(), None);
    let mut bytes = value.iter().enumerate().peekable();
    while let Some((at, &byte)) = bytes.next() {
        match quote {
            Some(end) if byte == b'\\' && bytes.peek().is_some_and(|&(_, next)| *next == end) => {
                bytes.next();
            }
            Some(end) if byte == end => quote = None,
            Some(_) => {}
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            None if byte == b';' => borders.push(at),
            None => {}
        }
    }
    borders
}

/// What Content-Type says of a part, as far as it matters to its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PartType {
    /// Parts within a part, which RFC 7578 section 4.3 took out of forms.
    pub(super) is_mixed: bool,
    /// `application/octet-stream` makes any part a file to busboy.
    pub(super) is_octets: bool,
    pub(super) charset: Option<Vec<u8>>,
}

impl PartType {
    /// Reads the value of Content-Type (RFC 9110 section 8.3.1).
    pub(super) fn read(value: &[u8]) -> Result<PartType, Wrong> {
        const MALFORMED: Wrong = Wrong(Cause::Malformed, "a malformed Content-Type of a part");
        let (kind, rest) = value.split_at(token_bytes(value));
        let rest = rest.strip_prefix(b"/").filter(|_| !kind.is_empty()).ok_or(MALFORMED)?;
        let (subtype, mut rest) = rest.split_at(token_bytes(rest));
        if subtype.is_empty() {
            return Err(MALFORMED);
        }
        let is_mixed = kind.eq_ignore_ascii_case(b"multipart") && subtype.eq_ignore_ascii_case(b"mixed");
        let is_octets =
            kind.eq_ignore_ascii_case(b"application") && subtype.eq_ignore_ascii_case(b"octet-stream");
        let mut charset = None;
        while !rest.is_empty() {
            let (parameter, after) = Parameter::read(rest)?;
            rest = after;
            let is_charset = parameter.name.eq_ignore_ascii_case(b"charset");
            if is_charset && charset.replace(parameter.value.to_vec()).is_some() {
                return Err(Wrong(Cause::Malformed, "a part with two charsets"));
            }
        }
        Ok(PartType { is_mixed, is_octets, charset })
    }
}

/// `name=value` or `name="value"`; the value as it stands, without its quotes.
struct Parameter<'a> {
    name: &'a [u8],
    value: &'a [u8],
}

impl<'a> Parameter<'a> {
    /// Reads `; name=value` (RFC 9110 section 5.6.6): it, and what follows.
    fn read(text: &'a [u8]) -> Result<(Parameter<'a>, &'a [u8]), Wrong> {
        Parameter::split(text).ok_or(Wrong(Cause::Malformed, "a malformed parameter in a part's head"))
    }

    fn split(text: &'a [u8]) -> Option<(Parameter<'a>, &'a [u8])> {
        let text = without_blanks(without_blanks(text).strip_prefix(b";")?);
        let (name, text) = text.split_at(token_bytes(text));
        let text = text.strip_prefix(b"=").filter(|_| !name.is_empty())?;
        if let Some(quoted) = text.strip_prefix(b"\"") {
            let end = closing_quote(quoted)?;
            return Some((Parameter { name, value: &quoted[..end] }, &quoted[end + 1..]));
        }
        let (value, text) = text.split_at(token_bytes(text));
        (!value.is_empty()).then_some((Parameter { name, value }, text))
    }

    /// The name of a field. A backslash stands before a quote or a backslash only: before another byte it is an escape
    /// to some and itself to others. `%22`, `%0D` and `%0A` are what browsers write for a quote, CR and LF (WHATWG HTML
    /// section 4.10.21.8).
    fn field_name(&self) -> Result<Vec<u8>, Wrong> {
        let (mut name, mut rest) = (Vec::new(), self.value);
        while let Some((&byte, after)) = rest.split_first() {
            let (meant, after) = match rest {
                [b'\\', escaped @ (b'"' | b'\\'), after @ ..] => (*escaped, after),
                [b'\\', ..] => return Err(Wrong(Cause::Malformed, "a backslash in a field's name")),
                [b'%', b'2', b'2', after @ ..] => (b'"', after),
                [b'%', b'0', b'D', after @ ..] => (b'\r', after),
                [b'%', b'0', b'A', after @ ..] => (b'\n', after),
                _ => (byte, after),
            };
            name.push(meant);
            rest = after;
        }
        Ok(name)
    }
}

fn closing_quote(quoted: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match quoted.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &text[blanks..]
}

/// Bytes of the token at the start (RFC 9110 section 5.6.2).
pub(super) fn token_bytes(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)).count()
}
