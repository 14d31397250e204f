//! What Content-Type says of a body, strictly: what one server takes for XML and another for JSON is neither.

use pointsman_http::is_token;
use pointsman_rules::Place;

use super::BodyFault;

/// A body that is read, with what is needed to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MediaType {
    pub(super) reads: Reads,
    /// The `charset` parameter, without quotes.
    pub(super) charset: Option<Vec<u8>>,
    /// The `boundary` parameter, likewise.
    pub(super) boundary: Option<Vec<u8>>,
}

/// What a body is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// `*/xml` and `*+xml`
    Xml,
    /// `*/json` and `*+json`
    Json,
    /// `application/x-www-form-urlencoded`
    Urlencoded,
    /// `multipart/form-data`
    Multipart,
}

impl Reads {
    /// By the value of the only Content-Type line; nothing where it is of another type or malformed.
    pub fn of(value: &[u8]) -> Option<Reads> {
        read(value).ok().flatten().map(|media_type| media_type.reads)
    }

    /// Whether fields of such a body may stand at a place.
    pub fn has(self, place: &Place) -> bool {
        match place {
            Place::Xml(_) => self == Reads::Xml,
            Place::Json(_) => self == Reads::Json,
            Place::Form(_) => matches!(self, Reads::Urlencoded | Reads::Multipart),
            Place::Size => true,
        }
    }
}

const MALFORMED: BodyFaultText = "a malformed media type";
const SEVERAL: BodyFaultText = "several media types";
const REPEATED: BodyFaultText = "a parameter of the media type twice";
const BOUNDARIES: BodyFaultText = "a boundary that servers read differently";
const EXTENDED: BodyFaultText = "`*` in a parameter of the media type";

type BodyFaultText = &'static str;

impl MediaType {
    /// The media type in these values of Content-Type, in the order of their lines; nothing where it is another one or
    /// none. Parameters are read where it is not (RFC 9110 sections 5.6.6 and 8.3.1).
    ///
    /// Who is behind may take the first of several lines or the last, or join them: they are refused, even if they are
    /// alike. So are a parameter that stands there twice, and one that RFC 2231 continues or encodes.
    pub(super) fn read<'a>(
        mut lines: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Option<MediaType>, BodyFault> {
        let Some(value) = lines.next() else { return Ok(None) };
        if lines.next().is_some() {
            return Err(BodyFault::encoding(SEVERAL));
        }
        if value.is_empty() {
            return Ok(None);
        }
        read(value).map_err(BodyFault::encoding)
    }
}

fn read(value: &[u8]) -> Result<Option<MediaType>, BodyFaultText> {
    let (name, parameters) = value.split_at(memchr::memchr(b';', value).unwrap_or(value.len()));
    let name = name.trim_ascii_end();
    let slash = memchr::memchr(b'/', name).ok_or(MALFORMED)?;
    let (kind, subtype) = (&name[..slash], &name[slash + 1..]);
    if !is_token(kind) || !is_token(subtype) {
        return Err(MALFORMED);
    }
    let Some(reads) = reads(kind, subtype) else { return Ok(None) };
    let mut media_type = MediaType { reads, charset: None, boundary: None };
    let mut rest = parameters;
    while let Some(parameter) = Parameter::take(&mut rest)? {
        if parameter.name.contains(&b'*') {
            return Err(EXTENDED);
        }
        let place = if parameter.name.eq_ignore_ascii_case(b"charset") {
            &mut media_type.charset
        } else if parameter.name.eq_ignore_ascii_case(b"boundary") {
            &mut media_type.boundary
        } else {
            continue;
        };
        if place.replace(parameter.value).is_some() {
            return Err(REPEATED);
        }
    }
    if reads == Reads::Multipart && !has_one_boundary(value) {
        return Err(BOUNDARIES);
    }
    Ok(Some(media_type))
}

/// Whether all servers find the same boundary: PHP and formidable take what follows the first `boundary`, wherever it
/// stands, and PHP knows no escapes.
fn has_one_boundary(value: &[u8]) -> bool {
    const NAME: &[u8] = b"boundary";
    let written = memchr::memmem::find(value, NAME);
    let first =
        written.or_else(|| value.windows(NAME.len()).position(|name| name.eq_ignore_ascii_case(NAME)));
    let Some(at) = first else { return true };
    let (before, behind) = (&value[..at], &value[at + NAME.len()..]);
    let starts = before.trim_ascii_end().ends_with(b";") && memchr::memchr(b'"', before).is_none();
    let has_other_case = before.windows(NAME.len()).any(|name| name.eq_ignore_ascii_case(NAME));
    starts && !has_other_case && behind.starts_with(b"=") && memchr::memchr(b'\\', behind).is_none()
}

fn reads(kind: &[u8], subtype: &[u8]) -> Option<Reads> {
    let ends = |suffix: &[u8]| {
        subtype.len() > suffix.len()
            && subtype.get(subtype.len() - suffix.len()..).is_some_and(|end| end.eq_ignore_ascii_case(suffix))
    };
    let is = |one: &[u8], other: &[u8]| kind.eq_ignore_ascii_case(one) && subtype.eq_ignore_ascii_case(other);
    if subtype.eq_ignore_ascii_case(b"xml") || ends(b"+xml") {
        Some(Reads::Xml)
    } else if subtype.eq_ignore_ascii_case(b"json") || ends(b"+json") {
        Some(Reads::Json)
    } else if is(b"application", b"x-www-form-urlencoded") {
        Some(Reads::Urlencoded)
    } else if is(b"multipart", b"form-data") {
        Some(Reads::Multipart)
    } else {
        None
    }
}

