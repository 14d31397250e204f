//! Requests that are refused, by the table in `testdata/refusals/requests.txt`.

use std::fmt::Write as _;

use pointsman_e2e::{Client, Origin, Refused, Setup, Switch, refused, unescape};

pointsman_e2e::for_threads!(table);

/// In how many pieces a request comes at the most: a long one comes in longer pieces.
const PIECES_MAX: usize = 400;

/// What a row asks for.
struct Expected<'a> {
    /// The statuses of the answers, and `close` or `end`.
    words: Vec<&'a str>,
    /// A server may see the head of the request that is refused.
    is_in_body: bool,
}

/// A switch with one server behind it.
struct Stage {
    origin: Origin,
    switch: Switch,
}

fn table(threads: usize) {
    let rows = refused("requests.txt");
    assert!(rows.len() >= 250, "{} rows", rows.len());
    // A head without its body may reach the server late: what it sees is then no other row's business.
    let (strict, lenient) = (Stage::new(threads), Stage::new(threads));
    let mut failures = String::new();
    for row in &rows {
        let expected = Expected::read(&row.outcome);
        let stage = if expected.is_in_body { &lenient } else { &strict };
        let bytes = unescape(&row.text);
        for piece in [bytes.len(), bytes.len().div_ceil(PIECES_MAX)] {
            if let Err(failure) = stage.play(row, &expected, &bytes, piece) {
                let Refused { place, what, .. } = row;
                writeln!(failures, "{place}: {what}, {piece} bytes at a time: {failure}").expect("memory");
            }
        }
    }
    let whole = lenient.origin.requests().iter().filter(|request| request.complete).count();
    assert!(
        failures.is_empty() && whole == 0,
        "{whole} whole requests with a fault in their bodies\n{failures}"
    );
}

impl<'a> Expected<'a> {
    fn read(outcome: &'a str) -> Self {
        let is_in_body = outcome.starts_with('!');
        Self { words: outcome.trim_start_matches('!').split(' ').collect(), is_in_body }
    }

    fn statuses(&self) -> impl Iterator<Item = &'a str> {
        self.words.iter().copied().filter(|word| !["close", "end"].contains(word))
    }

    /// How many requests the server gets.
    fn served(&self) -> usize {
        self.words.iter().filter(|word| **word == "200").count()
    }
}

impl Stage {
    fn new(threads: usize) -> Self {
        let origin = Origin::new("origin");
        let switch = Setup::new(threads).pool("standard", &[&origin]).start();
        Self { origin, switch }
    }

    fn play(&self, row: &Refused, expected: &Expected<'_>, bytes: &[u8], piece: usize) -> Result<(), String> {
        let before = self.origin.count();
        let mut client = self.switch.client();
        for piece in bytes.chunks(piece) {
            // The switch may have had enough.
            if client.try_send(piece).is_err() {
                break;
            }
        }
        if expected.words.ends_with(&["end"]) {
            client.finish_sending();
        }
        for (index, status) in expected.statuses().enumerate() {
            let to_head = index == 0 && row.text.starts_with("HEAD ");
            let seen = next_status(&mut client, to_head);
            if seen != status {
                return Err(format!("{seen} instead of {status}"));
            }
        }
        if !client.closes() {
            return Err("the connection goes on".to_owned());
        }
        let reached = self.origin.requests().split_off(before);
        if !expected.is_in_body && reached.len() != expected.served() {
            return Err(format!("{} requests reached the server: {reached:?}", reached.len()));
        }
        match reached.iter().find(|request| request.complete == expected.is_in_body) {
            Some(request) => Err(format!("the server took it so: {request:?}")),
            None => Ok(()),
        }
    }
}

fn next_status(client: &mut Client, to_head: bool) -> String {
    if to_head {
        return client.response_to_head().status().to_string();
    }
    match client.try_response() {
        Ok(answer) => answer.status().to_string(),
        Err(error) => error.to_string(),
    }
}
