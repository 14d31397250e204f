//! What is written down of requests while they run: times in histograms, the rest in counts.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::classes::{self, ClassRecord};
use crate::clock::SECOND_NS;
use crate::gaps::Gaps;
use crate::negotiated::{Agreements, Kind, Negotiated};
use crate::packed;
use crate::session_record::SessionRecord;

/// Batches are so long: fine enough to see where a run was not yet steady.
pub(crate) const BATCH_NS: u64 = SECOND_NS / 10;

/// How often it is looked how many requests are under way.
pub(crate) const LOOK_NS: u64 = BATCH_NS / LOOKS_A_BATCH as u64;
pub(crate) const LOOKS_A_BATCH: usize = 2;

/// Times are told apart from here on.
pub(crate) const TIME_NS_MIN: u64 = 64;
/// Longer ones count as this: an hour.
pub(crate) const TIME_NS_MAX: u64 = 3600 * SECOND_NS;
/// Decimal digits that a time is known to.
const DIGITS: u8 = 3;

/// Why a request has no answer, or none that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The server takes no connection.
    Connect,
    /// We have no port or address left to connect from.
    Ports,
    /// We have no descriptor left.
    Descriptors,
    /// The handshake failed.
    Tls,
    /// The handshake failed, because the server went on with a session or an extension that it was not offered.
    Unasked,
    /// The answer did not come in time.
    Timeout,
    /// The connection was reset.
    Reset,
    /// The connection ended before the answer did.
    Closed,
    /// What came is no answer.
    Malformed,
    /// Frames came on its connection without end, none of which brought an answer nearer (HTTP/2).
    Flooded,
    /// The request was to be sent once more for the second time, mostly because the server has said, twice, that it does
    /// not look at it (HTTP/2).
    Refused,
    /// The answer is one of refusal or failure: 400 to 599.
    Status,
}

impl ErrorKind {
    /// All of them, in this order.
    pub const ALL: [ErrorKind; 12] = [
        ErrorKind::Connect,
        ErrorKind::Ports,
        ErrorKind::Descriptors,
        ErrorKind::Tls,
        ErrorKind::Unasked,
        ErrorKind::Timeout,
        ErrorKind::Reset,
        ErrorKind::Closed,
        ErrorKind::Malformed,
        ErrorKind::Flooded,
        ErrorKind::Refused,
        ErrorKind::Status,
    ];

    /// A word for reports.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Connect => "connect",
            ErrorKind::Ports => "ports",
            ErrorKind::Descriptors => "descriptors",
            ErrorKind::Tls => "tls",
            ErrorKind::Unasked => "unasked",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Reset => "reset",
            ErrorKind::Closed => "closed",
            ErrorKind::Malformed => "malformed",
            ErrorKind::Flooded => "flooded",
            ErrorKind::Refused => "refused",
            ErrorKind::Status => "status",
        }
    }
}

/// A tenth of a second of the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Answers that came, whenever their requests were due.
    pub completed: u64,
    /// Of these, those that are no failures.
    pub right: u64,
    /// Of all that came, from when they were due, all added up.
    pub response_ns: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Bytes of answers that came.
    pub bytes: u64,
    /// Of these, those of bodies, without what frames them.
    pub payload: u64,
    /// Requests that were due.
    pub due: u64,
    /// Handshakes that were done.
    pub handshakes: [u64; Kind::ALL.len()],
}

