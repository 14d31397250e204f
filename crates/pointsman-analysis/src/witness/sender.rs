//! Who sends a request: the peer of its connection, whom that speaks for, and who believes it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use pointsman_rules::{Field, OwnedValue};
use pointsman_view::is_about_hops;

use super::Setting;
use super::setting::ProxyHeader;
use super::sought::{Sought, text};

/// The port of a client, as `explain` has it where nothing else is said.
pub(super) const CLIENT_PORT: u16 = 40_000;

/// What a connection has two of, and none to a Unix socket.
const ENDS: [Field; 4] = [Field::SrcIp, Field::SrcPort, Field::DstIp, Field::DstPort];

/// Who sends a request, and who believes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    /// Nothing where it comes to a Unix socket.
    pub(super) address: Option<IpAddr>,
    /// The client that a PROXY header names.
    pub(super) proxied: Option<IpAddr>,
    /// The client that an X-Forwarded-For line is to name.
    pub(super) forwarded_for: Option<IpAddr>,
    /// It is a proxy that must be believed besides those of the setting.
    pub(super) proxy: Option<Proxy>,
}

/// A proxy that is believed besides those of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// The one with this address.
    Address(IpAddr),
    /// Whoever comes to a Unix socket.
    Unix,
}

impl fmt::Display for Proxy {
    /// As `trusted_proxies` has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proxy::Address(address) => address.fmt(f),
            Proxy::Unix => f.write_str("unix:"),
        }
    }
}

impl Sender {
    /// Nothing where nobody can be as is sought.
    pub(super) fn new(sought: &Sought<'_>, setting: &Setting) -> Option<Sender> {
        match is_of_unix(sought, setting) {
            true => None,
            false => Sender::of_address(sought, setting),
        }
        .or_else(|| Sender::of_unix(sought, setting))
    }

    fn of_address(sought: &Sought<'_>, setting: &Setting) -> Option<Sender> {
        let sender = Sender::of_any_address(sought, setting)?;
        let is_listed = sender.address.is_some_and(|address| is_listed(address, setting));
        if setting.proxy_header != ProxyHeader::Required || is_listed {
            return Some(sender);
        }
        // Only a trusted proxy is let in, and speaks for the one who was meant.
        if sought.of(&Field::SrcIp).is_some() {
            return None;
        }
        let is_v4 = usual_address(sought, setting).is_ipv4();
        let address =
            setting.trusted_proxies.iter().map(a_host).find(|address| address.is_ipv4() == is_v4)?;
        let is_meant = sought.of(&Field::ClientIp).is_some() || names_hops(sought);
        let meant = sender.address.filter(|_| is_meant);
        Some(Sender { address: Some(address), proxied: sender.proxied.or(meant), ..sender })
    }

    /// The peer of a Unix socket, and whoever it speaks for where it is believed.
    fn of_unix(sought: &Sought<'_>, setting: &Setting) -> Option<Sender> {
        let has_end = |field: &Field| sought.of(field).is_some_and(|values| !values.is_empty());
        let is_required = setting.proxy_header == ProxyHeader::Required;
        if !setting.takes_unix || is_required && !setting.trusts_unix || ENDS.iter().any(has_end) {
            return None;
        }
        let further = (!setting.trusts_unix).then_some(Proxy::Unix);
        let may_be_believed = setting.trusts_unix || setting.may_trust_others;
        let peer = Sender { address: None, proxied: None, forwarded_for: None, proxy: None };
        let proxy_itself = may_be_believed.then_some(Sender { proxy: further, ..peer });
        let client = match sought.of(&Field::ClientIp) {
            None | Some([]) if names_hops(sought) => return proxy_itself,
            None | Some([]) => return Some(peer),
            Some(values) => one_address(values)?,
        };
        let is_header_likelier = setting.may_be_proxied() && !setting.trusts_unix;
        match (is_named_by_hops(sought, client), names_hops(sought)) {
            (true, _) => proxy_itself,
            // The lines name nobody else, so they are the client's own.
            (_, true) if setting.may_be_proxied() => {
                let (_, proxy) = believed(Some(client), sought, setting)?;
                Some(Sender { proxied: Some(client), proxy, ..peer })
            }
            (_, false) if is_header_likelier => Some(Sender { proxied: Some(client), ..peer }),
            _ => proxy_itself.map(|proxy| Sender { forwarded_for: Some(client), ..proxy }),
        }
    }

