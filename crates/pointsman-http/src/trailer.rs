//! Trailer lines after the last chunk (RFC 9112 section 7.1.2), checked as they go by.

use std::ops::Range;

use crate::body::{BodyFault, Fed};
use crate::header::{is_token, is_token_byte, is_value_byte};
use crate::odd_name::is_odd;

/// Bytes of all trailer lines together.
const TRAILERS_BYTES_MAX: u16 = 8 * 1024;
/// How much of a name is kept: more than the longest of the forbidden names and prefixes.
const NAME_BYTES_KEPT: usize = 24;

/// Treatment of trailer lines in a body that is forwarded with its framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trailers {
    /// They are forwarded.
    #[default]
    Forward,
    /// They are cut out.
    Drop,
    /// They are cut out and handed over in [`Cut::lines`] behind the last of them.
    SetAside,
}

/// Trailer lines that were cut out of the bytes fed last.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Position of the lines in those bytes. What stands there is not forwarded.
    pub place: Range<usize>,
    /// All trailer lines of the body, once the last one was read. Those that are forwarded go to `place`.
    pub lines: Vec<u8>,
}

impl Cut {
    /// Keeps only the lines whose names `passes` accepts.
    pub fn retain(&mut self, passes: impl Fn(&[u8]) -> bool) {
        retain_lines(&mut self.lines, passes);
    }
}

/// Keeps only the whole field lines whose names `passes` accepts.
pub fn retain_lines(lines: &mut Vec<u8>, passes: impl Fn(&[u8]) -> bool) {
    let mut kept = Vec::new();
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        if passes(line.split(|byte| *byte == b':').next().unwrap_or_default()) {
            kept.extend_from_slice(line);
        }
    }
    *lines = kept;
}

/// Follows trailer lines up to the empty line that ends the message.
///
/// The name is kept only to be compared with the names that may not stand here. A fault ends the
/// body before its last byte, so no server takes what came before it for a complete request.
#[derive(Debug, Default)]
pub(crate) struct TrailerReader {
    place: Place,
    bytes: u16,
    name: [u8; NAME_BYTES_KEPT],
    /// Bytes of the name that are kept.
    name_bytes: u8,
    /// Whether the name holds more than letters, digits and `-`.
    is_odd: bool,
    /// Whether it may.
    allows_odd: bool,
    treatment: Trailers,
    /// Boxed, for most bodies have none.
    set_aside: Option<Box<SetAside>>,
}

/// Trailer lines that are not forwarded as they come.
#[derive(Debug, Default)]
pub(crate) struct SetAside {
    /// Lines so far.
    lines: Vec<u8>,
    /// Lines that were cut out of the bytes fed last.
    pub(crate) cut: Option<Cut>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    LineStart,
    Name,
    Value,
    LineFeed,
    LastLineFeed,
}

impl TrailerReader {
    pub(crate) fn of_answer() -> TrailerReader {
        TrailerReader { allows_odd: true, ..TrailerReader::default() }
    }

    pub(crate) fn treat(&mut self, treatment: Trailers) {
        self.treatment = treatment;
    }

    /// Hands over the lines that are set aside, with what was cut out last.
    pub(crate) fn take_set_aside(&mut self) -> Option<Box<SetAside>> {
        self.set_aside.take()
    }

    /// Takes what was cut out of the bytes fed last.
    pub(crate) fn take_cut(&mut self) -> Option<Cut> {
        self.set_aside.as_mut()?.cut.take()
    }

