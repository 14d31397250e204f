//! Answers of servers gone wrong, by the table in `testdata/refusals/answers.txt`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use pointsman_e2e::{
    Exchange, Head, Origin, PATIENCE, Reader, Refused, Setup, Switch, Then, is_closed, refused, unescape,
};

pointsman_e2e::for_threads!(table);

/// In how many pieces the server sends at the most: what is long comes in longer pieces.
const PIECES_MAX: usize = 400;
/// Pools whose patience ends soon: a row that stalls goes to the one that waits for what does not come.
const RULES: &str = "if (path == \"/late-head\") { routeTo(late_head); }\n\
                     if (path == \"/late-body\") { routeTo(late_body); }";

/// What a row asks for.
struct Expected<'a> {
    method: &'a str,
    /// What the client sees where all comes at once, and where the head comes first.
    seen: [&'a str; 2],
    then: &'a str,
    is_reused: bool,
}

/// What the server does with the next request that is not for `/next`.
#[derive(Clone)]
struct Play {
    parts: Vec<Vec<u8>>,
    in_pieces: bool,
    then: Then,
    /// Says when the next part may come.
    go: Arc<Mutex<Receiver<()>>>,
    /// Hears the number of the connection when everything is sent.
    sent: Sender<usize>,
}

/// A switch with one server behind it.
struct Stage {
    switch: Switch,
    play: Arc<Mutex<Option<Play>>>,
    threads: usize,
}

