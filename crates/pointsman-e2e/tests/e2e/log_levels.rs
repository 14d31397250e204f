//! How much the switch says of itself: by its configuration, by the admin API, and what it says to who looks for a cause.

use std::time::Instant;

use pointsman_e2e::{Client, Origin, Setup, Switch, until};
use serde_json::{Value, json};

pointsman_e2e::for_threads!(
    as_configured,
    set_for_a_while,
    why_something_failed,
    few_lines_however_much_fails
);

const LEVEL: &str = "/api/v1/log-level";

/// Asks for a reload; what it says of itself hangs on the level.
#[track_caller]
fn reload(switch: &Switch, setup: &Setup) {
    setup.write(switch.folder());
    assert_eq!(switch.admin_ask("POST", "/api/v1/reload", "", "").0.status(), 200);
}

#[track_caller]
fn set(switch: &Switch, level: &Value, lines: &str) -> (u16, Value) {
    let (answer, said) = switch.admin_ask("PUT", LEVEL, lines, &json!({ "level": level }).to_string());
    (answer.status(), said)
}

fn levels(switch: &Switch) -> (Value, Value) {
    let said = switch.admin_shows(LEVEL);
    (said["level"].clone(), said["configured"].clone())
}

/// What is less grave is not said; audit lines always are.
fn as_configured(threads: usize) {
    let origin = Origin::new("origin");
    // Before the table that the token is in.
    let setup = |level: &str| {
        let top = Setup::new(threads).top(&format!("log_level = \"{level}\""));
        top.pool("standard", &[&origin]).with_token()
    };
    let switch = setup("info").start();
    let address =
        |text: &str| text.lines().find(|line| line.starts_with("bind = ")).expect("there").to_owned();
    let first = std::fs::read_to_string(switch.folder().join("pointsman.toml")).expect("it is there");
    let write = |level: &str| {
        let next = setup(level).text();
        let text = next.replace(&address(&next), &address(&first));
        std::fs::write(switch.folder().join("pointsman.toml"), text).expect("a writable folder");
        assert_eq!(switch.admin_ask("POST", "/api/v1/reload", "", "").0.status(), 200);
    };
    for level in ["error", "error", "warn"] {
        write(level);
    }
    switch.wait_for_line("log level=error was=info");
    switch.wait_for_line("log level=warn was=error");
    std::fs::write(switch.folder().join("pointsman.toml"), "threads = 0\n").expect("a writable folder");
    assert_eq!(switch.admin_ask("POST", "/api/v1/reload", "", "").0.status(), 422);
    switch.wait_for_line("reload refused:");
    write("info");
    switch.wait_for_line("reloaded generation=5");
    let audits = || switch.said().matches("audit who=deploy ").count();
    // The last of them comes behind the reload.
    until("all are audited", || (audits() >= 5).then_some(()));
    let said = switch.said();
    assert!(!said.contains("reloaded generation=2") && !said.contains("reloaded generation=4"), "{said}");
    assert_eq!(audits(), 5, "{said}");
}

/// It holds over reloads until the configuration says another one, or null is set.
fn set_for_a_while(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).pool("standard", &[&origin]).with_token();
    let switch = setup.start();
    assert_eq!(levels(&switch), ("info".into(), "info".into()));
    let (status, said) = set(&switch, &"debug".into(), "If-Match: \"warn\"\r\n");
    assert_eq!((status, &said["level"]), (412, &"info".into()), "{said}");
    let (status, said) = set(&switch, &"debug".into(), "If-Match: \"info\"\r\n");
    assert_eq!((status, &said["level"]), (200, &"debug".into()), "{said}");
    let line = "method=PUT target=\"/api/v1/log-level\" status=200";
    switch
        .errors()
        .wait_for(line, |said| (said.starts_with("audit who=deploy ") && said.ends_with(line)).then_some(()));
    reload(&switch, &setup);
    assert_eq!(levels(&switch), ("debug".into(), "info".into()));
    assert_eq!(set(&switch, &Value::Null, "").0, 200);
    assert_eq!(levels(&switch), ("info".into(), "info".into()));
    assert_eq!(set(&switch, &"error".into(), "").0, 200);
    let text = format!("log_level = \"warn\"\n{}", setup.text());
    std::fs::write(switch.folder().join("pointsman.toml"), text).expect("a writable folder");
    assert_eq!(switch.admin_ask("POST", "/api/v1/reload", "", "").0.status(), 200);
    assert_eq!(levels(&switch), ("warn".into(), "warn".into()));
    for body in ["", "{}", "{\"level\":\"loud\"}", "{\"level\":1}", "{\"level\":\"info\",\"x\":1}", "[]"] {
        let (answer, said) = switch.admin_ask("PUT", LEVEL, "", body);
        assert_eq!(answer.status(), 400, "{body} {said}");
    }
    assert_eq!(levels(&switch).0, "warn");
}

