//! The place of one request among those of its connection: its answer waits there for its turn.
//!
//! Slots and their connection belong to one task. Whoever waits in a slot is looked at again whenever that task has a
//! turn, so nothing here wakes anybody.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pointsman_net::{PooledBuffer, Presence, Tcp};
use tokio::io::AsyncWrite;

use crate::fault::{ClientFault, Fault};
use crate::memory::{BODY_BYTES, Buffers};
use crate::shard::Shard;
use crate::transport::Transport;

/// What all slots of a connection share with it.
#[derive(Debug)]
pub(crate) struct Line {
    /// How the client stands.
    pub(crate) presence: Cell<Presence>,
    /// Why nobody is answered any more.
    fault: Cell<Option<Fault>>,
    /// Bytes of answers whose turn has not come, and how many there may be.
    waiting_bytes: Cell<usize>,
    pub(crate) waiting_bytes_max: Cell<usize>,
    /// Whether all that was written to the client has been pushed out.
    pub(crate) is_flushed: Cell<bool>,
}

/// What a slot is for its connection.
#[derive(Debug)]
pub(crate) struct Place {
    line: Rc<Line>,
    answer: RefCell<Waiting>,
    /// Whether all before it are answered: what it holds goes to the client.
    has_turn: Cell<bool>,
    /// Whether none was taken behind it.
    pub(crate) is_last: Cell<bool>,
    is_overtaken: Cell<bool>,
    sent_bytes: Cell<u64>,
}

/// What an answer has come to and the client was not sent.
#[derive(Debug, Default)]
struct Waiting {
    chunks: VecDeque<PooledBuffer>,
    /// Bytes of the first chunk that were sent.
    sent: usize,
    bytes: usize,
}

/// What the session of one request talks through.
pub(crate) struct Slot {
    place: Rc<Place>,
    shard: Rc<Shard>,
    looks: Cell<u64>,
}

impl Line {
    pub(crate) fn new() -> Line {
        Line {
            presence: Cell::new(Presence::Open),
            fault: Cell::new(None),
            waiting_bytes: Cell::new(0),
            waiting_bytes_max: Cell::new(0),
            is_flushed: Cell::new(true),
        }
    }

    /// From now on nobody is answered any more. The first reason holds.
    pub(crate) fn end(&self, fault: Fault) {
        self.fault.set(self.fault.get().or(Some(fault)));
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.fault.get().is_some()
    }
}

impl Place {
    pub(crate) fn new(line: Rc<Line>) -> Place {
        Place {
            line,
            answer: RefCell::default(),
            has_turn: Cell::new(false),
            is_last: Cell::new(true),
            is_overtaken: Cell::new(false),
            sent_bytes: Cell::new(0),
        }
    }

    /// All before it are answered.
    pub(crate) fn begin_turn(&self) {
        if !self.has_turn.replace(true) {
            self.count_waiting(|waiting| waiting - self.held_bytes());
        }
    }

    /// A newer request takes its place, if it is not answered yet. Says whether that is new.
    pub(crate) fn overtake(&self) -> bool {
        !self.is_overtaken.replace(true)
    }

    /// Why the request is not to be answered as its exchange would.
    pub(crate) fn cut(&self) -> Option<Fault> {
        self.end().or_else(|| self.is_overtaken.get().then_some(Fault::Overtaken))
    }

    /// Why nobody is answered any more. It was the first answer that a client did not take.
    fn end(&self) -> Option<Fault> {
        self.line.fault.get().map(|fault| match fault {
            Fault::Client(ClientFault::Stalled) if !self.has_turn.get() => Fault::Dropped,
            fault => fault,
        })
    }

