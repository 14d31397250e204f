//! Which elements stand at paths, what they hold, and who hears of it.
//!
//! For the open elements it knows which nodes of the trie they are. Elements that are none have no place here.

use super::paths::{AttributeTest, DOCUMENT, XmlPaths};
use crate::{PathId, Sink, Value};

/// What is known of the open elements.
#[derive(Debug)]
pub(super) struct Matcher {
    frames: Vec<Frame>,
    /// The nodes that they are, frame by frame.
    matched: Vec<u32>,
    /// Those of them, once each, where steps start that go to any depth.
    descendants: Vec<u32>,
    is_descendant: Vec<bool>,
    /// The tests whose local name the tag has that is being read.
    candidates: Vec<u32>,
    counts: Vec<Count>,
    /// Where in `counts` the innermost count of a counter stands.
    innermost: Vec<Option<usize>>,
    /// How many values of each path have begun.
    numbers: Vec<u32>,
    has_ended: Vec<bool>,
    /// Values that have begun, frame by frame.
    begun: Vec<(PathId, u32)>,
    /// The text of open elements that paths ask for, the innermost last.
    captured: String,
    /// How deep the innermost element stands whose text is taken; 0 is none.
    capturing: usize,
    value_bytes_max: usize,
}

/// An open element that is a node, and where its parts begin.
#[derive(Debug)]
struct Frame {
    depth: usize,
    matched: usize,
    descendants: usize,
    begun: usize,
    captured: usize,
    is_too_long: bool,
    /// What `capturing` was outside of it.
    capturing: usize,
}

/// How many children of an open element a counter has counted.
#[derive(Debug)]
struct Count {
    counter: usize,
    /// How deep their parent stands.
    depth: usize,
    count: u32,
    /// Where the last one of them begins.
    last: u64,
    /// The count further out.
    outer: Option<usize>,
}

/// What a start tag made of its element and its parent.
pub(super) struct Opened {
    /// The element is known here, and its end has to be told.
    pub(super) is_known: bool,
    /// Its parent's has to be, too.
    pub(super) is_counted: bool,
}

impl Matcher {
    pub(super) fn new(paths: &XmlPaths, value_bytes_max: usize) -> Matcher {
        let mut matcher = Matcher {
            frames: Vec::new(),
            matched: Vec::new(),
            descendants: Vec::new(),
            is_descendant: vec![false; paths.nodes.len()],
            candidates: Vec::new(),
            counts: Vec::new(),
            innermost: vec![None; paths.counters],
            numbers: vec![0; paths.count],
            has_ended: vec![false; paths.count],
            begun: Vec::new(),
            captured: String::new(),
            capturing: 0,
            value_bytes_max,
        };
        matcher.matched.push(DOCUMENT);
        matcher.push_frame(0, 0, paths);
        matcher
    }

    /// Looks up what a child of the element at `depth` may be by its local name. Returns whether there is anything.
    #[inline]
    pub(super) fn look_up(&mut self, paths: &XmlPaths, depth: usize, local: &[u8]) -> bool {
        let parent = self.frames.last().filter(|frame| frame.depth == depth);
        if parent.is_none() && self.descendants.is_empty() {
            return false;
        }
        self.candidates.clear();
        if let Some(name) = paths.name_of(local) {
            let start = parent.map_or(self.matched.len(), |frame| frame.matched);
            for node in self.matched.get(start..).unwrap_or_default() {
                self.candidates.extend_from_slice(paths.children(*node, name));
            }
            for node in &self.descendants {
                self.candidates.extend_from_slice(paths.descendants(*node, name));
            }
        }
        // Attributes of any element may be looked for where steps go to any depth.
        !(self.candidates.is_empty() && self.descendants.is_empty())
    }

    /// Opens the element at `depth`, whose tag begins at `at`, as those of the candidates that it is.
    pub(super) fn open<S: Sink>(
        &mut self,
        paths: &XmlPaths,
        at: u64,
        depth: usize,
        namespace: u32,
        sink: &mut S,
    ) -> Opened {
        let start = self.matched.len();
        let mut is_counted = false;
        for place in 0..self.candidates.len() {
            let test = self.candidates.get(place).and_then(|test| paths.tests.get(*test as usize));
            let Some(test) = test.filter(|test| test.takes(namespace)) else { continue };
            self.matched.extend(test.node);
            if let Some(counter) = test.counter {
                is_counted = true;
                let position = self.count(counter as usize, depth.saturating_sub(1), at);
                self.matched.extend(test.at_position(position));
            }
        }
        self.candidates.clear();
        let is_known = self.matched.len() > start;
        if is_known {
            self.push_frame(depth, start, paths);
            self.begin(depth, start, paths, sink);
        }
        Opened { is_known, is_counted }
    }

    fn push_frame(&mut self, depth: usize, start: usize, paths: &XmlPaths) {
        let (descendants, begun) = (self.descendants.len(), self.begun.len());
        let captured = self.captured.len();
        let capturing = self.capturing;
        let frame =
            Frame { depth, matched: start, descendants, begun, captured, is_too_long: false, capturing };
        self.frames.push(frame);
        for node in self.matched.get(start..).unwrap_or_default() {
            let is_wanted = paths.nodes.get(*node as usize).is_some_and(|node| node.has_descendants);
            if let Some(is_there) = self.is_descendant.get_mut(*node as usize)
                && is_wanted
                && !*is_there
            {
                *is_there = true;
                self.descendants.push(*node);
            }
        }
    }

