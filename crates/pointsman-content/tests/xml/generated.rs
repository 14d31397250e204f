//! Documents and paths by choices, so that any list of numbers is a document, and a shorter one a smaller document.

use proptest::prelude::*;
use proptest::sample::select;

use super::reading::path;
use pointsman_content::XmlPath;

const NAMES: &[&str] = &["a", "b", "c", "p:a", "p:b", "q:a", "é", "a-b.c"];
const ATTRIBUTES: &[&str] = &["a", "b", "id", "p:a", "q:b", "xml:lang", "ü"];
const DECLARATIONS: &[&str] =
    &["xmlns='n'", "xmlns=\"\"", "xmlns:p=\"m\"", "xmlns:q='n'", "xmlns:q=\"m&amp;\"", "xmlns:r='m'"];
const TEXTS: &[&str] = &[
    "x",
    " ",
    "text of some words, and more of them",
    "\n    ",
    "\r\n",
    "\r",
    "\t",
    "]",
    "]]",
    "é漢\u{ff0c}😀",
    "&lt;",
    "&amp;",
    "&#65;",
    "&#x1F600;",
    "&#13;",
    "&#10;",
    "1",
    ">",
    "'",
    "\"",
];
const OTHERS: &[&str] = &[
    "<!---->",
    "<!-- a - b -->",
    "<?p?>",
    "<?p a?b ??>",
    "<![CDATA[]]>",
    "<![CDATA[<x>&amp;]]]>",
    "<![CDATA[ ]] > ]]>",
    "<![CDATA[\r\né]]>",
];

/// A well-formed document.
pub(crate) fn document() -> impl Strategy<Value = String> {
    let choices = prop::collection::vec(any::<u16>(), 0..120);
    let prolog = select(
        &["", "<?xml version='1.0'?>", "\n<!-- x -->\r\n", "<?xml version=\"1.0\" encoding='UTF-8'?>\n"][..],
    );
    let epilog = select(&["", "\n", "<!-- x --><?p x?>\n "][..]);
    (prolog, choices, epilog).prop_map(|(prolog, choices, epilog)| {
        let mut written = Written { document: prolog.to_owned(), open: Vec::new() };
        written.open("a", &choices);
        for (place, choice) in choices.iter().enumerate() {
            written.choose(*choice, choices.get(place + 1..).unwrap_or_default());
        }
        while !written.open.is_empty() {
            written.close();
        }
        written.document + epilog
    })
}

struct Written {
    document: String,
    open: Vec<&'static str>,
}

impl Written {
    fn choose(&mut self, choice: u16, rest: &[u16]) {
        let number = usize::from(choice / 8);
        match choice % 8 {
            0 | 1 if self.open.len() < 12 => self.open(NAMES[number % NAMES.len()], rest),
            0..=3 if self.open.len() > 1 => self.close(),
            4 => self.document.push_str(OTHERS[number % OTHERS.len()]),
            _ => {
                // What a text ends with may be `]]`.
                let text = TEXTS[number % TEXTS.len()];
                if !(text == ">" && self.document.ends_with("]]")) {
                    self.document.push_str(text);
                }
            }
        }
    }

    fn open(&mut self, name: &'static str, choices: &[u16]) {
        self.document.push('<');
        self.document.push_str(name);
        self.open.push(name);
        if self.open.len() == 1 {
            self.document.push_str(" xmlns:p='n' xmlns:q='m'");
        }
        let mut choices = choices.iter().map(|choice| usize::from(*choice));
        let mut next = || choices.next().unwrap_or_default();
        if next() % 7 == 1 && self.open.len() > 1 {
            self.document.push_str(["\n  ", " "][next() % 2]);
            self.document.push_str(DECLARATIONS[next() % DECLARATIONS.len()]);
        }
        let first = next();
        // One of each name, and none that may be another's by its namespace.
        for place in 0..first % 4 {
            let name = ATTRIBUTES[(first / 4 + place) % ATTRIBUTES.len()];
            self.document.push_str([" ", "\r\n\t", "  "][next() % 3]);
            self.document.push_str(name);
            self.document.push_str(["=", " =", "= ", "\n=\r"][next() % 4]);
            let quote = ["'", "\""][next() % 2];
            self.document.push_str(quote);
            for _ in 0..next() % 3 {
                let text = TEXTS[next() % TEXTS.len()];
                self.document.push_str(if text == quote { "-" } else { text });
            }
            self.document.push_str(quote);
        }
        self.document.push_str(["", " ", "\n"][next() % 3]);
        if next() % 5 == 1 && self.open.len() > 1 {
            self.document.push_str("/>");
            self.open.pop();
        } else {
            self.document.push('>');
        }
    }

    fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.document.push_str("</");
            self.document.push_str(name);
            self.document.push_str(["", "\n"][self.document.len() % 2]);
            self.document.push('>');
        }
    }
}

/// Some paths of the names that documents have.
pub(crate) fn paths() -> impl Strategy<Value = Vec<XmlPath>> {
    let name = || select(&["a", "b", "c", "é", "a-b.c", "{n}a", "{m}a", "{n}b", "{}b", "{}a", "x"][..]);
    let axis = || select(&["/", "/", "//"][..]);
    let position = select(&["", "", "", "[1]", "[2]", "[3]"][..]);
    let step = (axis(), name(), position).prop_map(|(axis, name, position)| [axis, name, position].concat());
    let attribute = select(&["", "", "/@a", "/@id", "//@a", "/@{n}a", "//@b", "/@lang", "/@{}ü"][..]);
    let first = select(&["/a", "/a", "/a[1]", "//a", "//b", "/{}a", "/b"][..]);
    let one = (first, prop::collection::vec(step, 0..4), attribute)
        .prop_map(|(first, steps, attribute)| path(&[first, &steps.concat(), attribute].concat()));
    prop::collection::vec(one, 1..8)
}

/// A document in pieces, at these places.
pub(crate) fn pieces<'a>(document: &'a str, cuts: &[prop::sample::Index]) -> Vec<&'a str> {
    let mut places: Vec<usize> =
        cuts.iter().map(|cut| document.floor_char_boundary(cut.index(document.len() + 1))).collect();
    places.extend([0, document.len()]);
    places.sort_unstable();
    places.array_windows().map(|[from, to]| &document[*from..*to]).collect()
}
