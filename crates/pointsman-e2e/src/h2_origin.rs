//! A server of HTTP/2 by hand: it can answer what no library would.

use std::collections::HashMap;
use std::io::{ErrorKind, Result, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crate::h2_windows::Windows;
use crate::h2_wire::{PAYLOAD_BYTES_MAX, PREFACE, fields, flag, kind, section, unpadded};
use crate::tls_server::Line;
use crate::{Decoder, Field, Frame, PATIENCE, RawOrigin, TlsServer, read_some};

/// A server behind the switch that speaks HTTP/2, each connection on a thread of its own.
pub struct H2Origin {
    origin: RawOrigin,
    seen: Arc<Seen>,
}

/// A request as far as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct H2Request {
    /// The number of its connection, from 0.
    pub connection: usize,
    /// Its stream.
    pub stream: u32,
    /// The fields of its head, those with a colon among them.
    pub fields: Vec<Field>,
    /// Its content.
    pub body: Vec<u8>,
    /// The fields behind it.
    pub trailers: Vec<Field>,
    /// Whether all of it came.
    pub is_whole: bool,
    /// With which code it was reset.
    pub reset: Option<u32>,
}

impl H2Request {
    /// The first value of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        let (_, value) = self.fields.iter().find(|(other, _)| other == name.as_bytes())?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// Its path and query.
    #[must_use]
    pub fn path(&self) -> String {
        self.field(":path").unwrap_or_default()
    }
}

#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    requests: Vec<H2Request>,
    /// Code and last stream of the GOAWAY that came on a connection before its end.
    ends: HashMap<usize, Option<(u32, u32)>>,
    starts: HashMap<usize, Vec<u8>>,
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic under the lock")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

impl H2Origin {
    /// Serves each connection so, behind the preface and settings; what the script leaves unread is read to the end of
    /// the connection, unless it cuts it.
    #[must_use]
    pub fn serving(
        settings: &'static [(u16, u32)],
        script: impl Fn(&mut H2Peer) + Send + Sync + 'static,
    ) -> Self {
        Self::start(None, settings, script)
    }

    /// The same over TLS.
    #[must_use]
    pub fn secured(
        tls: &TlsServer,
        settings: &'static [(u16, u32)],
        script: impl Fn(&mut H2Peer) + Send + Sync + 'static,
    ) -> Self {
        Self::start(Some(tls.clone()), settings, script)
    }

    /// Answers every request with 200 and its path as soon as it is whole.
    #[must_use]
    pub fn echoing(settings: &'static [(u16, u32)]) -> Self {
        Self::serving(settings, H2Peer::echo)
    }

    fn start(
        tls: Option<TlsServer>,
        settings: &'static [(u16, u32)],
        script: impl Fn(&mut H2Peer) + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::new(Seen::default());
        let theirs = seen.clone();
        let origin = RawOrigin::serving(move |socket, number| {
            socket.set_nodelay(true).expect("an open socket");
            let Ok((line, _)) = Line::open(socket, tls.as_ref()) else { return };
            let mut peer = H2Peer::new(line, number, theirs.clone());
            if peer.begin(settings).is_ok() {
                script(&mut peer);
                if !peer.is_cut {
                    peer.wait(|_| false);
                }
            }
            let goaway = peer.goaway;
            drop(peer);
            theirs.change(|state| {
                state.ends.insert(number, goaway);
            });
        });
        Self { origin, seen }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.origin.address()
    }

    /// How many connections it accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.origin.connections()
    }

    /// Every request whose head came, as far as the script has read.
    #[must_use]
    pub fn requests(&self) -> Vec<H2Request> {
        self.seen.lock().requests.clone()
    }

    /// The last request.
    ///
    /// # Panics
    /// When there was none.
    #[must_use]
    pub fn last(&self) -> H2Request {
        self.requests().pop().expect("a request")
    }

    /// What came on a connection before the preface.
    #[must_use]
    pub fn start_of(&self, connection: usize) -> Vec<u8> {
        self.seen.lock().starts.get(&connection).cloned().unwrap_or_default()
    }

    /// Waits until so many heads have come.
    ///
    /// # Panics
    /// When they do not in time.
    pub fn wait_for_requests(&self, count: usize) {
        self.wait(&format!("{count} requests"), |state| state.requests.len() >= count);
    }

    /// Waits for the end of a connection. Returns the last stream and the code of the GOAWAY that came on it.
    ///
    /// # Panics
    /// When it goes on.
    pub fn wait_for_end(&self, connection: usize) -> Option<(u32, u32)> {
        self.wait(&format!("the end of {connection}"), |state| state.ends.contains_key(&connection));
        self.seen.lock().ends[&connection]
    }

    fn wait(&self, what: &str, ready: impl Fn(&State) -> bool) {
        let state = self.seen.lock();
        let waited = self.seen.changed.wait_timeout_while(state, PATIENCE, |state| !ready(state));
        assert!(!waited.expect("no panic under the lock").1.timed_out(), "waited for {what}");
    }
}

