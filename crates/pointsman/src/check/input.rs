//! Files that a command is given: read whole, within a limit, or a sentence that says why not.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// No configuration, rule set or request is larger.
pub(crate) const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What people call a file: its path, or where `-` leads.
pub(crate) fn name(path: &Path) -> String {
    if is_standard(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Whether a path is `-`.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The bytes of a file, or of standard input where the path is `-`.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let read =
        if is_standard(path) { bounded(io::stdin().lock()) } else { File::open(path).and_then(bounded) };
    read.map_err(|error| unreadable(path, &error))
}

/// The same for text.
pub(crate) fn text(path: &Path) -> Result<String, String> {
    String::from_utf8(bytes(path)?).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + sound.iter().filter(|byte| **byte == b'\n').count();
        format!("cannot read `{}`: it is not UTF-8 on line {line}", name(path))
    })
}

/// What the system says about a file, as a sentence of ours.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("cannot read `{}`: {}", name(path), reason(error))
}

/// What the system says, as the end of a sentence.
pub(crate) fn reason(error: &io::Error) -> String {
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or_default();
    let mut letters = said.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

fn bounded(source: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    source.take(INPUT_BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > INPUT_BYTES_MAX {
        let reason = format!("it is larger than {} MiB", INPUT_BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.rules");
        let shown = path.display().to_string();
        assert_eq!(text(&path).unwrap_err(), format!("cannot read `{shown}`: no such file or directory"));
        std::fs::write(&path, b"one\ntwo \xff\n").expect("a writable folder");
        assert_eq!(text(&path).unwrap_err(), format!("cannot read `{shown}`: it is not UTF-8 on line 2"));
        assert!(bounded(io::repeat(b'x')).unwrap_err().to_string().contains("16 MiB"));
    }
}
