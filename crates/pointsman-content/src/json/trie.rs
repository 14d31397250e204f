//! All paths of a rule set as one trie.

use std::cmp::Ordering;
use std::ops::Range;

use super::path::{JsonPath, JsonStep};
use crate::{PathId, fold};

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
    pub(super) has_folding: bool,
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
    /// Where names are compared by bytes: the node of the same value that folds them.
    folding: Option<NodeId>,
    /// Whether names are folded here: its paths stand for other readings.
    pub(super) is_folding: bool,
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
        let paths = ordered.into_iter().map(|(_, path)| path).collect();
        JsonPaths { paths, nodes, name_bytes_max, has_folding: false }
    }

    /// The same, and beside each path another one that takes names in any case, for servers that read them so. Its
    /// [`PathId`] is that of the path and [`JsonPaths::len`]. It has only the values that the path itself has not.
    #[must_use]
    pub fn with_folded_names(paths: &[JsonPath]) -> JsonPaths {
        let mut all = JsonPaths::new(paths);
        let of_step = |step: &JsonStep| match step {
            JsonStep::Member(name) => JsonStep::Member(fold(name).into()),
            other => other.clone(),
        };
        let folded: Vec<JsonPath> =
            paths.iter().map(|path| path.steps.iter().map(of_step).collect()).collect();
        let folded = JsonPaths::new(&folded);
        let (nodes, count) = (all.nodes.len() as u32, all.paths.len());
        all.paths.extend(folded.paths.iter().map(|path| PathId(path.0 + count as u32)));
        all.nodes.extend(folded.nodes.into_iter().map(|node| node.folding_behind(nodes, count)));
        all.link_folding(TOP, NodeId(nodes));
        // A letter of one byte may be written with one of three.
        all.name_bytes_max = 3 * all.name_bytes_max.max(folded.name_bytes_max);
        all.has_folding = true;
        all
    }

    fn link_folding(&mut self, node: NodeId, folding: NodeId) {
        let Some(known) = self.nodes.get_mut(node.index()) else { return };
        known.folding = Some(folding);
        let steps: Vec<(JsonStep, NodeId)> = known.steps().collect();
        for (step, child) in steps {
            let known = self.node(folding);
            let other = match &step {
                JsonStep::Member(name) => known.member(fold(name).as_bytes()),
                JsonStep::Index(index) => known.element(u64::from(*index)),
                JsonStep::Every => known.every(),
            };
            if let Some(other) = other {
                self.link_folding(child, other);
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        if self.has_folding { self.paths.len() / 2 } else { self.paths.len() }
    }

    /// How many there are, those that fold names among them.
    pub(super) fn told(&self) -> usize {
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
            folding: None,
            is_folding: false,
        }
    }

    /// Turns the node into one that folds names. Its children stand `nodes` further on, and its paths `paths`.
    fn folding_behind(mut self, nodes: u32, paths: usize) -> Node {
        let behind = |range: Range<usize>| range.start + paths..range.end + paths;
        self.own = behind(self.own);
        self.to_members = behind(self.to_members);
        self.to_elements = behind(self.to_elements);
        self.is_single = false;
        self.is_folding = true;
        let children = self.members.iter_mut().map(|(_, child)| child);
        let children =
            children.chain(self.elements.iter_mut().map(|(_, child)| child)).chain(&mut self.every);
        children.for_each(|child| child.0 += nodes);
        self
    }

    /// The steps that go on from here.
    fn steps(&self) -> impl Iterator<Item = (JsonStep, NodeId)> {
        let members = self.members.iter().map(|(name, child)| (JsonStep::Member(name.clone()), *child));
        let elements = self.elements.iter().map(|&(index, child)| (JsonStep::Index(index), child));
        members.chain(elements).chain(self.every.map(|child| (JsonStep::Every, child)))
    }

    /// The node of the same value that folds names.
    #[inline]
    pub(super) fn folding(&self) -> Option<NodeId> {
        self.folding
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
