//! Several requests on one connection, sent before the answers to those before them.

mod concurrent;
mod drains;
mod failures;
mod hold;
mod latest;
mod programs;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use pointsman_e2e::{Authority, Client, PATIENCE, RawOrigin, Response, Setup, Switch, TlsClient, read_head};

/// What happens at servers, in order, and which of their answers may go.
#[derive(Clone, Default)]
struct Stage(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    happened: Vec<String>,
    open: BTreeSet<String>,
}

impl Stage {
    /// Lets the answer to `target` go, or go on.
    fn open(&self, target: &str) {
        self.change(|state| state.open.extend([target.to_owned()]));
    }

    fn note(&self, what: String) {
        self.change(|state| state.happened.push(what));
    }

    /// Waits until it may go. Behind a test that has failed nothing hangs.
    fn wait_open(&self, target: &str) {
        self.wait(|state| state.open.contains(target));
    }

    /// Waits until it has happened.
    fn wait_for(&self, what: &str) {
        let has_come = self.wait(|state| state.happened.iter().any(|this| this == what));
        assert!(has_come, "waited for `{what}`: {:?}", self.happened());
    }

    fn happened(&self) -> Vec<String> {
        self.lock().happened.clone()
    }

    fn has(&self, what: &str) -> bool {
        self.happened().iter().any(|this| this == what)
    }

    /// All that happened, but for what is only to be waited for.
    fn told(&self) -> Vec<String> {
        self.happened().into_iter().filter(|what| !what.starts_with("sent ")).collect()
    }

    /// Whether both have happened, one before the other.
    #[track_caller]
    fn expect_order(&self, before: &str, after: &str) {
        let happened = self.happened();
        let place = |what: &str| happened.iter().position(|this| this == what);
        assert!(place(before).is_some() && place(before) < place(after), "{before}, {after}: {happened:?}");
    }

    fn wait(&self, ready: impl Fn(&State) -> bool) -> bool {
        let waited = self.0.1.wait_timeout_while(self.lock(), PATIENCE, |state| !ready(state));
        !waited.expect("no panic under the lock").1.timed_out()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.0.1.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().expect("no panic under the lock")
    }

    /// A server that notes each request (`GET /a/1`), and that it answers (`answers /a/1`), which it does as the
    /// target's words say.
    fn server(&self, name: &'static str) -> RawOrigin {
        let stage = self.clone();
        RawOrigin::serving(move |mut socket, _| while stage.serve(name, &mut socket) {})
    }

    /// Serves a request. Says whether another one may follow.
    fn serve(&self, name: &str, socket: &mut TcpStream) -> bool {
        let Some((head, body)) = read_head(socket) else { return false };
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        read_body(socket, &head, body.len());
        self.note(format!("{method} {target}"));
        let is = |word: &str| target.split('/').any(|other| other == word);
        if is("never") {
            while matches!(socket.read(&mut [0; 1024]), Ok(1..)) {}
            self.note(format!("closed {target}"));
            return false;
        }
        if is("gated") {
            self.wait_open(target);
        }
        self.note(format!("answers {target}"));
        let (first, second) = answer(name, method, target);
        // The switch may have left.
        if socket.write_all(&first).is_err() {
            return false;
        }
        if is("half") {
            self.wait_open(target);
        }
        let is_sent = !is("dies") && socket.write_all(&second).is_ok();
        if is_sent {
            self.note(format!("sent {target}"));
        }
        is_sent && !is("until-close")
    }
}

/// The two parts of an answer.
fn answer(name: &str, method: &str, target: &str) -> (Vec<u8>, Vec<u8>) {
    let is = |word: &str| target.split('/').any(|other| other == word);
    let body = match is("big") {
        true => big(target),
        false => target.as_bytes().to_vec(),
    };
    let (start, length) = (format!("X-Server: {name}\r\n"), body.len());
    let (half, rest) = body.split_at(length / 2);
    let rest = rest.to_vec();
    let mut first = match () {
        () if is("304") => {
            return (format!("HTTP/1.1 304 Not Modified\r\n{start}\r\n").into_bytes(), Vec::new());
        }
        () if is("chunked") => {
            let head = format!("HTTP/1.1 200 OK\r\n{start}Transfer-Encoding: chunked\r\n\r\n");
            let last = format!("{:x}\r\n{target}\r\n0\r\nX-Trailer: {target}\r\n\r\n", target.len());
            return (format!("{head}1\r\n-\r\n").into_bytes(), last.into_bytes());
        }
        () if is("early") => format!(
            "HTTP/1.1 103 Early Hints\r\nLink: <{target}>\r\n\r\n\
             HTTP/1.1 200 OK\r\n{start}Content-Length: {length}\r\n\r\n"
        ),
        () if is("until-close") => format!("HTTP/1.1 200 OK\r\n{start}\r\n"),
        () => format!("HTTP/1.1 200 OK\r\n{start}Content-Length: {length}\r\n\r\n"),
    }
    .into_bytes();
    if method == "HEAD" {
        return (first, Vec::new());
    }
    first.extend_from_slice(half);
    (first, rest)
}

