//! Somebody wants no more of it: what was measured until then is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman_measure::report::Run;
use pointsman_measure::verdict::Colour;

use crate::Fault;

/// Whether a measurement is to end before its time. What has a clone of it ends when the flag is set, and tells what it has;
/// the usual one is never set.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// It has come when somebody, such as who hears a signal, sets this flag.
    pub fn by(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt(flag)
    }

    /// Whether it has come.
    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Why something was not measured that was to be.
    pub(crate) fn fault() -> Fault {
        Fault::new("it was interrupted")
    }
}

/// Says in what came of a measurement whether it was interrupted, and in these words how far it was: nobody takes that for all.
pub fn mark_interrupted(run: &mut Run, how_far: Option<&str>) {
    if let Some(outcome) = &mut run.outcome {
        outcome["interrupted"] = how_far.is_some().into();
    }
    if let Some(words) = how_far {
        run.reasons.insert(0, format!("it was interrupted: {words}"));
        run.colour = run.colour.max(Colour::Amber);
    }
}
