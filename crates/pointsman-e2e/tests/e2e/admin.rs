//! The admin API: who may ask what.

use pointsman_e2e::{ADMIN_TOKEN, Authority, Client, Origin, Pair, Response, Setup, Switch, TlsClient, ends};
use serde_json::Value;

pointsman_e2e::for_threads!(
    every_route,
    every_route_over_tls,
    certificates_instead_of_tokens,
    tls_is_read_again,
    names_and_pages_over_tls,
    browsers,
    bodies,
    tokens_are_read_again,
    changes_are_kept,
);

fn start(threads: usize) -> (Origin, Setup, Switch) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).pool("standard", &[&origin]).with_token();
    let switch = setup.start();
    (origin, setup, switch)
}

/// A request with these header lines, each with its line end.
fn ask(switch: &Switch, method: &str, path: &str, lines: &str) -> Response {
    let host = switch.admin().to_string();
    ask_over(Client::plain(switch.admin()), method, path, &format!("Host: {host}\r\n{lines}"))
}

/// The same over a connection that is there.
fn ask_over(mut client: Client, method: &str, path: &str, lines: &str) -> Response {
    client.send(format!("{method} {path} HTTP/1.1\r\n{lines}\r\n"));
    client.response()
}

/// The admin listener speaks TLS under a name, and takes certificates of an authority.
pub(crate) struct Secured {
    pub(crate) authority: Authority,
    clients: Authority,
    pub(crate) ours: Pair,
}

impl Secured {
    pub(crate) fn new() -> Secured {
        let clients = Authority::new("clients");
        Secured { authority: Authority::new("switches"), ours: clients.client("ops", &[]), clients }
    }

    pub(crate) fn setup(&self, threads: usize, origin: &Origin, keys: &str) -> Setup {
        let files = "certificate = \"admin.crt\", key = \"admin.key\", client_ca = \"clients.crt\"";
        let setup = Setup::new(threads).pool("standard", &[origin]).with_token();
        let setup = setup.top(&format!("tls = {{ {files}{keys} }}"));
        let shown = self.authority.server(&["admin.example"]);
        setup.pair("admin", &shown).pair("ops", &self.ours).file("clients.crt", &self.clients.pem())
    }

    fn client(&self, switch: &Switch) -> Client {
        let config = TlsClient::new(&self.authority);
        Client::tls(switch.admin(), &config, "admin.example").expect("a handshake")
    }

    fn showing(&self, switch: &Switch, pair: &Pair) -> std::io::Result<Client> {
        Client::tls(switch.admin(), &TlsClient::identified(&self.authority, pair), "admin.example")
    }

    fn identified(&self, switch: &Switch) -> Client {
        self.showing(switch, &self.ours).expect("a handshake")
    }
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
    check_routes(&switch, &|| Client::plain(switch.admin()));
}

/// The same under TLS, where no certificate is shown.
fn every_route_over_tls(threads: usize) {
    let (origin, secured) = (Origin::new("origin"), Secured::new());
    let switch = secured.setup(threads, &origin, "").start();
    check_routes(&switch, &|| secured.client(&switch));
}

/// What is asked while somebody types leaves no audit line where it is answered.
const IS_TYPED: [&str; 3] = ["/rules/check", "/rules/explain", "/rules/format"];

/// Every route, as method and path, and whether it is described to need something.
fn routes(document: &Value) -> Vec<(String, String, bool)> {
    // Whoever may ask gets an answer, though not always that there is such a one.
    let names = [
        ("{name}", "shop"),
        ("{n}", "1"),
        ("{pool}", "standard"),
        ("{server}", "origin"),
        ("{id}", "1"),
        ("{client}", "0123456789abcdef"),
    ];
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let path = names.iter().fold(path.clone(), |path, (brace, name)| path.replace(brace, name));
        assert!(!path.contains('{'), "{path} names something else");
        for (method, operation) in methods.as_object().expect("methods") {
            let ways = operation["security"].as_array().expect("a list");
            let is_free = ways.iter().any(|way| way.as_object().is_some_and(serde_json::Map::is_empty));
            assert_eq!(ways.len(), if is_free { 3 } else { 2 }, "a token, a certificate, or nothing");
            routes.push((method.to_ascii_uppercase(), path.clone(), !is_free));
        }
    }
    routes
}

