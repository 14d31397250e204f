//! Frames of HTTP/2 (RFC 9113 section 4.1), whichever end reads them.

/// What a client begins with (section 3.4).
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The largest payload that both ends take unasked (section 4.2). We never ask for more.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 16_384;
/// The first window of a stream and of a connection (section 6.9.2).
pub(crate) const FIRST_WINDOW: i64 = 65_535;
/// The largest window (section 6.9.1), and the largest number of a stream.
pub(crate) const WINDOW_MAX: i64 = (1 << 31) - 1;

pub(crate) const HEAD_BYTES: usize = 9;

/// Kinds of frames (section 6).
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(crate) mod flag {
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const ACK: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;
    pub(crate) const PADDED: u8 = 8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Names of settings (section 6.5.2).
pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
}

/// Codes of errors (section 7).
pub(crate) mod code {
    pub(crate) const NO_ERROR: u32 = 0;
    pub(crate) const REFUSED_STREAM: u32 = 7;
    pub(crate) const CANCEL: u32 = 8;
}

/// It is no HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// What stands before a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHead {
    pub(crate) length: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl FrameHead {
    fn read(bytes: [u8; HEAD_BYTES]) -> FrameHead {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = bytes;
        FrameHead {
            length: u32::from_be_bytes([0, l0, l1, l2]) as usize,
            kind,
            flags,
            // The first bit means nothing.
            stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
        }
    }

    fn bytes(self) -> [u8; HEAD_BYTES] {
        let [_, l0, l1, l2] = (self.length as u32).to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind, self.flags, s0, s1, s2, s3]
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame.
pub(crate) fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&FrameHead { length: payload.len(), kind, flags, stream }.bytes());
    out.extend_from_slice(payload);
}

/// Appends a frame whose payload is a number.
pub(crate) fn write_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    write(out, kind, 0, stream, &number.to_be_bytes());
}

/// Appends settings.
pub(crate) fn write_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let length = settings.len() * 6;
    out.extend_from_slice(&FrameHead { length, kind: kind::SETTINGS, flags: 0, stream: 0 }.bytes());
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends that we end the connection, and why.
pub(crate) fn write_goaway(out: &mut Vec<u8>, last_stream: u32, code: u32) {
    let [l0, l1, l2, l3] = last_stream.to_be_bytes();
    let [c0, c1, c2, c3] = code.to_be_bytes();
    write(out, kind::GOAWAY, 0, 0, &[l0, l1, l2, l3, c0, c1, c2, c3]);
}

/// Appends the HEADERS of a block, which `write_block` appends, and what does not fit as CONTINUATION.
pub(crate) fn write_headers(
    out: &mut Vec<u8>,
    flags: u8,
    stream: u32,
    write_block: impl FnOnce(&mut Vec<u8>),
) {
    let at = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    write_block(out);
    let length = out.len() - at - HEAD_BYTES;
    let fits = length.min(PAYLOAD_BYTES_MAX);
    let ends = if length == fits { flag::END_HEADERS } else { 0 };
    let head = FrameHead { length: fits, kind: kind::HEADERS, flags: flags | ends, stream };
    out[at..at + HEAD_BYTES].copy_from_slice(&head.bytes());
    if length > fits {
        let rest = out.split_off(at + HEAD_BYTES + fits);
        let count = rest.len().div_ceil(PAYLOAD_BYTES_MAX);
        for (index, piece) in rest.chunks(PAYLOAD_BYTES_MAX).enumerate() {
            let ends = if index + 1 == count { flag::END_HEADERS } else { 0 };
            write(out, kind::CONTINUATION, ends, stream, piece);
        }
    }
}

/// The settings of a payload.
pub(crate) fn settings(payload: &[u8]) -> Result<impl Iterator<Item = (u16, u32)>, Broken> {
    let (six, rest) = payload.as_chunks::<6>();
    if !rest.is_empty() {
        return Err(Broken);
    }
    Ok(six.iter().map(|[n0, n1, v0, v1, v2, v3]| {
        (u16::from_be_bytes([*n0, *n1]), u32::from_be_bytes([*v0, *v1, *v2, *v3]))
    }))
}

/// The number that a payload is.
pub(crate) fn number(payload: &[u8]) -> Result<u32, Broken> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| Broken)
}

/// By how much a window grows (section 6.9).
pub(crate) fn increment(payload: &[u8]) -> Result<i64, Broken> {
    match number(payload)? & 0x7fff_ffff {
        0 => Err(Broken),
        increment => Ok(i64::from(increment)),
    }
}

