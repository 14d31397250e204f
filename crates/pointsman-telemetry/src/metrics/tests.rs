//! The registry from the outside: events in, the page out.

mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use super::*;
use crate::agreed::{Handshake, TlsGroup, TlsSession, TlsVersion};
use crate::event::{Counts, Event, Exchange, HandshakeFailure, Hedge, ServerFailure};
use crate::{AccessLog, LogStyle, LogTarget, Sinks};

const BASE: WallBase = WallBase { unix_us: 1_795_227_474_123_000, monotonic_us: 0 };

fn registry(event_loops: usize) -> Arc<Metrics> {
    Metrics::new(event_loops, "0.1.0", UNIX_EPOCH + Duration::from_millis(1_795_227_474_123))
}

fn server_now() -> ServerNow {
    let probes = vec![("passed", 7), ("status", 2)];
    let standing =
        StandingNow { is_up: false, is_ejected: true, ejections: 5, admission: "draining", probes };
    ServerNow { in_flight: 3, standing: Some(standing) }
}

fn page(metrics: &Metrics) -> BTreeMap<String, f64> {
    let mut out = String::new();
    let buffers = BufferBytes { booked: 3_145_728, max: 1 << 40 };
    metrics.render(buffers, &|_, server| (server != "unknown").then(server_now), &mut out);
    read_page(&out)
}

/// Reads the text form strictly: every sample follows the two lines of its family, names and labels are well
/// formed, no series comes twice.
fn read_page(text: &str) -> BTreeMap<String, f64> {
    let mut series = BTreeMap::new();
    let mut families = BTreeSet::new();
    let (mut family, mut kind) = (String::new(), String::new());
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(families.insert(name.to_owned()), "{name} comes twice");
            assert!(!help.is_empty() && !help.contains('\\'));
            family = name.to_owned();
            kind.clear();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, what) = rest.split_once(' ').expect("a type");
            assert_eq!(name, family);
            kind = what.to_owned();
        } else {
            let (name, labels, value) = read_sample(line);
            let base = match kind.as_str() {
                "histogram" => ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|end| name.strip_suffix(end))
                    .expect("a histogram's suffix"),
                "counter" => {
                    assert!(name.ends_with("_total"), "{name}");
                    name
                }
                _ => name,
            };
            assert_eq!(base, family, "{line}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            let key = line[..line.rfind(' ').unwrap()].to_owned();
            assert!(labels.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len() == labels.len());
            assert!(series.insert(key, value).is_none(), "{line} comes twice");
        }
    }
    series
}

