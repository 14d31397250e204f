//! UTF-8 in pieces that are cut anywhere.

use std::str;

/// Bytes that are not UTF-8 (RFC 3629): overlong, a surrogate, beyond U+10FFFF, or a character that does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotUtf8;

/// Follows UTF-8. It holds the start of a character that a piece has cut: at most 3 bytes.
#[derive(Debug, Default)]
pub(crate) struct Utf8 {
    carried: [u8; 4],
    carried_bytes: usize,
}

impl Utf8 {
    /// Hands on the characters that are whole, without a copy where no cut is in them.
    pub(crate) fn feed<E: From<NotUtf8>>(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while self.carried_bytes > 0 {
            let Some((&byte, after)) = rest.split_first() else { return Ok(()) };
            rest = after;
            self.carry(&[byte])?;
            if let Ok(text) = str::from_utf8(&self.carried[..self.carried_bytes]) {
                self.carried_bytes = 0;
                each(text)?;
            }
        }
        let (whole, cut) = rest.split_at(rest.len() - cut_bytes(rest));
        match str::from_utf8(whole) {
            Ok("") => {}
            Ok(text) => each(text)?,
            Err(fault) => {
                let good = str::from_utf8(&whole[..fault.valid_up_to()]).unwrap_or_default();
                if !good.is_empty() {
                    each(good)?;
                }
                return Err(NotUtf8.into());
            }
        }
        Ok(self.carry(cut)?)
    }

    /// No more comes.
    pub(crate) fn finish(&mut self) -> Result<(), NotUtf8> {
        if self.carried_bytes == 0 { Ok(()) } else { Err(NotUtf8) }
    }

    fn carry(&mut self, bytes: &[u8]) -> Result<(), NotUtf8> {
        let end = self.carried_bytes + bytes.len();
        self.carried.get_mut(self.carried_bytes..end).ok_or(NotUtf8)?.copy_from_slice(bytes);
        self.carried_bytes = end;
        match str::from_utf8(&self.carried[..end]) {
            Err(fault) if fault.error_len().is_some() => Err(NotUtf8),
            _ => Ok(()),
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

    /// What is handed on of pieces, and whether all of it is UTF-8.
    fn outcome<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (String, bool) {
        let (mut utf8, mut text) = (Utf8::default(), String::new());
        let mut each = |piece: &str| {
            assert!(!piece.is_empty());
            text.push_str(piece);
            Ok::<_, NotUtf8>(())
        };
        let fed = pieces.into_iter().try_for_each(|piece| utf8.feed(piece, &mut each));
        let is_utf8 = fed.and_then(|()| utf8.finish()).is_ok();
        (text, is_utf8)
    }

    fn check(bytes: &[u8]) {
        let expected = match str::from_utf8(bytes) {
            Ok(text) => (text.to_owned(), true),
            Err(fault) => (String::from_utf8_lossy(&bytes[..fault.valid_up_to()]).into_owned(), false),
        };
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
