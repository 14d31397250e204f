//! TLS sessions of one thread with one server, which are offered when the plan says so and not otherwise.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Tickets that are kept: as many as a thread may have handshakes under way at a time, and a few to spare.
const TICKETS_MAX: usize = 16_384;

/// Sessions with one server, whatever name it goes by: another server has others of its own. A ticket of TLS 1.3 is used
/// once, as RFC 8446 wants (appendix C.4).
#[derive(Debug, Default)]
pub struct Sessions(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    offers: bool,
    /// Whether the handshake that began last offered one.
    offered: bool,
    v12: Option<Tls12ClientSessionValue>,
    v13: VecDeque<Tls13ClientSessionValue>,
}

impl Sessions {
    /// Whether the next handshakes offer a session, where there is one.
    pub fn offer(&self, offers: bool) {
        let mut kept = self.kept();
        kept.offers = offers;
        kept.offered = false;
    }

    /// Whether one was offered since [`Sessions::offer`].
    pub fn was_offered(&self) -> bool {
        self.kept().offered
    }

    /// Only one thread uses it; the lock is there because the library asks for it.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Sessions {
    /// Groups are not remembered: each handshake is to begin like the first.
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.kept().v12 = Some(value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let mut kept = self.kept();
        let session = kept.v12.clone().filter(|_| kept.offers);
        kept.offered |= session.is_some();
        session
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.kept().v12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.v13.len() == TICKETS_MAX {
            kept.v13.pop_front();
        }
        kept.v13.push_back(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut kept = self.kept();
        let ticket = if kept.offers { kept.v13.pop_back() } else { None };
        kept.offered |= ticket.is_some();
        ticket
    }
}
