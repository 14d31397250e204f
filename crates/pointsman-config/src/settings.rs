//! What a configuration sets, key by key, so that two of them can be held against each other.
//!
//! It is read off the tables of keys, so that no key is forgotten: what is not said to have no part in what becomes of
//! requests counts. Values are compared as they are written, with what holds where a key is absent; of a file counts what
//! is in it. What rules mean is not compared here, nor is where a host name leads.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use pointsman_rules::Program;
use toml::de::{DeTable, DeValue};

use crate::keys::{Default, Key, Kind, ROOT, Table};
use crate::reading::{Digest, digest_of};
use crate::watch::WatchedFile;
use crate::{Listener, Plan};

/// Keys of the whole process that change nothing of what becomes of a request: how the process runs, ends and is looked
/// at.
const OF_THE_PROCESS_ALONE: &[&str] = &[
    "threads",
    "drain_ms_max",
    "tunnel_drain_ms_max",
    "upgrade_ms_max",
    "upgrade_idle_ms_max",
    "watch_ms",
    "upstream_idle_connections_max",
    "splice_pipes_max",
    "own_descriptor_tables",
    "log_level",
    "access_log",
    "admin",
];

/// Keys of a listener whose meaning is compared, and not their spelling.
const OF_MEANING: &[&str] = &["rules", "pool"];

/// What nobody is shown.
const SECRET: &[&str] = &["sticky_key"];

/// Whose a setting is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The whole process: a key at the top of the file.
    Process,
    /// The listener of this name.
    Listener(Box<str>),
    /// The pool of this name.
    Pool(Box<str>),
    /// The class of this name that requests are limited by.
    Limit(Box<str>),
    /// The class of this name that bandwidth is given by.
    Bandwidth(Box<str>),
}

/// A setting that is otherwise in one configuration than in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSetting {
    /// Whose it is.
    pub owner: Owner,
    /// The key, with the tables that it stands in: `limits.body_bytes_max`.
    pub key: String,
    /// As it was written, or what holds where the key is absent.
    pub old: String,
    /// As it is written now, likewise.
    pub new: String,
}

/// What a configuration sets, as far as it has a part in what becomes of requests.
#[derive(Debug, std::default::Default)]
pub struct Settings {
    /// By owner and key; those that are as they are by themselves are left out.
    set: BTreeMap<Owner, BTreeMap<String, Set>>,
    /// The pools and classes that each listener sends requests to, or measures them by.
    used: BTreeMap<Box<str>, BTreeSet<Owner>>,
}

/// A value that was written.
#[derive(Debug)]
struct Set {
    shown: String,
    /// What is in the file that it names.
    content: Option<Digest>,
    /// What holds without it.
    default: String,
}

impl Settings {
    /// Of the text that a plan was made from; what files hold is taken from those that were read for it.
    pub(crate) fn read(table: &DeTable<'_>, plan: &Plan, folder: &Path, files: &[WatchedFile]) -> Settings {
        let mut settings = Settings::default();
        let contents = files.iter().filter_map(|file| Some((file.path(), file.digest()?)));
        let mut reading = Reading { set: BTreeMap::new(), contents: contents.collect(), folder };
        let written = |key: &'static Key| table.get(key.name).map(|value| (key, value.get_ref()));
        let counts = |key: &&Key| !OF_THE_PROCESS_ALONE.contains(&key.name);
        let keys: Vec<_> = ROOT.keys().filter(counts).filter_map(written).collect();
        for (key, value) in keys.iter().filter(|(key, _)| key.kind.table().is_none()) {
            reading.key(key, value, "");
        }
        settings.set.insert(Owner::Process, reading.take());
        for (key, value) in keys {
            match (&key.kind, value) {
                (Kind::Tables(schema), DeValue::Array(list)) => {
                    for of_one in list.iter().filter_map(|one| one.get_ref().as_table()) {
                        let name = of_one.get("name").and_then(|name| name.get_ref().as_str());
                        reading.table(schema, of_one, "");
                        settings.set.insert(Owner::Listener(name.unwrap_or_default().into()), reading.take());
                    }
                }
                (Kind::NamedTables(schema), DeValue::Table(named)) => {
                    for (name, of_one) in named {
                        let Some(of_one) = of_one.get_ref().as_table() else { continue };
                        reading.table(schema, of_one, "");
                        settings.set.insert(Owner::named(key, name.get_ref()), reading.take());
                    }
                }
                _ => {}
            }
        }
        let used = plan.listeners.iter().map(|listener| ((*listener.name).into(), used_by(listener, plan)));
        settings.used = used.collect();
        settings
    }

