//! Answers that the switch gives itself.

use crate::Version;

/// The media type of what the switch says itself.
pub const PLAIN_TEXT_LINE: &[u8] = b"Content-Type: text/plain; charset=utf-8\r\n";

/// An answer that no server gave.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// Whole header lines with their CRLF, `Content-Type` and `Location` for instance.
    pub lines: &'a [u8],
    /// The body. Never sent with 204 and 304.
    pub body: &'a [u8],
    /// Whether the connection closes after it.
    pub closes: bool,
    /// The version the client speaks: HTTP/1.0 must be told when the connection is kept.
    pub version: Version,
    /// Whether the request was HEAD: the body is counted, and not sent (RFC 9110 section 9.3.2).
    pub to_head: bool,
}

impl Answer<'_> {
    /// No fewer bytes than [`Answer::write`] appends, and not many more.
    pub fn bytes_max(&self) -> usize {
        /// The status line, `Content-Length` and `Connection` with the longest of what may stand there.
        const OTHER_BYTES: usize = 160;
        OTHER_BYTES + self.lines.len() + self.body.len()
    }

    /// Appends the whole answer.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(itoa::Buffer::new().format(self.status).as_bytes());
        out.push(b' ');
        out.extend_from_slice(reason_phrase(self.status).as_bytes());
        out.extend_from_slice(b"\r\n");
        let has_body = !matches!(self.status, 204 | 304);
        if has_body {
            out.extend_from_slice(b"Content-Length: ");
            out.extend_from_slice(itoa::Buffer::new().format(self.body.len()).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(self.lines);
        match (self.closes, self.version) {
            (true, _) => out.extend_from_slice(b"Connection: close\r\n"),
            (false, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            (false, Version::Http11 | Version::Http2) => {}
        }
        out.extend_from_slice(b"\r\n");
        if has_body && !self.to_head {
            out.extend_from_slice(self.body);
        }
    }
}

/// The reason phrase of a status (RFC 9110 section 15 and its registry); empty for others.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "",
    }
}
