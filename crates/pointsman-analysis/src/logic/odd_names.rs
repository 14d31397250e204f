//! Fields with odd names, where they stay but for those that read like one that the rules name: which of them rules and servers
//! see hangs on all rules together.

use std::collections::{BTreeMap, BTreeSet};

use pointsman_rules::{Program, pace};

use crate::{OddFields, Setting};

/// The names in a program that others may read like, whose fields are taken away then. None where what becomes of odd names hangs
/// on no rule.
pub(super) fn likened<'p>(program: &'p Program, setting: &'p Setting) -> BTreeSet<&'p str> {
    if !matches!(setting.odd_fields, OddFields::Keep(_)) {
        return BTreeSet::new();
    }
    let named = program.named_headers().all().into_iter().chain(keys(program, setting));
    named.filter(|name| may_be_likened(name)).collect()
}

/// The rules that alone name such a name, of those that name no class: whoever does does more than to decide.
pub(super) fn sole_namers(program: &Program, setting: &Setting) -> BTreeSet<u32> {
    if !matches!(setting.odd_fields, OddFields::Keep(_)) {
        return BTreeSet::new();
    }
    let keys: BTreeSet<_> = keys(program, setting).collect();
    let mut namers: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (index, rule) in (0..).zip(pace::each(program.rules.iter().chain(&program.fallback))) {
        let named = rule.named_headers().all();
        for name in named.into_iter().filter(|name| may_be_likened(name) && !keys.contains(name)) {
            namers.entry(name).or_default().push(index);
        }
    }
    let alone = namers.into_values().filter_map(|rules| match rules.as_slice() {
        [alone] => Some(*alone),
        _ => None,
    });
    alone.collect()
}

/// What the classes are keyed by that the rules name.
fn keys<'p>(program: &'p Program, setting: &'p Setting) -> impl Iterator<Item = &'p str> {
    program.limit_classes().filter_map(|class| setting.limit_key(class))
}

/// Whether something stands in a name that is neither a letter nor a digit.
fn may_be_likened(name: &str) -> bool {
    !name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
