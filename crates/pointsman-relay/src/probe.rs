//! One probe of a server: connect as requests do, ask, and look at the answer.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use pointsman_config::{Asks, BodyTest, HealthCheck, HttpProbe, ProxyVersion, ServerProtocol};
use pointsman_h2::ServerLimits;
use pointsman_http::{AnswerTo, BodyReader, HeadLimits, ResponseHead};
use pointsman_net::{
    Account, BufferPool, PooledBuffer, Timers, write_all, write_header_v1, write_local_header_v2,
};
use pointsman_telemetry::{Notes, Topic};
use pointsman_tls::{Connector, ServerHandshakeFault};
use pointsman_upstream::{
    ConnectFault, Connection, Multiplexed, Place, Securing, ServerId, Sharing, connect,
};

use crate::fault::tls_sentence;
use crate::shortage::Lack;
use crate::standing::{ProbeOutcome, Standing};

/// Bytes of an answer's head that are read.
const HEAD_BYTES_MAX: u32 = 16 * 1024;
/// Interim answers before the final one; more is a server gone wrong.
const INTERIM_MAX: usize = 16;
/// An answer of gRPC is a few bytes.
const GRPC_BYTES_MAX: usize = 1024;

/// A server that is probed.
pub(crate) struct Probed {
    pub(crate) id: ServerId,
    pub(crate) pool: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<Connector>,
    pub(crate) tls_name: Option<Arc<str>>,
    pub(crate) proxy_protocol: Option<ProxyVersion>,
    pub(crate) protocol: ServerProtocol,
    pub(crate) check: Arc<HealthCheck>,
    pub(crate) standing: Arc<Standing>,
}

/// What probes are made with; one a thread.
pub(crate) struct Tools {
    pub(crate) timers: Timers,
    buffers: BufferPool,
    account: Account,
    multiplexed: Multiplexed,
    /// Numbers for connections of HTTP/2, each of which serves one probe.
    numbered: std::cell::Cell<u32>,
    pub(crate) notes: Arc<Notes>,
}

impl Probed {
    /// What it is asked, for people.
    pub(crate) fn asked(&self) -> String {
        match &self.check.asks {
            Asks::Tcp => "tcp".to_owned(),
            Asks::Tls => "tls".to_owned(),
            Asks::Http(probe) => {
                format!("{} {} of {}", probe.method, probe.path, host(self, probe.host.as_deref()))
            }
            Asks::Grpc { service, .. } => format!("grpc {service}"),
        }
    }

    /// Where it is probed.
    pub(crate) fn probed_address(&self) -> SocketAddr {
        SocketAddr::new(self.address.ip(), self.check.port.unwrap_or(self.address.port()))
    }
}

/// Why a probe did not pass.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Connect(io::ErrorKind),
    Tls(ServerHandshakeFault),
    NotHttp2,
    Timeout,
    Closed,
    Malformed,
    Status(u16),
    Field(String),
    Body,
    NotServing,
    /// Nothing was learned of the server: there was no descriptor or no memory for a connection.
    Shortage,
}

impl Tools {
    pub(crate) fn new(notes: Arc<Notes>) -> Tools {
        let account = Account::unlimited();
        Tools {
            timers: Timers::default(),
            buffers: BufferPool::new(HEAD_BYTES_MAX as usize, 4, &account),
            account,
            multiplexed: Multiplexed::default(),
            numbered: std::cell::Cell::new(0),
            notes,
        }
    }

