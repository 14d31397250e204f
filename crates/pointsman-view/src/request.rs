//! The view itself: a parsed head and its connection as the fields of the rule language.

use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;

use pointsman_http::{Framing, HeaderKind, HeaderLine, RequestHead, Version};
use pointsman_rules::{Cause, Evidence, Field, NameKind, Subject, Value};

use crate::host::lower_case;
use crate::readings::{Reading, is_list, members};
use crate::{
    Connection, HOST_BYTES_MAX, NormalPath, TrustedProxies, client_ip, content, cookie::cookie_names,
    cookie_values, normal_host, query::query_keys, query_values,
};

/// An HTTP request as rules see it: as the client sent it, whatever was since marked as dropped.
///
/// It holds nothing but references. A field is worked out when it is asked for, and only a query
/// value that must be decoded, or a media type of absurd length, allocates.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    head: &'a RequestHead,
    buffer: &'a [u8],
    connection: &'a Connection,
    path: NormalPath<'a>,
    trusted: TrustedProxies<'a>,
    body: Option<&'a Evidence>,
    /// How the head is read; literally if nothing is said.
    reading: Option<Reading>,
}

impl<'a> RequestView<'a> {
    /// A view of `head`, which was parsed from `buffer`; `path` is the normal form of its
    /// [`RequestHead::path_and_query`].
    pub fn new(
        head: &'a RequestHead,
        buffer: &'a [u8],
        connection: &'a Connection,
        path: NormalPath<'a>,
        trusted: TrustedProxies<'a>,
    ) -> RequestView<'a> {
        RequestView { head, buffer, connection, path, trusted, body: None, reading: None }
    }

    /// The same with what has become known of its body. Without it the fields of the body are absent.
    #[must_use]
    pub fn with_body<'b>(self, body: &'b Evidence) -> RequestView<'b>
    where
        'a: 'b,
    {
        RequestView { body: Some(body), ..self }
    }

    /// The same as another server reads it.
    pub(crate) fn read_as(self, reading: Reading) -> RequestView<'a> {
        RequestView { reading: Some(reading), ..self }
    }

    /// `clientip`: the client behind trusted proxies, otherwise the sender; `None` where that has no address.
    pub fn client_ip(&self) -> Option<IpAddr> {
        client_ip(self.connection, self.head, self.buffer, self.trusted)
    }

    /// The connection the request came on.
    pub fn connection(&self) -> &'a Connection {
        self.connection
    }

    /// The values of a cookie, in order.
    pub fn cookies(&self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.cookie_lines().flat_map(move |line| cookie_values(line, name.as_bytes()))
    }

    /// The path in normal form.
    pub fn path(&self) -> NormalPath<'a> {
        self.path
    }
}

impl Subject for RequestView<'_> {
    #[inline]
    fn only(&self, field: &Field) -> Option<Value<'_>> {
        match field {
            Field::Path | Field::Url if self.reading.is_some() => None,
            Field::Path => Some(Value::Text(self.path.path())),
            Field::Method => Some(Value::Text(self.head.method_name(self.buffer))),
            Field::Url => Some(Value::Text(self.head.target(self.buffer))),
            _ => None,
        }
    }

    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        // Whether the one who looks has seen enough concerns nobody here.
        let _seen_enough = self.each_until_break(field, see);
    }

    fn unsettled(&self, field: &Field) -> Option<Cause> {
        self.body?.unsettled(field)
    }

    fn each_name(&self, kind: NameKind, see: &mut dyn FnMut(&[u8])) -> bool {
        match kind {
            NameKind::Header => self.lines().for_each(|line| see(line.name(self.buffer))),
            NameKind::QueryParam => {
                let query = self.path.query().unwrap_or_default();
                query_keys(query).for_each(|key| see(key.as_bytes()));
            }
            NameKind::Cookie => self.cookie_lines().flat_map(cookie_names).for_each(see),
        }
        true
    }

    fn is_without_body(&self) -> bool {
        self.body.is_none()
    }

    fn evidence(&self) -> Option<&Evidence> {
        self.body
    }
}

