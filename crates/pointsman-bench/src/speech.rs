//! What is spoken on a connection: requests go in, answers come out, and nothing here sends or receives.

use crate::connection::{Job, Turn};
use crate::http1::Http1;
use crate::http2::{Http2, Wrong};
use crate::plan::Protocol;

/// The requests and answers of one connection.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most connections speak HTTP/1.1, and a box is a detour in each request"
)]
pub(crate) enum Speech {
    /// HTTP/1.1.
    Http1(Http1),
    /// HTTP/2.
    Http2(Box<Http2>),
}

/// Why nothing more is read of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unspoken {
    /// It is not what should be spoken.
    Malformed,
    /// What comes without end brings no answer nearer.
    Flooded,
}

impl Speech {
    pub(crate) fn new(protocol: Protocol) -> Speech {
        match protocol {
            Protocol::Http1 => Speech::Http1(Http1::default()),
            Protocol::Http2 => Speech::Http2(Box::default()),
        }
    }

    /// Which it is.
    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Speech::Http1(_) => Protocol::Http1,
            Speech::Http2(_) => Protocol::Http2,
        }
    }

    /// Ready for another connection, which is opened now, with so many requests at a time where that can be.
    pub(crate) fn reset(&mut self, streams: u32, now_ns: u64) {
        match self {
            Speech::Http1(http1) => http1.reset(),
            Speech::Http2(http2) => http2.reset(streams as usize, now_ns),
        }
    }

    /// Puts a request behind the others; [`Speech::write`] sends it, or what can be sent.
    pub(crate) fn ask(&mut self, job: Job) {
        match self {
            Speech::Http1(http1) => http1.ask(job),
            Speech::Http2(http2) => http2.ask(job),
        }
    }

    /// Appends what can be sent by now to the turn's output.
    pub(crate) fn write(&mut self, now_ns: u64, turn: &mut Turn) {
        match self {
            Speech::Http1(http1) => http1.write(now_ns, turn),
            Speech::Http2(http2) => http2.write(now_ns, turn),
        }
    }

    /// Takes what has come; what it means to requests is in the turn.
    pub(crate) fn feed(&mut self, bytes: &[u8], now_ns: u64, turn: &mut Turn) -> Result<(), Unspoken> {
        match self {
            Speech::Http1(http1) => http1.feed(bytes, now_ns, turn).map_err(|_| Unspoken::Malformed),
            Speech::Http2(http2) => http2.feed(bytes, now_ns, turn).map_err(|wrong| match wrong {
                Wrong::Broken => Unspoken::Malformed,
                Wrong::Flooded => Unspoken::Flooded,
            }),
        }
    }

    /// The server sends no more.
    pub(crate) fn end(&mut self, turn: &mut Turn) {
        match self {
            Speech::Http1(http1) => http1.end(turn),
            // Its answers have ends of their own.
            Speech::Http2(_) => {}
        }
    }

    /// Whether the server takes another request behind these.
    pub(crate) fn goes_on(&self) -> bool {
        match self {
            Speech::Http1(http1) => http1.goes_on(),
            Speech::Http2(http2) => http2.goes_on(),
        }
    }

    /// Whether a request that is put on it need not wait for another.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Speech::Http1(http1) => http1.len() == 0,
            Speech::Http2(http2) => http2.has_room(),
        }
    }

    /// Whether the server has said that it answers nothing more here: it has not begun with what is under way.
    pub(crate) fn has_had_last(&self) -> bool {
        match self {
            Speech::Http1(http1) => http1.has_had_last(),
            // What it will not answer it names.
            Speech::Http2(_) => false,
        }
    }

    /// Requests under way.
    pub(crate) fn len(&self) -> usize {
        match self {
            Speech::Http1(http1) => http1.len(),
            Speech::Http2(http2) => http2.len(),
        }
    }

    /// Whether a request on it began so long ago.
    pub(crate) fn is_late(&self, begun_by_ns: u64) -> bool {
        match self {
            Speech::Http1(http1) => http1.oldest_ns().is_some_and(|begun_ns| begun_ns <= begun_by_ns),
            Speech::Http2(http2) => http2.is_late(begun_by_ns),
        }
    }

    /// Cancels the requests on it that began so long ago. False: that cannot be done with the connection kept.
    pub(crate) fn cut_late(&mut self, begun_by_ns: u64, turn: &mut Turn) -> bool {
        match self {
            Speech::Http1(_) => false,
            Speech::Http2(http2) => {
                http2.cut_late(begun_by_ns, turn);
                true
            }
        }
    }

    /// Appends all that is under way, which will have no answer.
    pub(crate) fn give_up(&mut self, jobs: &mut Vec<Job>) {
        match self {
            Speech::Http1(http1) => jobs.extend(http1.give_up()),
            Speech::Http2(http2) => jobs.extend(http2.give_up()),
        }
    }

    /// Appends what is said before the connection is closed.
    pub(crate) fn leave(&mut self, out: &mut Vec<u8>) {
        match self {
            Speech::Http1(_) => {}
            Speech::Http2(http2) => http2.leave(out),
        }
    }
}
