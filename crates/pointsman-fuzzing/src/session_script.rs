//! Scripts of users' sessions, which others may have written, and what is asked by them.

use std::io;

use pointsman_bench::{Body, Load, Plan, Script, Url};
use pointsman_rules::{Colour, draw};

pub(crate) const TOKENS: &[&str] = &[
    "GET /\n",
    "POST /order\n",
    "PUT https://a.example:8443/x?y=z\n",
    "  Accept: text/html\n",
    "  body {\"n\": {random 1 1000}}\n",
    "  body-file order\n",
    "  template order\n",
    "  template none\n",
    "  name the list\n",
    "  think exp:2s\n",
    "  think 20ms # a remark\n",
    "  expect 201\n",
    "think 5s\n",
    "{n}",
    "{letters 2000}",
    "{random 2 1}",
    "\r\n",
    "\t",
    " #",
    "é",
];

/// What the files that a script names hold.
const FILE: &[u8] = b"{\"id\": {n}}";

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let base = Url::parse("http://a.example:81/").expect("a URL");
    let mut read = |name: &str| match name {
        "none" => Err(io::ErrorKind::NotFound.into()),
        _ => Ok(FILE.to_vec()),
    };
    match Script::parse(text, Some(&base), &mut read) {
        Ok(script) => is_asked(script),
        Err(errors) => {
            assert!(!draw(&errors, "s", text, Colour::Never).is_empty(), "an error is shown");
            for error in errors {
                let place = text.get(error.span.start as usize..error.span.end as usize);
                assert!(place.is_some(), "an error is within the text: {error:?}");
            }
        }
    }
}

/// Each step is one request, and no more.
fn is_asked(script: Script) {
    assert!((1..=200).contains(&script.steps.len()));
    for step in &script.steps {
        let target = &step.target;
        assert!(pointsman_http::is_token(target.method.as_bytes()), "{target:?}");
        assert!(
            target.url.target.starts_with('/') && !target.url.target.contains(['\r', '\n']),
            "{target:?}"
        );
        for (name, value) in &target.headers {
            assert!(pointsman_http::is_token(name.as_bytes()), "{target:?}");
            assert!(pointsman_http::is_field_value(value.as_bytes()), "{target:?}");
        }
        assert!(step.expects.is_none_or(|status| (200..600).contains(&status)));
        if let Body::Bytes(bytes) = &target.body {
            assert_eq!(bytes, FILE, "a file is sent as it is");
        }
    }
    let steps = script.steps.len();
    assert_eq!(Plan::of_sessions(script, Load::Closed { clients: 1 }).targets.len(), steps);
}
