//! The body of a witness: what it is, what is in it, how long it is, and how that is said.

use pointsman_rules::{Cause, Field, OwnedValue, Place};
use pointsman_view::Reads;

use super::coding::coded;
use super::content::{self, Content};
use super::lines::Lines;
use super::sought::{Sought, Wish, has_something, text};
use super::{Padding, Setting, WRITTEN_BODY_BYTES_MAX};

/// A body and the lines that say what it is.
#[derive(Debug, Default)]
pub(super) struct Body {
    bytes: Vec<u8>,
    /// Values of Content-Type lines that are not sought by their name.
    types: Vec<Vec<u8>>,
    framing: Framing,
    /// What follows `bytes` where it is longer.
    pub(super) rest: Option<Padding>,
}

/// How its length is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Framing {
    /// Not at all: there is none, or a line is sought by its name that says it.
    #[default]
    Silent,
    Length(u64),
    Chunked,
    /// By a Transfer-Encoding line that is sought by its name.
    ChunkedAsSought,
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Xml,
    Json,
    Urlencoded,
    Multipart,
    /// Nothing that is read.
    Other,
}

impl Body {
    /// Nothing where no body can be as is sought.
    pub(super) fn new(sought: &Sought<'_>, setting: &Setting) -> Option<Body> {
        let wishes: Vec<&Wish<'_>> = sought.wishes().filter(|wish| is_of_content(wish)).collect();
        let length = length(sought)?;
        let has_content = wishes.iter().any(|wish| has_something(wish));
        let mut body = Body { types: types_sought(sought)?, ..Body::default() };
        if !has_content && length.unwrap_or_default() == 0 {
            body.frame(sought);
            return Some(body);
        }
        let kind = body.settle_kind(sought, &wishes)?;
        let boundary = boundary(sought, &body.types);
        let content = match has_content {
            true => content::of_wishes(kind, &wishes, &boundary, setting)?,
            false => content::empty(kind, &wishes, &boundary, length),
        };
        if has_content && content.cause == Some(Cause::Encoding) && content.is_empty() {
            body.spoil_charset(sought)?;
        }
        body.fill(content, length, sought.header("content-encoding").unwrap_or_default())?;
        body.frame(sought);
        Some(body)
    }

    /// Whether there is one.
    pub(super) fn is_some(&self) -> bool {
        self.length() > 0
    }

    fn length(&self) -> u64 {
        self.bytes.len() as u64 + self.rest.map_or(0, |rest| rest.bytes)
    }