/// One `name=value` (RFC 9110 section 5.6.6).
struct Parameter<'a> {
    name: &'a [u8],
    value: Vec<u8>,
}

impl<'a> Parameter<'a> {
    /// Takes the next one, with the `;` before it; nothing at the end.
    fn take(rest: &mut &'a [u8]) -> Result<Option<Parameter<'a>>, BodyFaultText> {
        loop {
            *rest = rest.trim_ascii_start();
            let Some((sign, behind)) = rest.split_first() else { return Ok(None) };
            if *sign != b';' {
                return Err(MALFORMED);
            }
            *rest = behind.trim_ascii_start();
            // Nothing between two `;` is no parameter.
            if !rest.is_empty() && !rest.starts_with(b";") {
                break;
            }
        }
        let (name, behind) = rest.split_at(token_bytes(rest));
        let behind = behind.strip_prefix(b"=").filter(|_| !name.is_empty()).ok_or(MALFORMED)?;
        let value = match behind.strip_prefix(b"\"") {
            Some(quoted) => {
                let (value, behind) = unquoted(quoted).ok_or(MALFORMED)?;
                *rest = behind;
                value
            }
            None => {
                let (value, behind) = behind.split_at(token_bytes(behind));
                if value.is_empty() {
                    return Err(MALFORMED);
                }
                *rest = behind;
                value.to_vec()
            }
        };
        Ok(Some(Parameter { name, value }))
    }
}

fn token_bytes(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !is_token(std::slice::from_ref(byte))).unwrap_or(bytes.len())
}

/// A quoted string behind its first quote, and what follows the last one (RFC 9110 section 5.6.4).
fn unquoted(quoted: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut rest = quoted.iter();
    loop {
        match rest.next()? {
            b'"' => return Some((value, rest.as_slice())),
            b'\\' => value.push(*rest.next()?),
            byte => value.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[&str]) -> String {
        match MediaType::read(lines.iter().map(|line| line.as_bytes())) {
            Err(fault) => format!("{fault} ({})", fault.cause()),
            Ok(None) => "another".to_owned(),
            Ok(Some(MediaType { reads, charset, boundary })) => {
                let parameter = |name: &str, value: Option<Vec<u8>>| {
                    value.map(|value| format!(" {name}={}", value.escape_ascii())).unwrap_or_default()
                };
                format!("{reads:?}{}{}", parameter("charset", charset), parameter("boundary", boundary))
            }
        }
    }

    #[test]
    fn what_a_body_is() {
        for (line, expected) in [
            ("text/xml", "Xml"),
            ("Application/XML;charset=UTF-8", "Xml charset=UTF-8"),
            ("application/soap+xml; charset=\"utf-8\"; action=\"urn:a;b\"", "Xml charset=utf-8"),
            ("image/svg+XML ;", "Xml"),
            ("application/json", "Json"),
            ("application/json ; ;; charset=utf-8 ; x=y", "Json charset=utf-8"),
            ("application/problem+json;CHARSET=\"u\\tf-8\"", "Json charset=utf-8"),
            ("application/x-www-form-urlencoded", "Urlencoded"),
            ("multipart/form-data; boundary=\"a b:c\"", "Multipart boundary=a b:c"),
            ("multipart/form-data", "Multipart"),
            ("", "another"),
            ("text/plain", "another"),
            ("text/plain; whatever", "another"),
            ("application/jsonx", "another"),
            ("application/json-seq", "another"),
            ("application/+json", "another"),
            ("text/x-www-form-urlencoded", "another"),
            ("multipart/mixed; boundary=a", "another"),
            ("json", "a malformed media type (encoding)"),
            ("/json", "a malformed media type (encoding)"),
            ("application /json", "a malformed media type (encoding)"),
            ("application/json, text/xml", "a malformed media type (encoding)"),
            ("application/json charset=utf-8", "a malformed media type (encoding)"),
            ("application/json; charset", "a malformed media type (encoding)"),
            ("application/json; charset =utf-8", "a malformed media type (encoding)"),
            ("application/json; charset=", "a malformed media type (encoding)"),
            ("application/json; charset=\"utf-8", "a malformed media type (encoding)"),
            ("application/json; charset=\"utf-8\"x", "a malformed media type (encoding)"),
            ("application/json; charset=utf-8, x", "a malformed media type (encoding)"),
            ("multipart/form-data; boundary=a/b", "a malformed media type (encoding)"),
            (
                "multipart/form-data; charset=utf-8; boundary=----boundary1",
                "Multipart charset=utf-8 boundary=----boundary1",
            ),
            ("multipart/form-data;Boundary=a", "Multipart boundary=a"),
            (
                "multipart/form-data; xboundary=a; boundary=b",
                "a boundary that servers read differently (encoding)",
            ),
            (
                "multipart/form-data; x=\"; boundary=a\"; boundary=b",
                "a boundary that servers read differently (encoding)",
            ),
            (
                "multipart/form-data; Boundary=\"-boundary=a\"",
                "a boundary that servers read differently (encoding)",
            ),
            ("multipart/form-data; boundary=\"a\\b\"", "a boundary that servers read differently (encoding)"),
            ("text/xml; charset=utf-8; Charset=utf-8", "a parameter of the media type twice (encoding)"),
            ("multipart/form-data; boundary=a; boundary=b", "a parameter of the media type twice (encoding)"),
            ("multipart/form-data; boundary*0=a", "`*` in a parameter of the media type (encoding)"),
        ] {
            assert_eq!(shown(&[line]), expected, "{line}");
        }
        assert_eq!(shown(&[]), "another");
        for lines in [["text/xml", "text/xml"], ["application/json", "text/xml"], ["", "text/xml"]] {
            assert_eq!(shown(&lines), "several media types (encoding)");
        }
    }
}
