//! What tests are wanted to come to, and what becomes of that.

use pointsman_rules::{Cause, Field, OwnedValue, Test};

/// What a test is wanted to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    True,
    False,
    /// Unknown, for whatever cause.
    Unknown,
    /// False or unknown.
    NotTrue,
    /// True or unknown.
    NotFalse,
}

impl Wanted {
    #[cfg(test)]
    pub(crate) fn takes(self, truth: pointsman_rules::Truth) -> bool {
        use pointsman_rules::Truth;

        match self {
            Wanted::True => truth == Truth::True,
            Wanted::False => truth == Truth::False,
            Wanted::Unknown => matches!(truth, Truth::Unknown(_)),
            Wanted::NotTrue => truth != Truth::True,
            Wanted::NotFalse => truth != Truth::False,
        }
    }
}

/// A test and what it is wanted to come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'p> {
    pub(crate) test: &'p Test,
    pub(crate) wanted: Wanted,
}

/// All values of a field of one request, in order. None of them: the field is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) known: Vec<OwnedValue>,
    /// Why there may be more behind them: the body could not be read to its end.
    pub(crate) rest: Option<Cause>,
}

/// What fields a request is to have; all others are as they are in the simplest request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sketch<'p> {
    pub(crate) fields: Vec<(&'p Field, Values)>,
}
