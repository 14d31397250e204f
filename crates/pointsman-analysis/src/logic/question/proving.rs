//! Which rules leave no request, where no values are left to try.

use batsat::Lit;
use pointsman_rules::Field;

use super::of_field::OfField;
use super::{Answer, Question, Trial, Try, Way};
use crate::Effort;
use crate::logic::world::{Matters, Said};
use crate::space::Solved;
use crate::witness::{Arrival, is_of_handshake, realise};

/// Where no request can be made that shows which rules matter, all are taken into account, up to so many.
const ALL_RULES_MAX: usize = 64;
/// Of more rules than these it is not tried which of them could be left out of a proof.
const SHRUNK_RULES_MAX: usize = 40;
/// So often a proof learns what its connection cannot be.
const CONNECTIONS_MAX: usize = 8;

impl<'p> Trial<'_, 'p> {
    /// The rules that leave nothing, as few as can be found.
    pub(super) fn prove(mut self, guilty: Vec<Lit>, effort: &mut Effort) -> Answer {
        let mut guilty = guilty;
        if let Some(doubt) = self.doubt_among(&guilty) {
            match self.prove_with_more(effort) {
                Some(proof) => guilty = proof,
                None => return Answer::Unknown(doubt),
            }
        }
        let mut left_to_try = guilty.clone();
        while let Some(left_out) = left_to_try.pop() {
            if guilty.len() > SHRUNK_RULES_MAX {
                break;
            }
            let rest: Vec<_> = guilty.iter().copied().filter(|assumed| *assumed != left_out).collect();
            if let Some(proof) = self.falls(&rest, effort) {
                left_to_try.retain(|assumed| proof.contains(assumed));
                guilty = proof;
            }
        }
        let names = self.active.iter().filter(|(_, assumed)| guilty.contains(assumed));
        Answer::No(names.map(|(rule, _)| *rule).collect())
    }

    /// Where some of what stood in the way was not proved: whether the rules that were met, or else all, leave nothing.
    fn prove_with_more(&mut self, effort: &mut Effort) -> Option<Vec<Lit>> {
        let met: Vec<_> = self.active.values().copied().collect();
        if let Some(proof) = self.falls(&met, effort) {
            return Some(proof);
        }
        for other in self.passed()? {
            if !self.active.contains_key(&other) {
                self.activate(other, effort);
            }
        }
        let all: Vec<_> = self.active.values().copied().collect();
        self.falls(&all, effort)
    }

    /// All rules that the request has to pass; nothing where they are too many.
    fn passed(&self) -> Option<Vec<u32>> {
        let Question { rule, removed, way, .. } = self.question;
        let removed = removed.map(|(removed, _)| removed);
        let passed: Vec<u32> = match (way, &self.analyst.across, removed) {
            (Way::Walk, ..) => {
                (0..rule).filter(|other| removed != Some(*other)).take(ALL_RULES_MAX + 1).collect()
            }
            (Way::Across, Some(across), Some(removed)) => {
                (0..removed).chain(across.middle()..rule).take(ALL_RULES_MAX + 1).collect()
            }
            _ => return None,
        };
        (passed.len() <= ALL_RULES_MAX).then_some(passed)
    }

    /// Whether these assumptions alone leave nothing, and which of them then.
    pub(super) fn falls(&mut self, assumptions: &[Lit], effort: &mut Effort) -> Option<Vec<Lit>> {
        let mut connections = 0;
        loop {
            self.world.learn(&self.analyst.lemmas);
            match self.world.solve(assumptions, effort) {
                Said::GaveUp => return None,
                Said::Falls(guilty) => return Some(guilty),
                Said::Stands => {}
            }
            let active = self.active.iter().filter(|(_, assumed)| assumptions.contains(assumed));
            let active = active.map(|(rule, assumed)| (*rule, *assumed)).collect();
            let matters = self.matters(&active);
            let mut anything_new = false;
            let fields = self.fields(&matters);
            for field in &fields {
                if effort.is_used_up() {
                    return None;
                }
                if let Solved::Nothing { because } = self.analyst.solve(field, effort) {
                    self.never(field.lemma(&because));
                    anything_new = true;
                }
            }
            if !anything_new {
                connections += 1;
                if connections > CONNECTIONS_MAX || !self.learns_of_its_connection(fields, &matters, effort) {
                    return None;
                }
            }
        }
    }

    /// Whether no connection is like what is asked of it, and the solver knows now why.
    fn learns_of_its_connection(
        &mut self,
        fields: Vec<OfField<'p>>,
        matters: &Matters<'p>,
        effort: &mut Effort,
    ) -> bool {
        let is_of_it = |field: &Field| is_of_handshake(field) || Arrival::is_of(field);
        if !fields.iter().any(|field| field.named.iter().any(|named| is_of_it(named))) {
            return false;
        }
        let Some(sketch) = self.sketch(fields, effort) else { return false };
        let Err(why) = realise(&sketch, self.analyst.setting, effort) else { return false };
        !why.fields.is_empty()
            && why.fields.iter().all(is_of_it)
            && matches!(self.relate(&sketch, matters, &why, effort), Some(Try::Again))
    }
}
