//! Which server of the target gets the request.

use std::net::SocketAddr;
use std::rc::Rc;

use pointsman_balance::rendezvous;
use pointsman_config::Target;
use pointsman_rules::{Field, Stickiness, Subject, Value};
use pointsman_view::{ConnectionView, RequestView};

use crate::commit::HeaderEdits;
use crate::live::Live;
use crate::local::{Local, LocalPool, LocalServer};
use crate::shard::Shard;
use crate::standing::{Admission, Newcomer};

/// The switch's own cookie.
pub(crate) const ROUTE_COOKIE: &str = "pm_route";

/// How many ids are drawn for a new client while servers are draining: one of a hundred servers that takes new
/// clients is missed once in 13.
const IDS_DRAWN_MAX: usize = 256;

/// The servers that may get a request, and how one of them is chosen.
pub(crate) struct Choice {
    pool: Rc<LocalPool>,
    by: By,
    /// Empty, and no room taken for it, unless something goes wrong.
    failed: Vec<usize>,
}

#[derive(Clone, Copy)]
enum By {
    /// The rule names the server.
    Name(usize),
    /// The client stays with a server.
    Hash(u64),
    /// The pool's algorithm.
    Turn,
}

impl Choice {
    pub(crate) fn new(local: &Local, target: Target, sticky: Option<u64>) -> Choice {
        Choice {
            pool: local.pool(target.pool).clone(),
            by: match (target.server, sticky) {
                (Some(server), _) => By::Name(server.0 as usize),
                (None, Some(key)) => By::Hash(key),
                (None, None) => By::Turn,
            },
            failed: Vec::new(),
        }
    }

    /// The next server to try; none when all have failed.
    pub(crate) fn pick(&self, shard: &Shard) -> Option<Rc<LocalServer>> {
        let now_us = shard.clock.round_us();
        let who = match self.by {
            By::Hash(_) => Newcomer::Sticky,
            By::Name(_) | By::Turn => Newcomer::New,
        };
        let usable = |server: usize| {
            let local = &self.pool.servers[server];
            local.standing.admits(who, now_us) && local.weight() > 0 && !self.failed.contains(&server)
        };
        let by_hash = |key| {
            let servers = self.pool.servers.iter().enumerate();
            rendezvous(key, servers.map(|(at, server)| (server.identity, server.weight(), usable(at))))
        };
        let index = match self.by {
            By::Name(server) => Some(server).filter(|&server| usable(server)),
            By::Hash(key) => by_hash(key),
            // A second try takes no turn: it would hand the next client the server that failed this one.
            By::Turn if !self.failed.is_empty() => by_hash(shard.random()),
            By::Turn => {
                let load = |server: usize| self.pool.servers[server].bears(shard.clock);
                let weight =
                    |server: usize| if usable(server) { self.pool.servers[server].weight() } else { 0 };
                self.pool.picker.borrow_mut().pick(load, weight, shard.random())
            }
        }?;
        self.pool.servers.get(index).cloned()
    }

    /// Not that one again: it did not take the request.
    pub(crate) fn exclude(&mut self, failed: &LocalServer) {
        if let Some(at) = self.pool.servers.iter().position(|server| server.id == failed.id) {
            self.failed.push(at);
        }
    }
}

/// Whether the server that a client of that hash stays with takes nobody who is new.
fn stays_with_draining(pool: &LocalPool, hash: u64, now_us: u64) -> bool {
    let is_draining = |server: &LocalServer| server.standing.admission() == Admission::Draining;
    let takes_new = |server: &LocalServer| server.standing.is_usable(now_us);
    // Where all of them are draining, no other id is better.
    if !pool.servers.iter().any(|server| is_draining(server))
        || !pool.servers.iter().any(|server| takes_new(server))
    {
        return false;
    }
    let admits = |server: &LocalServer| server.standing.admits(Newcomer::Sticky, now_us);
    let servers = pool.servers.iter().map(|server| (server.identity, server.weight(), admits(server)));
    rendezvous(hash, servers).is_some_and(|at| is_draining(&pool.servers[at]))
}

