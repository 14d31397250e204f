//! Fields with odd names, where they stay but for those that read like one that the rules name: which of them rules and servers
//! see hangs on all rules together.

use std::collections::BTreeSet;

use pointsman_rules::Program;

use crate::{OddFields, Setting};

/// The names in a program that others may read like, whose fields are taken away then. None where what becomes of odd names hangs
/// on no rule.
pub(super) fn likened<'p>(program: &'p Program, setting: &Setting) -> BTreeSet<&'p str> {
    if !matches!(setting.odd_fields, OddFields::Keep(_)) {
        return BTreeSet::new();
    }
    let named = program.named_headers().all();
    named.into_iter().filter(|name| may_be_likened(name)).collect()
}

/// Whether something stands in a name that is neither a letter nor a digit.
fn may_be_likened(name: &str) -> bool {
    !name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
