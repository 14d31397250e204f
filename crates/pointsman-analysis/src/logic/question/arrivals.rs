//! Who sends a request, where it comes to, and who is said to be its client: all ways in which requests come to the listener are
//! looked through, for all fields that have to do with it. What no way leaves is proved to be in no request.

use pointsman_rules::Field;

use super::related::{Mattering, asked, numbers};
use super::solving::Facts;
use super::{Trial, Try};
use crate::Effort;
use crate::logic::lemmas::Lemma;
use crate::logic::world::Matters;
use crate::space::{Solved, of_fixed, solve, solve_present};
use crate::wanted::{Asked, Sketch, Values};
use crate::witness::{Arrival, Says, Setting, Unrealisable};

/// A way in which requests come, and what holds of its ends.
pub(super) struct Arriving {
    arrival: Arrival,
    holds: Facts,
}

/// All ways of a listener. Nothing where what holds of one of them cannot be written as rules.
pub(super) fn arriving(setting: &Setting) -> Option<Vec<Arriving>> {
    let of = |arrival: Arrival| Some(Arriving { holds: Facts::read(&arrival.holds)?, arrival });
    setting.arrivals().into_iter().map(of).collect()
}

/// Fields that have the same values, and what matters of them.
struct Group<'p> {
    fields: Vec<&'p Field>,
    tests: Vec<Mattering<'p>>,
}

impl<'p> Trial<'_, 'p> {
    /// The sketch as it comes in one of the ways, or that it comes in none. Nothing where that leads no further.
    pub(super) fn arrive(
        &mut self,
        sketch: &Sketch<'p>,
        matters: &Matters<'p>,
        why: &Unrealisable,
        effort: &mut Effort,
    ) -> Option<Try<'p>> {
        if why.fields.is_empty() || !why.fields.iter().all(Arrival::is_of) {
            return None;
        }
        let ways = self.analyst.arriving.take().or_else(|| arriving(self.analyst.setting).map(Into::into))?;
        self.analyst.arriving = Some(ways.clone());
        let groups = groups(matters);
        let of: Vec<&Field> = groups.iter().flat_map(|group| group.fields.iter().copied()).collect();
        let (mut lemma, mut is_open) = (Lemma::new(), ways.is_empty());
        for way in ways.iter() {
            match self.arrived(way, &groups, effort) {
                Some(Ok(values)) => {
                    is_open = true;
                    let tried = self.with_other_values(sketch, &of, values, effort);
                    if tried.is_some() {
                        return tried;
                    }
                }
                Some(Err(failed)) => lemma.extend(failed),
                None => is_open = true,
            }
        }
        if is_open {
            return None;
        }
        self.never(lemma);
        Some(Try::Again)
    }

    /// Values of all fields where a request comes in this way, or the tests of one of them that fail then.
    fn arrived(
        &mut self,
        way: &Arriving,
        groups: &[Group<'p>],
        effort: &mut Effort,
    ) -> Option<Result<Vec<(&'p Field, Values)>, Lemma>> {
        let mut found = Vec::new();
        for (first, group) in joined(groups, way.arrival.client_is_peer()) {
            let mut all: Vec<Asked<'_>> = asked(&group.tests).collect();
            all.extend(way.holds.of_field(first));
            if !effort.take(all.len() as u64) {
                return None;
            }
            let automata = &mut self.analyst.automata;
            let solved = match way.arrival.says(first) {
                Says::These(values) => of_fixed(values, &all),
                Says::Some => solve_present(first, &all, automata, effort),
                Says::Any => solve(first, &all, automata, effort),
            };
            match solved {
                Solved::Values(values) => {
                    found.extend(group.fields.iter().map(|field| (*field, values.clone())));
                }
                Solved::Nothing { because } => {
                    return Some(Err(numbers(because, &group.tests)));
                }
                Solved::Unknown => return None,
            }
        }
        Some(Ok(found))
    }
}

/// What matters of the fields that have to do with it, field by field.
fn groups<'p>(matters: &Matters<'p>) -> Vec<Group<'p>> {
    let mut groups: Vec<Group<'p>> = Vec::new();
    let is_asked = |(test, states): &Mattering<'p>| Arrival::is_of(&test.field) && states.wanted().is_some();
    for (test, states) in matters.each().filter(is_asked) {
        match groups.iter_mut().find(|group| group.fields.contains(&&test.field)) {
            Some(group) => group.tests.push((test, states)),
            None => groups.push(Group { fields: vec![&test.field], tests: vec![(test, states)] }),
        }
    }
    groups
}

/// The same with the field that is asked, where the client may be the peer: then both are one.
fn joined<'a, 'p>(groups: &'a [Group<'p>], client_is_peer: bool) -> Vec<(&'a Field, Group<'p>)> {
    let is_peer = |field: &Field| match field {
        Field::SrcIp => true,
        field => client_is_peer && *field == Field::ClientIp,
    };
    let mut joined: Vec<(&Field, Group<'p>)> = Vec::new();
    for Group { fields, tests } in groups {
        let Some(first) = fields.first().copied() else { continue };
        let asked = if is_peer(first) { &Field::SrcIp } else { first };
        match joined.iter_mut().find(|(field, _)| *field == asked) {
            Some((_, group)) => {
                group.fields.extend(fields);
                group.tests.extend(tests);
            }
            None => joined.push((asked, Group { fields: fields.clone(), tests: tests.clone() })),
        }
    }
    joined
}
