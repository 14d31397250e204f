//! Which fields keep a request from being, as few of them as it takes.

use pointsman_rules::Place;

use super::sought::{Wish, has_something};
use super::{Setting, Unrealisable, checked};
use crate::Effort;

/// Steps for one search: where it takes more, what is left is named, and some of it may not matter.
pub(super) const STEPS_MAX: u64 = 250_000;

/// Of wishes for which there is no request, some for which there is none either, and none of which can be left out.
///
/// Each is found by halving: a wish of the answer costs about as many drafts as the number of all wishes has digits in
/// base two. Where the effort ends before, more are named than it takes.
pub(super) fn unrealisable(wishes: &[&Wish<'_>], setting: &Setting, effort: &mut Effort) -> Unrealisable {
    let mut part = effort.part(STEPS_MAX);
    let mut found = needed(wishes, setting, &mut part);
    // There may be a request for more wishes and none for fewer.
    while let Some(fewer) = (0..found.len())
        .map(|at| without(&found, at))
        .take_while(|fewer| part.take(draft_steps(fewer)))
        .find(|fewer| !fewer.is_empty() && checked(fewer, setting).is_none())
    {
        found = fewer;
    }
    effort.give_back(part);
    Unrealisable {
        fields: found.iter().map(|wish| wish.field.clone()).collect(),
        are_of_two_kinds: are_of_two_kinds(&found),
    }
}

/// Some of the wishes for which there is no request, in their order.
fn needed<'w, 'p>(wishes: &[&'w Wish<'p>], setting: &Setting, effort: &mut Effort) -> Vec<&'w Wish<'p>> {
    let mut found: Vec<&'w Wish<'p>> = Vec::new();
    let mut rest = wishes;
    // With all that is found and the rest there is never a request.
    while effort.take(draft_steps(&found)) {
        if checked(&found, setting).is_none() {
            rest = &[];
            break;
        }
        // With `fits` of the rest there is a request, with `too_many` there is none.
        let (mut fits, mut too_many) = (0, rest.len());
        while too_many > fits + 1 {
            let middle = fits + (too_many - fits) / 2;
            let with: Vec<_> = found.iter().chain(rest.iter().take(middle)).copied().collect();
            if !effort.take(draft_steps(&with)) {
                break;
            }
            match checked(&with, setting) {
                Some(_) => fits = middle,
                None => too_many = middle,
            }
        }
        let Some((last, before)) = rest.get(..too_many).and_then(<[_]>::split_last) else { break };
        found.push(last);
        rest = before;
    }
    rest.iter().copied().chain(found.into_iter().rev()).collect()
}

/// What a draft takes: each wish is looked up among all.
fn draft_steps(wishes: &[&Wish<'_>]) -> u64 {
    let wishes = wishes.len() as u64;
    wishes + wishes * wishes / 4
}

/// All but one of them.
fn without<'w, 'p>(wishes: &[&'w Wish<'p>], left_out: usize) -> Vec<&'w Wish<'p>> {
    let others = wishes.iter().enumerate().filter(|(at, _)| *at != left_out);
    others.map(|(_, wish)| *wish).collect()
}

/// Whether one field has a value in a body of one kind, and another something in a body of another. A body has one: of
/// other kinds it has no field, and it is known that it has none.
fn are_of_two_kinds(wishes: &[&Wish<'_>]) -> bool {
    let kinds: Option<Vec<_>> = wishes.iter().map(|wish| kind(wish)).collect();
    let any_value = wishes.iter().any(|wish| !wish.values.known.is_empty());
    any_value
        && kinds
            .is_some_and(|kinds| kinds.windows(2).any(|pair| matches!(pair, [one, other] if one != other)))
}

fn kind(wish: &Wish<'_>) -> Option<std::mem::Discriminant<Place>> {
    let place = wish.place().filter(|place| !matches!(place, Place::Size))?;
    has_something(wish).then(|| std::mem::discriminant(place))
}
