//! UTF-8 in pieces that are cut anywhere.

use std::str;

/// What stands in bytes that should be UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Utf8Piece<'a> {
    Text(&'a str),
    /// Bytes that are not UTF-8 (RFC 3629): overlong, a surrogate, beyond U+10FFFF, or a character that does not end.
    /// They end where the next character may begin (Unicode 3.9, maximal subparts): what follows is read as it is.
    NotUtf8,
}

/// Follows UTF-8. It holds the start of a character that a piece has cut: at most 3 bytes.
#[derive(Debug, Default)]
pub(crate) struct Utf8 {
    carried: [u8; 4],
    carried_bytes: usize,
}

impl Utf8 {
    /// Hands on the characters that are whole, without a copy where no cut is in them.
    pub(crate) fn feed<E>(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(Utf8Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while self.carried_bytes > 0 {
            let Some((&byte, after)) = rest.split_first() else { return Ok(()) };
            if self.carry(byte, each)? {
                rest = after;
            }
        }
        let (mut whole, cut) = rest.split_at(rest.len() - cut_bytes(rest));
        while !whole.is_empty() {
            let (good, bad_bytes) = match str::from_utf8(whole) {
                Ok(text) => (text, 0),
                Err(fault) => {
                    let good = str::from_utf8(&whole[..fault.valid_up_to()]).unwrap_or_default();
                    // What follows a character that does not end here begins another one.
                    (good, fault.error_len().unwrap_or(whole.len() - good.len()))
                }
            };
            if !good.is_empty() {
                each(Utf8Piece::Text(good))?;
            }
            if bad_bytes > 0 {
                each(Utf8Piece::NotUtf8)?;
            }
            whole = &whole[good.len() + bad_bytes..];
        }
        let mut rest = cut;
        while let Some((&byte, after)) = rest.split_first() {
            if self.carry(byte, each)? {
                rest = after;
            }
        }
        Ok(())
    }

    /// No more comes.
    pub(crate) fn finish<E>(
        &mut self,
        each: &mut impl FnMut(Utf8Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match std::mem::take(&mut self.carried_bytes) {
            0 => Ok(()),
            _ => each(Utf8Piece::NotUtf8),
        }
    }

    /// Takes the next byte behind the start of a character that is held, or the first one of a character. Whether it
    /// is taken: a byte that does not go on with what is held is looked at again.
    fn carry<E>(
        &mut self,
        byte: u8,
        each: &mut impl FnMut(Utf8Piece<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let held = self.carried_bytes;
        let Some(room) = self.carried.get_mut(held) else { return Ok(true) };
        *room = byte;
        match str::from_utf8(&self.carried[..=held]) {
            Ok(text) => {
                self.carried_bytes = 0;
                each(Utf8Piece::Text(text))?;
                Ok(true)
            }
            Err(fault) if fault.error_len().is_none() => {
                self.carried_bytes = held + 1;
                Ok(true)
            }
            Err(_) => {
                self.carried_bytes = 0;
                each(Utf8Piece::NotUtf8)?;
                Ok(held == 0)
            }
        }
    }
}

/// How many bytes at the end begin a character that is not whole there.
fn cut_bytes(bytes: &[u8]) -> usize {
    for (behind, byte) in bytes.iter().rev().take(3).enumerate() {
        let needed = match byte {
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
            _ => 1,
        };
        return if needed > behind + 1 { behind + 1 } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is handed on of pieces, with U+FFFD for what is not UTF-8.
    fn outcome<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
        let (mut utf8, mut text) = (Utf8::default(), String::new());
        let mut each = |piece: Utf8Piece<'_>| {
            match piece {
                Utf8Piece::Text(piece) => {
                    assert!(!piece.is_empty());
                    text.push_str(piece);
                }
                Utf8Piece::NotUtf8 => text.push(char::REPLACEMENT_CHARACTER),
            }
            Ok::<_, std::convert::Infallible>(())
        };
        for piece in pieces {
            let Ok(()) = utf8.feed(piece, &mut each);
        }
        let Ok(()) = utf8.finish(&mut each);
        text
    }

    fn check(bytes: &[u8]) {
        let expected = String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(outcome([bytes]), expected, "{}", bytes.escape_ascii());
        assert_eq!(outcome(bytes.chunks(1)), expected, "{}", bytes.escape_ascii());
        for cut in 0..bytes.len() {
            let (before, behind) = bytes.split_at(cut);
            assert_eq!(outcome([before, behind]), expected, "{} at {cut}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_the_standard_library_says() {
        for bytes in [
            &b""[..],
            b"a",
            "aé€😀z".as_bytes(),
            b"\xc0\x80",
            b"\xc1\xbf",
            b"a\xe0\x80\x80",
            b"\xed\xa0\x80",
            b"\xed\xb0\x80b",
            b"\xf0\x80\x80\x80",
            b"\xf4\x90\x80\x80",
            b"\xf5\x80\x80\x80",
            b"\x80",
            b"ab\xbf",
            b"\xff",
            b"\xe2\x82",
            b"\xe2\x82a",
            b"\xe2\xe2\x82\xac",
            b"\xf0\x9f\x98",
            b"\xf0\x9f\x98\x80\x80",
        ] {
            check(bytes);
        }
    }

    proptest! {
        #[test]
        fn generated(bytes in prop::collection::vec(prop_oneof![
            any::<u8>(), Just(0xe2), Just(0x82), Just(0xac), Just(0xf0), Just(0x9f), Just(b'a'),
        ], 0..12)) {
            check(&bytes);
        }

        #[test]
        fn generated_text(text in "\\PC{0,8}") {
            check(text.as_bytes());
        }
    }
}
