//! The walk through a document: text, references and end tags, and the way to all else.
//!
//! Between pieces the reader stands in one [`State`]. What is whole in its piece is mostly read in one go, by ways that
//! change nothing unless they come to its end; what is cut is read state by state.

use super::matcher::Matcher;
use super::name::{self, Name};
use super::namespaces::Namespaces;
use super::paths::XmlPaths;
use super::reference::{Next, Reference};
use super::tag::Tag;
use super::{is_space, scan};
use crate::{Cause, Fault, Limits, Sink};

pub(super) const CHARACTER: &str = "a character that XML does not allow";
const END_TAG: &str = "an end tag that is not that of the element";

/// Where the reader is.
#[derive(Debug)]
pub(super) struct Lexer {
    pub(super) limits: Limits,
    /// Bytes of the text before the piece.
    pub(super) offset: u64,
    pub(super) state: State,
    /// Where the markup or the reference begins that is being read.
    pub(super) mark: u64,
    /// Of the `]` that the piece before ended with, those that may be part of `]]>`.
    pub(super) brackets: usize,
    /// The piece before ended with a carriage return in a value, which stands for a line feed behind it too.
    pub(super) is_behind_return: bool,
    /// The names of the open elements.
    pub(super) names: Vec<u8>,
    pub(super) open: Vec<Open>,
    pub(super) has_root: bool,
    /// The element's name whose tag is being read.
    pub(super) element: Name,
    /// Paths may have to do with that element.
    pub(super) is_looked_at: bool,
    pub(super) tag: Tag,
    /// The name of an attribute or the target of an instruction that is being read.
    pub(super) name: Name,
    /// A target, or the declaration.
    pub(super) carried: Vec<u8>,
    pub(super) namespaces: Namespaces,
    pub(super) matcher: Matcher,
}

/// An open element.
#[derive(Debug)]
pub(super) struct Open {
    /// Where its name begins.
    pub(super) name: usize,
    /// Its end changes nothing but the depth.
    pub(super) is_plain: bool,
}

/// What the next byte is part of.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// Before or behind the root element.
    Outside,
    /// Within the root element.
    Content,
    /// Behind `<`.
    Markup,
    /// Behind `<!`.
    Declared,
    /// Behind `<!-`.
    CommentStart,
    Comment,
    /// Behind a `-` in a comment.
    CommentDash,
    /// Behind `--` in a comment.
    CommentEnd,
    /// Behind so many bytes of `[CDATA[`.
    CdataStart(usize),
    Cdata,
    /// In the name of an instruction.
    Target,
    /// Behind it.
    TargetEnd,
    Instruction,
    /// Behind `?` in an instruction.
    InstructionEnd,
    /// Behind the `?` that follows the name.
    InstructionOver,
    XmlDeclaration,
    /// Behind its `?`.
    XmlDeclarationEnd,
    /// In a start tag's name.
    TagName,
    /// Behind it or an attribute, and whether space is between.
    Tag {
        is_spaced: bool,
    },
    /// Behind the `/` of a start tag.
    TagSlash,
    AttributeName,
    /// Behind an attribute's name.
    AttributeEquals,
    /// Behind its `=`.
    AttributeQuote,
    AttributeValue(u8),
    /// In a reference, in the value with this quote or in text.
    Reference(Reference, Option<u8>),
    /// Behind so many bytes of an end tag's name.
    EndName(usize),
    /// Behind the name.
    EndTag,
}

impl Lexer {
    pub(super) fn new(paths: &XmlPaths, limits: Limits) -> Lexer {
        Lexer {
            limits,
            offset: 0,
            state: State::Outside,
            mark: 0,
            brackets: 0,
            is_behind_return: false,
            names: Vec::new(),
            open: Vec::new(),
            has_root: false,
            element: Name::default(),
            is_looked_at: false,
            tag: Tag::default(),
            name: Name::default(),
            carried: Vec::new(),
            namespaces: Namespaces::new(paths),
            matcher: Matcher::new(paths, limits.value_bytes_max as usize),
        }
    }

