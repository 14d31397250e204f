//! The control thread: signals, changed files, the admin listener, the drain.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_admin::{Listening, Serving};
use pointsman_config::{RuleSet, WatchedFile, changed, reason};
use pointsman_net::{Deadline, EventLoop, Signal, Signals, Timers, spawn};
use pointsman_relay::{HealthChange, HealthNews, Switch};
use pointsman_telemetry::{AccessLog, Metrics, Sinks};

use super::aside::{Aside, pauses};
use super::drain::Drain;
use super::enquiries::Enquiries;
use super::history::{By, History};
use super::legacy::{Keys, Predecessor};
use super::log_level::LogLevels;
use super::log_watch::{Line, LogWatch};
use super::names::Names;
use super::notice::{self, notice};
use super::pages::SwitchPages;
use super::reloads::{Fixed, Reloads, free};
use super::service::Service;
use super::shortage::Watch;
use super::successor::{Program, Succession};
use super::turns::{Turn, Turns};

/// How often the switch is cleared up.
const HOUSEKEEPING_MS: u32 = 250;

/// How often it is said what threads have noted: that bounds how much it is.
const NOTES_LOOK: Duration = Duration::from_secs(1);

/// How often a process that is to take this one's place is looked at.
const UPGRADE_LOOK_MS: u32 = 10;

/// How often a drain is looked at.
const DRAIN_LOOK_MS: u32 = 10;

/// How often signals are looked for: as often as deadlines move on.
const SIGNAL_LOOK_MS: u32 = 25;

/// How long threads may take to end when they are told to at once.
const STOP_MAX: Duration = Duration::from_secs(2);

/// How long the process behind this one may take for the sticky clients of this one, once nothing else keeps it.
const GIVE_MAX: Duration = Duration::from_secs(10);

/// How long the access log may take to write what it has at the end, and each of traces and standard error after it.
const LAST_WRITES_MAX: Duration = Duration::from_secs(1);

/// Everything that the control thread has at hand.
pub(super) struct Control {
    pub(super) event_loop: EventLoop,
    pub(super) signals: Signals,
    pub(super) switch: Switch,
    pub(super) metrics: Arc<Metrics>,
    pub(super) sinks: Sinks,
    pub(super) config: PathBuf,
    pub(super) files: Vec<WatchedFile>,
    pub(super) source: Arc<str>,
    pub(super) rule_sets: Vec<RuleSet>,
    pub(super) names: Names,
    pub(super) levels: LogLevels,
    pub(super) admin: Option<Listening>,
    pub(super) fixed: Fixed,
    /// How many a table may have; `None`: as many as it likes.
    pub(super) descriptors_max: Option<u64>,
    pub(super) upgrades: Upgrades,
    pub(super) service: Service,
}

/// What it takes to be replaced, and whom this process replaces.
pub(super) struct Upgrades {
    pub(super) program: Program,
    pub(super) keys: Keys,
    pub(super) predecessor: Option<Predecessor>,
}

impl Control {
    pub(super) fn run(self) -> ExitCode {
        let (signals, sinks) = (self.signals.clone(), self.sinks.clone());
        pauses();
        let status = self.serve();
        let mut is_told = false;
        let mut cut = || {
            is_told |= matches!(signals.take(), Some(Signal::Terminate | Signal::Interrupt));
            is_told
        };
        let unwritten = sinks.log.map_or(0, |log| log.close(LAST_WRITES_MAX, &mut cut));
        if unwritten > 0 {
            notice::warn(&format!("access log cut lines={unwritten}"));
        }
        let unsent = sinks.traces.map_or(0, |traces| traces.close(LAST_WRITES_MAX, &mut cut));
        if unsent > 0 {
            notice::warn(&format!("traces cut spans={unsent}"));
        }
        let (status, max) = match status {
            Ok(status) => (status, LAST_WRITES_MAX),
            Err(message) => {
                notice::error(&format!("error: {message}"));
                // Who starts it is to learn why it did not.
                (ExitCode::FAILURE, Duration::MAX)
            }
        };
        notice::flush(max, cut);
        status
    }

