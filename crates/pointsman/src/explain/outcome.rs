//! What was decided, in the words of the language, and what comes of it for this request.

use pointsman_rules::{
    Decision, Effect, HeaderEdit, Outcome, Piece, Program, Template, Terminal, rewrite_path,
};
use pointsman_view::RequestView;
use serde_json::{Value, json};

use super::place::DefaultPool;
use super::report::shown;
use super::spelling;

/// The end of an explanation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The rule that decided.
    pub(super) rule: Option<String>,
    pub(super) end: End,
    /// Committed together with the action.
    pub(super) effects: Vec<Action>,
}

/// What becomes of the request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// An action of a rule, or the default pool.
    Decided {
        action: Action,
        /// The pool, or pool and server, that gets the request.
        target: Option<String>,
    },
    /// The switch refuses the request by itself.
    Refused { status: u16, reason: String },
}

/// An action with what its fields come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Action {
    /// As the language spells it.
    pub(super) text: String,
    /// With the request's own values; absent where the text says it all.
    pub(super) value: Option<String>,
}

impl Verdict {
    /// The request is refused before a rule is asked.
    pub(super) fn refused(status: u16, reason: String) -> Verdict {
        Verdict { rule: None, end: End::Refused { status, reason }, effects: Vec::new() }
    }

    /// No rule decides.
    pub(super) fn default_pool(pool: &DefaultPool) -> Verdict {
        let (text, target) = match pool {
            DefaultPool::Named(pool) => (format!("the default pool `{pool}` takes it"), Some(pool.clone())),
            DefaultPool::Unknown => ("the listener's default pool takes it, if it has one".to_owned(), None),
            DefaultPool::None => {
                let reason = "no rule decides, and the listener has no default pool";
                return Verdict::refused(503, reason.to_owned());
            }
        };
        let end = End::Decided { action: Action { text, value: None }, target };
        Verdict { rule: None, end, effects: Vec::new() }
    }

    /// What the rules decided.
    pub(super) fn new(
        program: &Program,
        decision: &Decision<'_>,
        view: &RequestView<'_>,
        default_pool: &DefaultPool,
    ) -> Verdict {
        let rule = decision.by.label().map(str::to_owned);
        let effects = match rendered(&decision.effects, view) {
            Ok(effects) => effects,
            Err(reason) => return Verdict { rule, ..Verdict::refused(400, reason) },
        };
        let end = match decision.outcome {
            Outcome::DefaultPool => Verdict::default_pool(default_pool).end,
            Outcome::Refused(cause) => {
                // Nothing is committed with a refusal.
                let reason = format!("the condition ended unknown: {cause}");
                return Verdict { rule, ..Verdict::refused(cause.status(), reason) };
            }
            Outcome::RouteUnknown { target, cause } => {
                let target = spelling::target(program, target);
                let text = format!("on_unknown routeTo({target});");
                let value = Some(format!("the condition ended unknown: {cause}"));
                End::Decided { action: Action { text, value }, target: Some(target) }
            }
            Outcome::Terminal(terminal) => match value_of(terminal, view) {
                Err(reason) => return Verdict { rule, ..Verdict::refused(400, reason) },
                Ok(value) => End::Decided {
                    action: Action { text: spelling::terminal(program, terminal), value },
                    target: match terminal {
                        Terminal::RouteTo { target, .. } => Some(spelling::target(program, *target)),
                        _ => None,
                    },
                },
            },
        };
        Verdict { rule, end, effects }
    }

    /// Whether the switch refuses the request by itself.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.end, End::Refused { .. })
    }

    pub(super) fn to_json(&self) -> Value {
        let mut object = match &self.end {
            End::Decided { action, target } => {
                let mut object = action.to_json();
                if let Some(target) = target {
                    object["target"] = json!(target);
                }
                object
            }
            End::Refused { status, reason } => json!({ "refused": { "status": status, "reason": reason } }),
        };
        if let Some(rule) = &self.rule {
            object["rule"] = json!(rule);
        }
        object["effects"] = self.effects.iter().map(Action::to_json).collect();
        object
    }
}

impl Action {
    fn to_json(&self) -> Value {
        match &self.value {
            None => json!({ "action": self.text }),
            Some(value) => json!({ "action": self.text, "value": value }),
        }
    }
}

/// The effects with the values they come to. Rewrites see what earlier rewrites made.
fn rendered(effects: &[&Effect], view: &RequestView<'_>) -> Result<Vec<Action>, String> {
    let mut path = view.path().path().to_vec();
    let mut actions = Vec::with_capacity(effects.len());
    for effect in effects {
        let value = match effect {
            Effect::Header { edit: HeaderEdit::Set(template) | HeaderEdit::Add(template), .. } => {
                render(template, view)?
            }
            Effect::Header { edit: HeaderEdit::Remove, .. } | Effect::Tag(_) => None,
            Effect::RewritePath { regex, replacement } => {
                let mut rewritten = Vec::new();
                rewrite_path(regex, replacement, &path, &mut rewritten).map_err(|error| error.to_string())?;
                path = rewritten;
                Some(shown(&path))
            }
        };
        actions.push(Action { text: spelling::effect(effect), value });
    }
    Ok(actions)
}

fn value_of(terminal: &Terminal, view: &RequestView<'_>) -> Result<Option<String>, String> {
    match terminal {
        Terminal::Respond { body, .. } => render(body, view),
        Terminal::Redirect { location, .. } => {
            let mut value = Vec::new();
            location.render_location(view, &mut value);
            Ok(names_fields(location).then(|| shown(&value)))
        }
        Terminal::RouteTo { .. } | Terminal::Reject { .. } | Terminal::Discard => Ok(None),
    }
}

/// The text of a template; nothing where it names no field, and says it all itself.
fn render(template: &Template, view: &RequestView<'_>) -> Result<Option<String>, String> {
    let mut value = Vec::new();
    template.render(view, &mut value).map_err(|error| error.to_string())?;
    Ok(names_fields(template).then(|| shown(&value)))
}

fn names_fields(template: &Template) -> bool {
    template.0.iter().any(|piece| matches!(piece, Piece::Field(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_without_a_default_pool_is_told_from_an_unknown_one() {
        let unknown = Verdict::default_pool(&DefaultPool::Unknown);
        assert!(!unknown.is_refusal());
        let none = Verdict::default_pool(&DefaultPool::None);
        assert!(matches!(none.end, End::Refused { status: 503, .. }), "{none:?}");
        let named = Verdict::default_pool(&DefaultPool::Named("fast".to_owned()));
        assert!(matches!(named.end, End::Decided { target: Some(pool), .. } if pool == "fast"));
    }
}
