//! One direction of a tunnel: what it holds, and how it moves.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pointsman_http::{Frames, GOING_AWAY};
use pointsman_net::{Pipe, PooledBuffer, Stall};

use crate::bandwidth::{ClassId, Shaping, Toward};
use crate::local::LocalServer;
use crate::pump::moved;
use crate::session_learning::Listening;
use crate::shard::Shard;
use crate::shortage::Use;
use crate::transport::Transport;

/// So many reads in a row that fill the buffer are much, and what follows is worth a pipe.
const FULL_READS_MIN: u8 = 2;

/// Fewer bytes than this that may go by unseen are read.
const PIPED_BYTES_MIN: u64 = 64 * 1024;
/// Bytes taken into a pipe at a time.
const PIPED_BYTES_MAX: u64 = 1024 * 1024;

/// One direction.
pub(crate) struct Flow {
    pub(crate) buffer: PooledBuffer,
    written: usize,
    /// In place of the buffer, while much flows between plain connections.
    pipe: Option<Pipe>,
    may_pipe: bool,
    full_reads: u8,
    /// Whether the source has said its last.
    pub(crate) has_ended: bool,
    /// TLS may hold what was written.
    is_unflushed: bool,
    /// What it waits for before each piece, where a rule gave it bandwidth.
    pub(crate) shaping: Shaping,
    /// Where frames end, in a WebSocket.
    frames: Option<Frames>,
    /// Who listens to the source, a server of TLS, until it has named its session.
    listening: Option<(Box<Listening>, Rc<LocalServer>)>,
    /// Whether the sink has heard the switch's own last word, behind which nothing goes to it.
    is_discarding: bool,
    /// Whether the sink takes nothing more. What it says itself is still passed on.
    pub(crate) has_lost_sink: bool,
    pub(crate) now: Now,
    write_ms_max: u32,
    stall: Stall,
    /// When the sink is looked at, while it takes nothing; 0: it has taken something meanwhile.
    pub(crate) look_us: u64,
}

/// What a direction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    /// It waits for its source.
    Reads,
    /// It waits for its sink.
    Writes,
    /// It waits for memory to read with.
    Starves,
    /// It waits for its class of bandwidth.
    Throttled,
    /// Its sink has heard the last of its source.
    Over,
}

/// What came of a last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// It goes out next.
    Said,
    /// Not amid a frame, nor behind a Close frame: the sides may end by themselves.
    Later,
    /// There is none.
    Never,
}

/// What went wrong with a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowFault {
    Source,
    Sink,
}

impl Flow {
    pub(crate) fn new(
        shard: &Shard,
        first: Option<PooledBuffer>,
        write_ms_max: u32,
        (class, toward): (Option<ClassId>, Toward),
    ) -> Flow {
        // What is given in pieces needs no more room than one.
        let mut buffer = if class.is_some() { shard.buffers.tunnel_piece() } else { shard.buffers.tunnel() };
        if let Some(first) = first.filter(|first| !first.is_empty()) {
            if buffer.reserve(first.len()) {
                buffer.extend_from_slice(&first);
            } else {
                buffer = first;
            }
        }
        Flow {
            buffer,
            written: 0,
            pipe: None,
            may_pipe: true,
            full_reads: 0,
            has_ended: false,
            is_unflushed: false,
            shaping: Shaping::new(class, toward),
            frames: None,
            listening: None,
            is_discarding: false,
            has_lost_sink: false,
            now: Now::Reads,
            write_ms_max,
            stall: Stall::new(write_ms_max),
            look_us: 0,
        }
    }

    /// Follows the frames of a WebSocket from its first byte on.
    pub(crate) fn follow_frames(&mut self) {
        let mut frames = Frames::default();
        frames.feed(&self.buffer);
        self.frames = Some(frames);
    }

    /// Lets a server's bytes be heard from its first one on.
    pub(crate) fn listen(&mut self, listening: Box<Listening>, server: Rc<LocalServer>) {
        self.listening = Some((listening, server));
    }

