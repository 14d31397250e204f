//! Clients that stay with a target, wherever later rules would send them: `sticky_scope = "listener"`.
//!
//! An assertion that holds by the rules may be broken by a client that a sticky rule has sent elsewhere before. It takes two
//! requests of one client to show that, and both are confirmed.

use std::ops::ControlFlow;

use pointsman_rules::{
    Assertion, DecidedBy, Destination, Exit, Field, Outcome, OwnedValue, RuleIndex, Stickiness, Subject,
    TargetId, Terminal, Truths,
};

use super::doubt::{Doubt, InDoubt};
use super::findings::rule_name;
use super::given::Given;
use super::proofs::{Barred, Broken, Proof, sentence};
use super::question::{Analyst, Answer, Question, Way};
use super::states::States;
use crate::wanted::Sketch;
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

/// A request that comes to a rule, and the values that it was made for.
struct Made<'p> {
    rule: u32,
    witness: Witness,
    sketch: Sketch<'p>,
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
        let before = match analyst.sample(question, &[]) {
            (Answer::No(_), _) => continue,
            (Answer::Yes(before), sketch) => Some(Made { rule: keeper.rule, witness: *before, sketch }),
            (Answer::Unknown(_), _) => None,
        };
        in_doubt.push(RuleIndex(keeper.rule));
        broken = before.and_then(|before| of_one_client(&keeper, &before, &routed, given.as_ref(), analyst));
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
fn routed<'p>(analyst: &mut Analyst<'p>) -> Option<Vec<Made<'p>>> {
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
        match analyst.sample(Question { rule, states, removed: None, way: Way::Walk }, &[]) {
            (Answer::Yes(witness), sketch) => found.push(Made { rule, witness: *witness, sketch }),
            (Answer::Unknown(_), _) => may_be_more = true,
            (Answer::No(_), _) => {}
        }
    }
    (may_be_more || !found.is_empty()).then_some(found)
}

/// A request of these whose client is the one that a keeper's request made stay; or one that is made to be, from where that
/// one came or the other way round.
fn of_one_client<'p>(
    keeper: &Keeper<'p>,
    before: &Made<'p>,
    routed: &[Made<'p>],
    given: Option<&Given<'p>>,
    analyst: &mut Analyst<'p>,
) -> Option<Broken> {
    let (_, sticky) = keeper.stays?;
    let field = known_by(sticky)?;
    let (before, client) = &known(before, field, analyst)?;
    if stays(keeper, &before.witness, analyst) {
        for made in routed {
            if self::client(&made.witness, field, analyst).as_ref() == Some(client) {
                return broken(keeper, before.witness.clone(), &made.witness, analyst);
            }
        }
        for made in routed {
            let same = of_client(made, field, client, analyst);
            let is_meant =
                |witness: &Witness| given.is_none_or(|given| given.holds(witness, analyst.setting));
            if let Some(witness) = same.filter(is_meant)
                && let Some(broken) = broken(keeper, before.witness.clone(), &witness, analyst)
            {
                return Some(broken);
            }
        }
    }
    for made in routed {
        let Some(client) = self::client(&made.witness, field, analyst) else { continue };
        let before = of_client(before, field, &client, analyst);
        if let Some(before) = before.filter(|before| stays(keeper, before, analyst)) {
            return broken(keeper, before, &made.witness, analyst);
        }
    }
    None
}

/// A request whose client is known, and as what: one that says nothing of it may as well say something.
fn known<'p>(made: &Made<'p>, field: &'p Field, analyst: &mut Analyst<'p>) -> Option<(Made<'p>, OwnedValue)> {
    if let Some(client) = client(&made.witness, field, analyst) {
        let Made { rule, witness, sketch } = made;
        return Some((Made { rule: *rule, witness: witness.clone(), sketch: sketch.clone() }, client));
    }
    let is_said = matches!(field, Field::Header(_) | Field::Cookie(_) | Field::QueryParam(_));
    let client = OwnedValue::Text(b"1"[..].into());
    let known = is_said.then(|| vec![client.clone()])?;
    let (sketch, witness) =
        analyst.with_values(std::slice::from_ref(&made.sketch), field, known, made.rule).ok()?;
    Some((Made { rule: made.rule, witness, sketch }, client))
}

/// The same request of another client, where that comes to its rule, too.
fn of_client<'p>(
    made: &Made<'p>,
    field: &'p Field,
    client: &OwnedValue,
    analyst: &mut Analyst<'p>,
) -> Option<Witness> {
    let (_, witness) = analyst
        .with_values(std::slice::from_ref(&made.sketch), field, vec![client.clone()], made.rule)
        .ok()?;
    (self::client(&witness, field, analyst).as_ref() == Some(client)).then_some(witness)
}

/// Whether a request makes its client stay where the keeper sends it.
fn stays(keeper: &Keeper<'_>, before: &Witness, analyst: &Analyst<'_>) -> bool {
    let is_kept = |outcome: &Outcome<'_>| {
        matches!(outcome, Outcome::Terminal(Terminal::RouteTo { target, sticky })
            if keeper.stays == Some((*target, sticky)))
    };
    let decided = before.decided(analyst.program, analyst.setting, |decision| is_kept(&decision.outcome));
    decided.unwrap_or_default()
}

/// What is said of a request whose client stays elsewhere.
fn broken(keeper: &Keeper<'_>, before: Witness, witness: &Witness, analyst: &Analyst<'_>) -> Option<Broken> {
    let (target, _) = keeper.stays?;
    let program = analyst.program;
    let (rule, decision) = with_subject(program, &analyst.paths, witness, analyst.setting, |subject| {
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

/// The field that a client is known by, if it takes no more than the request to tell.
fn known_by(sticky: &Stickiness) -> Option<&Field> {
    match sticky {
        Stickiness::Ip => Some(&Field::ClientIp),
        // When a body is read so far is another question.
        Stickiness::Field(Field::Payload(_)) => None,
        Stickiness::Field(field) => Some(field),
        Stickiness::None | Stickiness::IpPort | Stickiness::Cookie | Stickiness::TlsSession => None,
    }
}

/// What a client is known as in a request; nothing where it is not known.
fn client(witness: &Witness, field: &Field, analyst: &Analyst<'_>) -> Option<OwnedValue> {
    let first = with_subject(analyst.program, &analyst.paths, witness, analyst.setting, |subject| {
        let mut first = None;
        subject.each(field, &mut |value| {
            first = Some(value.into());
            ControlFlow::Break(())
        });
        first
    });
    first.flatten()
}
