//! The grammar, token by token, over pieces that end anywhere.

mod strings;

use super::malformed;
use super::nest::Nest;
use super::number::{Literal, Part, end_of_short_number};
use super::scan::behind_white_space;
use super::standing::{Kind, Standing};
use super::string::Escape;
use super::trie::JsonPaths;
use crate::{Cause, Fault, Limits, Sink, Value};

/// Reads one JSON document (RFC 8259), and tells of the values at the paths that are looked for.
///
/// It keeps a value at such a path, or a name, only while a piece ends within it, and a bit for each object and array
/// that is open: [`Limits::value_bytes_max`] and [`Limits::depth_max`] bound both. Of other values it keeps nothing. The
/// paths cost it a few numbers each.
///
/// A string that no path names need not be decodable: a lone surrogate in an escape, or bytes that are no text in the
/// document's encoding, pass in it. In a value that a path names they make it [`Value::Undecodable`]. In a name among
/// which members are looked for they are malformed, since parsers would find different members. A member that is
/// named again is a fault only where a path names it.
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
    /// Behind a comma in an array.
    Element,
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

/// Where it goes on, or nothing where the piece ends or a fault was noted.
type Next = Option<usize>;

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
        let mut piece = Piece { paths, text, sink };
        if let Some(at) = self.read_cut(&mut piece) {
            self.read(&mut piece, at);
        }
        self.before += text.len() as u64;
        self.fault.map_or(Ok(()), Err)
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

    /// Reads from `at` on, where no token is open, to the end of the piece or a fault.
    fn read<S: Sink>(&mut self, piece: &mut Piece<'_, S>, mut at: usize) {
        let bytes = piece.text.as_bytes();
        let mut place = self.place;
        // What often stands in a row is read in one turn.
        while let Some(mut byte) = next_byte(bytes, &mut at) {
            if place == Place::Behind && byte == b',' {
                place = if self.nest.is_object() { Place::Name } else { Place::Element };
                at += 1;
                let Some(behind) = next_byte(bytes, &mut at) else { break };
                byte = behind;
            }
            if matches!(place, Place::Name | Place::FirstName) && byte == b'"' {
                place = Place::Colon;
                let Some(end) = self.read_name(piece, at) else { break };
                at = end;
                let Some(behind) = next_byte(bytes, &mut at) else { break };
                byte = behind;
            }
            if place == Place::Colon && byte == b':' {
                place = Place::Value;
                at += 1;
                let Some(behind) = next_byte(bytes, &mut at) else { break };
                byte = behind;
            }
            match place {
                Place::FirstElement if byte == b']' => place = self.close(piece),
                Place::FirstName if byte == b'}' => place = self.close(piece),
                Place::Behind if byte == if self.nest.is_object() { b'}' } else { b']' } => {
                    place = self.close(piece);
                }
                Place::Value | Place::Element | Place::FirstElement => {
                    if place != Place::Value && self.is_on_a_path() {
                        self.standing.element(piece.paths);
                    }
                    if byte == b'{' || byte == b'[' {
                        let Some(inside) = self.open(piece, byte == b'{', at) else { break };
                        place = inside;
                    } else {
                        place = self.behind_value();
                        let Some(end) = self.read_scalar(piece, byte, at) else { break };
                        at = end;
                        continue;
                    }
                }
                _ => {
                    self.refuse(at, place.expected());
                    break;
                }
            }
            at += 1;
        }
        self.place = place;
    }

    /// Reads what is left of the token in which the last piece ended.
    fn read_cut<S: Sink>(&mut self, piece: &mut Piece<'_, S>) -> Next {
        match std::mem::replace(&mut self.cut, Cut::None) {
            Cut::None => Some(0),
            Cut::Name { escape, at } => self.read_name_on(piece, escape, at, 0),
            Cut::Text(escape) => self.read_text_on(piece, escape, 0),
            Cut::Number(mut part) => {
                let end = part.read_on(piece.text.as_bytes(), 0);
                self.end_number(piece, part, 0, end)
            }
            Cut::Literal(literal) => self.read_literal_on(piece, literal, 0),
        }
    }

    #[cold]
    fn refuse(&mut self, at: usize, what: &'static str) -> Next {
        self.note(malformed(self.before + at as u64, what))
    }

    #[cold]
    fn note(&mut self, fault: Fault) -> Next {
        self.fault = Some(fault);
        None
    }

    /// Whether paths go into the innermost container.
    #[inline]
    fn is_on_a_path(&self) -> bool {
        self.nest.depth() == self.standing.depth()
    }

    #[inline]
    fn behind_value(&self) -> Place {
        if self.nest.depth() == 0 { Place::End } else { Place::Behind }
    }

    /// An object or array begins at `at`. What may come in it, or nothing where that is one level too many.
    #[inline]
    fn open<S: Sink>(&mut self, piece: &mut Piece<'_, S>, is_object: bool, at: usize) -> Option<Place> {
        let at = self.before + at as u64;
        if !self.nest.open(is_object) {
            self.note(Fault { cause: Cause::Limit, at, what: "too many levels" });
            return None;
        }
        if self.standing.is_sought() {
            self.standing.open(piece.paths, is_object, at, piece.sink);
        }
        Some(if is_object { Place::FirstName } else { Place::FirstElement })
    }

    /// The innermost container ends. What may come behind it.
    #[inline]
    fn close<S: Sink>(&mut self, piece: &mut Piece<'_, S>) -> Place {
        if self.is_on_a_path() {
            self.standing.close(piece.paths, piece.sink);
        }
        self.nest.close();
        self.behind_value()
    }

    /// Reads a value that begins with this byte at `at`, and is neither object nor array.
    #[inline]
    fn read_scalar<S: Sink>(&mut self, piece: &mut Piece<'_, S>, byte: u8, at: usize) -> Next {
        if self.standing.is_sought() && matches!(byte, b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') {
            self.standing.begin(piece.paths, Kind::Scalar, piece.sink);
            self.carry.clear();
        }
        match byte {
            b'"' => self.read_text(piece, at + 1),
            b'-' | b'0'..=b'9' => self.read_number(piece, byte, at),
            b't' | b'f' | b'n' => self.read_literal(piece, byte, at),
            _ => self.refuse(at, Place::Value.expected()),
        }
    }

    #[inline]
    fn read_number<S: Sink>(&mut self, piece: &mut Piece<'_, S>, byte: u8, at: usize) -> Next {
        let bytes = piece.text.as_bytes();
        if let Some(end) = end_of_short_number(bytes, at) {
            return if self.standing.is_sought() {
                self.end_number(piece, Part::Integer, at, end)
            } else {
                Some(end)
            };
        }
        let mut part = Part::first(byte)?;
        let end = part.read_on(bytes, at + 1);
        self.end_number(piece, part, at, end)
    }

    /// A number of which `from` is the first byte here ends at `end`, with the piece, with a fault or behind this part.
    fn end_number<S: Sink>(&mut self, piece: &mut Piece<'_, S>, part: Part, from: usize, end: usize) -> Next {
        let byte = piece.text.as_bytes().get(end);
        let text = piece.text.get(from..end).unwrap_or_default();
        if self.standing.is_sought() {
            let is_whole = byte.is_some() && self.carry.text.is_empty();
            let fits = if is_whole {
                self.fits(text)
            } else {
                self.carry.push(text, self.limits.value_bytes_max as usize)
            };
            if !fits {
                self.standing.settle(piece.paths, Value::TooLong, piece.sink);
            }
        }
        let Some(byte) = byte else {
            self.cut = Cut::Number(part);
            return None;
        };
        if !part.may_end() {
            return self.refuse(end, "an unfinished number");
        }
        if self.standing.is_sought() {
            // What cannot stand behind a number is seen before anybody hears of the number.
            if !matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\t' | b'\r') {
                return self.refuse(end, self.behind_value().expected());
            }
            let text = if self.carry.text.is_empty() { text } else { &self.carry.text };
            self.standing.settle(piece.paths, Value::Number(text), piece.sink);
        }
        Some(end)
    }

    #[inline]
    fn read_literal<S: Sink>(&mut self, piece: &mut Piece<'_, S>, byte: u8, at: usize) -> Next {
        let Some((end, value)) = Literal::whole(piece.text.as_bytes(), at) else {
            return self.read_literal_on(piece, Literal::first(byte)?, at + 1);
        };
        if self.standing.is_sought() {
            self.standing.settle(piece.paths, value, piece.sink);
        }
        Some(end)
    }

    /// Reads on in a literal that is cut or wrong.
    #[cold]
    fn read_literal_on<S: Sink>(
        &mut self,
        piece: &mut Piece<'_, S>,
        mut literal: Literal,
        at: usize,
    ) -> Next {
        let end = literal.read_on(piece.text.as_bytes(), at);
        if !literal.left.is_empty() {
            if end < piece.text.len() {
                return self.refuse(end, "neither `true`, `false` nor `null`");
            }
            self.cut = Cut::Literal(literal);
            return None;
        }
        if self.standing.is_sought() {
            self.standing.settle(piece.paths, literal.value, piece.sink);
        }
        Some(end)
    }

    fn fits(&self, value: &str) -> bool {
        value.len() <= self.limits.value_bytes_max as usize
    }
}

/// The next byte that is no white space. Nearly always it is the first one.
#[inline]
fn next_byte(bytes: &[u8], at: &mut usize) -> Option<u8> {
    let byte = *bytes.get(*at)?;
    if byte > b' ' {
        return Some(byte);
    }
    *at = behind_white_space(bytes, *at);
    bytes.get(*at).copied()
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
            Place::Value | Place::FirstElement | Place::Element => "a value is expected",
            Place::FirstName => "a name or `}` is expected",
            Place::Name => "a name is expected",
            Place::Colon => "`:` is expected",
            Place::Behind => "`,` or the end of the object or array is expected",
            Place::End => "more than one value",
        }
    }
}
