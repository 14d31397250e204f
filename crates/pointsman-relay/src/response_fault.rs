//! Faults of a server's response: which limit or rule it breaks, and where.

use pointsman_config::PoolLimits;
use pointsman_http::{AnswerTo, BodyFault, HeadLimits, Refusal, ResponseHead};
use pointsman_telemetry::{ServerFailure, Topic};

use crate::exchange::Exchange;
use crate::facts::Text;
use crate::fault::{Fault, ServerFault};
use crate::local::LocalServer;
use crate::shard::Shard;

/// What is wrong with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseFault {
    /// Its head is refused.
    Head(Refusal),
    /// Its body is refused.
    Body(BodyFault),
    /// More interim responses than are passed on.
    Interims,
    /// A 101 that changes to a protocol that was not asked for.
    UnaskedUpgrade,
    /// A success without the change of protocol that an HTTP/2 client takes it for.
    NoUpgrade,
    /// A message of HTTP/2 that is malformed.
    Http2,
}

impl ResponseFault {
    /// Words for the body of the 502 and, without a position, the access log.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            ResponseFault::Head(refusal) => head_sentence(refusal),
            ResponseFault::Body(fault) => match fault {
                BodyFault::ChunkSize => "the server's response: malformed chunk size",
                BodyFault::ChunkExtensions => "the server's response: too many chunk extensions",
                BodyFault::ChunkEnd => "the server's response: chunk data without CRLF at its end",
                BodyFault::Trailer => "the server's response: malformed or forbidden trailer",
            },
            ResponseFault::Interims => "the server's response: more than 16 interim responses before it",
            ResponseFault::UnaskedUpgrade => {
                "the server's response: a 101 to a protocol that was not asked for, or not as it was asked for"
            }
            ResponseFault::NoUpgrade => "the server's response: a success without the change of protocol",
            ResponseFault::Http2 => {
                "the server's response: malformed message of HTTP/2, or head over `head_bytes_max` of the pool"
            }
        }
    }

    /// Kind of the failure, for the metrics.
    pub(crate) fn kind(self) -> ServerFailure {
        match self {
            ResponseFault::Head(Refusal::HeadTooLarge) => ServerFailure::HeadBytes,
            ResponseFault::Head(Refusal::TooManyHeaders) => ServerFailure::Headers,
            ResponseFault::Body(_) => ServerFailure::Body,
            _ => ServerFailure::Protocol,
        }
    }
}

fn head_sentence(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::HeadTooLarge => "the server's response: head over `head_bytes_max` of the pool",
        Refusal::TooManyHeaders => "the server's response: more header lines than `headers_max` of the pool",
        Refusal::BareLineFeed => "the server's response: a line of the head ends in LF without CR",
        Refusal::ContentLength => "the server's response: malformed Content-Length, or two that differ",
        Refusal::LengthConflict => "the server's response: both Content-Length and Transfer-Encoding",
        Refusal::TransferEncoding => "the server's response: malformed Transfer-Encoding",
        Refusal::TransferCoding => "the server's response: transfer coding not supported",
        Refusal::Lookalike => {
            "the server's response: a field name that some take for Content-Length or Transfer-Encoding"
        }
        Refusal::BlankBeforeColon => {
            "the server's response: blanks before the colon of a field that the switch acts on"
        }
        Refusal::Trailer => "the server's response: Trailer announces a forbidden trailer",
        Refusal::Connection => "the server's response: Connection names a field that is not hop-by-hop",
        _ => "the server's response: malformed head",
    }
}

/// The limits of a response's head as an operator would set them.
fn limits_text(refusal: Refusal, limits: &PoolLimits) -> String {
    match refusal {
        Refusal::HeadTooLarge => format!(" ({} bytes)", limits.head_bytes_max),
        Refusal::TooManyHeaders => format!(" ({})", limits.headers_max),
        _ => String::new(),
    }
}

