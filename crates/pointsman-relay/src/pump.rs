//! Moves a body from one side to the other: buffer by buffer, or inside the kernel where nobody looks at it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pointsman_http::{BodyFault, BodyReader};
use pointsman_net::{Pipe, PooledBuffer, Tcp};
use pointsman_rules::Cause;

use crate::ahead::{Ahead, Judge, Pace, Unfollowed};
use crate::bandwidth::{ClassId, Shaping, Toward};
use crate::hold::Hold;
use crate::memory::Buffers;
use crate::shard::Shard;
use crate::shortage::Use;
use crate::trailers::TrailerFilter;
use crate::transport::Transport;

/// A body on its way: what was read and not yet written, and where it ends.
pub(crate) struct Pump {
    buffer: PooledBuffer,
    written: usize,
    /// What was read ahead, and goes first.
    hold: Hold,
    /// What looks into the body on its way.
    judge: Option<Judge>,
    /// Bytes at the end of the buffer that the sink gets when more has come, or all has proved well-formed.
    kept_back: usize,
    /// In place of the buffer, where both sides are plain and the body is long.
    pipe: Option<Pipe>,
    body: BodyReader,
    form: BodyForm,
    /// Which trailers pass.
    filter: TrailerFilter,
    /// Lines behind the body that came so far, where it is passed on without its framing.
    pub(crate) trailers: Vec<u8>,
    /// Bytes of body that may still come.
    left: u64,
    /// Bytes of body that came.
    pub(crate) read_bytes: u64,
    /// Bytes of the buffer that came with the last read and are forwarded.
    fresh_bytes: usize,
    /// The same with those that were read ahead, and for how long its source was waited for.
    pub(crate) pace: Pace,
    /// What it waits for before each piece, where a rule gave it bandwidth.
    pub(crate) shaping: Shaping,
    /// What was read after the body's end, unless there was no room for it.
    excess: PooledBuffer,
    excess_bytes: usize,
}

/// What was read after a body's end.
pub(crate) enum Excess {
    Nothing,
    Kept(PooledBuffer),
    /// There was no memory for it.
    Lost,
}

/// A body with less left than this goes through a buffer: a pipe would cost more than it saves.
const PIPED_BYTES_MIN: u64 = 64 * 1024;

/// In which form a body is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyForm {
    /// As the bytes it came in.
    AsItCame,
    /// Its data without chunk framing, for a client that knows no chunks.
    Unchunked,
}

/// What a step of the pump came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something moved; there is more.
    Moved,
    /// Nothing did: its class of bandwidth has nothing left now.
    Throttled,
    /// The body is over, and all of it is written.
    Done,
}

/// Why the body does not go on.
#[derive(Debug)]
pub(crate) enum PumpFault {
    /// The side it comes from closed, or broke.
    Source,
    /// The side it goes to closed, or broke.
    Sink,
    /// Its framing is malformed.
    Body(BodyFault),
    /// It is not what its media type says, for that cause.
    Content(Cause),
    /// There is no memory left to look into it.
    Memory,
    /// It is longer than it may be.
    TooLarge,
}

/// What the pump waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Read,
    Write,
    /// Its class of bandwidth.
    Class,
}

impl Pump {
    /// A pump for what is left of `body`.
    pub(crate) fn new(
        buffers: &Buffers,
        (body, form, filter): (BodyReader, BodyForm, TrailerFilter),
        left: u64,
        (class, toward): (Option<ClassId>, Toward),
    ) -> Pump {
        // What is given in pieces needs no more room than one.
        let buffer = if class.is_some() { buffers.head() } else { buffers.body() };
        let excess = buffers.request();
        Pump {
            buffer,
            written: 0,
            hold: Hold::default(),
            judge: None,
            kept_back: 0,
            pipe: None,
            body,
            form,
            filter,
            trailers: Vec::new(),
            left,
            read_bytes: 0,
            fresh_bytes: 0,
            pace: Pace::default(),
            shaping: Shaping::new(class, toward),
            excess,
            excess_bytes: 0,
        }
    }

