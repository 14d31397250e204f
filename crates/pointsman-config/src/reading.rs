//! How files are read: whole, within a limit, as text, and what is said where that fails.

use std::io::{self, Read};

use aws_lc_rs::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use pointsman_rules::pace;

/// No configuration, rule set or request is larger.
pub(crate) const FILE_BYTES_MAX: u64 = pointsman_rules::SOURCE_BYTES_MAX as u64;

/// No list is larger: a million entries take some 20 MiB.
pub(crate) const LIST_BYTES_MAX: u64 = 256 << 20;

/// All bytes of a source.
///
/// # Errors
/// What the system says, or that there are more bytes than a file may have.
pub fn bounded(source: impl Read) -> io::Result<Vec<u8>> {
    within(source, FILE_BYTES_MAX)
}

/// The same of at most so many bytes.
pub(crate) fn within(source: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    source.take(bytes_max + 1).read_to_end(&mut content)?;
    if content.len() as u64 > bytes_max {
        let reason = format!("it is larger than {} MiB", bytes_max >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(content)
}

/// The text that the bytes of a file are.
///
/// # Errors
/// That they are none, with the first line that is no UTF-8.
pub fn text(content: Vec<u8>) -> io::Result<String> {
    String::from_utf8(content).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let head = &error.as_bytes()[..at];
        let line = 1 + head.iter().filter(|byte| **byte == b'\n').count();
        io::Error::new(io::ErrorKind::InvalidData, format!("it is not UTF-8 on line {line}"))
    })
}

/// What nobody can make two contents have: their SHA-256.
pub(crate) type Digest = [u8; SHA256_OUTPUT_LEN];

pub(crate) fn digest_of(content: &[u8]) -> Digest {
    // Of so many bytes one takes about as long as work goes on between two pauses.
    const PART: usize = 1 << 16;
    const PART_UNITS: u64 = 4096;
    let mut context = Context::new(&SHA256);
    for part in content.chunks(PART) {
        pace::spend(PART_UNITS);
        context.update(part);
    }
    let mut bytes = [0; SHA256_OUTPUT_LEN];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

/// A word for a text, which no other text has: the beginning of its SHA-256.
pub fn version(text: &str) -> String {
    const BYTES: usize = 16;
    digest_of(text.as_bytes()).iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// What the system says, as the end of a sentence.
pub fn reason(error: &io::Error) -> String {
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or_default();
    let mut letters = said.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
