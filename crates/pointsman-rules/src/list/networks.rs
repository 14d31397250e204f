//! Addresses by the networks that they are in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::ranges::Ranges;
use crate::pace;

/// A set of addresses, made of networks and ranges; what touches or overlaps is one.
///
/// It takes 9 to 12 bytes for each range of IPv4 and 33 to 36 for each of IPv6. A look-up reads one slot of a table and one
/// row of ranges, however many there are; where many lie close together, one or two tables more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkList {
    fourth: Ranges<u32>,
    sixth: Ranges<u128>,
}

impl NetworkList {
    /// All addresses from the first of a pair to its second, both with it. IPv4-mapped ones count as IPv4, but for one end
    /// of a pair of which the other is no such address: `::/80` ends with one, and is of IPv6. A pair of two families, or
    /// with the greater address first, holds none.
    #[must_use]
    pub fn new(ranges: impl IntoIterator<Item = (IpAddr, IpAddr)>) -> NetworkList {
        let (mut fourth, mut sixth) = (Vec::new(), Vec::new());
        for (first, last) in pace::each(ranges) {
            match (first.to_canonical(), last.to_canonical(), first, last) {
                (IpAddr::V4(first), IpAddr::V4(last), ..) => fourth.push((first.to_bits(), last.to_bits())),
                (.., IpAddr::V6(first), IpAddr::V6(last)) => sixth.push((first.to_bits(), last.to_bits())),
                _ => {}
            }
        }
        NetworkList { fourth: Ranges::new(fourth), sixth: Ranges::new(sixth) }
    }

    /// Whether an address is in it.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => self.fourth.has(address.to_bits()),
            IpAddr::V6(address) => self.sixth.has(address.to_bits()),
        }
    }

    /// How many ranges there are, none touching another.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fourth.len() + self.sixth.len()
    }

    /// Whether no address is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ranges by their first and last addresses, IPv4 before IPv6, each in order.
    pub fn ranges(&self) -> impl Iterator<Item = (IpAddr, IpAddr)> {
        let fourth = (0..self.fourth.len()).filter_map(|place| self.fourth.at(place)).map(of_four);
        let sixth = (0..self.sixth.len()).filter_map(|place| self.sixth.at(place)).map(of_six);
        fourth.chain(sixth)
    }

    /// The first range that ends at an address or behind it, of the same family.
    #[must_use]
    pub fn range_at_or_behind(&self, address: IpAddr) -> Option<(IpAddr, IpAddr)> {
        match address.to_canonical() {
            IpAddr::V4(address) => self.fourth.at_or_behind(address.to_bits()).map(of_four),
            IpAddr::V6(address) => self.sixth.at_or_behind(address.to_bits()).map(of_six),
        }
    }

    /// The first and the last address of each family that has any.
    pub fn hulls(&self) -> impl Iterator<Item = (IpAddr, IpAddr)> {
        let hulls = [self.fourth.hull().map(of_four), self.sixth.hull().map(of_six)];
        hulls.into_iter().flatten()
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.fourth.memory_bytes() + self.sixth.memory_bytes()
    }
}

fn of_four((first, last): (u32, u32)) -> (IpAddr, IpAddr) {
    (Ipv4Addr::from_bits(first).into(), Ipv4Addr::from_bits(last).into())
}

fn of_six((first, last): (u128, u128)) -> (IpAddr, IpAddr) {
    (Ipv6Addr::from_bits(first).into(), Ipv6Addr::from_bits(last).into())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Addresses of both families that lie close together, and at the ends of all.
    fn addresses() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            8 => (0u32..3000).prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits + 0x0a00_0000))),
            1 => (0u32..3).prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits))),
            1 => (0u32..3).prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(u32::MAX - bits))),
            6 => (0u128..2000).prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits << 60))),
            1 => (0u128..3).prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(u128::MAX - bits))),
        ]
    }

    fn within(ranges: &[(IpAddr, IpAddr)], address: IpAddr) -> bool {
        ranges.iter().any(|(first, last)| {
            first.is_ipv4() == address.is_ipv4()
                && last.is_ipv4() == address.is_ipv4()
                && (*first..=*last).contains(&address)
        })
    }

    proptest! {
        #[test]
        fn it_says_what_a_scan_of_its_ranges_says(
            ranges in prop_oneof![
                vec((addresses(), addresses()), 0..8),
                vec((addresses(), 0u8..3), 0..900).prop_map(|ranges| {
                    ranges.into_iter().map(|(first, more)| (first, later(first, more))).collect::<Vec<_>>()
                }),
            ],
            asked in vec(addresses(), 1..60),
        ) {
            let list = NetworkList::new(ranges.iter().copied());
            for address in asked {
                prop_assert_eq!(list.has(address), within(&ranges, address), "{}", address);
                let behind = list.ranges().find(|(first, last)| {
                    first.is_ipv4() == address.is_ipv4() && address <= *last
                });
                prop_assert_eq!(list.range_at_or_behind(address), behind, "{}", address);
            }
            // Nothing touches, and each range is found by both of its ends.
            let kept: Vec<_> = list.ranges().collect();
            prop_assert_eq!(kept.len(), list.len());
            for (first, last) in &kept {
                prop_assert!(list.has(*first) && list.has(*last));
                prop_assert!(kept.iter().all(|(other, _)| *other != later(*last, 1) || other == last));
            }
            prop_assert_eq!(NetworkList::new(kept), list);
        }
    }

    fn later(address: IpAddr, by: u8) -> IpAddr {
        match address {
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits().saturating_add(by.into())).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits().saturating_add(by.into())).into(),
        }
    }

    #[test]
    fn every_number_of_ranges_has_its_tables() {
        for len in [0, 1, 15, 16, 17, 64, 67, 68, 255, 256, 4096, 4097] {
            let address = |bits: u32| IpAddr::V4(Ipv4Addr::from_bits(bits));
            let list =
                NetworkList::new((0..len).map(|place| (address(place * 4 + 1), address(place * 4 + 2))));
            assert_eq!(list.len(), len as usize);
            for place in 0..len {
                let found = [0, 1, 2, 3].map(|bits| list.has(address(place * 4 + bits)));
                assert_eq!(found, [false, true, true, false], "{place} of {len}");
            }
            assert!(!list.has(address(u32::MAX)));
        }
    }

    #[test]
    fn a_network_may_end_with_a_mapped_address() {
        let [first, last, within, behind] =
            ["::", "::ffff:ffff:ffff", "::7", "::1:0:0:0"].map(|text| text.parse().unwrap());
        let list = NetworkList::new([(first, last)]);
        assert!(list.has(first) && list.has(within) && !list.has(behind));
        assert!(!list.has("255.255.255.255".parse().unwrap()));
    }

    #[test]
    fn mapped_addresses_count_as_ipv4() {
        let list = NetworkList::new([("::ffff:10.0.0.0".parse().unwrap(), "10.0.0.255".parse().unwrap())]);
        assert!(list.has("10.0.0.9".parse().unwrap()) && list.has("::ffff:10.0.0.9".parse().unwrap()));
        assert!(!list.has("::a00:9".parse().unwrap()));
    }
}
