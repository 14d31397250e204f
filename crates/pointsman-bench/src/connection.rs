//! One connection: from its first packet to its end, and the requests on it.

use std::io::{self, ErrorKind as Io};
use std::sync::Arc;

use pointsman_tls::in_words;

use crate::clock;
use crate::negotiated::Negotiated;
use crate::plan::Protocol;
use crate::poller::Ready;
use crate::record::ErrorKind;
use crate::request::Requests;
use crate::speech::{Speech, Unspoken};
use crate::transport::Transport;
use crate::users::Users;

/// What one read takes: a few records of TLS.
const SCRATCH_BYTES: usize = 64 * 1024;
/// So many a turn: who sends faster than it is read lets the other connections of a thread, and what falls due there, wait
/// for a fraction of a millisecond.
const READS_A_TURN: usize = 4;

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// When it was due.
    pub(crate) due_ns: u64,
    /// When it was found that there is no connection for it yet; 0: there was one.
    pub(crate) held_ns: u64,
    /// When it was begun: by sending it, or by opening a connection for it.
    pub(crate) begun_ns: u64,
    /// When its first byte was sent; 0 before.
    pub(crate) sent_ns: u64,
    /// When the first byte of its answer came; 0 before.
    pub(crate) first_byte_ns: u64,
    /// Bytes of its answer, head and all; 0 before it is whole.
    pub(crate) answer_bytes: u64,
    /// Of these, those of its body that have come.
    pub(crate) payload_bytes: u64,
    /// Which client of a closed loop waits for it.
    pub(crate) client: Option<u32>,
    /// Which request it is.
    pub(crate) request: u32,
    /// Which it is, from 1; of several threads each has every so manieth number.
    pub(crate) number: u64,
    /// Requests that are due with it on the same connection, itself among them, before each of them is a job of its own.
    pub(crate) pipeline: u32,
    /// Whether it was due in the measured time.
    pub(crate) is_counted: bool,
    /// Whether its connection may have others behind it.
    pub(crate) is_kept: bool,
    /// Whether it was sent behind another whose answer had not come.
    pub(crate) is_pipelined: bool,
    /// Whether its client has nothing else under way.
    pub(crate) is_last: bool,
    /// Whether a server has said before that it did not look at it.
    pub(crate) is_again: bool,
}

impl Job {
    /// One that is not due yet, and that nobody counts.
    pub(crate) fn new(request: u32) -> Job {
        Job {
            due_ns: 0,
            held_ns: 0,
            begun_ns: 0,
            sent_ns: 0,
            first_byte_ns: 0,
            answer_bytes: 0,
            payload_bytes: 0,
            client: None,
            request,
            number: 0,
            pipeline: 1,
            is_counted: false,
            is_kept: true,
            is_pipelined: false,
            is_last: true,
            is_again: false,
        }
    }

    /// How many requests of the measured time it is.
    pub(crate) fn counted(&self) -> u64 {
        u64::from(self.is_counted) * u64::from(self.pipeline)
    }
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Shaking,
    Open,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    transport: Transport,
    stage: Stage,
    speech: Speech,
    pub(crate) origin: usize,
    /// The clients of a closed loop that it belongs to.
    pub(crate) owner: Option<u32>,
    /// Whether it is known as one that has room.
    pub(crate) is_listed: bool,
    /// Whether it is known as one that has more to read.
    pub(crate) is_unread: bool,
    /// The server has closed it, or it broke: there is an end to read.
    has_ended: bool,
    opened_ns: u64,
    connected_ns: u64,
    /// Requests that may still be put on it.
    pub(crate) left: u32,
    /// Whether it had a TLS session to offer.
    offered_session: bool,
}

