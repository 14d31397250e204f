//! Addresses that the process listens on, and which of them get in each other's way.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use crate::findings::Spanned;

/// The addresses so far, by port.
#[derive(Default)]
pub(crate) struct Bound<'a> {
    ports: HashMap<u16, Port<'a>>,
}

/// The addresses with one port.
#[derive(Default)]
struct Port<'a> {
    exact: HashMap<IpAddr, &'a Spanned<SocketAddr>>,
    /// The first of each family.
    first: [Option<&'a Spanned<SocketAddr>>; 2],
    /// The unspecified one of each family.
    all: [Option<&'a Spanned<SocketAddr>>; 2],
}

const V4: usize = 0;
const V6: usize = 1;

impl<'a> Bound<'a> {
    /// Adds an address; returns an earlier one that takes the same connections.
    ///
    /// The system would accept both, and send each connection to the one that is more precise: rules that
    /// stand by the other would be passed by. `[::]` takes connections to IPv4 addresses too.
    pub(crate) fn add(&mut self, bind: &'a Spanned<SocketAddr>) -> Option<&'a Spanned<SocketAddr>> {
        let ip = bind.value.ip().to_canonical();
        let family = if ip.is_ipv4() { V4 } else { V6 };
        let port = self.ports.entry(bind.value.port()).or_default();
        let same = port.exact.get(&ip).copied();
        let wider = port.all[family].or(if family == V4 { port.all[V6] } else { None });
        let narrower = match ip.is_unspecified() {
            true => port.first[family].or(if family == V6 { port.first[V4] } else { None }),
            false => None,
        };
        port.exact.entry(ip).or_insert(bind);
        port.first[family].get_or_insert(bind);
        if ip.is_unspecified() {
            port.all[family].get_or_insert(bind);
        }
        same.or(wider).or(narrower)
    }
}

#[cfg(test)]
mod tests {
    use pointsman_rules::Span;

    use super::*;

    fn check(addresses: &[&str], expected: Option<&str>) {
        let binds: Vec<Spanned<SocketAddr>> = addresses
            .iter()
            .map(|text| Spanned { value: text.parse().expect("an address"), span: Span::default() })
            .collect();
        let mut bound = Bound::default();
        let found: Vec<_> = binds.iter().filter_map(|bind| bound.add(bind)).collect();
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
    }
}
