//! `pointsman explain`: what rules say of one request, or of one connection that is passed on as it is, rule by rule.

mod asked;
mod blame;
mod body;
mod ends;
mod fitting;
mod handshake;
pub(crate) mod members;
pub(crate) mod near;
mod options;
mod outcome;
pub(crate) mod place;
pub(crate) mod report;
pub(crate) mod request;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod witnesses;

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use pointsman_analysis::{Asking, Effort, Needed, Setting, Spoilt, Unread};
use pointsman_config::{Listener, Plan, Protocol};
use pointsman_http::Refusal;
use pointsman_rules::{Colour, Subject, Truths};
use pointsman_view::{
    Connection, ConnectionView, Proxied, ProxyFacts, ProxyValues, RequestView, TlsFacts, normal_form,
};
use serde_json::Value;

use crate::check::{input, terminal};
use crate::usage::wrong_options;
use crate::{WRONG_USE, say};
use asked::{Asked, AskedConnection, AskedRequest};
use blame::line_at_fault;
use near::{Near, Sought};
use options::Options;
use outcome::Verdict;
use place::Place;
use report::{Report, Step};
use request::{NoRequest, Request};

const HELP: &str = "\
pointsman explain RULES REQUEST [OPTION...]
pointsman explain RULES [OPTION...]     a connection of a listener that reads no requests

    RULES                  a rule set, or a configuration (.toml) with the rules of a listener
    REQUEST                a file with the bytes of an HTTP request (`-`: standard input); of HTTP/2 where its first
                           line ends in `HTTP/2`
    --listener NAME        which listener of a configuration; the first one where none is named
    --srcip, --srcport     where the client is; 127.0.0.1 and 40000 (`--src` is `--srcip`)
    --srcip unix:          it came to a Unix socket, where neither end has an address; so it does where the listener has
                           no other
    --proxied IP           the client that a PROXY header names
    --proxy-value FIELD=TEXT
                           what that header says besides, as in `proxy.aws_vpce_id=vpce-1`; may be given several times
    --dstip, --dstport     where it connected to; 127.0.0.1 and 80 or 443, or where the listener listens
    --tls 1.2|1.3          it came over TLS; 1.3 where the listener speaks TLS
    --cipher NAME          the suite that was agreed on; the usual one of the version
    --sni NAME             the server name it asked for; its host over TLS
    --alpn NAME            the protocol that was agreed on, '' for none; what the version of the request says. Without a
                           request one that its ClientHello offers; may be given several times
    --resumed              an earlier TLS session goes on
    --client-subject NAME, --client-san NAME, --client-fingerprint HEX, --client-certificate BASE64
                           the certificate that the client shows; `CN=client`, no further names (there may be several) and
                           zeros where one of them is given, or the listener lets nobody in without one
    --trusted-proxy NET    a network of proxies to believe, or `unix:`; may be given several times
    --miss LABEL           how the request misses this rule, instead of the three that are nearest
    --json                 all of it as JSON

exit status: 0 decided, 1 the request is refused before or instead of a decision, 2 wrong use or unreadable input
";

/// The port of a client that a PROXY header names: no rule sees it.
const PROXIED_PORT: u16 = 40_000;

/// Explains a decision.
pub(crate) fn explain(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    let report = match reported(&options, terminal::colour(&io::stderr())) {
        Ok(report) => report,
        Err(complaint) => return say(&mut io::stderr(), &complaint, WRONG_USE),
    };
    let text = if options.json { report.json() } else { report.text(terminal::colour(&io::stdout())) };
    say(&mut io::stdout(), &text, u8::from(report.verdict.is_refusal()))
}

/// The whole explanation; the error is a text for people about input that cannot be read.
fn reported(options: &Options, colour: Colour) -> Result<Report, String> {
    let place = Place::load(options, colour)?;
    let sought = Sought::new(options.miss.as_deref(), place.program.as_deref(), near::effort())?;
    match &options.request {
        Some(file) => {
            let bytes = input::bytes(file).map_err(|message| format!("error: {message}\n"))?;
            of_request(options, &place, Given { bytes, name: input::name(file) }, sought)
        }
        None => of_connection(options, &place),
    }
}

/// A request as somebody has written it, and what they call it.
struct Given {
    bytes: Vec<u8>,
    name: String,
}

/// What rules say of a request that somebody asks about at the admin listener: of those that serve, or of others in their
/// place.
pub(crate) struct Question {
    options: Options,
    /// Absent where a connection is asked about.
    request: Option<Vec<u8>>,
}

