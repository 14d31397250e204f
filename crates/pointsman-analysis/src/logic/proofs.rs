//! Whether what is asserted of all requests holds: a request that breaks it, or the rules that leave none.
//!
//! For each rule, and each value that its condition may come to, it is known whether what happens then would break the
//! assertion. Only of these it is asked whether a request comes there for which the assertion's condition is true.

use std::sync::Arc;

use pointsman_rules::{
    Assertion, Assertions, Cause, DecidedBy, Decision, Exit, OnUnknown, Outcome, Program, RuleIndex,
    Terminal, Truths,
};

use super::doubt::{Doubt, DoubtedTests, InDoubt, by_doubt};
use super::findings::{Code, Finding, rule_name, rule_names};
use super::given::Conditions;
use super::question::{Analyst, Answer, Question, Way};
use super::remembered::of_all_clients;
use super::rooms::{Rooms, Standing, rule_may_end_unknown};
use super::states::States;
use crate::witness::{Setting, Witness, with_subject};
use crate::{Effort, Spoilt};

/// Looking whether a rule may break an assertion takes about so little.
const RULES_A_STEP: usize = 8;
/// Rules of which it is shown that they break one assertion; others are not asked about any more.
const BROKEN_MAX: usize = 5;

/// What is known of an assertion.
#[derive(Clone, Debug)]
pub enum Proof {
    /// No request breaks it: each of these rules would, but none comes there for which the condition is true.
    Holds(Vec<Barred>),
    /// No request breaks it, since none makes its condition true.
    Empty,
    /// These requests break it, each decided by another rule; one at least, and not more than a few.
    Broken(Vec<Broken>),
    /// It was not settled whether one of these rules breaks it. The one behind the last, the final `else:` among them,
    /// means that no rule decides. Without any, none was looked at.
    Unknown(Vec<InDoubt>),
}

/// A rule that would break an assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barred {
    /// The rule.
    pub rule: RuleIndex,
    /// Those before it that let none pass for which the condition is true. Without any, its own condition lets none.
    pub by: Vec<RuleIndex>,
}

/// What breaks an assertion.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The rule that decides; the one behind the last means that none does.
    pub rule: RuleIndex,
    /// What becomes of the request, in a sentence.
    pub decision: String,
    /// The request.
    pub witness: Witness,
    /// One of the same client before it, which made the client stay with another target, where that is why.
    pub before: Option<Witness>,
}

impl Proof {
    /// Whether it holds by the rules, and clients that stay with a target may break it.
    #[must_use]
    pub fn holds_for_new_clients(&self) -> bool {
        matches!(self, Proof::Unknown(doubts) if doubts.iter().any(|open| open.doubt == Doubt::Remembered))
    }

    /// What there is to say of an assertion; nothing where it holds and says something.
    #[must_use]
    pub fn findings(&self, assertion: &Assertion, program: &Program) -> Vec<Finding> {
        let name = &assertion.name;
        let finding = |code: Code, rule: RuleIndex, message: String| Finding {
            code,
            severity: code.severity(),
            rule,
            others: Vec::new(),
            span: assertion.span,
            message,
            help: None,
            witness: None,
            before: None,
            doubts: Vec::new(),
        };
        match self {
            Proof::Holds(_) => Vec::new(),
            Proof::Empty => {
                let message = format!("no request makes the condition of the assertion `{name}` true");
                let help = Some("it says nothing of any request".to_owned());
                vec![Finding { help, ..finding(Code::Contradiction, RuleIndex(u32::MAX), message) }]
            }
            Proof::Broken(all) => {
                let refuted = |broken: &Broken| {
                    let message = format!("the assertion `{name}` is refuted: {}", broken.decision);
                    let witness = Some(broken.witness.clone());
                    let before = broken.before.clone();
                    Finding { witness, before, ..finding(Code::AssertionRefuted, broken.rule, message) }
                };
                let mut findings: Vec<_> = all.iter().map(refuted).collect();
                if let (BROKEN_MAX.., Some(last)) = (all.len(), findings.last_mut()) {
                    last.help = Some("further rules may break it, too: they were not asked about".to_owned());
                }
                findings
            }
            Proof::Unknown(doubts) => {
                let rules = &rules_in(doubts);
                let names = rule_names(program, rules);
                let message = match rules.as_slice() {
                    _ if self.holds_for_new_clients() => format!(
                        "the assertion `{name}` is proved for clients that are not remembered: one that stays where {names} sent it may be sent there again"
                    ),
                    [] => format!("it is unknown whether the assertion `{name}` holds: it was not looked at"),
                    _ => format!("it is unknown whether the assertion `{name}` holds: {names} may break it"),
                };
                let first = rules.first().copied().unwrap_or(RuleIndex(u32::MAX));
                let others = rules.get(1..).unwrap_or_default().to_vec();
                let doubts = doubts.clone();
                vec![Finding { others, doubts, ..finding(Code::AssertionUnknown, first, message) }]
            }
        }
    }
}

