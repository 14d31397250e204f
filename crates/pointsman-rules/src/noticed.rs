//! Which effects of a decision anybody can notice.

use std::fmt;

use crate::{Decision, Effect, HeaderEdit, Outcome, Piece, Side, Template, Terminal};

/// Who is told of what is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A server gets the request, and its client the answer.
    Server,
    /// The same of a request that asks to change to another protocol, which has no copy.
    Tunnel,
    /// The client gets an answer that no server gave.
    Client,
    /// The connection ends without an answer.
    Nobody,
}

/// Why an effect comes to nothing, though it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It is about what a server gets.
    NoServer,
    /// It is about what the client gets.
    NoAnswer,
    /// It is about a copy, and what asks for another protocol has none.
    NoCopy,
    /// A later one of its kind holds in its place.
    Overridden,
}

impl Audience {
    /// The same where the request asks to change to another protocol.
    #[must_use]
    pub fn of_change(self) -> Audience {
        match self {
            Audience::Server | Audience::Tunnel => Audience::Tunnel,
            Audience::Client | Audience::Nobody => self,
        }
    }
}

impl Terminal {
    /// Who is told of it.
    #[must_use]
    pub fn audience(&self) -> Audience {
        match self {
            Terminal::RouteTo { .. } | Terminal::Split(_) => Audience::Server,
            Terminal::Reject { .. } | Terminal::Redirect { .. } | Terminal::Respond { .. } => {
                Audience::Client
            }
            Terminal::Reset | Terminal::Discard => Audience::Nobody,
        }
    }
}

impl Outcome<'_> {
    /// Who is told of it. A request of the default pool is taken to have one.
    #[must_use]
    pub fn audience(&self) -> Audience {
        match self {
            Outcome::Terminal(terminal) => terminal.audience(),
            Outcome::DefaultPool | Outcome::RouteUnknown { .. } => Audience::Server,
            Outcome::Refused(_) | Outcome::Waits => Audience::Client,
        }
    }
}

impl Effect {
    /// Why nobody notices it, whatever else is done. What may fail is noticed: the request is refused then. So is a tag, by
    /// who reads the access log, and what a rate takes.
    #[must_use]
    pub fn idle(&self, audience: Audience) -> Option<Idle> {
        let (is_for_server, is_for_client) = match self {
            Effect::Mirror(_) => (true, false),
            Effect::Bandwidth(_) => (false, true),
            Effect::Header { edit, .. } if edit.may_fail() => return None,
            Effect::Header { side, .. } => (*side == Side::Request, *side == Side::Response),
            Effect::RewritePath { .. } | Effect::Tag(_) | Effect::LimitRate(_) => return None,
        };
        match audience {
            Audience::Client | Audience::Nobody if is_for_server => Some(Idle::NoServer),
            Audience::Tunnel if matches!(self, Effect::Mirror(_)) => Some(Idle::NoCopy),
            Audience::Nobody if is_for_client => Some(Idle::NoAnswer),
            _ => None,
        }
    }

    /// Whether this one takes the place of an earlier one, so that nobody notices that. A header that is set or removed
    /// leaves nothing of what was done with it before; whether a text with fields can be filled in is noticed all the same.
    #[must_use]
    pub fn overrides(&self, earlier: &Effect) -> bool {
        match (self, earlier) {
            (Effect::Mirror(_), Effect::Mirror(_)) | (Effect::Bandwidth(_), Effect::Bandwidth(_)) => true,
            (
                Effect::Header { side, name, edit: HeaderEdit::Set(_) | HeaderEdit::Remove },
                Effect::Header { side: of, name: other, edit },
            ) => side == of && name == other && !edit.may_fail(),
            _ => false,
        }
    }
}

impl Decision<'_> {
    /// Its effects in order, each with why nobody notices it.
    pub fn noticed(&self, audience: Audience) -> impl Iterator<Item = (&Effect, Option<Idle>)> {
        self.effects.iter().enumerate().map(move |(place, effect)| {
            let mut later = self.effects.iter().skip(place + 1);
            let is_overridden = later.any(|later| later.overrides(effect));
            (*effect, effect.idle(audience).or(is_overridden.then_some(Idle::Overridden)))
        })
    }
}

