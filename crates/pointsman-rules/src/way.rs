//! What two rule sets say of the same request, held against each other.

use std::fmt;

use crate::{Decision, ExpectedOutcome, Outcome, Program, spelling};

/// Stands where a rule's label would, for requests that no rule decided. No label has brackets.
pub const NO_RULE: &str = "(default)";

/// Stands there for requests that are refused before a rule is asked.
const REFUSED: &str = "(refused)";

/// A rule and what it decides, for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    /// Its label, or in brackets why there is none.
    pub rule: String,
    /// What comes of it.
    pub outcome: String,
}

/// What is said of a request on one side.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a, 'r> {
    /// The rules decide.
    Decided {
        /// The rules; absent where there are none.
        program: Option<&'a Program>,
        /// What they say. It does not wait.
        decision: &'a Decision<'r>,
        /// What takes a request that no rule decides.
        default_pool: DefaultPool<'a>,
    },
    /// The request is refused before a rule is asked, for this reason.
    Refused(&'a str),
}

/// What takes a request that no rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultPool<'a> {
    /// The pool of this name.
    Named(&'a str),
    /// Nothing.
    None,
    /// Nobody can say without a configuration.
    Unknown,
}

/// What two sides come to. Actions and effects are held against each other as rules spell them: shares of a split, not
/// the one that chance picks, and texts with fields, not what these are filled in with. Stickiness counts. An effect
/// that comes to nothing does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contrast {
    /// The same.
    Same,
    /// Another rule decides, and the same comes of it.
    OtherRule(Way, Way),
    /// Something else comes of it. The ways say as much as tells them apart.
    Changed(Way, Way),
    /// Both refuse it before a rule is asked.
    Refused,
}

impl Contrast {
    /// Of what was said before and what is said now.
    #[must_use]
    pub fn of(then: Said<'_, '_>, now: Said<'_, '_>) -> Contrast {
        if let (Said::Refused(_), Said::Refused(_)) = (then, now) {
            return Contrast::Refused;
        }
        let (then_way, now_way) = (Way::whole(then), Way::whole(now));
        if then_way.outcome == now_way.outcome {
            return match then_way.rule == now_way.rule {
                true => Contrast::Same,
                false => Contrast::OtherRule(then_way, now_way),
            };
        }
        if let (Said::Decided { .. }, Said::Decided { .. }) = (then, now) {
            let (then_short, now_short) = (Way::short(then), Way::short(now));
            if then_short.outcome != now_short.outcome {
                return Contrast::Changed(then_short, now_short);
            }
        }
        Contrast::Changed(then_way, now_way)
    }
}

impl Way {
    /// As a test expects it: where it ends, without what is done on the way.
    #[must_use]
    pub fn short(said: Said<'_, '_>) -> Way {
        let (program, decision, default_pool) = match said {
            Said::Refused(why) => return Way { rule: REFUSED.to_owned(), outcome: why.to_owned() },
            Said::Decided { program, decision, default_pool } => (program, decision, default_pool),
        };
        let expected = ExpectedOutcome::seen(&decision.outcome).zip(program);
        let mut outcome = match expected {
            Some((outcome, program)) => outcome.shown(program),
            None => default_pool.to_string(),
        };
        if let (Outcome::RouteUnknown { target, .. }, Some(program)) = (&decision.outcome, program) {
            outcome.push_str(", which goes to ");
            outcome.push_str(&ExpectedOutcome::Target(*target).shown(program));
        }
        Way { rule: decision.by.label().unwrap_or(NO_RULE).to_owned(), outcome }
    }

