//! Clients that stay with a target, wherever later rules would send them: `sticky_scope = "listener"`.
//!
//! An assertion that holds by the rules may be broken by a client that a sticky rule has sent elsewhere before. It takes two
//! requests of one client to show that, and both are confirmed.

use std::ops::ControlFlow;

use pointsman_rules::{
    Assertion, DecidedBy, Destination, Exit, Field, Outcome, RuleIndex, Stickiness, Subject, TargetId,
    Terminal, Truths,
};

use super::doubt::{Doubt, InDoubt};
use super::findings::rule_name;
use super::proofs::{Barred, Broken, Proof, sentence};
use super::question::{Analyst, Answer, Question, Way};
use super::states::States;
use crate::witness::{Witness, with_subject};

/// So many requests are looked for on each side.
const LOOKED_AT_MAX: usize = 64;

/// A rule that has clients stay where they break an assertion.
struct Keeper<'p> {
    rule: u32,
    on: States,
    /// Where it sends them, and what they are known by. Nothing of a split, whose target a hash chooses.
    stays: Option<(TargetId, &'p Stickiness)>,
}

/// What of an assertion that holds by the rules holds of all clients.
pub(super) fn of_all_clients<'p>(
    assertion: &Assertion,
    barred: Vec<Barred>,
    analyst: &mut Analyst<'p>,
) -> Proof {
    let speaks_of_targets = matches!(assertion.destination, Destination::Target { .. });
    if !analyst.setting().keeps_targets || !speaks_of_targets {
        return Proof::Holds(barred);
    }
    let keepers = keepers(assertion, analyst);
    if keepers.is_empty() {
        return Proof::Holds(barred);
    }
    let Some(routed) = routed(analyst) else { return Proof::Holds(barred) };
    // Whatever else a client did before, the assertion's condition need not be true of it.
    let given = analyst.given.take();
    let (mut in_doubt, mut broken) = (Vec::new(), None);
    for keeper in keepers {
        let question = Question { rule: keeper.rule, states: keeper.on, removed: None, way: Way::Walk };
        let before = match analyst.ask(question) {
            Answer::No(_) => continue,
            Answer::Yes(before) => Some(*before),
            Answer::Unknown(_) => None,
        };
        in_doubt.push(RuleIndex(keeper.rule));
        broken = before.and_then(|before| of_one_client(&keeper, before, &routed, analyst));
        if broken.is_some() || in_doubt.len() == LOOKED_AT_MAX {
            break;
        }
    }
    analyst.given = given;
    match broken {
        Some(broken) => Proof::Broken(vec![broken]),
        None if in_doubt.is_empty() => Proof::Holds(barred),
        None => Proof::Unknown(vec![InDoubt { rules: in_doubt, doubt: Doubt::Remembered }]),
    }
}

/// The sticky ends of rules whose targets break an assertion.
fn keepers<'p>(assertion: &Assertion, analyst: &Analyst<'p>) -> Vec<Keeper<'p>> {
    let breaks = |target: TargetId| {
        let there = Terminal::RouteTo { target, sticky: Stickiness::None };
        assertion.is_broken_by(&Outcome::Terminal(&there), None)
    };
    let mut keepers = Vec::new();
    for rule in 0..analyst.walk.len() {
        for on in States::EACH {
            match analyst.walk.block(analyst.program, rule, on).map(|block| &block.exit) {
                Some(Exit::Terminal(Terminal::RouteTo { target, sticky }))
                    if *sticky != Stickiness::None && breaks(*target) =>
                {
                    keepers.push(Keeper { rule, on, stays: Some((*target, sticky)) });
                }
                Some(Exit::Terminal(Terminal::Split(split)))
                    if split.sticky != Stickiness::None
                        && split.shares.iter().any(|share| breaks(share.target)) =>
                {
                    keepers.push(Keeper { rule, on, stays: None });
                }
                _ => {}
            }
        }
    }
    keepers
}

