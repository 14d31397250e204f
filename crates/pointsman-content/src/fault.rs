//! Why a body is not read to its end.

use std::fmt;

/// What is wrong with a body, and where. Who has returned one returns it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Of which kind it is.
    pub cause: Cause,
    /// How many bytes of the text, in UTF-8, stand before it.
    pub at: u64,
    /// A sentence's worth, for people.
    pub what: &'static str,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// It is not what its media type says.
    Malformed,
    /// Its character encoding is not supported or contradicts itself.
    Encoding,
    /// It is beyond a limit.
    Limit,
    /// An object repeats a key that a path names.
    DuplicateKey,
    /// Common servers read it in different ways.
    Ambiguous,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for Fault {}
