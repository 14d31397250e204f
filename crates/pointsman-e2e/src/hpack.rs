//! Field blocks of HTTP/2 (RFC 7541): written as plainly as can be, so that anything can be written, and read in
//! full, for a proxy may use all of it.

use std::collections::VecDeque;

/// Name and value, as bytes: a test may want what no string holds.
pub type Field = (Vec<u8>, Vec<u8>);

/// The longest prefix of a Huffman code (RFC 7541 appendix B).
const CODE_BITS_MAX: u8 = 30;
/// A string is filled up with ones: the beginning of this symbol.
const END_OF_STRING: usize = 256;

/// A field block of these fields: each literal, never indexed, without Huffman (RFC 7541 section 6.2.3). Nothing
/// in it depends on what was sent before.
#[must_use]
pub fn literal(fields: &[Field]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x10);
        for text in [name, value] {
            integer(&mut block, 7, 0, text.len());
            block.extend_from_slice(text);
        }
    }
    block
}

/// A number behind the bits of `flags` (RFC 7541 section 5.1).
pub(crate) fn integer(block: &mut Vec<u8>, prefix_bits: u8, flags: u8, number: usize) {
    let max = (1 << prefix_bits) - 1;
    let byte = |number: usize| u8::try_from(number).expect("below 256");
    if number < max {
        return block.push(flags | byte(number));
    }
    block.push(flags | byte(max));
    let mut rest = number - max;
    while rest >= 128 {
        block.push(byte(rest % 128) | 128);
        rest /= 128;
    }
    block.push(byte(rest));
}

/// Reads the field blocks of a connection, in order.
#[derive(Debug)]
pub struct Decoder {
    /// The latest first.
    dynamic: VecDeque<Field>,
    size: usize,
    size_max: usize,
    codes: Codes,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { dynamic: VecDeque::new(), size: 0, size_max: 4096, codes: Codes::new() }
    }
}

impl Decoder {
    /// The fields of a block; nothing when it is none.
    pub fn read(&mut self, block: &[u8]) -> Option<Vec<Field>> {
        let (mut rest, mut fields) = (block, Vec::new());
        while let Some(first) = rest.first() {
            if first & 0x80 != 0 {
                let index = read_integer(&mut rest, 7)?;
                fields.push(self.entry(index)?);
            } else if first & 0xe0 == 0x20 {
                self.size_max = read_integer(&mut rest, 5)?;
                self.evict();
            } else {
                let is_added = first & 0x40 != 0;
                let index = read_integer(&mut rest, if is_added { 6 } else { 4 })?;
                let name = if index == 0 { self.string(&mut rest)? } else { self.entry(index)?.0 };
                let field = (name, self.string(&mut rest)?);
                if is_added {
                    self.size += size_of_entry(&field);
                    self.dynamic.push_front(field.clone());
                    self.evict();
                }
                fields.push(field);
            }
        }
        Some(fields)
    }

    fn entry(&self, index: usize) -> Option<Field> {
        match STATIC.get(index.checked_sub(1)?) {
            Some((name, value)) => Some((name.as_bytes().to_vec(), value.as_bytes().to_vec())),
            None => self.dynamic.get(index - 1 - STATIC.len()).cloned(),
        }
    }

    fn evict(&mut self) {
        while self.size > self.size_max {
            let Some(oldest) = self.dynamic.pop_back() else { return };
            self.size -= size_of_entry(&oldest);
        }
    }

    fn string(&self, rest: &mut &[u8]) -> Option<Vec<u8>> {
        let is_packed = rest.first()? & 0x80 != 0;
        let length = read_integer(rest, 7)?;
        let (text, behind) = rest.split_at_checked(length)?;
        *rest = behind;
        if is_packed { self.codes.read(text) } else { Some(text.to_vec()) }
    }
}

/// RFC 7541 section 4.1.
fn size_of_entry((name, value): &Field) -> usize {
    name.len() + value.len() + 32
}

fn read_integer(rest: &mut &[u8], prefix_bits: u8) -> Option<usize> {
    let max = (1 << prefix_bits) - 1;
    let (first, mut behind) = rest.split_first()?;
    let mut number = usize::from(*first) & max;
    if number == max {
        for shift in (0..28).step_by(7) {
            let (next, more) = behind.split_first()?;
            behind = more;
            number += (usize::from(*next) & 127) << shift;
            if next & 128 == 0 {
                *rest = behind;
                return Some(number);
            }
        }
        return None;
    }
    *rest = behind;
    Some(number)
}