    fn begin<S: Sink>(&mut self, depth: usize, start: usize, paths: &XmlPaths, sink: &mut S) {
        let nodes = self.matched.get(start..).unwrap_or_default();
        let before = self.begun.len();
        for node in nodes.iter().filter_map(|node| paths.nodes.get(*node as usize)) {
            for path in &node.values {
                let number = next_number(&mut self.numbers, *path);
                sink.begins(*path, number);
                self.begun.push((*path, number));
            }
        }
        if self.begun.len() > before {
            self.capturing = depth;
        }
    }

    /// Tells of an attribute of the element at `depth`. A value that is too long is none.
    pub(super) fn attribute<S: Sink>(
        &mut self,
        paths: &XmlPaths,
        depth: usize,
        (name, namespace): (u32, u32),
        value: Option<&str>,
        sink: &mut S,
    ) {
        let Matcher { frames, matched, descendants, numbers, .. } = self;
        let mut tell = |tests: &[AttributeTest]| {
            for path in tests.iter().filter(|test| test.takes(namespace)).flat_map(|test| &test.paths) {
                let number = next_number(numbers, *path);
                sink.begins(*path, number);
                sink.value(*path, number, value.map_or(Value::TooLong, Value::Text));
            }
        };
        let own = frames.last().filter(|frame| frame.depth == depth);
        let start = own.map_or(matched.len(), |frame| frame.matched);
        for node in matched.get(start..).unwrap_or_default() {
            tell(paths.own_attributes(*node, name));
        }
        for node in descendants.iter() {
            tell(paths.attributes_within(*node, name));
        }
    }

    /// Tells of the paths that a start tag settles: those of attributes of an element that is the only one, and behind
    /// the root's all that begin with another root.
    pub(super) fn settle_tag<S: Sink>(&mut self, paths: &XmlPaths, depth: usize, sink: &mut S) {
        let own = self.frames.last().filter(|frame| frame.depth == depth);
        let start = own.map_or(self.matched.len(), |frame| frame.matched);
        let matched = self.matched.get(start..).unwrap_or_default();
        for node in matched.iter().filter_map(|node| paths.nodes.get(*node as usize)) {
            end(&mut self.has_ended, &node.settled_by_tag, sink);
        }
        if depth == 1 {
            for root in paths.roots.iter().filter(|root| !matched.contains(root)) {
                if let Some(node) = paths.nodes.get(*root as usize) {
                    end(&mut self.has_ended, &node.within, sink);
                }
            }
            end(&mut self.has_ended, &paths.never, sink);
        }
    }

    /// Counts an element that begins at `at` among the children of the one at `depth`, once.
    fn count(&mut self, counter: usize, depth: usize, at: u64) -> u32 {
        let Some(innermost) = self.innermost.get_mut(counter) else { return 0 };
        let known =
            innermost.and_then(|place| self.counts.get_mut(place)).filter(|count| count.depth == depth);
        match known {
            Some(known) => {
                if known.last != at {
                    known.count = known.count.saturating_add(1);
                    known.last = at;
                }
                known.count
            }
            None => {
                let outer = innermost.replace(self.counts.len());
                self.counts.push(Count { counter, depth, count: 1, last: at, outer });
                1
            }
        }
    }

    /// Whether the text of the element at `depth` is taken.
    #[inline]
    pub(super) fn is_capturing(&self, depth: usize) -> bool {
        self.capturing == depth
    }

    /// More text of the innermost element.
    pub(super) fn capture(&mut self, text: &str) {
        let Some(frame) = self.frames.last_mut() else { return };
        if self.captured.len() - frame.captured + text.len() <= self.value_bytes_max {
            self.captured.push_str(text);
        } else {
            frame.is_too_long = true;
            self.captured.truncate(frame.captured);
            self.capturing = 0;
        }
    }

    /// Closes the element at `depth`: tells of its values, and of the paths that are settled by it.
    pub(super) fn close<S: Sink>(&mut self, paths: &XmlPaths, depth: usize, sink: &mut S) {
        while let Some(count) = self.counts.pop_if(|count| count.depth >= depth) {
            if let Some(innermost) = self.innermost.get_mut(count.counter) {
                *innermost = count.outer;
            }
        }
        let Some(frame) = self.frames.pop_if(|frame| frame.depth >= depth) else { return };
        let text = self.captured.get(frame.captured..).unwrap_or_default();
        for (path, number) in self.begun.get(frame.begun..).unwrap_or_default() {
            let value = if frame.is_too_long { Value::TooLong } else { Value::Text(text) };
            sink.value(*path, *number, value);
        }
        self.begun.truncate(frame.begun);
        self.captured.truncate(frame.captured);
        self.capturing = frame.capturing;
        for node in self.descendants.drain(frame.descendants..) {
            if let Some(is_there) = self.is_descendant.get_mut(node as usize) {
                *is_there = false;
            }
        }
        for node in self.matched.drain(frame.matched..) {
            if let Some(node) = paths.nodes.get(node as usize).filter(|node| node.is_unique) {
                end(&mut self.has_ended, &node.within, sink);
            }
        }
    }

    /// Tells of all paths that are left: there is no more document for them.
    pub(super) fn end<S: Sink>(&mut self, paths: &XmlPaths, sink: &mut S) {
        if let Some(document) = paths.nodes.first() {
            end(&mut self.has_ended, &document.within, sink);
        }
    }
}

fn next_number(numbers: &mut [u32], path: PathId) -> u32 {
    let Some(next) = numbers.get_mut(path.0 as usize) else { return 0 };
    let number = *next;
    *next = number.saturating_add(1);
    number
}

fn end<S: Sink>(has_ended: &mut [bool], paths: &[PathId], sink: &mut S) {
    for path in paths {
        if let Some(has_ended) = has_ended.get_mut(path.0 as usize)
            && !*has_ended
        {
            *has_ended = true;
            sink.ends(*path);
        }
    }
}
