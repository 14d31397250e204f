//! Sticky clients: who is remembered where, and who is to be forgotten.

use pointsman_admin::{Page, Request};
use pointsman_relay::{StickyClient, Switch};
use serde_json::{Value, json};

use super::SwitchPages;

/// Clients that are told at once where nobody says how many.
const TOLD: usize = 100;

impl SwitchPages {
    /// Those of a pool, or of one server of it: some of them, and where the others begin.
    pub(super) fn sticky_clients(&self, request: &Request) -> Page {
        let switch = self.switch.borrow();
        let (pool, server) = (request.name(), request.parameter("server"));
        if !has(&switch, pool, server) {
            return no_server();
        }
        let number = |name| request.parameter(name).and_then(|number| number.parse::<usize>().ok());
        let (from, max) = (number("from").unwrap_or_default(), number("max").unwrap_or(TOLD));
        let page = switch.sticky_clients(pool, server, from, max);
        let clients: Vec<_> = page.clients.iter().map(shown).collect();
        Page::json(&json!({ "version": 1, "pool": pool, "clients": clients, "next": page.next }))
    }

    pub(super) fn forget_sticky_clients(&self, request: &Request) -> Page {
        let switch = self.switch.borrow();
        let (pool, server) = (request.name(), request.parameter("server"));
        match has(&switch, pool, server) {
            true => forgotten(switch.forget_sticky_clients(pool, server, None)),
            false => no_server(),
        }
    }

    pub(super) fn forget_sticky_client(&self, request: &Request) -> Page {
        let switch = self.switch.borrow();
        let [pool, client] = &request.names[..] else { return no_server() };
        match client_named(client).map(|client| switch.forget_sticky_clients(pool, None, Some(client))) {
            Some(count @ 1..) => forgotten(count),
            _ => Page::problem(
                404,
                "there is no such client: `/api/v1/pools/{pool}/sticky-clients` names them",
            ),
        }
    }

    pub(super) fn forget_sticky_targets(&self) -> Page {
        forgotten(self.switch.borrow().forget_sticky_targets())
    }
}

fn shown(client: &StickyClient) -> Value {
    json!({
        "client": format!("{:016x}", client.client),
        "server": &*client.server,
        "is_exception": !client.is_home,
        "idle_s": client.idle_s,
    })
}

/// The client of a name that [`shown`] gave.
fn client_named(name: &str) -> Option<u64> {
    let is_hex = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(name, 16).ok()).flatten()
}

fn forgotten(count: usize) -> Page {
    Page::json(&json!({ "version": 1, "forgotten": count }))
}

fn has(switch: &Switch, pool: &str, server: Option<&str>) -> bool {
    switch.with_plan(|plan| match server {
        None => plan.pools.iter().any(|known| *known.name == *pool),
        Some(server) => plan.server_named(pool, server).is_some(),
    })
}

fn no_server() -> Page {
    Page::problem(404, "there is no such pool or server: `/api/v1/pools` names them")
}