/// The hash that keeps a client with a server of `pool`, if the rule asks for it and the request
/// carries what it asks for: the peer of a Unix socket has no address. A client without the switch's cookie is given one
/// with the answer, which keeps it with no server that is draining.
pub(crate) fn sticky_key(
    shard: &Shard,
    live: &Live,
    pool: &LocalPool,
    sticky: &Stickiness,
    view: &RequestView<'_>,
    response: &mut HeaderEdits<'_>,
) -> Option<u64> {
    let hash = |key: &[u8]| live.sticky.hash(pool.name().as_bytes(), key);
    match sticky {
        Stickiness::None => None,
        Stickiness::Ip => view.client_ip().map(|client| hash(&address_bytes(client))),
        Stickiness::IpPort => view.connection().src.map(|src| hash(&end_bytes(src))),
        Stickiness::Field(field) => hash_field(&hash, field, view),
        Stickiness::Cookie => {
            let known = view.cookies(ROUTE_COOKIE).find_map(|value| live.route_cookie.open(value));
            let id = known.unwrap_or_else(|| {
                let mut ids = shard.client_ids.borrow_mut();
                let now_us = shard.clock.round_us();
                let mut id = ids.next_id();
                for _ in 1..IDS_DRAWN_MAX {
                    if !stays_with_draining(pool, hash(&id), now_us) {
                        break;
                    }
                    id = ids.next_id();
                }
                response.add("set-cookie", set_cookie(&live.route_cookie.seal(id), view));
                id
            });
            Some(hash(&id))
        }
    }
}

/// The same for a connection of which no request is read, and which has no cookies.
pub(crate) fn connection_key(
    live: &Live,
    pool: &str,
    sticky: &Stickiness,
    view: &ConnectionView<'_>,
) -> Option<u64> {
    let hash = |key: &[u8]| live.sticky.hash(pool.as_bytes(), key);
    match sticky {
        Stickiness::None | Stickiness::Cookie => None,
        Stickiness::Ip => view.client_ip().map(|client| hash(&address_bytes(client))),
        Stickiness::IpPort => view.connection().src.map(|src| hash(&end_bytes(src))),
        Stickiness::Field(field) => hash_field(&hash, field, view),
    }
}

fn set_cookie(sealed: &[u8], view: &RequestView<'_>) -> Vec<u8> {
    let mut cookie = Vec::with_capacity(160);
    cookie.extend_from_slice(ROUTE_COOKIE.as_bytes());
    cookie.push(b'=');
    cookie.extend_from_slice(sealed);
    cookie.extend_from_slice(b"; Path=/; HttpOnly; SameSite=Lax");
    if view.connection().tls.is_some() {
        cookie.extend_from_slice(b"; Secure");
    }
    cookie
}

/// The hash of a field's first value.
fn hash_field(hash: &impl Fn(&[u8]) -> u64, field: &Field, subject: &impl Subject) -> Option<u64> {
    let mut found = None;
    subject.each(field, &mut |value| {
        found = hash_value(hash, value);
        std::ops::ControlFlow::Break(())
    });
    found
}

fn hash_value(hash: &impl Fn(&[u8]) -> u64, value: Value<'_>) -> Option<u64> {
    match value {
        Value::Text(text) => Some(hash(text)),
        Value::Integer(number) => Some(hash(&number.to_be_bytes())),
        Value::Ip(address) => Some(hash(&address_bytes(address))),
        Value::Boolean(truth) => Some(hash(&[u8::from(truth)])),
        Value::Nothing | Value::Unknown(_) => None,
    }
}

/// An address and a port.
fn end_bytes(end: SocketAddr) -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&address_bytes(end.ip()));
    bytes[16..].copy_from_slice(&end.port().to_be_bytes());
    bytes
}

/// An address as 16 bytes, IPv4 in its mapped form.
fn address_bytes(address: std::net::IpAddr) -> [u8; 16] {
    match address {
        std::net::IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        std::net::IpAddr::V6(v6) => v6.octets(),
    }
}
