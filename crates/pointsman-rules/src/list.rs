//! Lists that rules name: `clientip in @blocked`.
//!
//! A list is made once, where the configuration is read, and shared by every rule set that names it. A look-up does not
//! grow with the list: of networks it is a slot of a table and a row beside it, of texts one place in a table.

mod networks;
mod ranges;
mod texts;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use networks::NetworkList;
pub use texts::{LIST_TEXT_BYTES_MAX, TextList};

use crate::{Condition, Entry, Op, Program, Test, pace};

/// Lists up to this many members are looked up together with what other rules ask of the same field.
pub(crate) const INDEXED_MAX: usize = 64;

/// A list with its name.
#[derive(Clone, Debug)]
pub struct List {
    /// As rules spell it, without the `@`.
    pub name: Box<str>,
    /// What is in it.
    pub members: Members,
}

/// What is in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// Addresses and networks.
    Networks(NetworkList),
    /// Whole texts.
    Texts(TextList),
}

/// Lists with the same members say the same, whatever they are called.
impl PartialEq for List {
    fn eq(&self, other: &List) -> bool {
        self.members == other.members
    }
}

impl Eq for List {}

impl Hash for List {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.members {
            Members::Networks(networks) => (networks.len(), networks.ranges().next()).hash(state),
            Members::Texts(texts) => (texts.len(), texts.iter().next()).hash(state),
        }
    }
}

impl Program {
    /// The lists that conditions name; one may come several times.
    #[must_use]
    pub fn lists(&self) -> Vec<&Arc<List>> {
        let mut lists = Vec::new();
        for rule in pace::each(self.rules.iter().chain(&self.fallback)) {
            rule.condition.each_list(&mut |list| lists.push(list));
        }
        lists
    }
}

impl Condition {
    fn each_list<'c>(&'c self, see: &mut impl FnMut(&'c Arc<List>)) {
        self.each_test(&mut |test| test.lists().for_each(&mut *see));
    }
}

impl Test {
    /// The lists that its value may be in.
    pub fn lists(&self) -> impl Iterator<Item = &Arc<List>> {
        let entries = if let Op::In(entries) = &self.op { entries.as_slice() } else { &[] };
        entries.iter().filter_map(|entry| if let Entry::List(list) = entry { Some(list) } else { None })
    }
}