/// Shows one value; [`ControlFlow::Break`] when no more are wanted.
pub(crate) type See<'s> = &'s mut dyn FnMut(Value<'_>) -> ControlFlow<()>;

impl<'a> RequestView<'a> {
    /// One arm a field and no catch-all: a field that is added to the language is missed here.
    fn each_until_break(&self, field: &Field, see: See<'_>) -> ControlFlow<()> {
        if let Some(reading) = self.reading
            && let Some(flow) = reading.each(&RequestView { reading: None, ..*self }, field, see)
        {
            return flow;
        }
        let connection = self.connection;
        let tls = connection.tls.as_deref();
        let client = tls.and_then(|tls| tls.client.as_ref());
        match field {
            Field::SrcIp => address(connection.src, see),
            Field::SrcPort => port(connection.src, see),
            Field::DstIp => address(connection.dst, see),
            Field::DstPort => port(connection.dst, see),
            Field::Proto | Field::Scheme => see(Value::Text(connection.scheme().as_bytes())),
            Field::ClientIp => self.client_ip().map(Value::Ip).into_iter().try_for_each(see),
            Field::TlsSni => texts(tls.and_then(|tls| tls.sni.as_deref()).map(str::as_bytes), see),
            Field::TlsVersion => texts(tls.map(|tls| tls.version.as_bytes()), see),
            Field::TlsCipher => texts(tls.map(|tls| tls.cipher.as_bytes()), see),
            Field::TlsAlpn => texts(tls.and_then(|tls| tls.alpn.as_deref()), see),
            Field::TlsResumed => tls.map(|tls| Value::Boolean(tls.resumed)).into_iter().try_for_each(see),
            Field::TlsClientSubject => texts(client.map(|client| client.subject.as_bytes()), see),
            Field::TlsClientSan => {
                texts(client.into_iter().flat_map(|client| &client.sans).map(|name| name.as_bytes()), see)
            }
            Field::TlsClientFingerprint => texts(client.map(|client| client.fingerprint.as_bytes()), see),
            Field::TlsClientCertificate => texts(client.map(|client| client.certificate.as_bytes()), see),
            Field::Proxy(value) => texts(connection.proxy_value(*value).as_deref(), see),
            Field::Method => see(Value::Text(self.head.method_name(self.buffer))),
            Field::Host => self.each_host(see),
            Field::Url => see(Value::Text(self.head.target(self.buffer))),
            Field::Path => see(Value::Text(self.path.path())),
            Field::Query => texts(self.path.query(), see),
            Field::QueryParam(key) => self.each_query_param(key, see),
            Field::Version => see(Value::Text(match self.head.version() {
                Version::Http10 => b"1.0",
                Version::Http11 => b"1.1",
                Version::Http2 => b"2",
            })),
            Field::Header(name) if is_list(name) => texts(self.lines_named(name).flat_map(members), see),
            Field::Header(name) => texts(self.lines_named(name), see),
            Field::Cookie(name) => self.each_cookie(name, see),
            Field::ContentType => self.each_content_type(see),
            Field::ContentLength => self.each_content_length(see),
            Field::Upgrade => self.each_upgrade(see),
            Field::Payload(_) => self.body.map_or(ControlFlow::Continue(()), |body| body.each(field, see)),
        }
    }

    /// The lines that rules may see: not those that Connection names.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a HeaderLine> {
        self.head.lines().iter().filter(|line| !line.hidden)
    }

    fn lines_of(&self, kind: HeaderKind) -> impl Iterator<Item = &'a [u8]> {
        let buffer = self.buffer;
        self.lines().filter(move |line| line.kind == kind).map(move |line| line.value(buffer))
    }

    /// The Cookie lines.
    pub(crate) fn cookie_lines(&self) -> impl Iterator<Item = &'a [u8]> {
        self.lines_of(HeaderKind::Cookie)
    }

    /// What the head was parsed from.
    pub(crate) fn buffer(&self) -> &'a [u8] {
        self.buffer
    }

    /// The request target as it was received.
    pub(crate) fn target(&self) -> &'a [u8] {
        self.head.target(self.buffer)
    }

    pub(crate) fn framing(&self) -> Framing {
        self.head.framing()
    }

    pub(crate) fn lines_named(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let buffer = self.buffer;
        self.lines()
            .filter(move |line| line.name(buffer).eq_ignore_ascii_case(name.as_bytes()))
            .map(move |line| line.value(buffer))
    }

    fn each_host(&self, see: See<'_>) -> ControlFlow<()> {
        let mut scratch = [0; HOST_BYTES_MAX];
        match normal_host(self.head.authority(self.buffer), &mut scratch) {
            Some(host) => see(Value::Text(host)),
            None => ControlFlow::Continue(()),
        }
    }

    fn each_content_type(&self, see: See<'_>) -> ControlFlow<()> {
        in_lower_case(self.lines_of(HeaderKind::ContentType).filter_map(content::media_type), see)
    }

    /// Connection must name the field, which hides it from `header["upgrade"]`.
    fn each_upgrade(&self, see: See<'_>) -> ControlFlow<()> {
        in_lower_case(self.head.offered_protocols(self.buffer), see)
    }

    fn each_query_param(&self, key: &[u8], see: See<'_>) -> ControlFlow<()> {
        let query = self.path.query().unwrap_or_default();
        query_values(query, key).try_for_each(|value| see(Value::Text(value.as_bytes())))
    }

    fn each_cookie(&self, name: &str, see: See<'_>) -> ControlFlow<()> {
        texts(self.cookies(name), see)
    }

    fn each_content_length(&self, see: See<'_>) -> ControlFlow<()> {
        let lengths = self.lines_of(HeaderKind::ContentLength).filter_map(content::announced_length);
        lengths.map(Value::Integer).try_for_each(see)
    }
}

pub(crate) fn address(end: Option<SocketAddr>, see: See<'_>) -> ControlFlow<()> {
    end.map(|end| Value::Ip(end.ip().to_canonical())).into_iter().try_for_each(see)
}

pub(crate) fn port(end: Option<SocketAddr>, see: See<'_>) -> ControlFlow<()> {
    end.map(|end| Value::Integer(end.port().into())).into_iter().try_for_each(see)
}

fn in_lower_case<'v>(names: impl Iterator<Item = &'v [u8]>, see: See<'_>) -> ControlFlow<()> {
    for name in names {
        let mut scratch = [0; HOST_BYTES_MAX];
        match lower_case(name, &mut scratch) {
            Some(lower) => see(Value::Text(lower))?,
            None => see(Value::Text(&name.to_ascii_lowercase()))?,
        }
    }
    ControlFlow::Continue(())
}

pub(crate) fn texts<'v>(values: impl IntoIterator<Item = &'v [u8]>, see: See<'_>) -> ControlFlow<()> {
    values.into_iter().try_for_each(|value| see(Value::Text(value)))
}
