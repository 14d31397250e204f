//! What new rules decide otherwise than those that they replace, said behind a reload.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use pointsman_analysis::{Effort, RuleSide, Setting, differences};
use pointsman_config::{ChangedSetting, Plan, Protocol, Settings};
use pointsman_rules::Program;

use super::aside::{give_way, let_go};
use super::notice::{self, notice};
use crate::check::setting;
use crate::diff::report::Compared;

/// Steps for the rules of one listener: a second of one core, or two.
const STEPS: u64 = 100_000_000;
/// So many ways are named of one listener, and so many settings; `pointsman diff` names all.
const NAMED_MAX: usize = 5;

/// One reload at a time is looked at, and the newest of the others waits.
static WORK: Mutex<Work> = Mutex::new(Work { is_going_on: false, waiting: None });

struct Work {
    is_going_on: bool,
    waiting: Option<Vec<Replaced>>,
}

/// The rules of a listener, before and after.
struct Replaced {
    listener: String,
    programs: [Arc<Program>; 2],
    default_pools: [Option<String>; 2],
    setting: Setting,
}

/// What becomes of requests otherwise.
pub(super) struct Change {
    settings: Vec<ChangedSetting>,
    rules: Vec<Replaced>,
}

/// What two plans differ in, as far as that is seen at once, and what is to be compared.
pub(super) fn change(old: &Plan, new: &Plan) -> Change {
    Change { settings: Settings::changed(&old.settings, &new.settings, |_| true), rules: replaced(old, new) }
}

/// The listeners that stand in both plans and read requests by rules.
fn replaced(old: &Plan, new: &Plan) -> Vec<Replaced> {
    let replaced = new.listeners.iter().filter_map(|listener| {
        let before = old.listener_named(&listener.name)?;
        let programs = [before.program.clone()?, listener.program.clone()?];
        let settings = [setting(before, old), setting(listener, new)];
        let default_pools = [0, 1].map(|side| settings[side].default_pool.as_deref().map(str::to_owned));
        let [then, setting] = settings;
        let setting = setting.with_classes_of(&then);
        let are_of_requests = [before.protocol, listener.protocol] == [Protocol::Http; 2];
        let listener = listener.name.to_string();
        are_of_requests.then_some(Replaced { listener, programs, default_pools, setting })
    });
    replaced.collect()
}

/// Says what is decided otherwise, as soon as it is known; the reload and the requests wait for nothing.
pub(super) fn say(Change { settings, rules: replaced }: Change) {
    if !settings.is_empty() {
        notice(&format!("settings differ count={}", settings.len()));
    }
    settings.iter().take(NAMED_MAX).for_each(|changed| notice(&format!("  {}: {changed}", changed.owner)));
    if replaced.is_empty() {
        return;
    }
    let mut work = work();
    if let Some(left_out) = work.waiting.replace(replaced) {
        let_go(left_out);
        notice::warn("rules not compared: another reload came before it was their turn");
    }
    if work.is_going_on {
        return;
    }
    work.is_going_on = thread::Builder::new().name("differences".to_owned()).spawn(compare).is_ok();
    if !work.is_going_on {
        work.waiting = None;
        notice::warn("rules not compared: no thread for it");
    }
}

/// Until nothing waits any more.
fn compare() {
    give_way();
    while let Some(replaced) = next() {
        replaced.iter().for_each(Replaced::say);
    }
}

fn next() -> Option<Vec<Replaced>> {
    let mut work = work();
    let next = work.waiting.take();
    work.is_going_on = next.is_some();
    next
}

/// Whoever held it left it whole.
fn work() -> MutexGuard<'static, Work> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replaced {
    fn say(&self) {
        let Replaced { listener, programs: [old, new], default_pools: [old_pool, new_pool], setting } = self;
        let sides = [(old, old_pool), (new, new_pool)]
            .map(|(program, pool)| RuleSide { program, default_pool: pool.as_deref() });
        let found = differences(sides[0], sides[1], setting, Effort::new(STEPS));
        if found.are_none() {
            return;
        }
        let (ways, unknown) = (found.groups_count, found.undecided_count);
        let differ = if found.are_some() || unknown > 0 { "differ" } else { "may differ" };
        notice(&format!("rules {differ} listener={listener} ways={ways} unknown={unknown}"));
        let compared = Compared::new(listener.clone(), sides, setting, found, true, false);
        compared.briefly(NAMED_MAX).for_each(|line| notice(&line));
    }
}
