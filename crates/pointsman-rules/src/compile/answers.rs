//! Fields that an answer must carry by its status (RFC 9110).

use crate::ast::{self, Action, ActionKind};
use crate::{Block, Effect, Exit, HeaderEdit, Side};

use super::Compiler;

/// A status, the field that its answer must carry, an example of the field, and the section that says so.
const REQUIRED: &[(u16, &str, &str, &str)] = &[
    (401, "www-authenticate", "Basic realm=\\\"shop\\\"", "15.5.2"),
    (405, "allow", "GET, HEAD", "15.5.6"),
    (407, "proxy-authenticate", "Basic realm=\\\"proxy\\\"", "15.5.8"),
];

impl Compiler<'_> {
    /// Warns of a `reject` or `respond` whose answer lacks a field that its status needs. Effects of earlier rules, which
    /// may be committed with it, give it the field too.
    pub(super) fn check_required(&mut self, written: &ast::Block, compiled: &Block) {
        let given = compiled.effects.iter().filter_map(|effect| match effect {
            Effect::Header { side: Side::Response, name, edit: HeaderEdit::Set(_) | HeaderEdit::Add(_) } => {
                Some(&**name)
            }
            _ => None,
        });
        let given: Vec<&str> = given.collect();
        if let Some(Action {
            kind: ActionKind::Reject(Some(status), _) | ActionKind::Respond(status, _),
            ..
        }) = written.actions.last()
        {
            for (code, name, example, section) in REQUIRED.iter().filter(|(code, ..)| *code == status.code) {
                if given.contains(name) || self.collected.contains(name) {
                    continue;
                }
                let message = format!("an answer with status {code} carries `{name}`, and this one does not");
                let help = format!(
                    "write `setResponseHeader(\"{name}\", \"{example}\");` in front (RFC 9110 section {section})"
                );
                self.warn(status.span, message, help);
            }
        }
        if !matches!(compiled.exit, Exit::Terminal(_)) {
            let known = REQUIRED.iter().map(|(_, name, ..)| *name);
            self.collected.extend(known.filter(|name| given.contains(name)));
        }
    }
}
