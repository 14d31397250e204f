//! Requests that are counted together, and which answers to them are right.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::record::{TIME_NS_MAX, TIME_NS_MIN};
use crate::{Fault, Plan, packed};

/// Each has a histogram in each thread.
pub(crate) const CLASSES_MAX: usize = 256;

/// Decimal digits that a time of a class is known to.
const DIGITS: u8 = 2;

/// Some of a plan's targets, which are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// What it is called in results.
    pub name: String,
    /// Which targets, by their places in the plan.
    pub targets: Vec<usize>,
    /// The status that is right; `None`: all below 400.
    pub right_status: Option<u16>,
}

impl Class {
    /// Whether it is as was wanted.
    pub(crate) fn takes(&self, status: u16) -> bool {
        self.right_status.map_or(status < 400, |right| right == status)
    }
}

/// What is written down of a class beside what is written down of all requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClassRecord {
    /// What came, by tenths of a second of the measured time.
    pub batches: Vec<ClassBatch>,
    /// Requests that were due in the measured time, and failed.
    pub failed: u64,
    /// Response times of those that were due in it.
    #[serde(with = "packed::coarse_times")]
    pub response: Histogram<u64>,
}

/// What came for a class in a tenth of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassBatch {
    /// Answers.
    pub completed: u64,
    /// Their bytes, heads and all.
    pub bytes: u64,
}

impl ClassRecord {
    /// One without anything, of so many tenths of a second.
    pub(crate) fn new(batches: usize) -> ClassRecord {
        let batches = vec![ClassBatch::default(); batches];
        ClassRecord { batches, failed: 0, response: coarse_histogram() }
    }

    /// Answers that came in the measured time.
    pub fn completed(&self) -> u64 {
        self.batches.iter().map(|batch| batch.completed).sum()
    }

    /// Their bytes, heads and all.
    pub fn bytes(&self) -> u64 {
        self.batches.iter().map(|batch| batch.bytes).sum()
    }

    fn merge(&mut self, other: &ClassRecord) {
        for (ours, theirs) in self.batches.iter_mut().zip(&other.batches) {
            ours.completed += theirs.completed;
            ours.bytes += theirs.bytes;
        }
        self.failed += other.failed;
        self.response.add(&other.response).expect("all have the same bounds");
    }
}

/// All of classes have the same bounds.
pub(crate) fn coarse_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(TIME_NS_MIN, TIME_NS_MAX, DIGITS).expect("these are bounds that it takes")
}

/// Adds those of another thread.
pub(crate) fn merge(ours: &mut Vec<ClassRecord>, theirs: Vec<ClassRecord>) {
    if ours.is_empty() {
        *ours = theirs;
    } else {
        ours.iter_mut().zip(&theirs).for_each(|(ours, theirs)| ours.merge(theirs));
    }
}

/// Too many, or one of targets that are not there or that another has.
pub(crate) fn check(plan: &Plan) -> Result<(), Fault> {
    let classes = &plan.classes;
    if classes.len() > CLASSES_MAX {
        return Err(Fault::new(format!(
            "{} classes are too many: {CLASSES_MAX} are the most",
            classes.len()
        )));
    }
    let mut taken = vec![false; plan.targets.len()];
    for target in classes.iter().flat_map(|class| &class.targets) {
        match taken.get_mut(*target) {
            Some(taken) if !*taken => *taken = true,
            _ => {
                return Err(Fault::new(
                    "a target belongs to one class, and each class to targets of the plan",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Load;

    fn class(targets: &[usize], right_status: Option<u16>) -> Class {
        Class { name: "a".to_owned(), targets: targets.to_vec(), right_status }
    }

    #[test]
    fn not_found_is_right_where_it_is_wanted() {
        let taken = |right: Option<u16>| [200, 304, 404, 500].map(|status| class(&[0], right).takes(status));
        assert_eq!(taken(None), [true, true, false, false]);
        assert_eq!(taken(Some(404)), [false, false, true, false]);
    }

    #[test]
    fn classes_do_not_overlap() {
        let mut plan = Plan::new(Vec::new(), Load::Closed { clients: 1 });
        assert_eq!(check(&plan), Ok(()));
        plan.classes = vec![class(&[0], None)];
        assert!(check(&plan).is_err(), "there is no such target");
        plan.classes = vec![class(&[], None); CLASSES_MAX + 1];
        assert!(check(&plan).is_err());
        let url = crate::Url::parse("http://127.0.0.1/").expect("a URL");
        let target = crate::Target {
            url,
            weight: 1,
            method: "GET".into(),
            headers: Vec::new(),
            body: Default::default(),
        };
        plan.targets = vec![target; 3];
        plan.classes = vec![class(&[0, 2], None), class(&[1], None)];
        assert_eq!(check(&plan), Ok(()));
        plan.classes[1].targets.push(2);
        assert!(check(&plan).is_err());
    }

    #[test]
    fn threads_are_added_up() {
        let mut one = ClassRecord::new(2);
        (one.batches[1], one.failed) = (ClassBatch { completed: 1, bytes: 10 }, 2);
        one.response.record(1_000_000).expect("in the bounds");
        let mut all = Vec::new();
        merge(&mut all, vec![one.clone()]);
        merge(&mut all, vec![one]);
        assert_eq!((all[0].completed(), all[0].bytes(), all[0].failed, all[0].response.len()), (2, 20, 4, 2));
    }
}
