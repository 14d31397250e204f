//! What a test says of a request, and the request that is made of it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use pointsman_analysis::{Agreed, AgreedTls, Ends, Setting, server_name, usual_client, usual_method};
use pointsman_rules::{Diagnostic, Field, OwnedValue, ProxyValue, TestCase};
use pointsman_tls::is_dns_name;
use pointsman_view::{Connection, HelloFacts, Proxied, ProxyFacts, ProxyValues, Reads, TlsClient, TlsFacts};

use super::odds;
use super::trial::Verdict;
use crate::percent::encoded;

/// Of a request whose test says none. No rule means it.
const HOST: &str = "test.invalid";

/// Versions of TLS as rules about connections see them.
const TLS_VERSIONS: &[&str] = &["1.0", "1.1", "1.2", "1.3"];

/// The fields that a test says.
#[derive(Clone, Copy)]
pub(super) struct Said<'t>(pub(super) &'t TestCase);

impl<'t> Said<'t> {
    /// Every field of the head and of the connection that is said, in order, with its values; without any if it is said to
    /// be absent.
    pub(super) fn fields(self) -> Vec<(&'t Field, Vec<&'t OwnedValue>)> {
        let mut fields: Vec<(&Field, Vec<&OwnedValue>)> = Vec::new();
        let mut places: HashMap<&Field, usize> = HashMap::new();
        for given in self.0.given.iter().filter(|given| !matches!(given.field, Field::Payload(_))) {
            let place = *places.entry(&given.field).or_insert(fields.len());
            match fields.get_mut(place) {
                Some((_, values)) => values.push(&given.value),
                None => fields.push((&given.field, vec![&given.value])),
            }
        }
        let absent = self.0.absent.iter().filter(|field| !matches!(field, Field::Payload(_)));
        fields.extend(absent.map(|field| (field, Vec::new())));
        fields
    }

