//! A file of whole lines: a line that a full disk cuts short is taken back or completed later.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};

/// Appends lines to a file so that each one is there whole or not at all.
///
/// A full disk, a quota and a limit on file size (RLIMIT_FSIZE) cut writes short. The beginning of a cut line is
/// removed from a file of our own; on an output that others write to, or that cannot be shortened, the line is
/// completed before anything else is written.
#[derive(Debug)]
pub struct LineFile {
    file: File,
    /// Whether what was written last can be taken back.
    can_shorten: bool,
    /// Rest of a line whose beginning is written.
    rest: Vec<u8>,
}

/// Result of a write.
#[derive(Debug, Default)]
pub struct Written {
    /// Whether a line that an earlier write had begun is complete now.
    pub is_completed: bool,
    /// Failure, with what was written before it; absent where all lines are written.
    pub cut: Option<Cut>,
}

/// A write that failed.
#[derive(Debug)]
pub struct Cut {
    /// Number of whole lines that were written before.
    pub whole_lines: u64,
    /// Whether one more line has begun, and waits for its rest to be written.
    pub has_begun_line: bool,
    /// Error of the system.
    pub error: io::Error,
}

impl LineFile {
    /// A file that was opened to append, by this process alone.
    pub fn appending(file: File) -> LineFile {
        let can_shorten = file.metadata().is_ok_and(|facts| facts.is_file());
        LineFile { file, can_shorten, rest: Vec::new() }
    }

    /// An output that was open before, such as standard error.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn shared(output: impl AsFd) -> io::Result<LineFile> {
        let output: OwnedFd = output.as_fd().try_clone_to_owned()?;
        Ok(LineFile { file: File::from(output), can_shorten: false, rest: Vec::new() })
    }

    /// Writes whole lines, behind the rest of a line that an earlier write had begun.
    pub fn write(&mut self, lines: &[u8]) -> Written {
        let mut written = Written::default();
        if !self.rest.is_empty() {
            let (bytes, error) = write_some(&mut self.file, &self.rest);
            self.rest.drain(..bytes);
            if let Some(error) = error {
                written.cut = Some(Cut { whole_lines: 0, has_begun_line: false, error });
                return written;
            }
            written.is_completed = true;
        }
        let (bytes, error) = write_some(&mut self.file, lines);
        written.cut = error.map(|error| {
            let (whole_lines, has_begun_line) = self.mend(lines, bytes);
            Cut { whole_lines, has_begun_line, error }
        });
        written
    }

    /// Whether a line has begun whose rest is not written.
    pub(crate) fn has_begun_line(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Takes back the last line of these bytes if it is cut, or keeps its rest. Returns the number of whole lines,
    /// and whether there is a rest.
    fn mend(&mut self, lines: &[u8], written_bytes: usize) -> (u64, bool) {
        let (written, unwritten) = lines.split_at(written_bytes);
        let whole_bytes = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole_lines = written.iter().filter(|byte| **byte == b'\n').count() as u64;
        let cut_bytes = written_bytes - whole_bytes;
        if cut_bytes == 0 || self.can_shorten && self.shorten(cut_bytes as u64).is_ok_and(|is_done| is_done) {
            return (whole_lines, false);
        }
        let end = unwritten.iter().position(|byte| *byte == b'\n').map_or(unwritten.len(), |at| at + 1);
        self.rest.extend_from_slice(&unwritten[..end]);
        (whole_lines, !self.rest.is_empty())
    }

    /// Removes the last bytes of the file where they are the last that this process wrote: during an upgrade two
    /// processes append to one file.
    fn shorten(&mut self, bytes: u64) -> io::Result<bool> {
        let end = self.file.stream_position()?;
        if self.file.metadata()?.len() != end || bytes > end {
            return Ok(false);
        }
        self.file.set_len(end - bytes)?;
        Ok(true)
    }
}

/// Writes as much as goes. Returns the number of bytes, and the error that ended it.
fn write_some(file: &mut File, bytes: &[u8]) -> (usize, Option<io::Error>) {
    let mut at = 0;
    while at < bytes.len() {
        match file.write(&bytes[at..]) {
            Ok(0) => return (at, Some(ErrorKind::WriteZero.into())),
            Ok(count) => at += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (at, Some(error)),
        }
    }
    (at, None)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn append(path: &std::path::Path) -> File {
        OpenOptions::new().append(true).create(true).open(path).expect("a writable folder")
    }

    /// Writes this many bytes of the lines, and mends the file as after a failed write.
    fn cut(file: &mut LineFile, lines: &str, bytes: usize) -> (u64, bool) {
        file.file.write_all(&lines.as_bytes()[..bytes]).expect("a writable file");
        file.mend(lines.as_bytes(), bytes)
    }

    #[test]
    fn a_cut_line_is_taken_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("log");
        let mut file = LineFile::appending(append(&path));
        assert!(file.write(b"first\n").cut.is_none());
        for (bytes, whole, left) in
            [(0, 0, "first\n"), (2, 0, "first\n"), (4, 1, "first\none\n"), (5, 1, "first\none\none\n")]
        {
            assert_eq!(cut(&mut file, "one\ntwo\n", bytes), (whole, false), "{bytes}");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), left, "{bytes}");
        }
        assert!(file.write(b"last\n").cut.is_none());
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "first\none\none\nlast\n");
    }

    #[test]
    fn a_line_that_another_process_has_written_is_not_taken_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("log");
        let mut file = LineFile::appending(append(&path));
        file.file.write_all(b"on").expect("a writable file");
        append(&path).write_all(b"other\n").expect("a writable file");
        assert_eq!(file.mend(b"one\ntwo\n", 2), (0, true));
        let written = file.write(b"three\n");
        assert!(written.is_completed && written.cut.is_none());
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "onother\ne\nthree\n");
    }

    /// A socket that takes nothing more is as full as a disk, and cannot be shortened.
    #[test]
    fn a_cut_line_is_completed_where_it_cannot_be_taken_back() {
        let (ours, mut theirs) = UnixStream::pair().expect("descriptors");
        ours.set_nonblocking(true).expect("a socket");
        let mut file = LineFile::shared(&ours).expect("descriptors");
        let line = format!("{}\n", "x".repeat(1000));
        let lines = line.repeat(2000);
        let (mut expected, mut got) = (0, Vec::new());
        let mut space = vec![0; 100_000];
        for _ in 0..20 {
            let written = file.write(lines.as_bytes());
            expected += u64::from(written.is_completed);
            let cut = written.cut.expect("two megabytes have no room");
            assert_eq!(cut.error.kind(), ErrorKind::WouldBlock);
            expected += cut.whole_lines;
            let count = theirs.read(&mut space).expect("there is something");
            got.extend_from_slice(&space[..count]);
        }
        expected += u64::from(file.has_begun_line());
        // Room for the rest of the last line.
        let count = theirs.read(&mut space).expect("there is something");
        got.extend_from_slice(&space[..count]);
        assert!(file.write(b"").cut.is_none());
        drop((file, ours));
        theirs.read_to_end(&mut got).expect("it ends");
        let got = String::from_utf8(got).expect("text");
        assert!(got.split_inclusive('\n').all(|got| got == line), "a line is torn");
        assert_eq!(got.lines().count() as u64, expected);
    }
}