    /// What is otherwise in the new ones: of the process, of the wanted listeners that stand in both, and of the pools and
    /// classes in both that these use.
    pub fn changed(old: &Settings, new: &Settings, is_wanted: impl Fn(&str) -> bool) -> Vec<ChangedSetting> {
        let listeners: Vec<_> =
            new.used.keys().filter(|name| is_wanted(name) && old.used.contains_key(*name)).collect();
        let used = |settings: &Settings| -> BTreeSet<Owner> {
            listeners.iter().filter_map(|name| settings.used.get(*name)).flatten().cloned().collect()
        };
        let used = &used(old) | &used(new);
        let is_asked_for = |owner: &Owner| match owner {
            Owner::Process => true,
            Owner::Listener(name) => listeners.contains(&name),
            owner => used.contains(owner) && old.set.contains_key(owner),
        };
        let owners = new.set.iter().filter(|(owner, _)| is_asked_for(owner));
        let mut changed = Vec::new();
        for (owner, now) in owners {
            let nothing = BTreeMap::new();
            let then = old.set.get(owner).unwrap_or(&nothing);
            let keys: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
            changed.extend(keys.into_iter().filter_map(|key| {
                let (old, new) = Set::told_apart(then.get(key), now.get(key))?;
                Some(ChangedSetting { owner: owner.clone(), key: key.clone(), old, new })
            }));
        }
        changed
    }
}

impl Owner {
    fn named(key: &Key, name: &str) -> Owner {
        match key.name {
            "pool" => Owner::Pool(name.into()),
            "limit" => Owner::Limit(name.into()),
            _ => Owner::Bandwidth(name.into()),
        }
    }

    /// What it is, and its name where it has one: `listener`, `shop`.
    pub fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            Owner::Process => ("process", None),
            Owner::Listener(name) => ("listener", Some(name)),
            Owner::Pool(name) => ("pool", Some(name)),
            Owner::Limit(name) => ("limit", Some(name)),
            Owner::Bandwidth(name) => ("bandwidth", Some(name)),
        }
    }
}

/// `listener shop`
impl fmt::Display for Owner {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            (what, Some(name)) => write!(to, "{what} {name}"),
            (what, None) => to.write_str(what),
        }
    }
}

/// `limits.body_bytes_max: 0 -> 1000`
impl fmt::Display for ChangedSetting {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {} -> {}", self.key, self.old, self.new)
    }
}

impl Set {
    /// How the old and the new one are shown; nothing where they mean the same.
    fn told_apart(old: Option<&Set>, new: Option<&Set>) -> Option<(String, String)> {
        match (old, new) {
            (Some(old), Some(new)) if old.content.is_some() || new.content.is_some() => {
                let same_name = if old.shown == new.shown { " with other content" } else { "" };
                (old.content != new.content).then(|| (old.shown.clone(), format!("{}{same_name}", new.shown)))
            }
            (Some(old), Some(new)) => {
                (old.shown != new.shown).then(|| (old.shown.clone(), new.shown.clone()))
            }
            (Some(old), None) => Some((old.shown.clone(), old.default.clone())),
            (None, Some(new)) => Some((new.default.clone(), new.shown.clone())),
            (None, None) => None,
        }
    }
}

/// The pools and classes that a listener's requests have to do with.
fn used_by(listener: &Listener, plan: &Plan) -> BTreeSet<Owner> {
    let by_rules = listener.targets.iter().map(|target| target.pool);
    let pools = by_rules.chain(listener.default_pool).map(|pool| Owner::Pool((*plan.pool(pool).name).into()));
    let program = listener.program.as_deref();
    let limits = program.into_iter().flat_map(Program::limit_classes).map(|class| Owner::Limit(class.into()));
    // Classes of bandwidth borrow of each other.
    let has_bandwidth = program.is_some_and(|program| program.bandwidth_classes().next().is_some());
    let shared = plan.bandwidth.iter().filter(|_| has_bandwidth);
    let shared = shared.map(|class| Owner::Bandwidth((*class.name).into()));
    pools.chain(limits).chain(shared).collect()
}