    /// Says a WebSocket's last word to its sink, where nothing is on its way.
    pub(crate) fn say_going_away(&mut self) -> Farewell {
        match &self.frames {
            Some(frames) if frames.is_followed() && self.now == Now::Reads => {
                if !frames.is_at_border() {
                    return Farewell::Later;
                }
                if !self.buffer.reserve(GOING_AWAY.len()) {
                    return Farewell::Never;
                }
                self.buffer.extend_from_slice(&GOING_AWAY);
                self.is_discarding = true;
                Farewell::Said
            }
            _ => Farewell::Never,
        }
    }

    /// Whether something is on its way.
    pub(crate) fn is_amid(&self) -> bool {
        let is_piped = self.pipe.as_ref().is_some_and(Pipe::is_holding);
        is_piped || self.written < self.buffer.len() || self.is_unflushed
    }

    /// Moves until one side has to be waited for. A sink that takes nothing ends the direction.
    pub(crate) fn poll_move<R: Transport, W: Transport>(
        &mut self,
        context: &mut Context<'_>,
        (shard, may_read): (&Shard, bool),
        from: &mut R,
        to: &mut W,
        bytes: &mut u64,
    ) -> Result<(), FlowFault> {
        if self.now == Now::Over {
            return Ok(());
        }
        let moved = self.poll_steps(context, (shard, may_read), from, to, bytes);
        if let Err(FlowFault::Sink) = moved {
            self.has_lost_sink = true;
            self.now = Now::Over;
        }
        if self.now == Now::Over {
            self.buffer.release();
            self.pipe = None;
            self.is_unflushed = false;
        }
        match self.now {
            Now::Writes if self.look_us == 0 => {
                self.stall = Stall::new(self.write_ms_max);
                self.look_us = shard.after_ms(self.stall.look_ms());
            }
            Now::Writes => {}
            _ => self.look_us = 0,
        }
        moved
    }

    fn poll_steps<R: Transport, W: Transport>(
        &mut self,
        context: &mut Context<'_>,
        (shard, may_read): (&Shard, bool),
        from: &mut R,
        to: &mut W,
        bytes: &mut u64,
    ) -> Result<(), FlowFault> {
        loop {
            if self.poll_write(context, to)?.is_pending() {
                self.now = Now::Writes;
                return Ok(());
            }
            if self.has_ended {
                self.now = match Pin::new(&mut *to).poll_shutdown(context) {
                    Poll::Pending => Now::Writes,
                    Poll::Ready(Ok(())) => Now::Over,
                    Poll::Ready(Err(_)) => return Err(FlowFault::Sink),
                };
                return Ok(());
            }
            if !may_read || self.pipe.is_none() && !self.buffer.make_room() {
                self.now = Now::Starves;
                return Ok(());
            }
            let Poll::Ready(leave) = self.shaping.poll_leave(shard, u64::MAX) else {
                self.now = match self.poll_flush(context, to)? {
                    Poll::Pending => Now::Writes,
                    Poll::Ready(()) => Now::Throttled,
                };
                return Ok(());
            };
            let read = self.poll_read(context, from, to.plain().is_some(), leave.bytes);
            self.shaping.settle(shard, leave, moved(&read));
            match read {
                Poll::Ready(Ok(0)) => self.has_ended = true,
                Poll::Ready(Ok(more)) => {
                    *bytes += more as u64;
                    self.go_past(more, shard);
                    self.consider_pipe(shard, from, to);
                }
                // Without a word of TLS it may have been cut off, but many a client leaves so.
                Poll::Ready(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => self.has_ended = true,
                Poll::Ready(Err(_)) => return Err(FlowFault::Source),
                Poll::Pending => {
                    // TLS may hold what was written; nothing else would push it out now.
                    self.now = match self.poll_flush(context, to)? {
                        Poll::Pending => Now::Writes,
                        Poll::Ready(()) => Now::Reads,
                    };
                    return Ok(());
                }
            }
        }
    }

    /// Goes past so many bytes that came last.
    fn go_past(&mut self, more: usize, shard: &Shard) {
        if self.is_discarding {
            self.buffer.clear();
            return;
        }
        if let Some((listening, server)) = &mut self.listening {
            let came = &self.buffer[self.buffer.len() - more..];
            if listening.hear(came, server, shard).is_break() {
                self.listening = None;
            }
        }
        let Some(frames) = &mut self.frames else { return };
        match self.pipe {
            Some(_) => frames.pass(more as u64),
            None => frames.feed(&self.buffer[self.buffer.len() - more..]),
        }
    }

    /// How many bytes may be taken into a pipe, unseen.
    fn unseen_bytes_max(&self) -> u64 {
        if self.listening.is_some() {
            return 0;
        }
        self.frames.as_ref().map_or(u64::MAX, Frames::unseen_bytes_max).min(PIPED_BYTES_MAX)
    }

    /// Writes what is held.
    fn poll_write<W: Transport>(
        &mut self,
        context: &mut Context<'_>,
        to: &mut W,
    ) -> Result<Poll<()>, FlowFault> {
        loop {
            let written = match (&mut self.pipe, to.plain()) {
                (Some(pipe), Some(to)) if pipe.is_holding() => pipe.poll_empty(context, to),
                _ if self.written < self.buffer.len() => {
                    let written = Pin::new(&mut *to).poll_write(context, &self.buffer[self.written..]);
                    if let Poll::Ready(Ok(bytes)) = written {
                        self.written += bytes;
                        self.is_unflushed = true;
                    }
                    written
                }
                _ => {
                    self.buffer.clear();
                    self.written = 0;
                    if self.pipe.is_some() {
                        self.buffer.release();
                    }
                    return Ok(Poll::Ready(()));
                }
            };
            match written {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(1..)) => self.look_us = 0,
                Poll::Ready(_) => return Err(FlowFault::Sink),
            }
        }
    }

