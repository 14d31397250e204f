//! The files behind a plan: read with a bound, and known again by their content.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pointsman_tls::BoundedFile;

use crate::reading::{Digest, FILE_BYTES_MAX, digest_of, within};

/// A file as it was when a plan was made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedFile {
    path: PathBuf,
    /// Absent where it could not be read, or is no regular file.
    digest: Option<Digest>,
    /// More of it is not read.
    bytes_max: u64,
    /// Of a large file that was not being written when it was read.
    stamp: Option<Stamp>,
}

/// What the system changes whenever somebody writes to a file or puts another one in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    /// When content, name or permissions changed; nobody can set it.
    changed: (i64, i64),
}

/// Smaller files are read to see whether they are as they were: that takes no time.
const STAMPED_BYTES_MIN: u64 = 1 << 20;

/// The clock of a file system may be as coarse as this.
const STAMP_SETTLES_MS: u128 = 100;

/// Whether any of the files has other content now, or has come or gone.
///
/// The content counts and not its time stamps: a symbolic link may be turned to another file with an older
/// one, and a file may be written anew as it was. Only a large file whose inode, length, time of writing and time of
/// change are those that it had is not read for it.
pub fn changed(files: &[WatchedFile]) -> bool {
    changed_file(files).is_some()
}

/// The first of the files of which that is so.
pub fn changed_file(files: &[WatchedFile]) -> Option<&Path> {
    let found = files.iter().find(|file| !file.is_untouched() && file.again().digest != file.digest);
    found.map(|file| file.path.as_path())
}

impl WatchedFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its content comes to; nothing where there is none.
    pub(crate) fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Reads a file for its content's sake, and remembers it.
    pub(crate) fn read(path: &Path) -> (WatchedFile, io::Result<Vec<u8>>) {
        Self::read_within(path, FILE_BYTES_MAX)
    }

    /// The same of a file that may have so many bytes.
    pub(crate) fn read_within(path: &Path, bytes_max: u64) -> (WatchedFile, io::Result<Vec<u8>>) {
        // What is written while it is read has another stamp afterwards.
        let stamp = Stamp::of(path).filter(Stamp::is_settled);
        let content = BoundedFile::open(path).and_then(|file| within(file, bytes_max));
        let digest = content.as_ref().ok().filter(|_| path.is_file()).map(|content| digest_of(content));
        (WatchedFile { path: path.to_owned(), digest, bytes_max, stamp }, content)
    }

    /// Remembers what a file is going to hold.
    pub(crate) fn holding(path: &Path, text: &str) -> WatchedFile {
        let digest = Some(digest_of(text.as_bytes()));
        WatchedFile { path: path.to_owned(), digest, bytes_max: FILE_BYTES_MAX, stamp: None }
    }

    /// Remembers a file that somebody else reads. A pipe gives its content only once, and opening one may
    /// wait for ever, so what is no regular file never changes.
    pub(crate) fn look(path: &Path) -> WatchedFile {
        Self::look_within(path, FILE_BYTES_MAX)
    }

    fn look_within(path: &Path, bytes_max: u64) -> WatchedFile {
        match path.is_file() {
            true => Self::read_within(path, bytes_max).0,
            false => WatchedFile { path: path.to_owned(), digest: None, bytes_max, stamp: None },
        }
    }

    /// The file as it is now.
    fn again(&self) -> WatchedFile {
        Self::look_within(&self.path, self.bytes_max)
    }

    /// Whether it need not be read to know that it is as it was.
    pub(crate) fn is_untouched(&self) -> bool {
        self.stamp.is_some() && Stamp::of(&self.path) == self.stamp
    }
}

impl Stamp {
    /// Of a large file; links are followed.
    fn of(path: &Path) -> Option<Stamp> {
        let found =
            fs::metadata(path).ok().filter(|found| found.is_file() && found.len() >= STAMPED_BYTES_MIN)?;
        Some(Stamp {
            device: found.dev(),
            inode: found.ino(),
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// Whether a change from now on would show in it.
    fn is_settled(&self) -> bool {
        let changed = Duration::new(
            u64::try_from(self.changed.0).unwrap_or(0),
            u32::try_from(self.changed.1).unwrap_or(0),
        );
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.checked_sub(changed).is_some_and(|age| age.as_millis() >= STAMP_SETTLES_MS)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::fs::File;

    use super::*;
    use crate::reading::LIST_BYTES_MAX;

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
    fn a_large_file_is_read_again_where_its_stamp_is_another() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a");
        let content = vec![b'a'; usize::try_from(STAMPED_BYTES_MIN).expect("it is small")];
        fs::write(&path, &content)?;
        let read = || WatchedFile::read_within(&path, LIST_BYTES_MAX).0;
        // One that is being written has none yet; this one gets one soon.
        let file = std::iter::repeat_with(read).find(|file| file.stamp.is_some()).expect("it settles");
        assert!(file.is_untouched() && !changed(std::slice::from_ref(&file)));
        let modified = fs::metadata(&path)?.modified()?;
        let other = [&content[1..], b"b"].concat();
        fs::write(&path, &other)?;
        File::options().write(true).open(&path)?.set_modified(modified)?;
        assert!(!file.is_untouched() && changed(std::slice::from_ref(&file)), "the same length and time");
        fs::write(&path, &content)?;
        assert!(!file.is_untouched() && !changed(&[file]), "as it was");
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
