//! What a TLS session is known by: an id beside the library's own state in each ticket, the same over all resumptions.
//!
//! The library asks for tickets and reads them in the midst of a handshake, and says nothing of whose handshake it is.
//! A handshake is polled by one thread at a time, so its id stands in a place of that thread while it is.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aws_lc_rs::rand;
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

use crate::tickets::{TIME_BYTES, now_s};

/// Drawn at random for each session that begins.
pub type SessionId = [u8; 16];

/// Length of an id.
const ID_BYTES: usize = size_of::<SessionId>();

thread_local! {
    /// The session of the handshake that is being polled, once it has an id.
    static CURRENT: Cell<Option<SessionId>> = const { Cell::new(None) };
}

/// A handshake and the session that it begins or goes on with.
pub(crate) struct Identified<F> {
    handshake: F,
    id: Option<SessionId>,
}

impl<F> Identified<F> {
    pub(crate) fn new(handshake: F) -> Identified<F> {
        Identified { handshake, id: None }
    }
}

/// Ends with an id, also where no ticket was asked for: then it is that of this connection alone. There is none only
/// where there is no randomness.
impl<F: Future + Unpin> Future for Identified<F> {
    type Output = (F::Output, Option<SessionId>);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        CURRENT.set(this.id);
        let polled = Pin::new(&mut this.handshake).poll(context);
        this.id = CURRENT.take();
        polled.map(|output| (output, this.id.or_else(draw)))
    }
}

/// A session's state with its id in front. `None`: no randomness, and then no ticket.
pub(crate) fn with_id(state: &[u8]) -> Option<Vec<u8>> {
    let id = match CURRENT.get() {
        Some(id) => id,
        None => draw()?,
    };
    CURRENT.set(Some(id));
    Some([&id, state].concat())
}

/// The state behind an id, which the handshake goes on with. Where the library refuses the session after all, since
/// the client asks for another server now, the client is the same one nevertheless.
pub(crate) fn without_id(mut identified: Vec<u8>) -> Option<Vec<u8>> {
    let (id, _) = identified.split_first_chunk::<ID_BYTES>()?;
    CURRENT.set(Some(*id));
    identified.drain(..ID_BYTES);
    Some(identified)
}

fn draw() -> Option<SessionId> {
    let mut id = SessionId::default();
    rand::fill(&mut id).ok()?;
    Some(id)
}

/// Sessions of clients that know no tickets, with their ids and the time when they were kept.
#[derive(Debug)]
pub(crate) struct Cache {
    sessions: Arc<ServerSessionMemoryCache>,
    lifetime_s: u32,
}

impl Cache {
    pub(crate) fn new(sessions_max: usize, lifetime_s: u32) -> Cache {
        Cache { sessions: ServerSessionMemoryCache::new(sessions_max), lifetime_s }
    }

    /// The same sessions with another lifetime.
    pub(crate) fn lasting(&self, lifetime_s: u32) -> Cache {
        Cache { sessions: self.sessions.clone(), lifetime_s }
    }

    /// The state of a session that is not too old.
    fn of_use(&self, mut kept: Vec<u8>, now_s: u64) -> Option<Vec<u8>> {
        let (since_s, _) = kept.split_first_chunk::<TIME_BYTES>()?;
        let age_s = now_s.saturating_sub(u64::from_be_bytes(*since_s));
        kept.drain(..TIME_BYTES);
        if age_s <= u64::from(self.lifetime_s) { without_id(kept) } else { None }
    }
}

impl StoresServerSessions for Cache {
    fn put(&self, key: Vec<u8>, state: Vec<u8>) -> bool {
        let keep = |identified: Vec<u8>| [&now_s().to_be_bytes()[..], &identified].concat();
        with_id(&state).is_some_and(|identified| self.sessions.put(key, keep(identified)))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.sessions.get(key).and_then(|kept| self.of_use(kept, now_s()))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.sessions.take(key).and_then(|kept| self.of_use(kept, now_s()))
    }

    fn can_cache(&self) -> bool {
        self.sessions.can_cache()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_session_is_of_use_for_its_lifetime() {
        let cache = Cache::new(4, 300);
        let kept = [&1000_u64.to_be_bytes()[..], &[7; ID_BYTES], b"state"].concat();
        for (now_s, expected) in [(1000, true), (1300, true), (990, true), (1301, false)] {
            let state = cache.of_use(kept.clone(), now_s);
            assert_eq!(state.as_deref(), expected.then_some(&b"state"[..]), "{now_s}");
        }
        assert_eq!(cache.lasting(299).of_use(kept, 1300), None);
        assert!(cache.put(vec![1], b"state".to_vec()));
        assert_eq!(cache.lasting(299).take(&[1]).as_deref(), Some(&b"state"[..]));
    }
}