impl Question {
    /// By the options of `explain`; the error is a sentence.
    pub(crate) fn read(words: Vec<String>, request: Option<Vec<u8>>) -> Result<Question, String> {
        // They stand for files, which are not read.
        let files = ["serving.toml", "request"];
        let files = files.into_iter().take(1 + usize::from(request.is_some())).map(str::to_owned);
        match Options::read(words.into_iter().chain(files).map(OsString::from).collect()) {
            Ok(Some(options)) => Ok(Question { options, request }),
            Ok(None) => Err("there is nothing to explain".to_owned()),
            Err(error) => Err(as_members(&error.to_string())),
        }
    }

    /// The answer, as `explain --json` prints it; the error says why there is none.
    ///
    /// Of nearest misses those are left out, and named, for which the effort is not enough.
    pub(crate) fn answer(
        self,
        place: Place,
        listener: &Listener,
        plan: &Plan,
        effort: Effort,
    ) -> Result<Value, String> {
        let Question { options, request } = self;
        let report = place.served(&options, listener, plan).and_then(|place| {
            let sought = Sought::new(options.miss.as_deref(), place.program.as_deref(), effort)?;
            match request {
                Some(bytes) => {
                    of_request(&options, &place, Given { bytes, name: "request".to_owned() }, sought)
                }
                None => of_connection(&options, &place),
            }
        });
        report.map(|report| report.to_json()).map_err(|complaint| {
            // The help is for who types a command.
            let sentence = complaint.lines().next().unwrap_or_default();
            as_members(sentence.strip_prefix("error: ").unwrap_or(sentence))
        })
    }
}

/// Options are called by the names of members.
fn as_members(sentence: &str) -> String {
    let mut parts = sentence.split("`--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |so_far, part| {
        let (name, rest) = part.split_at(
            part.find(|letter: char| letter != '-' && !letter.is_alphanumeric()).unwrap_or(part.len()),
        );
        format!("{so_far}`{}{rest}", name.replace('-', "_"))
    })
}

/// What becomes of a connection whose requests nobody reads.
fn of_connection(options: &Options, place: &Place) -> Result<Report, String> {
    let is_tls = place.protocol == Protocol::TlsPassthrough;
    let connection = connection(options, place, None, is_tls)?;
    let hello = is_tls.then(|| options.handshake.hello());
    let view = ConnectionView::new(&connection, hello.as_ref());
    let asked = Asked::Connection(AskedConnection::new(&place.listener, &view, hello.as_ref()));
    Ok(decided(place, asked, Vec::new(), &view, b""))
}

fn of_request(options: &Options, place: &Place, given: Given, sought: Sought) -> Result<Report, String> {
    let Given { bytes, name } = given;
    let given_bytes = bytes.len();
    let mut notes = Vec::new();
    let mut request = match Request::read(bytes.clone(), &place.limits, place.odd_names(), &mut notes) {
        Ok(request) => request,
        Err(NoRequest::Incomplete) => {
            return Err(format!("error: `{name}` holds no whole head of a request\n"));
        }
        Err(NoRequest::Refused(refusal)) => {
            notes.extend(line_at_fault(&bytes, &place.limits, place.odd_names(), refusal));
            return Ok(Report::refused(None, notes, refusal.status(), refusal.sentence()));
        }
    };
    place.check_version(request.head.version())?;
    let setting = Setting { listener: Some((*place.listener).into()), ..place.setting() };
    let tls = options.handshake.agreed(&setting, request.head.version(), || request.host_name())?;
    let is_tls = tls.is_some();
    let connection = connection(options, place, tls, is_tls)?;
    let mut fits = Ok(());
    if !connection.is_trusted(place.trusted_proxies()) {
        request.take_away_forwarding(&mut notes);
        fits = match setting.is_directed(&request.head, &request.bytes, &connection) {
            true => request.head.check_scheme(&request.bytes, connection.scheme()),
            false => Err(Refusal::Misdirected),
        };
    }
    let changes_protocol = match fits.and_then(|()| request.settle_upgrade(&place.upgrades, &mut notes)) {
        Ok(changes_protocol) => changes_protocol,
        Err(refusal) => return Ok(Report::refused(None, notes, refusal.status(), refusal.sentence())),
    };
    let mut asked = AskedRequest::new(&request, &connection);
    asked.changes_protocol = changes_protocol;
    let mut scratch = Vec::new();
    let path =
        match normal_form(request.head.path_and_query(&request.bytes), place.path_options, &mut scratch) {
            Ok(path) => path,
            Err(refusal) => {
                let asked = Some(Asked::Request(asked));
                return Ok(Report::refused(asked, notes, refusal.status(), refusal.sentence()));
            }
        };
    let view = RequestView::new(&request.head, &request.bytes, &connection, path, place.trusted_proxies());
    asked.sees(&view);
    let report = of_body(place, Asked::Request(asked), notes, &request, view, sought)
        .map_err(|reason| format!("error: `{name}` {reason}\n"))?;
    // What is mended stands in the head.
    let body_from = given_bytes.saturating_sub(request.behind_head().len());
    Ok(Report { body_from: Some(body_from), ..report })
}

