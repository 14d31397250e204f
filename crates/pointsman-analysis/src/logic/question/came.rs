//! What becomes of a request that was made for a question.

use pointsman_rules::{Program, Subject, Truths};

use super::{Question, Way};
use crate::logic::states::States;
use crate::logic::walk::{Instead, Passage, Walk, truth};

/// What became of a request.
pub(super) enum Came {
    There,
    /// It was stopped.
    Stopped(Stop),
}

/// What keeps a request from coming further.
#[derive(Default)]
pub(super) struct Stop {
    /// The first rule that does.
    pub(super) by: u32,
    /// Rules before it that jumped.
    pub(super) jumped: Vec<u32>,
    /// Some rules behind it that would do the same.
    pub(super) further: Vec<u32>,
}

/// What becomes of a request that was made for a question, and which rules stop it beside the first, up to so many; nothing
/// where it is not what it was made to be.
pub(super) fn came<S: Subject + ?Sized>(
    question: Question,
    further_max: usize,
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
        Passage::Stopped { by, jumped } => {
            // Where rules jump, it is not said which would be come to.
            let most = if walk.jumps_before(target) { 0 } else { further_max };
            let next = |at: &u32| walk.next_stop(program, subject, *at, truths).filter(|next| *next < target);
            let stops = std::iter::successors(Some(by), next).skip(1).take(most);
            let further = stops.filter(|rule| without != Some(*rule)).collect();
            return Some(Came::Stopped(Stop { by, jumped, further }));
        }
        Passage::Arrived(_) if !removed.is_none_or(is_so) => return None,
        Passage::Arrived(state) if way == Way::Walk && !states.covers(state) => return None,
        Passage::Arrived(_) => {}
    }
    if way == Way::Walk {
        return Some(Came::There);
    }
    Some(match walk.otherwise(program, subject, target, truths) {
        (Instead::Same(by), jumped) => Came::Stopped(Stop { by, jumped, ..Stop::default() }),
        (Instead::Other, _) => Came::There,
    })
}
