//! Connections as a capture that Wireshark reads: the bytes are those that went over them, their IP and TCP around them is
//! made up.
//!
//! A capture of the interface needs rights that a bench should not have, and shows segments as the kernel cut them. This
//! shows what was written and read, with the times of our own writes and reads, and needs nothing.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pointsman_bench::clock::now_ns;

use super::phases::Moments;
use super::recording::{Piece, Way};
use crate::work::Trouble;

/// The largest file: what comes behind it is left out, and said.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a made-up segment at most: what is left of an IP packet of 64 KiB is more.
const SEGMENT_BYTES_MAX: usize = 16_384;

const FIN: u8 = 1;
const SYN: u8 = 2;
const PUSH: u8 = 8;
const ACK: u8 = 16;

/// A file of captured connections.
#[derive(Debug)]
pub(crate) struct Capture {
    file: BufWriter<File>,
    written: u64,
    /// What is added to the monotonic clock to make it Unix time.
    epoch_ns: u64,
    /// Connections that the file had no room for.
    pub(crate) left_out: u64,
}

impl Capture {
    pub(crate) fn create(path: &Path) -> Result<Capture, Trouble> {
        let cannot = |error| Trouble::new(format!("cannot write `{}`: {error}", path.display()));
        let mut file = BufWriter::new(File::create(path).map_err(cannot)?);
        file.write_all(&head()).map_err(cannot)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch_ns = (since.as_nanos() as u64).saturating_sub(now_ns());
        Ok(Capture { file, written: 24, epoch_ns, left_out: 0 })
    }

    /// Writes a whole connection.
    pub(crate) fn write(
        &mut self,
        (us, them): (SocketAddr, SocketAddr),
        moments: &Moments,
        pieces: &[Piece],
    ) -> Result<(), Trouble> {
        let packets = packets((us, them), (moments.begun.wall_ns, moments.connected.wall_ns), pieces);
        let bytes: u64 = packets.iter().map(|(_, packet)| packet.len() as u64 + 16).sum();
        if self.written + bytes > FILE_BYTES_MAX {
            self.left_out += 1;
            return Ok(());
        }
        self.written += bytes;
        for (at_ns, packet) in packets {
            let record = record(self.epoch_ns + at_ns, packet.len());
            let written = self.file.write_all(&record).and_then(|()| self.file.write_all(&packet));
            written.map_err(|error| Trouble::new(format!("cannot write the capture: {error}")))?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<u64, Trouble> {
        self.file.flush().map_err(|error| Trouble::new(format!("cannot write the capture: {error}")))?;
        Ok(self.left_out)
    }
}

/// The file's head: pcap with nanoseconds, packets begin with IP (LINKTYPE_RAW, 101).
fn head() -> Vec<u8> {
    let mut head = Vec::new();
    head.extend_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
    head.extend_from_slice(&2_u16.to_le_bytes());
    head.extend_from_slice(&4_u16.to_le_bytes());
    head.extend_from_slice(&[0; 8]);
    head.extend_from_slice(&65_535_u32.to_le_bytes());
    head.extend_from_slice(&101_u32.to_le_bytes());
    head
}

fn record(unix_ns: u64, length: usize) -> Vec<u8> {
    let length = length as u32;
    let numbers = [(unix_ns / 1_000_000_000) as u32, (unix_ns % 1_000_000_000) as u32, length, length];
    numbers.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// One side of a connection.
struct Side {
    address: SocketAddr,
    /// The next byte that it sends.
    sequence: u32,
}

/// All packets of a connection with their times: TCP's handshake, what went over it, and an end.
fn packets(
    (us, them): (SocketAddr, SocketAddr),
    (begun_ns, connected_ns): (u64, u64),
    pieces: &[Piece],
) -> Vec<(u64, Vec<u8>)> {
    let mut sides = [Side { address: us, sequence: 1_000 }, Side { address: them, sequence: 5_000 }];
    let mut all = Vec::new();
    let mut send = |way: Way, at_ns: u64, flags: u8, bytes: &[u8]| {
        let (from, to) = if way == Way::Sent { (0, 1) } else { (1, 0) };
        let acknowledged = if flags & ACK == 0 { 0 } else { sides[to].sequence };
        all.push((at_ns, packet(&sides[from], sides[to].address, (flags, acknowledged), bytes)));
        let counts = u32::from(flags & (SYN | FIN) != 0) + bytes.len() as u32;
        sides[from].sequence = sides[from].sequence.wrapping_add(counts);
    };
    send(Way::Sent, begun_ns, SYN, &[]);
    send(Way::Received, connected_ns, SYN | ACK, &[]);
    send(Way::Sent, connected_ns, ACK, &[]);
    let mut last_ns = connected_ns;
    for piece in pieces {
        last_ns = piece.at_ns;
        for bytes in piece.bytes.chunks(SEGMENT_BYTES_MAX) {
            send(piece.way, piece.at_ns, PUSH | ACK, bytes);
        }
    }
    send(Way::Sent, last_ns, FIN | ACK, &[]);
    send(Way::Received, last_ns, FIN | ACK, &[]);
    send(Way::Sent, last_ns, ACK, &[]);
    all
}

/// A segment in a packet, with its checksums.
fn packet(from: &Side, to: SocketAddr, (flags, acknowledged): (u8, u32), bytes: &[u8]) -> Vec<u8> {
    let mut segment = Vec::with_capacity(20 + bytes.len());
    segment.extend_from_slice(&from.address.port().to_be_bytes());
    segment.extend_from_slice(&to.port().to_be_bytes());
    segment.extend_from_slice(&from.sequence.to_be_bytes());
    segment.extend_from_slice(&acknowledged.to_be_bytes());
    // Five words of head, the widest window, no checksum yet, nothing urgent.
    segment.extend_from_slice(&[5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend_from_slice(bytes);
    let length = segment.len() as u32;
    let (mut packet, pseudo) = match (from.address.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let addresses = [from.octets(), to.octets()].concat();
            let mut head = vec![0x45, 0];
            head.extend_from_slice(&(20 + length as u16).to_be_bytes());
            // No fragments, 64 hops, TCP.
            head.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
            head.extend_from_slice(&addresses);
            let sum = checksum(&head);
            head[10..12].copy_from_slice(&sum.to_be_bytes());
            (head, addresses)
        }
        (from, to) => {
            let wide = |address: IpAddr| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            let addresses = [wide(from), wide(to)].concat();
            let mut head = vec![0x60, 0, 0, 0];
            head.extend_from_slice(&(length as u16).to_be_bytes());
            head.extend_from_slice(&[6, 64]);
            head.extend_from_slice(&addresses);
            (head, addresses)
        }
    };
    let whole = [pseudo.as_slice(), &6_u32.to_be_bytes(), &length.to_be_bytes(), &segment].concat();
    let sum = checksum(&whole);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    packet.append(&mut segment);
    packet
}

/// RFC 1071: the ones' complement of the sum of 16-bit words.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    let mut sum: u64 = words.map(u64::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 section 3 has these bytes and this sum.
    #[test]
    fn sums_are_those_of_the_standard() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[0xff]), !0xff00);
    }

