//! Start tags: the element's name, its attributes, and what the tag's end settles.

use super::lexer::{CHARACTER, Lexer, Open, State};
use super::matcher::Opened;
use super::name::{self, Name, NameFault};
use super::namespaces::Namespace;
use super::paths::XmlPaths;
use super::reference::Reference;
use super::tag::{TagFault, Wanted};
use super::{is_space, scan};
use crate::{Cause, Fault, Sink};

impl Lexer {
    /// An element begins.
    #[inline]
    pub(super) fn start(&mut self) -> Result<(), Fault> {
        if self.open.is_empty() && self.has_root {
            return Err(self.malformed_markup("a second root element"));
        }
        if self.open.len() >= self.limits.depth_max as usize {
            let what = "elements too deep within each other";
            return Err(Fault { cause: Cause::Limit, at: self.mark, what });
        }
        self.has_root = true;
        Ok(())
    }

    pub(super) fn tag_name(&mut self, paths: &XmlPaths, text: &str, at: usize) -> Result<usize, Fault> {
        let bytes_max = self.limits.name_bytes_max as usize;
        let end = self
            .element
            .go_on(&mut self.names, text, at, bytes_max)
            .map_err(|fault| self.named_wrong(fault))?;
        if let Some(end) = end {
            self.named(paths);
            return Ok(end);
        }
        Ok(text.len())
    }

    pub(super) fn named_wrong(&self, (cause, at, what): NameFault) -> Fault {
        Fault { cause, at: self.offset + at as u64, what }
    }

    /// The element's name is whole: it is known what it may be.
    #[inline]
    pub(super) fn named(&mut self, paths: &XmlPaths) {
        let depth = self.open.len();
        let name = self.names.get(self.element.start..).unwrap_or_default();
        self.is_looked_at = self.matcher.look_up(paths, depth, self.element.local(name));
        self.open.push(Open { name: self.element.start, is_plain: true });
        self.tag.clear();
        self.state = State::Tag { is_spaced: false };
    }

    /// What stands behind the name or an attribute of a start tag.
    pub(super) fn in_tag<S: Sink>(
        &mut self,
        paths: &XmlPaths,
        text: &str,
        mut at: usize,
        mut is_spaced: bool,
        sink: &mut S,
    ) -> Result<usize, Fault> {
        let bytes = text.as_bytes();
        loop {
            match bytes.get(at) {
                None => {
                    self.state = State::Tag { is_spaced };
                    return Ok(at);
                }
                Some(b'>') => {
                    self.opened(paths, sink)?;
                    return Ok(at + 1);
                }
                Some(b'/') if bytes.get(at + 1) == Some(&b'>') => {
                    self.opened(paths, sink)?;
                    self.close(paths, sink);
                    return Ok(at + 2);
                }
                Some(b'/') => {
                    self.state = State::TagSlash;
                    return Ok(at + 1);
                }
                Some(byte) if is_space(*byte) => {
                    is_spaced = true;
                    at += 1;
                }
                Some(_) => {
                    self.attribute(at, is_spaced)?;
                    match self.easy_attribute(paths, text, at)? {
                        Some(end) => (at, is_spaced) = (end, false),
                        None => {
                            let (at_name, start) = (self.offset + at as u64, self.tag.names.len());
                            self.name = Name { at: at_name, start, prefix_bytes: 0 };
                            self.state = State::AttributeName;
                            return Ok(at);
                        }
                    }
                }
            }
        }
    }

    /// An attribute begins.
    fn attribute(&self, at: usize, is_spaced: bool) -> Result<(), Fault> {
        if !is_spaced {
            return Err(self.malformed(at, "an attribute without space before it, or no name"));
        }
        if self.tag.attributes.len() >= self.limits.attributes_max as usize {
            return Err(Fault {
                cause: Cause::Limit,
                at: self.offset + at as u64,
                what: "too many attributes",
            });
        }
        Ok(())
    }

    /// Takes a whole attribute that is written as nearly all are: its name in ASCII, nothing around `=`, and a value
    /// without references, controls and high characters.
    #[inline]
    fn easy_attribute(&mut self, paths: &XmlPaths, text: &str, at: usize) -> Result<Option<usize>, Fault> {
        let bytes = text.as_bytes();
        let bytes_max = self.limits.name_bytes_max as usize;
        let Some((end, prefix_bytes)) = name::easy(bytes, at, bytes_max) else { return Ok(None) };
        let Some(&[b'=', quote @ (b'"' | b'\'')]) = bytes.get(end..end + 2) else { return Ok(None) };
        let value_end = scan::value(bytes, end + 2, quote);
        if bytes.get(value_end) != Some(&quote) {
            return Ok(None);
        }
        let name = Name { at: self.offset + at as u64, start: self.tag.names.len(), prefix_bytes };
        self.tag.names.extend_from_slice(bytes.get(at..end).unwrap_or_default());
        self.tag.add(name, paths, self.is_looked_at);
        self.append(text.get(end + 2..value_end).unwrap_or_default())?;
        Ok(Some(value_end + 1))
    }

