//! Readings of one request: what common servers make of it where they disagree.
//!
//! A rule that refuses by a value is worth nothing if the server reads another one. So a program that refuses or strips is
//! asked about each reading that differs, and a request whose readings it would treat differently is
//! [ambiguous](Cause::Ambiguous). Where no rule refuses or strips, requests are read literally and nothing is paid.

mod cookie;
mod server;
mod triggers;

use std::collections::HashSet;
use std::ops::ControlFlow;

use pointsman_content::ParameterNames;
use pointsman_http::Framing;
use pointsman_rules::{Decision, Evidence, Field, Outcome, Program, Truths, Value};

use server::{Lines, Pick};
pub use server::{Server, Servers};

use self::triggers::{HeaderNames, Triggers};
use crate::RequestView;
use crate::percent::{code_at_start, decoded};
use crate::request::See;

/// The fields of a guarding program that servers read in several ways. Built once for a program.
#[derive(Clone, Debug)]
pub struct Readings {
    servers: Servers,
    names_path: bool,
    /// Whether a rule compares a path with capitals, or with a slash at its end: then servers that ignore these, and
    /// take both for one, read the rule as they read the request.
    path_capitals: bool,
    path_tails: bool,
    names_url: bool,
    names_query: bool,
    names_length: bool,
    /// As [`ParameterNames::COMMON`] reads them.
    parameters: HashSet<Box<[u8]>>,
    cookies: HashSet<Box<[u8]>>,
    /// In lower case; not those that are lists.
    headers: HeaderNames,
}

impl Readings {
    /// Those that matter to a program; nothing where it neither refuses nor strips, or names no such field.
    #[must_use]
    pub fn new(program: &Program, servers: Servers) -> Option<Readings> {
        if servers == Servers::NONE || !program.guards() {
            return None;
        }
        let mut readings = Readings {
            servers,
            names_path: false,
            path_capitals: false,
            path_tails: false,
            names_url: false,
            names_query: false,
            names_length: false,
            parameters: HashSet::new(),
            cookies: HashSet::new(),
            headers: HeaderNames::default(),
        };
        let common = |name: &[u8]| ParameterNames::COMMON.read(name).into();
        let mut names_body = false;
        program.each_condition_test(&mut |test| match &test.field {
            Field::Path => {
                let has_capitals = |text: &[u8]| text.iter().any(u8::is_ascii_uppercase);
                readings.names_path = true;
                readings.path_capitals |= !test.fold_case && test.op.any_text(has_capitals);
                readings.path_tails |= test.op.any_text(|text| text.ends_with(b"/"));
            }
            Field::Url => readings.names_url = true,
            Field::Query => readings.names_query = true,
            Field::ContentLength => readings.names_length = true,
            Field::QueryParam(key) => drop(readings.parameters.insert(common(key))),
            Field::Cookie(name) => drop(readings.cookies.insert(common(name.as_bytes()))),
            Field::Header(name) if !is_list(name) => readings.headers.insert(name),
            Field::Payload(_) => names_body = true,
            _ => {}
        });
        let names_head = readings.names_path
            || readings.names_url
            || readings.names_query
            || readings.names_length
            || !readings.parameters.is_empty()
            || !readings.cookies.is_empty()
            || !readings.headers.is_empty();
        (names_head || names_body).then_some(readings)
    }

    /// Whether a program that refuses, strips or limits names the path: then its spelling matters.
    #[must_use]
    pub fn guard_paths(program: &Program) -> bool {
        let mut names_path = false;
        program.each_condition_test(&mut |test| names_path |= matches!(test.field, Field::Path));
        names_path && program.guards()
    }

