//! Numbers and addresses in order, cut where some rule compares with one.
//!
//! Where a value lies between the cuts is its cell; a comparison is a run of cells.

use std::net::IpAddr;
use std::ops::Range;

use ipnet::IpNet;

use super::asks::offset;
use crate::decimal::Numeral;
use crate::{Decimal, Order, pace};

/// The cells of a reading: first those of numbers, behind them those of addresses.
#[derive(Debug)]
pub(super) struct Scale {
    /// In ascending order, each once, and what [`Numeral::head`] says of each.
    numbers: Vec<Decimal>,
    heads: Sorted<i64>,
    borders: Borders,
}

/// Where runs of addresses begin, and where the next address begins behind one. Those of IPv4 stand by themselves, in a
/// quarter of the room.
#[derive(Debug)]
struct Borders {
    /// From the first mapped address on.
    mapped: Sorted<u32>,
    others: Sorted<u128>,
    /// How many of the others stand before those.
    before_mapped: usize,
}

impl Borders {
    fn new(all: Vec<u128>) -> Borders {
        let mapped =
            |border: u128| border.checked_sub(MAPPED_FIRST).and_then(|number| u32::try_from(number).ok());
        let others: Vec<u128> = all.iter().copied().filter(|border| mapped(*border).is_none()).collect();
        let before_mapped = others.partition_point(|border| *border < MAPPED_FIRST);
        let mapped = Sorted::new(all.into_iter().filter_map(mapped).collect());
        Borders { mapped, others: Sorted::new(others), before_mapped }
    }

    fn len(&self) -> usize {
        self.mapped.all.len() + self.others.all.len()
    }

    /// How many are an address or stand before it.
    fn count_to(&self, address: u128) -> usize {
        let Some(behind) = address.checked_sub(MAPPED_FIRST) else {
            return self.others.count_before(|border| *border <= address);
        };
        match u32::try_from(behind) {
            Ok(number) => self.before_mapped + self.mapped.count_before(|border| *border <= number),
            Err(_) => self.mapped.all.len() + self.others.count_before(|border| *border <= address),
        }
    }
}

/// In ascending order, and by themselves those at the head of each block: they lie near at hand.
#[derive(Debug)]
struct Sorted<T> {
    all: Vec<T>,
    block_heads: Vec<T>,
}

/// How many are in a block.
const BLOCK: usize = 32;

impl<T: Copy> Sorted<T> {
    fn new(all: Vec<T>) -> Sorted<T> {
        let block_heads = all.iter().step_by(BLOCK).copied().collect();
        Sorted { all, block_heads }
    }

    /// How many stand before the first that does not.
    fn count_before(&self, stands_before: impl Fn(&T) -> bool) -> usize {
        let Some(block) = self.block_heads.partition_point(&stands_before).checked_sub(1) else { return 0 };
        let start = block * BLOCK;
        let end = self.all.len().min(start + BLOCK);
        start + self.all[start..end].partition_point(stands_before)
    }
}

/// What a comparison takes, before there are cells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Bounds {
    /// Numbers.
    Numbers {
        /// The lower bound, and whether it is taken itself.
        from: Option<(Decimal, bool)>,
        /// The upper bound.
        to: Option<(Decimal, bool)>,
    },
    /// Addresses as [`address_number`] numbers them, the last one included.
    Addresses {
        /// The first.
        first: u128,
        /// The last.
        last: u128,
    },
}

