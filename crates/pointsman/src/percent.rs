//! Percent codes, for texts that become a part of a URL.

/// All that may mean something in a URL is a code; what is unreserved stays (RFC 3986, section 2.3).
pub(crate) fn encoded(text: &[u8]) -> String {
    let mut codes = String::with_capacity(text.len());
    for byte in text {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => {
                codes.push(char::from(*byte));
            }
            _ => codes.push_str(&format!("%{byte:02X}")),
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unreserved_stays() {
        assert_eq!(encoded("a b/ü".as_bytes()), "a%20b%2F%C3%BC");
        assert_eq!(encoded(b"Az09-._~"), "Az09-._~");
    }
}
