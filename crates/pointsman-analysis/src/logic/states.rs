//! Sets of the three values that a condition may come to.

use pointsman_rules::Truth;

use crate::wanted::Wanted;

/// Some of true, false and unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct States(u8);

impl States {
    pub(super) const NONE: States = States(0);
    pub(super) const TRUE: States = States(1);
    pub(super) const FALSE: States = States(2);
    /// True or false.
    pub(super) const KNOWN: States = States(3);
    pub(super) const UNKNOWN: States = States(4);
    /// True or unknown.
    pub(super) const NOT_FALSE: States = States(5);
    /// False or unknown.
    pub(super) const NOT_TRUE: States = States(6);
    pub(super) const ALL: States = States(7);
    /// Each alone.
    pub(super) const EACH: [States; 3] = [States::TRUE, States::FALSE, States::UNKNOWN];

    pub(super) fn of(truth: Truth) -> States {
        match truth {
            Truth::True => States::TRUE,
            Truth::False => States::FALSE,
            Truth::Unknown(_) => States::UNKNOWN,
        }
    }

    pub(super) fn or(self, other: States) -> States {
        States(self.0 | other.0)
    }

    pub(super) fn and(self, other: States) -> States {
        States(self.0 & other.0)
    }

    /// Whether `other` has none beside these.
    pub(super) fn covers(self, other: States) -> bool {
        self.and(other) == other
    }

    /// All that these are not.
    pub(super) fn others(self) -> States {
        States(States::ALL.0 & !self.0)
    }

    /// What a condition comes to whose negation comes to one of these.
    pub(super) fn negated(self) -> States {
        let swapped = (self.0 & 1) << 1 | (self.0 & 2) >> 1;
        States(self.0 & 4 | swapped)
    }

    /// What a test is asked for that is to come to one of these; nothing that can be asked where any will do.
    pub(super) fn wanted(self) -> Option<Wanted> {
        match self {
            States::TRUE => Some(Wanted::True),
            States::FALSE => Some(Wanted::False),
            States::UNKNOWN => Some(Wanted::Unknown),
            States::NOT_TRUE => Some(Wanted::NotTrue),
            States::NOT_FALSE => Some(Wanted::NotFalse),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pointsman_rules::{Cause, Truth};

    use super::States;

    #[test]
    fn sets_take_what_their_names_say() {
        let truths = [Truth::True, Truth::False, Truth::Unknown(Cause::Limit)];
        for bits in 0..8 {
            let states = States(bits);
            for truth in truths {
                let takes = states.covers(States::of(truth));
                assert_eq!(states.negated().covers(States::of(!truth)), takes, "{states:?} {truth}");
                if let Some(wanted) = states.wanted() {
                    assert_eq!(wanted.takes(truth), takes, "{states:?} {truth}");
                }
            }
        }
    }
}
