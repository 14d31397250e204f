//! Requests to look at.

use std::ops::ControlFlow;

use ipnet::IpNet;
use pointsman_http::{HeadLimits, Refusal, RequestHead};
use pointsman_rules::{Field, NameKind, Subject, Value};
use pointsman_view::{Connection, PathOptions, RequestView, TrustedProxies, normal_form};

/// A parsed head.
pub(crate) fn head(request: &[u8]) -> Result<RequestHead, Refusal> {
    let mut head = RequestHead::default();
    match head.parse(request, &HeadLimits::default())? {
        true => Ok(head),
        false => panic!("unfinished: {}", String::from_utf8_lossy(request)),
    }
}

/// A plain connection from `src`.
pub(crate) fn connection_from(src: &str) -> Connection {
    Connection {
        src: Some(src.parse().expect("an address")),
        dst: "192.0.2.80:8080".parse().ok(),
        proxied: None,
        tls: None,
    }
}

/// The networks whose word is taken.
pub(crate) fn trusted_proxies() -> Vec<IpNet> {
    ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().expect("a network")).to_vec()
}

/// The same as those who are believed: by their networks alone.
pub(crate) fn believed(networks: &[IpNet]) -> TrustedProxies<'_> {
    TrustedProxies { networks, unix: false }
}

/// The values of a field as text.
pub(crate) fn values(connection: &Connection, request: &[u8], field: &Field) -> Result<Vec<String>, Refusal> {
    let head = head(request)?;
    let mut scratch = Vec::new();
    let path = normal_form(head.path_and_query(request), PathOptions::default(), &mut scratch)
        .unwrap_or_else(|refusal| panic!("{}: {}", refusal.sentence(), String::from_utf8_lossy(request)));
    let trusted_proxies = trusted_proxies();
    let view = RequestView::new(&head, request, connection, path, believed(&trusted_proxies));
    let mut seen = Vec::new();
    view.each(field, &mut |value| {
        seen.push(match value {
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Value::Integer(number) => number.to_string(),
            Value::Ip(address) => address.to_string(),
            Value::Boolean(truth) => truth.to_string(),
            Value::Nothing | Value::Unknown(_) => format!("{value:?}"),
        });
        ControlFlow::Continue(())
    });
    let mut first = 0;
    view.each(field, &mut |_| {
        first += 1;
        ControlFlow::Break(())
    });
    assert_eq!(first, seen.len().min(1), "{field:?} goes on after the break");
    if !seen.is_empty() {
        assert!(is_name_told(&view, field), "{field:?} has values and is not named");
    }
    Ok(seen)
}

/// Whether a field that is known by its name is among those that the request says it has.
fn is_name_told(view: &RequestView<'_>, field: &Field) -> bool {
    let (kind, name) = match field {
        Field::Header(name) => (NameKind::Header, name.as_bytes()),
        Field::QueryParam(key) => (NameKind::QueryParam, &**key),
        Field::Cookie(name) => (NameKind::Cookie, name.as_bytes()),
        _ => return true,
    };
    let mut is_told = false;
    let can_tell = view.each_name(kind, &mut |told| {
        is_told |= if kind == NameKind::Header { told.eq_ignore_ascii_case(name) } else { told == name };
    });
    can_tell && is_told
}
