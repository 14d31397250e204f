//! The earliest decision about a request with a body: how much of the body it takes, and what becomes of the request where
//! the body is wrong behind that.

use std::fmt;
use std::sync::Arc;

use pointsman_http::{BodyReader, Framing, RequestHead};
use pointsman_rules::{Cause, Evidence, Outcome, Program, SHOWN_VALUES_MAX, Truths, Validate};
use pointsman_view::{BodyFault, BodyOptions, BodyPaths, Inspection, RequestView};

/// The rules are asked again behind so many bytes, and behind each byte only where that decides.
const PIECE_BYTES: usize = 4096;

/// Rules that are asked about a request.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The rules.
    pub program: &'a Program,
    /// How bodies are read.
    pub options: &'a BodyOptions,
    /// The head of the request.
    pub head: &'a RequestHead,
    /// The bytes that the head was parsed from.
    pub received: &'a [u8],
}

/// What there is of a request's body, without what frames it.
#[derive(Debug)]
pub struct Content {
    bytes: Vec<u8>,
    /// Those that may be held until it is decided.
    held_bytes: usize,
    whole_bytes: u64,
    beyond_bytes: usize,
    end: End,
}

/// How it ends.
#[derive(Debug)]
enum End {
    Whole,
    /// There is less than the head announces.
    Missing,
    /// Its chunks are malformed, in these words.
    Malformed(&'static str),
}

/// How much of a body was needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// Bytes of it.
    pub bytes: usize,
    /// Whether it had to end there.
    pub to_its_end: bool,
    /// Bytes that the body has.
    pub of_bytes: u64,
}

/// A body that was read until the rules decided.
#[derive(Debug)]
pub struct Reading {
    inspection: Inspection,
    /// How much of it that took.
    pub needed: Needed,
    /// Whether no field that the rules name stands in a body of its type, which has some bytes.
    pub is_passed_by: bool,
}

/// Why nobody can say what the rules decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The rest of the body is not there. So many bytes are.
    Missing(usize),
    /// The switch refuses what frames it, in these words.
    Malformed(&'static str),
}

/// What is wrong with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The status that refuses it.
    pub status: u16,
    /// In words.
    pub what: String,
}

/// What becomes of a request that the rules have sent to a server, and whose body is wrong behind what decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoilt {
    /// It is refused, and no server hears of it (`validate full`).
    Refused(Wrong),
    /// It may have begun to go to its server, which never gets its last byte (`validate stream`). How much went
    /// depends on how the body came.
    BrokenOff(Wrong),
}

impl fmt::Display for Spoilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spoilt::Refused(Wrong { status, what }) => write!(f, "refused with {status}: {what}"),
            Spoilt::BrokenOff(Wrong { status, what }) => write!(
                f,
                "behind what was needed the body is wrong: {what}; the server never gets its last byte, and the client \
                 gets {status} unless an answer has begun"
            ),
        }
    }
}

impl Content {
    /// What stands behind the head of a request. So many bytes may be held of it, with what frames them; any number
    /// where that is not said.
    #[must_use]
    pub fn of(head: &RequestHead, behind: &[u8], hold_bytes_max: Option<u32>) -> Content {
        let framing = head.framing();
        let (mut bytes, mut trailers) = (Vec::new(), Vec::new());
        let (end, used) = match BodyReader::new(framing).feed_unchunked(behind, &mut bytes, &mut trailers) {
            Ok(fed) => (if fed.done { End::Whole } else { End::Missing }, fed.used),
            Err(fault) => (End::Malformed(fault.sentence()), behind.len()),
        };
        let whole_bytes = match framing {
            Framing::Length(length) => length,
            Framing::None | Framing::Chunked | Framing::UntilClose => bytes.len() as u64,
        };
        let mut held = Vec::new();
        let holds = hold_bytes_max.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
        if let Some((first, _)) = behind.split_at_checked(holds).filter(|(_, more)| !more.is_empty()) {
            // What is wrong with it is known already.
            let _fed = BodyReader::new(framing).feed_unchunked(first, &mut held, &mut trailers);
        }
        let is_held = behind.len() <= holds || held.len() == bytes.len();
        let held_bytes = if is_held { bytes.len() } else { held.len() };
        let beyond_bytes = behind.len().saturating_sub(used);
        Content { bytes, held_bytes, whole_bytes, beyond_bytes, end }
    }

