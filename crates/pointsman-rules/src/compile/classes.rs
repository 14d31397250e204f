//! Classes that effects name: `limitRate(class)`.

use crate::ast::Name;
use crate::parser::shorten;
use crate::{Block, Effect, Program};

use super::Compiler;

impl Compiler<'_> {
    pub(super) fn limit_class(&mut self, class: &Name) -> Option<Effect> {
        let shown = shorten(&class.text);
        let Some(known) = self.targets.limits() else { return Some(Effect::LimitRate(class.text.clone())) };
        if known.contains(&class.text) {
            return Some(Effect::LimitRate(class.text.clone()));
        }
        let help = match self.nearest(&class.text, known.iter().map(|name| &**name)) {
            Some(known) => format!("did you mean `{known}`?"),
            None => format!("the configuration says how much it gets, in `[limit.{shown}]`"),
        };
        self.error(class.span, format!("unknown class `{shown}`"), help);
        None
    }
}

impl Program {
    /// The classes that some rule limits requests by; one may come several times.
    pub fn limit_classes(&self) -> impl Iterator<Item = &str> {
        let blocks = self.rules.iter().chain(&self.fallback).flat_map(|rule| [&rule.then, &rule.otherwise]);
        blocks.flat_map(Block::limit_classes)
    }
}

impl Block {
    fn limit_classes(&self) -> impl Iterator<Item = &str> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::LimitRate(class) => Some(&**class),
            Effect::Header { .. } | Effect::RewritePath { .. } | Effect::Tag(_) => None,
        })
    }
}
