//! What comes and what becomes of it, as a page that is read once a second: counts since the start, differences are for
//! who reads.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pointsman_admin::Page;
use pointsman_config::{Listener, Server};
use pointsman_relay::ServerGlance;
use pointsman_rules::Program;
use pointsman_telemetry::{HandshakeCounts, OutcomeCounts, RuleCounts, duration_bounds_us};
use serde_json::{Map, Value, json};

use super::{SwitchPages, members};

impl SwitchPages {
    /// What was counted of listeners, rules and servers, and how servers stand.
    pub(super) fn traffic(&self) -> Page {
        let switch = self.switch.borrow();
        let glances = switch.servers_at_a_glance();
        let (listeners, pools): (Vec<Value>, Vec<Value>) = switch.with_plan(|plan| {
            let pool_of = |listener: &Listener| listener.default_pool.map(|pool| &*plan.pool(pool).name);
            let listeners =
                plan.listeners.iter().map(|listener| self.listener_traffic(listener, pool_of(listener)));
            let pools = plan.pools.iter().map(|pool| {
                let outcomes = self.metrics.servers_of(&pool.name);
                let servers = pool.servers.iter().filter_map(|server| {
                    let glance = glances.get(&(pool.name.clone(), server.name.clone()))?;
                    Some(server_traffic(server, outcomes.get(&*server.name), *glance))
                });
                json!({ "name": &*pool.name, "servers": servers.collect::<Vec<_>>() })
            });
            (listeners.collect(), pools.collect())
        });
        Page::dense_json(&json!({
            "version": 1,
            "generation": switch.generation(),
            "at_us": switch.now_us(),
            "took_up_to_us": duration_bounds_us().collect::<Vec<_>>(),
            "listeners": listeners,
            "pools": pools,
        }))
    }

    fn listener_traffic(&self, listener: &Listener, pool: Option<&str>) -> Value {
        let counts = self.metrics.listener_counts(&listener.name);
        let mut shown = counted(counts.as_ref().map(|counts| &counts.outcomes));
        let rules = self.metrics.rules_of(&listener.name);
        let rules = rules_traffic(rules, listener.program.as_deref());
        let other = self.metrics.other_rules_of(&listener.name);
        shown.extend(members(json!({
            "name": &*listener.name,
            "protocol": listener.protocol.name(),
            "pool": pool,
            "connections_open": counts.as_ref().map_or(0, |counts| counts.connections_open),
            "refusals": counts.as_ref().map_or(0, |counts| counts.refusals),
            "tls": counts.filter(|_| listener.is_tls()).map(|counts| handshakes(&counts.handshakes)),
            "rules": rules,
            "other_rules": other.map(|other| counted(Some(&other))),
        })));
        Value::Object(shown)
    }
}

fn handshakes(counts: &HandshakeCounts) -> Value {
    let by = |counts: &[(&'static str, u64)]| counts.iter().copied().collect::<BTreeMap<_, _>>();
    let HandshakeCounts { sessions, versions, groups, failures } = counts;
    let mut shown = json!({ "versions": by(versions), "groups": by(groups), "failures": by(failures) });
    sessions.iter().for_each(|(session, count)| shown[*session] = json!(count));
    shown
}

fn server_traffic(server: &Server, outcomes: Option<&OutcomeCounts>, glance: ServerGlance) -> Value {
    let mut shown = counted(outcomes);
    shown.extend(members(json!({
        "name": &*server.name,
        "state": glance.state.name(),
        "weight": server.weight,
        "in_flight_requests": glance.in_flight,
        "failures": glance.failures,
    })));
    Value::Object(shown)
}

/// Rules that have a place of their own in the metrics, in the order of the text, each with the pools that it may send a
/// request to. Of all others together the listener tells.
fn rules_traffic(counts: Vec<RuleCounts>, program: Option<&Program>) -> Vec<Value> {
    let mut told: HashMap<String, (u64, OutcomeCounts)> = counts
        .into_iter()
        .filter_map(|RuleCounts { rule, hits, outcomes }| Some((rule, (hits, outcomes?))))
        .collect();
    let rules = program.into_iter().flat_map(|program| program.rules.iter().chain(&program.fallback));
    let mut shown: Vec<Value> = rules
        .filter_map(|rule| {
            let counts = told.remove(&*rule.label)?;
            let pools: BTreeSet<&str> = rule
                .targets()
                .filter_map(|target| Some(&*program?.targets.get(target.0 as usize)?.pool))
                .collect();
            Some(rule_traffic(&rule.label, counts, Some(&pools)))
        })
        .collect();
    // What is left is no rule of the text: what no rule decides, and what was asked under rules that are gone.
    let mut left: Vec<_> = told.into_iter().collect();
    left.sort_by(|(one, _), (other, _)| one.cmp(other));
    shown.extend(left.into_iter().map(|(label, counts)| rule_traffic(&label, counts, None)));
    shown
}

fn rule_traffic(
    label: &str,
    (hits, outcomes): (u64, OutcomeCounts),
    pools: Option<&BTreeSet<&str>>,
) -> Value {
    let mut shown = counted(Some(&outcomes));
    shown.extend(members(json!({ "rule": label, "hits": hits, "pools": pools })));
    Value::Object(shown)
}

/// What became of requests: by class of status, and how many took longer than the bound before and no longer than each.
fn counted(outcomes: Option<&OutcomeCounts>) -> Map<String, Value> {
    let none = OutcomeCounts::default();
    let OutcomeCounts { responses, durations } = outcomes.unwrap_or(&none);
    let mut before = 0;
    let took = durations.up_to_us.iter().map(|(_, count)| count - std::mem::replace(&mut before, *count));
    let took: Vec<u64> = took.collect();
    members(json!({ "responses": BTreeMap::from(*responses), "took": took, "took_sum_us": durations.sum_us }))
}