fn table(threads: usize) {
    let rows = refused("refusals/answers.txt");
    assert!(rows.len() >= 130, "{} rows", rows.len());
    let play = Arc::new(Mutex::new(None));
    let current = play.clone();
    let origin = Origin::answering("origin", move |exchange| serve(&current, exchange));
    let switch = Setup::new(threads)
        .rules(RULES)
        .pool("standard", &[&origin])
        .pool_with("late_head", "response_ms_max = 100", &[&origin])
        .pool_with("late_body", "body_ms_max = 100", &[&origin])
        .start();
    let stage = Stage { switch, play, threads };
    let mut failures = String::new();
    for row in &rows {
        let expected = Expected::read(&row.outcome);
        for (in_pieces, seen) in [false, true].into_iter().zip(expected.seen) {
            if let Err(failure) = stage.run(row, &expected, in_pieces, seen) {
                let Refused { place, what, .. } = row;
                let how = if in_pieces { "in pieces" } else { "at once" };
                writeln!(failures, "{place}: {what}, {how}: {failure}").expect("memory");
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

fn serve(current: &Mutex<Option<Play>>, exchange: &mut Exchange<'_>) -> Then {
    exchange.body();
    if exchange.target() == "/next" {
        return exchange.answer("200 OK", "next");
    }
    let play = current.lock().expect("no panic under the lock").clone().expect("a row is played");
    for (index, part) in play.parts.iter().enumerate() {
        if index > 0 {
            // An error says that the client has gone on already: then there is nothing to wait for.
            let go = play.go.lock().expect("no panic under the lock");
            let (Ok(()) | Err(_)) = go.recv_timeout(PATIENCE);
        }
        let piece = if play.in_pieces { part.len().div_ceil(PIECES_MAX) } else { part.len() };
        part.chunks(piece.max(1)).for_each(|piece| exchange.send(piece));
    }
    // Nobody listens to a request that was sent again.
    let (Ok(()) | Err(_)) = play.sent.send(exchange.connection);
    play.then
}

impl<'a> Expected<'a> {
    fn read(outcome: &'a str) -> Self {
        let is_head = outcome.starts_with("HEAD ");
        let words: Vec<_> = outcome.trim_start_matches("HEAD ").split(' ').collect();
        let (at_once, in_pieces) = words[0].split_once('/').unwrap_or((words[0], words[0]));
        let method = if is_head { "HEAD" } else { "GET" };
        Self { method, seen: [at_once, in_pieces], then: words[1], is_reused: words.contains(&"reused") }
    }

    fn target(&self) -> &'static str {
        match (self.then, self.seen[0]) {
            ("stalls", "504") => "/late-head",
            ("stalls", _) => "/late-body",
            _ => "/row",
        }
    }

    fn then(&self) -> Then {
        match self.then {
            "stays" | "stalls" => Then::KeepAlive,
            "closes" => Then::Close,
            "resets" => Then::Reset,
            other => panic!("what is `{other}`?"),
        }
    }
}

impl Stage {
    fn run(
        &self,
        row: &Refused,
        expected: &Expected<'_>,
        in_pieces: bool,
        wanted: &str,
    ) -> Result<(), String> {
        let mut parts: Vec<_> = row.text.split("\\|").map(unescape).collect();
        let waits_at_end = parts.len() > 1;
        if in_pieces && !waits_at_end {
            let head_bytes = end_of_final_head(&parts[0]);
            if head_bytes < parts[0].len() {
                let behind = parts[0].split_off(head_bytes);
                parts.push(behind);
            }
        }
        let (go, may_go) = channel();
        let (sent, all_sent) = channel();
        let go_on = Arc::new(Mutex::new(may_go));
        let play = Play { parts, in_pieces, then: expected.then(), go: go_on, sent };
        *self.play.lock().expect("no panic under the lock") = Some(play);

        let mut client = self.connect();
        ask(&mut client, expected.method, expected.target())?;
        let (seen, head) = watch(&mut client, expected.method == "HEAD", waits_at_end, &go);
        if seen != wanted {
            return Err(format!("the client saw {seen} instead of {wanted}"));
        }
        drop(go);
        let played_on = all_sent.recv_timeout(PATIENCE).map_err(|error| error.to_string())?;
        let next_on = answer_of_next(&mut self.connect())?;
        if self.threads == 1 && expected.is_reused && next_on != played_on {
            return Err("its connection was not used again".to_owned());
        }
        if !expected.is_reused && next_on == played_on {
            return Err("its connection was used again".to_owned());
        }
        // The next answer on this connection is the next one's, too.
        if head.is_some_and(|head| head.field("connection") != Some("close")) && seen != "cut" {
            answer_of_next(&mut client)?;
        }
        Ok(())
    }

    fn connect(&self) -> Reader<TcpStream> {
        let socket = TcpStream::connect(self.switch.address("shop")).expect("the switch listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("an open socket");
        Reader::new(socket)
    }
}

fn ask(client: &mut Reader<TcpStream>, method: &str, target: &str) -> Result<(), String> {
    let request = format!("{method} {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    client.stream().write_all(request.as_bytes()).map_err(|error| error.to_string())
}

/// What the client sees: a status, or that an answer is not whole. The server goes on when the head has
/// come, or at the end.
fn watch(
    client: &mut Reader<TcpStream>,
    to_head: bool,
    waits_at_end: bool,
    go: &Sender<()>,
) -> (String, Option<Head>) {
    let head = loop {
        match client.head() {
            Ok(Some(head)) if head.word(1).starts_with('1') => {}
            Ok(Some(head)) => break head,
            Ok(None) => return ("no answer".to_owned(), None),
            Err(error) => return (error.to_string(), None),
        }
    };
    client.begin_body(head.response_framing(to_head));
    // The server may have nothing more to say, and be gone.
    let go_on = || {
        let (Ok(()) | Err(_)) = go.send(());
    };
    if !waits_at_end {
        go_on();
    }
    let seen = match client.rest() {
        Ok(_) => head.word(1).to_owned(),
        Err(error) if is_closed(&error) => "cut".to_owned(),
        Err(error) => error.to_string(),
    };
    go_on();
    (seen, Some(head))
}

/// Asks for `/next`, and says on which of the server's connections the answer came.
fn answer_of_next(client: &mut Reader<TcpStream>) -> Result<usize, String> {
    ask(client, "GET", "/next")?;
    let failed = |error: std::io::Error| format!("the next request: {error}");
    let head = client.head().map_err(failed)?.ok_or("the next request has no answer")?;
    client.begin_body(head.response_framing(false));
    let body = client.rest().map_err(failed)?;
    let connection = head.field("x-connection").and_then(|number| number.parse().ok());
    match (head.word(1), body.bytes.as_slice(), connection) {
        ("200", b"next", Some(connection)) => Ok(connection),
        _ => Err(format!("the next request got {head:?} {:?}", String::from_utf8_lossy(&body.bytes))),
    }
}

/// Where the final answer's head ends, interim answers before it; at the end where it does not.
fn end_of_final_head(bytes: &[u8]) -> usize {
    let mut start = 0;
    while let Some(length) = bytes[start..].windows(4).position(|window| window == b"\r\n\r\n") {
        let is_interim = bytes[start..].starts_with(b"HTTP/1.1 1");
        start += length + 4;
        if !is_interim {
            return start;
        }
    }
    bytes.len()
}