/// Requests for which the assertion's condition is true and which go to a target, of different rules; nothing where it is
/// proved that there are none.
fn routed(analyst: &mut Analyst<'_>) -> Option<Vec<Witness>> {
    let (mut found, mut may_be_more) = (Vec::new(), false);
    for rule in 0..=analyst.walk.len() {
        let routes =
            |on: &States| match analyst.walk.block(analyst.program, rule, *on).map(|block| &block.exit) {
                Some(Exit::Terminal(terminal)) => {
                    matches!(terminal, Terminal::RouteTo { .. } | Terminal::Split(_))
                }
                _ => false,
            };
        let states = match rule == analyst.walk.len() {
            true if analyst.setting().default_pool.is_none() => States::NONE,
            true => States::TRUE,
            false => States::EACH.into_iter().filter(routes).fold(States::NONE, States::or),
        };
        if states == States::NONE {
            continue;
        }
        if found.len() == LOOKED_AT_MAX {
            return Some(found);
        }
        match analyst.ask(Question { rule, states, removed: None, way: Way::Walk }) {
            Answer::Yes(witness) => found.push(*witness),
            Answer::Unknown(_) => may_be_more = true,
            Answer::No(_) => {}
        }
    }
    (may_be_more || !found.is_empty()).then_some(found)
}

/// A request of these whose client is the one that a keeper's request made stay.
fn of_one_client(
    keeper: &Keeper<'_>,
    before: Witness,
    routed: &[Witness],
    analyst: &Analyst<'_>,
) -> Option<Broken> {
    let (target, sticky) = keeper.stays?;
    let program = analyst.program;
    let stays = |outcome: &Outcome<'_>| {
        matches!(outcome, Outcome::Terminal(Terminal::RouteTo { target: to, sticky: by })
            if *to == target && by == sticky)
    };
    let known_as = client(&before, sticky, analyst)?;
    if !before.decided(program, analyst.setting(), |decision| stays(&decision.outcome))? {
        return None;
    }
    let witness =
        routed.iter().find(|witness| client(witness, sticky, analyst).as_ref() == Some(&known_as))?;
    let (rule, decision) = with_subject(program, &analyst.paths, witness, analyst.setting(), |subject| {
        let decision = program.decide(subject, &mut Truths::default());
        let rule = match decision.by {
            DecidedBy::Rule { index, .. } => index,
            DecidedBy::Nothing => RuleIndex(analyst.walk.len()),
        };
        let is_routed = matches!(
            decision.outcome,
            Outcome::DefaultPool | Outcome::Terminal(Terminal::RouteTo { .. } | Terminal::Split(_))
        );
        is_routed.then(|| (rule, sentence(&decision, program)))
    })??;
    let keeper = rule_name(program, keeper.rule);
    let target = program.targets.get(target.0 as usize).map(ToString::to_string).unwrap_or_default();
    let decision = format!("{decision}, but its client stays with `{target}`, where {keeper} has sent it");
    Some(Broken { rule, decision, witness: witness.clone(), before: Some(before) })
}

/// What a client is known by in a request; nothing where it is not known, or it takes more than the request to tell.
fn client(witness: &Witness, sticky: &Stickiness, analyst: &Analyst<'_>) -> Option<Vec<u8>> {
    let field = match sticky {
        Stickiness::Ip => &Field::ClientIp,
        // When a body is read so far is another question.
        Stickiness::Field(Field::Payload(_)) => return None,
        Stickiness::Field(field) => field,
        Stickiness::None | Stickiness::IpPort | Stickiness::Cookie | Stickiness::TlsSession => return None,
    };
    let first = with_subject(analyst.program, &analyst.paths, witness, analyst.setting(), |subject| {
        let mut first = None;
        subject.each(field, &mut |value| {
            first = Some(format!("{value:?}").into_bytes());
            ControlFlow::Break(())
        });
        first
    });
    first.flatten()
}
