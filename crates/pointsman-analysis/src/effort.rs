//! How much may be tried.

use std::fmt;
use std::sync::Arc;

use pointsman_rules::pace;

/// After so many steps at most it is looked whether the time is over: a millisecond, or less.
const LOOK_STEPS: u64 = 10_000;

/// Steps that an analysis may still take; a step is about as much work as looking at one value with one test. The same
/// question takes the same steps on every machine.
#[derive(Clone, Debug)]
pub struct Effort {
    left: u64,
    watch: Option<Watch>,
    /// Steps until it is looked at next.
    unwatched: u64,
    is_late: bool,
}

/// Says whether the time is over.
#[derive(Clone)]
struct Watch(Arc<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

impl Effort {
    /// So many steps.
    #[must_use]
    pub fn new(steps: u64) -> Effort {
        Effort { left: steps, watch: None, unwatched: 0, is_late: false }
    }

    /// The same, which are used up when the time is over, too: then what is found depends on the machine.
    #[must_use]
    pub fn until(self, is_over: impl Fn() -> bool + Send + Sync + 'static) -> Effort {
        Effort { watch: Some(Watch(Arc::new(is_over))), ..self }
    }

    /// Takes some, if there are as many left; otherwise all are used up.
    pub fn take(&mut self, steps: u64) -> bool {
        pace::spend(steps);
        self.look(steps);
        let enough = self.left >= steps;
        self.left = self.left.saturating_sub(steps);
        enough && !self.is_late
    }

    fn look(&mut self, steps: u64) {
        let Some(Watch(is_over)) = &self.watch else { return };
        match self.unwatched.checked_sub(steps) {
            Some(unwatched) => self.unwatched = unwatched,
            None => {
                self.unwatched = LOOK_STEPS;
                self.is_late |= is_over();
            }
        }
        if self.is_late {
            self.left = 0;
        }
    }

    /// Leaves none.
    pub(crate) fn use_up(&mut self) {
        self.left = 0;
    }

    /// Takes so many, or all where there are fewer, for one question.
    pub(crate) fn part(&mut self, steps: u64) -> Effort {
        let steps = self.left.min(steps);
        self.left -= steps;
        Effort { left: steps, ..self.clone() }
    }

    /// What a part left over.
    pub(crate) fn give_back(&mut self, part: Effort) {
        self.left += part.left;
        self.unwatched = part.unwatched;
        self.is_late |= part.is_late;
        if self.is_late {
            self.left = 0;
        }
    }

    /// Whether none are left.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.left == 0
    }

    /// Whether that is because the time is over.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::{Effort, LOOK_STEPS};

    #[test]
    fn what_is_too_much_uses_all_up() {
        let mut effort = Effort::new(5);
        assert!(effort.take(3) && !effort.is_used_up());
        assert!(!effort.take(3) && effort.is_used_up());
        assert!(effort.take(0) && !effort.take(1));
    }

    #[test]
    fn a_part_comes_back_less_what_it_took() {
        let mut effort = Effort::new(5);
        let mut part = effort.part(3);
        assert!(part.take(1) && effort.take(2) && effort.is_used_up());
        effort.give_back(part);
        assert!(effort.take(2) && !effort.take(1));
        assert!(effort.part(9).is_used_up());
    }

    #[test]
    fn when_the_time_is_over_nothing_is_left() {
        let is_over = Arc::new(AtomicBool::new(false));
        let clock = is_over.clone();
        let mut effort = Effort::new(u64::MAX).until(move || clock.load(Ordering::Relaxed));
        let mut part = effort.part(u64::MAX / 2);
        assert!(part.take(1));
        is_over.store(true, Ordering::Relaxed);
        // It is not looked at for a while.
        assert!(part.take(LOOK_STEPS) && !part.is_late());
        assert!(!part.take(1) && part.is_used_up() && part.is_late());
        assert!(!effort.is_used_up());
        effort.give_back(part);
        assert!(effort.is_used_up() && effort.is_late() && !effort.take(0));
        assert!(effort.part(1).is_late());
    }
}