    /// Bytes of it that the client was sent.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes.get()
    }

    /// Bytes of it that are still to be sent.
    pub(crate) fn held_bytes(&self) -> usize {
        self.answer.borrow().bytes
    }

    /// Waits until all of it has gone to the client.
    pub(crate) async fn sent(&self) -> Result<(), Fault> {
        std::future::poll_fn(|_| match self.end() {
            Some(fault) => Poll::Ready(Err(fault)),
            None if self.has_turn.get() && self.held_bytes() == 0 && self.line.is_flushed.get() => {
                Poll::Ready(Ok(()))
            }
            None => Poll::Pending,
        })
        .await
    }

    /// Sends what `write` takes of the first bytes. `None` where there are none.
    pub(crate) fn poll_send(
        &self,
        write: impl FnOnce(&[u8]) -> Poll<io::Result<usize>>,
    ) -> Option<Poll<io::Result<usize>>> {
        let waiting = &mut *self.answer.borrow_mut();
        let chunk = waiting.chunks.front()?;
        let (sent, length) = (waiting.sent, chunk.len());
        let written = write(&chunk[sent..]);
        if let Poll::Ready(Ok(bytes)) = written {
            waiting.sent += bytes;
            waiting.bytes -= bytes;
            self.sent_bytes.set(self.sent_bytes.get() + bytes as u64);
            if waiting.sent == length {
                waiting.chunks.pop_front();
                waiting.sent = 0;
            }
        }
        Some(written)
    }

    /// How many bytes it takes now.
    fn room_bytes(&self) -> usize {
        match self.has_turn.get() {
            true => BODY_BYTES.saturating_sub(self.held_bytes()),
            false => self.line.waiting_bytes_max.get().saturating_sub(self.line.waiting_bytes.get()),
        }
    }

    /// Takes as much of `bytes` as there is memory for: something in any case where it holds nothing.
    fn take_in(&self, bytes: &[u8], buffers: &Buffers) -> usize {
        let waiting = &mut *self.answer.borrow_mut();
        let mut taken = 0;
        while taken < bytes.len() {
            let has_room = waiting.chunks.back().is_some_and(|chunk| chunk.len() < chunk.capacity());
            if !has_room {
                let mut chunk = match waiting.chunks.is_empty() {
                    true => buffers.last_word(),
                    false => buffers.waiting(),
                };
                if !chunk.make_room() {
                    break;
                }
                waiting.chunks.push_back(chunk);
            }
            let Some(chunk) = waiting.chunks.back_mut() else { break };
            let more = (chunk.capacity() - chunk.len()).min(bytes.len() - taken);
            chunk.extend_from_slice(&bytes[taken..taken + more]);
            taken += more;
        }
        waiting.bytes += taken;
        if !self.has_turn.get() {
            self.count_waiting(|waiting| waiting + taken);
        }
        taken
    }

    /// Gives up what it holds, if the client was sent none of it.
    fn take_back(&self) -> bool {
        if self.sent_bytes.get() > 0 {
            return false;
        }
        let given_up = std::mem::take(&mut *self.answer.borrow_mut());
        if !self.has_turn.get() {
            self.count_waiting(|waiting| waiting - given_up.bytes);
        }
        true
    }

    fn count_waiting(&self, change: impl FnOnce(usize) -> usize) {
        self.line.waiting_bytes.set(change(self.line.waiting_bytes.get()));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.begin_turn();
    }
}

impl Slot {
    pub(crate) fn new(place: Rc<Place>, shard: Rc<Shard>) -> Slot {
        Slot { place, shard, looks: Cell::new(0) }
    }
}

impl Transport for Slot {
    fn plain(&self) -> Option<&Tcp> {
        None
    }

    fn presence(&mut self, _: &mut Context<'_>) -> Presence {
        self.place.line.presence.get()
    }

    /// Something, whenever it is asked: how long the client may take nothing is its connection's to see, and until its
    /// turn comes it is not the client that an answer waits for.
    fn taken_bytes(&self) -> Option<u64> {
        self.looks.set(self.looks.get() + 1);
        Some(self.looks.get())
    }

    /// Its connection knows what of the answer was sent.
    fn break_off(&mut self) {}

    fn has_news(&mut self) -> bool {
        false
    }

    fn is_part(&self) -> bool {
        true
    }

    fn is_last(&self) -> bool {
        self.place.is_last.get()
    }

    fn cut(&self) -> Option<Fault> {
        self.place.cut()
    }

    fn take_back(&mut self) -> bool {
        self.place.take_back()
    }

    /// Its session was given the whole request.
    fn poll_read_into(&mut self, _: &mut Context<'_>, _: &mut PooledBuffer) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(0))
    }
}

impl AsyncWrite for Slot {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let place = &self.place;
        if place.line.has_ended() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = place.room_bytes().min(bytes.len());
        match place.take_in(&bytes[..room], &self.shard.buffers) {
            0 if !bytes.is_empty() => Poll::Pending,
            taken => Poll::Ready(Ok(taken)),
        }
    }

    /// Its connection pushes out what it sends.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
