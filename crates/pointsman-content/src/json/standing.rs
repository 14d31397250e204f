//! Where a reader stands in the trie, and what it has told.

use std::borrow::Cow;

use super::trie::{JsonPaths, NodeId, length_bit};
use crate::{PathId, Sink, Value, fold};

/// What a value shows by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    Scalar,
}

/// The nodes of the open containers that paths go into, and of the value at hand.
///
/// They are bounded by the trie: containers that no path goes into are not here, and what is in them is not either.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Those that paths go into, from the top-level one down.
    containers: Vec<Container>,
    /// Of each of them, and behind them, from `value` on, of the value at hand.
    nodes: Vec<NodeId>,
    value: usize,
    /// By path.
    told: Vec<Told>,
    /// By node, the last object in which it had a member: its place in the document, counted from 1.
    met: Vec<u64>,
}

#[derive(Debug)]
struct Container {
    /// Its first node.
    first: usize,
    /// One bit for each length of a name that is looked for in it.
    lengths: u64,
    /// How many elements have begun.
    elements: u64,
    /// Where it stands, counted from 1.
    place: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    values: u32,
    has_ended: bool,
}

impl Standing {
    /// Before the top-level value.
    pub(super) fn at_top(paths: &JsonPaths) -> Standing {
        Standing {
            nodes: vec![paths.top()],
            told: vec![Told::default(); paths.told()],
            met: vec![0; paths.nodes()],
            ..Standing::default()
        }
    }

    /// How many containers are open that paths go into. All others are within the last of them.
    #[inline]
    pub(super) fn depth(&self) -> u32 {
        self.containers.len() as u32
    }

    /// Whether paths name the value at hand, or go on in it.
    #[inline]
    pub(super) fn is_sought(&self) -> bool {
        self.nodes.len() > self.value
    }

    /// The next value is the member with this name of the innermost container. Whether it has had none before, as far
    /// as a path names it.
    #[inline]
    pub(super) fn member(&mut self, paths: &JsonPaths, name: &[u8]) -> bool {
        match self.containers.last() {
            Some(container) if container.lengths & length_bit(name) != 0 => self.look_for_member(paths, name),
            // Folded, it may have another length.
            Some(_) if paths.has_folding && !name.is_ascii() => self.look_for_member(paths, name),
            _ => true,
        }
    }

    #[inline(never)]
    fn look_for_member(&mut self, paths: &JsonPaths, name: &[u8]) -> bool {
        let Some(container) = self.containers.last() else { return true };
        let folded = match std::str::from_utf8(name) {
            Ok(name) if paths.has_folding => fold(name),
            _ => Cow::Borrowed(""),
        };
        for place in container.first..self.value {
            let Some(&node) = self.nodes.get(place) else { break };
            let node = paths.node(node);
            if node.is_folding {
                self.nodes.extend(node.member(folded.as_bytes()));
            } else if let Some(child) = node.member(name) {
                let Some(met) = self.met.get_mut(child.index()) else { continue };
                if *met == container.place {
                    return false;
                }
                *met = container.place;
                self.nodes.push(child);
            } else if let Some(folding) = node.folding() {
                self.nodes.extend(paths.node(folding).member(folded.as_bytes()));
            }
        }
        true
    }

    /// The next value is the next element of the innermost container.
    #[inline]
    pub(super) fn element(&mut self, paths: &JsonPaths) {
        let Some(container) = self.containers.last_mut() else { return };
        for place in container.first..self.value {
            let Some(&node) = self.nodes.get(place) else { break };
            let node = paths.node(node);
            if let Some(child) = node.element(container.elements) {
                self.nodes.push(child);
            }
            if let Some(child) = node.every() {
                self.nodes.push(child);
            }
        }
        container.elements += 1;
    }

    /// The value at hand begins. Tells of it, and what cannot come any more.
    #[inline(never)]
    pub(super) fn begin(&mut self, paths: &JsonPaths, kind: Kind, sink: &mut impl Sink) {
        let mut is_named = false;
        for &node in self.nodes.get(self.value..).unwrap_or_default() {
            let node = paths.node(node);
            for path in paths.paths(&node.own) {
                let Some(told) = self.told.get_mut(path.0 as usize) else { continue };
                sink.begins(*path, told.values);
                told.values = told.values.saturating_add(1);
                is_named = true;
            }
            if node.is_single {
                if kind != Kind::Object {
                    end(&mut self.told, paths.paths(&node.to_members), sink);
                }
                if kind != Kind::Array {
                    end(&mut self.told, paths.paths(&node.to_elements), sink);
                }
            }
        }
        if kind == Kind::Scalar && !is_named {
            self.nodes.truncate(self.value);
        }
    }

    /// The value at hand is known.
    #[inline(never)]
    pub(super) fn settle(&mut self, paths: &JsonPaths, value: Value<'_>, sink: &mut impl Sink) {
        self.tell(paths, value, sink);
        self.nodes.truncate(self.value);
    }

    fn tell(&mut self, paths: &JsonPaths, value: Value<'_>, sink: &mut impl Sink) {
        for &node in self.nodes.get(self.value..).unwrap_or_default() {
            let node = paths.node(node);
            for path in paths.paths(&node.own) {
                let Some(told) = self.told.get(path.0 as usize) else { continue };
                sink.value(*path, told.values.saturating_sub(1), value);
            }
            if node.is_single {
                end(&mut self.told, paths.paths(&node.own), sink);
            }
        }
    }

    /// The value at hand is an object or array that stands `at` there. It is one of those here if paths go into it.
    #[inline(never)]
    pub(super) fn open(&mut self, paths: &JsonPaths, is_object: bool, at: u64, sink: &mut impl Sink) {
        self.begin(paths, if is_object { Kind::Object } else { Kind::Array }, sink);
        self.tell(paths, Value::Other, sink);
        let (mut kept, mut lengths) = (self.value, 0);
        for place in self.value..self.nodes.len() {
            let Some(&node) = self.nodes.get(place) else { break };
            let goes_on = paths.node(node);
            if if is_object { goes_on.has_members() } else { goes_on.has_elements() } {
                lengths |= goes_on.lengths;
                lengths |= goes_on.folding().map_or(0, |folding| paths.node(folding).lengths);
                self.nodes.swap(kept, place);
                kept += 1;
            }
        }
        self.nodes.truncate(kept);
        if kept > self.value {
            self.containers.push(Container { first: self.value, lengths, elements: 0, place: at + 1 });
            self.value = kept;
        }
    }

    /// The innermost container ends, and with it what only it could hold.
    #[inline(never)]
    pub(super) fn close(&mut self, paths: &JsonPaths, sink: &mut impl Sink) {
        let Some(container) = self.containers.pop() else { return };
        for &node in self.nodes.get(container.first..self.value).unwrap_or_default() {
            let node = paths.node(node);
            if node.is_single {
                end(&mut self.told, paths.paths(&node.to_members), sink);
                end(&mut self.told, paths.paths(&node.to_elements), sink);
            }
        }
        self.value = container.first;
        self.nodes.truncate(self.value);
    }
}

fn end(told: &mut [Told], paths: &[PathId], sink: &mut impl Sink) {
    for path in paths {
        if let Some(told) = told.get_mut(path.0 as usize)
            && !told.has_ended
        {
            told.has_ended = true;
            sink.ends(*path);
        }
    }
}
