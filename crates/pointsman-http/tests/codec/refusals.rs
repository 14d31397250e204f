//! The tables of what is refused, read by the codec alone: the same comes of the bytes wherever they are cut.

use pointsman_http::{AnswerTo, BodyReader, HeadLimits, RequestHead, ResponseHead, Unfinished};

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
            // The connections of the table are plain.
            Ok(true) if self.head.check_scheme(&self.received, "http").is_err() => self.refuse("421"),
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

/// Longer messages are cut at fewer places.
const CUTS_MAX: usize = 300;

#[test]
fn requests() {
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

/// What a server sends becomes one answer or one fault, wherever it is cut: statuses, then the body's length
/// and how it ends.
fn answer<'a>(to: AnswerTo, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let (mut received, mut body) = (Vec::new(), None::<BodyReader>);
    let (mut head, mut unfinished) = (ResponseHead::default(), Unfinished::default());
    let (mut outcome, mut body_bytes) = (String::new(), 0);
    for piece in pieces {
        received.extend_from_slice(piece);
        while body.is_none() {
            match head.parse_on(&received, &mut unfinished, to, &HeadLimits::default()) {
                Ok(false) => break,
                Ok(true) => {
                    received.drain(..head.head_bytes());
                    outcome.push_str(&format!("{} ", head.status()));
                    body = (!head.is_interim()).then(|| BodyReader::new(head.framing()));
                }
                Err(refusal) => return format!("{outcome}{refusal:?}"),
            }
        }
        if let Some(body) = &mut body {
            match body.feed(&received) {
                Ok(fed) => {
                    body_bytes += fed.used;
                    received.drain(..fed.used);
                }
                Err(fault) => return format!("{outcome}{fault:?}"),
            }
        }
    }
    match body {
        None => format!("{outcome}unfinished"),
        Some(body) if body.is_done() => format!("{outcome}{body_bytes} and {} behind", received.len()),
        Some(body) if body.ends_at_close() => format!("{outcome}{body_bytes} until close"),
        Some(_) => format!("{outcome}{body_bytes} unfinished"),
    }
}

#[test]
fn answers() {
    let mut count = 0;
    for (expected, what, raw) in rows(include_str!("../../../../testdata/refusals/answers.txt")) {
        let to = if expected.starts_with("HEAD ") { AnswerTo::Head } else { AnswerTo::Other };
        let whole = answer(to, [&raw[..]]);
        assert_eq!(answer(to, raw.chunks(1)), whole, "{what}, one by one");
        for cut in (0..raw.len()).step_by(raw.len().div_ceil(CUTS_MAX).max(1)) {
            let (before, behind) = raw.split_at(cut);
            assert_eq!(answer(to, [before, behind]), whole, "{what}, cut at {cut}");
        }
        // Of what is reused nothing is left over, and what the codec refuses is no good answer.
        assert!(!expected.ends_with("reused") || whole.ends_with(" and 0 behind"), "{what}: {whole}");
        let is_refused = whole.ends_with(|last: char| last.is_ascii_alphabetic())
            && !["unfinished", "behind", "close"].iter().any(|word| whole.ends_with(word));
        assert!(!is_refused || expected.contains("502"), "{what}: {whole}");
        count += 1;
    }
    assert!(count >= 130, "{count} rows");
}
