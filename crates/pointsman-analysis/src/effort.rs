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
}
