//! One stage of a search.

use std::collections::VecDeque;

use super::bracket::Bracket;
use super::found::{Findings, Limit, NoResult, Rate};
use super::trial::Phase;

/// What a search is at.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    Bracket(Bracket),
    Confirmation {
        queue: VecDeque<f64>,
        centre: f64,
        limit: Limit,
        round: u32,
    },
    /// A load at which the client was not in control, once more: what was in its way may have passed.
    Again {
        rate: f64,
        sustained: Rate,
        is_swept: bool,
    },
    Sweep {
        queue: VecDeque<f64>,
        sustained: Rate,
    },
    Zoom {
        left: u32,
        sustained: Rate,
    },
    Peak {
        queue: VecDeque<f64>,
        sustained: Rate,
    },
    Found(Box<Findings>),
    None(NoResult),
}

impl Stage {
    /// Of which phase a trial is that it still has to run. A bracket and a zoom end before the last.
    pub(super) fn wanted(&self) -> Option<Phase> {
        let (queue, phase) = match self {
            Stage::Again { .. } => return Some(Phase::Bisection),
            Stage::Confirmation { queue, .. } => (queue, Phase::Confirmation),
            Stage::Sweep { queue, .. } => (queue, Phase::Sweep),
            Stage::Peak { queue, .. } => (queue, Phase::Peak),
            Stage::Bracket(_) | Stage::Zoom { .. } | Stage::Found(_) | Stage::None(_) => return None,
        };
        (!queue.is_empty()).then_some(phase)
    }
}

/// The first load of a queue that the client can be in control at, while trials are left.
pub(super) fn next_of(queue: &mut VecDeque<f64>, ceiling: f64, left: usize) -> Option<f64> {
    if left == 0 {
        return None;
    }
    while queue.front().is_some_and(|rate| *rate >= ceiling) {
        queue.pop_front();
    }
    queue.front().copied()
}
