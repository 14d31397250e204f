//! Whether a request has readings at all: one look at what a guarding program names.

use std::borrow::Cow;
use std::collections::BTreeSet;

use pointsman_content::ParameterNames;
use pointsman_http::Framing;
use smallvec::SmallVec;

use super::{Readings, Server, has_bad_code};
use crate::RequestView;

/// What of a request servers may read in several ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Triggers(u8);

/// A percent-code or two slashes in a row in the path, or any code in `url` or `query`.
const CODE: u8 = 1;
/// Capitals in the path, or a slash at its end.
const LAX: u8 = 1 << 1;
/// A `;` in the path.
const PATH_PARAMETERS: u8 = 1 << 2;
/// A parameter, cookie or header that is named, in an unusual spelling.
const SPELLING: u8 = 1 << 3;
/// One that is named, and stands there more than once.
const REPEATED: u8 = 1 << 4;
/// A body without a length.
const CHUNKED: u8 = 1 << 5;

impl Triggers {
    pub(super) fn of(readings: &Readings, view: &RequestView<'_>) -> Triggers {
        let mut triggers = 0;
        let path = view.path();
        if readings.names_path {
            triggers |= readings.of_path(path.path());
        }
        if readings.names_url
            && (path.target() != view.target() || memchr::memchr(b'%', path.target()).is_some())
        {
            triggers |= SPELLING;
        }
        let query = path.query();
        if readings.names_query && query.is_some_and(|query| memchr::memchr(b'%', query).is_some()) {
            triggers |= SPELLING;
        }
        if let Some(query) = query.filter(|_| !readings.parameters.is_empty()) {
            triggers |= readings.of_query(query);
        }
        if !readings.cookies.is_empty() {
            triggers |= readings.of_cookies(view);
        }
        if !readings.headers.is_empty() {
            triggers |= readings.of_headers(view);
        }
        if readings.names_length && view.framing() == Framing::Chunked {
            triggers |= CHUNKED;
        }
        Triggers(triggers)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn repeats(self) -> bool {
        self.0 & REPEATED != 0
    }

    /// Whether a server may read the request in another way than the rules.
    pub(super) fn concern(self, server: Server) -> bool {
        let path = server.path();
        let mut concerning = SPELLING | REPEATED | CHUNKED;
        if path.decodes || path.merges_slashes {
            concerning |= CODE;
        }
        if path.is_lax {
            concerning |= LAX;
        }
        if path.drops_parameters {
            concerning |= PATH_PARAMETERS;
        }
        self.0 & concerning != 0
    }
}

/// Names that were seen, to find those that stand there twice. Few are named.
#[derive(Default)]
struct Seen(Vec<Box<[u8]>>);

impl Seen {
    /// What one more with this name, as common servers read it, comes to.
    fn note(&mut self, name: &[u8]) -> u8 {
        if self.0.iter().any(|seen| **seen == *name) {
            return REPEATED;
        }
        self.0.push(name.into());
        0
    }
}

impl Readings {
    fn of_path(&self, path: &[u8]) -> u8 {
        let mut triggers = 0;
        let mut before = 0;
        for &byte in path {
            match byte {
                b'%' => triggers |= CODE,
                b'/' if before == b'/' => triggers |= CODE,
                b';' => triggers |= PATH_PARAMETERS,
                b'A'..=b'Z' if !self.path_capitals => triggers |= LAX,
                _ => {}
            }
            before = byte;
        }
        if path.len() > 1 && before == b'/' && !self.path_tails { triggers | LAX } else { triggers }
    }

    fn of_query(&self, query: &[u8]) -> u8 {
        let (mut triggers, mut seen) = (0, Seen::default());
        for (name, value) in crate::query::parameters(query) {
            let decoded = crate::query::decoded(name);
            let read = ParameterNames::COMMON.read(decoded.as_bytes());
            if !self.parameters.contains(&*read) {
                continue;
            }
            let is_odd = *read != *name || has_bad_code(value) || memchr::memchr(b';', value).is_some();
            triggers |= seen.note(&read) | if is_odd { SPELLING } else { 0 };
        }
        triggers
    }

    fn of_cookies(&self, view: &RequestView<'_>) -> u8 {
        let (mut triggers, mut seen) = (0, Seen::default());
        for line in view.cookie_lines() {
            for piece in line.split(|byte| *byte == b';') {
                let piece = piece.trim_ascii();
                let Some(at) = memchr::memchr(b'=', piece) else { continue };
                let (name, value) = (piece[..at].trim_ascii_end(), piece[at + 1..].trim_ascii_start());
                if let Some(read) = self.named_cookie(name) {
                    let is_plain = *read == *name && value.iter().all(|byte| is_plain_in_cookie(*byte));
                    triggers |= seen.note(&read) | if is_plain { 0 } else { SPELLING };
                }
                // One that is named may hide behind a blank or a comma.
                let words = value.split(|byte| matches!(byte, b',' | b' ' | b'\t')).skip(1);
                let mut names = words.filter_map(|word| Some(&word[..memchr::memchr(b'=', word)?]));
                if names.any(|name| self.named_cookie(name).is_some()) {
                    triggers |= SPELLING | REPEATED;
                }
            }
        }
        triggers
    }

    /// The name of a cookie as common servers read it, if the program names it.
    fn named_cookie<'n>(&self, name: &'n [u8]) -> Option<Cow<'n, [u8]>> {
        let read = ParameterNames::COMMON.read(trim_high(name));
        self.cookies.contains(&*read).then_some(read)
    }

    fn of_headers(&self, view: &RequestView<'_>) -> u8 {
        let (mut triggers, mut seen) = (0, Seen::default());
        for line in view.lines() {
            if let Some(name) = self.headers.named(line.name(view.buffer())) {
                triggers |= seen.note(name.as_bytes());
            }
        }
        triggers
    }
}

/// Names of headers, in lower case.
#[derive(Clone, Debug, Default)]
pub(super) struct HeaderNames {
    names: BTreeSet<Box<str>>,
    /// One bit for each length of a name among them.
    lengths: u64,
}

impl HeaderNames {
    pub(super) fn insert(&mut self, name: &str) {
        self.lengths |= length_bit(name.len());
        self.names.insert(name.into());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn named(&self, name: &[u8]) -> Option<&str> {
        if self.lengths & length_bit(name.len()) == 0 {
            return None;
        }
        let mut lower: SmallVec<[u8; 64]> = name.into();
        lower.make_ascii_lowercase();
        self.names.get(std::str::from_utf8(&lower).ok()?).map(|name| &**name)
    }
}

/// Names of 63 bytes and more share a bit.
fn length_bit(bytes: usize) -> u64 {
    1 << bytes.min(63)
}

fn trim_high(name: &[u8]) -> &[u8] {
    let start = name.iter().take_while(|byte| !byte.is_ascii() || byte.is_ascii_control()).count();
    let name = &name[start..];
    let end = name.iter().rev().take_while(|byte| !byte.is_ascii() || byte.is_ascii_control()).count();
    &name[..name.len() - end]
}

fn is_plain_in_cookie(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'%' | b'"' | b'\\' | b',' | b'+')
}
