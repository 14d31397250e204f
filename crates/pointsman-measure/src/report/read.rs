//! Reads a document: what is wrong is named by its place, and nothing grows without a bound.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::document::{Document, Figure, Run, SCHEMA};
use crate::chart::{Axis, Chart, Content, Layer, Line};
use crate::table::{Cell, Table};
use crate::verdict::Colour;

/// A longer document is refused.
pub const DOCUMENT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A document has this many runs at most.
pub const RUNS_MAX: usize = 32;

/// What is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadDocument {
    /// Where, such as `runs[0].figures[2].value`; empty for the whole.
    pub place: String,
    /// What, in a sentence.
    pub message: String,
}

impl fmt::Display for BadDocument {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            out.write_str(&self.message)
        } else {
            write!(out, "`{}`: {}", self.place, self.message)
        }
    }
}

impl std::error::Error for BadDocument {}

type Read<T> = Result<T, BadDocument>;

fn bad<T>(place: &str, message: impl Into<String>) -> Read<T> {
    Err(BadDocument { place: place.to_owned(), message: message.into() })
}

impl Document {
    /// Reads a document from JSON, or from a page that was made of it.
    ///
    /// # Errors
    /// As [`Document::from_json`]; a page without a document.
    pub fn read(text: &str) -> Result<Self, BadDocument> {
        if !text.trim_start().starts_with('<') {
            return Self::from_json(text);
        }
        let json = text.split_once(super::page::BEFORE_DOCUMENT).and_then(|(_, rest)| rest.split_once('<'));
        match json {
            // In the document `<` is written in another way.
            Some((json, _)) => Self::from_json(json),
            None => bad("", "this page is no report: there is no document in it"),
        }
    }

    /// Reads a document of this [schema](SCHEMA).
    ///
    /// # Errors
    /// The first thing that is wrong: no JSON, another schema, a key that is missing or not known, a value of another kind.
    pub fn from_json(text: &str) -> Result<Self, BadDocument> {
        if text.len() > DOCUMENT_BYTES_MAX {
            return bad("", format!("{} bytes are too many: {DOCUMENT_BYTES_MAX} are the most", text.len()));
        }
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return bad("", format!("this is no JSON: {error}")),
        };
        let mut object = Object::of(value, "")?;
        let schema = object.text("schema")?;
        if schema != SCHEMA {
            return bad("schema", format!("`{schema}` is not known; `{SCHEMA}` is"));
        }
        let document = Self { title: object.text("title")?, runs: object.list("runs", run)? };
        if document.runs.len() > RUNS_MAX {
            return bad("runs", format!("a document has {RUNS_MAX} runs at most"));
        }
        object.end()?;
        Ok(document)
    }
}

/// An object whose keys are taken one after the other.
struct Object {
    place: String,
    entries: Map<String, Value>,
}

impl Object {
    fn of(value: Value, place: &str) -> Read<Self> {
        match value {
            Value::Object(entries) => Ok(Self { place: place.to_owned(), entries }),
            _ => bad(place, "an object is wanted"),
        }
    }

