//! One connection: from its first packet to its end, and the requests on it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind as Io};

use pointsman_http::AnswerTo;

use crate::follow::{Answered, Follow};
use crate::negotiated::Negotiated;
use crate::poller::Ready;
use crate::record::ErrorKind;
use crate::transport::Transport;

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// When it was due.
    pub(crate) due_ns: u64,
    /// When it was begun: by sending it, or by opening a connection for it.
    pub(crate) begun_ns: u64,
    /// When its first byte was sent; 0 before.
    pub(crate) sent_ns: u64,
    /// When the first byte of its answer came; 0 before.
    pub(crate) first_byte_ns: u64,
    /// Which client of a closed loop waits for it.
    pub(crate) client: Option<u32>,
    /// Which request it is.
    pub(crate) request: u32,
    /// Whether it was due in the measured time.
    pub(crate) is_counted: bool,
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
    follow: Follow,
    /// In the order in which they were sent.
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) origin: usize,
    /// The client of a closed loop that it belongs to.
    pub(crate) owner: Option<u32>,
    pub(crate) opened_ns: u64,
    connected_ns: u64,
    /// Requests that may still be sent on it.
    pub(crate) left: u32,
    /// Whether it had a TLS session to offer.
    offered_session: bool,
}

/// What a connection uses while it has its turn, and what it leaves there.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) scratch: Vec<u8>,
    /// Answers that came, oldest first.
    pub(crate) done: Vec<(Job, Answered)>,
    /// Bytes of answers.
    pub(crate) bytes: u64,
    /// How long connecting took, if that is done now.
    pub(crate) connect_ns: Option<u64>,
    /// How long its handshake took, and what it agreed on, if that is done now.
    pub(crate) shaken: Option<(u64, Negotiated)>,
}

/// What is left of a connection that has ended.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    follow: Follow,
    jobs: VecDeque<Job>,
}

/// How a turn ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The connection goes on, and has become able to take a request if this says so.
    Goes { became_open: bool },
    /// The server has ended it.
    Ended,
    /// It has failed; what is wrong with a handshake, in the library's words.
    Failed(ErrorKind, Option<String>),
}

impl Turn {
    pub(crate) fn new() -> Turn {
        // What one read takes: a few records of TLS.
        const SCRATCH_BYTES: usize = 64 * 1024;
        Turn { scratch: vec![0; SCRATCH_BYTES], done: Vec::new(), bytes: 0, connect_ns: None, shaken: None }
    }
}

impl Connection {
    pub(crate) fn new(
        transport: Transport,
        parts: Parts,
        (origin, left): (usize, u32),
        now_ns: u64,
        offered_session: bool,
    ) -> Connection {
        let Parts { mut follow, jobs } = parts;
        follow.reset();
        let stage = Stage::Connecting;
        Connection {
            transport,
            stage,
            follow,
            jobs,
            origin,
            owner: None,
            opened_ns: now_ns,
            connected_ns: now_ns,
            left,
            offered_session,
        }
    }

    pub(crate) fn socket(&self) -> &std::net::TcpStream {
        &self.transport.socket
    }

    pub(crate) fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Sends a request. The caller has put its job behind the others.
    pub(crate) fn send(&mut self, request: &[u8]) -> Result<(), ErrorKind> {
        self.left = self.left.saturating_sub(1);
        self.transport.send(request).map_err(|error| kind_of(&error))
    }

