//! Many texts that values may begin or end with, found in one walk along the value.

use std::collections::VecDeque;
use std::ops::Range;

use crate::pace;

/// Texts by their common beginnings, or, read backwards, by their common endings.
#[derive(Debug)]
pub(super) struct Trie {
    way: Way,
    nodes: Vec<Node>,
    /// With which byte the label of each node begins; those of one parent stand beside each other.
    firsts: Vec<u8>,
    labels: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Forwards,
    Backwards,
}

#[derive(Debug)]
struct Node {
    /// Its part of the labels: what leads to it from its parent.
    label: Range<u32>,
    children: Range<u32>,
    /// Which text ends here.
    text: Option<u32>,
}

/// A node whose children are still to be made: of these texts, which agree in so many bytes.
struct Open {
    node: usize,
    texts: Range<usize>,
    depth: usize,
}

impl Trie {
    /// A trie of texts, each once, that are called by their positions.
    pub(super) fn new(way: Way, texts: &[&[u8]]) -> Trie {
        let turned = |text: &&[u8]| match way {
            Way::Forwards => text.to_vec(),
            Way::Backwards => text.iter().rev().copied().collect(),
        };
        let mut sorted: Vec<(Vec<u8>, u32)> = pace::each(texts).map(turned).zip(0..).collect();
        pace::sort(&mut sorted);
        let mut trie = Trie { way, nodes: Vec::new(), firsts: vec![0], labels: Vec::new() };
        trie.nodes.push(Node { label: 0..0, children: 0..0, text: None });
        let mut open = VecDeque::from([Open { node: 0, texts: 0..sorted.len(), depth: 0 }]);
        while let Some(at) = open.pop_front() {
            trie.grow(&sorted, at, &mut open);
        }
        pace::drop_each(sorted);
        trie
    }

    /// Gives a node its text and its children.
    fn grow(&mut self, sorted: &[(Vec<u8>, u32)], open: Open, more: &mut VecDeque<Open>) {
        let Open { node, mut texts, depth } = open;
        if let Some((text, number)) = sorted.get(texts.start)
            && text.len() == depth
            && !texts.is_empty()
        {
            self.nodes[node].text = Some(*number);
            texts.start += 1;
        }
        let first_child = self.nodes.len();
        while !texts.is_empty() {
            pace::step();
            let (first, _) = &sorted[texts.start];
            let alike = sorted[texts.clone()].partition_point(|(text, _)| text[depth] == first[depth]);
            let (last, _) = &sorted[texts.start + alike - 1];
            let agreed = first.iter().zip(last).take_while(|(a, b)| a == b).count();
            let label = self.labels.len();
            self.labels.extend_from_slice(&first[depth..agreed]);
            self.firsts.push(first[depth]);
            let child = Node { label: range(label..self.labels.len()), children: 0..0, text: None };
            let below = texts.start..texts.start + alike;
            more.push_back(Open { node: self.nodes.len(), texts: below, depth: agreed });
            self.nodes.push(child);
            texts.start += alike;
        }
        self.nodes[node].children = range(first_child..self.nodes.len());
    }

    /// By the position of a text: the longest other text that it begins (or ends) with.
    pub(super) fn shorter(&self) -> Vec<Option<u32>> {
        let mut above: Vec<Option<u32>> = vec![None; self.nodes.len()];
        let mut shorter = vec![None; self.nodes.iter().filter(|node| node.text.is_some()).count()];
        // Children stand behind their parents.
        for (place, node) in self.nodes.iter().enumerate() {
            let nearest = match node.text {
                Some(text) => {
                    shorter[text as usize] = above[place];
                    Some(text)
                }
                None => above[place],
            };
            above[bounds(&node.children)].fill(nearest);
        }
        shorter
    }

    /// Shows every text that `value` begins (or ends) with, the shortest first, and how long it is.
    pub(super) fn walk(&self, value: &[u8], mut see: impl FnMut(u32, usize)) {
        let (mut node, mut used) = (&self.nodes[0], 0);
        loop {
            if let Some(text) = node.text {
                see(text, used);
            }
            let rest = match self.way {
                Way::Forwards => &value[used..],
                Way::Backwards => &value[..value.len() - used],
            };
            let next = match self.way {
                Way::Forwards => rest.first(),
                Way::Backwards => rest.last(),
            };
            let children = bounds(&node.children);
            let Some(next) = next else { return };
            let Some(child) = memchr::memchr(*next, &self.firsts[children.clone()]) else { return };
            node = &self.nodes[children.start + child];
            let label = &self.labels[bounds(&node.label)];
            let fits = match self.way {
                Way::Forwards => rest.starts_with(label),
                Way::Backwards => {
                    rest.len() >= label.len() && rest.iter().rev().zip(label).all(|(a, b)| a == b)
                }
            };
            if !fits {
                return;
            }
            used += label.len();
        }
    }
}

fn range(range: Range<usize>) -> Range<u32> {
    u32::try_from(range.start).unwrap_or(u32::MAX)..u32::try_from(range.end).unwrap_or(u32::MAX)
}

fn bounds(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_beginnings_and_endings_are_found(
            texts in vec(vec(0u8..3, 0..6), 0..12),
            values in vec(vec(0u8..3, 0..9), 1..8),
        ) {
            let mut texts = texts;
            texts.sort();
            texts.dedup();
            let slices: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
            for way in [Way::Forwards, Way::Backwards] {
                let trie = Trie::new(way, &slices);
                for value in &values {
                    let mut found = Vec::new();
                    trie.walk(value, |text, used| {
                        assert_eq!(texts[text as usize].len(), used);
                        found.push(text);
                    });
                    found.sort_unstable();
                    let fits = |text: &&[u8]| match way {
                        Way::Forwards => value.starts_with(text),
                        Way::Backwards => value.ends_with(text),
                    };
                    let expected: Vec<u32> =
                        (0..).zip(&slices).filter(|(_, text)| fits(text)).map(|(place, _)| place).collect();
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}