    /// Reads what there is room for. Where nothing is there, what there was room in is given back.
    fn poll_read<R: Transport>(
        &mut self,
        context: &mut Context<'_>,
        from: &mut R,
        to_is_plain: bool,
        leave_bytes: u64,
    ) -> Poll<io::Result<usize>> {
        let bytes_max = self.unseen_bytes_max();
        if bytes_max < PIPED_BYTES_MIN && self.pipe.is_some() {
            self.pipe = None;
            self.full_reads = 0;
            if !self.buffer.make_room() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        if let (Some(pipe), Some(from), true) = (&mut self.pipe, from.plain(), to_is_plain) {
            let filled = pipe.poll_fill(context, from, bytes_max.min(leave_bytes));
            let is_refused = match &filled {
                Poll::Ready(Err(error)) => error.kind() == ErrorKind::InvalidInput,
                Poll::Ready(_) => return filled,
                Poll::Pending => false,
            };
            self.pipe = None;
            self.full_reads = 0;
            self.may_pipe &= !is_refused;
            if !is_refused {
                return filled;
            }
            if !self.buffer.make_room() {
                // The next turn finds that out.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        from.poll_read_into(context, &mut self.buffer)
    }

    /// Takes a pipe where much flows between plain connections.
    fn consider_pipe<R: Transport, W: Transport>(&mut self, shard: &Shard, from: &R, to: &W) {
        if self.pipe.is_some() {
            return;
        }
        let is_full = self.buffer.len() == self.buffer.capacity();
        self.full_reads = if is_full { self.full_reads.saturating_add(1) } else { 0 };
        let is_plain = from.plain().is_some() && to.plain().is_some();
        let is_worth_it = self.full_reads >= FULL_READS_MIN && self.unseen_bytes_max() >= PIPED_BYTES_MIN;
        if is_worth_it && self.may_pipe && is_plain && !self.is_discarding {
            self.pipe = shard.pipes.take(|| !shard.is_short(Use::Pipe));
        }
    }

    fn poll_flush<W: Transport>(
        &mut self,
        context: &mut Context<'_>,
        to: &mut W,
    ) -> Result<Poll<()>, FlowFault> {
        if !self.is_unflushed {
            return Ok(Poll::Ready(()));
        }
        match Pin::new(to).poll_flush(context) {
            Poll::Pending => Ok(Poll::Pending),
            Poll::Ready(Ok(())) => {
                self.is_unflushed = false;
                Ok(Poll::Ready(()))
            }
            Poll::Ready(Err(_)) => Err(FlowFault::Sink),
        }
    }

    /// Whether the sink has taken nothing for its time.
    pub(crate) fn has_stalled<W: Transport>(&mut self, now_us: u64, to: &W) -> bool {
        if self.now != Now::Writes || now_us < self.look_us {
            return false;
        }
        self.look_us = now_us + u64::from(self.stall.look_ms()) * 1000;
        !self.stall.goes_on(to.taken_bytes())
    }
}
