//! Kinds of bodies, and the media types that say them.

use pointsman_rules::{Field, Place};

use super::spelled::Cover;
use crate::wanted::{Sketch, Values};

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    Xml,
    Form,
}

impl Kind {
    /// The kind of body that such a field stands in.
    pub(super) fn of_field(field: &Field) -> Option<Kind> {
        let Field::Payload(payload) = field else { return None };
        match payload.place {
            Place::Json(_) => Some(Kind::Json),
            Place::Xml(_) => Some(Kind::Xml),
            Place::Form(_) => Some(Kind::Form),
            Place::Size => None,
        }
    }

    /// The kind in which something is to stand.
    pub(super) fn of(sketch: &Sketch<'_>) -> Option<Kind> {
        let has_something = |values: &Values| !values.known.is_empty() || values.rest.is_some();
        let mut something = sketch.fields.iter().filter(|(_, values)| has_something(values));
        something.find_map(|(field, _)| Kind::of_field(field))
    }

    /// Its media types, with their parameters or without.
    pub(super) fn media_type(self, has_parameters: bool) -> Cover {
        const TOKEN: &str = "[0-9A-Za-z!#$&^_.+-]+";
        let (further, tail) = match has_parameters {
            true => (format!("(?:[ \\t]*;[ \\t]*{TOKEN}={TOKEN})*$"), "[ \\t]*(?:;|$)"),
            false => ("$".to_owned(), "$"),
        };
        let boundary = if has_parameters { ";[ ]*boundary=[a-z]+" } else { "" };
        let suffixed = |name: &str| Cover {
            within: format!("^{TOKEN}/(?:{TOKEN}[+])?(?i:{name}){further}"),
            around: format!("^[^;]*[/+](?i:{name}){tail}"),
        };
        match self {
            Kind::Json => suffixed("json"),
            Kind::Xml => suffixed("xml"),
            Kind::Form => Cover {
                within: format!(
                    "^(?i:application/x-www-form-urlencoded|multipart/form-data{boundary}){further}"
                ),
                around: format!("^(?i:application/x-www-form-urlencoded|multipart/form-data){tail}"),
            },
        }
    }
}
