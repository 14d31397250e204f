//! What ends an exchange before its time: whose fault it is, and the one place that chooses the
//! status for it.

use std::io;

use pointsman_config::RetryCause;
use pointsman_http::BodyFault;
use pointsman_rules::{BadPath, Cause, ForbiddenByte};
use pointsman_telemetry::{Refusal, ServerFailure};
use pointsman_tls::ServerHandshakeFault as TlsFault;
use pointsman_view::PathRefusal;

use crate::ahead::Unfollowed;
use crate::memory::is_out_of_memory;
use crate::response_fault::ResponseFault;

/// Why an exchange does not end as the client hoped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The request's head is refused.
    Head(pointsman_http::Refusal),
    /// The request's path is refused.
    Path(PathRefusal),
    /// The request's body is malformed.
    Body(BodyFault),
    /// The request's body is longer than `body_bytes_max`.
    BodyTooLarge,
    /// The head did not arrive in time.
    HeadTimeout,
    /// The body did not arrive in time.
    BodyTimeout,
    /// The client went away, or took no byte of the answer in time.
    Client(ClientFault),
    /// A rule refused the connection.
    Rejected,
    /// A rule resets a connection of which no request is read.
    Reset,
    /// A condition ended unknown.
    Unknown(Cause),
    /// A rule has decided, and behind what it asked for the body proved to be wrong.
    Content(Cause),
    /// Other bodies took all the room that there is to hold any, for too long.
    Hold,
    /// A substituted value would break a header.
    Substitution(ForbiddenByte),
    /// A rewritten path cannot be forwarded.
    Rewrite(BadPath),
    /// Nothing came through a tunnel in its time.
    TunnelIdle,
    /// A tunnel was closed because the switch drains.
    TunnelDrained,
    /// The drain was over.
    Drained,
    /// There is no memory left for it.
    Memory,
    /// The listener is no longer in the configuration.
    NoListener,
    /// No server of the target can be tried.
    NoServer,
    /// Each server of the target has as many requests as it may have, and as many wait as may.
    QueueFull,
    /// The same, and it has waited for its time.
    QueueTimeout,
    /// A server failed.
    Server(ServerFault),
    /// A newer request of its connection took its place.
    Overtaken,
    /// An answer before it on its connection ended that.
    Dropped,
}

/// How a client ended an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientFault {
    /// It closed.
    Closed,
    /// It took no byte of the answer for `write_ms_max`.
    Stalled,
}

/// How a server failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerFault {
    /// It refused the connection.
    Refused,
    /// There is no way to it.
    Unreachable,
    /// No connection for another reason.
    Connect,
    /// No descriptor or no memory left for a connection: not the server's fault at all.
    Shortage,
    /// No connection in time.
    ConnectTimeout,
    /// The TLS handshake with it failed, or it broke TLS off behind it.
    Tls(TlsFault),
    /// The TLS handshake was not over in time.
    TlsTimeout,
    /// It took no byte of the request in time.
    WriteTimeout,
    /// No answer in time.
    ResponseTimeout,
    /// The body of its answer paused too long.
    BodyTimeout,
    /// It closed before its answer, or in it.
    Closed,
    /// It said that it has not looked at the request.
    Unread,
    /// It speaks HTTP/1 where HTTP/2 is expected.
    NotHttp2,
    /// It said that it takes no requests for now.
    TakesNone,
    /// Its response is not HTTP, or breaks a limit.
    Response(ResponseFault),
    /// Its answer has a status that its pool asks another server for.
    Status(u16),
}

impl From<Unfollowed> for Fault {
    fn from(unfollowed: Unfollowed) -> Fault {
        match unfollowed {
            Unfollowed::Framing(fault) => Fault::Body(fault),
            Unfollowed::Memory => Fault::Memory,
        }
    }
}

impl Fault {
    /// What a read from the client came to that brought nothing.
    pub(crate) fn of_client(read: &io::Result<usize>) -> Fault {
        if is_out_of_memory(read) { Fault::Memory } else { Fault::Client(ClientFault::Closed) }
    }

    /// The same from a server.
    pub(crate) fn of_server(read: &io::Result<usize>) -> Fault {
        if is_out_of_memory(read) { Fault::Memory } else { Fault::Server(ServerFault::of_read(read)) }
    }

