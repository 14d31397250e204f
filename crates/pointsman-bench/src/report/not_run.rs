//! Steps of a run that there never were: those before them are results all the same.

use pointsman_measure::report::Run;
use pointsman_measure::verdict::Colour;
use serde_json::json;

/// Steps that could not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRun {
    /// How many clients, or items of an order, each was to have, in the order of running; at least one.
    pub steps: Vec<u32>,
    /// Why the first of them was not, and with it the others.
    pub why: String,
    /// Whether that is because somebody wanted no more of them.
    pub was_interrupted: bool,
}

impl NotRun {
    /// Says so in what came of the steps before them: nobody takes that for all. `what` there was to be of each.
    pub(super) fn mark(&self, run: &mut Run, what: &str) {
        let steps: Vec<String> = self.steps.iter().map(u32::to_string).collect();
        let sentence = format!("void with {} {what}, which were not run: {}", steps.join(", "), self.why);
        run.reasons.insert(0, sentence);
        run.colour = run.colour.max(Colour::Amber);
        if let Some(outcome) = &mut run.outcome {
            outcome["not_run"] = json!({"steps": self.steps, "of": what, "why": self.why});
            outcome["interrupted"] = self.was_interrupted.into();
        }
    }
}
