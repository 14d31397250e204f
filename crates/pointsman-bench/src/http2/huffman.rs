//! The Huffman code of field blocks (RFC 7541 section 5.2 and appendix B).

use super::frames::Broken;

/// The longest prefix.
const BITS_MAX: usize = 30;
/// A string is filled up with ones: the beginning of this symbol.
const END_OF_STRING: u16 = 256;
const SYMBOLS: usize = END_OF_STRING as usize + 1;

/// The code is canonical: the lengths of its codes tell all.
struct Codes {
    /// Symbols by length of code, then by number.
    symbols: [u16; SYMBOLS],
    /// How many symbols have a code of a length.
    counts: [u32; BITS_MAX + 1],
}

static CODES: Codes = Codes::new();

impl Codes {
    const fn new() -> Codes {
        let mut codes = Codes { symbols: [0; SYMBOLS], counts: [0; BITS_MAX + 1] };
        let (mut bits, mut place) = (1, 0);
        while bits <= BITS_MAX {
            let mut symbol = 0;
            while symbol < SYMBOLS {
                if CODE_BITS[symbol] as usize == bits {
                    codes.counts[bits] += 1;
                    codes.symbols[place] = symbol as u16;
                    place += 1;
                }
                symbol += 1;
            }
            bits += 1;
        }
        codes
    }
}

/// Gives each byte of a packed string to `take`.
pub(crate) fn unpack(packed: &[u8], mut take: impl FnMut(u8)) -> Result<(), Broken> {
    let mut bits = packed.iter().flat_map(|byte| (0..8).rev().map(move |bit| u32::from(byte >> bit & 1)));
    loop {
        // The codes of a length follow one another; the first of the next one is the next of all, made longer.
        let (mut code, mut first, mut before, mut is_padding) = (0_u32, 0_u32, 0_u32, true);
        for length in 1..=BITS_MAX {
            let Some(bit) = bits.next() else {
                // What is left over must be fewer than eight ones.
                return if is_padding && length <= 8 { Ok(()) } else { Err(Broken) };
            };
            is_padding &= bit == 1;
            code = code << 1 | bit;
            first <<= 1;
            let count = CODES.counts[length];
            if code - first < count {
                let symbol = CODES.symbols[(before + code - first) as usize];
                take(u8::try_from(symbol).map_err(|_| Broken)?);
                break;
            }
            first += count;
            before += count;
        }
    }
}

/// How long the code of each symbol is.
#[rustfmt::skip]
const CODE_BITS: [u8; SYMBOLS] = [
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

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8]) -> Result<Vec<u8>, Broken> {
        let mut text = Vec::new();
        unpack(packed, |byte| text.push(byte)).map(|()| text)
    }

    /// RFC 7541 appendix C.4.1, and section 5.2: no padding of eight bits or more, none of zeros.
    #[test]
    fn strings_are_unpacked() {
        let packed = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(unpacked(&packed).as_deref(), Ok(&b"www.example.com"[..]));
        assert_eq!(unpacked(&[]), Ok(Vec::new()));
        assert_eq!(unpacked(&[0b0000_0111]), Ok(b"0".to_vec()));
        assert_eq!(unpacked(&[0b0000_0110]), Err(Broken));
        assert_eq!(unpacked(&[0b0000_0111, 0xff]), Err(Broken));
        assert_eq!(unpacked(&[0xff; 4]), Err(Broken), "the end of a string is no byte");
    }
}