    /// The status of the answer; `None` where there is nobody to answer.
    pub(crate) fn status(self) -> Option<u16> {
        Some(match self {
            Fault::Head(refusal) => refusal.status(),
            Fault::Path(refusal) => refusal.status(),
            Fault::Body(_) | Fault::Substitution(_) | Fault::Rewrite(_) => 400,
            Fault::BodyTooLarge => 413,
            Fault::HeadTimeout | Fault::BodyTimeout => 408,
            Fault::Client(_)
            | Fault::Rejected
            | Fault::Reset
            | Fault::TunnelIdle
            | Fault::TunnelDrained
            | Fault::Drained
            | Fault::Dropped => return None,
            Fault::Unknown(cause) | Fault::Content(cause) => cause.status(),
            Fault::Memory
            | Fault::Hold
            | Fault::NoListener
            | Fault::NoServer
            | Fault::QueueFull
            | Fault::QueueTimeout
            | Fault::Overtaken => 503,
            Fault::Server(fault) => match fault {
                ServerFault::Status(status) => status,
                ServerFault::Shortage | ServerFault::TakesNone => 503,
                ServerFault::Refused
                | ServerFault::Unreachable
                | ServerFault::Connect
                | ServerFault::Tls(_)
                | ServerFault::Closed
                | ServerFault::Unread
                | ServerFault::NotHttp2
                | ServerFault::Response(_) => 502,
                ServerFault::ConnectTimeout
                | ServerFault::TlsTimeout
                | ServerFault::WriteTimeout
                | ServerFault::ResponseTimeout
                | ServerFault::BodyTimeout => 504,
            },
        })
    }

    /// Whether a request failed by it that was in order: the client had no part in it.
    pub(crate) fn is_failure(self) -> bool {
        match self {
            Fault::Server(_)
            | Fault::Memory
            | Fault::Hold
            | Fault::NoListener
            | Fault::NoServer
            | Fault::QueueFull
            | Fault::QueueTimeout => true,
            Fault::Head(_)
            | Fault::Path(_)
            | Fault::Body(_)
            | Fault::BodyTooLarge
            | Fault::HeadTimeout
            | Fault::BodyTimeout
            | Fault::Client(_)
            | Fault::Rejected
            | Fault::Reset
            | Fault::Unknown(_)
            | Fault::Content(_)
            | Fault::Substitution(_)
            | Fault::Rewrite(_)
            | Fault::TunnelIdle
            | Fault::TunnelDrained
            | Fault::Drained
            | Fault::Overtaken
            | Fault::Dropped => false,
        }
    }

