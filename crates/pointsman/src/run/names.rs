//! Names of servers: what they stand for is joined with the plan, at the start, at a reload, and when an answer changes.

use std::time::Duration;

use pointsman_config::{AtStart, DnsSettings, Loaded, Lookup, Plan, Problems};
use pointsman_dns::{News, Resolver};
use pointsman_telemetry::NameNow;

use super::notice::{self, notice};
use super::reloads::Reloads;
use super::unsaid_capacity;

/// Who knows what names stand for.
#[derive(Default)]
pub(super) struct Names {
    resolver: Resolver,
}

/// Why a plan cannot serve.
pub(super) enum Unjoined {
    /// Nothing is known of a name in it.
    Unknown(Problems),
    /// The system has no thread to look names up.
    NoThread(String),
}

impl Names {
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
        let mut all = lookups.clone();
        all.extend(serving.iter().filter(|lookup| !lookups.contains(lookup)).cloned());
        self.resolver
            .watch(all, &plan.dns)
            .map_err(|error| Unjoined::NoThread(format!("no thread to look names up: {error}")))?;
        if lookups.is_empty() {
            return Ok(plan.clone());
        }
        let max = Duration::from_millis(u64::from(plan.dns.limits.start_ms_max));
        let unknown = self.resolver.wait(&lookups, max, is_cut);
        self.tell();
        if plan.dns.at_start == AtStart::Refuse
            && let Some(problems) = loaded.unanswered(|lookup| unknown.get(lookup).cloned())
        {
            return Err(Unjoined::Unknown(problems));
        }
        Ok(plan.with_answers(&self.resolver.answers()))
    }

    /// Looks up what the plan that serves names, and nothing else.
    pub(super) fn keep(&self, lookups: Vec<Lookup>, settings: &DnsSettings) {
        // Its thread runs by now if it is needed.
        let (Ok(()) | Err(_)) = self.resolver.watch(lookups, settings);
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

impl Reloads {
    /// Puts a plan with new answers in the place of the one that serves, where they make a difference to it.
    pub(super) fn follow_names(&self) {
        self.names.tell();
        if self.is_held.get() || !self.names.resolver.has_changed() {
            return;
        }
        let mut switch = self.switch.borrow_mut();
        let answers = self.names.resolver.answers();
        let changed = switch.with_plan(|plan| {
            let changed = plan.with_answers(&answers);
            (changed.pools != plan.pools).then_some(changed)
        });
        let Some(changed) = changed else { return };
        let capacity = unsaid_capacity(&changed, switch.threads(), self.descriptors_max);
        match switch.publish(changed, capacity) {
            Ok(generation) => {
                self.metrics.changed_plan(generation);
                notice(&format!("servers changed generation={generation}"));
            }
            // It listens where it did before, with as many threads.
            Err(fault) => notice::error(&format!("servers not changed: {fault}")),
        }
    }
}
