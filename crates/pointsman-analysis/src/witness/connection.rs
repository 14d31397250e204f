//! The connection that a witness comes on: its ends, whom it speaks for, and what its handshake agreed on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use pointsman_rules::{Field, OwnedValue};
use pointsman_view::{Connection, HOST_BYTES_MAX, Proxied, TlsClient, TlsFacts, normal_host};

use super::Setting;
use super::handshake::{Agreed, AgreedTls};
use super::setting::ProxyHeader;
use super::sought::{Sought, text};
use crate::space::is_server_name;

/// The port of a client, as `explain` has it where nothing else is said.
pub(super) const CLIENT_PORT: u16 = 40_000;

/// Who sends a request, and who believes it.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) address: IpAddr,
    /// The client that a PROXY header names.
    pub(super) proxied: Option<IpAddr>,
    /// The client that an X-Forwarded-For line is to name.
    pub(super) forwarded_for: Option<IpAddr>,
    /// It is a proxy that must be believed besides those of the setting.
    pub(super) proxy: Option<IpAddr>,
}

impl Sender {
    /// Nothing where nobody can be as is sought.
    pub(super) fn new(sought: &Sought<'_>, setting: &Setting) -> Option<Sender> {
        let sender = Sender::of_any(sought, setting)?;
        if setting.proxy_header != ProxyHeader::Required || is_listed(sender.address, setting) {
            return Some(sender);
        }
        // Only a trusted proxy is let in, and speaks for the one who was meant.
        if sought.of(&Field::SrcIp).is_some() {
            return None;
        }
        let is_v4 = usual_address(sought).is_ipv4();
        let address =
            setting.trusted_proxies.iter().map(a_host).find(|address| address.is_ipv4() == is_v4)?;
        let is_meant = sought.of(&Field::ClientIp).is_some() || names_hops(sought);
        Some(Sender { address, proxied: sender.proxied.or(is_meant.then_some(sender.address)), ..sender })
    }

    fn of_any(sought: &Sought<'_>, setting: &Setting) -> Option<Sender> {
        let source = sought.of(&Field::SrcIp).map(one_address);
        let client = sought.of(&Field::ClientIp).map(one_address);
        let (source, client) = match (source, client) {
            (Some(None), _) | (_, Some(None)) => return None,
            (source, client) => (source.flatten(), client.flatten()),
        };
        let address = || source.or(client).unwrap_or_else(|| usual_address(sought));
        let plain = |address| Sender { address, proxied: None, forwarded_for: None, proxy: None };
        if names_hops(sought) {
            // Where the lines do not name the client, it is who sends them, itself or through a proxy.
            let sends = client.filter(|client| !is_named_by_hops(sought, *client));
            let through = source.filter(|source| sends.is_some_and(|sends| sends != *source));
            let sender = believed(sends.or(source), sought, setting).map(|(address, proxy)| match through {
                Some(source) if setting.may_be_proxied() => {
                    Sender { proxied: Some(address), proxy, ..plain(source) }
                }
                _ => Sender { proxy, ..plain(source.unwrap_or(address)) },
            });
            if sender.is_some() || sought.header("x-forwarded-for").is_some() {
                return sender;
            }
            let (address, proxy) = believed(source, sought, setting)?;
            return Some(Sender { forwarded_for: client, proxy, ..plain(address) });
        }
        match client.filter(|client| *client != address()) {
            None => Some(plain(address())),
            Some(client) if setting.may_be_proxied() && !is_trusted(address(), setting) => {
                Some(Sender { proxied: Some(client), ..plain(address()) })
            }
            Some(client) => {
                let (address, proxy) = believed(source, sought, setting)?;
                Some(Sender { forwarded_for: Some(client), proxy, ..plain(address) })
            }
        }
    }
}

/// Whether lines are sought that only a trusted proxy may write.
fn names_hops(sought: &Sought<'_>) -> bool {
    let is_of_hops =
        |name: &str| matches!(name, "forwarded" | "x-real-ip") || name.starts_with("x-forwarded-");
    sought.wishes().any(|wish| match wish.field {
        Field::Header(name) => is_of_hops(name) && !wish.values.known.is_empty(),
        _ => false,
    })
}

/// Whether one of these lines holds an address.
fn is_named_by_hops(sought: &Sought<'_>, address: IpAddr) -> bool {
    let address = address.to_string();
    let holds = |line: &[u8]| line.windows(address.len()).any(|window| window == address.as_bytes());
    let lines = ["x-forwarded-for", "forwarded"].into_iter().filter_map(|name| sought.header(name));
    lines.flatten().filter_map(text).any(holds)
}

