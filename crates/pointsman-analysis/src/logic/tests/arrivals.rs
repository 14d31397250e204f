//! Findings about who sends requests and where they come to, against all that a listener takes, as the codec and the view show it:
//! nothing of that is said never to come.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use pointsman_http::{HeadLimits, OddNames, RequestHead};
use pointsman_rules::{Field, OwnedValue, Subject, Value};
use pointsman_view::{
    Connection, PathOptions, RequestView, TrustedProxies, normal_form, take_away_forwarding,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::super::walk::Walk;
use super::super::{Code, findings};
use super::requests::contradicts;
use super::{MadeUp, name, program, sources_of};
use crate::{Effort, OddFields, ProxyHeader, Setting};

const TESTS: &[&str] = &[
    "srcip in [10.0.0.0/8]",
    "srcip in [2001:db8::/32]",
    "srcip in [0.0.0.0/0]",
    "srcip in [::/0]",
    "srcip == 10.0.0.1",
    "srcip != 192.0.2.1",
    "srcip exists",
    "clientip == 192.0.2.1",
    "clientip in [10.0.0.0/8, 2001:db8::/32]",
    "clientip in [::/0]",
    "clientip exists",
    r#"header["x-forwarded-for"] exists"#,
    r#"header["x-forwarded-for"] contains "192.0.2.1""#,
    r#"header["forwarded"] exists"#,
    r#"header["x-real-ip"] == "a""#,
    r#"header["x_a"] exists"#,
    "dstport == 80",
    "dstport > 80",
    "dstip == 192.0.2.80",
    "dstip in [::/0]",
];

const FIELDS: [fn() -> Field; 8] = [
    || Field::SrcIp,
    || Field::ClientIp,
    || Field::DstIp,
    || Field::DstPort,
    || Field::Header("x-forwarded-for".into()),
    || Field::Header("forwarded".into()),
    || Field::Header("x-real-ip".into()),
    || Field::Header("x_a".into()),
];

const BINDS: [&str; 6] = [
    "0.0.0.0:80",
    "192.0.2.80:80",
    "192.0.2.80:81",
    "[::]:81",
    "[2001:db8::80]:80",
    "[::ffff:192.0.2.80]:82",
];
const PEERS: [&str; 7] =
    ["10.0.0.1", "10.0.0.2", "192.0.2.1", "198.51.100.1", "2001:db8::1", "2001:db9::1", "::7"];
const LINES: [&str; 9] = [
    "X-Forwarded-For: 192.0.2.1\r\n",
    "X-Forwarded-For: 192.0.2.1, 10.0.0.9\r\n",
    "X-Forwarded-For: 2001:db8::7\r\n",
    "X-Forwarded-For: unknown\r\n",
    "X-Forwarded-For:\r\n",
    "Forwarded: for=192.0.2.1\r\n",
    "Forwarded: for=_hidden\r\n",
    "X-Real-IP: a\r\n",
    "X_A: a\r\n",
];

/// Heads with up to two of the lines.
fn heads() -> Vec<String> {
    let mut heads = vec![String::new()];
    for (at, line) in LINES.iter().enumerate() {
        heads.push((*line).to_owned());
        heads.extend(LINES[at + 1..].iter().map(|other| format!("{line}{other}")));
    }
    heads.into_iter().map(|lines| format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")).collect()
}

/// The connections that come to the sockets of a listener, as the kernel has it.
fn connections(setting: &Setting) -> Vec<Connection> {
    let mut connections = Vec::new();
    for bind in &setting.binds {
        for peer in PEERS {
            let peer: IpAddr = peer.parse().expect("an address");
            let takes = match (bind.ip(), peer) {
                (IpAddr::V4(_), peer) => peer.is_ipv4(),
                (IpAddr::V6(bound), IpAddr::V4(_)) => {
                    bound.to_ipv4_mapped().is_some() || bound.is_unspecified() && !setting.ipv6_only
                }
                (IpAddr::V6(bound), IpAddr::V6(_)) => bound.to_ipv4_mapped().is_none(),
            };
            let any: IpAddr =
                if peer.is_ipv4() { [192, 0, 2, 80].into() } else { [0x2001, 0, 0, 0, 0, 0, 0, 9].into() };
            let to = if bind.ip().is_unspecified() { any } else { bind.ip().to_canonical() };
            if takes {
                let (src, dst) = (SocketAddr::new(peer, 40_000), SocketAddr::new(to, bind.port()));
                connections.push(Connection { src: Some(src), dst: Some(dst), proxied: None, tls: None });
            }
        }
    }
    if setting.takes_unix {
        connections.push(Connection { src: None, dst: None, proxied: None, tls: None });
    }
    connections
}

/// What rules see of a request, on the way that one takes through the switch.
fn seen(head: &[u8], connection: &Connection, setting: &Setting) -> MadeUp {
    let mut parsed = RequestHead::default();
    assert_eq!(parsed.parse(head, &HeadLimits::default()), Ok(true));
    parsed.settle_odd_names(head, OddNames::Drop).expect("they are taken away");
    let trusted = TrustedProxies { networks: &setting.trusted_proxies, unix: setting.trusts_unix };
    if !connection.is_trusted(trusted) {
        take_away_forwarding(&mut parsed);
    }
    let mut scratch = Vec::new();
    let path =
        normal_form(parsed.path_and_query(head), PathOptions::default(), &mut scratch).expect("a path");
    let view = RequestView::new(&parsed, head, connection, path, trusted);
    let values = |field: &Field| {
        let mut values = Vec::new();
        view.each(field, &mut |value| {
            values.push(match value {
                Value::Text(text) => OwnedValue::Text(text.into()),
                Value::Integer(integer) => OwnedValue::Integer(integer),
                Value::Ip(ip) => OwnedValue::Ip(ip),
                other => panic!("{other:?}"),
            });
            std::ops::ControlFlow::Continue(())
        });
        values
    };
    let fields = FIELDS.iter().map(|field| field());
    MadeUp(fields.map(|field| (name(&field), (values(&field), Vec::new()))).collect())
}

fn settings() -> impl Strategy<Value = Setting> {
    let binds = subsequence(BINDS.to_vec(), 0..4);
    let networks = subsequence(vec!["10.0.0.0/8", "2001:db8::/32", "0.0.0.0/0", "::/0"], 0..3);
    let flags = vec(any::<bool>(), 3);
    (binds, networks, flags, select(vec![true, false])).prop_map(|(binds, networks, flags, ipv6_only)| {
        let binds: Vec<SocketAddr> = binds.iter().map(|bind| bind.parse().expect("an address")).collect();
        let takes_addresses = !binds.is_empty();
        Setting {
            takes_addresses,
            binds,
            ipv6_only,
            trusted_proxies: networks.iter().map(|net| net.parse::<IpNet>().expect("a network")).collect(),
            trusts_unix: flags[0],
            takes_unix: flags[1] || !takes_addresses,
            may_trust_others: false,
            proxy_header: ProxyHeader::Off,
            odd_fields: OddFields::Drop,
            speaks_tls: Some(false),
            ..Setting::default()
        }
    })
}

proptest! {
    #[test]
    fn nothing_comes_that_is_said_never_to_come(source in sources_of(TESTS), setting in settings()) {
        let program = program(&source);
        let walk = Walk::new(&program);
        let found = findings(&program, &setting, Effort::new(10_000_000));
        let claims = |code| !matches!(code, Code::Conflict | Code::Gap | Code::Exception | Code::Unknown);
        let said: Vec<_> = found.iter().filter(|finding| claims(finding.code)).collect();
        for head in heads().iter().filter(|_| !said.is_empty()) {
            for connection in connections(&setting) {
                let request = seen(head.as_bytes(), &connection, &setting);
                let wrong = said.iter().find(|finding| contradicts(finding, &program, &walk, &request));
                prop_assert!(wrong.is_none(), "{source}{setting:?}{connection:?}{head}{wrong:#?}");
            }
        }
        // And whoever is shown comes.
        for witness in found.iter().filter_map(|finding| finding.witness.as_ref()) {
            let Connection { src, dst, .. } = witness.connection();
            let comes = match (src, dst) {
                (Some(src), Some(dst)) => setting.binds.iter().any(|bind| {
                    let bound = bind.ip().to_canonical();
                    let is_any = bind.ip().is_unspecified() && (dst.is_ipv4() || bind.is_ipv6());
                    let is_dual = bind.is_ipv6() && !setting.ipv6_only;
                    dst.port() == bind.port()
                        && src.is_ipv4() == dst.is_ipv4()
                        && (bound == dst.ip() || is_any && (bind.is_ipv4() || dst.is_ipv6() || is_dual))
                }),
                _ => setting.takes_unix,
            };
            prop_assert!(comes, "{source}{setting:?}{witness:?}");
        }
    }
}