    /// Ends connections that should have ended by themselves. To be called once a second.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.multiplexed.sweep(now_ms, |_| None);
    }

    /// Probes a server once.
    pub(crate) async fn probe(&self, server: &Probed) -> Result<(), Why> {
        let mut whole = self.timers.deadline();
        let outcome = whole.within(server.check.timeout_ms, Box::pin(self.converse(server))).await;
        // What is shared by nobody any more ends.
        self.multiplexed.close_all();
        outcome.unwrap_or(Err(Why::Timeout))
    }

    async fn converse(&self, server: &Probed) -> Result<(), Why> {
        let mut connection = self.connect(server).await?;
        let (message, is_head) = match &server.check.asks {
            Asks::Tcp | Asks::Tls => return Ok(()),
            Asks::Http(probe) => (request(server, probe), probe.method == "HEAD"),
            Asks::Grpc { service, host } => (call(server, service, host.as_deref()), false),
        };
        if server.protocol == ServerProtocol::Http2 {
            connection = self.stream(connection).await?;
        }
        // A server that has answered without reading all of it is heard.
        let written = write_all(&mut connection, &message, &mut 0).await;
        let mut answer =
            Answer { connection, received: self.buffers.take_later(), head: ResponseHead::default() };
        let to = if is_head { AnswerTo::Head } else { AnswerTo::Other };
        match answer.read_head(to).await {
            Err(Why::Closed) if written.is_err() => return Err(Why::Closed),
            read => read?,
        }
        match &server.check.asks {
            Asks::Http(probe) => answer.is_as_expected(probe).await,
            _ => answer.says_serving().await,
        }
    }

    async fn connect(&self, server: &Probed) -> Result<Connection, Why> {
        let preface = match server.proxy_protocol {
            None => Vec::new(),
            Some(ProxyVersion::V1) => write_header_v1(None),
            Some(ProxyVersion::V2) => write_local_header_v2(),
        };
        let connector = server.tls.as_ref().filter(|_| server.check.asks != Asks::Tcp);
        let securing = match connector {
            None => None,
            Some(connector) => {
                let at_rest = self.account.book(0).ok_or(Why::Shortage)?;
                Some(Securing { connector, at_rest })
            }
        };
        let address = server.probed_address();
        let mut deadline = self.timers.deadline();
        let connected = connect(address, &preface, securing, &mut deadline, server.check.timeout_ms).await;
        connected.map_err(|fault| match fault {
            ConnectFault::Io(error) if Lack::of(&error).is_some() => Why::Shortage,
            ConnectFault::Io(error) => Why::Connect(error.kind()),
            ConnectFault::Tls(error) => {
                // Less of it is told to who only wants to know whether the server is up.
                self.notes.note(Topic::Probes, || {
                    let (Probed { pool, name, .. }, error) = (server, error.to_string());
                    let tls_name = server.tls_name.as_deref().unwrap_or_default();
                    format!(
                        "probe TLS pool={pool} server={name} address={address} name={tls_name} error={error:?}"
                    )
                });
                Why::Tls(ServerHandshakeFault::of(&error))
            }
            ConnectFault::Timeout | ConnectFault::TlsTimeout => Why::Timeout,
        })
    }

    /// HTTP/2 on a connection that serves this probe alone.
    async fn stream(&self, connection: Connection) -> Result<Connection, Why> {
        const WINDOW_BYTES: u32 = 65_535;
        if connection.agrees_on_http2() == Some(false) {
            return Err(Why::NotHttp2);
        }
        let number = self.numbered.get().wrapping_add(1);
        self.numbered.set(number);
        let place = Place { server: ServerId(number), owner: None };
        let opening = self.multiplexed.begin_opening(place).ok_or(Why::Closed)?;
        let limits = ServerLimits {
            head_bytes_max: HEAD_BYTES_MAX,
            stream_window_bytes: WINDOW_BYTES,
            connection_window_bytes: WINDOW_BYTES,
            unsent_bytes_max: HEAD_BYTES_MAX as usize,
        };
        let sharing = Sharing { streams_max: 1, keeps_idle: false, limits };
        let booked = self.account.book(0).ok_or(Why::Shortage)?;
        opening.share(connection, sharing, booked, Box::new(|_| {})).await.map_err(|_| Why::Closed)
    }
}

/// An answer as far as it was read.
struct Answer {
    connection: Connection,
    received: PooledBuffer,
    head: ResponseHead,
}

impl Answer {
    async fn read(&mut self) -> Result<usize, Why> {
        let Answer { connection, received, .. } = self;
        poll_fn(|context| connection.poll_read_into(context, received)).await.map_err(|_| Why::Closed)
    }

    /// Reads the final head, which stands at the start of what was received then.
    async fn read_head(&mut self, to: AnswerTo) -> Result<(), Why> {
        let limits = HeadLimits { head_bytes_max: HEAD_BYTES_MAX as usize, ..HeadLimits::default() };
        let mut interims = 0;
        loop {
            while self.head.parse(&self.received, to, &limits).map_err(|_| Why::Malformed)? {
                if !self.head.is_interim() {
                    return Ok(());
                }
                interims += 1;
                if interims > INTERIM_MAX || self.head.status() == 101 {
                    return Err(Why::Malformed);
                }
                self.received.drain(..self.head.head_bytes());
            }
            if self.read().await? == 0 {
                return Err(Why::Closed);
            }
        }
    }