/// The Huffman code. It is canonical: the lengths of its codes tell all.
#[derive(Debug)]
struct Codes {
    /// Symbols by length of code, then by number.
    symbols: Vec<usize>,
    /// How many symbols have a code of a length.
    counts: [usize; CODE_BITS_MAX as usize + 1],
}

impl Codes {
    fn new() -> Self {
        let mut symbols: Vec<usize> = (0..=END_OF_STRING).collect();
        symbols.sort_by_key(|symbol| (CODE_BITS[*symbol], *symbol));
        let mut counts = [0; CODE_BITS_MAX as usize + 1];
        CODE_BITS.iter().for_each(|bits| counts[usize::from(*bits)] += 1);
        Self { symbols, counts }
    }

    fn read(&self, packed: &[u8]) -> Option<Vec<u8>> {
        let mut bits = packed.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
        let mut text = Vec::new();
        loop {
            // The codes of a length follow one another; the first of the next one is the next of all, made longer.
            let (mut code, mut first, mut before) = (0_u32, 0_u32, 0_usize);
            let mut padding = true;
            for length in 1..=CODE_BITS_MAX {
                let Some(bit) = bits.next() else {
                    // What is left over must be fewer than eight ones.
                    return (padding && length <= 8).then_some(text);
                };
                padding &= bit == 1;
                code = code << 1 | u32::from(bit);
                first <<= 1;
                let count = self.counts[usize::from(length)];
                let offset = usize::try_from(code - first).ok()?;
                if offset < count {
                    text.push(u8::try_from(self.symbols[before + offset]).ok()?);
                    break;
                }
                first += u32::try_from(count).ok()?;
                before += count;
            }
        }
    }
}

/// How long the code of each symbol is (RFC 7541 appendix B).
#[rustfmt::skip]
const CODE_BITS: [u8; END_OF_STRING + 1] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The static table (RFC 7541 appendix A).
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""),
    ("cache-control", ""), ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""),
    ("content-length", ""), ("content-location", ""), ("content-range", ""), ("content-type", ""),
    ("cookie", ""), ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""),
    ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""),
    ("retry-after", ""), ("server", ""), ("set-cookie", ""), ("strict-transport-security", ""),
    ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: &str) -> Field {
        (name.as_bytes().to_vec(), value.as_bytes().to_vec())
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pair =
            |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).expect("ASCII"), 16).expect("hex");
        digits.chunks(2).map(pair).collect()
    }

    /// RFC 7541 appendix C.4: three requests on a connection, with Huffman and the dynamic table.
    #[test]
    fn the_examples_of_the_rfc() {
        let mut decoder = Decoder::default();
        let common = [field(":method", "GET"), field(":scheme", "http"), field(":path", "/")];
        let with =
            |more: &[Field]| Some([&common[..], &[field(":authority", "www.example.com")], more].concat());
        let first = bytes("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff");
        assert_eq!(decoder.read(&first), with(&[]));
        let second = bytes("8286 84be 5886 a8eb 1064 9cbf");
        assert_eq!(decoder.read(&second), with(&[field("cache-control", "no-cache")]));
        let third = bytes("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf");
        let fields = decoder.read(&third).expect("a block");
        assert_eq!(fields.last(), Some(&field("custom-key", "custom-value")));
        assert_eq!(fields[1..3], [field(":scheme", "https"), field(":path", "/index.html")]);
        assert_eq!(decoder.size, 164);
    }

    #[test]
    fn what_is_written_is_read() {
        let long = "x".repeat(70_000);
        let fields = [field(":status", "200"), field("", ""), field("x-long", &long), field("a\r\n", "\0")];
        assert_eq!(Decoder::default().read(&literal(&fields)).as_deref(), Some(&fields[..]));
        assert_eq!(Decoder::default().read(b"\x10\x05abc"), None);
    }

    /// RFC 7541 section 5.2: no padding of eight bits or more, none of zeros.
    #[test]
    fn padding_is_short_and_of_ones() {
        let codes = Codes::new();
        // `0` is five zeros.
        assert_eq!(codes.read(&[0b0000_0111]), Some(b"0".to_vec()));
        assert_eq!(codes.read(&[0b0000_0110]), None);
        assert_eq!(codes.read(&[0b0000_0111, 0xff]), None);
    }
}
