//! Requests of HTTP/2 that could become something else on their way, by the table in
//! `testdata/h2-refusals/requests.txt`: sent frame by frame, and looked at byte by byte where they arrive.

use std::fmt::Write as _;

use pointsman_e2e::h2_wire::flag;
use pointsman_e2e::{
    Client, FRONT_NAME, Field, Frame, Front, H2Client, Origin, Outcome, Refused, Request, SPEAKS_HTTP2,
    Setup, TlsClient, installed, ok, refused, unescape,
};

const TABLE: &str = "h2-refusals/requests.txt";
/// A field that says which row a request is of: what comes without it came about on the way.
const ROW: &str = "x-row";
/// What the client asks for next, where its connection goes on.
const NEXT: &str = "/next";

/// A proxy with one server behind it.
struct Stage {
    front: Front,
    origin: Origin,
    /// With it TLS is spoken.
    trust: Option<TlsClient>,
}

/// What a row sends, or what the server gets.
#[derive(Debug, Default)]
struct Message {
    fields: Vec<Field>,
    data: Vec<Vec<u8>>,
    trailers: Vec<Field>,
}

/// What a row asks for.
struct Expected<'a> {
    outcomes: Vec<&'a str>,
    /// What the server may have seen all the same.
    may_be_seen: Seen,
    /// What the server gets: its method and target, and the rest.
    request: Option<(&'a str, Message)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    Head,
    Whole,
}

pointsman_e2e::for_threads!(plain, over_tls);

fn plain(threads: usize) {
    Stage::of(threads).holds();
}

fn over_tls(threads: usize) {
    let mut stage = Stage::of(threads);
    stage.trust = Some(stage.front.trust());
    stage.holds();
}

/// The constant that turns tests on says what the binary does.
#[test]
fn the_switch_speaks_http2_as_tests_say() {
    let origin = Origin::answering("origin", ok);
    let switch = Setup::new(1).pool("standard", &[&origin]).start();
    let speaks = matches!(H2Client::begin(switch.client()).get(1, "http", "/"), Ok(Outcome::Answer(_)));
    assert_eq!(speaks, SPEAKS_HTTP2);
}

/// The table is right about what a proxy is: another one agrees with most of it, and all of it can be sent.
#[test]
fn nginx_agrees_with_most() {
    if !installed("nginx") {
        return;
    }
    let origin = Origin::answering("origin", ok);
    let mut stage = Stage { front: Front::nginx(origin.address()), origin, trust: None };
    let rows = refused(TABLE);
    let plain = failures(&stage, &rows);
    stage.trust = Some(stage.front.trust());
    let tls = failures(&stage, &rows);
    for failures in [plain, tls] {
        assert!(failures.lines().count() < rows.len() / 3, "{failures}\n{}", stage.front.said());
        // Whoever agrees with nothing, and whoever hangs, is wrong about HTTP/2 itself.
        for row in ["content in one frame", "a cookie in pieces", "CR LF and a request", "in time"] {
            assert!(!failures.contains(row), "{failures}");
        }
    }
}

#[test]
fn the_table_can_be_read() {
    let rows = refused(TABLE);
    assert!(rows.len() >= 180, "{} rows", rows.len());
    for row in &rows {
        let (sent, expected) = read(row, "http");
        let is_served = expected.outcomes == ["200"];
        assert_eq!(is_served, expected.request.is_some(), "{}", row.place);
        assert!(sent.fields.len() <= 1004, "{}", row.place);
    }
}

/// A line for each row of which something else came, and for each request that no row asked for.
fn failures(stage: &Stage, rows: &[Refused]) -> String {
    let before = stage.origin.count();
    let told: Vec<_> = rows.iter().enumerate().map(|(number, row)| stage.play(number, row)).collect();
    // What a server sees of a request that is refused it may see late.
    let (mut of_rows, mut of_nobody) = (vec![Vec::new(); rows.len()], Vec::new());
    for request in stage.origin.requests().split_off(before) {
        let number = request.head.field(ROW).and_then(|number| number.parse().ok());
        match number.and_then(|number: usize| of_rows.get_mut(number)) {
            Some(of_row) => of_row.push(request),
            None => of_nobody.push(request),
        }
    }
    let mut failures = String::new();
    for ((row, told), reached) in rows.iter().zip(told).zip(of_rows) {
        let (_, expected) = read(row, stage.scheme());
        if let Err(failure) = told.and_then(|told| expected.judge(&told, &reached)) {
            writeln!(failures, "{}: {}: {failure}", row.place, row.what).expect("memory");
        }
    }
    if !of_nobody.is_empty() {
        writeln!(failures, "these reached the server, and nobody sent them: {of_nobody:?}").expect("memory");
    }
    failures
}

