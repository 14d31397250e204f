//! Which prefix means which namespace (Namespaces in XML 1.0, sections 2 to 6).

use std::ops::Range;

use super::paths::{NO_NAMESPACE, XmlPaths};
use crate::Cause;

/// Declarations that hold at one place.
pub(super) const NAMESPACES_MAX: usize = 256;
/// Bytes of a namespace's name.
pub(super) const NAMESPACE_BYTES_MAX: usize = 4096;

const XML: &[u8] = b"http://www.w3.org/XML/1998/namespace";
const XMLNS: &[u8] = b"http://www.w3.org/2000/xmlns/";

/// The declarations that hold where the reader is.
#[derive(Debug)]
pub(super) struct Namespaces {
    bindings: Vec<Binding>,
    /// Of each binding's prefix, so that one look at eight bytes tells most others apart.
    marks: Vec<u64>,
    /// Prefixes and names.
    written: Vec<u8>,
}

#[derive(Debug)]
struct Binding {
    /// How deep the element stands that declares it.
    depth: usize,
    prefix: Range<usize>,
    name: Range<usize>,
    id: u32,
}

/// A namespace that is declared here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Namespace {
    /// What paths call it.
    pub(super) id: u32,
    /// Which binding says so; none where there is no namespace.
    binding: Option<usize>,
}

impl Namespace {
    pub(super) const NONE: Namespace = Namespace { id: NO_NAMESPACE, binding: None };
}

impl Namespaces {
    pub(super) fn new(paths: &XmlPaths) -> Namespaces {
        let mut namespaces = Namespaces { bindings: Vec::new(), marks: Vec::new(), written: Vec::new() };
        namespaces.bind(b"xml", XML, 0, paths);
        namespaces
    }

    /// Takes the declaration of an element at this depth. The prefix of the default namespace is empty.
    pub(super) fn declare(
        &mut self,
        prefix: &[u8],
        name: &[u8],
        depth: usize,
        paths: &XmlPaths,
    ) -> Result<(), (Cause, &'static str)> {
        let wrong = match (prefix, name) {
            (b"xmlns", _) => Some("a declaration of the prefix `xmlns`"),
            (b"xml", XML) => None,
            (b"xml", _) | (_, XML) => Some("a declaration of the prefix `xml` or its namespace as another"),
            (_, XMLNS) => Some("a declaration of the namespace of `xmlns`"),
            (b"", _) => None,
            (_, b"") => Some("a prefix that is declared as nothing"),
            _ => None,
        };
        if let Some(what) = wrong {
            return Err((Cause::Malformed, what));
        }
        if self.bindings.len() > NAMESPACES_MAX {
            return Err((Cause::Limit, "too many namespace declarations"));
        }
        self.bind(prefix, name, depth, paths);
        Ok(())
    }

    fn bind(&mut self, prefix: &[u8], name: &[u8], depth: usize, paths: &XmlPaths) {
        let start = self.written.len();
        self.written.extend_from_slice(prefix);
        let middle = self.written.len();
        self.written.extend_from_slice(name);
        let id = paths.namespace_of(name);
        let name = middle..self.written.len();
        self.bindings.push(Binding { depth, prefix: start..middle, name, id });
        self.marks.push(mark(prefix));
    }

    /// Forgets what an element at this depth declared.
    pub(super) fn close(&mut self, depth: usize) {
        while let Some(binding) = self.bindings.pop_if(|binding| binding.depth >= depth) {
            self.marks.pop();
            self.written.truncate(binding.prefix.start);
        }
    }

    /// The namespace of a prefix, if it is declared; the default one's for an empty prefix.
    pub(super) fn of(&self, prefix: &[u8]) -> Option<Namespace> {
        let mark = mark(prefix);
        let mut end = self.marks.len();
        while let Some(place) = self.marks.get(..end)?.iter().rposition(|known| *known == mark) {
            let binding = self.bindings.get(place)?;
            if self.written.get(binding.prefix.clone()) == Some(prefix) {
                let is_none = binding.name.is_empty();
                return Some(Namespace { id: binding.id, binding: (!is_none).then_some(place) });
            }
            end = place;
        }
        prefix.is_empty().then_some(Namespace::NONE)
    }

    /// Its name; empty where there is none.
    pub(super) fn name(&self, namespace: Namespace) -> &[u8] {
        let binding = namespace.binding.and_then(|place| self.bindings.get(place));
        binding.and_then(|binding| self.written.get(binding.name.clone())).unwrap_or_default()
    }
}

/// The first bytes and the length.
fn mark(prefix: &[u8]) -> u64 {
    let first = prefix.iter().take(7).fold(0, |mark, byte| mark << 8 | u64::from(*byte));
    first << 8 | (prefix.len() as u64 & 0xff)
}
