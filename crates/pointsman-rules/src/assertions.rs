//! Assertions: what is said to become of all requests for which a condition is true. Nothing acts on them.

use std::fmt;
use std::sync::Arc;

use crate::{
    Block, Condition, OnUnknown, Outcome, Payload, Program, Rule, Span, TargetId, TargetName, Terminal,
};

/// The assertions beside a rule set, or a question about it.
#[derive(Clone, Debug, Default)]
pub struct Assertions {
    /// In the order of the text.
    pub list: Vec<Assertion>,
    /// The fields of the body that the rules name, and behind them those that only the conditions here name.
    pub(crate) payloads: Vec<Arc<Payload>>,
}

/// `assert "name": never (condition) -> target;`
#[derive(Clone, Debug)]
pub struct Assertion {
    /// Unique among the assertions of its file; empty for a question.
    pub name: Box<str>,
    /// Where it stands in its source.
    pub span: Span,
    /// What is said of the requests.
    pub claim: Claim,
    /// The requests for which it is true are spoken of.
    pub condition: Condition,
    /// What becomes of them.
    pub destination: Destination,
}

/// What an assertion says of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// None of them gets there.
    Never,
    /// All of them get there.
    Always,
}

/// Where requests get to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A pool, or a server.
    Target {
        /// As the rules would name it.
        name: TargetName,
        /// The targets of the rules that lead there whenever they are chosen: itself, and servers of the pool.
        surely: Vec<TargetId>,
        /// Those that may lead there: the pool of the server.
        perhaps: Vec<TargetId>,
    },
    /// Something else than a target.
    Ending(Ending),
}

/// What else than a target a request can come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is refused: by a rule, or because a condition ends unknown.
    Reject,
    /// Its connection is closed without an answer.
    Discard,
    /// It is redirected.
    Redirect,
    /// A rule answers it.
    Respond,
    /// No rule decides it.
    Default,
}

/// Whether a decision leads somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    Surely,
    Perhaps,
    Not,
}

impl Assertions {
    /// A program of rules that do nothing, one with the condition of each assertion: for who wants to see what they come to.
    #[must_use]
    pub fn program(&self) -> Program {
        let rule = |assertion: &Assertion| Rule {
            label: assertion.name.clone(),
            span: assertion.span,
            condition: assertion.condition.clone(),
            then: Block::default(),
            otherwise: Block::default(),
        };
        let rules = self.list.iter().map(rule).collect();
        Program::new(rules, None, OnUnknown::default(), Vec::new()).with_payloads(self.payloads.clone(), None)
    }
}

impl Assertion {
    /// Whether a request for which the condition is true must not be decided so. `default_pool` is where requests go that
    /// no rule decides, if that is known.
    #[must_use]
    pub fn is_broken_by(&self, outcome: &Outcome<'_>, default_pool: Option<&str>) -> bool {
        let arrival = self.destination.arrival(outcome, default_pool);
        match self.claim {
            Claim::Never => arrival != Arrival::Not,
            Claim::Always => arrival != Arrival::Surely,
        }
    }
}

impl Claim {
    /// As it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Claim::Never => "never",
            Claim::Always => "always",
        }
    }
}

impl Destination {
    fn arrival(&self, outcome: &Outcome<'_>, default_pool: Option<&str>) -> Arrival {
        let arrives = match (self, outcome) {
            (Destination::Target { surely, perhaps, .. }, outcome) => {
                if matches!(outcome, Outcome::DefaultPool) {
                    return self.arrival_by_default(default_pool);
                }
                let arrivals = outcome.targets().map(|target| match () {
                    () if surely.contains(&target) => Arrival::Surely,
                    () if perhaps.contains(&target) => Arrival::Perhaps,
                    () => Arrival::Not,
                });
                // Each request takes one of several ways.
                return arrivals
                    .reduce(|one, other| if one == other { one } else { Arrival::Perhaps })
                    .unwrap_or(Arrival::Not);
            }
            (Destination::Ending(ending), Outcome::Terminal(terminal)) => match terminal {
                Terminal::RouteTo { .. } | Terminal::Split(_) => false,
                Terminal::Reject { .. } | Terminal::Reset => *ending == Ending::Reject,
                Terminal::Discard => *ending == Ending::Discard,
                Terminal::Redirect { .. } => *ending == Ending::Redirect,
                Terminal::Respond { .. } => *ending == Ending::Respond,
            },
            (Destination::Ending(ending), Outcome::Refused(_)) => *ending == Ending::Reject,
            (Destination::Ending(ending), Outcome::DefaultPool) => *ending == Ending::Default,
            (Destination::Ending(_), Outcome::RouteUnknown { .. } | Outcome::Waits) => false,
        };
        if arrives { Arrival::Surely } else { Arrival::Not }
    }

    /// Where the default pool leads.
    fn arrival_by_default(&self, default_pool: Option<&str>) -> Arrival {
        match self {
            Destination::Target { name, .. } if default_pool == Some(&*name.pool) => match name.server {
                None => Arrival::Surely,
                Some(_) => Arrival::Perhaps,
            },
            _ => Arrival::Not,
        }
    }
}

impl fmt::Display for Destination {
    /// As an assertion writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Target { name, .. } => name.fmt(f),
            Destination::Ending(ending) => f.write_str(ending.word()),
        }
    }
}

impl Ending {
    const ALL: [Ending; 5] =
        [Ending::Reject, Ending::Discard, Ending::Redirect, Ending::Respond, Ending::Default];

    /// As it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Ending::Reject => "reject",
            Ending::Discard => "discard",
            Ending::Redirect => "redirect",
            Ending::Respond => "respond",
            Ending::Default => "default",
        }
    }

    /// The one that a word means.
    pub(crate) fn of(word: &str) -> Option<Ending> {
        Ending::ALL.into_iter().find(|ending| ending.word() == word)
    }
}
