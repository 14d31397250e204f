//! Paths as tests write them, and everything that a reader tells.

use std::num::NonZeroU32;
use std::sync::Arc;

use pointsman_content::{
    Fault, Limits, PathId, Sink, Value, XmlAttribute, XmlAxis, XmlName, XmlPath, XmlPaths, XmlReader, XmlStep,
};

/// Something that a sink has heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Begins(u32, u32),
    /// Nothing is a value that is too long.
    Value(u32, u32, Option<String>),
    Ends(u32),
}

/// Writes down what it hears, and insists on the order that sinks are promised.
#[derive(Default)]
pub(crate) struct Listener {
    pub(crate) heard: Vec<Heard>,
    /// Of each path: how many values have begun, which of them are not whole, and whether it has ended.
    paths: Vec<(u32, Vec<u32>, bool)>,
}

impl Listener {
    fn of(paths: usize) -> Listener {
        Listener { heard: Vec::new(), paths: vec![(0, Vec::new(), false); paths] }
    }
}

impl Sink for Listener {
    fn begins(&mut self, path: PathId, number: u32) {
        let (begun, open, has_ended) = &mut self.paths[path.0 as usize];
        assert!(!*has_ended && *begun == number, "value {number} of path {path:?} begins");
        *begun += 1;
        open.push(number);
        self.heard.push(Heard::Begins(path.0, number));
    }

    fn value(&mut self, path: PathId, number: u32, value: Value<'_>) {
        let (_, open, has_ended) = &mut self.paths[path.0 as usize];
        let place = open.iter().position(|open| *open == number);
        open.swap_remove(place.expect("a value that has begun"));
        assert!(!*has_ended, "a value of path {path:?}, which has ended");
        let value = match value {
            Value::Text(text) => Some(text.to_owned()),
            Value::TooLong => None,
            Value::Undecodable(cause) => panic!("{cause:?} in XML"),
            other => panic!("{other:?} out of XML"),
        };
        self.heard.push(Heard::Value(path.0, number, value));
    }

    fn ends_unknown(&mut self, path: PathId, cause: pointsman_content::Cause) {
        panic!("{path:?} is unknown in XML: {cause:?}");
    }

    fn ends(&mut self, path: PathId) {
        let (_, open, has_ended) = &mut self.paths[path.0 as usize];
        assert!(!*has_ended && open.is_empty(), "path {path:?} ends");
        *has_ended = true;
        self.heard.push(Heard::Ends(path.0));
    }
}

/// What came of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) heard: Vec<Heard>,
    pub(crate) fault: Option<Fault>,
}

impl Outcome {
    /// The values of a path, in the order in which they begin.
    pub(crate) fn values(&self, path: u32) -> Vec<Option<String>> {
        let mut values: Vec<_> = (self.heard.iter())
            .filter_map(|heard| match heard {
                Heard::Value(of, number, value) if *of == path => Some((*number, value.clone())),
                _ => None,
            })
            .collect();
        values.sort_unstable();
        values.into_iter().map(|(_, value)| value).collect()
    }
}

/// Reads a document in these pieces.
pub(crate) fn read<'a>(
    paths: &Arc<XmlPaths>,
    count: usize,
    limits: Limits,
    pieces: impl IntoIterator<Item = &'a str>,
) -> Outcome {
    let mut listener = Listener::of(count);
    let mut reader = XmlReader::new(Arc::clone(paths), limits);
    let mut pieces = pieces.into_iter();
    let fed = pieces.try_for_each(|piece| reader.feed(piece, &mut listener));
    let fault = fed.and_then(|()| reader.finish(&mut listener)).err();
    if let Some(fault) = fault {
        assert_eq!(reader.feed("<a/>", &mut listener), Err(fault), "a fault stays");
        assert_eq!(reader.finish(&mut listener), Err(fault), "a fault stays");
    } else {
        assert!(listener.paths.iter().all(|(_, _, has_ended)| *has_ended), "all paths end with the document");
    }
    Outcome { heard: listener.heard, fault }
}

/// A document character by character.
pub(crate) fn characters(document: &str) -> impl Iterator<Item = &str> {
    document.split_inclusive(|_: char| true)
}

/// A document cut in two at each of its characters.
pub(crate) fn halves(document: &str) -> impl Iterator<Item = [&str; 2]> {
    document.char_indices().map(|(at, _)| document.split_at(at).into())
}

/// Reads a document whole, character by character, and cut in two anywhere: always with the same outcome.
pub(crate) fn read_cut_anyhow(paths: &[XmlPath], limits: Limits, document: &str) -> Outcome {
    let compiled = Arc::new(XmlPaths::new(paths));
    let whole = read(&compiled, paths.len(), limits, [document]);
    let slow = read(&compiled, paths.len(), limits, characters(document));
    assert_eq!(slow, whole, "{document:?} character by character");
    for [before, behind] in halves(document) {
        let cut = read(&compiled, paths.len(), limits, [before, behind]);
        assert_eq!(cut, whole, "{before:?} and {behind:?}");
    }
    whole
}

/// Reads `a//b[2]/{urn:n}c/@id`. What begins with `//` begins at any depth.
pub(crate) fn path(text: &str) -> XmlPath {
    let mut path = XmlPath { steps: Vec::new(), attribute: None };
    let mut rest = text;
    while !rest.is_empty() {
        let mut axis = XmlAxis::Child;
        if let Some(behind) = rest.strip_prefix("//") {
            (rest, axis) = (behind, XmlAxis::Descendant);
        } else {
            rest = rest.strip_prefix('/').unwrap_or(rest);
        }
        let attribute = rest.strip_prefix('@');
        rest = attribute.unwrap_or(rest);
        let mut namespace = None;
        if let Some((name, behind)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            (namespace, rest) = (Some(name.to_owned()), behind);
        }
        let (local, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        rest = behind;
        let (local, position) = local.split_once('[').map_or((local, None), |(local, position)| {
            let position: u32 = position.trim_end_matches(']').parse().expect("a position");
            (local, NonZeroU32::new(position))
        });
        let name = XmlName { namespace, local: local.to_owned() };
        match attribute {
            Some(_) => path.attribute = Some(XmlAttribute { axis, name }),
            None => path.steps.push(XmlStep { axis, name, position }),
        }
    }
    path
}

/// Paths are shared by threads, and a reader may go from one to another.
#[test]
fn readers_go_where_their_connections_go() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<XmlPaths>();
    is_shared::<XmlReader>();
}
