//! What a head announces of its body's length (RFC 9112 section 6), or why it is refused.

use crate::{Framing, Refusal, Version};

/// Content-Length and Transfer-Encoding, as they are met.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    length: Option<u64>,
    is_chunked: bool,
}

impl Announced {
    pub(crate) fn length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        match self.length.replace(parse_length(value)?) {
            None => Ok(()),
            Some(_) => Err(Refusal::ContentLength),
        }
    }

    /// HTTP/1.0 knows no transfer codings: whoever is next may read the body otherwise.
    pub(crate) fn coding(&mut self, value: &[u8], version: Version) -> Result<(), Refusal> {
        if self.is_chunked || version == Version::Http10 {
            return Err(Refusal::TransferEncoding);
        }
        self.is_chunked = true;
        chunked_only(value)
    }

    /// The framing that was announced; `None` where nothing was.
    pub(crate) fn framing(&self) -> Result<Option<Framing>, Refusal> {
        match (self.is_chunked, self.length) {
            (true, Some(_)) => Err(Refusal::LengthConflict),
            (true, None) => Ok(Some(Framing::Chunked)),
            (false, Some(0)) => Ok(Some(Framing::None)),
            (false, Some(bytes)) => Ok(Some(Framing::Length(bytes))),
            (false, None) => Ok(None),
        }
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

fn chunked_only(value: &[u8]) -> Result<(), Refusal> {
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let mut codings = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let known = |coding: &[u8]| {
        [&b"gzip"[..], b"x-gzip", b"deflate", b"compress", b"x-compress"]
            .iter()
            .any(|name| coding.eq_ignore_ascii_case(name))
    };
    let last = codings.next_back().unwrap_or_default();
    match last.eq_ignore_ascii_case(b"chunked") && codings.all(known) {
        true => Err(Refusal::TransferCoding),
        false => Err(Refusal::TransferEncoding),
    }
}