    fn below(&self, key: &str) -> String {
        if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    fn take(&mut self, key: &str) -> Read<Value> {
        match self.entries.remove(key) {
            Some(value) => Ok(value),
            None => bad(&self.below(key), "it is missing"),
        }
    }

    fn text(&mut self, key: &str) -> Read<String> {
        let value = self.take(key)?;
        text(value, &self.below(key))
    }

    /// What `read` makes of the value of a key, or its default where the key is missing or null.
    fn or_default<T: Default>(&mut self, key: &str, read: impl FnOnce(Value, &str) -> Read<T>) -> Read<T> {
        match self.entries.remove(key) {
            None | Some(Value::Null) => Ok(T::default()),
            Some(value) => read(value, &self.below(key)),
        }
    }

    fn list<T>(&mut self, key: &str, read: impl Fn(Value, &str) -> Read<T>) -> Read<Vec<T>> {
        self.or_default(key, |value, place| list(value, place, read))
    }

    /// Nothing may be left.
    fn end(self) -> Read<()> {
        match self.entries.keys().next() {
            Some(key) => bad(&self.below(key), "this key is not known"),
            None => Ok(()),
        }
    }
}

fn text(value: Value, place: &str) -> Read<String> {
    match value {
        Value::String(text) => Ok(text),
        _ => bad(place, "a text is wanted"),
    }
}

fn flag(value: Value, place: &str) -> Read<bool> {
    value.as_bool().map_or_else(|| bad(place, "true or false is wanted"), Ok)
}

/// `null` is what JSON has for what is no number.
fn number(value: Value, place: &str) -> Read<f64> {
    match value {
        Value::Null => Ok(f64::NAN),
        Value::Number(number) => number.as_f64().map_or_else(|| bad(place, "a number is wanted"), Ok),
        _ => bad(place, "a number is wanted"),
    }
}

fn list<T>(value: Value, place: &str, read: impl Fn(Value, &str) -> Read<T>) -> Read<Vec<T>> {
    let Value::Array(values) = value else { return bad(place, "a list is wanted") };
    values.into_iter().enumerate().map(|(at, value)| read(value, &format!("{place}[{at}]"))).collect()
}

fn numbers<const N: usize>(value: Value, place: &str) -> Read<[f64; N]> {
    let numbers = list(value, place, number)?;
    numbers.try_into().map_or_else(|_| bad(place, format!("a list of {N} numbers is wanted")), Ok)
}

fn texts_by_name(value: Value, place: &str) -> Read<BTreeMap<String, String>> {
    let object = Object::of(value, place)?;
    let read = |(key, value)| text(value, &format!("{place}.{key}")).map(|text| (key, text));
    object.entries.into_iter().map(read).collect()
}

fn run(value: Value, place: &str) -> Read<Run> {
    let mut object = Object::of(value, place)?;
    let mut verdict = Object::of(object.take("verdict")?, &object.below("verdict"))?;
    let colour = match verdict.text("colour")?.as_str() {
        "green" => Colour::Green,
        "amber" => Colour::Amber,
        "red" => Colour::Red,
        other => {
            return bad(
                &verdict.below("colour"),
                format!("`{other}` is no colour: green, amber and red are"),
            );
        }
    };
    let reasons = verdict.list("reasons", text)?;
    verdict.end()?;
    let run = Run {
        name: object.text("name")?,
        started: object.or_default("started", text)?,
        machine: object.or_default("machine", texts_by_name)?,
        versions: object.or_default("versions", texts_by_name)?,
        settings: object.or_default("settings", texts_by_name)?,
        colour,
        reasons,
        answer: object.or_default("answer", text)?,
        figures: object.list("figures", figure)?,
        charts: object.list("charts", chart)?,
        tables: object.list("tables", table)?,
        outcome: object.entries.remove("outcome").filter(|outcome| !outcome.is_null()),
    };
    object.end()?;
    Ok(run)
}

fn figure(value: Value, place: &str) -> Read<Figure> {
    let mut object = Object::of(value, place)?;
    let some = |value, place: &str| number(value, place).map(Some);
    let (low, high) = (object.or_default("low", some)?, object.or_default("high", some)?);
    let figure = Figure {
        name: object.text("name")?,
        unit: object.text("unit")?,
        value: object.or_default("value", some)?,
        interval: low.zip(high),
    };
    object.end()?;
    Ok(figure)
}

fn chart(value: Value, place: &str) -> Read<Chart> {
    let mut object = Object::of(value, place)?;
    let (id, title) = (object.text("id")?, object.text("title")?);
    let x = axis(object.take("x")?, &object.below("x"))?;
    let y = axis(object.take("y")?, &object.below("y"))?;
    let content = if object.entries.contains_key("lines") {
        Content::Lines(object.list("lines", line)?)
    } else {
        Content::Bars { categories: object.list("categories", text)?, layers: object.list("layers", layer)? }
    };
    object.end()?;
    Ok(Chart { id, title, x, y, content })
}

fn axis(value: Value, place: &str) -> Read<Axis> {
    let mut object = Object::of(value, place)?;
    let axis = Axis {
        label: object.text("label")?,
        is_log: object.or_default("log", flag)?,
        is_from_zero: object.or_default("from_zero", flag)?,
    };
    object.end()?;
    Ok(axis)
}

fn line(value: Value, place: &str) -> Read<Line> {
    let mut object = Object::of(value, place)?;
    let line = Line {
        name: object.text("name")?,
        points: object.list("points", |value, place| numbers(value, place).map(|[x, y]| (x, y)))?,
        band: object
            .list("band", |value, place| numbers(value, place).map(|[x, low, high]| (x, low, high)))?,
        is_stepped: object.or_default("stepped", flag)?,
        is_scattered: object.or_default("scattered", flag)?,
    };
    object.end()?;
    Ok(line)
}

fn layer(value: Value, place: &str) -> Read<Layer> {
    let mut object = Object::of(value, place)?;
    let layer = Layer { name: object.text("name")?, values: object.list("values", number)? };
    object.end()?;
    Ok(layer)
}

fn table(value: Value, place: &str) -> Read<Table> {
    let mut object = Object::of(value, place)?;
    let cell = |value: Value, place: &str| match value {
        Value::String(text) => Ok(Cell::Text(text)),
        Value::Null => Ok(Cell::Empty),
        other => number(other, place).map(Cell::Number),
    };
    let table = Table {
        title: object.text("title")?,
        columns: object.list("columns", text)?,
        rows: object.list("rows", |value, place| list(value, place, cell))?,
    };
    object.end()?;
    Ok(table)
}
