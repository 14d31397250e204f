//! What rules say of a record: the request is made again of what was written down, and read as any other.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use pointsman_config::Protocol;
use pointsman_http::{Refusal, RequestHead, TargetForm, Version};
use pointsman_rules::{DecidedBy, Decision, Field, Outcome, Program, Subject};
use pointsman_view::{
    Connection, ConnectionView, HelloFacts, Known, Proxied, Recorded, RecordedBody, RequestView, TlsFacts,
    TrustedProxies, normal_form,
};

use super::record::{Client, Host, Query, Record, Request, Target, Tls};
use super::stand::Stand;

/// Of a request whose host was not written down. No rule sees it.
const HOST: &str = "unknown.invalid";

/// What becomes of a record.
pub(super) enum Ruling<'r> {
    /// Somebody or nobody decides; the program is absent where a listener has no rules.
    Decided(Option<&'r Program>, Decision<'r>),
    /// The switch refuses it before a rule is asked, for this reason.
    Refused(&'static str),
    /// It hangs on fields that were not written down.
    Untold(Vec<&'r Field>),
}

/// Room for the head of a request and its path, kept for the next.
#[derive(Default)]
pub(super) struct Room {
    head: RequestHead,
    bytes: Vec<u8>,
    path: Vec<u8>,
}

/// What somebody says of every record where it was not written down.
pub(super) struct Asking<'a> {
    /// Fields that none had.
    pub(super) absent: &'a [String],
    /// The host that all asked for.
    pub(super) host: Option<&'a [u8]>,
    /// Whether all came over TLS.
    pub(super) is_tls: Option<bool>,
}

impl Asking<'_> {
    /// What the rules of a listener say of a record.
    pub(super) fn ruling<'r>(&self, stand: &'r Stand, record: &Record, room: &mut Room) -> Ruling<'r> {
        let tls = self.tls(stand, record);
        let connection = connection(stand, record, &tls);
        let (request, protocol) = (record.request.as_ref(), stand.place.protocol);
        let Some(request) = request.filter(|_| protocol == Protocol::Http) else {
            return self.of_connection(stand, record, &connection);
        };
        let host = match (&request.host, self.host) {
            (Host::Known(host), _) => host.as_deref(),
            (Host::Unknown, said) => Some(said.unwrap_or(HOST.as_bytes())),
        };
        if let Err(refusal) = read(request, host, stand, room) {
            return Ruling::Refused(refusal);
        }
        let Room { head, bytes, path } = room;
        if tls != Spoken::Unknown {
            let scheme = if tls == Spoken::No { "http" } else { "https" };
            if let Err(refusal) = head.check_scheme(bytes, scheme) {
                return Ruling::Refused(refusal.sentence());
            }
        }
        let path = match normal_form(head.path_and_query(bytes), stand.place.path_options, path) {
            Ok(path) => path,
            Err(refusal) => return Ruling::Refused(refusal.sentence()),
        };
        // Whom the log names was worked out when it was written.
        let trusted = TrustedProxies { networks: &[], unix: false };
        let view = RequestView::new(head, bytes, &connection, path, trusted);
        let is_whole = matches!(request.target, Target::Whole(_));
        let headers: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
        let known = Known {
            request: true,
            host: request.host != Host::Unknown || self.host.is_some() || head.form() == TargetForm::Absolute,
            target: is_whole,
            query: is_whole || request.query != Query::Unknown,
            content: request.content.is_some(),
            body: body(request),
            version: request.version.is_some_and(|version| version == head.version()),
            headers: &headers,
            ..known(stand, record, &tls)
        };
        self.decided(stand, &Recorded::new(&view, known))
    }

    /// Whether it came over TLS: as the log says, as the listener is, or as somebody says.
    fn tls<'l>(&self, stand: &Stand, record: &'l Record) -> Spoken<'l> {
        let said = match stand.place.listener.is_empty() {
            true => self.is_tls,
            false => Some(stand.place.is_tls),
        };
        match (&record.tls, said) {
            (Tls::Spoken(version, sni), _) => Spoken::As(version, sni.as_deref()),
            (Tls::Plain | Tls::Hello(_), _) | (Tls::Unknown, Some(false)) => Spoken::No,
            (Tls::Unknown, Some(true)) => Spoken::Somehow,
            (Tls::Unknown, None) => Spoken::Unknown,
        }
    }

    fn of_connection<'r>(&self, stand: &'r Stand, record: &Record, connection: &Connection) -> Ruling<'r> {
        let hello = match (&record.tls, stand.place.protocol) {
            (Tls::Hello(sni), Protocol::TlsPassthrough) | (Tls::Spoken(_, sni), Protocol::TlsPassthrough) => {
                Some(HelloFacts { sni: sni.clone(), ..HelloFacts::default() })
            }
            _ => None,
        };
        let is_read = hello.is_some() || stand.place.protocol == Protocol::Tcp;
        let known = Known {
            scheme: is_read,
            sni: is_read,
            // What else a hello offers is not written down.
            tls_version: stand.place.protocol == Protocol::Tcp,
            handshake: stand.place.protocol == Protocol::Tcp,
            ..known(stand, record, &self.tls(stand, record))
        };
        let connection = Connection { tls: None, ..connection.clone() };
        let view = ConnectionView::new(&connection, hello.as_ref());
        self.decided(stand, &Recorded::new(&view, known))
    }

    fn decided<'r>(&self, stand: &'r Stand, recorded: &Recorded<'_>) -> Ruling<'r> {
        let Some(program) = stand.place.program.as_deref() else {
            let (by, outcome) = (DecidedBy::Nothing, Outcome::DefaultPool);
            return Ruling::Decided(None, Decision { by, outcome, effects: Default::default() });
        };
        let subject = Supposed { recorded, absent: self.absent };
        let decision = program.decide_plainly(&subject);
        match (decision.outcome, decision.by) {
            (Outcome::Waits, DecidedBy::Rule { index, .. }) => {
                let rule = program.rule(index);
                Ruling::Untold(rule.map(|rule| rule.wanting(&subject)).unwrap_or_default())
            }
            _ => Ruling::Decided(Some(program), decision),
        }
    }
}

