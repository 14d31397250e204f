//! Where a byte of a source text stands: its line and its column.

use std::cell::Cell;
use std::ops::Range;

/// The lines of a source text, found once for all findings about it.
#[derive(Debug)]
pub struct Lines<'s> {
    source: &'s str,
    /// Where each line begins.
    starts: Vec<usize>,
    /// A byte whose column is known: findings come in the order of the text, and a line may be a megabyte.
    known: Cell<(usize, usize)>,
}

impl<'s> Lines<'s> {
    /// The lines of a text.
    pub fn of(source: &'s str) -> Self {
        let starts = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { source, starts, known: Cell::new((0, 1)) }
    }

    /// The number of the line, from 1, in which a byte stands.
    pub fn line(&self, at: u32) -> usize {
        self.line_of(at as usize)
    }

    /// Line and column of a byte, both from 1; columns count characters.
    pub fn position(&self, at: u32) -> (usize, usize) {
        let at = self.boundary(at as usize);
        let line = self.line_of(at);
        let start = self.starts[line - 1];
        let (from, column) = match self.known.get() {
            known if (start..=at).contains(&known.0) => known,
            _ => (start, 1),
        };
        let column = column + self.source[from..at].chars().count();
        self.known.set((at, column));
        (line, column)
    }

    pub(crate) fn source(&self) -> &'s str {
        self.source
    }

    /// The bytes of a line without its line feed.
    pub(crate) fn bytes_of(&self, line: usize) -> Range<usize> {
        let end = self.starts.get(line).map_or(self.source.len(), |next| next - 1);
        self.starts[line - 1]..end
    }

    pub(crate) fn line_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// The border of a character at or before a byte.
    pub(crate) fn boundary(&self, at: usize) -> usize {
        self.source.floor_char_boundary(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_lines_and_characters() {
        let source = "one\nzwölf = 3\n";
        let expected = [(0, (1, 1)), (4, (2, 1)), (8, (2, 4)), (11, (2, 7)), (99, (3, 1))];
        let lines = Lines::of(source);
        for (at, expected) in expected.into_iter().chain(expected.into_iter().rev()) {
            assert_eq!(lines.position(at), expected, "byte {at}");
            assert_eq!(lines.line(at), expected.0, "byte {at}");
        }
        assert_eq!(Lines::of("").position(0), (1, 1));
    }
}
