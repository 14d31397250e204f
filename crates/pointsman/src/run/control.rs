//! The control thread: signals, changed files, the admin listener, the drain.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_admin::{Page, Pages};
use pointsman_config::{Loaded, LogDestination, Plan, WatchedFile, changed};
use pointsman_net::{Deadline, EventLoop, Signal, Signals, Timers, spawn};
use pointsman_relay::Switch;
use pointsman_telemetry::{AccessLog, BufferBytes, Metrics};

use super::notice::{self, notice};
use super::shortage::Watch;
use super::{descriptors, difference, memory};

/// How often the switch is cleared up.
const HOUSEKEEPING_MS: u32 = 250;

/// How often a drain is looked at.
const DRAIN_LOOK_MS: u32 = 10;

/// How often signals are looked for: as often as deadlines move on.
const SIGNAL_LOOK_MS: u32 = 25;

/// How long threads may take to end when they are told to at once.
const STOP_MAX: Duration = Duration::from_secs(2);

/// How long the access log may take to write what it has at the end, and standard error after it.
const LAST_WRITES_MAX: Duration = Duration::from_secs(1);

/// Everything that the control thread has at hand.
pub(super) struct Control {
    pub(super) event_loop: EventLoop,
    pub(super) signals: Signals,
    pub(super) switch: Switch,
    pub(super) metrics: Arc<Metrics>,
    pub(super) log: Option<AccessLog>,
    pub(super) config: PathBuf,
    pub(super) files: Vec<WatchedFile>,
    pub(super) admin: Option<SocketAddr>,
    pub(super) threads: usize,
    pub(super) fixed: Fixed,
    pub(super) limits: Limits,
}

/// What the process may have.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Descriptors; `None`: as many as it likes.
    pub(super) descriptors_max: Option<u64>,
    /// Bytes of memory for clients, where the plan does not say.
    pub(super) memory: u64,
}

/// What only a restart can change.
#[derive(PartialEq)]
pub(super) struct Fixed {
    threads: Option<usize>,
    access_log: Option<LogDestination>,
    admin: Option<SocketAddr>,
    upstream_idle_connections_max: u32,
    splice_pipes_max: u32,
    own_descriptor_tables: bool,
}

impl Fixed {
    pub(super) fn of(plan: &Plan) -> Fixed {
        Fixed {
            threads: plan.threads,
            access_log: plan.access_log.clone(),
            admin: plan.admin,
            upstream_idle_connections_max: plan.upstream_idle_connections_max,
            splice_pipes_max: plan.splice_pipes_max,
            own_descriptor_tables: plan.own_descriptor_tables,
        }
    }

    /// The keys whose change waits for a restart.
    fn differing(&self, other: &Fixed) -> Vec<&'static str> {
        let pairs = [
            ("threads", self.threads != other.threads),
            ("access_log", self.access_log != other.access_log),
            ("admin", self.admin != other.admin),
            (
                "upstream_idle_connections_max",
                self.upstream_idle_connections_max != other.upstream_idle_connections_max,
            ),
            ("splice_pipes_max", self.splice_pipes_max != other.splice_pipes_max),
            ("own_descriptor_tables", self.own_descriptor_tables != other.own_descriptor_tables),
        ];
        pairs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
    }
}

/// The pages of the admin listener.
struct SwitchPages {
    switch: Rc<RefCell<Switch>>,
    metrics: Arc<Metrics>,
    draining: Rc<Cell<bool>>,
}

impl Pages for SwitchPages {
    fn page(&self, path: &[u8]) -> Option<Page> {
        match path {
            b"/metrics" => {
                let mut text = String::new();
                let switch = self.switch.borrow();
                let budget = switch.budget();
                let buffers = BufferBytes { booked: budget.booked_bytes(), max: budget.bytes_max() };
                self.metrics.render(buffers, &|pool, server| switch.in_flight(pool, server), &mut text);
                Some(Page::metrics(text))
            }
            b"/health" if self.draining.get() => Some(Page::plain(503, "draining")),
            b"/health" => Some(Page::plain(200, "ok")),
            _ => None,
        }
    }
}

impl Control {
    pub(super) fn run(self) -> ExitCode {
        let (signals, log) = (self.signals.clone(), self.log.clone());
        let status = self.serve();
        let mut is_told = false;
        let mut cut = || {
            is_told |= matches!(signals.take(), Some(Signal::Terminate | Signal::Interrupt));
            is_told
        };
        let unwritten = log.map_or(0, |log| log.close(LAST_WRITES_MAX, &mut cut));
        if unwritten > 0 {
            notice(&format!("access log cut lines={unwritten}"));
        }
        let (status, max) = match status {
            Ok(status) => (status, LAST_WRITES_MAX),
            Err(message) => {
                notice(&format!("error: {message}"));
                // Who starts it is to learn why it did not.
                (ExitCode::FAILURE, Duration::MAX)
            }
        };
        notice::flush(max, cut);
        status
    }

    /// Runs until it has drained.
    fn serve(self) -> Result<ExitCode, String> {
        let Control { event_loop, signals, switch, metrics, log, config, files, admin, threads, .. } = self;
        let (fixed, limits) = (self.fixed, self.limits);
        let switch = Rc::new(RefCell::new(switch));
        let draining = Rc::new(Cell::new(false));
        event_loop.run(async {
            let timers = Timers::default();
            let ticking = timers.clone();
            spawn(async move { ticking.run(|| ControlFlow::Continue(())).await });
            if let Some(address) = admin {
                let (switch, metrics, draining) = (switch.clone(), metrics.clone(), draining.clone());
                serve_admin(address, &timers, SwitchPages { switch, metrics, draining })?;
            }
            notice(&format!("ready threads={threads}"));
            let mut waits = Waits { signals: &signals, deadline: timers.deadline() };
            let (switch, metrics) = (&switch, &metrics);
            let reloads = Reloads { switch, metrics, config, files, fixed, threads, limits };
            reloads.until_told_to_end(&mut waits, log.as_ref()).await;
            draining.set(true);
            Ok(drain(switch, &mut waits).await)
        })
    }
}

