//! Whether the client was in control: what the load generator measured of itself, as a colour with its reasons.

mod clients;
mod measures;

use std::fmt;

pub use clients::{FewerClients, SmallestNumber, fewer_clients};
pub use measures::{Measure, SelfMeasures};

/// How far a trial can be trusted; the worst comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Colour {
    /// The client was in control.
    Green,
    /// The result counts; the reason should be known to who reads it.
    Amber,
    /// The client was not in control. What was seen is no result.
    Red,
}

impl fmt::Display for Colour {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Green => "green",
            Self::Amber => "amber",
            Self::Red => "red",
        })
    }
}

/// Why a verdict is not green.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// How bad it is; never green.
    pub colour: Colour,
    /// What was measured.
    pub measure: Measure,
    /// What was seen and what is allowed, in a sentence.
    pub text: String,
}

/// The verdict on a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The worst of the reasons; green without any.
    pub colour: Colour,
    /// Why, the worst first.
    pub reasons: Vec<Reason>,
    /// What nobody measured, so that nothing is said of it.
    pub not_measured: Vec<Measure>,
}

impl Verdict {
    /// Whether a red trial is red for what others of the host did, as far as that is known: time was stolen, and all that is
    /// red is what stolen time does. How much of its core the client took itself is not, nor what it ran out of.
    pub fn is_disturbed(&self) -> bool {
        let mut red = self.reasons.iter().filter(|reason| reason.colour == Colour::Red);
        self.colour == Colour::Red
            && self.reasons.iter().any(|reason| reason.measure == Measure::Steal)
            && red.all(|reason| {
                let measure = reason.measure;
                use Measure::{ListenQueue, Little, SendLag, Steal, SynRetransmits, Waited, WarmUp};
                matches!(measure, Steal | SendLag | Waited | Little | SynRetransmits | ListenQueue | WarmUp)
            })
    }
}

/// Judges a trial by what its client measured of itself.
pub fn verdict(seen: &SelfMeasures) -> Verdict {
    let mut reasons: Vec<Reason> = seen.reasons();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.colour));
    let colour = reasons.first().map_or(Colour::Green, |reason| reason.colour);
    Verdict { colour, reasons, not_measured: seen.not_measured() }
}
