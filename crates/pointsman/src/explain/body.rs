//! The body of a request that is explained: how much of it the rules need, and what they see in it.

use std::sync::Arc;

use pointsman_http::{BodyReader, Framing, HeaderKind};
use pointsman_rules::{Cause, Evidence, Outcome, Program, SHOWN_VALUES_MAX, Truths};
use pointsman_view::{BodyFault, BodyOptions, BodyPaths, Inspection, RequestView};

use super::report::shown;
use super::request::Request;

/// The rules are asked again behind so many bytes, and behind each byte only where that decides.
const PIECE_BYTES: usize = 4096;

/// What a file holds of a request's body, without what frames it.
#[derive(Debug)]
pub(super) struct Content {
    bytes: Vec<u8>,
    /// Those that may be held until it is decided.
    held_bytes: usize,
    /// That it has, as far as that is known.
    whole_bytes: u64,
    end: End,
}

/// How it ends.
#[derive(Debug)]
enum End {
    Whole,
    /// There is less in the file than the head announces.
    Missing,
    /// Its chunks are malformed, in these words.
    Malformed(&'static str),
}

/// How much of a body was needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needed {
    pub(super) bytes: usize,
    /// Whether it had to end there.
    pub(super) to_its_end: bool,
    /// Bytes that the body has.
    pub(super) of_bytes: u64,
}

/// A body that was read until the rules decided.
pub(super) struct Reading {
    pub(super) inspection: Inspection,
    pub(super) needed: Needed,
    /// That no field that the rules name stands in a body of its type, in words.
    pub(super) passed_by: Option<String>,
}

/// Why nobody can say what the rules decide.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The rest of the body is not in the file, which holds so many bytes.
    Missing(usize),
    /// The switch refuses what frames it.
    Malformed(&'static str),
}

/// What is wrong with a body, and the status that refuses it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) status: u16,
    pub(super) what: String,
}

impl Content {
    /// What stands behind the head of a request; what is odd there is noted. So many bytes may be held of it, with what
    /// frames them.
    pub(super) fn of(request: &Request, hold_bytes_max: u32, notes: &mut Vec<String>) -> Content {
        let behind = request.behind_head();
        let framing = request.head.framing();
        let (mut bytes, mut trailers) = (Vec::new(), Vec::new());
        let (end, used) = match BodyReader::new(framing).feed_unchunked(behind, &mut bytes, &mut trailers) {
            Ok(fed) => (if fed.done { End::Whole } else { End::Missing }, fed.used),
            Err(fault) => (End::Malformed(fault.sentence()), behind.len()),
        };
        match (behind.len() - used, framing) {
            (0, _) => {}
            (more, Framing::None) => notes.push(format!(
                "the head announces no body: {} behind it are none of the request",
                counted(more as u64)
            )),
            (more, _) => notes.push(format!("{} behind the body are none of it", counted(more as u64))),
        }
        let whole_bytes = match framing {
            Framing::Length(length) => length,
            Framing::None | Framing::Chunked | Framing::UntilClose => bytes.len() as u64,
        };
        let mut held = Vec::new();
        let holds = usize::try_from(hold_bytes_max).unwrap_or(usize::MAX);
        if let Some((first, _)) = behind.split_at_checked(holds).filter(|(_, more)| !more.is_empty()) {
            // What is wrong with it is known already.
            let _fed = BodyReader::new(framing).feed_unchunked(first, &mut held, &mut trailers);
        }
        let is_held = behind.len() <= holds || held.len() == bytes.len();
        let held_bytes = if is_held { bytes.len() } else { held.len() };
        Content { bytes, held_bytes, whole_bytes, end }
    }

    /// What is said of it where nothing asks for it.
    pub(super) fn not_needed(&self) -> Needed {
        Needed { of_bytes: self.whole_bytes, ..Needed::default() }
    }