    /// Sends first what was read ahead. False where there is no memory for what is kept back of it.
    pub(crate) fn begin_with(&mut self, ahead: Ahead) -> bool {
        let Ahead { hold, tail, judge, pace, mirror: _ } = ahead;
        if !tail.is_empty() && !self.buffer.reserve(tail.len()) {
            return false;
        }
        self.buffer.extend_from_slice(&tail);
        self.kept_back = tail.len();
        (self.hold, self.judge, self.pace) = (hold.into_inner(), judge, pace);
        true
    }

    /// What was found wrong with the body.
    pub(crate) fn content_fault(&self) -> Option<&pointsman_view::BodyFault> {
        self.judge.as_ref().and_then(|judge| judge.inspection.fault())
    }

    /// Whether all of the body has been read.
    pub(crate) fn has_read_all(&self) -> bool {
        self.body.is_done()
    }

    /// The bytes that came with the last read, as they are forwarded.
    pub(crate) fn last_read(&self) -> &[u8] {
        &self.buffer[self.buffer.len().saturating_sub(self.fresh_bytes)..]
    }

    pub(crate) fn has_excess(&self) -> bool {
        self.excess_bytes > 0
    }

    /// Hands over what was read after the body's end.
    pub(crate) fn take_excess(&mut self) -> Excess {
        if self.excess_bytes == 0 {
            return Excess::Nothing;
        }
        match self.excess.len() == self.excess_bytes {
            true => Excess::Kept(self.excess.take()),
            false => Excess::Lost,
        }
    }

    /// Lets the body pass through a pipe, if that is possible between these two and there is one to be had.
    pub(crate) fn through_pipe(&mut self, shard: &Shard, from: &impl Transport, to: &impl Transport) {
        let is_seen = self.judge.is_some() || self.kept_back > 0;
        let is_long = !is_seen && self.body.unseen_bytes_max() >= PIPED_BYTES_MIN;
        if is_long && self.form == BodyForm::AsItCame && from.plain().is_some() && to.plain().is_some() {
            self.pipe = shard.pipes.take(|| !shard.is_short(Use::Pipe));
        }
    }

    /// Once all is read it is the writing that is waited for: TLS may still hold some of it.
    pub(crate) fn waiting(&self) -> Waiting {
        if self.shaping.is_waiting() {
            return Waiting::Class;
        }
        let is_unwritten = !self.hold.is_sent() || self.written + self.kept_back < self.buffer.len();
        let is_held = is_unwritten || self.pipe.as_ref().is_some_and(Pipe::is_holding);
        if is_held || self.body.is_done() { Waiting::Write } else { Waiting::Read }
    }

