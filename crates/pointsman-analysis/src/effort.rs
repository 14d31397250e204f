//! How much may be tried.

/// Steps that an analysis may still take; a step is about as much work as looking at one value with one test. The same
/// question takes the same steps on every machine.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    left: u64,
}

impl Effort {
    /// So many steps.
    #[must_use]
    pub fn new(steps: u64) -> Effort {
        Effort { left: steps }
    }

    /// Takes some, if there are as many left; otherwise all are used up.
    pub fn take(&mut self, steps: u64) -> bool {
        let enough = self.left >= steps;
        self.left = self.left.saturating_sub(steps);
        enough
    }

    /// Takes so many, or all where there are fewer, for one question.
    pub(crate) fn part(&mut self, steps: u64) -> Effort {
        let steps = self.left.min(steps);
        self.left -= steps;
        Effort { left: steps }
    }

    /// What a part left over.
    pub(crate) fn give_back(&mut self, part: Effort) {
        self.left += part.left;
    }

    /// Whether none are left.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Effort;

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
}
