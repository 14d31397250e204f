//! Mutations of drafts: other ways to write a value, and things that stand beside it.

mod bodies;
mod boundaries;
mod fields;
mod json;
mod multipart;
mod params;
mod target;
mod xml;

use super::dice::Dice;
use super::draft::Draft;

/// What a mutation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    Path,
    Target,
    Host,
    /// Parameters of the query, of forms and of cookies.
    Params,
    Cookie,
    Field,
    Multipart,
    Json,
    Xml,
    /// What kind of body the head says it is.
    Label,
    Framing,
    /// Each of the others.
    Any,
}

/// A mutation; where there is nothing that it could change it does nothing.
pub(super) struct Mutation {
    /// What findings are grouped by.
    pub(super) name: &'static str,
    area: Area,
    pub(super) apply: fn(&mut Draft, &mut Dice),
}

const TABLES: &[&[Mutation]] = &[
    target::ALL,
    params::ALL,
    params::COOKIES,
    fields::ALL,
    multipart::ALL,
    boundaries::ALL,
    json::ALL,
    xml::ALL,
    bodies::ALL,
];

/// One mutation with the choices it makes.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) mutation: &'static Mutation,
    pub(super) dice: Dice,
}

/// Some mutations of these areas; now and then of others.
pub(super) fn steps(areas: &[Area], dice: &mut Dice) -> Vec<Step> {
    let count = *dice.pick(&[1, 1, 1, 2, 2, 3, 4]);
    let step = |_| {
        let area = if dice.one_in(12) { Area::Any } else { *dice.pick(areas) };
        let fitting: Vec<&'static Mutation> = TABLES
            .iter()
            .copied()
            .flatten()
            .filter(|mutation| area == Area::Any || mutation.area == area)
            .collect();
        let mutation = *dice.pick(&fitting);
        Step { mutation, dice: Dice::new(dice.next(), 0) }
    };
    (0..count).map(step).collect()
}

/// A draft with all steps applied.
pub(super) fn applied(mut draft: Draft, steps: &[Step]) -> Draft {
    for step in steps {
        (step.mutation.apply)(&mut draft, &mut step.dice.clone());
    }
    draft
}

/// Percent-codes of some bytes, at least of one.
fn percent(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let certain = dice.below(bytes.len());
    let upper = dice.one_in(2);
    let mut coded = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        if at == certain || dice.one_in(4) {
            let code = if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
            coded.extend_from_slice(code.as_bytes());
        } else {
            coded.push(*byte);
        }
    }
    coded
}

/// The same letters in another case.
fn recased(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    match dice.below(3) {
        0 => text.to_ascii_uppercase(),
        1 => {
            let at = dice.below(text.len());
            let swap =
                |(index, byte): (usize, &u8)| if index == at { byte.to_ascii_uppercase() } else { *byte };
            text.iter().enumerate().map(swap).collect()
        }
        _ => text.iter().map(|byte| if dice.one_in(2) { byte.to_ascii_uppercase() } else { *byte }).collect(),
    }
}

/// Puts bytes at a place.
fn insert(text: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let at = at.min(text.len());
    text.splice(at..at, bytes.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::super::rules::RULES;
    use super::*;

    #[test]
    fn every_mutation_changes_some_request() {
        for mutation in TABLES.iter().copied().flatten() {
            let changes = |rule: &super::super::rules::Rule, seed| {
                let mut dice = Dice::new(seed, 0);
                let draft = rule.draft(&mut dice);
                let before = draft.request();
                applied(draft, &[Step { mutation, dice }]).request() != before
            };
            let changed = RULES.iter().any(|rule| (0..20).any(|seed| changes(rule, seed)));
            assert!(changed, "{}", mutation.name);
        }
    }

    #[test]
    fn names_of_mutations_are_different() {
        let names: Vec<_> = TABLES.iter().copied().flatten().map(|mutation| mutation.name).collect();
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }

    #[test]
    fn the_same_dice_make_the_same_mutant() {
        let make = || {
            let mut dice = Dice::new(3, 17);
            let rule = dice.pick(RULES);
            let draft = rule.draft(&mut dice);
            let steps = steps(rule.areas, &mut dice);
            applied(draft, &steps).request().bytes()
        };
        assert_eq!(make(), make());
    }
}
