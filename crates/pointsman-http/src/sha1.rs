//! SHA-1 (RFC 3174), which WebSocket handshakes are answered with. It keeps nobody out, and need not: the answer
//! shows that the server has read the request.

/// The hash of a text of less than 2^61 bytes.
pub(crate) fn sha1(text: &[u8]) -> [u8; 20] {
    const BLOCK_BYTES: usize = 64;
    let mut padded = text.to_vec();
    padded.push(0x80);
    let zeros = (BLOCK_BYTES - (padded.len() + 8) % BLOCK_BYTES) % BLOCK_BYTES;
    padded.resize(padded.len() + zeros, 0);
    padded.extend_from_slice(&(text.len() as u64 * 8).to_be_bytes());
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    padded.as_chunks().0.iter().for_each(|block: &[u8; BLOCK_BYTES]| mix(&mut state, block));
    let mut hash = [0; 20];
    for (bytes, word) in hash.chunks_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

fn mix(state: &mut [u32; 5], block: &[u8; 64]) {
    let mut words = [0_u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..words.len() {
        words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.into_iter().enumerate() {
        let (chosen, constant) = match at / 20 {
            0 => ((b & c) | (!b & d), 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = a.rotate_left(5).wrapping_add(chosen).wrapping_add(e).wrapping_add(constant);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next.wrapping_add(word));
    }
    for (word, mixed) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(mixed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of RFC 3174 section 7.3, and those whose padding just fits and just does not.
    #[test]
    fn hashes_are_those_of_the_standard() {
        let check = |text: &[u8], expected: &str| {
            let hash: String = sha1(text).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, expected, "of {} bytes", text.len());
        };
        check(b"", "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        check(b"abc", "a9993e364706816aba3e25717850c26c9cd0d89d");
        check(
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
        );
        check(&[b'a'; 1_000_000], "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
        check(&b"01234567".repeat(80), "dea356a2cddd90c7a7ecedc5ebb563934f460452");
    }
}
