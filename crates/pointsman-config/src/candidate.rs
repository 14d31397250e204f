//! What follows from rules for the listener that has them, or is to have them.

use std::collections::BTreeSet;

use pointsman_rules::{Exit, Field, Program, Span};

use crate::RateLimit;

/// Rules that do not decide all that comes, at a listener that has no pool for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenEnd {
    /// The `else:` that decides nothing; nothing where there is none.
    pub fallback: Option<Span>,
}

/// How rules leave something undecided, if they do.
pub fn open_end(program: &Program) -> Option<OpenEnd> {
    match &program.fallback {
        Some(rule) if matches!(rule.then.exit, Exit::Terminal(_)) => None,
        fallback => Some(OpenEnd { fallback: fallback.as_ref().map(|rule| rule.span) }),
    }
}

impl OpenEnd {
    /// What is wrong with the rules of this name.
    #[must_use]
    pub fn sentence(self, name: &str) -> String {
        match self.fallback {
            None => format!("nothing takes what `{name}` does not decide"),
            Some(_) => format!("the `else:` of `{name}` decides nothing"),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn help(self) -> &'static str {
        "set `pool` on this listener, or end the rules with `else: routeTo(POOL);`"
    }
}

/// The classes that limit requests by a field, and its name.
pub fn limit_keys<'l>(
    limits: impl IntoIterator<Item = &'l RateLimit>,
) -> impl Iterator<Item = (&'l str, &'l str)> {
    limits.into_iter().filter_map(|limit| match &limit.key {
        Some(Field::Header(name)) => Some((&*limit.name, &**name)),
        _ => None,
    })
}

/// Every request field that rules read or change, in lower case, each once: what the classes that they name are keyed by is
/// read, too.
pub fn named_fields<'l>(program: &Program, limits: impl IntoIterator<Item = &'l RateLimit>) -> Vec<Box<str>> {
    let is_named = |class: &str| program.limit_classes().any(|named| named == class);
    let keys = limit_keys(limits).filter_map(|(class, name)| is_named(class).then_some(name));
    let all: BTreeSet<&str> = program.named_headers().all().into_iter().chain(keys).collect();
    all.into_iter().map(Box::from).collect()
}
