//! The registry: handles by name, and the page that Prometheus reads.

mod of_limits;
mod of_listener;
mod of_outcomes;
mod of_rule;
mod of_server;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::event::{Mirrored, Refusal};
use crate::exposition::{Exposition, Kind};
use crate::family::{
    BandwidthMetrics, LimitMetrics, ListenerMetrics, ListenerSlot, RuleMetrics, ServerMetrics,
};
use crate::hits::Hits;
pub use crate::metrics::of_limits::BandwidthCounts;
use crate::metrics::of_limits::{render_bandwidth, render_limits};
use crate::metrics::of_listener::render_handshakes;
pub use crate::metrics::of_listener::{HandshakeCounts, ListenerCounts};
use crate::metrics::of_outcomes::{Row, render_durations, render_statuses};
pub use crate::metrics::of_rule::{Durations, OTHER_RULES, OutcomeCounts, RuleCounts, duration_bounds_us};
use crate::metrics::of_rule::{RulePlaces, render_rules};
use crate::metrics::of_server::render_servers;
use crate::outliers::{Outliers, Shelf};
use crate::queue::{ACCESS_LOG_FAMILIES, LogCounters, SPAN_FAMILIES};
use crate::recorder::{Recorder, Sinks};
use crate::slots::Counter;
use crate::timestamp::WallBase;

/// All counters of the process.
#[derive(Debug)]
pub struct Metrics {
    version: Box<str>,
    started_us: u64,
    /// Which slots have a recorder.
    taken: Mutex<Vec<bool>>,
    listeners: Named<ListenerMetrics>,
    rules: Named<RuleMetrics>,
    rule_hits: Arc<Hits>,
    pub(crate) rule_places: RulePlaces,
    servers: Named<ServerMetrics>,
    limits: Named<LimitMetrics>,
    bandwidth: Named<BandwidthMetrics>,
    log: Arc<LogCounters>,
    spans: Arc<LogCounters>,
    /// Where threads put what stands out, by their numbers.
    shelves: Mutex<Vec<Arc<Shelf>>>,
    /// Until when somebody looks at that, on the clock of the event loops.
    watched_until_us: AtomicU64,
    generation: AtomicU64,
    reloads: AtomicU64,
    reloads_refused: AtomicU64,
}

/// How long a look at the requests that stand out has threads keep more of them.
const WATCHED_US: u64 = 60_000_000;

/// The memory that clients may take, as it is now.
#[derive(Clone, Copy, Debug)]
pub struct BufferBytes {
    /// Booked by connections and what they do, and kept for them.
    pub booked: u64,
    /// How much of it there may be.
    pub max: u64,
}

/// What is so of a server now.
#[derive(Clone, Debug)]
pub struct ServerNow {
    /// Requests on their way to it.
    pub in_flight: u64,
    /// How it stands; absent where the live plan does not name it.
    pub standing: Option<StandingNow>,
}

/// How a server stands.
#[derive(Clone, Debug)]
pub struct StandingNow {
    /// As far as probes say.
    pub is_up: bool,
    /// Whether it gets nothing for a while because requests failed there.
    pub is_ejected: bool,
    /// How often it was.
    pub ejections: u64,
    /// What was set by hand.
    pub admission: &'static str,
    /// How many probes came to what.
    pub probes: Vec<(&'static str, u64)>,
}

impl Metrics {
    /// A registry for this many event-loop threads and the control thread.
    pub fn new(event_loops: usize, version: &str, started: SystemTime) -> Arc<Metrics> {
        let since_1970 = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        Arc::new(Metrics {
            version: version.into(),
            started_us: u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX),
            taken: Mutex::new(vec![false; event_loops + 1]),
            listeners: Named::default(),
            rules: Named::default(),
            rule_hits: Arc::new(Hits::new(event_loops + 1)),
            rule_places: RulePlaces::default(),
            servers: Named::default(),
            limits: Named::default(),
            bandwidth: Named::default(),
            log: Arc::default(),
            spans: Arc::default(),
            shelves: Mutex::default(),
            watched_until_us: AtomicU64::new(0),
            generation: AtomicU64::new(1),
            reloads: AtomicU64::new(0),
            reloads_refused: AtomicU64::new(0),
        })
    }

