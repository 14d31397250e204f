//! What was decided of a record beside what is decided of it now.

use pointsman_config::Protocol;
use pointsman_rules::{Decision, ExpectedOutcome, Outcome, Program, TargetId, TargetName, Terminal};

use super::record::Decided;
use super::ruling::Ruling;
use super::stand::Stand;
use crate::explain::place::DefaultPool;
use crate::explain::report::shown;
use crate::explain::spelling;

/// What the log calls the rule that decided where none did.
const NO_RULE: &str = "(default)";

/// Characters of a name that a log has written; names of rules and pools are shorter.
const NAME_CHARS_MAX: usize = 100;

/// A rule and what it decides, for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    pub(super) rule: String,
    pub(super) outcome: String,
}

/// What has changed for a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Same,
    /// Another rule decides, and the same comes of it.
    OtherRule(Way, Way),
    Changed(Way, Way),
    /// The switch refuses it before a rule is asked, then and now.
    Refused,
    /// Somebody would have to know these.
    Untold(Vec<String>),
}

/// What a log says of a record beside what the rules of a listener say.
pub(super) fn with_log<'r>(then: &Decided, now: &Ruling<'r>, stand: &'r Stand) -> Comparison {
    let (program, decision) = match now {
        Ruling::Untold(fields) => return untold(fields),
        Ruling::Refused(sentence) => return Comparison::Changed(Way::recorded(then), Way::refused(sentence)),
        Ruling::Decided(program, decision) => (*program, decision),
    };
    let is_same_rule = label(decision) == then.rule;
    let is_unknown = matches!(decision.outcome, Outcome::Refused(_) | Outcome::RouteUnknown { .. });
    let is_same_end = match End::of(program, decision, stand) {
        End::Route(target) => is_there(then, target, !stand.place.listener.is_empty()),
        End::OneOf(targets) => {
            targets.iter().any(|target| is_there(then, target, !stand.place.listener.is_empty()))
        }
        End::Pool(pool) => then.pool.as_deref() == Some(pool),
        End::SomePool if then.rule == NO_RULE => true,
        End::SomePool if then.pool.is_some() => {
            return Comparison::Untold(vec![
                "the listener's default pool, which a configuration says".to_owned(),
            ]);
        }
        End::SomePool => false,
        End::Answer(status) if stand.place.protocol == Protocol::Http => {
            // A client that has gone got none.
            then.pool.is_none() && (then.status == Some(status) || (then.status.is_none() && then.has_error))
        }
        End::Answer(_) | End::Discard => then.pool.is_none() && then.status.is_none(),
    };
    // A rule that takes a request and one that nobody can tell of are two things, also where the status is one.
    let is_same = is_same_end && is_unknown == then.unknown.is_some();
    if !is_same
        && is_same_rule
        && then.pool.is_none()
        && then.unknown.is_none()
        && then.has_error
        && stand.place.protocol == Protocol::Http
    {
        // Perhaps it was routed then, too, and refused because a value could not be filled in.
        return Comparison::Untold(vec!["what the rule decided before something went wrong".to_owned()]);
    }
    if !is_same_end
        && then.pool.is_some()
        && then.unknown.is_none()
        && stand.place.may_override(&decision.outcome)
    {
        return Comparison::Untold(vec![
            "which target the client stayed with, for `sticky_scope` is `listener`".to_owned(),
        ]);
    }
    match (is_same, is_same_rule) {
        (true, true) => Comparison::Same,
        (true, false) => Comparison::OtherRule(Way::recorded(then), Way::short(program, decision, stand)),
        (false, _) => Comparison::Changed(Way::recorded(then), Way::short(program, decision, stand)),
    }
}

/// What two rule sets say of a record. Effects and stickiness count.
pub(super) fn of_two(then: (&Ruling<'_>, &Stand), now: (&Ruling<'_>, &Stand)) -> Comparison {
    let (then_way, now_way) = match (then.0, now.0) {
        (Ruling::Untold(fields), Ruling::Untold(others)) => {
            let others = others.iter().filter(|field| !fields.contains(field));
            let fields: Vec<_> = fields.iter().chain(others).copied().collect();
            return untold(&fields);
        }
        (Ruling::Untold(fields), _) | (_, Ruling::Untold(fields)) => return untold(fields),
        (Ruling::Refused(_), Ruling::Refused(_)) => return Comparison::Refused,
        (then_ruling, now_ruling) => (Way::whole(then_ruling, then.1), Way::whole(now_ruling, now.1)),
    };
    if then_way.outcome == now_way.outcome {
        return match then_way.rule == now_way.rule {
            true => Comparison::Same,
            false => Comparison::OtherRule(then_way, now_way),
        };
    }
    if let (Ruling::Decided(then_program, then_decision), Ruling::Decided(now_program, now_decision)) =
        (then.0, now.0)
    {
        let short =
            [Way::short(*then_program, then_decision, then.1), Way::short(*now_program, now_decision, now.1)];
        let [then_short, now_short] = short;
        if then_short.outcome != now_short.outcome {
            return Comparison::Changed(then_short, now_short);
        }
    }
    Comparison::Changed(then_way, now_way)
}