/// What a connection uses while it has its turn, and what it leaves there.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) requests: Arc<Requests>,
    /// Who asks, where each has something to remember.
    pub(crate) users: Option<Users>,
    /// What places of requests are filled with.
    pub(crate) random: fastrand::Rng,
    scratch: Vec<u8>,
    /// What is to be sent: empty between turns.
    pub(crate) out: Vec<u8>,
    /// A body that is filled in.
    pub(crate) text: Vec<u8>,
    /// Answers that came, oldest first, and their statuses.
    pub(crate) done: Vec<(Job, u16)>,
    /// Requests that have failed alone, and why: their connection goes on.
    pub(crate) failed: Vec<(Job, ErrorKind)>,
    /// Requests that the server has said it did not look at: they may be sent again elsewhere.
    pub(crate) refused: Vec<Job>,
    /// Bytes came behind an answer that had been counted, and nothing was asked for.
    pub(crate) has_stray: bool,
    /// Bytes of answers.
    pub(crate) bytes: u64,
    /// Bytes of their bodies.
    pub(crate) payload: u64,
    /// Bytes of requests.
    pub(crate) bytes_sent: u64,
    /// How long connecting took, if that is done now.
    pub(crate) connect_ns: Option<u64>,
    /// How long its handshake took, and what it agreed on, if that is done now.
    pub(crate) shaken: Option<(u64, Negotiated)>,
}

/// What is left of a connection that has ended.
#[derive(Debug)]
pub(crate) struct Parts {
    speech: Speech,
}

impl Parts {
    /// Of a connection that there never was.
    pub(crate) fn new(protocol: Protocol) -> Parts {
        Parts { speech: Speech::new(protocol) }
    }
}

/// How a turn ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The connection goes on.
    Goes,
    /// The same, and there may be more to read, which nobody is told of once more.
    Unread,
    /// The server has ended it.
    Ended,
    /// It has failed; what is wrong with a handshake, in the library's words.
    Failed(ErrorKind, Option<String>),
}

impl Turn {
    pub(crate) fn new(requests: Arc<Requests>, random: fastrand::Rng) -> Turn {
        Turn {
            requests,
            users: None,
            random,
            scratch: vec![0; SCRATCH_BYTES],
            out: Vec::new(),
            text: Vec::new(),
            done: Vec::new(),
            failed: Vec::new(),
            refused: Vec::new(),
            has_stray: false,
            bytes: 0,
            payload: 0,
            bytes_sent: 0,
            connect_ns: None,
            shaken: None,
        }
    }
}

impl Connection {
    pub(crate) fn new(
        transport: Transport,
        parts: Parts,
        origin: usize,
        (left, streams): (u32, u32),
        now_ns: u64,
        offered_session: bool,
    ) -> Connection {
        let Parts { mut speech } = parts;
        speech.reset(streams, now_ns);
        Connection {
            transport,
            stage: Stage::Connecting,
            speech,
            origin,
            owner: None,
            is_listed: false,
            is_unread: false,
            has_ended: false,
            opened_ns: now_ns,
            connected_ns: now_ns,
            left,
            offered_session,
        }
    }

    pub(crate) fn socket(&self) -> &std::net::TcpStream {
        &self.transport.socket
    }

    /// Whether its handshake is done.
    pub(crate) fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Whether another request may be put on it at all, now or later.
    pub(crate) fn goes_on(&self) -> bool {
        self.left > 0 && self.speech.goes_on()
    }

    /// Whether a request that is put on it waits for no other there.
    pub(crate) fn has_room(&self) -> bool {
        self.goes_on() && self.speech.has_room()
    }

    /// Requests under way on it.
    pub(crate) fn under_way(&self) -> usize {
        self.speech.len()
    }

    /// Whether no request is under way on it.
    pub(crate) fn is_quiet(&self) -> bool {
        self.speech.len() == 0
    }

    /// Whether the server has said that it answers nothing more here: it has not begun with what is under way.
    pub(crate) fn has_had_last(&self) -> bool {
        self.speech.has_had_last()
    }

    /// Puts requests on it. They are sent at once where the connection is open.
    pub(crate) fn ask(&mut self, jobs: &[Job], now_ns: u64, turn: &mut Turn) -> Result<(), ErrorKind> {
        self.left = self.left.saturating_sub(jobs.len() as u32);
        jobs.iter().for_each(|job| self.speech.ask(*job));
        if self.stage != Stage::Open {
            return Ok(());
        }
        self.speech.write(now_ns, turn);
        self.send(turn).map_err(|error| kind_of(&error))
    }

    /// Whether something on it began so long ago.
    pub(crate) fn is_late(&self, begun_by_ns: u64) -> bool {
        self.speech.is_late(begun_by_ns)
    }