    /// Moves something once: one write, or one read.
    pub(crate) fn poll_step<R: Transport, W: Transport>(
        &mut self,
        context: &mut Context<'_>,
        shard: &Shard,
        from: &mut R,
        to: &mut W,
    ) -> Poll<Result<Step, PumpFault>> {
        if let Some(bytes) = self.hold.next() {
            let was_waiting = self.shaping.is_waiting();
            let Poll::Ready(leave) = self.shaping.poll_leave(shard, bytes.len() as u64) else {
                return throttled(context, was_waiting, to);
            };
            let piece = &bytes[..leave.bytes as usize];
            let written = Pin::new(to).poll_write(context, piece);
            self.shaping.settle(shard, leave, moved(&written));
            let written = ready!(written);
            return Poll::Ready(match written {
                Ok(bytes @ 1..) => {
                    self.hold.advance(bytes);
                    self.hold.let_go_sent();
                    Ok(Step::Moved)
                }
                _ => Err(PumpFault::Sink),
            });
        }
        if let (Some(_), Some(from), Some(to)) = (&self.pipe, from.plain(), to.plain()) {
            if let Some(step) = ready!(self.poll_pipe(context, shard, from, to)) {
                return Poll::Ready(step);
            }
            self.pipe = None;
        }
        let end = self.buffer.len() - self.kept_back;
        if self.written < end {
            let written = ready!(Pin::new(to).poll_write(context, &self.buffer[self.written..end]));
            return Poll::Ready(match written {
                Ok(1..) => {
                    self.written += *written.as_ref().unwrap_or(&0);
                    Ok(Step::Moved)
                }
                _ => Err(PumpFault::Sink),
            });
        }
        if self.body.is_done() {
            return Pin::new(to).poll_flush(context).map(|flushed| match flushed {
                Ok(()) => Ok(Step::Done),
                Err(_) => Err(PumpFault::Sink),
            });
        }
        self.buffer.drain(..end);
        self.written = 0;
        let was_waiting = self.shaping.is_waiting();
        let Poll::Ready(leave) = self.shaping.poll_leave(shard, u64::MAX) else {
            return throttled(context, was_waiting, to);
        };
        let read = from.poll_read_into(context, &mut self.buffer);
        self.shaping.settle(shard, leave, moved(&read));
        let read = match read {
            Poll::Ready(read) => read,
            Poll::Pending => {
                // TLS may still hold what was written; nothing else would push it out now.
                if let Poll::Ready(Err(_)) = Pin::new(to).poll_flush(context) {
                    return Poll::Ready(Err(PumpFault::Sink));
                }
                return Poll::Pending;
            }
        };
        let step = self.take_in(read);
        if self.body.is_done() {
            self.filter.retain(&mut self.trailers);
            to.ends_with(&self.trailers);
        }
        Poll::Ready(step)
    }

