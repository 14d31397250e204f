//! A request on its way: rules see what the server will see, and the next hop learns who the client is.

use std::net::IpAddr;
use std::ops::ControlFlow;

use ipnet::IpNet;
use pointsman_http::{HeadLimits, HeaderKind, RequestHead};
use pointsman_rules::{Field, Subject, Value};
use pointsman_view::{
    AddressText, Connection, Forwarding, ForwardingModes, NormalPath, PathOptions, Peer, RequestView,
    TrustedProxies, add_forwarding_lines, normal_form, take_away_forwarding,
};

pub(crate) const TOKENS: &[&str] = &[
    "\r\n",
    "X-Forwarded-For: ",
    "X-Forwarded-For: 1.2.3.4\r\n",
    "X-Forwarded-Proto: https\r\n",
    "X-Forwarded-Host: evil\r\n",
    "Forwarded: ",
    "Forwarded: for=1.2.3.4\r\n",
    "for=",
    "for=\"[::1]\"",
    "by=",
    ";",
    ",",
    ", ",
    "\"",
    "\\",
    "10.0.0.1",
    "10.0.0.1, ",
    "1.2.3.4:5",
    "[2001:db8::1]:80",
    "fd00::1",
    "unknown",
    "_x",
    "Host: a.example\r\n",
    "Cookie: a=1; pm_route=x\r\n",
    "Content-Type: Text/HTML; x\r\n",
    "Connection: x-a\r\n",
    "X-A: 1\r\n",
    "?a=1&a=%32",
    "/a/../b",
    "HTTP/1.0",
    "http://a.example/",
];

const MODES: [Forwarding; 3] = [Forwarding::Append, Forwarding::Replace, Forwarding::Off];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    let options = PathOptions::default();
    let Some(head) = parse(input) else { return };
    let mut scratch = Vec::new();
    let Ok(path) = normal_form(head.path_and_query(input), options, &mut scratch) else { return };
    for peer in ["10.0.0.9", "192.0.2.1", "2001:db8::7"] {
        let arrived = Arrived { head: &head, input, path, peer: peer.parse().expect("an address") };
        arrived.every_field_ends();
        for x_forwarded in MODES {
            for forwarded in MODES {
                arrived.hop(ForwardingModes { x_forwarded, forwarded });
            }
        }
    }
}

fn parse(input: &[u8]) -> Option<RequestHead> {
    let mut head = RequestHead::default();
    let limits = HeadLimits { head_bytes_max: 64 * 1024, headers_max: 200, ..HeadLimits::default() };
    matches!(head.parse(input, &limits), Ok(true)).then_some(head)
}

fn trusted_proxies() -> Vec<IpNet> {
    ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().expect("a network")).to_vec()
}

fn believed(networks: &[IpNet]) -> TrustedProxies<'_> {
    TrustedProxies { networks, unix: false }
}

fn connection(peer: IpAddr) -> Connection {
    Connection {
        src: Some((peer, 1234).into()),
        dst: Some(([192, 0, 2, 80], 80).into()),
        proxied: None,
        tls: None,
    }
}

/// What a rule could ask for.
fn fields() -> Vec<Field> {
    vec![
        Field::Method,
        Field::Host,
        Field::Path,
        Field::Query,
        Field::QueryParam(b"a"[..].into()),
        Field::Header("x-a".into()),
        Field::Cookie("a".into()),
        Field::ContentType,
        Field::Upgrade,
        Field::ContentLength,
    ]
}

fn values(view: &RequestView<'_>, field: &Field) -> Vec<String> {
    let mut values = Vec::new();
    view.each(field, &mut |value| {
        values.push(match value {
            Value::Text(text) => text.escape_ascii().to_string(),
            other => format!("{other:?}"),
        });
        ControlFlow::Continue(())
    });
    values
}

struct Arrived<'a> {
    head: &'a RequestHead,
    input: &'a [u8],
    path: NormalPath<'a>,
    peer: IpAddr,
}

