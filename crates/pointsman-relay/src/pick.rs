//! Which server of the target gets the request.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use pointsman_balance::{ClientId, RouteCookie, rendezvous};
use pointsman_config::{Listener, Target};
use pointsman_rules::{Field, Share, Stickiness, Subject, Value};
use pointsman_tls::ShownSession;
use pointsman_view::{ConnectionView, RequestView};

use crate::choice::{By, Choice};
use crate::commit::HeaderEdits;
use crate::local::Local;
use crate::shard::Shard;
use crate::sticky_targets::{KeptBy, target_identity};

/// The switch's own cookie.
pub(crate) const ROUTE_COOKIE: &str = "pm_route";

/// How many ids are drawn for a new client while servers are down or draining: one of a hundred servers that takes
/// new clients is missed once in 13.
const IDS_DRAWN_MAX: usize = 256;

/// Where a decision leads.
#[derive(Clone, Copy)]
pub(crate) enum Route<'r> {
    To(Target),
    /// To one of several, by their shares.
    Split(&'r [Share]),
}

/// A route, and what is needed to follow it.
pub(crate) struct Fork<'a> {
    pub(crate) shard: &'a Shard,
    pub(crate) local: &'a Local,
    pub(crate) listener: &'a Listener,
    pub(crate) route: Route<'a>,
    /// By what clients stay with targets, where they do and what decided leaves them theirs.
    pub(crate) keeps: &'a [KeptBy],
}

/// What a client is known by.
#[derive(Clone, Copy)]
pub(crate) struct KnownBy<'k> {
    pub(crate) key: &'k [u8],
    /// Whether it can have that from here alone: then it is not new, although nobody remembers it.
    pub(crate) has_been_here: bool,
}

impl<'k> KnownBy<'k> {
    /// By what says nothing of whether it is new.
    fn anybody(key: &'k [u8]) -> KnownBy<'k> {
        KnownBy { key, has_been_here: false }
    }
}

/// Sets what clients are hashed by for a split apart from what they are hashed by in a pool: no pool's name begins so.
pub(crate) const SPLIT_SALT: &[u8] = b"\0split";

impl Fork<'_> {
    /// For a request: by what the client is known by, if the rule asks for it and the request carries what it asks
    /// for: the peer of a Unix socket has no address. A client without the switch's cookie is given one with the
    /// answer, which keeps it with no server that is down or draining.
    pub(crate) fn of_request(
        &self,
        sticky: &Stickiness,
        view: &RequestView<'_>,
        response: &mut HeaderEdits<'_>,
    ) -> Choice {
        let cookie = &self.local.live.route_cookie;
        if let Some(kept) = self.of_kept(|sticky, of| known_by(sticky, view, cookie, of).flatten()) {
            return kept;
        }
        let known = known_by(sticky, view, cookie, |known| self.of_known(sticky, known));
        known.unwrap_or_else(|| match sticky {
            Stickiness::Cookie => {
                let (id, choice) = self.of_new_client();
                // It would prove the next time that the client is not new.
                if !choice.is_turned_away(self.shard) {
                    self.keep(sticky, &id, &choice);
                    response.add("set-cookie", set_cookie(&cookie.seal(id), view));
                }
                choice
            }
            _ => self.by_pool(view),
        })
    }

    /// The same for a connection of which no request is read, and which has no cookies. Of TLS that is not ended here it has
    /// the session that the client shows.
    pub(crate) fn of_connection(
        &self,
        sticky: &Stickiness,
        view: &ConnectionView<'_>,
        shown: &ShownSession,
    ) -> Choice {
        self.of_kept(|sticky, of| connection_known_by(sticky, (view, shown), of))
            .or_else(|| {
                connection_known_by(sticky, (view, shown), |known| match sticky {
                    Stickiness::TlsSession => self.of_session(sticky, known),
                    _ => Some(self.of_known(sticky, known)),
                })
            })
            .unwrap_or_else(|| self.by_pool(view))
    }

    fn of_known(&self, sticky: &Stickiness, known: KnownBy<'_>) -> Choice {
        let choice = self.by_key(known);
        self.keep(sticky, known.key, &choice);
        choice
    }

    /// By what the pool says.
    fn by_pool(&self, subject: &impl Subject) -> Choice {
        let target = match self.route {
            Route::To(target) => target,
            Route::Split(shares) => self.share(shares, self.shard.random()),
        };
        let pool = self.local.pool(target.pool);
        let hash = |key: &[u8]| self.local.live.sticky.hash(pool.name().as_bytes(), key);
        let hash = pool.hash_on().and_then(|field| with_key(field, subject, address_bytes, hash));
        Choice::new(self.local, target, hash.map_or(By::Turn, By::Hash))
    }

    fn by_key(&self, known: KnownBy<'_>) -> Choice {
        let sticky = &self.local.live.sticky;
        let target = match self.route {
            Route::To(target) => target,
            Route::Split(shares) => self.share(shares, sticky.hash(SPLIT_SALT, known.key)),
        };
        self.inside(target, known)
    }

