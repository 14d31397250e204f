//! The ways to choose a server, by the names a configuration gives them.

use std::fmt;

/// How a pool chooses the server of a request that is not sticky.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// One after the other.
    #[default]
    RoundRobin,
    /// One after the other as often as its weight says, spread evenly over the cycle.
    WeightedRoundRobin,
    /// Who has the fewest requests in flight.
    LeastConnections,
    /// Who has the fewest requests in flight for its weight.
    WeightedLeastConnections,
    /// The less busy of two servers drawn at random.
    RandomTwoChoices,
    /// Of two servers drawn at random the one that likely answers first, for its weight.
    LeastTime,
}

impl Algorithm {
    /// All of them, for suggestions and documentation.
    pub const ALL: [Algorithm; 6] = [
        Algorithm::RoundRobin,
        Algorithm::WeightedRoundRobin,
        Algorithm::LeastConnections,
        Algorithm::WeightedLeastConnections,
        Algorithm::RandomTwoChoices,
        Algorithm::LeastTime,
    ];

    /// The algorithm of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The name a configuration gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::RoundRobin => "round-robin",
            Algorithm::WeightedRoundRobin => "weighted-round-robin",
            Algorithm::LeastConnections => "least-connections",
            Algorithm::WeightedLeastConnections => "weighted-least-connections",
            Algorithm::RandomTwoChoices => "random-two-choices",
            Algorithm::LeastTime => "least-time",
        }
    }

    /// Whether the weights of servers are looked at, other than whether they are 0.
    #[must_use]
    pub const fn looks_at_weights(self) -> bool {
        match self {
            Algorithm::WeightedRoundRobin | Algorithm::WeightedLeastConnections | Algorithm::LeastTime => {
                true
            }
            Algorithm::RoundRobin | Algorithm::LeastConnections | Algorithm::RandomTwoChoices => false,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Algorithm;

    #[test]
    fn names_are_read_back() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
        assert_eq!(Algorithm::from_name("round_robin"), None);
    }
}
