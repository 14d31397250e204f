//! What of field blocks (RFC 7541) a generator has to read: the status, how long the content is to be, and what keeps the
//! two ends' tables the same.
//!
//! Fields that nobody keeps are skipped as they are; of those that go into the table only the lengths are kept.

use std::collections::VecDeque;

use super::frames::Broken;
use super::huffman;

/// What a table may hold unless its reader says otherwise (RFC 9113 section 6.5.2).
pub(crate) const TABLE_BYTES: usize = 4096;
/// What an entry counts beside its text (section 4.1).
pub(crate) const ENTRY_BYTES: usize = 32;

/// Reads the field blocks of a connection, in order, for the statuses that they say.
#[derive(Debug)]
pub struct Decoder {
    /// The latest first.
    entries: VecDeque<Entry>,
    bytes: usize,
    bytes_max: usize,
    /// What the block that was read last says of the length of the content.
    length: Option<u64>,
}

/// What is kept of a field in the table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    name: Name,
    value_bytes: usize,
    /// What it says, if somebody wants to know that.
    number: u64,
}

/// What is kept of a field's name.
#[derive(Clone, Copy, Debug)]
struct Name {
    bytes: usize,
    what: What,
}

/// What a field is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Status,
    /// `content-length`.
    Length,
    Other,
}

/// A length that is none, or several that differ: no content has it.
const NO_LENGTH: u64 = u64::MAX;

impl Default for Decoder {
    fn default() -> Self {
        Decoder { entries: VecDeque::new(), bytes: 0, bytes_max: TABLE_BYTES, length: None }
    }
}

impl Decoder {
    /// Ready for another connection.
    pub(crate) fn reset(&mut self) {
        self.entries.clear();
        (self.bytes, self.bytes_max) = (0, TABLE_BYTES);
    }

    /// What the table counts as, in bytes (section 4.1): at most 4,096.
    pub fn table_bytes(&self) -> usize {
        self.bytes
    }

    /// How long the content is, by the block that was read last, if it says so: no content is as long as [`u64::MAX`], which
    /// stands for lengths that are none or differ.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// The status that a block says, if it does.
    ///
    /// # Errors
    /// It is no block, or it says two statuses, or one that is none: the connection is of no use any more.
    pub fn read(&mut self, mut block: &[u8]) -> Result<Option<u16>, Broken> {
        let mut status = None;
        self.length = None;
        while let Some(first) = block.first().copied() {
            let (what, number) = match first {
                0x80.. => {
                    let index = integer(&mut block, 7)?;
                    self.field_at(index)?
                }
                0x20..0x40 => {
                    self.bytes_max = integer(&mut block, 5)?;
                    if self.bytes_max > TABLE_BYTES {
                        return Err(Broken);
                    }
                    self.evict(0);
                    continue;
                }
                _ => self.literal(first & 0x40 != 0, &mut block)?,
            };
            match what {
                // A second one is as wrong as a letter in it.
                What::Status if status.replace(number as u16).is_some() => return Err(Broken),
                What::Length => {
                    let is_another = self.length.is_some_and(|known| known != number);
                    self.length = Some(if is_another { NO_LENGTH } else { number });
                }
                What::Status | What::Other => {}
            }
        }
        Ok(status)
    }

    fn literal(&mut self, is_added: bool, block: &mut &[u8]) -> Result<(What, u64), Broken> {
        let index = integer(block, if is_added { 6 } else { 4 })?;
        let name = if index == 0 {
            let text = Text::read(block)?;
            Name { bytes: if is_added { text.bytes()? } else { 0 }, what: text.what() }
        } else {
            self.name_at(index)?
        };
        let value = Text::read(block)?;
        let number = match name.what {
            What::Status => u64::from(value.status()?),
            What::Length => value.length()?,
            What::Other => 0,
        };
        if is_added {
            self.add(Entry { name, value_bytes: value.bytes()?, number });
        }
        Ok((name.what, number))
    }

    fn field_at(&self, index: usize) -> Result<(What, u64), Broken> {
        const STATUSES: [u64; 7] = [200, 204, 206, 304, 400, 404, 500];
        match index {
            0 => Err(Broken),
            8..15 => Ok((What::Status, STATUSES[index - 8])),
            1..8 | 15..=STATIC_COUNT => Ok((What::Other, 0)),
            _ => self.entry(index).map(|entry| (entry.name.what, entry.number)),
        }
    }

    fn name_at(&self, index: usize) -> Result<Name, Broken> {
        match STATIC_NAMES.get(index - 1) {
            Some(name) => {
                let what = match *name {
                    ":status" => What::Status,
                    "content-length" => What::Length,
                    _ => What::Other,
                };
                Ok(Name { bytes: name.len(), what })
            }
            None => self.entry(index).map(|entry| entry.name),
        }
    }

    fn entry(&self, index: usize) -> Result<Entry, Broken> {
        self.entries.get(index - 1 - STATIC_COUNT).copied().ok_or(Broken)
    }