    /// A recorder for a thread. It counts in a place of its own, which is another's once it is dropped.
    pub fn recorder(self: &Arc<Metrics>, sinks: &Sinks, base: WallBase) -> Recorder {
        let mut taken = locked(&self.taken);
        let thread = taken.iter().position(|taken| !taken).unwrap_or(taken.len());
        if thread == taken.len() {
            taken.push(false);
        }
        taken[thread] = true;
        Recorder::new(thread, self.clone(), sinks, base)
    }

    pub(crate) fn release(&self, thread: usize) {
        locked(&self.taken)[thread] = false;
    }

    /// The counters of a listener: the same for the same name, over reloads.
    pub fn listener(&self, name: &str) -> Arc<ListenerMetrics> {
        self.listeners.get((name, ""), || ListenerMetrics::new(name, self.threads()))
    }

    /// Of how many rules statuses and durations are told by name, in the process; 0 until this is said. Those that decide
    /// first have the places, and keep them as long as a plan has the rule.
    pub fn set_rules_max(&self, max: u32) {
        self.rule_places.set_max(max);
    }

    /// The counters of a rule on a listener: the same for the same names, over reloads.
    pub fn rule(&self, listener: &str, label: &str) -> Arc<RuleMetrics> {
        self.rules.get((listener, label), || RuleMetrics::new(listener, label, &self.rule_hits))
    }

    /// The counters of a server in a pool: the same for the same names, over reloads.
    pub fn server(&self, pool: &str, name: &str) -> Arc<ServerMetrics> {
        self.servers.get((pool, name), || ServerMetrics::new(pool, name, self.threads()))
    }

    /// The counters of a class: the same for the same name, over reloads.
    pub fn limit(&self, class: &str) -> Arc<LimitMetrics> {
        self.limits.get((class, ""), || LimitMetrics::new(class, self.threads()))
    }

    /// The counters of a class of bandwidth in one direction: the same for the same name, over reloads.
    pub fn bandwidth(&self, class: &str, direction: &str) -> Arc<BandwidthMetrics> {
        let new = || BandwidthMetrics::new(class, direction, self.threads());
        self.bandwidth.get((class, direction), new)
    }

    /// Forgets the counters that no plan or connection holds any more, so that reloads with ever new names do
    /// not add up. For the control thread, after it freed an old plan.
    pub fn forget_unused(&self) {
        self.listeners.forget_unused(|_| {});
        self.rules.forget_unused(|rule| self.rule_places.give_back(rule));
        self.servers.forget_unused(|_| {});
        self.limits.forget_unused(|_| {});
        self.bandwidth.forget_unused(|_| {});
    }

