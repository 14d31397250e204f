//! Documents fed in pieces, and what is told of them.

use std::collections::HashMap;

use pointsman_content::{Cause, Fault, JsonPath, JsonPaths, JsonReader, Limits, PathId, Sink, Value};

/// One call of a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Begins(PathId, u32),
    Value(PathId, u32, Found),
    Ends(PathId),
}

/// A value that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Text(String),
    Number(String),
    Boolean(bool),
    Other,
    TooLong,
    Undecodable(Cause),
}

/// Everything that a reader told, each with the bytes that it had been fed by then; and that it kept its promises.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) told: Vec<(usize, Told)>,
    pub(crate) outcome: Option<Result<(), Fault>>,
    fed: usize,
    /// Values that have begun, those that are whole, and whether it has ended, by path.
    paths: HashMap<PathId, (u32, u32, bool)>,
}

impl Sink for Heard {
    fn begins(&mut self, path: PathId, number: u32) {
        let (begun, whole, has_ended) = self.paths.entry(path).or_default();
        assert_eq!((number, *whole), (*begun, *begun), "values of {path:?} come one behind the other");
        assert!(!*has_ended, "{path:?} has ended");
        *begun += 1;
        self.told.push((self.fed, Told::Begins(path, number)));
    }

    fn value(&mut self, path: PathId, number: u32, value: Value<'_>) {
        let (begun, whole, has_ended) = self.paths.entry(path).or_default();
        assert_eq!((number, *begun), (*whole, *whole + 1), "a value of {path:?} has begun before");
        assert!(!*has_ended, "{path:?} has ended");
        *whole += 1;
        let found = match value {
            Value::Text(text) => Found::Text(text.to_owned()),
            Value::Number(text) => Found::Number(text.to_owned()),
            Value::Boolean(is_true) => Found::Boolean(is_true),
            Value::Other => Found::Other,
            Value::TooLong => Found::TooLong,
            Value::Undecodable(cause) => Found::Undecodable(cause),
        };
        self.told.push((self.fed, Told::Value(path, number, found)));
    }

    fn ends_unknown(&mut self, path: PathId, cause: Cause) {
        panic!("{path:?} is unknown in JSON: {cause:?}");
    }

    fn ends(&mut self, path: PathId) {
        let (begun, whole, has_ended) = self.paths.entry(path).or_default();
        assert!(!*has_ended && begun == whole, "{path:?} ends once, behind its last value");
        *has_ended = true;
        self.told.push((self.fed, Told::Ends(path)));
    }
}

impl Heard {
    /// Without how much had been fed: what does not depend on cuts.
    pub(crate) fn calls(&self) -> (Vec<&Told>, Option<Result<(), Fault>>) {
        (self.told.iter().map(|(_, told)| told).collect(), self.outcome)
    }

    pub(crate) fn is_accepted(&self) -> bool {
        self.outcome == Some(Ok(()))
    }

    /// Whether a path ended with the byte that its last value was told by.
    pub(crate) fn ends_with_its_value(&self, of: PathId) -> bool {
        let mut value_fed = None;
        for (fed, told) in &self.told {
            match told {
                Told::Value(path, ..) if *path == of => value_fed = Some(*fed),
                Told::Ends(path) if *path == of => return value_fed == Some(*fed),
                _ => {}
            }
        }
        false
    }

    /// The values of a path, in their order.
    pub(crate) fn values(&self, of: PathId) -> Vec<&Found> {
        let value = |(_, told): &'_ (usize, Told)| matches!(told, Told::Value(path, ..) if *path == of);
        let values = self.told.iter().filter(|told| value(told));
        values
            .filter_map(|(_, told)| if let Told::Value(_, _, found) = told { Some(found) } else { None })
            .collect()
    }
}

/// Feeds these pieces.
pub(crate) fn read<'a>(
    paths: &[JsonPath],
    limits: Limits,
    pieces: impl IntoIterator<Item = &'a str>,
) -> Heard {
    let trie = JsonPaths::new(paths);
    let mut heard = Heard::default();
    let mut reader = JsonReader::new(limits);
    let mut outcome = Ok(());
    for piece in pieces {
        heard.fed += piece.len();
        outcome = reader.feed(&trie, piece, &mut heard);
        if outcome.is_err() {
            let told = heard.told.len();
            assert_eq!(reader.feed(&trie, " ", &mut heard), outcome, "a fault is returned again");
            assert_eq!((reader.finish(&trie, &mut heard), heard.told.len()), (outcome, told));
            break;
        }
    }
    if outcome.is_ok() {
        outcome = reader.finish(&trie, &mut heard);
    }
    if outcome.is_ok() {
        for path in 0..paths.len() as u32 {
            let (_, _, has_ended) = heard.paths.get(&PathId(path)).copied().unwrap_or_default();
            assert!(has_ended, "path {path} has ended");
        }
    }
    heard.outcome = Some(outcome);
    heard
}

/// One character each.
pub(crate) fn characters(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(|_: char| true)
}

/// Pieces of these lengths, over and over, cut between characters.
pub(crate) fn pieces<'a>(text: &'a str, lengths: &[usize]) -> Vec<&'a str> {
    let (mut rest, mut pieces) = (text, Vec::new());
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at(rest.ceil_char_boundary(*length));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}
