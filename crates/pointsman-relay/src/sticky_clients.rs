//! Sticky clients: the table of them beside the plans, shown and cleared by hand.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use pointsman_balance::{
    Condition, Kept, Level, Levels, StickyEntry, StickyHash, StickyServers, StickyTable, Whereabouts,
    rendezvous, sticky_number,
};
use pointsman_config::{OnDown, Plan, Pool, Server, ServerIndex};
use pointsman_rules::{Program, Stickiness};

use crate::choice::Known;
use crate::hash_tables::identity;
use crate::live::Live;
use crate::local::{LocalPool, LocalServer, levels};
use crate::sticky_targets;
use crate::switch::Switch;

/// A client that is remembered with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyClient {
    /// The hash of what it is known by.
    pub client: u64,
    /// The server, by name.
    pub server: Arc<str>,
    /// Whether its hash says so, too.
    pub is_home: bool,
    /// How long ago it was last seen, within a sixteenth of `sticky_idle_ms_max`.
    pub idle_s: u32,
}

/// Some of them, and where the others begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StickyPage {
    /// In the order of the table, which says nothing.
    pub clients: Vec<StickyClient>,
    /// Where to go on; nothing where these were the last.
    pub next: Option<usize>,
}

/// How many clients are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StickyCounts {
    /// With the server that their hash says, too.
    pub home: usize,
    /// With another one.
    pub away: usize,
    /// With a target, by listeners that keep them so.
    pub targets: usize,
}

impl Switch {
    /// Some of the sticky clients of a pool, or of one server of it: `max` of them at most, from a place of the table on.
    pub fn sticky_clients(&self, pool: &str, server: Option<&str>, from: usize, max: usize) -> StickyPage {
        let now_s = seconds(self.now_us());
        let names = self.server_numbers();
        let mut page = StickyPage::default();
        let entries = self.shared.sticky_clients.get().into_iter();
        for (at, entry) in entries.flat_map(|table| table.entries_from(from, now_s)) {
            let Some((of, name)) = names.get(&entry.server) else { continue };
            if *pool != **of || server.is_some_and(|server| *server != **name) {
                continue;
            }
            if page.clients.len() >= max {
                page.next = Some(at);
                break;
            }
            page.clients.push(StickyClient {
                client: entry.client,
                server: name.clone(),
                is_home: entry.whereabouts == Whereabouts::Home,
                idle_s: now_s.saturating_sub(entry.used_s),
            });
        }
        page
    }

    /// How many they are: those that are where their hash says, and those that are not.
    pub fn sticky_counts(&self) -> StickyCounts {
        let now_s = seconds(self.now_us());
        let entries = self.shared.sticky_clients.get().into_iter().flat_map(|table| table.entries(now_s));
        let targets = self.shared.sticky_targets.get().map_or(0, |table| table.entries(now_s).count());
        entries.fold(StickyCounts { targets, ..StickyCounts::default() }, |counts, entry| {
            match entry.whereabouts {
                Whereabouts::Home => StickyCounts { home: counts.home + 1, ..counts },
                Whereabouts::Away => StickyCounts { away: counts.away + 1, ..counts },
            }
        })
    }

    /// How many stay with each server although their hash says another: by pool and name.
    pub(crate) fn sticky_exceptions_by_server(&self) -> HashMap<(Arc<str>, Arc<str>), usize> {
        let now_s = seconds(self.now_us());
        let mut counts: HashMap<u32, usize> = HashMap::new();
        let entries = self.shared.sticky_clients.get().into_iter().flat_map(|table| table.entries(now_s));
        for entry in entries.filter(|entry| entry.whereabouts == Whereabouts::Away) {
            *counts.entry(entry.server).or_default() += 1;
        }
        let names = self.server_numbers().into_iter();
        names.filter_map(|(number, name)| counts.get(&number).map(|count| (name, *count))).collect()
    }

    /// Forgets those that stay with servers of a pool, with one of them, or this client: from their next request on they are
    /// where their hash says. Tells how many they were.
    pub fn forget_sticky_clients(&self, pool: &str, server: Option<&str>, client: Option<u64>) -> usize {
        let names = self.server_numbers();
        let is_with = |(of, name): &(Arc<str>, Arc<str>)| {
            **of == *pool && server.is_none_or(|server| **name == *server)
        };
        let is_meant = |entry: &StickyEntry| {
            client.is_none_or(|client| client == entry.client)
                && names.get(&entry.server).is_some_and(is_with)
        };
        let table = self.shared.sticky_clients.get();
        table.map_or(0, |table| table.forget(is_meant, seconds(self.now_us())))
    }

    /// Forgets everybody who stays with a target: from their next request on the rules say where they go. Tells how many they
    /// were.
    pub fn forget_sticky_targets(&self) -> usize {
        let table = self.shared.sticky_targets.get();
        table.map_or(0, |table| table.forget(|_| true, seconds(self.now_us())))
    }

