//! Findings about addresses of both families, against a look at every address at and beside each border.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::{program, says_all_that_is_so, sources_of, subjects};
use crate::Setting;

pub(in crate::logic) const TESTS: &[&str] = &[
    "srcip in [0.0.0.0/0]",
    "srcip in [::/0]",
    "srcip in [::/80]",
    "srcip in [::/95]",
    "srcip in [::fffe:0:0/95]",
    "srcip in [::ffff:0:0/96]",
    "srcip in [::ffff:10.0.0.0/104]",
    "srcip in [::1:0:0:0/80]",
    "srcip in [::/1]",
    "srcip in [8000::/1]",
    "srcip in [128.0.0.0/1, 2001:db8::/32]",
    "srcip in [10.0.0.0/8, ::/128, 255.255.255.255/32]",
    "srcip in [10.0.0.0..10.0.0.9, ::1..::9]",
    "srcip in [(10.0.0.1..10.0.0.9), (::..::fffe:ffff:ffff)]",
    "srcip == 10.0.0.1",
    "srcip == ::ffff:10.0.0.1",
    "srcip == ::7",
    "srcip != ::7",
    "srcip < 10.0.0.1",
    "srcip >= ::8",
    "srcip <= ::ffff:127.255.255.255",
    "srcip exists",
    r#"method == "GET""#,
];

/// Where the tests above begin and end.
const BORDERS: [&str; 31] = [
    "0.0.0.0",
    "10.0.0.0",
    "10.0.0.1",
    "10.0.0.9",
    "10.255.255.255",
    "127.255.255.255",
    "128.0.0.0",
    "255.255.255.255",
    "::",
    "::1",
    "::7",
    "::8",
    "::9",
    "::fffd:ffff:ffff",
    "::fffe:0:0",
    "::fffe:ffff:ffff",
    "::ffff:0:0",
    "::ffff:ffff:ffff",
    "::1:0:0:0",
    "::1:ffff:ffff:ffff",
    "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db8::",
    "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db9::",
    "7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "8000::",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "::2:0:0:0",
    "::ffff:10.0.0.0",
    "::ffff:10.0.0.1",
    "::ffff:127.255.255.255",
];

/// All of them and those beside them, as rules see them.
pub(super) fn addresses() -> impl Iterator<Item = IpAddr> {
    BORDERS.iter().flat_map(|border| match border.parse().expect("an address") {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            let near = [bits.saturating_sub(1), bits, bits.saturating_add(1)];
            near.map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)))
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            let near = [bits.saturating_sub(1), bits, bits.saturating_add(1)];
            near.map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)).to_canonical())
        }
    })
}

proptest! {
    #[test]
    fn findings_about_networks_are_all_that_is_so(source in sources_of(TESTS)) {
        let program = program(&source);
        says_all_that_is_so(&source, &program, &Setting::default(), &subjects(&program))?;
    }
}