/// A connection as its server has it.
pub struct H2Peer {
    /// The number of the connection, from 0.
    pub number: usize,
    line: Line,
    came: Vec<u8>,
    decoder: Decoder,
    windows: Windows,
    /// A block whose end is to come: its stream, whether it ends the stream, its bytes.
    block: Option<(u32, bool, Vec<u8>)>,
    requests: Vec<H2Request>,
    /// How many of them were handed out.
    taken: usize,
    /// How many of them were answered in full.
    answered: usize,
    pongs: usize,
    goaway: Option<(u32, u32)>,
    seen: Arc<Seen>,
    gives_no_window: bool,
    is_cut: bool,
}

impl H2Peer {
    fn new(line: Line, number: usize, seen: Arc<Seen>) -> Self {
        Self {
            number,
            line,
            came: Vec::new(),
            decoder: Decoder::default(),
            windows: Windows::default(),
            block: None,
            requests: Vec::new(),
            taken: 0,
            answered: 0,
            pongs: 0,
            goaway: None,
            seen,
            gives_no_window: false,
            is_cut: false,
        }
    }

    /// Reads to the end of the preface, and says what it takes.
    fn begin(&mut self, settings: &[(u16, u32)]) -> Result<()> {
        let end = loop {
            if let Some(at) = self.came.windows(PREFACE.len()).position(|bytes| bytes == PREFACE) {
                break at;
            }
            self.more()?;
        };
        let start: Vec<u8> = self.came.drain(..end + PREFACE.len()).take(end).collect();
        let number = self.number;
        self.seen.change(|state| {
            state.starts.insert(number, start);
        });
        self.send(&Frame::settings(settings));
        Ok(())
    }

    /// Sends a frame; the switch may have closed.
    pub fn send(&mut self, frame: &Frame) -> bool {
        self.send_bytes(&frame.bytes())
    }

