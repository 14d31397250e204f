//! A page of the admin listener.

use std::borrow::Cow;

use pointsman_http::{AnswerTo, reason_phrase};
use pointsman_telemetry::DateLine;
use serde_json::{Map, Value, json};

/// An answer of the admin listener.
#[derive(Debug)]
pub struct Page {
    status: u16,
    media_type: &'static str,
    /// How long who gets it may keep it.
    cache: &'static str,
    lines: String,
    body: Cow<'static, [u8]>,
    /// What went wrong, in a sentence.
    detail: Option<String>,
}

impl Page {
    /// A sentence for people.
    pub fn plain(status: u16, sentence: &str) -> Page {
        Page::of(status, "text/plain; charset=utf-8", format!("{sentence}\n"))
    }

    /// Metrics in Prometheus' text format.
    pub fn metrics(body: String) -> Page {
        Page::of(200, "text/plain; version=0.0.4; charset=utf-8", body)
    }

    /// What programs read.
    pub fn json(value: &Value) -> Page {
        Page::of(200, "application/json", format!("{value:#}\n"))
    }

    /// The same in as few bytes as may be, for what is asked for again and again.
    pub fn dense_json(value: &Value) -> Page {
        Page::of(200, "application/json", format!("{value}\n"))
    }

    /// A file that the binary has in it.
    pub(crate) fn file(media_type: &'static str, cache: &'static str, content: &'static [u8]) -> Page {
        Page { cache, body: Cow::Borrowed(content), ..Page::of(200, media_type, String::new()) }
    }

    /// That it stands elsewhere.
    pub(crate) fn moved(to: &str) -> Page {
        Page::plain(308, "it stands elsewhere").with_line(&format!("Location: {to}"))
    }

    /// What went wrong (RFC 9457).
    pub fn problem(status: u16, detail: impl Into<String>) -> Page {
        Page::problem_with(status, detail, Map::new())
    }

    /// The same with members of its own beside the usual ones.
    pub fn problem_with(status: u16, detail: impl Into<String>, members: Map<String, Value>) -> Page {
        let detail = detail.into();
        let usual = json!({ "type": "about:blank", "title": reason_phrase(status), "status": status, "detail": detail });
        let mut problem = members;
        problem.extend(usual.as_object().cloned().unwrap_or_default());
        let body = format!("{:#}\n", Value::Object(problem));
        Page { detail: Some(detail), ..Page::of(status, "application/problem+json", body) }
    }

    fn of(status: u16, media_type: &'static str, body: String) -> Page {
        let body = Cow::Owned(body.into_bytes());
        Page { status, media_type, cache: "no-store", lines: String::new(), body, detail: None }
    }

    /// With the version of what it shows, for `If-Match`.
    pub fn with_version(self, version: &str) -> Page {
        self.with_line(&format!("ETag: \"{version}\""))
    }

    /// With one more header line.
    pub(crate) fn with_line(mut self, line: &str) -> Page {
        self.lines.push_str(line);
        self.lines.push_str("\r\n");
        self
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    pub(crate) fn write(&self, to: AnswerTo, date: &DateLine) -> Vec<u8> {
        let Page { status, media_type, cache, lines, body, .. } = self;
        let date = date.line();
        let date = String::from_utf8_lossy(&date);
        let head = format!(
            "HTTP/1.1 {status} {}\r\n{date}Content-Type: {media_type}\r\nContent-Length: {}\r\n\
             Cache-Control: {cache}\r\nX-Content-Type-Options: nosniff\r\n{lines}Connection: close\r\n\r\n",
            reason_phrase(*status),
            body.len(),
        );
        let mut answer = head.into_bytes();
        if to != AnswerTo::Head {
            answer.extend_from_slice(body);
        }
        answer
    }
}
