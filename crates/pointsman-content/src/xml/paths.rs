//! What is looked for: all the paths of a rule set, as one trie.

use std::collections::HashMap;
use std::num::NonZeroU32;

use foldhash::fast::FixedState;

use crate::PathId;

/// How far below what stands before it a step looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XmlAxis {
    /// `/`: children; an attribute of the element itself.
    Child,
    /// `//`: any depth; an attribute of the element or of any within it.
    Descendant,
}

/// The name of an element or attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlName {
    /// The namespace's name; empty for what is in none. Without it local names are compared, whatever the prefix.
    pub namespace: Option<String>,
    /// The name without a prefix.
    pub local: String,
}

/// From an element to those within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlStep {
    /// Where they are.
    pub axis: XmlAxis,
    /// What they are called.
    pub name: XmlName,
    /// Which one of those of this name under the same parent: 1 is the first.
    pub position: Option<NonZeroU32>,
}

/// An attribute at the end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlAttribute {
    /// Of the element itself, or of any within it too.
    pub axis: XmlAxis,
    /// What it is called. Without a prefix it is in no namespace.
    pub name: XmlName,
}

/// A way from the document to elements, or to attributes of them. The first step's child is the root element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlPath {
    /// From element to element.
    pub steps: Vec<XmlStep>,
    /// Where it asks for attributes.
    pub attribute: Option<XmlAttribute>,
}

/// All paths that are looked for, as one trie; a path's [`PathId`] is its place in the list.
///
/// An element costs a look-up or two for each step that it may stand behind, however many paths there are. That is one
/// step for paths of children, and may be all of those behind `//` for elements deep within each other.
#[derive(Debug)]
pub struct XmlPaths {
    names: HashMap<Box<[u8]>, u32, FixedState>,
    namespaces: HashMap<Box<[u8]>, u32, FixedState>,
    pub(super) nodes: Vec<Node>,
    pub(super) tests: Vec<Test>,
    children: Steps,
    descendants: Steps,
    /// Name tests with positions: siblings are counted for each.
    pub(super) counters: usize,
    counter_of: HashMap<(u32, u32), u32, FixedState>,
    pub(super) has_attributes: bool,
    /// Nodes that only the root element can match.
    pub(super) roots: Vec<u32>,
    /// Paths that no document has a value for.
    pub(super) never: Vec<PathId>,
    pub(super) count: usize,
}

/// The document itself, which is no element.
pub(super) const DOCUMENT: u32 = 0;
/// The id of no namespace.
pub(super) const NO_NAMESPACE: u32 = 0;
/// The id of all namespaces that no path names.
pub(super) const UNNAMED: u32 = u32::MAX;

/// The steps along one axis, by the node that they start from and the local name.
#[derive(Debug, Default)]
struct Steps {
    elements: HashMap<(u32, u32), Vec<u32>, FixedState>,
    attributes: HashMap<(u32, u32), Vec<AttributeTest>, FixedState>,
}

/// A place in the trie: elements that are reached by the same steps.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// At most one element of a document is here.
    pub(super) is_unique: bool,
    /// Steps along `//` start here.
    pub(super) has_descendants: bool,
    /// Paths that ask for the element's text.
    pub(super) values: Vec<PathId>,
    /// Of a unique one: paths that ask for its own attributes, so that its start tag settles them.
    pub(super) settled_by_tag: Vec<PathId>,
    /// Of a unique one: all paths through it, which its end settles.
    pub(super) within: Vec<PathId>,
}

/// What an element of the right local name has to be, too, and where it leads.
#[derive(Debug)]
pub(super) struct Test {
    namespace: Option<u32>,
    /// Where it leads whatever the position.
    pub(super) node: Option<u32>,
    /// Where it leads at positions, in their order.
    positions: Vec<(NonZeroU32, u32)>,
    /// What counts its siblings; only with positions.
    pub(super) counter: Option<u32>,
}

#[derive(Debug)]
pub(super) struct AttributeTest {
    namespace: Option<u32>,
    pub(super) paths: Vec<PathId>,
}

impl Test {
    pub(super) fn takes(&self, namespace: u32) -> bool {
        self.namespace.is_none_or(|wanted| wanted == namespace)
    }

    /// Where it leads from the element that is this one of its siblings.
    pub(super) fn at_position(&self, position: u32) -> Option<u32> {
        let place = self.positions.binary_search_by_key(&position, |(position, _)| position.get()).ok()?;
        self.positions.get(place).map(|(_, node)| *node)
    }
}

impl AttributeTest {
    pub(super) fn takes(&self, namespace: u32) -> bool {
        self.namespace.is_none_or(|wanted| wanted == namespace)
    }
}

impl XmlPaths {
    /// All of them, in this order.
    pub fn new(paths: &[XmlPath]) -> XmlPaths {
        let document = Node { is_unique: true, ..Node::default() };
        let mut built = XmlPaths {
            names: HashMap::default(),
            namespaces: HashMap::default(),
            nodes: vec![document],
            tests: Vec::new(),
            children: Steps::default(),
            descendants: Steps::default(),
            counters: 0,
            counter_of: HashMap::default(),
            has_attributes: false,
            roots: Vec::new(),
            never: Vec::new(),
            count: paths.len(),
        };
        built.namespaces.insert(Box::default(), NO_NAMESPACE);
        for (path, id) in paths.iter().zip(0..) {
            built.add(path, PathId(id));
        }
        built
    }

