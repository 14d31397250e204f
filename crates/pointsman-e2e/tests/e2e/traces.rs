//! Spans and what goes on of a trace, as a collector and a server see them.

use pointsman_e2e::{H2Client, NameServer, Origin, Setup, Switch, Then, until};
use serde_json::Value;

pointsman_e2e::for_threads!(
    a_trace_goes_on,
    a_trace_begins,
    streams_and_answers_of_rules,
    a_share_is_sampled,
    a_field_that_a_rule_sets_is_the_last_word,
    a_collector_that_is_down_holds_nothing_up,
    a_collector_that_has_a_name,
    without_traces_fields_pass
);

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
const RULES: &str =
    "no: if (path == \"/no\") { reject(403); }\nto: if (path under \"/x\") { routeTo(standard); }\n";

/// Takes whatever it is sent.
fn collector() -> Origin {
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    Origin::saying("collector", answer, Then::Close)
}

fn setup(threads: usize, origin: &Origin, collector: &str, keys: &str) -> Setup {
    let table = format!("[traces]\nendpoint = \"http://{collector}\"\n{keys}");
    Setup::new(threads).top(&table).rules(RULES).pool("standard", &[origin])
}

/// So many spans, once they have come.
fn spans(collector: &Origin, count: usize) -> Vec<Value> {
    let spans = || -> Vec<Value> {
        let requests = collector.requests();
        let bodies = requests.iter().filter(|request| request.complete).map(|request| {
            assert_eq!(request.target(), "/v1/traces");
            assert_eq!(request.head.field("content-type"), Some("application/json"));
            serde_json::from_slice(&request.body.bytes).expect("JSON")
        });
        let of_scope = |body: Value| body["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
        bodies.map(of_scope).flat_map(|spans| spans.as_array().expect("a list").clone()).collect()
    };
    until("the spans", || Some(spans()).filter(|spans| spans.len() >= count))
}

fn attribute(span: &Value, key: &str) -> String {
    let attributes = span["attributes"].as_array().expect("a list");
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    let value = found.and_then(|found| found["value"].as_object()?.values().next().cloned());
    value.map_or_else(String::new, |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// What the server was sent as its parent: the trace, the span and the flags.
fn parent_at(origin: &Origin) -> (String, String, String) {
    let head = origin.last().head;
    let field = head.field("traceparent").expect("there is one").to_owned();
    let parts: Vec<_> = field.split('-').map(str::to_owned).collect();
    let [version, trace, span, flags] = &parts[..] else { panic!("{field}") };
    assert_eq!((version.as_str(), trace.len(), span.len()), ("00", 32, 16), "{field}");
    (trace.clone(), span.clone(), flags.clone())
}

fn a_trace_goes_on(threads: usize) {
    let (origin, collector) = (Origin::new("origin"), collector());
    let setup = setup(threads, &origin, &collector.address().to_string(), "service = \"edge\"");
    let switch = setup.start();
    let mut client = switch.client();
    let fields = format!("{PARENT}tracestate: a=1\r\n");
    assert_eq!(client.ask("GET", "/x/y?secret", &fields).status(), 200);
    let (trace, parent, flags) = parent_at(&origin);
    assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "01"));
    assert_eq!(origin.last().head.field("tracestate"), Some("a=1"));
    let spans = spans(&collector, 2);
    let [request, tries] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((&request["traceId"], &request["parentSpanId"]), (&TRACE.into(), &"00f067aa0ba902b7".into()));
    assert_eq!((&tries["spanId"], &tries["parentSpanId"]), (&parent.into(), &request["spanId"]));
    assert_eq!((&request["name"], &tries["name"]), (&"GET to".into(), &"GET standard".into()));
    for (key, value) in [
        ("http.request.method", "GET"),
        ("url.scheme", "http"),
        ("url.path", "/x/y"),
        ("url.query", ""),
        ("server.address", "shop.example"),
        ("client.address", "127.0.0.1"),
        ("network.protocol.version", "1.1"),
        ("http.response.status_code", "200"),
        ("pointsman.listener", "shop"),
        ("pointsman.rule", "to"),
    ] {
        assert_eq!(attribute(request, key), value, "{key} in {request}");
    }
    assert_eq!(attribute(tries, "pointsman.server"), "origin");
    let time = |span: &Value, key: &str| span[key].as_str().and_then(|text| text.parse::<u64>().ok());
    let start = |span| time(span, "startTimeUnixNano").expect("a time");
    let end = |span| time(span, "endTimeUnixNano").expect("a time");
    assert!(start(request) <= start(tries) && start(tries) <= end(tries) && end(tries) <= end(request));
    assert!(start(request) > 1_700_000_000_000_000_000, "{request}");
    let resource = &collector.requests()[0].body.bytes;
    let resource: Value = serde_json::from_slice(resource).expect("JSON");
    let service = &resource["resourceSpans"][0]["resource"];
    assert_eq!(attribute(service, "service.name"), "edge");
    // The log says which trace it was.
    assert_eq!(switch.log_of("/x/y")["trace"], TRACE);
}

/// What says nothing of a trace begins one, and its state is nobody's.
fn a_trace_begins(threads: usize) {
    let (origin, collector) = (Origin::new("origin"), collector());
    let switch = setup(threads, &origin, &collector.address().to_string(), "").start();
    let mut client = switch.client();
    let twice = PARENT.repeat(2);
    let malformed = PARENT.replace("00-", "ff-");
    let mut traces = vec![];
    for fields in ["", &twice, &malformed, &PARENT.replace("4bf", "4BF")] {
        assert_eq!(client.ask("GET", "/x", &format!("{fields}Tracestate: a=1\r\n")).status(), 200);
        let (trace, _, flags) = parent_at(&origin);
        assert_eq!((flags.as_str(), origin.last().head.field("tracestate")), ("01", None), "{fields}");
        assert!(trace != TRACE && !traces.contains(&trace), "{trace}");
        traces.push(trace);
    }
    let spans = spans(&collector, 2 * traces.len());
    let roots: Vec<_> = spans.iter().filter(|span| span.get("parentSpanId").is_none()).collect();
    assert_eq!(roots.len(), traces.len(), "{spans:?}");
    assert!(roots.iter().all(|root| traces.iter().any(|trace| root["traceId"] == trace.as_str())));
}

/// Each stream is a request; one that no server was asked for has one span; what fails says so.
fn streams_and_answers_of_rules(threads: usize) {
    let (origin, collector) = (Origin::new("origin"), collector());
    let dead = [("dead", Origin::dead_address())];
    let setup = setup(threads, &origin, &collector.address().to_string(), "");
    let rules = format!("{RULES}gone: if (path == \"/gone\") {{ routeTo(dead); }}\n");
    let switch = setup.rules(&rules).pool_at("dead", "", &dead).start();
    let mut client = H2Client::begin(switch.client());
    let parent = ("traceparent", PARENT.trim_end().split_once(": ").expect("a field").1);
    for (stream, path, status) in [(1, "/x", 200), (3, "/no", 403), (5, "/gone", 502)] {
        client.ask(stream, "GET", path, &[parent]);
        assert_eq!(client.answer(stream).status(), status);
    }
    let spans = spans(&collector, 5);
    let of = |name: &str| {
        let found = spans.iter().find(|span| span["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {spans:?}"))
    };
    assert_eq!(attribute(of("GET to"), "network.protocol.version"), "2");
    assert!(of("GET to").get("status").is_none() && of("GET no").get("status").is_none());
    assert_eq!(attribute(of("GET no"), "http.response.status_code"), "403");
    assert_eq!(of("GET gone")["status"]["code"], 2);
    assert!(of("GET gone")["status"]["message"].is_string() && of("GET dead")["status"]["code"] == 2);
}

/// Who is trusted says what is sampled; of the others a share is.
fn a_share_is_sampled(threads: usize) {
    let (origin, collector) = (Origin::new("origin"), collector());
    let address = collector.address().to_string();
    let none = setup(threads, &origin, &address, "sample = \"0%\"");
    let switch = none.start();
    assert_eq!(switch.client().ask("GET", "/x", PARENT).status(), 200);
    let (trace, _, flags) = parent_at(&origin);
    assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "00"));

    let switch = none.listener("trusted_proxies = [\"127.0.0.1\"]").start();
    let unsampled = PARENT.replace("-01\r", "-00\r");
    for (fields, expected) in [(PARENT, "01"), (&unsampled, "00"), ("", "00")] {
        assert_eq!(switch.client().ask("GET", "/x", fields).status(), 200);
        assert_eq!(parent_at(&origin).2, expected, "{fields}");
    }
    assert_eq!(spans(&collector, 2).len(), 2);
}

