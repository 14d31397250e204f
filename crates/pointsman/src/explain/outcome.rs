//! What was decided, in the words of the language, and what comes of it for this request.

use std::fmt;

use pointsman_config::Protocol;
use pointsman_rules::{
    Audience, Decision, Effect, HeaderEdit, Idle, Outcome, Program, Share, Stickiness, Subject, Template,
    Terminal, rewrite_path, spelling,
};
use serde_json::{Value, json};

use super::place::{DefaultPool, Place};
use super::report::shown;

/// The end of an explanation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The rule that decided.
    pub(super) rule: Option<String>,
    pub(super) end: End,
    /// Committed together with the action.
    pub(super) effects: Vec<Done>,
}

/// What becomes of the request, or of the connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// An action of a rule, or the default pool.
    Decided {
        action: Action,
        /// The pool, or pool and server, that gets the request.
        target: Option<String>,
        /// The shares of a split, one of whose targets gets it.
        shares: Vec<Portion>,
    },
    /// The switch refuses it by itself.
    Refused { refusal: Refusal, reason: String },
}

/// What one target gets of a split.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Portion {
    /// As a percentage.
    pub(super) percent: String,
    pub(super) target: String,
}

/// What a client that is refused gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// An answer with this status.
    Status(u16),
    /// An alert of TLS, by its name.
    Alert(&'static str),
    /// A reset of its connection.
    Reset,
}

impl Refusal {
    /// `ACCESS_DENIED` where a rule refuses, `INTERNAL_ERROR` where nothing is wrong with the client.
    fn of(protocol: Protocol, status: u16, alert: &'static str) -> Refusal {
        match protocol {
            Protocol::Http => Refusal::Status(status),
            Protocol::Tcp => Refusal::Reset,
            Protocol::TlsPassthrough => Refusal::Alert(alert),
        }
    }
}

const ACCESS_DENIED: &str = "access_denied";
const INTERNAL_ERROR: &str = "internal_error";

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Status(status) => write!(to, "{status}"),
            Refusal::Alert(name) => write!(to, "the alert `{name}`"),
            Refusal::Reset => to.write_str("a reset"),
        }
    }
}