fn check_routes(switch: &Switch, connect: &dyn Fn() -> Client) {
    let ask = |method: &str, path: &str, lines: &str| {
        ask_over(connect(), method, path, &format!("Host: localhost\r\n{lines}"))
    };
    let answer = ask("GET", "/api/v1/openapi.json", "");
    assert_eq!((answer.status(), answer.head.field("content-type")), (200, Some("application/json")));
    let document: Value = serde_json::from_str(&answer.text()).expect("JSON");
    let mut changes = 0;
    for (method, path, needs_token) in &routes(&document) {
        // What is asked of the rules that serve stands in a body, and nothing changes.
        let is_question = path.ends_with("/shop/explain");
        assert_eq!(*needs_token, method != "GET" && !is_question, "{method} {path}");
        if is_question {
            problem(&ask(method, path, ""), 400);
            continue;
        }
        if !needs_token {
            let status = ask(method, path, "").status();
            assert!(matches!(status, 200 | 404 | 409), "{method} {path} {status}");
            let mut client = connect();
            client.send(format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            assert_eq!(client.head().word(1), status.to_string(), "HEAD {path}");
            assert!(client.closes(), "HEAD {path}");
            continue;
        }
        changes += 1;
        for given in ["".to_owned(), authorization(&ADMIN_TOKEN.replace('8', "9")), authorization("")] {
            let answer = ask(method, path, &given);
            problem(&answer, 401);
            assert_eq!(answer.head.field("www-authenticate"), Some("Bearer realm=\"pointsman\""));
        }
        wait_for_audit(switch, &format!("method={method} target=\"{path}\" status=401"), "-");
        let answer = ask("BREW", path, &authorization(ADMIN_TOKEN));
        problem(&answer, 405);
        assert!(
            answer.head.field("allow").is_some_and(|allow| allow.contains(method.as_str())),
            "{answer:?}"
        );
    }
    assert!(changes > 0);
    problem(&ask("GET", "/nothing", ""), 404);
    problem(&ask("POST", "/api/v1/reload?dry=true", &authorization(ADMIN_TOKEN)), 400);
    assert_eq!(switch.get("/").status(), 200);
}

fn wait_for_audit(switch: &Switch, what: &str, who: &str) {
    let start = format!("audit who={who} ");
    switch.errors().wait_for(what, |said| (said.starts_with(&start) && said.contains(what)).then_some(()));
}

/// Whoever shows a certificate of the authority that is named may do what a token may, and the audit line says who that
/// is; another certificate is no way in.
fn certificates_instead_of_tokens(threads: usize) {
    let (origin, secured) = (Origin::new("origin"), Secured::new());
    let switch = secured.setup(threads, &origin, "").start();
    let answer = ask_over(secured.client(&switch), "GET", "/api/v1/openapi.json", "Host: localhost\r\n");
    let document: Value = serde_json::from_str(&answer.text()).expect("JSON");
    for (method, path, needs_token) in &routes(&document) {
        let answer = ask_over(secured.identified(&switch), method, path, "Host: localhost\r\n");
        let status = answer.status();
        assert!(matches!(status, 200 | 400 | 404 | 409 | 422 | 428), "{method} {path} {answer:?}");
        let line = format!("method={method} target=\"{path}\" status={status}");
        if *needs_token && !IS_TYPED.iter().any(|typed| path.ends_with(typed)) {
            wait_for_audit(&switch, &line, "CN=ops");
        } else {
            assert!(!switch.said().contains(&line), "{line}");
        }
    }
    // What else is shown counts for nothing beside it.
    let both = format!("Host: localhost\r\n{}", authorization("no"));
    assert_eq!(ask_over(secured.identified(&switch), "POST", "/api/v1/reload", &both).status(), 200);
    let versions = ask_over(secured.identified(&switch), "GET", "/api/v1/plan", "Host: localhost\r\n");
    assert!(versions.text().contains("\"generation\": 3"), "{versions:?}");
    for stranger in [Authority::new("clients").client("ops", &[]), secured.authority.client("ops", &[])] {
        let tried = secured.showing(&switch, &stranger).and_then(|mut client| {
            client.try_send("POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
            client.try_response()
        });
        assert!(tried.is_err(), "{tried:?}");
    }
    let strict = secured.setup(threads, &origin, ", client_auth = \"require\"").start();
    let mut nobody = secured.client(&strict);
    let tried = nobody
        .try_send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .and_then(|()| nobody.try_response());
    assert!(tried.is_err(), "{tried:?}");
    let answer = ask_over(secured.identified(&strict), "GET", "/health", "Host: localhost\r\n");
    assert_eq!(answer.status(), 200);
    // A client that forgot TLS reads that.
    let mut plain = Client::plain(switch.admin());
    plain.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let detail = problem(&plain.response(), 400);
    assert_eq!(detail["detail"], "a plain HTTP request was sent to a TLS port: use https");
}

/// Another certificate, and other authorities of clients, hold from the reload on; the certificate is listed, and can be
/// replaced there, too.
fn tls_is_read_again(threads: usize) {
    let (origin, before, after) = (Origin::new("origin"), Secured::new(), Secured::new());
    let switch = before.setup(threads, &origin, "").start();
    let listed = ask_over(before.client(&switch), "GET", "/api/v1/certificates", "Host: localhost\r\n");
    let listed: Value = serde_json::from_str(&listed.text()).expect("JSON");
    let shown = &listed["certificates"][0];
    assert_eq!((&shown["admin"], &shown["subject"]), (&true.into(), &"CN=admin.example".into()), "{listed}");
    let text = std::fs::read_to_string(switch.folder().join("pointsman.toml")).expect("it is there");
    after.setup(threads, &origin, "").write(switch.folder());
    std::fs::write(switch.folder().join("pointsman.toml"), text).expect("a writable folder");
    switch.signal("HUP");
    switch.wait_for_line("reloaded generation=2");
    let reload = |client| ask_over(client, "POST", "/api/v1/reload", "Host: localhost\r\n").status();
    assert_eq!(reload(after.identified(&switch)), 200);
    assert!(before.showing(&switch, &before.ours).is_err(), "the old one is shown no more");
    let stale = TlsClient::identified(&after.authority, &before.ours);
    let tried = Client::tls(switch.admin(), &stale, "admin.example").and_then(|mut client| {
        client.try_send("POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        client.try_response()
    });
    assert!(tried.is_err(), "{tried:?}");
    let new = after.authority.server(&["admin.example"]);
    let pem = format!("{}{}", new.certificate, new.key);
    let id = shown["id"].as_str().expect("an id");
    let lines = format!("Host: localhost\r\nIf-Match: *\r\nContent-Length: {}\r\n", pem.len());
    let mut client = after.identified(&switch);
    client.send(format!("PUT /api/v1/certificates/{id} HTTP/1.1\r\n{lines}\r\n{pem}"));
    let answer = client.response();
    assert_eq!(answer.status(), 200, "{answer:?}");
    assert!(answer.text().contains(&pointsman_e2e::sha256_hex(&new.der)), "{answer:?}");
    switch.wait_for_line("certificate replaced file=");
    // Commands find all that they need in the configuration, or are told.
    for words in [["reload", "--json"], ["top", "--once"]] {
        ends(switch.folder(), &words, 0, &["generation"]);
    }
    let identified = ["reload", "--cert", "ops.crt", "--key", "ops.key"];
    ends(switch.folder(), &identified, 0, &["reloaded generation="]);
    switch.wait_for_line("audit who=CN=ops ");
    ends(switch.folder(), &["top", "--once", "--ca", "clients.crt"], 2, &["cannot be asked", "--ca FILE"]);
    ends(switch.folder(), &["reload", "--key", "ops.key"], 2, &["`--key` needs `--cert`"]);
}

/// Under TLS a name of the certificate is one of its own, and so are pages from there by `https`.
fn names_and_pages_over_tls(threads: usize) {
    let (origin, secured) = (Origin::new("origin"), Secured::new());
    let switch = secured.setup(threads, &origin, "").start();
    let check = |lines: &str, status: u16| {
        let answer = ask_over(secured.client(&switch), "GET", "/health", lines);
        assert_eq!(answer.status(), status, "{lines} {answer:?}");
    };
    check("Host: admin.example:9090\r\n", 200);
    check("Host: ADMIN.example\r\nOrigin: https://admin.example\r\n", 200);
    check("Host: admin.example\r\nOrigin: http://admin.example\r\n", 403);
    check("Host: other.example\r\n", 403);
    let long = format!("Host: localhost\r\nContent-Length: 1000000\r\n\r\n{}", "x".repeat(1_000_000));
    let answer = ask_over(secured.identified(&switch), "POST", "/api/v1/reload", &long);
    problem(&answer, 413);
}

/// Web pages of others get nothing, under whatever name they come.
fn browsers(threads: usize) {
    let (_origin, _, switch) = start(threads);
    let token = authorization(ADMIN_TOKEN);
    let own = format!("{token}Origin: http://{}\r\n", switch.admin());
    assert_eq!(ask(&switch, "POST", "/api/v1/reload", &own).status(), 200);
    problem(&ask(&switch, "POST", "/api/v1/reload", &format!("{token}Origin: http://page.example\r\n")), 403);
    problem(&ask(&switch, "GET", "/metrics", "Origin: null\r\n"), 403);
    // A picture on a page of others, or a link there; a link to the console asks nothing of the switch.
    problem(&ask(&switch, "GET", "/api/v1/versions/1/diff", "Sec-Fetch-Site: cross-site\r\n"), 403);
    assert_eq!(ask(&switch, "GET", "/console/", "Sec-Fetch-Site: cross-site\r\n").status(), 200);
    let under_another_name = |method_and_path: &str, lines: &str| {
        let mut client = Client::plain(switch.admin());
        client.send(format!("{method_and_path} HTTP/1.1\r\nHost: rebound.example\r\n{lines}\r\n"));
        client.response()
    };
    problem(&under_another_name("GET /metrics", ""), 403);
    // A page has no token: who shows one may use any name, but is no page of others.
    assert_eq!(under_another_name("POST /api/v1/reload", &token).status(), 200);
    let from_page = format!("{token}Origin: http://page.example\r\n");
    problem(&under_another_name("POST /api/v1/reload", &from_page), 403);
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
