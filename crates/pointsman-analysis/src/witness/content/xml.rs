//! An XML document that has values at paths.

mod writing;

use pointsman_rules::{Cause, Place, XmlName, XmlPath, XmlStep};
use pointsman_view::ContentLimits;

use super::{Content, free_name};
use crate::witness::sought::{Wish, has_something, written};

/// The most elements that a document is made of.
const ELEMENTS_MAX: usize = 4096;

/// Elements that hold nothing before one that does.
const HOLES_MAX: usize = 8;

/// More elements within each other than any limit that is tried.
const DEPTH_MAX: u32 = 10_000;

pub(super) fn content(wishes: &[&Wish<'_>], cause: Option<Cause>, limits: &ContentLimits) -> Option<Content> {
    let mut document = Document::new(wishes);
    for (path, wish) in paths(wishes) {
        for (number, value) in wish.values.known.iter().enumerate() {
            let value = String::from_utf8(written(value, limits.value_bytes_max)?).ok()?;
            document.place(path, number, value)?;
        }
    }
    let Some(cause) = cause else {
        return Some(Content { before: document.written(), padding: b' ', ..Content::default() });
    };
    for (path, wish) in paths(wishes) {
        if wish.values.rest.is_some() {
            document.leave_open(path);
        }
    }
    let behind = match cause {
        Cause::Malformed => b"</>".to_vec(),
        Cause::Encoding => b"\xff".to_vec(),
        Cause::Limit if limits.depth_max < DEPTH_MAX => {
            format!("<{}>", document.filler).repeat(limits.depth_max as usize + 1).into_bytes()
        }
        _ => return None,
    };
    let before = if document.root().is_some() { document.written() } else { Vec::new() };
    Some(Content { before, padding: b' ', behind, cause: Some(cause) })
}

/// Paths at which something is to be. What leads to others comes first, and what is of any depth last.
fn paths<'w>(wishes: &[&'w Wish<'w>]) -> Vec<(&'w XmlPath, &'w Wish<'w>)> {
    let path = |wish: &&'w Wish<'w>| match wish.place() {
        Some(Place::Xml(path)) if has_something(wish) => Some((path, *wish)),
        _ => None,
    };
    let mut paths: Vec<_> = wishes.iter().filter_map(path).collect();
    paths.sort_by_key(|(path, _)| {
        let any_depths = path.steps.iter().filter(|step| step.is_any_depth).count();
        let positions = path.steps.iter().filter(|step| step.position.is_some()).count();
        let namespaces = path.steps.iter().filter(|step| step.name.namespace.is_some()).count();
        let starts_anywhere = path.steps.first().is_none_or(|step| step.is_any_depth);
        let length = path.steps.len() + usize::from(path.attribute.is_some());
        (starts_anywhere, any_depths, length, positions, std::cmp::Reverse(namespaces))
    });
    paths
}

/// A document while values are put into it. The first element stands for the document itself, above its root.
#[derive(Debug)]
struct Document<'w> {
    elements: Vec<Element<'w>>,
    /// The name of elements that no path asks for.
    filler: &'static str,
    /// All paths, and how many values each is to have at most.
    bounds: Vec<(&'w XmlPath, usize)>,
    /// Elements that get no end, from the root down: more may come at a path.
    open: Vec<usize>,
}

/// A name: that of its namespace, where a path asks for one, and the local one.
type Name<'w> = (Option<&'w str>, &'w str);

#[derive(Clone, Debug, Default)]
struct Element<'w> {
    name: Name<'w>,
    children: Vec<usize>,
    attributes: Vec<(Name<'w>, String)>,
    /// Its direct text, where a path asks for it.
    text: Option<String>,
}

/// Where a value stands: in an element, or in an attribute of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    element: usize,
    attribute: Option<usize>,
}

