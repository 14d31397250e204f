//! The thread that probes servers: one in the process, which no request waits for.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pointsman_balance::{self as balance, ProbeRow, probe_wait_ms};
use pointsman_net::{Clock, EventLoop, Task, spawn};
use pointsman_telemetry::{Notes, Topic};
use pointsman_upstream::ServerId;

use crate::chance::Chance;
use crate::live::Live;
use crate::probe::{Probed, Tools, Why};
use crate::standing::{Health, NOT_PROBED, ProbeOutcome};

/// Changes that wait to be told of; more are dropped, the oldest first.
const CHANGES_MAX: usize = 1024;
/// Ticks of 25 ms between two looks at connections that should have ended.
const TICKS_BETWEEN_SWEEPS: u32 = 40;

/// What probes or failures have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthChange {
    /// The pool.
    pub pool: Arc<str>,
    /// The server.
    pub server: Arc<str>,
    /// What has become of it.
    pub news: HealthNews,
}

/// What has become of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthNews {
    /// Probes say that it is up.
    Up,
    /// They say that it is down, the last for this reason.
    Down(String),
    /// Requests failed there.
    Ejected,
}

impl fmt::Display for HealthChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HealthChange { pool, server, news } = self;
        match news {
            HealthNews::Up => write!(f, "server up pool={pool} server={server}"),
            HealthNews::Ejected => write!(f, "server ejected pool={pool} server={server}"),
            HealthNews::Down(why) => write!(f, "server down pool={pool} server={server} probe=\"{why}\""),
        }
    }
}

/// What the control thread and the prober share.
#[derive(Default)]
struct Orders {
    is_changed: AtomicBool,
    is_over: AtomicBool,
    servers: Mutex<Vec<Arc<Probed>>>,
    changes: Mutex<VecDeque<HealthChange>>,
}

/// The prober, seen from the control thread. Its thread begins with the first server that is to be probed, and ends
/// when this is dropped.
pub(crate) struct Prober {
    orders: Arc<Orders>,
    clock: Clock,
    seed: u64,
    notes: Arc<Notes>,
    is_running: bool,
}

impl Prober {
    pub(crate) fn new(clock: Clock, seed: u64, notes: Arc<Notes>) -> Prober {
        Prober { orders: Arc::default(), clock, seed, notes, is_running: false }
    }

    /// Probes the servers of a plan from now on, and no others.
    pub(crate) fn watch(&mut self, live: &Live) {
        let servers: Vec<_> = live.pools().flat_map(|(pool, servers)| probed(pool, servers)).collect();
        *locked(&self.orders.servers) = servers;
        self.orders.is_changed.store(true, Ordering::Release);
    }

    /// Begins to probe, where there is something to probe.
    ///
    /// # Errors
    /// The system gives no thread or event loop.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        if self.is_running || locked(&self.orders.servers).is_empty() {
            return Ok(());
        }
        let (orders, clock, seed) = (self.orders.clone(), self.clock, self.seed);
        let notes = self.notes.clone();
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::Builder::new().name("prober".to_owned()).spawn(move || {
            let event_loop = EventLoop::new();
            let (Ok(()) | Err(_)) = match event_loop {
                Ok(event_loop) => {
                    let told = ready.send(Ok(()));
                    run(&event_loop, &orders, clock, (seed, notes));
                    told
                }
                Err(error) => ready.send(Err(error)),
            };
        })?;
        is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("the prober ended before it began")))?;
        self.is_running = true;
        Ok(())
    }

    /// What has changed since this was last asked.
    pub(crate) fn take_changes(&self) -> Vec<HealthChange> {
        locked(&self.orders.changes).drain(..).collect()
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.orders.is_over.store(true, Ordering::Release);
    }
}

