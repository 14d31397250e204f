//! The servers that may get a request, and how one of them is chosen.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use pointsman_balance::{Condition, Hashed, Levels, Open, rendezvous, takes_at_its_start};
use pointsman_config::{OnDown, Plan, PoolIndex, PoolLimits, ServerIndex, Target};

use crate::capacity::{Capacity, Joined, Ticket};
use crate::in_flight::InFlight;
use crate::local::{Local, LocalPool, LocalServer};
use crate::shard::Shard;
use crate::standing::Newcomer;
use crate::sticky_clients::Now;

/// The servers that may get a request, and how one of them is chosen.
pub(crate) struct Choice {
    pub(crate) pool: Rc<LocalPool>,
    pub(crate) by: By,
    /// Nothing, and no room taken for it, unless something goes wrong.
    trouble: Option<Box<Trouble>>,
    /// Whether the server that was picked last is tried out.
    pub(crate) is_trial: bool,
}

/// What is known behind a try that failed.
#[derive(Default)]
struct Trouble {
    /// These did not take the request, or are being tried out by another one.
    failed: Vec<usize>,
    /// This one has it already, and is slow: it is passed over, but nothing is wrong with it.
    asked: Option<usize>,
    /// One that was picked before the answer of another was given up for it.
    next: Option<InFlight>,
}

#[derive(Clone, Copy)]
pub(crate) enum By {
    /// The rule names the server.
    Name(ServerIndex),
    /// The same for a client that stays with it. Not with a [`Known`] in it: that takes half as much again of every request.
    NameFor { server: ServerIndex, client: u64, has_been_here: bool },
    /// The client stays with a server.
    Sticky {
        client: u64,
        /// Whether what it shows proves that it is not new.
        has_been_here: bool,
    },
    /// The pool is balanced by this hash.
    Hash(u64),
    /// The pool's algorithm.
    Turn,
}

/// A client that stays with a server.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    /// The hash of what it is known by.
    pub(crate) client: u64,
    /// Whether what it shows proves that it is not new.
    pub(crate) has_been_here: bool,
}

/// What a try costs of the further tries that its pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// Nothing: no server can have worked on the request.
    Free,
    /// One.
    One,
}

/// What came of a choice.
pub(crate) enum Picked {
    Server(InFlight),
    /// Each that it may go to has as many requests as it may have.
    Full,
    /// There is one, but the pool has no further try left.
    OverBudget,
    /// All have failed, or none may be used.
    Nobody,
}

impl Choice {
    pub(crate) fn new(local: &Local, target: Target, by: By) -> Choice {
        let by = match (target.server, by) {
            (None, by) => by,
            (Some(server), By::Sticky { client, has_been_here }) => {
                By::NameFor { server, client, has_been_here }
            }
            (Some(server), _) => By::Name(server),
        };
        Choice { pool: local.pool(target.pool).clone(), by, trouble: None, is_trial: false }
    }

    /// Whoever's turn it is in a pool.
    pub(crate) fn in_turn(local: &Local, pool: PoolIndex) -> Choice {
        Choice::new(local, Target { pool, server: None }, By::Turn)
    }

    /// The pool whose servers these are.
    pub(crate) fn pool_name(&self) -> &str {
        self.pool.name()
    }

    /// What a server of the pool may take.
    pub(crate) fn limits(&self) -> &PoolLimits {
        self.pool.limits()
    }

    /// The pool, or the one server of it, that these are; a search.
    pub(crate) fn target(&self, plan: &Plan) -> Option<Target> {
        let pool = plan.pools.iter().position(|pool| pool.name == *self.pool.name())?;
        let server = match self.by {
            By::Name(server) | By::NameFor { server, .. } => Some(server),
            By::Sticky { .. } | By::Hash(_) | By::Turn => None,
        };
        Some(Target { pool: PoolIndex(u32::try_from(pool).ok()?), server })
    }

