//! Where a boundary stands at the start of a line.

use memchr::memmem::Finder;

use super::Wrong;

/// Looks for `--boundary` at the start of a line, in time that grows with the bytes looked at alone.
///
/// A line starts behind CRLF. Behind a CR or LF alone it starts for some parsers and not for others.
#[derive(Debug)]
pub(super) struct Delimiter {
    dash_boundary: Finder<'static>,
    line: Line,
}

#[derive(Clone, Copy, Debug)]
enum Line {
    /// No delimiter begins with the bytes that came last.
    Inside,
    /// As many bytes of `--boundary` have come at the start of a line. They and the line's end before them are held
    /// back; they need no room, for what they are is known.
    Start { before: Before, matched: usize },
}

/// What stands before a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing: here the body starts.
    Body,
    /// The empty line of a part's head.
    Head,
    ReturnLineFeed,
    LineFeed,
    Return,
}

/// What a look at some bytes has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// `--boundary` where it delimits: behind CRLF, or where the body starts.
    Delimiter,
    /// `--boundary` where it delimits only for some.
    Ambiguous,
}

impl Before {
    fn bytes(self) -> &'static [u8] {
        match self {
            Before::Body | Before::Head => b"",
            Before::ReturnLineFeed => b"\r\n",
            Before::LineFeed => b"\n",
            Before::Return => b"\r",
        }
    }

    /// The line's end at the end of these bytes, if there is one.
    fn at_end(bytes: &[u8]) -> Option<Before> {
        match bytes {
            [.., b'\r', b'\n'] => Some(Before::ReturnLineFeed),
            [.., b'\n'] => Some(Before::LineFeed),
            [.., b'\r'] => Some(Before::Return),
            _ => None,
        }
    }

    fn found(self) -> Found {
        match self {
            Before::Body | Before::ReturnLineFeed => Found::Delimiter,
            Before::Head | Before::LineFeed | Before::Return => Found::Ambiguous,
        }
    }
}

impl Delimiter {
    pub(super) fn new(boundary: &[u8]) -> Delimiter {
        let dash_boundary = [b"--", boundary].concat();
        Delimiter {
            dash_boundary: Finder::new(&dash_boundary).into_owned(),
            line: Line::Start { before: Before::Body, matched: 0 },
        }
    }

    pub(super) fn dash_boundary(&self) -> &[u8] {
        self.dash_boundary.needle()
    }

    /// A line starts here.
    pub(super) fn start_line(&mut self, before: Before) {
        self.line = Line::Start { before, matched: 0 };
    }

    /// Looks at bytes up to behind the next `--boundary`: how many they are. `data` hears of what stands before it, in
    /// pieces that are never empty.
    pub(super) fn look(
        &mut self,
        bytes: &[u8],
        data: &mut impl FnMut(&[u8]) -> Result<(), Wrong>,
    ) -> Result<(usize, Found), Wrong> {
        let mut at = 0;
        while let Line::Start { before, matched } = self.line {
            let Some(&byte) = bytes.get(at) else { return Ok((at, Found::Nothing)) };
            let needle = self.dash_boundary.needle();
            if (before, matched, byte) == (Before::Return, 0, b'\n') {
                self.start_line(Before::ReturnLineFeed);
                at += 1;
            } else if byte == needle[matched] {
                at += 1;
                if matched + 1 == needle.len() {
                    self.line = Line::Inside;
                    return Ok((at, before.found()));
                }
                self.line = Line::Start { before, matched: matched + 1 };
            } else {
                for held in [before.bytes(), &needle[..matched]].into_iter().filter(|held| !held.is_empty()) {
                    data(held)?;
                }
                self.line = Line::Inside;
            }
        }
        let (used, found) = self.look_inside(&bytes[at..], data)?;
        Ok((at + used, found))
    }