/// A record, with fields that somebody says are absent where they were not written down.
struct Supposed<'a> {
    recorded: &'a Recorded<'a>,
    absent: &'a [String],
}

impl Subject for Supposed<'_> {
    fn each(
        &self,
        field: &Field,
        see: &mut dyn FnMut(pointsman_rules::Value<'_>) -> std::ops::ControlFlow<()>,
    ) {
        self.recorded.each(field, see);
    }

    fn unsettled(&self, field: &Field) -> Option<pointsman_rules::Cause> {
        let cause = self.recorded.unsettled(field)?;
        let is_absent = !self.absent.is_empty() && self.absent.contains(&field.to_string());
        (!is_absent).then_some(cause)
    }
}

/// What is known of the TLS of a connection that is read.
#[derive(Debug, PartialEq, Eq)]
enum Spoken<'l> {
    Unknown,
    No,
    /// It was spoken, and nobody knows more of it.
    Somehow,
    /// The version and the server name.
    As(&'static str, Option<&'l str>),
}

/// The connection, with something in the place of what is not known.
fn connection(stand: &Stand, record: &Record, spoken: &Spoken<'_>) -> Connection {
    let src = match record.client {
        Client::Unix | Client::Unknown => None,
        Client::Port(end) => Some(end),
        Client::Address(ip) => Some(SocketAddr::new(ip, 0)),
    };
    let dst_ip = stand.place.dst_ip().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let dst = SocketAddr::new(dst_ip, stand.place.dst_port().unwrap_or_default());
    let facts = |version, sni: Option<&str>| {
        let sni = sni.map(str::to_owned);
        Some(TlsFacts { sni, version, cipher: "", alpn: None, resumed: false, client: None, session: None })
    };
    let tls = match *spoken {
        Spoken::As(version, sni) => facts(version, sni),
        Spoken::Somehow => facts("", None),
        Spoken::Unknown | Spoken::No => None,
    };
    Connection {
        src,
        dst: (record.client != Client::Unix).then_some(dst),
        proxied: record.client_ip.map(|ip| Arc::new(Proxied::Client(SocketAddr::new(ip, 0)).into())),
        tls: tls.map(Arc::new),
    }
}

