//! What a tree in memory has at paths, the reader finds as the document goes by, however it is cut.

use std::sync::Arc;

use pointsman_content::{Limits, XmlAxis, XmlName, XmlPath, XmlPaths};
use proptest::prelude::*;
use roxmltree::Node;

use super::generated::{document, paths, pieces};
use super::reading::{characters, read};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn the_reader_finds_what_the_tree_has(
        document in document(),
        paths in paths(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        // Line ends are normalised before anything is parsed (XML 1.0 section 2.11), so that it can be done before.
        let normalised = document.replace("\r\n", "\n").replace('\r', "\n");
        let tree = roxmltree::Document::parse(&normalised);
        let compiled = Arc::new(XmlPaths::new(&paths));
        let whole = read(&compiled, paths.len(), Limits::default(), [document.as_str()]);
        match &tree {
            Ok(tree) => {
                prop_assert_eq!(whole.fault, None, "{}", document);
                for (path, id) in paths.iter().zip(0..) {
                    let found: Vec<_> = whole.values(id).into_iter().flatten().collect();
                    prop_assert_eq!(found, values(tree, path), "{:?} of {}", path, document);
                }
            }
            // A declaration that the choices put in made two attributes one.
            Err(_) => prop_assert!(whole.fault.is_some(), "{}", document),
        }
        let pieces = read(&compiled, paths.len(), Limits::default(), pieces(&document, &cuts));
        prop_assert_eq!(&pieces, &whole);
        let slow = read(&compiled, paths.len(), Limits::default(), characters(&document));
        prop_assert_eq!(&slow, &whole);
    }
}

/// The values of a path, step by step over the whole tree.
fn values(tree: &roxmltree::Document<'_>, path: &XmlPath) -> Vec<String> {
    let mut nodes = vec![tree.root()];
    for step in &path.steps {
        let mut next = Vec::new();
        for node in nodes {
            let found = match step.axis {
                XmlAxis::Child => node.children().collect::<Vec<_>>(),
                XmlAxis::Descendant => node.descendants().skip(1).collect(),
            };
            next.extend(found.into_iter().filter(|found| {
                is_called(*found, &step.name)
                    && step.position.is_none_or(|position| position.get() == place(*found, &step.name))
            }));
        }
        next.sort_unstable();
        next.dedup();
        nodes = next;
    }
    let Some(attribute) = &path.attribute else {
        return nodes.into_iter().filter(Node::is_element).map(text).collect();
    };
    let mut of: Vec<_> = match attribute.axis {
        XmlAxis::Child => nodes,
        XmlAxis::Descendant => nodes.iter().flat_map(Node::descendants).collect(),
    };
    of.sort_unstable();
    of.dedup();
    let all = of.iter().flat_map(Node::attributes);
    let called = all.filter(|found| {
        let namespace = attribute.name.namespace.as_deref();
        found.name() == attribute.name.local
            && namespace.is_none_or(|namespace| found.namespace().unwrap_or("") == namespace)
    });
    called.map(|found| found.value().to_owned()).collect()
}

fn is_called(node: Node<'_, '_>, name: &XmlName) -> bool {
    let namespace = node.tag_name().namespace().unwrap_or("");
    node.is_element()
        && node.tag_name().name() == name.local
        && name.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
}

/// Which one it is of the siblings that are called so.
fn place(node: Node<'_, '_>, name: &XmlName) -> u32 {
    node.prev_siblings().filter(|sibling| is_called(*sibling, name)).count() as u32
}

fn text(node: Node<'_, '_>) -> String {
    node.children().filter(Node::is_text).filter_map(|text| text.text()).collect()
}
