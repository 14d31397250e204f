//! How often an address may begin a TLS handshake: what a handshake costs the switch is many times what it costs a client.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::OnceLock;

use pointsman_config::Listener;
use pointsman_shape::{Buckets, Rate};
use pointsman_view::Connection;

use crate::admission::counted_as;
use crate::decide::trusted_proxies;

/// Addresses that are over their rate at a time. Of more those that are least over are forgotten.
const ADDRESSES_MAX: usize = 65_536;

const SECOND_NS: u64 = 1_000_000_000;

/// Handshakes of a listener by address.
#[derive(Debug, Default)]
pub(crate) struct HandshakeRates {
    keyed: RandomState,
    /// Made when it is first asked: most listeners limit none.
    buckets: OnceLock<Buckets>,
}

impl HandshakeRates {
    /// Counts a handshake, unless there were as many in the last second as may be.
    pub(crate) fn take(&self, limit: HandshakeLimit, now_ns: u64) -> bool {
        let HandshakeLimit { address, per_second } = limit;
        let buckets = self.buckets.get_or_init(|| Buckets::new(ADDRESSES_MAX));
        let rate = Rate::new(per_second, SECOND_NS, per_second);
        buckets.take(self.keyed.hash_one(address), rate, now_ns).is_ok()
    }
}

/// What a connection's handshake counts as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeLimit {
    address: IpAddr,
    per_second: NonZeroU32,
}

impl HandshakeLimit {
    /// Absent where there is no limit, no address, or a proxy that stands for all its clients.
    pub(crate) fn of(listener: &Listener, connection: &Connection) -> Option<HandshakeLimit> {
        let per_second = NonZeroU32::new(listener.limits.handshakes_per_address_per_second_max)?;
        let sender = connection.sender().filter(|sender| !trusted_proxies(listener).contain(sender.ip()))?;
        Some(HandshakeLimit { address: counted_as(sender.ip()), per_second })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_rate_and_no_other() {
        let rates = HandshakeRates::default();
        let limit = |address: &str, per_second| HandshakeLimit {
            address: counted_as(address.parse().expect("an address")),
            per_second: NonZeroU32::new(per_second).expect("a rate"),
        };
        let one = limit("192.0.2.1", 2);
        assert!(rates.take(one, SECOND_NS) && rates.take(one, SECOND_NS));
        assert!(!rates.take(one, SECOND_NS));
        assert!(rates.take(limit("192.0.2.2", 2), SECOND_NS));
        assert!(rates.take(one, SECOND_NS + SECOND_NS / 2));
        assert!(!rates.take(one, SECOND_NS + SECOND_NS / 2));
        // Hosts of one /64 share theirs.
        assert!(rates.take(limit("2001:db8::1", 1), SECOND_NS));
        assert!(!rates.take(limit("2001:db8::2", 1), SECOND_NS));
    }
}
