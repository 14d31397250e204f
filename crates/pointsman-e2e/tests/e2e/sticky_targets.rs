//! `sticky_scope = "listener"`: a client stays with the target that it was first sent to.

use pointsman_e2e::{Origin, Response, Setup, Switch, folder, pointsman};

pointsman_e2e::for_threads!(
    who_was_sent_somewhere_stays_there,
    what_refuses_answers_and_changes_holds_for_all,
    a_server_of_a_rule_is_stayed_with,
    a_target_that_cannot_serve_is_left,
    over_a_reload_that_takes_the_target_out,
    a_cookie_too,
    by_target_rules_lead,
    replay_says_what_it_cannot_tell
);

const RULES: &str = "
NO: if (path == \"/no\") { reject(403, \"no\"); }
A: if (path under \"/a\") { routeTo(alpha, STICKY_ON_IP); }
B: if (path under \"/b\") { setHeader(\"x-class\", \"b\"); routeTo(beta, STICKY_ON_IP); }
S: if (path under \"/s\") { routeTo(beta.b1, STICKY_ON_IP); }
E: if (path under \"/e\") { routeTo(alpha); }
";

/// Servers of three pools.
struct Site {
    alpha: [Origin; 2],
    beta: [Origin; 2],
    rest: Origin,
}

impl Site {
    fn new() -> Site {
        let two = |name: &str| [0, 1].map(|number| Origin::new(&format!("{name}{number}")));
        Site { alpha: two("a"), beta: two("b"), rest: Origin::new("rest") }
    }

    fn setup(&self, threads: usize, scope: &str, rules: &str) -> Setup {
        let ([a0, a1], [b0, b1]) = (&self.alpha, &self.beta);
        Setup::new(threads)
            .listener(&format!("trusted_proxies = [\"127.0.0.1\"]\nsticky_scope = \"{scope}\""))
            .rules(rules)
            .pool("alpha", &[a0, a1])
            .pool("beta", &[b0, b1])
            .pool("standard", &[&self.rest])
            .default_pool("standard")
    }
}

/// What a client gets.
fn ask(switch: &Switch, client: u8, path: &str) -> Response {
    switch.client().ask("GET", path, &format!("X-Forwarded-For: 192.0.2.{client}\r\n"))
}

fn server(switch: &Switch, client: u8, path: &str) -> String {
    ask(switch, client, path).server().to_owned()
}

fn who_was_sent_somewhere_stays_there(threads: usize) {
    let site = Site::new();
    let switch = site.setup(threads, "listener", RULES).start();
    for client in 0..20 {
        assert_eq!(server(&switch, client, "/"), "rest", "nobody has kept it yet");
        let first = server(&switch, client, if client % 2 == 0 { "/a" } else { "/b" });
        assert!(first.starts_with(if client % 2 == 0 { 'a' } else { 'b' }));
        for path in ["/a", "/b", "/s", "/e", "/"] {
            assert_eq!(server(&switch, client, path), first, "{path}");
        }
    }
    assert!((switch.metric("pointsman_sticky_targets", &[]) - 20.0).abs() < 0.5);
}

/// What else a rule does is done.
fn what_refuses_answers_and_changes_holds_for_all(threads: usize) {
    let site = Site::new();
    let switch = site.setup(threads, "listener", RULES).start();
    let first = server(&switch, 1, "/a");
    assert_eq!(ask(&switch, 1, "/no").status(), 403);
    assert_eq!(server(&switch, 1, "/b"), first);
    let origin = site.alpha.iter().find(|origin| origin.name() == first).expect("one of them");
    assert_eq!(origin.last().head.field("x-class"), Some("b"), "the effect of the rule that decided");
}

fn a_server_of_a_rule_is_stayed_with(threads: usize) {
    let site = Site::new();
    let switch = site.setup(threads, "listener", RULES).start();
    for client in 0..10 {
        assert_eq!(server(&switch, client, "/s"), "b1");
        assert_eq!((server(&switch, client, "/a"), server(&switch, client, "/")), ("b1".into(), "b1".into()));
    }
}

/// The rules choose anew then, and that is stayed with.
fn a_target_that_cannot_serve_is_left(threads: usize) {
    let site = Site::new();
    let rules =
        "S: if (path == \"/s\") { routeTo(gamma.g0, STICKY_ON_IP); } A: { routeTo(alpha, STICKY_ON_IP); }";
    let health = "health = { path = \"/\", interval_ms = 100, jitter_percent = 0, rise = 1, fall = 1 }";
    let dead = Origin::new("g0");
    let setup = site.setup(threads, "listener", rules).pool_with("gamma", health, &[&dead]);
    let switch = setup.start();
    assert_eq!((server(&switch, 1, "/s"), server(&switch, 1, "/")), ("g0".to_owned(), "g0".to_owned()));
    drop(dead);
    switch.wait_for_line("server down pool=gamma server=g0");
    let other = server(&switch, 1, "/");
    assert!(other.starts_with('a'));
    assert_eq!(server(&switch, 1, "/s"), other);
}

fn over_a_reload_that_takes_the_target_out(threads: usize) {
    let site = Site::new();
    let setup = site.setup(threads, "listener", RULES);
    let switch = setup.start();
    let firsts: Vec<_> = (0..10).map(|client| server(&switch, client, "/b")).collect();
    let rules = "A: if (path under \"/a\") { routeTo(alpha, STICKY_ON_IP); } B: { routeTo(beta); }";
    switch.reload(&setup.clone().rules(rules), 2);
    for (client, first) in (0..10).zip(&firsts) {
        assert_eq!(server(&switch, client, "/a"), *first, "its target is there, whatever rules say");
    }
    let ([a0, a1], rules) = (&site.alpha, "A: { routeTo(alpha, STICKY_ON_IP); }");
    let without = Setup::new(threads)
        .listener("trusted_proxies = [\"127.0.0.1\"]\nsticky_scope = \"listener\"")
        .rules(rules)
        .pool("alpha", &[a0, a1])
        .default_pool("alpha");
    switch.reload(&without, 3);
    assert!((0..10).all(|client| server(&switch, client, "/").starts_with('a')));
}

fn a_cookie_too(threads: usize) {
    let site = Site::new();
    let rules = "A: if (path == \"/a\") { routeTo(alpha, STICKY_ON_COOKIE); } B: { routeTo(beta, STICKY_ON_COOKIE); }";
    let switch = site.setup(threads, "listener", rules).start();
    for (path, other) in [("/a", "/b"), ("/b", "/a")].repeat(5) {
        let answer = switch.get(path);
        let set = answer.head.field("set-cookie").expect("a cookie");
        let cookie = format!("Cookie: {}\r\n", set.split(';').next().unwrap_or_default());
        for path in [path, other] {
            assert_eq!(switch.client().ask("GET", path, &cookie).server(), answer.server());
        }
    }
}

/// The reason why the others are tests at all. `check` notes what is overridden, `explain` who goes elsewhere.
fn by_target_rules_lead(threads: usize) {
    let site = Site::new();
    let setup = site.setup(threads, "target", RULES);
    let switch = setup.start();
    assert!(server(&switch, 1, "/a").starts_with('a') && server(&switch, 1, "/b").starts_with('b'));
    for (scope, is_noted) in [("target", false), ("listener", true)] {
        let setup = site.setup(threads, scope, RULES).file("request", "GET /b HTTP/1.1\r\nHost: a\r\n\r\n");
        let folder = folder(&[]);
        setup.write(folder.path());
        let output = pointsman(folder.path(), &["check", "pointsman.toml"]).output();
        let note = "is not sent where `A`, `B`, `S` and `E` would send it";
        assert_eq!(output.contains(note), is_noted, "{output}");
        let output = pointsman(folder.path(), &["explain", "pointsman.toml", "request"]).output();
        assert_eq!(output.contains("stays with a target already goes there instead"), is_noted, "{output}");
        assert!(output.contains("B: routeTo(beta, STICKY_ON_IP);"), "{output}");
    }
}

/// Where somebody went who stayed says nothing of a rule.
fn replay_says_what_it_cannot_tell(threads: usize) {
    let site = Site::new();
    let setup = site.setup(threads, "listener", RULES);
    let switch = setup.start();
    assert!(server(&switch, 1, "/a").starts_with('a'));
    assert!(server(&switch, 1, "/b/last").starts_with('a'));
    let line = switch.log_of("/b/last");
    assert_eq!((line["rule"].as_str(), line["pool"].as_str()), (Some("B"), Some("alpha")), "{line}");
    std::fs::write(switch.folder().join("access.log"), switch.output().text()).expect("a writable folder");
    let finished = pointsman(switch.folder(), &["replay", "access.log", "pointsman.toml"]);
    assert!(finished.stdout.contains("which target the client stayed with"), "{}", finished.output());
    assert!(!finished.stdout.contains("becomes"), "{}", finished.output());
}
