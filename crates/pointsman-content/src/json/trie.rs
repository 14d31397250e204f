//! All paths of a rule set as one trie.

use std::cmp::Ordering;
use std::ops::Range;

use super::path::{JsonPath, JsonStep};
use crate::PathId;

/// The paths that are looked for: built once, and read by all readers.
///
/// A path's [`PathId`] is its place in the list. What a member costs grows with the logarithm of the number of names
/// that are looked for in its object, and with nothing else.
#[derive(Debug)]
pub struct JsonPaths {
    /// In the order of their steps, so that those that go through a node stand together.
    paths: Vec<PathId>,
    /// The first is the top-level value's.
    nodes: Vec<Node>,
    name_bytes_max: usize,
}

/// Where a node stands among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u32);

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A value that paths name or go through.
#[derive(Debug)]
pub(super) struct Node {
    /// Paths that end here.
    pub(super) own: Range<usize>,
    /// Paths that go on to members, behind the former.
    pub(super) to_members: Range<usize>,
    /// Paths that go on to elements, behind the former.
    pub(super) to_elements: Range<usize>,
    /// Whether a document has one such value at most: no step to it goes to every element.
    pub(super) is_single: bool,
    /// By length, then by bytes.
    members: Vec<(Box<str>, NodeId)>,
    /// One bit for each length of a name among them.
    pub(super) lengths: u64,
    /// By index.
    elements: Vec<(u32, NodeId)>,
    every: Option<NodeId>,
}

const TOP: NodeId = NodeId(0);

static NOTHING: Node = Node::at(0, true);

impl JsonPaths {
    /// The trie of these paths. A path may stand there more than once.
    pub fn new(paths: &[JsonPath]) -> JsonPaths {
        let mut ordered: Vec<(&[JsonStep], PathId)> =
            paths.iter().map(|path| path.steps.as_slice()).zip((0..).map(PathId)).collect();
        ordered.sort_unstable();
        let mut growing = Growing { nodes: vec![Node::at(0, true)], open: vec![TOP] };
        let mut before: &[JsonStep] = &[];
        for (place, (steps, _)) in ordered.iter().enumerate() {
            let alike = steps.iter().zip(before).take_while(|(one, other)| one == other).count();
            growing.close_below(alike, place);
            for step in steps.iter().skip(alike) {
                growing.open(step, place);
            }
            growing.end_path(place);
            before = steps;
        }
        growing.close_below(0, ordered.len());
        growing.close(ordered.len());
        let mut nodes = growing.nodes;
        for node in &mut nodes {
            node.members.sort_unstable_by(|(one, _), (other, _)| by_length(one.as_bytes(), other.as_bytes()));
        }
        let names = nodes.iter().flat_map(|node| &node.members);
        let name_bytes_max = names.map(|(name, _)| name.len()).max().unwrap_or(0);
        JsonPaths { paths: ordered.into_iter().map(|(_, path)| path).collect(), nodes, name_bytes_max }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes of the longest name that is looked for.
    pub(super) fn name_bytes_max(&self) -> usize {
        self.name_bytes_max
    }

    /// The top-level value's.
    pub(super) fn top(&self) -> NodeId {
        TOP
    }

    /// A node of another trie is nothing here.
    #[inline]
    pub(super) fn node(&self, node: NodeId) -> &Node {
        self.nodes.get(node.index()).unwrap_or(&NOTHING)
    }

    /// The paths of one of a node's ranges.
    #[inline]
    pub(super) fn paths(&self, range: &Range<usize>) -> &[PathId] {
        self.paths.get(range.clone()).unwrap_or_default()
    }
}

impl Node {
    const fn at(place: usize, is_single: bool) -> Node {
        Node {
            own: place..place,
            to_members: place..place,
            to_elements: place..place,
            is_single,
            members: Vec::new(),
            lengths: 0,
            elements: Vec::new(),
            every: None,
        }
    }

    pub(super) fn has_members(&self) -> bool {
        !self.members.is_empty()
    }

    pub(super) fn has_elements(&self) -> bool {
        !self.elements.is_empty() || self.every.is_some()
    }

    #[inline]
    pub(super) fn member(&self, name: &[u8]) -> Option<NodeId> {
        let place = self.members.binary_search_by(|(known, _)| by_length(known.as_bytes(), name)).ok()?;
        self.members.get(place).map(|&(_, child)| child)
    }

    /// The element with this index by itself.
    #[inline]
    pub(super) fn element(&self, index: u64) -> Option<NodeId> {
        if self.elements.is_empty() {
            return None;
        }
        let place = self.elements.binary_search_by(|&(known, _)| u64::from(known).cmp(&index)).ok()?;
        self.elements.get(place).map(|&(_, child)| child)
    }

