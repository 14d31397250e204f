//! Clients that stay with a target, whatever later rules say: the order of the papers, `sticky_scope = "listener"`.
//!
//! What is remembered is the target. Inside it a client's server is found as that of any other sticky client.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use pointsman_balance::{Kept, StickyHash, StickyTable, Whereabouts, sticky_number};
use pointsman_config::{Listener, OnDown, Plan, PoolIndex, ServerIndex, StickyScope, Target};
use pointsman_rules::{Program, Stickiness};

use crate::choice::Choice;
use crate::hash_tables::identity;
use crate::pick::{Fork, KnownBy, SPLIT_SALT};
use crate::sticky_clients::seconds;

/// Begins the salts of what clients of a listener are known by; no name of a pool begins so.
const SALT: &[u8] = b"\0listener\0";

/// One of the things that the clients of a listener are known by.
pub(crate) struct KeptBy {
    pub(crate) sticky: Stickiness,
    /// Keeps apart what is told by different things, and at different listeners.
    salt: Arc<[u8]>,
}

impl KeptBy {
    /// All that the rules of a listener name, in their order; nothing where its clients stay with no target.
    pub(crate) fn of(listener: &Listener) -> Box<[KeptBy]> {
        let program = listener.program.as_deref().filter(|_| listener.sticky_scope == StickyScope::Listener);
        let mut kept: Vec<KeptBy> = Vec::new();
        for sticky in program.into_iter().flat_map(Program::stickinesses) {
            if *sticky != Stickiness::None && kept.iter().all(|known| known.sticky != *sticky) {
                let salt = [SALT, listener.name.as_bytes(), b"\0", sticky.to_string().as_bytes()].concat();
                kept.push(KeptBy { sticky: sticky.clone(), salt: salt.into() });
            }
        }
        kept.into()
    }
}

/// A target that a client is to stay with.
#[derive(Debug)]
pub(crate) struct KeptTarget {
    salt: Arc<[u8]>,
    number: u32,
}

impl KeptTarget {
    /// Notes it of a client that is known by this key.
    pub(crate) fn put(&self, hash: &StickyHash, key: &[u8], table: &StickyTable, now_us: u64) {
        let (client, now_s) = (hash.hash(&self.salt, key), seconds(now_us));
        let is_known = |kept: Kept| kept.server == self.number && !kept.is_due;
        if !table.known(client, now_s).is_some_and(is_known) {
            table.put(client, self.number, Whereabouts::Away, now_s);
        }
    }
}

/// What tells a target from all others, whatever its place in the plan.
pub(crate) fn target_identity(plan: &Plan, sticky: &StickyHash, target: Target) -> u64 {
    let pool = plan.pool(target.pool);
    match target.server {
        None => sticky.hash(SPLIT_SALT, pool.name.as_bytes()),
        Some(server) => identity(sticky, &pool.name, &pool.server(server).name),
    }
}

/// Every target of a plan by its number, where some listener keeps clients with targets. Of two that share a number none is
/// there: nobody stays with either.
pub(crate) fn targets_by_number(plan: &Plan, sticky: &StickyHash) -> HashMap<u32, Target> {
    if plan.listeners.iter().all(|listener| listener.sticky_scope == StickyScope::Target) {
        return HashMap::new();
    }
    let targets = (0..).map(PoolIndex).zip(&plan.pools).flat_map(|(pool, of)| {
        let servers = (0..of.servers.len() as u32).map(move |server| Some(ServerIndex(server)));
        servers.chain([None]).map(move |server| Target { pool, server })
    });
    let mut numbered: HashMap<u32, Option<Target>> = HashMap::new();
    for target in targets {
        let number = sticky_number(target_identity(plan, sticky, target));
        numbered.entry(number).and_modify(|known| *known = None).or_insert(Some(target));
    }
    numbered.into_iter().filter_map(|(number, target)| Some((number, target?))).collect()
}

/// Makes the table where a plan needs one, or notes what the plan says of it.
pub(crate) fn make_room(targets: &OnceLock<StickyTable>, plan: &Plan, idle_s_max: u32) {
    if let Some(table) = targets.get() {
        return table.set_idle_s_max(idle_s_max);
    }
    let is_kept = plan.listeners.iter().any(|listener| !KeptBy::of(listener).is_empty());
    if is_kept && plan.sticky_entries_max > 0 {
        targets.get_or_init(|| StickyTable::new(plan.sticky_entries_max, idle_s_max));
    }
}

impl Fork<'_> {
    /// The target that a client is with, if it is with one, and a server of it can be had. `known` says what comes of what
    /// it is known by.
    pub(crate) fn of_kept(
        &self,
        known: impl Fn(&Stickiness, &dyn Fn(KnownBy<'_>) -> Option<Choice>) -> Option<Choice>,
    ) -> Option<Choice> {
        self.keeps.iter().find_map(|by| known(&by.sticky, &|known| self.kept_by(by, known)))
    }

    fn kept_by(&self, by: &KeptBy, known: KnownBy<'_>) -> Option<Choice> {
        let (shard, live) = (self.shard, &self.local.live);
        let table = shard.shared.sticky_targets.get()?;
        let now_s = seconds(shard.clock.round_us());
        let client = live.sticky.hash(&by.salt, known.key);
        let kept = table.server_of(client, now_s)?;
        let choice = self.inside(*live.sticky_targets.get(&kept.server)?, known);
        // Who waits for its server waits. Otherwise the rules choose anew.
        if choice.on_down() == OnDown::Repick && !choice.has_any(shard) {
            return None;
        }
        if kept.is_due {
            table.put(client, kept.server, Whereabouts::Away, now_s);
        }
        Some(choice)
    }

    /// Notes that a client stays with the target of this choice, where clients of the listener do. A server that drains gets
    /// nobody so who is new.
    pub(crate) fn keep(&self, sticky: &Stickiness, key: &[u8], choice: &Choice) {
        let Some(table) = self.shard.shared.sticky_targets.get() else { return };
        let Some(kept) = self.kept_target(sticky, choice).filter(|_| !choice.is_turned_away(self.shard))
        else {
            return;
        };
        kept.put(&self.local.live.sticky, key, table, self.shard.clock.round_us());
    }

    /// The target that clients would stay with, where clients of the listener do.
    pub(crate) fn kept_target(&self, sticky: &Stickiness, choice: &Choice) -> Option<KeptTarget> {
        let by = self.keeps.iter().find(|by| by.sticky == *sticky)?;
        let live = &self.local.live;
        let target = choice.target(&live.plan)?;
        let number = sticky_number(target_identity(&live.plan, &live.sticky, target));
        Some(KeptTarget { salt: by.salt.clone(), number })
    }
}
