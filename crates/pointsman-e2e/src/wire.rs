//! HTTP/1 messages as the far ends read them: slowly, strictly, and without code of the switch.

use std::io::{Error, ErrorKind, Read, Result};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The head of a request or an answer. Bytes are read as Latin-1, so nothing is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Request line or status line.
    pub start: String,
    /// Fields in order, as spelled; values trimmed.
    pub fields: Vec<(String, String)>,
}

impl Head {
    /// The first value of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    /// Every value of a field, in order.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&str> {
        let of_name = |(n, _): &&(String, String)| n.eq_ignore_ascii_case(name);
        self.fields.iter().filter(of_name).map(|(_, v)| v.as_str()).collect()
    }

    /// The word of the start line at `index`: `word(1)` is a request's target or an answer's status.
    #[must_use]
    pub fn word(&self, index: usize) -> &str {
        self.start.split(' ').nth(index).unwrap_or_default()
    }

    /// Whether this is an interim answer, or has one `Date` that is right (RFC 9110 section 6.6.1).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_date(&self) -> std::result::Result<(), String> {
        if self.word(1).starts_with('1') {
            return Ok(());
        }
        let dates = self.all("date");
        let [date] = dates[..] else { return Err(format!("{} times `Date`", dates.len())) };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        match unix_seconds(date) {
            None => Err(format!("`Date: {date}` is not in the form of IMF-fixdate")),
            Some(then) if now.abs_diff(then) > DATE_OFF_MAX.as_secs() => {
                Err(format!("`Date: {date}` is {} s off", now.abs_diff(then)))
            }
            Some(_) => Ok(()),
        }
    }

    /// How the body of a request with this head is framed.
    #[must_use]
    pub fn request_framing(&self) -> Framing {
        self.announced().unwrap_or(Framing::Empty)
    }

    /// How the body of an answer with this head is framed.
    #[must_use]
    pub fn response_framing(&self, to_head: bool) -> Framing {
        let status = self.word(1);
        if to_head || status.starts_with('1') || status == "204" || status == "304" {
            return Framing::Empty;
        }
        self.announced().unwrap_or(Framing::Close)
    }

    fn announced(&self) -> Option<Framing> {
        if self.field("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
            return Some(Framing::Chunked);
        }
        self.field("content-length").map(|v| Framing::Length(v.parse().expect("a decimal content-length")))
    }
}

/// How far a `Date` may be from now: answers wait for being read.
const DATE_OFF_MAX: Duration = Duration::from_secs(120);

