//! The lines that tell a server whom the switch forwards for.

use pointsman_view::{
    AddressText, Forwarding, ForwardingModes, Peer, add_forwarding_lines, take_away_forwarding,
};

use crate::head::{believed, head, trusted_proxies};

const BOTH_APPEND: ForwardingModes =
    ForwardingModes { x_forwarded: Forwarding::Append, forwarded: Forwarding::Append };
const BOTH_REPLACE: ForwardingModes =
    ForwardingModes { x_forwarded: Forwarding::Replace, forwarded: Forwarding::Replace };
const BOTH_OFF: ForwardingModes =
    ForwardingModes { x_forwarded: Forwarding::Off, forwarded: Forwarding::Off };

/// Forwards a request with `lines` from `src`; the header lines after Host are expected.
fn check(src: &str, lines: &str, modes: ForwardingModes, expected: &str) {
    let request = format!("GET / HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n");
    let address = src.parse().expect("an address");
    let peer = Peer {
        address: Some(AddressText::new(address)),
        is_trusted: believed(&trusted_proxies()).contain(address),
        scheme: "https",
    };
    let mut head = head(request.as_bytes()).expect("a good request");
    let (mut added, mut out) = (Vec::new(), Vec::new());
    if !peer.is_trusted {
        take_away_forwarding(&mut head);
    }
    add_forwarding_lines(&mut head, request.as_bytes(), &peer, modes, &mut added);
    head.forward(request.as_bytes(), None, &added, &mut out);
    let expected = format!("GET / HTTP/1.1\r\nHost: a.example\r\n{expected}\r\n");
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

const FORGED: &str = "X-Forwarded-For: 1.1.1.1\r\nx-forwarded-proto: ftp\r\nX-Forwarded-Host: evil\r\n\
    Forwarded: for=1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\nAccept: */*\r\n";

#[test]
fn an_untrusted_peer_stands_alone() {
    let fresh = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\n\
        Forwarded: for=192.0.2.1;host=a.example;proto=https\r\n";
    check("192.0.2.1", "", BOTH_APPEND, fresh);
    check("192.0.2.1", FORGED, BOTH_APPEND, &format!("Accept: */*\r\n{fresh}"));
    check("192.0.2.1", FORGED, BOTH_REPLACE, &format!("Accept: */*\r\n{fresh}"));
}

/// Joined as they came, the two open quotes would close each other around the comma between them.
#[test]
fn an_open_quote_does_not_reach_into_another_line() {
    for (lines, chain) in [
        ("Forwarded: for=1.1.1.1;a=\"\r\nForwarded: \"\r\n", "for=unknown, for=unknown"),
        (
            "Forwarded: for=1.1.1.1, for=\"_x, for=2.2.2.2;by=\"a,b\"\r\n",
            "for=unknown, for=2.2.2.2;by=\"a,b\"",
        ),
        ("Forwarded: for=\"[::1]\"\r\nForwarded: for=\"\r\n", "for=\"[::1]\", for=unknown"),
    ] {
        let modes = ForwardingModes { x_forwarded: Forwarding::Off, ..BOTH_APPEND };
        let expected = format!("Forwarded: {chain}, for=10.0.0.9;host=a.example;proto=https\r\n");
        check("10.0.0.9", lines, modes, &expected);
    }
}

#[test]
fn a_trusted_proxy_is_added_to_the_chain() {
    check(
        "10.0.0.9",
        FORGED,
        BOTH_APPEND,
        "x-forwarded-proto: ftp\r\nX-Forwarded-Host: evil\r\nAccept: */*\r\n\
            X-Forwarded-For: 1.1.1.1, 2.2.2.2, 10.0.0.9\r\n\
            Forwarded: for=1.1.1.1, for=10.0.0.9;host=a.example;proto=https\r\n",
    );
    check(
        "10.0.0.9",
        FORGED,
        BOTH_REPLACE,
        "Accept: */*\r\nX-Forwarded-For: 10.0.0.9\r\nX-Forwarded-Proto: https\r\n\
            X-Forwarded-Host: a.example\r\nForwarded: for=10.0.0.9;host=a.example;proto=https\r\n",
    );
    check(
        "10.0.0.9",
        "X-Forwarded-For: \r\n",
        ForwardingModes { x_forwarded: Forwarding::Append, forwarded: Forwarding::Off },
        "X-Forwarded-For: 10.0.0.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\n",
    );
}

#[test]
fn a_chain_goes_on_in_the_form_it_came_in() {
    check(
        "10.0.0.9",
        "X-Forwarded-For: 1.1.1.1\r\n",
        BOTH_APPEND,
        "X-Forwarded-For: 1.1.1.1, 10.0.0.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\n",
    );
    check(
        "10.0.0.9",
        "Forwarded: for=1.1.1.1\r\n",
        BOTH_APPEND,
        "X-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\n\
            Forwarded: for=1.1.1.1, for=10.0.0.9;host=a.example;proto=https\r\n",
    );
    check(
        "10.0.0.9",
        "",
        BOTH_APPEND,
        "X-Forwarded-For: 10.0.0.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\n\
            Forwarded: for=10.0.0.9;host=a.example;proto=https\r\n",
    );
}

#[test]
fn switched_off_only_a_trusted_proxy_is_passed_on() {
    check("192.0.2.1", FORGED, BOTH_OFF, "Accept: */*\r\n");
    check("10.0.0.9", FORGED, BOTH_OFF, FORGED);
    check("10.0.0.9", "", BOTH_OFF, "");
}

#[test]
fn colons_stand_in_quotes() {
    let request = b"GET / HTTP/1.1\r\nHost: a.example:8443\r\n\r\n";
    let peer = Peer {
        address: Some(AddressText::new("2001:db8::1".parse().expect("an address"))),
        is_trusted: false,
        scheme: "http",
    };
    let mut added = Vec::new();
    let mut head = head(request).expect("a good request");
    add_forwarding_lines(&mut head, request, &peer, BOTH_APPEND, &mut added);
    assert_eq!(
        String::from_utf8_lossy(&added),
        "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a.example:8443\r\n\
            Forwarded: for=\"[2001:db8::1]\";host=\"a.example:8443\";proto=http\r\n",
    );
}

#[test]
fn without_a_host_none_is_named() {
    let request = b"GET / HTTP/1.0\r\nX-Forwarded-Host: evil\r\n\r\n";
    let peer = Peer {
        address: Some(AddressText::new("192.0.2.1".parse().expect("an address"))),
        is_trusted: false,
        scheme: "http",
    };
    let (mut added, mut out) = (Vec::new(), Vec::new());
    let mut head = head(request).expect("a good request");
    take_away_forwarding(&mut head);
    add_forwarding_lines(&mut head, request, &peer, BOTH_APPEND, &mut added);
    head.forward(request, None, &added, &mut out);
    assert_eq!(
        String::from_utf8_lossy(&out),
        "GET / HTTP/1.1\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n\
            Forwarded: for=192.0.2.1;proto=http\r\n\r\n",
    );
}

/// The lines behind Host of a request of a Unix socket's peer.
fn check_unix(is_trusted: bool, lines: &str, expected: &str) {
    let request = format!("GET / HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n");
    let peer = Peer { address: None, is_trusted, scheme: "http" };
    let mut head = head(request.as_bytes()).expect("a good request");
    if !is_trusted {
        take_away_forwarding(&mut head);
    }
    let (mut added, mut out) = (Vec::new(), Vec::new());
    add_forwarding_lines(&mut head, request.as_bytes(), &peer, BOTH_APPEND, &mut added);
    head.forward(request.as_bytes(), None, &added, &mut out);
    let out = String::from_utf8_lossy(&out);
    let rest = "X-Forwarded-Proto: http\r\nX-Forwarded-Host: a.example\r\n";
    assert_eq!(
        out.strip_prefix("GET / HTTP/1.1\r\nHost: a.example\r\n")
            .map(|lines| lines.replace(rest, ""))
            .as_deref(),
        Some(&*format!("{expected}\r\n")),
        "{lines}"
    );
}

#[test]
fn a_peer_without_an_address_adds_none() {
    let unknown = "Forwarded: for=unknown;host=a.example;proto=http\r\n";
    check_unix(false, "", unknown);
    check_unix(true, "", unknown);
    check_unix(false, "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.2\r\n", unknown);
    check_unix(true, "X-Forwarded-For: 192.0.2.1\r\n", "X-Forwarded-For: 192.0.2.1\r\n");
    check_unix(true, "Forwarded: for=192.0.2.2\r\n", "Forwarded: for=192.0.2.2\r\n");
}
