//! Reading a header: version 1, a line of text, or version 2, binary. Either is told by its first byte.
//!
//! The specification is "The PROXY protocol, versions 1 & 2" of HAProxy's `doc/proxy-protocol.txt`.

use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::task::{Context, Poll, ready};

use super::HeaderValues;
use crate::{Presence, Tcp, canonical};

/// Bytes of the longest header that is read: as many as nginx reads.
pub const HEADER_BYTES_MAX: usize = 4096;

/// Bytes of the longest header of version 1, its line end among them.
const LINE_BYTES_MAX: usize = 107;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const FIXED_BYTES: usize = 16;
pub(super) const ALPN: u8 = 0x01;
pub(super) const AUTHORITY: u8 = 0x02;
const CHECKSUM: u8 = 0x03;
pub(super) const UNIQUE_ID: u8 = 0x05;
pub(super) const AWS: u8 = 0xea;
pub(super) const AZURE: u8 = 0xee;

/// A header that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// How long it is.
    pub bytes: usize,
    /// What it says.
    pub claim: Claim,
}

/// Whom a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The peer itself: it looks whether somebody is there.
    Peer,
    /// A client that has no IP address, or none that the peer knows.
    Unknown,
    /// This client; an IPv4-mapped address is IPv4.
    Client(SocketAddr),
}

/// Why there is no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFault {
    /// What came is something else.
    Absent,
    /// It is broken.
    Malformed,
    /// It is longer than its version allows, or than [`HEADER_BYTES_MAX`].
    TooLong,
    /// Its checksum is that of another one.
    Checksum,
    /// The connection ended before it was whole.
    Closed,
    /// The connection ended without a word.
    Silent,
}

impl HeaderFault {
    /// What was wrong, for the log.
    pub fn sentence(self) -> &'static str {
        match self {
            HeaderFault::Absent => "the connection does not begin with one",
            HeaderFault::Malformed => "it is malformed",
            HeaderFault::TooLong => "it is too long",
            HeaderFault::Checksum => "its checksum is wrong",
            HeaderFault::Closed => "the connection closed before it was whole",
            HeaderFault::Silent => "the connection closed without a word",
        }
    }
}

/// Reads the header that a connection must begin with, and not a byte of what is behind it.
///
/// # Errors
/// There is none, or none that is sound.
pub async fn read_header(tcp: &Tcp) -> Result<(Claim, HeaderValues), HeaderFault> {
    poll_fn(|context| poll_header(tcp, context)).await
}

/// What has come of a header stays in the kernel until all of it is there: what follows is for somebody else.
fn poll_header(tcp: &Tcp, context: &Context<'_>) -> Poll<Result<(Claim, HeaderValues), HeaderFault>> {
    let mut room = [0; HEADER_BYTES_MAX];
    loop {
        // Before the look: what comes behind an end that was heard is nothing.
        let has_ended = tcp.presence(context) != Presence::Open;
        let seen = match ready!(tcp.poll_peek(context, &mut room)) {
            Ok(seen @ 1..) => seen,
            Ok(0) => return Poll::Ready(Err(HeaderFault::Silent)),
            Err(_) => return Poll::Ready(Err(HeaderFault::Closed)),
        };
        // An urgent byte is left out of what is seen, and nobody knows what it was meant to be.
        if tcp.had_urgent_data() {
            return Poll::Ready(Err(HeaderFault::Malformed));
        }
        match parse_header(&room[..seen]) {
            Ok(Some(header)) => {
                let taken = tcp.take_seen(header.bytes, seen);
                let values = || HeaderValues::of(&room[..header.bytes]);
                return Poll::Ready(
                    taken.map(|()| (header.claim, values())).map_err(|_| HeaderFault::Malformed),
                );
            }
            Ok(None) if has_ended => return Poll::Ready(Err(HeaderFault::Closed)),
            Ok(None) => {}
            Err(fault) => return Poll::Ready(Err(fault)),
        }
    }
}

/// Reads a header at the start of `received`; nothing while it is not whole. What it says does not depend on what
/// comes behind it.
///
/// # Errors
/// What has come begins no sound header, whatever follows.
pub fn parse_header(received: &[u8]) -> Result<Option<Header>, HeaderFault> {
    const WORD: &[u8; 6] = b"PROXY ";
    if begins(received, SIGNATURE) {
        return if received.len() < FIXED_BYTES { Ok(None) } else { binary(received) };
    }
    if begins(received, WORD) {
        return line(received);
    }
    Err(HeaderFault::Absent)
}

/// Whether so much of `received` as there is agrees with `start`.
fn begins(received: &[u8], start: &[u8]) -> bool {
    let length = received.len().min(start.len());
    received[..length] == start[..length]
}