    /// Bytes that stand behind it and are none of it.
    #[must_use]
    pub fn beyond_bytes(&self) -> usize {
        self.beyond_bytes
    }

    /// What is said of it where nothing asks for it.
    #[must_use]
    pub fn not_needed(&self) -> Needed {
        Needed { of_bytes: self.whole_bytes, ..Needed::default() }
    }

    /// Reads on to the byte that decides. `view` is that of the head.
    ///
    /// # Errors
    /// It does not decide with what there is of the body.
    pub fn read(&self, asking: Asking<'_>, view: RequestView<'_>) -> Result<Reading, Unread> {
        let Asking { program, options, head, received } = asking;
        let paths = Arc::new(BodyPaths::new(program));
        let unread = || {
            let evidence = Evidence::keeping(program, SHOWN_VALUES_MAX);
            Inspection::new(evidence, paths.clone(), head, received, options)
        };
        let mut truths = Truths::default();
        let mut waits = |inspection: &Inspection| {
            let decision = program.decide(&view.with_body(inspection.evidence()), &mut truths);
            matches!(decision.outcome, Outcome::Waits)
        };
        let mut inspection = unread();
        let is_passed_by = self.whole_bytes > 0 && inspection.is_passed_by();
        let behind = |inspection, bytes| {
            let needed = Needed { bytes, ..self.not_needed() };
            Reading { inspection, needed, is_passed_by }
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
        let Reading { inspection, needed, .. } = behind(inspection, self.bytes.len());
        Ok(Reading { inspection, needed: Needed { to_its_end: true, ..needed }, is_passed_by })
    }

    /// Reads all of it; nothing where it is not there, or the switch would not.
    #[must_use]
    pub fn whole(&self, asking: Asking<'_>) -> Option<Inspection> {
        let Asking { program, options, head, received } = asking;
        if !matches!(self.end, End::Whole) || self.held_bytes < self.bytes.len() {
            return None;
        }
        let evidence = Evidence::keeping(program, usize::MAX);
        let mut inspection =
            Inspection::new(evidence, Arc::new(BodyPaths::new(program)), head, received, options);
        inspection.feed(&self.bytes);
        inspection.finish();
        Some(inspection)
    }

    /// What becomes of the request behind its decision, which fell with this reading; nothing where that is all there is
    /// to say. Of a body that is not there to its end nobody knows.
    #[must_use]
    pub fn spoilt(&self, program: &Program, reading: Reading, outcome: &Outcome<'_>) -> Option<Spoilt> {
        let wrong = self.wrong_behind(reading, outcome)?;
        Some(match program.validate {
            // Nothing was sent to a server yet.
            Validate::Full => Spoilt::Refused(wrong),
            Validate::Stream => Spoilt::BrokenOff(wrong),
        })
    }

    /// What is wrong with the body behind what was needed: nothing where no server gets it.
    fn wrong_behind(&self, reading: Reading, outcome: &Outcome<'_>) -> Option<Wrong> {
        let Reading { mut inspection, needed, .. } = reading;
        if !outcome.goes_to_a_server() || inspection.fault().is_some() || needed.bytes == 0 {
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

impl Reading {
    /// What is known of the body where it is decided.
    #[must_use]
    pub fn evidence(&self) -> &Evidence {
        self.inspection.evidence()
    }

    /// What is wrong with it so far.
    #[must_use]
    pub fn fault(&self) -> Option<&BodyFault> {
        self.inspection.fault()
    }
}
