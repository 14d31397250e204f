//! The tables of what is refused, read by the codec alone: the same comes of the bytes wherever they are cut.

use pointsman_http::{BodyReader, HeadLimits, RequestHead, Unfinished};

use crate::vectors::unescaped;

/// The columns of a table's rows: outcome, what is wrong, the bytes.
fn rows(table: &str) -> impl Iterator<Item = (&str, &str, Vec<u8>)> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let columns: Vec<_> = line.splitn(4, " | ").collect();
        let [outcome, _, what, bytes] = columns[..] else { panic!("four columns in {line}") };
        (outcome.trim(), what.trim(), unescaped(bytes.trim()))
    })
}

/// Reads messages as the relay does: head, body, the next one, until something is wrong.
struct Connection {
    received: Vec<u8>,
    head: RequestHead,
    unfinished: Unfinished,
    body: Option<BodyReader>,
    outcome: String,
    is_over: bool,
}

impl Connection {
    fn new() -> Connection {
        Connection {
            received: Vec::new(),
            head: RequestHead::default(),
            unfinished: Unfinished::default(),
            body: None,
            outcome: String::new(),
            is_over: false,
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        while !self.is_over && !self.received.is_empty() && self.step() {}
    }

    /// Reads as much as can be read at once; `false` waits for more.
    fn step(&mut self) -> bool {
        if let Some(body) = &mut self.body {
            let Ok(fed) = body.feed(&self.received) else { return self.refuse("!400") };
            self.received.drain(..fed.used);
            if fed.done {
                self.served();
            }
            return fed.done;
        }
        match self.head.parse_on(&self.received, &mut self.unfinished, &HeadLimits::default()) {
            Ok(false) => false,
            Ok(true) => {
                self.received.drain(..self.head.head_bytes());
                let body = BodyReader::new(self.head.framing());
                if body.is_done() {
                    self.served();
                } else {
                    self.body = Some(body);
                }
                true
            }
            Err(refusal) => self.refuse(&refusal.status().to_string()),
        }
    }

    fn served(&mut self) {
        self.body = None;
        self.outcome.push_str("200 ");
        if !self.head.keeps_alive() {
            self.outcome.push_str("close");
            self.is_over = true;
        }
    }

    fn refuse(&mut self, outcome: &str) -> bool {
        self.outcome.push_str(outcome);
        self.is_over = true;
        false
    }

    /// What came of the connection when nothing more comes.
    fn end(mut self) -> String {
        if !self.is_over {
            self.outcome.push_str(if self.body.is_some() { "!end" } else { "end" });
        }
        self.outcome
    }
}

/// What comes of `raw` in pieces that begin at these offsets.
fn outcome<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut connection = Connection::new();
    pieces.into_iter().for_each(|piece| connection.take(piece));
    connection.end()
}

#[test]
fn requests() {
    /// Longer ones are cut at fewer places.
    const CUTS_MAX: usize = 300;
    let mut count = 0;
    for (expected, what, raw) in rows(include_str!("../../../../testdata/refusals/requests.txt")) {
        assert_eq!(outcome([&raw[..]]), expected, "{what}");
        assert_eq!(outcome(raw.chunks(1)), expected, "{what}, one by one");
        for cut in (0..raw.len()).step_by(raw.len().div_ceil(CUTS_MAX)) {
            let (before, behind) = raw.split_at(cut);
            assert_eq!(outcome([before, behind]), expected, "{what}, cut at {cut}");
        }
        count += 1;
    }
    assert!(count >= 250, "{count} rows");
}