impl Scale {
    pub(super) fn new<'s>(all_bounds: impl Iterator<Item = &'s Bounds>) -> Scale {
        let (mut numbers, mut borders) = (Vec::new(), Vec::new());
        for bounds in pace::each(all_bounds) {
            match bounds {
                Bounds::Numbers { from, to } => {
                    numbers.extend(from.iter().chain(to).map(|(bound, _)| bound.clone()));
                }
                Bounds::Addresses { first, last } => {
                    borders.push(*first);
                    borders.extend(last.checked_add(1));
                }
            }
        }
        pace::sort(&mut numbers);
        numbers.dedup();
        pace::sort(&mut borders);
        borders.dedup();
        let heads = numbers.iter().map(|number| number.as_numeral().head()).collect();
        Scale { numbers, heads: Sorted::new(heads), borders: Borders::new(borders) }
    }

    /// How many cells there are.
    pub(super) fn cells(&self) -> u32 {
        self.number_cells() + offset(self.borders.len()) + 1
    }

    /// One for each number and one for each gap around it.
    fn number_cells(&self) -> u32 {
        2 * offset(self.numbers.len()) + 1
    }

    /// The cells between bounds that are among those the scale was made of.
    pub(super) fn run(&self, bounds: &Bounds) -> Range<u32> {
        match bounds {
            Bounds::Numbers { from, to } => {
                let place = |number: &Decimal| offset(self.numbers.partition_point(|other| other < number));
                let start =
                    from.as_ref().map_or(0, |(bound, within)| 2 * place(bound) + 2 - u32::from(*within));
                let last = self.number_cells();
                let end =
                    to.as_ref().map_or(last, |(bound, within)| 2 * place(bound) + 1 + u32::from(*within));
                start..end.max(start)
            }
            Bounds::Addresses { first, last } => {
                let start = self.address(*first);
                let end = last.checked_add(1).map_or(self.cells(), |next| self.address(next));
                start..end.max(start)
            }
        }
    }

    /// Whether a run goes on to the first or to the last number, so that of many such runs a value lies in half.
    pub(super) fn is_one_sided(&self, run: &Range<u32>) -> bool {
        run.start == 0 || run.end == self.number_cells()
    }

    pub(super) fn number(&self, numeral: &Numeral<'_>) -> u32 {
        let head = numeral.head();
        let heads = &self.heads.all;
        let mut below = self.heads.count_before(|other| *other < head);
        if heads.get(below) == Some(&head) {
            let alike = heads[below..].partition_point(|other| *other == head);
            let alike = &self.numbers[below..below + alike];
            below += alike.partition_point(|number| number.as_numeral().cmp(numeral).is_lt());
        }
        let is_it = heads.get(below) == Some(&head)
            && self.numbers.get(below).is_some_and(|number| number.as_numeral().cmp(numeral).is_eq());
        2 * offset(below) + u32::from(is_it)
    }

    pub(super) fn address(&self, address: u128) -> u32 {
        self.number_cells() + offset(self.borders.count_to(address))
    }
}

impl Bounds {
    pub(super) fn number(number: &Decimal) -> Bounds {
        let bound = Some((number.clone(), true));
        Bounds::Numbers { from: bound.clone(), to: bound }
    }

    pub(super) fn number_order(order: Order, number: &Decimal) -> Bounds {
        let within = matches!(order, Order::LessOrEqual | Order::GreaterOrEqual);
        let bound = Some((number.clone(), within));
        match order {
            Order::Less | Order::LessOrEqual => Bounds::Numbers { from: None, to: bound },
            Order::Greater | Order::GreaterOrEqual => Bounds::Numbers { from: bound, to: None },
        }
    }

    /// The addresses of a network; of one around the block that stands for IPv4, those on either side of it.
    pub(super) fn network(network: &IpNet) -> Vec<Bounds> {
        match network {
            IpNet::V4(_) => Bounds::addresses(network.network(), network.broadcast(), false),
            IpNet::V6(v6) => Bounds::of_ipv6(v6.network().into(), v6.broadcast().into()),
        }
    }

    /// What stands in this order to an address of its family.
    pub(super) fn address_order(order: Order, address: IpAddr) -> Vec<Bounds> {
        let address = address.to_canonical();
        let (first, last) = match address {
            IpAddr::V4(_) => (MAPPED_FIRST, MAPPED_LAST),
            IpAddr::V6(_) => (0, u128::MAX),
        };
        let number = address_number(address);
        let bounds = match order {
            Order::Less => number.checked_sub(1).map(|last| (first, last)),
            Order::LessOrEqual => Some((first, number)),
            Order::Greater => number.checked_add(1).map(|first| (first, last)),
            Order::GreaterOrEqual => Some((number, last)),
        };
        bounds.map_or_else(Vec::new, |(first, last)| Bounds::of_family(address, first, last))
    }

    /// From one address to another; none where they are of two families.
    pub(super) fn addresses(from: IpAddr, to: IpAddr, exclusive: bool) -> Vec<Bounds> {
        let (from, to) = (from.to_canonical(), to.to_canonical());
        if from.is_ipv4() != to.is_ipv4() {
            return Vec::new();
        }
        let inset = u128::from(exclusive);
        let bounds = (address_number(from).checked_add(inset), address_number(to).checked_sub(inset));
        match bounds {
            (Some(first), Some(last)) => Bounds::of_family(from, first, last),
            _ => Vec::new(),
        }
    }

