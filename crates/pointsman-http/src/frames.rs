//! Where WebSocket frames begin and end in bytes that go by (RFC 6455 section 5.2).

/// A Close frame of a server: going away (RFC 6455 sections 5.5.1 and 7.4.1).
pub const GOING_AWAY: [u8; 4] = [0x88, 0x02, 0x03, 0xe9];

/// A header with the longest length, and a mask.
const HEADER_BYTES_MAX: usize = 14;
/// What a control frame may carry.
const CONTROL_BYTES_MAX: u64 = 125;

/// Follows frames, and keeps nothing of them but the header that is not whole.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    header: [u8; HEADER_BYTES_MAX],
    header_bytes: usize,
    payload_left: u64,
    /// Whether a Close frame has begun: no other frame follows.
    has_closed: bool,
    /// What came is no frame. Where others begin nobody knows.
    is_lost: bool,
}

impl Frames {
    /// Goes past the bytes that come next.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.is_lost {
            let passed = usize::try_from(self.payload_left).unwrap_or(usize::MAX).min(bytes.len());
            self.payload_left -= passed as u64;
            bytes = &bytes[passed..];
            if let Some((&byte, rest)) = bytes.split_first() {
                self.header[self.header_bytes] = byte;
                self.header_bytes += 1;
                bytes = rest;
                self.look_at_header();
            }
        }
    }

    /// How many bytes may go by unseen: the rest of a frame, and anything where frames are lost.
    pub fn unseen_bytes_max(&self) -> u64 {
        if self.is_lost { u64::MAX } else { self.payload_left }
    }

    /// Goes past so many bytes unseen, which may not be more than [`Frames::unseen_bytes_max`] says.
    pub fn pass(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.unseen_bytes_max(), "{bytes}");
        self.payload_left = self.payload_left.saturating_sub(bytes);
    }

    /// Whether a frame may follow here that is not from who sent the others.
    pub fn is_at_border(&self) -> bool {
        self.header_bytes == 0 && self.payload_left == 0 && !self.has_closed && !self.is_lost
    }

    /// Whether it is known where frames begin.
    pub fn is_followed(&self) -> bool {
        !self.is_lost
    }

    fn look_at_header(&mut self) {
        let [first, second, length @ ..] = &self.header;
        let mask_bytes = if second & 0x80 == 0 { 0 } else { 4 };
        let (length_bytes, payload) = match second & 0x7f {
            126 => (2, u64::from(u16::from_be_bytes([length[0], length[1]]))),
            127 => (8, length.first_chunk().map_or(0, |eight| u64::from_be_bytes(*eight))),
            short => (0, u64::from(short)),
        };
        if self.header_bytes < 2 + length_bytes + mask_bytes {
            return;
        }
        let is_control = first & 0x08 != 0;
        let is_whole = first & 0x80 != 0;
        self.is_lost = payload >> 63 != 0 || is_control && (!is_whole || payload > CONTROL_BYTES_MAX);
        self.has_closed |= first & 0x0f == 0x08;
        self.header_bytes = 0;
        self.payload_left = payload;
    }
}
