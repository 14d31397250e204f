//! What only the access log, traces and who looks at requests that stand out want of a request, from its head to the end of
//! its exchange.

use std::cell::RefCell;
use std::net::IpAddr;
use std::ops::Range;

use pointsman_telemetry::{Hedge, TraceContext};

/// Facts that a thread keeps for its next requests.
const SPARE_FACTS_MAX: usize = 256;

/// Facts that a long path made larger than this are not kept.
const SPARE_BYTES_MAX: usize = 512;

/// Room for the texts of most requests.
const USUAL_BYTES: usize = 256;

/// The facts of one request. Its texts are copies, one behind the other in one buffer, since their sources are used
/// again before the line is written.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The client, where the peer is a trusted proxy.
    pub(crate) client_ip: Option<IpAddr>,
    /// Whether the log is to have the query; there may be none.
    pub(crate) logs_query: bool,
    /// Whether there is a body, where the head says it in one way.
    pub(crate) has_body: Option<bool>,
    pub(crate) content_length: Option<u64>,
    /// How long it has waited for a place at a server, where it has.
    pub(crate) queued_us: Option<u64>,
    /// What became of a try beside one that was slow, where there was to be any.
    pub(crate) hedge: Option<Hedge>,
    /// Whether no try followed a failed one because the pool had none left.
    pub(crate) is_over_budget: bool,
    /// Where it stands in a trace, if it is traced.
    pub(crate) trace: Option<TraceContext>,
    /// Words that rules gave.
    pub(crate) tags: Vec<Box<str>>,
    /// When each step was taken, from the first byte of the request.
    pub(crate) steps_us: [Option<u64>; STEPS],
    bytes: Vec<u8>,
    places: [Option<Range<usize>>; TEXTS],
}

/// Which text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text {
    Method,
    Host,
    Path,
    Query,
    Referer,
    UserAgent,
    ContentType,
    Rule,
    /// Why the rule's condition ended unknown.
    Unknown,
    /// The class that the request was too much for.
    Limit,
    Pool,
    /// The pool that was sent a copy.
    Mirror,
    /// The server that was asked besides, or first, and whose answer was not taken.
    OtherServer,
    /// What is wrong with the body.
    Content,
    /// The server name of a hello.
    Sni,
}

/// A step whose time the log tells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Decided,
    Connected,
    FirstByte,
}

const STEPS: usize = Step::FirstByte as usize + 1;

const TEXTS: usize = Text::Sni as usize + 1;

impl Facts {
    fn new() -> Facts {
        Facts {
            client_ip: None,
            logs_query: false,
            has_body: None,
            content_length: None,
            queued_us: None,
            hedge: None,
            is_over_budget: false,
            trace: None,
            tags: Vec::new(),
            steps_us: [None; STEPS],
            bytes: Vec::with_capacity(USUAL_BYTES),
            places: Default::default(),
        }
    }

    /// Keeps a copy of a text.
    pub(crate) fn note(&mut self, which: Text, text: &[u8]) {
        let start = self.bytes.len();
        // Not by doubling: what is copied from a request takes no more than the request.
        self.bytes.reserve_exact(text.len());
        self.bytes.extend_from_slice(text);
        self.places[which as usize] = Some(start..self.bytes.len());
    }

    /// It was not so.
    pub(crate) fn forget(&mut self, which: Text) {
        self.places[which as usize] = None;
    }

    pub(crate) fn text(&self, which: Text) -> Option<&[u8]> {
        self.places[which as usize].clone().map(|place| &self.bytes[place])
    }

    fn clear(&mut self) {
        self.client_ip = None;
        self.logs_query = false;
        self.has_body = None;
        self.content_length = None;
        self.queued_us = None;
        self.hedge = None;
        self.is_over_budget = false;
        self.trace = None;
        self.tags.clear();
        self.steps_us = [None; STEPS];
        self.bytes.clear();
        self.places = Default::default();
    }

    fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.tags.capacity() * size_of::<Box<str>>()
    }
}

/// A thread's facts that no request has: those of most requests take nothing from the heap.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "they go from hand to hand as boxes, and are never copied")]
pub(crate) struct SpareFacts(RefCell<Vec<Box<Facts>>>);

impl SpareFacts {
    /// Facts that say nothing yet.
    pub(crate) fn take(&self) -> Box<Facts> {
        self.0.borrow_mut().pop().unwrap_or_else(|| Box::new(Facts::new()))
    }

    /// Takes back what a line was written of.
    pub(crate) fn give_back(&self, mut facts: Box<Facts>) {
        let mut spare = self.0.borrow_mut();
        if spare.len() < SPARE_FACTS_MAX && facts.heap_bytes() <= SPARE_BYTES_MAX {
            facts.clear();
            spare.push(facts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_what_was_noted_last() {
        let mut facts = Facts::new();
        facts.note(Text::Method, b"GET");
        facts.note(Text::Path, b"");
        facts.note(Text::Pool, b"one");
        facts.note(Text::Pool, b"other");
        facts.note(Text::Rule, b"R1");
        facts.forget(Text::Rule);
        let texts = [Text::Method, Text::Host, Text::Path, Text::Rule, Text::Pool];
        let noted = texts.map(|which| facts.text(which));
        assert_eq!(noted, [Some(&b"GET"[..]), None, Some(b""), None, Some(b"other")]);
    }

    #[test]
    fn spare_facts_are_few_and_small_and_say_nothing() {
        let spares = SpareFacts::default();
        let mut facts = spares.take();
        facts.client_ip = Some(IpAddr::from([192, 0, 2, 1]));
        facts.tags.push("gold".into());
        facts.steps_us[Step::FirstByte as usize] = Some(7);
        (facts.logs_query, facts.has_body, facts.content_length) = (true, Some(true), Some(5));
        facts.is_over_budget = true;
        facts.hedge = Some(Hedge::Lost);
        facts.note(Text::Path, &[b'a'; SPARE_BYTES_MAX - 100]);
        spares.give_back(facts);
        let mut facts = spares.take();
        assert!(facts.heap_bytes() > USUAL_BYTES, "they are the same again");
        assert_eq!(facts.steps_us, [None; STEPS]);
        assert_eq!((facts.logs_query, facts.has_body, facts.content_length), (false, None, None));
        assert!(!facts.is_over_budget && facts.hedge.is_none());
        assert!(facts.client_ip.is_none() && facts.tags.is_empty() && facts.text(Text::Path).is_none());

        facts.note(Text::Path, &[b'a'; SPARE_BYTES_MAX + 1]);
        assert!(facts.heap_bytes() < SPARE_BYTES_MAX * 2);
        spares.give_back(facts);
        assert_eq!(spares.take().heap_bytes(), USUAL_BYTES);

        let all: Vec<_> = (0..=SPARE_FACTS_MAX).map(|_| spares.take()).collect();
        all.into_iter().for_each(|facts| spares.give_back(facts));
        assert_eq!(spares.0.borrow().len(), SPARE_FACTS_MAX);
    }
}
