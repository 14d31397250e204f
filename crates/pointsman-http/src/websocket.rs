//! The keys of WebSocket handshakes (RFC 6455 section 4).

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use sha1::{Digest, Sha1};

/// Appended to a key before it is hashed.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What the last digit says beyond the sixteen bytes has no meaning, and there are clients that set it.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// What `Sec-WebSocket-Accept` must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept([u8; 28]);

impl Accept {
    /// The answer to a key; `None` where that is not 16 bytes in Base64.
    pub(crate) fn of_key(key: &[u8]) -> Option<Accept> {
        let bytes = BASE64.decode_slice(key, &mut [0; 18]);
        if bytes != Ok(16) {
            return None;
        }
        let hash = Sha1::new_with_prefix(key).chain_update(GUID).finalize();
        let mut text = [0; 28];
        let written = BASE64.encode_slice(hash, &mut text);
        debug_assert_eq!(written, Ok(text.len()), "twenty bytes");
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
            "dGhlIHNhbXBsZSBub25jZQAAAAAAAAAAAAAA",
        ];
        assert!(bad.iter().all(|key| Accept::of_key(key.as_bytes()).is_none()));
    }
}