    /// Follows `bytes`, which stand `at` there in the bytes that are fed, and notes what is cut out of them.
    pub(crate) fn follow(&mut self, bytes: &[u8], at: usize) -> Result<Fed, BodyFault> {
        let was_behind_lines = self.place == Place::LastLineFeed;
        let fed = self.read(bytes)?;
        if self.treatment == Trailers::Forward || was_behind_lines {
            return Ok(fed);
        }
        let is_behind_lines = fed.done || self.place == Place::LastLineFeed;
        // The empty line is forwarded.
        let empty_line_bytes = usize::from(is_behind_lines) + usize::from(fed.done);
        let place = 0..fed.used - empty_line_bytes;
        if place.is_empty() && self.set_aside.is_none() {
            return Ok(fed);
        }
        let SetAside { lines, cut } = &mut **self.set_aside.get_or_insert_default();
        if self.treatment == Trailers::SetAside {
            lines.extend_from_slice(&bytes[place.clone()]);
        }
        let lines = if is_behind_lines { std::mem::take(lines) } else { Vec::new() };
        let is_cut = !place.is_empty() || !lines.is_empty();
        *cut = is_cut.then_some(Cut { place: at + place.start..at + place.end, lines });
        Ok(fed)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<Fed, BodyFault> {
        for (at, &byte) in bytes.iter().enumerate() {
            self.bytes = self.bytes.saturating_add(1);
            if self.bytes > TRAILERS_BYTES_MAX {
                return Err(BodyFault::Trailer);
            }
            if self.place == Place::LastLineFeed && byte == b'\n' {
                return Ok(Fed { used: at + 1, done: true });
            }
            self.place = self.step(byte).ok_or(BodyFault::Trailer)?;
        }
        Ok(Fed { used: bytes.len(), done: false })
    }

    fn step(&mut self, byte: u8) -> Option<Place> {
        match (self.place, byte) {
            (Place::LineStart, b'\r') => Some(Place::LastLineFeed),
            (Place::LineStart | Place::Name, _) if is_token_byte(byte) => {
                if self.place == Place::LineStart {
                    self.name_bytes = 0;
                    self.is_odd = false;
                }
                if let Some(kept) = self.name.get_mut(usize::from(self.name_bytes)) {
                    *kept = kept_byte(byte);
                    self.name_bytes += 1;
                }
                self.is_odd |= is_odd(&[byte]);
                Some(Place::Name)
            }
            (Place::Name, b':') if self.may_trail() => Some(Place::Value),
            (Place::Value, b'\r') => Some(Place::LineFeed),
            (Place::Value, _) if is_value_byte(byte) => Some(Place::Value),
            (Place::LineFeed, b'\n') => Some(Place::LineStart),
            _ => None,
        }
    }

    fn may_trail(&self) -> bool {
        // A name cut short is longer than any that is forbidden.
        (self.allows_odd || !self.is_odd) && may_trail(&self.name[..usize::from(self.name_bytes)])
    }
}

/// Whether a Trailer line announces nothing that is refused when it comes.
pub(crate) fn may_announce(value: &[u8]) -> bool {
    names(value).all(may_trail_request)
}

/// The same in an answer, where odd names may come.
pub(crate) fn answer_may_announce(value: &[u8]) -> bool {
    names(value).all(may_come)
}

/// The names that the value of a Trailer line announces.
pub fn announced(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    names(value)
}

/// Whether a request's trailer of this name is well-formed and not refused.
pub fn may_trail_request(name: &[u8]) -> bool {
    !is_odd(name) && may_come(name)
}

fn names(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty())
}

fn may_come(name: &[u8]) -> bool {
    let mut kept = [0; NAME_BYTES_KEPT];
    kept.iter_mut().zip(name).for_each(|(kept, &byte)| *kept = kept_byte(byte));
    is_token(name) && may_trail(&kept[..name.len().min(NAME_BYTES_KEPT)])
}

/// What reads alike is judged alike.
fn kept_byte(byte: u8) -> u8 {
    if is_odd(&[byte]) { b'-' } else { byte.to_ascii_lowercase() }
}

/// Framing, routing, authentication and content fields may not come this late: the decision that they belong
/// to has been made (RFC 9110 section 6.5.1). Content-Digest is made for trailers (RFC 9530 section 2).
fn may_trail(name: &[u8]) -> bool {
    const FORBIDDEN: [&str; 19] = [
        "age",
        "authorization",
        "cache-control",
        "connection",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "location",
        "max-forwards",
        "proxy-authorization",
        "proxy-connection",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-real-ip",
    ];
    !FORBIDDEN.iter().any(|forbidden| name == forbidden.as_bytes())
        && (!name.starts_with(b"content-") || name == b"content-digest")
        && !name.starts_with(b"x-forwarded-")
}
