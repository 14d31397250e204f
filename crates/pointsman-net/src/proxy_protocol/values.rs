//! Values (TLV) of a header of version 2 that rules and servers may want: whom a cloud's private link belongs to, and what a
//! proxy knows of the client's TLS.

use super::read::{ALPN, AUTHORITY, AWS, AZURE, UNIQUE_ID, each_value};

/// Bytes of the longest unique id (section 2.2.5 of the specification).
const UNIQUE_ID_BYTES_MAX: usize = 128;

/// Bytes of the longest name of a host.
const AUTHORITY_BYTES_MAX: usize = 253;

/// The kinds of values of AWS and Azure that have a meaning: the id of a VPC endpoint, and that of a private link.
const AWS_VPC_ENDPOINT_ID: u8 = 1;
const AZURE_LINK_ID: u8 = 1;

/// Values of a header that is whole. One that stands there twice, or is malformed, is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderValues {
    /// The application protocol of the connection.
    pub alpn: Option<Vec<u8>>,
    /// The host that the client asked for, in lower case.
    pub authority: Option<String>,
    /// What the proxy calls the connection.
    pub unique_id: Option<Vec<u8>>,
    /// The VPC endpoint of AWS that the client came by.
    pub aws_vpce_id: Option<String>,
    /// The private link of Azure that the client came by.
    pub azure_link_id: Option<u32>,
}

impl HeaderValues {
    /// Those of a whole header, of which [`parse_header`](super::parse_header) has found nothing wrong.
    pub fn of(header: &[u8]) -> HeaderValues {
        let mut values = HeaderValues::default();
        let mut seen = [0_u8; 256];
        each_value(header, |kind, _| seen[usize::from(kind)] = seen[usize::from(kind)].saturating_add(1));
        each_value(header, |kind, value| match kind {
            _ if seen[usize::from(kind)] > 1 => {}
            ALPN => values.alpn = Some(value.to_vec()).filter(|alpn| !alpn.is_empty() && alpn.len() <= 255),
            AUTHORITY => values.authority = authority(value),
            UNIQUE_ID => {
                let is_one = (1..=UNIQUE_ID_BYTES_MAX).contains(&value.len());
                values.unique_id = is_one.then(|| value.to_vec());
            }
            AWS => values.aws_vpce_id = aws_vpce_id(value),
            AZURE => values.azure_link_id = azure_link_id(value),
            _ => {}
        });
        values
    }
}

fn authority(value: &[u8]) -> Option<String> {
    let is_host = (1..=AUTHORITY_BYTES_MAX).contains(&value.len())
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(byte));
    let name = std::str::from_utf8(value).ok().filter(|_| is_host)?;
    Some(name.to_ascii_lowercase())
}

fn aws_vpce_id(value: &[u8]) -> Option<String> {
    let id = value.strip_prefix(&[AWS_VPC_ENDPOINT_ID])?;
    let is_id = !id.is_empty() && id.len() <= 128 && id.iter().all(u8::is_ascii_graphic);
    std::str::from_utf8(id).ok().filter(|_| is_id).map(str::to_owned)
}

fn azure_link_id(value: &[u8]) -> Option<u32> {
    let id = value.strip_prefix(&[AZURE_LINK_ID])?;
    id.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_header;

    fn header(command: u8, values: &[(u8, &[u8])]) -> Vec<u8> {
        let mut block = vec![192, 0, 2, 7, 198, 51, 100, 1, 0x9c, 0x40, 1, 0xbb];
        for (kind, value) in values {
            block.push(*kind);
            block.extend(u16::try_from(value.len()).expect("short").to_be_bytes());
            block.extend(*value);
        }
        let length = u16::try_from(block.len()).expect("short").to_be_bytes();
        [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[command, 0x11], &length, &block].concat()
    }

    #[test]
    fn values_of_clouds_and_of_tls_are_read() {
        let whole = header(
            0x21,
            &[
                (ALPN, b"h2"),
                (AUTHORITY, b"Shop.Example"),
                (0x04, &[0; 40]),
                (UNIQUE_ID, b"id\0\0x"),
                (AWS, b"\x01vpce-08d2bf15fac5001c9"),
                (AZURE, b"\x01\x02\x00\x00\x10"),
            ],
        );
        assert!(parse_header(&whole).is_ok_and(|read| read.is_some()));
        let expected = HeaderValues {
            alpn: Some(b"h2".to_vec()),
            authority: Some("shop.example".to_owned()),
            unique_id: Some(b"id\0\0x".to_vec()),
            aws_vpce_id: Some("vpce-08d2bf15fac5001c9".to_owned()),
            azure_link_id: Some(268_435_458),
        };
        assert_eq!(HeaderValues::of(&whole), expected);
        // What comes on the proxy's own behalf is of no client.
        let mut local = whole;
        local[12] = 0x20;
        assert_eq!(HeaderValues::of(&local), HeaderValues::default());
        assert_eq!(HeaderValues::of(b"PROXY UNKNOWN\r\n"), HeaderValues::default());
    }

    #[test]
    fn odd_values_are_absent() {
        let long = [b'a'; 300];
        for (kind, value) in [
            (ALPN, &b""[..]),
            (ALPN, &long[..]),
            (AUTHORITY, b"a b"),
            (AUTHORITY, b"\xff"),
            (AUTHORITY, &long),
            (UNIQUE_ID, b""),
            (UNIQUE_ID, &long[..129]),
            (AWS, b""),
            (AWS, b"\x02vpce-1"),
            (AWS, b"\x01vpce 1"),
            (AZURE, b"\x01\x02\x00\x00"),
            (AZURE, b"\x02\x02\x00\x00\x10"),
        ] {
            let header = header(0x21, &[(kind, value)]);
            assert_eq!(HeaderValues::of(&header), HeaderValues::default(), "{kind} {}", value.escape_ascii());
        }
        let twice = header(0x21, &[(AWS, b"\x01a"), (AWS, b"\x01b")]);
        assert_eq!(HeaderValues::of(&twice), HeaderValues::default());
    }
}