    pub(super) fn attribute_name(&mut self, paths: &XmlPaths, text: &str, at: usize) -> Result<usize, Fault> {
        let bytes_max = self.limits.name_bytes_max as usize;
        let end = self
            .name
            .go_on(&mut self.tag.names, text, at, bytes_max)
            .map_err(|fault| self.named_wrong(fault))?;
        let Some(end) = end else { return Ok(text.len()) };
        self.tag.add(self.name, paths, self.is_looked_at);
        self.state = State::AttributeEquals;
        Ok(end)
    }

    /// Before or behind the `=` of an attribute.
    pub(super) fn before_value(&mut self, bytes: &[u8], at: usize) -> Result<usize, Fault> {
        let spaces = bytes.iter().skip(at).take_while(|byte| is_space(**byte)).count();
        self.state = match (self.state, bytes.get(at + spaces)) {
            (_, None) => return Ok(bytes.len()),
            (State::AttributeEquals, Some(b'=')) => State::AttributeQuote,
            (State::AttributeQuote, Some(quote @ (b'"' | b'\''))) => State::AttributeValue(*quote),
            _ => return Err(self.malformed(at + spaces, "an attribute without a value in quotes")),
        };
        Ok(at + spaces + 1)
    }

    /// [10] AttValue, up to its end or the piece's.
    pub(super) fn attribute_value(&mut self, text: &str, mut at: usize, quote: u8) -> Result<usize, Fault> {
        let bytes = text.as_bytes();
        loop {
            let stop = scan::value(bytes, at, quote);
            self.append(text.get(at..stop).unwrap_or_default())?;
            match bytes.get(stop) {
                None => return Ok(stop),
                Some(byte) if *byte == quote => {
                    self.state = State::Tag { is_spaced: false };
                    return Ok(stop + 1);
                }
                Some(b'&') => {
                    self.mark = self.offset + stop as u64;
                    self.state = State::Reference(Reference::Start, Some(quote));
                    return Ok(stop + 1);
                }
                Some(b'\t' | b'\n') => {
                    self.append(" ")?;
                    at = stop + 1;
                }
                Some(b'\r') => {
                    self.append(" ")?;
                    at = self.behind_return(bytes, stop);
                }
                Some(&scan::HIGH) if !scan::is_noncharacter(bytes, stop) => {
                    self.append(text.get(stop..stop + 3).unwrap_or_default())?;
                    at = stop + 3;
                }
                Some(b'<') => return Err(self.malformed(stop, "`<` in an attribute")),
                Some(_) => return Err(self.malformed(stop, CHARACTER)),
            }
        }
    }

    /// More of an attribute's value.
    #[inline]
    pub(super) fn append(&mut self, text: &str) -> Result<(), Fault> {
        self.tag.append(text, &self.limits).map_err(fault)
    }

    /// Behind the `/` of an empty element's tag.
    pub(super) fn tag_slash<S: Sink>(
        &mut self,
        paths: &XmlPaths,
        byte: u8,
        at: usize,
        sink: &mut S,
    ) -> Result<usize, Fault> {
        if byte != b'>' {
            return Err(self.malformed(at, "a `/` in a start tag that does not end it"));
        }
        self.opened(paths, sink)?;
        self.close(paths, sink);
        Ok(at + 1)
    }

    /// The tag is whole.
    #[inline]
    fn opened<S: Sink>(&mut self, paths: &XmlPaths, sink: &mut S) -> Result<(), Fault> {
        let is_bare = self.tag.attributes.is_empty() && self.element.prefix_bytes == 0;
        if !is_bare || self.is_looked_at || self.open.len() == 1 {
            self.settle(paths, sink).map_err(fault)?;
        }
        self.state = State::Content;
        Ok(())
    }

    fn settle<S: Sink>(&mut self, paths: &XmlPaths, sink: &mut S) -> Result<(), TagFault> {
        let depth = self.open.len();
        let mut declares = false;
        if !self.tag.attributes.is_empty() {
            declares = self.tag.declare(&mut self.namespaces, depth, paths)?;
            self.tag.resolve(&self.namespaces)?;
        }
        let name = self.names.get(self.element.start..).unwrap_or_default();
        let namespace = self.namespaces.of(self.element.prefix(name)).ok_or((
            Cause::Malformed,
            self.element.at,
            "a prefix that is not declared",
        ))?;
        let known = if self.is_looked_at || depth == 1 {
            self.settle_paths(paths, namespace, sink)
        } else {
            Opened { is_known: false, is_counted: false }
        };
        let mut open = self.open.iter_mut().rev();
        if let Some(own) = open.next() {
            own.is_plain = !(declares || known.is_known);
        }
        if let Some(parent) = open.next() {
            parent.is_plain &= !known.is_counted;
        }
        Ok(())
    }

    fn settle_paths<S: Sink>(&mut self, paths: &XmlPaths, namespace: Namespace, sink: &mut S) -> Opened {
        let depth = self.open.len();
        let known = self.matcher.open(paths, self.element.at, depth, namespace.id, sink);
        for attribute in &self.tag.attributes {
            if let Wanted::Named(name) = attribute.wanted {
                let value = (!attribute.is_too_long).then(|| self.tag.value(attribute));
                self.matcher.attribute(paths, depth, (name, attribute.namespace.id), value, sink);
            }
        }
        if known.is_known || depth == 1 {
            self.matcher.settle_tag(paths, depth, sink);
        }
        known
    }
}

fn fault((cause, at, what): TagFault) -> Fault {
    Fault { cause, at, what }
}
