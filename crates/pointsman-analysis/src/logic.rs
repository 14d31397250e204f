//! Which tests must come to what for a request to reach a rule: a SAT solver over the tests, what is known of fields, and
//! the rules themselves as those who have the last word.
//!
//! What the solver is told is never more than holds for every request; it may be less. So where it finds nothing there is
//! nothing, and what it finds is made into a request, which the rules are asked about.

mod about;
mod bounds;
mod difference;
mod doubt;
mod equals;
mod findings;
mod given;
mod lemmas;
mod loops;
mod meetings;
mod misses;
mod odd_names;
mod onward;
mod pairs;
mod proofs;
mod question;
mod redundant;
mod remembered;
mod rooms;
mod samples;
mod states;
#[cfg(test)]
mod tests;
mod walk;
mod world;

pub use about::findings_about;
pub use difference::{Decider, Difference, Differences, Holds, RuleSide, Undecided, differences};
pub use doubt::{Doubt, Doubted, DoubtedTests, InDoubt};
pub use findings::{Code, Finding, findings, rule_names};
pub use misses::{Change, Miss, Missed, Misses, misses};
pub use proofs::{Barred, Broken, Proof, prove, rules_in};
pub use samples::{Missing, Reach, Sample, Samples, Unshown, Why, samples};