/// A probe, a connection to a server and a handshake that fail say why, each with where it went and what was said of it.
fn why_something_failed(threads: usize) {
    let sick = Origin::answering("sick", |exchange| exchange.answer("500 Oh", "no"));
    let plain = Origin::new("plain");
    let authority = pointsman_e2e::Authority::new("one");
    let probed = "health = { path = \"/alive\", interval_ms = 100, fall = 1 }";
    let dead = Origin::dead_address();
    let switch = Setup::new(threads)
        .top("log_level = \"debug\"")
        .tls(&authority.server(&["shop.example"]), "")
        .rules("R1: if (path == \"/tls\") { routeTo(secured); }")
        .pool_at("standard", "", &[("gone", dead)])
        .pool_with("probed", probed, &[&sick])
        .pool_with("secured", "tls = { verify = false }", &[&plain])
        .start();
    let probe =
        switch.wait_for_line("debug: probe failed why=\"status 500\" pool=probed server=sick address=");
    assert!(probe.contains("asked=\"GET /alive of "), "{probe}");
    let mut client = Client::plain(switch.address("shop"));
    let from = client.local();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    switch
        .wait_for_line(&format!("debug: handshake failed listener=shop from={from} why=\"not_tls\" error="));
    let config = pointsman_e2e::TlsClient::new(&authority);
    let stranger = pointsman_e2e::TlsClient::new(&pointsman_e2e::Authority::new("another"));
    assert!(switch.tls_client(&stranger, "shop.example").is_err());
    switch.errors().wait_for("a refused certificate", |line| {
        let is_it = line.starts_with("debug: handshake failed ")
            && line.contains("the peer sent the alert `unknown_ca`");
        is_it.then_some(())
    });
    let mut client = switch.tls_client(&config, "shop.example").expect("a handshake");
    assert_eq!(client.get("/").status(), 502);
    let line = switch.wait_for_line("debug: connect failed pool=standard server=gone address=");
    assert!(line.contains("refused"), "{line}");
    assert_eq!(client.get("/tls").status(), 502);
    let line = switch.wait_for_line("debug: TLS failed pool=secured server=plain address=");
    assert!(line.contains("error="), "{line}");
}

/// Whoever fails on purpose gets ten lines a second.
fn few_lines_however_much_fails(threads: usize) {
    const CONNECTIONS: usize = 400;
    const LINES_A_LOOK: usize = 10;
    let (origin, authority) = (Origin::new("origin"), pointsman_e2e::Authority::new("one"));
    let setup = Setup::new(threads).top("log_level = \"debug\"").pool("standard", &[&origin]);
    let switch = setup.tls(&authority.server(&["shop.example"]), "").start();
    let began = Instant::now();
    for _ in 0..CONNECTIONS {
        let mut client = Client::plain(switch.address("shop"));
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.everything();
    }
    switch.wait_for_line("debug: left out about=clients notes=");
    let looks = began.elapsed().as_secs() as usize + 2;
    let told = switch.said().matches("debug: handshake failed ").count();
    assert!((1..=looks * LINES_A_LOOK).contains(&told), "{told} lines in {looks} looks");
}
