//! Test data in files.

use std::path::{Path, PathBuf};

use crate::workspace;

/// The path of a file or folder of this crate's test data.
#[must_use]
pub fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// A row of a table of what is refused; the table's head says what its columns are.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Where it stands: file and line.
    pub place: String,
    /// What it is about.
    pub section: String,
    /// What must come of it.
    pub outcome: String,
    /// What RFC says so, and which section of it.
    pub rfc: String,
    /// What is wrong.
    pub what: String,
    /// The bytes that are sent, with their escapes.
    pub text: String,
}

/// The rows of a table in `testdata` of the workspace.
///
/// # Panics
/// When it cannot be read, or a row has too few columns.
#[must_use]
pub fn refused(name: &str) -> Vec<Refused> {
    let text = read(&workspace().join("testdata").join(name));
    let (mut rows, mut section, mut follows) = (Vec::new(), "", false);
    for (index, line) in text.lines().enumerate() {
        let place = format!("{name}:{}", index + 1);
        // A comment behind an empty line begins a section.
        if let Some(comment) = line.strip_prefix("# ") {
            section = if follows { comment.trim_end_matches('.') } else { section };
        } else if !line.is_empty() && !line.starts_with('#') {
            let columns: Vec<_> = line.splitn(4, " | ").map(|column| column.trim().to_owned()).collect();
            let [outcome, rfc, what, text] =
                columns.try_into().unwrap_or_else(|_| panic!("{place}: `{line}`"));
            rows.push(Refused { place, section: section.to_owned(), outcome, rfc, what, text });
        }
        follows = line.is_empty();
    }
    rows
}

/// The lines of a file of test data, with their numbers, without comments and empty ones.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn read_lines(path: &Path) -> Vec<(usize, String)> {
    let text = read(path);
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end().to_owned()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The bytes that a line of test data stands for: `\r \n \t \0 \s` (a space) `\\` `\xNN` are escapes, and
/// `\(N:text)` is N times the text.
///
/// # Panics
/// When another escape stands in it.
#[must_use]
pub fn unescape(text: &str) -> Vec<u8> {
    let mut rest = text.bytes();
    let bytes = unescape_until(&mut rest, None);
    assert!(rest.next().is_none(), "`{text}`");
    bytes
}

fn unescape_until(rest: &mut std::str::Bytes<'_>, end: Option<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            if Some(byte) == end {
                return bytes;
            }
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
                u8::from_str_radix(&digits, 16).unwrap_or_else(|_| panic!("`\\x{digits}`"))
            }
            Some(b'(') => {
                let digits: String = rest.by_ref().take_while(|byte| *byte != b':').map(char::from).collect();
                let times = digits.parse().unwrap_or_else(|_| panic!("`\\({digits}:`"));
                bytes.extend(unescape_until(rest, Some(b')')).repeat(times));
                continue;
            }
            other => panic!("escape {other:?}"),
        });
    }
    assert!(end.is_none(), "`\\(` without its `)`");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        assert_eq!(unescape(r"a\r\n\t\0\s\\\xe9)"), b"a\r\n\t\0 \\\xe9)");
        assert_eq!(unescape(r"\(2:a\(3:b)\n)c"), b"abbb\nabbb\nc");
    }
}