fn untold(fields: &[&pointsman_rules::Field]) -> Comparison {
    Comparison::Untold(fields.iter().map(|field| format!("`{field}`")).collect())
}

fn label<'d>(decision: &'d Decision<'_>) -> &'d str {
    decision.by.label().unwrap_or(NO_RULE)
}

/// What comes of a decision, as far as a log can tell.
enum End<'r> {
    Route(&'r TargetName),
    /// Any of these, by its share.
    OneOf(Vec<&'r TargetName>),
    Pool(&'r str),
    /// The default pool of a listener that nobody has named.
    SomePool,
    Answer(u16),
    Discard,
}

/// The status of a request that has no pool to go to.
const NO_SERVER: u16 = 503;

impl<'r> End<'r> {
    fn of(program: Option<&'r Program>, decision: &Decision<'r>, stand: &'r Stand) -> End<'r> {
        let named = |target: TargetId| program.and_then(|program| program.targets.get(target.0 as usize));
        let route = |target: TargetId| named(target).map_or(End::SomePool, End::Route);
        match decision.outcome {
            Outcome::DefaultPool | Outcome::Waits => match &stand.place.default_pool {
                DefaultPool::Unknown => End::SomePool,
                DefaultPool::None => End::Answer(NO_SERVER),
                DefaultPool::Named(pool) => End::Pool(pool),
            },
            Outcome::RouteUnknown { target, .. } => route(target),
            Outcome::Refused(cause) => End::Answer(cause.status()),
            Outcome::Terminal(terminal) => match terminal {
                Terminal::RouteTo { target, .. } => route(*target),
                Terminal::Split(split) => {
                    End::OneOf(split.shares.iter().filter_map(|share| named(share.target)).collect())
                }
                Terminal::Reject { status, .. }
                | Terminal::Redirect { status, .. }
                | Terminal::Respond { status, .. } => End::Answer(*status),
                Terminal::Reset | Terminal::Discard => End::Discard,
            },
        }
    }
}

/// Whether a request went where a rule leads. Without a configuration a name may be that of a pool or of a server.
fn is_there(then: &Decided, target: &TargetName, knows_pools: bool) -> bool {
    let (pool, server) = (then.pool.as_deref(), then.server.as_deref());
    match &target.server {
        Some(name) => pool == Some(&*target.pool) && server.is_none_or(|server| server == &**name),
        None => pool == Some(&*target.pool) || (!knows_pools && server == Some(&*target.pool)),
    }
}

impl Way {
    fn recorded(then: &Decided) -> Way {
        let outcome = match (&then.unknown, &then.pool, then.status) {
            (Some(cause), Some(pool), _) => format!("unknown({}), which goes to {}", cut(cause), cut(pool)),
            (Some(cause), None, _) => format!("unknown({})", cut(cause)),
            (None, Some(pool), _) => cut(pool),
            (None, None, Some(status)) => format!("status {status}"),
            (None, None, None) => "no answer".to_owned(),
        };
        Way { rule: cut(&then.rule), outcome }
    }

    fn refused(sentence: &str) -> Way {
        Way { rule: "(refused)".to_owned(), outcome: sentence.to_owned() }
    }

    /// As a test expects it.
    fn short(program: Option<&Program>, decision: &Decision<'_>, stand: &Stand) -> Way {
        let expected = ExpectedOutcome::seen(&decision.outcome).zip(program);
        let mut outcome = match expected {
            Some((outcome, program)) => outcome.shown(program),
            None => default_pool(stand),
        };
        if let (Outcome::RouteUnknown { target, .. }, Some(program)) = (&decision.outcome, program) {
            outcome.push_str(", which goes to ");
            outcome.push_str(&ExpectedOutcome::Target(*target).shown(program));
        }
        Way { rule: label(decision).to_owned(), outcome }
    }

    /// With all that is done and comes to something.
    fn whole(ruling: &Ruling<'_>, stand: &Stand) -> Way {
        let (program, decision) = match ruling {
            Ruling::Refused(sentence) => return Way::refused(sentence),
            Ruling::Untold(_) => return Way::refused("unknown"),
            Ruling::Decided(program, decision) => (*program, decision),
        };
        let mut way = Way::short(program, decision, stand);
        if let (Outcome::Terminal(terminal), Some(program)) = (decision.outcome, program) {
            way.outcome = spelling::terminal(program, terminal);
        }
        let noticed = decision.noticed(decision.outcome.audience()).filter(|(_, idle)| idle.is_none());
        for (effect, _) in noticed {
            way.outcome.push_str(&format!(" with {}", spelling::effect(effect)));
        }
        way
    }
}

fn default_pool(stand: &Stand) -> String {
    match &stand.place.default_pool {
        DefaultPool::Named(pool) => pool.clone(),
        DefaultPool::None => format!("no server ({NO_SERVER})"),
        DefaultPool::Unknown => "the default pool".to_owned(),
    }
}

/// What a log says, within bounds and without what a terminal acts on.
fn cut(name: &str) -> String {
    shown(name.as_bytes()).chars().take(NAME_CHARS_MAX).collect()
}