/// What was written down of a run, or of one thread of it. Records can be added up.
///
/// *Its requests* are those that were due in the measured time, whenever they ended; what came *in the measured time*
/// came then, whenever it was due.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// From when a request was due to the last byte of its answer. A request that timed out stands here with the time
    /// that it was waited for; other failures do not.
    #[serde(with = "packed::times")]
    pub response: Histogram<u64>,
    /// From when it was begun: by sending it, or by opening the connection that was made for it.
    #[serde(with = "packed::times")]
    pub service: Histogram<u64>,
    /// From when it was sent to the first byte of its answer.
    #[serde(with = "packed::times")]
    pub first_byte: Histogram<u64>,
    /// From the first packet of a connection to when it was open, in the measured time.
    #[serde(with = "packed::times")]
    pub connect: Histogram<u64>,
    /// From there to when its handshake was complete.
    #[serde(with = "packed::times")]
    pub handshake: Histogram<u64>,
    /// How much later than it was due the generator turned to a request, whether there was a connection for it or not.
    #[serde(with = "packed::times")]
    pub lag: Histogram<u64>,
    /// How long requests that were held back, and begun in the end, waited for a connection.
    #[serde(with = "packed::times")]
    pub held: Histogram<u64>,
    /// Requests that were due.
    pub due: u64,
    /// Those that were begun.
    pub begun: u64,
    /// Those that got a whole answer, whatever its status.
    pub answered: u64,
    /// Of these, those whose connection was kept behind the answer, by both sides.
    pub answered_kept: u64,
    /// Of these, those that were sent behind another one before its answer had come.
    pub answered_pipelined: u64,
    /// Of these, those over TLS.
    pub answered_over_tls: u64,
    /// Requests that were sent once more, because the server had said that it answers no others on their connection:
    /// those of pipelines, and of streams that it did not look at; or because it has said nothing for so long that others
    /// were late there, before they had a stream. They count once.
    pub sent_again: u64,
    /// Those that had to wait for a connection, because there were as many as there may be.
    pub held_back: u64,
    /// Those that were never begun.
    pub unsent: u64,
    /// Requests of the warm-up that had no answer when the measured time began.
    pub left_of_warm_up: u64,
    /// Of these, those that waited for a connection.
    pub left_waiting: u64,
    /// Those that failed, by [`ErrorKind::ALL`].
    pub errors: [u64; ErrorKind::ALL.len()],
    /// Answers by status: 100 to 599 are at their own numbers.
    pub statuses: Vec<u64>,
    /// Of these, those that are failures.
    pub failed_statuses: Vec<u64>,
    /// The measured time, in tenths of a second.
    pub batches: Vec<Batch>,
    /// How long the shortest and the longest body of a right answer were, in bytes. Nothing: there was none.
    pub payloads: Option<(u64, u64)>,
    /// Bytes of requests that were sent in the measured time, without what TLS adds.
    pub bytes_sent: u64,
    /// Connections opened in the measured time.
    pub opened: u64,
    /// Connections that were to be open before the load.
    pub first_wanted: u64,
    /// Those of them that were opened, handshake and all.
    pub first_opened: u64,
    /// Those of them that were open when the load began: the server had not closed them by then.
    pub first_open: u64,
    /// The most connections at a time, in the whole run; of several threads or machines all added up.
    pub connections_most: u64,
    /// Handshakes completed in the measured time, by [`Kind::ALL`].
    pub handshakes: [u64; Kind::ALL.len()],
    /// Idle connections that the server closed, in the whole run.
    pub closed_idle: u64,
    /// Requests under way as the connections held them, at a moment of each twentieth of a second of the measured time.
    pub looks: Vec<u64>,
    /// The greatest number that a request had.
    pub last_number: u64,
    /// Between one request's beginning and the next one's, of the same thread.
    pub gaps: Gaps,
    /// How long it was waited for what was due within microseconds, on the core rather than asleep, in the measured
    /// time: what the generator could have used.
    pub spun_ns: u64,
    /// Of each class of the plan, in its order.
    pub classes: Vec<ClassRecord>,
    /// What was agreed on, in the whole run.
    pub(crate) agreements: Agreements,
    /// Of users' sessions, where the plan has some.
    pub sessions: Option<Box<SessionRecord>>,
    /// The first few words of the library about handshakes that failed.
    pub tls_fault: Option<String>,
}

impl Record {
    pub(crate) fn new(batches: usize) -> Record {
        let times = new_histogram;
        Record {
            response: times(),
            service: times(),
            first_byte: times(),
            connect: times(),
            handshake: times(),
            lag: times(),
            held: times(),
            due: 0,
            begun: 0,
            answered: 0,
            answered_kept: 0,
            answered_pipelined: 0,
            answered_over_tls: 0,
            held_back: 0,
            unsent: 0,
            left_of_warm_up: 0,
            left_waiting: 0,
            sent_again: 0,
            errors: [0; ErrorKind::ALL.len()],
            statuses: vec![0; 600],
            failed_statuses: vec![0; 600],
            batches: vec![Batch::default(); batches],
            payloads: None,
            bytes_sent: 0,
            opened: 0,
            first_wanted: 0,
            first_opened: 0,
            first_open: 0,
            connections_most: 0,
            handshakes: [0; Kind::ALL.len()],
            closed_idle: 0,
            looks: vec![0; batches * LOOKS_A_BATCH],
            last_number: 0,
            gaps: Gaps::default(),
            spun_ns: 0,
            classes: Vec::new(),
            agreements: Agreements::default(),
            sessions: None,
            tls_fault: None,
        }
    }