    /// Runs until it has drained.
    fn serve(self) -> Result<ExitCode, String> {
        let Control { event_loop, signals, switch, metrics, sinks, config, files, admin, .. } = self;
        let (fixed, descriptors_max, rule_sets) = (self.fixed, self.descriptors_max, self.rule_sets);
        let (source, threads) = (self.source, switch.threads());
        let (names, levels) = (self.names, self.levels);
        let (upgrades, service) = (self.upgrades, self.service);
        let mut history = History::default();
        history.keep(&rule_sets, By::now("-", "the start"));
        let switch = Rc::new(RefCell::new(switch));
        event_loop.run(async {
            let timers = Timers::default();
            let ticking = timers.clone();
            spawn(async move { ticking.run(|| ControlFlow::Continue(())).await });
            let reloads = Rc::new(Reloads {
                switch: switch.clone(),
                metrics: metrics.clone(),
                log: sinks.log,
                config,
                looked_at: RefCell::new(files.clone()),
                files: RefCell::new(files),
                source: RefCell::new(source),
                rule_sets: RefCell::new(rule_sets),
                history: RefCell::new(history),
                names,
                fixed,
                levels,
                descriptors_max,
                turns: Turns::default(),
                is_held: Cell::new(false),
                drain: Drain::default(),
            });
            let admin = match admin {
                None => None,
                Some(listening) => {
                    let (switch, reloads) = (switch.clone(), reloads.clone());
                    let (aside, begun) = (Aside::default(), RefCell::default());
                    let [enquiries, enquiries_of_strangers] = Enquiries::of_admin();
                    let pages = SwitchPages {
                        switch,
                        metrics,
                        reloads,
                        aside,
                        enquiries,
                        enquiries_of_strangers,
                        begun,
                        began: By::now("-", "").when,
                    };
                    Some(serve_admin(listening, &timers, pages)?)
                }
            };
            notice(&format!("ready threads={threads}"));
            let Upgrades { program, keys, predecessor } = upgrades;
            // One that is gone has nothing to end any more.
            let (Ok(()) | Err(_)) = predecessor.map_or(Ok(()), |predecessor| predecessor.tell_ready());
            service.is_ready(threads);
            let mut waits = Waits { signals: &signals, deadline: timers.deadline(), service };
            let mut succession = Succession { program, keys, admin, under_way: None };
            let ends = until_told_to_end(&reloads, &mut waits, &mut succession).await;
            Ok(drain((&switch, &reloads.drain), &mut waits, (ends, &mut succession)).await)
        })
    }
}

fn serve_admin(listening: Listening, timers: &Timers, pages: SwitchPages) -> Result<Serving, String> {
    let address = listening.address;
    let serving = pointsman_admin::serve(listening, timers, Rc::new(pages))
        .map_err(|error| format!("the admin listener cannot listen on {address}: {error}"))?;
    notice(&format!("admin address={address}"));
    Ok(serving)
}

/// Why the switch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// Somebody said so.
    Told,
    /// Another process serves in its place.
    Replaced,
}

/// What the control thread waits for.
struct Waits<'a> {
    signals: &'a Signals,
    deadline: Deadline,
    /// It is given signs of life meanwhile.
    service: Service,
}

impl Waits<'_> {
    /// The next signal, if one comes in time.
    async fn signal_within(&mut self, ms: u32) -> Option<Signal> {
        let started = Instant::now();
        loop {
            self.service.lives();
            let heard = self.signals.take();
            let left = u128::from(ms).saturating_sub(started.elapsed().as_millis()) as u32;
            if heard.is_some() || left == 0 {
                return heard;
            }
            self.pause(left.min(SIGNAL_LOOK_MS)).await;
        }
    }

    /// Waits that long, and leaves signals to who asks for them next.
    async fn pause(&mut self, ms: u32) {
        let waited = self.deadline.within(ms, std::future::pending::<()>()).await;
        debug_assert!(waited.is_err());
    }
}

