//! Shares of a `split`: how requests are divided between targets.

use std::fmt;

use crate::{Block, Exit, Outcome, Program, Stickiness, TargetId, Terminal, pace};

/// Several targets, one of which gets a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// At least two, which add up to [`Share::WHOLE`]: the largest first, and equal ones by name.
    pub shares: Box<[Share]>,
    /// How a client stays with a target, and with a server of it.
    pub sticky: Stickiness,
}

/// What one target gets of a `split`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    /// Who gets it.
    pub target: TargetId,
    /// How much, in hundredths of a percent; at least one.
    pub parts: u32,
}

impl Share {
    /// What all shares of a `split` add up to.
    pub const WHOLE: u32 = 10_000;

    /// `90` for the share `90: stable`.
    #[must_use]
    pub fn percent(self) -> impl fmt::Display {
        Percent(self.parts)
    }
}

impl Terminal {
    /// Whether a server gets the request.
    #[must_use]
    pub fn routes(&self) -> bool {
        self.stickiness().is_some()
    }

    /// How a client stays with the server that gets the request, if one does.
    #[must_use]
    pub fn stickiness(&self) -> Option<&Stickiness> {
        match self {
            Terminal::RouteTo { sticky, .. } => Some(sticky),
            Terminal::Split(split) => Some(&split.sticky),
            Terminal::Reject { .. }
            | Terminal::Reset
            | Terminal::Discard
            | Terminal::Redirect { .. }
            | Terminal::Respond { .. } => None,
        }
    }
}

impl Program {
    /// How clients stay with servers, by each action that routes.
    pub fn stickinesses(&self) -> impl Iterator<Item = &Stickiness> {
        let rules = pace::each(self.rules.iter().chain(&self.fallback));
        let ends = rules.flat_map(|rule| [&rule.then, &rule.otherwise]);
        ends.filter_map(|Block { exit, .. }| match exit {
            Exit::Terminal(terminal) => terminal.stickiness(),
            Exit::Next | Exit::Goto(_) => None,
        })
    }

    /// `split(90: stable, 10: canary)`
    #[must_use]
    pub fn spell_split(&self, shares: &[Share]) -> String {
        let target = |share: &Share| self.targets.get(share.target.0 as usize).map(ToString::to_string);
        let spelled = |share: &Share| format!("{}: {}", share.percent(), target(share).unwrap_or_default());
        let shares: Vec<_> = shares.iter().map(spelled).collect();
        format!("split({})", shares.join(", "))
    }
}

impl fmt::Display for Stickiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stickiness::None => f.write_str("NON_STICKY"),
            Stickiness::Ip => f.write_str("STICKY_ON_IP"),
            Stickiness::IpPort => f.write_str("STICKY_ON_IP_PORT"),
            Stickiness::Cookie => f.write_str("STICKY_ON_COOKIE"),
            Stickiness::TlsSession => f.write_str("STICKY_ON_TLS_SESSION"),
            Stickiness::Field(field) => write!(f, "STICKY_ON({field})"),
        }
    }
}

impl Outcome<'_> {
    /// Whether a server gets the request. One of the default pool is taken to have one.
    #[must_use]
    pub fn goes_to_a_server(&self) -> bool {
        match self {
            Outcome::Terminal(terminal) => terminal.routes(),
            Outcome::DefaultPool | Outcome::RouteUnknown { .. } => true,
            Outcome::Refused(_) | Outcome::Waits => false,
        }
    }

    /// Every target that may get the request, as far as a rule says.
    pub fn targets(&self) -> impl Iterator<Item = TargetId> {
        let (one, shares) = match self {
            Outcome::Terminal(Terminal::RouteTo { target, .. }) | Outcome::RouteUnknown { target, .. } => {
                (Some(*target), &[][..])
            }
            Outcome::Terminal(Terminal::Split(split)) => (None, &split.shares[..]),
            _ => (None, &[][..]),
        };
        one.into_iter().chain(shares.iter().map(|share| share.target))
    }
}

/// Hundredths of a percent, as a percentage is written.
struct Percent(u32);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 100, self.0 % 100) {
            (whole, 0) => write!(f, "{whole}"),
            (whole, rest) if rest % 10 == 0 => write!(f, "{whole}.{}", rest / 10),
            (whole, rest) => write!(f, "{whole}.{rest:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_spelled_without_idle_digits() {
        for (parts, expected) in [(9000, "90"), (50, "0.5"), (5, "0.05"), (9999, "99.99"), (3330, "33.3")] {
            let share = Share { target: TargetId(0), parts };
            assert_eq!(share.percent().to_string(), expected);
        }
    }
}