    /// What becomes of clients whose server is down.
    pub(crate) fn on_down(&self) -> OnDown {
        self.pool.on_down()
    }

    /// Whether there is a server to try.
    pub(crate) fn has_any(&self, shard: &Shard) -> bool {
        self.pick_usable(shard).is_some()
    }

    /// The next server to try.
    pub(crate) fn pick(&mut self, cost: Cost, shard: &Shard) -> Picked {
        if let Some(next) = self.trouble.as_mut().and_then(|trouble| trouble.next.take()) {
            return Picked::Server(next);
        }
        let mut is_paid = cost == Cost::Free;
        loop {
            let picked = self.pick_usable(shard);
            if picked.is_none() && self.wanted(shard).is_empty() {
                return Picked::Nobody;
            }
            is_paid = is_paid || self.pool.retries.as_ref().is_some_and(|retries| retries.take(shard.clock));
            if !is_paid {
                return Picked::OverBudget;
            }
            let Some(index) = picked else { return Picked::Full };
            match InFlight::begin(&self.pool.servers[index]) {
                Some(in_flight) => match self.begins(in_flight, shard) {
                    Some(in_flight) => return Picked::Server(in_flight),
                    None => continue,
                },
                None if self.waits_for_its_own() => return Picked::Full,
                // It has been filled since it was looked at, and is passed over now.
                None => {}
            }
        }
    }

    /// Begins the trial of a server that is to be tried out. `None`: another request is its trial already.
    pub(crate) fn begins(&mut self, in_flight: InFlight, shard: &Shard) -> Option<InFlight> {
        match in_flight.server().try_out(shard.clock) {
            Some(is_trial) => {
                self.is_trial = is_trial;
                Some(in_flight)
            }
            None => {
                self.exclude(in_flight.server());
                None
            }
        }
    }

    /// Joins the queue of the pool. `None`: there is no server to wait for.
    pub(crate) fn join(&self, shard: &Shard) -> Option<Joined> {
        let wants = self.wanted(shard);
        (!wants.is_empty()).then(|| self.pool.queue().join(wants, self.limits().queue_max))
    }

    /// Looks again at which servers are waited for: some have come up meanwhile, or gone. False where none is left.
    pub(crate) fn looks_again(&self, ticket: &mut Ticket, shard: &Shard) -> bool {
        let wants = self.wanted(shard);
        let is_any = !wants.is_empty();
        ticket.change(wants);
        is_any
    }

    /// A request with a place that was given to it in the queue.
    pub(crate) fn in_flight_at(&self, place: &Arc<Capacity>) -> Option<InFlight> {
        let is_there = |server: &LocalServer| {
            server.bounded.as_ref().is_some_and(|bounded| Arc::ptr_eq(&bounded.capacity, place))
        };
        self.pool.servers.iter().find(|server| is_there(server)).map(InFlight::with_place)
    }

    /// The same for a try beside one that goes on.
    pub(crate) fn beside(&self) -> Choice {
        let failed = self.trouble.as_ref().map(|trouble| trouble.failed.clone());
        let trouble = failed.map(|failed| Box::new(Trouble { failed, ..Trouble::default() }));
        Choice { pool: self.pool.clone(), by: self.by, trouble, is_trial: false }
    }

    /// Whether it goes to one server, and waits for that one where it is full.
    pub(crate) fn waits_for_its_own(&self) -> bool {
        matches!(self.by, By::Name(_) | By::NameFor { .. } | By::Sticky { .. })
    }

    /// The servers that it waits for where they are full.
    fn wanted(&self, shard: &Shard) -> Vec<Arc<Capacity>> {
        if !self.pool.is_bounded {
            return Vec::new();
        }
        let capacity = |index: usize| Some(self.pool.servers[index].bounded.as_ref()?.capacity.clone());
        if self.waits_for_its_own() {
            return self.pick_usable(shard).and_then(capacity).into_iter().collect();
        }
        let look = Look::new(self, shard, Full::IsLookedAt, Newcomer::New);
        (0..self.pool.servers.len()).filter(|&server| look.usable(server)).filter_map(capacity).collect()
    }

