//! What is said never to be true at once, against thousands of heads that say so: the codec takes none of them as such.

use std::sync::Arc;

use pointsman_h2::heads::{Asked as AskedInHttp2, request_as_http1};
use pointsman_http::{Framing, HeadLimits, Method, OddNames, RequestHead};
use pointsman_rules::Truth;
use pointsman_view::{
    Connection, PathOptions, RequestView, TlsFacts, TrustedProxies, normal_form, take_away_forwarding,
};

use super::{EXCLUSIONS, Holds, PARTS};

const METHODS: [&str; 4] = ["GET", "POST", "TRACE", "OPTIONS"];
const TARGETS: [&str; 3] = ["/", "http://a/", "HTTPS://a/"];
/// A name in small letters and a value each.
const LINES: [&str; 19] = [
    "host: a",
    "content-length: 5",
    "content-length: 0",
    "transfer-encoding: chunked",
    "transfer-encoding: Chunked",
    "transfer-encoding: gzip, chunked",
    "max-forwards: 1",
    "max-forwards: x",
    "max-forwards:",
    "te: trailers",
    "te: deflate",
    "keep-alive: 5",
    "proxy-connection: close",
    "upgrade: h2c",
    "connection: upgrade",
    "connection: x, connection",
    "cookie: a=1",
    "cookie: b=2",
    "expect: 100-continue",
];
const UPGRADES: &str = "websocket";

/// Up to three of the lines.
fn lists() -> Vec<Vec<&'static str>> {
    let mut lists = vec![Vec::new()];
    for _ in 0..3 {
        let longer = lists.iter().flat_map(|list: &Vec<&'static str>| {
            let from =
                list.last().map_or(0, |last| LINES.iter().position(|line| line == last).unwrap_or_default());
            LINES[from..].iter().map(|line| [list.as_slice(), &[*line]].concat()).collect::<Vec<_>>()
        });
        let longer: Vec<_> = longer.collect();
        lists.extend(longer);
    }
    lists.sort_unstable();
    lists.dedup();
    lists
}

/// A head as the codec gets it, and whether it is of HTTP/2.
fn heads() -> Vec<(Vec<u8>, bool)> {
    let mut heads = Vec::new();
    for lines in lists() {
        for (method, target) in
            METHODS.iter().flat_map(|method| TARGETS.iter().map(move |target| (method, target)))
        {
            for version in ["1.0", "1.1"] {
                let fields: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
                heads.push((format!("{method} {target} HTTP/{version}\r\n{fields}\r\n").into_bytes(), false));
            }
            let pair = |line: &&str| {
                let (name, value) = line.split_once(':').expect("a field");
                (name.as_bytes().to_vec(), value.trim_start().as_bytes().to_vec())
            };
            let mut streams = vec![(false, true, None), (true, true, None), (true, false, None)];
            // Whoever asks for a protocol is seen as a GET.
            if *method == "GET" {
                streams.extend([(false, true, Some(UPGRADES)), (false, true, Some("h2c"))]);
            }
            for (has_body, authority, protocol) in streams {
                let version = protocol.map(|_| &"sec-websocket-version: 13");
                let asked = AskedInHttp2 {
                    method: method.as_bytes().to_vec(),
                    path: Some(target.as_bytes().to_vec()),
                    authority: authority.then(|| b"a".to_vec()),
                    protocol: protocol.map(str::to_owned),
                    fields: lines.iter().chain(version).map(pair).collect(),
                };
                if let Some((head, _, None)) = request_as_http1(&asked, has_body) {
                    heads.push((head, true));
                }
            }
        }
    }
    heads
}

/// Shows a head as rules see it, on the way that one takes through the switch. Nothing where it is refused.
fn seen<T>(
    (raw, is_http2): (&[u8], bool),
    connection: &Connection,
    is_believed: bool,
    see: impl FnOnce(&RequestView<'_>, &RequestHead) -> T,
) -> Option<T> {
    let mut head = RequestHead::default();
    (head.parse(raw, &HeadLimits::default()) == Ok(true)).then_some(())?;
    if is_http2 {
        head.is_of_http2().ok()?;
    }
    head.settle_odd_names(raw, OddNames::Drop).ok()?;
    if !is_believed {
        take_away_forwarding(&mut head);
        head.check_scheme(raw, connection.scheme()).ok()?;
    }
    let change = head.upgrade(raw, &[UPGRADES.into()]).ok()?;
    if is_http2 && change.is_none() && head.offered_protocols(raw).next().is_some() {
        return None;
    }
    let mut scratch = Vec::new();
    let path = normal_form(head.path_and_query(raw), PathOptions::default(), &mut scratch).ok()?;
    let trusted = TrustedProxies { networks: &[], unix: is_believed };
    Some(see(&RequestView::new(&head, raw, connection, path, trusted), &head))
}

#[test]
fn exclusions_hold() {
    assert_eq!(PARTS.len(), EXCLUSIONS.len(), "each can be read");
    let plain = Connection { src: None, dst: None, proxied: None, tls: None };
    let facts = TlsFacts {
        sni: None,
        version: "1.3",
        cipher: "TLS_AES_128_GCM_SHA256",
        alpn: None,
        resumed: false,
        client: None,
        session: None,
    };
    let secured = Connection { tls: Some(Arc::new(facts)), ..plain.clone() };
    let mut alone = vec![[false; 2]; PARTS.len()];
    let (mut taken, mut traces, mut tunnels) = (0, 0, 0);
    for (raw, is_http2) in heads() {
        for (connection, is_believed) in [(&plain, false), (&plain, true), (&secured, false)] {
            let is_taken = seen((&raw, is_http2), connection, is_believed, |view, head| {
                if head.method() == Method::Trace {
                    traces += 1;
                    assert_eq!(head.framing(), Framing::None, "{}", raw.escape_ascii());
                }
                let is_tunnel = is_http2 && head.offered_protocols(&raw).next().is_some();
                tunnels += usize::from(is_tunnel);
                for ((exclusion, parts), alone) in PARTS.iter().zip(&mut alone) {
                    let holds: Vec<bool> = parts
                        .iter()
                        .map(|part| {
                            let truth = part.test().expect("one test").eval(view);
                            assert!(!matches!(truth, Truth::Unknown(_)), "{exclusion:?}");
                            (truth == Truth::True) == part.holds
                        })
                        .collect();
                    match exclusion.holds {
                        Holds::OfStrangers if is_believed => continue,
                        // Nobody would have let it in.
                        Holds::WithoutUpgrades if is_tunnel => continue,
                        _ => {}
                    }
                    assert!(holds.contains(&false), "{exclusion:?} of {}", raw.escape_ascii());
                    for (alone, holds) in alone.iter_mut().zip(holds) {
                        *alone |= holds;
                    }
                }
            });
            taken += usize::from(is_taken.is_some());
        }
    }
    for (exclusion, alone) in EXCLUSIONS.iter().zip(&alone) {
        assert_eq!(*alone, [true; 2], "a part is never true by itself: {exclusion:?}");
    }
    assert!(taken > 5_000 && traces > 500, "{taken} heads were taken, {traces} of TRACE");
    assert!(tunnels > 100, "{tunnels} asked for another protocol in HTTP/2");
}
