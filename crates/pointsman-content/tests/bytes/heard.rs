//! A sink that writes down what it hears, and holds readers to the order in which they say it.

use std::collections::BTreeMap;

use pointsman_content::{
    Cause, Fault, FormNames, FormOptions, FormReading, Limits, MultipartReader, PathId, Sink,
    UrlencodedReader, Value,
};

/// What was heard of each path: its values in order, whether they have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) values: BTreeMap<u32, Vec<Option<Field>>>,
    /// Why it is not known whether a path has more values.
    pub(crate) unknown: BTreeMap<u32, Cause>,
    pub(crate) ended: u32,
}

/// A value, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Text(String),
    TooLong,
    Undecodable(Cause),
}

impl Sink for Heard {
    fn begins(&mut self, path: PathId, number: u32) {
        let values = self.values.entry(path.0).or_default();
        assert_eq!(values.len(), number as usize, "values are counted");
        assert!(values.last().is_none_or(Option::is_some), "fields do not overlap");
        assert_eq!(self.ended, 0);
        values.push(None);
    }

    fn value(&mut self, path: PathId, number: u32, value: Value<'_>) {
        let values = self.values.get_mut(&path.0).expect("it has begun");
        let heard = match value {
            Value::Text(text) => Field::Text(text.to_owned()),
            Value::TooLong => Field::TooLong,
            Value::Undecodable(cause) => Field::Undecodable(cause),
            other => panic!("{other:?} in a form"),
        };
        let place = values.get_mut(number as usize).expect("it has begun");
        assert!(place.replace(heard).is_none(), "a value is whole once");
    }

    fn ends_unknown(&mut self, path: PathId, cause: Cause) {
        assert_eq!(self.ended, 0);
        self.unknown.entry(path.0).or_insert(cause);
    }

    fn ends(&mut self, path: PathId) {
        assert_eq!(path.0, self.ended, "each path ends once");
        self.ended += 1;
    }
}

/// What is said of a form: the fields heard of, and what was wrong.
pub(crate) type Outcome = (Heard, Result<(), Fault>);

/// Reads `application/x-www-form-urlencoded` that comes in these pieces.
pub(crate) fn urlencoded<'a>(
    names: &FormNames,
    charset: Option<&[u8]>,
    limits: &Limits,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Outcome {
    urlencoded_as(names, &FormOptions { charset, ..options(limits) }, pieces)
}

/// The usual options.
pub(crate) fn options(limits: &Limits) -> FormOptions<'_> {
    FormOptions { charset: None, reading: FormReading::Literal, limits }
}

/// Reads `application/x-www-form-urlencoded` in this way.
pub(crate) fn urlencoded_as<'a>(
    names: &FormNames,
    options: &FormOptions<'_>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Outcome {
    let mut heard = Heard::default();
    let read = UrlencodedReader::new(names, options).and_then(|mut reader| {
        let read = pieces
            .into_iter()
            .try_for_each(|piece| reader.feed(names, piece, &mut heard))
            .and_then(|()| reader.finish(names, &mut heard));
        if let Err(fault) = read {
            assert_eq!(reader.feed(names, b"a=b", &mut heard), Err(fault), "a fault stays");
            assert_eq!(reader.finish(names, &mut heard), Err(fault), "a fault stays");
        }
        read
    });
    check_ended(&heard, read.is_ok(), names);
    (heard, read)
}

/// Reads `multipart/form-data` that comes in these pieces.
pub(crate) fn multipart<'a>(
    names: &FormNames,
    boundary: &[u8],
    limits: &Limits,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Outcome {
    multipart_as(names, boundary, &options(limits), pieces)
}

/// Reads `multipart/form-data` in this way.
pub(crate) fn multipart_as<'a>(
    names: &FormNames,
    boundary: &[u8],
    options: &FormOptions<'_>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Outcome {
    let mut heard = Heard::default();
    let read = MultipartReader::new(names, boundary, options).and_then(|mut reader| {
        let read = pieces
            .into_iter()
            .try_for_each(|piece| reader.feed(names, piece, &mut heard))
            .and_then(|()| reader.finish(&mut heard));
        if let Err(fault) = read {
            assert_eq!(reader.feed(names, b"--", &mut heard), Err(fault), "a fault stays");
            assert_eq!(reader.finish(&mut heard), Err(fault), "a fault stays");
        }
        read
    });
    check_ended(&heard, read.is_ok(), names);
    (heard, read)
}

fn check_ended(heard: &Heard, is_read: bool, names: &FormNames) {
    assert_eq!(heard.ended, if is_read { names.count() } else { 0 });
    assert!(!is_read || heard.values.values().flatten().all(Option::is_some));
}

/// A cause as vector files name it.
pub(crate) fn name_of(cause: Cause) -> &'static str {
    match cause {
        Cause::Malformed => "malformed",
        Cause::Encoding => "encoding",
        Cause::Limit => "limit",
        Cause::DuplicateKey => "duplicate key",
        Cause::Ambiguous => "ambiguous",
    }
}

/// `bytes` in pieces of these lengths, over and over.
pub(crate) fn cut<'a>(bytes: &'a [u8], pieces: &[usize]) -> Vec<&'a [u8]> {
    let (mut rest, mut all) = (bytes, Vec::new());
    for piece in pieces.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at((*piece).clamp(1, rest.len()));
        all.push(piece);
        rest = behind;
    }
    all
}
