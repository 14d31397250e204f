//! The field table: what each field is called, what its values are, how many there may be.

use std::fmt;

use crate::payload::{self, Fault, Place};
use crate::{Field, FieldType, ProxyValue};

/// Whether a name takes a key in brackets, as `header["host"]` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    None,
    Optional,
    Required,
}

/// What the reference says about one field name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) key: Key,
    pub(crate) group: Group,
    /// What it is, in a sentence for people who write rules.
    pub(crate) doc: &'static str,
}

/// How far a field is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Evaluated.
    Head,
    /// Evaluated as the body is read.
    Payload,
    /// Parsed only: it needs a mail listener.
    Mail,
}

/// Why a name and a key do not make a field.
#[derive(Debug)]
pub(crate) enum NoField {
    /// No field has this name.
    Unknown,
    /// The field takes a key and none was written.
    KeyMissing,
    /// The field takes no key and one was written.
    KeyUnexpected,
    /// The key cannot be a name of that kind, so nothing could ever be there.
    KeyInvalid,
    /// It is no path, or a prefix in it is not declared.
    Path(Fault),
    /// It needs a mail listener.
    Mail,
}

const fn head(name: &'static str, key: Key, doc: &'static str) -> Entry {
    Entry { name, key, group: Group::Head, doc }
}

const fn payload(name: &'static str, key: Key, doc: &'static str) -> Entry {
    Entry { name, key, group: Group::Payload, doc }
}

const fn mail(name: &'static str, key: Key) -> Entry {
    Entry { name, key, group: Group::Mail, doc: "" }
}

/// Every field name but the `xml.` and `json.` paths.
pub(crate) const ENTRIES: &[Entry] = &[
    head(
        "srcip",
        Key::None,
        "The address of the peer of the connection, which may be a proxy; absent on a Unix socket.",
    ),
    head("srcport", Key::None, "The port of the peer of the connection; absent on a Unix socket."),
    head(
        "dstip",
        Key::None,
        "The address of the switch that the peer connected to; absent on a Unix socket.",
    ),
    head("dstport", Key::None, "The port of the switch that the peer connected to; absent on a Unix socket."),
    head(
        "proto",
        Key::None,
        "`https` on a listener with TLS, otherwise `http`; where no request is read `tcp` or `tls`.",
    ),
    head("clientip", Key::None, "The address of the client behind trusted proxies, otherwise `srcip`."),
    head(
        "tls.sni",
        Key::None,
        "The server name that the client asked for, in lower case; absent where it named none.",
    ),
    head("tls.version", Key::None, "The version of TLS that was agreed on: `1.2` or `1.3`."),
    head("tls.cipher", Key::None, "The cipher suite that was agreed on, by its IANA name."),
    head(
        "tls.alpn",
        Key::None,
        "The protocol that was agreed on, such as `h2`; where no request is read all that the client offers.",
    ),
    head("tls.resumed", Key::None, "Whether the TLS session goes on from an earlier connection."),
    head("tls.client.subject", Key::None, "The subject of the client's certificate, as RFC 4514 writes it."),
    head("tls.client.san", Key::None, "The further names in the client's certificate."),
    head(
        "tls.client.fingerprint",
        Key::None,
        "The SHA-256 of the client's certificate, 64 digits in lower-case hex.",
    ),
    head(
        "tls.client.certificate",
        Key::None,
        "The client's certificate in base64 of its DER: between colons the value of `Client-Cert` (RFC 9440).",
    ),
    head("proxy.alpn", Key::None, "The application protocol that a PROXY header of version 2 names."),
    head("proxy.authority", Key::None, "The host that a PROXY header of version 2 names, in lower case."),
    head(
        "proxy.unique_id",
        Key::None,
        "What a PROXY header of version 2 calls the connection, in lower-case hex.",
    ),
    head("proxy.aws_vpce_id", Key::None, "The VPC endpoint of AWS that a PROXY header names."),
    head(
        "proxy.azure_link_id",
        Key::None,
        "The private link of Azure that a PROXY header names, in decimal digits.",
    ),
    head("method", Key::None, "The method as the client sent it, in capitals as a rule."),
    head("scheme", Key::None, "`https` on a listener with TLS, otherwise `http`."),
    head("host", Key::None, "The host that is asked for, without a port, in lower case."),
    head("url", Key::None, "The target as it was received, nothing decoded: path and query."),
    head(
        "path",
        Key::None,
        "The path alone, in its normal form: dot segments resolved, plain percent codes decoded.",
    ),
    head(
        "query",
        Key::Optional,
        "What stands behind the `?`, nothing decoded; with a key the values of that parameter, decoded.",
    ),
    head("version", Key::None, "The version of HTTP: `1.0`, `1.1` or `2`."),
    head(
        "header",
        Key::Required,
        "The values of a header, a line each; the case of its name does not matter.",
    ),
    head("cookie", Key::Required, "The values of a cookie."),
    head("content_type", Key::None, "The media type alone, in lower case, without parameters."),
    head("content_length", Key::None, "The length of the body, where the head says it."),
    head(
        "upgrade",
        Key::None,
        "The protocols that the request asks to change to, in lower case: `websocket`.",
    ),
    payload("form", Key::Required, "The values of a field of a form in the body, decoded; files are none."),
    payload("body.size", Key::None, "The bytes of the body as it was sent, without what frames it."),
    mail("mail.helo", Key::None),
    mail("mail.from", Key::None),
    mail("mail.rcpt", Key::None),
    mail("mail.user", Key::None),
    mail("mail.header", Key::Required),
    mail("mail.size", Key::None),
    mail("mail.body", Key::None),
    mail("mail.attachment.name", Key::None),
    mail("scan.verdict", Key::None),
];

