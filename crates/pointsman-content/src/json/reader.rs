//! The grammar, token by token, over pieces that end anywhere.

use super::malformed;
use super::nest::Nest;
use super::number::{Literal, Part};
use super::scan::{behind_white_space, up_to_string_mark};
use super::standing::{Kind, Standing};
use super::string::{Escape, read_string};
use super::trie::JsonPaths;
use crate::{Cause, Fault, Limits, Sink, Value};

/// Reads one JSON document (RFC 8259), and tells of the values at the paths that are looked for.
///
/// It keeps a value at such a path, or a name, only while a piece ends within it, and a bit for each object and array
/// that is open: [`Limits::value_bytes_max`] and [`Limits::depth_max`] bound both. Of other values it keeps nothing.
///
/// A lone surrogate in an escape is malformed everywhere; a member that is named again only where a path names it.
#[derive(Debug)]
pub struct JsonReader {
    limits: Limits,
    /// Bytes of the document before the piece that is read.
    before: u64,
    place: Place,
    cut: Cut,
    nest: Nest,
    standing: Standing,
    has_begun: bool,
    carry: Carry,
    fault: Option<Fault>,
}

/// What may come next, perhaps behind white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Value,
    /// Behind `[`: an element or the end.
    FirstElement,
    /// Behind `{`: a name or the end.
    FirstName,
    /// Behind a comma in an object.
    Name,
    Colon,
    /// Behind a value in an object or array: a comma or the end.
    Behind,
    /// Behind the top-level value.
    End,
}

/// The token in which the last piece ended. What comes behind it is the reader's place already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    None,
    /// A member's name, whose quote stands `at` there.
    Name {
        escape: Escape,
        at: u64,
    },
    Text(Escape),
    Number(Part),
    Literal(Literal),
}

/// What came of a name or value that is not whole, decoded.
#[derive(Debug, Default)]
struct Carry {
    text: String,
    is_over: bool,
}

/// What a reader is fed, and who hears of it.
struct Piece<'a, S> {
    paths: &'a JsonPaths,
    text: &'a str,
    sink: &'a mut S,
}

/// Where it goes on, or nothing where the piece ends.
type Next = Result<Option<usize>, Fault>;

impl JsonReader {
    /// Before the first byte.
    pub fn new(limits: Limits) -> JsonReader {
        JsonReader {
            limits,
            before: 0,
            place: Place::Value,
            cut: Cut::None,
            nest: Nest::new(limits.depth_max),
            standing: Standing::default(),
            has_begun: false,
            carry: Carry::default(),
            fault: None,
        }
    }

