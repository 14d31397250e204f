//! The access log of the soak: a process of its own reads every line as it is written, and at the end what it
//! counted is held against what the clients saw and what the switch counted itself.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::tally::Tally;
use crate::failure::{Because, Result};

/// How many wrong lines are kept in words.
const EXAMPLES: usize = 3;
/// Requests that are counted apart; hostile clients may think of any number of them.
const REQUESTS_MAX: usize = 1000;
/// Facts that every line has.
const ALWAYS: [&str; 7] =
    ["time", "listener", "client", "client_ip", "request_bytes", "response_bytes", "total_us"];
/// A request that only these kinds of clients make, each once for each time that all was well.
const SEEN_BY_CLIENTS: [(&str, &[&str]); 2] = [
    ("GET /ok/until-close 200", &["checked answers, kept alive"]),
    (
        "POST /up 200",
        &[
            "checked uploads by length",
            "checked uploads in chunks",
            "checked answers and uploads, TLS",
            "bodies by the byte",
        ],
    ),
];

/// What the switch itself counted, all of which leaves lines.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) exchanges: u64,
    /// Handshakes that failed, at least and at most: those that timed out leave a line only where the client had said
    /// something.
    pub(super) handshakes: RangeInclusive<u64>,
    /// Lines that it dropped.
    pub(super) dropped: u64,
}

/// What the reader counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    lines: u64,
    wrong: u64,
    examples: Vec<String>,
    /// By method, path and status.
    requests: BTreeMap<String, u64>,
}

/// Reads a log from standard input to its end, and prints what it counted.
pub(crate) fn read_log() -> Result<()> {
    let counts = Counts::of(std::io::stdin().lock()).because(|| "cannot read the log".into())?;
    print!("{}", counts.told());
    Ok(())
}

impl Counts {
    fn of(mut log: impl BufRead) -> std::io::Result<Self> {
        let (mut counts, mut line) = (Self::default(), Vec::new());
        while log.read_until(b'\n', &mut line)? > 0 {
            counts.add(&line);
            line.clear();
        }
        Ok(counts)
    }

    fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        match request(line) {
            Ok(Some(request))
                if self.requests.contains_key(&request) || self.requests.len() < REQUESTS_MAX =>
            {
                *self.requests.entry(request).or_default() += 1;
            }
            Ok(_) => {}
            Err(problem) => {
                self.wrong += 1;
                if self.examples.len() < EXAMPLES {
                    self.examples.push(format!("{problem}: `{}`", line.trim_ascii_end().escape_ascii()));
                }
            }
        }
    }

    fn told(&self) -> String {
        let Self { lines, wrong, examples, requests } = self;
        let examples = examples.iter().map(|example| format!("example {example}\n"));
        let requests = requests.iter().map(|(request, count)| format!("request {count} {request}\n"));
        let counts: String = examples.chain(requests).collect();
        format!("{counts}lines {lines}\nwrong {wrong}\n")
    }

    /// What [`Counts::told`] wrote; nothing where it is not whole.
    pub(super) fn read(told: &str) -> Option<Self> {
        let mut counts = Self::default();
        let mut is_whole = false;
        for line in told.lines() {
            match line.split_once(' ')? {
                ("example", example) => counts.examples.push(example.to_owned()),
                ("request", request) => {
                    let (count, request) = request.split_once(' ')?;
                    counts.requests.insert(request.to_owned(), count.parse().ok()?);
                }
                ("lines", lines) => counts.lines = lines.parse().ok()?,
                ("wrong", wrong) => (counts.wrong, is_whole) = (wrong.parse().ok()?, true),
                _ => return None,
            }
        }
        is_whole.then_some(counts)
    }

    /// What is wrong with the log, where the switch has counted this.
    pub(super) fn complaints(&self, counted: &Counted, tally: &Tally) -> Vec<String> {
        let Counted { exchanges, handshakes, dropped } = counted;
        let mut complaints = Vec::new();
        if self.wrong > 0 {
            complaints.push(format!("access log: {} wrong lines: {}", self.wrong, self.examples.join("; ")));
        }
        let (least, most) = (exchanges + handshakes.start(), exchanges + handshakes.end());
        if !(least..=most).contains(&(self.lines + dropped)) {
            let lines = self.lines;
            complaints.push(format!(
                "access log: {lines} lines, {dropped} dropped, {exchanges} exchanges, {handshakes:?} failed handshakes"
            ));
        }
        for (request, kinds) in SEEN_BY_CLIENTS {
            // Whoever met something wrong may have asked without an answer.
            let Some(seen) = tally.fine_of(kinds) else { continue };
            let logged = self.requests.get(request).copied().unwrap_or_default();
            if logged > seen || logged + dropped < seen {
                complaints.push(format!("access log: `{request}` {logged} times, {seen} seen by clients"));
            }
        }
        complaints
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines
    }
}

