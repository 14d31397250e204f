//! The open streams of a connection (RFC 9113 section 5.1), as its client has them.

use super::frames::{Broken, PAYLOAD_BYTES_MAX, WINDOW_MAX, flag, grown, kind, write};
use crate::connection::Job;

/// One request and its answer.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) number: u32,
    pub(crate) job: Job,
    /// What the answer says; 0: it has not come.
    pub(crate) status: u16,
    /// How long its content is to be, where it says so.
    pub(crate) length: Option<u64>,
    /// What may still be sent of it.
    pub(crate) window: i64,
    /// Bytes of the answer that came since we last said so.
    pub(crate) unsaid: i64,
    /// What of the body could not be sent at once, and how much of that is sent by now.
    rest: Vec<u8>,
    rest_sent: usize,
}

/// All of a connection.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Their numbers, which are looked through, in the order of `open`.
    numbers: Vec<u32>,
    open: Vec<Stream>,
    /// How many were opened.
    opened: u32,
    /// Memory of bodies that were sent.
    spare: Vec<Vec<u8>>,
}

/// Memory that is kept for bodies to come.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 1 << 20;

impl Streams {
    pub(crate) fn reset(&mut self) {
        self.numbers.clear();
        self.open.clear();
        self.opened = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there are numbers left for more.
    pub(crate) fn go_on(&self) -> bool {
        i64::from(self.opened) < WINDOW_MAX / 2 - 1
    }

    /// Odd ones, in order (section 5.1.1).
    pub(crate) fn next_number(&self) -> u32 {
        2 * self.opened + 1
    }

    /// A new one. [`Streams::keep_open`] puts it beside the others.
    pub(crate) fn open(&mut self, number: u32, job: Job, window: i64) -> Stream {
        self.opened += 1;
        let rest = self.spare.pop().unwrap_or_default();
        Stream { number, job, status: 0, length: None, window, unsaid: 0, rest, rest_sent: 0 }
    }

    pub(crate) fn keep_open(&mut self, stream: Stream) {
        self.numbers.push(stream.number);
        self.open.push(stream);
    }

    /// Where a stream is. `None`: it has ended, and what still comes on it means nothing.
    pub(crate) fn find(&self, number: u32) -> Result<Option<usize>, Broken> {
        let was_opened = number % 2 == 1 && number < self.next_number();
        if !was_opened {
            return Err(Broken);
        }
        Ok(self.numbers.iter().position(|open| *open == number))
    }

    pub(crate) fn at(&mut self, at: usize) -> &mut Stream {
        &mut self.open[at]
    }

    pub(crate) fn take(&mut self, at: usize) -> Stream {
        self.numbers.swap_remove(at);
        self.open.swap_remove(at)
    }

    /// One that began so long ago.
    pub(crate) fn take_late(&mut self, begun_by_ns: u64) -> Option<Stream> {
        let at = self.open.iter().position(|stream| stream.job.begun_ns <= begun_by_ns)?;
        Some(self.take(at))
    }

    /// One behind the last that the server takes.
    pub(crate) fn take_behind(&mut self, last: u32) -> Option<Stream> {
        let at = self.numbers.iter().position(|number| *number > last)?;
        Some(self.take(at))
    }

    /// What is left of one that has ended.
    pub(crate) fn keep(&mut self, stream: Stream) {
        let mut rest = stream.rest;
        rest.clear();
        if self.spare.len() < SPARE_MAX && rest.capacity() <= SPARE_BYTES_MAX {
            self.spare.push(rest);
        }
    }

    pub(crate) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.open.iter().map(|stream| &stream.job)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Job> {
        self.numbers.clear();
        self.open.drain(..).map(|stream| stream.job)
    }

    /// The window of each changes.
    pub(crate) fn widen(&mut self, by: i64) -> Result<(), Broken> {
        for stream in &mut self.open {
            stream.window = grown(stream.window, by)?;
        }
        Ok(())
    }

    /// Appends what of the bodies may be sent by now.
    pub(crate) fn send(&mut self, window: &mut i64, out: &mut Vec<u8>) {
        for stream in self.open.iter_mut().filter(|stream| !stream.is_sent()) {
            let rest = std::mem::take(&mut stream.rest);
            stream.rest_sent += stream.send_some(&rest[stream.rest_sent..], window, out);
            stream.rest = rest;
        }
    }
}

impl Stream {
    /// Whether all of its body is sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.rest_sent == self.rest.len()
    }

    /// Appends what may be sent of its body, and keeps the rest.
    pub(crate) fn send(&mut self, body: &[u8], window: &mut i64, out: &mut Vec<u8>) {
        let sent = self.send_some(body, window, out);
        self.rest.extend_from_slice(&body[sent..]);
    }

    fn send_some(&mut self, body: &[u8], window: &mut i64, out: &mut Vec<u8>) -> usize {
        let mut sent = 0;
        while sent < body.len() {
            let room = (*window).min(self.window).clamp(0, PAYLOAD_BYTES_MAX as i64) as usize;
            if room == 0 {
                break;
            }
            let piece = &body[sent..][..room.min(body.len() - sent)];
            sent += piece.len();
            let flags = if sent == body.len() { flag::END_STREAM } else { 0 };
            write(out, kind::DATA, flags, self.number, piece);
            *window -= piece.len() as i64;
            self.window -= piece.len() as i64;
        }
        sent
    }
}
