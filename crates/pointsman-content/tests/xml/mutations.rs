//! Damaged documents: what is taken, other readers take too, and however they are cut, the same is said of them.

use std::sync::Arc;

use pointsman_content::{Limits, XmlPaths};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::generated::{document, paths, pieces};
use super::reading::{characters, read};

const SOUP: &[&str] = &[
    "<",
    ">",
    "/",
    "</",
    "/>",
    "&",
    ";",
    "&#",
    "&#x",
    "&#0;",
    "&#x110000;",
    "'",
    "\"",
    "=",
    " ",
    "\n",
    "\r",
    "\t",
    "!",
    "?",
    "<!",
    "<!-",
    "<!--",
    "--",
    "-->",
    "<?",
    "?>",
    "<![CDATA[",
    "]]>",
    "]",
    "[",
    ":",
    "-",
    ".",
    "1",
    "a",
    "b",
    "p:",
    "xmlns",
    "xmlns:",
    "xml",
    "<?xml version='1.0'?>",
    "<a>",
    "</a>",
    "<b/>",
    " a='1'",
    " xmlns:p='n'",
    " xmlns:p=''",
    "<!DOCTYPE a>",
    "\u{0}",
    "\u{1}",
    "\u{7f}",
    "\u{85}",
    "\u{d7}",
    "é",
    "\u{37e}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{feff}",
    "😀",
];

/// A document with a few of its characters gone, and others put in.
fn damaged() -> impl Strategy<Value = String> {
    let damage = (any::<Index>(), 0..3_usize, select(SOUP));
    (document(), prop::collection::vec(damage, 1..4)).prop_map(|(document, damages)| {
        let mut characters: Vec<char> = document.chars().collect();
        for (at, gone, put) in damages {
            let at = at.index(characters.len() + 1);
            let end = (at + gone).min(characters.len());
            characters.splice(at..end, put.chars());
        }
        characters.into_iter().collect()
    })
}

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(select(SOUP), 0..25).prop_map(|words| words.concat())
}

/// What the reader refuses though roxmltree takes it, by what is said of it.
///
/// - A byte order mark, which whoever makes text of bytes has taken off here.
/// - Anything in the declaration; roxmltree hardly looks at it, and takes `<?xml?>` and `<?XML?>` for instructions.
/// - References to characters that there are not.
/// - Instructions without space behind their names, and colons in these (Namespaces in XML 1.0 section 7).
/// - Names that begin with a colon, the default namespace declared twice, a prefix declared as nothing, and the prefix
///   `xmlns` declared.
/// - An end tag whose name has a colon before it.
const STRICTER: &[&str] = &[
    "an XML declaration that is not as it has to be",
    "an XML declaration that is not at the start, or an instruction with its name",
    "a reference to nothing that XML itself has or allows",
    "an instruction without space behind its name",
    "an instruction with a colon in its name",
    "a colon that does not stand between two names",
    "an attribute that stands there twice",
    "a prefix that is declared as nothing",
    "a declaration of the prefix `xmlns`",
];

fn is_taken_by_quick_xml(document: &str) -> bool {
    let mut reader = quick_xml::Reader::from_str(document);
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

fn check(document: &str, paths: &[pointsman_content::XmlPath], cuts: &[Index]) -> Result<(), TestCaseError> {
    let compiled = Arc::new(XmlPaths::new(paths));
    let whole = read(&compiled, paths.len(), Limits::default(), [document]);
    let tree = roxmltree::Document::parse(document);
    if whole.fault.is_none() {
        let is_taken = tree.is_ok() || is_taken_by_quick_xml(document);
        prop_assert!(is_taken, "{:?} is taken by nobody else: {:?}", document, tree.err());
    }
    if let (Some(fault), Ok(_)) = (whole.fault, &tree) {
        let is_elsewhere = document.starts_with('\u{feff}') || document.contains("</:");
        let is_known = is_elsewhere || STRICTER.contains(&fault.what);
        prop_assert!(is_known, "{:?}: {}", document, fault);
    }
    if let Some(fault) = whole.fault {
        prop_assert!(fault.at <= document.len() as u64 && document.is_char_boundary(fault.at as usize));
    }
    for slow in [
        read(&compiled, paths.len(), Limits::default(), pieces(document, cuts)),
        read(&compiled, paths.len(), Limits::default(), characters(document)),
    ] {
        prop_assert_eq!(&slow, &whole, "{:?}", document);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn damaged_documents_are_not_taken_alone(
        document in damaged(),
        paths in paths(),
        cuts in prop::collection::vec(any::<Index>(), 0..10),
    ) {
        check(&document, &paths, &cuts)?;
    }

    #[test]
    fn soups_are_not_taken_alone(
        inside in soup(),
        paths in paths(),
        cuts in prop::collection::vec(any::<Index>(), 0..10),
    ) {
        check(&inside, &paths, &cuts)?;
        check(&format!("<a xmlns:p='n'>{inside}</a>"), &paths, &cuts)?;
        check(&format!("<a {inside}/>"), &paths, &cuts)?;
    }
}
