//! What is known of a head that has not come whole: most of its bytes need no parser to say so.
//!
//! Parsing starts at a head's first byte. Of a head that comes byte by byte, 16 KiB long, 128 MiB would be
//! parsed; so bytes that only make a target, a name or a value longer are looked at alone.

use crate::header::{is_token_byte, is_value_byte};
use crate::{AnswerTo, HeadLimits, Refusal, RequestHead, ResponseHead};

/// How far a head has come that is not finished. One value follows one head, from its first byte on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    // Each connection has one for as long as it is open, and no head is anywhere near 4 GiB long.
    bytes: u32,
    place: Place,
}

/// What the last byte stands in, where the next ones may be more of the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Anywhere else: it takes the parser to say what may follow.
    #[default]
    Elsewhere,
    Target,
    Name,
    /// Also in the reason of a status line, which is made of the same bytes.
    Value,
}

impl Place {
    fn takes(self, byte: u8) -> bool {
        match self {
            Place::Elsewhere => false,
            Place::Target => byte > b' ' && byte != 0x7f,
            Place::Name => is_token_byte(byte),
            Place::Value => is_value_byte(byte),
        }
    }
}

impl Unfinished {
    /// Whether `buffer` is the same head with more of what it ended in: it is still unfinished, and no
    /// more refused than it was.
    fn goes_on(&mut self, buffer: &[u8], bytes_max: usize) -> bool {
        let is_more = buffer.len() < bytes_max
            && buffer
                .get(self.bytes as usize..)
                .is_some_and(|more| more.iter().all(|&byte| self.place.takes(byte)));
        if is_more {
            self.bytes = buffer.len() as u32;
        }
        is_more
    }

    /// How far a request head has come of which the parser wants more.
    fn request(buffer: &[u8]) -> Unfinished {
        let start = crate::request::empty_lines(buffer);
        Unfinished::at(buffer, start, |line| match line.iter().filter(|&&byte| byte == b' ').count() {
            1 => Place::Target,
            _ => Place::Elsewhere,
        })
    }

    /// How far an answer's head has come of which the parser wants more.
    fn answer(buffer: &[u8]) -> Unfinished {
        Unfinished::at(buffer, 0, |line| match line.iter().filter(|&&byte| byte == b' ').count() {
            0 | 1 => Place::Elsewhere,
            _ => Place::Value,
        })
    }

    fn at(buffer: &[u8], start: usize, in_first_line: impl Fn(&[u8]) -> Place) -> Unfinished {
        let line_start = memchr::memrchr(b'\n', buffer).map_or(0, |at| at + 1);
        let line = &buffer[line_start..];
        let place = match line.last() {
            None | Some(b'\r') => Place::Elsewhere,
            // Only a colon may follow blanks behind a name.
            Some(b' ' | b'\t') if line_start > start && !line.contains(&b':') => Place::Elsewhere,
            Some(_) if line_start <= start => in_first_line(line),
            Some(_) if line.contains(&b':') => Place::Value,
            Some(_) => Place::Name,
        };
        Unfinished { bytes: buffer.len() as u32, place }
    }
}

impl RequestHead {
    /// [`RequestHead::parse`] for a head that may come in pieces, at the cost of its new bytes for the most
    /// part. `unfinished` is what was known of it with fewer bytes: nothing, at first.
    pub fn parse_on(
        &mut self,
        buffer: &[u8],
        unfinished: &mut Unfinished,
        limits: &HeadLimits,
    ) -> Result<bool, Refusal> {
        // Up to here the first line is within its limits whatever it holds.
        let bytes_max = match unfinished.place {
            Place::Target => limits.target_bytes_max.min(limits.head_bytes_max),
            _ => limits.head_bytes_max,
        };
        if unfinished.goes_on(buffer, bytes_max) {
            return Ok(false);
        }
        let is_whole = self.parse(buffer, limits)?;
        *unfinished = if is_whole { Unfinished::default() } else { Unfinished::request(buffer) };
        Ok(is_whole)
    }
}

impl ResponseHead {
    /// [`ResponseHead::parse`] in the manner of [`RequestHead::parse_on`].
    pub fn parse_on(
        &mut self,
        buffer: &[u8],
        unfinished: &mut Unfinished,
        to: AnswerTo,
        limits: &HeadLimits,
    ) -> Result<bool, Refusal> {
        if unfinished.goes_on(buffer, limits.head_bytes_max) {
            return Ok(false);
        }
        let is_whole = self.parse(buffer, to, limits)?;
        *unfinished = if is_whole { Unfinished::default() } else { Unfinished::answer(buffer) };
        Ok(is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often it takes the parser when a head comes byte by byte; at every byte it is still unfinished.
    fn parsings(head: &[u8], of: fn(&[u8]) -> Unfinished) -> usize {
        let mut unfinished = Unfinished::default();
        let mut count = 0;
        for bytes in 1..=head.len() {
            if !unfinished.goes_on(&head[..bytes], usize::MAX) {
                unfinished = of(&head[..bytes]);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn what_makes_a_head_long_is_not_parsed_anew() {
        let long = |bytes: usize| "x".repeat(bytes);
        let few = parsings(b"GET /x HTTP/1.1\r\nHost: x\r\nX: x y", Unfinished::request);
        let request =
            format!("GET /{} HTTP/1.1\r\nHost: {}\r\n{}: x {}", long(999), long(99), long(500), long(9999));
        assert_eq!(parsings(request.as_bytes(), Unfinished::request), few);
        let few = parsings(b"HTTP/1.1 200 O K\r\nX: x", Unfinished::answer);
        let answer = format!("HTTP/1.1 200 O {}\r\n{}: {}", long(999), long(99), long(9999));
        assert_eq!(parsings(answer.as_bytes(), Unfinished::answer), few);
        assert!(few < 30, "{few}");
    }

    #[test]
    fn another_byte_takes_the_parser() {
        for (head, more) in [
            ("GET", "x"),
            ("GET /", " "),
            ("GET /", "\r"),
            ("\r\nGET /", "\x01"),
            ("GET / HTTP/1", "."),
            ("GET / HTTP/1.1\r", "\n"),
            ("GET / HTTP/1.1\r\n", "x"),
            ("GET / HTTP/1.1\r\nX", ":"),
            ("GET / HTTP/1.1\r\nX", " "),
            ("GET / HTTP/1.1\r\nX:", "\n"),
            ("GET / HTTP/1.1\r\nX: x", "\r"),
            ("GET / HTTP/1.1\r\nX: x", "x\x7f"),
            ("GET / HTTP/1.1\r\nX: x\r", "x"),
            ("GET / HTTP/1.1\r\nX: x\r\n\r", "\n"),
        ] {
            let mut unfinished = Unfinished::request(head.as_bytes());
            assert!(!unfinished.goes_on(format!("{head}{more}").as_bytes(), usize::MAX), "{head:?} {more:?}");
        }
        let mut unfinished = Unfinished::request(b"GET /");
        assert!(
            unfinished.goes_on(b"GET /x", 7) && !unfinished.goes_on(b"GET /xx", 7),
            "the limit is the parser's"
        );
    }
}
