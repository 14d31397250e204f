//! Which of several fields is the first that never comes with those before it.

use pointsman_rules::{Field, OwnedValue};

/// Fields that never have such values together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeverAgreed {
    /// The place of the field that is at odds with those before it.
    pub at: usize,
    /// What it is at odds with.
    pub with: Odds,
    /// What it may be instead; nothing where that cannot be listed.
    pub instead: Vec<Vec<OwnedValue>>,
}

/// What the values of a field are at odds with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odds {
    /// With what such a field can be at all.
    Itself,
    /// With what comes to the listener, whatever else is said.
    Listener,
    /// With the field at this place.
    Field(usize),
    /// With several together.
    Several,
}

/// A field with all its values, without one where it is absent, and its place among those that are said.
pub(super) type Told<'s> = (usize, &'s (Field, Vec<OwnedValue>));

/// The first at odds with those before it, those before it, and with what it is. Nothing where even none of them come.
pub(super) fn first_at_odds<'t, 's>(
    said: &'t [Told<'s>],
    comes: &dyn Fn(&[Told<'s>]) -> bool,
    can_be: fn(&Field, &OwnedValue) -> bool,
) -> Option<(Told<'s>, &'t [Told<'s>], Odds)> {
    let first = (1..said.len()).find(|count| !comes(said.get(..*count).unwrap_or_default()));
    let (before, last) = said.split_at_checked(first.unwrap_or(said.len()).saturating_sub(1))?;
    let last = *last.first()?;
    let (_, (field, values)) = last;
    let with = match () {
        () if !values.iter().all(|value| can_be(field, value)) => Odds::Itself,
        () if !comes(&[last]) => Odds::Listener,
        () => match before.iter().find(|one| !comes(&[**one, last])) {
            Some((one, _)) => Odds::Field(*one),
            None => Odds::Several,
        },
    };
    Some((last, before, with))
}
