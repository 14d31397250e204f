//! Follows answers of HTTP/1 to their ends.

use pointsman_http::{AnswerTo, BodyReader, HeadLimits, ResponseHead};

/// Heads of answers may be larger than those of requests usually are: whatever is measured is to be measured.
const LIMITS: HeadLimits =
    HeadLimits { head_bytes_max: 256 * 1024, headers_max: pointsman_http::HEADERS_MAX, target_bytes_max: 0 };

/// Behind such a head another protocol is spoken.
pub(crate) const SWITCHING: u16 = 101;
const REQUEST_TIMEOUT: u16 = 408;
/// From here on they are no statuses (RFC 9110 section 15).
const STATUSES_END: u16 = 600;

/// Whether these are a server's last words, which nobody has asked for: to who was idle for too long it says 408, or that it
/// closes. What is no more than the beginning of an answer may be that, too.
pub(crate) fn are_last_words(bytes: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"HTTP/1.";
    let mut head = ResponseHead::default();
    match head.parse(bytes, AnswerTo::Other, &LIMITS) {
        Ok(true) => head.status() == REQUEST_TIMEOUT || !head.keeps_alive(),
        Ok(false) => bytes.iter().zip(BEGINNING).all(|(came, expected)| came == expected),
        Err(_) => false,
    }
}

/// The answers of one connection. It is used again for the next one.
#[derive(Debug, Default)]
pub(crate) struct Follow {
    head: ResponseHead,
    body: Option<BodyReader>,
    /// A head that is not whole.
    rest: Vec<u8>,
    /// Of the answer so far.
    bytes: u64,
    /// Of bodies, since somebody looked, without what frames them.
    pub(crate) payload: u64,
    /// Whether cookies are looked for.
    pub(crate) keeps_cookies: bool,
    /// The Set-Cookie fields of this answer.
    pub(crate) cookies: Vec<Vec<u8>>,
}

/// An answer that has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// Whether another request may follow it.
    pub(crate) keeps_alive: bool,
    /// Its bytes as they came, head and all.
    pub(crate) bytes: u64,
}

/// It is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Follow {
    /// Ready for another connection.
    pub(crate) fn reset(&mut self) {
        self.body = None;
        self.rest.clear();
        (self.bytes, self.payload) = (0, 0);
        self.cookies.clear();
    }

    /// Takes bytes up to the end of the answer, and says how many those are.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        to: AnswerTo,
    ) -> Result<(usize, Option<Answered>), Malformed> {
        let mut used = 0;
        if self.body.is_none() {
            loop {
                let Some(head_bytes) = self.read_head(&bytes[used..], to)? else {
                    self.bytes += bytes.len() as u64;
                    return Ok((bytes.len(), None));
                };
                used += head_bytes;
                // Nobody has asked for another protocol, and there are no such statuses.
                if self.head.status() == SWITCHING || self.head.status() >= STATUSES_END {
                    return Err(Malformed);
                }
                if !self.head.is_interim() {
                    break;
                }
            }
        }
        let mut body = match self.body.take() {
            Some(body) => body,
            None => BodyReader::of_answer(self.head.framing()),
        };
        if !body.is_done() {
            let payload = &mut self.payload;
            let fed = body.feed_showing(&bytes[used..], |data| *payload += data.len() as u64);
            used += fed.map_err(|_| Malformed)?.used;
        }
        self.bytes += used as u64;
        if body.is_done() {
            let bytes = std::mem::take(&mut self.bytes);
            let answered =
                Answered { status: self.head.status(), keeps_alive: self.head.keeps_alive(), bytes };
            return Ok((used, Some(answered)));
        }
        self.body = Some(body);
        Ok((used, None))
    }

    /// The end of the connection has come: an answer, if it has no other end.
    pub(crate) fn end(&mut self) -> Option<Answered> {
        let body = self.body.take()?;
        let status = self.head.status();
        let bytes = std::mem::take(&mut self.bytes);
        body.ends_at_close().then_some(Answered { status, keeps_alive: false, bytes })
    }

    /// Reads a head that is whole, and says how many of these bytes are its own.
    fn read_head(&mut self, bytes: &[u8], to: AnswerTo) -> Result<Option<usize>, Malformed> {
        if self.rest.is_empty() {
            if self.head.parse(bytes, to, &LIMITS).map_err(|_| Malformed)? {
                if self.keeps_cookies {
                    keep_cookies(&self.head, bytes, &mut self.cookies);
                }
                return Ok(Some(self.head.head_bytes()));
            }
            self.rest.extend_from_slice(bytes);
            return Ok(None);
        }
        let before = self.rest.len();
        self.rest.extend_from_slice(bytes);
        // A head ends with a line: one that comes byte by byte is not read anew for each of them.
        if !bytes.contains(&b'\n') && self.rest.len() <= LIMITS.head_bytes_max {
            return Ok(None);
        }
        if !self.head.parse(&self.rest, to, &LIMITS).map_err(|_| Malformed)? {
            return Ok(None);
        }
        if self.keeps_cookies {
            keep_cookies(&self.head, &self.rest, &mut self.cookies);
        }
        self.rest.clear();
        Ok(Some(self.head.head_bytes() - before))
    }
}

