//! Generated documents, whole and damaged: `serde_json` finds the same values and refuses the same.

use pointsman_content::{Cause, JsonPath, JsonPaths, JsonReader, JsonStep, Limits, PathId};
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::reading::{Found, Heard, characters, pieces, read};

/// A document of our own, for members may repeat and numbers look as they like.
#[derive(Clone, Debug)]
enum Json {
    Scalar(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Few, so that paths meet them.
const NAMES: [&str; 7] = ["a", "b", "c", "", "größe", "a\"b\\", "a name of more than sixteen bytes"];

fn names() -> impl Strategy<Value = String> {
    prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned)
}

fn numbers() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,20})([.][0-9]{1,20})?([eE][+-]?[0-9]{1,2})?"
}

fn texts() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        6 => any::<char>(),
        3 => prop::sample::select("\"\\/\u{8}\u{c}\n\r\t\u{0}\u{7f}aé\u{2028}😀".chars().collect::<Vec<_>>()),
    ];
    prop_oneof![
        prop::collection::vec(character, 0..40).prop_map(|characters| characters.into_iter().collect()),
        "[ -~]{0,40}",
    ]
}

fn documents(repeats: bool) -> impl Strategy<Value = Json> {
    let literal = prop::sample::select(vec!["true", "false", "null"]).prop_map(str::to_owned);
    let leaf = prop_oneof![
        numbers().prop_map(Json::Scalar),
        literal.prop_map(Json::Scalar),
        texts().prop_map(Json::Text)
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        let members = prop::collection::vec((names(), inner.clone()), 0..6).prop_map(move |mut members| {
            if !repeats {
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                members.dedup_by(|(one, _), (other, _)| one == other);
            }
            Json::Object(members)
        });
        prop_oneof![prop::collection::vec(inner, 0..6).prop_map(Json::Array), members]
    })
}

fn paths() -> impl Strategy<Value = Vec<JsonPath>> {
    let step = prop_oneof![
        4 => names().prop_map(|name| JsonStep::Member(name.into())),
        2 => (0_u32..4).prop_map(JsonStep::Index),
        2 => Just(JsonStep::Every),
    ];
    prop::collection::vec(prop::collection::vec(step, 0..5).prop_map(JsonPath::from_iter), 0..12)
}

/// The document as a text: white space and escapes are chosen by `choices`, over and over.
fn text_of(json: &Json, choices: &[u8]) -> String {
    let mut writing = Writing { text: String::new(), choices: choices.iter().copied().cycle() };
    writing.json(json);
    writing.text
}

struct Writing<'a> {
    text: String,
    choices: std::iter::Cycle<std::iter::Copied<std::slice::Iter<'a, u8>>>,
}

impl Writing<'_> {
    fn json(&mut self, json: &Json) {
        self.space();
        match json {
            Json::Scalar(scalar) => self.text.push_str(scalar),
            Json::Text(text) => self.string(text),
            Json::Array(elements) => self.list('[', ']', elements, Writing::json),
            Json::Object(members) => self.list('{', '}', members, |writing, (name, value)| {
                writing.space();
                writing.string(name);
                writing.space();
                writing.text.push(':');
                writing.json(value);
            }),
        }
        self.space();
    }

    fn list<T>(&mut self, open: char, close: char, items: &[T], each: impl Fn(&mut Self, &T)) {
        self.text.push(open);
        self.space();
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                self.text.push(',');
            }
            each(self, item);
        }
        self.text.push(close);
    }

    fn space(&mut self) {
        let space = ["", "", "", " ", "\n", "\t ", "\r\n", "                  "];
        let choice = usize::from(self.choice() % 8);
        self.text.push_str(space[choice]);
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for character in text.chars() {
            let short = "\"\\/\u{8}\u{c}\n\r\t".find(character).map(|place| br#""\/bfnrt"#[place] as char);
            match (self.choice() % 4, short) {
                (0, _) => self.units(character),
                (_, Some(letter)) => self.text.extend(['\\', letter]),
                _ if character.is_control() => self.units(character),
                _ => self.text.push(character),
            }
        }
        self.text.push('"');
    }

    fn units(&mut self, character: char) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            let written = if self.choice().is_multiple_of(2) {
                format!("\\u{unit:04x}")
            } else {
                format!("\\u{unit:04X}")
            };
            self.text.push_str(&written);
        }
    }

    fn choice(&mut self) -> u8 {
        self.choices.next().unwrap_or(1)
    }
}