    /// Header lines that the answer must have besides.
    pub(crate) fn lines(self) -> &'static [u8] {
        match self {
            Fault::Head(refusal) => refusal.lines(),
            // Others will have made room by then (RFC 9110 section 10.2.3).
            Fault::Hold | Fault::QueueFull | Fault::QueueTimeout => b"Retry-After: 1\r\n",
            _ => b"",
        }
    }

    /// What was wrong, for the answer's body and the access log.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Fault::Head(refusal) => refusal.sentence(),
            Fault::Path(refusal) => refusal.sentence(),
            Fault::Body(fault) => fault.sentence(),
            Fault::BodyTooLarge => "body too large",
            Fault::HeadTimeout => "the head did not arrive in time",
            Fault::BodyTimeout => "the body did not arrive in time",
            Fault::Client(ClientFault::Closed) => "the client closed the connection",
            Fault::Client(ClientFault::Stalled) => "the client took nothing of the answer in time",
            Fault::TunnelIdle => "nothing came through the tunnel in time",
            Fault::TunnelDrained => "the tunnel was closed: the switch drains",
            Fault::Drained => "cut off: the drain was over",
            Fault::Rejected => "a rule refused the connection",
            Fault::Reset => "a rule reset the connection",
            Fault::Unknown(cause) => match cause {
                Cause::NotANumber => "a rule could not be decided: what it compares is not a number",
                Cause::Duplicate => "a rule could not be decided: there are two values where it wants one",
                Cause::DuplicateKey => "a rule could not be decided: the body repeats a key that it names",
                Cause::Malformed => "a rule could not be decided: the body is malformed",
                Cause::Encoding => {
                    "a rule could not be decided: the body's encoding or type is not supported"
                }
                Cause::Ambiguous => {
                    "ambiguous: servers read the request in ways that the rules decide differently"
                }
                Cause::Limit => "a rule could not be decided: what would settle it lies beyond a limit",
                Cause::Unread => "a rule could not be decided",
            },
            Fault::Content(cause) => match cause {
                Cause::Limit => "the body goes over a limit",
                Cause::Encoding => "the body's encoding is not supported, or contradicts itself",
                Cause::DuplicateKey => "the body repeats a key that a rule names",
                Cause::Ambiguous => "ambiguous: the body has a name that servers read in several ways",
                _ => "the body is malformed",
            },
            Fault::Hold => "no room left to hold the body",
            Fault::Substitution(_) => "a substituted value holds a control character",
            Fault::Rewrite(_) => "the rewritten path is not valid",
            Fault::Memory => "no memory left",
            Fault::NoListener => "this listener is being removed",
            Fault::NoServer => "no server",
            Fault::QueueFull => "all servers are busy, and too many requests wait for them",
            Fault::QueueTimeout => "all servers were busy for too long",
            Fault::Overtaken => "overtaken by a newer request",
            Fault::Dropped => "an answer before it ended the connection",
            Fault::Server(fault) => match fault {
                ServerFault::Refused => "the server refused the connection",
                ServerFault::Unreachable => "no route to the server",
                ServerFault::Connect => "no connection to the server",
                ServerFault::Shortage => "no descriptor or memory left for a connection to the server",
                ServerFault::ConnectTimeout => "no connection to the server in time",
                ServerFault::Tls(fault) => tls_sentence(fault),
                ServerFault::TlsTimeout => "no TLS handshake with the server in time",
                ServerFault::WriteTimeout => "the server took nothing of the request in time",
                ServerFault::ResponseTimeout => "no answer from the server in time",
                ServerFault::BodyTimeout => "the server's answer stopped in its body",
                ServerFault::Closed => "the server closed the connection",
                ServerFault::Unread => "the server did not look at the request",
                ServerFault::NotHttp2 => "the server does not speak HTTP/2",
                ServerFault::TakesNone => "the server takes no requests for now",
                ServerFault::Response(fault) => fault.sentence(),
                ServerFault::Status(_) => "the server says that it cannot answer",
            },
        }
    }

    /// Under which reason the client was refused, for the metrics.
    pub(crate) fn refusal(self) -> Option<Refusal> {
        use pointsman_http::Refusal as Head;
        Some(match self {
            Fault::Head(Head::HeadTooLarge) => Refusal::HeadBytes,
            Fault::Head(Head::TooManyHeaders) => Refusal::Headers,
            Fault::Head(Head::TargetTooLong) => Refusal::TargetBytes,
            Fault::Head(
                Head::TransferCoding
                | Head::Connect
                | Head::Method
                | Head::Expectation
                | Head::Version
                | Head::WebSocketVersion,
            ) => Refusal::Unsupported,
            Fault::Head(_) | Fault::Path(_) | Fault::Body(_) => Refusal::Malformed,
            Fault::BodyTooLarge => Refusal::BodyBytes,
            Fault::HeadTimeout => Refusal::HeadTimeout,
            Fault::BodyTimeout => Refusal::BodyTimeout,
            Fault::Client(ClientFault::Stalled) => Refusal::WriteTimeout,
            Fault::Overtaken => Refusal::Overtaken,
            Fault::Client(ClientFault::Closed)
            | Fault::TunnelIdle
            | Fault::TunnelDrained
            | Fault::Drained
            | Fault::Dropped => return None,
            Fault::Unknown(cause) | Fault::Content(cause) => match cause {
                Cause::Malformed => Refusal::ContentMalformed,
                Cause::Encoding => Refusal::ContentEncoding,
                Cause::Limit => Refusal::ContentLimit,
                Cause::DuplicateKey => Refusal::ContentDuplicateKey,
                Cause::Ambiguous => Refusal::Ambiguous,
                Cause::NotANumber | Cause::Duplicate | Cause::Unread => Refusal::Rule,
            },
            Fault::Hold => Refusal::Hold,
            Fault::QueueFull => Refusal::QueueFull,
            Fault::QueueTimeout => Refusal::QueueTimeout,
            Fault::Rejected | Fault::Reset | Fault::Substitution(_) | Fault::Rewrite(_) => Refusal::Rule,
            Fault::Memory => Refusal::Memory,
            Fault::Server(ServerFault::Shortage) => Refusal::Descriptors,
            Fault::NoListener | Fault::NoServer | Fault::Server(_) => Refusal::NoServer,
        })
    }
}