/// Tables on their way to settings.
struct Reading<'f> {
    set: BTreeMap<String, Set>,
    contents: BTreeMap<&'f Path, Digest>,
    folder: &'f Path,
}

impl Reading<'_> {
    fn take(&mut self) -> BTreeMap<String, Set> {
        std::mem::take(&mut self.set)
    }

    fn table(&mut self, schema: &Table, table: &DeTable<'_>, before: &str) {
        for key in schema.keys().filter(|key| !before.is_empty() || !OF_MEANING.contains(&key.name)) {
            if let Some(value) = table.get(key.name) {
                self.key(key, value.get_ref(), before);
            }
        }
    }

    fn key(&mut self, key: &Key, value: &DeValue<'_>, before: &str) {
        let name = format!("{before}{}", key.name);
        let default = default(key);
        let absent = || "none".to_owned();
        match (&key.kind, value) {
            (Kind::Table(schema), DeValue::Table(table)) => {
                // That it is there says something where it need say nothing.
                if schema.may_be_empty() && key.name != "limits" {
                    self.set(name.clone(), "set".to_owned(), default);
                }
                self.table(schema, table, &format!("{name}."));
            }
            (Kind::Tables(schema) | Kind::TextsOrTables(_, schema), DeValue::Array(list)) => {
                for (place, one) in list.iter().enumerate() {
                    let named = element_name(one.get_ref()).unwrap_or_else(|| (place + 1).to_string());
                    let mut element = format!("{name}[{named}]");
                    if self.set.contains_key(&element) {
                        element.push_str(&format!("[{}]", place + 1));
                    }
                    self.set(element.clone(), "set".to_owned(), absent());
                    if let DeValue::Table(table) = one.get_ref() {
                        self.table(schema, table, &format!("{element}."));
                    }
                }
            }
            _ => {
                let shown = match SECRET.contains(&key.name) {
                    true => "set".to_owned(),
                    false => shown(key, value),
                };
                if shown == default {
                    return;
                }
                let content = match (&key.kind, value) {
                    _ if SECRET.contains(&key.name) => value.as_str().map(|text| digest_of(text.as_bytes())),
                    (Kind::Text("a path"), DeValue::String(path)) => self.content(path),
                    _ => None,
                };
                self.set.insert(name, Set { shown, content, default });
            }
        }
    }

    fn set(&mut self, name: String, shown: String, default: String) {
        self.set.insert(name, Set { shown, content: None, default });
    }

    fn content(&self, path: &str) -> Option<Digest> {
        let path: PathBuf = self.folder.join(path);
        self.contents.get(path.as_path()).copied()
    }
}

/// What an element of a list is called by whoever reads of it.
fn element_name(element: &DeValue<'_>) -> Option<String> {
    let table = match element {
        DeValue::Table(table) => table,
        element => return element.as_str().map(str::to_owned),
    };
    let text = |key| table.get(key).and_then(|value: &toml::Spanned<DeValue<'_>>| value.get_ref().as_str());
    text("name").or_else(|| text("address")).or_else(|| text("service")).map(str::to_owned)
}

/// As it would be written in one way.
fn shown(key: &Key, value: &DeValue<'_>) -> String {
    match (&key.kind, value) {
        (_, DeValue::Integer(integer)) => {
            let number = u64::from_str_radix(integer.as_str(), integer.radix());
            number.map_or_else(|_| integer.to_string(), |number| number.to_string())
        }
        (_, DeValue::Boolean(flag)) => flag.to_string(),
        (Kind::OneOrMoreTexts(_), DeValue::String(text)) => format!("[{text:?}]"),
        (Kind::Word(_), DeValue::String(word)) => word.to_string(),
        (_, DeValue::String(text)) => format!("{text:?}"),
        (_, DeValue::Array(list)) => {
            let texts = list.iter().filter_map(|one| one.get_ref().as_str());
            format!("[{}]", texts.map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", "))
        }
        _ => String::new(),
    }
}

/// What holds where a key is absent.
fn default(key: &Key) -> String {
    match key.default {
        Default::Required | Default::RequiredWithout(_) => "none".to_owned(),
        // A value, or words with names in them.
        Default::Words(words) => words.replace('`', ""),
        Default::Integer(number) => number.to_string(),
        Default::Boolean(flag) => flag.to_string(),
        Default::Word(word) => word.to_owned(),
    }
}
