//! Targets by name: a pool, one server of it, or a server that only one pool has.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::ast::Name;
use crate::parser::shorten;
use crate::{List, TargetId, TargetName};

use super::Compiler;

/// The targets that rules can name, the classes and the lists.
#[derive(Clone, Debug)]
pub enum Targets {
    /// A bare rules file, without a configuration: every name is taken as given.
    Any,
    /// What a configuration has.
    Known {
        /// Its pools, each with the names of its servers.
        pools: BTreeMap<Box<str>, Vec<Box<str>>>,
        /// Its classes of `limitRate`.
        limits: BTreeSet<Box<str>>,
        /// Its classes of `bandwidth`.
        bandwidths: BTreeSet<Box<str>>,
        /// Its lists.
        lists: BTreeMap<Box<str>, Arc<List>>,
    },
}

impl Targets {
    /// The table of these pools and the names of their servers; there are no classes.
    pub fn known<P, S>(pools: impl IntoIterator<Item = (P, Vec<S>)>) -> Targets
    where
        P: Into<Box<str>>,
        S: Into<Box<str>>,
    {
        let servers = |names: Vec<S>| names.into_iter().map(Into::into).collect();
        let pools = pools.into_iter().map(|(pool, names)| (pool.into(), servers(names))).collect();
        Targets::Known { pools, limits: BTreeSet::new(), bandwidths: BTreeSet::new(), lists: BTreeMap::new() }
    }

    /// The same with these classes of `limitRate`. Where every name is taken as given, these are, too.
    #[must_use]
    pub fn with_limits<'n>(mut self, classes: impl IntoIterator<Item = &'n str>) -> Targets {
        if let Targets::Known { limits, .. } = &mut self {
            *limits = classes.into_iter().map(Box::from).collect();
        }
        self
    }

    /// The same with these classes of `bandwidth`.
    #[must_use]
    pub fn with_bandwidths<'n>(mut self, classes: impl IntoIterator<Item = &'n str>) -> Targets {
        if let Targets::Known { bandwidths, .. } = &mut self {
            *bandwidths = classes.into_iter().map(Box::from).collect();
        }
        self
    }

    /// The same with these lists. Where every name is taken as given, no list is known: what is in one is part of what
    /// a rule means.
    #[must_use]
    pub fn with_lists(mut self, all: impl IntoIterator<Item = Arc<List>>) -> Targets {
        if let Targets::Known { lists, .. } = &mut self {
            *lists = all.into_iter().map(|list| (list.name.clone(), list)).collect();
        }
        self
    }
}

/// The targets there are, and those that rules have named so far.
pub(super) struct TargetTable<'a> {
    known: Option<&'a BTreeMap<Box<str>, Vec<Box<str>>>>,
    limits: Option<&'a BTreeSet<Box<str>>>,
    bandwidths: Option<&'a BTreeSet<Box<str>>>,
    lists: Option<&'a BTreeMap<Box<str>, Arc<List>>>,
    pools_of_server: HashMap<&'a str, Vec<&'a str>>,
    named: Vec<TargetName>,
    ids: HashMap<TargetName, TargetId>,
    idle: HashMap<TargetName, Idle>,
}

/// How rules name a target without sending requests there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Idle {
    /// `mirror`: copies go there.
    Copies,
    /// It has a share of 0 % in a `split`.
    NoShare,
}

/// Why a name is no target.
enum NoTarget {
    Unknown,
    NoServer { pool: Box<str>, server: Box<str> },
    Ambiguous(Vec<String>),
}

impl<'a> TargetTable<'a> {
    pub(super) fn new(targets: &'a Targets) -> Self {
        let (known, limits, bandwidths, lists) = match targets {
            Targets::Any => (None, None, None, None),
            Targets::Known { pools, limits, bandwidths, lists } => {
                (Some(pools), Some(limits), Some(bandwidths), Some(lists))
            }
        };
        let mut pools_of_server: HashMap<&str, Vec<&str>> = HashMap::new();
        for (pool, servers) in known.into_iter().flatten() {
            for server in servers {
                let pools = pools_of_server.entry(server).or_default();
                // A name twice in one pool is for the configuration to refuse.
                if pools.last() != Some(&&**pool) {
                    pools.push(pool);
                }
            }
        }
        let (named, ids) = (Vec::new(), HashMap::new());
        let idle = HashMap::new();
        TargetTable { known, limits, bandwidths, lists, pools_of_server, named, ids, idle }
    }

    /// Notes that rules name a target without sending requests there.
    pub(super) fn add_idle(&mut self, target: TargetName, idle: Idle) {
        let noted = self.idle.entry(target).or_insert(idle);
        *noted = idle.min(*noted);
    }

    /// What rules name without sending requests there; some of them may do so elsewhere.
    pub(super) fn take_idle(&mut self) -> HashMap<TargetName, Idle> {
        std::mem::take(&mut self.idle)
    }

    /// How rules name a destination, or a part of it, or its pool, to which none sends requests.
    pub(super) fn idle(&self, destination: &TargetName) -> Option<Idle> {
        let of_pool = self.idle.iter().filter(|(target, _)| target.pool == destination.pool);
        let is_part = |target: &TargetName| match (&target.server, &destination.server) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        of_pool.filter(|(target, _)| is_part(target)).map(|(_, idle)| *idle).min()
    }

    /// Whether the rules stand without a configuration.
    pub(super) fn are_any(&self) -> bool {
        self.known.is_none()
    }

