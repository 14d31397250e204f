//! What is agreed on with a client before its first request: whether the connection is of TLS, what its handshake comes to,
//! and the version of HTTP.

use pointsman_rules::{Field, OwnedValue};
use pointsman_view::{TlsClient, TlsFacts};

use super::Setting;
use super::connection::{is_certificate, is_fingerprint};
use super::odds::{NeverAgreed, Odds, Told, first_at_odds};
use super::sought::{Sought, text};
use crate::space::is_server_name;
use crate::wanted::Values;

/// The suites that the switch agrees on, with the versions they are of, the usual one first.
const SUITES: [(&str, &str); 9] = [
    ("1.3", "TLS_AES_256_GCM_SHA384"),
    ("1.3", "TLS_AES_128_GCM_SHA256"),
    ("1.3", "TLS_CHACHA20_POLY1305_SHA256"),
    ("1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    ("1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    ("1.2", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("1.2", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    ("1.2", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ("1.2", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
];

/// What TLS of a listener takes. By default everything that any listener may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshakes {
    /// Whether it speaks TLS 1.2, besides 1.3.
    pub takes_tls12: bool,
    /// Whether it has a certificate with a key of RSA.
    pub signs_by_rsa: bool,
    /// Whether it has one with another key.
    pub signs_by_ecdsa: bool,
    /// Whether `http/1.1` can be agreed on by ALPN.
    pub names_http1: bool,
    /// Whether `h2` can.
    pub names_http2: bool,
    /// Whether sessions can be resumed.
    pub resumes: bool,
    /// Whether clients show certificates.
    pub clients: ClientCertificates,
}

/// Whether the clients of a listener show certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They are not asked for any.
    Never,
    /// Some may.
    Perhaps,
    /// Nobody is let in without one.
    Always,
}

impl Default for Handshakes {
    fn default() -> Handshakes {
        Handshakes {
            takes_tls12: true,
            signs_by_rsa: true,
            signs_by_ecdsa: true,
            names_http1: true,
            names_http2: true,
            resumes: true,
            clients: ClientCertificates::Perhaps,
        }
    }
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

impl HttpVersion {
    /// As rules see it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            HttpVersion::Http10 => "1.0",
            HttpVersion::Http11 => "1.1",
            HttpVersion::Http2 => "2",
        }
    }
}

/// What can be agreed on together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The version of HTTP that is spoken.
    pub http: HttpVersion,
    /// What the handshake comes to; nothing on a plain connection.
    pub tls: Option<AgreedTls>,
}

/// What a handshake can come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgreedTls {
    /// `1.3` or `1.2`.
    pub version: &'static str,
    /// The suite's name in IANA's registry.
    pub cipher: &'static str,
    /// The protocol that ALPN names.
    pub alpn: Option<&'static str>,
    /// Whether an earlier session goes on.
    pub resumed: bool,
    /// Whether the client shows a certificate.
    pub has_client: bool,
}

impl AgreedTls {
    /// What rules see of it. `client` says who shows a certificate, where one is shown.
    #[must_use]
    pub fn facts(self, sni: Option<String>, client: impl FnOnce() -> TlsClient) -> TlsFacts {
        let AgreedTls { version, cipher, alpn, resumed, has_client } = self;
        TlsFacts {
            sni,
            version,
            cipher,
            alpn: alpn.map(|name| name.as_bytes().to_vec()),
            resumed,
            client: has_client.then(client),
            session: None,
        }
    }
}

/// What a connection says of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// It has these values.
    These(Values),
    /// It has some value.
    Some,
    /// It may have any, or none.
    Any,
}

/// What all connections of a listener say of a field.
pub(crate) enum Narrowed {
    /// Its values are one of these.
    Among(Vec<Values>),
    /// It always has a value.
    Present,
    /// Nothing.
    Free,
}