    /// Pool and name of every server of the plan, as the table knows it: by its two numbers.
    fn server_numbers(&self) -> HashMap<u32, (Arc<str>, Arc<str>)> {
        let pools = self.live.plan.pools.iter();
        let servers = pools.flat_map(|pool| pool.servers.iter().map(move |server| (pool, server)));
        let numbers = servers.flat_map(|(pool, server)| {
            let identity = identity(&self.live.sticky, &pool.name, &server.name);
            let names = (pool.name.clone(), server.name.clone());
            [sticky_number(identity), named_number(identity)].map(|number| (number, names.clone()))
        });
        numbers.collect()
    }
}

/// Makes the tables where a plan needs them, or notes what the plan says of them.
pub(crate) fn make_room(clients: &OnceLock<StickyTable>, targets: &OnceLock<StickyTable>, plan: &Plan) {
    let idle_s_max = u32::try_from(plan.sticky_idle_ms_max / 1000).unwrap_or(u32::MAX);
    sticky_targets::make_room(targets, plan, idle_s_max);
    if let Some(table) = clients.get() {
        return table.set_idle_s_max(idle_s_max);
    }
    let programs = plan.listeners.iter().filter_map(|listener| listener.program.as_deref());
    let is_sticky = programs.flat_map(Program::stickinesses).any(|sticky| *sticky != Stickiness::None);
    if is_sticky && plan.sticky_entries_max > 0 {
        clients.get_or_init(|| StickyTable::new(plan.sticky_entries_max, idle_s_max));
    }
}

/// What the servers of a pool are to a sticky client that asks now.
pub(crate) struct Now<'a> {
    /// Whether it may get to one that it is with.
    pub(crate) open: &'a dyn Fn(usize) -> bool,
    /// The same, less those that have only just come up and do not take it yet.
    pub(crate) usable: &'a dyn Fn(usize) -> bool,
    pub(crate) us: u64,
}

impl LocalPool {
    /// The server of a sticky client, which is remembered there.
    pub(crate) fn stays_with(
        &self,
        client: u64,
        has_been_here: bool,
        now: &Now<'_>,
        table: Option<&StickyTable>,
    ) -> Option<usize> {
        let servers = StickyServers {
            count: self.servers.len(),
            server: &|at| (self.servers[at].identity, self.servers[at].weight()),
            is_home: &homes(self.levels.as_ref()),
            is_draining: &|at| self.servers[at].standing.is_draining(),
            open: now.open,
            usable: now.usable,
            waits: self.on_down() == OnDown::Fail,
        };
        servers.choose(client, has_been_here, table, seconds(now.us))
    }

    /// Notes that a client is with one of the servers, which has given it what it is known by.
    pub(crate) fn put(&self, client: u64, server: &LocalServer, table: &StickyTable, now_us: u64) {
        let (number, now_s) = (sticky_number(server.identity), seconds(now_us));
        // Servers say it with each answer.
        let is_known = |kept: Kept| kept.server == number && !kept.is_due;
        let at = self.servers.iter().position(|known| known.identity == server.identity);
        let Some(at) = at.filter(|_| !table.known(client, now_s).is_some_and(is_known)) else { return };
        let home = self.of_hash(client, homes(self.levels.as_ref()));
        let whereabouts = if home == Some(at) { Whereabouts::Home } else { Whereabouts::Away };
        table.put(client, number, whereabouts, now_s);
    }

    /// Whether a client is with a server that a rule names for it: by that rule or another one that names it, or by those of the
    /// pool. Only the table says that, where there is one: what proves that it is not new may be of a visit to another server.
    pub(crate) fn is_with_named(
        &self,
        at: usize,
        known: Known,
        table: Option<&StickyTable>,
        now_us: u64,
    ) -> bool {
        let identity = self.servers[at].identity;
        let server_of = |client| {
            let kept: Option<Kept> = table.and_then(|table| table.server_of(client, seconds(now_us)));
            kept.map(|kept| kept.server)
        };
        server_of(named_client(known, identity)) == Some(named_number(identity))
            || server_of(known.client) == Some(sticky_number(identity))
            || known.has_been_here && table.is_none()
    }

    /// Notes that a client is with a server that a rule names. It stands apart from where the pool has it, which the rule says
    /// nothing of, and at home: who is forgotten is named the same server again.
    pub(crate) fn put_named(&self, at: usize, known: Known, table: &StickyTable, now_us: u64) {
        let identity = self.servers[at].identity;
        let (client, number) = (named_client(known, identity), named_number(identity));
        let now_s = seconds(now_us);
        let is_known = |kept: Kept| kept.server == number && !kept.is_due;
        if !table.known(client, now_s).is_some_and(is_known) {
            table.put(client, number, Whereabouts::Home, now_s);
        }
    }

    /// Whether this number is that of a server of it, or of this one.
    pub(crate) fn has_number(&self, server: Option<ServerIndex>, number: u32) -> bool {
        let is_meant = |at: usize| server.is_none_or(|server| server.0 as usize == at);
        let mut servers = self.servers.iter().enumerate();
        servers.any(|(at, server)| is_meant(at) && sticky_number(server.identity) == number)
    }

