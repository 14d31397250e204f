//! Fields that come from header lines.

use pointsman_rules::Field;

use crate::head::{connection_from, values};
use crate::vectors::{self, cases};

fn field(name: &str) -> Field {
    let quoted = |prefix: &str| name.strip_prefix(prefix)?.strip_suffix("\"]").map(Box::from);
    match name {
        "content_type" => Field::ContentType,
        "upgrade" => Field::Upgrade,
        "content_length" => Field::ContentLength,
        "clientip" => Field::ClientIp,
        _ => quoted("header[\"")
            .map(Field::Header)
            .or_else(|| quoted("cookie[\"").map(Field::Cookie))
            .unwrap_or_else(|| panic!("unknown field {name}")),
    }
}

#[test]
fn vectors() {
    let connection = connection_from("10.0.0.9:40000");
    for case in cases(include_str!("../../../../testdata/normal-forms/headers.txt")) {
        let request = [b"POST / HTTP/1.1\r\nHost: a.example\r\n", &case.raw[..], b"\r\n\r\n"].concat();
        if let Some(status) = case.expected.strip_prefix("! ") {
            let refusal = values(&connection, &request, &Field::Method).expect_err(case.line);
            assert_eq!(refusal.status().to_string(), status, "{}", case.line);
            continue;
        }
        let (name, expected) = case.expected.split_once(" =").expect("an equals sign");
        let expected = vectors::values(expected.strip_prefix(' ').unwrap_or(expected));
        let found = values(&connection, &request, &field(name)).expect(case.line);
        assert_eq!(found.iter().map(String::as_bytes).collect::<Vec<_>>(), expected, "{}", case.line);
    }
}

#[test]
fn nobody_but_a_trusted_proxy_is_believed() {
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n";
    for (src, expected) in [
        ("10.0.0.9:1", "192.0.2.7"),
        ("[fd00::1]:1", "192.0.2.7"),
        ("[::ffff:10.0.0.9]:1", "192.0.2.7"),
        ("11.0.0.9:1", "11.0.0.9"),
        ("[2001:db8::1]:1", "2001:db8::1"),
        ("[::ffff:11.0.0.9]:1", "11.0.0.9"),
    ] {
        let found = values(&connection_from(src), request, &Field::ClientIp);
        assert_eq!(found, Ok(vec![expected.to_owned()]), "{src}");
    }
}
