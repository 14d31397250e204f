//! Whatever a view shows of a request is in the domain of its field.

use std::ops::ControlFlow;
use std::sync::Arc;

use pointsman_http::{HeadLimits, RequestHead};
use pointsman_rules::{Field, ProxyValue, Subject, Value};
use pointsman_view::{
    Connection, PathOptions, Proxied, ProxyFacts, ProxyValues, RequestView, TlsClient, TlsFacts,
    TrustedProxies, normal_form,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;

use super::super::automata::Automata;
use super::{Absence, Domain, Kind, Language};

const FIELDS: [fn() -> Field; 36] = [
    || Field::SrcIp,
    || Field::SrcPort,
    || Field::DstIp,
    || Field::DstPort,
    || Field::Proto,
    || Field::ClientIp,
    || Field::TlsSni,
    || Field::TlsVersion,
    || Field::TlsCipher,
    || Field::TlsAlpn,
    || Field::TlsResumed,
    || Field::TlsClientSubject,
    || Field::TlsClientSan,
    || Field::TlsClientFingerprint,
    || Field::TlsClientCertificate,
    || Field::Proxy(ProxyValue::Alpn),
    || Field::Proxy(ProxyValue::Authority),
    || Field::Proxy(ProxyValue::UniqueId),
    || Field::Proxy(ProxyValue::AwsVpceId),
    || Field::Proxy(ProxyValue::AzureLinkId),
    || Field::Method,
    || Field::Scheme,
    || Field::Host,
    || Field::Url,
    || Field::Path,
    || Field::Query,
    || Field::QueryParam(b"k"[..].into()),
    || Field::Version,
    || Field::Header("x".into()),
    || Field::Header("host".into()),
    || Field::Header("accept".into()),
    || Field::Header("content-type".into()),
    || Field::Cookie("c".into()),
    || Field::ContentType,
    || Field::ContentLength,
    || Field::Upgrade,
];

/// How often each field had a value.
type Seen = [usize; FIELDS.len()];

fn is_in(domain: &Domain, value: Value<'_>, automata: &mut Automata) -> bool {
    match (domain.kind, value) {
        (Kind::Choice(texts), Value::Text(text)) => texts.iter().any(|known| known.as_bytes() == text),
        (Kind::Text(Language { pattern, never, exact, bytes_max, .. }), Value::Text(text)) => {
            let mut takes = |pattern| automata.language(pattern).expect("it is small").takes(text);
            let is_exact = exact.is_none_or(|exact| (exact.takes)(text) && takes((exact.pattern)()));
            is_exact
                && takes(pattern)
                && bytes_max.is_none_or(|max| text.len() <= max)
                && !never.iter().any(|never| never.as_bytes() == text)
        }
        (Kind::Integer { min, max }, Value::Integer(integer)) => (min..=max).contains(&integer),
        (Kind::Address, Value::Ip(address)) => address.to_canonical() == address,
        (Kind::Boolean, Value::Boolean(_)) => true,
        _ => false,
    }
}

fn check(
    request: &[u8],
    connection: &Connection,
    automata: &mut Automata,
    seen: &mut Seen,
) -> Result<(), TestCaseError> {
    let mut head = RequestHead::default();
    if head.parse(request, &HeadLimits::default()) != Ok(true) {
        return Ok(());
    }
    let mut scratch = Vec::new();
    let Ok(path) = normal_form(head.path_and_query(request), PathOptions::default(), &mut scratch) else {
        return Ok(());
    };
    let trusted = TrustedProxies { networks: &[], unix: false };
    let view = RequestView::new(&head, request, connection, path, trusted);
    for (field, seen) in FIELDS.iter().zip(seen) {
        let (field, mut values) = (field(), 0);
        let domain = Domain::of(&field);
        let mut outside = None;
        view.each(&field, &mut |value| {
            values += 1;
            if !is_in(&domain, value, automata) {
                outside = Some(format!("{value:?}"));
            }
            ControlFlow::Continue(())
        });
        *seen += values;
        let shown = request.escape_ascii();
        prop_assert!(outside.is_none(), "{field} is {outside:?} in {shown}");
        prop_assert!(values <= 1 || domain.is_many, "{field} has {values} values in {shown}");
        prop_assert!(values > 0 || domain.absence != Absence::Never, "{field} is absent in {shown}");
    }
    Ok(())
}

/// Words, with blanks between them.
fn words(text: &'static str) -> impl Strategy<Value = &'static str> {
    select(text.split(' ').collect::<Vec<_>>())
}

fn targets() -> impl Strategy<Value = String> {
    let path = vec(words("/ a B . .. %41 %2f %2E %7f %zz %00 \\ \"<>^|{} ~ ;= %25 //"), 0..8);
    let pieces = vec(words("k= & a %20 %ff + % ? \\ \" = k"), 0..6);
    let query = prop_oneof![Just(String::new()), pieces.prop_map(|pieces| format!("?{}", pieces.concat()))];
    let start = select(vec!["/", "/", "/", "http://A.example:80", "HTTPS://[::1]", "http://a.", "*", ""]);
    (start, path, query).prop_map(|(start, path, query)| format!("{start}{}{query}", path.concat()))
}

/// A header line; mostly one of those that fields are read from.
fn lines() -> impl Strategy<Value = String> {
    let names = vec![
        "X: ",
        "Content-Type: ",
        "Accept: ",
        "Cookie: c=",
        "Cookie: a; c=\t",
        "Connection: upgrade\r\nUpgrade: ",
        "Connection: x, ",
        "Content-Length: 1",
        "Host: ",
    ];
    let piece = prop_oneof![
        4 => words("a B ; , = c= upgrade text/XML \" / 5 \u{e9} % x ! \u{7f}"),
        1 => select(vec![" ", "\t", "; charset=utf-8"]),
    ];
    (select(names), vec(piece, 0..6)).prop_map(|(name, value)| format!("{name}{}\r\n", value.concat()))
}

/// What is refused now and then, and more often not.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let method = words("GET POST OPTIONS G3T! get CONNECT A-METHOD-OF-THIRTY-TWO-BYTES-ALL");
    let version = words("1.1 1.1 1.0");
    let hosts = "a A.Example a.example. a:8080 [::1]:80 [::FFFF:1.2.3.4] a_b~c-d 1.2.3.4 a..b -";
    let host = prop_oneof![
        1 => Just(String::new()),
        8 => words(hosts).prop_map(|host| format!("Host: {host}\r\n")),
    ];
    (method, targets(), version, host, vec(lines(), 0..5)).prop_map(
        |(method, target, version, host, lines)| {
            format!("{method} {target} HTTP/{version}\r\n{host}{}\r\n", lines.concat()).into_bytes()
        },
    )
}

fn connections() -> [Connection; 2] {
    let client = TlsClient {
        subject: "CN=someone,O=\u{e9}".to_owned(),
        sans: vec!["a.example".to_owned(), "b@c.example".to_owned()],
        fingerprint: "0123456789abcdef".repeat(4),
        certificate: "MAMBAf8=".to_owned(),
    };
    let tls = TlsFacts {
        sni: Some("a.example".to_owned()),
        version: "1.3",
        cipher: "TLS13_AES_128_GCM_SHA256",
        alpn: Some(b"h2".to_vec()),
        resumed: false,
        client: Some(client),
        session: None,
    };
    let src = "[::ffff:192.0.2.9]:7".parse().ok();
    let values = ProxyValues {
        alpn: Some(b"h2"[..].into()),
        authority: Some("a.example".into()),
        unique_id: Some([0, 255][..].into()),
        aws_vpce_id: Some("vpce-1".into()),
        azure_link_id: Some(u32::MAX),
    };
    let client = Proxied::Client("192.0.2.9:7".parse().expect("an address"));
    let proxied = Some(Arc::new(ProxyFacts { client, values }));
    let dst = "[2001:db8::1]:443".parse().ok();
    [
        Connection { src, dst, proxied, tls: Some(Arc::new(tls)) },
        Connection { src: None, dst: None, proxied: None, tls: None },
    ]
}

/// Otherwise a contradiction could be claimed that is none.
#[test]
fn requests_have_values_of_the_domains() {
    let (mut automata, mut seen, connections) = (Automata::default(), [0; FIELDS.len()], connections());
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = requests();
    for _ in 0..20_000 {
        let request = strategy.new_tree(&mut runner).expect("nothing is rejected").current();
        for connection in &connections {
            check(&request, connection, &mut automata, &mut seen).expect("a value of the domain");
        }
    }
    for (field, seen) in FIELDS.iter().zip(seen) {
        assert!(seen > 50, "{} was seen {seen} times", field());
    }
}