/// The name, the labels with their values unescaped, and the value.
fn read_sample(line: &str) -> (&str, Vec<(String, String)>, f64) {
    let end = line.find(['{', ' ']).expect("a name");
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if rest.starts_with('{') {
        while !rest.starts_with('}') {
            let (label, after) = rest[1..].split_once("=\"").expect("a label");
            assert!(label.bytes().all(|byte| byte.is_ascii_lowercase()));
            let mut value = String::new();
            let mut characters = after.char_indices();
            let close = loop {
                match characters.next().expect("the end of a label") {
                    (at, '"') => break at,
                    (_, '\\') => match characters.next() {
                        Some((_, 'n')) => value.push('\n'),
                        Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                        other => panic!("escape {other:?}"),
                    },
                    (_, other) => value.push(other),
                }
            };
            labels.push((label.to_owned(), value));
            rest = &after[close + 1..];
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').expect("a space").parse().expect("a number");
    (name, labels, value)
}

/// Failures add up to the result `failed`, and what leaves a line alone is counted nowhere.
#[test]
fn handshakes_are_on_the_page() {
    let metrics = registry(1);
    let shop = metrics.listener("shop");
    let recorder = metrics.recorder(&Sinks::default(), BASE);
    let full = Handshake {
        session: TlsSession::Full,
        version: TlsVersion::named("1.3"),
        group: TlsGroup::named(Some("X25519MLKEM768")),
    };
    let resumed = Handshake {
        session: TlsSession::Resumed,
        version: TlsVersion::named("1.2"),
        group: TlsGroup::named(None),
    };
    let unknown = Handshake { group: TlsGroup::named(Some("sect571k1")), ..resumed };
    for handshake in [full, resumed, unknown] {
        recorder.hear(&Event::Handshake(&shop, handshake));
    }
    recorder.hear(&Event::HandshakeFailed(&shop, HandshakeFailure::NotTls));
    recorder.hear(&Event::HandshakeFailed(&shop, HandshakeFailure::Other));
    recorder.hear(&Event::NoRequest(&Exchange::new(Counts::new(&shop))));
    let page = page(&metrics);
    for (series, expected) in [
        (r#"pointsman_tls_handshakes_total{listener="shop",result="full"}"#, 1.0),
        (r#"pointsman_tls_handshakes_total{listener="shop",result="resumed"}"#, 2.0),
        (r#"pointsman_tls_versions_total{listener="shop",version="1.2"}"#, 2.0),
        (r#"pointsman_tls_versions_total{listener="shop",version="1.3"}"#, 1.0),
        (r#"pointsman_tls_groups_total{listener="shop",group="X25519MLKEM768"}"#, 1.0),
        (r#"pointsman_tls_groups_total{listener="shop",group="secp256r1"}"#, 0.0),
        (r#"pointsman_tls_groups_total{listener="shop",group="other"}"#, 1.0),
        (r#"pointsman_tls_groups_total{listener="shop",group="none"}"#, 1.0),
        (r#"pointsman_tls_handshakes_total{listener="shop",result="failed"}"#, 2.0),
        (r#"pointsman_tls_handshake_failures_total{listener="shop",reason="not_tls"}"#, 1.0),
        (r#"pointsman_tls_handshake_failures_total{listener="shop",reason="other"}"#, 1.0),
        (r#"pointsman_tls_handshake_failures_total{listener="shop",reason="alert"}"#, 0.0),
        (r#"pointsman_requests_total{listener="shop",status="none"}"#, 0.0),
    ] {
        assert_eq!(page.get(series), Some(&expected), "{series}");
    }
}

/// Exchanges of every kind, and a connection that was none.
fn hear_exchanges(
    recorder: &Recorder,
    listener: &ListenerMetrics,
    server: &ServerMetrics,
    rule: &RuleMetrics,
) {
    let counts = Counts {
        listener,
        server: Some(server),
        rule: Some(rule),
        is_connection: false,
        is_failed: false,
        status: 204,
        request_bytes: 100,
        response_bytes: 200,
        total_us: 1_500,
    };
    // Whether there is a line or not, the same is counted.
    recorder.hear(&Event::Done(&Exchange::new(counts)));
    recorder.hear(&Event::Counted(&Counts { status: 0, total_us: 90_000_000, ..counts }));
    recorder.hear(&Event::Counted(&Counts { status: 101, total_us: 3_600_000_000, ..counts }));
    let connection = Counts { is_connection: true, status: 0, total_us: 1, ..counts };
    recorder.hear(&Event::Counted(&connection));
    recorder.hear(&Event::Done(&Exchange::new(Counts { status: 999, total_us: 1, ..counts })));
}

#[test]
fn how_servers_stand_is_on_the_page() {
    let metrics = Metrics::new(1, "0.1.0", std::time::SystemTime::UNIX_EPOCH);
    let _server = metrics.server("fast", "server1");
    let page = page(&metrics);
    for (sample, expected) in [
        (r#"pointsman_server_up{pool="fast",server="server1"}"#, 0.0),
        (r#"pointsman_server_ejected{pool="fast",server="server1"}"#, 1.0),
        (r#"pointsman_server_ejections_total{pool="fast",server="server1"}"#, 5.0),
        (r#"pointsman_server_admission{pool="fast",server="server1",admission="draining"}"#, 1.0),
        (r#"pointsman_server_probes_total{pool="fast",server="server1",outcome="passed"}"#, 7.0),
        (r#"pointsman_server_probes_total{pool="fast",server="server1",outcome="status"}"#, 2.0),
    ] {
        assert_eq!(page.get(sample), Some(&expected), "{sample}");
    }
}

#[test]
fn what_became_of_requests_is_on_the_page_by_server_and_by_rule() {
    let metrics = registry(1);
    metrics.set_rules_max(1);
    let (shop, server) = (metrics.listener("shop"), metrics.server("fast", "server1"));
    hear_exchanges(&metrics.recorder(&Sinks::default(), BASE), &shop, &server, &metrics.rule("shop", "R1"));
    let page = page(&metrics);
    for (of, labels) in
        [("server", r#"pool="fast",server="server1""#), ("rule", r#"listener="shop",rule="R1""#)]
    {
        for (name, label, expected) in [
            ("responses_total", r#",status="none""#, 3.0),
            ("responses_total", r#",status="1xx""#, 1.0),
            ("responses_total", r#",status="2xx""#, 1.0),
            ("responses_total", r#",status="5xx""#, 0.0),
            ("request_duration_seconds_count", "", 3.0),
            ("request_duration_seconds_sum", "", 90.001_501),
            ("request_duration_seconds_bucket", r#",le="0.002048""#, 2.0),
            ("request_duration_seconds_bucket", r#",le="+Inf""#, 3.0),
        ] {
            let series = format!("pointsman_{of}_{name}{{{labels}{label}}}");
            assert_eq!(page.get(&series), Some(&expected), "{series}");
        }
    }
}

#[test]
fn every_event_is_on_the_page() {
    let metrics = registry(1);
    let shop = metrics.listener("shop");
    let rule = metrics.rule("shop", "R1");
    let server = metrics.server("fast", "server1");
    let recorder = metrics.recorder(&Sinks::default(), BASE);
    for _ in 0..3 {
        recorder.hear(&Event::ConnectionOpened(&shop));
        recorder.hear(&Event::TunnelOpened(&shop));
    }
    recorder.hear(&Event::ConnectionClosed(&shop));
    recorder.hear(&Event::TunnelClosed(&shop));
    recorder.hear(&Event::WaitBegan(&shop));
    recorder.hear(&Event::WaitBegan(&shop));
    recorder.hear(&Event::WaitEnded(&shop));
    recorder.hear(&Event::Held(&shop, 300));
    recorder.hear(&Event::Released(&shop, 100));
    recorder.hear(&Event::Refused(&shop, Refusal::ContentLimit));
    recorder.hear(&Event::Refused(&shop, Refusal::HeadTimeout));
    recorder.hear(&Event::ServerFailed(&server, ServerFailure::Connect));
    recorder.hear(&Event::Retried(&server));
    recorder.hear(&Event::RetryRefused(&server));
    recorder.hear(&Event::IdleAdded(&server));
    recorder.hear(&Event::IdleAdded(&server));
    recorder.hear(&Event::IdleRemoved(&server));
    for _ in 0..3 {
        recorder.hear(&Event::Decided(&rule));
    }
    hear_exchanges(&recorder, &shop, &server, &rule);
    metrics.reloaded(2);
    metrics.reload_refused();

    let page = page(&metrics);
    for (series, expected) in [
        (r#"pointsman_build_info{version="0.1.0"}"#, 1.0),
        ("pointsman_start_time_seconds", 1_795_227_474.123),
        ("pointsman_plan_generation", 2.0),
        (r#"pointsman_reloads_total{result="ok"}"#, 1.0),
        (r#"pointsman_reloads_total{result="refused"}"#, 1.0),
        ("pointsman_access_log_dropped_lines_total", 0.0),
        (r#"pointsman_connections_total{listener="shop"}"#, 3.0),
        (r#"pointsman_connections_open{listener="shop"}"#, 2.0),
        (r#"pointsman_tunnels_total{listener="shop"}"#, 3.0),
        (r#"pointsman_tunnels_open{listener="shop"}"#, 2.0),
        (r#"pointsman_requests_waiting{listener="shop"}"#, 1.0),
        (r#"pointsman_held_bytes{listener="shop"}"#, 200.0),
        (r#"pointsman_refusals_total{listener="shop",reason="content_limit"}"#, 1.0),
        (r#"pointsman_requests_total{listener="shop",status="2xx"}"#, 1.0),
        (r#"pointsman_requests_total{listener="shop",status="none"}"#, 2.0),
        (r#"pointsman_refusals_total{listener="shop",reason="head_timeout"}"#, 1.0),
        ("pointsman_buffer_booked_bytes", 3_145_728.0),
        ("pointsman_buffer_bytes_max", 1_099_511_627_776.0),
        (r#"pointsman_requests_total{listener="shop",status="1xx"}"#, 1.0),
        (r#"pointsman_received_bytes_total{listener="shop"}"#, 500.0),
        (r#"pointsman_sent_bytes_total{listener="shop"}"#, 1000.0),
        (r#"pointsman_request_duration_seconds_bucket{listener="shop",le="0.000064"}"#, 1.0),
        (r#"pointsman_request_duration_seconds_bucket{listener="shop",le="0.001024"}"#, 1.0),
        (r#"pointsman_request_duration_seconds_bucket{listener="shop",le="0.002048"}"#, 2.0),
        (r#"pointsman_request_duration_seconds_bucket{listener="shop",le="67.108864"}"#, 2.0),
        (r#"pointsman_request_duration_seconds_bucket{listener="shop",le="+Inf"}"#, 3.0),
        (r#"pointsman_request_duration_seconds_sum{listener="shop"}"#, 90.001501),
        (r#"pointsman_request_duration_seconds_count{listener="shop"}"#, 3.0),
        (r#"pointsman_rule_hits_total{listener="shop",rule="R1"}"#, 3.0),
        (r#"pointsman_server_requests_total{pool="fast",server="server1"}"#, 5.0),
        (r#"pointsman_server_retries_total{pool="fast",server="server1"}"#, 1.0),
        (r#"pointsman_server_retries_over_budget_total{pool="fast",server="server1"}"#, 1.0),
        (r#"pointsman_server_failures_total{pool="fast",server="server1",kind="connect"}"#, 1.0),
        (r#"pointsman_server_in_flight_requests{pool="fast",server="server1"}"#, 3.0),
        (r#"pointsman_server_idle_connections{pool="fast",server="server1"}"#, 1.0),
    ] {
        assert_eq!(page.get(series), Some(&expected), "{series}");
    }
}

#[test]
fn hedges_are_on_the_page() {
    let metrics = registry(1);
    let recorder = metrics.recorder(&Sinks::default(), BASE);
    let server = metrics.server("fast", "server1");
    for what in [Hedge::Won, Hedge::OverBudget, Hedge::Won] {
        recorder.hear(&Event::Hedged(&server, what));
    }
    let page = page(&metrics);
    for (outcome, expected) in [("won", 2.0), ("lost", 0.0), ("failed", 0.0), ("over_budget", 1.0)] {
        let series = format!(r#"pointsman_hedges_total{{pool="fast",server="server1",outcome="{outcome}"}}"#);
        assert_eq!(page.get(series.as_str()), Some(&expected), "{series}");
    }
}

#[test]
fn classes_are_on_the_page() {
    let metrics = registry(1);
    let recorder = metrics.recorder(&Sinks::default(), BASE);
    recorder.hear(&Event::Limited(&metrics.limit("api")));
    recorder.hear(&Event::Shaped(&metrics.bandwidth("gold", "to-client"), 4096));
    recorder.hear(&Event::ShapedWait(&metrics.bandwidth("gold", "to-client")));
    let page = page(&metrics);
    for (series, expected) in [
        (r#"pointsman_limited_requests_total{class="api"}"#, 1.0),
        (r#"pointsman_bandwidth_bytes_total{class="gold",direction="to-client"}"#, 4096.0),
        (r#"pointsman_bandwidth_waits_total{class="gold",direction="to-client"}"#, 1.0),
    ] {
        assert_eq!(page.get(series), Some(&expected), "{series}");
    }
}

#[test]
fn awkward_names_keep_the_page_readable() {
    let metrics = registry(1);
    metrics.listener("a\"b\\c\nd");
    metrics.rule("über", "x{y=\"z\"} 1");
    metrics.server("p", "unknown");
    let page = page(&metrics);
    assert!(page.contains_key(r#"pointsman_connections_total{listener="a\"b\\c\nd"}"#));
    assert!(page.contains_key(r#"pointsman_rule_hits_total{listener="über",rule="x{y=\"z\"} 1"}"#));
    assert!(!page.contains_key(r#"pointsman_server_in_flight_requests{pool="p",server="unknown"}"#));
}

#[test]
fn threads_add_up() {
    const THREADS: usize = 4;
    const ROUNDS: u64 = 20_000;
    let metrics = registry(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let recorder = metrics.recorder(&Sinks::default(), BASE);
            let shop = metrics.listener("shop");
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    recorder.hear(&Event::ConnectionOpened(&shop));
                    let counts =
                        Counts { status: 200, request_bytes: 3, total_us: round, ..Counts::new(&shop) };
                    recorder.hear(&Event::Counted(&counts));
                    recorder.hear(&Event::ConnectionClosed(&shop));
                }
            });
        }
    });
    let page = page(&metrics);
    let all = (THREADS as u64 * ROUNDS) as f64;
    assert_eq!(page[r#"pointsman_connections_total{listener="shop"}"#], all);
    assert_eq!(page[r#"pointsman_connections_open{listener="shop"}"#], 0.0);
    assert_eq!(page[r#"pointsman_requests_total{listener="shop",status="2xx"}"#], all);
    assert_eq!(page[r#"pointsman_received_bytes_total{listener="shop"}"#], 3.0 * all);
    assert_eq!(page[r#"pointsman_request_duration_seconds_count{listener="shop"}"#], all);
}

/// Also of those that were not reckoned with, and nobody's counts are lost with it.
#[test]
fn each_recorder_counts_for_itself() {
    let metrics = registry(1);
    let shop = metrics.listener("shop");
    for _ in 0..2 {
        let recorders: Vec<_> = (0..5).map(|_| metrics.recorder(&Sinks::default(), BASE)).collect();
        std::thread::scope(|scope| {
            for recorder in recorders {
                let shop = &shop;
                scope.spawn(move || {
                    (0..1000).for_each(|_| recorder.hear(&Event::ConnectionOpened(shop)));
                });
            }
        });
    }
    assert_eq!(page(&metrics)[r#"pointsman_connections_total{listener="shop"}"#], 10_000.0);
    assert_eq!(locked(&metrics.taken).len(), 5, "places are used again");
}

#[test]
fn handles_survive_a_reload_and_go_when_nobody_holds_them() {
    let metrics = registry(1);
    let (kept, gone) = (metrics.rule("shop", "kept"), metrics.rule("shop", "gone"));
    assert!(Arc::ptr_eq(&kept, &metrics.rule("shop", "kept")));
    assert!(!Arc::ptr_eq(&kept, &metrics.rule("other", "kept")));
    drop(gone);
    metrics.forget_unused();
    let page = page(&metrics);
    assert!(page.contains_key(r#"pointsman_rule_hits_total{listener="shop",rule="kept"}"#));
    assert!(!page.contains_key(r#"pointsman_rule_hits_total{listener="shop",rule="gone"}"#));
}

#[test]
fn lines_reach_the_file_on_flush_and_when_the_recorder_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let metrics = registry(1);
    let log = AccessLog::open(LogTarget::File(path.clone()), LogStyle::JSON, &metrics).unwrap();
    let shop = metrics.listener("shop");
    let recorder = metrics.recorder(&Sinks { log: Some(log.clone()), traces: None }, BASE);
    let done = |number: usize| {
        let error = number.to_string();
        let exchange = Exchange {
            now_us: number as u64 * 1_000,
            error: Some(&error),
            ..Exchange::new(Counts::new(&shop))
        };
        recorder.hear(&Event::Done(&exchange));
    };
    (0..10).for_each(done);
    recorder.flush();
    (10..1_000).for_each(done);
    recorder.set_wall_base(WallBase { unix_us: 0, monotonic_us: 1_000_000 });
    done(1_000);
    drop(recorder);
    assert_eq!(log.close(Duration::MAX, || false), 0);

    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert_eq!(lines.len(), 1_001);
    for (number, line) in lines.iter().enumerate() {
        assert_eq!(line["error"], number.to_string());
    }
    assert_eq!(lines[0]["time"], "2026-11-21T02:17:54.123Z");
    assert_eq!(lines[999]["time"], "2026-11-21T02:17:55.122Z");
    assert_eq!(lines[1_000]["time"], "1970-01-01T00:00:00.000Z");
    assert_eq!(page(&metrics)["pointsman_access_log_dropped_lines_total"], 0.0);
}

#[test]
fn lines_after_closing_are_counted_as_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = registry(1);
    let log =
        AccessLog::open(LogTarget::File(folder.path().join("access.log")), LogStyle::JSON, &metrics).unwrap();
    let shop = metrics.listener("shop");
    let recorder = metrics.recorder(&Sinks { log: Some(log.clone()), traces: None }, BASE);
    assert_eq!(log.close(Duration::MAX, || false), 0);
    recorder.hear(&Event::Done(&Exchange::new(Counts::new(&shop))));
    recorder.flush();
    recorder.flush();
    assert_eq!(page(&metrics)["pointsman_access_log_dropped_lines_total"], 1.0);
}