impl Setting {
    /// All that can be agreed on, what is usual first.
    pub fn agreements(&self) -> impl Iterator<Item = Agreed> + '_ {
        let is_plain = self.speaks_tls != Some(true);
        let plain = self.versions().filter(move |_| is_plain).map(|http| Agreed { http, tls: None });
        let is_tls = self.speaks_tls != Some(false);
        plain.chain(self.handshakes().filter(move |_| is_tls))
    }

    fn versions(&self) -> impl Iterator<Item = HttpVersion> + '_ {
        let all = [HttpVersion::Http11, HttpVersion::Http10, HttpVersion::Http2];
        all.into_iter().filter(|version| match version {
            HttpVersion::Http10 | HttpVersion::Http11 => self.takes_http1,
            HttpVersion::Http2 => self.takes_http2,
        })
    }

    fn handshakes(&self) -> impl Iterator<Item = Agreed> + '_ {
        let Handshakes { takes_tls12, signs_by_rsa, signs_by_ecdsa, resumes, clients, .. } = self.tls;
        let clients: &[bool] = match clients {
            ClientCertificates::Never => &[false],
            ClientCertificates::Perhaps => &[false, true],
            ClientCertificates::Always => &[true],
        };
        let sessions: &[bool] = if resumes { &[false, true] } else { &[false] };
        let suites = SUITES.iter().filter(move |(version, suite)| match *version {
            "1.2" if suite.contains("_RSA_") => takes_tls12 && signs_by_rsa,
            "1.2" => takes_tls12 && signs_by_ecdsa,
            _ => true,
        });
        clients.iter().flat_map(move |has_client| {
            let suites = suites.clone();
            sessions.iter().flat_map(move |resumed| {
                let suites = suites.clone();
                self.protocols().flat_map(move |(http, alpn)| {
                    suites.clone().map(move |(version, cipher)| {
                        let (resumed, has_client) = (*resumed, *has_client);
                        Agreed { http, tls: Some(AgreedTls { version, cipher, alpn, resumed, has_client }) }
                    })
                })
            })
        })
    }

    /// Versions of HTTP over TLS, with what ALPN says then. A client that names no protocol speaks HTTP/1, unless there
    /// is HTTP/2 alone.
    fn protocols(&self) -> impl Iterator<Item = (HttpVersion, Option<&'static str>)> + '_ {
        let named = self.versions().filter_map(|version| match version {
            HttpVersion::Http2 => self.tls.names_http2.then_some((version, Some("h2"))),
            _ => self.tls.names_http1.then_some((version, Some("http/1.1"))),
        });
        let unnamed = self.versions().filter(|version| *version != HttpVersion::Http2 || !self.takes_http1);
        named.chain(unnamed.map(|version| (version, None)))
    }

    /// What is agreed on where these fields have these values, each all of its own; without one it is absent. The first that
    /// fits, of an absolute target's scheme where there is one. Fields of which no handshake says anything are passed over.
    ///
    /// # Errors
    /// Where that is never agreed on.
    pub fn agreed(&self, said: &[(Field, Vec<OwnedValue>)]) -> Result<Agreed, NeverAgreed> {
        let of_handshakes: Vec<Told<'_>> =
            said.iter().enumerate().filter(|(_, (field, _))| is_of_handshake(field)).collect();
        let url = said.iter().find(|(field, _)| *field == Field::Url).and_then(|(_, values)| values.first());
        let fitting = self
            .agreements()
            .filter(|agreed| of_handshakes.iter().all(|(_, (field, values))| agreed.may_have(field, values)));
        first_of_scheme(fitting, url.and_then(text)).ok_or_else(|| self.odds(&of_handshakes))
    }

    /// Which of some fields is the first at odds, with what, and what it may be instead.
    fn odds(&self, said: &[Told<'_>]) -> NeverAgreed {
        let fit = |agreed: &Agreed, said: &[Told<'_>]| {
            said.iter().all(|(_, (field, values))| agreed.may_have(field, values))
        };
        let leaves = |said: &[Told<'_>]| self.agreements().any(|agreed| fit(&agreed, said));
        let Some(((at, (field, _)), before, with)) = first_at_odds(said, &leaves, can_be) else {
            return NeverAgreed { at: 0, with: Odds::Listener, instead: Vec::new() };
        };
        let mut instead = Vec::new();
        for agreed in self.agreements().filter(|agreed| fit(agreed, before)) {
            match agreed.says(field) {
                Says::These(values) if instead.contains(&values.known) => {}
                Says::These(values) => instead.push(values.known),
                Says::Some | Says::Any => {
                    instead.clear();
                    break;
                }
            }
        }
        NeverAgreed { at, with, instead }
    }

    /// What is the same of a field for every request that comes here, or almost.
    pub(crate) fn narrowed(&self, field: &Field) -> Narrowed {
        if let Some(choices) = self.choices(field) {
            return Narrowed::Among(choices);
        }
        if self.hides(field) {
            return Narrowed::Among(vec![Values::default()]);
        }
        if self.is_addressed(field) {
            return Narrowed::Present;
        }
        if !is_of_handshake(field) {
            return Narrowed::Free;
        }
        let (mut among, mut has_some) = (Vec::new(), false);
        for agreed in self.agreements() {
            match agreed.says(field) {
                Says::These(values) if among.contains(&values) => {}
                Says::These(values) => among.push(values),
                Says::Some => has_some = true,
                Says::Any => return Narrowed::Free,
            }
        }
        match has_some {
            false => Narrowed::Among(among),
            true if among.is_empty() => Narrowed::Present,
            true => Narrowed::Free,
        }
    }
}

/// Whether a field that is of few values or of a form can have such a one.
fn can_be(field: &Field, value: &OwnedValue) -> bool {
    let is_text = |is_it: fn(&str) -> bool| {
        text(value).and_then(|text| std::str::from_utf8(text).ok()).is_some_and(is_it)
    };
    match field {
        Field::TlsSni => is_text(is_server_name),
        Field::TlsClientFingerprint => is_text(is_fingerprint),
        Field::TlsClientCertificate => is_text(is_certificate),
        _ => true,
    }
}

/// Whether [`Agreed::says`] something of it.
pub(crate) fn is_of_handshake(field: &Field) -> bool {
    matches!(field, Field::Scheme | Field::Proto | Field::Version) || field.is_of_tls()
}

impl Agreed {
    /// What it says of a field of the handshake, and of the version.
    pub(crate) fn says(&self, field: &Field) -> Says {
        let one = |value| Says::These(Values { known: vec![value], rest: None });
        let text = |text: &str| one(OwnedValue::Text(text.as_bytes().into()));
        match (field, &self.tls) {
            (Field::Version, _) => text(self.http.word()),
            (Field::Scheme | Field::Proto, tls) => text(if tls.is_some() { "https" } else { "http" }),
            (_, None) => Says::These(Values::default()),
            (Field::TlsVersion, Some(tls)) => text(tls.version),
            (Field::TlsCipher, Some(tls)) => text(tls.cipher),
            (Field::TlsAlpn, Some(tls)) => tls.alpn.map_or(Says::These(Values::default()), text),
            (Field::TlsResumed, Some(tls)) => one(OwnedValue::Boolean(tls.resumed)),
            (Field::TlsSni, Some(_)) => Says::Any,
            (_, Some(tls)) if !tls.has_client => Says::These(Values::default()),
            (Field::TlsClientSan, Some(_)) => Says::Any,
            (_, Some(_)) => Says::Some,
        }
    }

    /// Whether a field may have these values, and no others.
    fn may_have(&self, field: &Field, values: &[OwnedValue]) -> bool {
        match self.says(field) {
            Says::These(known) => known.known == values,
            Says::Some => !values.is_empty() && values.iter().all(|value| can_be(field, value)),
            Says::Any => values.iter().all(|value| can_be(field, value)),
        }
    }

    /// Whether it says nothing else than is sought.
    fn fits(&self, sought: &Sought<'_>) -> bool {
        let mut wishes = sought.wishes().filter(|wish| is_of_handshake(wish.field));
        wishes.all(|wish| self.may_have(wish.field, &wish.values.known))
    }

    /// The first that fits what is sought, of an absolute target's scheme where there is one.
    pub(super) fn first(sought: &Sought<'_>, setting: &Setting) -> Option<Agreed> {
        let fitting = setting.agreements().filter(|agreed| agreed.fits(sought));
        first_of_scheme(fitting, sought.text(&Field::Url))
    }

    /// The same in HTTP/1.0, where that is taken and fits as well.
    pub(super) fn in_http10(self, sought: &Sought<'_>, setting: &Setting) -> Agreed {
        let old = Agreed { http: HttpVersion::Http10, ..self };
        let is_taken = self.http == HttpVersion::Http11 && setting.takes_http1 && old.fits(sought);
        if is_taken { old } else { self }
    }
}

/// The first that is of a target's scheme, or else the first.
fn first_of_scheme(mut fitting: impl Iterator<Item = Agreed>, url: Option<&[u8]>) -> Option<Agreed> {
    let of_target = url.and_then(scheme_of);
    let first = fitting.next()?;
    let is_of_scheme = |agreed: &Agreed| of_target.is_none_or(|is_tls| agreed.tls.is_some() == is_tls);
    if is_of_scheme(&first) { Some(first) } else { Some(fitting.find(is_of_scheme).unwrap_or(first)) }
}

/// Whether an absolute target is one of TLS.
fn scheme_of(url: &[u8]) -> Option<bool> {
    let begins = |scheme: &[u8]| url.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    match (begins(b"https://"), begins(b"http://")) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}
