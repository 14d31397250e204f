//! What the data path tells: one event a step, with borrowed facts.

use crate::agreed::Handshake;
use crate::family::{BandwidthMetrics, LimitMetrics, ListenerMetrics, RuleMetrics, ServerMetrics};
use crate::trace::TraceContext;

/// The status of a request that became a tunnel.
const SWITCHING_PROTOCOLS: u16 = 101;

/// A step on the way of a connection or request.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A listener took a connection.
    ConnectionOpened(&'a ListenerMetrics),
    /// A connection of a listener ended, in whatever way.
    ConnectionClosed(&'a ListenerMetrics),
    /// A connection of a listener goes to another thread than took it, which tells the rest.
    HandedOver(&'a ListenerMetrics),
    /// A connection became a tunnel, by a change of protocol or from its begin: bytes both ways.
    TunnelOpened(&'a ListenerMetrics),
    /// A tunnel ended, in whatever way.
    TunnelClosed(&'a ListenerMetrics),
    /// A request waits for its body: its head does not decide it.
    WaitBegan(&'a ListenerMetrics),
    /// It waits no more: it is decided, or over.
    WaitEnded(&'a ListenerMetrics),
    /// So many bytes of room are taken by a body that is held.
    Held(&'a ListenerMetrics, u64),
    /// They are free again. On the thread that told of them.
    Released(&'a ListenerMetrics, u64),
    /// A TLS handshake succeeded.
    Handshake(&'a ListenerMetrics, Handshake),
    /// A TLS handshake failed.
    HandshakeFailed(&'a ListenerMetrics, HandshakeFailure),
    /// What the log says of a connection that came to no request. Counts nothing.
    NoRequest(&'a Exchange<'a>),
    /// A client was refused. If it was answered, [`Event::Done`] follows; this one says why.
    Refused(&'a ListenerMetrics, Refusal),
    /// What became of the copy of a request.
    Mirrored(&'a ListenerMetrics, Mirrored),
    /// An attempt at a server failed.
    ServerFailed(&'a ServerMetrics, ServerFailure),
    /// A request goes to this server after an attempt that failed, at this server or another.
    Retried(&'a ServerMetrics),
    /// An attempt that failed here was the last, because the pool had no further one left.
    RetryRefused(&'a ServerMetrics),
    /// What became of a request that this server was asked for because another one was slow; where the pool had no further
    /// try left for that, of one at this slow server.
    Hedged(&'a ServerMetrics, Hedge),
    /// A connection to a server was put aside for later use.
    IdleAdded(&'a ServerMetrics),
    /// A connection that was put aside is used again, or closed. On the thread that put it aside.
    IdleRemoved(&'a ServerMetrics),
    /// A request was too much for a class.
    Limited(&'a LimitMetrics),
    /// So many bytes of a class of bandwidth were used.
    Shaped(&'a BandwidthMetrics, u32),
    /// What a class of bandwidth sends has to wait.
    ShapedWait(&'a BandwidthMetrics),
    /// It waits no more: it goes on, or is over. On the thread that told that it waits.
    ShapedWaitEnded(&'a BandwidthMetrics),
    /// A rule decided about a request. Told apart from the end of the exchange, which may come when the
    /// rule is no longer in any plan.
    Decided(&'a RuleMetrics),
    /// An exchange is over: answered, refused, or broken off.
    Done(&'a Exchange<'a>),
    /// The same where there is no access log, which alone wants more of it.
    Counted(&'a Counts<'a>),
}

/// What became of the copy of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mirrored {
    /// It was sent, and answered.
    Answered,
    /// A server was tried for it, and did not take it, or not answer it whole.
    Failed,
    /// It was not even tried: too many were on their way, no server could be asked, or the request was
    /// too long, not whole, or no plain one.
    Dropped,
}

impl Mirrored {
    /// All of them, with their names.
    pub(crate) const ALL: [(Mirrored, &'static str); 3] =
        [(Mirrored::Answered, "answered"), (Mirrored::Failed, "failed"), (Mirrored::Dropped, "dropped")];
}

/// What became of a try at a second server beside a slow one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hedge {
    /// Its answer was the first, or the only one.
    Won,
    /// The slow server answered before it, or the client left.
    Lost,
    /// The second server failed.
    Failed,
    /// It was not made: the pool had no further try left.
    OverBudget,
}

impl Hedge {
    /// All of them, with their names.
    pub(crate) const ALL: [(Hedge, &'static str); 4] = [
        (Hedge::Won, "won"),
        (Hedge::Lost, "lost"),
        (Hedge::Failed, "failed"),
        (Hedge::OverBudget, "over_budget"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Hedge::ALL[self as usize].1
    }
}

/// Why a TLS handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// What came is not TLS.
    NotTls,
    /// A message was broken, or out of turn.
    Malformed,
    /// No version that both sides speak.
    NoSharedVersion,
    /// No cipher suite, key exchange or signature scheme that both sides know.
    NoSharedCipher,
    /// No application protocol that both sides speak.
    NoSharedProtocol,
    /// No certificate of the client where one must be, or one that does not verify.
    ClientCertificate,
    /// The client showed a certificate of X.509 version 1 or 2.
    ClientCertificateVersion,
    /// The client refused the listener's certificate.
    ServerCertificate,
    /// The client broke it off with another alert.
    Alert,
    /// The connection ended.
    Closed,
    /// It took longer than `handshake_ms_max`.
    Timeout,
    /// No memory left of `buffer_bytes_max`.
    Memory,
    /// Something else.
    Other,
}

/// Why a client was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request is not HTTP, or could be read in two ways (400).
    Malformed,
    /// A version, method, coding or expectation that is not supported (4xx, 501, 505).
    Unsupported,
    /// The head is larger than `head_bytes_max` (431).
    HeadBytes,
    /// More headers than `headers_max` (431).
    Headers,
    /// The target is larger than `target_bytes_max` (414).
    TargetBytes,
    /// The body is larger than `body_bytes_max` (413).
    BodyBytes,
    /// More connections than a `connections_max` (503).
    Connections,
    /// More connections from its address than `connections_per_address_max` (429).
    ConnectionsPerAddress,
    /// More TLS handshakes from its address than `handshakes_per_address_per_second_max`.
    HandshakesPerAddress,
    /// No descriptors left, nor the system's memory, for its connection or for one to a server (503).
    Descriptors,
    /// No memory left of `buffer_bytes_max`, for its connection, handshake or request (503).
    Memory,
    /// No sound PROXY header in time, where one must be, or a peer that is not believed.
    ProxyHeader,
    /// The handshake took longer than `handshake_ms_max`.
    HandshakeTimeout,
    /// The head took longer than `head_ms_max` (408).
    HeadTimeout,
    /// The body paused for longer than `body_ms_max` (408).
    BodyTimeout,
    /// The client took no byte of the answer for `write_ms_max`.
    WriteTimeout,
    /// An HTTP/2 connection broke the protocol, or made more work than it asked for.
    Http2,
    /// A rule refused the request, or could not be decided about it.
    Rule,
    /// The body is not what its media type says (400).
    ContentMalformed,
    /// The body's coding or character encoding is not supported, or contradicts itself (415).
    ContentEncoding,
    /// The body goes over a limit of what is looked at (413).
    ContentLimit,
    /// An object of the body repeats a key that a rule names (400).
    ContentDuplicateKey,
    /// Servers read the request in ways that the rules decide differently (400).
    Ambiguous,
    /// No room left of `hold_total_bytes_max` in time (503).
    Hold,
    /// All servers had as many requests as they may have, and as many waited as may (503).
    QueueFull,
    /// All servers had as many as they may have for too long (503).
    QueueTimeout,
    /// No server could take the request (502, 503, 504).
    NoServer,
    /// A newer request of its connection took its place (503).
    Overtaken,
    /// It was too much for a class of `limitRate` (429, or what the class says).
    Rate,
}

/// In what way an attempt at a server failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFailure {
    /// No connection came about.
    Connect,
    /// The server was too slow, when connecting or answering.
    Timeout,
    /// The response is not HTTP.
    Protocol,
    /// The head of the response is longer than its limit.
    HeadBytes,
    /// The response has more header lines than its limit.
    Headers,
    /// The framing of the response's body is malformed.
    Body,
    /// The connection ended before the answer did.
    Closed,
    /// Its certificate comes from no trusted authority.
    TlsUntrusted,
    /// Its certificate is for another name.
    TlsWrongName,
    /// Its certificate has expired.
    TlsExpired,
    /// Its certificate cannot be used for another reason.
    TlsCertificate,
    /// It refused our certificate, or wanted one.
    TlsOurCertificate,
    /// The TLS handshake failed otherwise.
    Tls,
    /// It answered with a status that its pool asks another server for.
    Status,
}

/// What is counted of an exchange that is over.
#[derive(Clone, Copy, Debug)]
pub struct Counts<'a> {
    /// Where it came in.
    pub listener: &'a ListenerMetrics,
    /// The server that was tried last.
    pub server: Option<&'a ServerMetrics>,
    /// The rule that decided; none where it did not come to that.
    pub rule: Option<&'a RuleMetrics>,
    /// Whether it was a connection as a whole, of which no request was read: it is no request among others, and takes
    /// as long as its two sides like.
    pub is_connection: bool,
    /// Whether it came to no good end, and that was not the client's doing.
    pub is_failed: bool,
    /// The status the client was sent, or 0 if it was sent none.
    pub status: u16,
    /// Bytes of the request, head and body.
    pub request_bytes: u64,
    /// Bytes of the answer, head and body.
    pub response_bytes: u64,
    /// From the first byte of the request to the end.
    pub total_us: u64,
}

/// All facts of an exchange that is over. What is not known, or never came about, is left out of the log.
///
/// Addresses are texts, which exist before there is a line: to write them anew costs as much as all the rest.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// What is counted of it.
    pub counts: Counts<'a>,
    /// Monotonic time when it ended, on the scale of the recorder's [`crate::WallBase`].
    pub now_us: u64,
    /// Address, without brackets, and port of the connection's peer; `None` on a Unix socket.
    pub peer: Option<(&'a [u8], u16)>,
    /// The address of the client after trusted proxies were believed, without brackets.
    pub client_ip: Option<&'a [u8]>,
    /// `1.2` or `1.3`, when TLS was spoken.
    pub tls: Option<&'static str>,
    /// The server name of the handshake.
    pub sni: Option<&'a str>,
    /// The method.
    pub method: Option<&'a [u8]>,
    /// The host as the request names it.
    pub host: Option<&'a [u8]>,
    /// The path as it was sent.
    pub path: Option<&'a [u8]>,
    /// The query of the target, where the log is to have it.
    pub query: Query<'a>,
    /// The version of HTTP, as in `1.1`.
    pub version: Option<&'static str>,
    /// The field `Referer`, where the log is to have it.
    pub referer: Option<&'a [u8]>,
    /// The field `User-Agent`, where the log is to have it.
    pub user_agent: Option<&'a [u8]>,
    /// The media type, in lower case.
    pub content_type: Option<&'a [u8]>,
    /// The bytes of the body, where the head says how many.
    pub content_length: Option<u64>,
    /// Whether the head says that there is a body; with what it says of it, or nothing of all this.
    pub has_body: Option<bool>,
    /// The label of the rule that decided.
    pub rule: Option<&'a [u8]>,
    /// Why what its condition asks ended unknown, if it did.
    pub unknown: Option<&'a [u8]>,
    /// The class that it was too much for, if it was.
    pub limit: Option<&'a [u8]>,
    /// The pool that was sent a copy, if one was.
    pub mirror: Option<&'a [u8]>,
    /// The pool the request was for.
    pub pool: Option<&'a [u8]>,
    /// From the first byte of the request to the decision.
    pub decided_us: Option<u64>,
    /// From the first byte of the request to a connection with the server.
    pub connected_us: Option<u64>,
    /// From the first byte of the request to the first byte of the server's answer.
    pub first_byte_us: Option<u64>,
    /// Servers tried, counting repetitions.
    pub tries: u32,
    /// Whether the connection to the server had served before.
    pub reused: Option<bool>,
    /// How long it waited for a place at a server, where it did.
    pub queued_us: Option<u64>,
    /// What became of a try at a second server beside a slow one, where there was to be any.
    pub hedge: Option<Hedge>,
    /// Which of the two servers it was whose answer was not taken.
    pub other_server: Option<&'a [u8]>,
    /// Whether no further try was made because the pool had none left.
    pub over_budget: bool,
    /// Words that rules gave.
    pub tags: &'a [Box<str>],
    /// What went wrong.
    pub error: Option<&'a str>,
    /// Where it stands in a trace, if it is traced.
    pub trace: Option<&'a TraceContext>,
}

/// A query as the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query<'a> {
    /// The log does not say it.
    Unlogged,
    /// There was none.
    Absent,
    /// What stood behind the `?`, nothing decoded.
    Text(&'a [u8]),
}

impl<'a> Counts<'a> {
    /// An exchange of which only the listener is known.
    pub fn new(listener: &'a ListenerMetrics) -> Counts<'a> {
        Counts {
            listener,
            server: None,
            rule: None,
            is_connection: false,
            is_failed: false,
            status: 0,
            request_bytes: 0,
            response_bytes: 0,
            total_us: 0,
        }
    }

    /// How long it took, where that says something: a tunnel takes as long as its two sides like.
    #[inline]
    pub(crate) fn duration_us(&self) -> Option<u64> {
        let is_timed = self.status != SWITCHING_PROTOCOLS && !self.is_connection;
        is_timed.then_some(self.total_us)
    }
}

impl<'a> Exchange<'a> {
    /// An exchange of which nothing is known but what is counted.
    pub fn new(counts: Counts<'a>) -> Exchange<'a> {
        Exchange {
            counts,
            now_us: 0,
            peer: None,
            client_ip: None,
            tls: None,
            sni: None,
            method: None,
            host: None,
            path: None,
            query: Query::Unlogged,
            version: None,
            referer: None,
            user_agent: None,
            content_type: None,
            content_length: None,
            has_body: None,
            rule: None,
            unknown: None,
            limit: None,
            mirror: None,
            pool: None,
            decided_us: None,
            connected_us: None,
            first_byte_us: None,
            tries: 0,
            reused: None,
            queued_us: None,
            hedge: None,
            other_server: None,
            over_budget: false,
            tags: &[],
            error: None,
            trace: None,
        }
    }
}

impl HandshakeFailure {
    pub(crate) const ALL: [(HandshakeFailure, &'static str); 13] = [
        (HandshakeFailure::NotTls, "not_tls"),
        (HandshakeFailure::Malformed, "malformed"),
        (HandshakeFailure::NoSharedVersion, "no_shared_version"),
        (HandshakeFailure::NoSharedCipher, "no_shared_cipher"),
        (HandshakeFailure::NoSharedProtocol, "no_shared_protocol"),
        (HandshakeFailure::ClientCertificate, "client_certificate"),
        (HandshakeFailure::ClientCertificateVersion, "client_certificate_version"),
        (HandshakeFailure::ServerCertificate, "server_certificate"),
        (HandshakeFailure::Alert, "alert"),
        (HandshakeFailure::Closed, "closed"),
        (HandshakeFailure::Timeout, "timeout"),
        (HandshakeFailure::Memory, "memory"),
        (HandshakeFailure::Other, "other"),
    ];

    /// The word for it in metrics.
    pub fn label(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl Refusal {
    /// Every reason and its label, in the order of their numbers.
    pub(crate) const ALL: [(Refusal, &'static str); 29] = [
        (Refusal::Malformed, "malformed"),
        (Refusal::Unsupported, "unsupported"),
        (Refusal::HeadBytes, "head_bytes"),
        (Refusal::Headers, "headers"),
        (Refusal::TargetBytes, "target_bytes"),
        (Refusal::BodyBytes, "body_bytes"),
        (Refusal::Connections, "connections"),
        (Refusal::ConnectionsPerAddress, "connections_per_address"),
        (Refusal::HandshakesPerAddress, "handshakes_per_address"),
        (Refusal::Descriptors, "descriptors"),
        (Refusal::Memory, "memory"),
        (Refusal::ProxyHeader, "proxy_header"),
        (Refusal::HandshakeTimeout, "handshake_timeout"),
        (Refusal::HeadTimeout, "head_timeout"),
        (Refusal::BodyTimeout, "body_timeout"),
        (Refusal::WriteTimeout, "write_timeout"),
        (Refusal::Http2, "http2"),
        (Refusal::Rule, "rule"),
        (Refusal::ContentMalformed, "content_malformed"),
        (Refusal::ContentEncoding, "content_encoding"),
        (Refusal::ContentLimit, "content_limit"),
        (Refusal::ContentDuplicateKey, "content_duplicate_key"),
        (Refusal::Ambiguous, "ambiguous"),
        (Refusal::Hold, "hold"),
        (Refusal::QueueFull, "queue_full"),
        (Refusal::QueueTimeout, "queue_timeout"),
        (Refusal::NoServer, "no_server"),
        (Refusal::Overtaken, "overtaken"),
        (Refusal::Rate, "rate"),
    ];
}

impl ServerFailure {
    pub(crate) const ALL: [(ServerFailure, &'static str); 14] = [
        (ServerFailure::Connect, "connect"),
        (ServerFailure::Timeout, "timeout"),
        (ServerFailure::Protocol, "protocol"),
        (ServerFailure::HeadBytes, "head_bytes"),
        (ServerFailure::Headers, "headers"),
        (ServerFailure::Body, "body"),
        (ServerFailure::Closed, "closed"),
        (ServerFailure::TlsUntrusted, "tls_untrusted"),
        (ServerFailure::TlsWrongName, "tls_wrong_name"),
        (ServerFailure::TlsExpired, "tls_expired"),
        (ServerFailure::TlsCertificate, "tls_certificate"),
        (ServerFailure::TlsOurCertificate, "tls_our_certificate"),
        (ServerFailure::Tls, "tls"),
        (ServerFailure::Status, "status"),
    ];
}

// Counters are arrays indexed by these enums: a variant without a label must not compile.
const _: () = assert!(HandshakeFailure::ALL.len() == HandshakeFailure::Other as usize + 1);
const _: () = assert!(Refusal::ALL.len() == Refusal::Rate as usize + 1);
const _: () = assert!(ServerFailure::ALL.len() == ServerFailure::Status as usize + 1);
