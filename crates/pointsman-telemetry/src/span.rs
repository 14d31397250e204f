//! The spans of an exchange, as OTLP's JSON has them (opentelemetry-proto, `Span`): that of the client's request, and
//! below it what its server was asked. Attributes are those of the semantic conventions for HTTP, and our own.

use crate::event::{Exchange, Query};
use crate::json::{push_number, push_string};
use crate::trace::{TraceContext, push_hex};

const KIND_SERVER: u64 = 2;
const KIND_CLIENT: u64 = 3;
const STATUS_ERROR: u64 = 2;

/// The first status that is an error of the side that answers.
const SERVER_ERROR: u16 = 500;

/// Appends the spans of an exchange, each with a comma behind, and says how many. It ended at `ended_us` since 1970.
pub(crate) fn push_spans(
    out: &mut Vec<u8>,
    ended_us: u64,
    exchange: &Exchange<'_>,
    trace: &TraceContext,
) -> u64 {
    let times = Times { started_us: ended_us.saturating_sub(exchange.counts.total_us), ended_us };
    push_request(out, &times, exchange, trace);
    if exchange.tries == 0 {
        return 1;
    }
    push_tries(out, &times, exchange, trace);
    2
}

/// Of the exchange, in microseconds since 1970.
struct Times {
    started_us: u64,
    ended_us: u64,
}

/// What the client asked.
fn push_request(out: &mut Vec<u8>, times: &Times, exchange: &Exchange<'_>, trace: &TraceContext) {
    let Exchange { counts, .. } = exchange;
    push_head(out, trace, &trace.span, trace.parent.as_ref());
    push_name_and_times(out, KIND_SERVER, exchange.method, exchange.rule, times);
    let mut attributes = Attributes::begin(out);
    attributes.text("http.request.method", exchange.method);
    attributes.text("url.scheme", Some(if exchange.tls.is_some() { b"https" } else { b"http" }));
    attributes.text("url.path", exchange.path);
    if let Query::Text(query) = exchange.query {
        attributes.text("url.query", Some(query));
    }
    attributes.text("server.address", exchange.host);
    attributes.text("client.address", exchange.client_ip);
    attributes.text("network.peer.address", exchange.peer.map(|(address, _)| address));
    attributes.number("network.peer.port", exchange.peer.map(|(_, port)| port.into()));
    attributes.text("network.protocol.name", exchange.version.map(|_| &b"http"[..]));
    attributes.text("network.protocol.version", exchange.version.map(str::as_bytes));
    attributes.text("tls.protocol.version", exchange.tls.map(str::as_bytes));
    attributes.number("http.response.status_code", status(exchange));
    attributes.text("pointsman.listener", Some(counts.listener.name().as_bytes()));
    attributes.text("pointsman.rule", exchange.rule);
    attributes.text("pointsman.unknown", exchange.unknown);
    attributes.text("pointsman.limit", exchange.limit);
    attributes.number("pointsman.decided_us", exchange.decided_us);
    attributes.number("pointsman.request_bytes", Some(counts.request_bytes));
    attributes.number("pointsman.response_bytes", Some(counts.response_bytes));
    attributes.end();
    push_end(out, exchange);
}

/// What its server was asked, from the decision to the end of the answer, all tries together.
fn push_tries(out: &mut Vec<u8>, times: &Times, exchange: &Exchange<'_>, trace: &TraceContext) {
    let since = |us: u64| (times.started_us + us).min(times.ended_us);
    let asked = Times { started_us: since(exchange.decided_us.unwrap_or(0)), ..*times };
    push_head(out, trace, &trace.to_server, Some(&trace.span));
    push_name_and_times(out, KIND_CLIENT, exchange.method, exchange.pool, &asked);
    out.extend_from_slice(b",\"events\":[");
    let steps = [("connected", exchange.connected_us), ("first byte of the answer", exchange.first_byte_us)];
    let mut is_first = true;
    for (name, us) in steps.into_iter().filter_map(|(name, us)| Some((name, us?))) {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"timeUnixNano\":");
        push_nanos(out, since(us));
        out.extend_from_slice(b",\"name\":");
        push_string(out, name.as_bytes());
        out.push(b'}');
    }
    out.push(b']');
    let mut attributes = Attributes::begin(out);
    attributes.text("http.request.method", exchange.method);
    attributes.number("http.response.status_code", status(exchange));
    attributes.text("pointsman.pool", exchange.pool);
    attributes.text("pointsman.server", exchange.counts.server.map(|server| server.name().as_bytes()));
    attributes.number("pointsman.tries", Some(exchange.tries.into()));
    attributes.text("pointsman.hedge", exchange.hedge.map(|hedge| hedge.name().as_bytes()));
    attributes.flag("pointsman.connection_reused", exchange.reused);
    attributes.end();
    push_end(out, exchange);
}