    async fn is_as_expected(&mut self, probe: &HttpProbe) -> Result<(), Why> {
        let status = self.head.status();
        if !probe.statuses.iter().any(|range| range.contains(&status)) {
            return Err(Why::Status(status));
        }
        for (name, value) in &probe.fields {
            let is_it = |line: &pointsman_http::HeaderLine| {
                line.is_named(name.as_bytes(), &self.received)
                    && value.as_ref().is_none_or(|value| line.value(&self.received) == value.as_bytes())
            };
            if !self.head.lines().iter().any(is_it) {
                return Err(Why::Field(name.clone()));
            }
        }
        let passes = |body: &[u8]| probe.body.iter().all(|test| passes(test, body));
        match self.has_body(probe.body_bytes_max, passes).await? {
            true => Ok(()),
            false => Err(Why::Body),
        }
    }

    async fn says_serving(&mut self) -> Result<(), Why> {
        if self.head.status() != 200 {
            return Err(Why::Status(self.head.status()));
        }
        match self.has_body(GRPC_BYTES_MAX, says_serving).await? {
            true => Ok(()),
            false => Err(Why::NotServing),
        }
    }

    /// Whether the body passes a test, as far as it is looked into. No more of it is read than that takes.
    async fn has_body(&mut self, bytes_max: usize, passes: impl Fn(&[u8]) -> bool) -> Result<bool, Why> {
        let (mut body, mut trailers) = (Vec::new(), Vec::new());
        let mut reader = BodyReader::of_answer(self.head.framing());
        let head_bytes = self.head.head_bytes();
        self.received.drain(..head_bytes);
        loop {
            let left = bytes_max - body.len();
            let fed = reader.feed_unchunked_within(&self.received, left, &mut body, &mut trailers);
            let fed = fed.map_err(|_| Why::Malformed)?;
            self.received.drain(..fed.used);
            if passes(&body) {
                return Ok(true);
            }
            if reader.is_done() || body.len() >= bytes_max {
                return Ok(false);
            }
            if self.read().await? == 0 {
                return if reader.ends_at_close() { Ok(false) } else { Err(Why::Closed) };
            }
        }
    }
}

fn passes(test: &BodyTest, body: &[u8]) -> bool {
    match test {
        BodyTest::Holds(text) => memchr::memmem::find(body, text.as_bytes()).is_some(),
        BodyTest::Matches(regex) => regex.is_match(body),
    }
}

/// Whom a probe names as its host.
fn host(server: &Probed, written: Option<&str>) -> String {
    let known = written.or(server.tls_name.as_deref());
    known.map_or_else(|| server.address.to_string(), str::to_owned)
}

