//! The start tag that is being read: its attributes, until all of them are there.

use std::cmp::Ordering;
use std::ops::Range;

use super::name::Name;
use super::namespaces::{NAMESPACE_BYTES_MAX, Namespace, Namespaces};
use super::paths::XmlPaths;
use crate::{Cause, Limits};

/// What the attributes of a start tag are, in their order.
#[derive(Debug, Default)]
pub(super) struct Tag {
    pub(super) attributes: Vec<Attribute>,
    /// Their names.
    pub(super) names: Vec<u8>,
    /// The values of those that somebody asks for.
    values: String,
    /// Places among them, to sort.
    order: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) name: Name,
    name_end: usize,
    pub(super) wanted: Wanted,
    value: Range<usize>,
    pub(super) is_too_long: bool,
    /// Settled with the tag's end; none for declarations.
    pub(super) namespace: Namespace,
}

/// What a value is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    No,
    Declaration,
    /// Paths name attributes by this number of a local name.
    Named(u32),
}

/// What is wrong with a tag, and how many bytes of the text stand before it.
pub(super) type TagFault = (Cause, u64, &'static str);

/// Up to so many attributes are compared each with each.
const FEW: usize = 8;

impl Tag {
    pub(super) fn clear(&mut self) {
        self.attributes.clear();
        self.names.clear();
        self.values.clear();
    }

    /// An attribute whose name is what [`Tag::names`] holds from its start on.
    pub(super) fn add(&mut self, name: Name, paths: &XmlPaths, is_looked_at: bool) {
        let bytes = self.names.get(name.start..).unwrap_or_default();
        let wanted = if bytes == b"xmlns" || name.prefix(bytes) == b"xmlns" {
            Wanted::Declaration
        } else if is_looked_at && paths.has_attributes {
            paths.name_of(name.local(bytes)).map_or(Wanted::No, Wanted::Named)
        } else {
            Wanted::No
        };
        let value = self.values.len()..self.values.len();
        let name_end = self.names.len();
        let namespace = Namespace::NONE;
        self.attributes.push(Attribute { name, name_end, wanted, value, is_too_long: false, namespace });
    }

    /// More of the last attribute's value.
    pub(super) fn append(&mut self, text: &str, limits: &Limits) -> Result<(), TagFault> {
        let Some(attribute) = self.attributes.last_mut() else { return Ok(()) };
        let bytes_max = match attribute.wanted {
            Wanted::No => return Ok(()),
            Wanted::Declaration => NAMESPACE_BYTES_MAX,
            Wanted::Named(_) => limits.value_bytes_max as usize,
        };
        if attribute.is_too_long {
            return Ok(());
        }
        if attribute.value.len() + text.len() <= bytes_max {
            self.values.push_str(text);
            attribute.value.end = self.values.len();
            return Ok(());
        }
        if attribute.wanted == Wanted::Declaration {
            return Err((Cause::Limit, attribute.name.at, "a namespace whose name is too long"));
        }
        attribute.is_too_long = true;
        self.values.truncate(attribute.value.start);
        attribute.value.end = attribute.value.start;
        Ok(())
    }

    pub(super) fn value(&self, attribute: &Attribute) -> &str {
        self.values.get(attribute.value.clone()).unwrap_or_default()
    }

    fn name(&self, attribute: &Attribute) -> &[u8] {
        self.names.get(attribute.name.start..attribute.name_end).unwrap_or_default()
    }

    fn local(&self, attribute: &Attribute) -> &[u8] {
        attribute.name.local(self.name(attribute))
    }

    /// Makes known what the tag declares for its element, which stands at `depth`. Returns whether it declares any.
    pub(super) fn declare(
        &self,
        namespaces: &mut Namespaces,
        depth: usize,
        paths: &XmlPaths,
    ) -> Result<bool, TagFault> {
        let mut declares = false;
        for attribute in self.attributes.iter().filter(|attribute| attribute.wanted == Wanted::Declaration) {
            let name = self.name(attribute);
            let prefix = if attribute.name.prefix_bytes == 0 { &b""[..] } else { attribute.name.local(name) };
            namespaces
                .declare(prefix, self.value(attribute).as_bytes(), depth, paths)
                .map_err(|(cause, what)| (cause, attribute.name.at, what))?;
            declares = true;
        }
        Ok(declares)
    }

    /// Finds the namespaces of the attributes, and that no two of them have the same name (XML 1.0 section 3.1;
    /// Namespaces in XML 1.0 section 6.3).
    pub(super) fn resolve(&mut self, namespaces: &Namespaces) -> Result<(), TagFault> {
        let Tag { attributes, names, .. } = self;
        for attribute in attributes.iter_mut() {
            if attribute.name.prefix_bytes > 0 && attribute.wanted != Wanted::Declaration {
                let name = names.get(attribute.name.start..attribute.name_end).unwrap_or_default();
                attribute.namespace = namespaces.of(attribute.name.prefix(name)).ok_or((
                    Cause::Malformed,
                    attribute.name.at,
                    "a prefix that is not declared",
                ))?;
            }
        }
        match self.repeated(namespaces) {
            Some(at) => Err((Cause::Malformed, at, "an attribute that stands there twice")),
            None => Ok(()),
        }
    }

    /// Where the first attribute stands whose name an earlier one has.
    fn repeated(&mut self, namespaces: &Namespaces) -> Option<u64> {
        if self.attributes.len() <= FEW {
            let mut later = self.attributes.iter().enumerate();
            let repeated = later.find(|(place, attribute)| {
                let mut earlier = self.attributes.iter().take(*place);
                earlier.any(|earlier| self.compare(earlier, attribute, namespaces).is_eq())
            });
            return repeated.map(|(_, attribute)| attribute.name.at);
        }
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..self.attributes.len() as u32);
        let of = |place: u32| self.attributes.get(place as usize);
        let compare = |one: u32, other: u32| match (of(one), of(other)) {
            (Some(one), Some(other)) => self.compare(one, other, namespaces),
            _ => Ordering::Equal,
        };
        order.sort_unstable_by(|one, other| compare(*one, *other).then(one.cmp(other)));
        let pairs = order.array_windows().filter(|[one, other]| compare(*one, *other).is_eq());
        let repeated = pairs.filter_map(|[_, later]| of(*later)).map(|attribute| attribute.name.at).min();
        self.order = order;
        repeated
    }

    /// Orders attributes so that those of the same expanded name are equal.
    #[inline]
    fn compare(&self, one: &Attribute, other: &Attribute, namespaces: &Namespaces) -> Ordering {
        // What declares is called the same only if it is written the same.
        let is_declaration = |attribute: &Attribute| attribute.wanted == Wanted::Declaration;
        let (local_of_one, local_of_other) = (self.local(one), self.local(other));
        (local_of_one.len().cmp(&local_of_other.len()))
            .then_with(|| local_of_one.cmp(local_of_other))
            .then_with(|| is_declaration(one).cmp(&is_declaration(other)))
            .then_with(|| match is_declaration(one) {
                true => one.name.prefix_bytes.cmp(&other.name.prefix_bytes),
                false if one.namespace == other.namespace => Ordering::Equal,
                false => namespaces.name(one.namespace).cmp(namespaces.name(other.namespace)),
            })
    }
}
