//! Files that come to an end: what is no regular file, a FIFO for instance, has so much time for it and no more.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// How long what is no regular file may take until its end: somebody has to write it.
const READ_MAX: Duration = Duration::from_secs(30);

/// A file of the configuration, open to be read.
#[derive(Debug)]
pub struct BoundedFile {
    file: File,
    /// Until when it must have ended; a regular file does, whenever that is.
    until: Option<Instant>,
    /// A FIFO has an end only when somebody has come to write it.
    is_begun: bool,
}

impl BoundedFile {
    /// Opens a file without waiting for anybody.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<BoundedFile> {
        Self::open_for(path, READ_MAX)
    }

    fn open_for(path: &Path, max: Duration) -> io::Result<BoundedFile> {
        let kind = fs::metadata(path)?.file_type();
        if kind.is_file() || kind.is_dir() {
            return Ok(BoundedFile { file: File::open(path)?, until: None, is_begun: true });
        }
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
        // A pipe without a name, as of `<(…)`, had its writer before it was handed over: that one may be gone by now.
        let is_begun = path.canonicalize().is_err();
        Ok(BoundedFile { file, until: Some(Instant::now() + max), is_begun })
    }

    /// Waits for something to read.
    fn wait(&self, until: Instant) -> io::Result<()> {
        loop {
            let left = left(until)?;
            let mut polled = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut polled, Some(&Timespec::try_from(left).map_err(io::Error::other)?)) {
                Ok(1..) => return Ok(()),
                Ok(0) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What is left of the time until then.
fn left(until: Instant) -> io::Result<Duration> {
    let message = "it is no regular file, and has not come to its end in time: name a regular one";
    let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
    left.ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, message))
}

impl Read for BoundedFile {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(until) = self.until else { return self.file.read(room) };
        if !self.is_begun {
            self.wait(until)?;
            self.is_begun = true;
        }
        loop {
            // Also of one that somebody writes for ever.
            left(until)?;
            match self.file.read(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(until)?,
                read => return read,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    fn text(path: &Path, max: Duration) -> io::Result<String> {
        let mut text = String::new();
        BoundedFile::open_for(path, max)?.read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn a_pipe_without_a_name_is_read_to_its_end() {
        let (reader, mut writer) = io::pipe().expect("descriptors");
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        writer.write_all(b"begun").expect("room");
        assert_eq!(text(&path, SHORT).expect_err("nobody ends it").kind(), io::ErrorKind::TimedOut);
        writer.write_all(b"all").expect("room");
        drop(writer);
        assert_eq!(text(&path, READ_MAX).expect("it has ended"), "all");
    }

    #[test]
    fn a_fifo_waits_for_who_writes_it_and_not_for_ever() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a writable folder");
        let error = text(&path, SHORT).expect_err("nobody is there");
        assert!(error.to_string().contains("it is no regular file"), "{error}");
        let theirs = path.clone();
        let writing = std::thread::spawn(move || fs::write(theirs, "all"));
        assert_eq!(text(&path, READ_MAX).expect("it has ended"), "all");
        writing.join().expect("it ended").expect("it is read");
    }

    #[test]
    fn a_regular_file_and_a_device_are_read_as_ever() {
        let file = tempfile::NamedTempFile::new().expect("a folder");
        fs::write(file.path(), "all").expect("it is ours");
        assert_eq!(text(file.path(), Duration::ZERO).expect("it is there"), "all");
        assert_eq!(text(Path::new("/dev/null"), READ_MAX).expect("it is there"), "");
        assert!(text(&file.path().join("none"), READ_MAX).is_err());
    }
}
