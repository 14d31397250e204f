//! What is written down of users' sessions and their steps.

use serde::{Deserialize, Serialize};

use crate::packed;
use crate::record::{Times, new_histogram};

/// Sessions of the measured time, and the requests that were due in it, by step. Records of the same plan can be added up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Sessions that were due.
    pub due: u64,
    /// Those that found no room: there were as many users as there may be connections.
    pub unsent: u64,
    /// Those whose last step was answered as it should.
    pub ended: u64,
    /// The same, by the tenth of a second of the measured time in which they were due.
    pub ended_in: Vec<u64>,
    /// Those that a step ended that failed.
    pub failed: u64,
    /// From when a session was due to its last answer, thinking and all; of those that ended.
    #[serde(with = "packed::times")]
    pub whole: Times,
    /// How long a session waited for answers, all steps together; of those that ended.
    #[serde(with = "packed::times")]
    pub waited: Times,
    /// By step.
    pub steps: Vec<StepRecord>,
}

/// What became of one step, in all sessions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepRecord {
    /// Answers, whatever their status.
    pub answered: u64,
    /// Failures, and answers with another status than there should be.
    pub failed: u64,
    /// From when the request was due to the last byte of its answer.
    #[serde(with = "packed::times")]
    pub response: Times,
}

impl SessionRecord {
    pub(crate) fn new(steps: usize, batches: usize) -> SessionRecord {
        let step = StepRecord { answered: 0, failed: 0, response: new_histogram() };
        SessionRecord {
            due: 0,
            unsent: 0,
            ended: 0,
            ended_in: vec![0; batches],
            failed: 0,
            whole: new_histogram(),
            waited: new_histogram(),
            steps: vec![step; steps],
        }
    }

    /// Sessions a second that ended as they should, of those that were due in so many seconds.
    pub fn ended_per_s(&self, seconds: f64) -> f64 {
        self.ended_in.iter().sum::<u64>() as f64 / seconds
    }

    /// Sessions that were under way when the time was over.
    pub fn cut(&self) -> u64 {
        self.due.saturating_sub(self.unsent + self.ended + self.failed)
    }

    pub(crate) fn merge(&mut self, other: &SessionRecord) {
        self.due += other.due;
        self.unsent += other.unsent;
        self.ended += other.ended;
        self.ended_in.iter_mut().zip(&other.ended_in).for_each(|(ours, theirs)| *ours += theirs);
        self.failed += other.failed;
        let pairs = [(&mut self.whole, &other.whole), (&mut self.waited, &other.waited)];
        let steps = self.steps.iter_mut().zip(&other.steps);
        let of_steps = steps.map(|(ours, theirs)| {
            ours.answered += theirs.answered;
            ours.failed += theirs.failed;
            (&mut ours.response, &theirs.response)
        });
        for (ours, theirs) in pairs.into_iter().chain(of_steps) {
            ours.add(theirs).expect("all have the same bounds");
        }
    }
}