    /// Cancels what on it began so long ago. False: the connection is of no use any more.
    pub(crate) fn cut_late(&mut self, begun_by_ns: u64, turn: &mut Turn) -> bool {
        self.speech.cut_late(begun_by_ns, turn) && self.send(turn).is_ok()
    }

    /// All requests on it, which will have no answer here.
    pub(crate) fn give_up(&mut self, jobs: &mut Vec<Job>) {
        self.speech.give_up(jobs);
    }

    /// Does what can be done now.
    pub(crate) fn on_ready(&mut self, ready: Ready, now_ns: u64, turn: &mut Turn) -> End {
        let advanced = self.advance(ready, now_ns, turn);
        // What a connection that fails would have said is nothing for the next one.
        turn.out.clear();
        match advanced {
            Ok(end) => end,
            Err(Trouble::Socket(error)) if self.stage == Stage::Connecting => {
                let kind =
                    if kind_of(&error) == ErrorKind::Ports { ErrorKind::Ports } else { ErrorKind::Connect };
                End::Failed(kind, None)
            }
            Err(Trouble::Socket(error)) => End::Failed(kind_of(&error), None),
            Err(Trouble::Tls(error)) => {
                // The server is told why, where it still listens.
                let (Ok(()) | Err(_)) = self.transport.flush();
                let kind = if is_unasked(&error) { ErrorKind::Unasked } else { ErrorKind::Tls };
                End::Failed(kind, Some(in_words(&error)))
            }
            Err(Trouble::Protocol) => {
                let words = format!("the server did not agree on `{}`", self.speech.protocol().alpn());
                End::Failed(ErrorKind::Tls, Some(words))
            }
            Err(Trouble::Speech(Unspoken::Malformed)) => End::Failed(ErrorKind::Malformed, None),
            Err(Trouble::Speech(Unspoken::Flooded)) => End::Failed(ErrorKind::Flooded, None),
        }
    }

    fn advance(&mut self, ready: Ready, now_ns: u64, turn: &mut Turn) -> Result<End, Trouble> {
        let was_open = self.stage == Stage::Open;
        self.has_ended |= ready.ended;
        if self.stage == Stage::Connecting {
            if ready.ended
                && let Some(error) = self.transport.socket.take_error()?
            {
                return Err(Trouble::Socket(error));
            }
            if !ready.writable {
                return Ok(End::Goes);
            }
            self.connected_ns = now_ns;
            turn.connect_ns = Some(now_ns - self.opened_ns);
            self.stage = if self.transport.tls.is_none() { Stage::Open } else { Stage::Shaking };
        }
        if ready.writable {
            self.transport.flush()?;
        }
        let end = if ready.readable { self.read(now_ns, turn)? } else { End::Goes };
        if !was_open && self.stage == Stage::Open {
            self.speech.write(clock::now_ns(), turn);
        }
        self.send(turn)?;
        Ok(end)
    }

    /// Sends what the turn has written.
    fn send(&mut self, turn: &mut Turn) -> io::Result<()> {
        if turn.out.is_empty() {
            return Ok(());
        }
        turn.bytes_sent += turn.out.len() as u64;
        let sent = self.transport.send(&turn.out);
        turn.out.clear();
        sent
    }

    /// Reads what is there, or as much of it as a turn may.
    fn read(&mut self, now_ns: u64, turn: &mut Turn) -> Result<End, Trouble> {
        let mut scratch = std::mem::take(&mut turn.scratch);
        let result = self.read_through(&mut scratch, now_ns, turn);
        turn.scratch = scratch;
        result
    }

