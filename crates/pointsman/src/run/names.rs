//! Names of servers: what they stand for is joined with the plan, at the start, at a reload, and when an answer changes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use pointsman_config::{Answers, AtStart, DnsSettings, Found, Loaded, Lookup, Member, Plan, Problems};
use pointsman_dns::{News, Reader, Resolver};
use pointsman_telemetry::NameNow;

use super::notice::{self, notice};
use super::reloads::Reloads;
use super::unsaid_capacity;

/// Who knows what names stand for.
#[derive(Default)]
pub(super) struct Names {
    resolver: Resolver,
    /// What is looked up besides what plans name.
    besides: Vec<Lookup>,
    /// The servers of services that were taken last.
    taken: RefCell<HashMap<Lookup, Found>>,
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
    /// `serving` is what else must not be forgotten meanwhile. Where `is_cut`, it is waited for no longer.
    pub(super) fn join(
        &self,
        loaded: &Loaded,
        serving: &[Lookup],
        is_cut: impl Fn() -> bool,
    ) -> Result<Plan, Unjoined> {
        let plan = &loaded.plan;
        let lookups = plan.lookups();
        let all: Vec<_> = lookups.iter().chain(serving).cloned().collect();
        let no_thread = |error| Unjoined::NoThread(format!("no thread to look names up: {error}"));
        self.watch(&all, &plan.dns).map_err(no_thread)?;
        if lookups.is_empty() {
            return Ok(plan.clone());
        }
        let until = Instant::now() + Duration::from_millis(u64::from(plan.dns.limits.start_ms_max));
        let wait = |lookups: &[Lookup]| {
            self.resolver.wait(lookups, until.saturating_duration_since(Instant::now()), &is_cut)
        };
        let mut unknown = wait(&lookups);
        let targets = targets(&self.resolver.answers(), &lookups);
        if !targets.is_empty() {
            // They are known only now.
            self.watch(&all, &plan.dns).map_err(no_thread)?;
            wait(&targets);
        }
        self.tell();
        let answers = self.answers();
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
        let mut all = [lookups, &self.besides].concat();
        all.extend(targets(&self.resolver.answers(), lookups));
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

impl Reloads {
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