/// All rules in doubt, in their order.
#[must_use]
pub fn rules_in(doubts: &[InDoubt]) -> Vec<RuleIndex> {
    let mut rules: Vec<_> = doubts.iter().flat_map(|in_doubt| in_doubt.rules.iter().copied()).collect();
    rules.sort_unstable();
    rules
}

/// A rule, and what its condition comes to where an assertion would be broken.
struct Suspect {
    rule: u32,
    states: States,
    rank: Rank,
}

/// In the order in which they are asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its condition speaks of the same values as the assertion's.
    Akin,
    Other,
    /// Only a condition that is false or unknown leads there.
    NotTrue,
}

/// Whether each of some assertions holds of a program where a listener has this setting, in their order. With the steps used
/// up, the others are said to be unknown.
#[must_use]
pub fn prove(
    program: &Arc<Program>,
    assertions: &Assertions,
    setting: &Setting,
    effort: Effort,
) -> Vec<Proof> {
    if assertions.list.is_empty() {
        return Vec::new();
    }
    let mut analyst = Analyst::new(program, setting, effort);
    let rooms: Vec<_> =
        program.rules.iter().map(|rule| Rooms::of(&rule.condition, Standing::True, &mut analyst)).collect();
    let mut proofs = Vec::with_capacity(assertions.list.len());
    let conditions = Conditions::of(assertions);
    for (place, assertion) in (0..).zip(&assertions.list) {
        analyst.given = Some(conditions.given(place, &assertion.condition));
        proofs.push(proof(assertion, &rooms, &mut analyst));
    }
    proofs
}

fn proof<'p>(assertion: &'p Assertion, rooms: &[Rooms<'p>], analyst: &mut Analyst<'p>) -> Proof {
    if !analyst.take(1 + rooms.len() / RULES_A_STEP) {
        return Proof::Unknown(vec![InDoubt { rules: Vec::new(), doubt: analyst.used_up() }]);
    }
    let anywhere =
        Question { rule: analyst.walk.len(), states: States::TRUE, removed: None, way: Way::Apart };
    if matches!(analyst.ask(anywhere), Answer::No(_)) {
        return Proof::Empty;
    }
    let own = Rooms::of(&assertion.condition, Standing::True, analyst);
    let (suspects, mut barred) = suspects(assertion, &own, rooms, analyst);
    let (mut unknown, mut all_broken) = (Vec::new(), Vec::<Broken>::new());
    for Suspect { rule, states, .. } in suspects {
        if all_broken.len() == BROKEN_MAX {
            break;
        }
        if all_broken.iter().any(|broken| broken.rule.0 == rule) {
            continue;
        }
        if analyst.is_used_up() {
            unknown.push((rule, analyst.used_up()));
            continue;
        }
        match analyst.ask(Question { rule, states, removed: None, way: Way::Walk }) {
            Answer::No(by) => {
                barred.push(Barred { rule: RuleIndex(rule), by: by.into_iter().map(RuleIndex).collect() });
            }
            Answer::Unknown(doubt) => unknown.push((rule, doubt)),
            Answer::Yes(witness) => match broken(assertion, *witness, analyst) {
                Some(broken) => all_broken.push(broken),
                None => unknown.push((rule, Doubt::Unconfirmed(DoubtedTests::default()))),
            },
        }
    }
    if !all_broken.is_empty() {
        return Proof::Broken(all_broken);
    }
    unknown.sort_unstable_by_key(|(rule, _)| *rule);
    barred.sort_unstable_by_key(|barred| barred.rule);
    match unknown.is_empty() {
        true => of_all_clients(assertion, barred, analyst),
        false => Proof::Unknown(by_doubt(unknown)),
    }
}