    fn read_through(&mut self, scratch: &mut [u8], now_ns: u64, turn: &mut Turn) -> Result<End, Trouble> {
        for _ in 0..READS_A_TURN {
            match self.transport.read(scratch) {
                Ok(0) => {
                    self.speech.end(turn);
                    return Ok(End::Ended);
                }
                Ok(count) => {
                    if self.take(&scratch[..count], now_ns, turn)? {
                        self.speech.end(turn);
                        return Ok(End::Ended);
                    }
                    // A short read empties the socket, and more is a new edge; an end that has come already is not.
                    if count < scratch.len() && !self.has_ended {
                        return Ok(End::Goes);
                    }
                }
                Err(error) if error.kind() == Io::WouldBlock => return Ok(End::Goes),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(End::Unread)
    }

    /// Whether the server has said that no more comes: that is as good as the end of the connection, which need not come behind it.
    fn take(&mut self, bytes: &[u8], now_ns: u64, turn: &mut Turn) -> Result<bool, Trouble> {
        let Some(mut tls) = self.transport.tls.take() else {
            return self.take_plain(bytes, now_ns, turn).map(|()| false);
        };
        let is_last = self.take_tls(&mut tls, bytes, now_ns, turn);
        self.transport.tls = Some(tls);
        // A handshake goes on with what we have to say. Who has said its last need not hear it.
        match (is_last?, self.transport.flush()) {
            (false, Err(error)) => Err(error.into()),
            (is_last, _) => Ok(is_last),
        }
    }

    fn take_tls(
        &mut self,
        tls: &mut rustls::ClientConnection,
        mut bytes: &[u8],
        now_ns: u64,
        turn: &mut Turn,
    ) -> Result<bool, Trouble> {
        use std::io::BufRead;
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes)?;
            let state = tls.process_new_packets().map_err(Trouble::Tls)?;
            if self.stage == Stage::Shaking && !tls.is_handshaking() {
                self.stage = Stage::Open;
                let negotiated = Negotiated::of(tls, self.offered_session);
                turn.shaken = Some((now_ns - self.connected_ns, negotiated));
                if !self.speech.protocol().is_agreed_by(negotiated.protocol) {
                    return Err(Trouble::Protocol);
                }
            }
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let mut reader = tls.reader();
                let plain = reader.fill_buf()?;
                let count = plain.len();
                self.take_plain(plain, now_ns, turn)?;
                tls.reader().consume(count);
                left -= count;
            }
            if state.peer_has_closed() {
                // What is behind its farewell is nothing (RFC 8446 section 6.1), and the library takes none of it.
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn take_plain(&mut self, bytes: &[u8], now_ns: u64, turn: &mut Turn) -> Result<(), Trouble> {
        turn.bytes += bytes.len() as u64;
        self.speech.feed(bytes, now_ns, turn).map_err(Trouble::Speech)
    }

    /// Takes it apart. Its jobs are the caller's by now.
    pub(crate) fn close(mut self, how: crate::Close) -> Parts {
        if how == crate::Close::Fin && self.stage == Stage::Open {
            let mut last_words = Vec::new();
            self.speech.leave(&mut last_words);
            // Who is gone does not hear them.
            let (Ok(()) | Err(_)) = self.transport.send(&last_words);
        }
        self.transport.close(how);
        Parts { speech: self.speech }
    }
}

/// Whether the server went on with something that it was not offered. With TLS 1.2 it leaves its certificate out and says
/// that its keys are in use, as for a session that is resumed; with 1.3 it names a key, or an extension, that we did not.
fn is_unasked(error: &rustls::Error) -> bool {
    use rustls::{ContentType, Error, PeerMisbehaved};
    matches!(
        error,
        Error::InappropriateMessage { got_type: ContentType::ChangeCipherSpec, .. }
            | Error::PeerMisbehaved(
                PeerMisbehaved::SelectedUnofferedPsk | PeerMisbehaved::UnsolicitedServerHelloExtension
            )
    )
}

enum Trouble {
    Socket(io::Error),
    Tls(rustls::Error),
    /// The handshake agreed on another protocol than is spoken.
    Protocol,
    Speech(Unspoken),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Socket(error)
    }
}

/// What an error of a socket means to a request.
pub(crate) fn kind_of(error: &io::Error) -> ErrorKind {
    use rustix::io::Errno;
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => ErrorKind::Ports,
        Some(Errno::MFILE | Errno::NFILE) => ErrorKind::Descriptors,
        Some(Errno::CONNREFUSED | Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::ACCESS) => {
            ErrorKind::Connect
        }
        Some(Errno::TIMEDOUT) => ErrorKind::Timeout,
        Some(Errno::PIPE) => ErrorKind::Closed,
        _ => ErrorKind::Reset,
    }
}

#[cfg(test)]
mod tests;