    /// Does what can be done now. `is_head` says of a request whether its answers have no body.
    pub(crate) fn on_ready(
        &mut self,
        ready: Ready,
        now_ns: u64,
        turn: &mut Turn,
        is_head: impl Fn(&Job) -> bool,
    ) -> End {
        match self.advance(ready, now_ns, turn, &is_head) {
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
                End::Failed(ErrorKind::Tls, Some(error.to_string()))
            }
            Err(Trouble::Malformed) => End::Failed(ErrorKind::Malformed, None),
        }
    }

    fn advance(
        &mut self,
        ready: Ready,
        now_ns: u64,
        turn: &mut Turn,
        is_head: &impl Fn(&Job) -> bool,
    ) -> Result<End, Trouble> {
        let mut became_open = false;
        if self.stage == Stage::Connecting {
            if ready.ended
                && let Some(error) = self.transport.socket.take_error()?
            {
                return Err(Trouble::Socket(error));
            }
            if !ready.writable {
                return Ok(End::Goes { became_open });
            }
            self.connected_ns = now_ns;
            turn.connect_ns = Some(now_ns - self.opened_ns);
            became_open = self.transport.tls.is_none();
            self.stage = if became_open { Stage::Open } else { Stage::Shaking };
        }
        if ready.writable {
            self.transport.flush()?;
        }
        if ready.readable {
            let was_open = self.is_open();
            if !self.read(ready.ended, now_ns, turn, is_head)? {
                return Ok(End::Ended);
            }
            became_open |= !was_open && self.is_open();
        }
        Ok(End::Goes { became_open })
    }

    /// Reads what is there. False: the server has ended the connection.
    fn read(
        &mut self,
        ended: bool,
        now_ns: u64,
        turn: &mut Turn,
        is_head: &impl Fn(&Job) -> bool,
    ) -> Result<bool, Trouble> {
        let mut scratch = std::mem::take(&mut turn.scratch);
        let result = loop {
            match self.transport.read(&mut scratch) {
                Ok(0) => break self.end(turn),
                Ok(count) => {
                    if let Err(trouble) = self.take(&scratch[..count], now_ns, turn, is_head) {
                        break Err(trouble);
                    }
                    // A short read empties the socket, and more is a new edge; an end that has come already is not.
                    if count < scratch.len() && !ended {
                        break Ok(true);
                    }
                }
                Err(error) if error.kind() == Io::WouldBlock => break Ok(true),
                Err(error) => break Err(error.into()),
            }
        };
        turn.scratch = scratch;
        result
    }

    /// The server sends no more.
    fn end(&mut self, turn: &mut Turn) -> Result<bool, Trouble> {
        if let Some(answered) = self.follow.end()
            && let Some(job) = self.jobs.pop_front()
        {
            turn.done.push((job, answered));
        }
        Ok(false)
    }

    fn take(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        turn: &mut Turn,
        is_head: &impl Fn(&Job) -> bool,
    ) -> Result<(), Trouble> {
        let Some(mut tls) = self.transport.tls.take() else {
            return self.take_plain(bytes, now_ns, turn, is_head);
        };
        let outcome = self.take_tls(&mut tls, bytes, now_ns, turn, is_head);
        self.transport.tls = Some(tls);
        outcome?;
        // A handshake goes on with what we have to say.
        Ok(self.transport.flush()?)
    }

    fn take_tls(
        &mut self,
        tls: &mut rustls::ClientConnection,
        mut bytes: &[u8],
        now_ns: u64,
        turn: &mut Turn,
        is_head: &impl Fn(&Job) -> bool,
    ) -> Result<(), Trouble> {
        use std::io::BufRead;
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes)?;
            let state = tls.process_new_packets().map_err(Trouble::Tls)?;
            if self.stage == Stage::Shaking && !tls.is_handshaking() {
                self.stage = Stage::Open;
                let negotiated = Negotiated::of(tls, self.offered_session);
                turn.shaken = Some((now_ns - self.connected_ns, negotiated));
            }
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let mut reader = tls.reader();
                let plain = reader.fill_buf()?;
                let count = plain.len();
                self.take_plain(plain, now_ns, turn, is_head)?;
                tls.reader().consume(count);
                left -= count;
            }
        }
        Ok(())
    }

    fn take_plain(
        &mut self,
        mut bytes: &[u8],
        now_ns: u64,
        turn: &mut Turn,
        is_head: &impl Fn(&Job) -> bool,
    ) -> Result<(), Trouble> {
        turn.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let Some(job) = self.jobs.front_mut() else { return Err(Trouble::Malformed) };
            if job.first_byte_ns == 0 {
                job.first_byte_ns = now_ns;
            }
            let to = if is_head(job) { AnswerTo::Head } else { AnswerTo::Other };
            let (used, answered) = self.follow.feed(bytes, to).map_err(|_| Trouble::Malformed)?;
            bytes = &bytes[used..];
            if let Some(answered) = answered {
                turn.done.extend(self.jobs.pop_front().map(|job| (job, answered)));
            }
        }
        Ok(())
    }

    /// Takes it apart. Its jobs are the caller's by now.
    pub(crate) fn close(mut self, how: crate::Close) -> Parts {
        self.transport.close(how);
        self.jobs.clear();
        Parts { follow: self.follow, jobs: self.jobs }
    }
}

enum Trouble {
    Socket(io::Error),
    Tls(rustls::Error),
    Malformed,
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
