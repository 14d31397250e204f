//! Requests and answers of one connection in HTTP/2 (RFC 9113), as its client. It does no input and output.

mod flood;
pub(crate) mod frames;
mod head;
pub(crate) mod hpack;
mod huffman;
mod streams;

use std::collections::VecDeque;

use flood::{Flood, Flooded};
use frames::{
    Broken, Cutter, FIRST_WINDOW, FrameHead, PREFACE, Part, Piece, WINDOW_MAX, code, flag, grown, increment,
    kind, setting, settings, write, write_goaway, write_headers, write_number, write_settings,
};
use hpack::Decoder;
use streams::Streams;

pub(crate) use head::{Head, Kept};

use crate::connection::{Job, Turn};
use crate::follow::SWITCHING;
use crate::record::ErrorKind;

/// Bytes of one answer that may come before we say that we have read them: nothing waits for us to say so.
const STREAM_WINDOW: i64 = 16 << 20;
/// The same of all answers of a connection.
const CONNECTION_WINDOW: i64 = 256 << 20;
/// Streams that are opened before the server has said how many it takes: as many as every server should (RFC 9113
/// section 6.5.2).
const UNASKED_STREAMS: usize = 100;
/// Heads of answers may be larger than those of requests usually are: whatever is measured is to be measured.
const BLOCK_BYTES_MAX: usize = 256 * 1024;

/// Why nothing more is read of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It is no HTTP/2.
    Broken,
    /// Frames come without end that bring no answer nearer.
    Flooded,
}

impl From<Broken> for Wrong {
    fn from(_: Broken) -> Wrong {
        Wrong::Broken
    }
}

impl From<Flooded> for Wrong {
    fn from(_: Flooded) -> Wrong {
        Wrong::Flooded
    }
}

/// What is under way on a connection. It is used again for the next one.
#[derive(Debug, Default)]
pub(crate) struct Http2 {
    cutter: Cutter,
    session: Session,
}

#[derive(Debug, Default)]
struct Session {
    decoder: Decoder,
    table: head::Table,
    streams: Streams,
    /// Requests that have no stream yet.
    waiting: VecDeque<Job>,
    /// How many streams we want at a time.
    streams_wanted: usize,
    /// How many the server takes, once it has said so.
    streams_taken: usize,
    is_begun: bool,
    /// The server's first settings are there.
    has_settings: bool,
    /// What we may still send, of all streams together.
    window: i64,
    /// With which window a stream begins.
    first_window: i64,
    /// Bytes that came since we last said so.
    unsaid: i64,
    /// A block that has to go on, and whose it is.
    block: Vec<u8>,
    block_of: Option<FrameHead>,
    /// The server takes no streams behind this one.
    last_stream: Option<u32>,
    /// A request waited in vain, and nothing at all came meanwhile: others are put elsewhere.
    is_given_up: bool,
    flood: Flood,
    /// When something came last; before, when it was opened.
    heard_ns: u64,
}

impl Http2 {
    /// Ready for another connection, which is opened now, with so many streams at a time.
    pub(crate) fn reset(&mut self, streams_wanted: usize, now_ns: u64) {
        self.cutter.reset();
        let session = &mut self.session;
        session.decoder.reset();
        session.table.reset();
        session.streams.reset();
        session.waiting.clear();
        session.block.clear();
        (session.streams_wanted, session.streams_taken) = (streams_wanted, UNASKED_STREAMS);
        (session.is_begun, session.has_settings) = (false, false);
        (session.window, session.first_window, session.unsaid) = (FIRST_WINDOW, FIRST_WINDOW, 0);
        (session.block_of, session.last_stream, session.is_given_up) = (None, None, false);
        session.flood.reset();
        session.heard_ns = now_ns;
    }

    /// Puts a request behind those that have no stream; [`Http2::write`] sends what can be sent.
    pub(crate) fn ask(&mut self, job: Job) {
        self.session.waiting.push_back(job);
    }

    /// Appends the requests that have a stream by now to the turn's output, and before the first what a connection
    /// begins with.
    pub(crate) fn write(&mut self, now_ns: u64, turn: &mut Turn) {
        let session = &mut self.session;
        session.start(now_ns, turn);
        while session.streams.len() < session.streams_max()
            && session.last_stream.is_none()
            && let Some(job) = session.waiting.pop_front()
        {
            session.begin(job, now_ns, turn);
        }
    }