/// An effect that is committed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) action: Action,
    /// Why nobody notices it.
    pub(super) idle: Option<Idle>,
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
        Verdict::refused_with(Refusal::Status(status), reason)
    }

    fn refused_with(refusal: Refusal, reason: String) -> Verdict {
        Verdict { rule: None, end: End::Refused { refusal, reason }, effects: Vec::new() }
    }

    /// No rule decides.
    pub(super) fn default_pool(pool: &DefaultPool, protocol: Protocol) -> Verdict {
        let (text, target) = match pool {
            DefaultPool::Named(pool) => (format!("the default pool `{pool}` takes it"), Some(pool.clone())),
            DefaultPool::Unknown => ("the listener's default pool takes it, if it has one".to_owned(), None),
            DefaultPool::None => {
                let reason = "no rule decides, and the listener has no default pool";
                let refusal = Refusal::of(protocol, 503, INTERNAL_ERROR);
                return Verdict::refused_with(refusal, reason.to_owned());
            }
        };
        let end = End::Decided { action: Action { text, value: None }, target, shares: Vec::new() };
        Verdict { rule: None, end, effects: Vec::new() }
    }

    /// What the rules decided of a subject whose path, where it has one, is this, and who is told of it.
    pub(super) fn new(
        program: &Program,
        (decision, audience): (&Decision<'_>, Audience),
        subject: &dyn Subject,
        path: &[u8],
        place: &Place,
    ) -> Verdict {
        let rule = decision.by.label().map(str::to_owned);
        let effects = match rendered(decision, audience, subject, path) {
            Ok(effects) => effects,
            Err(reason) => return Verdict { rule, ..Verdict::refused(400, reason) },
        };
        let end = match decision.outcome {
            Outcome::DefaultPool => Verdict::default_pool(&place.default_pool, place.protocol).end,
            Outcome::Waits => {
                let reason = "the condition asks for what has not been read".to_owned();
                return Verdict { rule, ..Verdict::refused(400, reason) };
            }
            Outcome::Refused(cause) => {
                let reason = format!("the condition ended unknown: {cause}");
                let refusal = Refusal::of(place.protocol, cause.status(), ACCESS_DENIED);
                return Verdict { rule, effects, ..Verdict::refused_with(refusal, reason) };
            }
            Outcome::RouteUnknown { target, cause } => {
                let target = spelling::target(program, target);
                let text = format!("on_unknown routeTo({target});");
                let value = Some(format!("the condition ended unknown: {cause}"));
                End::Decided { action: Action { text, value }, target: Some(target), shares: Vec::new() }
            }
            Outcome::Terminal(terminal) => match value_of(terminal, subject, place.protocol) {
                Err(reason) => return Verdict { rule, ..Verdict::refused(400, reason) },
                Ok(value) => End::Decided {
                    action: Action { text: spelled(program, terminal, place.protocol), value },
                    target: match terminal {
                        Terminal::RouteTo { target, .. } => Some(spelling::target(program, *target)),
                        _ => None,
                    },
                    shares: portions(program, terminal),
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
            End::Decided { action, target, shares } => {
                let mut object = action.to_json();
                if !shares.is_empty() {
                    let portion =
                        |share: &Portion| json!({ "target": share.target, "percent": share.percent });
                    object["split"] = shares.iter().map(portion).collect();
                }
                if let Some(target) = target {
                    object["target"] = json!(target);
                }
                object
            }
            End::Refused { refusal, reason } => {
                let (key, value) = match refusal {
                    Refusal::Status(status) => ("status", json!(status)),
                    Refusal::Alert(name) => ("alert", json!(name)),
                    Refusal::Reset => ("reset", json!(true)),
                };
                json!({ "refused": { key: value, "reason": reason } })
            }
        };
        if let Some(rule) = &self.rule {
            object["rule"] = json!(rule);
        }
        object["effects"] = self.effects.iter().map(Done::to_json).collect();
        object
    }
}

impl Done {
    fn to_json(&self) -> Value {
        let mut object = self.action.to_json();
        if let Some(idle) = &self.idle {
            object["comes_to_nothing"] = json!(idle.to_string());
        }
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
fn rendered(
    decision: &Decision<'_>,
    audience: Audience,
    subject: &dyn Subject,
    path: &[u8],
) -> Result<Vec<Done>, String> {
    let mut path = path.to_vec();
    let mut done = Vec::with_capacity(decision.effects.len());
    for (effect, idle) in decision.noticed(audience) {
        let value = match effect {
            Effect::Header { edit: HeaderEdit::Set(template) | HeaderEdit::Add(template), .. } => {
                render(template, subject)?
            }
            Effect::Header { edit: HeaderEdit::Remove, .. }
            | Effect::Tag(_)
            | Effect::LimitRate(_)
            | Effect::Bandwidth(_)
            | Effect::Mirror(_) => None,
            Effect::RewritePath { regex, replacement } => {
                let mut rewritten = Vec::new();
                rewrite_path(regex, replacement, &path, &mut rewritten).map_err(|error| error.to_string())?;
                path = rewritten;
                Some(shown(&path))
            }
        };
        done.push(Done { action: Action { text: spelling::effect(effect), value }, idle });
    }
    Ok(done)
}

fn portions(program: &Program, terminal: &Terminal) -> Vec<Portion> {
    let Terminal::Split(split) = terminal else { return Vec::new() };
    let portion = |share: &Share| Portion {
        percent: share.percent().to_string(),
        target: spelling::target(program, share.target),
    };
    split.shares.iter().map(portion).collect()
}

/// What has no status is not shown with one.
fn spelled(program: &Program, terminal: &Terminal, protocol: Protocol) -> String {
    match terminal {
        Terminal::Reject { .. } if protocol != Protocol::Http => "reject();".to_owned(),
        _ => spelling::terminal(program, terminal),
    }
}

fn value_of(
    terminal: &Terminal,
    subject: &dyn Subject,
    protocol: Protocol,
) -> Result<Option<String>, String> {
    match terminal {
        Terminal::Respond { body, .. } => render(body, subject),
        Terminal::Redirect { location, .. } => {
            let mut value = Vec::new();
            location.render_location(subject, &mut value);
            Ok(location.names_fields().then(|| shown(&value)))
        }
        // A status is part of the action; what stands in its place is not.
        Terminal::Reject { status, .. } => match Refusal::of(protocol, *status, ACCESS_DENIED) {
            Refusal::Status(_) => Ok(None),
            refusal => Ok(Some(refusal.to_string())),
        },
        Terminal::Split(split) => Ok(Some(match split.sticky {
            Stickiness::None => "each request to one of them, by chance".to_owned(),
            _ => "each client to one of them, by the hash of what it is known by".to_owned(),
        })),
        Terminal::RouteTo { .. } | Terminal::Reset | Terminal::Discard => Ok(None),
    }
}

/// The text of a template; nothing where it names no field, and says it all itself.
fn render(template: &Template, subject: &dyn Subject) -> Result<Option<String>, String> {
    let mut value = Vec::new();
    template.render(subject, &mut value).map_err(|error| error.to_string())?;
    Ok(template.names_fields().then(|| shown(&value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_without_a_default_pool_is_told_from_an_unknown_one() {
        let unknown = Verdict::default_pool(&DefaultPool::Unknown, Protocol::Http);
        assert!(!unknown.is_refusal());
        for (protocol, expected) in [
            (Protocol::Http, Refusal::Status(503)),
            (Protocol::Tcp, Refusal::Reset),
            (Protocol::TlsPassthrough, Refusal::Alert("internal_error")),
        ] {
            let none = Verdict::default_pool(&DefaultPool::None, protocol);
            assert!(matches!(none.end, End::Refused { refusal, .. } if refusal == expected), "{none:?}");
        }
        let named = Verdict::default_pool(&DefaultPool::Named("fast".to_owned()), Protocol::Http);
        assert!(matches!(named.end, End::Decided { target: Some(pool), .. } if pool == "fast"));
    }
}