/// A window that has grown (section 6.9.1).
pub(crate) fn grown(window: i64, by: i64) -> Result<i64, Broken> {
    Some(window + by).filter(|window| *window <= WINDOW_MAX).ok_or(Broken)
}

/// The field block of a HEADERS frame, without padding and priority (section 6.2).
pub(crate) fn block_of(head: FrameHead, mut payload: &[u8]) -> Result<&[u8], Broken> {
    if head.has(flag::PADDED) {
        let (padding, rest) = payload.split_first().ok_or(Broken)?;
        payload = &rest[..rest.len().checked_sub(usize::from(*padding)).ok_or(Broken)?];
    }
    if head.has(flag::PRIORITY) {
        payload = payload.get(5..).ok_or(Broken)?;
    }
    Ok(payload)
}

/// A frame, or some of one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'b> {
    /// A whole frame and its payload: any but DATA.
    Frame(FrameHead, &'b [u8]),
    /// Some bytes of a DATA frame.
    Data(FrameHead, Part),
}

/// Some bytes of a DATA frame (section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// How many, padding and all: they count for windows.
    pub(crate) bytes: usize,
    /// Those of them that are the data.
    pub(crate) data: usize,
    /// Whether they are the frame's last.
    pub(crate) is_last: bool,
}

/// Cuts what comes into frames. It keeps at most one that is not whole.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    /// What has come of a head.
    head_part: [u8; HEAD_BYTES],
    head_bytes: usize,
    head: Option<FrameHead>,
    /// Bytes of its payload that have not come.
    left: usize,
    /// Of a DATA frame, those at its end that are padding.
    padding: usize,
    /// Those that have, where they did not come at once.
    part: Vec<u8>,
    /// The part was given away whole.
    is_given: bool,
}

impl Cutter {
    /// Ready for another connection.
    pub(crate) fn reset(&mut self) {
        (self.head_bytes, self.head, self.left, self.is_given) = (0, None, 0, false);
        self.part.clear();
    }

    /// The next piece, and `bytes` are those behind it. `None`: all were taken.
    pub(crate) fn next<'p, 'b: 'p>(&'p mut self, bytes: &mut &'b [u8]) -> Result<Option<Piece<'p>>, Broken> {
        if std::mem::take(&mut self.is_given) {
            self.part.clear();
        }
        let Some(head) = self.head(bytes)? else { return Ok(None) };
        let count = self.left.min(bytes.len());
        if head.kind == kind::DATA {
            if count == 0 && self.left > 0 {
                return Ok(None);
            }
            let data = self.data(head, &bytes[..count])?;
            *bytes = &bytes[count..];
            self.left -= count;
            let is_last = self.left == 0;
            if is_last {
                self.head = None;
            }
            return Ok(Some(Piece::Data(head, Part { bytes: count, data, is_last })));
        }
        let (payload, rest) = bytes.split_at(count);
        *bytes = rest;
        self.left -= count;
        let is_whole = self.left == 0;
        if is_whole {
            self.head = None;
        }
        if is_whole && self.part.is_empty() {
            return Ok(Some(Piece::Frame(head, payload)));
        }
        self.part.extend_from_slice(payload);
        self.is_given = is_whole;
        Ok(is_whole.then_some(Piece::Frame(head, &self.part)))
    }

    /// How many of these bytes of a DATA frame, which come next, are data: its padding stands behind it, and how long that is
    /// before it (section 6.1).
    fn data(&mut self, head: FrameHead, bytes: &[u8]) -> Result<usize, Broken> {
        if !head.has(flag::PADDED) {
            return Ok(bytes.len());
        }
        let from = head.length - self.left;
        if from == 0 {
            let padding = bytes.first().ok_or(Broken)?;
            self.padding =
                Some(usize::from(*padding)).filter(|padding| *padding < head.length).ok_or(Broken)?;
        }
        let to = (from + bytes.len()).min(head.length - self.padding);
        Ok(to.saturating_sub(from.max(1)))
    }