    /// The same, where no delimiter begins before the bytes.
    fn look_inside(
        &mut self,
        bytes: &[u8],
        data: &mut impl FnMut(&[u8]) -> Result<(), Wrong>,
    ) -> Result<(usize, Found), Wrong> {
        let needle = self.dash_boundary.needle();
        let mut data = |piece: &[u8]| if piece.is_empty() { Ok(()) } else { data(piece) };
        let mut from = 0;
        while let Some(at) = self.dash_boundary.find(&bytes[from..]).map(|at| from + at) {
            if let Some(before) = Before::at_end(&bytes[..at]) {
                data(&bytes[..at - before.bytes().len()])?;
                return Ok((at + needle.len(), before.found()));
            }
            // The next one that counts stands behind the end of this line.
            match memchr::memchr2(b'\r', b'\n', &bytes[at..]) {
                Some(line_end) => from = at + line_end,
                None => break,
            }
        }
        // One may begin in the last line, where not all of it has come.
        let tail = bytes.len().saturating_sub(needle.len());
        let line_end = memchr::memrchr2(b'\r', b'\n', &bytes[tail..]).map(|at| tail + at + 1);
        let last = line_end.map(|end| bytes.split_at(end)).filter(|(_, line)| needle.starts_with(line));
        let Some((lines, line)) = last else {
            data(bytes)?;
            return Ok((bytes.len(), Found::Nothing));
        };
        let before = Before::at_end(lines).unwrap_or(Before::Head);
        self.line = Line::Start { before, matched: line.len() };
        data(&lines[..lines.len() - before.bytes().len()])?;
        Ok((bytes.len(), Found::Nothing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Data up to the first `--boundary` that counts, what it is and where it ends.
    fn outcome<'a>(
        boundary: &str,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<u8>, Option<(usize, Found)>) {
        let (mut delimiter, mut data, mut at) = (Delimiter::new(boundary.as_bytes()), Vec::new(), 0);
        delimiter.start_line(Before::Head);
        for piece in pieces {
            let looked = delimiter.look(piece, &mut |bytes| {
                assert!(!bytes.is_empty());
                data.extend_from_slice(bytes);
                Ok(())
            });
            let (used, found) = looked.expect("nothing is refused");
            at += used;
            if found != Found::Nothing {
                return (data, Some((at, found)));
            }
            assert_eq!(used, piece.len());
        }
        (data, None)
    }

    /// The same by a look at each place; what is held back at the end is left out.
    fn plainly(boundary: &str, bytes: &[u8]) -> (Vec<u8>, Option<(usize, Found)>) {
        let needle = format!("--{boundary}").into_bytes();
        for at in 0..=bytes.len() {
            let (before, rest) = bytes.split_at(at);
            let (line_end, found) = match before {
                [] => (0, Found::Ambiguous),
                [.., b'\r', b'\n'] => (2, Found::Delimiter),
                [.., b'\r'] if rest.first() == Some(&b'\n') => continue,
                [.., b'\r' | b'\n'] => (1, Found::Ambiguous),
                _ => continue,
            };
            if rest.starts_with(&needle) {
                return (before[..at - line_end].to_vec(), Some((at + needle.len(), found)));
            }
            if needle.starts_with(rest) {
                return (before[..at - line_end].to_vec(), None);
            }
        }
        // A CR at the end stands before a line, or in a CRLF.
        (bytes.strip_suffix(b"\r").unwrap_or(bytes).to_vec(), None)
    }

    proptest! {
        #[test]
        fn a_look_at_each_place_finds_the_same(
            boundary in "[ab-]{1,5}",
            tokens in prop::collection::vec(0_usize..8, 0..24),
            pieces in prop::collection::vec(1_usize..6, 1..6),
        ) {
            let bytes: Vec<u8> = tokens.into_iter().flat_map(|token| match token {
                0 => b"\r\n".to_vec(),
                1 => b"\r".to_vec(),
                2 => b"\n".to_vec(),
                3 => b"-".to_vec(),
                4 => b"a".to_vec(),
                5 => format!("--{}", &boundary[..boundary.len() - 1]).into_bytes(),
                6 => format!("\r\n--{boundary}").into_bytes(),
                _ => format!("--{boundary}").into_bytes(),
            }).collect();
            let expected = plainly(&boundary, &bytes);
            prop_assert_eq!(outcome(&boundary, [&bytes[..]]), expected.clone());
            prop_assert_eq!(outcome(&boundary, bytes.chunks(1)), expected.clone());
            let mut rest = &bytes[..];
            let cut: Vec<&[u8]> = pieces.iter().cycle().map_while(|&piece| {
                let (before, behind) = rest.split_at(piece.min(rest.len()));
                rest = behind;
                (!before.is_empty()).then_some(before)
            }).collect();
            prop_assert_eq!(outcome(&boundary, cut), expected);
        }
    }
}
