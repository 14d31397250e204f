//! What stands in JSON that is read or answered, as data: from it the description of the API has its schemas.

use serde_json::{Map, Value, json};

/// What a value may be.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A text.
    Text,
    /// A time as RFC 3339 writes it.
    Time,
    /// A number from 0 on.
    Count,
    /// A number between these.
    Within(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of these texts.
    Word(&'static [&'static str]),
    /// What is described elsewhere.
    Any,
    /// It, or null.
    OrNull(&'static Shape),
    /// None of it, or any number.
    List(&'static Shape),
    /// All of these members.
    Object(&'static [(&'static str, Shape)]),
    /// None of these members, or some, and no others.
    Some(&'static [(&'static str, Shape)]),
    /// The first of these members, perhaps some of the others, and no others.
    FirstOf(&'static [(&'static str, Shape)]),
    /// One or the other.
    Either(&'static [Shape]),
    /// What all of them have.
    All(&'static [Shape]),
    /// The number of the API's version.
    Version,
}

impl Shape {
    /// As JSON Schema says it (draft 2020-12).
    pub(crate) fn schema(&self) -> Value {
        match self {
            Shape::Text => json!({ "type": "string" }),
            Shape::Time => json!({ "type": "string", "format": "date-time" }),
            Shape::Count => json!({ "type": "integer", "minimum": 0 }),
            Shape::Within(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Shape::Flag => json!({ "type": "boolean" }),
            Shape::Word(words) => json!({ "type": "string", "enum": words }),
            Shape::Any => json!({}),
            Shape::OrNull(shape) => json!({ "anyOf": [shape.schema(), { "type": "null" }] }),
            Shape::List(shape) => json!({ "type": "array", "items": shape.schema() }),
            Shape::Object(members) => {
                let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
                json!({ "type": "object", "required": names, "properties": properties(members) })
            }
            Shape::Some(members) => closed(members, &[]),
            Shape::FirstOf(members) => {
                let first: Vec<&str> = members.first().map(|(name, _)| *name).into_iter().collect();
                closed(members, &first)
            }
            Shape::Either(shapes) => {
                json!({ "anyOf": shapes.iter().map(Shape::schema).collect::<Vec<_>>() })
            }
            Shape::All(shapes) => json!({ "allOf": shapes.iter().map(Shape::schema).collect::<Vec<_>>() }),
            Shape::Version => json!({ "type": "integer", "const": 1 }),
        }
    }
}

fn closed(members: &[(&'static str, Shape)], required: &[&str]) -> Value {
    json!({
        "type": "object",
        "required": required,
        "properties": properties(members),
        "additionalProperties": false,
    })
}

fn properties(members: &[(&'static str, Shape)]) -> Map<String, Value> {
    members.iter().map(|(name, shape)| ((*name).to_owned(), shape.schema())).collect()
}