    fn pick_usable(&self, shard: &Shard) -> Option<usize> {
        let full = if self.waits_for_its_own() { Full::IsLookedAt } else { Full::IsPassedOver };
        let look = Look::new(self, shard, full, Newcomer::New);
        let usable = |server: usize| look.usable(server);
        let weight = |server: usize| if usable(server) { self.pool.servers[server].weight() } else { 0 };
        let by_score = |key| {
            let servers = self.pool.servers.iter().enumerate();
            rendezvous(key, servers.map(|(at, server)| (server.identity, server.weight(), usable(at))))
        };
        match self.by {
            By::Name(server) => Some(server.0 as usize).filter(|&server| usable(server)),
            By::NameFor { server, client, has_been_here } => {
                let (at, known) = (server.0 as usize, Known { client, has_been_here });
                self.takes_named(at, known, &look, shard).then_some(at)
            }
            By::Sticky { client, has_been_here } => {
                // Who is with a server that drains sees it as one that serves; who is not, as one that does not.
                let as_its_own = OnceCell::new();
                let of_those_with = |server: usize| match self.pool.servers[server].standing.is_draining() {
                    true => as_its_own.get_or_init(|| Look::new(self, shard, full, Newcomer::Sticky)),
                    false => &look,
                };
                let open = |server: usize| of_those_with(server).is_open(server);
                let usable = |server: usize| of_those_with(server).usable(server);
                let now = Now { open: &open, usable: &usable, us: look.now_us };
                self.pool.stays_with(client, has_been_here, &now, shard.shared.sticky_clients.get())
            }
            By::Hash(key) => {
                let server =
                    |at: usize| Hashed { identity: self.pool.servers[at].identity, weight: weight(at) };
                let in_flight = |at: usize| self.pool.servers[at].load.in_flight();
                self.pool.by_hash.pick(key, self.pool.servers.len(), server, in_flight)
            }
            // A second try takes no turn: it would hand the next client the server that failed this one.
            By::Turn if self.trouble.is_some() => by_score(shard.random()),
            By::Turn => {
                let load = |server: usize| self.pool.servers[server].bears(shard.clock);
                self.pool.picker.borrow_mut().pick(load, weight, shard.random())
            }
        }
    }

    /// Whether the server that a rule names takes a sticky client, which is noted to be with it then. One that drains takes
    /// those who are.
    fn takes_named(&self, at: usize, known: Known, look: &Look<'_>, shard: &Shard) -> bool {
        let table = shard.shared.sticky_clients.get();
        let takes = match self.pool.servers[at].standing.is_draining() {
            true => {
                self.pool.is_with_named(at, known, table, look.now_us)
                    && Look::new(self, shard, look.full, Newcomer::Sticky).usable(at)
            }
            false => look.usable(at),
        };
        if let (true, Some(table)) = (takes, table) {
            self.pool.put_named(at, known, table, look.now_us);
        }
        takes
    }

    /// Whether nobody takes the client for servers that drain, to which it is new.
    pub(crate) fn is_turned_away(&self, shard: &Shard) -> bool {
        let mut servers = self.pool.servers.iter().enumerate();
        let is_meant = |at: usize| match self.by {
            By::Name(named) | By::NameFor { server: named, .. } => named.0 as usize == at,
            By::Sticky { .. } | By::Hash(_) | By::Turn => true,
        };
        servers.any(|(at, server)| is_meant(at) && server.standing.is_draining()) && !self.has_any(shard)
    }

    /// Picks the server that will be tried next, behind one that has failed. Says whether there is any.
    pub(crate) fn pick_another(&mut self, failed: &LocalServer, cost: Cost, shard: &Shard) -> Picked {
        self.exclude(failed);
        self.pick(cost, shard)
    }