impl Stage {
    /// The switch, in plain text.
    fn of(threads: usize) -> Self {
        let origin = Origin::answering("origin", ok);
        // Both listeners have room for a head of more than one frame.
        let setup = Setup::new(threads).limits("head_bytes_max = 32768");
        Self { front: Front::switch(setup, origin.address()), origin, trust: None }
    }

    /// The switch does with each row as it says.
    fn holds(&self) {
        if !SPEAKS_HTTP2 {
            return;
        }
        let failures = failures(self, &refused(TABLE));
        assert!(failures.is_empty(), "{failures}");
    }

    /// Sends what a row says. What came of it in a word, and of the stream behind it.
    fn play(&self, number: usize, row: &Refused) -> Result<Told, String> {
        let scheme = self.scheme();
        let (mut sent, expected) = read(row, scheme);
        sent.fields.push((ROW.into(), number.to_string().into()));
        let mut client = H2Client::begin(self.client());
        // The proxy may have had enough before the end.
        drop(sent.send(&mut client));
        let outcome = client.outcome(1).map_err(|error| error.to_string())?;
        let first = told(&outcome);
        if !expected.outcomes.contains(&first.as_str()) {
            return Err(format!("{first} instead of {}: {outcome:?}", row.outcome));
        }
        if ["goaway", "close"].contains(&first.as_str()) {
            return Ok(Told { first, goes_on: false });
        }
        let next = message(&format!(":method=GET :scheme=http :authority=shop.example :path={NEXT}"), scheme);
        let next = [next.fields, vec![(ROW.into(), number.to_string().into())]].concat();
        drop(client.send_fields(3, flag::END_STREAM, &next));
        let next = client.outcome(3).map_err(|error| format!("the next stream: {error}"))?;
        match told(&next).as_str() {
            "200" => Ok(Told { first, goes_on: true }),
            other => Err(format!("the next stream: {other}")),
        }
    }

    fn scheme(&self) -> &'static str {
        if self.trust.is_some() { "https" } else { "http" }
    }

    fn client(&self) -> Client {
        match &self.trust {
            None => Client::plain(self.front.http2()),
            Some(trust) => Client::tls(self.front.tls(), trust, FRONT_NAME).expect("a handshake"),
        }
    }
}

/// What came of a row.
struct Told {
    /// Its own stream, in a word.
    first: String,
    /// The next stream was served.
    goes_on: bool,
}

/// In a word what came of a stream: a status, `reset`, `goaway`; `close` is a connection that ended without one.
fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answer(answer) => answer.status().to_string(),
        Outcome::Reset(_) => "reset".to_owned(),
        Outcome::GoAway(_) => "goaway".to_owned(),
        Outcome::Closed => "close".to_owned(),
    }
}

impl Message {
    fn send(&self, client: &mut H2Client) -> std::io::Result<()> {
        let ends = |last: bool| if last { flag::END_STREAM } else { 0 };
        let has_trailers = !self.trailers.is_empty();
        client.send_fields(1, ends(self.data.is_empty() && !has_trailers), &self.fields)?;
        for (index, data) in self.data.iter().enumerate() {
            let last = index + 1 == self.data.len() && !has_trailers;
            client.send(&Frame::data(1, ends(last), data.as_slice()))?;
        }
        if has_trailers { client.send_fields(1, flag::END_STREAM, &self.trailers) } else { Ok(()) }
    }
}

