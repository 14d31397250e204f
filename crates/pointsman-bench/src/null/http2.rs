//! A null server's side of a connection in HTTP/2: it reads no more of a request than where it ends.

use std::collections::VecDeque;

use crate::http2::frames::{
    Broken, Cutter, FIRST_WINDOW, FrameHead, PAYLOAD_BYTES_MAX, PREFACE, Part, Piece, WINDOW_MAX, code, flag,
    grown, increment, kind, setting, settings, write, write_goaway, write_headers, write_number,
    write_settings,
};

/// Streams that it takes at a time.
const STREAMS_MAX: u32 = 10_000;
/// Bytes of requests that may come before it says that it has read them.
const WINDOW_BYTES: i64 = 1 << 30;
/// `:status: 200`, which is in every table (RFC 7541 appendix A).
const STATUS_200: u8 = 0x88;
/// `:status: 503`, whose name is.
const STATUS_503: [u8; 5] = *b"\x08\x03503";
/// The name `content-length`, with a value that is not put into the table.
const CONTENT_LENGTH: [u8; 2] = [0x0f, 28 - 15];

/// One connection.
#[derive(Debug)]
pub(super) struct NullHttp2 {
    /// Bytes of the client's preface that came.
    preface_bytes: usize,
    cutter: Cutter,
    /// Streams that are open.
    streams: Vec<Stream>,
    /// Requests whose turn has not come yet, oldest first. One that is cancelled keeps its turn, in which nothing is
    /// answered: the server has taken the time for it.
    asked: VecDeque<u32>,
    /// Of these, what has come since somebody asked.
    come: usize,
    window: i64,
    first_window: i64,
    unsaid: i64,
    last_stream: u32,
    /// The last that was answered.
    last_answered: u32,
    /// Bytes of an answer, and its head.
    body_bytes: usize,
    block: Vec<u8>,
    /// What is to be sent.
    pub(super) out: Vec<u8>,
}

#[derive(Debug)]
struct Stream {
    number: u32,
    window: i64,
    /// All of its request has come.
    is_asked: bool,
    /// Bytes of its answer that are to be sent, once it is answered.
    unsent: usize,
}