    /// Keeps one that was picked for the next time that one is asked for.
    pub(crate) fn keep(&mut self, next: InFlight) {
        self.trouble.get_or_insert_default().next = Some(next);
    }

    fn has_failed(&self, server: usize) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.failed.contains(&server))
    }

    fn has_been_asked(&self, server: usize) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.asked == Some(server))
    }

    /// Not that one again: it did not take the request.
    pub(crate) fn exclude(&mut self, failed: &LocalServer) {
        if let Some(at) = self.place_of(failed) {
            self.trouble.get_or_insert_default().failed.push(at);
        }
    }

    /// Not that one, which has the request already. It does not count as failed: backups are no more asked than before.
    pub(crate) fn pass_over(&mut self, asked: &LocalServer) {
        if let Some(at) = self.place_of(asked) {
            self.trouble.get_or_insert_default().asked = Some(at);
        }
    }

    fn place_of(&self, wanted: &LocalServer) -> Option<usize> {
        self.pool.servers.iter().position(|server| server.id == wanted.id)
    }
}

/// What becomes of a server that has as many requests as it may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Full {
    /// Others are looked at.
    IsPassedOver,
    /// It is looked at as if it had fewer.
    IsLookedAt,
}

/// How the servers of a pool are to a request, at one moment.
struct Look<'a> {
    choice: &'a Choice,
    full: Full,
    who: Newcomer,
    now_us: u64,
    levels: Option<(&'a Levels, Open)>,
    /// What decides whether a server that has only just come up takes it; where those are spared.
    draw: Option<u64>,
}

impl<'a> Look<'a> {
    fn new(choice: &'a Choice, shard: &Shard, full: Full, who: Newcomer) -> Look<'a> {
        let draw = match choice.by {
            _ if choice.pool.slow_start_us == 0 => None,
            By::Name(_) | By::NameFor { .. } => None,
            // The same for a client each time, so that it moves once.
            By::Sticky { client: key, .. } | By::Hash(key) => Some(key),
            By::Turn => Some(shard.random()),
        };
        let now_us = shard.clock.round_us();
        let mut look = Look { choice, full, who, now_us, levels: None, draw };
        // A server that a rule names is asked whatever its level.
        if let Some(levels) =
            choice.pool.levels.as_ref().filter(|_| !matches!(choice.by, By::Name(_) | By::NameFor { .. }))
        {
            let open = levels.open(|at| look.condition(at), |at| choice.has_failed(at));
            look.levels = Some((levels, open));
            // The other zones take what the own one has no room for.
            if open == Open::Zone && !choice.waits_for_its_own() && !look.has_any() {
                look.levels = Some((levels, Open::Primaries));
            }
        }
        // Somebody has to serve, where all have only just come up.
        if look.draw.is_some() && !look.has_any() {
            look.draw = None;
        }
        look
    }

    fn has_any(&self) -> bool {
        (0..self.choice.pool.servers.len()).any(|at| self.usable(at))
    }

    fn condition(&self, server: usize) -> Condition {
        self.choice.pool.servers[server].condition(self.who, self.now_us)
    }

    /// Whether it may get the request.
    fn is_open(&self, server: usize) -> bool {
        let condition = self.condition(server);
        let is_admitted = match self.levels {
            None => condition == Condition::Healthy,
            Some((levels, open)) => levels.admits(open, server, condition),
        };
        let is_passed_over = || self.full == Full::IsPassedOver && self.choice.pool.servers[server].is_full();
        let has_tried = self.choice.has_failed(server) || self.choice.has_been_asked(server);
        is_admitted && !has_tried && !is_passed_over()
    }

    /// The same, less those that have only just come up and do not take it yet.
    fn usable(&self, server: usize) -> bool {
        let LocalPool { servers, slow_start_us, .. } = &*self.choice.pool;
        let takes = |draw| takes_at_its_start(servers[server].up_us(self.now_us), *slow_start_us, draw);
        self.is_open(server) && self.draw.is_none_or(takes)
    }
}