async fn until_told_to_end(
    reloads: &Rc<Reloads>,
    waits: &mut Waits<'_>,
    succession: &mut Succession,
) -> Ends {
    let switch = &reloads.switch;
    let (mut looked, mut told) = (Instant::now(), Instant::now());
    let (mut shortages, mut log) = (Watch::new(), LogWatch::default());
    let own = OwnReloads::new(reloads);
    // An upgrade that waits until what changes now is done.
    let mut upgrade: Option<Turn> = None;
    loop {
        let is_eager = succession.is_under_way() || own.are_under_way() || upgrade.is_some();
        let look_ms = if is_eager { UPGRADE_LOOK_MS } else { HOUSEKEEPING_MS };
        match waits.signal_within(look_ms).await {
            Some(Signal::Terminate | Signal::Interrupt) => {
                succession.give_up();
                return Ends::Told;
            }
            Some(Signal::Upgrade) => upgrade = upgrade.or_else(|| Some(turn_of_upgrade(reloads))),
            Some(Signal::Reopen) => reloads.reopen_log(),
            Some(Signal::HangUp) => {
                waits.service.reloads();
                reloads.reopen_log();
                own.begin(By::now("-", "SIGHUP"), Told::Manager);
            }
            None => {}
        }
        if let Some(is_refused) = own.take_end() {
            waits.service.has_reloaded(is_refused);
        }
        if upgrade.take_if(|turn| turn.has_come()).is_some() {
            succession.begin(&switch.borrow());
        }
        if let Some(successor) = succession.ready() {
            if own.is_owed() {
                // It would wait for the end of a reload that the new process has no need of, and knows nothing of.
                waits.service.has_reloaded(false);
            }
            waits.service.is_replaced(successor);
            return Ends::Replaced;
        }
        // Before anything waits: whoever comes behind an upgrade finds that it is under way.
        reloads.is_held.set(succession.is_under_way());
        free(switch);
        let changes = switch.borrow().take_health_changes();
        changes.iter().for_each(say_change);
        notice::ended_dry_runs(switch);
        reloads.follow_names();
        shortages.look(switch.borrow().shortages()).for_each(|line| notice::warn(&line));
        look_at_log(&mut log, reloads);
        if told.elapsed() >= NOTES_LOOK {
            told = Instant::now();
            reloads.levels.tell();
        }
        let watch_ms = switch.borrow().watch_ms();
        // What changes now may be the files that are looked at.
        let may_reload = watch_ms != 0 && !succession.is_under_way() && reloads.turns.are_none();
        if may_reload && looked.elapsed().as_millis() >= u128::from(watch_ms) {
            looked = Instant::now();
            if changed(&reloads.looked_at.borrow()) {
                own.begin(By::now("-", "a file has changed"), Told::Nobody);
            }
        }
    }
}

/// Says what has become of the access log.
fn look_at_log(watch: &mut LogWatch, reloads: &Reloads) {
    let Some(trouble) = reloads.log.as_ref().map(AccessLog::take_trouble) else { return };
    if let Some(why) = &trouble.unopened {
        let why = reason(&io::Error::other(why.as_str()));
        notice::error(&format!("access log not opened anew: {why}; the file from before is written to"));
    }
    match watch.look(&trouble, Instant::now()) {
        Some(Line::Fails(line)) => notice::error(&line),
        Some(Line::Again(line)) => notice::warn(&line),
        None => {}
    }
}

/// Behind what changes now: the new process reads what stands in the files then.
fn turn_of_upgrade(reloads: &Reloads) -> Turn {
    let turn = reloads.turns.take();
    if !turn.has_come() {
        notice("upgrade waits: what is being changed comes first");
    }
    turn
}

/// Who is told of the end of a reload, besides the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nobody,
    Manager,
}

/// Reloads that nobody asks the admin listener for.
struct OwnReloads {
    reloads: Rc<Reloads>,
    state: Rc<RefCell<OwnState>>,
}

