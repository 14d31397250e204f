//! Addresses of which one fulfils claims if any does.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use pointsman_rules::{Entry, Op, Truth};

use super::claim::Claim;

/// Such as documents use (RFC 5737, RFC 3849), and some of private networks.
const NICE: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)),
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// Neighbours of the IPv4-mapped addresses, which count as IPv4.
const BESIDE_MAPPED: [u128; 2] = [0xfffe_ffff_ffff, 0x1_0000_0000_0000];

/// The nice ones, and those at and near each border: between two borders all addresses of a family are alike. What lies
/// outside of the network of the narrowest claim is left out.
pub(super) fn candidates(claims: &[Claim<'_>], narrowest: Option<Claim<'_>>) -> Vec<IpAddr> {
    let mut borders = borders(claims);
    if let Some(network) = narrowest.and_then(|claim| within(&claim)) {
        borders.retain(|border| network.contains(&border.to_canonical()));
    }
    addresses(borders)
}

/// The claim that allows the fewest addresses, of those that allow one network only.
pub(super) fn narrowest<'p>(claims: &[Claim<'p>]) -> Option<Claim<'p>> {
    let within = claims.iter().filter_map(|claim| Some((within(claim)?.prefix_len(), claim)));
    within.max_by_key(|(bits, _)| *bits).map(|(_, claim)| *claim)
}

/// The network that a claim allows only addresses of.
fn within(claim: &Claim<'_>) -> Option<IpNet> {
    match &claim.test.op {
        Op::IpIn(network) if !claim.truths.has(Truth::False) => Some(*network),
        Op::IpNotIn(network) if !claim.truths.has(Truth::True) => Some(*network),
        Op::In(entries) if !claim.truths.has(Truth::False) => match entries[..] {
            [Entry::Network(network)] => Some(network),
            _ => None,
        },
        _ => None,
    }
}

/// What claims compare addresses with, the ends of networks and ranges; not what is in named lists.
pub(super) fn borders(claims: &[Claim<'_>]) -> Vec<IpAddr> {
    let mut borders = Vec::new();
    for claim in claims {
        match &claim.test.op {
            Op::IpIn(network) | Op::IpNotIn(network) => of_network(network, &mut borders),
            Op::IpOrder(_, address) => borders.push(*address),
            Op::In(entries) => entries.iter().for_each(|entry| match entry {
                Entry::Network(network) => of_network(network, &mut borders),
                Entry::IpRange { from, to, .. } => borders.extend([*from, *to]),
                _ => {}
            }),
            _ => {}
        }
    }
    borders
}

fn addresses(borders: Vec<IpAddr>) -> Vec<IpAddr> {
    let (mut fourth, mut sixth) = (BTreeSet::from([0, u32::MAX]), BTreeSet::from(BESIDE_MAPPED));
    sixth.extend([0, u128::MAX]);
    for border in borders {
        match border.to_canonical() {
            IpAddr::V4(address) => {
                let bits = address.to_bits();
                fourth.extend(bits.saturating_sub(1)..=bits.saturating_add(2));
            }
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                sixth.extend(bits.saturating_sub(1)..=bits.saturating_add(2));
            }
        }
    }
    let fourth = fourth.into_iter().map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)));
    let sixth = sixth.into_iter().map(Ipv6Addr::from_bits);
    let sixth = sixth.filter(|address| address.to_ipv4_mapped().is_none()).map(IpAddr::V6);
    let (usual, odd): (Vec<_>, Vec<_>) = fourth.chain(sixth).partition(|address| is_usual(*address));
    NICE.into_iter().chain(usual).chain(odd).collect()
}

fn of_network(network: &IpNet, borders: &mut Vec<IpAddr>) {
    borders.extend([network.network(), network.broadcast()]);
}

/// Whether it may be a host's: neither the first nor the last of a network of eight bits, nor a group's.
pub(super) fn is_usual(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, .., last] = address.octets();
            (1..224).contains(&first) && first != 127 && (1..255).contains(&last)
        }
        IpAddr::V6(address) => !address.is_multicast() && !address.is_unspecified(),
    }
}