    /// Sends bytes; the switch may have closed, which it says.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> bool {
        self.line.write_all(bytes).and_then(|()| self.line.flush()).is_ok()
    }

    /// How much content of a stream may be sent now.
    #[must_use]
    pub fn room(&self, stream: u32) -> usize {
        self.windows.room(stream)
    }

    /// Content gives no room for more from now on.
    pub fn give_no_window(&mut self) {
        self.gives_no_window = true;
    }

    /// The next request, when its head has come; none at the end of the connection.
    pub fn next_head(&mut self) -> Option<H2Request> {
        let taken = self.taken;
        self.wait(|peer| peer.requests.len() > taken).then(|| {
            self.taken += 1;
            self.requests[taken].clone()
        })
    }

    /// The next request, when all of it has come.
    pub fn next_whole(&mut self) -> Option<H2Request> {
        let stream = self.next_head()?.stream;
        self.wait(|peer| peer.request(stream).is_whole).then(|| self.request(stream).clone())
    }

    /// Takes frames until all that was sent up to now has been read. Says how many requests are open.
    pub fn turn(&mut self) -> usize {
        let heard = self.pongs;
        self.send(&Frame::ping(*b"are you?"));
        self.wait(|peer| peer.pongs > heard);
        self.requests.len() - self.answered
    }

    /// A request as far as it has come.
    ///
    /// # Panics
    /// When nothing of it has.
    #[must_use]
    pub fn request(&self, stream: u32) -> &H2Request {
        self.requests.iter().find(|request| request.stream == stream).expect("its head came")
    }

    /// Whether the switch has said with a GOAWAY that it ends the connection.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.goaway.is_some()
    }

    /// Sends the head of an answer, whose content follows.
    pub fn head(&mut self, stream: u32, status: &str, more: &[(&str, &str)]) -> bool {
        self.block(stream, 0, status, more)
    }

    /// Sends an answer.
    pub fn answer(&mut self, stream: u32, status: &str, more: &[(&str, &str)], body: &[u8]) -> bool {
        self.answered += 1;
        if body.is_empty() {
            return self.block(stream, flag::END_STREAM, status, more);
        }
        self.block(stream, 0, status, more) && self.content(stream, body, flag::END_STREAM)
    }

    /// Sends content as fast as the switch gives leave, and with the last of it `flags`.
    pub fn content(&mut self, stream: u32, body: &[u8], flags: u8) -> bool {
        let mut rest = body;
        while !rest.is_empty() {
            if self.windows.room(stream) == 0 && !self.wait(|peer| peer.windows.room(stream) > 0) {
                return false;
            }
            let (now, later) =
                rest.split_at(rest.len().min(PAYLOAD_BYTES_MAX).min(self.windows.room(stream)));
            self.windows.spend(stream, now.len());
            let flags = if later.is_empty() { flags } else { 0 };
            if !self.send(&Frame::data(stream, flags, now)) {
                return false;
            }
            rest = later;
        }
        true
    }

    /// Says that streams behind `last` were not looked at, and that no new ones are.
    pub fn send_goaway(&mut self, last: u32, code: u32) {
        let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
        self.send(&Frame::new(kind::GOAWAY, 0, 0, payload));
    }

    /// Ends the connection behind the script without a word, whatever is still to come on it.
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Answers every request with 200 and its path, as soon as it is whole.
    pub fn echo(&mut self) {
        while let Some(request) = self.next_whole() {
            let path = request.path();
            self.answer(request.stream, "200", &[], path.as_bytes());
        }
    }

    /// Takes frames until this holds; false when the connection ends before.
    pub fn wait(&mut self, holds: impl Fn(&Self) -> bool) -> bool {
        while !holds(self) {
            let frame = loop {
                if let Some(frame) = Frame::take_from(&mut self.came) {
                    break frame;
                }
                if self.more().is_err() {
                    return false;
                }
            };
            if self.take(&frame).is_none() {
                return false;
            }
        }
        true
    }

    fn block(&mut self, stream: u32, flags: u8, status: &str, more: &[(&str, &str)]) -> bool {
        let all = [&[(":status", status)], more].concat();
        self.send_bytes(&section(stream, flags, &fields(&all)))
    }

    fn more(&mut self) -> Result<()> {
        let mut space = [0; 64 * 1024];
        match read_some(&mut self.line, &mut space)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.came.extend_from_slice(&space[..count]);
                Ok(())
            }
        }
    }

    /// Makes of a frame what a server makes of it.
    fn take(&mut self, frame: &Frame) -> Option<()> {
        self.windows.hear(frame).ok()?;
        match frame.kind {
            kind::SETTINGS if !frame.has(flag::ACK) => {
                self.send(&Frame::new(kind::SETTINGS, flag::ACK, 0, []));
            }
            kind::PING if !frame.has(flag::ACK) => {
                self.send(&Frame::new(kind::PING, flag::ACK, 0, frame.payload.clone()));
            }
            kind::PING => self.pongs += 1,
            kind::GOAWAY => self.goaway = Some((frame.number(0).ok()?, frame.number(4).ok()?)),
            kind::RST_STREAM => {
                let code = frame.number(0).ok()?;
                self.change(frame.stream, |request| request.reset = Some(code));
            }
            kind::DATA => {
                let length = u32::try_from(frame.payload.len()).expect("24 bits");
                if length > 0 && !self.gives_no_window {
                    self.send(&Frame::window_update(0, length));
                    self.send(&Frame::window_update(frame.stream, length));
                }
                self.change(frame.stream, |request| {
                    request.body.extend_from_slice(unpadded(frame));
                    request.is_whole = frame.has(flag::END_STREAM);
                });
            }
            kind::HEADERS | kind::CONTINUATION => self.take_block(frame)?,
            _ => {}
        }
        Some(())
    }

    fn take_block(&mut self, frame: &Frame) -> Option<()> {
        let (stream, ends, mut bytes) =
            self.block.take().unwrap_or((frame.stream, frame.has(flag::END_STREAM), Vec::new()));
        bytes.extend_from_slice(if frame.kind == kind::HEADERS { unpadded(frame) } else { &frame.payload });
        if !frame.has(flag::END_HEADERS) {
            self.block = Some((stream, ends, bytes));
            return Some(());
        }
        let fields = self.decoder.read(&bytes)?;
        if self.requests.iter().any(|request| request.stream == stream) {
            self.change(stream, |request| (request.trailers, request.is_whole) = (fields, ends));
        } else {
            let connection = self.number;
            let request = H2Request { connection, stream, fields, is_whole: ends, ..H2Request::default() };
            self.requests.push(request.clone());
            self.seen.change(|state| state.requests.push(request));
        }
        Some(())
    }

    fn change(&mut self, stream: u32, change: impl FnOnce(&mut H2Request)) {
        let Some(request) = self.requests.iter_mut().find(|request| request.stream == stream) else { return };
        change(request);
        let (request, number) = (request.clone(), self.number);
        self.seen.change(|state| {
            let known = |other: &&mut H2Request| other.connection == number && other.stream == stream;
            if let Some(seen) = state.requests.iter_mut().find(known) {
                *seen = request;
            }
        });
    }
}
