//! Three-valued logic: true, false, or unknown for a stated cause. One of the causes passes: that something has not
//! been read yet.

use std::fmt;

/// What a comparison or a condition comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    /// It does not hold.
    False,
    /// It holds.
    True,
    /// It cannot be said: not yet, if the cause is [`Cause::Unread`], otherwise never for this subject.
    Unknown(Cause),
}

/// Why something ends unknown. Of several causes the greatest is told: what is wrong with the whole before what is wrong
/// with a value, and before all that something has not been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A value that is compared with a number is none.
    NotANumber,
    /// `once(field)` found a second value.
    Duplicate,
    /// Servers read the request in ways that the rules decide differently.
    Ambiguous,
    /// What would settle it lies beyond a limit.
    Limit,
    /// An object of the body repeats a key that a rule names.
    DuplicateKey,
    /// The body is not what its media type says.
    Malformed,
    /// The body's character encoding is not supported or contradicts itself.
    Encoding,
    /// What would settle it has not been read yet. No condition ends so.
    Unread,
}

impl Cause {
    /// The HTTP status that refuses a request for this cause. The only place that chooses it.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Cause::Limit => 413,
            Cause::Encoding => 415,
            Cause::NotANumber
            | Cause::Duplicate
            | Cause::Ambiguous
            | Cause::DuplicateKey
            | Cause::Malformed
            | Cause::Unread => 400,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::NotANumber => "not a number",
            Cause::Duplicate => "duplicate",
            Cause::Ambiguous => "ambiguous",
            Cause::DuplicateKey => "duplicate key",
            Cause::Malformed => "malformed",
            Cause::Encoding => "encoding",
            Cause::Limit => "limit",
            Cause::Unread => "not read yet",
        })
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Truth::False => f.write_str("false"),
            Truth::True => f.write_str("true"),
            Truth::Unknown(cause) => write!(f, "unknown ({cause})"),
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Truth {
        if holds { Truth::True } else { Truth::False }
    }
}

impl std::ops::Not for Truth {
    type Output = Truth;

    /// Kleene's not.
    fn not(self) -> Truth {
        match self {
            Truth::False => Truth::True,
            Truth::True => Truth::False,
            Truth::Unknown(cause) => Truth::Unknown(cause),
        }
    }
}

impl Truth {
    /// Whether it may yet become another one.
    #[must_use]
    pub fn is_unread(self) -> bool {
        self == Truth::Unknown(Cause::Unread)
    }

    /// Kleene's and. Of two causes the greater is kept.
    #[must_use]
    pub fn and(self, other: Truth) -> Truth {
        match (self, other) {
            (Truth::False, _) | (_, Truth::False) => Truth::False,
            (Truth::True, other) | (other, Truth::True) => other,
            (Truth::Unknown(cause), Truth::Unknown(other)) => Truth::Unknown(cause.max(other)),
        }
    }

    /// Kleene's or. Of two causes the greater is kept.
    #[must_use]
    pub fn or(self, other: Truth) -> Truth {
        match (self, other) {
            (Truth::True, _) | (_, Truth::True) => Truth::True,
            (Truth::False, other) | (other, Truth::False) => other,
            (Truth::Unknown(cause), Truth::Unknown(other)) => Truth::Unknown(cause.max(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, Truth};

    const ALL: [Truth; 5] = [
        Truth::False,
        Truth::True,
        Truth::Unknown(Cause::Limit),
        Truth::Unknown(Cause::NotANumber),
        Truth::Unknown(Cause::Unread),
    ];

    /// The laws speak of three values; the cause is only reported.
    fn rank(truth: Truth) -> i8 {
        match truth {
            Truth::False => -1,
            Truth::Unknown(_) => 0,
            Truth::True => 1,
        }
    }

    #[test]
    fn and_is_the_minimum_or_the_maximum_and_not_the_negation() {
        for a in ALL {
            assert_eq!(rank(!a), -rank(a));
            for b in ALL {
                assert_eq!(rank(a.and(b)), rank(a).min(rank(b)), "{a} and {b}");
                assert_eq!(rank(a.or(b)), rank(a).max(rank(b)), "{a} or {b}");
            }
        }
    }

    #[test]
    fn laws_hold_with_causes() {
        for a in ALL {
            assert_eq!(!!a, a);
            assert_eq!(a.and(a), a);
            assert_eq!(a.or(a), a);
            for b in ALL {
                assert_eq!(!(a.and(b)), (!a).or(!b));
                assert_eq!((a.and(b), a.or(b)), (b.and(a), b.or(a)));
                assert_eq!(!(a.or(b)), (!a).and(!b));
                for c in ALL {
                    assert_eq!(a.and(b).and(c), a.and(b.and(c)));
                    assert_eq!(a.or(b).or(c), a.or(b.or(c)));
                    assert_eq!(rank(a.and(b.or(c))), rank(a.and(b).or(a.and(c))));
                }
            }
        }
    }

    /// Whatever the unread part comes to: what is said of the whole before stays true, or was said to be unread.
    #[test]
    fn what_is_said_before_all_is_read_stays_so() {
        let unread = Truth::Unknown(Cause::Unread);
        for other in ALL {
            for (before, combine) in [
                (unread.and(other), Truth::and as fn(Truth, Truth) -> Truth),
                (other.and(unread), |read, other| other.and(read)),
                (unread.or(other), Truth::or),
                (other.or(unread), |read, other| other.or(read)),
            ] {
                let after: Vec<_> = ALL.map(|read| combine(read, other)).into();
                let is_settled = after.iter().all(|truth| *truth == after[0]);
                assert_eq!(before.is_unread(), !is_settled || other.is_unread(), "{other}: {after:?}");
                assert!(before.is_unread() || before == after[0], "{other}");
            }
        }
    }
}
