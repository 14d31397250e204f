//! The lines of a log, one by one, however long it is.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// A line is no longer; of one that is nothing is kept.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;

/// What a file begins with that is compressed by gzip (RFC 1952 section 2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];

/// The lines of a log, compressed or not. Holds one of them at a time.
pub(super) struct LogLines<R> {
    source: R,
    line: Vec<u8>,
    /// How many there were, the current one among them.
    pub(super) number: u64,
    /// Bytes of what was read of the text.
    pub(super) bytes: u64,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Without its line break.
    Whole(&'a [u8]),
    /// It is longer than [`LINE_BYTES_MAX`].
    TooLong,
}

/// The text of a log: what gzip has made of it is undone.
pub(super) fn plain<'r>(mut source: impl BufRead + 'r) -> io::Result<Box<dyn BufRead + 'r>> {
    let is_gzip = source.fill_buf()?.starts_with(GZIP);
    Ok(match is_gzip {
        true => Box::new(BufReader::new(MultiGzDecoder::new(source))),
        false => Box::new(source),
    })
}

impl<R: BufRead> LogLines<R> {
    pub(super) fn of(source: R) -> LogLines<R> {
        LogLines { source, line: Vec::new(), number: 0, bytes: 0 }
    }

    /// The next line; nothing at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        // Two bytes more than a line may have: its line break.
        let mut bounded = (&mut self.source).take(LINE_BYTES_MAX as u64 + 2);
        let read = bounded.read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.bytes += read as u64;
        let is_ended = self.line.last() == Some(&b'\n');
        let is_last = !is_ended && self.line.len() < LINE_BYTES_MAX + 2;
        if !is_ended && !is_last {
            self.bytes += self.source.skip_until(b'\n')? as u64;
            return Ok(Some(Line::TooLong));
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some(if line.len() > LINE_BYTES_MAX { Line::TooLong } else { Line::Whole(line) }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// The lengths of the lines; nothing of one that is too long.
    fn lengths(text: &[u8]) -> Vec<Option<usize>> {
        let mut lines = LogLines::of(plain(text).expect("it is read from memory"));
        let mut lengths = Vec::new();
        while let Some(line) = lines.next().expect("it is read from memory") {
            lengths.push(match line {
                Line::Whole(line) => Some(line.len()),
                Line::TooLong => None,
            });
        }
        assert_eq!(lines.number, lengths.len() as u64);
        lengths
    }

    #[test]
    fn lines_end_in_line_feeds_and_are_bounded() {
        assert_eq!(lengths(b""), []);
        assert_eq!(lengths(b"a\n\nbc\r\nlast"), [1, 0, 2, 4].map(Some));
        for (extra, expected) in [(0, Some(LINE_BYTES_MAX)), (1, None), (2, None), (5_000_000, None)] {
            let line = vec![b'x'; LINE_BYTES_MAX + extra];
            for end in [&b"\n"[..], b"\r\n"] {
                let text = [b"a", end, &line, end, b"b", end].concat();
                assert_eq!(lengths(&text), [Some(1), expected, Some(1)], "{extra} {end:?}");
            }
            assert_eq!(lengths(&line), [expected], "{extra}");
        }
    }

    /// Rotated files may stand behind each other.
    #[test]
    fn gzip_is_undone() {
        let packed = |text: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text).expect("it is written to memory");
            encoder.finish().expect("it is written to memory")
        };
        let text = [packed(b"one\ntwo\n"), packed(b"three\n")].concat();
        assert_eq!(lengths(&text), [3, 3, 5].map(Some));
        let cut = &text[..text.len() - 12];
        let mut lines = LogLines::of(plain(cut).expect("it begins well"));
        while let Ok(Some(_)) = lines.next() {}
        assert!(lines.next().is_err(), "what is cut off is no end");
    }
}