impl Arrived<'_> {
    /// Who has seen enough is shown no more.
    fn every_field_ends(&self) {
        let (connection, trusted) = (connection(self.peer), trusted_proxies());
        let view = RequestView::new(self.head, self.input, &connection, self.path, believed(&trusted));
        for field in fields() {
            let mut seen = 0;
            view.each(&field, &mut |_| {
                seen += 1;
                ControlFlow::Break(())
            });
            assert_eq!(seen, values(&view, &field).len().min(1), "{field:?}");
        }
    }

    /// Forwards as the relay does, and reads what the server gets, with the switch as a trusted peer.
    fn hop(&self, modes: ForwardingModes) {
        let trusted = trusted_proxies();
        let peer = Peer {
            address: Some(AddressText::new(self.peer)),
            is_trusted: believed(&trusted).contain(self.peer),
            scheme: "http",
        };
        let mut head = parse(self.input).expect("as before");
        let (mut added, mut out) = (Vec::new(), Vec::new());
        if !peer.is_trusted {
            take_away_forwarding(&mut head);
        }
        add_forwarding_lines(&mut head, self.input, &peer, modes, &mut added);
        if !head.lines().iter().any(|line| line.kind == HeaderKind::Host) {
            let authority = head.authority(self.input);
            let authority = if authority.is_empty() { b"a" } else { authority };
            added.extend([b"Host: ", authority, b"\r\n"].concat());
        }
        head.forward(self.input, Some(self.path.target()), &added, &mut out);
        let next = parse(&out).expect("the server accepts what it is sent");
        assert_eq!(next.framing(), head.framing());
        let mut scratch = Vec::new();
        let path = normal_form(next.path_and_query(&out), PathOptions::default(), &mut scratch);
        let path = path.expect("the path is in normal form");
        assert!(!path.is_rewritten());

        let from_client = connection(self.peer);
        let here = RequestView::new(self.head, self.input, &from_client, self.path, believed(&trusted));
        let from_switch = connection([10, 255, 0, 1].into());
        let there = RequestView::new(&next, &out, &from_switch, path, believed(&trusted));
        // A change of protocol ends at a hop, which may ask for one of its own.
        for field in fields().into_iter().filter(|field| *field != Field::Upgrade) {
            let is_made_up = field == Field::Host && values(&here, &field).is_empty();
            assert!(
                is_made_up || values(&there, &field) == values(&here, &field),
                "{field:?} is another there"
            );
        }
        self.nothing_is_forged(&next, &out, &peer, modes);
        // Where a family is off, the switch is no link of its chain.
        if modes.x_forwarded == Forwarding::Append && modes.forwarded == Forwarding::Append {
            assert_eq!(there.client_ip(), here.client_ip(), "the next hop takes someone else for the client");
        }
    }

    /// Nothing that an untrusted peer says about hops before it gets through.
    fn nothing_is_forged(&self, next: &RequestHead, out: &[u8], peer: &Peer, modes: ForwardingModes) {
        let of = |kind: HeaderKind| {
            let lines = next.lines().iter().filter(move |line| line.kind == kind);
            lines.map(|line| line.value(out)).collect::<Vec<_>>()
        };
        let chain = of(HeaderKind::XForwardedFor);
        assert!(chain.len() <= 1 || modes.x_forwarded == Forwarding::Off, "many servers read only one line");
        if peer.is_trusted {
            return;
        }
        match modes.x_forwarded {
            Forwarding::Off => assert!(chain.is_empty()),
            _ => assert_eq!(chain, [AddressText::new(self.peer).as_bytes()]),
        }
        let elements = of(HeaderKind::Forwarded);
        assert_eq!(elements.len(), usize::from(modes.forwarded != Forwarding::Off));
        assert_eq!(of(HeaderKind::XForwardedProto).len(), usize::from(modes.x_forwarded != Forwarding::Off));
    }
}
