//! Requests that stand out are kept by each thread, and shown by the admin API: the slowest, and those that failed.

use std::time::Duration;

use pointsman_e2e::{Client, Exchange, Origin, Setup, Switch, Then, ok, pause, until};
use serde_json::Value;

pointsman_e2e::for_threads!(
    without_a_log_what_is_known_is_shown,
    with_a_log_all_of_it_is,
    what_failed_is_kept_and_what_the_client_did_is_not,
    who_is_not_known_sees_no_names
);

const RULES: &str = "slow: if (path under \"/slow\") { routeTo(standard); }\n\
                     gone: if (path under \"/gone\") { routeTo(dead); }\n\
                     no: if (path under \"/no\") { reject(403, \"no\"); }\n\
                     else: routeTo(standard);";
const REQUESTS: &str = "/api/v1/requests";
const SLOW: Duration = Duration::from_millis(60);

fn origin() -> Origin {
    Origin::answering("server1", |exchange: &mut Exchange<'_>| match exchange.target() {
        slow if slow.starts_with("/slow") => {
            pause(SLOW);
            ok(exchange)
        }
        "/fails" => {
            exchange.body();
            exchange.answer("500 Internal Server Error", "")
        }
        "/breaks" => {
            exchange.body();
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
            Then::Close
        }
        _ => ok(exchange),
    })
}

fn setup(threads: usize, origin: &Origin) -> Setup {
    let setup = Setup::new(threads).rules(RULES).with_token().pool("standard", &[origin]);
    setup.pool_at("dead", "", &[("gone1", Origin::dead_address())])
}

/// The first of a list that is as wanted. It comes there with a tick of its thread.
#[track_caller]
fn kept(switch: &Switch, list: &str, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    until(what, || {
        let shown = switch.admin_shows(REQUESTS);
        shown[list].as_array().expect("a list").iter().find(|request| is_it(request)).cloned()
    })
}

fn without_a_log_what_is_known_is_shown(threads: usize) {
    let origin = origin();
    let switch = setup(threads, &origin).without_log().start();
    assert_eq!(switch.get("/slow/1").status(), 200);
    let slow = kept(&switch, "slowest", "the slow one", |request| request["rule"] == "slow");
    assert!(slow["total_us"].as_u64() >= Some(SLOW.as_micros() as u64 * 9 / 10), "{slow}");
    for (key, expected) in
        [("listener", "shop"), ("pool", "standard"), ("server", "server1"), ("client", "127.0.0.1")]
    {
        assert_eq!(slow[key], expected, "{slow}");
    }
    assert_eq!((&slow["status"], &slow["tries"]), (&200.into(), &1.into()), "{slow}");
    assert_eq!(
        (&slow["path"], &slow["first_byte_us"]),
        (&Value::Null, &Value::Null),
        "nobody looked: {slow}"
    );
    // From the first look on more is noted.
    let noted = until("steps and names", || {
        assert_eq!(switch.get("/slow/2?secret=7").status(), 200);
        let shown = switch.admin_shows(REQUESTS);
        shown["slowest"].as_array()?.iter().find(|request| request["path"] == "/slow/2").cloned()
    });
    assert_eq!((&noted["method"], &noted["query"]), (&"GET".into(), &Value::Null), "{noted}");
    let [decided, connected, first_byte, total] =
        ["decided_us", "connected_us", "first_byte_us", "total_us"].map(|step| noted[step].as_u64());
    assert!(decided.is_some() && decided <= connected && connected <= first_byte && first_byte <= total);
    assert!(first_byte >= Some(SLOW.as_micros() as u64), "{noted}");
}