impl NullHttp2 {
    /// Its answers have so many bytes.
    pub(super) fn new(body_bytes: usize) -> NullHttp2 {
        let length = body_bytes.to_string();
        let mut block = vec![STATUS_200];
        block.extend_from_slice(&CONTENT_LENGTH);
        block.push(length.len() as u8);
        block.extend_from_slice(length.as_bytes());
        let mut out = Vec::new();
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, STREAMS_MAX),
            (setting::INITIAL_WINDOW_SIZE, WINDOW_MAX as u32),
        ];
        write_settings(&mut out, &settings);
        write_number(&mut out, kind::WINDOW_UPDATE, 0, (WINDOW_BYTES - FIRST_WINDOW) as u32);
        NullHttp2 {
            preface_bytes: 0,
            cutter: Cutter::default(),
            streams: Vec::new(),
            asked: VecDeque::new(),
            come: 0,
            window: FIRST_WINDOW,
            first_window: FIRST_WINDOW,
            unsaid: 0,
            last_stream: 0,
            last_answered: 0,
            body_bytes,
            block,
            out,
        }
    }

    /// Takes what has come, and says how many requests end in it.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<usize, Broken> {
        let count = bytes.len().min(PREFACE.len() - self.preface_bytes);
        let (preface, rest) = bytes.split_at(count);
        if preface != &PREFACE[self.preface_bytes..][..count] {
            return Err(Broken);
        }
        self.preface_bytes += count;
        bytes = rest;
        let mut cutter = std::mem::take(&mut self.cutter);
        while let Some(piece) = cutter.next(&mut bytes)? {
            match piece {
                Piece::Data(head, part) => self.on_data(head, part),
                Piece::Frame(head, payload) => self.on_frame(head, payload)?,
            }
        }
        self.cutter = cutter;
        Ok(std::mem::take(&mut self.come))
    }

    /// A request is whole.
    fn ask(&mut self, at: usize) {
        let stream = &mut self.streams[at];
        if !std::mem::replace(&mut stream.is_asked, true) {
            self.asked.push_back(stream.number);
            self.come += 1;
        }
    }

    /// Answers the oldest request, or refuses it.
    pub(super) fn answer(&mut self, is_served: bool) {
        let Some(number) = self.asked.pop_front() else { return };
        self.last_answered = self.last_answered.max(number);
        let Some(at) = self.find(number) else { return };
        let (block, body_bytes) = match is_served {
            true => (&*self.block, self.body_bytes),
            false => (&STATUS_503[..], 0),
        };
        let flags = if body_bytes == 0 { flag::END_STREAM } else { 0 };
        write_headers(&mut self.out, flags, number, |out| out.extend_from_slice(block));
        self.streams[at].unsent = body_bytes;
        self.send(at);
    }

    /// Whether all that was answered is sent, as far as windows go.
    pub(super) fn is_sent(&self) -> bool {
        self.streams.iter().all(|stream| stream.unsent == 0)
    }

    /// Says that it answers no more.
    pub(super) fn leave(&mut self) {
        write_goaway(&mut self.out, self.last_answered, code::NO_ERROR);
    }

    fn find(&self, number: u32) -> Option<usize> {
        self.streams.iter().position(|stream| stream.number == number)
    }

    /// Sends what may be sent of an answer. Its stream is gone when all of it is.
    fn send(&mut self, at: usize) {
        static BODY: [u8; PAYLOAD_BYTES_MAX] = [b'x'; PAYLOAD_BYTES_MAX];
        let stream = &mut self.streams[at];
        while stream.unsent > 0 {
            let room = self.window.min(stream.window).clamp(0, PAYLOAD_BYTES_MAX as i64) as usize;
            let count = room.min(stream.unsent);
            if count == 0 {
                return;
            }
            stream.unsent -= count;
            stream.window -= count as i64;
            self.window -= count as i64;
            let flags = if stream.unsent == 0 { flag::END_STREAM } else { 0 };
            write(&mut self.out, kind::DATA, flags, stream.number, &BODY[..count]);
        }
        self.streams.swap_remove(at);
    }

    /// The same of all answers that wait for windows.
    fn send_all(&mut self) {
        for at in (0..self.streams.len()).rev() {
            if self.streams[at].unsent > 0 {
                self.send(at);
            }
        }
    }

    fn on_data(&mut self, head: FrameHead, part: Part) {
        self.unsaid += part.bytes as i64;
        if self.unsaid >= WINDOW_BYTES / 2 {
            write_number(&mut self.out, kind::WINDOW_UPDATE, 0, self.unsaid as u32);
            self.unsaid = 0;
        }
        if part.is_last
            && head.has(flag::END_STREAM)
            && let Some(at) = self.find(head.stream)
        {
            self.ask(at);
        }
    }

    fn on_frame(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Broken> {
        match head.kind {
            kind::HEADERS if head.stream > self.last_stream => {
                // Those that were cancelled count until their turn.
                if self.streams.len().max(self.asked.len()) >= STREAMS_MAX as usize {
                    write_number(&mut self.out, kind::RST_STREAM, head.stream, code::REFUSED_STREAM);
                    return Ok(());
                }
                self.last_stream = head.stream;
                let (number, window) = (head.stream, self.first_window);
                self.streams.push(Stream { number, window, is_asked: false, unsent: 0 });
                if head.has(flag::END_STREAM) {
                    self.ask(self.streams.len() - 1);
                }
            }
            kind::SETTINGS if head.has(flag::ACK) => {}
            kind::SETTINGS => {
                for (_, value) in settings(payload)?.filter(|(name, _)| *name == setting::INITIAL_WINDOW_SIZE)
                {
                    let by = i64::from(value) - self.first_window;
                    for stream in &mut self.streams {
                        stream.window = grown(stream.window, by)?;
                    }
                    self.first_window += by;
                }
                write(&mut self.out, kind::SETTINGS, flag::ACK, 0, &[]);
                self.send_all();
            }
            kind::PING if !head.has(flag::ACK) => write(&mut self.out, kind::PING, flag::ACK, 0, payload),
            kind::WINDOW_UPDATE if head.stream == 0 => {
                self.window = grown(self.window, increment(payload)?)?;
                self.send_all();
            }
            kind::WINDOW_UPDATE => {
                let by = increment(payload)?;
                if let Some(at) = self.find(head.stream) {
                    self.streams[at].window = grown(self.streams[at].window, by)?;
                    self.send_all();
                }
            }
            kind::RST_STREAM => self.streams.retain(|stream| stream.number != head.stream),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> NullHttp2 {
        let mut server = NullHttp2::new(5);
        assert_eq!(server.feed(PREFACE), Ok(0));
        server.out.clear();
        server
    }

    fn fed(server: &mut NullHttp2, write: impl FnOnce(&mut Vec<u8>)) -> Result<usize, Broken> {
        let mut bytes = Vec::new();
        write(&mut bytes);
        server.feed(&bytes)
    }

    /// Streams of the heads that it sends.
    fn heads(server: &mut NullHttp2) -> Vec<u32> {
        let (mut cutter, out) = (Cutter::default(), std::mem::take(&mut server.out));
        let (mut bytes, mut heads) = (&*out, Vec::new());
        while let Some(piece) = cutter.next(&mut bytes).expect("our own frames") {
            if let Piece::Frame(head, _) = piece {
                heads.extend((head.kind == kind::HEADERS).then_some(head.stream));
            }
        }
        heads
    }

    fn ask(out: &mut Vec<u8>, stream: u32) {
        write(out, kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, stream, &[0x82]);
    }

    #[test]
    fn a_cancelled_request_keeps_its_turn() {
        let mut server = opened();
        assert_eq!(fed(&mut server, |out| [1, 3, 5].into_iter().for_each(|stream| ask(out, stream))), Ok(3));
        let cancel = |out: &mut Vec<u8>, stream| write_number(out, kind::RST_STREAM, stream, code::CANCEL);
        assert_eq!(fed(&mut server, |out| [1, 5].into_iter().for_each(|stream| cancel(out, stream))), Ok(0));
        // One that comes and is cancelled in the same read is owed a turn as well.
        let both = fed(&mut server, |out| {
            ask(out, 7);
            cancel(out, 7);
            ask(out, 9);
        });
        assert_eq!(both, Ok(2));
        for answered in [None, Some(3), None, None, Some(9)] {
            server.answer(true);
            assert_eq!(heads(&mut server), Vec::from_iter(answered));
        }
    }

    #[test]
    fn a_request_ends_once() {
        let mut server = opened();
        let ends = fed(&mut server, |out| {
            write(out, kind::HEADERS, flag::END_HEADERS, 1, &[0x83]);
            (0..3).for_each(|_| write(out, kind::DATA, flag::END_STREAM, 1, b"x"));
        });
        assert_eq!(ends, Ok(1));
    }

    #[test]
    fn whoever_asks_and_cancels_is_refused_in_the_end() {
        let mut server = opened();
        let asked = fed(&mut server, |out| {
            for stream in (0..STREAMS_MAX + 10).map(|number| 2 * number + 1) {
                ask(out, stream);
                write_number(out, kind::RST_STREAM, stream, code::CANCEL);
            }
        });
        assert_eq!(asked, Ok(STREAMS_MAX as usize));
    }
}