    /// Whether the hash of a client that is new leads to a server which takes nobody who is, although another one does.
    pub(crate) fn is_unfit_for_new(&self, client: u64, now_us: u64) -> bool {
        let takes_new = |at: usize| {
            let server = &self.servers[at];
            server.weight() > 0 && server.standing.is_usable(now_us) && !server.is_full()
        };
        let is_home = homes(self.levels.as_ref());
        let homes = || (0..self.servers.len()).filter(|&at| is_home(at));
        // Where none of them takes anybody, no other client is better.
        if homes().all(takes_new) || !homes().any(takes_new) {
            return false;
        }
        self.of_hash(client, is_home).is_some_and(|home| !takes_new(home))
    }

    fn of_hash(&self, client: u64, may: impl Fn(usize) -> bool) -> Option<usize> {
        let servers = self.servers.iter().enumerate();
        rendezvous(client, servers.map(|(at, server)| (server.identity, server.weight(), may(at))))
    }
}

/// How the table knows a server as one that rules name: by the half of its identity that is not its other number.
fn named_number(identity: u64) -> u32 {
    (identity >> 32) as u32
}

/// How it knows a client there. Both are keyed hashes, so that this one is none of a pool's.
fn named_client(known: Known, identity: u64) -> u64 {
    known.client ^ identity
}

/// Where clients are at home: on servers that would serve if all were well, which backups do not.
fn homes(levels: Option<&Levels>) -> impl Fn(usize) -> bool {
    let all_well = levels.map(|levels| (levels, levels.open(|_| Condition::Healthy, |_| false)));
    move |server| all_well.is_none_or(|(levels, open)| levels.admits(open, server, Condition::Healthy))
}

/// Looks for all sticky clients again where a new plan has other servers: who was with one that is still there stays with
/// it, and is kept as one who is not at home any more.
pub(crate) fn look_again(table: &StickyTable, before: &Live, now: &Live, now_us: u64) {
    let homes = Homes::of(now);
    if homes.members != members(before) {
        table.look_again(seconds(now_us), |entry| homes.whereabouts(entry));
    }
}

/// What says of the servers of a pool where clients are at home: the identity of each, its weight and its level.
type Members = Vec<(u64, u32, Level)>;

/// Those of all pools of a plan.
fn members(live: &Live) -> Vec<Members> {
    let member = |pool: &Pool, server: &Server| {
        (identity(&live.sticky, &pool.name, &server.name), server.weight, server.level)
    };
    let pools = live.plan.pools.iter();
    pools.map(|pool| pool.servers.iter().map(|server| member(pool, server)).collect()).collect()
}

/// Where the clients of a plan are at home.
pub(crate) struct Homes {
    members: Vec<Members>,
    levels: Vec<Option<Levels>>,
    /// Pool and position of each server, by its number.
    places: HashMap<u32, (usize, usize)>,
    /// Those whom rules have named a server are at home there.
    named: HashSet<u32>,
}

impl Homes {
    pub(crate) fn of(live: &Live) -> Homes {
        let members = members(live);
        let places = members.iter().enumerate().flat_map(|(pool, servers)| {
            servers.iter().enumerate().map(move |(at, (identity, ..))| (sticky_number(*identity), (pool, at)))
        });
        let places = places.collect();
        let named = members.iter().flatten().map(|(identity, ..)| named_number(*identity)).collect();
        Homes { levels: live.plan.pools.iter().map(levels).collect(), members, places, named }
    }

    /// What the server of a client is to it; nothing where the plan does not name that server.
    pub(crate) fn whereabouts(&self, entry: &StickyEntry) -> Option<Whereabouts> {
        let Some(&(pool, at)) = self.places.get(&entry.server) else {
            return self.named.contains(&entry.server).then_some(Whereabouts::Home);
        };
        let servers = StickyServers {
            count: self.members[pool].len(),
            server: &|at| {
                let (identity, weight, _) = self.members[pool][at];
                (identity, weight)
            },
            is_home: &homes(self.levels[pool].as_ref()),
            is_draining: &|_| false,
            open: &|_| true,
            usable: &|_| true,
            waits: false,
        };
        Some(servers.whereabouts(entry.client, at))
    }

    /// What two plans have in common where clients are at home in the one as in the other.
    pub(crate) fn digest(&self, sticky: &StickyHash) -> u64 {
        let servers = self.members.iter().flat_map(|pool| {
            let bytes = |(identity, weight, level): &(u64, u32, Level)| {
                let parts = (identity.to_le_bytes(), weight.to_le_bytes(), level.number().to_le_bytes());
                [&parts.0[..], &parts.1, &parts.2].concat()
            };
            pool.iter().flat_map(bytes).chain(*b"/")
        });
        sticky.hash(b"\0homes", &servers.collect::<Vec<_>>())
    }
}

/// Seconds behind the start that entries speak of begin so late that who was seen by a process before this one has been seen
/// after their beginning: two years.
const BEFORE_START_S: u32 = 1 << 26;

pub(crate) fn seconds(us: u64) -> u32 {
    u32::try_from(us / 1_000_000).unwrap_or(u32::MAX).saturating_add(BEFORE_START_S)
}
