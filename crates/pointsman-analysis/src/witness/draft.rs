//! A request that may show what is sought: it is parsed again to see whether it does.

use std::net::IpAddr;

use pointsman_rules::{Field, OwnedValue};

use super::body::Body;
use super::connection;
use super::handshake::{Agreed, HttpVersion};
use super::lines::Lines;
use super::sender::Sender;
use super::sought::{Sought, text};
use super::target::Target;
use super::{Setting, Witness};

const USUAL_HOST: &[u8] = b"example.com";

/// Nothing where it is known already that no request shows it.
pub(super) fn request(sought: &Sought<'_>, setting: &Setting) -> Option<Witness> {
    let sender = Sender::new(sought, setting)?;
    let agreed = Agreed::first(sought, setting)?;
    let scheme = if agreed.tls.is_some() { "https" } else { "http" };
    if agreed.http == HttpVersion::Http2 && asks_for_key(sought) {
        return None;
    }
    let target = Target::new(sought, scheme)?;
    let host = host(sought, &target, usual_host(sought, agreed, setting))?;
    // Only in HTTP/1.0 the Host line may be missing.
    let agreed = if host.is_none() { agreed.in_http10(sought, setting) } else { agreed };
    let version: &[u8] = if agreed.http == HttpVersion::Http10 { b"1.0" } else { b"1.1" };
    let body = Body::new(sought, setting)?;
    let mut lines = Lines::default();
    if let Some(host) = &host {
        lines.add("host", host);
    }
    lines.add_sought(sought)?;
    lines.add_cookies(sought)?;
    lines.add_upgrade(sought)?;
    body.add_lines(&mut lines);
    if let Some(client) = sender.forwarded_for {
        add_hop(client, sought, &mut lines);
    }
    let method = method(sought, &target, &body)?;
    let first_line: [&[u8]; 5] = [&method, b" ", &target.bytes, b" HTTP/", version];
    let mut bytes = first_line.concat();
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&lines.bytes);
    bytes.extend_from_slice(b"\r\n");
    body.write(&mut bytes);
    let authority = host.or(target.authority).unwrap_or_default();
    Some(Witness {
        bytes,
        is_of_http2: agreed.http == HttpVersion::Http2,
        rest: body.rest,
        connection: connection::connection(sought, setting, &sender, &authority, agreed)?,
        proxy: sender.proxy,
    })
}

/// Whether a handshake has a certain key. In HTTP/2 the switch makes one up, which nobody knows (RFC 8441 section 5.1).
fn asks_for_key(sought: &Sought<'_>) -> bool {
    sought.of(&Field::Upgrade).is_some_and(|protocols| !protocols.is_empty())
        && sought.header("sec-websocket-key").is_some()
}

/// Names the client of a proxy, by Forwarded (RFC 7239 section 4) where there is to be no X-Forwarded-For.
fn add_hop(client: IpAddr, sought: &Sought<'_>, lines: &mut Lines) {
    match (sought.header("x-forwarded-for"), client) {
        (None, _) => lines.add("x-forwarded-for", client.to_string().as_bytes()),
        (Some(_), IpAddr::V4(_)) => lines.add("forwarded", format!("for={client}").as_bytes()),
        (Some(_), IpAddr::V6(_)) => lines.add("forwarded", format!("for=\"[{client}]\"").as_bytes()),
    }
}

/// The host of a request of which none is sought: over HTTP/2 one that may be asked for by the name of the handshake.
fn usual_host<'s>(sought: &Sought<'s>, agreed: Agreed, setting: &Setting) -> &'s [u8] {
    let is_of_name = agreed.http == HttpVersion::Http2 && agreed.tls.is_some();
    let Some(names) = sought.of(&Field::TlsSni).filter(|_| is_of_name) else { return USUAL_HOST };
    let name = names.first().and_then(text);
    let usual = std::str::from_utf8(USUAL_HOST).unwrap_or_default();
    match setting.hosts.serve(name.and_then(|name| std::str::from_utf8(name).ok()), usual) {
        true => USUAL_HOST,
        // No certificate is for an address.
        false => name.unwrap_or(b"127.0.0.1"),
    }
}

/// The value of the Host line; the inner nothing is no line.
fn host(sought: &Sought<'_>, target: &Target, usual: &[u8]) -> Option<Option<Vec<u8>>> {
    if let Some(lines) = sought.header("host") {
        return match lines {
            [] => Some(None),
            [host] => Some(Some(text(host)?.to_vec())),
            _ => None,
        };
    }
    // An absolute target says the same as the line, port and all.
    if let Some(authority) = &target.authority {
        return Some(Some(authority.clone()));
    }
    match sought.of(&Field::Host) {
        None => Some(Some(usual.to_vec())),
        Some([]) => Some(None),
        Some([OwnedValue::Text(host)]) => Some(Some(host.to_vec())),
        Some(_) => None,
    }
}

fn method(sought: &Sought<'_>, target: &Target, body: &Body) -> Option<Vec<u8>> {
    Some(match sought.of(&Field::Method) {
        Some(method) => text(method.first()?)?.to_vec(),
        None if body.is_some() && target.bytes != b"*" => b"POST".to_vec(),
        None => usual_method(&target.bytes).as_bytes().to_vec(),
    })
}

/// The method of a request without a body of which nothing is said but its target.
#[must_use]
pub fn usual_method(target: &[u8]) -> &'static str {
    // No other asks for the server as a whole (RFC 9110 section 7.1).
    if target == b"*" { "OPTIONS" } else { "GET" }
}