/// The request that a line is about, where it names one and its answer.
fn request(line: &[u8]) -> std::result::Result<Option<String>, String> {
    let line = line.strip_suffix(b"\n").ok_or("no line feed")?;
    let facts: Map<String, Value> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if let Some(missing) = ALWAYS.iter().find(|key| !facts.contains_key(**key)) {
        return Err(format!("no `{missing}`"));
    }
    let text = |key: &str| facts.get(key).and_then(Value::as_str);
    let is_handshake = text("error").is_some_and(|error| error.starts_with("TLS handshake: "));
    match (text("listener"), text("tls"), is_handshake) {
        (Some("plain"), None, false)
        | (Some("tls"), Some("1.2" | "1.3"), false)
        | (Some("tls"), None, true) => {}
        (listener, tls, _) => return Err(format!("TLS `{tls:?}` at the listener `{listener:?}`")),
    }
    if text("path").is_some_and(|path| path.contains('?')) {
        return Err("a query".to_owned());
    }
    let times = ["decided_us", "connected_us", "first_byte_us", "total_us"];
    let times: Vec<u64> = times.iter().filter_map(|key| facts.get(*key)?.as_u64()).collect();
    if !times.is_sorted() {
        return Err("times out of order".to_owned());
    }
    let Some(status) = facts.get("status") else { return Ok(None) };
    let status = status.as_u64().filter(|status| (100..600).contains(status)).ok_or("no status")?;
    let (Some(method), Some(path)) = (text("method"), text("path")) else { return Ok(None) };
    Ok(Some(format!("{method} {path} {status}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: &str = "\"time\":\"2026-11-21T02:17:54.123Z\",\"listener\":\"plain\",\"client\":\"127.0.0.1:5555\",\
        \"client_ip\":\"127.0.0.1\",\"request_bytes\":120,\"response_bytes\":1300";

    fn counts(lines: &[String]) -> Counts {
        Counts::of(lines.concat().as_bytes()).expect("memory can be read")
    }

    fn line(facts: &str) -> String {
        format!("{{{FACTS},\"total_us\":1200{facts}}}\n")
    }

    #[test]
    fn wrong_lines_are_found() {
        let asked = "\"method\":\"GET\",\"path\":\"/ok/until-close\"";
        let fine = [
            line(&format!(",{asked},\"status\":200,\"decided_us\":3,\"first_byte_us\":800")),
            line(",\"error\":\"the client closed\""),
        ];
        let seen = counts(&fine);
        assert_eq!((seen.lines, seen.wrong), (2, 0), "{:?}", seen.examples);
        let handshake = line(",\"error\":\"TLS handshake: not_tls: what came\"").replace("plain", "tls");
        assert_eq!(counts(&[handshake]).wrong, 0);
        assert_eq!(seen.requests, [("GET /ok/until-close 200".to_owned(), 1)].into());
        for wrong in [
            fine[0].trim_end().to_owned(),
            fine[0][..40].to_owned() + "\n",
            format!("{{{FACTS}}}\n"),
            line(",\"tls\":\"1.3\""),
            line(",\"error\":\"TLS handshake: not_tls\""),
            line(",\"path\":\"/a?b=c\""),
            line(",\"decided_us\":3,\"connected_us\":2"),
            line(",\"status\":99"),
            fine[0].trim_end().to_owned() + &fine[1],
        ] {
            assert_eq!(counts(std::slice::from_ref(&wrong)).wrong, 1, "{wrong}");
        }
    }

    #[test]
    fn what_is_counted_is_told_and_held_against_the_clients() {
        let asked = line(",\"method\":\"GET\",\"path\":\"/ok/until-close\",\"status\":200");
        let seen = counts(&[asked.clone(), asked, "{}\n".to_owned()]);
        assert_eq!((seen.lines, seen.wrong), (3, 1));
        assert_eq!(Counts::read(&seen.told()).as_ref(), Some(&seen));
        assert_eq!(Counts::read("lines 3\n"), None, "not whole");
        let tally = Tally::default();
        tally.add("checked answers, kept alive", Ok(2));
        let right = Counts { lines: 3, requests: seen.requests.clone(), ..Counts::default() };
        let complaints = |counts: &Counts, exchanges, handshakes, dropped| {
            counts.complaints(&Counted { exchanges, handshakes, dropped }, &tally)
        };
        assert_eq!(complaints(&right, 3, 0..=0, 0), [""; 0]);
        assert_eq!(complaints(&right, 4, 0..=0, 1), [""; 0]);
        assert_eq!(complaints(&right, 1, 1..=2, 0), [""; 0]);
        let complaint = "access log: 3 lines, 0 dropped, 4 exchanges, 0..=0 failed handshakes";
        assert_eq!(complaints(&right, 4, 0..=0, 0), [complaint]);
        let complaint = "access log: 3 lines, 0 dropped, 0 exchanges, 1..=2 failed handshakes";
        assert_eq!(complaints(&right, 0, 1..=2, 0), [complaint]);
        assert!(complaints(&seen, 3, 0..=0, 0)[0].starts_with("access log: 1 wrong lines: no `time`: `{}`"));
        tally.add("checked answers, kept alive", Ok(1));
        assert_eq!(complaints(&right, 4, 0..=0, 1), [""; 0], "it may be the line that was dropped");
        let complaint = "access log: `GET /ok/until-close 200` 2 times, 3 seen by clients";
        assert_eq!(complaints(&right, 3, 0..=0, 0), [complaint]);
        tally.add("checked answers, kept alive", Err("no answer".to_owned()));
        assert_eq!(complaints(&right, 3, 0..=0, 0), [""; 0], "nobody knows how many there were");
    }
}
