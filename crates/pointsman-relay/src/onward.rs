//! A request as a server is sent it: its head edited, and what had arrived of its body.
//!
//! A head that only gets more lines goes on in the buffer that it came in.

use std::net::SocketAddr;
use std::ops::Range;

use pointsman_config::{ForwardedMode, Listener};
use pointsman_http::{BodyReader, HeaderKind, HeaderLine, RequestHead, TargetForm};
use pointsman_net::PooledBuffer;
use pointsman_telemetry::TraceContext;
use pointsman_view::{
    Forwarding, ForwardingModes, NormalPath, Peer, add_forwarding_lines, default_authority, without_cookie,
};

use crate::commit::Committed;
use crate::fault::Fault;
use crate::pick::ROUTE_COOKIE;
use crate::trailers::TrailerFilter;

/// Names of the fields of W3C Trace Context.
pub(crate) const TRACE_PARENT: &[u8] = b"traceparent";
const TRACE_STATE: &[u8] = b"tracestate";

/// What a head that is passed on has at most besides its old and its new lines: a version, line ends, and a space in
/// each of its old lines that is put right.
pub(crate) fn other_bytes(lines: &[HeaderLine]) -> usize {
    const FIRST_AND_LAST_LINE: usize = 32;
    FIRST_AND_LAST_LINE + lines.len()
}

/// What had arrived of a body with its head.
pub(crate) struct Arrived {
    /// Where the body goes on.
    pub(crate) body: BodyReader,
    /// Bytes of the received buffer that belong to the request.
    pub(crate) used: usize,
    /// Trailers among those bytes, in place of which `trailers` go.
    pub(crate) cut: Range<usize>,
    /// Whole lines.
    pub(crate) trailers: Vec<u8>,
    pub(crate) filter: TrailerFilter,
}

impl Arrived {
    /// `used` bytes, as they are.
    pub(crate) fn whole(body: BodyReader, used: usize, filter: TrailerFilter) -> Arrived {
        Arrived { body, used, cut: used..used, trailers: Vec::new(), filter }
    }

    /// Appends the bytes from `start` on that are forwarded.
    pub(crate) fn write_from(&self, start: usize, received: &[u8], message: &mut Vec<u8>) {
        message.extend_from_slice(&received[start..self.cut.start]);
        message.extend_from_slice(&self.trailers);
        message.extend_from_slice(&received[self.cut.end..self.used]);
    }
}

/// A request with the room its edited head is made in.
pub(crate) struct Request<'a> {
    pub(crate) head: &'a mut RequestHead,
    pub(crate) received: &'a [u8],
    /// Room behind what was received, in the same buffer.
    pub(crate) room_bytes: usize,
    pub(crate) target: &'a mut Vec<u8>,
    pub(crate) lines: &'a mut Vec<u8>,
    pub(crate) peer: Peer,
    /// Where the client connected to; nothing on a Unix socket.
    pub(crate) arrived_at: Option<SocketAddr>,
    pub(crate) normal: NormalPath<'a>,
}

