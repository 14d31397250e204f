//! Where a connection comes from and to: as the options say, where that comes to the listener at all, and otherwise as is usual.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use pointsman_analysis::{NeverAgreed, Odds, ProxyHeader};
use pointsman_rules::{Field, OwnedValue};

use super::options::Options;
use super::place::Place;

/// The port of a client that says none.
const CLIENT_PORT: u16 = 40_000;

/// What an option says of an end.
type Said = (&'static str, (Field, Vec<OwnedValue>));

/// From where to where; nothing where that is a Unix socket. The error is a text for people.
pub(super) fn of(
    options: &Options,
    place: &Place,
    is_tls: bool,
) -> Result<Option<(SocketAddr, SocketAddr)>, String> {
    if options.comes_by_unix || place.takes_unix_alone() {
        return Ok(None);
    }
    let usual_port = if is_tls { 443 } else { 80 };
    let mut dst = SocketAddr::new(
        options.dst_ip.unwrap_or(Ipv4Addr::LOCALHOST.into()),
        options.dst_port.unwrap_or(usual_port),
    );
    // Rules by themselves may be those of any listener.
    if !place.listener.is_empty() {
        let said = said(options);
        let fields: Vec<_> = said.iter().map(|(_, field)| field.clone()).collect();
        let ends = place.known().ends(&fields, is_tls);
        let ends = ends.map_err(|never| complaint(&said, &never, place))?;
        dst = ends.dst.unwrap_or(dst);
    }
    let loopback = match dst.ip().to_canonical() {
        IpAddr::V6(_) if !place.listener.is_empty() => IpAddr::from(Ipv6Addr::LOCALHOST),
        _ => Ipv4Addr::LOCALHOST.into(),
    };
    let src = SocketAddr::new(options.src_ip.unwrap_or(loopback), options.src_port.unwrap_or(CLIENT_PORT));
    Ok(Some((src, dst)))
}

fn said(options: &Options) -> Vec<Said> {
    let ip =
        |option, field, ip: Option<IpAddr>| Some((option, (field, vec![OwnedValue::Ip(ip?.to_canonical())])));
    let port =
        |option, field, port: Option<u16>| Some((option, (field, vec![OwnedValue::Integer(port?.into())])));
    let all = [
        ip("--srcip", Field::SrcIp, options.src_ip),
        port("--srcport", Field::SrcPort, options.src_port),
        ip("--dstip", Field::DstIp, options.dst_ip),
        port("--dstport", Field::DstPort, options.dst_port),
    ];
    all.into_iter().flatten().collect()
}

/// That no connection comes so.
fn complaint(said: &[Said], never: &NeverAgreed, place: &Place) -> String {
    let name = &place.listener;
    let Some((option, (field, values))) = said.get(never.at) else {
        return format!("error: no connection comes to the listener `{name}`\n");
    };
    let beside = match never.with {
        Odds::Field(other) => {
            let other =
                said.get(other).map(|(_, (field, values))| format!(" where `{field}` is {}", text(values)));
            other.unwrap_or_default()
        }
        _ => String::new(),
    };
    // A Unix socket has neither, and was not meant.
    let instead = never.instead.iter().filter(|values| !values.is_empty());
    let instead: Vec<_> = instead.map(|values| text(values)).collect();
    let why = match (never.with, field) {
        (Odds::Itself, _) => "a port is from 1 to 65535".to_owned(),
        _ if !instead.is_empty() => format!("`{field}` is {}{beside}", instead.join(" or ")),
        (_, Field::SrcIp) if place.proxy_header == ProxyHeader::Required => {
            "it lets nobody in but its `trusted_proxies`".to_owned()
        }
        (_, Field::SrcIp) => family(values).to_owned(),
        _ => format!("no connection has that{beside}"),
    };
    format!(
        "error: `{option} {}` says what never comes to the listener `{name}`: {why}\n\
         help: leave it out, or name another listener by `--listener`\n",
        text(values)
    )
}

/// Why nobody comes from such an address.
fn family(values: &[OwnedValue]) -> &'static str {
    match values {
        [OwnedValue::Ip(IpAddr::V6(_))] => "it has no address of IPv6 to come to",
        _ => "it has no address of IPv4 to come to",
    }
}

fn text(values: &[OwnedValue]) -> String {
    let text = |value: &OwnedValue| match value {
        OwnedValue::Ip(ip) => ip.to_string(),
        OwnedValue::Integer(number) => number.to_string(),
        _ => String::new(),
    };
    values.iter().map(text).collect::<Vec<_>>().join(", ")
}