#[derive(Default)]
struct OwnState {
    /// One waits for its turn: it will see whatever another one would.
    waits: bool,
    begun: usize,
    /// Somebody is told when none is under way any more.
    is_told: bool,
    is_last_refused: bool,
}

impl OwnReloads {
    fn new(reloads: &Rc<Reloads>) -> OwnReloads {
        OwnReloads { reloads: reloads.clone(), state: Rc::default() }
    }

    /// Begins one behind what changes now, unless one waits for that already.
    fn begin(&self, by: By, told: Told) {
        let mut state = self.state.borrow_mut();
        state.is_told |= told == Told::Manager;
        if std::mem::replace(&mut state.waits, true) {
            return;
        }
        state.begun += 1;
        let (reloads, state) = (self.reloads.clone(), self.state.clone());
        let turn = reloads.turns.take();
        spawn(async move {
            turn.comes().await;
            state.borrow_mut().waits = false;
            let is_refused = reloads.reload(&turn, by).await.is_err();
            let mut state = state.borrow_mut();
            state.begun -= 1;
            state.is_last_refused = is_refused;
        });
    }

    fn are_under_way(&self) -> bool {
        self.state.borrow().begun > 0
    }

    /// Whether somebody is still to be told of their end.
    fn is_owed(&self) -> bool {
        self.state.borrow().is_told
    }

    /// Whether the last one was refused, where all are over and somebody is to be told.
    fn take_end(&self) -> Option<bool> {
        let mut state = self.state.borrow_mut();
        let is_over = state.begun == 0 && std::mem::take(&mut state.is_told);
        is_over.then_some(state.is_last_refused)
    }
}

fn say_change(change: &HealthChange) {
    let say = if change.news == HealthNews::Up { notice } else { notice::warn };
    say(&change.to_string());
}

/// Stops accepting and waits for what is open: within its limit, or until told to end a second time.
async fn drain(
    (switch, begins): (&RefCell<Switch>, &Drain),
    waits: &mut Waits<'_>,
    (ends, succession): (Ends, &mut Succession),
) -> ExitCode {
    if ends == Ends::Told {
        waits.service.stops();
        switch.borrow_mut().drain();
    }
    // Behind it: who asks for the health and hears of it finds it so.
    begins.begin().await;
    if ends == Ends::Replaced {
        succession.admin.take().into_iter().for_each(Serving::stop);
        switch.borrow_mut().hand_on();
        let asked = Instant::now();
        while !switch.borrow().has_left() && asked.elapsed() < STOP_MAX {
            waits.pause(DRAIN_LOOK_MS).await;
        }
        switch.borrow_mut().drain();
    }
    notice::ended_dry_runs(switch);
    // Behind it: who reads this line finds it so.
    notice(&format!("draining connections={}", switch.borrow().open_connections()));
    let drain_max = Duration::from_millis(switch.borrow().drain_ms_max());
    let has_ended = ended(switch, waits, drain_max, true).await
        // Nobody is cut: the threads have last words for servers.
        || (switch.borrow().open_connections() == 0 && ended(switch, waits, STOP_MAX, true).await);
    if has_ended {
        give_the_rest(waits, succession).await;
        notice("drained");
        return ExitCode::SUCCESS;
    }
    notice::warn(&format!("drain cut connections={}", switch.borrow().open_connections()));
    switch.borrow_mut().stop();
    // Threads that end break off what they cut; a process that ends first would close it in good order.
    ended(switch, waits, STOP_MAX, false).await;
    ExitCode::FAILURE
}

/// Waits until the process that serves now has all sticky clients, unless a signal comes.
async fn give_the_rest(waits: &mut Waits<'_>, succession: &mut Succession) {
    let started = Instant::now();
    while !succession.has_given_all() && started.elapsed() < GIVE_MAX {
        if waits.signal_within(DRAIN_LOOK_MS).await.is_some() {
            return;
        }
    }
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
