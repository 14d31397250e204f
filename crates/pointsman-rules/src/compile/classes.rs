//! Classes and pools that effects name: `limitRate(class)`, `bandwidth(class)`, `mirror(pool)`.

use std::collections::BTreeSet;

use crate::ast::Name;
use crate::parser::shorten;
use crate::{Block, Effect, Program, pace};

use super::Compiler;

impl Compiler<'_> {
    pub(super) fn limit_class(&mut self, class: &Name) -> Option<Effect> {
        self.class(class, self.targets.limits(), "limit").map(Effect::LimitRate)
    }

    pub(super) fn bandwidth_class(&mut self, class: &Name) -> Option<Effect> {
        self.class(class, self.targets.bandwidths(), "bandwidth").map(Effect::Bandwidth)
    }

    /// A pool as a whole.
    pub(super) fn mirror_pool(&mut self, name: &Name) -> Option<Effect> {
        let target = self.target_name(name)?;
        if let Some(server) = target.server {
            let message = format!("`{}` is a server, and copies go to pools", shorten(&server));
            self.error(name.span, message, format!("write `mirror({})`", shorten(&target.pool)));
            return None;
        }
        Some(Effect::Mirror(target.pool))
    }

    /// One of those known, which the configuration has in tables of that name.
    fn class(
        &mut self,
        class: &Name,
        known: Option<&BTreeSet<Box<str>>>,
        table: &'static str,
    ) -> Option<Box<str>> {
        let shown = shorten(&class.text);
        let Some(known) = known else { return Some(class.text.clone()) };
        if known.contains(&class.text) {
            return Some(class.text.clone());
        }
        let help = match self.nearest(&class.text, known.iter().map(|name| &**name)) {
            Some(known) => format!("did you mean `{known}`?"),
            None => format!("the configuration says how much it gets, in `[{table}.{shown}]`"),
        };
        self.error(class.span, format!("unknown class `{shown}`"), help);
        None
    }
}

impl Program {
    /// The classes that some rule limits requests by; one may come several times.
    pub fn limit_classes(&self) -> impl Iterator<Item = &str> {
        let blocks = self.blocks();
        blocks.flat_map(Block::limit_classes)
    }

    /// The classes that some rule gives bandwidth by; one may come several times.
    pub fn bandwidth_classes(&self) -> impl Iterator<Item = &str> {
        let blocks = self.blocks();
        blocks.flat_map(Block::bandwidth_classes)
    }
}

impl Program {
    /// Both of each rule.
    fn blocks(&self) -> impl Iterator<Item = &Block> {
        let rules = pace::each(self.rules.iter().chain(&self.fallback));
        rules.flat_map(|rule| [&rule.then, &rule.otherwise])
    }

    /// The pools that some rule sends copies to; one may come several times.
    pub fn mirror_pools(&self) -> impl Iterator<Item = &str> {
        let blocks = self.blocks();
        let effects = blocks.flat_map(|block| &block.effects);
        effects.filter_map(|effect| if let Effect::Mirror(pool) = effect { Some(&**pool) } else { None })
    }
}

impl Block {
    fn limit_classes(&self) -> impl Iterator<Item = &str> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::LimitRate(class) => Some(&**class),
            _ => None,
        })
    }

    fn bandwidth_classes(&self) -> impl Iterator<Item = &str> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Bandwidth(class) => Some(&**class),
            _ => None,
        })
    }
}
