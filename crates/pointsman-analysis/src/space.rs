//! Which values of one field satisfy many tests at once.
//!
//! A claim is a test with what it may come to. Over several values a claim asks something of each of them, of the first,
//! of some, or of how many there are. What it asks of one value is decided by candidates on both sides of each bound
//! (numbers, addresses), or by automata that are walked side by side (texts). Whatever is found is tried out with the
//! meaning that the rules give a test before it is said.

mod addresses;
mod automata;
mod beside;
mod claim;
mod decimals;
mod domain;
mod listed;
mod numbers;
mod product;
mod shapes;
mod single;
#[cfg(test)]
mod tests;
mod texts;
mod tuples;

use pointsman_rules::Field;

pub(crate) use self::automata::{Automata, Outline, PIECES_MAX, Piece};
pub(crate) use self::beside::{beside, has_more_borders};
use self::claim::Claim;
pub use self::domain::is_server_name;
use self::domain::{Absence, Domain};
use crate::Effort;
use crate::wanted::{Asked, Values};

/// Claims of which each is left out to see whether the others are enough.
const SHRUNK_MAX: usize = 12;

/// What came of the search for the values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Solved {
    /// These do.
    Values(Values),
    /// No request has values that satisfy what was asked at these places, in their order.
    Nothing { because: Vec<usize> },
    /// It was too much, or is not known how.
    Unknown,
}

/// Whether no request has several values of a field.
pub(crate) fn has_one_value(field: &Field) -> bool {
    !Domain::of(field).is_many
}

/// Values of a field that satisfy all that is asked of it, or of fields that always have the same values.
pub(crate) fn solve(
    field: &Field,
    asked: &[Asked<'_>],
    automata: &mut Automata,
    effort: &mut Effort,
) -> Solved {
    solve_in(Domain::of(field), asked, automata, effort)
}

/// The same where nothing is wrong with the body that the field may stand in.
pub(crate) fn solve_in_whole_body(
    field: &Field,
    asked: &[Asked<'_>],
    automata: &mut Automata,
    effort: &mut Effort,
) -> Solved {
    solve_in(Domain { may_be_at_fault: false, ..Domain::of(field) }, asked, automata, effort)
}

/// The same of a field that no request is without.
pub(crate) fn solve_present(
    field: &Field,
    asked: &[Asked<'_>],
    automata: &mut Automata,
    effort: &mut Effort,
) -> Solved {
    solve_in(Domain { absence: Absence::Never, ..Domain::of(field) }, asked, automata, effort)
}

fn solve_in(domain: Domain, asked: &[Asked<'_>], automata: &mut Automata, effort: &mut Effort) -> Solved {
    let claims: Vec<Claim<'_>> =
        asked.iter().enumerate().map(|(index, asked)| Claim::new(index, asked)).collect();
    match shapes::solve(&domain, &claims, automata, effort) {
        Solved::Nothing { because } => {
            Solved::Nothing { because: shrunk(&domain, &claims, because, automata, effort) }
        }
        settled => settled,
    }
}

/// The same of a field that has these values whatever the request.
pub(crate) fn of_fixed(values: Values, asked: &[Asked<'_>]) -> Solved {
    of_choices(vec![values], asked)
}

/// The same of a field that has some of these values.
pub(crate) fn of_choices(choices: Vec<Values>, asked: &[Asked<'_>]) -> Solved {
    let claims: Vec<_> = asked.iter().enumerate().map(|(index, asked)| Claim::new(index, asked)).collect();
    let mut failed: Vec<&Claim<'_>> = Vec::new();
    for values in choices {
        if failed.iter().any(|claim| !claim.takes_all(&values)) {
            continue;
        }
        match claims.iter().find(|claim| !claim.takes_all(&values)) {
            Some(claim) => failed.push(claim),
            None => return Solved::Values(values),
        }
    }
    Solved::Nothing { because: failed.into_iter().map(|claim| claim.index).collect() }
}

/// Without those that are not needed, if there are few.
fn shrunk(
    domain: &Domain,
    claims: &[Claim<'_>],
    because: Vec<usize>,
    automata: &mut Automata,
    effort: &mut Effort,
) -> Vec<usize> {
    if because.len() > SHRUNK_MAX {
        return because;
    }
    let mut kept = because.clone();
    for index in because {
        let others: Vec<Claim<'_>> = kept
            .iter()
            .filter(|kept| **kept != index)
            .filter_map(|kept| claims.get(*kept).copied())
            .collect();
        if let Solved::Nothing { because } = shapes::solve(domain, &others, automata, effort) {
            kept = because;
        }
    }
    kept
}