    fn add(&mut self, path: &XmlPath, id: PathId) {
        let mut node = DOCUMENT;
        let mut unique = vec![DOCUMENT];
        for step in &path.steps {
            node = self.step(node, step);
            if self.nodes[node as usize].is_unique {
                unique.push(node);
            }
        }
        for unique in unique {
            self.nodes[unique as usize].within.push(id);
        }
        let end = &mut self.nodes[node as usize];
        match &path.attribute {
            None if node == DOCUMENT => self.never.push(id),
            None => end.values.push(id),
            Some(attribute) => {
                match attribute.axis {
                    XmlAxis::Descendant => end.has_descendants = true,
                    XmlAxis::Child if node == DOCUMENT => self.never.push(id),
                    XmlAxis::Child if end.is_unique => end.settled_by_tag.push(id),
                    XmlAxis::Child => {}
                }
                self.attribute(node, attribute, id);
            }
        }
    }

    /// The node that a step leads to.
    fn step(&mut self, from: u32, step: &XmlStep) -> u32 {
        let (name, namespace) = self.name(&step.name);
        let steps = match step.axis {
            XmlAxis::Child => &mut self.children,
            XmlAxis::Descendant => &mut self.descendants,
        };
        let places = steps.elements.entry((from, name)).or_default();
        let known = places.iter().copied().find(|test| self.tests[*test as usize].namespace == namespace);
        let place = known.unwrap_or_else(|| {
            let place = self.tests.len() as u32;
            places.push(place);
            self.tests.push(Test { namespace, node: None, positions: Vec::new(), counter: None });
            place
        });
        let test = &mut self.tests[place as usize];
        let next = self.nodes.len() as u32;
        let node = match step.position {
            None => *test.node.get_or_insert(next),
            Some(position) => match test.positions.binary_search_by_key(&position, |(known, _)| *known) {
                Ok(known) => test.positions[known].1,
                Err(place) => {
                    test.positions.insert(place, (position, next));
                    next
                }
            },
        };
        if step.position.is_some() && test.counter.is_none() {
            let key = (name, namespace.map_or(0, |namespace| namespace + 1));
            let counter = *self.counter_of.entry(key).or_insert(self.counters as u32);
            test.counter = Some(counter);
            self.counters = self.counters.max(counter as usize + 1);
        }
        if node == next {
            let of = &mut self.nodes[from as usize];
            of.has_descendants |= step.axis == XmlAxis::Descendant;
            let is_alone = from == DOCUMENT || step.position.is_some();
            let is_unique = step.axis == XmlAxis::Child && of.is_unique && is_alone;
            self.nodes.push(Node { is_unique, ..Node::default() });
            if is_unique && from == DOCUMENT {
                self.roots.push(node);
            }
        }
        node
    }

    fn attribute(&mut self, of: u32, attribute: &XmlAttribute, id: PathId) {
        let (name, namespace) = self.name(&attribute.name);
        self.has_attributes = true;
        let steps = match attribute.axis {
            XmlAxis::Child => &mut self.children,
            XmlAxis::Descendant => &mut self.descendants,
        };
        let tests = steps.attributes.entry((of, name)).or_default();
        match tests.iter_mut().find(|test| test.namespace == namespace) {
            Some(test) => test.paths.push(id),
            None => tests.push(AttributeTest { namespace, paths: vec![id] }),
        }
    }

    fn name(&mut self, name: &XmlName) -> (u32, Option<u32>) {
        let namespace = name.namespace.as_deref().map(|namespace| number(&mut self.namespaces, namespace));
        (number(&mut self.names, &name.local), namespace)
    }

    /// The number of a local name that a path names.
    #[inline]
    pub(super) fn name_of(&self, local: &[u8]) -> Option<u32> {
        self.names.get(local).copied()
    }

    /// The id of a namespace.
    pub(super) fn namespace_of(&self, name: &[u8]) -> u32 {
        self.namespaces.get(name).copied().unwrap_or(UNNAMED)
    }

    /// What children of this name may be.
    #[inline]
    pub(super) fn children(&self, of: u32, name: u32) -> &[u32] {
        self.children.elements.get(&(of, name)).map_or(&[], Vec::as_slice)
    }

    /// What elements of this name at any depth may be.
    #[inline]
    pub(super) fn descendants(&self, of: u32, name: u32) -> &[u32] {
        self.descendants.elements.get(&(of, name)).map_or(&[], Vec::as_slice)
    }

    /// The tests of an element's own attributes of this name.
    pub(super) fn own_attributes(&self, of: u32, name: u32) -> &[AttributeTest] {
        self.children.attributes.get(&(of, name)).map_or(&[], Vec::as_slice)
    }

    /// The tests of attributes of this name of the element and of any within it.
    pub(super) fn attributes_within(&self, of: u32, name: u32) -> &[AttributeTest] {
        self.descendants.attributes.get(&(of, name)).map_or(&[], Vec::as_slice)
    }
}

/// The number that stands for a name: the next one, where it is new.
fn number(numbers: &mut HashMap<Box<[u8]>, u32, FixedState>, name: &str) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(name.as_bytes().into()).or_insert(next)
}
