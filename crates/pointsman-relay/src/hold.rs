//! What was read of a body and no server has been sent: pieces, in order, within what the process may hold.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use pointsman_net::{Booking, PooledBuffer};
use pointsman_telemetry::{Event, ListenerMetrics, Recorder};

use crate::memory::{BODY_BYTES, Buffers, HEAD_BYTES};
use crate::turn::Turn;

/// A piece with less room than this is full: a smaller read would not be worth its call.
const ROOM_BYTES_MIN: usize = 4096;

/// Pieces of a body.
#[derive(Default)]
pub(crate) struct Hold {
    pieces: VecDeque<Piece>,
    /// Pieces that were sent, and are still there to be sent again.
    sent: usize,
    /// Bytes of the next piece that were sent.
    written: usize,
    is_partly_gone: bool,
}

struct Piece {
    bytes: PooledBuffer,
    room: Room,
}

/// What a piece takes, for as long as it is there.
struct Room {
    taken: Taken,
    bytes: u64,
    recorder: Rc<Recorder>,
    listener: Arc<ListenerMetrics>,
}

/// What it is taken of.
enum Taken {
    /// Of `hold_total_bytes_max`.
    Booked { _booking: Booking },
    /// It is beyond that.
    InTurn { _turn: Rc<Turn> },
}

/// What came of a look for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// There is some.
    Room,
    /// Others hold all that may be held. It comes back.
    Later,
    /// There is no memory left for clients.
    NoMemory,
}

impl Room {
    fn take(taken: Taken, bytes: usize, recorder: &Rc<Recorder>, listener: &Arc<ListenerMetrics>) -> Room {
        let bytes = bytes as u64;
        recorder.hear(&Event::Held(listener, bytes));
        Room { taken, bytes, recorder: recorder.clone(), listener: listener.clone() }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.recorder.hear(&Event::Released(&self.listener, self.bytes));
    }
}

impl Hold {
    /// Makes sure that there is room to read into; with a `turn` also where others hold all that may be held.
    pub(crate) fn make_room(
        &mut self,
        turn: Option<&Rc<Turn>>,
        buffers: &Buffers,
        recorder: &Rc<Recorder>,
        listener: &Arc<ListenerMetrics>,
    ) -> Found {
        if self.pieces.back().is_some_and(|last| last.bytes.capacity() - last.bytes.len() >= ROOM_BYTES_MIN) {
            return Found::Room;
        }
        // Most bodies are small.
        let (mut bytes, room_bytes) = match self.pieces.is_empty() {
            true => (buffers.request(), HEAD_BYTES),
            false => (buffers.waiting(), BODY_BYTES),
        };
        let taken = match (buffers.hold(room_bytes), turn) {
            (Some(booking), _) => Taken::Booked { _booking: booking },
            (None, Some(turn)) => Taken::InTurn { _turn: turn.clone() },
            (None, None) => return Found::Later,
        };
        let room = Room::take(taken, room_bytes, recorder, listener);
        if !bytes.make_room() {
            return Found::NoMemory;
        }
        self.pieces.push_back(Piece { bytes, room });
        Found::Room
    }

    /// Gives back the room that nothing has come into.
    pub(crate) fn give_back_unused(&mut self) {
        if self.pieces.back().is_some_and(|piece| piece.bytes.is_empty()) {
            self.pieces.pop_back();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The piece that is read into, once there is room.
    pub(crate) fn last(&mut self) -> Option<&mut PooledBuffer> {
        self.pieces.back_mut().map(|piece| &mut piece.bytes)
    }

    /// Whether there is nothing that is still to be sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.sent == self.pieces.len()
    }

    /// Takes so many bytes off its end, as many as there are, and puts them before what `tail` holds.
    pub(crate) fn cut_off(&mut self, mut bytes: usize, tail: &mut Vec<u8>) {
        while bytes > 0
            && let Some(last) = self.pieces.back_mut()
        {
            let from = last.bytes.len().saturating_sub(bytes);
            bytes -= last.bytes.len() - from;
            tail.splice(..0, last.bytes[from..].iter().copied());
            last.bytes.truncate(from);
            if from == 0 {
                self.pieces.pop_back();
            }
        }
    }

    /// Nothing more is read into it.
    pub(crate) fn close(&mut self) {
        self.pieces.retain(|piece| !piece.bytes.is_empty());
    }

    /// What is to be sent next; never empty once it is closed.
    pub(crate) fn next(&self) -> Option<&[u8]> {
        self.pieces.get(self.sent).map(|piece| &piece.bytes[self.written..])
    }

    /// All that is there.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| piece.bytes.as_slice())
    }

    /// So many bytes of it were sent.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.written += bytes;
        if self.pieces.get(self.sent).is_some_and(|piece| self.written >= piece.bytes.len()) {
            self.written = 0;
            self.sent += 1;
        }
    }

    /// All of it is to be sent again.
    pub(crate) fn rewind(&mut self) {
        (self.sent, self.written) = (0, 0);
    }

    /// All of it has been sent, by somebody who had a copy.
    pub(crate) fn was_sent(&mut self) {
        (self.sent, self.written) = (self.pieces.len(), 0);
    }

    /// Whether some of it is beyond what all may hold together. What was sent of it is let go at once then, for others
    /// wait.
    pub(crate) fn is_in_turn(&self) -> bool {
        self.pieces.back().is_some_and(|piece| matches!(piece.room.taken, Taken::InTurn { .. }))
    }

    /// Whether it is no longer there from its beginning.
    pub(crate) fn is_partly_gone(&self) -> bool {
        self.is_partly_gone
    }

    /// Lets go what was sent: it is not sent again.
    pub(crate) fn let_go_sent(&mut self) {
        self.is_partly_gone |= self.sent > 0;
        self.pieces.drain(..self.sent);
        self.sent = 0;
    }
}
