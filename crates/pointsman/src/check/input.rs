//! Files that a command is given: read whole, within a limit, or a sentence that says why not.

use std::io;
use std::path::Path;

use pointsman_config::{bounded, reason};
use pointsman_tls::BoundedFile;

/// What people call a file: its path, or where `-` leads.
pub(crate) fn name(path: &Path) -> String {
    if is_standard(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Whether a path is `-`.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether a path is that of a configuration; every other file holds rules.
pub(crate) fn is_configuration(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// The bytes of a file, or of standard input where the path is `-`.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let read = if is_standard(path) {
        bounded(io::stdin().lock())
    } else {
        BoundedFile::open(path).and_then(bounded)
    };
    read.map_err(|error| unreadable(path, &error))
}

/// The same for text.
pub(crate) fn text(path: &Path) -> Result<String, String> {
    pointsman_config::text(bytes(path)?).map_err(|error| unreadable(path, &error))
}

/// What the system says about a file, as a sentence of ours.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("cannot read `{}`: {}", name(path), reason(error))
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