/// Seconds since 1970 of a time as in `Sun, 06 Nov 1994 08:49:37 GMT`, and in no other form (RFC 9110 section 5.6.7).
fn unix_seconds(date: &str) -> Option<u64> {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [(&str, u64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    let (weekday, rest) = date.split_once(", ")?;
    let [day, month, year, time, "GMT"] = rest.split(' ').collect::<Vec<_>>()[..] else { return None };
    let [hour, minute, second] = time.split(':').collect::<Vec<_>>()[..] else { return None };
    let widths = [day, month, year, hour, minute, second].map(str::len);
    if date.len() != 29 || widths != [2, 3, 4, 2, 2, 2] {
        return None;
    }
    let (year, day): (u64, u64) = (number(year)?, number(day)?);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let months = MONTHS.iter().position(|(name, _)| *name == month)?;
    let mut days =
        (1970..year).map(|year| 365 + u64::from(is_leap(year))).sum::<u64>() + day.checked_sub(1)?;
    days +=
        MONTHS[..months].iter().map(|(_, days)| days).sum::<u64>() + u64::from(months > 1 && is_leap(year));
    let in_day = number(hour)? * 3600 + number(minute)? * 60 + number(second)?;
    (WEEKDAYS[usize::try_from(days % 7).ok()?] == weekday).then_some(days * 86_400 + in_day)
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    Empty,
    /// After so many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    Close,
}

/// A whole body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Its bytes, chunks put together.
    pub bytes: Vec<u8>,
    /// Fields after the last chunk.
    pub trailers: Vec<(String, String)>,
}

/// What is still to come of the current body.
#[derive(Clone, Copy, Debug)]
enum Left {
    Nothing,
    Length(u64),
    ChunkSize,
    Chunk(u64),
    Close,
}

/// Reads messages from a stream, one after the other.
#[derive(Debug)]
pub struct Reader<S> {
    stream: S,
    buffer: Vec<u8>,
    left: Left,
    trailers: Vec<(String, String)>,
}

impl<S: Read> Reader<S> {
    /// Reads from `stream`.
    pub fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new(), left: Left::Nothing, trailers: Vec::new() }
    }

    /// The stream itself.
    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream itself, to look at.
    pub fn stream_ref(&self) -> &S {
        &self.stream
    }

    /// The stream, without what was read of it.
    pub fn into_stream(self) -> S {
        self.stream
    }

    /// Bytes that came and were not yet asked for.
    #[must_use]
    pub fn buffered(&self) -> &[u8] {
        &self.buffer
    }

    /// The next head, or nothing when the stream ends before it.
    ///
    /// # Errors
    /// When the stream fails, ends inside a head, or what comes is no head.
    pub fn head(&mut self) -> Result<Option<Head>> {
        if self.buffer.is_empty() && !self.fill()? {
            return Ok(None);
        }
        let start = self.line()?;
        Ok(Some(Head { start, fields: self.fields()? }))
    }

    /// From here on a body of this framing is read.
    pub fn begin_body(&mut self, framing: Framing) {
        self.trailers.clear();
        self.left = match framing {
            Framing::Empty => Left::Nothing,
            Framing::Length(length) => Left::Length(length),
            Framing::Chunked => Left::ChunkSize,
            Framing::Close => Left::Close,
        };
    }

    /// The next piece of the body, as soon as some of it is there; nothing at its end.
    ///
    /// # Errors
    /// When the stream fails or ends inside the body.
    pub fn piece(&mut self) -> Result<Option<Vec<u8>>> {
        match self.left {
            Left::Nothing => Ok(None),
            Left::Length(0) => {
                self.left = Left::Nothing;
                Ok(None)
            }
            Left::Length(left) => {
                let piece = self.some(left)?;
                self.left = Left::Length(left - piece.len() as u64);
                Ok(Some(piece))
            }
            Left::ChunkSize => self.chunk_size(),
            Left::Chunk(left) => {
                let piece = self.some(left)?;
                self.left = Left::Chunk(left - piece.len() as u64);
                if piece.len() as u64 == left {
                    self.expect_empty_line("a chunk longer than its size")?;
                    self.left = Left::ChunkSize;
                }
                Ok(Some(piece))
            }
            Left::Close => {
                if self.buffer.is_empty() && !self.fill()? {
                    self.left = Left::Nothing;
                    return Ok(None);
                }
                Ok(Some(std::mem::take(&mut self.buffer)))
            }
        }
    }

    /// What is left of the body.
    ///
    /// # Errors
    /// As [`Reader::piece`].
    pub fn rest(&mut self) -> Result<Body> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece()? {
            bytes.extend_from_slice(&piece);
        }
        Ok(Body { bytes, trailers: self.take_trailers() })
    }

    /// The fields after the last chunk, once the body is at its end.
    pub fn take_trailers(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.trailers)
    }

    /// Whether the stream ends here, without a further byte.
    ///
    /// # Errors
    /// When the stream fails.
    pub fn at_end(&mut self) -> Result<bool> {
        Ok(self.buffer.is_empty() && !self.fill()?)
    }

    fn chunk_size(&mut self) -> Result<Option<Vec<u8>>> {
        let line = self.line()?;
        // Extensions mean nothing here, and a proxy may pass them on.
        let digits = line.split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(digits, 16).map_err(|_| invalid(format!("chunk size `{line}`")))?;
        if size > 0 {
            self.left = Left::Chunk(size);
            return self.piece();
        }
        self.left = Left::Nothing;
        self.trailers = self.fields()?;
        Ok(None)
    }

    fn expect_empty_line(&mut self, wrong: &str) -> Result<()> {
        if self.line()?.is_empty() { Ok(()) } else { Err(invalid(wrong.to_owned())) }
    }

    fn fields(&mut self) -> Result<Vec<(String, String)>> {
        let mut fields = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(fields);
            }
            let (name, value) = line.split_once(':').ok_or_else(|| invalid(format!("field `{line}`")))?;
            fields.push((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()));
        }
    }

    fn line(&mut self) -> Result<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let line = line.strip_suffix(b"\r\n").ok_or_else(|| invalid("a bare LF".to_owned()))?;
                return Ok(line.iter().map(|byte| char::from(*byte)).collect());
            }
            if !self.fill()? {
                return Err(Error::new(ErrorKind::UnexpectedEof, "the stream ended inside a line"));
            }
        }
    }

    fn some(&mut self, max: u64) -> Result<Vec<u8>> {
        if self.buffer.is_empty() && !self.fill()? {
            return Err(Error::new(ErrorKind::UnexpectedEof, "the stream ended inside a body"));
        }
        let take = usize::try_from(max).unwrap_or(usize::MAX).min(self.buffer.len());
        let rest = self.buffer.split_off(take);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// Reads more; false at the end of the stream.
    fn fill(&mut self) -> Result<bool> {
        let mut space = [0; 64 * 1024];
        let count = read_some(&mut self.stream, &mut space).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => Error::new(ErrorKind::TimedOut, "nothing came in time"),
            _ => error,
        })?;
        self.buffer.extend_from_slice(&space[..count]);
        Ok(count > 0)
    }
}

/// Reads what is there. A wait with a limit that was interrupted goes on: that happens to a process that was
/// stopped and continued, with the machine it runs on for instance.
///
/// # Errors
/// What the stream says.
pub fn read_some(stream: &mut impl Read, space: &mut [u8]) -> Result<usize> {
    loop {
        match stream.read(space) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

fn invalid(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_form() {
        assert_eq!(unix_seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(unix_seconds("Tue, 29 Feb 2000 00:00:00 GMT"), Some(951_782_400));
        let others = [
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06 Nov 1994 8:049:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
        ];
        for other in others {
            assert_eq!(unix_seconds(other), None, "{other}");
        }
    }
}
