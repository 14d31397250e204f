//! The admin API: who may ask what.

use pointsman_e2e::{ADMIN_TOKEN, Client, Origin, Response, Setup, Switch};
use serde_json::Value;

pointsman_e2e::for_threads!(every_route, browsers, bodies, tokens_are_read_again, changes_are_kept);

fn start(threads: usize) -> (Origin, Setup, Switch) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).pool("standard", &[&origin]).with_token();
    let switch = setup.start();
    (origin, setup, switch)
}

/// A request with these header lines, each with its line end.
fn ask(switch: &Switch, method: &str, path: &str, lines: &str) -> Response {
    let mut client = Client::plain(switch.admin());
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{lines}\r\n", switch.admin()));
    client.response()
}

fn authorization(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// What went wrong, as every refusal says it.
#[track_caller]
fn problem(answer: &Response, status: u16) -> Value {
    assert_eq!(answer.status(), status, "{answer:?}");
    assert_eq!(answer.head.field("content-type"), Some("application/problem+json"));
    let problem: Value = serde_json::from_str(&answer.text()).expect("JSON");
    assert_eq!(problem["status"], status);
    assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
    problem
}

/// Every route that is described keeps out who has no token, unless it reads; and each refused change is kept.
fn every_route(threads: usize) {
    let (_origin, _, switch) = start(threads);
    let answer = ask(&switch, "GET", "/api/v1/openapi.json", "");
    assert_eq!((answer.status(), answer.head.field("content-type")), (200, Some("application/json")));
    let document: Value = serde_json::from_str(&answer.text()).expect("JSON");
    let mut changes = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        // Whoever may ask gets an answer, though not always that there is such a one.
        let names = [
            ("{name}", "shop"),
            ("{n}", "1"),
            ("{pool}", "standard"),
            ("{server}", "origin"),
            ("{id}", "1"),
            ("{client}", "0123456789abcdef"),
        ];
        let path = &names.iter().fold(path.clone(), |path, (brace, name)| path.replace(brace, name));
        assert!(!path.contains('{'), "{path} names something else");
        for (method, operation) in methods.as_object().expect("methods") {
            let method = method.to_ascii_uppercase();
            let needs_token = operation["security"].as_array().expect("a list").len() == 1;
            assert_eq!(needs_token, method != "GET", "{method} {path}");
            if !needs_token {
                let status = ask(&switch, &method, path, "").status();
                assert!(matches!(status, 200 | 404 | 409), "{method} {path} {status}");
                let mut client = Client::plain(switch.admin());
                client.send(format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
                assert_eq!(client.head().word(1), status.to_string(), "HEAD {path}");
                assert!(client.closes(), "HEAD {path}");
                continue;
            }
            changes += 1;
            for given in ["".to_owned(), authorization(&ADMIN_TOKEN.replace('8', "9")), authorization("")] {
                let answer = ask(&switch, &method, path, &given);
                problem(&answer, 401);
                assert_eq!(answer.head.field("www-authenticate"), Some("Bearer realm=\"pointsman\""));
            }
            let line = format!("method={method} target=\"{path}\" status=401");
            switch.errors().wait_for(&line, |said| {
                (said.starts_with("audit who=- ") && said.contains(&line)).then_some(())
            });
            let answer = ask(&switch, "BREW", path, &authorization(ADMIN_TOKEN));
            problem(&answer, 405);
            assert!(answer.head.field("allow").is_some_and(|allow| allow.contains(&method)), "{answer:?}");
        }
    }
    assert!(changes > 0);
    problem(&ask(&switch, "GET", "/nothing", ""), 404);
    problem(&ask(&switch, "POST", "/api/v1/reload?dry=true", &authorization(ADMIN_TOKEN)), 400);
    assert_eq!(switch.get("/").status(), 200);
}

/// Web pages of others get nothing, under whatever name they come.
fn browsers(threads: usize) {
    let (_origin, _, switch) = start(threads);
    let token = authorization(ADMIN_TOKEN);
    let own = format!("{token}Origin: http://{}\r\n", switch.admin());
    assert_eq!(ask(&switch, "POST", "/api/v1/reload", &own).status(), 200);
    problem(&ask(&switch, "POST", "/api/v1/reload", &format!("{token}Origin: http://page.example\r\n")), 403);
    problem(&ask(&switch, "GET", "/metrics", "Origin: null\r\n"), 403);
    let mut client = Client::plain(switch.admin());
    client.send(format!("POST /api/v1/reload HTTP/1.1\r\nHost: rebound.example\r\n{token}\r\n"));
    problem(&client.response(), 403);
    switch.wait_for_line("audit who=deploy ");
}

/// What is too long is refused, and the answer is read although nobody reads the body; a short one is awaited.
fn bodies(threads: usize) {
    let (_origin, _, switch) = start(threads);
    let token = authorization(ADMIN_TOKEN);
    let long = format!("Content-Length: 1000000\r\n\r\n{}", "x".repeat(1_000_000));
    problem(&ask(&switch, "POST", "/api/v1/reload", &format!("{token}{long}")), 413);
    problem(&ask(&switch, "POST", "/api/v1/reload", &long), 401);
    let short = format!("{token}Content-Length: 2\r\nExpect: 100-continue\r\n");
    let mut client = Client::plain(switch.admin());
    client.send(format!("POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n{short}\r\n"));
    client.send("{}");
    let answer = client.response();
    assert_eq!((answer.status(), answer.interim.len()), (200, 1), "{answer:?}");
}

/// A token that stands in the file no more is known no more, from the reload on.
fn tokens_are_read_again(threads: usize) {
    let (_origin, setup, switch) = start(threads);
    let new = ADMIN_TOKEN.replace('8', "9");
    let reload = |token: &str| ask(&switch, "POST", "/api/v1/reload", &authorization(token)).status();
    assert_eq!((reload(&new), reload(ADMIN_TOKEN)), (401, 200));
    setup.file("admin.token", &new).write(switch.folder());
    assert_eq!(reload(ADMIN_TOKEN), 200, "the last that it is good for");
    assert_eq!((reload(ADMIN_TOKEN), reload(&new)), (401, 200));
}

/// Each change is a line of the file, also one that was refused, and also after the file was moved away; what cannot be
/// written is said.
fn changes_are_kept(threads: usize) {
    let (_origin, setup, switch) = start(threads);
    let text = setup.text().replace("token_file", "audit_log = \"audit.log\"\ntoken_file");
    std::fs::write(switch.folder().join("pointsman.toml"), text).expect("a writable folder");
    let change = |lines: &str| ask(&switch, "POST", "/api/v1/reload", lines).status();
    let kept = || -> Vec<Value> {
        let text = std::fs::read_to_string(switch.folder().join("audit.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let token = authorization(ADMIN_TOKEN);
    assert_eq!((change(&token), change("")), (200, 401));
    let seen = kept();
    let facts: Vec<_> =
        seen.iter().map(|line| (&line["who"], &line["status"], line["refusal"].is_null())).collect();
    assert_eq!(facts, [(&"deploy".into(), &200.into(), true), (&Value::Null, &401.into(), false)]);
    assert!(seen[0]["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{seen:?}");
    assert!(seen[0]["from"].as_str().is_some_and(|from| from.starts_with("127.0.0.1:")), "{seen:?}");
    std::fs::rename(switch.folder().join("audit.log"), switch.folder().join("old.log")).expect("it is there");
    assert_eq!((change(&token), kept().len()), (200, 1));
    std::fs::remove_file(switch.folder().join("audit.log")).expect("it is there");
    std::fs::create_dir(switch.folder().join("audit.log")).expect("a writable folder");
    assert_eq!(change(&token), 200);
    switch.wait_for_line("audit log not written path=");
}