/// What the rules decide once they have seen as much of the body as they need; the error says what the file lacks.
fn of_body(
    place: &Place,
    asked: Asked,
    mut notes: Vec<String>,
    request: &Request,
    view: RequestView<'_>,
    sought: Sought,
) -> Result<Report, String> {
    let content = body::content(request, place.hold_bytes_max, &mut notes);
    let path = view.path();
    let Some(program) = place.program.as_ref().filter(|program| !program.payloads.is_empty()) else {
        return Ok(Report {
            needed: content.not_needed(),
            near: Near::of(place, &view, sought),
            ..decided(place, asked, notes, &view, path.path())
        });
    };
    let (head, received) = (&request.head, &request.bytes[..]);
    let asking = Asking { program, options: &place.body_options, head, received };
    let reading = match content.read(asking, view) {
        Ok(reading) => reading,
        Err(Unread::Missing(bytes)) => {
            return Err(format!("holds no whole body, and the rules ask for more than {bytes} bytes of it"));
        }
        Err(Unread::Malformed(sentence)) => {
            return Ok(Report::refused(Some(asked), notes, 400, sentence));
        }
    };
    notes.extend(reading.fault().map(|fault| format!("of the body: {fault}")));
    notes.extend(reading.is_passed_by.then(|| body::passed_by(request)));
    let needed = reading.needed;
    let (mut report, outcome) = {
        let view = view.with_body(reading.evidence());
        let outcome = program.decide(&view, &mut Truths::default()).outcome;
        (decided(place, asked, notes, &view, path.path()), outcome)
    };
    report.needed = needed;
    report.near = match content.whole(asking) {
        Some(whole) => Near::of(place, &view.with_body(whole.evidence()), sought),
        None => Near::not_looked_for(),
    };
    match content.spoilt(program, reading, &outcome) {
        None => {}
        Some(Spoilt::Refused(wrong)) => {
            let rule = report.verdict.rule.take();
            report.verdict = Verdict { rule, ..Verdict::refused(wrong.status, wrong.what) };
        }
        Some(spoilt @ Spoilt::BrokenOff(_)) => report.notes.push(spoilt.to_string()),
    }
    Ok(report)
}

/// What the rules say of a subject, or the default pool where there are none.
fn decided(
    place: &Place,
    asked: Asked,
    mut notes: Vec<String>,
    subject: &dyn Subject,
    path: &[u8],
) -> Report {
    let changes_protocol = asked.changes_protocol();
    let asked = Some(asked);
    let Some(program) = &place.program else {
        let verdict = Verdict::default_pool(&place.default_pool, place.protocol);
        return Report {
            asked,
            notes,
            steps: Vec::new(),
            needed: Needed::default(),
            body_from: None,
            verdict,
            near: Near::default(),
            source: place.source.clone(),
        };
    };
    let explanation = program.explain(subject);
    let steps =
        explanation.visited.iter().map(|visited| Step::with_tests(program, visited, subject)).collect();
    let audience = place.audience(&explanation.decision.outcome);
    let audience = if changes_protocol { audience.of_change() } else { audience };
    let verdict = Verdict::new(program, (&explanation.decision, audience), subject, path, place);
    if place.may_override(&explanation.decision.outcome) {
        notes.push(
            "`sticky_scope` is `listener`: a client that stays with a target already goes there instead, with the same \
             effects"
                .to_owned(),
        );
    }
    let source = place.source.clone();
    Report {
        asked,
        notes,
        steps,
        needed: Needed::default(),
        body_from: None,
        verdict,
        near: Near::default(),
        source,
    }
}

/// The connection that somebody came over; the error is a text for people.
fn connection(
    options: &Options,
    place: &Place,
    tls: Option<TlsFacts>,
    is_tls: bool,
) -> Result<Connection, String> {
    let ends = ends::of(options, place, is_tls)?;
    if options.proxied.is_none() && options.proxy_values != ProxyValues::default() {
        return Err("error: `--proxy-value` is of a PROXY header\nhelp: name its client with `--proxied`\n"
            .to_owned());
    }
    Ok(Connection {
        src: ends.map(|(src, _)| src),
        dst: ends.map(|(_, dst)| dst),
        proxied: options.proxied.map(|client| {
            let client = Proxied::Client(SocketAddr::new(client, PROXIED_PORT));
            Arc::new(ProxyFacts { client, values: options.proxy_values.clone() })
        }),
        tls: tls.map(Arc::new),
    })
}
