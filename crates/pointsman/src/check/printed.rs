//! A request that proves something, as it is printed: its text, and where that is not the request, its bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pointsman_analysis::{Padding, Setting, Witness};
use serde_json::{Value, json};

/// A request, and what `explain` is to be told besides.
#[derive(Debug)]
pub(crate) struct Printed {
    /// As people read it.
    pub(crate) request: String,
    /// Its bytes (RFC 4648 section 4), where the text cannot be put before `explain`.
    base64: Option<String>,
    pub(crate) options: String,
    /// What follows in its body behind what is shown.
    rest: Option<Padding>,
}

impl Printed {
    pub(crate) fn new(witness: &Witness, setting: &Setting) -> Printed {
        let request = witness.to_string();
        let bytes = witness.request();
        Printed {
            base64: (!is_read_as(&request, &bytes)).then(|| STANDARD.encode(&bytes)),
            request,
            options: witness.explain_options(setting).to_string(),
            rest: witness.rest(),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut object = json!({ "request": self.request, "options": self.options });
        if let Some(base64) = &self.base64 {
            object["request_base64"] = json!(base64);
        }
        if let Some(Padding { byte, bytes }) = self.rest {
            object["more_bytes"] = json!(bytes);
            object["more_of"] = json!(char::from(byte).to_string());
        }
        object
    }

    /// The request line by line, and what follows in its body.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let rest = self.rest.map(|rest| rest.to_string());
        self.request.trim_end().lines().map(str::to_owned).chain(rest)
    }

    /// How to come by a file with its bytes, where its text is none.
    pub(crate) fn note(&self) -> Option<String> {
        let base64 = self.base64.as_ref()?;
        let which = if self.rest.is_some() { "those before the rest are" } else { "they are" };
        Some(format!(
            "this text is not its bytes; {which} written by `echo {base64} | base64 -d > request.txt`"
        ))
    }
}

/// Whether `explain` reads these bytes where it is given this text: lines of a head end in CRLF whatever an editor makes of
/// them, and nothing else is mended. Of blanks at the end of lines and of a body nobody can tell.
fn is_read_as(text: &str, bytes: &[u8]) -> bool {
    let Some((head, body)) = text.split_once("\n\n") else { return false };
    let read = format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n"));
    read.as_bytes() == bytes && body.split('\n').all(|line| line == line.trim_end()) && !body.ends_with('\n')
}

#[cfg(test)]
mod tests {
    use super::is_read_as;

    #[test]
    fn what_is_typed_as_it_is_printed() {
        let head = ("POST / HTTP/1.1\nHost: a\n\n", "POST / HTTP/1.1\r\nHost: a\r\n\r\n");
        let rows = [
            ("", "", true),
            ("{\"a\":1}", "{\"a\":1}", true),
            ("a\\x\tb\nc", "a\\x\tb\nc", true),
            ("--b\n\n1\n--b--", "--b\r\n\r\n1\r\n--b--", false),
            ("\\u{1}", "\u{1}", false),
            ("a\n", "a\n", false),
            ("a \nb", "a \nb", false),
        ];
        for (text, bytes, is_read) in rows {
            let [text, bytes] = [format!("{}{text}", head.0), format!("{}{bytes}", head.1)];
            assert_eq!(is_read_as(&text, bytes.as_bytes()), is_read, "{text:?}");
        }
        assert!(!is_read_as("POST / HTTP/1.1\nA: \\xff\n\n", b"POST / HTTP/1.1\r\nA: \xff\r\n\r\n"));
    }
}
