//! A JSON document that has values at paths.

use pointsman_rules::{Cause, JsonStep, OwnedValue, Place};
use pointsman_view::ContentLimits;

use super::{Content, free_name};
use crate::witness::sought::{Wish, has_something, written};

/// The most values that a document is made of.
const NODES_MAX: usize = 4096;

/// Elements that hold nothing before one that does.
const HOLES_MAX: usize = 8;

/// More containers within each other than any limit that is tried.
const DEPTH_MAX: u32 = 10_000;

pub(super) fn content(wishes: &[&Wish<'_>], cause: Option<Cause>, limits: &ContentLimits) -> Option<Content> {
    let mut document = Document::new(wishes);
    for (steps, wish) in paths(wishes) {
        for (number, value) in wish.values.known.iter().enumerate() {
            let scalar = literal(value, limits)?;
            document.place(steps, number, scalar)?;
        }
    }
    let Some(cause) = cause else {
        return Some(Content { before: document.written(&[]), padding: b' ', ..Content::default() });
    };
    for (steps, wish) in paths(wishes) {
        if wish.values.rest.is_some() {
            document.leave_open(steps, cause == Cause::DuplicateKey);
        }
    }
    let open = document.open.clone();
    let is_empty = matches!(document.nodes.as_slice(), [Node::Free]);
    let before = if is_empty { Vec::new() } else { document.written(&open) };
    let behind = match cause {
        // White space ends a number before it.
        Cause::Malformed => b" !".to_vec(),
        Cause::Encoding => b" \xff".to_vec(),
        Cause::Limit if limits.depth_max < DEPTH_MAX => {
            let deep = b"[".repeat(limits.depth_max as usize + 1);
            [document.before_another(free_name(wishes)), deep].concat()
        }
        Cause::DuplicateKey => document.repeated()?,
        _ => return None,
    };
    Some(Content { before, padding: b' ', behind, cause: Some(cause) })
}

/// Paths at which something is to be, those with all elements first: an index finds what they have made.
fn paths<'w>(wishes: &[&'w Wish<'w>]) -> Vec<(&'w [JsonStep], &'w Wish<'w>)> {
    let path = |wish: &&'w Wish<'w>| match wish.place() {
        Some(Place::Json(steps)) if has_something(wish) => Some((&**steps, *wish)),
        _ => None,
    };
    let mut paths: Vec<_> = wishes.iter().filter_map(path).collect();
    paths.sort_by_key(|(steps, _)| (!steps.contains(&JsonStep::Each), steps.len()));
    paths
}

/// A scalar as it stands in a document; the inner nothing is whatever no comparison holds for.
fn literal(value: &OwnedValue, limits: &ContentLimits) -> Option<Option<Vec<u8>>> {
    match value {
        OwnedValue::Boolean(true) => Some(Some(b"true".to_vec())),
        OwnedValue::Boolean(false) => Some(Some(b"false".to_vec())),
        OwnedValue::Nothing => Some(None),
        value => {
            let text = written(value, limits.value_bytes_max)?;
            Some(Some(if is_number(&text) { text } else { quoted(std::str::from_utf8(&text).ok()?) }))
        }
    }
}

/// Whether a text is a number literal (RFC 8259 section 6).
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let split = |text: &'_ [u8], at: usize| text.get(at..).unwrap_or_default().to_vec();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(text);
    if whole == 0 || text.starts_with(b"0") && whole > 1 {
        return false;
    }
    let mut rest = split(text, whole);
    if let Some(fraction) = rest.strip_prefix(b".") {
        let places = digits(fraction);
        if places == 0 {
            return false;
        }
        rest = split(fraction, places);
    }
    if let [b'e' | b'E', exponent @ ..] = rest.as_slice() {
        let exponent = match exponent {
            [b'+' | b'-', digits @ ..] => digits,
            digits => digits,
        };
        let places = digits(exponent);
        return places > 0 && places == exponent.len();
    }
    rest.is_empty()
}

fn quoted(text: &str) -> Vec<u8> {
    let mut out = b"\"".to_vec();
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            byte => out.push(byte),
        }
    }
    out.push(b'"');
    out
}

/// A document while values are put into it. The first node is its top.
#[derive(Debug)]
struct Document<'w> {
    nodes: Vec<Node<'w>>,
    /// Paths with an index, and how many values each is to have at most.
    bounds: Vec<(&'w [JsonStep], usize)>,
    /// Containers that get no end, from the top down: more may come at a path.
    open: Vec<usize>,
}

