//! What comes on a connection, by the heads of its frames (RFC 9113 section 4.1): how much of it is content, and whether
//! something has begun that has to go on.

use crate::connection::PREFACE;

const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// Follows what a client sends, from the preface on.
#[derive(Debug, Default)]
pub struct Frames {
    /// Of the preface.
    preface_bytes: usize,
    has_other_preface: bool,
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    frame: Frame,
    /// Bytes of the frame's payload that have not come.
    left: usize,
    /// The client's first settings are there.
    has_settings: bool,
    /// A head is open until a frame says that it ends.
    is_in_head: bool,
    /// How often nothing was left open.
    wholes: u64,
    content_bytes: u64,
}

/// The frame that is coming.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    kind: u8,
    flags: u8,
    length: usize,
    /// With the byte that says how much it is; `None` until that has come.
    padding: Option<usize>,
}

impl Frames {
    /// Sees the bytes that come next.
    pub fn see(&mut self, mut bytes: &[u8]) {
        let preface = bytes.len().min(PREFACE.len() - self.preface_bytes);
        self.has_other_preface |= bytes[..preface] != PREFACE[self.preface_bytes..][..preface];
        self.preface_bytes += preface;
        bytes = &bytes[preface..];
        while !bytes.is_empty() {
            bytes = if self.left > 0 { self.see_payload(bytes) } else { self.see_head(bytes) };
        }
    }

    /// Whether it begins with something else than the preface (RFC 9113 section 3.4).
    pub fn has_other_preface(&self) -> bool {
        self.has_other_preface
    }

    /// Bytes of content that came, without padding, in whole frames.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Whether the client has begun something that is no content and has to go on: the start of the connection, a
    /// frame, a head. What it gives stays the same for as long as it is the same.
    pub fn open(&self) -> Option<u64> {
        let is_amid_frame = self.head_bytes > 0 || (self.left > 0 && self.frame.kind != DATA);
        (!self.has_settings || self.is_in_head || is_amid_frame).then_some(self.wholes)
    }

    fn see_head<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - self.head_bytes));
        self.head[self.head_bytes..][..head.len()].copy_from_slice(head);
        self.head_bytes += head.len();
        if self.head_bytes == HEAD_BYTES {
            self.head_bytes = 0;
            let [high, middle, low, kind, flags, ..] = self.head;
            let length = u32::from_be_bytes([0, high, middle, low]) as usize;
            let is_padded = kind == DATA && flags & PADDED != 0;
            self.frame = Frame { kind, flags, length, padding: (!is_padded).then_some(0) };
            self.left = length;
            if length == 0 {
                self.end_frame();
            }
        }
        rest
    }

    fn see_payload<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let (payload, rest) = bytes.split_at(bytes.len().min(self.left));
        if self.frame.padding.is_none() {
            self.frame.padding = payload.first().map(|length| 1 + usize::from(*length));
        }
        self.left -= payload.len();
        if self.left == 0 {
            self.end_frame();
        }
        rest
    }

    fn end_frame(&mut self) {
        let Frame { kind, flags, length, padding } = self.frame;
        match kind {
            DATA => self.content_bytes += length.saturating_sub(padding.unwrap_or_default()) as u64,
            HEADERS | CONTINUATION => self.is_in_head = flags & END_HEADERS == 0,
            SETTINGS => self.has_settings = true,
            _ => {}
        }
        if self.has_settings && !self.is_in_head {
            self.wholes += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let [_, high, middle, low] = u32::try_from(payload.len()).expect("short").to_be_bytes();
        [&[high, middle, low, kind, flags, 0, 0, 0, 1][..], payload].concat()
    }

    /// Sees all of it, in one piece and byte by byte.
    fn seen(bytes: &[u8]) -> (u64, bool) {
        let (mut whole, mut cut) = (Frames::default(), Frames::default());
        whole.see(bytes);
        bytes.chunks(1).for_each(|byte| cut.see(byte));
        assert_eq!((whole.content_bytes(), whole.open()), (cut.content_bytes(), cut.open()));
        (whole.content_bytes(), whole.open().is_some())
    }

    #[test]
    fn what_is_open_and_what_is_content() {
        let begin = [PREFACE, &frame(SETTINGS, 0, &[])].concat();
        let rows: [(&str, Vec<u8>, (u64, bool)); 15] = [
            ("nothing", vec![], (0, true)),
            ("a preface", PREFACE.into(), (0, true)),
            ("half of the settings", [PREFACE, &[0, 0, 6, 4]].concat(), (0, true)),
            ("settings", begin.clone(), (0, false)),
            ("another frame first", [PREFACE, &frame(6, 0, &[0; 8])].concat(), (0, true)),
            ("a request", [&begin[..], &frame(HEADERS, END_HEADERS, &[0; 30])].concat(), (0, false)),
            ("a byte of a frame", [&begin[..], &[0]].concat(), (0, true)),
            ("a cut request", [&begin[..], &frame(HEADERS, END_HEADERS, &[0; 30])[..20]].concat(), (0, true)),
            ("half a head", [&begin[..], &frame(HEADERS, 0, &[0; 30])].concat(), (0, true)),
            (
                "its end",
                [&begin[..], &frame(HEADERS, 0, &[0; 30]), &frame(CONTINUATION, END_HEADERS, &[])].concat(),
                (0, false),
            ),
            (
                "no end",
                [&begin[..], &frame(HEADERS, 0, &[0; 30]), &frame(CONTINUATION, 0, &[])].concat(),
                (0, true),
            ),
            ("content", [&begin[..], &frame(DATA, 0, &[7; 300])].concat(), (300, false)),
            ("cut content", [&begin[..], &frame(DATA, 0, &[7; 300])[..100]].concat(), (0, false)),
            ("padding", [&begin[..], &frame(DATA, PADDED, &[9; 30])].concat(), (20, false)),
            ("too much of it", [&begin[..], &frame(DATA, PADDED, &[255; 30])].concat(), (0, false)),
        ];
        for (what, bytes, expected) in rows {
            assert_eq!(seen(&bytes), expected, "{what}");
        }
    }

    #[test]
    fn what_begins_otherwise() {
        for (bytes, expected) in [
            (&b"PRI * HTTP/2.0\r\n"[..], false),
            (PREFACE, false),
            (b"GET / HTTP/1.1\r\n", true),
            (b"PRI * HTTP/2.0\n", true),
        ] {
            let mut frames = Frames::default();
            bytes.chunks(1).for_each(|byte| frames.see(byte));
            assert_eq!(frames.has_other_preface(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn the_next_that_is_open_is_another() {
        let mut frames = Frames::default();
        frames.see(&[PREFACE, &frame(SETTINGS, 0, &[])].concat());
        let head = frame(HEADERS, END_HEADERS, &[0; 30]);
        frames.see(&head[..10]);
        let first = frames.open();
        frames.see(&head[10..20]);
        assert_eq!((first.is_some(), frames.open()), (true, first));
        frames.see(&[&head[20..], &head[..10]].concat());
        assert!(frames.open().is_some() && frames.open() != first);
    }
}