fn with_a_log_all_of_it_is(threads: usize) {
    let origin = origin();
    let log = "[access_log]\npath = \"-\"\nquery = true\n";
    let switch = setup(threads, &origin).top(log).start();
    let mut client = switch.client();
    (0..30).for_each(|_| assert_eq!(client.get("/quick").status(), 200));
    assert_eq!(client.ask("GET", "/slow/1?customer=7", "").status(), 200);
    let slow = kept(&switch, "slowest", "the slow one", |request| request["rule"] == "slow");
    let line = switch.log_of("/slow/1");
    for key in [
        "listener",
        "rule",
        "pool",
        "server",
        "status",
        "total_us",
        "decided_us",
        "connected_us",
        "first_byte_us",
        "tries",
        "request_bytes",
        "response_bytes",
        "method",
        "host",
        "path",
        "query",
    ] {
        assert_eq!(slow[key], line[key], "{key}: {slow} {line}");
    }
    assert_eq!(slow["client"], line["client_ip"]);
    assert_eq!(slow["query"], "customer=7");
    let slowest = switch.admin_shows(REQUESTS)["slowest"].clone();
    let slowest = slowest.as_array().expect("a list");
    assert!(slowest.len() <= 20, "of thirty-one");
    assert!(slowest.is_sorted_by_key(|request| std::cmp::Reverse(request["total_us"].as_u64())));
}

fn what_failed_is_kept_and_what_the_client_did_is_not(threads: usize) {
    let origin = origin();
    let switch = setup(threads, &origin).without_log().start();
    assert_eq!(switch.get("/no").status(), 403);
    assert_eq!(switch.get("/").status(), 200);
    assert_eq!(switch.get("/fails").status(), 500);
    let failed = kept(&switch, "failed", "what the server said", |request| request["status"] == 500);
    assert_eq!((&failed["rule"], &failed["error"]), (&"else".into(), &Value::Null), "{failed}");
    assert!(matches!(switch.get("/gone").status(), 502 | 503));
    let failed = kept(&switch, "failed", "who is not there", |request| request["rule"] == "gone");
    assert!(failed["error"].is_string(), "{failed}");
    // An answer that breaks off had begun well.
    let mut client = switch.client();
    client.send("GET /breaks HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.everything().starts_with("HTTP/1.1 200"));
    let failed = kept(&switch, "failed", "what broke off", |request| request["status"] == 200);
    assert!(failed["error"].as_str().is_some_and(|error| error.contains("server")), "{failed}");
    // The client of this one is gone before it has an answer.
    let mut client = switch.client();
    client.send("GET /slow/left HTTP/1.1\r\nHost: a\r\n\r\n");
    origin.wait_for_requests(4);
    drop(client);
    kept(&switch, "slowest", "who has left", |request| request["rule"] == "slow");
    let shown = switch.admin_shows(REQUESTS);
    let statuses =
        shown["failed"].as_array().expect("a list").iter().map(|request| request["status"].as_u64());
    let mut statuses: Vec<_> = statuses.collect();
    statuses.sort_unstable();
    assert_eq!((statuses.len(), &statuses[..2]), (3, &[Some(200), Some(500)][..]), "{shown}");
}

fn who_is_not_known_sees_no_names(threads: usize) {
    let origin = origin();
    let switch = setup(threads, &origin).start();
    assert_eq!(switch.get("/slow/1").status(), 200);
    let slow = kept(&switch, "slowest", "the slow one", |request| request["path"] == "/slow/1");
    assert!(slow["decided_us"].is_u64(), "{slow}");
    let answer = switch.admin_get(REQUESTS);
    let shown: Value = serde_json::from_str(&answer.text()).expect("JSON");
    assert_eq!(shown["names_requests"], false);
    for request in shown["slowest"].as_array().expect("a list") {
        for key in ["client", "method", "host", "path", "query"] {
            assert_eq!(request[key], Value::Null, "{request}");
        }
    }
    assert_eq!(shown["slowest"][0]["rule"], "slow");
    assert!(shown["slowest"][0]["decided_us"].is_u64());
    // Nor who comes with a token that nobody knows.
    let mut client = Client::plain(switch.admin());
    client.send(format!("GET {REQUESTS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n\r\n"));
    assert!(!client.response().text().contains("/slow/1"));
}
