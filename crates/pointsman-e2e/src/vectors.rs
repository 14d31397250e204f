//! Test data in files.

use std::path::{Path, PathBuf};

/// The path of a file or folder of this crate's test data.
#[must_use]
pub fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// The lines of a file of test data, with their numbers, without comments and empty ones.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn read_lines(name: &str) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(testdata(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end().to_owned()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The bytes that a line of test data stands for: `\r \n \t \0 \s` (a space) `\\` `\xNN` are escapes.
///
/// # Panics
/// When another escape stands in it.
#[must_use]
pub fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'r') => b'\r',
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b's') => b' ',
            Some(b'0') => 0,
            Some(b'\\') => b'\\',
            Some(b'x') => {
                let digits: String = rest.by_ref().take(2).map(char::from).collect();
                u8::from_str_radix(&digits, 16).unwrap_or_else(|_| panic!("`\\x{digits}` in `{text}`"))
            }
            other => panic!("escape {other:?} in `{text}`"),
        });
    }
    bytes
}