    /// The element with any index.
    #[inline]
    pub(super) fn every(&self) -> Option<NodeId> {
        self.every
    }
}

#[inline]
fn by_length(one: &[u8], other: &[u8]) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

/// Names of 63 bytes and more share a bit.
#[inline]
pub(super) fn length_bit(name: &[u8]) -> u64 {
    1 << name.len().min(63)
}

/// A trie whose paths come in order: only the nodes of the last one may still grow.
struct Growing {
    nodes: Vec<Node>,
    /// From the top down.
    open: Vec<NodeId>,
}

impl Growing {
    fn last(&mut self) -> Option<&mut Node> {
        let last = self.open.last()?;
        self.nodes.get_mut(last.index())
    }

    fn open(&mut self, step: &JsonStep, place: usize) {
        let child = NodeId(self.nodes.len() as u32);
        let Some(parent) = self.last() else { return };
        if !matches!(step, JsonStep::Member(_)) && !parent.has_elements() {
            parent.to_elements.start = place;
        }
        match step {
            JsonStep::Member(name) => {
                parent.lengths |= length_bit(name.as_bytes());
                parent.members.push((name.clone(), child));
            }
            JsonStep::Index(index) => parent.elements.push((*index, child)),
            JsonStep::Every => parent.every = Some(child),
        }
        let is_single = parent.is_single && !matches!(step, JsonStep::Every);
        self.nodes.push(Node::at(place, is_single));
        self.open.push(child);
    }

    /// The path at `place` ends at the last node. The shortest come first, so none has gone through it yet.
    fn end_path(&mut self, place: usize) {
        if let Some(node) = self.last() {
            node.own.end = place + 1;
        }
    }

    fn close_below(&mut self, steps: usize, place: usize) {
        while self.open.len() > steps + 1 {
            self.close(place);
        }
    }

    fn close(&mut self, place: usize) {
        let Some(node) = self.last() else { return };
        let elements = if node.has_elements() { node.to_elements.start } else { place };
        node.to_members = node.own.end..elements;
        node.to_elements = elements..place;
        self.open.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> JsonPath {
        let step = |step: &str| match step.parse() {
            Ok(index) => JsonStep::Index(index),
            Err(_) if step == "*" => JsonStep::Every,
            Err(_) => JsonStep::Member(step.into()),
        };
        text.split_whitespace().map(step).collect()
    }

    /// The paths of a range of the node that these steps lead to.
    fn paths(of: &JsonPaths, steps: &str, range: impl Fn(&Node) -> &Range<usize>) -> Vec<u32> {
        let mut node = of.node(TOP);
        for step in &path(steps).steps {
            let child = match step {
                JsonStep::Member(name) => node.member(name.as_bytes()),
                JsonStep::Index(index) => node.element(u64::from(*index)),
                JsonStep::Every => node.every(),
            };
            node = of.node(child.expect("a node"));
        }
        of.paths(range(node)).iter().map(|path| path.0).collect()
    }

    #[test]
    fn paths_that_go_through_a_node_stand_together() {
        let listed = ["b 0", "a", "", "b * x", "b cc", "b", "a", "b c", "b 7", "b * x y"];
        let trie = JsonPaths::new(&listed.map(path));
        assert_eq!((trie.len(), trie.nodes(), trie.name_bytes_max()), (10, 10, 2));
        type Row<'a> = (&'a str, &'a [u32], &'a [u32], &'a [u32]);
        let rows: [Row<'_>; 6] = [
            ("", &[2], &[1, 6, 5, 7, 4, 0, 8, 3, 9], &[]),
            ("a", &[1, 6], &[], &[]),
            ("b", &[5], &[7, 4], &[0, 8, 3, 9]),
            ("b *", &[], &[3, 9], &[]),
            ("b * x", &[3], &[9], &[]),
            ("b 7", &[8], &[], &[]),
        ];
        for (steps, own, to_members, to_elements) in rows {
            assert_eq!(paths(&trie, steps, |node| &node.own), own, "{steps}");
            assert_eq!(paths(&trie, steps, |node| &node.to_members), to_members, "{steps}");
            assert_eq!(paths(&trie, steps, |node| &node.to_elements), to_elements, "{steps}");
        }
    }

    #[test]
    fn names_of_any_length_are_found() {
        let names: Vec<String> =
            (0..130).flat_map(|bytes| ["a", "b", "Z"].map(|name| name.repeat(bytes))).collect();
        let listed: Vec<JsonPath> =
            names.iter().map(|name| [JsonStep::Member(name.as_str().into())].into_iter().collect()).collect();
        let trie = JsonPaths::new(&listed);
        let top = trie.node(TOP);
        for name in &names {
            assert!(top.member(name.as_bytes()).is_some(), "{name}");
            assert!(top.member(format!("{name}c").as_bytes()).is_none(), "{name}");
        }
        assert!(JsonPaths::new(&[]).is_empty() && !trie.is_empty());
        assert!(JsonPaths::new(&[]).node(TOP).member(b"").is_none());
    }
}