    /// A new plan is in force. The first plan is generation 1 and no reload.
    pub fn reloaded(&self, generation: u64) {
        self.generation.store(generation, Ordering::Relaxed);
        self.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// A new plan is in force though nothing was reloaded.
    pub fn changed_plan(&self, generation: u64) {
        self.generation.store(generation, Ordering::Relaxed);
    }

    /// A new plan was refused.
    pub fn reload_refused(&self) {
        self.reloads_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Appends all figures in Prometheus' text form. `now` says what else is so of a server (pool and
    /// name) has at this moment; a server it does not know is left out.
    pub fn render(
        &self,
        buffers: BufferBytes,
        now: &dyn Fn(&str, &str) -> Option<ServerNow>,
        out: &mut String,
    ) {
        let mut page = Exposition::new(out);
        self.render_process(&mut page);
        render_buffers(&mut page, buffers);
        let listeners = self.listeners.all();
        render_listeners(&mut page, &listeners);
        render_rules(&mut page, &listeners, &self.rules.all());
        render_limits(&mut page, &self.limits.all());
        render_bandwidth(&mut page, &self.bandwidth.all());
        render_servers(&mut page, &self.servers.all(), now);
    }

    /// What was counted of a listener; nothing where there is none of that name.
    pub fn listener_counts(&self, listener: &str) -> Option<ListenerCounts> {
        self.listeners.under(listener).pop().map(|listener| ListenerCounts::of(&listener))
    }

    /// What became of the requests that each server of a pool was the last to get, by name.
    pub fn servers_of(&self, pool: &str) -> HashMap<String, OutcomeCounts> {
        let servers = self.servers.under(pool).into_iter();
        servers.map(|server| (server.name().to_owned(), OutcomeCounts::of(&server.total()))).collect()
    }

    /// What was counted of each class of bandwidth in each direction.
    pub fn bandwidth_counts(&self) -> Vec<BandwidthCounts> {
        self.bandwidth.all().iter().map(|class| BandwidthCounts::of(class)).collect()
    }

    /// What was counted of each rule of a listener.
    pub fn rules_of(&self, listener: &str) -> Vec<RuleCounts> {
        self.rules.under(listener).iter().map(|rule| RuleCounts::of(rule)).collect()
    }

    /// What became of what those rules of a listener decided that have no place of their own; nothing where there was
    /// nothing of it.
    pub fn other_rules_of(&self, listener: &str) -> Option<OutcomeCounts> {
        let listener = self.listeners.under(listener).pop()?;
        listener.total_of_other_rules().as_ref().map(OutcomeCounts::of)
    }

    /// The slowest requests of the last minutes, and the latest that failed. For a minute from now on threads note what
    /// such requests are and when their steps were taken, as for an access log.
    pub fn outliers(&self, now_us: u64) -> Outliers {
        self.watched_until_us.store(now_us.saturating_add(WATCHED_US), Ordering::Relaxed);
        let shelves = locked(&self.shelves).clone();
        let mut all = Outliers::default();
        shelves.iter().for_each(|shelf| shelf.read(now_us, &mut all));
        all.sort();
        all
    }

    pub(crate) fn is_watched(&self, now_us: u64) -> bool {
        now_us < self.watched_until_us.load(Ordering::Relaxed)
    }

    /// Where the thread of that number puts what stands out; another one before it may have had it.
    pub(crate) fn shelf(&self, thread: usize) -> Arc<Shelf> {
        let mut shelves = locked(&self.shelves);
        let all = shelves.len().max(thread + 1);
        shelves.resize_with(all, Arc::default);
        shelves[thread].clone()
    }

    pub(crate) fn log_counters(&self) -> Arc<LogCounters> {
        self.log.clone()
    }

    pub(crate) fn span_counters(&self) -> Arc<LogCounters> {
        self.spans.clone()
    }

    pub(crate) fn threads(&self) -> usize {
        locked(&self.taken).len()
    }

    fn render_process(&self, page: &mut Exposition<'_>) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        page.family("pointsman_build_info", Kind::Gauge, "Always 1; the version is a label.");
        page.sample("pointsman_build_info", &[("version", &self.version)], 1);
        page.family("pointsman_start_time_seconds", Kind::Gauge, "When the process started, since 1970.");
        page.sample_seconds("pointsman_start_time_seconds", &[], self.started_us);
        page.family("pointsman_plan_generation", Kind::Gauge, "The generation of the plan in force.");
        page.sample("pointsman_plan_generation", &[], load(&self.generation));
        let name = "pointsman_reloads_total";
        page.family(name, Kind::Counter, "Reloads of the configuration by their result.");
        page.sample(name, &[("result", "ok")], load(&self.reloads));
        page.sample(name, &[("result", "refused")], load(&self.reloads_refused));
        self.log.render(page, &ACCESS_LOG_FAMILIES);
        self.spans.render(page, &SPAN_FAMILIES);
    }
}

fn render_buffers(page: &mut Exposition<'_>, buffers: BufferBytes) {
    let name = "pointsman_buffer_booked_bytes";
    page.family(name, Kind::Gauge, "Memory booked for clients now, in steps.");
    page.sample(name, &[], buffers.booked);
    let name = "pointsman_buffer_bytes_max";
    page.family(name, Kind::Gauge, "Memory that may be booked for clients.");
    page.sample(name, &[], buffers.max);
}

fn render_listeners(page: &mut Exposition<'_>, listeners: &[Arc<ListenerMetrics>]) {
    let simple =
        |page: &mut Exposition<'_>, name: &str, help: &str, counter: fn(&ListenerSlot) -> &Counter| {
            page.family(name, Kind::Counter, help);
            for listener in listeners {
                page.sample(name, &[("listener", listener.name())], listener.slots.sum(counter));
            }
        };
    simple(page, "pointsman_connections_total", "Connections taken.", |slot| &slot.opened);
    let open: Pair = (|slot| &slot.opened, |slot| &slot.closed);
    render_now(page, listeners, ("pointsman_connections_open", "Connections open now."), open);
    let (name, help) = (
        "pointsman_connections_handed_over_total",
        "Connections that a thread with too many streams left to another one.",
    );
    simple(page, name, help, |slot| &slot.handed_over);
    simple(page, "pointsman_tunnels_total", "Connections that became tunnels.", |slot| &slot.tunnels_opened);
    let open: Pair = (|slot| &slot.tunnels_opened, |slot| &slot.tunnels_closed);
    render_now(page, listeners, ("pointsman_tunnels_open", "Tunnels open now."), open);
    render_waits(page, listeners);
    render_handshakes(page, listeners);
    let rows: Vec<Row<'_>> = listeners
        .iter()
        .map(|listener| Row { labels: vec![("listener", listener.name())], total: listener.total() })
        .collect();
    let help = "Requests by the class of the status that the client was sent.";
    render_statuses(page, ("pointsman_requests_total", help), &rows);
    let name = "pointsman_refusals_total";
    page.family(name, Kind::Counter, "Clients refused, by reason.");
    for listener in listeners {
        for (why, label) in Refusal::ALL {
            let count = listener.slots.sum(|slot| &slot.refusals[why as usize]);
            page.sample(name, &[("listener", listener.name()), ("reason", label)], count);
        }
    }
    let name = "pointsman_mirrored_requests_total";
    page.family(name, Kind::Counter, "Copies of requests that rules asked for, by what became of them.");
    for listener in listeners {
        for (what, label) in Mirrored::ALL {
            let count = listener.slots.sum(|slot| &slot.mirrored[what as usize]);
            page.sample(name, &[("listener", listener.name()), ("result", label)], count);
        }
    }
    simple(page, "pointsman_received_bytes_total", "Bytes of HTTP and of tunnels from clients.", |slot| {
        &slot.received_bytes
    });
    simple(page, "pointsman_sent_bytes_total", "Bytes of HTTP and of tunnels to clients.", |slot| {
        &slot.sent_bytes
    });
    let help = "From the first byte of a request to the end of its answer.";
    render_durations(page, ("pointsman_request_duration_seconds", help), &rows);
}

/// What a gauge is the difference of: what began, and what of it is over.
type Pair = (fn(&ListenerSlot) -> &Counter, fn(&ListenerSlot) -> &Counter);

fn render_now(
    page: &mut Exposition<'_>,
    listeners: &[Arc<ListenerMetrics>],
    (name, help): (&str, &str),
    (began, ended): Pair,
) {
    page.family(name, Kind::Gauge, help);
    for listener in listeners {
        // In this order, so that what comes and goes meanwhile cannot make it negative.
        let ended = listener.slots.sum(ended);
        let began = listener.slots.sum(began);
        page.sample(name, &[("listener", listener.name())], began.saturating_sub(ended));
    }
}

fn render_waits(page: &mut Exposition<'_>, listeners: &[Arc<ListenerMetrics>]) {
    let waits: Pair = (|slot| &slot.waits_began, |slot| &slot.waits_ended);
    let name = ("pointsman_requests_waiting", "Requests that wait for their body now, to be decided.");
    render_now(page, listeners, name, waits);
    let held: Pair = (|slot| &slot.held_bytes, |slot| &slot.released_bytes);
    let name = ("pointsman_held_bytes", "Room taken now by bodies that are held.");
    render_now(page, listeners, name, held);
}

/// Handles by a pair of names, in the order of the names. Whoever asks for what is there makes no copy of a name: a plan
/// asks for each of its rules.
#[derive(Debug)]
struct Named<T>(Mutex<BTreeMap<Box<str>, Under<T>>>);

/// Those with the same first name, by the second.
type Under<T> = BTreeMap<Box<str>, Arc<T>>;

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named(Mutex::default())
    }
}

impl<T> Named<T> {
    fn get(&self, (first, second): (&str, &str), make: impl FnOnce() -> T) -> Arc<T> {
        let mut handles = locked(&self.0);
        if let Some(known) = handles.get(first).and_then(|under| under.get(second)) {
            return known.clone();
        }
        let made = Arc::new(make());
        handles.entry(first.into()).or_default().insert(second.into(), made.clone());
        made
    }

    fn all(&self) -> Vec<Arc<T>> {
        locked(&self.0).values().flat_map(BTreeMap::values).cloned().collect()
    }

    /// Those whose first name is this.
    fn under(&self, first: &str) -> Vec<Arc<T>> {
        locked(&self.0).get(first).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// `gone` is told of each that is forgotten.
    fn forget_unused(&self, mut gone: impl FnMut(&T)) {
        locked(&self.0).retain(|_, under| {
            under.retain(|_, handle| {
                let is_used = Arc::strong_count(handle) > 1;
                if !is_used {
                    gone(handle);
                }
                is_used
            });
            !under.is_empty()
        });
    }
}

/// No code panics while it holds one of these locks, and what they guard is whole at any time.
fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