    /// The same through the pipe. `None` where the kernel does not do it after all: nothing is lost then.
    fn poll_pipe(
        &mut self,
        context: &Context<'_>,
        shard: &Shard,
        from: &Tcp,
        to: &Tcp,
    ) -> Poll<Option<Result<Step, PumpFault>>> {
        let Some(pipe) = &mut self.pipe else { return Poll::Ready(None) };
        if pipe.is_holding() {
            let emptied = ready!(pipe.poll_empty(context, to));
            return Poll::Ready(Some(match emptied {
                Ok(1..) => Ok(Step::Moved),
                _ => Err(PumpFault::Sink),
            }));
        }
        if self.body.is_done() {
            return Poll::Ready(Some(Ok(Step::Done)));
        }
        let was_waiting = self.shaping.is_waiting();
        let Poll::Ready(leave) = self.shaping.poll_leave(shard, self.body.unseen_bytes_max()) else {
            return if was_waiting { Poll::Pending } else { Poll::Ready(Some(Ok(Step::Throttled))) };
        };
        let filled = pipe.poll_fill(context, from, leave.bytes);
        self.shaping.settle(shard, leave, moved(&filled));
        let filled = ready!(filled);
        Poll::Ready(match filled {
            Ok(bytes @ 1..) => {
                self.body.pass(bytes as u64);
                Some(self.count(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => None,
            _ => Some(Err(PumpFault::Source)),
        })
    }

    fn take_in(&mut self, read: io::Result<usize>) -> Result<Step, PumpFault> {
        match read {
            Ok(1..) => {}
            Ok(0) if self.body.ends_at_close() => {
                self.body = BodyReader::new(pointsman_http::Framing::None);
                return Ok(Step::Moved);
            }
            _ => return Err(PumpFault::Source),
        }
        if self.judge.is_some() {
            return self.take_in_judged();
        }
        let fed = match self.form {
            BodyForm::AsItCame => self.body.feed(&self.buffer).map_err(PumpFault::Body)?,
            BodyForm::Unchunked => {
                let mut data = Vec::with_capacity(self.buffer.len());
                let fed = self.body.feed_unchunked(&self.buffer, &mut data, &mut self.trailers);
                let fed = fed.map_err(PumpFault::Body)?;
                self.keep_excess(fed.used);
                self.buffer.clear();
                self.buffer.extend_from_slice(&data);
                fed
            }
        };
        if self.form == BodyForm::AsItCame {
            self.keep_excess(fed.used);
            self.edit_trailers(0)?;
        }
        self.fresh_bytes = self.buffer.len();
        self.count(fed.used)
    }

    /// Leaves of the trailers that came behind the first `start` bytes of the buffer those that pass.
    fn edit_trailers(&mut self, start: usize) -> Result<(), PumpFault> {
        let Some(mut cut) = self.body.take_cut() else { return Ok(()) };
        self.filter.apply(&mut cut);
        if !self.buffer.reserve(cut.lines.len()) {
            return Err(PumpFault::Memory);
        }
        self.buffer.splice(start + cut.place.start..start + cut.place.end, cut.lines);
        Ok(())
    }

    /// The same of a body that is looked into.
    fn take_in_judged(&mut self) -> Result<Step, PumpFault> {
        let Some(judge) = &mut self.judge else { return Ok(Step::Moved) };
        let before = self.kept_back;
        let fed = judge.follow(&mut self.body, &self.buffer[before..], &mut self.kept_back);
        let fed = fed.map_err(|unfollowed| match unfollowed {
            Unfollowed::Framing(fault) => PumpFault::Body(fault),
            Unfollowed::Memory => PumpFault::Memory,
        })?;
        if let Some(cause) = judge.inspection.fault().map(pointsman_view::BodyFault::cause) {
            // What follows the body is the next request, whatever the body is.
            self.keep_excess(before + fed.used);
            self.kept_back = self.buffer.len();
            self.count(fed.used)?;
            return Err(PumpFault::Content(cause));
        }
        if !judge.inspection.is_reading() {
            self.judge = None;
            self.kept_back = 0;
        }
        self.keep_excess(before + fed.used);
        let came_bytes = self.buffer.len();
        self.edit_trailers(before)?;
        if self.kept_back > 0 {
            // Trailers are behind the content, and kept back with its last byte.
            self.kept_back = (self.kept_back + self.buffer.len()).saturating_sub(came_bytes);
        }
        self.fresh_bytes = self.buffer.len() - before;
        self.count(fed.used)
    }

    /// Counts bytes of the body that came.
    fn count(&mut self, bytes: usize) -> Result<Step, PumpFault> {
        self.read_bytes += bytes as u64;
        self.pace.read_bytes += bytes as u64;
        self.left = self.left.checked_sub(bytes as u64).ok_or(PumpFault::TooLarge)?;
        Ok(Step::Moved)
    }

    fn keep_excess(&mut self, used: usize) {
        let excess = &self.buffer[used..];
        self.excess_bytes += excess.len();
        if !excess.is_empty() && self.excess.reserve(excess.len()) {
            self.excess.extend_from_slice(excess);
        }
        self.buffer.truncate(used);
    }
}

/// What a step comes to for which there is no bandwidth now. That is said once, so that the caller sets its deadline
/// by it; what TLS holds goes out meanwhile.
fn throttled<W: Transport>(
    context: &mut Context<'_>,
    was_waiting: bool,
    to: &mut W,
) -> Poll<Result<Step, PumpFault>> {
    if let Poll::Ready(Err(_)) = Pin::new(to).poll_flush(context) {
        return Poll::Ready(Err(PumpFault::Sink));
    }
    if was_waiting { Poll::Pending } else { Poll::Ready(Ok(Step::Throttled)) }
}

/// How many bytes a write or a read moved.
pub(crate) fn moved(done: &Poll<io::Result<usize>>) -> u64 {
    match done {
        Poll::Ready(Ok(bytes)) => *bytes as u64,
        _ => 0,
    }
}
