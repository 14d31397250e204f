//! The body of a request that is explained: how much of it the rules need, in words.

use pointsman_analysis::{Content, Needed};
use pointsman_http::{Framing, HeaderKind};

use super::report::shown;
use super::request::Request;

/// What stands behind the head of a request; what is odd there is noted. So many bytes may be held of it, with what
/// frames them.
pub(super) fn content(request: &Request, hold_bytes_max: u32, notes: &mut Vec<String>) -> Content {
    let content = Content::of(&request.head, request.behind_head(), Some(hold_bytes_max));
    match (content.beyond_bytes(), request.head.framing()) {
        (0, _) => {}
        (more, Framing::None) => notes.push(format!(
            "the head announces no body: {} behind it are none of the request",
            counted(more as u64)
        )),
        (more, _) => notes.push(format!("{} behind the body are none of it", counted(more as u64))),
    }
    content
}

/// `decided after 80 of 117 bytes of the body`; nothing where there is no body.
pub(super) fn sentence(needed: &Needed) -> Option<String> {
    match (needed.of_bytes, needed.to_its_end) {
        (0, _) => None,
        (of_bytes, true) => Some(format!("decided at the end of the body, behind {}", counted(of_bytes))),
        (of_bytes, false) => {
            Some(format!("decided after {} of {} of the body", needed.bytes, counted(of_bytes)))
        }
    }
}

/// Why nobody looks into a body.
pub(super) fn passed_by(request: &Request) -> String {
    let lines = request.head.lines();
    let media_type = lines.iter().find(|line| line.kind == HeaderKind::ContentType);
    let body = match media_type.map(|line| shown(line.value(&request.bytes))) {
        Some(media_type) => format!("of the type `{media_type}`"),
        None => "without a media type".to_owned(),
    };
    format!("none of the fields that the rules name stands in a body {body}")
}

fn counted(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}
