//! The access log's sink: a thread that writes what the event loops hand over, and a bounded queue between.
//!
//! An event loop never waits for the disk: the lock around the queue is held for a few instructions only,
//! and a buffer that finds the queue full is dropped, its lines counted.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::line_file::{Cut, LineFile, Written};
use crate::metrics::Metrics;
use crate::queue::{Lines, Queue};
use crate::style::LogStyle;

/// Permissions of a log file that is created; the process' umask takes more away.
const LOG_MODE: u32 = 0o640;

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// The end of a file, which is made if it is not there; or a FIFO, with or without a reader.
    File(PathBuf),
}

/// The access log. Cheap to clone; the thread behind it writes what it has and ends when it is closed or the last
/// clone is dropped. Only [`AccessLog::close`] waits for that.
#[derive(Clone, Debug)]
pub struct AccessLog(Arc<Sink>);

#[derive(Debug)]
struct Sink {
    style: LogStyle,
    queue: Arc<Queue>,
    trouble: Arc<Mutex<LogTrouble>>,
}

/// What has gone wrong with the log since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTrouble {
    /// Whether the last write failed.
    pub is_failing: bool,
    /// Writes that failed.
    pub failures: u64,
    /// Lines that were lost with them.
    pub lost_lines: u64,
    /// Why the last of them did.
    pub why: String,
    /// Why the file could not be opened anew since this was last asked: what was open is written to.
    pub unopened: Option<String>,
}

impl AccessLog {
    /// Opens the target and starts the thread.
    pub fn open(target: LogTarget, style: LogStyle, metrics: &Metrics) -> io::Result<AccessLog> {
        let file = open(&target)?;
        let queue = Arc::new(Queue::new(metrics.log_counters()));
        let trouble = Arc::<Mutex<LogTrouble>>::default();
        let writer = Writer { target, file, queue: queue.clone(), trouble: trouble.clone() };
        // Not joined: a write to a pipe that nobody reads, or to a disk that hangs, may never return.
        drop(thread::Builder::new().name("access-log".to_owned()).spawn(|| writer.run())?);
        Ok(AccessLog(Arc::new(Sink { style, queue, trouble })))
    }

    /// Opens the file anew after it was renamed. Lines handed over before go to the old file, later ones to the new
    /// one. If that cannot be opened, the old one stays in use, and the error is counted.
    pub fn reopen(&self) {
        self.0.queue.reopen();
    }

    /// Writes everything that was handed over, and ends. What comes later is dropped and counted.
    ///
    /// Waits at most `max`, and no longer than until `cut` says so. Returns the lines that are still not written;
    /// the first of them may be out in part.
    pub fn close(&self, max: Duration, cut: impl FnMut() -> bool) -> u64 {
        self.0.queue.close();
        self.0.queue.wait_for_end(max, cut)
    }

    /// What has gone wrong with it.
    pub fn take_trouble(&self) -> LogTrouble {
        let mut trouble = lock(&self.0.trouble);
        let unopened = trouble.unopened.take();
        LogTrouble { unopened, ..trouble.clone() }
    }

