//! What a client is known by may be given by its server: whoever shows it belongs there from then on.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pointsman_e2e::{Exchange, Origin, Setup, Switch, Then};

pointsman_e2e::for_threads!(
    a_cookie_of_the_application,
    by_the_name_of_a_cookie,
    a_field_of_the_answer,
    a_session_that_gets_another_name,
    the_answer_that_begins_it_must_be_seen,
    with_its_target,
    nothing_is_learned_where_nothing_is_remembered
);

/// Servers that begin a session for whoever asks for one, `/login` also where there is one.
pub(crate) fn servers() -> Vec<Origin> {
    let sessions = Arc::new(AtomicUsize::new(0));
    let server = |number: usize| {
        let sessions = sessions.clone();
        let name = format!("s{number}");
        let own = name.clone();
        Origin::answering(&name, move |exchange: &mut Exchange<'_>| {
            exchange.body();
            let session = match exchange.target() {
                "/login" => {
                    let session = format!("session-{}", sessions.fetch_add(1, Ordering::SeqCst));
                    format!(
                        "Set-Cookie: other=1\r\nSet-Cookie: sid={session}; Path=/; HttpOnly\r\nX-Session: {session}\r\n"
                    )
                }
                _ => String::new(),
            };
            exchange
                .send(format!("HTTP/1.1 200 OK\r\nX-Server: {own}\r\n{session}Content-Length: 0\r\n\r\n"));
            Then::KeepAlive
        })
    };
    (0..4).map(server).collect()
}

pub(crate) fn setup(threads: usize, stickiness: &str, servers: &[Origin]) -> Setup {
    let servers: Vec<&Origin> = servers.iter().collect();
    let rule = format!("R1: {{ routeTo(standard, {stickiness}); }}");
    Setup::new(threads).rules(&rule).pool("standard", &servers)
}

/// The session that a new one begins, and its server.
pub(crate) fn login(switch: &Switch, fields: &str) -> (String, String) {
    let answer = switch.client().ask("GET", "/login", fields);
    (answer.head.field("x-session").expect("a session").to_owned(), answer.server().to_owned())
}

/// Twenty sessions, each with the server that began it.
fn all_stay(switch: &Switch, field: impl Fn(&str) -> String) {
    let sessions: Vec<_> = (0..20).map(|_| login(switch, "")).collect();
    assert_eq!(sessions.iter().map(|(_, server)| server).collect::<HashSet<_>>().len(), 4);
    for _ in 0..2 {
        for (session, server) in &sessions {
            assert_eq!(switch.client().ask("GET", "/", &field(session)).server(), server, "{session}");
        }
    }
}

fn a_cookie_of_the_application(threads: usize) {
    let servers = servers();
    let switch = setup(threads, "STICKY_ON(cookie[\"sid\"])", &servers).start();
    all_stay(&switch, |session| format!("Cookie: a=b; sid={session}\r\n"));
    assert!(switch.metric("pointsman_sticky_exceptions", &[]) > 4.5);
    // What no server has given goes by its hash, each time alike.
    let seen = |sid: usize| -> HashSet<String> {
        let field = format!("Cookie: sid=stranger-{sid}\r\n");
        (0..3).map(|_| switch.client().ask("GET", "/", &field).server().to_owned()).collect()
    };
    assert!((0..10).all(|sid| seen(sid).len() == 1));
}

fn by_the_name_of_a_cookie(threads: usize) {
    let servers = servers();
    let switch = setup(threads, "STICKY_ON_COOKIE(\"sid\")", &servers).start();
    all_stay(&switch, |session| format!("Cookie: sid={session}\r\n"));
}

/// As a session of the Model Context Protocol has its id.
fn a_field_of_the_answer(threads: usize) {
    let servers = servers();
    let switch = setup(threads, "STICKY_ON(header[\"x-session\"])", &servers).start();
    all_stay(&switch, |session| format!("X-Session: {session}\r\n"));
}

/// As after a login it should: the new one is where the old one was.
fn a_session_that_gets_another_name(threads: usize) {
    let servers = servers();
    let switch = setup(threads, "STICKY_ON(cookie[\"sid\"])", &servers).start();
    for _ in 0..10 {
        let (mut session, first) = login(&switch, "");
        for _ in 0..3 {
            let server;
            (session, server) = login(&switch, &format!("Cookie: sid={session}\r\n"));
            assert_eq!(server, first);
        }
    }
}

/// As the guide has it: a rule that asks whether the cookie exists never sees the answer to a login.
fn the_answer_that_begins_it_must_be_seen(threads: usize) {
    let servers = servers();
    let shop = "shop: if (cookie[\"sid\"] exists) { routeTo(standard, STICKY_ON(cookie[\"sid\"])); }";
    let with = |login: &str| {
        setup(threads, "NON_STICKY", &servers).rules(&format!("{login}{shop} else: routeTo(standard);"))
    };
    let switch = with("").start();
    let moves = |_: &usize| {
        let (session, server) = login(&switch, "");
        switch.client().ask("GET", "/", &format!("Cookie: sid={session}\r\n")).server() != server
    };
    // By chance alone all twenty would be at home once in a million million runs.
    assert!((0..20).filter(moves).count() > 0);
    assert!(switch.metric("pointsman_sticky_exceptions", &[]) < 0.5);
    let seen = "login: if (path == \"/login\") { routeTo(standard, STICKY_ON(cookie[\"sid\"])); } ";
    all_stay(&with(seen).start(), |session| format!("Cookie: sid={session}\r\n"));
}

/// With `sticky_scope = "listener"` the session stays with the pool that it began in, too.
fn with_its_target(threads: usize) {
    let (here, there) = (servers(), Origin::new("there"));
    let rules = "R1: if (path == \"/login\") { routeTo(standard, STICKY_ON(cookie[\"sid\"])); } R2: { routeTo(other); }";
    let setup = setup(threads, "NON_STICKY", &here).rules(rules).pool("other", &[&there]);
    let switch = setup.listener("sticky_scope = \"listener\"").start();
    all_stay(&switch, |session| format!("Cookie: sid={session}\r\n"));
    assert_eq!(switch.get("/").server(), "there");
}

fn nothing_is_learned_where_nothing_is_remembered(threads: usize) {
    let servers = servers();
    let setup = setup(threads, "STICKY_ON(cookie[\"sid\"])", &servers).top("sticky_entries_max = 0");
    let switch = setup.start();
    let moves = |_: &usize| {
        let (session, server) = login(&switch, "");
        switch.client().ask("GET", "/", &format!("Cookie: sid={session}\r\n")).server() != server
    };
    // By chance alone all twenty would be at home once in a million million runs.
    assert!((0..20).filter(moves).count() > 0);
}
