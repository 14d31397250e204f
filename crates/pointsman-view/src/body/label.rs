//! Whether a body is of the kind that its media type says, as far as a rule refuses by fields of another kind.
//!
//! Many servers read JSON or XML whatever the media type says: Go's `json.NewDecoder` and `xml.NewDecoder`, Flask with
//! `force=True`, Express with `type: "*/*"`. A refusal by a field must not be avoided by another label on the body.

use std::collections::HashSet;

use super::media_type::Reads;
use super::sniff::is_skipped;

/// Bytes of the longest element name that is compared.
const NAME_BYTES_MAX: usize = 256;

/// Looks for another kind of content than the label says.
#[derive(Debug)]
pub(super) struct LabelCheck {
    /// Whether the first byte may not begin a JSON object or array. Cleared once it has come.
    json: bool,
    /// The names of elements that may not begin anywhere.
    xml: Option<Tags>,
}

/// Looks for start tags with one of some names. Servers skip text before the first tag.
#[derive(Debug)]
struct Tags {
    names: HashSet<Box<[u8]>>,
    /// The name of the tag that is being read, behind its `<`.
    open: Option<Vec<u8>>,
}

impl LabelCheck {
    /// For a body that its media type calls `label`, where rules refuse by fields of JSON, or of XML documents that begin
    /// with one of these elements. Nothing where there is nothing to look for.
    pub(super) fn new(
        label: Reads,
        json: bool,
        xml: impl FnOnce() -> HashSet<Box<[u8]>>,
    ) -> Option<LabelCheck> {
        let json = json && label != Reads::Json;
        let names = if label == Reads::Xml { HashSet::new() } else { xml() };
        let xml = (!names.is_empty()).then_some(Tags { names, open: None });
        (json || xml.is_some()).then_some(LabelCheck { json, xml })
    }

    /// Whether more of the content can say anything.
    pub(super) fn is_left(&self) -> bool {
        self.json || self.xml.is_some()
    }

    /// Looks at more of the content. Tells of each kind that it may be, other than its label says, once.
    pub(super) fn look(&mut self, bytes: &[u8], mut found: impl FnMut(Reads)) {
        if self.json {
            match bytes.iter().find(|byte| !is_skipped(**byte)) {
                Some(b'{' | b'[') => {
                    self.json = false;
                    found(Reads::Json);
                }
                Some(_) => self.json = false,
                None => {}
            }
        }
        if self.xml.as_mut().is_some_and(|tags| tags.look(bytes)) {
            self.xml = None;
            found(Reads::Xml);
        }
    }
}

impl Tags {
    /// Whether one of the tags has come.
    fn look(&mut self, mut bytes: &[u8]) -> bool {
        loop {
            let Some(name) = &mut self.open else {
                let Some(at) = memchr::memchr(b'<', bytes) else { return false };
                self.open = Some(Vec::new());
                bytes = &bytes[at + 1..];
                continue;
            };
            let ends = |byte: &u8| matches!(byte, b'>' | b'/' | b'<' | b' ' | b'\t' | b'\r' | b'\n');
            // Of UTF-16 the zero bytes are left out.
            let end = bytes.iter().position(ends);
            let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            name.extend(
                piece
                    .iter()
                    .filter(|byte| **byte != 0)
                    .take(NAME_BYTES_MAX + 1 - name.len().min(NAME_BYTES_MAX + 1)),
            );
            let Some(end) = end else { return false };
            let local = name.rsplit(|byte| *byte == b':').next().unwrap_or_default();
            if self.names.contains(local) {
                return true;
            }
            self.open = None;
            bytes = &bytes[end..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(label: Reads, content: &[u8], expected: &[Reads]) {
        let names = || HashSet::from([b"purchase"[..].into()]);
        for size in [1, 3, content.len().max(1)] {
            let mut label = LabelCheck::new(label, true, names).expect("something to look for");
            let mut found = Vec::new();
            content.chunks(size).for_each(|piece| label.look(piece, |kind| found.push(kind)));
            assert_eq!(found, expected, "{} by {size}", content.escape_ascii());
        }
    }

    #[test]
    fn json_under_another_label_is_found() {
        for label in [Reads::Xml, Reads::Urlencoded, Reads::Multipart] {
            check(label, b"{\"total\":1}", &[Reads::Json]);
            check(label, b" \r\n\t[1]", &[Reads::Json]);
            check(label, b"\xef\xbb\xbf{}", &[Reads::Json]);
            check(label, b"\xff\xfe{\0}\0", &[Reads::Json]);
            check(label, b"plan={gold}", &[]);
        }
        check(Reads::Xml, b"<purchase/>", &[]);
        check(Reads::Urlencoded, b"{\"a\":\"<purchase>\"}", &[Reads::Json, Reads::Xml]);
    }

    #[test]
    fn xml_under_another_label_is_found_behind_text_too() {
        for label in [Reads::Json, Reads::Urlencoded, Reads::Multipart] {
            check(label, b"<purchase>", &[Reads::Xml]);
            check(label, b"plan=x&y=<p:purchase a='1'>", &[Reads::Xml]);
            check(label, b"plan=<b>bold</b>", &[]);
            check(label, b"plan=<purchases>", &[]);
            check(label, b"<\0p\0u\0r\0c\0h\0a\0s\0e\0>\0", &[Reads::Xml]);
            check(label, b"<purchase", &[]);
        }
    }
}