    /// Reads on. The paths are the same for all pieces of a document; the first may not begin with a byte order mark.
    pub fn feed(&mut self, paths: &JsonPaths, text: &str, sink: &mut impl Sink) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if !self.has_begun {
            self.has_begun = true;
            self.standing = Standing::at_top(paths);
        }
        let read = self.read(&mut Piece { paths, text, sink });
        self.before += text.len() as u64;
        read.inspect_err(|fault| self.fault = Some(*fault))
    }

    /// The document ends here.
    pub fn finish(&mut self, paths: &JsonPaths, sink: &mut impl Sink) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        // Only here can a number end without a byte behind it.
        if let Cut::Number(part) = self.cut
            && part.may_end()
            && self.place == Place::End
        {
            self.cut = Cut::None;
            if self.standing.is_sought() {
                self.standing.settle(paths, Value::Number(&self.carry.text), sink);
            }
        }
        if self.place == Place::End && self.cut == Cut::None {
            return Ok(());
        }
        let is_empty = self.place == Place::Value && self.nest.depth() == 0;
        let what = if is_empty { "no value" } else { "the document ends within a value" };
        let fault = malformed(self.before, what);
        self.fault = Some(fault);
        Err(fault)
    }

    fn read<S: Sink>(&mut self, piece: &mut Piece<'_, S>) -> Result<(), Fault> {
        let bytes = piece.text.as_bytes();
        let mut next = self.read_cut(piece)?;
        while let Some(at) = next {
            let at = behind_white_space(bytes, at);
            let Some(&byte) = bytes.get(at) else { return Ok(()) };
            next = match (self.place, byte) {
                (Place::Name | Place::FirstName, b'"') => self.read_name(piece, at)?,
                (Place::Colon, b':') => {
                    self.place = Place::Value;
                    Some(at + 1)
                }
                (Place::Behind, b',') => {
                    self.place = if self.nest.is_object() { Place::Name } else { self.next_element(piece) };
                    Some(at + 1)
                }
                (Place::Behind, b'}') if self.nest.is_object() => self.close(piece, at),
                (Place::Behind, b']') if !self.nest.is_object() => self.close(piece, at),
                (Place::FirstName, b'}') | (Place::FirstElement, b']') => self.close(piece, at),
                (Place::FirstElement, _) => {
                    self.next_element(piece);
                    self.read_value(piece, byte, at)?
                }
                (Place::Value, _) => self.read_value(piece, byte, at)?,
                (place, _) => return Err(malformed(self.before + at as u64, place.expected())),
            };
        }
        Ok(())
    }

    /// Reads what is left of the token in which the last piece ended.
    fn read_cut<S: Sink>(&mut self, piece: &mut Piece<'_, S>) -> Next {
        match std::mem::replace(&mut self.cut, Cut::None) {
            Cut::None => Ok(Some(0)),
            Cut::Name { escape, at } => self.read_name_on(piece, escape, at, 0),
            Cut::Text(escape) => self.read_text_on(piece, escape, 0),
            Cut::Number(part) => self.read_number_on(piece, part, 0, 0),
            Cut::Literal(literal) => self.read_literal_on(piece, literal, 0),
        }
    }

    /// Whether paths go into the innermost container.
    #[inline]
    fn is_on_a_path(&self) -> bool {
        self.nest.depth() == self.standing.depth()
    }

    #[inline]
    fn next_element<S>(&mut self, piece: &Piece<'_, S>) -> Place {
        if self.is_on_a_path() {
            self.standing.element(piece.paths);
        }
        Place::Value
    }

    #[inline]
    fn close<S: Sink>(&mut self, piece: &mut Piece<'_, S>, at: usize) -> Option<usize> {
        if self.is_on_a_path() {
            self.standing.close(piece.paths, piece.sink);
        }
        self.nest.close();
        self.place = self.behind_value();
        Some(at + 1)
    }

    #[inline]
    fn behind_value(&self) -> Place {
        if self.nest.depth() == 0 { Place::End } else { Place::Behind }
    }

    /// Reads a name whose quote stands here.
    #[inline]
    fn read_name<S: Sink>(&mut self, piece: &mut Piece<'_, S>, at: usize) -> Next {
        self.place = Place::Colon;
        let (start, end) = (at + 1, up_to_string_mark(piece.text.as_bytes(), at + 1));
        let name_at = self.before + at as u64;
        if piece.text.as_bytes().get(end) != Some(&b'"') {
            self.carry.clear();
            return self.read_name_on(piece, Escape::None, name_at, start);
        }
        if self.is_on_a_path() {
            let name = piece.text.get(start..end).unwrap_or_default();
            if !self.standing.member(piece.paths, name) {
                return Err(repeated(name_at));
            }
        }
        Ok(Some(end + 1))
    }

    #[cold]
    fn read_name_on<S: Sink>(
        &mut self,
        piece: &mut Piece<'_, S>,
        mut escape: Escape,
        name_at: u64,
        at: usize,
    ) -> Next {
        let name_bytes_max = if self.is_on_a_path() { piece.paths.name_bytes_max() } else { 0 };
        let end = read_string(&mut escape, piece.text, at, self.before, |decoded| {
            self.carry.push(decoded, name_bytes_max);
        })?;
        if end.is_none() {
            self.cut = Cut::Name { escape, at: name_at };
        } else if self.is_on_a_path()
            && !self.carry.is_over
            && !self.standing.member(piece.paths, &self.carry.text)
        {
            return Err(repeated(name_at));
        }
        Ok(end)
    }

    #[inline]
    fn read_value<S: Sink>(&mut self, piece: &mut Piece<'_, S>, byte: u8, at: usize) -> Next {
        let is_object = byte == b'{';
        if is_object || byte == b'[' {
            let open_at = self.before + at as u64;
            if !self.nest.open(is_object) {
                return Err(Fault { cause: Cause::Limit, at: open_at, what: "too many levels" });
            }
            if self.standing.is_sought() {
                self.standing.open(piece.paths, is_object, open_at, piece.sink);
            }
            self.place = if is_object { Place::FirstName } else { Place::FirstElement };
            return Ok(Some(at + 1));
        }
        let (part, literal) = (Part::first(byte), Literal::first(byte));
        if byte != b'"' && part.is_none() && literal.is_none() {
            return Err(malformed(self.before + at as u64, Place::Value.expected()));
        }
        self.place = self.behind_value();
        if self.standing.is_sought() {
            self.standing.begin(piece.paths, Kind::Scalar, piece.sink);
            self.carry.clear();
        }
        match (part, literal) {
            (Some(part), _) => self.read_number_on(piece, part, at, at + 1),
            (_, Some(literal)) => self.read_literal_on(piece, literal, at + 1),
            _ => self.read_text(piece, at + 1),
        }
    }

    #[inline]
    fn read_text<S: Sink>(&mut self, piece: &mut Piece<'_, S>, at: usize) -> Next {
        let end = up_to_string_mark(piece.text.as_bytes(), at);
        if piece.text.as_bytes().get(end) != Some(&b'"') {
            return self.read_text_on(piece, Escape::None, at);
        }
        if self.standing.is_sought() {
            let text = piece.text.get(at..end).unwrap_or_default();
            let value = if self.fits(text) { Value::Text(text) } else { Value::TooLong };
            self.standing.settle(piece.paths, value, piece.sink);
        }
        Ok(Some(end + 1))
    }

    #[cold]
    fn read_text_on<S: Sink>(&mut self, piece: &mut Piece<'_, S>, mut escape: Escape, at: usize) -> Next {
        let value_bytes_max = self.limits.value_bytes_max as usize;
        let end = read_string(&mut escape, piece.text, at, self.before, |decoded| {
            if self.standing.is_sought() && !self.carry.push(decoded, value_bytes_max) {
                self.standing.settle(piece.paths, Value::TooLong, piece.sink);
            }
        })?;
        if end.is_none() {
            self.cut = Cut::Text(escape);
        } else if self.standing.is_sought() {
            self.standing.settle(piece.paths, Value::Text(&self.carry.text), piece.sink);
        }
        Ok(end)
    }

    /// Reads a number of which `from` is the first byte here, on from `at`.
    #[inline]
    fn read_number_on<S: Sink>(
        &mut self,
        piece: &mut Piece<'_, S>,
        mut part: Part,
        from: usize,
        at: usize,
    ) -> Next {
        let bytes = piece.text.as_bytes();
        let end = part.read_on(bytes, at);
        let byte = bytes.get(end);
        if self.standing.is_sought() {
            let text = piece.text.get(from..end).unwrap_or_default();
            let is_whole = byte.is_some() && self.carry.text.is_empty();
            if if is_whole {
                !self.fits(text)
            } else {
                !self.carry.push(text, self.limits.value_bytes_max as usize)
            } {
                self.standing.settle(piece.paths, Value::TooLong, piece.sink);
            }
        }
        let Some(byte) = byte else {
            self.cut = Cut::Number(part);
            return Ok(None);
        };
        // What cannot end here is seen before anybody hears of a number.
        if !part.may_end() {
            return Err(malformed(self.before + end as u64, "an unfinished number"));
        }
        if self.standing.is_sought() && !b" \t\n\r,]}".contains(byte) {
            return Err(malformed(self.before + end as u64, self.place.expected()));
        }
        if self.standing.is_sought() {
            let text = piece.text.get(from..end).unwrap_or_default();
            let text = if self.carry.text.is_empty() { text } else { &self.carry.text };
            self.standing.settle(piece.paths, Value::Number(text), piece.sink);
        }
        Ok(Some(end))
    }

    #[inline]
    fn read_literal_on<S: Sink>(
        &mut self,
        piece: &mut Piece<'_, S>,
        mut literal: Literal,
        at: usize,
    ) -> Next {
        let end = literal.read_on(piece.text.as_bytes(), at);
        if !literal.left.is_empty() {
            if end < piece.text.len() {
                return Err(malformed(self.before + end as u64, "neither `true`, `false` nor `null`"));
            }
            self.cut = Cut::Literal(literal);
            return Ok(None);
        }
        if self.standing.is_sought() {
            self.standing.settle(piece.paths, literal.value, piece.sink);
        }
        Ok(Some(end))
    }

    fn fits(&self, value: &str) -> bool {
        value.len() <= self.limits.value_bytes_max as usize
    }
}

impl Carry {
    fn clear(&mut self) {
        self.text.clear();
        self.is_over = false;
    }

    /// Whether it is still within so many bytes. What is over is forgotten.
    fn push(&mut self, decoded: &str, bytes_max: usize) -> bool {
        self.is_over |= self.text.len() + decoded.len() > bytes_max;
        if !self.is_over {
            self.text.push_str(decoded);
        }
        !self.is_over
    }
}

impl Place {
    /// What is said of anything else.
    fn expected(self) -> &'static str {
        match self {
            Place::Value | Place::FirstElement => "a value is expected",
            Place::FirstName => "a name or `}` is expected",
            Place::Name => "a name is expected",
            Place::Colon => "`:` is expected",
            Place::Behind => "`,` or the end of the object or array is expected",
            Place::End => "more than one value",
        }
    }
}

#[cold]
fn repeated(at: u64) -> Fault {
    Fault { cause: Cause::DuplicateKey, at, what: "a member that is looked for stands there twice" }
}