    /// Adds another thread's, or another machine's, of the same plan.
    pub fn merge(&mut self, other: Record) {
        let pairs = [
            (&mut self.response, &other.response),
            (&mut self.service, &other.service),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.connect, &other.connect),
            (&mut self.handshake, &other.handshake),
            (&mut self.lag, &other.lag),
            (&mut self.held, &other.held),
        ];
        for (ours, theirs) in pairs {
            ours.add(theirs).expect("all have the same bounds");
        }
        let counts = [
            (&mut self.due, other.due),
            (&mut self.begun, other.begun),
            (&mut self.answered, other.answered),
            (&mut self.answered_kept, other.answered_kept),
            (&mut self.answered_pipelined, other.answered_pipelined),
            (&mut self.answered_over_tls, other.answered_over_tls),
            (&mut self.held_back, other.held_back),
            (&mut self.unsent, other.unsent),
            (&mut self.left_of_warm_up, other.left_of_warm_up),
            (&mut self.left_waiting, other.left_waiting),
            (&mut self.sent_again, other.sent_again),
            (&mut self.bytes_sent, other.bytes_sent),
            (&mut self.opened, other.opened),
            (&mut self.first_wanted, other.first_wanted),
            (&mut self.first_opened, other.first_opened),
            (&mut self.first_open, other.first_open),
            (&mut self.connections_most, other.connections_most),
            (&mut self.closed_idle, other.closed_idle),
            (&mut self.spun_ns, other.spun_ns),
        ];
        for (ours, theirs) in counts {
            *ours += theirs;
        }
        self.last_number = self.last_number.max(other.last_number);
        add(&mut self.errors, &other.errors);
        add(&mut self.looks, &other.looks);
        add(&mut self.statuses, &other.statuses);
        add(&mut self.failed_statuses, &other.failed_statuses);
        add(&mut self.handshakes, &other.handshakes);
        for (ours, theirs) in self.batches.iter_mut().zip(&other.batches) {
            ours.completed += theirs.completed;
            ours.right += theirs.right;
            ours.response_ns += theirs.response_ns;
            ours.failed += theirs.failed;
            ours.bytes += theirs.bytes;
            ours.payload += theirs.payload;
            ours.due += theirs.due;
            add(&mut ours.handshakes, &theirs.handshakes);
        }
        self.payloads = match (self.payloads, other.payloads) {
            (Some(ours), Some(theirs)) => Some((ours.0.min(theirs.0), ours.1.max(theirs.1))),
            (ours, theirs) => ours.or(theirs),
        };
        self.gaps.merge(other.gaps);
        classes::merge(&mut self.classes, other.classes);
        self.agreements.merge(other.agreements);
        match (&mut self.sessions, other.sessions) {
            (Some(ours), Some(theirs)) => ours.merge(&theirs),
            (ours, theirs) => *ours = ours.take().or(theirs),
        }
        self.tls_fault = self.tls_fault.take().or(other.tls_fault);
    }

    /// Forgets what was written down of tenths of a second behind so many.
    pub(crate) fn cut_to(&mut self, batches: usize) {
        self.batches.truncate(batches);
        self.looks.truncate(batches * LOOKS_A_BATCH);
        self.classes.iter_mut().for_each(|class| class.batches.truncate(batches));
        if let Some(sessions) = self.sessions.as_deref_mut() {
            sessions.ended_in.truncate(batches);
        }
    }

    pub(crate) fn agreed(&mut self, negotiated: Negotiated) {
        self.agreements.count(negotiated);
    }

    /// How often requests failed in this way.
    pub fn errors_of(&self, kind: ErrorKind) -> u64 {
        self.errors[kind as usize]
    }

    /// Requests that failed in any way.
    pub fn failed(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// Requests that were due in the measured time, of which the tenths of a second are here that a run was cut to.
    pub fn due_in_time(&self) -> u64 {
        self.batches.iter().map(|batch| batch.due).sum()
    }

    /// The same of handshakes, by kind.
    pub fn handshakes_in_time(&self) -> [u64; Kind::ALL.len()] {
        let mut all = [0; Kind::ALL.len()];
        self.batches.iter().for_each(|batch| add(&mut all, &batch.handshakes));
        all
    }

    /// Answers that came in the measured time.
    pub fn completed_in_time(&self) -> u64 {
        self.batches.iter().map(|batch| batch.completed).sum()
    }

    /// Right answers that came in the measured time: those that are no failures.
    pub fn right_in_time(&self) -> u64 {
        self.batches.iter().map(|batch| batch.right).sum()
    }

    /// The share of the requests that failed in any way, 0 to 1; of no request 0.
    pub fn failed_share(&self) -> f64 {
        self.failed() as f64 / self.due.max(1) as f64
    }

    /// A right answer had a body of so many bytes.
    pub(crate) fn had_body(&mut self, bytes: u64) {
        let (least, most) = self.payloads.unwrap_or((bytes, bytes));
        self.payloads = Some((least.min(bytes), most.max(bytes)));
    }

    /// Bytes of answers' bodies that came in the measured time.
    pub fn payload_in_time(&self) -> u64 {
        self.batches.iter().map(|batch| batch.payload).sum()
    }

    /// Bytes of answers that came in the measured time.
    pub fn bytes_in_time(&self) -> u64 {
        self.batches.iter().map(|batch| batch.bytes).sum()
    }
}

/// Times in nanoseconds, in a histogram of three digits.
pub type Times = Histogram<u64>;

/// All have the same bounds.
pub(crate) fn new_histogram() -> Times {
    Histogram::new_with_bounds(TIME_NS_MIN, TIME_NS_MAX, DIGITS).expect("these are bounds that it takes")
}

fn add(ours: &mut [u64], theirs: &[u64]) {
    ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
}
