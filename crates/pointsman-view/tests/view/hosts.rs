//! The normal form of hosts, against the vectors and for any authority.

use pointsman_view::{HOST_BYTES_MAX, default_authority, normal_host};
use proptest::prelude::*;

use crate::vectors::cases;

#[test]
fn vectors() {
    for case in cases(include_str!("../../../../testdata/normal-forms/hosts.txt")) {
        let mut scratch = [0; HOST_BYTES_MAX];
        let found = match normal_host(&case.raw, &mut scratch) {
            Some(host) => String::from_utf8_lossy(host).into_owned(),
            None => "! none".to_owned(),
        };
        assert_eq!(found, case.expected, "{}", case.line);
    }
}

#[test]
fn what_does_not_fit_is_nobody() {
    let long = "A".repeat(HOST_BYTES_MAX + 1);
    assert_eq!(normal_host(long.as_bytes(), &mut [0; HOST_BYTES_MAX]), None);
    let longest = "A".repeat(HOST_BYTES_MAX);
    assert!(normal_host(longest.as_bytes(), &mut [0; HOST_BYTES_MAX]).is_some());
}

#[test]
fn where_no_host_is_named_it_is_the_address() {
    for (arrived_at, http, https) in [
        ("192.0.2.1:80", "192.0.2.1", "192.0.2.1:80"),
        ("192.0.2.1:443", "192.0.2.1:443", "192.0.2.1"),
        ("[2001:db8::1]:80", "[2001:db8::1]", "[2001:db8::1]:80"),
        ("[::ffff:192.0.2.1]:8080", "192.0.2.1:8080", "192.0.2.1:8080"),
    ] {
        let arrived_at = arrived_at.parse().expect("an address");
        assert_eq!(default_authority(Some(arrived_at), "http"), http);
        assert_eq!(default_authority(Some(arrived_at), "https"), https);
    }
}

proptest! {
    #[test]
    fn the_normal_form_is_stable(authority in "[A-Za-z0-9.:\\[\\]-]{0,20}") {
        let (mut first, mut second) = ([0; HOST_BYTES_MAX], [0; HOST_BYTES_MAX]);
        if let Some(host) = normal_host(authority.as_bytes(), &mut first) {
            prop_assert_eq!(normal_host(host, &mut second), Some(host));
            prop_assert!(!host.ends_with(b".") && !host.iter().any(u8::is_ascii_uppercase));
        }
    }
}
