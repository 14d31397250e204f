//! Whether a request comes to an end of each program, and something else becomes of it there.

use pointsman_rules::Condition;

use super::Comparison;
use super::candidates::Pair;
use super::effects::Seen;
use super::ends::Refused;
use crate::logic::doubt::{Doubt, DoubtedTests};
use crate::logic::question::{Answer, Pattern, Question, Way};
use crate::logic::states::States;
use crate::witness::Witness;

/// So many ways in which rules before come out are looked at for one pair of rules.
const PATTERNS_MAX: usize = 64;

/// What became of a pair.
pub(super) enum Verdict {
    Same,
    Differs(Box<Witness>),
    Unknown(Doubt),
}

/// Which requests are looked at, and what of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// All, with everything.
    AtAll,
    /// All, but not at their copies.
    PastCopies,
    /// Those that may be copied, with everything.
    AtCopied,
}

/// What was seen in one look.
enum Sight {
    Settled(Verdict),
    /// A request that is never copied would differ in its copy alone.
    InCopyAlone,
}

impl<'p> Comparison<'p> {
    /// Whether a request comes to both ends, and is decided otherwise.
    pub(super) fn settle(&mut self, pair: Pair) -> Verdict {
        let mut verdict = Verdict::Same;
        // What asks for another protocol differs in all else or not at all; what does not may differ in its copy, too.
        let looks: &[Look] = match self.look(pair, Look::AtAll) {
            Sight::Settled(verdict) => return verdict,
            Sight::InCopyAlone => &[Look::PastCopies, Look::AtCopied],
        };
        for look in looks {
            verdict = match self.look(pair, *look) {
                Sight::Settled(verdict) => verdict,
                Sight::InCopyAlone => Verdict::Unknown(Doubt::Unconfirmed(DoubtedTests::default())),
            };
            if !matches!(verdict, Verdict::Same) {
                break;
            }
        }
        verdict
    }

    fn look(&mut self, pair: Pair, look: Look) -> Sight {
        let settled = Sight::Settled;
        let Pair { old, new } = pair;
        let removed = Some((old.rule, old.on));
        let question = Question { rule: new.rule, states: new.on, removed, way: Way::Across };
        let are_others = self.ends.outcome(old) != self.ends.outcome(new);
        let also = self.copied.filter(|_| look == Look::AtCopied).map(|copied| (copied, States::TRUE));
        let mut patterns = Vec::new();
        while patterns.len() < PATTERNS_MAX {
            if self.analyst.is_used_up() {
                return settled(Verdict::Unknown(self.analyst.used_up()));
            }
            let witness = match self.analyst.ask_beside(question, also.as_slice(), &patterns) {
                Answer::No(_) => return settled(Verdict::Same),
                Answer::Unknown(doubt) => return settled(Verdict::Unknown(doubt)),
                Answer::Yes(witness) => *witness,
            };
            let witness = match self.not_refused_alike(pair, witness, question, (also.as_slice(), &patterns))
            {
                Ok(witness) => witness,
                Err(verdict) => return settled(verdict),
            };
            if are_others {
                return settled(Verdict::Differs(Box::new(witness)));
            }
            match self.look_at_effects(pair, &witness, look) {
                Some(Seen::Other) => return settled(Verdict::Differs(Box::new(witness))),
                Some(Seen::OtherCopy) => return Sight::InCopyAlone,
                Some(Seen::Same(pattern)) if pattern.is_empty() => return settled(Verdict::Same),
                Some(Seen::Same(pattern)) if !patterns.contains(&pattern) => patterns.push(pattern),
                Some(Seen::Same(_)) => {
                    return settled(Verdict::Unknown(Doubt::Unconfirmed(DoubtedTests::default())));
                }
                None => return settled(Verdict::Unknown(Doubt::Many)),
            }
        }
        settled(Verdict::Unknown(Doubt::Many))
    }

    /// The request, or another one with nothing wrong in its body where both refuse this one, and one of them for what is
    /// wrong behind the decision: what they decided makes no difference to it.
    fn not_refused_alike(
        &mut self,
        pair: Pair,
        witness: Witness,
        question: Question,
        (also, patterns): (&[(&'p Condition, States)], &[Pattern]),
    ) -> Result<Witness, Verdict> {
        if !self.refuse_alike(pair, &witness) {
            return Ok(witness);
        }
        // Of others with something wrong in theirs it is not proved.
        self.found.checks_otherwise = true;
        match self.analyst.ask_of_whole_bodies(question, also, patterns) {
            Answer::No(_) if self.ends.refuse_what_is_unknown() && !self.checks_otherwise => {
                Err(Verdict::Same)
            }
            // Another one may be wrong at the byte that decides, and not behind it, or in a body that one of them lets pass.
            Answer::No(_) => Err(Verdict::Unknown(Doubt::Unconfirmed(DoubtedTests::default()))),
            Answer::Unknown(doubt) => Err(Verdict::Unknown(doubt)),
            Answer::Yes(witness) if self.refuse_alike(pair, &witness) => {
                Err(Verdict::Unknown(Doubt::Unconfirmed(DoubtedTests::default())))
            }
            Answer::Yes(witness) => Ok(*witness),
        }
    }

    fn refuse_alike(&self, pair: Pair, witness: &Witness) -> bool {
        let setting = self.analyst.setting();
        let refusals = [pair.old, pair.new].map(|end| self.ends.refusal(end, witness, setting));
        refusals.iter().all(Option::is_some) && refusals.contains(&Some(Refused::BehindDecision))
    }
}
