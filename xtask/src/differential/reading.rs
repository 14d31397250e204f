//! What a reader says that it read: fields of the request to the values that an application gets.

use std::collections::BTreeMap;

use serde_json::Value;

/// Values by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading(BTreeMap<String, Vec<String>>);

impl Reading {
    /// A JSON object of lists of texts, as the readers in `xtask/readers` write it.
    pub(super) fn of_json(text: &[u8]) -> Option<Self> {
        let Ok(Value::Object(fields)) = serde_json::from_slice(text) else { return None };
        let mut reading = Self::default();
        for (field, values) in fields {
            let values = match values {
                Value::Array(values) => values,
                Value::Null => Vec::new(),
                // PHP writes a list of holes as an object.
                Value::Object(values) => values.into_iter().map(|(_, value)| value).collect(),
                _ => return None,
            };
            let values: Option<Vec<String>> =
                values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
            reading.0.insert(field, values?);
        }
        Some(reading)
    }

    /// Fields of nginx, whose `return` escapes nothing: `MARK field=value` of each, where no client knows the mark.
    pub(super) fn marked(text: &[u8], mark: &str) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let mut reading = Self::default();
        for pair in text.trim_end_matches('\n').split(mark).skip(1) {
            let (field, value) = pair.split_once('=')?;
            // A variable that is absent is empty.
            if !value.is_empty() {
                reading.0.entry(field.to_owned()).or_default().push(value.to_owned());
            }
        }
        Some(reading)
    }

    pub(super) fn values(&self, field: &str) -> impl Iterator<Item = &str> {
        self.0.get(field).into_iter().flatten().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let reading = Reading::of_json(br#"{"path":["/a"],"form.my_plan":null}"#).expect("a reading");
        assert_eq!(reading.values("path").collect::<Vec<_>>(), ["/a"]);
        assert_eq!(reading.values("form.my_plan").count(), 0);
        assert_eq!(Reading::of_json(b"[]"), None);
        let marked = Reading::marked(b"<m>path=/a=b<m>host=<m>path=/c\n", "<m>").expect("a reading");
        assert_eq!(marked.values("path").collect::<Vec<_>>(), ["/a=b", "/c"]);
        assert_eq!(marked.values("host").count(), 0);
    }
}