fn probed<'a>(
    pool: &'a pointsman_config::Pool,
    servers: &'a [crate::live::LiveServer],
) -> impl Iterator<Item = Arc<Probed>> + 'a {
    let check = pool.health.iter();
    check.flat_map(move |check| {
        pool.servers.iter().zip(servers).filter_map(move |(server, live)| {
            Some(Arc::new(Probed {
                id: live.id,
                pool: pool.name.clone(),
                name: server.name.clone(),
                address: server.address?,
                tls: server.tls.clone(),
                tls_name: server.tls.as_ref().map(|connector| connector.name().into()),
                proxy_protocol: pool.proxy_protocol,
                protocol: pool.protocol,
                check: check.clone(),
                standing: live.standing.clone(),
            }))
        })
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server that is being probed.
struct Watched {
    server: Arc<Probed>,
    task: Task,
}

/// What all probes of the thread share.
struct Desk {
    tools: Tools,
    orders: Arc<Orders>,
    clock: Clock,
    chance: Chance,
}

/// The thread.
fn run(event_loop: &EventLoop, orders: &Arc<Orders>, clock: Clock, (seed, notes): (u64, Arc<Notes>)) {
    let (tools, chance) = (Tools::new(notes), Chance::new(seed));
    let desk = Rc::new(Desk { tools, orders: orders.clone(), clock, chance });
    let mut watched = HashMap::new();
    let mut ticks = 0;
    event_loop.run(async {
        let timers = desk.tools.timers.clone();
        let tick = || {
            if orders.is_over.load(Ordering::Acquire) {
                return ControlFlow::Break(());
            }
            if orders.is_changed.swap(false, Ordering::Acquire) {
                desk.rearrange(&mut watched);
            }
            ticks += 1;
            if ticks % TICKS_BETWEEN_SWEEPS == 0 {
                desk.tools.sweep(clock.now_us() / 1000);
            }
            ControlFlow::Continue(())
        };
        timers.run(tick).await;
    });
}

impl Desk {
    /// Goes on with servers that are probed as before, begins with those that are new, and leaves the others be.
    fn rearrange(self: &Rc<Desk>, watched: &mut HashMap<ServerId, Watched>) {
        let servers = locked(&self.orders.servers).clone();
        let mut before = std::mem::take(watched);
        for server in servers {
            let known = before.remove(&server.id);
            let kept = match known {
                Some(known) if known.server.check == server.check => known,
                changed => {
                    changed.inspect(|changed| changed.task.abort());
                    let (desk, server) = (self.clone(), server.clone());
                    let theirs = server.clone();
                    Watched { server, task: spawn(async move { desk.watch(&theirs).await }) }
                }
            };
            watched.insert(server.id, kept);
        }
        for gone in before.into_values() {
            gone.task.abort();
            gone.server.standing.set_health(Health::Unknown, NOT_PROBED, self.clock.now_us());
        }
    }

    /// Probes one server again and again.
    async fn watch(&self, server: &Probed) {
        let check = &server.check;
        let mut row = ProbeRow::from(match server.standing.health() {
            Health::Up => Some(balance::Probed::Passed),
            Health::Down => Some(balance::Probed::Failed),
            Health::Unknown | Health::Starting => None,
        });
        let mut pause = self.tools.timers.deadline();
        loop {
            let since_us = self.clock.now_us();
            let outcome = self.tools.probe(server).await;
            self.note(server, &outcome, since_us);
            let counts = outcome.as_ref().err().map_or(ProbeOutcome::Passed, |why| why.outcome());
            server.standing.probes().add(counts);
            // Of a probe that could not be made nothing is learned.
            if counts != ProbeOutcome::Shortage {
                let probed = match outcome {
                    Ok(()) => balance::Probed::Passed,
                    Err(_) => balance::Probed::Failed,
                };
                if let Some(said) = row.hear(probed, check.thresholds) {
                    let health = if said == balance::Probed::Passed { Health::Up } else { Health::Down };
                    let news =
                        outcome.map_or_else(|why| HealthNews::Down(why.to_string()), |()| HealthNews::Up);
                    self.say(server, health, news);
                }
            }
            let wait_ms = probe_wait_ms(check.interval_ms, check.jitter_percent, self.chance.draw());
            let waited = pause.within(wait_ms, std::future::pending::<()>()).await;
            debug_assert!(waited.is_err());
        }
    }

    /// Notes each probe that fails, and those that pass where the server is not known to be up.
    fn note(&self, server: &Probed, outcome: &Result<(), Why>, since_us: u64) {
        if outcome.is_ok() && server.standing.health() == Health::Up {
            return;
        }
        self.tools.notes.note(Topic::Probes, || {
            let Probed { pool, name, .. } = server;
            let ms = self.clock.now_us().saturating_sub(since_us) / 1000;
            let said = match outcome {
                Ok(()) => "passed".to_owned(),
                Err(why) => format!("failed why={:?}", why.to_string()),
            };
            let (address, asked) = (server.probed_address(), server.asked());
            format!("probe {said} pool={pool} server={name} address={address} asked={asked:?} ms={ms}")
        });
    }

    /// Notes what is said of a server from now on. That one is up which was taken to be up is no news.
    fn say(&self, server: &Probed, health: Health, news: HealthNews) {
        let before = server.standing.health();
        let why = match &news {
            HealthNews::Down(why) => why,
            HealthNews::Up | HealthNews::Ejected => "probes pass",
        };
        server.standing.set_health(health, why, self.clock.now_us());
        if (before, health) == (Health::Unknown, Health::Up) {
            return;
        }
        let mut changes = locked(&self.orders.changes);
        if changes.len() >= CHANGES_MAX {
            changes.pop_front();
        }
        changes.push_back(HealthChange { pool: server.pool.clone(), server: server.name.clone(), news });
    }
}
