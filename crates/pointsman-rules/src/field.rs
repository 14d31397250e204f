//! The fields that a condition can name, with their types.

use std::sync::Arc;

use crate::compile::no_field;
use crate::parser::{parse_field, shorten};
use crate::schema::{self, Resolved};
use crate::{Diagnostic, Payload, Suggestions};

/// A field of a request, by the name rules give it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// `srcip`: the peer's address, as the socket says.
    SrcIp,
    /// `srcport`: the peer's port.
    SrcPort,
    /// `dstip`: the address the client connected to.
    DstIp,
    /// `dstport`: the port the client connected to.
    DstPort,
    /// `proto`: `http` or `https`, what the listener speaks.
    Proto,
    /// `clientip`: the client behind trusted proxies, otherwise `srcip`.
    ClientIp,
    /// `tls.sni`: the server name the client asked for.
    TlsSni,
    /// `tls.version`: `1.2` or `1.3`.
    TlsVersion,
    /// `tls.cipher`: the suite's IANA name.
    TlsCipher,
    /// `tls.alpn`: the protocol agreed on.
    TlsAlpn,
    /// `tls.resumed`: whether the session was resumed.
    TlsResumed,
    /// `tls.client.subject`: the client certificate's subject (RFC 4514).
    TlsClientSubject,
    /// `tls.client.san`: its alternative names, one value each.
    TlsClientSan,
    /// `tls.client.fingerprint`: SHA-256 of the certificate in lower-case hex.
    TlsClientFingerprint,
    /// `tls.client.certificate`: the certificate in base64 of its DER.
    TlsClientCertificate,
    /// `proxy.authority` and others: what a PROXY header of version 2 says.
    Proxy(ProxyValue),
    /// `method`: as sent; case matters.
    Method,
    /// `scheme`: `http` or `https`.
    Scheme,
    /// `host`: lower case, without port and trailing dot.
    Host,
    /// `url`: the request target as received.
    Url,
    /// `path`: the target's path in normal form.
    Path,
    /// `query`: the raw query, without the question mark.
    Query,
    /// `query["k"]`: the decoded values of a key.
    QueryParam(Box<[u8]>),
    /// `version`: `1.0`, `1.1`, `2`.
    Version,
    /// `header["name"]`: one value a line; the name is kept in lower case.
    Header(Box<str>),
    /// `cookie["name"]`: the values of a cookie.
    Cookie(Box<str>),
    /// `content_type`: the media type, lower case, without parameters.
    ContentType,
    /// `content_length`: the announced length of the body.
    ContentLength,
    /// `upgrade`: the protocols that the request asks to change to, lower case.
    Upgrade,
    /// A value inside the body.
    Payload(Arc<Payload>),
}

/// A value (TLV) of a PROXY header of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyValue {
    /// `proxy.alpn`: the application protocol.
    Alpn,
    /// `proxy.authority`: the host that the client asked for, in lower case.
    Authority,
    /// `proxy.unique_id`: what the proxy calls the connection, in lower-case hex.
    UniqueId,
    /// `proxy.aws_vpce_id`: the VPC endpoint of AWS.
    AwsVpceId,
    /// `proxy.azure_link_id`: the private link of Azure, in decimal digits.
    AzureLinkId,
}

impl ProxyValue {
    /// Each of them, with the name of its field.
    pub const ALL: [(ProxyValue, &'static str); 5] = [
        (ProxyValue::Alpn, "proxy.alpn"),
        (ProxyValue::Authority, "proxy.authority"),
        (ProxyValue::UniqueId, "proxy.unique_id"),
        (ProxyValue::AwsVpceId, "proxy.aws_vpce_id"),
        (ProxyValue::AzureLinkId, "proxy.azure_link_id"),
    ];

    /// The name of its field.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// That of a field's name.
    #[must_use]
    pub fn named(name: &str) -> Option<ProxyValue> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(value, _)| value)
    }
}

/// What a field's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldType {
    /// Bytes.
    Text,
    /// A whole number.
    Integer,
    /// An IP address.
    Ip,
    /// True or false.
    Boolean,
}

impl Field {
    /// A field as rules write it, of what is known before a body is read.
    ///
    /// # Errors
    /// What is wrong with the text, and help.
    pub fn of_head(text: &str) -> Result<Field, (String, String)> {
        let said = |finding: Diagnostic| (finding.message, finding.help.unwrap_or_default());
        let named = match parse_field(text) {
            Ok(named) => named,
            Err(findings) => {
                let first = findings.into_iter().next().map(said);
                return Err(
                    first.unwrap_or_else(|| (format!("`{}` is no field", shorten(text)), String::new()))
                );
            }
        };
        let key = named.key.as_ref().map(|key| &*key.text);
        // Whatever the prefix: no namespace is known here, and it would be of no use.
        match schema::resolve(&named.name, key, |_| Some("".into())) {
            Ok(Resolved::Head(field)) => Ok(field),
            Ok(Resolved::Payload(..)) => {
                let message = format!("`{}` is in the body, which is not read for this", shorten(text));
                Err((message, "name a field of the connection or of the head".to_owned()))
            }
            Err(why) => Err(said(no_field(&named, &why, &Suggestions::default()))),
        }
    }
}