    fn of_family(member: IpAddr, first: u128, last: u128) -> Vec<Bounds> {
        match member {
            IpAddr::V4(_) if first <= last => vec![Bounds::Addresses { first, last }],
            IpAddr::V4(_) => Vec::new(),
            IpAddr::V6(_) => Bounds::of_ipv6(first, last),
        }
    }

    /// Without the block of mapped addresses, which are IPv4 here.
    fn of_ipv6(first: u128, last: u128) -> Vec<Bounds> {
        let below = (first, last.min(MAPPED_FIRST - 1));
        let above = (first.max(MAPPED_LAST + 1), last);
        let all_bounds = [below, above].into_iter().filter(|(first, last)| first <= last);
        all_bounds.map(|(first, last)| Bounds::Addresses { first, last }).collect()
    }
}

/// The block of IPv4-mapped addresses (RFC 4291 section 2.5.5.2).
const MAPPED_FIRST: u128 = 0xffff_0000_0000;
const MAPPED_LAST: u128 = 0xffff_ffff_ffff;

/// An address as a number; one of IPv4 as the IPv6 address it is mapped to.
pub(super) fn address_number(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::{Entry, Op, Truth, Value};

    fn numbers() -> impl Strategy<Value = Decimal> {
        let alike = vec![
            "1.00000000000001",
            "1.000000000000011",
            "1.000000000000012",
            "-1.000000000000011",
            "0",
            "-0.5",
        ];
        prop_oneof![
            select(alike).prop_map(|text| text.parse().expect("a number")),
            (-20i32..20, 0u32..3)
                .prop_map(|(whole, part)| format!("{whole}.{part}").parse().expect("a number")),
        ]
    }

    fn addresses() -> impl Strategy<Value = IpAddr> {
        const TEXTS: &[&str] = &[
            "0.0.0.0",
            "10.0.0.1",
            "10.0.0.2",
            "255.255.255.255",
            "::",
            "::ffff:10.0.0.2",
            "::1:0:0:0",
            "ffff::1",
        ];
        select(TEXTS).prop_map(|text| text.parse().expect("an address"))
    }

    fn orders() -> impl Strategy<Value = Order> {
        select(vec![Order::Less, Order::LessOrEqual, Order::Greater, Order::GreaterOrEqual])
    }

    proptest! {
        /// A value lies in a run of cells where the comparison holds.
        #[test]
        fn runs_are_comparisons_with_numbers(
            literals in vec((orders(), numbers()), 1..12),
            values in vec(numbers(), 1..12),
        ) {
            let all: Vec<Bounds> =
                literals.iter().map(|(order, number)| Bounds::number_order(*order, number)).collect();
            let scale = Scale::new(all.iter());
            for value in &values {
                let cell = scale.number(&value.as_numeral());
                for ((order, number), bounds) in literals.iter().zip(&all) {
                    let text = value.to_string();
                    let holds = Op::NumberOrder(*order, number.clone()).holds(Value::Text(text.as_bytes()), false);
                    prop_assert_eq!(Truth::from(scale.run(bounds).contains(&cell)), holds, "{} {:?} {}", value, order, number);
                }
            }
        }

        #[test]
        fn runs_are_comparisons_with_addresses(
            literals in vec((orders(), addresses(), addresses(), 0u8..33, any::<bool>()), 1..12),
            values in vec(addresses(), 1..12),
        ) {
            let mut all: Vec<(Op, Vec<Bounds>)> = Vec::new();
            for (order, from, to, bits, exclusive) in literals {
                all.push((Op::IpOrder(order, from), Bounds::address_order(order, from)));
                let network = IpNet::new(from.to_canonical(), bits).expect("few enough bits").trunc();
                all.push((Op::IpIn(network), Bounds::network(&network)));
                let range = Entry::IpRange { from, to, exclusive };
                all.push((Op::In(vec![range]), Bounds::addresses(from, to, exclusive)));
            }
            let scale = Scale::new(all.iter().flat_map(|(_, bounds)| bounds));
            for value in values {
                let cell = scale.address(address_number(value));
                for (op, bounds) in &all {
                    let lies_within = bounds.iter().any(|bounds| scale.run(bounds).contains(&cell));
                    prop_assert_eq!(Truth::from(lies_within), op.holds(Value::Ip(value), false), "{} {:?}", value, op);
                }
            }
        }
    }
}
