//! What lets a client resume a session: ticket keys and a session cache, bound to one policy.
//!
//! A resumed session skips the client's certificate. If one listener's ticket were taken by another, a client
//! could come in where its certificate was never checked (CVE-2025-23419 in another server). So keys and
//! cache belong to one acceptor, and pass to its successor only if the policy is the same.

use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::{
    NoServerSessionStorage, ProducesTickets, ServerSessionMemoryCache, StoresServerSessions,
};

use crate::settings::ClientAuth;

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
    ticketer: Arc<dyn ProducesTickets>,
    cache: Arc<dyn StoresServerSessions>,
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
}

impl Sessions {
    /// Those of the predecessor if the policy is the same, else new ones.
    pub(crate) fn new(policy: Policy, previous: Option<&Sessions>) -> Result<Sessions, rustls::Error> {
        match previous {
            Some(previous) if previous.policy == policy => Ok(previous.clone()),
            _ => Ok(Sessions {
                policy,
                // Keys of its own, replaced every six hours and valid for twelve.
                ticketer: Ticketer::new()?,
                cache: ServerSessionMemoryCache::new(CACHED_SESSIONS_MAX),
            }),
        }
    }

    /// Lets clients of this configuration resume, or none of them.
    pub(crate) fn install(sessions: Option<&Sessions>, config: &mut ServerConfig) {
        config.max_early_data_size = 0;
        match sessions {
            Some(sessions) => {
                config.ticketer = sessions.ticketer.clone();
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
