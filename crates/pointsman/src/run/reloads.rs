//! Reloads: the files are read again, and the plan that they make takes the place of the one that serves.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use pointsman_config::{Loaded, Plan, Problems, RuleSet, WatchedFile};
use pointsman_relay::Switch;
use pointsman_telemetry::{AccessLog, Metrics};

use super::aside::{beside, let_go};
use super::drain::Drain;
use super::history::{By, History};
use super::log_level::LogLevels;
use super::names::{LookedUp, Names, Unjoined};
use super::notice::{self, notice};
use super::turns::{Turn, Turns};
use super::{capacity, difference, threads};

/// Reloads the configuration when something says so.
pub(super) struct Reloads {
    pub(super) switch: Rc<RefCell<Switch>>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) log: Option<AccessLog>,
    pub(super) config: PathBuf,
    /// The files that serve, as they were read: what differs from them is somebody's who has not reloaded it, or could not.
    pub(super) files: RefCell<Vec<WatchedFile>>,
    /// The files as they were looked at last: until one of them changes there is nothing to try again.
    pub(super) looked_at: RefCell<Vec<WatchedFile>>,
    /// The text of the configuration that serves.
    pub(super) source: RefCell<Arc<str>>,
    /// The rules that serve, as they were read.
    pub(super) rule_sets: RefCell<Vec<RuleSet>>,
    pub(super) history: RefCell<History>,
    pub(super) names: Names,
    pub(super) fixed: Fixed,
    pub(super) levels: LogLevels,
    pub(super) descriptors_max: Option<u64>,
    /// Who changes something, or has it read, one after the other: what one of them has seen is so until it is done.
    pub(super) turns: Turns,
    /// What is listened on is being handed over: nothing may change about it.
    pub(super) is_held: Cell<bool>,
    /// The switch ends.
    pub(super) drain: Drain,
}

/// A reload that took place.
pub(super) struct Reloaded {
    pub(super) generation: u64,
    /// What is odd about the new plan.
    pub(super) warnings: Problems,
    /// Keys whose new values wait for a restart.
    pub(super) waiting: Vec<&'static str>,
}

/// Why nothing changed.
pub(super) enum Refused {
    /// The files are wrong.
    Files(Problems),
    /// The system refuses what they say.
    System(String),
    /// Nothing may change.
    Unready(Unready),
}

/// What is said where the thread that reads ends before its work.
pub(super) const BROKE_OFF: &str = "reading the configuration broke off, which is an error of the switch";

/// Why nothing may change, whatever it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unready {
    /// Sockets are being handed over to another process, for a while.
    Upgrading,
    /// The switch ends.
    Draining,
}

/// Why there is no plan to take.
pub(super) enum Unread {
    /// What is wrong with the files.
    Wrong(Problems),
    /// Reading broke off.
    BrokeOff,
}

impl Unready {
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Unready::Upgrading => "an upgrade is under way",
            Unready::Draining => "the switch drains",
        }
    }
}

/// What only a restart can change.
#[derive(Clone, PartialEq)]
pub(super) struct Fixed {
    access_log: Option<pointsman_config::AccessLog>,
    traces: Option<pointsman_config::Traces>,
    admin: Option<std::net::SocketAddr>,
    sticky_entries_max: u32,
    own_descriptor_tables: bool,
}

impl Fixed {
    pub(super) fn of(plan: &Plan) -> Fixed {
        Fixed {
            access_log: plan.access_log.clone(),
            traces: plan.traces.clone(),
            admin: plan.admin.as_ref().map(|admin| admin.bind),
            sticky_entries_max: plan.sticky_entries_max,
            own_descriptor_tables: plan.own_descriptor_tables,
        }
    }

    /// The keys whose change waits for a restart.
    pub(super) fn differing(&self, other: &Fixed) -> Vec<&'static str> {
        let pairs = [
            ("access_log", self.access_log != other.access_log),
            ("traces", self.traces != other.traces),
            ("admin", self.admin != other.admin),
            ("sticky_entries_max", self.sticky_entries_max != other.sticky_entries_max),
            ("own_descriptor_tables", self.own_descriptor_tables != other.own_descriptor_tables),
        ];
        pairs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
    }
}

impl Reloads {
    /// What is read again.
    pub(super) fn config(&self) -> &Path {
        &self.config
    }

    /// Opens the access log anew, for whoever rotates it: with a reload that is what SIGHUP asks for.
    pub(super) fn reopen_log(&self) {
        self.log.as_ref().inspect(|log| log.reopen());
    }