/// What a path leads to, by `serde_json`.
fn values<'v>(document: &'v Value, path: &JsonPath) -> Vec<&'v Value> {
    let mut found = vec![document];
    for step in &path.steps {
        found = found
            .into_iter()
            .flat_map(|value| match (step, value) {
                (JsonStep::Member(name), Value::Object(members)) => {
                    members.get(&**name).into_iter().collect()
                }
                (JsonStep::Index(index), Value::Array(elements)) => {
                    elements.get(*index as usize).into_iter().collect()
                }
                (JsonStep::Every, Value::Array(elements)) => elements.iter().collect::<Vec<_>>(),
                _ => Vec::new(),
            })
            .collect();
    }
    found
}

fn is_same(found: &Found, value: &Value, limits: Limits) -> bool {
    match (found, value) {
        (Found::Text(text), Value::String(other)) => text == other,
        (Found::TooLong, Value::String(other)) => other.len() > limits.value_bytes_max as usize,
        (Found::Number(text), Value::Number(_)) => {
            text.len() <= limits.value_bytes_max as usize
                && serde_json::from_str::<Value>(text).ok().as_ref() == Some(value)
        }
        (Found::TooLong, Value::Number(_)) => true,
        (Found::Boolean(is_true), Value::Bool(other)) => is_true == other,
        (Found::Other, Value::Null | Value::Array(_) | Value::Object(_)) => true,
        _ => false,
    }
}

/// Whether an object on a path repeats a member that the path names.
fn repeats_on(json: &Json, path: &JsonPath) -> bool {
    let mut found = vec![json];
    for step in &path.steps {
        let mut next = Vec::new();
        for json in found {
            match (step, json) {
                (JsonStep::Member(name), Json::Object(members)) => {
                    let mut named =
                        members.iter().filter(|(other, _)| **other == **name).map(|(_, json)| json);
                    next.extend(named.next());
                    if named.next().is_some() {
                        return true;
                    }
                }
                (JsonStep::Index(index), Json::Array(elements)) => next.extend(elements.get(*index as usize)),
                (JsonStep::Every, Json::Array(elements)) => next.extend(elements),
                _ => {}
            }
        }
        found = next;
    }
    false
}

/// Whether `serde_json` takes it as what nobody wants anything of: that sets no bounds on numbers, and lets lone
/// surrogates pass.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether reading stopped at what only matters where a path names members: a member twice, or a name that is no text.
fn stopped_at_a_member(heard: &Heard) -> bool {
    heard.outcome.is_some_and(|outcome| {
        outcome.is_err_and(|fault| {
            fault.cause == Cause::DuplicateKey || fault.what == "a lone surrogate in a name"
        })
    })
}

fn small_limits() -> impl Strategy<Value = Limits> {
    prop_oneof![Just(4096), 0_u32..30]
        .prop_map(|value_bytes_max| Limits { value_bytes_max, ..Limits::default() })
}

