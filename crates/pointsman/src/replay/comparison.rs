//! What was decided of a record beside what is decided of it now.

use pointsman_config::Protocol;
use pointsman_rules::{
    self as rules, Contrast, Decision, NO_RULE, Outcome, Program, Said, TargetId, TargetName, Terminal, Way,
};

use super::record::Decided;
use super::ruling::Ruling;
use super::stand::Stand;
use crate::explain::place::DefaultPool;
use crate::explain::report::shown;

/// Characters of a name that a log has written; names of rules and pools are shorter.
const NAME_CHARS_MAX: usize = 100;

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
        Ruling::Refused(sentence) => {
            return Comparison::Changed(recorded(then), Way::short(Said::Refused(sentence)));
        }
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
    let now = || Way::short(Said::Decided { program, decision, default_pool: stand.default_pool() });
    match (is_same, is_same_rule) {
        (true, true) => Comparison::Same,
        (true, false) => Comparison::OtherRule(recorded(then), now()),
        (false, _) => Comparison::Changed(recorded(then), now()),
    }
}

/// What two rule sets say of a record. Effects and stickiness count.
pub(super) fn of_two(then: (&Ruling<'_>, &Stand), now: (&Ruling<'_>, &Stand)) -> Comparison {
    match (then.0, now.0) {
        (Ruling::Untold(fields), Ruling::Untold(others)) => {
            let others = others.iter().filter(|field| !fields.contains(field));
            let fields: Vec<_> = fields.iter().chain(others).copied().collect();
            return untold(&fields);
        }
        (Ruling::Untold(fields), _) | (_, Ruling::Untold(fields)) => return untold(fields),
        _ => {}
    }
    match Contrast::of(said(then), said(now)) {
        Contrast::Same => Comparison::Same,
        Contrast::OtherRule(then, now) => Comparison::OtherRule(then, now),
        Contrast::Changed(then, now) => Comparison::Changed(then, now),
        Contrast::Refused => Comparison::Refused,
    }
}

fn said<'a, 'r>((ruling, stand): (&'a Ruling<'r>, &'a Stand)) -> Said<'a, 'r> {
    match ruling {
        Ruling::Refused(sentence) => Said::Refused(sentence),
        Ruling::Decided(program, decision) => {
            Said::Decided { program: *program, decision, default_pool: stand.default_pool() }
        }
        // It is told before.
        Ruling::Untold(_) => Said::Refused("unknown"),
    }
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

/// What a log says.
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

impl Stand {
    /// What takes a request that no rule decides.
    fn default_pool(&self) -> rules::DefaultPool<'_> {
        match &self.place.default_pool {
            DefaultPool::Named(pool) => rules::DefaultPool::Named(pool),
            DefaultPool::None => rules::DefaultPool::None,
            DefaultPool::Unknown => rules::DefaultPool::Unknown,
        }
    }
}

/// What a log says, within bounds and without what a terminal acts on.
fn cut(name: &str) -> String {
    shown(name.as_bytes()).chars().take(NAME_CHARS_MAX).collect()
}
