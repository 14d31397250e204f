//! JSON bodies of what is asked of the admin listener.

use std::fmt;

use pointsman_admin::Page;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The members of an object, each with a name of its own: what stands there twice says two things at once (RFC 8259 section 4).
struct Members(Map<String, Value>);

/// The object in a body.
///
/// # Errors
/// With the answer to who asked, where it is none.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Page> {
    match serde_json::from_slice(body) {
        Ok(Members(members)) => Ok(members),
        Err(error) => Err(Page::problem(400, format!("the body is no JSON object: {error}"))),
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut each: A) -> Result<Members, A::Error> {
                let mut members = Map::new();
                while let Some((name, value)) = each.next_entry::<String, Value>()? {
                    if members.contains_key(&name) {
                        return Err(Error::custom(format_args!("`{name}` stands there twice")));
                    }
                    members.insert(name, value);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_each_name_once() {
        let read = |text: &str| object(text.as_bytes()).map(|members| members.len()).ok();
        for (text, expected) in [
            ("{}", Some(0)),
            (r#"{"a": 1, "b": {"a": 2}}"#, Some(2)),
            (r#"{"state":"draining","state":"enabled"}"#, None),
            (r#"{"a": 1, "\u0061": 1}"#, None),
            (r#"{"a": 1} {}"#, None),
            ("[]", None),
            ("", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
