//! The servers of the live plan, as one looks at them from outside: how they stand, what they do, and who leaves.

use std::collections::HashMap;
use std::sync::Arc;

use pointsman_telemetry::{ServerNow, StandingNow};

use crate::history::{ServerChange, ServerState};
use crate::live::{Live, LiveServer};
use crate::standing::{Admission, Health, Standing};
use crate::switch::Switch;

/// A server of the live plan, as it is now.
#[derive(Clone, Debug)]
pub struct ServerShown {
    /// How it is, in a word.
    pub state: ServerState,
    /// Since when, in microseconds since the switch began.
    pub since_us: u64,
    /// What was set by hand.
    pub admission: Admission,
    /// What probes say.
    pub health: Health,
    /// The last that was heard of it, oldest first.
    pub changes: Vec<ServerChange>,
    /// Since when it was how before the oldest of them, in microseconds since the switch began.
    pub before: (u64, ServerState),
    /// Requests on their way to it.
    pub in_flight: u64,
    /// Connections to it that are kept for later.
    pub idle_connections: u64,
    /// Requests that it was the last to get.
    pub requests: u64,
    /// Attempts that failed there.
    pub failures: u64,
    /// How often it was ejected.
    pub ejections: u64,
    /// Sticky clients that stay with it although their hash says another one.
    pub sticky_exceptions: usize,
}

/// The same in little, for those who look again and again.
#[derive(Clone, Copy, Debug)]
pub struct ServerGlance {
    /// How it is, in a word.
    pub state: ServerState,
    /// Requests on their way to it.
    pub in_flight: u64,
    /// Attempts that failed there.
    pub failures: u64,
}

/// A server that is in the plan no more, and has not ended all that it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// The pool.
    pub pool: String,
    /// The server.
    pub server: String,
    /// Requests on their way to it.
    pub in_flight: u64,
}

/// What was set of a server by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByHand {
    /// The pool.
    pub pool: String,
    /// The server.
    pub server: String,
    /// Not that it is enabled, which every server is of itself.
    pub admission: Admission,
}

impl Switch {
    /// How a server of the live plan stands, by pool and name: to look at, and to change.
    pub fn server(&self, pool: &str, server: &str) -> Option<&Arc<Standing>> {
        let (_, servers) = self.live.pools().find(|(plan, _)| *plan.name == *pool)?;
        servers.iter().find(|live| live.metrics.name() == server).map(|live| &live.standing)
    }

    /// All that was set by hand, for a process that takes the place of this one.
    pub fn by_hand(&self) -> Vec<ByHand> {
        let servers = self.live.pools().flat_map(|(_, servers)| servers);
        let set = servers.filter(|server| server.standing.admission() != Admission::Enabled);
        set.map(|server| ByHand {
            pool: server.metrics.pool().to_owned(),
            server: server.metrics.name().to_owned(),
            admission: server.standing.admission(),
        })
        .collect()
    }

    /// Every server of the live plan, by pool and name.
    pub fn servers_shown(&self) -> HashMap<(Arc<str>, Arc<str>), ServerShown> {
        let sticky = self.sticky_exceptions_by_server();
        let in_flight = self.in_flight_by_server();
        let mut shown = HashMap::new();
        for (pool, servers) in self.live.pools() {
            for (server, live) in pool.servers.iter().zip(servers) {
                let key = (pool.name.clone(), server.name.clone());
                let in_flight = in_flight.get(&(&*key.0, &*key.1)).copied().unwrap_or_default();
                let sticky = sticky.get(&key).copied().unwrap_or_default();
                shown.insert(key, self::shown(live, in_flight, sticky));
            }
        }
        shown
    }

    /// The same in little: of none of them all sticky clients are looked at.
    pub fn servers_at_a_glance(&self) -> HashMap<(Arc<str>, Arc<str>), ServerGlance> {
        let in_flight = self.in_flight_by_server();
        let servers = self.live.pools().flat_map(|(pool, servers)| {
            pool.servers.iter().zip(servers).map(|(server, live)| (&pool.name, &server.name, live))
        });
        let glance = |live: &LiveServer, in_flight| ServerGlance {
            state: live.standing.state(),
            in_flight,
            failures: live.metrics.failures(),
        };
        servers
            .map(|(pool, server, live)| {
                let in_flight = in_flight.get(&(&**pool, &**server)).copied().unwrap_or_default();
                ((pool.clone(), server.clone()), glance(live, in_flight))
            })
            .collect()
    }

    /// Servers that the live plan names no more, with requests still on their way to them.
    pub fn leaving(&self) -> Vec<Leaving> {
        let leaving = self.in_flight_by_server().into_iter().filter(|((pool, server), in_flight)| {
            *in_flight > 0 && self.with_plan(|plan| plan.server_named(pool, server).is_none())
        });
        let mut leaving: Vec<_> = leaving
            .map(|((pool, server), in_flight)| Leaving {
                pool: pool.to_owned(),
                server: server.to_owned(),
                in_flight,
            })
            .collect();
        leaving.sort_by(|a, b| (&a.pool, &a.server).cmp(&(&b.pool, &b.server)));
        leaving
    }

    /// What the metrics show of a server beside what was counted, by pool and name.
    pub fn server_now(&self, pool: &str, server: &str) -> Option<ServerNow> {
        let in_flight = self.in_flight(pool, server)?;
        let standing = self.server(pool, server).map(|standing| StandingNow {
            is_up: matches!(standing.health(), Health::Unknown | Health::Up),
            is_ejected: !standing.breaker().is_closed(),
            ejections: standing.ejections(),
            admission: standing.admission().name(),
            probes: standing.probes().all().collect(),
        });
        Some(ServerNow { in_flight, standing })
    }

    /// Requests on their way to a server, by pool and name.
    pub fn in_flight(&self, pool: &str, server: &str) -> Option<u64> {
        let known = self.registry.servers();
        let matching = known.filter(|server_known| {
            server_known.metrics.pool() == pool && server_known.metrics.name() == server
        });
        matching.map(|server| u64::from(server.load.in_flight())).reduce(|sum, more| sum + more)
    }

    fn in_flight_by_server(&self) -> HashMap<(&str, &str), u64> {
        let mut sums: HashMap<(&str, &str), u64> = HashMap::new();
        for server in self.registry.servers() {
            let key = (server.metrics.pool(), server.metrics.name());
            *sums.entry(key).or_default() += u64::from(server.load.in_flight());
        }
        sums
    }
}

impl ByHand {
    /// Sets it again, where the server is still there.
    pub(crate) fn set(&self, live: &Live) {
        let pools = live.pools().filter(|(pool, _)| *pool.name == *self.pool);
        for server in
            pools.flat_map(|(_, servers)| servers).filter(|known| known.metrics.name() == self.server)
        {
            server.standing.set_admission(self.admission, "set before the upgrade", 0);
        }
    }
}

fn shown(live: &LiveServer, in_flight: u64, sticky_exceptions: usize) -> ServerShown {
    let standing = &live.standing;
    let history = standing.history();
    ServerShown {
        state: standing.state(),
        since_us: history.since_us,
        admission: standing.admission(),
        health: standing.health(),
        changes: history.changes.into(),
        before: history.before,
        in_flight,
        idle_connections: live.metrics.idle_connections(),
        requests: live.metrics.requests(),
        failures: live.metrics.failures(),
        ejections: standing.ejections(),
        sticky_exceptions,
    }
}