fn request(server: &Probed, probe: &HttpProbe) -> Vec<u8> {
    let HttpProbe { method, path, .. } = probe;
    let host = host(server, probe.host.as_deref());
    let last = match server.protocol {
        ServerProtocol::Http1 => "Connection: close\r\n",
        ServerProtocol::Http2 => "",
    };
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: pointsman-probe\r\nAccept: */*\r\n{last}\r\n"
    )
    .into_bytes()
}

/// A call of `grpc.health.v1.Health/Check`: a message with the service as field 1, behind its length.
fn call(server: &Probed, service: &str, written: Option<&str>) -> Vec<u8> {
    let mut message = Vec::with_capacity(service.len() + 8);
    if !service.is_empty() {
        message.push(0x0a);
        push_varint(&mut message, service.len());
        message.extend_from_slice(service.as_bytes());
    }
    let host = host(server, written);
    let length = message.len() + 5;
    let mut call = format!(
        "POST /grpc.health.v1.Health/Check HTTP/1.1\r\nHost: {host}\r\nUser-Agent: pointsman-probe\r\n\
         Content-Type: application/grpc\r\nContent-Length: {length}\r\n\r\n"
    )
    .into_bytes();
    call.push(0);
    call.extend_from_slice(&(message.len() as u32).to_be_bytes());
    call.extend_from_slice(&message);
    call
}

fn push_varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Whether the body is one message that is not compressed, of which field 1 is last said to be 1: `SERVING`.
fn says_serving(body: &[u8]) -> bool {
    let [0, length @ ..] = body else { return false };
    let Some((length, message)) = length.split_first_chunk::<4>() else { return false };
    if message.len() != u32::from_be_bytes(*length) as usize {
        return false;
    }
    let (mut rest, mut status) = (message, 0);
    while !rest.is_empty() {
        let Some(field) = take_varint(&mut rest) else { return false };
        let skipped = match (field & 7, field >> 3) {
            (0, 1) => take_varint(&mut rest).map(|value| status = value),
            (0, _) => take_varint(&mut rest).map(drop),
            (1, _) => skip(&mut rest, 8),
            (2, _) => take_varint(&mut rest).and_then(|bytes| skip(&mut rest, bytes)),
            (5, _) => skip(&mut rest, 4),
            _ => None,
        };
        if skipped.is_none() {
            return false;
        }
    }
    status == 1
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn skip(rest: &mut &[u8], bytes: u64) -> Option<()> {
    *rest = rest.get(usize::try_from(bytes).ok()?..)?;
    Some(())
}

impl Why {
    /// What it counts as.
    pub(crate) fn outcome(&self) -> ProbeOutcome {
        match self {
            Why::Connect(_) => ProbeOutcome::Connect,
            Why::Tls(_) | Why::NotHttp2 => ProbeOutcome::Tls,
            Why::Timeout => ProbeOutcome::Timeout,
            Why::Closed | Why::Malformed => ProbeOutcome::Protocol,
            Why::Status(_) => ProbeOutcome::Status,
            Why::Field(_) | Why::Body | Why::NotServing => ProbeOutcome::Content,
            Why::Shortage => ProbeOutcome::Shortage,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Connect(kind) => write!(f, "{kind}"),
            Why::Tls(fault) => write!(f, "{}", tls_sentence(*fault)),
            Why::NotHttp2 => f.write_str("it speaks HTTP/1 where HTTP/2 is expected"),
            Why::Timeout => f.write_str("no answer in time"),
            Why::Closed => f.write_str("it closed before its answer was whole"),
            Why::Malformed => f.write_str("its answer is not HTTP"),
            Why::Status(status) => write!(f, "status {status}"),
            Why::Field(name) => write!(f, "no field `{name}` as expected"),
            Why::Body => f.write_str("the body is not as expected"),
            Why::NotServing => f.write_str("it does not say SERVING"),
            Why::Shortage => f.write_str("no descriptor or memory for the probe"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_serving_is_serving() {
        let framed = |message: &[u8]| [&[0, 0, 0, 0, message.len() as u8], message].concat();
        for (message, serves) in [
            (&[8, 1][..], true),
            (&[8, 2], false),
            (&[], false),
            (&[8, 2, 8, 1], true),
            (&[8, 1, 8, 3], false),
            // Fields of other kinds and numbers are passed over.
            (&[0x12, 2, 8, 2, 8, 1], true),
            (&[0x11, 1, 2, 3, 4, 5, 6, 7, 8, 8, 1], true),
            (&[0x15, 1, 2, 3, 4, 8, 1], true),
            (&[0x10, 0x80, 1, 8, 1], true),
            // Torn ones are not.
            (&[8], false),
            (&[8, 1, 8], false),
            (&[8, 1, 0x12, 9], false),
            (&[8, 1, 0x13], false),
            (&[8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1], false),
        ] {
            assert_eq!(says_serving(&framed(message)), serves, "{message:?}");
        }
        assert!(!says_serving(&[1, 0, 0, 0, 2, 8, 1]), "compressed");
        assert!(!says_serving(&[0, 0, 0, 0, 3, 8, 1]), "not whole");
        assert!(!says_serving(&[0, 0, 0, 0, 2, 8, 1, 0]), "more than one message");
        assert!(!says_serving(b""));
    }

    #[test]
    fn lengths_of_services_are_varints() {
        for (length, expected) in [(5, vec![5]), (128, vec![0x80, 1]), (300, vec![0xac, 2])] {
            let mut out = Vec::new();
            push_varint(&mut out, length);
            assert_eq!(out, expected);
            assert_eq!(take_varint(&mut out.as_slice()), Some(length as u64));
        }
    }
}