    fn head(&mut self, bytes: &mut &[u8]) -> Result<Option<FrameHead>, Broken> {
        if self.head.is_some() {
            return Ok(self.head);
        }
        let count = bytes.len().min(HEAD_BYTES - self.head_bytes);
        self.head_part[self.head_bytes..][..count].copy_from_slice(&bytes[..count]);
        self.head_bytes += count;
        *bytes = &bytes[count..];
        if self.head_bytes < HEAD_BYTES {
            return Ok(None);
        }
        self.head_bytes = 0;
        let head = FrameHead::read(self.head_part);
        if head.length > PAYLOAD_BYTES_MAX {
            return Err(Broken);
        }
        self.left = head.length;
        self.head = Some(head);
        Ok(self.head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_cut_wherever_they_are_torn() {
        let mut bytes = Vec::new();
        write_settings(&mut bytes, &[(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, 7)]);
        write(&mut bytes, kind::DATA, flag::END_STREAM, 5, b"hello");
        write(&mut bytes, kind::DATA, 0, 5, b"");
        write(&mut bytes, kind::DATA, flag::PADDED, 5, b"\x03data...");
        write_number(&mut bytes, kind::WINDOW_UPDATE, 0, 9);
        write(&mut bytes, kind::SETTINGS, flag::ACK, 0, b"");
        for size in 1..=bytes.len() {
            let (mut cutter, mut frames, mut data) = (Cutter::default(), Vec::new(), [0, 0]);
            for mut chunk in bytes.chunks(size) {
                while let Some(piece) = cutter.next(&mut chunk).expect("frames") {
                    match piece {
                        Piece::Frame(head, payload) => frames.push((head.kind, payload.to_vec())),
                        Piece::Data(head, part) => {
                            assert_eq!(head.stream, 5);
                            data = [data[0] + part.bytes, data[1] + part.data];
                            if part.is_last {
                                frames.push((head.kind, vec![head.flags]));
                            }
                        }
                    }
                }
                assert!(chunk.is_empty());
            }
            assert_eq!(data, [13, 9], "{size}: all, and without the padding");
            let kinds: Vec<u8> = frames.iter().map(|(kind, _)| *kind).collect();
            let data = [kind::DATA; 3];
            assert_eq!(
                kinds,
                [&[kind::SETTINGS], &data[..], &[kind::WINDOW_UPDATE, kind::SETTINGS]].concat()
            );
            assert_eq!(settings(&frames[0].1).expect("two").collect::<Vec<_>>(), [(2, 0), (4, 7)]);
            assert_eq!((frames[1].1[0], increment(&frames[4].1)), (flag::END_STREAM, Ok(9)));
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let mut answer = &b"HTTP/1.1 400 Bad Request\r\n"[..];
        assert_eq!(Cutter::default().next(&mut answer), Err(Broken));
        assert_eq!((increment(&[0; 4]), number(&[1; 3])), (Err(Broken), Err(Broken)));
        assert!(settings(&[0; 7]).is_err());
        for padded in [&b""[..], b"\x01", b"\x04abc"] {
            let mut bytes = Vec::new();
            write(&mut bytes, kind::DATA, flag::PADDED, 1, padded);
            assert_eq!(Cutter::default().next(&mut &bytes[..]), Err(Broken), "more padding than there is");
        }
        assert_eq!((grown(WINDOW_MAX, 1), grown(-5, 6)), (Err(Broken), Ok(1)));
        let head = |flags| FrameHead { length: 0, kind: kind::HEADERS, flags, stream: 1 };
        assert_eq!(block_of(head(flag::PADDED), &[2, b'a', 0, 0]), Ok(&b"a"[..]));
        assert_eq!(block_of(head(flag::PADDED), &[2, 0]), Err(Broken));
        assert_eq!(block_of(head(flag::PRIORITY), &[0; 4]), Err(Broken));
        assert_eq!(
            block_of(head(flag::PRIORITY | flag::PADDED), &[1, 0, 0, 0, 0, 0, b'b', 0]),
            Ok(&b"b"[..])
        );
    }

    #[test]
    fn a_block_goes_on_in_other_frames() {
        let mut out = Vec::new();
        write_headers(&mut out, flag::END_STREAM, 3, |out| out.extend_from_slice(&[7; 40_000]));
        let (mut cutter, mut bytes, mut block) = (Cutter::default(), &out[..], 0);
        let mut flags = Vec::new();
        while let Some(Piece::Frame(head, payload)) = cutter.next(&mut bytes).expect("frames") {
            flags.push((head.kind, head.flags));
            block += payload.len();
        }
        let [middle, last] = [(kind::CONTINUATION, 0), (kind::CONTINUATION, flag::END_HEADERS)];
        assert_eq!((flags, block), (vec![(kind::HEADERS, flag::END_STREAM), middle, last], 40_000));
    }
}