    /// What it is: by what is sought in it, and otherwise by its media type. A media type is added where none is sought.
    fn settle_kind(&mut self, sought: &Sought<'_>, wishes: &[&Wish<'_>]) -> Option<Kind> {
        let of_line = first_type(sought, &self.types).map(kind_of_type);
        let mut kinds =
            wishes.iter().filter(|wish| has_something(wish)).filter_map(|wish| kind_of_wish(wish));
        let Some(kind) = kinds.next() else {
            if of_line.is_none() && !names_type(sought) {
                let kind = usual_kind(wishes);
                self.types.push(usual_type(kind).to_vec());
                return Some(kind);
            }
            return Some(of_line.unwrap_or(Kind::Other));
        };
        if kinds.any(|other| other != kind) {
            return None;
        }
        match (of_line, kind) {
            (Some(Kind::Multipart), Kind::Urlencoded) => Some(Kind::Multipart),
            (Some(_), _) => Some(kind),
            (None, _) => {
                if !names_type(sought) {
                    self.types.push(usual_type(kind).to_vec());
                }
                Some(kind)
            }
        }
    }

    /// Makes the head say a character encoding that nobody reads.
    fn spoil_charset(&mut self, sought: &Sought<'_>) -> Option<()> {
        if sought.header("content-type").is_none() {
            self.types.first_mut()?.extend_from_slice(b"; charset=x");
        }
        Some(())
    }

    /// Writes the content in its codings, of a length if one is sought.
    fn fill(&mut self, content: Content, length: Option<u64>, codings: &[OwnedValue]) -> Option<()> {
        let is_written = length.is_none_or(|length| length <= WRITTEN_BODY_BYTES_MAX as u64);
        let in_codings = match length.map(usize::try_from) {
            None => coded(&content.padded(0), codings),
            Some(Ok(length)) if is_written => content.coded_as_long(length, codings),
            Some(_) => None,
        };
        if let Some(bytes) = in_codings.filter(|bytes| bytes.len() <= WRITTEN_BODY_BYTES_MAX) {
            self.bytes = bytes;
            return Some(());
        }
        let bytes = content.before.len() + content.behind.len();
        let missing = length.unwrap_or(bytes as u64).checked_sub(bytes as u64)?;
        if is_written {
            self.bytes = content.padded(usize::try_from(missing).ok()?);
        } else {
            // What is wrong with it stands before more of the same.
            self.bytes = content.padded(0);
            self.rest = Some(Padding { byte: content.padding, bytes: missing });
        }
        (self.bytes.len() <= WRITTEN_BODY_BYTES_MAX).then_some(())
    }

    fn frame(&mut self, sought: &Sought<'_>) {
        let sought_codings = sought.header("transfer-encoding");
        let is_sought = sought_codings.is_some_and(|lines| !lines.is_empty());
        let names_length = sought.header("content-length").is_some_and(|lines| !lines.is_empty());
        self.framing = match sought.of(&Field::ContentLength) {
            _ if is_sought => Framing::ChunkedAsSought,
            _ if names_length => Framing::Silent,
            Some([OwnedValue::Integer(length), ..]) => Framing::Length(*length),
            _ if !self.is_some() => Framing::Silent,
            // Absent, by either name.
            Some(_) => Framing::Chunked,
            None if sought.header("content-length").is_some() => Framing::Chunked,
            None => Framing::Length(self.length()),
        };
    }

    pub(super) fn add_lines(&self, lines: &mut Lines) {
        for value in &self.types {
            lines.add("content-type", value);
        }
        match self.framing {
            Framing::Length(bytes) => lines.add("content-length", bytes.to_string().as_bytes()),
            Framing::Chunked => lines.add("transfer-encoding", b"chunked"),
            Framing::Silent | Framing::ChunkedAsSought => {}
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if !matches!(self.framing, Framing::Chunked | Framing::ChunkedAsSought) {
            out.extend_from_slice(&self.bytes);
            return;
        }
        if self.is_some() {
            out.extend_from_slice(format!("{:x}\r\n", self.length()).as_bytes());
            out.extend_from_slice(&self.bytes);
            if self.rest.is_some() {
                return;
            }
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
    }
}

fn is_of_content(wish: &Wish<'_>) -> bool {
    wish.place().is_some_and(|place| !matches!(place, Place::Size))
}

/// Bytes that the body is to have; the inner nothing is any number.
fn length(sought: &Sought<'_>) -> Option<Option<u64>> {
    let is_size = |wish: &&Wish<'_>| matches!(wish.place(), Some(Place::Size));
    let size = sought.wishes().find(is_size).map(|wish| &*wish.values.known);
    let announced = sought.header("content-length").and_then(<[_]>::first);
    match (size, sought.of(&Field::ContentLength), announced) {
        (Some([OwnedValue::Integer(size)]), ..) if *size > 0 => Some(Some(*size)),
        (Some([]), ..) => Some(Some(0)),
        (Some(_), ..) => None,
        (None, Some([OwnedValue::Integer(length)]), _) => Some(Some(*length)),
        (None, _, Some(line)) => std::str::from_utf8(text(line)?).ok()?.parse().ok().map(Some),
        (None, ..) => Some(None),
    }
}

/// The values of the Content-Type lines to be added.
fn types_sought(sought: &Sought<'_>) -> Option<Vec<Vec<u8>>> {
    if sought.header("content-type").is_some() {
        return Some(Vec::new());
    }
    let types = sought.of(&Field::ContentType).unwrap_or_default();
    let line = |value: &OwnedValue| {
        let mut line = text(value)?.to_vec();
        if kind_of_type(&line) == Kind::Multipart {
            line.extend_from_slice(b"; boundary=b");
        }
        pointsman_http::is_field_value(&line).then_some(line)
    };
    types.iter().map(line).collect()
}

/// Whether the media type is sought, be it that there is none.
fn names_type(sought: &Sought<'_>) -> bool {
    sought.header("content-type").is_some() || sought.of(&Field::ContentType).is_some()
}

fn first_type<'a>(sought: &Sought<'a>, types: &'a [Vec<u8>]) -> Option<&'a [u8]> {
    let by_name = sought.header("content-type").unwrap_or_default();
    types.first().map(Vec::as_slice).or_else(|| by_name.first().and_then(text))
}

/// The boundary that the media type names.
fn boundary(sought: &Sought<'_>, types: &[Vec<u8>]) -> Vec<u8> {
    const NAME: &[u8] = b"boundary=";
    let line = first_type(sought, types).unwrap_or_default();
    let at = line.windows(NAME.len()).position(|window| window.eq_ignore_ascii_case(NAME));
    let value = at.and_then(|at| line.get(at + NAME.len()..)).unwrap_or_default();
    let value = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    value.iter().copied().filter(|byte| *byte != b'"').collect()
}

fn kind_of_type(line: &[u8]) -> Kind {
    match Reads::of(line) {
        Some(Reads::Xml) => Kind::Xml,
        Some(Reads::Json) => Kind::Json,
        Some(Reads::Urlencoded) => Kind::Urlencoded,
        Some(Reads::Multipart) => Kind::Multipart,
        None => Kind::Other,
    }
}

fn kind_of_wish(wish: &Wish<'_>) -> Option<Kind> {
    match wish.place()? {
        Place::Xml(_) => Some(Kind::Xml),
        Place::Json(_) => Some(Kind::Json),
        Place::Form(_) => Some(Kind::Urlencoded),
        Place::Size => None,
    }
}

/// The kind of a body that nothing is sought in but its length. Fields of other kinds are absent by its head.
fn usual_kind(wishes: &[&Wish<'_>]) -> Kind {
    let is_sought = |kind: &Kind| wishes.iter().any(|wish| kind_of_wish(wish) == Some(*kind));
    [Kind::Urlencoded, Kind::Json, Kind::Xml]
        .into_iter()
        .find(|kind| !is_sought(kind))
        .unwrap_or(Kind::Urlencoded)
}

fn usual_type(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Xml => b"application/xml",
        Kind::Json => b"application/json",
        Kind::Urlencoded => b"application/x-www-form-urlencoded",
        Kind::Multipart => b"multipart/form-data; boundary=b",
        Kind::Other => b"application/octet-stream",
    }
}