    /// What the rules say of a request, whichever of the servers reads it. `bodies` are other readings of its body.
    ///
    /// The literal reading decides, unless another one would be refused, stripped or limited: see
    /// [`Program::weigh_reading`]. Where a reading needs more of the body than has been read, the decision waits.
    pub fn decide<'p>(
        &self,
        program: &'p Program,
        view: &RequestView<'_>,
        bodies: &[Evidence],
        truths: &mut Truths,
    ) -> Decision<'p> {
        let literal = program.decide(view, truths);
        if !literal.outcome.goes_to_a_server() {
            return literal;
        }
        let mut weighed = literal;
        let mut weigh = |view: &RequestView<'_>| {
            let other = program.decide(view, truths);
            if matches!(other.outcome, Outcome::Waits) {
                weighed = other;
                return ControlFlow::Break(());
            }
            program.weigh_reading(&mut weighed, other);
            if weighed.outcome.goes_to_a_server() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        let of_head = self.each_reading_of_head(view, &mut weigh);
        if of_head.is_continue() {
            let _is_refused = bodies.iter().try_for_each(|body| weigh(&view.with_body(body)));
        }
        weighed
    }

    /// Shows the readings of the head that differ from the literal one.
    fn each_reading_of_head(
        &self,
        view: &RequestView<'_>,
        see: &mut dyn FnMut(&RequestView<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let triggers = Triggers::of(self, view);
        if triggers.is_empty() {
            return ControlFlow::Continue(());
        }
        let picks = if triggers.repeats() { &[Pick::First, Pick::Last, Pick::All][..] } else { &[Pick::All] };
        for server in self.servers.iter().filter(|server| triggers.concern(*server)) {
            for pick in picks {
                let (ignores_case, ignores_tail) = (!self.path_capitals, !self.path_tails);
                see(&view.read_as(Reading { server, pick: *pick, ignores_case, ignores_tail }))?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// One reading of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    server: Server,
    pick: Pick,
    /// Whether servers that ignore the case of a path, or a slash at its end, do so here.
    ignores_case: bool,
    ignores_tail: bool,
}

impl Reading {
    /// Shows the values of a field as the server reads them. Nothing where it reads the field literally.
    pub(crate) fn each(self, view: &RequestView<'_>, field: &Field, see: See<'_>) -> Option<ControlFlow<()>> {
        let flow = match field {
            Field::Path => see(Value::Text(&self.path(view.path().path()))),
            Field::Url => see(Value::Text(&decoded(view.path().target()))),
            Field::Query => view
                .path()
                .query()
                .map_or(ControlFlow::Continue(()), |query| see(Value::Text(&decoded(query)))),
            Field::ContentLength if view.framing() == Framing::Chunked => see(Value::Integer(u64::MAX)),
            Field::QueryParam(key) => self.picked(see, |see| self.parameters(view, key, see)),
            Field::Cookie(name) => self.picked(see, |see| {
                let reading = self.server.cookies();
                view.cookie_lines()
                    .try_for_each(|line| reading.each(line, name.as_bytes(), |value| see(Value::Text(value))))
            }),
            Field::Header(name) if !is_list(name) => self.header(view, name, see),
            _ => return None,
        };
        Some(flow)
    }

    /// Shows those of the values that the server takes.
    fn picked(self, see: See<'_>, each: impl FnOnce(See<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut last = None;
        match self.pick {
            Pick::All => return each(see),
            Pick::First => {
                let mut flow = ControlFlow::Continue(());
                let _first = each(&mut |value| {
                    flow = see(value);
                    ControlFlow::Break(())
                });
                return flow;
            }
            Pick::Last => {
                let _all = each(&mut |value| {
                    if let Value::Text(text) = value {
                        last = Some(text.to_vec());
                    }
                    ControlFlow::Continue(())
                });
            }
        }
        last.map_or(ControlFlow::Continue(()), |last| see(Value::Text(&last)))
    }

    fn path(self, path: &[u8]) -> Vec<u8> {
        let reading = self.server.path();
        let mut read = path.to_vec();
        if reading.drops_parameters {
            let segments = path.split(|byte| *byte == b'/');
            let without =
                segments.map(|segment| segment.split(|byte| *byte == b';').next().unwrap_or_default());
            read = without.collect::<Vec<_>>().join(&b'/');
        }
        if reading.decodes {
            read = decoded(&read);
        }
        if reading.merges_slashes {
            read.dedup_by(|after, before| (*after, *before) == (b'/', b'/'));
        }
        if reading.is_lax && self.ignores_case {
            read.make_ascii_lowercase();
        }
        while reading.is_lax && self.ignores_tail && read.len() > 1 && read.last() == Some(&b'/') {
            read.pop();
        }
        read
    }

    fn parameters(self, view: &RequestView<'_>, key: &[u8], see: See<'_>) -> ControlFlow<()> {
        let names = self.server.parameters();
        let wanted = names.read(key);
        let query = view.path().query().unwrap_or_default();
        for (name, value) in crate::query::parameters(query) {
            let is_bad =
                || has_bad_code(name) || has_bad_code(value) || [name, value].concat().contains(&b';');
            if self.server.drops_bad_parameters() && is_bad() {
                continue;
            }
            if names.read(crate::query::decoded(name).as_bytes()) == wanted {
                see(Value::Text(crate::query::decoded(value).as_bytes()))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn header(self, view: &RequestView<'_>, name: &str, see: See<'_>) -> ControlFlow<()> {
        let between = match self.server.lines() {
            Lines::One => return self.picked(see, |see| crate::request::texts(view.lines_named(name), see)),
            Lines::Joined(between) => between,
        };
        let lines: Vec<&[u8]> = view.lines_named(name).collect();
        if lines.is_empty() { ControlFlow::Continue(()) } else { see(Value::Text(&lines.join(between))) }
    }
}

/// Whether a `%` stands without two hex digits.
fn has_bad_code(text: &[u8]) -> bool {
    memchr::memchr_iter(b'%', text).any(|at| code_at_start(&text[at..]).is_none())
}

/// Fields whose lines are lists of members (RFC 9110 section 5.6.1): each member is a value, in whichever line it stands.
const LISTS: &[&str] = &[
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "allow",
    "cache-control",
    "content-encoding",
    "content-language",
    "forwarded",
    "if-match",
    "if-none-match",
    "pragma",
    "prefer",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
    "te",
    "trailer",
    "vary",
    "via",
    "warning",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
];

/// Whether the lines of a header field, named in lower case, are lists: then rules see their members as values.
#[must_use]
pub fn is_list(name: &str) -> bool {
    LISTS.binary_search(&name).is_ok()
}

/// The members of a line that is a list: separated by commas outside of quotes, without blanks around them. Empty ones are
/// none (RFC 9110 section 5.6.1.2).
pub(crate) fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let is_border = move |byte: &u8| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' => return !is_quoted,
            _ => {}
        }
        false
    };
    line.split(is_border).map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}
