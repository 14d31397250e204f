//! Whether two programs look into the bodies of the same requests, and as far: a body that is looked into must be well-formed,
//! whatever is decided by it.

use std::mem::{Discriminant, discriminant};

use pointsman_rules::{Block, Condition, Field, JsonStep, OnUnknown, Place, Program, Rule, pace};

use super::alignment::shape;
use crate::logic::states::States;
use crate::logic::walk::{Step, Walk};

/// What decides whether a rule that is visited looks into a body, and where a request goes from there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    /// The whole condition, or, where that is enough, what it asks besides the body, and of which kinds of body it asks.
    asks: Asks,
    /// What follows each outcome: where a jump leads, counted from the program's first rule.
    steps: [(u8, u32); 3],
    awaited: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Asks {
    Whole(Vec<u32>),
    Beside { heads: Vec<Vec<u32>>, kinds: Vec<Discriminant<Place>> },
}

/// Whether it is seen that they do. The rules of the second stand behind those of the first, from `middle` on.
///
/// They do where rule by rule, as far as any looks into a body, the same is asked of the head in the same order. What a rule
/// asks of a value in the body may differ where the rules know one kind of body, which is looked into before the answer, and
/// where both refuse what is wrong before the answer as they refuse what is wrong behind it. And in bodies of JSON the same
/// members may stand there once only, whichever rule names them.
pub(super) fn look_alike(joint: &Program, programs: [&Program; 2], walk: &Walk, middle: u32) -> bool {
    let kinds = joint.payloads.iter().map(|payload| &payload.place).filter(|place| **place != Place::Size);
    let mut kinds: Vec<_> = kinds.map(discriminant).collect();
    kinds.dedup();
    let Some(first) = kinds.first() else { return true };
    let [old, new] = programs.map(members);
    if old != new {
        return false;
    }
    let refuse_unknown = programs.iter().all(|program| program.on_unknown == OnUnknown::Reject);
    let are_told_apart = !refuse_unknown || kinds.iter().any(|kind| kind != first);
    let end = u32::try_from(joint.rules.len()).unwrap_or(u32::MAX);
    let [old, new] = [0..middle, middle..end].map(|rules| {
        let first = rules.start;
        let looks = pace::each(rules).filter_map(|index| Some((index, joint.rules.get(index as usize)?)));
        let mut looks: Vec<_> = looks
            .map(|(index, rule)| (Look::of(rule, index, first, walk, are_told_apart), looks_in(rule)))
            .collect();
        let count = looks.iter().rposition(|(_, looks_in)| *looks_in).map_or(0, |last| last + 1);
        looks.truncate(count);
        looks
    });
    old == new
}

/// The members of JSON objects that no body may have twice, as the longest paths to them: those of all objects on the way to what
/// a rule names.
fn members(program: &Program) -> Vec<&[JsonStep]> {
    let paths = pace::each(&program.payloads).filter_map(|payload| match &payload.place {
        Place::Json(steps) => {
            let last = steps.iter().rposition(|step| matches!(step, JsonStep::Member(_)))?;
            steps.get(..=last)
        }
        Place::Xml(_) | Place::Form(_) | Place::Size => None,
    });
    let mut paths: Vec<&[JsonStep]> = paths.collect();
    pace::sort(&mut paths);
    // What goes on from a path stands right behind it.
    let mut members: Vec<&[JsonStep]> = Vec::with_capacity(paths.len());
    for path in pace::each(paths) {
        match members.last_mut() {
            Some(last) if path.starts_with(last) => *last = path,
            _ => members.push(path),
        }
    }
    members
}

fn looks_in(rule: &Rule) -> bool {
    let mut awaited = [&rule.then, &rule.otherwise].into_iter().flat_map(|block| &block.awaits);
    names_body(&rule.condition) || awaited.any(Field::is_in_body)
}

fn names_body(condition: &Condition) -> bool {
    condition.any_test(&|test| test.field.is_in_body())
}

impl Look {
    fn of(rule: &Rule, index: u32, first: u32, walk: &Walk, are_told_apart: bool) -> Look {
        let beside = if are_told_apart { None } else { Asks::beside(&rule.condition) };
        let steps = States::EACH.map(|on| match walk.step(index, on) {
            Step::Next => (0, 0),
            Step::Goto(to) => (1, to.saturating_sub(first)),
            Step::Decides => (2, 0),
        });
        let awaited = |block: &Block| block.awaits.iter().map(ToString::to_string).collect::<Vec<_>>();
        let awaited = [awaited(&rule.then), awaited(&rule.otherwise)].concat();
        Look { asks: beside.unwrap_or_else(|| Asks::Whole(shape(&rule.condition))), steps, awaited }
    }
}

impl Asks {
    /// What is asked besides the body, where each part of a condition asks of either.
    fn beside(condition: &Condition) -> Option<Asks> {
        let parts = match condition {
            Condition::And(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let (of_body, heads): (Vec<_>, Vec<_>) = parts.iter().partition(|part| names_body(part));
        if of_body.is_empty() {
            return None;
        }
        let mut kinds = Vec::new();
        for part in of_body {
            let test = match part {
                Condition::Test(test) => test,
                Condition::Not(inner) => match &**inner {
                    Condition::Test(test) => test,
                    _ => return None,
                },
                _ => return None,
            };
            if let Field::Payload(payload) = &test.field {
                kinds.push(discriminant(&payload.place));
            }
        }
        kinds.dedup();
        let mut heads: Vec<_> = heads.into_iter().map(shape).collect();
        heads.sort_unstable();
        heads.dedup();
        Some(Asks::Beside { heads, kinds })
    }
}