/// What a name and a key spell.
#[derive(Debug)]
pub(crate) enum Resolved {
    /// What is known with the head.
    Head(Field),
    /// What stands in the body, as the rules spell it, and where.
    Payload(Box<str>, Place),
}

/// What a name and a key spell. `namespace` knows the URI of a prefix.
pub(crate) fn resolve(
    name: &str,
    key: Option<&str>,
    namespace: impl Fn(&str) -> Option<Box<str>>,
) -> Result<Resolved, NoField> {
    if ["xml.", "json.", "json["].iter().any(|head| name.starts_with(head)) {
        let place = payload::read(name, namespace).map_err(NoField::Path)?;
        return Ok(Resolved::Payload(name.into(), place));
    }
    let entry = ENTRIES.iter().find(|e| e.name == name).ok_or(NoField::Unknown)?;
    match (entry.key, key) {
        (Key::None, Some(_)) => return Err(NoField::KeyUnexpected),
        (Key::Required, None) => return Err(NoField::KeyMissing),
        _ => {}
    }
    if entry.group == Group::Mail {
        return Err(NoField::Mail);
    }
    let field = match (name, key) {
        ("form", Some(key)) => {
            return Ok(Resolved::Payload(format!("form[\"{key}\"]").into(), Place::Form(key.into())));
        }
        ("body.size", None) => return Ok(Resolved::Payload(name.into(), Place::Size)),
        ("header", Some(key)) => {
            if !is_token(key) {
                return Err(NoField::KeyInvalid);
            }
            Field::Header(key.to_ascii_lowercase().into())
        }
        ("cookie", Some(key)) => {
            if !is_token(key) {
                return Err(NoField::KeyInvalid);
            }
            Field::Cookie(key.into())
        }
        ("query", Some(key)) => Field::QueryParam(key.as_bytes().into()),
        _ => plain(name).ok_or(NoField::Unknown)?,
    };
    Ok(Resolved::Head(field))
}

/// What a name without a key spells, of what is known with the head.
pub(crate) fn plain(name: &str) -> Option<Field> {
    Some(match name {
        "srcip" => Field::SrcIp,
        "srcport" => Field::SrcPort,
        "dstip" => Field::DstIp,
        "dstport" => Field::DstPort,
        "proto" => Field::Proto,
        "clientip" => Field::ClientIp,
        "tls.sni" => Field::TlsSni,
        "tls.version" => Field::TlsVersion,
        "tls.cipher" => Field::TlsCipher,
        "tls.alpn" => Field::TlsAlpn,
        "tls.resumed" => Field::TlsResumed,
        "tls.client.subject" => Field::TlsClientSubject,
        "tls.client.san" => Field::TlsClientSan,
        "tls.client.fingerprint" => Field::TlsClientFingerprint,
        "tls.client.certificate" => Field::TlsClientCertificate,
        name if name.starts_with("proxy.") => Field::Proxy(ProxyValue::named(name)?),
        "method" => Field::Method,
        "scheme" => Field::Scheme,
        "host" => Field::Host,
        "url" => Field::Url,
        "path" => Field::Path,
        "query" => Field::Query,
        "version" => Field::Version,
        "content_type" => Field::ContentType,
        "content_length" => Field::ContentLength,
        "upgrade" => Field::Upgrade,
        _ => return None,
    })
}