    /// Reads on to the byte that decides.
    pub(super) fn read(
        &self,
        program: &Program,
        options: &BodyOptions,
        request: &Request,
        view: RequestView<'_>,
    ) -> Result<Reading, Unread> {
        let paths = Arc::new(BodyPaths::new(program));
        let unread = || {
            let evidence = Evidence::keeping(program, SHOWN_VALUES_MAX);
            Inspection::new(evidence, paths.clone(), &request.head, &request.bytes, options)
        };
        let mut truths = Truths::default();
        let mut waits = |inspection: &Inspection| {
            let decision = program.decide(&view.with_body(inspection.evidence()), &mut truths);
            matches!(decision.outcome, Outcome::Waits)
        };
        let mut inspection = unread();
        let is_passed_by = self.whole_bytes > 0 && inspection.is_passed_by();
        let passed_by = is_passed_by.then(|| passed_by(request));
        let behind = |inspection, bytes| {
            let needed = Needed { bytes, ..self.not_needed() };
            Reading { inspection, needed, passed_by: passed_by.clone() }
        };
        if !waits(&inspection) {
            return Ok(behind(inspection, 0));
        }
        let mut from = 0;
        let held = self.bytes.get(..self.held_bytes).unwrap_or_default();
        for piece in held.chunks(PIECE_BYTES) {
            inspection.feed(piece);
            if inspection.take_news() && !waits(&inspection) {
                let mut again = unread();
                again.feed(self.bytes.get(..from).unwrap_or_default());
                for (at, byte) in (from + 1..).zip(piece.chunks(1)) {
                    again.feed(byte);
                    if again.take_news() && !waits(&again) {
                        return Ok(behind(again, at));
                    }
                }
            }
            from += piece.len();
        }
        if self.held_bytes < self.bytes.len() {
            inspection.give_up(Cause::Limit);
            return Ok(behind(inspection, self.held_bytes));
        }
        match self.end {
            End::Missing => return Err(Unread::Missing(self.bytes.len())),
            End::Malformed(sentence) => return Err(Unread::Malformed(sentence)),
            End::Whole => inspection.finish(),
        }
        let Reading { inspection, needed, passed_by } = behind(inspection, self.bytes.len());
        Ok(Reading { inspection, needed: Needed { to_its_end: true, ..needed }, passed_by })
    }

    /// Reads all of it; nothing where the file does not hold it, or the switch would not.
    pub(super) fn whole(
        &self,
        program: &Program,
        options: &BodyOptions,
        request: &Request,
    ) -> Option<Inspection> {
        if !matches!(self.end, End::Whole) || self.held_bytes < self.bytes.len() {
            return None;
        }
        let evidence = Evidence::keeping(program, usize::MAX);
        let paths = Arc::new(BodyPaths::new(program));
        let mut inspection = Inspection::new(evidence, paths, &request.head, &request.bytes, options);
        inspection.feed(&self.bytes);
        inspection.finish();
        Some(inspection)
    }

    /// What is wrong with the body behind what was needed: nothing where no server gets it, or where the file does not
    /// hold it.
    pub(super) fn check_rest(&self, reading: Reading, outcome: &Outcome<'_>) -> Option<Wrong> {
        let goes_on = match outcome {
            Outcome::Terminal(terminal) => terminal.routes(),
            Outcome::DefaultPool | Outcome::RouteUnknown { .. } => true,
            Outcome::Refused(_) | Outcome::Waits => false,
        };
        let Reading { mut inspection, needed, .. } = reading;
        if !goes_on || inspection.fault().is_some() || needed.bytes == 0 {
            return None;
        }
        inspection.conclude();
        inspection.feed(self.bytes.get(needed.bytes..).unwrap_or_default());
        match self.end {
            End::Whole if !needed.to_its_end => inspection.finish(),
            End::Whole | End::Missing => {}
            End::Malformed(sentence) => return Some(Wrong { status: 400, what: sentence.to_owned() }),
        }
        let wrong = |fault: &BodyFault| Wrong { status: fault.cause().status(), what: fault.to_string() };
        inspection.fault().map(wrong)
    }
}

impl Needed {
    /// `decided after 80 of 117 bytes of the body`; nothing where there is no body.
    pub(super) fn sentence(&self) -> Option<String> {
        match (self.of_bytes, self.to_its_end) {
            (0, _) => None,
            (of_bytes, true) => Some(format!("decided at the end of the body, behind {}", counted(of_bytes))),
            (of_bytes, false) => {
                Some(format!("decided after {} of {} of the body", self.bytes, counted(of_bytes)))
            }
        }
    }
}

/// Why nobody looks into a body.
fn passed_by(request: &Request) -> String {
    let lines = request.head.lines();
    let media_type = lines.iter().find(|line| line.kind == HeaderKind::ContentType);
    let body = match media_type.map(|line| shown(line.value(&request.bytes))) {
        Some(media_type) => format!("of the type `{media_type}`"),
        None => "without a media type".to_owned(),
    };
    format!("none of the fields that the rules name stands in a body {body}")
}

fn counted(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}
