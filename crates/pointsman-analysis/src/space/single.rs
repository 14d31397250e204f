//! One value that fulfils several claims at once.

use pointsman_rules::{Cause, OwnedValue};

use super::automata::Automata;
use super::claim::Claim;
use super::domain::{Domain, Kind};
use super::{addresses, listed, numbers, texts};
use crate::Effort;

/// What came of the search for one value.
pub(super) enum Single {
    Value(OwnedValue),
    /// There is none, because of the claims of these places.
    Nothing(Vec<usize>),
    Unknown,
}

/// A value of a field that fulfils all claims.
pub(super) fn solve(
    domain: &Domain,
    claims: &[Claim<'_>],
    automata: &mut Automata,
    effort: &mut Effort,
) -> Single {
    if !effort.take(claims.len() as u64) {
        return Single::Unknown;
    }
    let usual = match domain.kind {
        Kind::Choice(texts) => {
            pick(texts.iter().map(|text| of_text(text.as_bytes())), Vec::new(), claims, effort)
        }
        Kind::Text(language) => texts::solve(language, claims, automata, effort),
        Kind::Integer { min, max } => {
            let numbers = numbers::integers(claims, min..=max).into_iter().map(OwnedValue::Integer);
            pick(numbers, numbers::narrowest(claims), claims, effort)
        }
        Kind::Address => {
            let narrowest = addresses::narrowest(claims);
            let addresses = addresses::candidates(claims, narrowest).into_iter().map(OwnedValue::Ip);
            match pick(addresses, narrowest.into_iter().collect(), claims, effort) {
                Single::Nothing(_) if claims.iter().any(listed::names_list) => listed::solve(claims, effort),
                settled => settled,
            }
        }
        Kind::Boolean => pick([false, true].map(OwnedValue::Boolean), Vec::new(), claims, effort),
    };
    if matches!(usual, Single::Value(_)) {
        return usual;
    }
    match (usual, pick(unusual(domain), Vec::new(), claims, effort)) {
        (_, Single::Value(value)) => Single::Value(value),
        (Single::Nothing(mut because), Single::Nothing(more)) => {
            because.extend(more);
            Single::Nothing(because)
        }
        _ => Single::Unknown,
    }
}

/// What a value of the body may be beside a text or number.
fn unusual(domain: &Domain) -> Vec<OwnedValue> {
    let mut values = Vec::new();
    if domain.is_json {
        values.extend([OwnedValue::Boolean(true), OwnedValue::Boolean(false), OwnedValue::Nothing]);
    }
    if domain.may_be_too_long {
        values.push(OwnedValue::Unknown(Cause::Limit));
    }
    values
}

pub(super) fn of_text(text: &[u8]) -> OwnedValue {
    OwnedValue::Text(text.into())
}

/// The first candidate that fulfils all claims; otherwise, as few claims as are soon found of which each fails one.
/// Those that have `failed` are such that what is no candidate fails one of them: they are always among these.
pub(super) fn pick<'p>(
    candidates: impl IntoIterator<Item = OwnedValue>,
    mut failed: Vec<Claim<'p>>,
    claims: &[Claim<'p>],
    effort: &mut Effort,
) -> Single {
    for candidate in candidates {
        let value = candidate.as_value();
        if !effort.take(1 + failed.len() as u64) {
            return Single::Unknown;
        }
        if failed.iter().any(|claim| !claim.takes(value)) {
            continue;
        }
        let place = claims.iter().position(|claim| !claim.takes(value));
        if !effort.take(place.unwrap_or(claims.len()) as u64) {
            return Single::Unknown;
        }
        match place.and_then(|place| claims.get(place)) {
            Some(claim) => failed.push(*claim),
            None => return Single::Value(candidate),
        }
    }
    Single::Nothing(failed.iter().map(|claim| claim.index).collect())
}