    fn of_any_address(sought: &Sought<'_>, setting: &Setting) -> Option<Sender> {
        let source = sought.of(&Field::SrcIp).map(one_address);
        let client = sought.of(&Field::ClientIp).map(one_address);
        let (source, client) = match (source, client) {
            (Some(None), _) | (_, Some(None)) => return None,
            (source, client) => (source.flatten(), client.flatten()),
        };
        let address = || source.or(client).unwrap_or_else(|| usual_address(sought, setting));
        let plain =
            |address| Sender { address: Some(address), proxied: None, forwarded_for: None, proxy: None };
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
            Some(client) if setting.may_be_proxied() && !is_listed(address(), setting) => {
                Some(Sender { proxied: Some(client), ..plain(address()) })
            }
            Some(client) => {
                let (address, proxy) = believed(source, sought, setting)?;
                Some(Sender { forwarded_for: Some(client), proxy, ..plain(address) })
            }
        }
    }

    /// Where it comes from, and where to; the inner nothing is a Unix socket.
    pub(super) fn ends(
        &self,
        sought: &Sought<'_>,
        setting: &Setting,
        is_tls: bool,
    ) -> Option<Option<(SocketAddr, SocketAddr)>> {
        let Some(address) = self.address else { return Some(None) };
        let src = SocketAddr::new(address, port(sought, &Field::SrcPort, CLIENT_PORT)?);
        let dst_ip = match sought.of(&Field::DstIp) {
            None => None,
            Some(values) => Some(one_address(values)?),
        };
        let fits = |bind: &SocketAddr| {
            let ip = bound_ip(*bind);
            let takes_port = |port| bind.port() == 0 || bind.port() == port;
            setting.is_open_to(address, bind)
                && ip.is_none_or(|ip| dst_ip.is_none_or(|dst| dst == ip))
                && port(sought, &Field::DstPort, bind.port().max(1)).is_some_and(takes_port)
        };
        let bind = match setting.binds.as_slice() {
            [] => None,
            binds => Some(*binds.iter().find(|bind| fits(bind))?),
        };
        let usual = usual_destination(bind, address, is_tls);
        let dst_port = port(sought, &Field::DstPort, usual.port())?;
        let dst = SocketAddr::new(dst_ip.unwrap_or(usual.ip()), dst_port);
        (src.is_ipv4() == dst.is_ipv4()).then_some(Some((src, dst)))
    }
}

/// The address that a listener's own one says; nothing where that stands for any.
pub(super) fn bound_ip(bind: SocketAddr) -> Option<IpAddr> {
    Some(bind.ip().to_canonical()).filter(|ip| !ip.is_unspecified())
}

/// Where one connects to from an address.
pub(super) fn usual_destination(bind: Option<SocketAddr>, source: IpAddr, is_tls: bool) -> SocketAddr {
    let loopback = match source {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let usual_port = if is_tls { 443 } else { 80 };
    let port = bind.map(|bind| bind.port()).filter(|port| *port != 0);
    SocketAddr::new(bind.and_then(bound_ip).unwrap_or(loopback), port.unwrap_or(usual_port))
}

/// Whether a request can only come to a Unix socket as it is sought.
fn is_of_unix(sought: &Sought<'_>, setting: &Setting) -> bool {
    let is_absent = |field: &Field| sought.of(field).is_some_and(<[_]>::is_empty);
    !setting.takes_addresses || ENDS.iter().any(is_absent) || is_absent(&Field::ClientIp)
}

/// Whether a field is said by the ends of a connection, or by whoever may name its client.
pub(super) fn is_of_sender(field: &Field) -> bool {
    ENDS.contains(field) || *field == Field::ClientIp || is_of_hops(field)
}

/// Whether only a trusted proxy may write such a line.
pub(super) fn is_of_hops(field: &Field) -> bool {
    matches!(field, Field::Header(name) if is_about_hops(name.as_bytes()))
}

/// Whether lines are sought that only a trusted proxy may write.
fn names_hops(sought: &Sought<'_>) -> bool {
    sought.wishes().any(|wish| is_of_hops(wish.field) && !wish.values.known.is_empty())
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
) -> Option<(IpAddr, Option<Proxy>)> {
    let mut hosts = setting.trusted_proxies.iter().map(a_host);
    let first = hosts.find(|host| setting.is_reached_from(*host));
    let address = source.or(first).unwrap_or_else(|| usual_address(sought, setting));
    match is_listed(address, setting) {
        true => Some((address, None)),
        false => setting.may_trust_others.then_some((address, Some(Proxy::Address(address)))),
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

fn next(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from(u32::from(address).saturating_add(1)).into(),
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address).saturating_add(1)).into(),
    }
}

/// The loopback address, of the family of the other end.
fn usual_address(sought: &Sought<'_>, setting: &Setting) -> IpAddr {
    let sought = sought.of(&Field::DstIp).and_then(one_address);
    let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    let is_there = |address: &IpAddr| match (sought, setting.binds.first()) {
        (Some(sought), _) => sought.is_ipv4() == address.is_ipv4(),
        (None, first) => first.is_none_or(|first| setting.is_open_to(*address, first)),
    };
    let [usual, other] = loopback;
    if is_there(&usual) { usual } else { other }
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