fn status(exchange: &Exchange<'_>) -> Option<u64> {
    (exchange.counts.status != 0).then_some(exchange.counts.status.into())
}

fn push_head(out: &mut Vec<u8>, trace: &TraceContext, span: &[u8; 8], parent: Option<&[u8; 8]>) {
    out.extend_from_slice(b"{\"traceId\":\"");
    push_hex(out, &trace.trace);
    out.extend_from_slice(b"\",\"spanId\":\"");
    push_hex(out, span);
    if let Some(parent) = parent {
        out.extend_from_slice(b"\",\"parentSpanId\":\"");
        push_hex(out, parent);
    }
    out.push(b'"');
}

/// A name that few spans differ by: the method, and what few there are of.
fn push_name_and_times(
    out: &mut Vec<u8>,
    kind: u64,
    method: Option<&[u8]>,
    few: Option<&[u8]>,
    times: &Times,
) {
    let name = [method.unwrap_or(b"HTTP"), few.unwrap_or_default()].join(&b' ');
    out.extend_from_slice(b",\"name\":");
    push_string(out, name.trim_ascii_end());
    out.extend_from_slice(b",\"kind\":");
    push_number(out, kind);
    out.extend_from_slice(b",\"startTimeUnixNano\":");
    push_nanos(out, times.started_us);
    out.extend_from_slice(b",\"endTimeUnixNano\":");
    push_nanos(out, times.ended_us);
}

/// Numbers of 64 bits are strings in the JSON of protocol buffers.
fn push_nanos(out: &mut Vec<u8>, us: u64) {
    out.push(b'"');
    push_number(out, us.saturating_mul(1000));
    out.push(b'"');
}

fn push_end(out: &mut Vec<u8>, exchange: &Exchange<'_>) {
    if exchange.error.is_some() || exchange.counts.status >= SERVER_ERROR {
        out.extend_from_slice(b",\"status\":{\"code\":");
        push_number(out, STATUS_ERROR);
        if let Some(error) = exchange.error {
            out.extend_from_slice(b",\"message\":");
            push_string(out, error.as_bytes());
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"},");
}

/// A list of keys and values, none of them absent.
struct Attributes<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
}

impl<'o> Attributes<'o> {
    fn begin(out: &'o mut Vec<u8>) -> Attributes<'o> {
        out.extend_from_slice(b",\"attributes\":[");
        Attributes { out, is_first: true }
    }

    fn end(self) {
        self.out.push(b']');
    }

    fn text(&mut self, key: &'static str, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.key(key, "stringValue");
            push_string(self.out, value);
            self.out.extend_from_slice(b"}}");
        }
    }

    fn number(&mut self, key: &'static str, value: Option<u64>) {
        if let Some(value) = value {
            self.key(key, "intValue");
            self.out.push(b'"');
            push_number(self.out, value);
            self.out.extend_from_slice(b"\"}}");
        }
    }

    fn flag(&mut self, key: &'static str, value: Option<bool>) {
        if let Some(value) = value {
            self.key(key, "boolValue");
            self.out.extend_from_slice(if value { b"true}}" } else { b"false}}" });
        }
    }