pub(crate) fn tls_sentence(fault: TlsFault) -> &'static str {
    match fault {
        TlsFault::Untrusted => "TLS with the server: its certificate is from no trusted authority",
        TlsFault::WrongName => "TLS with the server: its certificate is for another name",
        TlsFault::Expired => "TLS with the server: its certificate has expired",
        TlsFault::NotYetValid => "TLS with the server: its certificate is not valid yet",
        TlsFault::CertificateVersion => {
            "TLS with the server: its certificate is of X.509 version 1 or 2, not 3"
        }
        TlsFault::BadCertificate => "TLS with the server: its certificate cannot be used",
        TlsFault::OurCertificate => "TLS with the server: it does not take our certificate, or wants one",
        TlsFault::UnknownName => "TLS with the server: it does not know the name that it was called by",
        TlsFault::NotTls => "TLS with the server: it does not speak TLS",
        TlsFault::Malformed => "TLS with the server: what it said is broken",
        TlsFault::NoSharedVersion => "TLS with the server: no version in common",
        TlsFault::NoSharedCipher => "TLS with the server: no cipher in common",
        TlsFault::NoSharedProtocol => "TLS with the server: it does not speak the protocol of its pool",
        TlsFault::Alert => "TLS with the server: it broke off with an alert",
        TlsFault::Closed => "TLS with the server: it closed the connection in the handshake",
        TlsFault::Other => "TLS with the server: it failed",
    }
}

impl ServerFault {
    /// What a read from a server came to that brought nothing.
    pub(crate) fn of_read(read: &io::Result<usize>) -> ServerFault {
        match read {
            Err(error) => ServerFault::of_io(error),
            Ok(_) => ServerFault::Closed,
        }
    }

    /// What an error of its connection, or of a stream on it, comes to.
    pub(crate) fn of_io(error: &io::Error) -> ServerFault {
        match (TlsFault::of_tls(error), error.kind()) {
            (Some(fault), _) => ServerFault::Tls(fault),
            (None, io::ErrorKind::ConnectionRefused) => ServerFault::Unread,
            (None, io::ErrorKind::Unsupported) => ServerFault::NotHttp2,
            (None, io::ErrorKind::InvalidData) => ServerFault::Response(ResponseFault::Http2),
            (None, _) => ServerFault::Closed,
        }
    }

    /// Under which kind the server failed, for the metrics.
    pub(crate) fn kind(self) -> ServerFailure {
        match self {
            ServerFault::Refused
            | ServerFault::Unreachable
            | ServerFault::Connect
            | ServerFault::Shortage
            | ServerFault::TakesNone => ServerFailure::Connect,
            ServerFault::Tls(fault) => match fault {
                TlsFault::Untrusted => ServerFailure::TlsUntrusted,
                TlsFault::WrongName => ServerFailure::TlsWrongName,
                TlsFault::Expired => ServerFailure::TlsExpired,
                TlsFault::NotYetValid | TlsFault::CertificateVersion | TlsFault::BadCertificate => {
                    ServerFailure::TlsCertificate
                }
                TlsFault::OurCertificate => ServerFailure::TlsOurCertificate,
                _ => ServerFailure::Tls,
            },
            ServerFault::ConnectTimeout
            | ServerFault::TlsTimeout
            | ServerFault::WriteTimeout
            | ServerFault::ResponseTimeout
            | ServerFault::BodyTimeout => ServerFailure::Timeout,
            ServerFault::Closed | ServerFault::Unread => ServerFailure::Closed,
            ServerFault::Response(fault) => fault.kind(),
            ServerFault::NotHttp2 => ServerFailure::Protocol,
            ServerFault::Status(_) => ServerFailure::Status,
        }
    }

    /// What another server may be asked for, where its pool says so; `None`: nothing.
    pub(crate) fn retry_cause(self) -> Option<RetryCause> {
        match self {
            ServerFault::Refused
            | ServerFault::Unreachable
            | ServerFault::Connect
            | ServerFault::ConnectTimeout
            | ServerFault::Tls(_)
            | ServerFault::TlsTimeout
            | ServerFault::NotHttp2
            | ServerFault::TakesNone => Some(RetryCause::Connect),
            ServerFault::Closed | ServerFault::Unread => Some(RetryCause::Reset),
            ServerFault::WriteTimeout | ServerFault::ResponseTimeout => Some(RetryCause::Timeout),
            ServerFault::Status(status) => RetryCause::of_status(status),
            // What the switch is short of no other server has; the others have answered.
            ServerFault::Shortage | ServerFault::BodyTimeout | ServerFault::Response(_) => None,
        }
    }

    /// Whether it says that the server did not look at the request, whatever was sent of it.
    pub(crate) fn is_unread(self) -> bool {
        // What the server has against our certificate it says before it looks at a request.
        matches!(self, ServerFault::Unread | ServerFault::Tls(TlsFault::OurCertificate))
    }
}