    fn add(&mut self, entry: Entry) {
        self.evict(entry.size());
        // One that is larger than the whole table empties it (section 4.4).
        if entry.size() <= self.bytes_max {
            self.bytes += entry.size();
            self.entries.push_front(entry);
        }
    }

    /// Makes room.
    fn evict(&mut self, bytes: usize) {
        while self.bytes + bytes > self.bytes_max {
            let Some(oldest) = self.entries.pop_back() else { return };
            self.bytes -= oldest.size();
        }
    }
}

impl Entry {
    fn size(&self) -> usize {
        self.name.bytes + self.value_bytes + ENTRY_BYTES
    }
}

/// A string as it came.
struct Text<'b> {
    bytes: &'b [u8],
    is_packed: bool,
}

impl<'b> Text<'b> {
    fn read(block: &mut &'b [u8]) -> Result<Text<'b>, Broken> {
        let is_packed = block.first().ok_or(Broken)? & 0x80 != 0;
        let length = integer(block, 7)?;
        let (bytes, rest) = block.split_at_checked(length).ok_or(Broken)?;
        *block = rest;
        Ok(Text { bytes, is_packed })
    }

    fn bytes(&self) -> Result<usize, Broken> {
        match self.is_packed {
            true => {
                let mut count = 0;
                huffman::unpack(self.bytes, |_| count += 1)?;
                Ok(count)
            }
            false => Ok(self.bytes.len()),
        }
    }

    fn is(&self, text: &[u8]) -> bool {
        if !self.is_packed {
            return self.bytes == text;
        }
        let mut rest = Some(text);
        let unpacked = huffman::unpack(self.bytes, |byte| {
            rest = rest.and_then(|rest| rest.strip_prefix(&[byte]));
        });
        unpacked.is_ok() && rest == Some(&[])
    }

    /// What a field of this name is about.
    fn what(&self) -> What {
        if self.is(b":status") {
            What::Status
        } else if self.is(b"content-length") {
            What::Length
        } else {
            What::Other
        }
    }

    /// Digits.
    fn length(&self) -> Result<u64, Broken> {
        let mut number = None;
        let mut take = |byte: u8| {
            let so_far = number.unwrap_or(0_u64);
            let digit = Some(u64::from(byte.wrapping_sub(b'0'))).filter(|digit| *digit < 10);
            let longer = digit.and_then(|digit| so_far.checked_mul(10)?.checked_add(digit));
            number = Some(longer.filter(|_| so_far != NO_LENGTH).unwrap_or(NO_LENGTH));
        };
        match self.is_packed {
            true => huffman::unpack(self.bytes, take)?,
            false => self.bytes.iter().for_each(|byte| take(*byte)),
        }
        Ok(number.unwrap_or(NO_LENGTH))
    }

    /// Three digits.
    fn status(&self) -> Result<u16, Broken> {
        let (mut number, mut count) = (0_u16, 0);
        let mut take = |byte: u8| {
            number = number.saturating_mul(10).saturating_add(u16::from(byte.wrapping_sub(b'0')));
            count = if byte.is_ascii_digit() { count + 1 } else { usize::MAX / 2 };
        };
        match self.is_packed {
            true => huffman::unpack(self.bytes, take)?,
            false => self.bytes.iter().for_each(|byte| take(*byte)),
        }
        Some(number).filter(|number| count == 3 && (100..600).contains(number)).ok_or(Broken)
    }
}

/// Reads a number behind a prefix of so many bits (section 5.1).
fn integer(block: &mut &[u8], prefix_bits: u8) -> Result<usize, Broken> {
    let max = (1 << prefix_bits) - 1;
    let (first, mut rest) = block.split_first().ok_or(Broken)?;
    let mut number = usize::from(*first) & max;
    if number == max {
        let mut shift = 0;
        loop {
            let (next, behind) = rest.split_first().ok_or(Broken)?;
            rest = behind;
            number += (usize::from(*next) & 127) << shift;
            shift += 7;
            if next & 128 == 0 {
                break;
            }
            // No number that means anything here is longer.
            if shift > 21 {
                return Err(Broken);
            }
        }
    }
    *block = rest;
    Ok(number)
}

/// Appends a number behind the bits of `flags`.
pub(crate) fn write_integer(out: &mut Vec<u8>, prefix_bits: u8, flags: u8, number: usize) {
    let max = (1 << prefix_bits) - 1;
    if number < max {
        return out.push(flags | number as u8);
    }
    out.push(flags | max as u8);
    let mut rest = number - max;
    while rest >= 128 {
        out.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    out.push(rest as u8);
}

pub(crate) const STATIC_COUNT: usize = 61;

/// The names of the static table (RFC 7541 appendix A).
#[rustfmt::skip]
pub(crate) const STATIC_NAMES: [&str; STATIC_COUNT] = [
    ":authority", ":method", ":method", ":path", ":path", ":scheme", ":scheme", ":status", ":status", ":status",
    ":status", ":status", ":status", ":status", "accept-charset", "accept-encoding", "accept-language",
    "accept-ranges", "accept", "access-control-allow-origin", "age", "allow", "authorization", "cache-control",
    "content-disposition", "content-encoding", "content-language", "content-length", "content-location",
    "content-range", "content-type", "cookie", "date", "etag", "expect", "expires", "from", "host", "if-match",
    "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "last-modified", "link", "location",
    "max-forwards", "proxy-authenticate", "proxy-authorization", "range", "referer", "refresh", "retry-after",
    "server", "set-cookie", "strict-transport-security", "transfer-encoding", "user-agent", "vary", "via",
    "www-authenticate",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pair =
            |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).expect("ASCII"), 16).expect("hex");
        digits.chunks(2).map(pair).collect()
    }

    /// RFC 7541 appendix C.6: three answers on a connection, with Huffman, and a table of 256 bytes.
    #[test]
    fn the_examples_of_the_rfc() {
        let mut decoder = Decoder { bytes_max: 256, ..Decoder::default() };
        let first =
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e
                     919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3";
        assert_eq!(decoder.read(&bytes(first)), Ok(Some(302)));
        assert_eq!((decoder.entries.len(), decoder.bytes), (4, 222));
        assert_eq!(decoder.read(&bytes("4883 640e ffc1 c0bf")), Ok(Some(307)));
        assert_eq!((decoder.entries.len(), decoder.bytes), (4, 222), "the first was evicted");
        let third = "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d
                     d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106
                     3d50 07";
        assert_eq!(decoder.read(&bytes(third)), Ok(Some(200)));
        assert_eq!((decoder.entries.len(), decoder.bytes), (3, 215));
    }

    #[test]
    fn a_status_is_found_however_it_is_written() {
        let mut plain = b"\x00\x07:status\x03503".to_vec();
        assert_eq!(Decoder::default().read(&plain), Ok(Some(503)));
        plain.truncate(plain.len() - 1);
        assert_eq!(Decoder::default().read(&plain), Err(Broken));
        let mut decoder = Decoder::default();
        assert_eq!(decoder.read(b"\x40\x07:status\x03201"), Ok(Some(201)));
        assert_eq!(decoder.read(b"\xbe"), Ok(Some(201)));
        assert_eq!(decoder.read(b"\x0f\x2f\x03404"), Ok(Some(404)), "its name is that of an entry");
        assert_eq!(decoder.read(b"\x00\x01a\x01b"), Ok(None));
        assert_eq!(decoder.read(b""), Ok(None));
        for bad in [
            &b"\x80"[..],
            b"\xbf",
            b"\x88\x88",
            b"\x08\x0320x",
            b"\x08\x04 200",
            b"\x3f\xe2\x1f",
            b"\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(decoder.read(bad), Err(Broken), "{bad:x?}");
        }
    }

    #[test]
    fn a_length_is_found_however_it_is_written() {
        let mut decoder = Decoder::default();
        for (block, length) in [
            (&b"\x88"[..], None),
            (b"\x88\x0f\x0d\x045000", Some(5000)),
            // Added to the table, and then taken from there.
            (b"\x88\x5c\x0212", Some(12)),
            (b"\x88\xbe", Some(12)),
            (b"\x88\xbe\x0f\x0d\x0212", Some(12)),
            (b"\x88\x00\x0econtent-length\x017", Some(7)),
            // In Huffman's code: 42.
            (b"\x88\x0f\x0d\x82\x68\x5f", Some(42)),
            (b"\x88\xbe\x0f\x0d\x0213", Some(NO_LENGTH)),
            (b"\x88\x0f\x0d\x0212\x0f\x0d\x0213\x0f\x0d\x0213", Some(NO_LENGTH)),
            (b"\x88\x0f\x0d\x02-1", Some(NO_LENGTH)),
            (b"\x88\x0f\x0d\x00", Some(NO_LENGTH)),
            (b"\x88\x0f\x0d\x1499999999999999999999", Some(NO_LENGTH)),
        ] {
            assert_eq!(decoder.read(block), Ok(Some(200)), "{block:x?}");
            assert_eq!(decoder.length(), length, "{block:x?}");
        }
    }

    #[test]
    fn a_table_that_shrinks_forgets_the_oldest() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.read(b"\x40\x01a\x01b\x40\x01c\x01d"), Ok(None));
        assert_eq!((decoder.entries.len(), decoder.bytes), (2, 68));
        assert_eq!(decoder.read(b"\x3f\x1f\xbe"), Ok(None), "62 bytes are for one");
        assert_eq!(decoder.read(b"\xbf"), Err(Broken));
        assert_eq!(decoder.read(b"\x20"), Ok(None));
        assert_eq!(decoder.read(b"\xbe"), Err(Broken));
    }
}