    fn values(self, field: &Field) -> impl Iterator<Item = &'t OwnedValue> {
        let given = self.0.given.iter().filter(move |given| given.field == *field);
        given.map(|given| &given.value)
    }

    /// Whether it is said that there is none.
    fn is_absent(self, is_meant: impl Fn(&Field) -> bool) -> bool {
        self.0.absent.iter().any(is_meant)
    }

    fn is_said(self, is_meant: impl Fn(&Field) -> bool) -> bool {
        self.0.given.iter().any(|given| is_meant(&given.field))
    }

    fn text(self, field: &Field) -> Option<&'t [u8]> {
        self.texts(field).next()
    }

    fn texts(self, field: &Field) -> impl Iterator<Item = &'t [u8]> {
        self.values(field).filter_map(|value| match value {
            OwnedValue::Text(text) => Some(&**text),
            _ => None,
        })
    }

    fn string(self, field: &Field) -> Option<String> {
        self.text(field).map(|text| String::from_utf8_lossy(text).into_owned())
    }

    /// That there is no such request, under what the test says of a field.
    pub(super) fn impossible(self, field: &Field, sentence: String, help: Option<String>) -> Verdict {
        match self.0.given.iter().find(|given| given.field == *field) {
            Some(given) => {
                let error = Diagnostic::error(given.span, sentence);
                Verdict::Never(Box::new(Diagnostic { help, ..error }))
            }
            None => Verdict::Impossible(match help {
                Some(help) => format!("{sentence}: {help}"),
                None => sentence,
            }),
        }
    }

    /// What its media type says that it is, where that is one that is read.
    pub(super) fn media_type(self) -> Option<Reads> {
        let mut lines = self.0.given.iter().filter_map(|given| match (&given.field, &given.value) {
            (Field::Header(name), OwnedValue::Text(value)) if &**name == "content-type" => Some(&**value),
            _ => None,
        });
        match (lines.next(), lines.next()) {
            (None, _) => Reads::of(self.text(&Field::ContentType)?),
            (Some(line), None) => Reads::of(line),
            (Some(_), Some(_)) => None,
        }
    }

    /// What was agreed on before the request, as far as it is said, and as is usual at such a listener.
    pub(super) fn agreed(self, setting: &Setting) -> Result<Agreed, Verdict> {
        let mut said = self.owned_fields();
        let old = (Field::Version, vec![OwnedValue::Text(b"1.0"[..].into())]);
        if !self.has_host_line() && self.text(&Field::Version).is_none() {
            // Only in HTTP/1.0 the Host line may be missing.
            said.push(old);
            if let Ok(agreed) = setting.agreed(&said) {
                return Ok(agreed);
            }
            said.pop();
        }
        setting.agreed(&said).map_err(|never| odds::never(self, &said, &never, setting))
    }

    /// The ends of the connection and whom it speaks for, likewise.
    pub(super) fn ends(self, setting: &Setting, is_tls: bool) -> Result<Ends, Verdict> {
        let said = self.owned_fields();
        setting.ends(&said, is_tls).map_err(|never| odds::never(self, &said, &never, setting))
    }

    fn owned_fields(self) -> Vec<(Field, Vec<OwnedValue>)> {
        let owned = |(field, values): (&Field, Vec<&OwnedValue>)| {
            (field.clone(), values.into_iter().cloned().collect())
        };
        self.fields().into_iter().map(owned).collect()
    }

    /// The connection that the request came over.
    pub(super) fn connection(self, ends: Ends, tls: Option<AgreedTls>) -> Connection {
        Connection {
            src: ends.src,
            dst: ends.dst,
            proxied: self.proxied(ends).map(Arc::new),
            tls: tls.map(|tls| Arc::new(self.tls(tls))),
        }
    }

    /// What the PROXY header says. One that says more than a client names the peer.
    fn proxied(self, ends: Ends) -> Option<ProxyFacts> {
        let mut values = ProxyValues::default();
        for (value, _) in ProxyValue::ALL {
            if let Some(text) = self.text(&Field::Proxy(value))
                && !values.set(value, text)
            {
                return None;
            }
        }
        let says_more = values != ProxyValues::default();
        let client = ends.proxied.or(ends.src.filter(|_| says_more))?;
        Some(ProxyFacts { client: Proxied::Client(client), values })
    }

    fn tls(self, agreed: AgreedTls) -> TlsFacts {
        let usual = usual_client();
        let has_none = self.is_absent(|absent| *absent == Field::TlsSni);
        let host = || self.text(&Field::Host).and_then(server_name).filter(|_| !has_none);
        let sans = self.texts(&Field::TlsClientSan).map(|name| String::from_utf8_lossy(name).into_owned());
        agreed.facts(self.string(&Field::TlsSni).or_else(host), || TlsClient {
            subject: self.string(&Field::TlsClientSubject).unwrap_or(usual.subject),
            sans: sans.collect(),
            fingerprint: self.string(&Field::TlsClientFingerprint).unwrap_or(usual.fingerprint),
            certificate: self.string(&Field::TlsClientCertificate).unwrap_or(usual.certificate),
        })
    }

    /// The hello of a connection that is passed on as it is.
    pub(super) fn hello(self) -> HelloFacts {
        let said = self.text(&Field::TlsVersion);
        let known = TLS_VERSIONS.iter().copied().find(|name| Some(name.as_bytes()) == said);
        let is_name = |name: &String| is_dns_name(name.as_bytes());
        HelloFacts {
            sni: self.string(&Field::TlsSni).filter(is_name).map(|name| name.to_ascii_lowercase()),
            alpn: self.texts(&Field::TlsAlpn).map(<[u8]>::to_vec).collect(),
            version: Some(known.unwrap_or("1.3")),
        }
    }

    /// The head of the request, as it would come over the wire. A proxy writes whom it is `forwarded_for`.
    pub(super) fn head(self, agreed: Agreed, forwarded_for: Option<IpAddr>) -> Vec<u8> {
        let target = self.target(agreed);
        let usual_method = usual_method(&target).as_bytes();
        let mut head = self.text(&Field::Method).unwrap_or(usual_method).to_vec();
        for part in [b" ", &*target, b" HTTP/", agreed.http.word().as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
        let mut line = |name: &str, value: &[u8]| {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                head.extend_from_slice(part);
            }
        };
        let has_header =
            |name: &str| self.is_said(|field| matches!(field, Field::Header(said) if **said == *name));
        if !has_header("host") && self.has_host_line() {
            line("host", self.text(&Field::Host).unwrap_or(HOST.as_bytes()));
        }
        for given in &self.0.given {
            match (&given.field, &given.value) {
                (Field::Header(name), OwnedValue::Text(value)) => line(name, value),
                (Field::ContentType, OwnedValue::Text(value)) if !has_header("content-type") => {
                    line("content-type", value);
                }
                (Field::ContentLength, OwnedValue::Integer(length)) if !has_header("content-length") => {
                    line("content-length", length.to_string().as_bytes());
                }
                _ => {}
            }
        }
        let cookies = self.pairs(|field| match field {
            Field::Cookie(name) => Some(name.as_bytes()),
            _ => None,
        });
        if !cookies.is_empty() && !has_header("cookie") {
            let cookies: Vec<_> =
                cookies.into_iter().map(|(name, value)| [name, b"=", value].concat()).collect();
            line("cookie", &cookies.join(&b"; "[..]));
        }
        let protocols: Vec<_> = self.texts(&Field::Upgrade).collect();
        if !protocols.is_empty() && !has_header("upgrade") {
            line("upgrade", &protocols.join(&b", "[..]));
            // A handshake of WebSocket has two more (RFC 6455, section 4.1).
            let needed = [
                ("connection", "upgrade", true),
                ("sec-websocket-version", "13", protocols.contains(&&b"websocket"[..])),
                ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==", protocols.contains(&&b"websocket"[..])),
            ];
            for (name, value, _) in
                needed.iter().filter(|(name, _, is_needed)| *is_needed && !has_header(name))
            {
                line(name, value.as_bytes());
            }
        }
        if let Some(client) = forwarded_for {
            let is_line =
                |field: &Field| matches!(field, Field::Header(name) if &**name == "x-forwarded-for");
            let (name, value) = match (self.is_absent(is_line), client) {
                (false, _) => ("x-forwarded-for", client.to_string()),
                (true, IpAddr::V4(_)) => ("forwarded", format!("for={client}")),
                (true, IpAddr::V6(_)) => ("forwarded", format!("for=\"[{client}]\"")),
            };
            line(name, value.as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    fn has_host_line(self) -> bool {
        let is_host = |field: &Field| match field {
            Field::Header(name) => &**name == "host",
            field => *field == Field::Host,
        };
        !self.is_absent(is_host)
    }

    /// Values of the fields that have a key, with their keys.
    fn pairs(self, key: impl Fn(&'t Field) -> Option<&'t [u8]>) -> Vec<(&'t [u8], &'t [u8])> {
        let pairs = self.0.given.iter().filter_map(|given| match (key(&given.field), &given.value) {
            (Some(key), OwnedValue::Text(value)) => Some((key, &**value)),
            _ => None,
        });
        pairs.collect()
    }

    /// The `url`, or what `path`, `query` and `query["key"]` make together.
    fn target(self, agreed: Agreed) -> Vec<u8> {
        if let Some(url) = self.text(&Field::Url) {
            return url.to_vec();
        }
        let mut target = match self.text(&Field::Host) {
            // Without a Host line only the target can name the host.
            Some(host) if !self.has_host_line() => {
                let scheme: &[u8] = if agreed.tls.is_some() { b"https" } else { b"http" };
                [scheme, b"://", host].concat()
            }
            _ => Vec::new(),
        };
        target.extend_from_slice(self.text(&Field::Path).unwrap_or(b"/"));
        if let Some(query) = self.text(&Field::Query) {
            target.push(b'?');
            target.extend_from_slice(query);
            return target;
        }
        let pairs = self.pairs(|field| match field {
            Field::QueryParam(key) => Some(key),
            _ => None,
        });
        for (index, (key, value)) in pairs.into_iter().enumerate() {
            target.push(if index == 0 { b'?' } else { b'&' });
            target.extend_from_slice(encoded(key).as_bytes());
            target.push(b'=');
            target.extend_from_slice(encoded(value).as_bytes());
        }
        target
    }
}
