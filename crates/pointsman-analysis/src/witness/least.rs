//! Which fields keep a request from being, as few of them as it takes.

use pointsman_rules::Place;

use super::sought::{Wish, has_something};
use super::{Setting, Unrealisable, checked};

/// Of wishes for which there is no request, some for which there is none either, and none of which can be left out.
///
/// Each is found by halving: a wish of the answer costs about as many drafts as the number of all wishes has digits in
/// base two.
pub(super) fn unrealisable(wishes: &[&Wish<'_>], setting: &Setting) -> Unrealisable {
    let mut found: Vec<&Wish<'_>> = Vec::new();
    let mut rest = wishes;
    while checked(&found, setting).is_some() {
        // With `fits` of the rest there is a request, with `too_many` there is none.
        let (mut fits, mut too_many) = (0, rest.len());
        while too_many > fits + 1 {
            let middle = fits + (too_many - fits) / 2;
            let with: Vec<_> = found.iter().chain(rest.iter().take(middle)).copied().collect();
            match checked(&with, setting) {
                Some(_) => fits = middle,
                None => too_many = middle,
            }
        }
        let Some((last, before)) = rest.get(..too_many).and_then(<[_]>::split_last) else { break };
        found.push(last);
        rest = before;
    }
    found.reverse();
    // There may be a request for more wishes and none for fewer.
    while let Some(fewer) = (0..found.len())
        .map(|at| without(&found, at))
        .find(|fewer| !fewer.is_empty() && checked(fewer, setting).is_none())
    {
        found = fewer;
    }
    Unrealisable {
        fields: found.iter().map(|wish| wish.field.clone()).collect(),
        are_of_two_kinds: are_of_two_kinds(&found),
    }
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
