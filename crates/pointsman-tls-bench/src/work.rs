//! One operation done again and again on one thread.

use std::fmt;

/// Turns of an operation on one thread, with what they need at hand.
pub(crate) trait Work {
    /// Gets ready for so many turns; what that takes is not measured.
    fn prepare(&mut self, _turns: usize) -> Result<(), Trouble> {
        Ok(())
    }

    /// Turns that may follow on one preparation.
    fn turns_at_once(&self) -> usize {
        usize::MAX
    }

    /// Does it once.
    fn turn(&mut self) -> Result<(), Trouble>;
}

/// Why an operation cannot be measured with a provider, in words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble(String);

impl Trouble {
    pub(crate) fn new(words: impl Into<String>) -> Trouble {
        Trouble(words.into())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}

/// Work that is one function.
pub(crate) struct Plain<F>(pub(crate) F);

impl<F: FnMut() -> Result<(), Trouble>> Work for Plain<F> {
    fn turn(&mut self) -> Result<(), Trouble> {
        (self.0)()
    }
}
