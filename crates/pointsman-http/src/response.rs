//! An answer's head: parsed where it lies, kept as offsets. A refused one becomes 502.

use crate::announced::Announced;
use crate::connection::{self, ConnectionOptions};
use crate::first_line;
use crate::header::HeaderLine;
use crate::lines;
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
    pub(crate) options: ConnectionOptions,
}

impl ResponseHead {
    /// Parses the head at the start of `buffer`. `Ok(false)` asks for more bytes.
    pub fn parse(&mut self, buffer: &[u8], to: AnswerTo, limits: &HeadLimits) -> Result<bool, Refusal> {
        let window = &buffer[..buffer.len().min(limits.head_bytes_max)];
        let is_full = buffer.len() >= limits.head_bytes_max;
        let more = || if is_full { Err(Refusal::HeadTooLarge) } else { Ok(false) };
        let Some(line) = first_line::status(window)? else { return more() };
        self.status = line.status;
        self.version = line.version;
        self.first_line = line.end;
        let limit = (lines::Head::Response, limits.headers_max.min(HEADERS_MAX));
        let Some(end) = lines::read(&mut self.lines, window, line.end, limit)? else {
            return more();
        };
        self.head_bytes = end;
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
                HeaderKind::ContentLength => {
                    match announced.length_of_response(line.value(buffer))? {
                        Some(bytes) => {
                            line.respelled |= bytes < line.value_bytes as usize;
                            line.value_bytes = bytes as u32;
                        }
                        None => line.dropped = true,
                    }
                    continue;
                }
                HeaderKind::TransferEncoding => announced.coding(line.value(buffer), self.version)?,
                HeaderKind::Trailer if !trailer::answer_may_announce(line.value(buffer)) => {
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

    /// Position of the byte, or the field line, for which the head at the start of `buffer` is refused.
    ///
    /// A head that is cut before that byte is unfinished, so that it is found by halves.
    pub fn fault_at(&mut self, buffer: &[u8], to: AnswerTo, limits: &HeadLimits) -> usize {
        let Err(refusal) = self.parse(buffer, to, limits) else { return buffer.len() };
        let kind = match refusal {
            Refusal::ContentLength => Some(HeaderKind::ContentLength),
            Refusal::TransferEncoding | Refusal::TransferCoding | Refusal::LengthConflict => {
                Some(HeaderKind::TransferEncoding)
            }
            Refusal::Trailer => Some(HeaderKind::Trailer),
            Refusal::Lookalike => Some(HeaderKind::Lookalike),
            Refusal::Connection => Some(HeaderKind::Connection),
            _ => None,
        };
        if let Some(kind) = kind
            && let Some(line) = self.lines.iter().rfind(|line| line.kind == kind)
        {
            return line.start as usize;
        }
        let (mut unfinished, mut refused) = (0, buffer.len());
        while unfinished + 1 < refused {
            let middle = unfinished.midpoint(refused);
            match self.parse(&buffer[..middle], to, limits) {
                Ok(_) => unfinished = middle,
                Err(_) => refused = middle,
            }
        }
        unfinished
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
            Version::Http11 | Version::Http2 => !self.options.close,
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
