//! Whether what is asserted of rules holds.

use std::collections::HashSet;
use std::sync::Arc;

use pointsman_analysis::{Doubt, Effort, InDoubt, Proof, Setting, prove};
use pointsman_rules::{Assertion, Assertions, Program};

use super::meaning::Meaning;
use super::plural;

/// How many assertions there are, and how many of them are proved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asserted {
    pub(super) stated: usize,
    pub(super) proved: usize,
}

impl Asserted {
    /// Looks at the assertions beside a program, wherever it is used. What does not hold at one of these places is refuted.
    pub(super) fn of(
        program: &Arc<Program>,
        assertions: &Assertions,
        settings: &[Setting],
        effort: &Effort,
    ) -> (Asserted, Vec<Meaning>) {
        let mut known = HashSet::new();
        let different = settings.iter().filter(|setting| {
            known.insert(format!("{:?}", Setting { listener: None, ..(*setting).clone() }))
        });
        let places: Vec<_> =
            different.map(|setting| (setting, prove(program, assertions, setting, effort.clone()))).collect();
        let (nowhere, not_looked_at) = (Setting::default(), not_looked_at());
        let mut asserted = Asserted { stated: assertions.list.len(), proved: 0 };
        let mut meanings = Vec::new();
        for (place, assertion) in assertions.list.iter().enumerate() {
            let proofs = places.iter().filter_map(|(setting, proofs)| Some((*setting, proofs.get(place)?)));
            let worst = proofs.max_by_key(|(_, proof)| weight(proof));
            let (setting, proof) = worst.unwrap_or((&nowhere, &not_looked_at));
            asserted.proved += usize::from(matches!(proof, Proof::Holds(_) | Proof::Empty));
            meanings.extend(meanings_of(assertion, proof, program, setting));
        }
        (asserted, meanings)
    }

    pub(super) fn add(&mut self, other: Asserted) {
        self.stated += other.stated;
        self.proved += other.proved;
    }

    /// `2 assertions proved`, `1 of 2 assertions proved`; nothing where there are none.
    pub(super) fn shown(self) -> Option<String> {
        match self {
            Asserted { stated: 0, .. } => None,
            Asserted { stated, proved } if stated == proved => {
                Some(format!("{} proved", plural(stated, "assertion")))
            }
            Asserted { stated, proved } => {
                Some(format!("{proved} of {} proved", plural(stated, "assertion")))
            }
        }
    }
}

/// Where no listener that the rules belong to reads requests.
fn not_looked_at() -> Proof {
    Proof::Unknown(vec![InDoubt { rules: Vec::new(), doubt: Doubt::NoRequests }])
}

fn weight(proof: &Proof) -> u8 {
    match proof {
        Proof::Empty => 0,
        Proof::Holds(_) => 1,
        Proof::Unknown(_) => 2,
        Proof::Broken(_) => 3,
    }
}

fn meanings_of(
    assertion: &Assertion,
    proof: &Proof,
    program: &Program,
    setting: &Setting,
) -> impl Iterator<Item = Meaning> {
    proof.findings(assertion, program).into_iter().map(|finding| {
        let mut meaning = Meaning::new(finding, program, setting);
        meaning.assertion = Some(assertion.name.to_string());
        meaning
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_proved_is_counted() {
        let shown = |stated, proved| Asserted { stated, proved }.shown();
        assert_eq!(shown(0, 0), None);
        assert_eq!(shown(1, 1).as_deref(), Some("1 assertion proved"));
        assert_eq!(shown(3, 3).as_deref(), Some("3 assertions proved"));
        assert_eq!(shown(3, 1).as_deref(), Some("1 of 3 assertions proved"));
        assert_eq!(shown(1, 0).as_deref(), Some("0 of 1 assertion proved"));
    }
}
