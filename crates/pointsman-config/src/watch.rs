//! The files behind a plan: read with a bound, and known again by their content.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use crate::reading::bounded;

/// A file as it was when a plan was made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedFile {
    path: PathBuf,
    /// Absent where it could not be read, or is no regular file.
    digest: Option<u64>,
}

/// Whether any of the files has other content now, or has come or gone.
///
/// The content counts and not its time stamps: a symbolic link may be turned to another file with an older
/// one, and a file may be written anew as it was.
pub fn changed(files: &[WatchedFile]) -> bool {
    changed_file(files).is_some()
}

/// The first of the files of which that is so.
pub fn changed_file(files: &[WatchedFile]) -> Option<&Path> {
    let found = files.iter().find(|file| WatchedFile::look(&file.path).digest != file.digest);
    found.map(|file| file.path.as_path())
}

impl WatchedFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its content comes to; nothing where there is none.
    pub(crate) fn digest(&self) -> Option<u64> {
        self.digest
    }

    /// Reads a file for its content's sake, and remembers it.
    pub(crate) fn read(path: &Path) -> (WatchedFile, io::Result<Vec<u8>>) {
        let content = File::open(path).and_then(bounded);
        let digest = content.as_ref().ok().filter(|_| path.is_file()).map(|content| digest(content));
        (WatchedFile { path: path.to_owned(), digest }, content)
    }

    /// Remembers what a file is going to hold.
    pub(crate) fn holding(path: &Path, text: &str) -> WatchedFile {
        WatchedFile { path: path.to_owned(), digest: Some(digest(text.as_bytes())) }
    }

    /// Remembers a file that somebody else reads. A pipe gives its content only once, and opening one may
    /// wait for ever, so what is no regular file never changes.
    pub(crate) fn look(path: &Path) -> WatchedFile {
        match path.is_file() {
            true => Self::read(path).0,
            false => WatchedFile { path: path.to_owned(), digest: None },
        }
    }
}

/// Tells changes apart from none; the operator's own files need no stronger hash.
pub(crate) fn digest(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(content);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::reading::FILE_BYTES_MAX;

    #[test]
    fn content_counts() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a");
        fs::write(&path, "one")?;
        let files = [WatchedFile::look(&path)];
        assert!(!changed(&files));
        fs::write(&path, "one")?;
        assert!(!changed(&files), "the same content written again");
        fs::write(&path, "two")?;
        assert!(changed(&files));
        fs::remove_file(&path)?;
        assert!(changed(&files), "gone");
        let files = [WatchedFile::look(&path)];
        assert!(!changed(&files), "still gone");
        fs::write(&path, "")?;
        assert!(changed(&files), "come");
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (old, new, link) =
            (folder.path().join("old"), folder.path().join("new"), folder.path().join("link"));
        fs::write(&new, "new")?;
        fs::write(&old, "old")?;
        std::os::unix::fs::symlink(&old, &link)?;
        let files = [WatchedFile::look(&link)];
        fs::remove_file(&link)?;
        std::os::unix::fs::symlink(&new, &link)?;
        assert!(changed(&files));
        Ok(())
    }

    #[test]
    fn size_is_bounded() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("large");
        File::create(&path)?.set_len(FILE_BYTES_MAX + 1)?;
        assert!(WatchedFile::read(&path).1.is_err());
        File::create(&path)?.set_len(FILE_BYTES_MAX)?;
        assert!(WatchedFile::read(&path).1.is_ok());
        Ok(())
    }
}
