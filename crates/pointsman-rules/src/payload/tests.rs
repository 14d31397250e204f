//! Paths as they are read, and which of them cover others.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn shown(path: &str) -> String {
    let place = read(path, |prefix| (prefix == "p").then(|| "urn:p".into()));
    let name = |name: &XmlName| match &name.namespace {
        Some(uri) => format!("{{{uri}}}{}", name.local),
        None => name.local.to_string(),
    };
    match place {
        Ok(Place::Xml(path)) => {
            let one = if path.is_one() { "one " } else { "" };
            let steps = path.steps.iter().map(|step| {
                let depth = if step.is_any_depth { "//" } else { "/" };
                let position = step.position.map(|position| format!("[{position}]")).unwrap_or_default();
                format!("{depth}{}{position}", name(&step.name))
            });
            let attribute = path
                .attribute
                .iter()
                .map(|(attribute, any)| format!("{}@{}", if *any { "//" } else { "/" }, name(attribute)));
            one.to_owned() + &steps.chain(attribute).collect::<String>()
        }
        Ok(Place::Json(steps)) => steps
            .iter()
            .map(|step| match step {
                JsonStep::Member(name) => format!("[{name:?}]"),
                JsonStep::Index(index) => format!("[{index}]"),
                JsonStep::Each => "[*]".to_owned(),
            })
            .collect(),
        Ok(other) => format!("{other:?}"),
        Err(fault) => format!("{}..{}: {}", fault.at.0, fault.at.1, fault.message),
    }
}

#[test]
fn paths_and_what_is_none() {
    for (path, expected) in [
        ("xml.purchase/totalAmount", "/purchase/totalAmount"),
        ("xml.purchase", "one /purchase"),
        ("xml.purchase/totalAmount[1]", "one /purchase/totalAmount[1]"),
        ("xml.purchase[1]/subTotal[2]/@id", "one /purchase[1]/subTotal[2]/@id"),
        ("xml.//item", "//item"),
        ("xml.a//b[2]/c", "/a//b[2]/c"),
        ("xml.a//@id", "/a//@id"),
        ("xml.//@id", "//@id"),
        ("xml.p:a/p:b/@p:c", "/{urn:p}a/{urn:p}b/@{urn:p}c"),
        ("xml.a/\"b.c\"", "/a/b.c"),
        ("xml.q:a", "4..6: the prefix `q` is not declared"),
        ("xml.@id", "4..5: an attribute belongs to an element"),
        ("xml.a/@id/b", "9..10: nothing follows an attribute"),
        ("xml.a[0]", "6..7: positions count from 1"),
        ("xml.a/", "6..6: expected a name"),
        ("xml.a/\"\"", "6..7: expected a name"),
        ("json.a[0].b[*]", "[\"a\"][0][\"b\"][*]"),
        ("json[\"unit price\"][4294967295]", "[\"unit price\"][4294967295]"),
        ("json[\"unit price\"][4294967296]", "19..20: expected a position"),
        ("json.a..b", "7..8: expected a name"),
        ("json.a[x]", "7..8: expected a position"),
    ] {
        assert_eq!(shown(path), expected, "{path}");
    }
}

/// An element, seen from the root: of each on the way its namespace, its name, and its position among those of its name in
/// that namespace and in all.
type Element = Vec<(&'static str, &'static str, u32, u32)>;

/// Whether a path leads to an element, step by step.
fn leads_to(steps: &[XmlStep], element: &[(&str, &str, u32, u32)]) -> bool {
    let Some((step, rest)) = steps.split_first() else { return element.is_empty() };
    let far = if step.is_any_depth { element.len() } else { element.len().min(1) };
    (0..far).any(|depth| {
        let (namespace, local, of_namespace, of_all) = element[depth];
        let position = if step.name.namespace.is_some() { of_namespace } else { of_all };
        *step.name.local == *local
            && step.name.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
            && step.position.is_none_or(|wanted| wanted == position)
            && leads_to(rest, &element[depth + 1..])
    })
}

fn paths() -> impl Strategy<Value = Vec<XmlStep>> {
    let name = (proptest::option::of(select(vec!["", "u"])), select(vec!["a", "b"]));
    let step =
        (any::<bool>(), name, proptest::option::of(1u32..3)).prop_map(|(is_any_depth, name, position)| {
            let (namespace, local) = name;
            XmlStep {
                is_any_depth,
                name: XmlName { namespace: namespace.map(Into::into), local: local.into() },
                position,
            }
        });
    vec(step, 1..4)
}

fn elements() -> impl Strategy<Value = Element> {
    vec((select(vec!["", "u"]), select(vec!["a", "b"]), 1u32..3, 0u32..2), 1..5).prop_map(|element| {
        let step = |(namespace, local, position, more)| (namespace, local, position, position + more);
        element.into_iter().map(step).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// What a path leads to, one that covers it leads to as well.
    #[test]
    fn a_path_that_covers_another_leads_to_all_of_it(
        steps in paths(), others in paths(), elements in vec(elements(), 20), step in 0usize..4,
    ) {
        // Mostly one is made of the other: random ones have little in common.
        let mut general = others.clone();
        if let Some(step) = general.get_mut(step) {
            (step.position, step.is_any_depth) = (None, true);
        }
        for steps in [steps, general] {
            let path = |steps: &[XmlStep]| Place::Xml(XmlPath { steps: steps.into(), attribute: None });
            if path(&steps).covers(&path(&others)) {
                for element in elements.iter().filter(|element| leads_to(&others, element)) {
                    prop_assert!(leads_to(&steps, element), "{steps:?} {others:?} {element:?}");
                }
            }
        }
    }
}

#[test]
fn places_that_cover_others() {
    let place = |path| match path {
        "form" => Place::Form("a".into()),
        path => read(path, |_| Some("urn:p".into())).expect("a path"),
    };
    for (path, other, expected) in [
        ("xml.a/b", "xml.a/b", true),
        ("xml.a/b", "xml.a[1]/b[2]", true),
        ("xml.a/b[2]", "xml.a/b", false),
        ("xml.a/b[2]", "xml.a/b[2]", true),
        ("xml.//b", "xml.a/c//b[2]", true),
        ("xml.a//b", "xml.a/b", true),
        ("xml.a/b", "xml.a//b", false),
        ("xml.a/b", "xml.p:a/p:b", true),
        ("xml.p:a/b", "xml.a/b", false),
        ("xml.a/b[2]", "xml.a/p:b[2]", false),
        ("xml.a/@x", "xml.a[1]/@x", true),
        ("xml.a//@x", "xml.a/@x", true),
        ("xml.a/@x", "xml.a//@x", false),
        ("xml.a/b", "xml.a/@b", false),
        ("json.a[*].b", "json.a[3].b", true),
        ("json.a[3].b", "json.a[*].b", false),
        ("json.a", "json.a.b", false),
        ("json.a", "xml.a", false),
        ("form", "form", true),
    ] {
        assert_eq!(place(path).covers(&place(other)), expected, "{path} {other}");
    }
}
