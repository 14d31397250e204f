//! One trial: what is to be run, and what was seen.

use std::fmt;

use crate::verdict::Colour;

/// Which part of the search a trial belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Each rate 1.5 times the one before.
    Ramp,
    /// Between the greatest good load and the least bad one.
    Bisection,
    /// In random order around what was found.
    Confirmation,
    /// From little load to too much and back.
    Sweep,
    /// Where the curve bends.
    Zoom,
    /// Again where most was answered.
    Peak,
}

impl fmt::Display for Phase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Ramp => "ramp",
            Self::Bisection => "bisection",
            Self::Confirmation => "confirmation",
            Self::Sweep => "sweep",
            Self::Zoom => "zoom",
            Self::Peak => "peak",
        })
    }
}

/// A trial to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// From 0, in the order of running; trials that are repeated have a number of their own.
    pub number: u32,
    /// What it is for.
    pub phase: Phase,
    /// Requests (or handshakes) per second to offer, open loop.
    pub rate_per_s: f64,
    /// How long to offer them before counting, in ms.
    pub warm_up_ms: u64,
    /// How long to count, in ms.
    pub measured_ms: u64,
    /// For the arrivals.
    pub seed: u64,
}

/// What was seen of a trial in its measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Arrivals that were due, per second.
    pub offered_per_s: f64,
    /// Answers that were right, per second, also of requests that had been sent in the warm-up.
    pub achieved_per_s: f64,
    /// What the two may differ by, per second, without the server being behind: of the requests on their way at the
    /// trial's ends, by chance, more at the one than at the other. In a short trial of a low rate that is one of few.
    pub edge_per_s: f64,
    /// Requests that failed by requests offered.
    pub errors_share: f64,
    /// Median of the response time from the intended send time, in µs, as the two below.
    pub p50_us: u64,
    /// 90th percentile.
    pub p90_us: u64,
    /// 99th percentile; what has not been answered at the end counts with the time it has waited.
    pub p99_us: u64,
    /// The verdict on the client. A red trial is run again and never counts.
    pub control: Colour,
    /// Whether a red one is red for what others of the host did ([`crate::verdict::Verdict::is_disturbed`]): that says
    /// nothing of what the client can do, and passes.
    pub is_disturbed: bool,
}

/// What a trial misses of the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shortfall {
    /// Too few of the offered requests were answered.
    Achieved,
    /// Too many failed.
    Errors,
    /// They took too long.
    Latency,
}

/// A trial and what was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// What was to be run.
    pub trial: Trial,
    /// What was seen.
    pub seen: Seen,
    /// What it missed of the goal.
    pub shortfall: Option<Shortfall>,
}

impl Record {
    /// Whether it is a result at all: the client was in control.
    pub fn counts(&self) -> bool {
        self.seen.control != Colour::Red
    }

    /// Whether it is none for what others of the host did.
    pub fn was_disturbed(&self) -> bool {
        !self.counts() && self.seen.is_disturbed
    }

    /// Whether it met the goal.
    pub fn passed(&self) -> bool {
        self.shortfall.is_none()
    }
}

/// A trial that counts, of which so much was answered a second.
#[cfg(test)]
pub(super) fn counted(phase: Phase, rate_per_s: f64, achieved_per_s: f64, measured_ms: u64) -> Record {
    let trial = Trial { number: 0, phase, rate_per_s, warm_up_ms: 0, measured_ms, seed: 1 };
    let seen = Seen {
        offered_per_s: rate_per_s,
        achieved_per_s,
        edge_per_s: 0.0,
        errors_share: 0.0,
        p50_us: 1,
        p90_us: 1,
        p99_us: 1,
        control: Colour::Green,
        is_disturbed: false,
    };
    Record { trial, seen, shortfall: None }
}
