//! PROXY headers: read by what has come alone, and as a slow reading of the specification has it.

use std::net::{IpAddr, SocketAddr};

use pointsman_net::{Claim, HEADER_BYTES_MAX, Header, canonical, parse_header};

pub(crate) const TOKENS: &[&str] = &[
    "PROXY ",
    "TCP4 ",
    "TCP6 ",
    "UNKNOWN",
    " ",
    "\r\n",
    "\r",
    "\n",
    "192.0.2.1",
    "::1",
    "::ffff:192.0.2.1",
    "0",
    "65535",
    "\r\n\r\n\0\r\nQUIT\n",
    "\x20\0",
    "\x21\x11\0\x0c",
    "\x21\x21\0\x24",
    "\x03\0\x04",
    "\x04\0\0",
    "\0",
];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    let read = parse_header(input);
    assert_eq!(read.ok().flatten(), slow(input), "{}", input.escape_ascii());
    match read {
        Ok(Some(header)) => {
            assert!(header.bytes <= input.len().min(HEADER_BYTES_MAX));
            for end in 0..header.bytes {
                assert_eq!(parse_header(&input[..end]), Ok(None), "a part of it says nothing");
            }
            assert_eq!(parse_header(&input[..header.bytes]), read, "what is behind it does not matter");
        }
        Ok(None) => assert!(input.len() < HEADER_BYTES_MAX, "more is never needed"),
        // What is wrong is wrong whatever follows; what was said first may have been said of less.
        Err(_) => {
            let longer = [input, b"\r\n\0 GET"].concat();
            assert!(parse_header(&longer).is_err(), "more makes it good");
        }
    }
}

fn slow(input: &[u8]) -> Option<Header> {
    if input.starts_with(b"PROXY ") { slow_line(input) } else { slow_binary(input) }
}

fn slow_line(input: &[u8]) -> Option<Header> {
    let bytes = input.iter().position(|byte| *byte == b'\n')? + 1;
    let text = std::str::from_utf8(&input[..bytes]).ok().filter(|_| bytes <= 107)?.strip_suffix("\r\n")?;
    let words: Vec<&str> = text.split(' ').collect();
    let claim = match words[..] {
        [_, "UNKNOWN", ..] => Claim::Unknown,
        [_, family, source, destination, from, to] => {
            let is_of_family = |address: &IpAddr| match family {
                "TCP4" => address.is_ipv4(),
                "TCP6" => address.is_ipv6(),
                _ => false,
            };
            let address = |text: &str| text.parse::<IpAddr>().ok().filter(is_of_family);
            // Written anew, a number with a sign or a zero too many is another text.
            let port = |text: &str| text.parse::<u16>().ok().filter(|port| port.to_string() == text);
            let client = SocketAddr::new(address(source)?, port(from)?);
            let _to = (address(destination)?, port(to)?);
            Claim::Client(canonical(client))
        }
        _ => return None,
    };
    Some(Header { bytes, claim })
}

fn slow_binary(input: &[u8]) -> Option<Header> {
    let rest = input.strip_prefix(b"\r\n\r\n\0\r\nQUIT\n")?;
    let [command, family, high, low, ..] = *rest else { return None };
    let length = usize::from(high) * 256 + usize::from(low);
    let bytes = 16 + length;
    let block = rest[4..].get(..length).filter(|_| bytes <= 4096)?;
    let claim = match (command, family) {
        (0x20, _) => Claim::Peer,
        (0x21, 0x00) => Claim::Unknown,
        (0x21, 0x11) => Claim::Client(client::<4>(block, 8)?),
        (0x21, 0x21) => Claim::Client(client::<16>(block, 32)?),
        (0x21, 0x12 | 0x22 | 0x31 | 0x32) => Claim::Unknown,
        _ => return None,
    };
    let address_bytes = match family >> 4 {
        _ if command == 0x20 || family == 0 => return Some(Header { bytes, claim }),
        1 => 12,
        2 => 36,
        _ => 216,
    };
    let mut at = 16 + address_bytes;
    let mut sums = 0;
    while at != bytes {
        let value = at + 3;
        let length =
            input[..bytes].get(at + 1..value).map(|two| usize::from(two[0]) * 256 + usize::from(two[1]))?;
        let end = value + length;
        if end > bytes {
            return None;
        }
        if input[at] == 3 {
            sums += 1;
            let mut blank = input[..bytes].to_vec();
            blank.get_mut(value..end).filter(|sum| sum.len() == 4)?.fill(0);
            if crc32c(&blank).to_be_bytes() != input[value..end] {
                return None;
            }
        }
        at = end;
    }
    (sums < 2 && at >= 16 + address_bytes).then_some(Header { bytes, claim })
}

fn client<const N: usize>(block: &[u8], port_at: usize) -> Option<SocketAddr>
where
    IpAddr: From<[u8; N]>,
{
    let ip = IpAddr::from(*block.first_chunk::<N>()?);
    // The destination's port is the last of the addresses.
    let [high, low, _, _] = *block.get(port_at..port_at + 4)? else { return None };
    Some(canonical(SocketAddr::new(ip, u16::from_be_bytes([high, low]))))
}

/// Bit by bit, by the polynomial.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0x82f6_3b78 } else { sum >> 1 };
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    use pointsman_net::HeaderFault;

    use super::*;

    /// Hardly a made-up input has a right checksum.
    #[test]
    fn checksums_agree() {
        let with_sum = |sum: [u8; 4]| {
            let values =
                [&[192, 0, 2, 7, 1, 2, 3, 4, 5, 6, 7, 8][..], &[3, 0, 4], &sum, &[4, 0, 1, 9]].concat();
            let length = values.len() as u8;
            [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0"[..], &[length], &values].concat()
        };
        let right = with_sum(crc32c(&with_sum([0; 4])).to_be_bytes());
        check(&right);
        assert!(parse_header(&right).is_ok_and(|header| header.is_some()));
        let wrong = with_sum([1; 4]);
        check(&wrong);
        assert_eq!(parse_header(&wrong), Err(HeaderFault::Checksum));
    }
}