#[derive(Clone, Debug)]
enum Node<'w> {
    /// Nothing is known of it yet: `null`, if that stays so.
    Free,
    Scalar(Vec<u8>),
    Object(Vec<(&'w str, usize)>),
    Array(Vec<usize>),
}

impl<'w> Document<'w> {
    fn new(wishes: &[&'w Wish<'w>]) -> Document<'w> {
        let bound = |wish: &&'w Wish<'w>| match wish.place() {
            Some(Place::Json(steps)) if steps.iter().any(|step| matches!(step, JsonStep::Index(_))) => {
                Some((&**steps, wish.values.known.len()))
            }
            _ => None,
        };
        let bounds = wishes.iter().filter_map(bound).collect();
        Document { nodes: vec![Node::Free], bounds, open: Vec::new() }
    }

    /// Makes the value of this number at a path what it is to be.
    fn place(&mut self, steps: &'w [JsonStep], number: usize, scalar: Option<Vec<u8>>) -> Option<()> {
        let found = self.matches(steps);
        let node = match found.get(number) {
            Some(node) => *node,
            None => self.another(steps, found.is_empty())?,
        };
        let node = self.nodes.get_mut(node)?;
        match (&*node, scalar) {
            (Node::Free, Some(scalar)) => *node = Node::Scalar(scalar),
            (Node::Scalar(there), Some(scalar)) if *there == scalar => {}
            (Node::Free | Node::Object(_) | Node::Array(_), None) => {}
            _ => return None,
        }
        Some(())
    }

    /// The values at a path, in their order.
    fn matches(&self, steps: &[JsonStep]) -> Vec<usize> {
        let mut found = vec![0];
        for step in steps {
            let inside = |node: &usize| match (self.nodes.get(*node), step) {
                (Some(Node::Object(members)), JsonStep::Member(name)) => {
                    members.iter().filter(|(other, _)| *other == &**name).map(|(_, node)| *node).collect()
                }
                (Some(Node::Array(elements)), JsonStep::Index(index)) => {
                    elements.get(*index as usize).copied().into_iter().collect()
                }
                (Some(Node::Array(elements)), JsonStep::Each) => elements.clone(),
                _ => Vec::new(),
            };
            found = found.iter().flat_map(inside).collect();
        }
        found
    }

    /// A new value at a path, behind those that are there. Where it would be one too many for a path with an index, elements
    /// that hold nothing stand before it.
    fn another(&mut self, steps: &'w [JsonStep], is_first: bool) -> Option<usize> {
        let before = self.nodes.clone();
        let node = self.another_behind(steps, is_first, None)?;
        if !self.has_too_much() {
            return Some(node);
        }
        let lists = (0..steps.len()).filter(|at| steps.get(*at) == Some(&JsonStep::Each));
        let holes = lists.flat_map(|list| (1..=HOLES_MAX).map(move |holes| (list, holes)));
        let plain = std::mem::replace(&mut self.nodes, before.clone());
        for hole in holes {
            if let Some(node) = self.another_behind(steps, is_first, Some(hole))
                && !self.has_too_much()
            {
                return Some(node);
            }
            self.nodes.clone_from(&before);
        }
        self.nodes = plain;
        Some(node)
    }

    fn has_too_much(&self) -> bool {
        self.bounds.iter().any(|(steps, most)| self.matches(steps).len() > *most)
    }

    /// The same behind some new elements of the list that a step goes through.
    fn another_behind(
        &mut self,
        steps: &'w [JsonStep],
        is_first: bool,
        holes: Option<(usize, usize)>,
    ) -> Option<usize> {
        let (mut node, from) = if is_first {
            // What leads there furthest is used.
            let leads = |length: &usize| {
                steps.get(..*length).map(|steps| self.matches(steps)).filter(|found| !found.is_empty())
            };
            let from = (0..steps.len()).rev().find(|length| leads(length).is_some())?;
            (*leads(&from)?.first()?, from)
        } else {
            let from = steps.iter().rposition(|step| *step == JsonStep::Each)?;
            (*self.matches(steps.get(..from)?).last()?, from)
        };
        for (at, step) in steps.iter().enumerate().skip(from) {
            for _ in 0..holes.filter(|(list, _)| *list == at).map_or(0, |(_, holes)| holes) {
                self.step(node, step)?;
            }
            node = self.step(node, step)?;
        }
        Some(node)
    }

    /// A value one step further, which is new but for an element that fills its array.
    fn step(&mut self, node: usize, step: &'w JsonStep) -> Option<usize> {
        let next = self.nodes.len();
        let there = self.nodes.get_mut(node)?;
        if matches!(there, Node::Free) {
            *there = match step {
                JsonStep::Member(_) => Node::Object(Vec::new()),
                JsonStep::Index(_) | JsonStep::Each => Node::Array(Vec::new()),
            };
        }
        let (added, reached) = match (there, step) {
            (Node::Object(members), JsonStep::Member(name)) => {
                members.push((name, next));
                (1, next)
            }
            (Node::Array(elements), JsonStep::Each) => {
                elements.push(next);
                (1, next)
            }
            (Node::Array(elements), JsonStep::Index(index)) => {
                let index = *index as usize;
                let added = (index + 1).checked_sub(elements.len()).filter(|added| *added <= NODES_MAX)?;
                elements.extend(next..next + added);
                (added, *elements.get(index)?)
            }
            _ => return None,
        };
        self.nodes.resize(next + added, Node::Free);
        (self.nodes.len() <= NODES_MAX).then_some(reached)
    }

    /// Leaves the container open in which more values of a path would come, as far down as there is one, and all around
    /// it. Where something is to stand twice, that is a member of it, or of its last element.
    fn leave_open(&mut self, steps: &[JsonStep], needs_member: bool) {
        let last_each = steps.iter().rposition(|step| *step == JsonStep::Each);
        let lengths = (0..=last_each.unwrap_or(steps.len().saturating_sub(1))).rev();
        let mut found = lengths.filter_map(|length| self.matches(steps.get(..length)?).pop());
        let Some(mut node) = found.find(|node| self.is_container(*node)) else { return };
        if needs_member && let Some(Node::Array(elements)) = self.nodes.get(node) {
            node = elements.last().copied().filter(|last| self.is_container(*last)).unwrap_or(node);
        }
        let mut way = vec![node];
        while let Some(parent) = way.last().and_then(|node| self.parent(*node)) {
            way.push(parent);
        }
        way.reverse();
        // What is open stands last in what is around it.
        for pair in way.windows(2) {
            if let [parent, child] = pair
                && let Some(Node::Object(members)) = self.nodes.get_mut(*parent)
            {
                members.sort_by_key(|(_, node)| node == child);
            }
        }
        if way.len() > self.open.len() {
            self.open = way;
        }
    }

    fn is_container(&self, node: usize) -> bool {
        matches!(self.nodes.get(node), Some(Node::Object(_) | Node::Array(_)))
    }

    fn parent(&self, child: usize) -> Option<usize> {
        self.nodes.iter().position(|node| match node {
            Node::Object(members) => members.iter().any(|(_, node)| *node == child),
            Node::Array(elements) => elements.contains(&child),
            Node::Free | Node::Scalar(_) => false,
        })
    }

    /// The document, where some containers have no end, for something to follow.
    fn written(&self, without_end: &[usize]) -> Vec<u8> {
        enum Piece<'d> {
            Text(&'static [u8]),
            Name(&'d str),
            Node(usize),
        }
        let mut out = Vec::new();
        let mut open = vec![Piece::Node(0)];
        while let Some(piece) = open.pop() {
            let node = match piece {
                Piece::Text(text) => {
                    out.extend_from_slice(text);
                    continue;
                }
                Piece::Name(name) => {
                    out.extend(quoted(name));
                    out.push(b':');
                    continue;
                }
                Piece::Node(node) => node,
            };
            let is_closed = !without_end.contains(&node);
            match self.nodes.get(node) {
                None | Some(Node::Free) => out.extend_from_slice(b"null"),
                Some(Node::Scalar(scalar)) => out.extend_from_slice(scalar),
                Some(Node::Object(members)) => {
                    out.push(b'{');
                    open.extend(is_closed.then_some(Piece::Text(b"}")));
                    for (at, (name, node)) in members.iter().enumerate().rev() {
                        open.extend([Piece::Node(*node), Piece::Name(name)]);
                        open.extend((at > 0).then_some(Piece::Text(b",")));
                    }
                }
                Some(Node::Array(elements)) => {
                    out.push(b'[');
                    open.extend(is_closed.then_some(Piece::Text(b"]")));
                    for (at, node) in elements.iter().enumerate().rev() {
                        open.push(Piece::Node(*node));
                        open.extend((at > 0).then_some(Piece::Text(b",")));
                    }
                }
            }
        }
        out
    }

    /// The innermost container that is left open.
    fn innermost(&self) -> Option<&Node<'w>> {
        self.nodes.get(*self.open.last()?)
    }

    /// What stands before one more value of the innermost container that is left open.
    fn before_another(&self, name: &str) -> Vec<u8> {
        let name = || [quoted(name), b":".to_vec()].concat();
        match self.innermost() {
            Some(Node::Object(members)) if members.is_empty() => name(),
            Some(Node::Object(_)) => [b",".to_vec(), name()].concat(),
            Some(Node::Array(elements)) if !elements.is_empty() => b",".to_vec(),
            _ => Vec::new(),
        }
    }

    /// A member of the innermost container that is left open, for the second time: a path names it, or it would not be
    /// there.
    fn repeated(&self) -> Option<Vec<u8>> {
        match self.innermost()? {
            Node::Object(members) => {
                let (name, _) = members.first()?;
                Some([b",".to_vec(), quoted(name), b":0".to_vec()].concat())
            }
            _ => None,
        }
    }
}
