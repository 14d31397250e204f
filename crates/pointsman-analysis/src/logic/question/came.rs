//! What becomes of a request that was made for a question.

use pointsman_rules::{Program, Subject, Truths};

use super::{Question, Way};
use crate::logic::states::States;
use crate::logic::walk::{Instead, Passage, Walk, truth};

/// What became of a request.
pub(super) enum Came {
    There,
    /// It was stopped, behind some rules that jumped.
    Stopped {
        by: u32,
        jumped: Vec<u32>,
    },
}

/// What becomes of a request that was made for a question; nothing where it is not what it was made to be.
pub(super) fn came<S: Subject + ?Sized>(
    question: Question,
    program: &Program,
    walk: &Walk,
    subject: &S,
    truths: &mut Truths,
) -> Option<Came> {
    let Question { rule, states, removed, way } = question;
    let is_so = |(rule, states): (u32, States)| states.covers(truth(program, rule, subject));
    if way == Way::Apart {
        return (is_so((rule, states)) && removed.is_none_or(is_so)).then_some(Came::There);
    }
    // Without it the way to it is the same.
    let (target, without) = match (way, removed) {
        (Way::Otherwise, Some((removed, _))) => (removed, None),
        (_, removed) => (rule, removed.map(|(removed, _)| removed)),
    };
    match walk.follow(program, subject, target, without, truths)? {
        Passage::Stopped { by, jumped } => return Some(Came::Stopped { by, jumped }),
        Passage::Arrived(_) if !removed.is_none_or(is_so) => return None,
        Passage::Arrived(state) if way == Way::Walk && !states.covers(state) => return None,
        Passage::Arrived(_) => {}
    }
    if way == Way::Walk {
        return Some(Came::There);
    }
    Some(match walk.otherwise(program, subject, target, truths) {
        (Instead::Same(by), jumped) => Came::Stopped { by, jumped },
        (Instead::Other, _) => Came::There,
    })
}
