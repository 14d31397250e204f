//! Documents that are meant to hurt: what the reader holds of them has a bound, and each of their bytes costs the same.
//!
//! One program with one test, because what is held is counted for the whole process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_content::{
    Cause, Fault, Limits, PathId, Sink, Value, XmlAttribute, XmlAxis, XmlName, XmlPath, XmlPaths, XmlReader,
    XmlStep,
};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Bytes of an attack. Whoever takes time by the square takes minutes.
const BYTES: usize = 1 << 19;
const PATIENCE: Duration = Duration::from_secs(30);
/// What a reader with the default limits may hold, whatever comes: names and values of 64 elements, 64 attributes and
/// their values, and the namespaces.
const HELD_BYTES_MAX: u64 = (64 * (256 + 4096) + 64 * (256 + 4096) + 256 * (256 + 4096)) * 2;

/// A beginning, what follows it again and again, and how it comes out while there is no end.
type Attack = (&'static str, &'static str, &'static str, Option<Cause>);

const ATTACKS: &[Attack] = &[
    ("text that is asked for", "<a>", "x", None),
    ("text that nobody asks for", "<b>", "x", None),
    ("CDATA", "<a><![CDATA[", "x", None),
    ("brackets", "<a>", "]", None),
    ("brackets in CDATA", "<a><![CDATA[", "]", None),
    ("carriage returns", "<a>", "\r", None),
    ("high characters", "<a>", "\u{ff0c}", None),
    ("references", "<a>", "&#x41;", None),
    ("digits of a reference", "<a>&#", "0", None),
    ("a name that is none", "<a>&", "amp", Some(Cause::Malformed)),
    ("a comment", "<!--", "x", None),
    ("hyphens in a comment", "<!--", "- ", None),
    ("an instruction", "<?p ", "?", None),
    ("an instruction's name", "<?", "p", Some(Cause::Limit)),
    ("a declaration", "<?xml version='1.0'", " ", Some(Cause::Limit)),
    ("space", "", " ", None),
    ("space in a tag", "<a", " ", None),
    ("space before an equals sign", "<a b", "\n", None),
    ("space in an end tag", "<a></a", " ", None),
    ("an element's name", "<", "a", Some(Cause::Limit)),
    ("an element's prefix", "<a:", "a", Some(Cause::Limit)),
    ("an attribute's name", "<a ", "é", Some(Cause::Limit)),
    ("an attribute's value that is asked for", "<a id='", "x", None),
    ("an attribute's value that nobody asks for", "<a b='", "&lt;", None),
    ("a namespace's name", "<a xmlns='", "x", Some(Cause::Limit)),
    ("attributes that nobody asks for", "<a", " b='1'", Some(Cause::Limit)),
    ("attributes that are asked for", "<a", " id='1'", Some(Cause::Limit)),
    ("elements within each other", "", "<a>", Some(Cause::Limit)),
    ("elements", "<a>", "<a/>", None),
    ("elements with text", "<a>", "<a>x</a>", None),
    (
        "elements within each other, again and again",
        "<a>",
        "<a><a><a><a><a><a></a></a></a></a></a></a>",
        None,
    ),
    ("comments", "<a>", "<!---->", None),
    ("declarations", "<a>", "<b xmlns='n' xmlns:p='m'/>", None),
    ("all kinds of starts", "<a>", "<![CDATA[]]><?p?><!---->&lt;<b/>", None),
];

#[test]
fn what_is_held_and_what_it_costs_have_bounds() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let paths = paths();
    for (what, opening, repeated, cause) in ATTACKS {
        let piece = repeated.repeat(1 + 4096 / repeated.len());
        let started = Instant::now();
        let before = dhat::HeapStats::get().curr_bytes;
        let mut reader = XmlReader::new(Arc::clone(&paths), Limits::default());
        let mut fed = reader.feed(opening, &mut Deaf);
        for _ in 0..BYTES / piece.len() {
            fed = reader.feed(&piece, &mut Deaf);
        }
        let held = dhat::HeapStats::get().curr_bytes - before;
        assert_eq!(fed.err().map(|fault| fault.cause), *cause, "{what}");
        assert!((held as u64) < HELD_BYTES_MAX, "{what}: {held} bytes are held");
        assert!(started.elapsed() < PATIENCE, "{what}: {:?}", started.elapsed());
        assert!(reader.finish(&mut Deaf).is_err(), "{what} has an end");
    }
    an_order_of_any_size_is_held_alike(&paths);
    entities_are_not_even_declared(&paths);
    attributes_are_told_apart_in_time();
    depth_costs_what_it_is();
    prefixes_are_found_in_time(&paths);
}

/// What is held does not grow with the document.
fn an_order_of_any_size_is_held_alike(paths: &Arc<XmlPaths>) {
    let items = "<item id='1'><name>Lawnmower</name><a>1</a></item>".repeat(100);
    let mut held = [1, 100].map(|times| {
        let before = dhat::HeapStats::get().curr_bytes;
        let mut reader = XmlReader::new(Arc::clone(paths), Limits::default());
        reader.feed("<order>", &mut Deaf).expect("it is well-formed");
        for _ in 0..times {
            reader.feed(&items, &mut Deaf).expect("it is well-formed");
        }
        let held = dhat::HeapStats::get().curr_bytes - before;
        reader
            .feed("</order>", &mut Deaf)
            .and_then(|()| reader.finish(&mut Deaf))
            .expect("it is well-formed");
        held
    });
    held.sort_unstable();
    assert_eq!(held[0], held[1]);
}

