//! Names of servers: what they stand for is joined with the plan, at the start, at a reload, and when an answer changes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use pointsman_config::{Answers, AtStart, DnsSettings, Found, Loaded, Lookup, Member, Plan, Problems};
use pointsman_dns::{News, Reader, Resolver};
use pointsman_telemetry::NameNow;

use super::aside::beside;
use super::notice::{self, notice};
use super::reloads::Reloads;
use super::turns::Turn;
use super::unsaid_capacity;

/// Who knows what names stand for.
#[derive(Default)]
pub(super) struct Names {
    resolver: Resolver,
    /// What is looked up besides what plans name.
    besides: Vec<Lookup>,
    /// The servers of services that were taken last.
    taken: RefCell<HashMap<Lookup, Found>>,
    /// What a plan needs that is to follow the one that serves, which is not looked up for that one alone meanwhile.
    coming: RefCell<Option<(Vec<Lookup>, DnsSettings)>>,
}

/// What is looked up for a plan.
struct Wanted {
    lookups: Vec<Lookup>,
    /// With what must not be forgotten meanwhile.
    all: Vec<Lookup>,
    until: Instant,
}

impl Wanted {
    fn of(loaded: &Loaded, serving: &[Lookup]) -> Wanted {
        let lookups = loaded.plan.lookups();
        let all = lookups.iter().chain(serving).cloned().collect();
        let ms = u64::from(loaded.plan.dns.limits.start_ms_max);
        Wanted { lookups, all, until: Instant::now() + Duration::from_millis(ms) }
    }
}

/// Why a plan cannot serve.
pub(super) enum Unjoined {
    /// Nothing is known of a name in it.
    Unknown(Problems),
    /// The system has no thread to look names up.
    NoThread(String),
}

impl Names {
    /// Looks this up, too, whatever plans name; nobody waits for it.
    pub(super) fn beside(lookup: Option<Lookup>) -> Names {
        Names { besides: lookup.into_iter().collect(), ..Names::default() }
    }

    /// What tells of a name, from whatever thread asks.
    pub(super) fn reader(&self, lookup: Lookup) -> Reader {
        self.resolver.reader(lookup)
    }

    /// A plan with what is known of its names. Those that are new are looked up first, for as long as the plan says.
    pub(super) fn join(&self, loaded: &Loaded) -> Result<Plan, Unjoined> {
        let wanted = Wanted::of(loaded, &[]);
        self.watch(&wanted.all, &loaded.plan.dns).map_err(no_thread)?;
        self.resolver.waiter(wanted.lookups.clone()).wait_until(wanted.until);
        let targets = self.watch_targets(&wanted, loaded).map_err(no_thread)?;
        self.resolver.waiter(targets).wait_until(wanted.until);
        self.joined(loaded)
    }

    /// Looks up what is new in a plan that is to follow the one that serves with these names, for as long as it says:
    /// whoever asks meanwhile is answered. It is looked up until what comes of this is dropped.
    async fn look_up(&self, loaded: &Loaded, serving: &[Lookup], turn: &Turn) -> io::Result<()> {
        let wanted = Wanted::of(loaded, serving);
        *self.coming.borrow_mut() = Some((wanted.all.clone(), loaded.plan.dns.clone()));
        self.watch(&wanted.all, &loaded.plan.dns)?;
        self.wait(wanted.lookups.clone(), wanted.until, turn).await;
        let targets = self.watch_targets(&wanted, loaded)?;
        self.wait(targets, wanted.until, turn).await;
        Ok(())
    }

    /// Waits in a thread of its own where there is something to wait for.
    async fn wait(&self, lookups: Vec<Lookup>, until: Instant, turn: &Turn) {
        if self.resolver.are_settled(&lookups) {
            return;
        }
        let waiter = self.resolver.waiter(lookups);
        // Where it breaks off what is not known by now is unknown.
        let (Ok(()) | Err(_)) = beside(move || waiter.wait_until(until), turn.clone()).await;
    }

    /// Looks up what servers of services stand for, too, which are known only now.
    fn watch_targets(&self, wanted: &Wanted, loaded: &Loaded) -> io::Result<Vec<Lookup>> {
        let targets = targets(&self.resolver.answers(), &wanted.lookups);
        if !targets.is_empty() {
            self.watch(&wanted.all, &loaded.plan.dns)?;
        }
        Ok(targets)
    }

    /// A plan with what is known by now of its names, which have been looked up.
    pub(super) fn joined(&self, loaded: &Loaded) -> Result<Plan, Unjoined> {
        let plan = &loaded.plan;
        let lookups = plan.lookups();
        if lookups.is_empty() {
            return Ok(plan.clone());
        }
        self.tell();
        let (mut unknown, answers) = (self.resolver.unknown(&lookups), self.answers());
        for lookup in &lookups {
            if !unknown.contains_key(lookup) && !has_address(lookup, &answers) {
                unknown.insert(lookup.clone(), "none of its servers has an address".to_owned());
            }
        }
        if plan.dns.at_start == AtStart::Refuse
            && let Some(problems) = loaded.unanswered(|lookup| unknown.get(lookup).cloned())
        {
            return Err(Unjoined::Unknown(problems));
        }
        Ok(plan.with_answers(&answers))
    }

    /// Looks up what the plan that serves names, and nothing else.
    pub(super) fn keep(&self, lookups: &[Lookup], settings: &DnsSettings) {
        // Its thread runs by now if it is needed.
        let (Ok(()) | Err(_)) = self.watch(lookups, settings);
    }

