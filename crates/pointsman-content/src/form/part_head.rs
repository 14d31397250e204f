//! The head of a part of a form.

use super::Wrong;
use super::disposition::{Disposition, Filename, PartType, token_bytes};
use super::fields::ValueText;
use crate::Cause;
use crate::text::form_encoding;

/// Collects the head of a part, line by line (RFC 7578 section 4.8).
///
/// A line ends with CRLF and is not folded; a name that means something stands there once.
#[derive(Debug, Default)]
pub(super) struct PartHead {
    line: Vec<u8>,
    /// Bytes of the lines before this one.
    lines_bytes: usize,
    lines: usize,
    disposition: Option<Disposition>,
    content_type: Option<Result<PartType, Wrong>>,
    /// Whether the content is written as it is.
    is_plain: Option<bool>,
}

/// What the head of a part says.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: Vec<u8>,
    pub(super) kind: PartKind,
}

/// What a part is.
#[derive(Clone, Copy, Debug)]
pub(super) enum PartKind {
    Field(ValueText),
    File,
    /// A field to some servers, and a file or nothing to others. By the standards it is what stands here.
    Doubtful(Option<ValueText>),
}

/// Bytes of a part's head, with its empty line.
pub(super) const HEAD_BYTES_MAX: usize = 8192;
/// Lines of a part's head, without its empty line.
const LINES_MAX: usize = 16;

impl PartHead {
    /// Bytes before the present line.
    pub(super) fn line_start(&self) -> u64 {
        self.lines_bytes as u64
    }

    /// Takes bytes up to the head's end: how many, and whether that is there. No line may begin as a delimiter does.
    pub(super) fn feed(&mut self, bytes: &[u8], dash_boundary: &[u8]) -> Result<(usize, bool), Wrong> {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            let line_bytes = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            if self.lines_bytes + self.line.len() + line_bytes > HEAD_BYTES_MAX {
                return Err(Wrong(Cause::Limit, "a long head of a part"));
            }
            self.line.extend_from_slice(&rest[..line_bytes]);
            used += line_bytes;
            let Some(line) = self.line.strip_suffix(b"\n") else { continue };
            let line =
                line.strip_suffix(b"\r").ok_or(Wrong(Cause::Malformed, "a part's head with a bare LF"))?;
            if line.is_empty() {
                return Ok((used, true));
            }
            if line.starts_with(dash_boundary) {
                return Err(Wrong(Cause::Malformed, "a delimiter within a part's head"));
            }
            let line = std::mem::take(&mut self.line);
            self.read(&line[..line.len() - b"\r\n".len()])?;
            self.lines_bytes += line.len();
            self.line = line;
            self.line.clear();
        }
        Ok((used, false))
    }

    fn read(&mut self, line: &[u8]) -> Result<(), Wrong> {
        const TWICE: Wrong = Wrong(Cause::Malformed, "a name twice in a part's head");
        self.lines += 1;
        if self.lines > LINES_MAX {
            return Err(Wrong(Cause::Limit, "many lines in a part's head"));
        }
        let is_text = line.iter().all(|&byte| byte == b'\t' || !byte.is_ascii_control());
        let (name, rest) = line.split_at(token_bytes(line));
        let value = rest.strip_prefix(b":").filter(|_| is_text && !name.is_empty());
        let value = value.ok_or(Wrong(Cause::Malformed, "a malformed line in a part's head"))?.trim_ascii();
        if name.eq_ignore_ascii_case(b"content-disposition") {
            if self.disposition.replace(Disposition::read(value)?).is_some() {
                return Err(TWICE);
            }
        } else if name.eq_ignore_ascii_case(b"content-type") {
            if self.content_type.replace(PartType::read(value)).is_some() {
                return Err(TWICE);
            }
        } else if name.eq_ignore_ascii_case(b"content-transfer-encoding") {
            let is_plain =
                [&b"7bit"[..], b"8bit", b"binary"].iter().any(|plain| value.eq_ignore_ascii_case(plain));
            if self.is_plain.replace(is_plain).is_some() {
                return Err(TWICE);
            }
        }
        Ok(())
    }

    /// What the whole head says of a part of a form whose fields are read in this way.
    pub(super) fn settle(&mut self, form: ValueText) -> Result<Part, Wrong> {
        let head = std::mem::take(self);
        let Disposition { name, filename, is_form_data } =
            head.disposition.ok_or(Wrong(Cause::Malformed, "a part without Content-Disposition"))?;
        if matches!(head.content_type, Some(Ok(PartType { is_mixed: true, .. }))) {
            return Err(Wrong(Cause::Malformed, "parts within a part of a form"));
        }
        let is_octets = matches!(head.content_type, Some(Ok(PartType { is_octets: true, .. })));
        let has_type = head.content_type.is_some();
        let text = value_text(form, head.content_type, head.is_plain);
        let kind = match filename {
            // formidable takes a part without a type for a field.
            Filename::Some if has_type => PartKind::File,
            Filename::Some | Filename::Empty | Filename::Extended => PartKind::Doubtful(None),
            Filename::None if !is_form_data => PartKind::Doubtful(None),
            Filename::None if is_octets => PartKind::Doubtful(Some(text)),
            Filename::None => PartKind::Field(text),
        };
        Ok(Part { name, kind })
    }
}

/// How the value of a field is read whose head has this type. Go undoes quoted-printable, and others do not.
fn value_text(
    form: ValueText,
    content_type: Option<Result<PartType, Wrong>>,
    is_plain: Option<bool>,
) -> ValueText {
    let encoded = (is_plain == Some(false)).then_some(Cause::Malformed);
    let text = match content_type {
        Some(Err(Wrong(cause, _))) => ValueText { unknown: Some(cause), ..form },
        Some(Ok(PartType { charset: Some(charset), .. })) => match form_encoding(&charset) {
            Some(encoding) => ValueText { encoding, ..form },
            None => ValueText { unknown: Some(Cause::Encoding), ..form },
        },
        _ => form,
    };
    ValueText { unknown: text.unknown.or(encoded), ..text }
}