/// Fields of one answer that are kept.
const COOKIES_MAX: usize = 64;

fn keep_cookies(head: &ResponseHead, buffer: &[u8], cookies: &mut Vec<Vec<u8>>) {
    for line in head.lines() {
        if line.name(buffer).eq_ignore_ascii_case(b"set-cookie") && cookies.len() < COOKIES_MAX {
            cookies.push(line.value(buffer).to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All answers in `text`, fed in pieces of every size.
    fn check(text: &str, to: AnswerTo, ends: bool, data: u64, expected: &[(u16, bool)]) {
        for size in 1..=text.len() {
            let mut follow = Follow::default();
            let (mut answers, mut payload) = (Vec::new(), 0);
            for piece in text.as_bytes().chunks(size) {
                let mut rest = piece;
                while !rest.is_empty() {
                    let (used, answered) = follow.feed(rest, to).expect("an answer");
                    rest = &rest[used..];
                    payload += std::mem::take(&mut follow.payload);
                    answers.extend(answered);
                }
            }
            if ends {
                answers.extend(follow.end());
            }
            let bytes: u64 = answers.iter().map(|answered| answered.bytes).sum();
            let whole =
                if answers.len() == expected.len() && expected.len() > 1 { text.len() as u64 } else { bytes };
            assert_eq!(bytes, whole, "each byte belongs to an answer");
            assert_eq!(payload, data, "bodies without their framing");
            let answers: Vec<_> = answers.iter().map(|a| (a.status, a.keeps_alive)).collect();
            assert_eq!(answers, expected, "{size}");
        }
    }

    #[test]
    fn answers_are_followed_to_their_ends() {
        let length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let none = "HTTP/1.1 204 No Content\r\n\r\n";
        let chunked = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let last = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let interim = "HTTP/1.1 100 Continue\r\n\r\n";
        let all = [length, none, interim, chunked, length, last].concat();
        let expected = [(200, true), (204, true), (404, true), (200, true), (200, false)];
        check(&all, AnswerTo::Other, false, 13, &expected);
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", AnswerTo::Head, false, 0, &[(200, true)]);
        check("HTTP/1.0 200 OK\r\n\r\nall", AnswerTo::Other, true, 3, &[(200, false)]);
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", AnswerTo::Other, true, 4, &[]);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for bad in [
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 abc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n\r\n",
            "HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n",
        ] {
            assert_eq!(Follow::default().feed(bad.as_bytes(), AnswerTo::Other), Err(Malformed), "{bad}");
        }
    }

    #[test]
    fn last_words_say_so() {
        for (came, are) in [
            ("HTTP/1.1 408 Late\r\n\r\n", true),
            ("HTTP/1.1 503 No\r\nConnection: close\r\n\r\n", true),
            ("HTTP/1.0 400 Bad\r\n\r\n", true),
            ("HTTP/1.1 40", true),
            ("HT", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false),
            ("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", false),
            ("more", false),
            ("HTTP/2", false),
        ] {
            assert_eq!(are_last_words(came.as_bytes()), are, "{came}");
        }
    }
}