    #[test]
    fn a_connection_has_two_ends_and_its_bytes_in_between() {
        for (us, them) in [("127.0.0.1:40000", "127.0.0.1:443"), ("[::1]:40000", "[::1]:443")] {
            let ends: (SocketAddr, SocketAddr) =
                (us.parse().expect("an address"), them.parse().expect("an address"));
            let pieces = [
                Piece { way: Way::Sent, at_ns: 30, bytes: b"hello".to_vec() },
                Piece { way: Way::Received, at_ns: 40, bytes: vec![1; SEGMENT_BYTES_MAX + 1] },
            ];
            let packets = packets(ends, (10, 20), &pieces);
            let head = if us.starts_with('[') { 40 } else { 20 };
            assert_eq!(packets.len(), 3 + 1 + 2 + 3);
            let field = |at: usize, from: usize| {
                let bytes: [u8; 4] = packets[at].1[head + from..head + from + 4].try_into().expect("four");
                u32::from_be_bytes(bytes)
            };
            // The server acknowledges what was sent, and its own numbers go on behind what it sent.
            assert_eq!((field(3, 4), field(4, 8)), (1001, 1006));
            assert_eq!(
                (field(5, 4), field(6, 8)),
                (5001 + SEGMENT_BYTES_MAX as u32, 5002 + SEGMENT_BYTES_MAX as u32)
            );
            assert!(packets.iter().all(|(_, packet)| {
                let length = packet.len();
                length
                    == if head == 20 {
                        usize::from(u16::from_be_bytes([packet[2], packet[3]]))
                    } else {
                        40 + usize::from(u16::from_be_bytes([packet[4], packet[5]]))
                    }
            }));
            assert!(packets.is_sorted_by_key(|(at_ns, _)| *at_ns));
        }
        assert_eq!(head().len(), 24);
    }
}