    /// A sticky client's choice inside a target.
    pub(crate) fn inside(&self, target: Target, known: KnownBy<'_>) -> Choice {
        let KnownBy { key, has_been_here } = known;
        let pool = self.local.pool(target.pool).name();
        let client = self.local.live.sticky.hash(pool.as_bytes(), key);
        Choice::new(self.local, target, By::Sticky { client, has_been_here })
    }

    /// An id for a client that has none.
    fn of_new_client(&self) -> (ClientId, Choice) {
        let mut ids = self.shard.client_ids.borrow_mut();
        let now_us = self.shard.clock.round_us();
        let mut id = ids.next_id();
        let mut choice = self.by_key(KnownBy::anybody(&id));
        for _ in 1..IDS_DRAWN_MAX {
            let By::Sticky { client: hash, .. } = choice.by else { break };
            if !choice.pool.is_unfit_for_new(hash, now_us) {
                break;
            }
            let next = ids.next_id();
            let other = self.by_key(KnownBy::anybody(&next));
            // Shares are what they are, whoever drains.
            if Rc::ptr_eq(&other.pool, &choice.pool) && matches!(other.by, By::Sticky { .. }) {
                (id, choice) = (next, other);
            }
        }
        (id, choice)
    }

    /// The target that a hash falls to. It hangs on the names alone, as a server of a pool does: on every node, after
    /// every reload, in every rule that splits between them. Where shares change, nobody moves who need not.
    fn share(&self, shares: &[Share], hash: u64) -> Target {
        let sticky = &self.local.live.sticky;
        let targets = shares.iter().map(|share| self.listener.target(share.target));
        let identity = |target: Target| target_identity(&self.local.live.plan, sticky, target);
        let weighed =
            targets.clone().zip(shares).map(|(target, share)| (identity(target), share.parts, true));
        let chosen = rendezvous(hash, weighed).unwrap_or_default();
        self.listener.target(shares[chosen].target)
    }
}

/// What comes of what a client is known by, if the request carries it.
fn known_by<T>(
    sticky: &Stickiness,
    view: &RequestView<'_>,
    cookie: &RouteCookie,
    of: impl Fn(KnownBy<'_>) -> T,
) -> Option<T> {
    let anybody = |key: &[u8]| of(KnownBy::anybody(key));
    match sticky {
        Stickiness::None => None,
        Stickiness::Ip => view.client_ip().map(|address| anybody(&address_bytes(address))),
        Stickiness::IpPort => view.connection().src.map(|end| anybody(&end_bytes(end))),
        Stickiness::TlsSession => {
            let tls = view.connection().tls.as_ref()?;
            tls.session.map(|session| of(KnownBy { key: &session, has_been_here: tls.resumed }))
        }
        Stickiness::Field(field) => with_key(field, view, address_bytes, anybody),
        Stickiness::Cookie => {
            let id = view.cookies(ROUTE_COOKIE).find_map(|value| cookie.open(value));
            id.map(|id| of(KnownBy { key: &id, has_been_here: true }))
        }
    }
}

/// The same of a connection; of what names its session something may come of one and nothing of the other.
fn connection_known_by<T>(
    sticky: &Stickiness,
    (view, shown): (&ConnectionView<'_>, &ShownSession),
    of: impl Fn(KnownBy<'_>) -> Option<T>,
) -> Option<T> {
    let anybody = |key: &[u8]| of(KnownBy::anybody(key));
    match sticky {
        Stickiness::None | Stickiness::Cookie => None,
        Stickiness::TlsSession => shown.names().find_map(|name| anybody(name.as_bytes())),
        Stickiness::Ip => view.client_ip().and_then(|address| anybody(&address_bytes(address))),
        Stickiness::IpPort => view.connection().src.and_then(|end| anybody(&end_bytes(end))),
        Stickiness::Field(field) => with_key(field, view, address_bytes, anybody).flatten(),
    }
}

/// What comes of a field's first value, as bytes that others do not have, if it has one.
pub(crate) fn with_key<T>(
    field: &Field,
    subject: &impl Subject,
    of_address: fn(IpAddr) -> [u8; 16],
    of: impl Fn(&[u8]) -> T,
) -> Option<T> {
    let mut found = None;
    subject.each(field, &mut |value| {
        found = match value {
            Value::Text(text) => Some(of(text)),
            Value::Integer(number) => Some(of(&number.to_be_bytes())),
            Value::Ip(address) => Some(of(&of_address(address))),
            Value::Boolean(truth) => Some(of(&[u8::from(truth)])),
            Value::Nothing | Value::Unknown(_) => None,
        };
        std::ops::ControlFlow::Break(())
    });
    found
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

/// An address and a port.
fn end_bytes(end: SocketAddr) -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&address_bytes(end.ip()));
    bytes[16..].copy_from_slice(&end.port().to_be_bytes());
    bytes
}

/// An address as 16 bytes, IPv4 in its mapped form.
fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}