fn assert_same(whole: &Heard, other: &Heard) {
    assert_eq!(whole.calls(), other.calls());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn the_same_values_by_the_same_paths(
        json in documents(false),
        choices in prop::collection::vec(any::<u8>(), 1..50),
        paths in paths(),
        lengths in prop::collection::vec(0_usize..40, 1..8).prop_filter("some", |lengths| lengths.iter().any(|length| *length > 0)),
        limits in small_limits(),
    ) {
        let text = text_of(&json, &choices);
        let document: Value = serde_json::from_str(&text).expect("a document");
        let whole = read(&paths, limits, [text.as_str()]);
        prop_assert!(whole.is_accepted(), "{text}: {:?}", whole.outcome);
        for (path, id) in paths.iter().zip((0..).map(PathId)) {
            let (found, expected) = (whole.values(id), values(&document, path));
            prop_assert_eq!(found.len(), expected.len(), "{:?} in {}", path, text);
            for (found, expected) in found.into_iter().zip(expected) {
                prop_assert!(is_same(found, expected, limits), "{found:?} is not {expected} in {text}");
            }
        }
        let one_by_one = read(&paths, limits, characters(&text));
        assert_same(&whole, &one_by_one);
        assert_same(&whole, &read(&paths, limits, pieces(&text, &lengths)));
        for (path, id) in paths.iter().zip((0..).map(PathId)) {
            let is_single = !path.steps.contains(&JsonStep::Every);
            if is_single && !one_by_one.values(id).is_empty() {
                prop_assert!(one_by_one.ends_with_its_value(id), "{:?} in {}", path, text);
            }
        }
    }

    #[test]
    fn repeated_members_are_refused_on_paths_only(
        json in documents(true),
        choices in prop::collection::vec(any::<u8>(), 1..50),
        paths in paths(),
    ) {
        let text = text_of(&json, &choices);
        let whole = read(&paths, Limits::default(), [text.as_str()]);
        let fault = whole.outcome.expect("an outcome").err();
        if paths.iter().any(|path| repeats_on(&json, path)) {
            prop_assert_eq!(fault.map(|fault| fault.cause), Some(Cause::DuplicateKey), "{}", text);
            let at = fault.map_or(0, |fault| fault.at) as usize;
            prop_assert!(text[at..].starts_with('"'), "{at} in {text}");
        } else {
            prop_assert_eq!(fault, None, "{}", text);
        }
        assert_same(&whole, &read(&paths, Limits::default(), characters(&text)));
    }

    /// Deliberate differences: members that a path names and that repeat are refused, and so are more levels than the
    /// limit, which no document here has. Lone surrogates are refused in names beside those that a path names.
    #[test]
    fn what_is_damaged_is_refused_by_both(
        json in documents(true),
        choices in prop::collection::vec(any::<u8>(), 1..50),
        damages in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..4, damage()), 1..4),
        paths in paths(),
        lengths in prop::collection::vec(1_usize..20, 1..8),
    ) {
        let mut text = text_of(&json, &choices);
        for (at, how, damage) in damages {
            let at = text.floor_char_boundary(at.index(text.len() + 1));
            let end = if how == 0 { at } else { text.ceil_char_boundary((at + usize::from(how)).min(text.len())) };
            text.replace_range(at..end, damage);
        }
        let whole = read(&[], Limits::default(), [text.as_str()]);
        prop_assert_eq!(whole.is_accepted(), is_json(&text), "{}: {:?}", text, whole.outcome);
        assert_same(&whole, &read(&[], Limits::default(), characters(&text)));
        let with_paths = read(&paths, Limits::default(), [text.as_str()]);
        if stopped_at_a_member(&with_paths) {
            prop_assert!(!paths.is_empty());
        } else {
            prop_assert_eq!(with_paths.outcome, whole.outcome, "{}", text);
        }
        assert_same(&with_paths, &read(&paths, Limits::default(), characters(&text)));
        assert_same(&with_paths, &read(&paths, Limits::default(), pieces(&text, &lengths)));
    }

    #[test]
    fn soup_is_refused_by_both(
        text in prop::collection::vec(damage(), 0..12).prop_map(|pieces| pieces.concat()),
        paths in paths(),
    ) {
        let whole = read(&[], Limits::default(), [text.as_str()]);
        prop_assert_eq!(whole.is_accepted(), is_json(&text), "{}: {:?}", text, whole.outcome);
        let with_paths = read(&paths, Limits::default(), [text.as_str()]);
        assert_same(&with_paths, &read(&paths, Limits::default(), characters(&text)));
    }

    /// Another trie between pieces is a mistake of the owner's, and no reason to panic.
    #[test]
    fn paths_that_change_do_no_harm(
        json in documents(false),
        many in prop::collection::vec(paths(), 1..4),
        lengths in prop::collection::vec(1_usize..20, 1..8),
    ) {
        let text = text_of(&json, &[1]);
        let tries: Vec<JsonPaths> = many.iter().map(|paths| JsonPaths::new(paths)).collect();
        let mut reader = JsonReader::new(Limits::default());
        for (piece, paths) in pieces(&text, &lengths).into_iter().zip(tries.iter().cycle()) {
            if reader.feed(paths, piece, &mut Deaf).is_err() {
                break;
            }
        }
    }
}

/// Hears nothing.
struct Deaf;

impl pointsman_content::Sink for Deaf {
    fn begins(&mut self, _: PathId, _: u32) {}

    fn value(&mut self, _: PathId, _: u32, _: pointsman_content::Value<'_>) {}

    fn ends_unknown(&mut self, _: PathId, _: Cause) {}

    fn ends(&mut self, _: PathId) {}
}

fn damage() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        " ",
        "\n",
        "\u{b}",
        "0",
        "1",
        "-",
        "+",
        ".",
        "e",
        "E5",
        "01",
        "1.5",
        "true",
        "fals",
        "null",
        "\"a\"",
        "\"b\":",
        "{}",
        "[]",
        "\\u00",
        "\\ud800",
        "\\udc00",
        "\\n",
        "\\x",
        "\u{1}",
        "é",
        "😀",
        "/",
        "\"\\u0061\":",
        "\u{feff}",
    ])
}
