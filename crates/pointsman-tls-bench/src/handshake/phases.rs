//! The moments of a handshake, and the phases between them.

use pointsman_bench::clock::{now_ns, thread_cpu_ns};

/// Both clocks at a moment, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: u64,
}

impl Stamp {
    pub(crate) fn now() -> Stamp {
        Stamp { wall_ns: now_ns(), cpu_ns: thread_cpu_ns() }
    }
}

/// When what happened, on our side of a handshake and the request behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moments {
    /// Nothing was sent yet.
    pub(crate) begun: Stamp,
    /// TCP is connected.
    pub(crate) connected: Stamp,
    /// The ClientHello has been written to the socket.
    pub(crate) hello_sent: Stamp,
    /// The first byte of the server's answer was read.
    pub(crate) first_byte: Stamp,
    /// The last byte of the server's first flight was read: up to ServerHelloDone in TLS 1.2, to Finished in 1.3.
    pub(crate) flight_read: Stamp,
    /// Our Finished has been written.
    pub(crate) finished_sent: Stamp,
    /// The server's Finished was read, where it comes behind ours: full handshakes of TLS 1.2.
    pub(crate) finished_read: Option<Stamp>,
    /// The request has been written.
    pub(crate) request_sent: Stamp,
    /// The first byte of its answer was read.
    pub(crate) answer: Stamp,
}

/// What is between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// TCP's own handshake: one round trip.
    Connect,
    /// We make our key share and send the ClientHello.
    Hello,
    /// Until the first byte of the answer: a round trip, and the server's hello; in TLS 1.3 nearly all that it computes.
    FirstByte,
    /// Until the server's flight is whole.
    Flight,
    /// We check the certificate and the signature, agree on the secret, and send our Finished.
    Finished,
    /// Until the server's Finished, in full handshakes of TLS 1.2: a round trip, and its side of the secret.
    ServerFinished,
    /// We send a request.
    Request,
    /// Until the first byte of its answer.
    Answer,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Phase; 8] = [
        Phase::Connect,
        Phase::Hello,
        Phase::FirstByte,
        Phase::Flight,
        Phase::Finished,
        Phase::ServerFinished,
        Phase::Request,
        Phase::Answer,
    ];

    /// A name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Connect => "TCP connect",
            Phase::Hello => "ClientHello",
            Phase::FirstByte => "server's first byte",
            Phase::Flight => "rest of its flight",
            Phase::Finished => "our Finished",
            Phase::ServerFinished => "server's Finished",
            Phase::Request => "request",
            Phase::Answer => "first byte of the answer",
        }
    }

    /// Whether we wait in it for what the server computes for the handshake.
    pub fn is_servers(self) -> bool {
        matches!(self, Phase::FirstByte | Phase::Flight | Phase::ServerFinished)
    }

    /// Whether it is our own part of the handshake.
    pub fn is_ours(self) -> bool {
        matches!(self, Phase::Hello | Phase::Finished)
    }
}

/// How long a phase took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// By the wall clock, in ns.
    pub wall_ns: u64,
    /// What our own thread computed in it, in ns.
    pub own_ns: u64,
}

impl Span {
    fn between(from: Stamp, to: Stamp) -> Span {
        Span {
            wall_ns: to.wall_ns.saturating_sub(from.wall_ns),
            own_ns: to.cpu_ns.saturating_sub(from.cpu_ns),
        }
    }

    /// What is left of it without our own computing, in ns.
    pub fn waited_ns(&self) -> u64 {
        self.wall_ns.saturating_sub(self.own_ns)
    }
}

impl Moments {
    /// One phase; nothing where this handshake has none of it.
    pub(crate) fn span(&self, phase: Phase) -> Option<Span> {
        let behind = self.finished_read.unwrap_or(self.finished_sent);
        let (from, to) = match phase {
            Phase::Connect => (self.begun, self.connected),
            Phase::Hello => (self.connected, self.hello_sent),
            Phase::FirstByte => (self.hello_sent, self.first_byte),
            Phase::Flight => (self.first_byte, self.flight_read),
            Phase::Finished => (self.flight_read, self.finished_sent),
            Phase::ServerFinished => (self.finished_sent, self.finished_read?),
            Phase::Request => (behind, self.request_sent),
            Phase::Answer => (self.request_sent, self.answer),
        };
        Some(Span::between(from, to))
    }

    /// The handshake of TLS: from when TCP was connected until a request could be sent.
    pub(crate) fn handshake(&self) -> Span {
        Span::between(self.connected, self.finished_read.unwrap_or(self.finished_sent))
    }

    /// What we waited for the server in the handshake, the wire included, in ns: in all of its phases, for a server on our own
    /// core may run as soon as we have written, before the phase is over that we write in.
    pub(crate) fn waited_ns(&self) -> u64 {
        self.handshake().waited_ns()
    }

    /// What we computed for the handshake ourselves, in ns.
    pub(crate) fn own_ns(&self) -> u64 {
        let ours = Phase::ALL.into_iter().filter(|phase| phase.is_ours());
        ours.filter_map(|phase| self.span(phase)).map(|span| span.own_ns).sum()
    }

    /// Each is behind the one before.
    #[cfg(test)]
    pub(crate) fn are_in_order(&self) -> bool {
        let all = [
            Some(self.begun),
            Some(self.connected),
            Some(self.hello_sent),
            Some(self.first_byte),
            Some(self.flight_read),
            Some(self.finished_sent),
            self.finished_read,
            Some(self.request_sent),
            Some(self.answer),
        ];
        let all: Vec<Stamp> = all.into_iter().flatten().collect();
        all.is_sorted_by_key(|stamp| stamp.wall_ns) && all.is_sorted_by_key(|stamp| stamp.cpu_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wall_ns: u64, cpu_ns: u64) -> Stamp {
        Stamp { wall_ns, cpu_ns }
    }

    #[test]
    fn phases_fill_the_whole_time() {
        let mut moments = Moments {
            begun: at(0, 0),
            connected: at(100, 10),
            hello_sent: at(150, 60),
            first_byte: at(450, 70),
            flight_read: at(500, 75),
            finished_sent: at(700, 275),
            finished_read: None,
            request_sent: at(710, 285),
            answer: at(900, 290),
        };
        let sum = |moments: &Moments| -> u64 {
            Phase::ALL.into_iter().filter_map(|phase| moments.span(phase)).map(|span| span.wall_ns).sum()
        };
        assert!(moments.are_in_order());
        assert_eq!((sum(&moments), moments.span(Phase::ServerFinished)), (900, None));
        assert_eq!((moments.waited_ns(), moments.own_ns()), (290 + 45, 50 + 200));
        assert_eq!(moments.handshake(), Span { wall_ns: 600, own_ns: 265 });
        moments.finished_read = Some(at(705, 276));
        assert_eq!((sum(&moments), moments.waited_ns()), (900, 290 + 45 + 4));
        // The server ran while we wrote our first flight, and what it answered was there at once.
        (moments.connected, moments.hello_sent, moments.first_byte) = (at(100, 10), at(440, 60), at(450, 70));
        assert_eq!(
            (moments.span(Phase::Hello).map(|span| span.waited_ns()), moments.waited_ns()),
            (Some(290), 339)
        );
    }
}
