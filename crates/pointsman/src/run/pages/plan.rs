//! What serves: listeners with their rules, and pools with their servers.

use pointsman_admin::Page;
use pointsman_config::{Listener, Plan, Pool, Server};
use pointsman_relay::Switch;
use serde_json::{Value, json};

use super::SwitchPages;

impl SwitchPages {
    /// All of the plan that can be seen from outside.
    pub(super) fn plan(&self) -> Page {
        let switch = self.switch.borrow();
        let addresses = switch.addresses();
        Page::json(&switch.with_plan(|plan| {
            let listener = |listener: &Listener| {
                let own = addresses.iter().filter(|address| address.listener == listener.name);
                let addresses: Vec<String> = own.map(|address| address.address.to_string()).collect();
                self.listener(listener, plan, &addresses)
            };
            json!({
                "version": 1,
                "began": self.began,
                "generation": switch.generation(),
                "configuration": self.configuration(),
                "listeners": plan.listeners.iter().map(listener).collect::<Vec<_>>(),
                "pools": plan.pools.iter().map(|pool| self::pool(pool, &switch)).collect::<Vec<_>>(),
            })
        }))
    }

    fn listener(&self, listener: &Listener, plan: &Plan, addresses: &[String]) -> Value {
        let rules = self.reloads.rules_of(&listener.name).ok();
        let rules = rules.map(
            |set| json!({ "file": set.name, "rules_version": set.version(), "bytes": set.source.len() }),
        );
        json!({
            "name": &*listener.name,
            "addresses": addresses,
            "protocol": listener.protocol.name(),
            "tls": listener.is_tls(),
            "rules": rules,
            "pool": listener.default_pool.map(|pool| plan.pool(pool).name.to_string()),
        })
    }
}

/// Where it listens; what is looked up for it while that is not known.
pub(super) fn address(server: &Server) -> String {
    let known = server.address.map(|address| address.to_string()).or_else(|| host(server));
    known.or_else(|| server.service.as_deref().map(str::to_owned)).unwrap_or_default()
}

/// The name that its address is looked up by, and the port.
pub(super) fn host(server: &Server) -> Option<String> {
    server.host.as_ref().map(ToString::to_string)
}

fn pool(pool: &Pool, switch: &Switch) -> Value {
    let servers = pool.servers.iter().map(|server| {
        json!({
            "name": &*server.name,
            "address": address(server),
            "host": host(server),
            "service": server.service.as_deref(),
            "weight": server.weight,
            "tls": server.tls.is_some(),
            "in_flight_requests": switch.in_flight(&pool.name, &server.name).unwrap_or(0),
        })
    });
    json!({
        "name": &*pool.name,
        "balance": pool.balancing.name(),
        "servers": servers.collect::<Vec<_>>(),
    })
}