    /// The classes of `limitRate`; nothing where every name is one.
    pub(super) fn limits(&self) -> Option<&'a BTreeSet<Box<str>>> {
        self.limits
    }

    /// The classes of `bandwidth`; nothing where every name is one.
    pub(super) fn bandwidths(&self) -> Option<&'a BTreeSet<Box<str>>> {
        self.bandwidths
    }

    /// The lists; nothing without a configuration.
    pub(super) fn lists(&self) -> Option<&'a BTreeMap<Box<str>, Arc<List>>> {
        self.lists
    }

    /// Has them named already, in this order.
    pub(super) fn know(&mut self, named: &[TargetName], idle: &HashMap<TargetName, Idle>) {
        for target in named {
            self.id(target.clone());
        }
        self.idle.clone_from(idle);
    }

    /// The target that a name means, if some rule named it, too.
    pub(super) fn named(&self, name: &str) -> Option<TargetId> {
        self.ids.get(&self.resolve(name).ok()?).copied()
    }

    /// What a name means, if it means a target.
    pub(super) fn known_name(&self, name: &str) -> Option<TargetName> {
        self.resolve(name).ok()
    }

    /// Whether a name means a target at all.
    pub(super) fn is_target(&self, name: &str) -> bool {
        self.resolve(name).is_ok()
    }

    /// The targets that rules name.
    pub(super) fn ids(&self) -> impl Iterator<Item = (&TargetName, TargetId)> {
        self.ids.iter().map(|(target, id)| (target, *id))
    }

    /// What rules send to.
    pub(super) fn names_in_rules(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|target| target.server.as_deref().unwrap_or(&target.pool))
    }

    pub(super) fn take_named(&mut self) -> Vec<TargetName> {
        std::mem::take(&mut self.named)
    }

    pub(super) fn id(&mut self, target: TargetName) -> TargetId {
        if let Some(id) = self.ids.get(&target) {
            return *id;
        }
        let id = TargetId(u32::try_from(self.named.len()).unwrap_or(u32::MAX));
        self.named.push(target.clone());
        self.ids.insert(target, id);
        id
    }

    fn resolve(&self, name: &str) -> Result<TargetName, NoTarget> {
        let Some(known) = self.known else {
            return Ok(match name.split_once('.') {
                Some((pool, server)) if !pool.is_empty() && !server.is_empty() => one_server(pool, server),
                _ => TargetName { pool: name.into(), server: None },
            });
        };
        if known.contains_key(name) {
            return Ok(TargetName { pool: name.into(), server: None });
        }
        match self.pools_of_server.get(name).map(Vec::as_slice) {
            Some([pool]) => return Ok(one_server(pool, name)),
            Some(pools) => {
                return Err(NoTarget::Ambiguous(
                    pools.iter().map(|pool| format!("`{pool}.{name}`")).collect(),
                ));
            }
            None => {}
        }
        // Names may hold dots themselves.
        let mut why = NoTarget::Unknown;
        for (dot, _) in name.match_indices('.') {
            let (pool, server) = (&name[..dot], &name[dot + 1..]);
            match known.get(pool) {
                Some(servers) if servers.iter().any(|known| &**known == server) => {
                    return Ok(one_server(pool, server));
                }
                Some(_) => why = NoTarget::NoServer { pool: pool.into(), server: server.into() },
                None => {}
            }
        }
        Err(why)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let pools = self.known.into_iter().flat_map(|pools| pools.keys().map(|pool| &**pool));
        pools.chain(self.pools_of_server.keys().copied())
    }

    fn servers(&self, pool: &str) -> &[Box<str>] {
        self.known.and_then(|pools| pools.get(pool)).map_or(&[], Vec::as_slice)
    }
}

impl Compiler<'_> {
    /// The target that a name means.
    pub(super) fn target(&mut self, name: &Name) -> Option<TargetId> {
        self.target_name(name).map(|target| self.targets.id(target))
    }

    /// The same without adding it to those that the rules name.
    pub(super) fn target_name(&mut self, name: &Name) -> Option<TargetName> {
        let shown = shorten(&name.text);
        let (message, help) = match self.targets.resolve(&name.text) {
            Ok(target) => {
                if let (None, Some([pool, ..])) =
                    (&target.server, self.targets.pools_of_server.get(&*name.text).map(Vec::as_slice))
                {
                    let help = format!("the server is written `{pool}.{shown}`");
                    self.warn(
                        name.span,
                        format!("`{shown}` is a pool and a server; the pool is meant"),
                        help,
                    );
                }
                return Some(target);
            }
            Err(NoTarget::Unknown) => {
                let help = match self.nearest(&name.text, self.targets.names()) {
                    Some(known) => format!("did you mean `{known}`?"),
                    None => "a target is a pool of the configuration, `pool.server`, or a server with a name"
                        .to_owned(),
                };
                (format!("unknown target `{shown}`"), help)
            }
            Err(NoTarget::NoServer { pool, server }) => {
                let servers = self.targets.servers(&pool);
                let help = match self.nearest(&server, servers.iter().map(|server| &**server)) {
                    Some(known) => format!("did you mean `{pool}.{known}`?"),
                    None => "only a server that the configuration gives a name can be a target".to_owned(),
                };
                (format!("the pool `{pool}` has no server `{}`", shorten(&server)), help)
            }
            Err(NoTarget::Ambiguous(spellings)) => (
                format!("several pools have a server `{shown}`"),
                format!("write {}", spellings.join(" or ")),
            ),
        };
        self.error(name.span, message, help);
        None
    }
}

fn one_server(pool: &str, server: &str) -> TargetName {
    TargetName { pool: pool.into(), server: Some(server.into()) }
}