/// The fault of a response whose head was refused. The log says at which byte.
#[cold]
pub(crate) fn head_refused(
    refusal: Refusal,
    (received, to, limits): (&[u8], AnswerTo, &HeadLimits),
    (shard, server): (&Shard, &LocalServer),
    exchange: &mut Exchange,
) -> Fault {
    let fault = ResponseFault::Head(refusal);
    if shard.recorder.wants_facts() || shard.shared.notes.is_wanted() {
        let at = ResponseHead::default().fault_at(received, to, limits);
        let limit = limits_text(refusal, &server.limits);
        note(fault, &format!("{limit}, at byte {at} of the head"), (shard, server), exchange);
    }
    Fault::Server(ServerFault::Response(fault))
}

/// Notes the fault of a response whose body is refused behind so many bytes of it.
#[cold]
pub(crate) fn body_refused(
    fault: BodyFault,
    read_bytes: u64,
    of: (&Shard, &LocalServer),
    exchange: &mut Exchange,
) {
    note(ResponseFault::Body(fault), &format!(", behind {read_bytes} bytes of the body"), of, exchange);
}

fn note(fault: ResponseFault, place: &str, (shard, server): (&Shard, &LocalServer), exchange: &mut Exchange) {
    let sentence = fault.sentence();
    if let Some(facts) = exchange.facts_mut() {
        facts.note(Text::Content, format!("{sentence}{place}").as_bytes());
    }
    shard.shared.notes.note(Topic::Servers, || {
        let (pool, name) = (server.metrics.pool(), server.metrics.name());
        format!("response refused pool={pool} server={name} error=\"{sentence}{place}\"")
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that the reference lists with a status.
    fn listed() -> Vec<(String, String)> {
        let page = include_str!("../../../docs/reference/refusals.md");
        let table = page.split("## Words of 502, 503 and 504").nth(1).expect("the section");
        let table = table.split("<!--").next().expect("its end");
        let rows = table.lines().filter_map(|line| line.strip_prefix("| 50"));
        let cells = rows.map(|row| row.split(" | ").map(str::to_owned).collect::<Vec<_>>());
        cells.map(|cells| (format!("50{}", cells[0]), cells[1].clone())).collect()
    }

    #[test]
    fn the_reference_lists_the_words_of_each_cause() {
        use ResponseFault::*;
        let responses = [
            Head(Refusal::HeadTooLarge),
            Head(Refusal::TooManyHeaders),
            Head(Refusal::Syntax),
            Head(Refusal::BareLineFeed),
            Head(Refusal::ContentLength),
            Head(Refusal::LengthConflict),
            Head(Refusal::TransferEncoding),
            Head(Refusal::TransferCoding),
            Head(Refusal::Lookalike),
            Head(Refusal::BlankBeforeColon),
            Head(Refusal::Trailer),
            Head(Refusal::Connection),
            Body(BodyFault::ChunkSize),
            Body(BodyFault::ChunkExtensions),
            Body(BodyFault::ChunkEnd),
            Body(BodyFault::Trailer),
            Interims,
            UnaskedUpgrade,
            NoUpgrade,
            Http2,
        ];
        let servers = [
            ServerFault::Refused,
            ServerFault::Unreachable,
            ServerFault::Connect,
            ServerFault::Shortage,
            ServerFault::ConnectTimeout,
            ServerFault::TlsTimeout,
            ServerFault::WriteTimeout,
            ServerFault::ResponseTimeout,
            ServerFault::BodyTimeout,
            ServerFault::Closed,
            ServerFault::Unread,
            ServerFault::NotHttp2,
            ServerFault::TakesNone,
            ServerFault::Status(502),
        ];
        let own = [
            Fault::NoServer,
            Fault::NoListener,
            Fault::QueueFull,
            Fault::QueueTimeout,
            Fault::Hold,
            Fault::Memory,
            Fault::Overtaken,
        ];
        let servers = servers.into_iter().chain(responses.map(ServerFault::Response)).map(Fault::Server);
        let faults: Vec<_> = servers.chain(own).collect();
        let listed = listed();
        for fault in &faults {
            let status = fault.status().expect("a status").to_string();
            let is_listed =
                |(of, words): &(String, String)| of.contains(&status) && words == fault.sentence();
            assert!(listed.iter().any(is_listed), "{status} {}", fault.sentence());
        }
        // One row is for all of TLS.
        assert_eq!(listed.len(), faults.len() + 1);
    }
}
