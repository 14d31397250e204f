//! What one thread keeps of the live plan: its reference to it, and its own pickers.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use pointsman_balance::{Algorithm, ByHash, Condition, Level, Levels, Picker};
use pointsman_config::{OnDown, Pool, PoolIndex, PoolLimits, ProxyVersion, RetryPolicy, ServerProtocol};
use pointsman_h2::ServerLimits;
use pointsman_net::Clock;
use pointsman_rules::{DecidedBy, Field};
use pointsman_telemetry::{RuleMetrics, ServerMetrics};
use pointsman_tls::Connector;
use pointsman_upstream::{IdleLimits, Owner, Place, ServerId, Sharing};

use crate::beside::Beside;
use crate::capacity::Queue;
use crate::ejection::Ejection;
use crate::hash_tables::identity;
use crate::in_flight::Bounded;
use crate::live::{Live, LiveListener};
use crate::load::OwnLoad;
use crate::memory::STREAM_UNSENT_BYTES_MAX;
use crate::pool_state::PoolState;
use crate::response_time::SharedResponseTime;
use crate::retry_budget::Retries;
use crate::shared::Current;
use crate::standing::{Admission, Newcomer, Standing};
use crate::trailers::RequestTrailers;

/// One thread's view of a generation. Sessions hold it only while they decide, and while they wait for what decides.
pub(crate) struct Local {
    pub(crate) live: Arc<Live>,
    /// What is asked beside it.
    pub(crate) beside: Option<Rc<Beside>>,
    pools: Vec<Rc<LocalPool>>,
    /// Parallel to the plan's listeners.
    rules: Vec<LocalRules>,
    /// Parallel to the plan's listeners.
    trailers: Vec<Rc<RequestTrailers>>,
}

/// The rules of a listener that have decided on this thread, parallel to all of its rules. There are none where none has.
type LocalRules = OnceCell<Box<[OnceCell<Rc<LocalRule>>]>>;

/// A rule as an exchange holds it: also after a reload has taken it out of the plan. Threads that counted who holds it
/// together would write one place for each request.
#[derive(Debug)]
pub(crate) struct LocalRule {
    pub(crate) metrics: Arc<RuleMetrics>,
}

/// A pool with this thread's place in its rotation.
pub(crate) struct LocalPool {
    plan: Pool,
    state: Arc<PoolState>,
    /// Whether some server may have only so many requests.
    pub(crate) is_bounded: bool,
    /// What the pool has of further tries; only where it has any.
    pub(crate) retries: Option<Rc<Retries>>,
    pub(crate) servers: Vec<Rc<LocalServer>>,
    pub(crate) picker: RefCell<Picker>,
    pub(crate) by_hash: ByHash,
    /// Where not all servers that are healthy are asked alike.
    pub(crate) levels: Option<Levels>,
    /// How long a server is spared after it has come up; 0: not at all.
    pub(crate) slow_start_us: u64,
}

/// A server as an exchange holds it: also after a reload has taken it out of the plan.
#[derive(Debug)]
pub(crate) struct LocalServer {
    pub(crate) id: ServerId,
    /// None while nothing is known of its name.
    pub(crate) address: Option<std::net::SocketAddr>,
    /// Plain where absent.
    pub(crate) tls: Option<Connector>,
    /// The PROXY header that its connections begin with.
    pub(crate) proxy_protocol: Option<ProxyVersion>,
    pub(crate) protocol: ServerProtocol,
    weight: u32,
    /// Tells servers apart in sticky choices; the same on every node and after every reload.
    pub(crate) identity: u64,
    pub(crate) load: OwnLoad,
    /// Only where it may have only so many requests.
    pub(crate) bounded: Option<Bounded>,
    pub(crate) standing: Arc<Standing>,
    /// Only where the pool balances by it.
    pub(crate) response_time: Option<SharedResponseTime>,
    /// Only where the pool ejects servers.
    pub(crate) ejection: Option<Rc<Ejection>>,
    pub(crate) metrics: Arc<ServerMetrics>,
    pub(crate) retry_policy: RetryPolicy,
    /// What its pool has of further tries; only where it has any.
    pub(crate) retries: Option<Rc<Retries>>,
    pub(crate) limits: PoolLimits,
}

