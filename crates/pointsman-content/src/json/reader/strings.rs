//! Names and strings: decoded where a path needs them, and passed over where none does.

use super::super::malformed;
use super::super::scan::up_to_string_mark;
use super::super::string::{Decoded, Escape, read_string};
use super::super::trie::JsonPaths;
use super::{Cut, JsonReader, Next, Piece};
use crate::{Cause, Fault, Sink, Value};

impl JsonReader {
    /// Bytes stand here that are no text in the document's encoding. Only a string may have them.
    /// Elsewhere they are `undecodable`, as the reader of the text says.
    pub fn feed_undecodable(
        &mut self,
        paths: &JsonPaths,
        undecodable: Fault,
        sink: &mut impl Sink,
    ) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let is_on_a_path = self.is_on_a_path();
        let escape = match &mut self.cut {
            Cut::Text(escape) => Some(escape),
            Cut::Name { escape, .. } if !is_on_a_path => Some(escape),
            _ => None,
        };
        match escape {
            Some(escape @ (Escape::None | Escape::High(_))) => {
                *escape = Escape::None;
                if self.standing.is_sought() && matches!(self.cut, Cut::Text(_)) {
                    self.standing.settle(paths, Value::Undecodable(Cause::Encoding), sink);
                }
                Ok(())
            }
            _ => Err(*self.fault.insert(undecodable)),
        }
    }

    /// Reads a name whose quote stands at `at`.
    #[inline]
    pub(super) fn read_name<S: Sink>(&mut self, piece: &mut Piece<'_, S>, at: usize) -> Next {
        let (start, end) = (at + 1, up_to_string_mark(piece.text.as_bytes(), at + 1));
        let name_at = self.before + at as u64;
        if piece.text.as_bytes().get(end) != Some(&b'"') {
            self.carry.clear();
            return self.read_name_on(piece, Escape::None, name_at, start);
        }
        if self.is_on_a_path() {
            let name = piece.text.as_bytes().get(start..end).unwrap_or_default();
            if !self.standing.member(piece.paths, name) {
                return self.note(repeated(name_at));
            }
        }
        Some(end + 1)
    }

    /// Reads on in a name that is escaped or cut.
    #[cold]
    pub(super) fn read_name_on<S: Sink>(
        &mut self,
        piece: &mut Piece<'_, S>,
        mut escape: Escape,
        name_at: u64,
        at: usize,
    ) -> Next {
        let is_on_a_path = self.is_on_a_path();
        let name_bytes_max = if is_on_a_path { piece.paths.name_bytes_max() } else { 0 };
        let mut lone_surrogate_at = None;
        let read = read_string(&mut escape, piece.text, at, self.before, |decoded| match decoded {
            Decoded::Text(text) => drop(self.carry.push(text, name_bytes_max)),
            Decoded::LoneSurrogate(at) => lone_surrogate_at = lone_surrogate_at.or(Some(at)),
        });
        match (read, lone_surrogate_at) {
            (_, Some(at)) if is_on_a_path => self.note(malformed(at, "a lone surrogate in a name")),
            (read, _) => self.end_name(piece, read, escape, name_at),
        }
    }

    /// A name was read up to its end, the end of the piece, or a fault.
    fn end_name<S: Sink>(
        &mut self,
        piece: &mut Piece<'_, S>,
        read: Result<Next, Fault>,
        escape: Escape,
        name_at: u64,
    ) -> Next {
        match read {
            Err(fault) => self.note(fault),
            Ok(None) => {
                self.cut = Cut::Name { escape, at: name_at };
                None
            }
            Ok(end) => {
                let is_looked_for = self.is_on_a_path() && !self.carry.is_over;
                if is_looked_for && !self.standing.member(piece.paths, self.carry.text.as_bytes()) {
                    return self.note(repeated(name_at));
                }
                end
            }
        }
    }

    /// Reads a string behind its quote.
    #[inline]
    pub(super) fn read_text<S: Sink>(&mut self, piece: &mut Piece<'_, S>, at: usize) -> Next {
        let end = up_to_string_mark(piece.text.as_bytes(), at);
        if piece.text.as_bytes().get(end) != Some(&b'"') {
            return self.read_text_on(piece, Escape::None, at);
        }
        if self.standing.is_sought() {
            let text = piece.text.get(at..end).unwrap_or_default();
            let value = if self.fits(text) { Value::Text(text) } else { Value::TooLong };
            self.standing.settle(piece.paths, value, piece.sink);
        }
        Some(end + 1)
    }

    /// Reads on in a string that is escaped or cut.
    #[inline(never)]
    pub(super) fn read_text_on<S: Sink>(
        &mut self,
        piece: &mut Piece<'_, S>,
        mut escape: Escape,
        at: usize,
    ) -> Next {
        let value_bytes_max = self.limits.value_bytes_max as usize;
        let read = if self.standing.is_sought() {
            read_string(&mut escape, piece.text, at, self.before, |decoded| {
                if !self.standing.is_sought() {
                    return;
                }
                let unknown = match decoded {
                    Decoded::Text(text) if self.carry.push(text, value_bytes_max) => return,
                    Decoded::Text(_) => Value::TooLong,
                    Decoded::LoneSurrogate(_) => Value::Undecodable(Cause::Malformed),
                };
                self.standing.settle(piece.paths, unknown, piece.sink);
            })
        } else {
            read_string(&mut escape, piece.text, at, self.before, |_| {})
        };
        match read {
            Err(fault) => self.note(fault),
            Ok(None) => {
                self.cut = Cut::Text(escape);
                None
            }
            Ok(end) => {
                if self.standing.is_sought() {
                    self.standing.settle(piece.paths, Value::Text(&self.carry.text), piece.sink);
                }
                end
            }
        }
    }
}

#[cold]
fn repeated(at: u64) -> Fault {
    Fault { cause: Cause::DuplicateKey, at, what: "a member that is looked for stands there twice" }
}
