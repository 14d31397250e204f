//! Why a message head is refused, and with which status.

/// Why a head is refused. The sentence and the status of each stand here and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// A byte that may not stand where it stands: a control, white space before a colon, a folded
    /// line (RFC 9112 sections 3 and 5).
    Syntax,
    /// A line that ends in LF without CR (RFC 9112 section 2.2 lets a parser take either).
    BareLineFeed,
    /// More empty lines before the request line than a few (RFC 9112 section 2.2).
    EmptyLines,
    /// A version other than 1.0 and 1.1 (RFC 9110 section 15.6.6).
    Version,
    /// The head is longer than its limit (RFC 6585 section 5).
    HeadTooLarge,
    /// More header lines than the limit (RFC 6585 section 5).
    TooManyHeaders,
    /// A method with small letters: no method is written so, and some servers read `get` as GET (RFC 9110
    /// section 9.1).
    Method,
    /// A method longer than any that is known (RFC 9112 section 3).
    MethodTooLong,
    /// The target is longer than its limit (RFC 9110 section 15.5.15).
    TargetTooLong,
    /// A target of a form that does not fit the method (RFC 9112 section 3.2).
    Target,
    /// No Host, in HTTP/1.1 (RFC 9112 section 3.2).
    NoHost,
    /// Several of them (RFC 9112 section 3.2).
    Hosts,
    /// A Host that is no host and port (RFC 9112 section 3.2).
    Host,
    /// The absolute target names another host than Host (RFC 9112 section 3.2.2).
    HostConflict,
    /// A field value that begins or ends with white space, in HTTP/2 (RFC 9113 section 8.2.1).
    FieldWhiteSpace,
    /// A host that another certificate is for than the connection's, in HTTP/2 (RFC 9110 section 15.5.20).
    Misdirected,
    /// Content-Length that is not one number (RFC 9112 section 6.3).
    ContentLength,
    /// Content-Length beside Transfer-Encoding (RFC 9112 section 6.3).
    LengthConflict,
    /// Transfer-Encoding that does not end in one `chunked` (RFC 9112 section 6.3).
    TransferEncoding,
    /// A name that some servers take for Content-Length or Transfer-Encoding: written with `_`, it is the
    /// same variable to CGI and its heirs (RFC 3875 section 4.1.18).
    Lookalike,
    /// Blanks before the colon of a response's field that the switch acts on (RFC 9112 section 5.1).
    BlankBeforeColon,
    /// A name that some servers take for another one, where the listener takes none (RFC 3875 section 4.1.18).
    OddName,
    /// Trailer announces a field that may not stand in trailers (RFC 9110 section 6.5.1).
    Trailer,
    /// TRACE with content (RFC 9110 section 9.3.8).
    TraceContent,
    /// TRACE or OPTIONS with a Max-Forwards that is not one number (RFC 9110 section 7.6.2).
    MaxForwards,
    /// The target's scheme is not what the client speaks (RFC 9110 section 7.4).
    Scheme,
    /// A transfer coding other than `chunked` (RFC 9112 section 6.1).
    TransferCoding,
    /// Connection names a field that must reach the server (RFC 9110 section 7.6.1).
    Connection,
    /// An expectation other than `100-continue` (RFC 9110 section 10.1.1).
    Expectation,
    /// CONNECT: the switch is no tunnel (RFC 9110 section 9.3.6).
    Connect,
    /// CONNECT to a protocol that the listener does not change to (RFC 8441 section 4, RFC 9220 section 3).
    Protocol,
    /// A WebSocket handshake that is none: another method than GET, a body, no key or no version, or several
    /// (RFC 6455 section 4.2.1).
    WebSocket,
    /// A WebSocket handshake of another version than 13 (RFC 6455 section 4.4).
    WebSocketVersion,
}

impl Refusal {
    /// The status a refused request is answered with. A refused answer is always 502.
    pub fn status(self) -> u16 {
        match self {
            Refusal::HeadTooLarge | Refusal::TooManyHeaders => 431,
            Refusal::TargetTooLong => 414,
            Refusal::TransferCoding
            | Refusal::Connect
            | Refusal::Method
            | Refusal::MethodTooLong
            | Refusal::Protocol => 501,
            Refusal::Expectation => 417,
            Refusal::Scheme | Refusal::Misdirected => 421,
            Refusal::WebSocketVersion => 426,
            Refusal::Version => 505,
            _ => 400,
        }
    }

    /// What was wrong, for the answer's body and the access log.
    pub fn sentence(self) -> &'static str {
        match self {
            Refusal::Syntax => "malformed head",
            Refusal::BareLineFeed => "line ends in LF without CR",
            Refusal::EmptyLines => "too many empty lines before the request",
            Refusal::Version => "HTTP version not supported",
            Refusal::HeadTooLarge => "head too large",
            Refusal::TooManyHeaders => "too many header lines",
            Refusal::MethodTooLong => "method too long",
            Refusal::TargetTooLong => "request target too long",
            Refusal::Target => "malformed request target",
            Refusal::NoHost => "missing Host",
            Refusal::Hosts => "repeated Host",
            Refusal::Host => "malformed Host",
            Refusal::HostConflict => "request target and Host differ",
            Refusal::FieldWhiteSpace => "field value with white space at its ends",
            Refusal::Misdirected => "the host is not served on this connection",
            Refusal::ContentLength => "repeated or malformed Content-Length",
            Refusal::LengthConflict => "both Content-Length and Transfer-Encoding",
            Refusal::TransferEncoding => "malformed Transfer-Encoding",
            Refusal::Lookalike => "a field name that some take for Content-Length or Transfer-Encoding",
            Refusal::BlankBeforeColon => "blanks before the colon of a field that the switch acts on",
            Refusal::OddName => "a field name of more than letters, digits and hyphens",
            Refusal::Trailer => "Trailer announces a forbidden trailer",
            Refusal::TraceContent => "TRACE with content",
            Refusal::MaxForwards => "repeated or malformed Max-Forwards",
            Refusal::Scheme => "the scheme of the request target is not that of the connection",
            Refusal::TransferCoding => "transfer coding not supported",
            Refusal::Connection => "Connection names a field that is not hop-by-hop",
            Refusal::Expectation => "expectation not supported",
            Refusal::Connect | Refusal::Method => "method not supported",
            Refusal::Protocol => "protocol not supported",
            Refusal::WebSocket => "malformed WebSocket handshake",
            Refusal::WebSocketVersion => "WebSocket version not supported",
        }
    }

    /// Header lines that the answer must have besides: what the client can do instead.
    pub fn lines(self) -> &'static [u8] {
        match self {
            // RFC 9110 section 15.5.22, RFC 6455 section 4.2.2.
            Refusal::WebSocketVersion => {
                b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            }
            _ => b"",
        }
    }
}