impl Local {
    /// This thread's view of what is to be gone by. Pools that did not change keep their place in the rotation, and a
    /// candidate that stays what was counted.
    pub(crate) fn new(current: Current, thread: usize, previous: Option<&Local>) -> Local {
        let Current { live, beside } = current;
        let pools = live
            .pools()
            .enumerate()
            .map(|(index, (plan, _))| {
                let kept = previous.and_then(|previous| {
                    previous.pools.iter().find(|pool| pool.plan == *plan && same_states(pool, &live, index))
                });
                kept.cloned().unwrap_or_else(|| Rc::new(LocalPool::new(plan, &live, index, thread)))
            })
            .collect();
        let rules = live.listeners().map(|_| LocalRules::new()).collect();
        let trailers =
            live.listeners().map(|(listener, _)| Rc::new(RequestTrailers::new(listener))).collect();
        let kept = previous.and_then(|previous| previous.beside.as_ref());
        let beside = beside.map(|candidate| match kept.filter(|kept| kept.is_of(&candidate)) {
            Some(kept) => kept.clone(),
            None => Rc::new(Beside::new(candidate)),
        });
        Local { live, beside, pools, rules, trailers }
    }

    /// The rule of a listener of the plan that decided.
    pub(crate) fn rule(&self, listener: &LiveListener, by: DecidedBy<'_>) -> Rc<LocalRule> {
        let all = self.rules[listener.place]
            .get_or_init(|| listener.rules.iter().map(|_| OnceCell::new()).collect());
        let place = listener.place_of(by);
        all[place].get_or_init(|| Rc::new(LocalRule { metrics: listener.rules[place].clone() })).clone()
    }

    /// The trailers of requests to a listener of the plan.
    pub(crate) fn trailers(&self, listener: &LiveListener) -> &Rc<RequestTrailers> {
        &self.trailers[listener.place]
    }

    pub(crate) fn pool(&self, index: PoolIndex) -> &Rc<LocalPool> {
        &self.pools[index.0 as usize]
    }

    /// How long a connection to a server may be idle; `None` where the plan does not name it.
    pub(crate) fn idle_ms_max(&self, server: ServerId) -> Option<u32> {
        let mut servers = self.pools.iter().flat_map(|pool| &pool.servers);
        servers.find(|known| known.id == server).map(|known| known.limits.idle_ms_max)
    }

    pub(crate) fn names(&self, server: ServerId) -> bool {
        self.pools.iter().any(|pool| pool.servers.iter().any(|known| known.id == server))
    }
}

/// Sticky identities depend on the key, which a reload may have changed.
fn same_states(pool: &LocalPool, live: &Live, index: usize) -> bool {
    let index = PoolIndex(index as u32);
    if !Arc::ptr_eq(&pool.state, live.pool_state(index)) {
        return false;
    }
    let states = live.servers(index);
    pool.servers.iter().zip(states).all(|(local, state)| {
        local.id == state.id
            && local.identity == identity(&live.sticky, &pool.plan.name, state.metrics.name())
    })
}

/// The levels of a pool that has more than one, or looks at how many servers are healthy.
pub(crate) fn levels(plan: &Pool) -> Option<Levels> {
    let PoolLimits { zone_threshold_percent, panic_threshold_percent, .. } = plan.limits;
    let has_levels = plan.servers.iter().any(|server| server.level != Level::Local);
    (has_levels || panic_threshold_percent > 0).then(|| Levels {
        levels: plan.servers.iter().map(|server| server.level).collect(),
        zone_threshold_percent,
        panic_threshold_percent,
    })
}

impl LocalPool {
    fn new(plan: &Pool, live: &Live, index: usize, thread: usize) -> LocalPool {
        let states = live.servers(PoolIndex(index as u32));
        let by_time = plan.balancing.algorithm == Algorithm::LeastTime;
        let standings = states.iter().map(|state| state.standing.clone()).collect();
        let ejection = Ejection::of_pool(&plan.limits, standings).map(Rc::new);
        let state = live.pool_state(PoolIndex(index as u32)).clone();
        let retries = Retries::of_pool(&plan.limits, state.clone(), thread).map(Rc::new);
        let sticky = &live.sticky;
        let servers: Vec<_> = plan
            .servers
            .iter()
            .zip(states)
            .map(|(server, live)| {
                Rc::new(LocalServer {
                    id: live.id,
                    address: server.address,
                    tls: server.tls.clone(),
                    proxy_protocol: plan.proxy_protocol,
                    protocol: plan.protocol,
                    weight: server.weight,
                    identity: identity(sticky, &plan.name, &server.name),
                    load: OwnLoad::new(live.load.clone(), thread),
                    bounded: (server.connections_max > 0)
                        .then(|| Bounded { capacity: live.capacity.clone(), queue: state.queue.clone() }),
                    standing: live.standing.clone(),
                    response_time: by_time.then(|| live.response_time.clone()),
                    ejection: ejection.clone(),
                    metrics: live.metrics.clone(),
                    retry_policy: plan.retries,
                    retries: retries.clone(),
                    limits: plan.limits,
                })
            })
            .collect();
        let weights: Vec<_> = plan.servers.iter().map(|server| server.weight).collect();
        LocalPool {
            picker: RefCell::new(Picker::new(plan.balancing.algorithm, &weights, thread)),
            by_hash: ByHash {
                table: live.hash_table(PoolIndex(index as u32)).cloned(),
                load_factor: plan.balancing.hash.as_ref().and_then(|hash| hash.load_factor),
            },
            levels: levels(plan),
            slow_start_us: u64::from(plan.limits.slow_start_ms) * 1000,
            plan: plan.clone(),
            is_bounded: servers.iter().any(|server| server.bounded.is_some()),
            state,
            retries,
            servers,
        }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.plan.name
    }