    /// With all that is done and comes to something.
    #[must_use]
    pub fn whole(said: Said<'_, '_>) -> Way {
        let mut way = Way::short(said);
        let Said::Decided { program, decision, default_pool } = said else { return way };
        match (decision.outcome, program, default_pool) {
            (Outcome::Terminal(terminal), Some(program), _) => {
                way.outcome = spelling::terminal(program, terminal);
            }
            // The same comes of it as where a rule says so.
            (Outcome::DefaultPool, _, DefaultPool::Named(pool)) => way.outcome = format!("routeTo({pool});"),
            _ => {}
        }
        let noticed = decision.noticed(decision.outcome.audience()).filter(|(_, idle)| idle.is_none());
        for (effect, _) in noticed {
            way.outcome.push_str(&format!(" with {}", spelling::effect(effect)));
        }
        way
    }
}

impl fmt::Display for DefaultPool<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            DefaultPool::Named(pool) => pool,
            DefaultPool::None => "no server (503)",
            DefaultPool::Unknown => "the default pool",
        })
    }
}

/// `R1 -> fast`
impl fmt::Display for Way {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} -> {}", self.rule, self.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::MadeUpSubject;
    use crate::{Targets, Truths, compile};

    /// What two sets of rules that decide everything come to.
    fn contrast(then: &str, now: &str) -> Contrast {
        let program = |rules: &str| compile(rules, &Targets::Any).expect("a rule set").program;
        let (then, now) = (program(then), program(now));
        let subject = MadeUpSubject::default();
        let decisions = [&then, &now].map(|program| program.decide(&subject, &mut Truths::default()));
        let said = |program, decision| Said::Decided {
            program: Some(program),
            decision,
            default_pool: DefaultPool::Named("d"),
        };
        Contrast::of(said(&then, &decisions[0]), said(&now, &decisions[1]))
    }

    fn way(rule: &str, outcome: &str) -> Way {
        Way { rule: rule.to_owned(), outcome: outcome.to_owned() }
    }

    #[test]
    fn what_comes_of_it_counts_and_not_how_it_is_written() {
        let split = "R1: { routeTo(split(90: a, 10: b)); }";
        assert_eq!(contrast(split, "R1: { routeTo(split(90: a, 10: b)); }"), Contrast::Same);
        assert!(matches!(contrast(split, "R1: { routeTo(split(80: a, 20: b)); }"), Contrast::Changed(..)));
        let a = "R1: { routeTo(a); }";
        assert_eq!(contrast(a, "R2: { routeTo(a); }"), {
            Contrast::OtherRule(way("R1", "routeTo(a);"), way("R2", "routeTo(a);"))
        });
        assert_eq!(contrast(a, "R1: { routeTo(b); }"), Contrast::Changed(way("R1", "a"), way("R1", "b")));
        let sticky = way("R1", "routeTo(a, STICKY_ON_IP);");
        assert_eq!(
            contrast(a, "R1: { routeTo(a, STICKY_ON_IP); }"),
            Contrast::Changed(way("R1", "routeTo(a);"), sticky)
        );
        let with = way("R1", "routeTo(a); with setHeader(\"x\", \"y\");");
        assert_eq!(
            contrast(a, "R1: { setHeader(\"x\", \"y\"); routeTo(a); }"),
            Contrast::Changed(way("R1", "routeTo(a);"), with)
        );
        assert_eq!(contrast("R1: { reject(403); }", "R1: { mirror(m); reject(403); }"), Contrast::Same);
        assert_eq!(contrast("R1: { tag(t); }", a), Contrast::Changed(way(NO_RULE, "d"), way("R1", "a")));
    }

    #[test]
    fn what_no_rule_is_asked_about() {
        let (one, other) = (Said::Refused("too long"), Said::Refused("torn"));
        assert_eq!(Contrast::of(one, other), Contrast::Refused);
        let decision = Decision {
            by: crate::DecidedBy::Nothing,
            outcome: Outcome::DefaultPool,
            effects: Default::default(),
        };
        let pool = Said::Decided {
            program: None,
            decision: &decision,
            default_pool: DefaultPool::Named("standard"),
        };
        let expected = Contrast::Changed(way(NO_RULE, "routeTo(standard);"), way("(refused)", "too long"));
        assert_eq!(Contrast::of(pool, one), expected);
    }
}