impl Expected<'_> {
    /// Whether what reached the server is what may.
    fn judge(&self, told: &Told, reached: &[Request]) -> Result<(), String> {
        let (next, reached): (Vec<_>, Vec<_>) = reached.iter().partition(|request| request.target() == NEXT);
        if next.len() != usize::from(told.goes_on) {
            return Err(format!("the next request reached the server {} times", next.len()));
        }
        let Some((start, message)) = self.request.as_ref().filter(|_| told.first == "200") else {
            let is_allowed = match (&reached[..], self.may_be_seen) {
                ([], _) => true,
                ([request], Seen::Head) => !request.complete,
                ([_], Seen::Whole) => true,
                _ => false,
            };
            return if is_allowed { Ok(()) } else { Err(format!("this reached the server: {reached:?}")) };
        };
        let [request] = reached[..] else {
            return Err(format!("{} requests reached the server", reached.len()));
        };
        let [lengths, codings] =
            ["content-length", "transfer-encoding"].map(|name| request.head.all(name).len());
        let wanted_start = format!("{start} HTTP/1.1");
        let wanted = (sorted(&latin(&message.fields)), sorted(&latin(&message.trailers)));
        let came = (sorted(&request.head.fields), sorted(&request.body.trailers));
        if request.head.start != wanted_start || came != wanted {
            return Err(format!("`{}` {came:?} instead of `{wanted_start}` {wanted:?}", request.head.start));
        }
        if !request.complete || request.body.bytes != message.data.concat() || lengths + codings > 1 {
            return Err(format!("the content came so: {request:?}"));
        }
        Ok(())
    }
}

/// A row as it is sent with this scheme, and what must come of it.
fn read<'a>(row: &'a Refused, scheme: &str) -> (Message, Expected<'a>) {
    let (sent, arrives) =
        row.text.split_once(" -> ").map_or((row.text.as_str(), None), |(a, b)| (a, Some(b)));
    let alternatives = row.outcome.trim_start_matches(['!', '?']).split('/');
    let outcomes = alternatives.flat_map(|word| match word {
        "malformed" => vec!["400", "reset", "goaway"],
        _ => vec![word],
    });
    let may_be_seen = match row.outcome.as_bytes()[0] {
        b'!' => Seen::Head,
        b'?' => Seen::Whole,
        _ => Seen::Nothing,
    };
    let request = arrives.map(|text| {
        let end = text.match_indices(' ').nth(1).map_or(text.len(), |(at, _)| at);
        (&text[..end], message(&text[end..], scheme))
    });
    (message(sent, scheme), Expected { outcomes: outcomes.collect(), may_be_seen, request })
}

fn message(text: &str, scheme: &str) -> Message {
    let (mut message, mut in_trailers) = (Message::default(), false);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut add = |name: &str, value: &str| {
            let field = (unescape(name), unescape(value));
            if in_trailers { message.trailers.push(field) } else { message.fields.push(field) }
        };
        if let Some(data) = word.strip_prefix("DATA:") {
            message.data.push(unescape(data));
        } else if let Some(count) = word.strip_prefix("FIELDS:") {
            let count: usize = count.parse().expect("a number");
            (0..count).for_each(|number| add(&format!("x-{number}"), "0"));
        } else if let Some(protocol) = word.strip_prefix("EXTENDED:") {
            add(":method", "CONNECT");
            add(":protocol", protocol);
            add(":scheme", scheme);
            add(":authority", "shop.example");
            add(":path", "/");
        } else if word == "TRAILERS" {
            in_trailers = true;
        } else if let "GET" | "POST" = word {
            add(":method", word);
            add(":scheme", scheme);
            add(":authority", "shop.example");
            add(":path", "/");
        } else {
            let (name, value) = word.split_once('=').unwrap_or_else(|| panic!("`{word}`"));
            match (name, value) {
                (":scheme", "http") => add(name, scheme),
                (":scheme", "https") => add(name, if scheme == "https" { "http" } else { "https" }),
                _ => add(name, value),
            }
        }
    }
    message
}

/// As the origin reads bytes.
fn latin(fields: &[Field]) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
    fields.iter().map(|(name, value)| (text(name), text(value))).collect()
}

/// Fields by name; those of a name stay in their order. Without what a proxy writes for itself.
fn sorted(fields: &[(String, String)]) -> Vec<(String, String)> {
    let own = |name: &str| {
        ["via", "connection", "content-length", "transfer-encoding", ROW].contains(&name)
            || name.starts_with("x-forwarded-")
    };
    let lower = fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    let mut rest: Vec<_> = lower.filter(|(name, _)| !own(name)).collect();
    rest.sort_by(|(one, _), (other, _)| one.cmp(other));
    rest
}