    /// What a server of it may take.
    pub(crate) fn limits(&self) -> &PoolLimits {
        &self.plan.limits
    }

    /// Those who wait for a place at one of its servers.
    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.state.queue
    }

    pub(crate) fn on_down(&self) -> OnDown {
        self.plan.on_down
    }

    /// The field that it is balanced by, if it is by one.
    pub(crate) fn hash_on(&self) -> Option<&Field> {
        self.plan.balancing.hash.as_ref().map(|hash| &hash.on)
    }
}

impl LocalServer {
    /// Its weight beside the others: as configured. It has none while it is not known where it is.
    pub(crate) fn weight(&self) -> u32 {
        if self.address.is_none() { 0 } else { self.weight }
    }

    /// Whether it has as many requests as it may have.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.bounded.as_ref().is_some_and(|bounded| bounded.capacity.is_full())
    }

    /// How it is to somebody who asks for it.
    pub(crate) fn condition(&self, who: Newcomer, now_us: u64) -> Condition {
        let is_open = match self.standing.admission() {
            Admission::Enabled => true,
            Admission::Draining => who == Newcomer::Sticky,
            Admission::Disabled => false,
        };
        match () {
            () if !is_open || self.weight() == 0 => Condition::Withdrawn,
            () if self.standing.is_healthy(now_us) => Condition::Healthy,
            () => Condition::Unhealthy,
        }
    }

    /// How long it has been up.
    pub(crate) fn up_us(&self, now_us: u64) -> u64 {
        match self.standing.up_since_us() {
            0 => u64::MAX,
            since_us => now_us.saturating_sub(since_us),
        }
    }

    /// What the picker compares: the requests in flight, or what one more would cost.
    pub(crate) fn bears(&self, clock: Clock) -> u64 {
        let in_flight = self.load.in_flight();
        match &self.response_time {
            None => u64::from(in_flight),
            Some(time) => time.cost(in_flight, clock),
        }
    }

    /// Where connections to it are kept that serve this client.
    pub(crate) fn place(&self, client: Owner) -> Place {
        Place { server: self.id, owner: self.proxy_protocol.map(|_| client) }
    }

    /// How its connections are shared where it speaks HTTP/2. `keeps_idle`: whether the thread keeps any idle one.
    pub(crate) fn sharing(&self, keeps_idle: bool) -> Sharing {
        const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;
        let PoolLimits {
            http2_streams_max,
            http2_stream_window_bytes,
            head_bytes_max,
            idle_connections_max,
            ..
        } = self.limits;
        Sharing {
            streams_max: http2_streams_max,
            keeps_idle: keeps_idle && idle_connections_max > 0,
            limits: ServerLimits {
                head_bytes_max,
                stream_window_bytes: http2_stream_window_bytes,
                // A client that does not read must not hold up the others.
                connection_window_bytes: http2_streams_max
                    .saturating_mul(http2_stream_window_bytes)
                    .min(WINDOW_BYTES_MAX),
                unsent_bytes_max: STREAM_UNSENT_BYTES_MAX,
            },
        }
    }

    pub(crate) fn idle_limits(&self) -> IdleLimits {
        IdleLimits { connections_max: self.limits.idle_connections_max, idle_ms_max: self.limits.idle_ms_max }
    }

    pub(crate) fn head_limits(&self) -> pointsman_http::HeadLimits {
        pointsman_http::HeadLimits {
            head_bytes_max: self.limits.head_bytes_max as usize,
            headers_max: self.limits.headers_max as usize,
            target_bytes_max: 0,
        }
    }
}
