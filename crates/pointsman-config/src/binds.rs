//! Addresses that the process listens on, and which of them get in each other's way.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use crate::findings::Spanned;

/// The addresses so far, by port.
#[derive(Default)]
pub(crate) struct Bound {
    ports: HashMap<u16, Port>,
}

/// The addresses with one port.
#[derive(Default)]
struct Port {
    /// With the interface that a link-local address is of.
    exact: HashMap<(IpAddr, u32), Spanned<SocketAddr>>,
    /// The first of each family.
    first: [Option<Spanned<SocketAddr>>; 2],
    /// The unspecified one of each family.
    all: [Option<Spanned<SocketAddr>>; 2],
    /// The unspecified one of IPv6 that takes IPv4 as well.
    dual: Option<Spanned<SocketAddr>>,
}

/// What `[::]` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ipv6 {
    /// Connections to IPv4 addresses too.
    Dual,
    /// Connections to IPv6 addresses alone.
    Only,
}

const V4: usize = 0;
const V6: usize = 1;

impl Bound {
    /// Adds an address; returns an earlier one that takes the same connections.
    ///
    /// The system would accept both, and send each connection to the one that is more precise: rules that
    /// stand by the other would be passed by.
    pub(crate) fn add(&mut self, bind: Spanned<SocketAddr>, ipv6: Ipv6) -> Option<Spanned<SocketAddr>> {
        let ip = bind.value.ip().to_canonical();
        let scope = if let SocketAddr::V6(address) = bind.value { address.scope_id() } else { 0 };
        let family = if ip.is_ipv4() { V4 } else { V6 };
        let is_dual = family == V6 && ip.is_unspecified() && ipv6 == Ipv6::Dual;
        let port = self.ports.entry(bind.value.port()).or_default();
        let same = port.exact.get(&(ip, scope)).cloned();
        let wider = port.all[family].clone().or(if family == V4 { port.dual.clone() } else { None });
        let narrower = match ip.is_unspecified() {
            true => port.first[family].clone().or(if is_dual { port.first[V4].clone() } else { None }),
            false => None,
        };
        port.exact.entry((ip, scope)).or_insert(bind.clone());
        port.first[family].get_or_insert(bind.clone());
        if ip.is_unspecified() {
            port.all[family].get_or_insert(bind.clone());
        }
        if is_dual {
            port.dual.get_or_insert(bind);
        }
        same.or(wider).or(narrower)
    }
}

#[cfg(test)]
mod tests {
    use pointsman_rules::Span;

    use super::*;

    fn check(addresses: &[&str], expected: Option<&str>) {
        check_as(Ipv6::Dual, addresses, expected);
    }

    fn check_as(ipv6: Ipv6, addresses: &[&str], expected: Option<&str>) {
        let binds = addresses
            .iter()
            .map(|text| Spanned { value: text.parse().expect("an address"), span: Span::default() });
        let mut bound = Bound::default();
        let found: Vec<_> = binds.filter_map(|bind| bound.add(bind, ipv6)).collect();
        let found: Vec<_> = found.iter().map(|bind| bind.value.to_string()).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{addresses:?}");
    }

    #[test]
    fn what_overlaps() {
        check(&["127.0.0.1:80", "127.0.0.2:80", "127.0.0.1:81", "[::1]:80"], None);
        check(&["0.0.0.0:80", "[::1]:80", "[::]:81"], None);
        check(&["127.0.0.1:80", "127.0.0.1:80"], Some("127.0.0.1:80"));
        check(&["127.0.0.1:80", "[::ffff:127.0.0.1]:80"], Some("127.0.0.1:80"));
        check(&["0.0.0.0:80", "127.0.0.1:80"], Some("0.0.0.0:80"));
        check(&["127.0.0.1:80", "0.0.0.0:80"], Some("127.0.0.1:80"));
        check(&["[::]:80", "[::1]:80"], Some("[::]:80"));
        check(&["[::]:80", "0.0.0.0:80"], Some("[::]:80"));
        check(&["0.0.0.0:80", "[::]:80"], Some("0.0.0.0:80"));
        check(&["127.0.0.1:80", "[::]:80"], Some("127.0.0.1:80"));
        check(&["[::]:80", "127.0.0.1:80"], Some("[::]:80"));
        check(&["[fe80::1%1]:80", "[fe80::1%2]:80"], None);
        check(&["[fe80::1%1]:80", "[fe80::1%1]:80"], Some("[fe80::1%1]:80"));
        check_as(Ipv6::Only, &["[::]:80", "0.0.0.0:80", "127.0.0.1:81"], None);
        check_as(Ipv6::Only, &["127.0.0.1:80", "[::]:80"], None);
        check_as(Ipv6::Only, &["[::]:80", "[::1]:80"], Some("[::]:80"));
    }
}
