//! Sticky clients that are not where their hash says: the table of them beside the plans, shown and cleared by hand.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use pointsman_balance::{Condition, StickyEntry, StickyTable, rendezvous};
use pointsman_config::{OnDown, Plan};
use pointsman_rules::{Program, Stickiness};

use crate::hash_tables::identity;
use crate::local::LocalPool;
use crate::switch::Switch;

/// A client that stays with another server than its hash says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyClient {
    /// The hash of what it is known by.
    pub client: u64,
    /// The pool; nothing where the server has left the plan.
    pub pool: Option<Arc<str>>,
    /// The server, likewise.
    pub server: Option<Arc<str>>,
    /// How long ago it was last seen, within a sixteenth of `sticky_idle_ms_max`.
    pub idle_s: u32,
}

impl Switch {
    /// Every sticky client that is remembered because it is not where its hash says.
    pub fn sticky_clients(&self) -> Vec<StickyClient> {
        let now_s = seconds(self.now_us());
        let table = self.shared.exceptions.get();
        let entries = table.into_iter().flat_map(|table| table.entries(now_s));
        let names = self.server_numbers();
        let named = entries.map(|entry| StickyClient {
            client: entry.client,
            pool: names
                .iter()
                .find(|(number, _, _)| *number == entry.server)
                .map(|(_, pool, _)| pool.clone()),
            server: names
                .iter()
                .find(|(number, _, _)| *number == entry.server)
                .map(|(_, _, name)| name.clone()),
            idle_s: now_s.saturating_sub(entry.used_s),
        });
        named.collect()
    }

    /// How many they are.
    pub fn sticky_clients_count(&self) -> usize {
        let now_s = seconds(self.now_us());
        self.shared.exceptions.get().map_or(0, |table| table.entries(now_s).count())
    }

    /// How many of them stay with each server: by pool and name.
    pub(crate) fn sticky_clients_by_server(&self) -> HashMap<(Arc<str>, Arc<str>), usize> {
        let now_s = seconds(self.now_us());
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for entry in self.shared.exceptions.get().into_iter().flat_map(|table| table.entries(now_s)) {
            *counts.entry(entry.server).or_default() += 1;
        }
        let named = self
            .server_numbers()
            .into_iter()
            .filter_map(|(number, pool, server)| counts.get(&number).map(|count| ((pool, server), *count)));
        named.collect()
    }

    /// Forgets those that stay with servers of this pool, or with this one of them, or all: from their next request on
    /// they are where their hash says. Tells how many they were.
    pub fn forget_sticky_clients(&self, pool: Option<&str>, server: Option<&str>) -> usize {
        let names = self.server_numbers();
        let is_meant = |entry: &StickyEntry| match (pool, server) {
            (None, None) => true,
            _ => names.iter().any(|(number, of, name)| {
                *number == entry.server
                    && pool.is_none_or(|pool| **of == *pool)
                    && server.is_none_or(|server| **name == *server)
            }),
        };
        let table = self.shared.exceptions.get();
        table.map_or(0, |table| table.forget(is_meant, seconds(self.now_us())))
    }

    /// Every server of the plan, as the table knows it.
    fn server_numbers(&self) -> Vec<(u32, Arc<str>, Arc<str>)> {
        let number = |pool: &str, server: &str| number_of(identity(&self.live.sticky, pool, server));
        let pools = self.live.plan.pools.iter();
        pools
            .flat_map(|pool| pool.servers.iter().map(move |server| (pool, server)))
            .map(|(pool, server)| (number(&pool.name, &server.name), pool.name.clone(), server.name.clone()))
            .collect()
    }
}

/// Makes the table where a plan needs one, or notes what the plan says of it.
pub(crate) fn make_room(exceptions: &OnceLock<StickyTable>, plan: &Plan) {
    let idle_s_max = u32::try_from(plan.sticky_idle_ms_max / 1000).unwrap_or(u32::MAX);
    if let Some(table) = exceptions.get() {
        return table.set_idle_s_max(idle_s_max);
    }
    let programs = plan.listeners.iter().filter_map(|listener| listener.program.as_deref());
    let is_sticky = programs.flat_map(Program::stickinesses).any(|sticky| *sticky != Stickiness::None);
    if is_sticky && plan.sticky_entries_max > 0 {
        exceptions.get_or_init(|| StickyTable::new(plan.sticky_entries_max, idle_s_max));
    }
}

/// How the servers of a pool stand to a sticky client.
pub(crate) struct Now<'a> {
    /// Whether it may get to one.
    pub(crate) open: &'a dyn Fn(usize) -> bool,
    /// The same, less those that have only just come up and do not take it yet.
    pub(crate) usable: &'a dyn Fn(usize) -> bool,
    pub(crate) us: u64,
}

impl LocalPool {
    /// The server of a sticky client: the one that it was put with, otherwise the one of its hash, as long as those are
    /// usable. Who is put with another one stays there, also when its first server is back.
    pub(crate) fn stays_with(
        &self,
        client: u64,
        now: &Now<'_>,
        exceptions: Option<&StickyTable>,
    ) -> Option<usize> {
        let now_s = seconds(now.us);
        let number = |at: usize| number_of(self.servers[at].identity);
        let remembered = exceptions.and_then(|table| table.server_of(client, now_s));
        if let Some(remembered) = remembered
            && let Some(at) = (0..self.servers.len()).find(|&at| number(at) == remembered && (now.usable)(at))
        {
            return Some(at);
        }
        let home = self.of_hash(client, self.homes())?;
        let at = match self.on_down() {
            _ if (now.usable)(home) => home,
            // Nobody is refused because a server has only just come up.
            OnDown::Fail => return Some(home).filter(|&home| (now.open)(home)),
            OnDown::Repick => self.of_hash(client, now.usable)?,
        };
        if at != home || remembered.is_some() {
            exceptions.inspect(|table| table.put(client, number(at), now_s));
        }
        Some(at)
    }

    /// Whether the hash of a client that is new leads to a server which takes nobody who is, although another one does.
    pub(crate) fn is_unfit_for_new(&self, client: u64, now_us: u64) -> bool {
        let takes_new =
            |at: usize| self.servers[at].weight() > 0 && self.servers[at].standing.is_usable(now_us);
        let is_home = self.homes();
        let homes = || (0..self.servers.len()).filter(|&at| is_home(at));
        // Where none of them takes anybody, no other client is better.
        if homes().all(takes_new) || !homes().any(takes_new) {
            return false;
        }
        self.of_hash(client, &is_home).is_some_and(|home| !takes_new(home))
    }

    /// Where clients are at home: on servers that would serve if all were well, which backups do not.
    fn homes(&self) -> impl Fn(usize) -> bool {
        let levels = self.levels.as_ref();
        let all_well = levels.map(|levels| (levels, levels.open(|_| Condition::Healthy, |_| false)));
        move |server| all_well.is_none_or(|(levels, open)| levels.admits(open, server, Condition::Healthy))
    }

    fn of_hash(&self, client: u64, may: impl Fn(usize) -> bool) -> Option<usize> {
        let servers = self.servers.iter().enumerate();
        rendezvous(client, servers.map(|(at, server)| (server.identity, server.weight(), may(at))))
    }
}

/// How the table knows a server. Two of one pool share a number once in four thousand million pools of two.
fn number_of(identity: u64) -> u32 {
    identity as u32
}

fn seconds(us: u64) -> u32 {
    u32::try_from(us / 1_000_000).unwrap_or(u32::MAX)
}