    /// Takes what has come; what it means to requests is in the turn.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], now_ns: u64, turn: &mut Turn) -> Result<(), Wrong> {
        let Http2 { cutter, session } = self;
        // A server may have said what it takes before we had our say, which comes first all the same.
        session.start(now_ns, turn);
        session.heard_ns = now_ns;
        while let Some(piece) = cutter.next(&mut bytes)? {
            match piece {
                Piece::Data(head, part) => {
                    session.flood.on_data(part)?;
                    session.on_data(head, part, turn)?;
                }
                Piece::Frame(head, payload) => {
                    session.flood.on_frame(head)?;
                    session.on_frame(head, payload, now_ns, turn)?;
                }
            }
        }
        self.write(now_ns, turn);
        Ok(())
    }

    /// Whether the server takes another request behind these.
    pub(crate) fn goes_on(&self) -> bool {
        let session = &self.session;
        session.last_stream.is_none() && !session.is_given_up && session.streams.go_on()
    }

    /// Whether a request that is put on it now has a stream at once.
    pub(crate) fn has_room(&self) -> bool {
        self.len() < self.session.streams_max()
    }

    /// Requests under way.
    pub(crate) fn len(&self) -> usize {
        self.session.streams.len() + self.session.waiting.len()
    }

    /// Whether a request is under way for too long.
    pub(crate) fn is_late(&self, begun_by_ns: u64) -> bool {
        let mut jobs = self.session.streams.jobs().chain(&self.session.waiting);
        jobs.any(|job| job.begun_ns <= begun_by_ns)
    }

    /// Cancels the requests that are under way for too long. Where nothing at all came meanwhile the connection takes no
    /// others, and what has no stream yet goes elsewhere; what was sent waits here until it is late itself.
    pub(crate) fn cut_late(&mut self, begun_by_ns: u64, turn: &mut Turn) {
        let session = &mut self.session;
        while let Some(stream) = session.streams.take_late(begun_by_ns) {
            write_number(&mut turn.out, kind::RST_STREAM, stream.number, code::CANCEL);
            turn.failed.push((stream.job, ErrorKind::Timeout));
            session.streams.keep(stream);
        }
        let is_late = |job: &Job| job.begun_ns <= begun_by_ns;
        turn.failed
            .extend(session.waiting.iter().filter(|job| is_late(job)).map(|job| (*job, ErrorKind::Timeout)));
        session.waiting.retain(|job| !is_late(job));
        if session.heard_ns <= begun_by_ns {
            session.is_given_up = true;
            turn.refused.extend(session.waiting.drain(..));
        }
    }

    /// All that is under way, which will have no answer.
    pub(crate) fn give_up(&mut self) -> impl Iterator<Item = Job> {
        self.session.streams.drain().chain(self.session.waiting.drain(..))
    }

    /// Says that we leave.
    pub(crate) fn leave(&mut self, out: &mut Vec<u8>) {
        if self.session.is_begun {
            write_goaway(out, 0, code::NO_ERROR);
        }
    }
}

impl Session {
    fn streams_max(&self) -> usize {
        self.streams_wanted.min(self.streams_taken)
    }

    /// Appends what a connection begins with (section 3.4).
    fn start(&mut self, now_ns: u64, turn: &mut Turn) {
        if std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        self.heard_ns = now_ns;
        turn.out.extend_from_slice(PREFACE);
        let window = (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW as u32);
        write_settings(&mut turn.out, &[(setting::ENABLE_PUSH, 0), window]);
        write_number(&mut turn.out, kind::WINDOW_UPDATE, 0, (CONNECTION_WINDOW - FIRST_WINDOW) as u32);
    }

    /// Opens a stream for a request, and sends of it what may be sent.
    fn begin(&mut self, mut job: Job, now_ns: u64, turn: &mut Turn) {
        job.sent_ns = now_ns;
        let Turn { requests, random, out, text, .. } = turn;
        let request = requests.get(job.request as usize);
        let Some(head) = &request.http2 else { return };
        text.clear();
        let body = request.body(text, job.number, random);
        let number = self.streams.next_number();
        let flags = if body.is_empty() { flag::END_STREAM } else { 0 };
        write_headers(out, flags, number, |out| {
            head.write(out, &mut self.table, body.len(), (job.number, random));
        });
        let mut stream = self.streams.open(number, job, self.first_window);
        if !body.is_empty() {
            let before = self.window;
            stream.send(body, &mut self.window, out);
            self.flood.sends((before - self.window) as usize);
        }
        self.streams.keep_open(stream);
    }