impl HeaderEdit {
    /// Whether its text may be none that can stand in a header.
    fn may_fail(&self) -> bool {
        match self {
            HeaderEdit::Set(value) | HeaderEdit::Add(value) => value.names_fields(),
            HeaderEdit::Remove => false,
        }
    }
}

impl Template {
    /// Whether its text depends on the request, so that it may be none that can be filled in.
    #[must_use]
    pub fn names_fields(&self) -> bool {
        self.0.iter().any(|piece| !matches!(piece, Piece::Literal(_)))
    }
}

impl fmt::Display for Idle {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Idle::NoServer => "no server gets the request",
            Idle::NoAnswer => "nobody gets an answer",
            Idle::NoCopy => "a request that asks for another protocol is not copied",
            Idle::Overridden => "a later one holds",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DecidedBy, Targets, compile};

    /// What comes to nothing of the effects of one block, by the first letters of why.
    fn check(block: &str, expected: &[Option<Idle>]) {
        let rules = format!("R1: if (path exists) {{ {block} }}");
        let program = compile(&rules, &Targets::Any).expect("a rule").program;
        let then = &program.rules[0].then;
        let outcome = match &then.exit {
            crate::Exit::Terminal(terminal) => Outcome::Terminal(terminal),
            _ => Outcome::DefaultPool,
        };
        let effects = then.effects.iter().collect();
        let decision = Decision { by: DecidedBy::Nothing, outcome, effects };
        let found: Vec<_> = decision.noticed(outcome.audience()).map(|(_, idle)| idle).collect();
        assert_eq!(found, expected, "{block}");
    }

    #[test]
    fn what_nobody_notices_is_told() {
        use Idle::{NoAnswer, NoServer, Overridden};
        check("mirror(a); mirror(b); routeTo(c);", &[Some(Overridden), None]);
        check("mirror(a); mirror(b);", &[Some(Overridden), None]);
        check("mirror(a); bandwidth(x); reject();", &[Some(NoServer), None]);
        check("bandwidth(x); bandwidth(x); respond(200, \"a\");", &[Some(Overridden), None]);
        check("bandwidth(x); tag(t); limitRate(l); discard();", &[Some(NoAnswer), None, None]);
        check("setHeader(\"a\", \"b\"); setResponseHeader(\"a\", \"b\"); reject();", &[Some(NoServer), None]);
        check(
            "removeHeader(\"a\"); addHeader(\"a\", \"${path}\"); removeResponseHeader(\"b\"); discard();",
            &[Some(NoServer), None, Some(NoAnswer)],
        );
        check("rewritePath(\"a\", \"b\"); redirect(302, \"/\");", &[None]);
    }

    #[test]
    fn what_is_replaced_anyway_is_not_noticed() {
        const OVER: Option<Idle> = Some(Idle::Overridden);
        check("setHeader(\"a\", \"1\"); setHeader(\"A\", \"2\"); routeTo(c);", &[OVER, None]);
        check(
            "addHeader(\"a\", \"1\"); removeHeader(\"a\"); setHeader(\"a\", \"2\"); addHeader(\"a\", \"3\"); routeTo(c);",
            &[OVER, OVER, None, None],
        );
        check("setHeader(\"a\", \"1\"); setHeader(\"b\", \"2\"); routeTo(c);", &[None, None]);
        check("setHeader(\"a\", \"1\"); setResponseHeader(\"a\", \"2\"); routeTo(c);", &[None, None]);
        check("setHeader(\"a\", \"1\"); addHeader(\"a\", \"2\"); routeTo(c);", &[None, None]);
        // It may be what cannot be filled in.
        check("setHeader(\"a\", \"${query}\"); setHeader(\"a\", \"2\"); routeTo(c);", &[None, None]);
    }

    #[test]
    fn what_changes_the_protocol_is_not_copied() {
        let rules = "R1: { mirror(a); setHeader(\"a\", \"b\"); bandwidth(x); routeTo(c); }";
        let program = compile(rules, &Targets::Any).expect("a rule").program;
        let tunnel = Audience::Server.of_change();
        let idle: Vec<_> = program.rules[0].then.effects.iter().map(|effect| effect.idle(tunnel)).collect();
        assert_eq!(idle, [Some(Idle::NoCopy), None, None]);
        assert_eq!(Audience::Client.of_change(), Audience::Client);
    }
}
