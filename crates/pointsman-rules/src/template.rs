//! Texts with fields in them, and what may not come out of them.

use std::fmt;
use std::ops::ControlFlow;

use crate::subject::TextRoom;
use crate::{Field, Piece, Subject, Template};

/// A substituted value holds a control character: no header may hold one but TAB (RFC 9110 section 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForbiddenByte(pub u8);

impl fmt::Display for ForbiddenByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a substituted value holds the byte {:#04x}", self.0)
    }
}

impl std::error::Error for ForbiddenByte {}

impl Template {
    /// Appends the text to `out`, with each field's first value in its place.
    ///
    /// # Errors
    /// [`ForbiddenByte`] when a value holds a control character other than TAB; `out` is then as it was. An
    /// answer's body could hold one, and is not worth a rule of its own.
    pub fn render<S: Subject + ?Sized>(&self, subject: &S, out: &mut Vec<u8>) -> Result<(), ForbiddenByte> {
        let start = out.len();
        for piece in &self.0 {
            let mut forbidden = None;
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Field(_) | Piece::Group(_) => piece.with_value(subject, |value| {
                    forbidden = value.iter().find(|byte| byte.is_ascii_control() && **byte != b'\t').copied();
                    out.extend_from_slice(value);
                }),
            }
            if let Some(byte) = forbidden {
                out.truncate(start);
                return Err(ForbiddenByte(byte));
            }
        }
        Ok(())
    }

    /// The same for a Location: bytes of a value that may not stand in a URI are percent-encoded,
    /// control characters among them.
    ///
    /// Only a template that itself starts with two slashes gives a Location that does: a value such
    /// as `//evil.example/` would otherwise name another host (RFC 3986 section 4.2).
    pub fn render_location<S: Subject + ?Sized>(&self, subject: &S, out: &mut Vec<u8>) {
        let start = out.len();
        for (at, piece) in self.0.iter().enumerate() {
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Field(_) | Piece::Group(_) => {
                    let before = out.len();
                    piece.with_value(subject, |value| percent_encode(value, out));
                    if out.len() == before && matches!(piece, Piece::Field(Field::Query)) {
                        self.take_back_sign(at, start, out);
                    }
                }
            }
        }
        let names_host = matches!(self.0.first(), Some(Piece::Literal(start)) if start.starts_with(b"//"));
        if !names_host {
            let slashes = out[start..].iter().take_while(|byte| **byte == b'/').count();
            out.drain(start..start + slashes.saturating_sub(1));
        }
    }
}

impl Template {
    /// Takes away the `?` or `&` that introduces a query which is absent, where nothing follows that needs it.
    fn take_back_sign(&self, at: usize, start: usize, out: &mut Vec<u8>) {
        let is_last = match self.0.get(at + 1) {
            None => true,
            Some(Piece::Literal(next)) => next.starts_with(b"#"),
            Some(_) => false,
        };
        if is_last && out[start..].ends_with(b"?") || out[start..].ends_with(b"&") {
            out.pop();
        }
    }
}

impl Piece {
    /// Shows the value that a request puts in its place; nothing where it is absent.
    fn with_value<S: Subject + ?Sized>(&self, subject: &S, see: impl FnOnce(&[u8])) {
        match self {
            Piece::Literal(bytes) => see(bytes),
            Piece::Field(field) => with_first_value(field, subject, see),
            Piece::Group(group) => group.with_text(subject, see),
        }
    }

    /// The fields that its value comes from.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        let (field, group) = match self {
            Piece::Literal(_) => (None, None),
            Piece::Field(field) => (Some(field), None),
            Piece::Group(group) => (None, Some(group)),
        };
        field.into_iter().chain(group.into_iter().flat_map(|group| group.fields()))
    }
}

fn with_first_value<S: Subject + ?Sized>(field: &Field, subject: &S, see: impl FnOnce(&[u8])) {
    let mut see = Some(see);
    subject.each(field, &mut |value| {
        let mut room = TextRoom::default();
        if let Some(see) = see.take() {
            see(value.text(&mut room));
        }
        ControlFlow::Break(())
    });
}

