//! How bodies are read.

use pointsman_content::Limits;

use crate::Servers;

/// How the bodies of a listener's requests are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyOptions {
    /// What a body of another media type is, or of none.
    pub kind: BodyKind,
    /// Whether media types are believed.
    pub label: BodyLabel,
    /// The servers whose readings of names matter, where rules refuse or strip.
    pub readings: Servers,
    /// What a document or form may be.
    pub limits: Limits,
    /// Bytes that a body may have once its content codings are undone; [`Cause::Limit`](pointsman_rules::Cause::Limit)
    /// over it. A body without them has no such limit here.
    pub decoded_bytes_max: u64,
}

/// What a body is that is neither XML nor JSON nor a form by its media type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyKind {
    /// Fields of a kind that some rule refuses requests by are unknown, those of other kinds absent.
    #[default]
    ByRules,
    /// All fields in it are absent.
    Absent,
    /// All fields in it are unknown, for [`Cause::Encoding`](pointsman_rules::Cause::Encoding): 415 is for a media type,
    /// too (RFC 9110 section 15.5.16).
    Unknown,
    /// What its first byte says: `<` is XML, `{` or `[` is JSON, and in others all fields are absent.
    Sniff,
}

/// Whether a body is taken for what its media type says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyLabel {
    /// Where a rule refuses by fields of JSON or XML, and the media type says another kind, content that such a document
    /// could begin in ends all fields unknown, for [`Cause::Encoding`](pointsman_rules::Cause::Encoding).
    #[default]
    Checked,
    /// It is: fields of other kinds are absent.
    Believed,
}

impl Default for BodyOptions {
    fn default() -> BodyOptions {
        BodyOptions {
            kind: BodyKind::default(),
            label: BodyLabel::default(),
            readings: Servers::default(),
            limits: Limits::default(),
            decoded_bytes_max: 16 * 1024 * 1024,
        }
    }
}
