//! What lets a client resume a session: ticket keys and a session cache, bound to one policy.
//!
//! A resumed session skips the client's certificate. If one listener's ticket were taken by another, a client
//! could come in where its certificate was never checked (CVE-2025-23419 in another server). So keys and
//! cache belong to one acceptor, and pass to its successor only if the policy is the same. Keys out of a file are
//! derived for a policy: whoever has the same file and asks clients for the same takes the same tickets.

use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::ServerConfig;
use rustls::server::NoServerSessionStorage;

use crate::own_keys::OwnKeys;
use crate::session_id::Cache;
use crate::settings::ClientAuth;
use crate::tickets::{KeyFile, TicketKeys, Tickets};

/// TLS 1.2 sessions kept for clients that know no tickets. Old clients only, so few are enough.
const CACHED_SESSIONS_MAX: usize = 4096;

/// Tickets sent after a TLS 1.3 handshake: browsers open a few connections at once.
const TICKETS: usize = 2;

/// Who is let in without showing a certificate again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    auth: ClientAuth,
    /// SHA-256 of the file of authorities, unless no certificate is asked for.
    authorities: Option<[u8; 32]>,
}

/// Ticket keys and session cache of one acceptor.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    policy: Policy,
    tickets: Arc<Tickets>,
    cache: Arc<Cache>,
}

impl Policy {
    pub(crate) fn new(auth: ClientAuth, authorities: Option<&[u8]>) -> Policy {
        let hash = |text: &[u8]| {
            let mut hash = [0; 32];
            hash.copy_from_slice(digest::digest(&digest::SHA256, text).as_ref());
            hash
        };
        match auth {
            ClientAuth::Off => Policy { auth, authorities: None },
            ClientAuth::Request | ClientAuth::Require => Policy { auth, authorities: authorities.map(hash) },
        }
    }

    /// What a key is derived with that several processes have: it says the same in each of them, and in each version.
    fn bytes(self) -> [u8; 33] {
        let mut bytes = [0; 33];
        bytes[0] = match self.auth {
            ClientAuth::Off => 0,
            ClientAuth::Request => 1,
            ClientAuth::Require => 2,
        };
        bytes[1..].copy_from_slice(&self.authorities.unwrap_or_default());
        bytes
    }
}

impl Sessions {
    /// Those of the predecessor if the policy is the same, else new ones; with keys out of a file where there is one.
    pub(crate) fn new(
        policy: Policy,
        keys: Option<&KeyFile>,
        lifetime_s: u32,
        previous: Option<&Sessions>,
    ) -> Result<Sessions, rustls::Error> {
        let previous = previous.filter(|previous| previous.policy == policy);
        let keys = match (keys, previous.map(|previous| &previous.tickets.keys)) {
            (Some(keys), _) => Arc::new(TicketKeys::shared(keys, &policy.bytes())),
            (None, Some(previous)) if matches!(**previous, TicketKeys::Own(_)) => previous.clone(),
            (None, _) => {
                let own = TicketKeys::own(&policy.bytes());
                Arc::new(own.ok_or(rustls::Error::FailedToGetRandomBytes)?)
            }
        };
        let cache = match previous {
            Some(previous) => previous.cache.lasting(lifetime_s),
            None => Cache::new(CACHED_SESSIONS_MAX, lifetime_s),
        };
        Ok(Sessions { policy, tickets: Arc::new(Tickets { keys, lifetime_s }), cache: Arc::new(cache) })
    }

    /// The keys that no file names.
    pub(crate) fn own_keys(&self) -> Option<&OwnKeys> {
        match &*self.tickets.keys {
            TicketKeys::Own(own) => Some(own),
            TicketKeys::Shared(_) => None,
        }
    }

    /// Lets clients of this configuration resume, or none of them.
    pub(crate) fn install(sessions: Option<&Sessions>, config: &mut ServerConfig) {
        config.max_early_data_size = 0;
        match sessions {
            Some(sessions) => {
                config.ticketer = sessions.tickets.clone();
                config.session_storage = sessions.cache.clone();
                config.send_tls13_tickets = TICKETS;
            }
            // The configuration starts without a ticketer, but with a cache.
            None => {
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
            }
        }
    }
}