/// What would break an assertion, in the order in which it is asked, and beside it that of which it is plain that no request
/// comes there.
fn suspects<'p>(
    assertion: &Assertion,
    own: &Rooms<'p>,
    rooms: &[Rooms<'p>],
    analyst: &Analyst<'p>,
) -> (Vec<Suspect>, Vec<Barred>) {
    let (mut suspects, mut barred) = (Vec::new(), Vec::new());
    let end = analyst.walk.len();
    for rule in 0..end {
        let mut states = breaking(assertion, rule, analyst);
        let room = rooms.get(rule as usize);
        if states.covers(States::TRUE) && room.is_some_and(|room| !room.may_meet(own)) {
            states = states.and(States::NOT_TRUE);
            if states == States::NONE {
                barred.push(Barred { rule: RuleIndex(rule), by: Vec::new() });
            }
        }
        if states == States::NONE {
            continue;
        }
        let is_akin =
            room.is_some_and(|room| room.each().any(|(axis, _)| own.each().any(|(other, _)| other == axis)));
        let rank = match states.covers(States::TRUE) {
            true if is_akin => Rank::Akin,
            true => Rank::Other,
            false => Rank::NotTrue,
        };
        suspects.push(Suspect { rule, states, rank });
    }
    if assertion.is_broken_by(&Outcome::DefaultPool, analyst.setting.default_pool.as_deref()) {
        suspects.push(Suspect { rule: end, states: States::TRUE, rank: Rank::Other });
    }
    suspects.sort_by_key(|suspect| suspect.rank);
    (suspects, barred)
}

/// What a rule's condition comes to where it decides so that an assertion is broken.
fn breaking(assertion: &Assertion, rule: u32, analyst: &Analyst<'_>) -> States {
    let program = analyst.program;
    let default_pool = analyst.setting.default_pool.as_deref();
    let breaks = |on: &States| {
        let outcome = match (analyst.walk.block(program, rule, *on), program.on_unknown) {
            (Some(block), _) => match &block.exit {
                Exit::Terminal(terminal) => Outcome::Terminal(terminal),
                Exit::Next | Exit::Goto(_) => return false,
            },
            (None, _) if !rule_may_end_unknown(program, rule) => return false,
            // Which cause it is makes no difference here.
            (None, OnUnknown::Reject) => Outcome::Refused(Cause::Limit),
            (None, OnUnknown::RouteTo(target)) => Outcome::RouteUnknown { target, cause: Cause::Limit },
            (None, OnUnknown::Skip) => return false,
        };
        assertion.is_broken_by(&outcome, default_pool)
    };
    States::EACH.into_iter().filter(breaks).fold(States::NONE, States::or)
}

/// What the engine makes of a witness, if that breaks the assertion and the condition is true of it.
fn broken(assertion: &Assertion, witness: Witness, analyst: &Analyst<'_>) -> Option<Broken> {
    let setting = analyst.setting;
    let given = analyst.given.as_ref()?;
    if !given.holds(&witness, setting) {
        return None;
    }
    let program = analyst.program;
    // It does not get where the rules have sent it.
    if matches!(witness.spoilt(program, setting), Some(Spoilt::Refused(_))) {
        return None;
    }
    let seen = with_subject(program, &analyst.paths, &witness, setting, |subject| {
        let decision = program.decide(subject, &mut Truths::default());
        let is_broken = assertion.is_broken_by(&decision.outcome, setting.default_pool.as_deref());
        let rule = match decision.by {
            DecidedBy::Rule { index, .. } => index,
            DecidedBy::Nothing => RuleIndex(analyst.walk.len()),
        };
        is_broken.then(|| (rule, sentence(&decision, program)))
    });
    let (rule, decision) = seen.flatten()?;
    Some(Broken { rule, decision, witness, before: None })
}

/// What is decided about a request.
pub(super) fn sentence(decision: &Decision<'_>, program: &Program) -> String {
    let name = match decision.by {
        DecidedBy::Rule { index, .. } => rule_name(program, index.0),
        DecidedBy::Nothing => String::new(),
    };
    let target = |target: &pointsman_rules::TargetId| {
        program.targets.get(target.0 as usize).map(ToString::to_string).unwrap_or_default()
    };
    match &decision.outcome {
        Outcome::Terminal(Terminal::RouteTo { target: to, .. }) => {
            format!("{name} sends this request to `{}`", target(to))
        }
        Outcome::Terminal(Terminal::Split(split)) => {
            format!("{name} sends this request to one of `{}`", program.spell_split(&split.shares))
        }
        Outcome::Terminal(Terminal::Reject { status, .. }) => {
            format!("{name} rejects this request with {status}")
        }
        Outcome::Terminal(Terminal::Reset) => format!("{name} resets the connection of this request"),
        Outcome::Terminal(Terminal::Discard) => format!("{name} discards this request"),
        Outcome::Terminal(Terminal::Redirect { .. }) => format!("{name} redirects this request"),
        Outcome::Terminal(Terminal::Respond { .. }) => format!("{name} answers this request"),
        Outcome::Refused(_) => format!("the condition of {name} ends unknown, and that refuses this request"),
        Outcome::RouteUnknown { target: to, .. } => {
            format!("the condition of {name} ends unknown, and that sends this request to `{}`", target(to))
        }
        Outcome::DefaultPool | Outcome::Waits => {
            "no rule decides this request: the default pool takes it".to_owned()
        }
    }
}
