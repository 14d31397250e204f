//! What a head announces of its body's length (RFC 9112 section 6), or why it is refused.

use crate::header::is_token;
use crate::{Framing, Refusal, Version};

/// Content-Length and Transfer-Encoding, as they are met.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    length: Option<u64>,
    codings: Option<Codings>,
}

/// What all Transfer-Encoding lines say together: they are one list (RFC 9110 section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codings {
    /// `chunked`, and nothing else.
    Chunked,
    /// Codings that the switch does not understand, and `chunked` last: where the body ends is known.
    OthersAndChunked,
    /// Codings without `chunked` at their end: where the body ends is anybody's guess.
    Others,
}

impl Announced {
    pub(crate) fn length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        match self.length.replace(parse_length(value)?) {
            None => Ok(()),
            Some(_) => Err(Refusal::ContentLength),
        }
    }

    /// The same of a response, where lines and list members that are all equal count as one (RFC 9112 section 6.3).
    /// Returns the bytes of the one value, or `None` where an earlier line has it.
    pub(crate) fn length_of_response(&mut self, value: &[u8]) -> Result<Option<usize>, Refusal> {
        let is_first = self.length.is_none();
        for member in value.split(|&byte| byte == b',') {
            let length = parse_length(member.trim_ascii())?;
            if self.length.is_some_and(|known| known != length) {
                return Err(Refusal::ContentLength);
            }
            self.length = Some(length);
        }
        let first = value.split(|&byte| byte == b',').next().unwrap_or_default().trim_ascii_end();
        Ok(is_first.then_some(first.len()))
    }

    /// HTTP/1.0 knows no transfer codings: whoever is next may read the body otherwise.
    pub(crate) fn coding(&mut self, value: &[u8], version: Version) -> Result<(), Refusal> {
        if version == Version::Http10 {
            return Err(Refusal::TransferEncoding);
        }
        for coding in value.split(|&byte| byte == b',') {
            self.codings = Some(after(self.codings, coding.trim_ascii())?);
        }
        Ok(())
    }

    /// The framing that was announced; `None` where nothing was.
    pub(crate) fn framing(&self) -> Result<Option<Framing>, Refusal> {
        match (self.codings, self.length) {
            (Some(Codings::Others), _) => Err(Refusal::TransferEncoding),
            (Some(_), Some(_)) => Err(Refusal::LengthConflict),
            (Some(Codings::OthersAndChunked), None) => Err(Refusal::TransferCoding),
            (Some(Codings::Chunked), None) => Ok(Some(Framing::Chunked)),
            (None, Some(0)) => Ok(Some(Framing::None)),
            (None, Some(bytes)) => Ok(Some(Framing::Length(bytes))),
            (None, None) => Ok(None),
        }
    }
}

/// The list with one more coding. Nothing follows `chunked`, not even itself, and it has no parameters
/// (RFC 9112 sections 6.1 and 7.1).
fn after(before: Option<Codings>, coding: &[u8]) -> Result<Codings, Refusal> {
    let name = coding.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let is_chunked = name.eq_ignore_ascii_case(b"chunked");
    match before {
        _ if !is_token(name) || is_chunked && name.len() < coding.len() => Err(Refusal::TransferEncoding),
        Some(Codings::Chunked | Codings::OthersAndChunked) => Err(Refusal::TransferEncoding),
        None if is_chunked => Ok(Codings::Chunked),
        Some(Codings::Others) if is_chunked => Ok(Codings::OthersAndChunked),
        _ => Ok(Codings::Others),
    }
}

/// One run of digits (RFC 9112 section 6.3): no sign, no list, no space.
fn parse_length(value: &[u8]) -> Result<u64, Refusal> {
    const DIGITS_MAX: usize = 18;
    if value.is_empty() || value.len() > DIGITS_MAX || !value.iter().all(u8::is_ascii_digit) {
        return Err(Refusal::ContentLength);
    }
    Ok(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}
