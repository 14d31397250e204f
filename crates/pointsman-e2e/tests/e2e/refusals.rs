//! Requests that are refused, by the table in `testdata/refusals/requests.txt`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use pointsman_e2e::{Client, Origin, Refused, Setup, Switch, refused, unescape, workspace};

pointsman_e2e::for_threads!(table);

/// In how many pieces a request comes at the most: a long one comes in longer pieces.
const PIECES_MAX: usize = 400;

/// What a row asks for.
struct Expected<'a> {
    /// The statuses of the answers, and `close` or `end`.
    words: Vec<&'a str>,
    /// The fault is in the body: a head that comes without it goes to the server.
    is_in_body: bool,
}

/// A switch with one server behind it.
struct Stage {
    origin: Origin,
    switch: Switch,
}

fn table(threads: usize) {
    let rows = refused("refusals/requests.txt");
    assert!(rows.len() >= 250, "{} rows", rows.len());
    let origin = Origin::new("origin");
    // What HTTP/2 begins with is a row of the table.
    let switch = Setup::new(threads).pool("standard", &[&origin]).listener("http2 = \"off\"").start();
    let stage = Stage { origin, switch };
    let (mut failures, mut served) = (String::new(), 0);
    for row in &rows {
        let expected = Expected::read(&row.outcome);
        for in_pieces in [false, true] {
            served += expected.served();
            if let Err(failure) = stage.play(row, &expected, in_pieces) {
                let Refused { place, what, .. } = row;
                let how = if in_pieces { "in pieces" } else { "at once" };
                writeln!(failures, "{place}: {what}, {how}: {failure}").expect("memory");
            }
        }
    }
    // What came too late to be noticed with its row is counted here.
    let whole = stage.origin.requests().iter().filter(|request| request.complete).count();
    assert!(
        failures.is_empty() && whole == served,
        "{whole} requests at the server, not {served}\n{failures}"
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

    fn just_ends(&self) -> bool {
        self.words.ends_with(&["end"])
    }

    /// How many requests the server gets.
    fn served(&self) -> usize {
        self.words.iter().filter(|word| **word == "200").count()
    }
}

impl Stage {
    fn play(&self, row: &Refused, expected: &Expected<'_>, in_pieces: bool) -> Result<(), String> {
        let before = self.origin.count();
        let bytes = unescape(&row.text);
        // A head whose body is to come goes on at once, and so does one whose body stops without a fault.
        let sees_head = expected.is_in_body && (in_pieces || expected.just_ends());
        let head_bytes = if sees_head { end_of_head(&bytes) } else { bytes.len() };
        let piece = if in_pieces { bytes.len().div_ceil(PIECES_MAX) } else { bytes.len() };
        let mut client = self.switch.client();
        send(&mut client, &bytes[..head_bytes], piece);
        if sees_head {
            self.origin.wait_for_requests(before + 1);
        }
        send(&mut client, &bytes[head_bytes..], piece);
        if expected.just_ends() {
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
        if reached.len() != expected.served() + usize::from(sees_head) {
            return Err(format!("{} requests reached the server: {reached:?}", reached.len()));
        }
        match reached.iter().find(|request| request.complete == sees_head) {
            Some(request) => Err(format!("the server took it so: {request:?}")),
            None => Ok(()),
        }
    }
}

fn send(client: &mut Client, bytes: &[u8], piece: usize) {
    for piece in bytes.chunks(piece.max(1)) {
        // The switch may have had enough.
        if client.try_send(piece).is_err() {
            return;
        }
    }
}

fn end_of_head(bytes: &[u8]) -> usize {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4)
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

/// The page about refusals counts what the tables hold: below its mark it is generated.
/// `UPDATE_EXPECT=1` writes that part anew.
#[test]
fn the_page() {
    const MARK: &str = "<!-- From here on the text is counted from the tables in testdata/refusals. -->\n";
    let path = workspace().join("docs/reference/refusals.md");
    let page = std::fs::read_to_string(&path).expect("a page");
    let (head, counted) = page.split_once(MARK).expect("a mark where the counted part begins");
    let expected = format!(
        "\n## Requests\n\n{}\n## Requests of HTTP/2\n\n{}\n## Answers of servers\n\n{}",
        summary(&refused("refusals/requests.txt")),
        summary(&refused("h2-refusals/requests.txt")),
        summary(&refused("refusals/answers.txt"))
    );
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, format!("{head}{MARK}{expected}")).expect("a writable page");
    } else {
        let advice = "UPDATE_EXPECT=1 cargo test -p pointsman-e2e the_page writes the tables anew";
        assert!(counted == expected, "{advice}");
    }
}

/// A table with a line for each section.
fn summary(rows: &[Refused]) -> String {
    let mut table =
        "| about | cases | what comes of them | where it stands |\n|---|---|---|---|\n".to_owned();
    for rows in rows.chunk_by(|one, other| one.section == other.section) {
        let seen: BTreeSet<_> = rows.iter().flat_map(|row| seen(&row.outcome)).collect();
        let seen: Vec<_> = seen.into_iter().map(|word| format!("`{word}`")).collect();
        let (section, count) = (&rows[0].section, rows.len());
        writeln!(table, "| {section} | {count} | {} | {} |", seen.join(", "), sections(rows))
            .expect("memory");
    }
    table
}

/// What a client sees last: the words of a row that are statuses, or stand for one.
fn seen(outcome: &str) -> Vec<&str> {
    let words = outcome.trim_start_matches(['!', '?']).split([' ', '/']);
    let kept = ["close", "end", "cut", "malformed"];
    let told = |word: &&str| word.parse::<u16>().is_ok() || kept.contains(word);
    let mut words: Vec<_> = words.filter(told).collect();
    // Before a refusal stand the answers to the good requests before it.
    if words.len() > 1 && words[0] == "200" {
        words.drain(..words.len() - 1);
    }
    words
}

/// The sections of RFCs that rows name: `RFC 9110 5.5, 8.6; RFC 9112 5.1`.
fn sections(rows: &[Refused]) -> String {
    let number = |word: &str| word.parse::<u32>().unwrap_or_else(|_| panic!("`{word}` in an RFC's section"));
    let cited = |row: &Refused| {
        let (rfc, section) = row.rfc.strip_prefix("RFC ")?.split_once(' ')?;
        Some((number(rfc), section.split('.').map(number).collect::<Vec<_>>()))
    };
    let cited: BTreeSet<_> = rows.iter().map(|row| cited(row).expect("`RFC 9112 6.3`")).collect();
    let mut text = String::new();
    let mut last = 0;
    for (rfc, section) in cited {
        let section: Vec<_> = section.iter().map(u32::to_string).collect();
        let before = match last {
            0 => format!("RFC {rfc} "),
            _ if last == rfc => ", ".to_owned(),
            _ => format!("; RFC {rfc} "),
        };
        write!(text, "{before}{}", section.join(".")).expect("memory");
        last = rfc;
    }
    text
}