    /// Looks these up, and the servers of services that are known by now.
    fn watch(&self, lookups: &[Lookup], settings: &DnsSettings) -> io::Result<()> {
        let coming = self.coming.borrow();
        let (coming, settings) = match &*coming {
            Some((coming, settings)) => (coming.as_slice(), settings),
            None => (&[][..], settings),
        };
        let mut all = [lookups, coming, &self.besides].concat();
        all.extend(targets(&self.resolver.answers(), &all));
        all.sort_unstable();
        all.dedup();
        self.resolver.watch(all, settings)
    }

    /// What is known by now. Of a service the servers that were taken last hold until each of the new ones has been
    /// looked up, and one of them has an address.
    fn answers(&self) -> Answers {
        let mut answers = self.resolver.answers();
        let mut taken = self.taken.borrow_mut();
        taken.retain(|lookup, _| answers.contains_key(lookup));
        let services = answers.iter().filter(|(_, found)| matches!(found, Found::Services(_)));
        let services: Vec<_> = services.map(|(lookup, found)| (lookup.clone(), found.clone())).collect();
        for (lookup, found) in services {
            let targets = targets(&answers, std::slice::from_ref(&lookup));
            if self.resolver.are_settled(&targets) && has_address(&lookup, &answers) {
                taken.insert(lookup, found);
            } else if let Some(before) = taken.get(&lookup) {
                answers.insert(lookup, before.clone());
            } else {
                answers.remove(&lookup);
            }
        }
        answers
    }

    /// Says what has become of names.
    fn tell(&self) {
        for news in self.resolver.take_news() {
            let say = if matches!(news, News::Failed(..)) { notice::warn } else { notice };
            say(&news.to_string());
        }
    }

    /// How it stands with every name.
    pub(super) fn now(&self) -> Vec<NameNow> {
        let states = self.resolver.states().into_iter().map(|state| NameNow {
            name: state.lookup.name().clone(),
            record: state.lookup.record(),
            found: state.found_count as u64,
            is_failing: state.is_failing,
            lookups: state.outcomes,
        });
        states.collect()
    }
}

/// Where nothing can be looked up.
pub(super) fn no_thread(error: io::Error) -> Unjoined {
    Unjoined::NoThread(format!("no thread to look names up: {error}"))
}

/// What the servers of these services are looked up by.
fn targets(answers: &Answers, lookups: &[Lookup]) -> Vec<Lookup> {
    let members = lookups.iter().filter_map(|lookup| match answers.get(lookup) {
        Some(Found::Services(members)) => Some(members),
        Some(Found::Addresses(_)) | None => None,
    });
    members.flatten().map(Member::lookup).collect()
}

/// Whether some server is known by it, and where that is.
fn has_address(lookup: &Lookup, answers: &Answers) -> bool {
    match answers.get(lookup) {
        Some(Found::Services(members)) => members.iter().any(|member| answers.contains_key(&member.lookup())),
        Some(Found::Addresses(_)) => true,
        None => false,
    }
}

/// A plan whose names have been looked up. Until this is dropped they are.
pub(super) struct LookedUp<'r> {
    reloads: &'r Reloads,
    looked_up: io::Result<()>,
}

impl LookedUp<'_> {
    /// The plan with what is known of its names by now.
    pub(super) fn join(&mut self, loaded: &Loaded) -> Result<Plan, Unjoined> {
        std::mem::replace(&mut self.looked_up, Ok(())).map_err(no_thread)?;
        self.reloads.names.joined(loaded)
    }
}

impl Drop for LookedUp<'_> {
    /// What serves by now is looked up from now on.
    fn drop(&mut self) {
        let names = &self.reloads.names;
        names.coming.take();
        let (lookups, settings) =
            self.reloads.switch.borrow().with_plan(|plan| (plan.lookups(), plan.dns.clone()));
        names.keep(&lookups, &settings);
    }
}

impl Reloads {
    /// Looks up what is new in a plan that is to serve: in a turn that has come, so that there is one such plan at a time.
    pub(super) async fn look_up(&self, loaded: &Loaded, turn: &Turn) -> LookedUp<'_> {
        debug_assert!(turn.has_come());
        let serving = self.switch.borrow().with_plan(Plan::lookups);
        let mut looked_up = LookedUp { reloads: self, looked_up: Ok(()) };
        looked_up.looked_up = self.names.look_up(loaded, &serving, turn).await;
        looked_up
    }

    /// Puts a plan with new answers in the place of the one that serves, where they make a difference to it.
    pub(super) fn follow_names(&self) {
        self.names.tell();
        if self.is_held.get() || !self.names.resolver.take_changed() {
            return;
        }
        let mut switch = self.switch.borrow_mut();
        let (lookups, settings) = switch.with_plan(|plan| (plan.lookups(), plan.dns.clone()));
        let answers = self.names.answers();
        let changed = switch.with_plan(|plan| {
            let changed = plan.with_answers(&answers);
            (changed.pools != plan.pools).then_some(changed)
        });
        let Some(changed) = changed else {
            // A service may have servers by now that are to be looked up.
            return self.names.keep(&lookups, &settings);
        };
        let lookups = changed.lookups();
        let capacity = unsaid_capacity(&changed, switch.threads(), self.descriptors_max);
        match switch.publish(changed, capacity) {
            Ok(generation) => {
                self.names.keep(&lookups, &settings);
                self.metrics.changed_plan(generation);
                notice(&format!("servers changed generation={generation}"));
            }
            // It listens where it did before, with as many threads.
            Err(fault) => notice::error(&format!("servers not changed: {fault}")),
        }
    }
}