/// Keeps what a URI may hold as it is, percent-codes and reserved characters among it, so that a
/// value that is (part of) a URI stays the same one.
fn percent_encode(value: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for (position, byte) in value.iter().enumerate() {
        let stands = match byte {
            b'%' => is_percent_code(&value[position..]),
            _ => stands_in_uri(*byte),
        };
        if stands {
            out.push(*byte);
        } else {
            out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// Whether `text` starts with `%` and two hex digits.
pub(crate) fn is_percent_code(text: &[u8]) -> bool {
    matches!(text, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// Unreserved and reserved characters (RFC 3986 section 2).
fn stands_in_uri(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::MadeUpSubject;
    use crate::subject::OwnedValue;

    fn template() -> Template {
        Template(vec![
            Piece::Literal(b"<"[..].into()),
            Piece::Field(Field::Host),
            Piece::Literal(b"> \n"[..].into()),
        ])
    }

    fn check(value: &str, plain: Result<&str, ForbiddenByte>, location: &str) {
        let subject = MadeUpSubject::of(Field::Host, OwnedValue::Text(value.as_bytes().into()));
        let (mut header, mut uri) = (b"kept".to_vec(), b"kept".to_vec());
        let expected = |value: Result<&str, _>| {
            format!("kept{}", value.map(|value| format!("<{value}> \n")).unwrap_or_default()).into_bytes()
        };
        assert_eq!(template().render(&subject, &mut header), plain.map(|_| ()), "{value:?}");
        assert_eq!(header, expected(plain));
        template().render_location(&subject, &mut uri);
        assert_eq!(uri, expected(Ok(location)));
    }

    #[test]
    fn values_stand_in_their_places() {
        check("a.example", Ok("a.example"), "a.example");
        check("/a%2Fb?c=d&e#f[1]'", Ok("/a%2Fb?c=d&e#f[1]'"), "/a%2Fb?c=d&e#f[1]'");
        check("a b\"<%zz%4", Ok("a b\"<%zz%4"), "a%20b%22%3C%25zz%254");
        check("\u{e9}\t\u{80}", Ok("\u{e9}\t\u{80}"), "%C3%A9%09%C2%80");
    }

    #[test]
    fn a_location_names_no_other_host_by_its_path() {
        let location = |path: &str, template: Template| {
            let subject = MadeUpSubject::of(Field::Path, OwnedValue::Text(path.as_bytes().into()));
            let mut out = b"Location: ".to_vec();
            template.render_location(&subject, &mut out);
            String::from_utf8(out).expect("ASCII")
        };
        let bare = || Template(vec![Piece::Field(Field::Path)]);
        assert_eq!(location("//evil.example/", bare()), "Location: /evil.example/");
        assert_eq!(location("/a//b", bare()), "Location: /a//b");
        let slash = vec![Piece::Literal(b"/"[..].into()), Piece::Field(Field::Path)];
        assert_eq!(location("/evil.example", Template(slash)), "Location: /evil.example");
        let literal = vec![Piece::Literal(b"//cdn.example"[..].into()), Piece::Field(Field::Path)];
        assert_eq!(location("/a", Template(literal)), "Location: //cdn.example/a");
    }

    #[test]
    fn control_characters_are_refused_or_encoded() {
        for byte in (0..=31).chain([127]).filter(|byte| *byte != b'\t') {
            let value = format!("a{}b", byte as char);
            check(&value, Err(ForbiddenByte(byte)), &format!("a%{byte:02X}b"));
        }
    }

    #[test]
    fn only_the_first_value_counts_and_none_is_nothing() {
        let two = MadeUpSubject {
            fields: vec![(Field::Host, vec![OwnedValue::Integer(7), OwnedValue::Text((*b"\n").into())])],
            unsettled: vec![],
        };
        let mut out = Vec::new();
        assert_eq!(template().render(&two, &mut out), Ok(()));
        assert_eq!(out, b"<7> \n");
        out.clear();
        assert_eq!(template().render(&MadeUpSubject::default(), &mut out), Ok(()));
        assert_eq!(out, b"<> \n");
    }

    #[test]
    fn every_byte_is_safe_in_a_location() {
        for byte in 1..=255u8 {
            let mut out = Vec::new();
            percent_encode(&[byte], &mut out);
            assert!(out.iter().all(|byte| stands_in_uri(*byte) || *byte == b'%'), "{byte}");
            assert!(matches!(out[..], [_] | [b'%', _, _]));
        }
    }
}