fn a_field_that_a_rule_sets_is_the_last_word(threads: usize) {
    let (origin, collector) = (Origin::new("origin"), collector());
    let rules = "if (path == \"/set\") { setHeader(\"traceparent\", \"mine\"); }
                 if (path == \"/none\") { removeHeader(\"traceparent\"); }
                 else: routeTo(standard);\n";
    let switch = setup(threads, &origin, &collector.address().to_string(), "").rules(rules).start();
    for (path, expected) in [("/set", Some("mine")), ("/none", None)] {
        assert_eq!(switch.client().ask("GET", path, PARENT).status(), 200);
        assert_eq!(origin.last().head.field("traceparent"), expected, "{path}");
    }
}

/// Requests go on, what was lost is counted, and the end does not wait long.
fn a_collector_that_is_down_holds_nothing_up(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = setup(threads, &origin, &Origin::dead_address().to_string(), "").start();
    let mut client = switch.client();
    for _ in 0..50 {
        assert_eq!(client.get("/x").status(), 200);
    }
    let failed = |switch: &Switch| switch.metric("pointsman_span_export_errors_total", &[]) > 0.5;
    until("a failed export", || failed(&switch).then_some(()));
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// It is looked up as servers are, and what keeps spans from it is said once, as is that nothing does any more.
fn a_collector_that_has_a_name(threads: usize) {
    let (origin, collector) = (Origin::new("origin"), collector());
    let names = NameServer::new();
    let place = format!("otel.example:{}", collector.address().port());
    let switch = setup(threads, &origin, &place, "").raw(&names.table("")).start();
    assert_eq!(switch.get("/x").status(), 200, "nobody waits for the name");
    let said = switch.wait_for_line("traces not sent");
    let why = "why=\"cannot look up `otel.example`: there is no such name\"";
    assert_eq!(said, format!("traces not sent collector={place} {why}"));
    // Nobody listens there.
    names.set("otel.example", &["0 127.0.0.9"]);
    until("it cannot be reached", || {
        assert_eq!(switch.get("/x").status(), 200);
        switch.said().contains("why=\"connection refused\"").then_some(())
    });
    names.set("otel.example", &["0 127.0.0.1"]);
    until("it is", || {
        assert_eq!(switch.get("/x").status(), 200);
        switch.said().contains(&format!("traces sent again collector={place}")).then_some(())
    });
    assert!(!spans(&collector, 2).is_empty());
    assert_eq!(switch.said().matches("traces not sent").count(), 2, "{}", switch.said());
}

fn without_traces_fields_pass(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    assert_eq!(switch.client().ask("GET", "/x", &format!("{PARENT}tracestate: a=1\r\n")).status(), 200);
    let head = origin.last().head;
    assert_eq!(head.field("traceparent"), PARENT.trim_end().strip_prefix("traceparent: "));
    assert_eq!(head.field("tracestate"), Some("a=1"));
    assert_eq!(switch.client().get("/y").status(), 200);
    assert_eq!(origin.last().head.field("traceparent"), None);
    assert!(switch.log_of("/x").get("trace").is_none());
}
