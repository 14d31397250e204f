//! What has become of a server lately, each time with its reason: for people who look at it.
//!
//! It is written when something changes, which is seldom, and never read on the way of a request.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Changes that are kept of a server.
const CHANGES_MAX: usize = 32;

/// How a server is, in a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerState {
    /// It gets whom it should.
    #[default]
    Up,
    /// It gets nothing until its first probe has passed.
    Starting,
    /// It gets only clients that stay with it.
    Draining,
    /// Probes say that it does not answer as it should.
    Down,
    /// Somebody has set it so that it gets nothing.
    Disabled,
    /// It gets nothing for a while because requests failed there, or one on trial.
    Ejected,
}

impl ServerState {
    /// All of them.
    pub const ALL: [ServerState; 6] = [
        ServerState::Up,
        ServerState::Starting,
        ServerState::Draining,
        ServerState::Down,
        ServerState::Disabled,
        ServerState::Ejected,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            ServerState::Up => "up",
            ServerState::Starting => "starting",
            ServerState::Draining => "draining",
            ServerState::Down => "down",
            ServerState::Disabled => "disabled",
            ServerState::Ejected => "ejected",
        }
    }
}

/// Something that was heard of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerChange {
    /// When, in microseconds since the switch began.
    pub at_us: u64,
    /// How the server was from then on.
    pub state: ServerState,
    /// What was heard.
    pub why: Arc<str>,
}

/// The last changes of a server.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Kept>);

/// What is kept, shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Since when it has been as it is, in microseconds since the switch began.
    pub(crate) since_us: u64,
    state: ServerState,
    /// Since when it was how before the oldest of the changes.
    pub(crate) before: (u64, ServerState),
    /// Oldest first.
    pub(crate) changes: VecDeque<ServerChange>,
}

impl History {
    /// Of a server that is new.
    pub(crate) fn since(since_us: u64) -> History {
        History(Mutex::new(Kept { since_us, before: (since_us, ServerState::default()), ..Kept::default() }))
    }

    /// Notes what was heard. `state` is asked when nobody else notes anything.
    pub(crate) fn note(&self, at_us: u64, why: &str, state: impl FnOnce() -> ServerState) {
        let mut kept = self.locked();
        let state = state();
        if state != kept.state {
            (kept.state, kept.since_us) = (state, at_us);
        }
        if kept.changes.len() >= CHANGES_MAX
            && let Some(oldest) = kept.changes.pop_front()
            && oldest.state != kept.before.1
        {
            kept.before = (oldest.at_us, oldest.state);
        }
        kept.changes.push_back(ServerChange { at_us, state, why: why.into() });
    }

    /// Goes on where another one was.
    pub(crate) fn follow(&self, before: &History) {
        let Kept { before, changes, .. } = before.kept();
        let mut kept = self.locked();
        (kept.before, kept.changes) = (before, changes);
    }

    pub(crate) fn kept(&self) -> Kept {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Kept> {
        // No code panics while it holds it, and what is kept is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_changes_are_kept_and_since_when_it_is_so() {
        let history = History::since(3);
        assert_eq!(history.kept(), Kept { since_us: 3, before: (3, ServerState::Up), ..Kept::default() });
        history.note(5, "probe", || ServerState::Up);
        assert_eq!(history.kept().since_us, 3, "it was up before");
        for at_us in 6..100 {
            history.note(at_us, "again", || ServerState::Down);
        }
        let kept = history.kept();
        assert_eq!((kept.since_us, kept.changes.len()), (6, CHANGES_MAX));
        assert_eq!(kept.before, (6, ServerState::Down), "what was before the oldest that is kept");
        let last = ServerChange { at_us: 99, state: ServerState::Down, why: "again".into() };
        assert_eq!(kept.changes.back(), Some(&last));
        history.note(100, "probe", || ServerState::Up);
        assert_eq!(history.kept().since_us, 100);
        let next = History::since(101);
        next.follow(&history);
        next.note(102, "dns", || ServerState::Up);
        let kept = next.kept();
        assert_eq!((kept.since_us, kept.changes.len()), (101, CHANGES_MAX));
        assert_eq!(
            kept.changes.iter().rev().take(2).map(|change| change.at_us).collect::<Vec<_>>(),
            [102, 100]
        );
    }
}
