//! In which ways requests come to a listener: to what kind of socket, from what family of addresses, and whether whoever sends
//! them is believed when he names a client.
//!
//! What holds of a way is what the switch does: a socket takes the peers of its family (`[::]` those of both, unless it is for
//! IPv6 alone); of a sender who is not believed no line about hops is seen, and he is the client; so he is where he names
//! nobody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use pointsman_rules::{Field, OwnedValue};

use super::Setting;
use super::handshake::Says;
use super::sender::{bound_ip, is_of_hops};
use super::setting::ProxyHeader;
use crate::wanted::{Values, Wanted};

/// The line that names clients before all others, and the one that does without it.
const LINES: [&str; 2] = ["x-forwarded-for", "forwarded"];

/// One of the ways in which requests come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Where to; nothing where that is a Unix socket.
    to: Option<To>,
    names: Names,
    /// What is true of the two ends besides, each with what it comes to: a condition of one test.
    pub(crate) holds: Vec<(String, Wanted)>,
}

/// An address that is listened on, for peers of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct To {
    is_ipv4: bool,
    /// Nothing where it may be any of the family.
    ip: Option<IpAddr>,
    /// Nothing where it may be any.
    port: Option<u16>,
}

/// Who says which client it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// Nothing is known of it.
    Any,
    /// A sender who is believed, by the line of this place.
    Line(usize),
    /// One who is believed, and names nobody.
    Nobody,
    /// One who is not.
    Unheard,
}

impl Setting {
    /// All ways in which requests come.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        for to in self.sockets() {
            for names in self.senders(to.is_some()) {
                let holds = to.map(|to| self.of_ends(to, names)).unwrap_or_default();
                arrivals.push(Arrival { to, names, holds });
            }
        }
        arrivals
    }

    /// Whether no request comes from anybody who is believed when he names a client.
    pub(crate) fn believes_nobody(&self) -> bool {
        [true, false].into_iter().all(|has_address| self.senders(has_address) == [Names::Unheard])
    }

    fn sockets(&self) -> Vec<Option<To>> {
        let any = [true, false].map(|is_ipv4| To { is_ipv4, ip: None, port: None });
        let of_bind = |bind: &SocketAddr| {
            let (ip, port) = (bound_ip(*bind), Some(bind.port()).filter(|port| *port != 0));
            let families: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            let open = families.into_iter().filter(|source| self.is_open_to(*source, bind));
            open.map(|source| To { is_ipv4: source.is_ipv4(), ip, port }).collect::<Vec<_>>()
        };
        let mut sockets: Vec<Option<To>> = Vec::new();
        let all: Vec<To> = match self.binds.as_slice() {
            _ if !self.takes_addresses => Vec::new(),
            [] => any.into(),
            binds => binds.iter().flat_map(of_bind).collect(),
        };
        for to in all.into_iter().map(Some) {
            if !sockets.contains(&to) {
                sockets.push(to);
            }
        }
        // Where a PROXY header is to come nobody is let in who is not believed.
        let is_let_in = self.trusts_unix || self.proxy_header != ProxyHeader::Required;
        sockets.extend((self.takes_unix && is_let_in).then_some(None));
        sockets
    }

    fn senders(&self, has_address: bool) -> Vec<Names> {
        if self.may_trust_others || self.may_be_proxied() {
            return vec![Names::Any];
        }
        let may_be_believed = if has_address { !self.trusted_proxies.is_empty() } else { self.trusts_unix };
        let mut senders = vec![Names::Unheard];
        if may_be_believed {
            senders.extend([Names::Nobody, Names::Line(0), Names::Line(1)]);
        }
        // Whoever comes to a Unix socket is believed or not, and no address tells them apart.
        senders.retain(|names| has_address || !may_be_believed || *names != Names::Unheard);
        senders
    }

    fn of_ends(&self, to: To, names: Names) -> Vec<(String, Wanted)> {
        let family = if to.is_ipv4 { "0.0.0.0/0" } else { "::/0" };
        let mut holds: Vec<_> =
            ["srcip", "dstip"].map(|end| (format!("{end} in [{family}]"), Wanted::True)).into();
        let is_believed = match names {
            Names::Any => self.proxy_header == ProxyHeader::Required,
            Names::Line(_) | Names::Nobody => true,
            Names::Unheard => false,
        };
        let networks: Vec<_> = self.trusted_proxies.iter().map(ToString::to_string).collect();
        if names != Names::Any || is_believed {
            match (networks.is_empty(), is_believed) {
                (false, true) => holds.push((format!("srcip in [{}]", networks.join(", ")), Wanted::True)),
                (false, false) => holds.push((format!("srcip in [{}]", networks.join(", ")), Wanted::False)),
                // Nobody is.
                (true, true) => holds.push(("srcip exists".to_owned(), Wanted::False)),
                (true, false) => {}
            }
        }
        holds
    }
}

impl Arrival {
    /// Whether the client is the peer.
    pub(crate) fn client_is_peer(&self) -> bool {
        matches!(self.names, Names::Nobody | Names::Unheard)
    }

    /// What it says of a field of the ends, of the client where he need not be the peer, and of a line about hops.
    pub(crate) fn says(&self, field: &Field) -> Says {
        let absent = || Says::These(Values::default());
        let one = |value| Says::These(Values { known: vec![value], rest: None });
        match (field, self.to) {
            (Field::Header(name), _) => match self.names {
                Names::Unheard => absent(),
                Names::Nobody if LINES.contains(&&**name) => absent(),
                Names::Line(at) => match LINES.iter().position(|line| *line == &**name) {
                    Some(place) if place == at => Says::Some,
                    Some(place) if place < at => absent(),
                    _ => Says::Any,
                },
                Names::Nobody | Names::Any => Says::Any,
            },
            (Field::ClientIp, None) => Says::Any,
            (_, None) => absent(),
            (Field::DstIp, Some(To { ip: Some(ip), .. })) => one(OwnedValue::Ip(ip)),
            (Field::DstPort, Some(To { port: Some(port), .. })) => one(OwnedValue::Integer(port.into())),
            (_, Some(_)) => Says::Some,
        }
    }

    /// Whether anything is said of a field.
    pub(crate) fn is_of(field: &Field) -> bool {
        let is_of_ends =
            matches!(field, Field::SrcIp | Field::SrcPort | Field::DstIp | Field::DstPort | Field::ClientIp);
        is_of_ends || is_of_hops(field)
    }
}
