//! A page of the admin listener.

use pointsman_http::{AnswerTo, reason_phrase};
use pointsman_telemetry::DateLine;

/// What the admin listener can show.
pub trait Pages {
    /// The page at `path`, made now; `None` where there is none.
    fn page(&self, path: &[u8]) -> Option<Page>;
}

/// An answer of the admin listener.
#[derive(Debug)]
pub struct Page {
    status: u16,
    media_type: &'static str,
    line: &'static str,
    body: String,
}

impl Page {
    /// A sentence for people.
    pub fn plain(status: u16, sentence: &str) -> Page {
        Page { status, media_type: "text/plain; charset=utf-8", line: "", body: format!("{sentence}\n") }
    }

    /// Metrics in Prometheus' text format.
    pub fn metrics(body: String) -> Page {
        Page { status: 200, media_type: "text/plain; version=0.0.4; charset=utf-8", line: "", body }
    }

    /// With one more header line.
    pub(crate) fn with_line(self, line: &'static str) -> Page {
        Page { line, ..self }
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn write(&self, to: AnswerTo, date: &DateLine) -> Vec<u8> {
        let Page { status, media_type, line, body } = self;
        let line_end = if line.is_empty() { "" } else { "\r\n" };
        let date = date.line();
        let date = String::from_utf8_lossy(&date);
        let body_sent = if to == AnswerTo::Head { "" } else { body };
        format!(
            "HTTP/1.1 {status} {}\r\n{date}Content-Type: {media_type}\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{line}{line_end}\
             Connection: close\r\n\r\n{body_sent}",
            reason_phrase(*status),
            body.len(),
        )
        .into_bytes()
    }
}
