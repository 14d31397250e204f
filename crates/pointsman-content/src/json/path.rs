//! Paths into JSON documents, as rules name them.

/// Where values stand in a document: steps from the top-level value, which has the path without any.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonPath {
    /// From the top-level value on.
    pub steps: Vec<JsonStep>,
}

/// A step from an object or array to what is directly in it.
// Their order is that of the trie: steps into objects before those into arrays.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JsonStep {
    /// To the member of an object with this name, its escapes resolved.
    Member(Box<str>),
    /// To the element of an array with this index, counted from 0.
    Index(u32),
    /// To every element of an array.
    Every,
}

impl FromIterator<JsonStep> for JsonPath {
    fn from_iter<I: IntoIterator<Item = JsonStep>>(steps: I) -> JsonPath {
        JsonPath { steps: steps.into_iter().collect() }
    }
}