    fn key(&mut self, key: &'static str, kind: &'static str) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(b"{\"key\":\"");
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\",\"value\":{\"");
        self.out.extend_from_slice(kind.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::Counts;
    use crate::family::{ListenerMetrics, ServerMetrics};
    use crate::style::Sample;
    use crate::trace::Tracer;

    const PARENT: &[u8] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn spans(exchange: &Exchange<'_>, trace: &TraceContext) -> Vec<Value> {
        let mut out = b"[".to_vec();
        let count = push_spans(&mut out, 5_000_000, exchange, trace);
        assert_eq!(out.pop(), Some(b','));
        out.push(b']');
        let spans: Vec<Value> = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(spans.len() as u64, count);
        spans
    }

    fn attribute<'v>(span: &'v Value, key: &str) -> Option<&'v Value> {
        let attributes = span["attributes"].as_array().expect("a list");
        attributes.iter().find(|attribute| attribute["key"] == key).map(|attribute| &attribute["value"])
    }

    #[test]
    fn a_request_and_what_its_server_was_asked() {
        let (listener, server) = (ListenerMetrics::new("shop", 1), ServerMetrics::new("fast", "server1", 1));
        let exchange = Exchange {
            peer: Some((b"127.0.0.1", 5555)),
            method: Some(b"GET"),
            path: Some(b"/\"x\""),
            query: Query::Text(b"a=b"),
            version: Some("1.1"),
            rule: Some(b"R1"),
            pool: Some(b"fast"),
            decided_us: Some(3),
            connected_us: Some(120),
            first_byte_us: Some(800),
            tries: 2,
            reused: Some(false),
            ..Exchange::new(Counts {
                server: Some(&server),
                status: 200,
                total_us: 1000,
                ..Counts::new(&listener)
            })
        };
        let trace = Tracer::new(Sample::ALL, 1).begin(Some(PARENT), true);
        let spans = spans(&exchange, &trace);
        let [request, tries] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!(request["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(
            (&request["parentSpanId"], &request["name"]),
            (&"00f067aa0ba902b7".into(), &"GET R1".into())
        );
        assert_eq!((&request["kind"], &tries["kind"]), (&2.into(), &3.into()));
        assert_eq!(tries["traceId"], request["traceId"]);
        assert_eq!(tries["parentSpanId"], request["spanId"]);
        assert_eq!(tries["name"], "GET fast");
        assert_eq!(request["startTimeUnixNano"], "4999000000");
        assert_eq!(
            (&tries["startTimeUnixNano"], &tries["endTimeUnixNano"]),
            (&"4999003000".into(), &"5000000000".into())
        );
        assert_eq!(tries["events"][1]["timeUnixNano"], "4999800000");
        for (key, value) in [
            ("url.path", json!({"stringValue": "/\"x\""})),
            ("url.scheme", json!({"stringValue": "http"})),
            ("url.query", json!({"stringValue": "a=b"})),
            ("http.response.status_code", json!({"intValue": "200"})),
            ("pointsman.listener", json!({"stringValue": "shop"})),
            ("pointsman.rule", json!({"stringValue": "R1"})),
        ] {
            assert_eq!(attribute(request, key), Some(&value), "{key}");
        }
        assert_eq!(attribute(tries, "pointsman.server"), Some(&json!({"stringValue": "server1"})));
        assert_eq!(attribute(tries, "pointsman.connection_reused"), Some(&json!({"boolValue": false})));
        assert!(request.get("status").is_none() && attribute(request, "client.address").is_none());
    }

    #[test]
    fn what_went_wrong_says_so() {
        let listener = ListenerMetrics::new("shop", 1);
        let failed = Exchange { error: Some("no \"server\""), ..Exchange::new(Counts::new(&listener)) };
        let trace = Tracer::new(Sample::ALL, 1).begin(None, true);
        let only = &spans(&failed, &trace)[..];
        assert_eq!(only[0]["status"], json!({"code": 2, "message": "no \"server\""}));
        assert!(only.len() == 1 && only[0].get("parentSpanId").is_none() && only[0]["name"] == "HTTP");
        let status = |status| Exchange::new(Counts { status, ..Counts::new(&listener) });
        assert_eq!(spans(&status(503), &trace)[0]["status"], json!({"code": 2}));
        assert!(spans(&status(404), &trace)[0].get("status").is_none());
    }
}