impl Request<'_> {
    /// Marks what is taken out of the head, and makes the lines that are added.
    pub(crate) fn edit_head(
        &mut self,
        listener: &Listener,
        uses_route_cookie: bool,
        trace: Option<&TraceContext>,
        committed: &Committed<'_>,
    ) {
        self.lines.clear();
        let modes = ForwardingModes {
            x_forwarded: forwarding(listener.x_forwarded),
            forwarded: forwarding(listener.forwarded),
        };
        add_forwarding_lines(self.head, self.received, &self.peer, modes, self.lines);
        if uses_route_cookie {
            self.hide_route_cookie();
        }
        if !self.head.lines().iter().any(|line| line.kind == HeaderKind::Host) {
            self.add_host();
        }
        if let Some(hops) = self.head.max_forwards(self.received) {
            let counts = self.head.lines_mut().iter_mut().filter(|line| line.kind == HeaderKind::MaxForwards);
            counts.for_each(|line| line.dropped = true);
            self.lines.extend_from_slice(format!("Max-Forwards: {}\r\n", hops.saturating_sub(1)).as_bytes());
        }
        if let Some(trace) = trace {
            self.goes_on_in(trace);
        }
        if !committed.request.is_empty() {
            committed.request.drop_lines(self.head.lines_mut(), self.received);
            committed.request.strip(self.lines);
            committed.request.write(self.lines);
        }
    }

    /// Whether nothing stands in the buffer but a head that only lines are added to, and there is room for them.
    pub(crate) fn passes_in_its_buffer(&self, committed: &Committed<'_>) -> bool {
        let has_target = committed.path.is_none() && self.has_target_as_received();
        has_target
            && self.head.passes_as_it_came()
            && self.received.len() == self.head.head_bytes()
            && self.lines.len() <= self.room_bytes
    }

    fn has_target_as_received(&self) -> bool {
        !self.normal.is_rewritten() && self.head.form() == TargetForm::Origin
    }

    /// Writes the edited head into `message`, for which there is room, with what had arrived of the body, too.
    pub(crate) fn write_head(
        &mut self,
        committed: &Committed<'_>,
        message: &mut PooledBuffer,
    ) -> Result<(), Fault> {
        let target = match &committed.path {
            Some(path) => {
                self.target.clear();
                self.target.extend_from_slice(path);
                if let Some(query) = self.normal.query() {
                    self.target.push(b'?');
                    self.target.extend_from_slice(query);
                }
                Some(self.target.as_slice())
            }
            None if self.has_target_as_received() => None,
            None => Some(self.normal.target()),
        };
        let target_bytes = target.map_or(0, <[u8]>::len);
        let other_bytes = other_bytes(self.head.lines());
        if !message.reserve(self.received.len() + self.lines.len() + target_bytes + other_bytes) {
            return Err(Fault::Memory);
        }
        self.head.forward(self.received, target, self.lines, message);
        Ok(())
    }

    /// Says which trace the server's part belongs to. A state of no trace is taken away (W3C Trace Context, section 4).
    fn goes_on_in(&mut self, trace: &TraceContext) {
        for line in self.head.lines_mut() {
            let is_state = || line.is_named(TRACE_STATE, self.received) && !trace.goes_on();
            line.dropped |= line.is_named(TRACE_PARENT, self.received) || is_state();
        }
        trace.push_line(self.lines);
    }

    /// HTTP/1.0 may leave Host out; HTTP/1.1, which the server is spoken to, may not.
    fn add_host(&mut self) {
        self.lines.extend_from_slice(b"Host: ");
        match self.head.authority(self.received) {
            b"" => {
                let authority = default_authority(self.arrived_at, self.peer.scheme);
                self.lines.extend_from_slice(authority.as_bytes());
            }
            authority => self.lines.extend_from_slice(authority),
        }
        self.lines.extend_from_slice(b"\r\n");
    }

    /// The switch's own cookie is nobody else's business.
    fn hide_route_cookie(&mut self) {
        for index in 0..self.head.lines().len() {
            let line = self.head.lines()[index];
            if line.kind != HeaderKind::Cookie || line.dropped {
                continue;
            }
            let start = self.lines.len();
            self.lines.extend_from_slice(b"Cookie: ");
            let value = self.lines.len();
            let found = without_cookie(line.value(self.received), ROUTE_COOKIE.as_bytes(), self.lines);
            if !found || self.lines.len() == value {
                self.lines.truncate(start);
            } else {
                self.lines.extend_from_slice(b"\r\n");
            }
            self.head.lines_mut()[index].dropped = found;
        }
    }

    /// Follows what has arrived of the body.
    pub(crate) fn follow_body(&self, filter: TrailerFilter) -> Result<Arrived, Fault> {
        let mut body = BodyReader::new(self.head.framing()).with_trailers(filter.treatment());
        let head_bytes = self.head.head_bytes();
        let fed = body.feed(&self.received[head_bytes..]).map_err(Fault::Body)?;
        let used = head_bytes + fed.used;
        let Some(mut cut) = body.take_cut() else { return Ok(Arrived::whole(body, used, filter)) };
        filter.apply(&mut cut);
        let place = head_bytes + cut.place.start..head_bytes + cut.place.end;
        Ok(Arrived { body, used, cut: place, trailers: cut.lines, filter })
    }
}

/// Adds lines to a head that ends in its empty line, and with it the buffer.
pub(crate) fn grow(head: &mut PooledBuffer, lines: &[u8]) {
    const END: &[u8] = b"\r\n";
    let end = head.len() - END.len();
    head.truncate(end);
    head.extend_from_slice(lines);
    head.extend_from_slice(END);
}

fn forwarding(mode: ForwardedMode) -> Forwarding {
    match mode {
        ForwardedMode::Append => Forwarding::Append,
        ForwardedMode::Replace => Forwarding::Replace,
        ForwardedMode::Off => Forwarding::Off,
    }
}