    pub(super) fn feed<S: Sink>(&mut self, paths: &XmlPaths, text: &str, sink: &mut S) -> Result<(), Fault> {
        let bytes = text.as_bytes();
        let mut at = 0;
        if self.is_behind_return && !bytes.is_empty() {
            self.is_behind_return = false;
            at = usize::from(bytes.first() == Some(&b'\n'));
        }
        while let Some(&byte) = bytes.get(at) {
            at = match self.state {
                State::Content => self.content(paths, text, at, sink)?,
                State::Outside => self.outside(bytes, at)?,
                State::Markup => self.markup(byte, at)?,
                State::Declared => self.declared(byte, at)?,
                State::CommentStart | State::CommentDash | State::CommentEnd => self.dash(byte, at)?,
                State::Comment => self.comment(bytes, at)?,
                State::CdataStart(matched) => self.cdata_start(byte, at, matched)?,
                State::Cdata => self.cdata(text, at)?,
                State::Target => self.target(text, at)?,
                State::TargetEnd => self.target_end(byte, at)?,
                State::Instruction => self.instruction(bytes, at)?,
                State::InstructionEnd | State::InstructionOver => self.instruction_end(byte, at)?,
                State::XmlDeclaration => self.xml_declaration(bytes, at)?,
                State::XmlDeclarationEnd => self.xml_declaration_end(byte, at)?,
                State::TagName => self.tag_name(paths, text, at)?,
                State::Tag { is_spaced } => self.in_tag(paths, text, at, is_spaced, sink)?,
                State::TagSlash => self.tag_slash(paths, byte, at, sink)?,
                State::AttributeName => self.attribute_name(paths, text, at)?,
                State::AttributeEquals | State::AttributeQuote => self.before_value(bytes, at)?,
                State::AttributeValue(quote) => self.attribute_value(text, at, quote)?,
                State::Reference(reference, quote) => self.reference(byte, at, reference, quote)?,
                State::EndName(matched) => self.end_name(bytes, at, matched)?,
                State::EndTag => self.end_tag(paths, bytes, at, sink)?,
            };
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn finish<S: Sink>(&mut self, paths: &XmlPaths, sink: &mut S) -> Result<(), Fault> {
        match self.state {
            State::Outside if self.has_root => {
                self.matcher.end(paths, sink);
                Ok(())
            }
            _ => Err(self.malformed(0, "a document that ends too early")),
        }
    }

    #[cold]
    pub(super) fn malformed(&self, at: usize, what: &'static str) -> Fault {
        Fault { cause: Cause::Malformed, at: self.offset + at as u64, what }
    }

    #[cold]
    pub(super) fn malformed_markup(&self, what: &'static str) -> Fault {
        Fault { cause: Cause::Malformed, at: self.mark, what }
    }

    pub(super) fn outside_or_content(&self) -> State {
        if self.open.is_empty() { State::Outside } else { State::Content }
    }

    fn outside(&mut self, bytes: &[u8], at: usize) -> Result<usize, Fault> {
        match bytes.iter().skip(at).position(|byte| !is_space(*byte)) {
            None => Ok(bytes.len()),
            Some(spaces) if bytes.get(at + spaces) == Some(&b'<') => {
                self.mark = self.offset + (at + spaces) as u64;
                self.state = State::Markup;
                Ok(at + spaces + 1)
            }
            Some(spaces) => Err(self.malformed(at + spaces, "text outside of the root element")),
        }
    }

    /// [43] content, up to the piece's end or to what takes other states.
    fn content<S: Sink>(
        &mut self,
        paths: &XmlPaths,
        text: &str,
        mut at: usize,
        sink: &mut S,
    ) -> Result<usize, Fault> {
        let bytes = text.as_bytes();
        if self.brackets > 0 {
            at = self.brackets(text, at)?;
        }
        loop {
            let stop = scan::text(bytes, at);
            if stop > at {
                self.capture(text, at, stop);
            }
            match bytes.get(stop) {
                None => return Ok(stop),
                Some(b'<') => {
                    at = self.content_markup(paths, text, stop, sink)?;
                    if !matches!(self.state, State::Content) {
                        return Ok(at);
                    }
                }
                Some(b'&') => {
                    self.mark = self.offset + stop as u64;
                    self.state = State::Reference(Reference::Start, None);
                    return Ok(stop + 1);
                }
                Some(b']') => at = self.brackets(text, stop)?,
                Some(_) => at = self.odd(text, stop)?,
            }
        }
    }

    /// What `<` opens within content, if that is whole; or the state behind it.
    #[inline]
    fn content_markup<S: Sink>(
        &mut self,
        paths: &XmlPaths,
        text: &str,
        at: usize,
        sink: &mut S,
    ) -> Result<usize, Fault> {
        let bytes = text.as_bytes();
        self.mark = self.offset + at as u64;
        if bytes.get(at + 1) == Some(&b'/') {
            let name = self.innermost_name();
            let end = at + 2 + name.len();
            if bytes.get(at + 2..end) == Some(name) && bytes.get(end) == Some(&b'>') {
                self.close(paths, sink);
                return Ok(end + 1);
            }
        } else if let Some((end, prefix_bytes)) =
            name::easy(bytes, at + 1, self.limits.name_bytes_max as usize)
        {
            self.start()?;
            self.element = Name { at: self.mark + 1, start: self.names.len(), prefix_bytes };
            self.names.extend_from_slice(bytes.get(at + 1..end).unwrap_or_default());
            self.named(paths);
            return self.in_tag(paths, text, end, false, sink);
        }
        self.state = State::Markup;
        Ok(at + 1)
    }

    /// What stands behind `<`.
    fn markup(&mut self, byte: u8, at: usize) -> Result<usize, Fault> {
        self.state = match byte {
            b'/' if self.open.is_empty() => {
                return Err(self.malformed_markup("an end tag without an element"));
            }
            b'/' => State::EndName(0),
            b'!' => State::Declared,
            b'?' => {
                self.carried.clear();
                self.name = Name { at: self.mark + 2, start: 0, prefix_bytes: 0 };
                State::Target
            }
            _ => {
                self.start()?;
                self.element = Name { at: self.mark + 1, start: self.names.len(), prefix_bytes: 0 };
                self.state = State::TagName;
                return Ok(at);
            }
        };
        Ok(at + 1)
    }

    fn innermost_name(&self) -> &[u8] {
        self.open.last().and_then(|open| self.names.get(open.name..)).unwrap_or_default()
    }

    fn end_name(&mut self, bytes: &[u8], at: usize, matched: usize) -> Result<usize, Fault> {
        let rest = self.innermost_name().get(matched..).unwrap_or_default();
        let here = bytes.get(at..).unwrap_or_default();
        let count = rest.len().min(here.len());
        if here.get(..count) != rest.get(..count) {
            return Err(self.malformed_markup(END_TAG));
        }
        self.state = if count == rest.len() { State::EndTag } else { State::EndName(matched + count) };
        Ok(at + count)
    }

    fn end_tag<S: Sink>(
        &mut self,
        paths: &XmlPaths,
        bytes: &[u8],
        at: usize,
        sink: &mut S,
    ) -> Result<usize, Fault> {
        let spaces = bytes.iter().skip(at).take_while(|byte| is_space(**byte)).count();
        match bytes.get(at + spaces) {
            None => Ok(bytes.len()),
            Some(b'>') => {
                self.close(paths, sink);
                Ok(at + spaces + 1)
            }
            Some(_) => Err(self.malformed(at + spaces, END_TAG)),
        }
    }

    /// The innermost element ends.
    #[inline]
    pub(super) fn close<S: Sink>(&mut self, paths: &XmlPaths, sink: &mut S) {
        let depth = self.open.len();
        if let Some(open) = self.open.pop() {
            self.names.truncate(open.name);
            if !open.is_plain {
                self.matcher.close(paths, depth, sink);
                self.namespaces.close(depth);
            }
        }
        if depth == 1 {
            self.matcher.end(paths, sink);
        }
        self.state = self.outside_or_content();
    }

    /// Takes text for whoever asks for it.
    #[inline]
    pub(super) fn capture(&mut self, text: &str, from: usize, to: usize) {
        if self.matcher.is_capturing(self.open.len()) {
            self.matcher.capture(text.get(from..to).unwrap_or_default());
        }
    }

    /// Passes over `]`, behind which there is no `>` if they are two or more ([14] CharData).
    fn brackets(&mut self, text: &str, at: usize) -> Result<usize, Fault> {
        let bytes = text.as_bytes();
        let count = bytes.iter().skip(at).take_while(|byte| **byte == b']').count();
        let (end, all) = (at + count, std::mem::take(&mut self.brackets) + count);
        match bytes.get(end) {
            Some(b'>') if all >= 2 => {
                let at = self.offset + end as u64 - 2;
                return Err(Fault { cause: Cause::Malformed, at, what: "`]]>` in text" });
            }
            None => self.brackets = all.min(2),
            Some(_) => {}
        }
        self.capture(text, at, end);
        Ok(end)
    }

    /// Passes over what stops a scan of text and is no markup: a carriage return, or a high character.
    pub(super) fn odd(&mut self, text: &str, at: usize) -> Result<usize, Fault> {
        let bytes = text.as_bytes();
        match bytes.get(at) {
            Some(&scan::HIGH) if !scan::is_noncharacter(bytes, at) => {
                self.capture(text, at, at + 3);
                Ok(at + 3)
            }
            Some(b'\r') => {
                if self.matcher.is_capturing(self.open.len()) {
                    self.matcher.capture("\n");
                    return Ok(self.behind_return(bytes, at));
                }
                Ok(at + 1)
            }
            _ => Err(self.malformed(at, CHARACTER)),
        }
    }

    /// Where text goes on behind a carriage return at `at`, which a line feed behind it belongs to (section 2.11).
    pub(super) fn behind_return(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes.get(at + 1) {
            Some(b'\n') => at + 2,
            Some(_) => at + 1,
            None => {
                self.is_behind_return = true;
                at + 1
            }
        }
    }

    fn reference(
        &mut self,
        byte: u8,
        at: usize,
        reference: Reference,
        quote: Option<u8>,
    ) -> Result<usize, Fault> {
        self.state = match reference.push(byte) {
            Next::More(more) => State::Reference(more, quote),
            Next::Wrong => {
                return Err(self.malformed_markup("a reference to nothing that XML itself has or allows"));
            }
            Next::Whole(character) => {
                let mut utf8 = [0; 4];
                let text: &str = character.encode_utf8(&mut utf8);
                match quote {
                    Some(quote) => {
                        self.append(text)?;
                        State::AttributeValue(quote)
                    }
                    None => {
                        self.capture(text, 0, text.len());
                        State::Content
                    }
                }
            }
        };
        Ok(at + 1)
    }
}
