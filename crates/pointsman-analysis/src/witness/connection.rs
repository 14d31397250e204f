//! The connection that a witness comes on: its ends, whom it speaks for, and what its handshake agreed on.

use std::net::SocketAddr;
use std::sync::Arc;

use pointsman_rules::{Field, ProxyValue};
use pointsman_view::{
    Connection, HOST_BYTES_MAX, Proxied, ProxyFacts, ProxyValues, TlsClient, TlsFacts, normal_host,
};

use super::Setting;
use super::handshake::{Agreed, AgreedTls};
use super::sender::{CLIENT_PORT, Sender};
use super::setting::ProxyHeader;
use super::sought::{Sought, text};
use crate::space::is_server_name;

/// Its ends, and its handshake. `authority` is the request's host.
pub(super) fn connection(
    sought: &Sought<'_>,
    setting: &Setting,
    sender: &Sender,
    authority: &[u8],
    agreed: Agreed,
) -> Option<Connection> {
    let ends = sender.ends(sought, setting, agreed.tls.is_some())?;
    let values = proxy_values(sought)?;
    let mut client = sender.proxied.map(|client| SocketAddr::new(client, CLIENT_PORT));
    if values != ProxyValues::default() {
        // A header that says more names a client, too: the peer, where it may be anybody.
        client = Some(client.or(ends.map(|(src, _)| src))?);
        if setting.proxy_header == ProxyHeader::Off {
            return None;
        }
    }
    let proxied = client.map(|client| ProxyFacts { client: Proxied::Client(client), values });
    Some(Connection {
        src: ends.map(|(src, _)| src),
        dst: ends.map(|(_, dst)| dst),
        proxied: proxied.map(Arc::new),
        tls: match agreed.tls {
            Some(tls) => Some(Arc::new(facts(sought, authority, tls)?)),
            None => None,
        },
    })
}

/// Values of the PROXY header besides its addresses.
fn proxy_values(sought: &Sought<'_>) -> Option<ProxyValues> {
    let mut values = ProxyValues::default();
    for (value, _) in ProxyValue::ALL {
        match sought.of(&Field::Proxy(value)) {
            None | Some([]) => {}
            Some([one]) => values.set(value, text(one)?).then_some(())?,
            Some(_) => return None,
        }
    }
    Some(values)
}

fn facts(sought: &Sought<'_>, authority: &[u8], agreed: AgreedTls) -> Option<TlsFacts> {
    let sni = match sought.of(&Field::TlsSni) {
        None => server_name(authority),
        Some([]) => None,
        Some([name]) => Some(utf8(text(name)?).filter(|name| is_server_name(name))?.to_owned()),
        Some(_) => return None,
    };
    let client = if agreed.has_client { client(sought)? } else { usual_client() };
    Some(agreed.facts(sni, || client))
}

/// The holder of a certificate. Whoever shows one has a subject and a fingerprint.
fn client(sought: &Sought<'_>) -> Option<TlsClient> {
    let texts =
        |field| sought.of(field).unwrap_or_default().iter().map(|value| Some(utf8(text(value)?)?.to_owned()));
    let usual = usual_client();
    let fingerprint = texts(&Field::TlsClientFingerprint).next().unwrap_or(Some(usual.fingerprint));
    let certificate = texts(&Field::TlsClientCertificate).next().unwrap_or(Some(usual.certificate));
    Some(TlsClient {
        subject: texts(&Field::TlsClientSubject).next().unwrap_or(Some(usual.subject))?,
        sans: texts(&Field::TlsClientSan).collect::<Option<_>>()?,
        fingerprint: fingerprint.filter(|text| is_fingerprint(text))?,
        certificate: certificate.filter(|text| is_certificate(text))?,
    })
}

/// The holder of a certificate of which nothing is said, as `explain` has it.
#[must_use]
pub fn usual_client() -> TlsClient {
    TlsClient {
        subject: "CN=client".to_owned(),
        sans: Vec::new(),
        fingerprint: "0".repeat(64),
        // An empty sequence of ASN.1.
        certificate: "MAA=".to_owned(),
    }
}

fn utf8(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(text).ok()
}

/// The name that a client asks for in its handshake to reach a host, as rules see it; none to reach an address.
#[must_use]
pub fn server_name(authority: &[u8]) -> Option<String> {
    let mut scratch = [0; HOST_BYTES_MAX];
    let host = utf8(normal_host(authority, &mut scratch)?)?;
    is_server_name(host).then(|| host.to_owned())
}

/// Whether a request can have it as `tls.client.fingerprint`.
#[must_use]
pub fn is_fingerprint(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a request can have it as `tls.client.certificate`: base64 of some bytes.
#[must_use]
pub fn is_certificate(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    text.len().is_multiple_of(4)
        && !digits.is_empty()
        && padding <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
}
