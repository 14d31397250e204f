//! Writing a parsed head on, as the bytes it came in, with edits.

use crate::header::HeaderLine;
use crate::{RequestHead, ResponseHead, Version};

/// Length of `HTTP/1.1`.
const VERSION_BYTES: usize = 8;

impl RequestHead {
    /// Whether a server is sent the head as it came, where nothing is added and the target stays.
    pub fn passes_as_it_came(&self) -> bool {
        self.start == 0 && self.version != Version::Http10 && pass_as_they_came(&self.lines)
    }

    /// Appends the head that a server is sent: `target` in place of what the client wrote (nothing
    /// is replaced where it is `None`), every line not dropped, then `added`, whole lines with
    /// their CRLF, then the empty line. The version is always 1.1.
    pub fn forward(&self, buffer: &[u8], target: Option<&[u8]>, added: &[u8], out: &mut Vec<u8>) {
        let lines_start = match target {
            None if self.version != Version::Http10 => self.start as usize,
            _ => {
                out.extend_from_slice(self.method_name(buffer));
                out.push(b' ');
                out.extend_from_slice(target.unwrap_or(self.target(buffer)));
                out.extend_from_slice(b" HTTP/1.1\r\n");
                self.first_line
            }
        };
        forward_lines(&self.lines, buffer, lines_start, self.first_line, out);
        out.extend_from_slice(added);
        out.extend_from_slice(b"\r\n");
    }
}

impl ResponseHead {
    /// Whether a client is sent the head as it came, where nothing is added.
    pub fn passes_as_it_came(&self) -> bool {
        self.version != Version::Http10 && !self.lacks_space() && pass_as_they_came(&self.lines)
    }

    /// Whether the status line ends behind the code. Recipients may rely on the space that belongs there also without
    /// a reason phrase (RFC 9112 section 4).
    fn lacks_space(&self) -> bool {
        self.first_line == b"HTTP/1.1 200\r\n".len()
    }

    /// Appends the head that a client is sent: the status line with our version, every line not
    /// dropped, then `added`, whole lines with their CRLF, then the empty line.
    pub fn forward(&self, buffer: &[u8], added: &[u8], out: &mut Vec<u8>) {
        let lines_start = match self.version {
            Version::Http11 | Version::Http2 if !self.lacks_space() => 0,
            Version::Http10 | Version::Http11 | Version::Http2 => {
                let status = &buffer[VERSION_BYTES..self.first_line - b"\r\n".len()];
                out.extend_from_slice(b"HTTP/1.1");
                out.extend_from_slice(status);
                out.extend_from_slice(if self.lacks_space() { b" \r\n" } else { b"\r\n" });
                self.first_line
            }
        };
        forward_lines(&self.lines, buffer, lines_start, self.first_line, out);
        out.extend_from_slice(added);
        out.extend_from_slice(b"\r\n");
    }
}

fn pass_as_they_came(lines: &[HeaderLine]) -> bool {
    !lines.iter().any(|line| line.dropped || line.respelled)
}

/// Copies `buffer[start..]` up to the end of the last line, leaving dropped lines out and putting others right.
/// Lines that stand together are one copy.
fn forward_lines(lines: &[HeaderLine], buffer: &[u8], start: usize, first_line: usize, out: &mut Vec<u8>) {
    let mut run_start = start;
    let mut run_end = first_line;
    for line in lines {
        if line.dropped || line.respelled {
            out.extend_from_slice(&buffer[run_start..run_end]);
            run_start = line.end as usize;
            if !line.dropped {
                respell(line, buffer, out);
            }
        }
        run_end = line.end as usize;
    }
    out.extend_from_slice(&buffer[run_start..run_end]);
}

fn respell(line: &HeaderLine, buffer: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(line.name(buffer));
    out.extend_from_slice(b": ");
    out.extend_from_slice(line.kind.plain_value(line.value(buffer)));
    out.extend_from_slice(b"\r\n");
}
