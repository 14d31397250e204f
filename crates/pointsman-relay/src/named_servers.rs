//! Servers that have names, from one plan to the next: where their names led, and what is to be said when that changes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use pointsman_config::{Host, Pool, Server};

use crate::live::LiveServer;
use crate::standing::Standing;

/// The servers of the last plan whose addresses are looked up, by pool and name.
#[derive(Default)]
pub(crate) struct NamedServers(HashMap<(Arc<str>, Arc<str>), Place>);

/// Where a server was.
struct Place {
    host: Host,
    address: Option<SocketAddr>,
    standing: Arc<Standing>,
}

impl NamedServers {
    /// Notes in the history of each server whose name leads elsewhere now that it does, behind what became of it before;
    /// and of each that a service has named since.
    pub(crate) fn follow(&mut self, pools: &[Pool], live: &[Vec<LiveServer>], now_us: u64) {
        let mut now = HashMap::new();
        for (pool, live) in pools.iter().zip(live) {
            for (server, live) in pool.servers.iter().zip(live) {
                let Some(host) = &server.host else { continue };
                let key = (pool.name.clone(), server.name.clone());
                follow(self.0.get(&key), server, host, &live.standing, now_us);
                let standing = live.standing.clone();
                now.insert(key, Place { host: host.clone(), address: server.address, standing });
            }
        }
        self.0 = now;
    }
}

fn follow(before: Option<&Place>, server: &Server, host: &Host, standing: &Standing, now_us: u64) {
    let Some(address) = server.address else { return };
    match (before, &server.service) {
        (Some(before), _) if before.host != *host || before.address == server.address => {}
        (Some(before), _) => {
            standing.remember(&before.standing);
            standing.take_over(&before.standing, now_us);
            let from = before.address.map_or_else(String::new, |from| format!("from {from} "));
            standing.note(&format!("dns: {host} has moved {from}to {address}"), now_us);
        }
        (None, Some(service)) => standing.note(&format!("dns: {service} names {host}, at {address}"), now_us),
        (None, None) => {}
    }
}