/// Somebody who is believed, and whether only this witness says so.
fn believed(
    source: Option<IpAddr>,
    sought: &Sought<'_>,
    setting: &Setting,
) -> Option<(IpAddr, Option<IpAddr>)> {
    let first = setting.trusted_proxies.first().map(a_host);
    let address = source.or(first).unwrap_or_else(|| usual_address(sought));
    match is_trusted(address, setting) {
        true => Some((address, None)),
        false => setting.may_trust_others.then_some((address, Some(address))),
    }
}

/// An address of a network that may be somebody's.
fn a_host(network: &IpNet) -> IpAddr {
    match network.network() {
        // An address of the network itself is nobody's.
        network_address if network.prefix_len() < network.max_prefix_len() => next(network_address),
        address => address,
    }
}

/// Whether the setting itself names an address as that of a trusted proxy.
fn is_listed(address: IpAddr, setting: &Setting) -> bool {
    setting.trusted_proxies.iter().any(|network| network.contains(&address))
}

fn is_trusted(address: IpAddr, setting: &Setting) -> bool {
    setting.trusted(&setting.trusted_proxies).contain(address)
}

fn next(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from(u32::from(address).saturating_add(1)).into(),
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address).saturating_add(1)).into(),
    }
}

/// The loopback address, of the family of the other end.
fn usual_address(sought: &Sought<'_>) -> IpAddr {
    match sought.of(&Field::DstIp).and_then(one_address) {
        Some(IpAddr::V6(_)) => Ipv6Addr::LOCALHOST.into(),
        _ => Ipv4Addr::LOCALHOST.into(),
    }
}

fn one_address(values: &[OwnedValue]) -> Option<IpAddr> {
    match values {
        [OwnedValue::Ip(address)] => Some(address.to_canonical()),
        _ => None,
    }
}

/// A port that connections have; `usual` where none is sought.
fn port(sought: &Sought<'_>, field: &Field, usual: u16) -> Option<u16> {
    match sought.of(field) {
        None => Some(usual),
        Some([OwnedValue::Integer(port)]) => u16::try_from(*port).ok().filter(|port| *port > 0),
        Some(_) => None,
    }
}

/// Both ends of it, and its handshake. `authority` is the request's host.
pub(super) fn connection(
    sought: &Sought<'_>,
    setting: &Setting,
    sender: &Sender,
    authority: &[u8],
    agreed: Agreed,
) -> Option<Connection> {
    let usual_port = if agreed.tls.is_some() { 443 } else { 80 };
    let bind_port = setting.bind.map(|bind| bind.port()).filter(|port| *port != 0);
    let src = SocketAddr::new(sender.address, port(sought, &Field::SrcPort, CLIENT_PORT)?);
    let dst_ip = match sought.of(&Field::DstIp) {
        None => usual_destination(sender.address, setting),
        Some(values) => one_address(values)?,
    };
    let dst = SocketAddr::new(dst_ip, port(sought, &Field::DstPort, bind_port.unwrap_or(usual_port))?);
    if src.is_ipv4() != dst.is_ipv4() {
        return None;
    }
    let proxied = sender.proxied.map(|client| Proxied::Client(SocketAddr::new(client, CLIENT_PORT)));
    Some(Connection {
        src: Some(src),
        dst: Some(dst),
        proxied: proxied.map(Arc::new),
        tls: match agreed.tls {
            Some(tls) => Some(Arc::new(facts(sought, authority, tls)?)),
            None => None,
        },
    })
}

/// Where one connects to from an address.
pub(super) fn usual_destination(source: IpAddr, setting: &Setting) -> IpAddr {
    let bound = setting.bind.map(|bind| bind.ip().to_canonical()).filter(|ip| !ip.is_unspecified());
    match (bound, source) {
        (Some(bound), _) => bound,
        (None, IpAddr::V4(_)) => Ipv4Addr::LOCALHOST.into(),
        (None, IpAddr::V6(_)) => Ipv6Addr::LOCALHOST.into(),
    }
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
    Some(TlsClient {
        subject: texts(&Field::TlsClientSubject).next().unwrap_or(Some(usual.subject))?,
        sans: texts(&Field::TlsClientSan).collect::<Option<_>>()?,
        fingerprint: fingerprint.filter(|text| is_fingerprint(text))?,
    })
}

/// The holder of a certificate of which nothing is said, as `explain` has it.
#[must_use]
pub fn usual_client() -> TlsClient {
    TlsClient { subject: "CN=client".to_owned(), sans: Vec::new(), fingerprint: "0".repeat(64) }
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
