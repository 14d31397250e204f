//! An IP address as text, without the formatting machinery for IPv4.

use std::fmt::{self, Write};
use std::net::IpAddr;

/// Bytes of the longest address: eight groups of four digits.
pub const ADDRESS_BYTES_MAX: usize = 45;

/// The text of an address, made once for a connection and written into each request on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AddressText {
    bytes: [u8; ADDRESS_BYTES_MAX],
    length: u8,
}

impl AddressText {
    /// The text of `address`; an IPv4-mapped one is written as IPv4.
    pub fn new(address: IpAddr) -> AddressText {
        let mut text = AddressText { bytes: [0; ADDRESS_BYTES_MAX], length: 0 };
        match address.to_canonical() {
            IpAddr::V4(address) => {
                for (index, octet) in address.octets().into_iter().enumerate() {
                    if index > 0 {
                        text.push(b'.');
                    }
                    text.push_decimal(octet);
                }
            }
            // No address is longer than the buffer, so writing cannot fail.
            IpAddr::V6(address) => write!(text, "{address}").expect("an address fits"),
        }
        text
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn push(&mut self, byte: u8) {
        self.bytes[usize::from(self.length)] = byte;
        self.length += 1;
    }

    fn push_decimal(&mut self, octet: u8) {
        if octet >= 100 {
            self.push(b'0' + octet / 100);
        }
        if octet >= 10 {
            self.push(b'0' + octet / 10 % 10);
        }
        self.push(b'0' + octet % 10);
    }
}

impl Write for AddressText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let start = usize::from(self.length);
        let end = start + piece.len();
        self.bytes.get_mut(start..end).ok_or(fmt::Error)?.copy_from_slice(piece.as_bytes());
        self.length = end as u8;
        Ok(())
    }
}

impl fmt::Debug for AddressText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_the_standard_library_does() {
        for text in [
            "0.0.0.0",
            "9.10.99.100",
            "255.255.255.255",
            "::",
            "::1",
            "2001:db8::1",
            "1111:2222:3333:4444:5555:6666:7777:8888",
        ] {
            let address: IpAddr = text.parse().expect("an address");
            assert_eq!(AddressText::new(address).as_bytes(), text.as_bytes());
        }
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().expect("an address");
        assert_eq!(AddressText::new(mapped).as_bytes(), b"192.0.2.1");
    }
}