/// More than sockets and buffers hold.
const BIG_BYTES: usize = 24 * 1024 * 1024;

fn big(target: &str) -> Vec<u8> {
    target.bytes().cycle().take(BIG_BYTES).collect()
}

fn read_body(socket: &mut TcpStream, head: &str, came: usize) {
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or_default();
    let mut rest = vec![0; length.saturating_sub(came)];
    // Where the switch breaks off there is no more.
    drop(socket.read_exact(&mut rest));
}

/// `/a` is what no rule decides, and nobody listens behind `/d`.
const RULES: &str = r#"
if (path under "/b") { routeTo(of_b); }
if (path under "/c") { routeTo(of_c); }
if (path under "/d") { routeTo(of_d); }
if (path == "/own") { respond(200, "own"); }
if (path == "/refused") { reject(403, "no"); }
if (path == "/discarded") { discard(); }
"#;

/// No mode is written.
const BY_DEFAULT: &str = "";

/// Longer than any test may take.
const PATIENT: &str = "response_ms_max = 600000\nbody_ms_max = 600000";

/// A switch before three servers, `/a`, `/b` and `/c`, and whatever is on their stage.
struct Shop {
    stage: Stage,
    switch: Switch,
    authority: Option<Authority>,
    _servers: [RawOrigin; 3],
}

impl Shop {
    /// The usual one in this mode.
    fn open(threads: usize, mode: &str) -> Shop {
        Shop::with(threads, mode, Over::Plain, |setup| setup)
    }

    fn with(threads: usize, mode: &str, over: Over, more: impl FnOnce(Setup) -> Setup) -> Shop {
        let (setup, stage, servers, authority) = Shop::setup(threads, mode, over);
        Shop { switch: more(setup).start(), stage, authority, _servers: servers }
    }

    fn setup(threads: usize, mode: &str, over: Over) -> (Setup, Stage, [RawOrigin; 3], Option<Authority>) {
        let stage = Stage::default();
        let servers = ["a", "b", "c"].map(|name| stage.server(name));
        let mut setup = Setup::new(threads).rules(RULES);
        if mode != BY_DEFAULT {
            setup = setup.listener(&format!("pipeline = \"{mode}\""));
        }
        for (name, server) in ["a", "b", "c"].into_iter().zip(&servers) {
            setup = setup.pool_at(&format!("of_{name}"), PATIENT, &[(name, server.address())]);
        }
        setup = setup.pool_at("of_d", "", &[("d", pointsman_e2e::Origin::dead_address())]);
        let authority = (over == Over::Tls).then(|| Authority::new("test CA"));
        if let Some(authority) = &authority {
            setup = setup.tls(&authority.server(&["shop.example"]), "");
        }
        (setup, stage, servers, authority)
    }

    fn client(&self) -> Client {
        match &self.authority {
            None => self.switch.client(),
            Some(authority) => {
                let client = self.switch.tls_client(&TlsClient::new(authority), "shop.example");
                client.expect("a handshake")
            }
        }
    }

    /// Waits until so many requests are at the server.
    fn wait_in_flight(&self, server: &str, count: f64) {
        let in_flight = || self.switch.metric("pointsman_server_in_flight_requests", &[("server", server)]);
        let what = format!("{count} requests at {server}");
        pointsman_e2e::until(&what, || ((in_flight() - count).abs() < 0.5).then_some(()));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Plain,
    Tls,
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n")
}

fn gets(targets: &[&str]) -> String {
    targets.iter().map(|target| get(target)).collect()
}

/// The next answer is that of the server for `target`, whole.
#[track_caller]
fn expect(client: &mut Client, target: &str) -> Response {
    let answer = client.response();
    let body = if target.contains("/chunked") { format!("-{target}") } else { target.to_owned() };
    assert_eq!((answer.status(), answer.text()), (200, body), "{:?}", answer.head);
    assert_eq!(answer.server(), &target[1..2]);
    answer
}