fn serve_admin(address: SocketAddr, timers: &Timers, pages: SwitchPages) -> Result<(), String> {
    let address = pointsman_admin::serve(address, timers, Rc::new(pages))
        .map_err(|error| format!("the admin listener cannot listen on {address}: {error}"))?;
    notice(&format!("admin address={address}"));
    Ok(())
}

/// What the control thread waits for.
struct Waits<'a> {
    signals: &'a Signals,
    deadline: Deadline,
}

impl Waits<'_> {
    /// The next signal, if one comes in time.
    async fn signal_within(&mut self, ms: u32) -> Option<Signal> {
        let started = Instant::now();
        loop {
            let heard = self.signals.take();
            let left = u128::from(ms).saturating_sub(started.elapsed().as_millis()) as u32;
            if heard.is_some() || left == 0 {
                return heard;
            }
            let look = self.deadline.within(left.min(SIGNAL_LOOK_MS), std::future::pending::<()>()).await;
            debug_assert!(look.is_err());
        }
    }
}

/// Reloads the configuration when something says so.
struct Reloads<'a> {
    switch: &'a RefCell<Switch>,
    metrics: &'a Metrics,
    config: PathBuf,
    files: Vec<WatchedFile>,
    fixed: Fixed,
    threads: usize,
    limits: Limits,
}

impl Reloads<'_> {
    async fn until_told_to_end(mut self, waits: &mut Waits<'_>, log: Option<&AccessLog>) {
        let mut looked = Instant::now();
        let mut shortages = Watch::new();
        loop {
            match waits.signal_within(HOUSEKEEPING_MS).await {
                Some(Signal::Terminate | Signal::Interrupt) => return,
                Some(Signal::HangUp) => {
                    log.inspect(|log| log.reopen());
                    self.reload();
                }
                None => {}
            }
            self.switch.borrow_mut().clear_up();
            shortages.look(self.switch.borrow().shortages()).for_each(|line| notice(&line));
            let watch_ms = self.switch.borrow().watch_ms();
            if watch_ms != 0 && looked.elapsed().as_millis() >= u128::from(watch_ms) {
                looked = Instant::now();
                if changed(&self.files) {
                    self.reload();
                }
            }
        }
    }

    /// Loads the configuration again. A bad one changes nothing and says why.
    fn reload(&mut self) {
        let mut switch = self.switch.borrow_mut();
        // Reloads that come thick and fast would pile up the plans of all of them until the next look.
        switch.clear_up();
        let loaded = match switch.with_plan(|plan| Plan::load(&self.config, Some(plan))) {
            Ok(loaded) => loaded,
            Err(problems) => {
                self.metrics.reload_refused();
                // Until one of these files changes again there is nothing to try again.
                self.files = problems.watched().to_vec();
                return notice(&format!("reload refused:\n{}", problems.render(notice::colour())));
            }
        };
        notice::warnings(&loaded);
        let Loaded { plan, files, .. } = loaded;
        self.files = files;
        for key in self.fixed.differing(&Fixed::of(&plan)) {
            notice(&format!("warning: the new value of `{key}` takes effect at the next start"));
        }
        notice::maybe(descriptors::warning(self.limits.descriptors_max, &plan, self.threads));
        notice::maybe(memory::warning(self.limits.memory, &plan));
        let replaced = switch.with_plan(|old| difference::replaced(old, &plan));
        match switch.publish(plan) {
            Ok(generation) => {
                self.metrics.reloaded(generation);
                notice::listening(&switch);
                notice(&format!("reloaded generation={generation}"));
                difference::say(replaced);
            }
            Err(fault) => {
                self.metrics.reload_refused();
                notice(&format!("reload refused: {fault}"));
            }
        }
    }
}

/// Stops accepting and waits for what is open: within its limit, or until told to end a second time.
async fn drain(switch: &RefCell<Switch>, waits: &mut Waits<'_>) -> ExitCode {
    notice(&format!("draining connections={}", switch.borrow().open_connections()));
    switch.borrow_mut().drain();
    let drain_max = Duration::from_millis(switch.borrow().drain_ms_max());
    let has_ended = ended(switch, waits, drain_max, true).await
        // Nobody is cut: the threads have last words for servers.
        || (switch.borrow().open_connections() == 0 && ended(switch, waits, STOP_MAX, true).await);
    if has_ended {
        notice("drained");
        return ExitCode::SUCCESS;
    }
    notice(&format!("drain cut connections={}", switch.borrow().open_connections()));
    switch.borrow_mut().stop();
    // Threads that end break off what they cut; a process that ends first would close it in good order.
    ended(switch, waits, STOP_MAX, false).await;
    ExitCode::FAILURE
}

/// Waits for the threads to end, at most that long, and no longer than until a signal says so that is heeded.
async fn ended(switch: &RefCell<Switch>, waits: &mut Waits<'_>, max: Duration, heeds: bool) -> bool {
    let started = Instant::now();
    while !switch.borrow().has_ended() {
        let told = waits.signal_within(DRAIN_LOOK_MS).await;
        let cut = heeds && matches!(told, Some(Signal::Terminate | Signal::Interrupt));
        if cut || started.elapsed() >= max {
            return false;
        }
    }
    true
}
