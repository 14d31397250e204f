//! A test and what it may come to, and whether values fulfil it.

use std::ops::ControlFlow;

use pointsman_rules::{Cause, Field, Subject, Test, Truth, Value};

use crate::wanted::{Asked, Values, Wanted};

/// Some of true, false and unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Truths(u8);

impl Truths {
    pub(super) const NONE: Truths = Truths(0);
    pub(super) const TRUE: Truths = Truths(1);
    pub(super) const FALSE: Truths = Truths(2);
    pub(super) const UNKNOWN: Truths = Truths(4);
    pub(super) const NOT_TRUE: Truths = Truths(6);
    pub(super) const NOT_FALSE: Truths = Truths(5);

    pub(super) fn has(self, truth: Truth) -> bool {
        let bit = match truth {
            Truth::True => Truths::TRUE,
            Truth::False => Truths::FALSE,
            Truth::Unknown(_) => Truths::UNKNOWN,
        };
        self.0 & bit.0 != 0
    }

    pub(super) fn and(self, other: Truths) -> Truths {
        Truths(self.0 & other.0)
    }

    pub(super) fn or(self, other: Truths) -> Truths {
        Truths(self.0 | other.0)
    }

    pub(super) fn has_unknown(self) -> bool {
        self.and(Truths::UNKNOWN) != Truths::NONE
    }
}

impl From<Wanted> for Truths {
    fn from(wanted: Wanted) -> Truths {
        match wanted {
            Wanted::True => Truths::TRUE,
            Wanted::False => Truths::FALSE,
            Wanted::Unknown => Truths::UNKNOWN,
            Wanted::NotTrue => Truths::NOT_TRUE,
            Wanted::NotFalse => Truths::NOT_FALSE,
        }
    }
}

/// A test, and what it may come to: over all values of its field, or for one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'p> {
    /// Its place among those that were asked.
    pub(super) index: usize,
    pub(super) test: &'p Test,
    pub(super) truths: Truths,
}

impl<'p> Claim<'p> {
    pub(super) fn new(index: usize, asked: &Asked<'p>) -> Claim<'p> {
        Claim { index, test: asked.test, truths: asked.wanted.into() }
    }

    /// Whether one value fulfils it.
    pub(super) fn takes(&self, value: Value<'_>) -> bool {
        self.truths.has(self.test.holds(value))
    }

    /// Whether all values of a field fulfil it, with the meaning that the rules give it.
    pub(super) fn takes_all(&self, values: &Values) -> bool {
        self.truths.has(self.test.eval(&OneField { field: &self.test.field, values }))
    }
}

/// A request of which only one field is known.
struct OneField<'a> {
    field: &'a Field,
    values: &'a Values,
}

impl Subject for OneField<'_> {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        if field == self.field {
            // Whether it broke does not matter: nothing follows.
            let _broke = self.values.known.iter().map(|value| value.as_value()).try_for_each(see);
        }
    }

    fn unsettled(&self, field: &Field) -> Option<Cause> {
        self.values.rest.filter(|_| field == self.field)
    }
}
