//! Endless bytes that can be made and checked at any place, faster than a switch passes them on.

/// Long enough that nothing which holds a buffer back or sends it twice leaves the pattern as it is.
const BLOCK: usize = 64 * 1024;

/// A place in the endless bytes. Every block holds its own number, so no two are alike.
#[derive(Clone, Debug)]
pub struct Pattern {
    block: Vec<u8>,
    position: u64,
}

impl Default for Pattern {
    fn default() -> Self {
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        Self { block: (0..BLOCK).map(|_| noise()).collect(), position: 0 }
    }
}

impl Pattern {
    /// How many bytes have gone by.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next bytes, at least one and not more than these.
    pub fn next(&mut self, max: u64) -> &[u8] {
        let at = self.place();
        let count = (BLOCK - at).min(usize::try_from(max).unwrap_or(BLOCK));
        if at == 0 {
            let number = self.position / BLOCK as u64;
            self.block[..8].copy_from_slice(&number.to_be_bytes());
        }
        self.position += count as u64;
        &self.block[at..at + count]
    }

    /// Goes past bytes that came.
    ///
    /// # Panics
    /// When they are not the next ones.
    pub fn expect(&mut self, mut came: &[u8]) {
        while !came.is_empty() {
            let position = self.position;
            let wanted = self.next(came.len() as u64);
            let (head, rest) = came.split_at(wanted.len());
            // Not assert_eq: nobody wants to read 64 KiB.
            assert!(head == wanted, "other bytes than were sent, at {position} or soon after");
            came = rest;
        }
    }

    fn place(&self) -> usize {
        usize::try_from(self.position % BLOCK as u64).expect("less than a block")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_in_one_way_is_expected_in_another() {
        let (mut made, mut expected) = (Pattern::default(), Pattern::default());
        let mut bytes = Vec::new();
        while made.position() < 3 * BLOCK as u64 + 11 {
            let max = 1 + made.position() % 777;
            bytes.extend_from_slice(made.next(max));
        }
        bytes.chunks(1013).for_each(|chunk| expected.expect(chunk));
        assert_eq!(expected.position(), made.position());
    }

    #[test]
    #[should_panic(expected = "other bytes than were sent, at 65536")]
    fn a_block_that_comes_twice_is_found() {
        let block = Pattern::default().next(u64::MAX).to_vec();
        let mut expected = Pattern::default();
        expected.expect(&block);
        expected.expect(&block);
    }
}
