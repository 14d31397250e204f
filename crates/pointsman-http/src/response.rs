//! An answer's head: parsed where it lies, kept as offsets. A refused one becomes 502.

use std::mem::MaybeUninit;

use crate::announced::Announced;
use crate::connection::{self, ConnectionOptions};
use crate::header::{self, HeaderLine};
use crate::request::Version;
use crate::trailer;
use crate::{Framing, HEADERS_MAX, HeadLimits, HeaderKind, Refusal};

/// What the answer's framing depends on in the request (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerTo {
    /// The answer to HEAD has no body, whatever its fields say.
    Head,
    /// Any other method.
    #[default]
    Other,
}

/// An answer's head. One value is used again and again.
#[derive(Debug, Default)]
pub struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) version: Version,
    pub(crate) lines: Vec<HeaderLine>,
    pub(crate) first_line: usize,
    pub(crate) head_bytes: usize,
    framing: Framing,
    options: ConnectionOptions,
}

impl ResponseHead {
    /// Parses the head at the start of `buffer`. `Ok(false)` asks for more bytes.
    pub fn parse(&mut self, buffer: &[u8], to: AnswerTo, limits: &HeadLimits) -> Result<bool, Refusal> {
        // The parser would skip empty lines; a server that sends any is out of step.
        if matches!(buffer.first(), Some(b'\r' | b'\n')) {
            return Err(Refusal::Syntax);
        }
        let window = &buffer[..buffer.len().min(limits.head_bytes_max)];
        let mut slots = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let slots = &mut slots[..limits.headers_max.min(HEADERS_MAX)];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            window,
            slots,
        );
        self.head_bytes = match parsed {
            Ok(httparse::Status::Complete(bytes)) => bytes,
            Ok(httparse::Status::Partial) if buffer.len() < limits.head_bytes_max => return Ok(false),
            Ok(httparse::Status::Partial) => return Err(Refusal::HeadTooLarge),
            Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooManyHeaders),
            Err(_) => return Err(Refusal::Syntax),
        };
        // Below 100 there is no class that says whether a body follows (RFC 9110 section 15); from 600
        // on it follows as after any final status.
        let (Some(status @ 100..), Some(version)) = (response.code, response.version) else {
            return Err(Refusal::Syntax);
        };
        self.status = status;
        self.version = if version == 0 { Version::Http10 } else { Version::Http11 };
        self.first_line = first_line(buffer)?;
        let end = header::remember(&mut self.lines, response.headers, buffer, self.first_line)?;
        if buffer.get(end..self.head_bytes) != Some(b"\r\n") {
            return Err(Refusal::BareLineFeed);
        }
        self.fields(buffer, to)?;
        Ok(true)
    }

    fn fields(&mut self, buffer: &[u8], to: AnswerTo) -> Result<(), Refusal> {
        self.options = ConnectionOptions::default();
        let mut announced = Announced::default();
        let mut connection = false;
        for line in &mut self.lines {
            match line.kind {
                HeaderKind::Plain => continue,
                HeaderKind::ContentLength => announced.length(line.value(buffer))?,
                HeaderKind::TransferEncoding => announced.coding(line.value(buffer), self.version)?,
                HeaderKind::Trailer if !trailer::may_announce(line.value(buffer)) => {
                    return Err(Refusal::Trailer);
                }
                HeaderKind::Lookalike => return Err(Refusal::Lookalike),
                HeaderKind::Connection => connection = true,
                _ => {}
            }
            line.dropped = line.kind.ends_at_hop();
        }
        let framing = announced.framing()?;
        if connection {
            self.options = connection::apply(&mut self.lines, buffer)?;
        }
        let interim_or_empty = self.status < 200 || self.status == 204;
        if interim_or_empty {
            self.drop_framing_fields();
        }
        let has_no_body = interim_or_empty || self.status == 304 || to == AnswerTo::Head;
        self.framing = if has_no_body { Framing::None } else { framing.unwrap_or(Framing::UntilClose) };
        Ok(())
    }

    /// 1xx and 204 have no body and may not announce one (RFC 9110 section 8.6, RFC 9112 section 6.1).
    fn drop_framing_fields(&mut self) {
        for line in &mut self.lines {
            line.dropped |= matches!(line.kind, HeaderKind::ContentLength | HeaderKind::TransferEncoding);
        }
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether it is a 1xx answer: another head follows.
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// How the body is delimited.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Bytes of the head: the body starts there.
    pub fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// Whether the server keeps its connection after this answer.
    pub fn keeps_alive(&self) -> bool {
        let keeps = match self.version {
            Version::Http11 => !self.options.close,
            Version::Http10 => self.options.keep_alive && !self.options.close,
        };
        keeps && self.framing != Framing::UntilClose
    }

    /// All header lines in order.
    pub fn lines(&self) -> &[HeaderLine] {
        &self.lines
    }

    /// The header lines, to take some out of what is forwarded.
    pub fn lines_mut(&mut self) -> &mut [HeaderLine] {
        &mut self.lines
    }
}

/// Offset after the status line, which must end in one CRLF.
fn first_line(buffer: &[u8]) -> Result<usize, Refusal> {
    match memchr::memchr2(b'\r', b'\n', buffer) {
        Some(at) if buffer[at..].starts_with(b"\r\n") => Ok(at + 2),
        _ => Err(Refusal::BareLineFeed),
    }
}
