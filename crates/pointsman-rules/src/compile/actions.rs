//! Actions: effects are gathered, and one exit ends each block.

use crate::ast::{self, Action, ActionKind, Name, Quoted, Status, Sticky, StickyKind, Target};
use crate::parser::shorten;
use crate::schema::is_token;
use crate::{
    Block, Effect, Exit, Field, HeaderEdit, RuleIndex, Side, Split, Stickiness, TargetName, Template,
    Terminal,
};

use super::Compiler;
use super::targets::Idle;

/// Headers that frame a message or belong to one connection: the switch alone writes them.
const OWN_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What one action adds to a block.
enum Step {
    Effect(Effect),
    Exit(Exit),
    Allows(Vec<RuleIndex>),
}

impl Compiler<'_> {
    pub(super) fn block(&mut self, index: RuleIndex, block: &ast::Block) -> Option<Block> {
        let mut compiled = Some(Block::default());
        let mut ended = false;
        for action in &block.actions {
            if ended {
                let word = action.word.of(self.source);
                let message = format!("`{word}` is never reached");
                self.error(action.word, message, "the action before it leaves the block; write it in front");
                compiled = None;
                break;
            }
            ended = leaves(&action.kind);
            let step = self.action(index, action);
            match (step, &mut compiled) {
                (Some(Step::Effect(effect)), Some(block)) => block.effects.push(effect),
                (Some(Step::Exit(exit)), Some(block)) => block.exit = exit,
                (Some(Step::Allows(rules)), Some(block)) => block.allows.extend(rules),
                (Some(_), _) => {}
                (None, _) => compiled = None,
            }
        }
        self.check_rewrite(block);
        if let Some(compiled) = &mut compiled {
            self.check_required(block, compiled);
            compiled.awaits = awaited(compiled).into();
        }
        compiled
    }

    /// Warns of a `rewritePath` in front of an action by which no server gets the request. `${path}` in a redirect is
    /// the path of the request.
    fn check_rewrite(&mut self, block: &ast::Block) {
        let rewrite = block.actions.iter().find(|action| matches!(action.kind, ActionKind::RewritePath(..)));
        let Some((rewrite, last)) = rewrite.zip(block.actions.last()) else { return };
        let help = match last.kind {
            ActionKind::Redirect(..) => {
                "write the new path in the redirect: `${1}` is a group of a `matches` in the condition"
            }
            ActionKind::Respond(..) | ActionKind::Reject(..) | ActionKind::Reset | ActionKind::Discard => {
                "leave it out"
            }
            _ => return,
        };
        let word = last.word.of(self.source);
        let message = format!("`rewritePath` changes nothing here: `{word}` sends the request to no server");
        self.warn(rewrite.word, message, help);
    }

    fn action(&mut self, index: RuleIndex, action: &Action) -> Option<Step> {
        self.check_scope(action)?;
        let terminal = match &action.kind {
            ActionKind::RouteTo(target, sticky) => self.route_to(target, sticky.as_ref()),
            ActionKind::Reject(status, reason) => self.reject(status.as_ref(), reason.as_ref()),
            ActionKind::Reset => Some(Terminal::Reset),
            ActionKind::Discard => Some(Terminal::Discard),
            ActionKind::Redirect(status, location) => self.redirect(*status, location),
            ActionKind::Respond(status, body) => self.respond(*status, body),
            ActionKind::Goto(label) => {
                return self.jump(index, label).map(|index| Step::Exit(Exit::Goto(index)));
            }
            ActionKind::SetHeader(side, name, value) => {
                return self.header(*side, name, Some(value), HeaderEdit::Set);
            }
            ActionKind::AddHeader(side, name, value) => {
                return self.header(*side, name, Some(value), HeaderEdit::Add);
            }
            ActionKind::RemoveHeader(side, name) => {
                return self.header(*side, name, None, |_| HeaderEdit::Remove);
            }
            ActionKind::RewritePath(regex, replacement) => {
                return self.rewrite(regex, replacement).map(Step::Effect);
            }
            ActionKind::Tag(name) => return self.tag(name).map(Step::Effect),
            ActionKind::LimitRate(class) => return self.limit_class(class).map(Step::Effect),
            ActionKind::Bandwidth(class) => return self.bandwidth_class(class).map(Step::Effect),
            ActionKind::AllowConflict(labels) => {
                let known: Vec<_> = labels.iter().map(|label| self.labelled(label)).collect();
                return known.into_iter().collect::<Option<_>>().map(Step::Allows);
            }
            ActionKind::Mirror(name) => {
                let effect = self.mirror_pool(name)?;
                if let Effect::Mirror(pool) = &effect {
                    let target = TargetName { pool: pool.clone(), server: None };
                    self.targets.add_idle(target, Idle::Copies);
                }
                return Some(Step::Effect(effect));
            }
        };
        terminal.map(|terminal| Step::Exit(Exit::Terminal(terminal)))
    }

    fn route_to(&mut self, target: &Target, sticky: Option<&Sticky>) -> Option<Terminal> {
        let shares = match target {
            Target::Named(name) => Err(self.target(name)),
            Target::Split(span, shares) => Ok(self.split(*span, shares)),
        };
        let sticky = match sticky {
            Some(sticky) => self.stickiness(sticky),
            None => Some(Stickiness::None),
        };
        Some(match shares {
            Err(target) => Terminal::RouteTo { target: target?, sticky: sticky? },
            Ok(shares) => match &shares?[..] {
                // The others have no share.
                [only] => Terminal::RouteTo { target: only.target, sticky: sticky? },
                shares => Terminal::Split(Box::new(Split { shares: shares.into(), sticky: sticky? })),
            },
        })
    }

    fn stickiness(&mut self, sticky: &Sticky) -> Option<Stickiness> {
        Some(match &sticky.kind {
            StickyKind::None => Stickiness::None,
            StickyKind::Ip => Stickiness::Ip,
            StickyKind::IpPort => Stickiness::IpPort,
            StickyKind::Cookie => Stickiness::Cookie,
            StickyKind::TlsSession => Stickiness::TlsSession,
            StickyKind::Field(field) => Stickiness::Field(self.field(field)?),
        })
    }

    fn reject(&mut self, status: Option<&Status>, reason: Option<&Quoted>) -> Option<Terminal> {
        let code = match status {
            Some(status) => {
                self.status(*status, (400..=599).contains(&status.code), "reject", "400 to 599")?
            }
            None => 403,
        };
        if let Some(reason) = reason.filter(|reason| reason.text.contains("${")) {
            let help = "`respond` takes a text with fields in it";
            self.warn(reason.span, "a reason is taken as it is, without fields", help);
        }
        Some(Terminal::Reject { status: code, reason: reason.map(|reason| reason.text.clone()) })
    }

    fn redirect(&mut self, status: Status, location: &Quoted) -> Option<Terminal> {
        let fits = matches!(status.code, 301 | 302 | 303 | 307 | 308);
        let code = self.status(status, fits, "redirect", "301, 302, 303, 307 or 308");
        let location = self.template(location);
        Some(Terminal::Redirect { status: code?, location: location? })
    }

    fn respond(&mut self, status: Status, body: &Quoted) -> Option<Terminal> {
        let code = self.status(status, (200..=599).contains(&status.code), "respond", "200 to 599");
        if matches!(code, Some(204 | 205 | 304)) && !body.text.is_empty() {
            let message = format!("an answer with status {} has no body", status.code);
            self.error(body.span, message, "write `\"\"`");
            return None;
        }
        let body = self.template(body);
        Some(Terminal::Respond { status: code?, body: body? })
    }

    fn status(&mut self, status: Status, fits: bool, action: &str, allowed: &str) -> Option<u16> {
        if fits {
            return Some(status.code);
        }
        let shown = shorten(status.span.of(self.source));
        self.error(status.span, format!("`{action}` has no status `{shown}`"), format!("it takes {allowed}"));
        None
    }

    fn header(
        &mut self,
        side: Side,
        name: &Quoted,
        value: Option<&Quoted>,
        edit: impl Fn(Template) -> HeaderEdit,
    ) -> Option<Step> {
        let shown = shorten(&name.text);
        let value = match value {
            Some(value) => self.template(value),
            None => Some(Template::default()),
        };
        let sets = matches!(edit(Template::default()), HeaderEdit::Set(_));
        let lower = self.header_name(name)?;
        if OWN_HEADERS.contains(&&*lower) {
            let help = "it says how a message or a connection is framed";
            self.error(name.span, format!("the header `{shown}` is written by the switch alone"), help);
            return None;
        }
        if side == Side::Request && &*lower == "host" && !sets {
            let help = "write `setHeader(\"host\", …)` to send another one";
            self.error(name.span, "a request has exactly one `host`", help);
            return None;
        }
        Some(Step::Effect(Effect::Header { side, name: lower, edit: edit(value?) }))
    }

    /// In lower case, as headers are compared.
    pub(super) fn header_name(&mut self, name: &Quoted) -> Option<Box<str>> {
        let lower = name.text.to_ascii_lowercase();
        if is_token(&lower) {
            return Some(lower.into());
        }
        let help = "header names are letters, digits and a few signs such as `-`, without white space";
        self.error(name.span, format!("`{}` cannot be the name of a header", shorten(&name.text)), help);
        None
    }

    fn rewrite(&mut self, regex: &Quoted, replacement: &Quoted) -> Option<Effect> {
        let regex = self.regex(regex)?;
        self.check_replacement(&regex, replacement)?;
        Some(Effect::RewritePath { regex, replacement: replacement.text.as_bytes().into() })
    }

    fn tag(&mut self, name: &Name) -> Option<Effect> {
        if !name.text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Some(Effect::Tag(name.text.clone()));
        }
        self.error(name.span, "a tag is one word", "tags stand in the access log; join the words with `-`");
        None
    }
}

/// What of the body must be known for a block to run.
fn awaited(block: &Block) -> Vec<Field> {
    let mut awaits = Vec::new();
    block.each_field(&mut |field| {
        if matches!(field, Field::Payload(_)) && !awaits.contains(field) {
            awaits.push(field.clone());
        }
    });
    awaits
}

/// Whether nothing after this action can run.
fn leaves(action: &ActionKind) -> bool {
    matches!(
        action,
        ActionKind::RouteTo(..)
            | ActionKind::Reject(..)
            | ActionKind::Reset
            | ActionKind::Discard
            | ActionKind::Redirect(..)
            | ActionKind::Respond(..)
            | ActionKind::Goto(_)
    )
}