    /// Loads the configuration again, in a turn that has come. A bad one changes nothing and says why.
    pub(super) async fn reload(&self, turn: &Turn, by: By) -> Result<Reloaded, Refused> {
        self.is_free()?;
        // Reloads that come thick and fast would pile up the plans of all of them until the next look.
        free(&self.switch);
        let config = self.config.clone();
        match self.read(turn, move |plan| Plan::load(&config, Some(plan))).await {
            Ok(loaded) => {
                let looked_up = self.look_up(&loaded, turn).await;
                self.take(loaded, looked_up, by)
            }
            Err(Unread::Wrong(problems)) => {
                self.metrics.reload_refused();
                *self.looked_at.borrow_mut() = problems.watched().to_vec();
                notice::error(&format!("reload refused:\n{}", problems.render(notice::colour())));
                Err(Refused::Files(problems))
            }
            Err(Unread::BrokeOff) => Err(self.refuse(BROKE_OFF.to_owned())),
        }
    }

    /// Has a plan read that is to follow the one which serves: in a turn that has come, and in a thread of its own, since
    /// many rules take seconds. Names may have other answers by then; nothing else that serves has changed.
    pub(super) async fn read(
        &self,
        turn: &Turn,
        read: impl Fn(&Plan) -> Result<Loaded, Problems> + Send + Sync + 'static,
    ) -> Result<Loaded, Unread> {
        debug_assert!(turn.has_come());
        let plan = self.switch.borrow().with_plan(Plan::clone);
        let read = beside(move || read(&plan), turn.clone()).await;
        // A thread that begins is all that it wants, and done without.
        read.map_err(|_| Unread::BrokeOff)?.map_err(Unread::Wrong)
    }

    /// Whether something may change.
    pub(super) fn is_free(&self) -> Result<(), Refused> {
        let why = match (self.drain.has_begun(), self.is_held.get()) {
            (true, _) => Unready::Draining,
            (false, true) => Unready::Upgrading,
            (false, false) => return Ok(()),
        };
        notice::warn(&format!("reload refused: {}", why.sentence()));
        Err(Refused::Unready(why))
    }

    /// Lets a plan serve that was made of files, and whose names were looked up, in the place of the one that serves.
    pub(super) fn take(
        &self,
        loaded: Loaded,
        mut looked_up: LookedUp<'_>,
        by: By,
    ) -> Result<Reloaded, Refused> {
        self.is_free()?;
        notice::warnings(&loaded);
        let joined = looked_up.join(&loaded);
        let Loaded { source, files, warnings, rule_sets, .. } = loaded;
        self.looked_at.borrow_mut().clone_from(&files);
        let plan = joined.map_err(|unjoined| self.refuse_for(unjoined))?;
        let waiting = self.fixed.differing(&Fixed::of(&plan));
        for key in &waiting {
            notice::warn(&format!("warning: the new value of `{key}` takes effect at the next start"));
        }
        let mut switch = self.switch.borrow_mut();
        let before = switch.threads();
        // Where nothing is said of them, and nothing was, the number of cores may be another one by now.
        let is_as_before = switch.with_plan(|old| old.threads == plan.threads);
        let threads = if is_as_before { before } else { threads(&plan) };
        let capacity = capacity(&plan, threads, self.descriptors_max);
        let change = switch.with_plan(|old| difference::change(old, &plan));
        let log_level = plan.log_level;
        match switch.publish(plan, capacity) {
            Ok(generation) => {
                self.levels.follow(log_level);
                self.metrics.reloaded(generation);
                self.history.borrow_mut().keep(&rule_sets, by);
                let_go(self.rule_sets.replace(rule_sets));
                *self.files.borrow_mut() = files;
                *self.source.borrow_mut() = source;
                notice::listening(&switch);
                threads_changed(before, &switch).iter().for_each(|line| notice(line));
                notice(&format!("reloaded generation={generation}"));
                difference::say(change);
                Ok(Reloaded { generation, warnings, waiting })
            }
            Err(fault) => Err(self.refuse(fault.to_string())),
        }
    }

    /// What serves was written back, and is not to be tried again.
    pub(super) fn is_written_back(&self) {
        self.looked_at.borrow_mut().clone_from(&self.files.borrow());
    }

    /// A plan cannot serve for its names.
    fn refuse_for(&self, unjoined: Unjoined) -> Refused {
        match unjoined {
            Unjoined::NoThread(fault) => self.refuse(fault),
            Unjoined::Unknown(problems) => {
                self.metrics.reload_refused();
                notice::error(&format!("reload refused:\n{}", problems.render(notice::colour())));
                Refused::Files(problems)
            }
        }
    }

    /// The system refuses what a plan says.
    fn refuse(&self, fault: String) -> Refused {
        self.metrics.reload_refused();
        notice::error(&format!("reload refused: {fault}"));
        Refused::System(fault)
    }
}

/// Ends the generations that nobody holds any more.
pub(super) fn free(switch: &RefCell<Switch>) {
    let unheld = switch.borrow_mut().clear_up();
    if !unheld.is_empty() {
        let_go(unheld);
    }
}

/// What to say where other threads serve than before.
fn threads_changed(before: usize, switch: &Switch) -> Option<String> {
    let now = switch.threads();
    (now != before).then(|| format!("threads changed from={before} to={now}"))
}
