//! Query parameters and cookies.

use pointsman_view::{QueryValue, cookie_values, query_values, without_cookie};
use proptest::prelude::*;

use crate::vectors::{cases, unescaped, values};

/// `key: values` as vector files have it.
fn key_and_values(expected: &str) -> (&str, Vec<Vec<u8>>) {
    let (key, rest) = expected.split_once(':').expect("a colon");
    (key, values(rest.strip_prefix(' ').unwrap_or(rest)))
}

#[test]
fn queries() {
    for case in cases(include_str!("../../../../testdata/normal-forms/queries.txt")) {
        let (key, expected) = key_and_values(case.expected);
        let found: Vec<Vec<u8>> =
            query_values(&case.raw, &unescaped(key)).map(|value| value.as_bytes().to_vec()).collect();
        assert_eq!(found, expected, "{}", case.line);
    }
}

#[test]
fn a_query_value_without_codes_is_borrowed() {
    let found: Vec<QueryValue<'_>> = query_values(b"a%20b=plain&a+b=x%20y", b"a b").collect();
    assert_eq!(found, [QueryValue::Borrowed(b"plain"), QueryValue::Decoded(b"x y".to_vec())]);
}

#[test]
fn cookies() {
    for case in cases(include_str!("../../../../testdata/normal-forms/cookies.txt")) {
        if let Some(rest) = case.expected.strip_prefix("without ") {
            let (name, left) = rest.split_once(": ").expect("a colon");
            let mut out = b"Cookie: ".to_vec();
            let found = match without_cookie(&case.raw, name.as_bytes(), &mut out) {
                false => "(untouched)".to_owned(),
                true if out == b"Cookie: " => "(empty)".to_owned(),
                true => String::from_utf8_lossy(&out[b"Cookie: ".len()..]).into_owned(),
            };
            assert_eq!(found, left, "{}", case.line);
        } else {
            let (name, expected) = key_and_values(case.expected);
            let found: Vec<&[u8]> = cookie_values(&case.raw, name.as_bytes()).collect();
            assert_eq!(found, expected, "{}", case.line);
        }
    }
}

proptest! {
    #[test]
    fn no_cookie_is_left_and_no_other_is_lost(line in "([ab]?=?[xy\"; \t]?;? ?){0,8}") {
        let mut out = Vec::new();
        if without_cookie(line.as_bytes(), b"a", &mut out) {
            prop_assert_eq!(cookie_values(&out, b"a").count(), 0);
            let before: Vec<&[u8]> = cookie_values(line.as_bytes(), b"b").collect();
            let after: Vec<&[u8]> = cookie_values(&out, b"b").collect();
            prop_assert_eq!(before, after);
        } else {
            prop_assert!(out.is_empty());
        }
    }

    #[test]
    fn any_query_is_read(query in prop::collection::vec(any::<u8>(), 0..40), key in "[a%+]{0,3}") {
        for value in query_values(&query, key.as_bytes()) {
            prop_assert!(value.as_bytes().len() <= query.len());
        }
    }
}