    fn on_data(&mut self, head: FrameHead, part: Part, turn: &mut Turn) -> Result<(), Broken> {
        if self.block_of.is_some() || !self.has_settings {
            return Err(Broken);
        }
        self.unsaid += part.bytes as i64;
        if self.unsaid >= CONNECTION_WINDOW / 2 {
            write_number(&mut turn.out, kind::WINDOW_UPDATE, 0, self.unsaid as u32);
            self.unsaid = 0;
        }
        let Some(at) = self.streams.find(head.stream)? else { return Ok(()) };
        let stream = self.streams.at(at);
        if stream.status == 0 {
            return Err(Broken);
        }
        stream.job.answer_bytes += part.bytes as u64;
        stream.job.payload_bytes += part.data as u64;
        turn.payload += part.data as u64;
        if part.is_last && head.has(flag::END_STREAM) {
            self.answered(at, turn);
            return Ok(());
        }
        stream.unsaid += part.bytes as i64;
        if stream.unsaid >= STREAM_WINDOW / 2 {
            write_number(&mut turn.out, kind::WINDOW_UPDATE, head.stream, stream.unsaid as u32);
            stream.unsaid = 0;
        }
        Ok(())
    }

    fn on_frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now_ns: u64,
        turn: &mut Turn,
    ) -> Result<(), Broken> {
        let is_amiss = match head.kind {
            kind::CONTINUATION => self.block_of.is_none_or(|first| first.stream != head.stream),
            _ => self.block_of.is_some(),
        };
        // The first frame of a server is its settings (section 3.4).
        if is_amiss || !(self.has_settings || head.kind == kind::SETTINGS) {
            return Err(Broken);
        }
        match head.kind {
            kind::HEADERS => self.on_block(head, head, frames::block_of(head, payload)?, now_ns, turn),
            kind::CONTINUATION => {
                let first = self.block_of.ok_or(Broken)?;
                self.on_block(first, head, payload, now_ns, turn)
            }
            kind::SETTINGS if head.has(flag::ACK) => Ok(()),
            kind::SETTINGS => self.on_settings(payload, turn),
            kind::PING if payload.len() != 8 => Err(Broken),
            kind::PING if head.has(flag::ACK) => Ok(()),
            kind::PING => {
                write(&mut turn.out, kind::PING, flag::ACK, 0, payload);
                Ok(())
            }
            kind::WINDOW_UPDATE => self.on_window(head, payload, turn),
            kind::RST_STREAM => self.on_reset(head, payload, turn),
            kind::GOAWAY => self.on_goaway(payload, turn),
            // It was forbidden (section 8.4).
            kind::PUSH_PROMISE => Err(Broken),
            _ => Ok(()),
        }
    }

    /// A part of a head, which begins in the frame `first` and goes on in `head`.
    fn on_block(
        &mut self,
        first: FrameHead,
        head: FrameHead,
        part: &[u8],
        now_ns: u64,
        turn: &mut Turn,
    ) -> Result<(), Broken> {
        let is_whole = head.has(flag::END_HEADERS);
        if !(is_whole && self.block_of.is_none()) {
            self.block.extend_from_slice(part);
            if self.block.len() > BLOCK_BYTES_MAX {
                return Err(Broken);
            }
        }
        if !is_whole {
            self.block_of = Some(first);
            return Ok(());
        }
        let status = match self.block_of.take() {
            None => self.decoder.read(part)?,
            Some(_) => {
                let status = self.decoder.read(&self.block)?;
                self.block.clear();
                status
            }
        };
        let length = self.decoder.length();
        let Some(at) = self.streams.find(first.stream)? else { return Ok(()) };
        let (stream, ends) = (self.streams.at(at), first.has(flag::END_STREAM));
        stream.job.answer_bytes += head.length as u64;
        if stream.job.first_byte_ns == 0 {
            stream.job.first_byte_ns = now_ns;
        }
        match status {
            // There is no other protocol to switch to (section 8.6).
            Some(SWITCHING) => return Err(Broken),
            // Something came before the answer (section 8.1), which does not end with it.
            Some(100..200) if stream.status == 0 && !ends => return Ok(()),
            Some(status @ 200..) if stream.status == 0 => {
                (stream.status, stream.length) = (status, length);
                self.flood.brings();
            }
            // Fields behind the content end the answer.
            None if stream.status > 0 && ends => {}
            _ => return Err(Broken),
        }
        if ends {
            self.answered(at, turn);
        }
        Ok(())
    }

    /// An answer is whole.
    fn answered(&mut self, at: usize, turn: &mut Turn) {
        let stream = self.streams.take(at);
        self.flood.answered();
        // Nobody waits for the rest of the request any more (section 8.1).
        if !stream.is_sent() {
            write_number(&mut turn.out, kind::RST_STREAM, stream.number, code::NO_ERROR);
        }
        // What is not as long as it says is no answer (section 8.1.1). To HEAD, and where nothing is new, it says how long it
        // would be.
        let is_head = turn.requests.get(stream.job.request as usize).is_head;
        let is_torn = stream.length.is_some_and(|length| length != stream.job.payload_bytes);
        match is_torn && !is_head && ![204, 304].contains(&stream.status) {
            true => turn.failed.push((stream.job, ErrorKind::Malformed)),
            false => turn.done.push((stream.job, stream.status)),
        }
        self.streams.keep(stream);
    }

    fn on_settings(&mut self, payload: &[u8], turn: &mut Turn) -> Result<(), Broken> {
        for (name, value) in settings(payload)? {
            match name {
                setting::HEADER_TABLE_SIZE => self.table.limit(value),
                setting::MAX_CONCURRENT_STREAMS => self.streams_taken = value as usize,
                setting::INITIAL_WINDOW_SIZE => {
                    let window =
                        Some(i64::from(value)).filter(|window| *window <= WINDOW_MAX).ok_or(Broken)?;
                    // It goes for streams that are open as well, whose windows may be less than nothing then (6.9.2).
                    self.streams.widen(window - self.first_window)?;
                    self.first_window = window;
                }
                _ => {}
            }
        }
        if !self.has_settings {
            self.has_settings = true;
            let said = settings(payload)?.any(|(name, _)| name == setting::MAX_CONCURRENT_STREAMS);
            if !said {
                self.streams_taken = usize::MAX;
            }
        }
        write(&mut turn.out, kind::SETTINGS, flag::ACK, 0, &[]);
        self.send_rest(turn);
        Ok(())
    }

    fn on_window(&mut self, head: FrameHead, payload: &[u8], turn: &mut Turn) -> Result<(), Broken> {
        let by = increment(payload)?;
        if head.stream == 0 {
            self.window = grown(self.window, by)?;
        } else {
            let Some(at) = self.streams.find(head.stream)? else { return Ok(()) };
            let stream = self.streams.at(at);
            stream.window = grown(stream.window, by)?;
        }
        self.send_rest(turn);
        Ok(())
    }

    /// Appends what of the bodies may be sent by now.
    fn send_rest(&mut self, turn: &mut Turn) {
        let before = self.window;
        self.streams.send(&mut self.window, &mut turn.out);
        self.flood.sends((before - self.window) as usize);
    }

    fn on_reset(&mut self, head: FrameHead, payload: &[u8], turn: &mut Turn) -> Result<(), Broken> {
        let code = frames::number(payload)?;
        let Some(at) = self.streams.find(head.stream)? else { return Ok(()) };
        let stream = self.streams.take(at);
        self.flood.brings();
        match code {
            code::REFUSED_STREAM => turn.refused.push(stream.job),
            _ => turn.failed.push((stream.job, ErrorKind::Reset)),
        }
        self.streams.keep(stream);
        Ok(())
    }

    /// The server takes no more streams, and has not looked at those behind the last that it names (section 6.8).
    fn on_goaway(&mut self, payload: &[u8], turn: &mut Turn) -> Result<(), Broken> {
        let last = frames::number(payload.get(..4).ok_or(Broken)?)? & 0x7fff_ffff;
        self.last_stream = Some(last);
        while let Some(stream) = self.streams.take_behind(last) {
            turn.refused.push(stream.job);
            self.streams.keep(stream);
        }
        turn.refused.extend(self.waiting.drain(..));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
