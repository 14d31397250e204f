//! Addresses that fulfil claims about named lists.
//!
//! A list may have a million ranges, so its borders are no candidates. Between two borders of everything else all
//! addresses are alike but for the lists: there one address after another is looked at that the lists leave, each claim
//! leading to the next that it takes. What is left out on the way fails a claim, so that nothing found is a proof.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pointsman_rules::{Members, NetworkList, OwnedValue, Truth, Value};

use super::addresses::{borders, is_usual};
use super::claim::Claim;
use super::single::Single;
use crate::Effort;

/// The IPv4-mapped addresses, which count as IPv4.
const MAPPED: (u128, u128) = (0xffff_0000_0000, 0xffff_ffff_ffff);

/// Whether a claim is about a named list.
pub(super) fn names_list(claim: &Claim<'_>) -> bool {
    claim.test.lists().next().is_some()
}

/// An address that fulfils all claims, looked for everywhere.
pub(super) fn solve(claims: &[Claim<'_>], effort: &mut Effort) -> Single {
    let (listed, others): (Vec<Claim<'_>>, Vec<Claim<'_>>) =
        claims.iter().partition(|claim| names_list(claim));
    let mut failed: Vec<usize> = Vec::new();
    let mut odd = None;
    for (first, last) in stretches(claims) {
        if !effort.take(1 + others.len() as u64) {
            return Single::Unknown;
        }
        if let Some(claim) = others.iter().find(|claim| !claim.takes(Value::Ip(first))) {
            failed.push(claim.index);
            continue;
        }
        match within(first, last, &listed, effort) {
            Found::Address(address) if is_usual(address) => return Single::Value(OwnedValue::Ip(address)),
            Found::Address(address) => odd = odd.or(Some(address)),
            Found::Nothing => failed.extend(listed.iter().map(|claim| claim.index)),
            Found::OutOfEffort => return Single::Unknown,
        }
    }
    if let Some(address) = odd {
        return Single::Value(OwnedValue::Ip(address));
    }
    failed.sort_unstable();
    failed.dedup();
    Single::Nothing(failed)
}

/// All addresses, from border to border of what the claims say beside lists.
fn stretches(claims: &[Claim<'_>]) -> Vec<(IpAddr, IpAddr)> {
    let (mut fourth, mut sixth) = (vec![0], vec![0, MAPPED.0, MAPPED.1 + 1]);
    for border in borders(claims) {
        match border.to_canonical() {
            IpAddr::V4(address) => {
                fourth.push(address.to_bits());
                fourth.extend(address.to_bits().checked_add(1));
            }
            IpAddr::V6(address) => {
                sixth.push(address.to_bits());
                sixth.extend(address.to_bits().checked_add(1));
            }
        }
    }
    fourth.sort_unstable();
    fourth.dedup();
    sixth.sort_unstable();
    sixth.dedup();
    let ends = |next: Option<&u32>| next.map_or(u32::MAX, |next| next - 1);
    let of_four = fourth.iter().zip(1..).map(|(first, next)| {
        let last = ends(fourth.get(next));
        (Ipv4Addr::from_bits(*first).into(), Ipv4Addr::from_bits(last).into())
    });
    let of_six = sixth.iter().zip(1..).filter(|(first, _)| **first != MAPPED.0).map(|(first, next)| {
        let last = sixth.get(next).map_or(u128::MAX, |next| next - 1);
        (Ipv6Addr::from_bits(*first).into(), Ipv6Addr::from_bits(last).into())
    });
    of_four.chain(of_six).collect()
}

enum Found {
    Address(IpAddr),
    Nothing,
    OutOfEffort,
}

/// The first address of a stretch that all claims take, or a usual one soon behind it.
fn within(first: IpAddr, last: IpAddr, claims: &[Claim<'_>], effort: &mut Effort) -> Found {
    /// Unusual ones that are passed over for a usual one.
    const PASSED_MAX: usize = 3;
    let mut at = first;
    let mut odd = None;
    let mut passed = 0;
    loop {
        if !effort.take(1 + claims.len() as u64) {
            return odd.map_or(Found::OutOfEffort, Found::Address);
        }
        let next = match claims.iter().find(|claim| !claim.takes(Value::Ip(at))) {
            Some(claim) => next(claim, at),
            None if is_usual(at) || passed == PASSED_MAX => {
                return Found::Address(odd.filter(|_| !is_usual(at)).unwrap_or(at));
            }
            None => {
                passed += 1;
                odd = odd.or(Some(at));
                behind(at)
            }
        };
        match next.filter(|next| *next <= last) {
            Some(next) => at = next,
            None => return odd.map_or(Found::Nothing, Found::Address),
        }
    }
}

/// The first address behind one that fails a claim that its lists may take.
fn next(claim: &Claim<'_>, at: IpAddr) -> Option<IpAddr> {
    let lists = claim.test.lists().filter_map(|list| match &list.members {
        Members::Networks(networks) => Some(networks),
        Members::Texts(_) => None,
    });
    let ahead = lists.filter_map(|networks: &NetworkList| networks.range_at_or_behind(at));
    match (claim.truths.has(Truth::True), claim.truths.has(Truth::False)) {
        // It is in none of them.
        (true, _) => ahead.map(|(start, _)| start).filter(|start| *start > at).min(),
        // It is in some, or in what stands beside them.
        (false, true) => ahead.filter(|(start, _)| *start <= at).map(|(_, end)| end).max().and_then(behind),
        (false, false) => None,
    }
}

fn behind(address: IpAddr) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits().checked_add(1)?).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits().checked_add(1)?).into(),
    })
}
