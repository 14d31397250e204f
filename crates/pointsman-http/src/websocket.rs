//! The keys of WebSocket handshakes (RFC 6455 section 4).

use crate::sha1::sha1;

/// Appended to a key before it is hashed.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What `Sec-WebSocket-Accept` must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept([u8; 28]);

impl Accept {
    /// The answer to a key; `None` where that is not 16 bytes in Base64.
    pub(crate) fn of_key(key: &[u8]) -> Option<Accept> {
        let (digits, padding) = key.split_at_checked(22)?;
        if padding != b"==" || !digits.iter().all(|digit| BASE64.contains(digit)) {
            return None;
        }
        let hash = sha1(&[key, GUID].concat());
        let mut text = [b'='; 28];
        for (four, three) in text.chunks_mut(4).zip(hash.chunks(3)) {
            let bits =
                three.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
            for (at, digit) in four.iter_mut().take(three.len() + 1).enumerate() {
                *digit = BASE64[(bits >> (18 - 6 * at)) as usize % 64];
            }
        }
        Some(Accept(text))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of RFC 6455 section 1.3.
    #[test]
    fn a_key_has_the_answer_of_the_standard() {
        let accept = Accept::of_key(b"dGhlIHNhbXBsZSBub25jZQ==").expect("a key");
        assert_eq!(accept.as_bytes(), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn keys_are_sixteen_bytes() {
        let bad = [
            "",
            "dGhlIHNhbXBsZSBub25jZQ",
            "dGhlIHNhbXBsZSBub25jZQ=",
            "dGhlIHNhbXBsZSBub25jZQ===",
            "dGhlIHNhbXBsZSBub25jZQA=",
            "dGhlIHNhbXBsZSBub25j==",
            "dGhlIHNhbXBsZSBub25-ZQ==",
            "dGhlIHNhbXBsZSBub25jZQ= ",
        ];
        assert!(bad.iter().all(|key| Accept::of_key(key.as_bytes()).is_none()));
    }
}