/// Whether `text` is a token of RFC 9110: what a header or cookie can be called.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// The type of a field that stands under an index-free `name`, for spellings that depend on it.
pub(crate) fn is_address(name: &str) -> bool {
    matches!(name, "srcip" | "dstip" | "clientip")
}

impl Field {
    /// What the field's values are.
    pub(crate) fn value_type(&self) -> FieldType {
        match self {
            Field::SrcIp | Field::DstIp | Field::ClientIp => FieldType::Ip,
            Field::SrcPort | Field::DstPort | Field::ContentLength => FieldType::Integer,
            Field::TlsResumed => FieldType::Boolean,
            Field::Payload(payload) if payload.place == Place::Size => FieldType::Integer,
            _ => FieldType::Text,
        }
    }

    /// Whether its values stand in the body, which must be looked into for them; its length does not.
    #[must_use]
    pub fn is_in_body(&self) -> bool {
        matches!(self, Field::Payload(payload) if payload.place != Place::Size)
    }

    /// Whether a value can be a truth value although others are texts: in JSON.
    #[must_use]
    pub fn may_be_boolean(&self) -> bool {
        matches!(self, Field::Payload(payload) if matches!(payload.place, Place::Json(_)))
    }

    /// Whether only connections over TLS have it.
    #[must_use]
    pub fn is_of_tls(&self) -> bool {
        matches!(
            self,
            Field::TlsSni
                | Field::TlsVersion
                | Field::TlsCipher
                | Field::TlsAlpn
                | Field::TlsResumed
                | Field::TlsClientSubject
                | Field::TlsClientSan
                | Field::TlsClientFingerprint
                | Field::TlsClientCertificate
        )
    }

    /// Whether a request can have several values of it.
    #[must_use]
    pub fn is_many_valued(&self) -> bool {
        match self {
            Field::Payload(payload) => payload.is_many_valued(),
            _ => matches!(
                self,
                Field::TlsClientSan
                    | Field::QueryParam(_)
                    | Field::Header(_)
                    | Field::Cookie(_)
                    | Field::Upgrade
            ),
        }
    }

    /// Whether a request can have no value of it.
    pub(crate) fn may_be_absent(&self) -> bool {
        !matches!(
            self,
            Field::SrcIp
                | Field::SrcPort
                | Field::DstIp
                | Field::DstPort
                | Field::Proto
                | Field::ClientIp
                | Field::Method
                | Field::Scheme
                | Field::Url
                | Field::Path
                | Field::Version
        )
    }

    /// Whether its values are in lower case whatever the client sent.
    pub(crate) fn is_lower_case(&self) -> bool {
        matches!(
            self,
            Field::Host
                | Field::ContentType
                | Field::Proto
                | Field::Scheme
                | Field::TlsSni
                | Field::TlsClientFingerprint
                | Field::Proxy(ProxyValue::Authority | ProxyValue::UniqueId)
                | Field::Upgrade
        )
    }
}

impl fmt::Display for Field {
    /// The field as rules spell it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Field::SrcIp => "srcip",
            Field::SrcPort => "srcport",
            Field::DstIp => "dstip",
            Field::DstPort => "dstport",
            Field::Proto => "proto",
            Field::ClientIp => "clientip",
            Field::TlsSni => "tls.sni",
            Field::TlsVersion => "tls.version",
            Field::TlsCipher => "tls.cipher",
            Field::TlsAlpn => "tls.alpn",
            Field::TlsResumed => "tls.resumed",
            Field::TlsClientSubject => "tls.client.subject",
            Field::TlsClientSan => "tls.client.san",
            Field::TlsClientFingerprint => "tls.client.fingerprint",
            Field::TlsClientCertificate => "tls.client.certificate",
            Field::Proxy(value) => value.name(),
            Field::Method => "method",
            Field::Scheme => "scheme",
            Field::Host => "host",
            Field::Url => "url",
            Field::Path => "path",
            Field::Query => "query",
            Field::QueryParam(key) => {
                return write!(f, "query[\"{}\"]", String::from_utf8_lossy(key));
            }
            Field::Version => "version",
            Field::Header(name) => return write!(f, "header[\"{name}\"]"),
            Field::Cookie(name) => return write!(f, "cookie[\"{name}\"]"),
            Field::ContentType => "content_type",
            Field::ContentLength => "content_length",
            Field::Upgrade => "upgrade",
            Field::Payload(payload) => &payload.spelling,
        };
        f.write_str(name)
    }
}