/// Version 1: `PROXY TCP4 192.0.2.1 198.51.100.1 40000 443` and CRLF.
fn line(received: &[u8]) -> Result<Option<Header>, HeaderFault> {
    let start = &received[..received.len().min(LINE_BYTES_MAX)];
    let Some(end) = start.iter().position(|byte| *byte == b'\n') else {
        return if start.len() < LINE_BYTES_MAX { Ok(None) } else { Err(HeaderFault::TooLong) };
    };
    let text = start[..end].strip_suffix(b"\r").ok_or(HeaderFault::Malformed)?;
    let claim = claim_of_line(text).ok_or(HeaderFault::Malformed)?;
    Ok(Some(Header { bytes: end + 1, claim }))
}

fn claim_of_line(text: &[u8]) -> Option<Claim> {
    let mut words = std::str::from_utf8(text).ok()?.split(' ').skip(1);
    let client = match words.next()? {
        // Whatever else stands there is to be ignored.
        "UNKNOWN" => return Some(Claim::Unknown),
        "TCP4" => socket_address::<Ipv4Addr>(&mut words)?,
        "TCP6" => socket_address::<Ipv6Addr>(&mut words)?,
        _ => return None,
    };
    words.next().is_none().then_some(Claim::Client(client))
}

/// Source and destination, then their ports; all four must be sound.
fn socket_address<'t, A: FromStr + Into<IpAddr>>(
    words: &mut impl Iterator<Item = &'t str>,
) -> Option<SocketAddr> {
    let source: A = words.next()?.parse().ok()?;
    let _destination: A = words.next()?.parse().ok()?;
    let port = port(words.next()?)?;
    let _destination_port = self::port(words.next()?)?;
    Some(canonical(SocketAddr::new(source.into(), port)))
}

/// A decimal number without leading zeros.
fn port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

/// Version 2, of which the fixed part is there.
fn binary(received: &[u8]) -> Result<Option<Header>, HeaderFault> {
    let (fixed, rest) = received.split_at(FIXED_BYTES);
    let command = match fixed[12] {
        0x20 => Command::Local,
        0x21 => Command::Proxy,
        _ => return Err(HeaderFault::Malformed),
    };
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    // Of its own connection the peer says nothing that matters, and the family is no part of it.
    let addresses = match command {
        Command::Local => Addresses::None,
        Command::Proxy => Addresses::of(fixed[13]).ok_or(HeaderFault::Malformed)?,
    };
    let Some(values_bytes) = length.checked_sub(addresses.bytes()) else {
        return Err(HeaderFault::Malformed);
    };
    let bytes = FIXED_BYTES + length;
    if bytes > HEADER_BYTES_MAX {
        return Err(HeaderFault::TooLong);
    }
    let Some(block) = rest.get(..length) else { return Ok(None) };
    let (addressed, values) = block.split_at(length - values_bytes);
    // Where there are no addresses it is not said where they would end.
    if addresses != Addresses::None {
        check_values(&received[..bytes], values)?;
    }
    let claim = match command {
        Command::Local => Claim::Peer,
        Command::Proxy => addresses.client(addressed).map_or(Claim::Unknown, Claim::Client),
    };
    Ok(Some(Header { bytes, claim }))
}

enum Command {
    Local,
    Proxy,
}

/// What stands between the fixed part and the values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Addresses {
    None,
    V4,
    V6,
    /// Of a Unix socket, or of datagrams: nothing to know a client of TCP by.
    Other {
        bytes: usize,
    },
}

