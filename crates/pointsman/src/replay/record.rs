//! One line of a log: a request or a connection that was recorded, and perhaps what was decided of it.

use std::net::{IpAddr, SocketAddr};

use pointsman_http::Version;

use super::{combined, own_log};
use crate::explain::report::shown;

/// Which log a line is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Ours,
    Common,
    Combined,
}

impl Format {
    /// What people call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Ours => "the switch's own",
            Format::Common => "the common log format",
            Format::Combined => "the combined log format",
        }
    }
}

/// What a line says. What it does not say is not known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) format: Format,
    /// The listener, in a log of ours.
    pub(super) listener: Option<String>,
    pub(super) client: Client,
    pub(super) client_ip: Option<IpAddr>,
    pub(super) tls: Tls,
    /// Absent where none was read: of a connection that is passed on as it is, or that broke off before.
    pub(super) request: Option<Request>,
    /// In a log of ours, where the rules were asked.
    pub(super) decided: Option<Decided>,
}

/// Who came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    /// Over a Unix socket, without an address.
    Unix,
    /// From this address and port.
    Port(SocketAddr),
    /// From this address.
    Address(IpAddr),
    /// The line has a name in its place.
    Unknown,
}

/// What a line says of TLS.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tls {
    Unknown,
    Plain,
    /// The version, and the server name where one was asked for.
    Spoken(&'static str, Option<String>),
    /// It is passed on as it is: the name that its hello asks for.
    Hello(Option<String>),
}

/// A request as it was recorded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Vec<u8>,
    /// As it came with its query, or the path alone in normal form.
    pub(super) target: Target,
    /// Beside a path alone.
    pub(super) query: Query,
    /// What the head said of the body.
    pub(super) content: Option<Content>,
    pub(super) version: Option<Version>,
    pub(super) host: Host,
    /// Fields of the head, with their values where they were there.
    pub(super) headers: Vec<(&'static str, Option<Vec<u8>>)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Whole(Vec<u8>),
    Path(Vec<u8>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Query {
    Unknown,
    Known(Option<Vec<u8>>),
}

/// What a head said of the body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// The media type alone.
    pub(super) media_type: Option<Vec<u8>>,
    pub(super) length: Option<u64>,
    pub(super) has_body: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Host {
    Unknown,
    Known(Option<Vec<u8>>),
}

/// What a line says was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decided {
    pub(super) rule: String,
    pub(super) pool: Option<String>,
    pub(super) server: Option<String>,
    pub(super) status: Option<u16>,
    /// The condition of the rule ended unknown for this cause, and the policy of the set took over.
    pub(super) unknown: Option<String>,
    /// Something went wrong behind the decision, or because of it.
    pub(super) has_error: bool,
}

impl Record {
    /// Reads a line of whichever log; the error says why it is none.
    pub(super) fn read(line: &[u8]) -> Result<Record, &'static str> {
        // JSON may have blanks around it (RFC 8259 section 2).
        match line.trim_ascii_start().first() {
            Some(b'{') => own_log::read(line),
            _ => combined::read(line),
        }
    }

    /// Whether it is of the switch's own log, which says what was decided.
    pub(super) fn is_ours(&self) -> bool {
        self.format == Format::Ours
    }

    /// `GET shop.example/cart from 192.0.2.7`
    pub(super) fn summary(&self) -> String {
        let from = match (self.client_ip, self.client) {
            (Some(ip), _) | (None, Client::Address(ip)) => ip.to_string(),
            (None, Client::Port(end)) => end.ip().to_string(),
            (None, Client::Unix) => "a Unix socket".to_owned(),
            (None, Client::Unknown) => "an unknown address".to_owned(),
        };
        let Some(request) = &self.request else {
            let name = match &self.tls {
                Tls::Spoken(_, Some(name)) | Tls::Hello(Some(name)) => {
                    format!(" for `{}`", shown(name.as_bytes()))
                }
                _ => String::new(),
            };
            return format!("a connection{name} from {from}");
        };
        let host = match &request.host {
            Host::Known(Some(host)) => shown(host),
            Host::Known(None) | Host::Unknown => String::new(),
        };
        let target = match &request.target {
            Target::Whole(target) | Target::Path(target) => shown(target),
        };
        format!("{} {host}{target} from {from}", shown(&request.method))
    }
}
