//! What a body is by its first bytes.

/// Bytes that may stand before the one that says it.
const SKIPPED_BYTES_MAX: usize = 1024;

/// Looks for the first byte that is no white space.
///
/// A byte order mark and the zero bytes of UTF-16 are skipped, too: who is behind may read such a document, and its
/// reader says what its encoding is.
#[derive(Debug, Default)]
pub(super) struct Sniff {
    skipped: Vec<u8>,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sniffed {
    /// It did not come yet.
    Nothing,
    /// What has come is XML, with what was skipped.
    Xml(Vec<u8>),
    /// Likewise.
    Json(Vec<u8>),
    /// It is neither.
    Other,
    /// It did not come where it should.
    TooFar,
}

/// Whether a byte may stand before the first one that says what a body is: white space, or a byte order mark or zero byte
/// of UTF-16.
pub(super) fn is_skipped(byte: u8) -> bool {
    b" \t\r\n\0\xef\xbb\xbf\xfe\xff".contains(&byte)
}

impl Sniff {
    pub(super) fn look(&mut self, bytes: &[u8]) -> Sniffed {
        let skipped = bytes.iter().position(|byte| !is_skipped(*byte)).unwrap_or(bytes.len());
        if self.skipped.len() + skipped > SKIPPED_BYTES_MAX {
            return Sniffed::TooFar;
        }
        let sniffed = match bytes.get(skipped) {
            Some(b'<') => Sniffed::Xml,
            Some(b'{' | b'[') => Sniffed::Json,
            Some(_) => return Sniffed::Other,
            None => {
                self.skipped.extend_from_slice(bytes);
                return Sniffed::Nothing;
            }
        };
        sniffed(std::mem::take(&mut self.skipped))
    }
}