impl Addresses {
    /// What a byte of family and protocol says; nothing where it is reserved.
    fn of(byte: u8) -> Option<Addresses> {
        Some(match byte {
            0x00 => Addresses::None,
            0x11 => Addresses::V4,
            0x21 => Addresses::V6,
            0x12 => Addresses::Other { bytes: 12 },
            0x22 => Addresses::Other { bytes: 36 },
            0x31 | 0x32 => Addresses::Other { bytes: 216 },
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Addresses::None => 0,
            Addresses::V4 => 12,
            Addresses::V6 => 36,
            Addresses::Other { bytes } => bytes,
        }
    }

    fn client(self, block: &[u8]) -> Option<SocketAddr> {
        let (ip, port): (IpAddr, _) = match self {
            Addresses::V4 => (<[u8; 4]>::try_from(block.get(..4)?).ok()?.into(), block.get(8..10)?),
            Addresses::V6 => (<[u8; 16]>::try_from(block.get(..16)?).ok()?.into(), block.get(32..34)?),
            Addresses::None | Addresses::Other { .. } => return None,
        };
        Some(canonical(SocketAddr::new(ip, u16::from_be_bytes(port.try_into().ok()?))))
    }
}

/// Type, length and value, one behind the other to the end. None but the checksum is looked into.
fn check_values(header: &[u8], mut values: &[u8]) -> Result<(), HeaderFault> {
    let mut has_checksum = false;
    while !values.is_empty() {
        let [kind, high, low, rest @ ..] = values else { return Err(HeaderFault::Malformed) };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (value, behind) = rest.split_at_checked(length).ok_or(HeaderFault::Malformed)?;
        if *kind == CHECKSUM {
            let expected = u32::from_be_bytes(value.try_into().map_err(|_| HeaderFault::Malformed)?);
            if std::mem::replace(&mut has_checksum, true) {
                return Err(HeaderFault::Malformed);
            }
            let at = header.len() - behind.len() - value.len();
            if crc32c(&[&header[..at], &[0; 4], behind]) != expected {
                return Err(HeaderFault::Checksum);
            }
        }
        values = behind;
    }
    Ok(())
}

/// Calls `see` with type and value of each value of a whole header that speaks for a client of TCP.
pub(super) fn each_value(header: &[u8], mut see: impl FnMut(u8, &[u8])) {
    let speaks_for_another =
        header.len() >= FIXED_BYTES && header.starts_with(SIGNATURE) && header[12] == 0x21;
    let Some(addresses) = Addresses::of(header.get(13).copied().unwrap_or_default()) else { return };
    if !speaks_for_another || addresses == Addresses::None {
        return;
    }
    let mut values = header.get(FIXED_BYTES + addresses.bytes()..).unwrap_or_default();
    while let [kind, high, low, rest @ ..] = values {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((value, behind)) = rest.split_at_checked(length) else { return };
        see(*kind, value);
        values = behind;
    }
}

/// The checksum of RFC 3720 section 12.1 over these pieces, one behind the other.
fn crc32c(pieces: &[&[u8]]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < table.len() {
            let mut remainder = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                let carry = if remainder & 1 == 1 { 0x82f6_3b78 } else { 0 };
                remainder = remainder >> 1 ^ carry;
                bit += 1;
            }
            table[byte] = remainder;
            byte += 1;
        }
        table
    };
    let bytes = pieces.iter().copied().flatten();
    !bytes.fold(u32::MAX, |sum, byte| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::{Account, BufferPool, EventLoop, connect, read_into};

    fn v2(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
        let length = u16::try_from(block.len()).expect("short").to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, block].concat()
    }

    const V4_BLOCK: &[u8] = &[192, 0, 2, 7, 198, 51, 100, 1, 0x9c, 0x40, 1, 0xbb];

    fn client(text: &str) -> Claim {
        Claim::Client(text.parse().expect("an address"))
    }

    /// Headers byte by byte on the wire stand in `testdata/proxy-protocol`; these are what a table shows badly.
    #[test]
    fn no_part_of_a_header_says_anything_and_all_of_it_does() {
        let long = v2(0x21, 0x11, &[V4_BLOCK, &[0x04, 0, 200], &[0; 200]].concat());
        for (header, claim) in [
            (b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 443\r\n".to_vec(), client("192.0.2.7:40000")),
            (b"PROXY UNKNOWN\r\n".to_vec(), Claim::Unknown),
            (v2(0x21, 0x11, V4_BLOCK), client("192.0.2.7:40000")),
            (v2(0x20, 0x00, b""), Claim::Peer),
            (long, client("192.0.2.7:40000")),
        ] {
            for end in 0..header.len() {
                assert_eq!(parse_header(&header[..end]), Ok(None), "{end} of {}", header.escape_ascii());
            }
            let read = Ok(Some(Header { bytes: header.len(), claim }));
            assert_eq!(parse_header(&header), read);
            assert_eq!(parse_header(&[&header[..], b"GET"].concat()), read);
        }
    }

    #[test]
    fn a_header_may_fill_its_bound_and_no_more() {
        let with = |bytes: usize| {
            let value = HEADER_BYTES_MAX - FIXED_BYTES - V4_BLOCK.len() - 3 + bytes;
            let length = u16::try_from(value).expect("short").to_be_bytes();
            v2(0x21, 0x11, &[V4_BLOCK, &[0x04], &length, &vec![0; value]].concat())
        };
        assert_eq!(
            parse_header(&with(0)).map(|read| read.map(|header| header.bytes)),
            Ok(Some(HEADER_BYTES_MAX))
        );
        assert_eq!(parse_header(&with(1)[..FIXED_BYTES]), Err(HeaderFault::TooLong));
    }

    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        // RFC 3720 section B.4.
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c(&[&[0xff; 16], &[0xff; 16]]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&[&ascending]), 0x46dd_794e);
    }

    #[test]
    fn what_is_behind_a_header_is_left_for_the_next_reader() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let header = v2(0x21, 0x11, V4_BLOCK);
        let theirs = std::thread::spawn(move || {
            let (mut stream, _): (TcpStream, _) = listener.accept().expect("connected");
            stream.set_nodelay(true).expect("open");
            for byte in header {
                stream.write_all(&[byte]).expect("open");
            }
            stream.write_all(b"behind it").expect("open");
        });
        EventLoop::new().expect("descriptors").run(async {
            let mut tcp = connect(address).await.expect("there");
            let read = read_header(&tcp).await;
            assert_eq!(read, Ok((client("192.0.2.7:40000"), HeaderValues::default())));
            let mut buffer = BufferPool::new(1000, 1, &Account::unlimited()).take_later();
            while buffer.len() < 9 {
                assert_ne!(read_into(&mut tcp, &mut buffer).await.expect("open"), 0);
            }
            assert_eq!(buffer.as_slice(), b"behind it");
        });
        theirs.join().expect("it ended well");
    }
}