/// What is known of a connection.
fn known(stand: &Stand, record: &Record, spoken: &Spoken<'_>) -> Known<'static> {
    let is_unix = record.client == Client::Unix;
    // Of a connection that is passed on as it is, the hello says what there is.
    let is_plain = *spoken == Spoken::No && !matches!(record.tls, Tls::Hello(_));
    let is_spoken = matches!(spoken, Spoken::As(..));
    let client_ip = match record.client {
        _ if record.client_ip.is_some() => true,
        Client::Unix => true,
        // Who is behind a proxy that is believed stands in a field of the head.
        Client::Address(ip) => !stand.place.trusted_proxies().contain(ip),
        Client::Port(_) | Client::Unknown => false,
    };
    Known {
        src_ip: record.client != Client::Unknown,
        src_port: matches!(record.client, Client::Unix | Client::Port(_)),
        dst_ip: is_unix || stand.place.dst_ip().is_some(),
        dst_port: is_unix || stand.place.dst_port().is_some(),
        client_ip,
        scheme: *spoken != Spoken::Unknown,
        sni: is_plain || is_spoken,
        tls_version: is_plain || is_spoken,
        handshake: is_plain,
        ..Known::default()
    }
}

/// Writes the head again and reads it as the switch does; the error is the sentence that refuses it.
fn read(request: &Request, host: Option<&[u8]>, stand: &Stand, room: &mut Room) -> Result<(), &'static str> {
    let (Target::Whole(target) | Target::Path(target)) = &request.target;
    let media_type = request.content.as_ref().and_then(|content| content.media_type.as_deref());
    let texts = [
        &request.method[..],
        target,
        query_of(request).unwrap_or_default(),
        media_type.unwrap_or_default(),
        host.unwrap_or_default(),
    ];
    if texts.iter().any(|text| text.iter().any(|byte| matches!(byte, b'\r' | b'\n'))) {
        // It would be another line of the head.
        return Err(Refusal::Syntax.sentence());
    }
    write(request, host, &mut room.bytes);
    let mut parsed = room.head.parse(&room.bytes, &stand.place.limits);
    if request.host == Host::Unknown && room.head.form() == TargetForm::Absolute {
        // The host is that of the target, or it would have been refused.
        let host = authority(target).to_vec();
        write(request, Some(&host), &mut room.bytes);
        parsed = room.head.parse(&room.bytes, &stand.place.limits);
    }
    match parsed {
        Ok(true) => {}
        Ok(false) => return Err("it makes no whole head"),
        Err(refusal) => return Err(refusal.sentence()),
    }
    if request.version == Some(Version::Http2) {
        room.head.is_of_http2().map_err(|refusal| refusal.sentence())?;
    }
    Ok(())
}

/// Beside a path alone.
fn query_of(request: &Request) -> Option<&[u8]> {
    match &request.query {
        Query::Known(query) => query.as_deref(),
        Query::Unknown => None,
    }
}

fn body(request: &Request) -> RecordedBody {
    match request.content.as_ref().map(|content| (content.has_body, content.length)) {
        None | Some((true, None)) => RecordedBody::Unknown,
        Some((false, _)) => RecordedBody::Absent,
        Some((true, Some(bytes))) => RecordedBody::Bytes(bytes),
    }
}

/// `shop.example:8080` of `http://shop.example:8080/x?y`.
fn authority(target: &[u8]) -> &[u8] {
    let behind = target.windows(3).position(|window| window == b"://").map_or(0, |at| at + 3);
    let rest = target.get(behind..).unwrap_or_default();
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

/// Without a host it is written as HTTP/1.0, which alone may lack one.
fn write(request: &Request, host: Option<&[u8]>, to: &mut Vec<u8>) {
    let (Target::Whole(target) | Target::Path(target)) = &request.target;
    let is_http10 = request.version == Some(Version::Http10) || host.is_none();
    let version: &[u8] = if is_http10 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" };
    to.clear();
    for part in [&request.method[..], b" ", target] {
        to.extend_from_slice(part);
    }
    if let Some(query) = query_of(request) {
        to.push(b'?');
        to.extend_from_slice(query);
    }
    to.extend_from_slice(version);
    let content = request.content.as_ref();
    if let Some(media_type) = content.and_then(|content| content.media_type.as_deref()) {
        for part in [&b"content-type: "[..], media_type, b"\r\n"] {
            to.extend_from_slice(part);
        }
    }
    if let Some(length) = content.and_then(|content| content.length) {
        to.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
    }
    let fields = request.headers.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
    for (name, value) in host.map(|host| ("host", host)).into_iter().chain(fields) {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            to.extend_from_slice(part);
        }
    }
    to.extend_from_slice(b"\r\n");
}
