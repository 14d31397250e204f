//! What is told of a connection that came to no request: its TLS handshake or its PROXY header failed.

use std::net::SocketAddr;

use pointsman_telemetry::{Counts, Event, Exchange, HandshakeFailure, ListenerMetrics, Topic};
use pointsman_tls::{HandshakeFault, HelloFault};
use pointsman_view::{AddressText, Connection};

use crate::plain_request;
use crate::shard::Shard;

/// What the log says of a fault is no longer.
const DETAIL_CHARS_MAX: usize = 200;

/// Whose connection it was, and since when.
#[derive(Clone, Copy)]
pub(crate) struct Shaking<'a> {
    pub(crate) listener: &'a ListenerMetrics,
    pub(crate) connection: &'a Connection,
    pub(crate) since_us: u64,
}

impl Shaking<'_> {
    /// The library gave up. Who closes without a word of TLS leaves no line: balancers look so whether somebody
    /// is there, and it is not known what was wrong.
    pub(crate) fn failed(&self, shard: &Shard, error: &std::io::Error) {
        let fault = HandshakeFault::of(error);
        let why = failure(fault);
        self.count(shard, why);
        self.note(shard, why.label(), &error.to_string());
        if fault != HandshakeFault::Closed && shard.recorder.is_logging() {
            let detail: String = error.to_string().chars().take(DETAIL_CHARS_MAX).collect();
            self.log(shard, &format!("TLS handshake: {}: {detail}", why.label()));
        }
    }

    /// What came is no hello by which a connection could be passed on.
    pub(crate) fn no_hello(&self, shard: &Shard, fault: HelloFault) {
        let why = match fault {
            HelloFault::NotTls => HandshakeFailure::NotTls,
            HelloFault::Malformed | HelloFault::TooLong => HandshakeFailure::Malformed,
        };
        self.count(shard, why);
        self.note(shard, why.label(), fault.sentence());
        if shard.recorder.is_logging() {
            self.log(shard, &format!("TLS handshake: {}: {}", why.label(), fault.sentence()));
        }
    }

    /// The client spoke plain HTTP, which is answered in words.
    pub(crate) fn plain_request(&self, shard: &Shard) {
        const SENTENCE: &str = "a plain HTTP request";
        let why = HandshakeFailure::NotTls;
        self.count(shard, why);
        self.note(shard, why.label(), SENTENCE);
        if shard.recorder.is_logging() {
            self.log_answered(
                shard,
                plain_request::STATUS,
                &format!("TLS handshake: {}: {SENTENCE}", why.label()),
            );
        }
    }

    /// It took too long. Who never said anything leaves no line.
    pub(crate) fn timed_out(&self, shard: &Shard, has_spoken: bool) {
        self.count(shard, HandshakeFailure::Timeout);
        let said = if has_spoken { "it said something" } else { "it said nothing" };
        self.note(shard, HandshakeFailure::Timeout.label(), said);
        if has_spoken && shard.recorder.is_logging() {
            self.log(shard, "TLS handshake: timeout");
        }
    }

    pub(crate) fn count(&self, shard: &Shard, why: HandshakeFailure) {
        shard.recorder.hear(&Event::HandshakeFailed(self.listener, why));
    }

    /// What the access log, which need not be there, tells of some of them only.
    fn note(&self, shard: &Shard, why: &str, error: &str) {
        shard.shared.notes.note(Topic::Clients, || {
            let listener = self.listener.name();
            let from = self.connection.src.map_or_else(|| "-".to_owned(), |src| src.to_string());
            let ms = shard.clock.now_us().saturating_sub(self.since_us) / 1000;
            format!("handshake failed listener={listener} from={from} why={why:?} error={error:?} ms={ms}")
        });
    }

    /// A line of the access log.
    pub(crate) fn log(&self, shard: &Shard, error: &str) {
        self.log_answered(shard, 0, error);
    }

    /// The same where the client was sent a status.
    fn log_answered(&self, shard: &Shard, status: u16, error: &str) {
        log_no_request(shard, (self.listener, self.connection, self.since_us), status, error);
    }
}

/// A line about a client and what it did since then that came to no request. `status` is 0 where it was sent none.
pub(crate) fn log_no_request(
    shard: &Shard,
    (listener, connection, since_us): (&ListenerMetrics, &Connection, u64),
    status: u16,
    error: &str,
) {
    let now_us = shard.clock.now_us();
    let text = |end: SocketAddr| AddressText::new(end.ip());
    let src = connection.src;
    let (peer, client) = (src.map(text), connection.sender().map(text));
    let total_us = now_us.saturating_sub(since_us);
    shard.recorder.hear(&Event::NoRequest(&Exchange {
        now_us,
        peer: peer.as_ref().zip(src).map(|(text, src)| (text.as_bytes(), src.port())),
        client_ip: client.as_ref().map(AddressText::as_bytes),
        error: Some(error),
        ..Exchange::new(Counts { total_us, status, ..Counts::new(listener) })
    }));
}

fn failure(fault: HandshakeFault) -> HandshakeFailure {
    match fault {
        HandshakeFault::NotTls => HandshakeFailure::NotTls,
        HandshakeFault::Malformed => HandshakeFailure::Malformed,
        HandshakeFault::NoSharedVersion => HandshakeFailure::NoSharedVersion,
        HandshakeFault::NoSharedCipher => HandshakeFailure::NoSharedCipher,
        HandshakeFault::NoSharedProtocol => HandshakeFailure::NoSharedProtocol,
        HandshakeFault::ClientCertificateVersion => HandshakeFailure::ClientCertificateVersion,
        HandshakeFault::ClientCertificate => HandshakeFailure::ClientCertificate,
        HandshakeFault::ServerCertificate => HandshakeFailure::ServerCertificate,
        HandshakeFault::Alert => HandshakeFailure::Alert,
        HandshakeFault::Closed => HandshakeFailure::Closed,
        HandshakeFault::Other => HandshakeFailure::Other,
    }
}