    pub(crate) fn style(&self) -> LogStyle {
        self.0.style
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.0.queue
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// The thread's side.
struct Writer {
    target: LogTarget,
    file: LineFile,
    queue: Arc<Queue>,
    trouble: Arc<Mutex<LogTrouble>>,
}

fn lock(trouble: &Mutex<LogTrouble>) -> MutexGuard<'_, LogTrouble> {
    // Whoever held it left it whole.
    trouble.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    fn run(mut self) {
        loop {
            let mut work = self.queue.take(None);
            if let Some(count) = work.reopen_behind {
                work.full.drain(..count).for_each(|lines| self.write(lines));
                self.reopen();
            }
            for lines in work.full {
                self.write(lines);
            }
            // Nothing is taken in after closing, so nothing is left.
            if work.closed {
                return;
            }
        }
    }

    fn write(&mut self, lines: Lines) {
        let Written { is_completed, cut } = self.file.write(&lines.bytes);
        self.count_written(u64::from(is_completed));
        match cut {
            None => {
                lock(&self.trouble).is_failing = false;
                self.count_written(lines.count);
            }
            Some(Cut { whole_lines, has_begun_line, error }) => {
                self.count_written(whole_lines);
                let lost = lines.count.saturating_sub(whole_lines + u64::from(has_begun_line));
                let mut trouble = lock(&self.trouble);
                (trouble.is_failing, trouble.why) = (true, error.to_string());
                trouble.failures += 1;
                trouble.lost_lines += lost;
                drop(trouble);
                self.queue.counters.write_errors.fetch_add(1, Ordering::Relaxed);
                self.count_dropped(lost);
            }
        }
        self.queue.give_back(lines);
    }

    /// Completes a line that has begun, or counts it as lost.
    fn leave_file(&mut self) {
        if !self.file.has_begun_line() {
            return;
        }
        if self.file.write(b"").is_completed {
            self.count_written(1);
        } else {
            lock(&self.trouble).lost_lines += 1;
            self.count_dropped(1);
        }
    }

    fn count_written(&self, lines: u64) {
        self.queue.counters.written_lines.fetch_add(lines, Ordering::Relaxed);
    }

    fn count_dropped(&self, lines: u64) {
        self.queue.counters.dropped_lines.fetch_add(lines, Ordering::Relaxed);
    }

    fn reopen(&mut self) {
        match open(&self.target) {
            Ok(file) => {
                self.leave_file();
                self.file = file;
            }
            Err(error) => {
                self.queue.counters.write_errors.fetch_add(1, Ordering::Relaxed);
                lock(&self.trouble).unopened = Some(error.to_string());
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.leave_file();
        self.queue.has_ended();
    }
}

/// Ends the last line of a log that a process before this one left cut, as one does that is killed while it writes.
/// Only for a file that no other process writes to.
pub fn end_cut_line(path: &Path) -> io::Result<()> {
    if !std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() > 0) {
        return Ok(());
    }
    let mut file = OpenOptions::new().read(true).append(true).open(path)?;
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    match last {
        [b'\n'] => Ok(()),
        _ => LineFile::appending(file).write(b"\n").cut.map_or(Ok(()), |cut| Err(cut.error)),
    }
}

fn open(target: &LogTarget) -> io::Result<LineFile> {
    match target {
        // A descriptor of its own: the library's handle would look for line feeds in every buffer.
        LogTarget::Stdout => LineFile::shared(io::stdout()),
        // To write alone, opening would wait for a reader. With a reading end of our own no reader need be there yet,
        // and none that leaves takes what is written with it.
        LogTarget::File(path) if is_fifo(path) => append(OpenOptions::new().read(true), path),
        // Addresses of clients and targets with what users typed are for the operator's group, and nobody else.
        LogTarget::File(path) => append(OpenOptions::new().create(true).mode(LOG_MODE), path),
    }
}

fn append(options: &mut OpenOptions, path: &Path) -> io::Result<LineFile> {
    Ok(LineFile::appending(options.append(true).open(path)?))
}

fn is_fifo(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn lines(text: &str) -> Lines {
        Lines { bytes: text.as_bytes().to_vec(), count: text.lines().count() as u64 }
    }

    #[test]
    fn closing_writes_everything_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        fs::write(&path, "before\n").unwrap();
        let metrics = Metrics::new(1, "0", std::time::UNIX_EPOCH);
        let log = AccessLog::open(LogTarget::File(path.clone()), LogStyle::JSON, &metrics).unwrap();
        let expected: String = (0..50).map(|number| format!("{number}\n")).collect();
        for line in expected.split_inclusive('\n') {
            log.queue().hand_over(&mut lines(line));
        }
        assert_eq!(log.close(Duration::MAX, || false), 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("before\n{expected}"));
        log.queue().hand_over(&mut lines("late\n"));
        assert_eq!(metrics.log_counters().dropped_lines.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn reopening_follows_a_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let (path, rotated) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
        let metrics = Metrics::new(1, "0", std::time::UNIX_EPOCH);
        let log = AccessLog::open(LogTarget::File(path.clone()), LogStyle::JSON, &metrics).unwrap();
        log.queue().hand_over(&mut lines("old\n"));
        fs::rename(&path, &rotated).unwrap();
        log.reopen();
        // The thread says that it has reopened by the file it makes.
        while !path.exists() {
            thread::yield_now();
        }
        log.queue().hand_over(&mut lines("new\n"));
        assert_eq!(log.close(Duration::MAX, || false), 0);
        assert_eq!(fs::read_to_string(&rotated).unwrap(), "old\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    }

    #[test]
    fn what_waits_when_the_file_is_reopened_goes_to_either_file_by_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        let (path, rotated) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
        let target = LogTarget::File(path.clone());
        let queue = Arc::new(Queue::new(Arc::default()));
        let file = open(&target).unwrap();
        let writer = Writer { file, target, queue: queue.clone(), trouble: Arc::default() };
        queue.hand_over(&mut lines("old\n"));
        fs::rename(&path, &rotated).unwrap();
        queue.reopen();
        queue.hand_over(&mut lines("new\n"));
        queue.reopen();
        queue.close();
        writer.run();
        assert_eq!(fs::read_to_string(&rotated).unwrap(), "old\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let full = LogTarget::File(PathBuf::from("/dev/full"));
        let metrics = Metrics::new(1, "0", std::time::UNIX_EPOCH);
        let Ok(log) = AccessLog::open(full, LogStyle::JSON, &metrics) else {
            return;
        };
        log.queue().hand_over(&mut lines("a\nb\n"));
        assert_eq!(log.close(Duration::MAX, || false), 0);
        assert_eq!(metrics.log_counters().dropped_lines.load(Ordering::Relaxed), 2);
        assert_eq!(metrics.log_counters().write_errors.load(Ordering::Relaxed), 1);
        let LogTrouble { is_failing, failures, lost_lines, why, unopened } = log.take_trouble();
        assert_eq!((is_failing, failures, lost_lines, unopened), (true, 1, 2, None), "{why}");
        assert!(why.starts_with("No space left on device"), "{why}");
    }

    #[test]
    fn a_new_file_is_not_for_everybody() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        drop(open(&LogTarget::File(path.clone())).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o027, 0);
    }

    #[test]
    fn a_line_that_was_left_cut_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        end_cut_line(&path).unwrap();
        assert!(!path.exists());
        for (before, after) in [("", ""), ("one\n", "one\n"), ("one\ntw", "one\ntw\n")] {
            fs::write(&path, before).unwrap();
            end_cut_line(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after);
        }
    }

    #[test]
    fn a_missing_folder_is_an_error_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let metrics = Metrics::new(1, "0", std::time::UNIX_EPOCH);
        let target = LogTarget::File(folder.path().join("none").join("access.log"));
        assert!(AccessLog::open(target, LogStyle::JSON, &metrics).is_err());
    }
}
