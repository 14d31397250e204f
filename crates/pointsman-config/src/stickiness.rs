//! What stickiness comes to at a listener: warned of where it keeps nobody, noted where it overrides rules.

use std::collections::HashSet;

use pointsman_rules::{Block, Exit, Program, Rule, Stickiness, TargetId, Terminal, pace};

use crate::findings::Spanned;
use crate::lower::Lowering;
use crate::protocol::Protocol;
use crate::spec::ListenerSpec;

/// So many rules are named; the others are counted.
const NAMED_MAX: usize = 8;

impl Lowering<'_> {
    /// Looks at what the rules of a listener, if it has any, keep clients by.
    pub(crate) fn look_at_stickiness(&self, spec: &ListenerSpec, program: Option<&Program>) {
        if let (Some(path), Some(program)) = (&spec.rules, program) {
            self.look_at_sessions(path, program, spec);
        }
        // Rules that do not compile have errors of their own.
        if program.is_some() || spec.rules.is_none() {
            self.look_at_scope(spec, program);
        }
    }

    /// Warns where rules keep clients by TLS sessions that there are none of, or that nobody can resume. Of TLS that goes to a
    /// server as it is that server knows.
    fn look_at_sessions(&self, rules: &Spanned<String>, program: &Program, spec: &ListenerSpec) {
        let is_asked = program.stickinesses().any(|sticky| *sticky == Stickiness::TlsSession);
        if !is_asked || spec.protocol == Protocol::TlsPassthrough {
            return;
        }
        let rules_name = &rules.value;
        match &spec.tls {
            None => self.findings.warning(
                rules.span,
                format!(
                    "`STICKY_ON_TLS_SESSION` in `{rules_name}` keeps nobody: this listener speaks no TLS"
                ),
                "set `tls`, or keep clients by `STICKY_ON_IP` or `STICKY_ON_COOKIE`",
            ),
            Some(tls) if !tls.tickets => self.findings.warning(
                rules.span,
                format!("`STICKY_ON_TLS_SESSION` in `{rules_name}` keeps clients for one connection only"),
                "with `tickets = false` no session is resumed",
            ),
            Some(_) => {}
        }
    }

    /// Notes what a client that stays with a target is kept from.
    fn look_at_scope(&self, spec: &ListenerSpec, program: Option<&Program>) {
        let Some(at) = spec.sticky_to_listener_at else { return };
        let rules = || {
            let rules = program.into_iter().flat_map(|program| program.rules.iter().chain(&program.fallback));
            pace::each(rules)
        };
        let kept: HashSet<_> = rules()
            .flat_map(routes)
            .filter(|route| route.is_sticky)
            .flat_map(|route| route.targets)
            .collect();
        if kept.is_empty() {
            let message = "`sticky_scope` has no effect: no rule is sticky";
            return self.findings.warning(
                at,
                message,
                "leave it out, or route with `STICKY_ON_IP` for instance",
            );
        }
        if self.spec.sticky_entries_max == 0 {
            let message = "`sticky_scope` has no effect: nobody is remembered";
            return self.findings.warning(
                at,
                message,
                "leave it out, or set `sticky_entries_max` to more than 0",
            );
        }
        let is_overridden = |rule: &&Rule| {
            routes(rule)
                .any(|route| kept.len() > 1 || route.targets.iter().any(|target| !kept.contains(target)))
        };
        let overridden: Vec<_> =
            rules().filter(is_overridden).map(|rule| format!("`{}`", rule.label)).collect();
        if !overridden.is_empty() {
            let message = format!(
                "a client that stays with its target is not sent where {} would send it",
                listed(&overridden)
            );
            let help =
                "what rejects, discards, redirects, responds or limits, and all effects, hold for everybody";
            self.findings.note(at, message, help);
        }
    }
}

/// A `routeTo`.
struct Route {
    targets: Vec<TargetId>,
    is_sticky: bool,
}

fn routes(rule: &Rule) -> impl Iterator<Item = Route> {
    let ends = [&rule.then, &rule.otherwise].into_iter();
    ends.filter_map(|Block { exit, .. }| match exit {
        Exit::Terminal(Terminal::RouteTo { target, sticky }) => {
            Some(Route { targets: vec![*target], is_sticky: *sticky != Stickiness::None })
        }
        Exit::Terminal(Terminal::Split(split)) => Some(Route {
            targets: split.shares.iter().map(|share| share.target).collect(),
            is_sticky: split.sticky != Stickiness::None,
        }),
        Exit::Terminal(_) | Exit::Next | Exit::Goto(_) => None,
    })
}

/// `R1`, `R2` and 3 more
fn listed(rules: &[String]) -> String {
    let named = &rules[..rules.len().min(NAMED_MAX)];
    match (rules.len() - named.len(), named.split_last()) {
        (0, Some((last, []))) => last.clone(),
        (0, Some((last, others))) => format!("{} and {last}", others.join(", ")),
        (more, _) => format!("{} and {more} more", named.join(", ")),
    }
}