fn entities_are_not_even_declared(paths: &Arc<XmlPaths>) {
    let mut laughs = "<?xml version=\"1.0\"?><!DOCTYPE lolz [<!ENTITY lol \"lol\">".to_owned();
    for number in 1..10 {
        laughs += &format!("<!ENTITY lol{number} \"{}\">", format!("&lol{};", number - 1).repeat(10));
    }
    laughs += "]><lolz>&lol9;</lolz>";
    let external = "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>";
    for (document, at) in [(laughs.as_str(), 21), (external, 0), ("<a>&lol9;</a>", 3)] {
        let fault = XmlReader::new(Arc::clone(paths), Limits::default()).feed(document, &mut Deaf);
        let found = fault.map_err(|Fault { cause, at, .. }| (cause, at));
        assert_eq!(found, Err((Cause::Malformed, at)), "{document}");
    }
}

/// With the limits out of the way: names of one length, of one beginning, and of one namespace by two prefixes.
fn attributes_are_told_apart_in_time() {
    const COUNT: usize = 30_000;
    let limits = Limits { attributes_max: u32::MAX, ..Limits::default() };
    let paths = Arc::new(XmlPaths::new(&[]));
    let attributes =
        |prefix: &str| -> String { (0..COUNT).map(|number| format!(" {prefix}{number:08}=''")).collect() };
    let of_two = |name: &str| {
        format!("<a xmlns:p='n' xmlns:q='{name}'{}{}/>", attributes("p:attribute"), attributes("q:attribute"))
    };
    let twice = attributes("a");
    for (document, is_taken) in [
        (format!("<a{}/>", attributes("attribute")), true),
        (format!("<a{twice}{twice}/>"), false),
        (of_two("m"), true),
        (of_two("n"), false),
    ] {
        let started = Instant::now();
        let mut reader = XmlReader::new(Arc::clone(&paths), limits);
        assert_eq!(reader.feed(&document, &mut Deaf).is_ok(), is_taken);
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    }
}

/// With the limits out of the way, and steps to any depth that could each be any of the elements around.
fn depth_costs_what_it_is() {
    const DEPTH: usize = 100_000;
    let limits = Limits { depth_max: u32::MAX, ..Limits::default() };
    let step = |axis| XmlStep { axis, name: name("a"), position: None };
    let steps = |count| XmlPath { steps: vec![step(XmlAxis::Descendant); count], attribute: None };
    for paths in [vec![], vec![steps(1)], (1..=8).map(steps).collect()] {
        let started = Instant::now();
        let mut reader = XmlReader::new(Arc::new(XmlPaths::new(&paths)), limits);
        reader.feed(&"<a>".repeat(DEPTH), &mut Deaf).expect("it is well-formed");
        reader.feed(&"</a>".repeat(DEPTH), &mut Deaf).expect("it is well-formed");
        reader.finish(&mut Deaf).expect("it is well-formed");
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    }
}

/// Prefixes that begin and end alike, of which the first is asked for behind all others.
fn prefixes_are_found_in_time(paths: &Arc<XmlPaths>) {
    let mut document = String::new();
    for outer in 0..4 {
        document += "<a";
        for inner in 0..64 {
            document += &format!(" xmlns:prefix{:04}x='n'", outer * 64 + inner);
        }
        document += ">";
    }
    document += &"<prefix0000x:a/>".repeat(BYTES / 16);
    let started = Instant::now();
    let mut reader = XmlReader::new(Arc::clone(paths), Limits::default());
    reader.feed(&document, &mut Deaf).expect("it is well-formed");
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    let one_more = reader.feed("<a xmlns='n'>", &mut Deaf).map_err(|fault| fault.cause);
    assert_eq!(one_more, Err(Cause::Limit));
}

fn name(local: &str) -> XmlName {
    XmlName { namespace: None, local: local.to_owned() }
}

/// `a`, `//a//a//a//a`, `//a[2]`, `//@id`.
fn paths() -> Arc<XmlPaths> {
    let step = |axis, position: u32| XmlStep { axis, name: name("a"), position: position.try_into().ok() };
    let of = |steps| XmlPath { steps, attribute: None };
    let id = XmlAttribute { axis: XmlAxis::Descendant, name: name("id") };
    Arc::new(XmlPaths::new(&[
        of(vec![step(XmlAxis::Child, 0)]),
        of(vec![step(XmlAxis::Descendant, 0); 4]),
        of(vec![step(XmlAxis::Descendant, 2)]),
        XmlPath { steps: Vec::new(), attribute: Some(id) },
    ]))
}

/// Hears nothing, and takes no memory for it.
struct Deaf;

impl Sink for Deaf {
    fn begins(&mut self, _: PathId, _: u32) {}

    fn value(&mut self, _: PathId, _: u32, _: Value<'_>) {}

    fn ends_unknown(&mut self, _: PathId, _: pointsman_content::Cause) {}

    fn ends(&mut self, _: PathId) {}
}
