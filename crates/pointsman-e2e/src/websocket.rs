//! What a server makes of the key of a WebSocket handshake (RFC 6455 section 4.2.2).

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The `Sec-WebSocket-Accept` that answers a key.
#[must_use]
pub fn websocket_accept(key: &str) -> String {
    let hash = sha1(format!("{key}{GUID}").as_bytes());
    // 160 bits are 26 digits and four bits more.
    let bit = |at: usize| hash.get(at / 32).map_or(0, |word| word >> (31 - at % 32) & 1);
    let digit = |number: usize| (0..6).fold(0, |digit, at| digit << 1 | bit(6 * number + at));
    let digit = |number| char::from(DIGITS[usize::try_from(digit(number)).expect("six bits")]);
    (0..27).map(digit).chain(['=']).collect()
}

/// SHA-1 by the letter (FIPS 180-4 section 6.1.2).
fn sha1(text: &[u8]) -> [u32; 5] {
    let mut padded = [text, &[0x80]].concat();
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - text.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let length = padded.len() - 8;
    padded[length..].copy_from_slice(&(8 * text.len() as u64).to_be_bytes());
    let mut hash = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded.chunks(64) {
        let word = |four: &[u8]| u32::from_be_bytes(four.try_into().expect("four bytes"));
        let mut words: Vec<u32> = block.chunks(4).map(word).collect();
        for at in 16..80 {
            let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
            words.push(mixed.rotate_left(1));
        }
        let [mut a, mut b, mut c, mut d, mut e] = hash;
        for (at, word) in words.iter().enumerate() {
            let (mix, constant) = match at / 20 {
                0 => (b & c | !b & d, 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let sum = [a.rotate_left(5), mix, e, constant, *word].into_iter().fold(0, u32::wrapping_add);
            (a, b, c, d, e) = (sum, a, b.rotate_left(30), c, d);
        }
        for (whole, part) in hash.iter_mut().zip([a, b, c, d, e]) {
            *whole = whole.wrapping_add(part);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        assert_eq!(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    /// Where the length finds no room beside the text there is one block more (FIPS 180-4 section 5.1.1).
    #[test]
    fn texts_of_all_lengths() {
        let million = sha1(&[b'a'; 1_000_000]);
        assert_eq!(million, [0x34aa_973c, 0xd4c4_daa4, 0xf61e_eb2b, 0xdbad_2731, 0x6534_016f]);
        let two_blocks = sha1(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq");
        assert_eq!(two_blocks, [0x8498_3e44, 0x1c3b_d26e, 0xbaae_4aa1, 0xf951_29e5, 0xe546_70f1]);
    }
}