impl<'w> Document<'w> {
    fn new(wishes: &[&'w Wish<'w>]) -> Document<'w> {
        let bound = |wish: &&'w Wish<'w>| match wish.place() {
            Some(Place::Xml(path)) => Some((path, wish.values.known.len())),
            _ => None,
        };
        Document {
            elements: vec![Element::default()],
            filler: free_name(wishes),
            bounds: wishes.iter().filter_map(bound).collect(),
            open: Vec::new(),
        }
    }

    /// Makes the value of this number at a path what it is to be.
    fn place(&mut self, path: &'w XmlPath, number: usize, value: String) -> Option<()> {
        let found = self.spots(path);
        let (element, attribute) = match (found.get(number), &path.attribute) {
            (Some(spot), _) => (spot.element, spot.attribute),
            (None, None) => (self.another_element(&path.steps, found.is_empty())?, None),
            (None, Some((name, _))) => {
                let element = self.element_for_attribute(path, found.last())?;
                return self.add_attribute(element, path, (parts(name), value));
            }
        };
        let element = self.elements.get_mut(element)?;
        let there = match attribute {
            Some(attribute) => Some(&element.attributes.get(attribute)?.1),
            None => element.text.as_ref(),
        };
        match there {
            Some(there) if *there == value => {}
            Some(_) => return None,
            None => element.text = Some(value),
        }
        Some(())
    }

    /// Adds an attribute to an element. Where it would be one too many for a path with a position, to another one behind.
    fn add_attribute(
        &mut self,
        element: usize,
        path: &'w XmlPath,
        attribute: (Name<'w>, String),
    ) -> Option<()> {
        let plain = element;
        let mut element = element;
        for _ in 0..HOLES_MAX {
            self.elements.get_mut(element)?.attributes.push(attribute.clone());
            if !self.has_too_much() {
                return Some(());
            }
            self.elements.get_mut(element)?.attributes.pop();
            let Some(another) = self.another_behind(&path.steps, false, None) else { break };
            element = another;
        }
        self.elements.get_mut(plain)?.attributes.push(attribute);
        Some(())
    }

    /// Where the values of a path stand, in their order.
    fn spots(&self, path: &XmlPath) -> Vec<Spot> {
        let found = self.matches(&path.steps);
        let Some((name, is_any_depth)) = &path.attribute else {
            return found.into_iter().map(|element| Spot { element, attribute: None }).collect();
        };
        let owners = if *is_any_depth { self.within(&found) } else { found };
        let spots = owners.into_iter().flat_map(|element| {
            let attributes =
                self.elements.get(element).map(|element| &*element.attributes).unwrap_or_default();
            let is_named = |(_, (other, _)): &(usize, &(Name<'_>, String))| is_named(*other, name);
            let named = attributes.iter().enumerate().filter(is_named);
            named.map(move |(at, _)| Spot { element, attribute: Some(at) }).collect::<Vec<_>>()
        });
        spots.collect()
    }

    /// The elements that steps lead to, in the order of the document; without steps the document.
    fn matches(&self, steps: &[XmlStep]) -> Vec<usize> {
        let mut found = vec![0];
        for step in steps {
            let parents = if step.is_any_depth { self.within(&found) } else { found };
            let mut next: Vec<usize> = Vec::new();
            for parent in parents {
                let named = self.children_named(parent, &step.name);
                match step.position {
                    None => next.extend(named),
                    Some(position) => next.extend(named.get((position as usize).wrapping_sub(1))),
                }
            }
            found = self.in_order(&next);
        }
        found
    }

    fn children_named(&self, parent: usize, name: &XmlName) -> Vec<usize> {
        let is_it =
            |child: &&usize| self.elements.get(**child).is_some_and(|child| is_named(child.name, name));
        let children = self.elements.get(parent).map(|parent| &*parent.children).unwrap_or_default();
        children.iter().filter(is_it).copied().collect()
    }

    /// These elements and all within them, in the order of the document, each once.
    fn within(&self, tops: &[usize]) -> Vec<usize> {
        let mut is_in = vec![false; self.elements.len()];
        let mut open = tops.to_vec();
        while let Some(element) = open.pop() {
            let Some(is_in) = is_in.get_mut(element).filter(|is_in| !**is_in) else { continue };
            *is_in = true;
            open.extend(self.elements.get(element).iter().flat_map(|element| &element.children));
        }
        self.all().into_iter().filter(|element| is_in.get(*element) == Some(&true)).collect()
    }

    fn in_order(&self, elements: &[usize]) -> Vec<usize> {
        let mut is_in = vec![false; self.elements.len()];
        for element in elements {
            is_in.get_mut(*element).into_iter().for_each(|is_in| *is_in = true);
        }
        self.all().into_iter().filter(|element| is_in.get(*element) == Some(&true)).collect()
    }

    /// All elements in the order of the document, which stands before them.
    fn all(&self) -> Vec<usize> {
        let (mut all, mut open) = (Vec::with_capacity(self.elements.len()), vec![0]);
        while let Some(element) = open.pop() {
            all.push(element);
            open.extend(self.elements.get(element).iter().flat_map(|element| element.children.iter().rev()));
        }
        all
    }

    /// A new element at the end of a path, behind those that are there. Where it would be one too many for a path with a
    /// position, elements that hold nothing stand before it.
    fn another_element(&mut self, steps: &'w [XmlStep], is_first: bool) -> Option<usize> {
        let before = self.elements.clone();
        let element = self.another_behind(steps, is_first, None)?;
        if !self.has_too_much() {
            return Some(element);
        }
        // There is one root.
        let is_free = |at: &usize| {
            steps.get(*at).is_some_and(|step| *at > 0 && step.position.is_none() && !step.is_any_depth)
        };
        let holes =
            (0..steps.len()).filter(is_free).flat_map(|at| (1..=HOLES_MAX).map(move |holes| (at, holes)));
        let plain = std::mem::replace(&mut self.elements, before.clone());
        for hole in holes {
            if let Some(element) = self.another_behind(steps, is_first, Some(hole))
                && !self.has_too_much()
            {
                return Some(element);
            }
            self.elements.clone_from(&before);
        }
        self.elements = plain;
        Some(element)
    }

    /// Whether a path with a position has more values than it is to have.
    fn has_too_much(&self) -> bool {
        let has_position = |path: &XmlPath| path.steps.iter().any(|step| step.position.is_some());
        self.bounds.iter().any(|(path, most)| has_position(path) && self.spots(path).len() > *most)
    }

    /// The same behind some new elements that a step leads to.
    fn another_behind(
        &mut self,
        steps: &'w [XmlStep],
        is_first: bool,
        holes: Option<(usize, usize)>,
    ) -> Option<usize> {
        let (mut element, from) = if is_first {
            // What leads there furthest is used.
            let leads =
                |length: &usize| steps.get(..*length).and_then(|steps| self.matches(steps).first().copied());
            let from = (0..=steps.len()).rev().find(|length| leads(length).is_some())?;
            (leads(&from)?, from)
        } else {
            let is_free =
                |(at, step): (usize, &XmlStep)| step.is_any_depth || at > 0 && step.position.is_none();
            let from = steps.len() - 1 - steps.iter().enumerate().rev().position(is_free)?;
            let parent = *self.matches(steps.get(..from)?).last()?;
            let step = steps.get(from)?;
            let parent = if parent == 0 { self.root()? } else { parent };
            if step.position.is_some_and(|position| position > 1) {
                return None;
            }
            (self.sibling(parent, step)?, from + 1)
        };
        for (at, step) in steps.iter().enumerate().skip(from) {
            match holes.filter(|(free, _)| *free == at) {
                Some((_, holes)) => {
                    for _ in 0..holes {
                        self.child(element, parts(&step.name))?;
                    }
                    element = self.child(element, parts(&step.name))?;
                }
                None => element = self.step(element, step)?,
            }
        }
        Some(element)
    }

    /// One more element that a step leads to from another. Where it would be one too many for some path it stands deeper,
    /// if it may.
    fn sibling(&mut self, parent: usize, step: &'w XmlStep) -> Option<usize> {
        let element = self.child(parent, parts(&step.name))?;
        let is_too_much = |(path, most): &(&XmlPath, usize)| self.spots(path).len() > *most;
        let is_first = self.children_named(parent, &step.name).len() == 1;
        let stands_wrong = step.position.is_some() && !is_first || self.bounds.iter().any(is_too_much);
        if !step.is_any_depth || !stands_wrong {
            return Some(element);
        }
        self.elements.get_mut(element)?.name = (None, self.filler);
        self.child(element, parts(&step.name))
    }

    /// Leaves the element open in which more values of a path would come, as far down as there is one, and all around it.
    fn leave_open(&mut self, path: &'w XmlPath) {
        if self.root().is_none() && path.steps.len() + usize::from(path.attribute.is_some()) > 1 {
            let root =
                path.steps.first().filter(|step| !step.is_any_depth && step.position.unwrap_or(1) == 1);
            // There is room for one more.
            self.child(0, root.map_or((None, self.filler), |step| parts(&step.name)));
        }
        let is_free = |(at, step): (usize, &XmlStep)| step.is_any_depth || at > 0 && step.position.is_none();
        let behind_free = path.steps.iter().enumerate().rev().position(is_free);
        let length = match (&path.attribute, behind_free) {
            (Some((_, true)), _) => path.steps.len(),
            (_, Some(behind)) => path.steps.len() - 1 - behind,
            (Some(_), None) => path.steps.len(),
            (None, None) => path.steps.len().saturating_sub(1),
        };
        let found = (0..=length).rev().find_map(|length| self.matches(path.steps.get(..length)?).pop());
        let Some(element) = found.filter(|element| *element != 0).or_else(|| self.root()) else { return };
        let mut way = vec![element];
        while let Some(parent) =
            way.last().and_then(|element| self.parent(*element)).filter(|parent| *parent != 0)
        {
            way.push(parent);
        }
        way.reverse();
        // What is open stands last in what is around it.
        for pair in way.windows(2) {
            if let [parent, child] = pair
                && let Some(parent) = self.elements.get_mut(*parent)
            {
                parent.children.sort_by_key(|other| other == child);
            }
        }
        if way.len() > self.open.len() {
            self.open = way;
        }
    }

    fn parent(&self, child: usize) -> Option<usize> {
        self.elements.iter().position(|element| element.children.contains(&child))
    }

    /// An element one step further, which is new but for the document's root.
    fn step(&mut self, parent: usize, step: &'w XmlStep) -> Option<usize> {
        let mut parent = parent;
        if parent == 0 {
            let root = self.root();
            if !step.is_any_depth {
                return self.step_to_root(root, step);
            }
            parent = match root {
                Some(root) => root,
                None => self.child(0, (None, self.filler))?,
            };
        }
        let position = step.position.unwrap_or(1) as usize;
        if step.is_any_depth && position == 1 {
            return self.sibling(parent, step);
        }
        let there = self.children_named(parent, &step.name).len();
        let missing = position.checked_sub(there).filter(|missing| *missing <= ELEMENTS_MAX)?;
        (0..missing).map(|_| self.child(parent, parts(&step.name))).last()?
    }

    /// The root is one: where it is there it may be given a namespace that it has not got.
    fn step_to_root(&mut self, root: Option<usize>, step: &'w XmlStep) -> Option<usize> {
        if step.position.is_some_and(|position| position != 1) {
            return None;
        }
        let Some(root) = root else { return self.child(0, parts(&step.name)) };
        let element = self.elements.get_mut(root)?;
        if element.name != (None, &*step.name.local) {
            return None;
        }
        element.name = parts(&step.name);
        Some(root)
    }

    /// An element that can have one more attribute at the end of a path, behind that of `last`.
    fn element_for_attribute(&mut self, path: &'w XmlPath, last: Option<&Spot>) -> Option<usize> {
        let Some((_, is_any_depth)) = &path.attribute else { return None };
        if path.steps.is_empty() && self.root().is_none() {
            return self.child(0, (None, self.filler));
        }
        let mut owners = self.matches(&path.steps);
        if *is_any_depth {
            owners = self.within(&owners);
        }
        // The document itself has none.
        owners.retain(|element| *element != 0);
        let free = match last {
            None => owners.first().copied(),
            Some(last) => {
                let behind = owners.iter().skip_while(|element| **element != last.element).nth(1);
                behind.copied()
            }
        };
        if free.is_some() {
            return free;
        }
        if *is_any_depth && !owners.is_empty() {
            let parent = self.matches(&path.steps).last().copied().filter(|parent| *parent != 0);
            let parent = parent.or_else(|| self.root())?;
            return self.child(parent, (None, self.filler));
        }
        self.another_element(&path.steps, owners.is_empty())
    }

    fn root(&self) -> Option<usize> {
        self.elements.first()?.children.first().copied()
    }

    fn child(&mut self, parent: usize, name: Name<'w>) -> Option<usize> {
        let child = self.elements.len();
        if child > ELEMENTS_MAX {
            return None;
        }
        self.elements.get_mut(parent)?.children.push(child);
        self.elements.push(Element { name, ..Element::default() });
        Some(child)
    }
}

fn parts(name: &XmlName) -> Name<'_> {
    (name.namespace.as_deref(), &name.local)
}

/// Whether an element or attribute is what a path asks for.
fn is_named(name: Name<'_>, asked: &XmlName) -> bool {
    let (namespace, local) = name;
    local == &*asked.local
        && asked.namespace.as_deref().is_none_or(|asked| asked == namespace.unwrap_or_default())
}
