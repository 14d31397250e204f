//! Who may come in: open connections, counted in all, by listener and by address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pointsman_config::Listener;
use pointsman_net::Booking;
use pointsman_telemetry::{Event, Refusal};

use crate::decide::trusted_proxies;
use crate::live::ListenerState;
use crate::shard::Shard;

/// Counts a connection of a listener for as long as it lives.
pub(crate) struct OpenConnection {
    shard: Rc<Shard>,
    listener: Arc<ListenerState>,
    /// Under which its address counts, where addresses are counted.
    address: Option<IpAddr>,
    /// What it takes of the memory while nothing is on its way.
    booked: Option<Booking>,
}

impl OpenConnection {
    /// Counts a connection from `src` and books its memory, or says which limit it is over.
    pub(crate) fn admit(
        shard: &Rc<Shard>,
        listener: &Listener,
        state: &Arc<ListenerState>,
        connections_max: u32,
        src: Option<SocketAddr>,
    ) -> Result<OpenConnection, Refusal> {
        let in_all = shard.shared.open.fetch_add(1, Ordering::Relaxed);
        let of_listener = state.open.fetch_add(1, Ordering::Relaxed);
        shard.recorder.hear(&Event::ConnectionOpened(&state.metrics));
        // From here on its drop takes back what is counted.
        let mut counted =
            OpenConnection { shard: shard.clone(), listener: state.clone(), address: None, booked: None };
        if in_all >= connections_max as usize || of_listener >= listener.limits.connections_max {
            return Err(Refusal::Connections);
        }
        counted.count_address(listener, src)?;
        counted.booked = shard.buffers.connection();
        if counted.booked.is_none() {
            return Err(Refusal::Memory);
        }
        Ok(counted)
    }

    /// Counts it under the sender's address, and no other one, where the listener limits that. A proxy stands for all
    /// its clients and is not counted, nor is who has no address.
    pub(crate) fn count_address(
        &mut self,
        listener: &Listener,
        sender: Option<SocketAddr>,
    ) -> Result<(), Refusal> {
        if let Some(before) = self.address.take() {
            self.listener.addresses.discount(before);
        }
        let of_address = listener.limits.connections_per_address_max;
        let Some(sender) = sender.filter(|_| of_address != 0) else { return Ok(()) };
        if trusted_proxies(listener).contain(sender.ip()) {
            return Ok(());
        }
        let address = counted_as(sender.ip());
        if !self.listener.addresses.count(address, of_address) {
            return Err(Refusal::ConnectionsPerAddress);
        }
        self.address = Some(address);
        Ok(())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        if let Some(address) = self.address {
            self.listener.addresses.discount(address);
        }
        self.listener.open.fetch_sub(1, Ordering::Relaxed);
        self.shard.shared.open.fetch_sub(1, Ordering::Relaxed);
        self.shard.recorder.hear(&Event::ConnectionClosed(&self.listener.metrics));
    }
}

/// A host of IPv6 has a /64 to choose its addresses from (RFC 6177), so that is what counts as one.
pub(crate) fn counted_as(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

/// Maps that share the addresses of a listener, so that threads seldom meet at one lock. It is taken when a
/// connection comes and when it goes, never for a request.
const SHARES: usize = 16;

/// Open connections by address. There is an entry only for an address that has some, so the connections
/// themselves bound it.
#[derive(Debug, Default)]
pub(crate) struct AddressCounts {
    shares: [Mutex<HashMap<IpAddr, u32>>; SHARES],
}

impl AddressCounts {
    /// Counts one more, unless there are as many as may be.
    fn count(&self, address: IpAddr, max: u32) -> bool {
        let mut counts = self.share(address);
        let open = counts.entry(address).or_insert(0);
        let is_below = *open < max;
        *open += u32::from(is_below);
        is_below
    }

    fn discount(&self, address: IpAddr) {
        let mut counts = self.share(address);
        let Some(open) = counts.get_mut(&address) else { return };
        *open -= 1;
        if *open == 0 {
            counts.remove(&address);
            // After a flood of addresses their room is given back.
            if counts.capacity() > 1024 && counts.len() < counts.capacity() / 8 {
                let kept = counts.len() * 2;
                counts.shrink_to(kept);
            }
        }
    }

    fn share(&self, address: IpAddr) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
        // The bytes in which neighbours differ. Who chooses them to meet in one share gains a lock that
        // others wait for a moment, nothing more: inside of it the hash is keyed.
        let mixed = match address {
            IpAddr::V4(v4) => v4.octets()[2] ^ v4.octets()[3],
            IpAddr::V6(v6) => v6.octets()[6] ^ v6.octets()[7],
        };
        self.shares[usize::from(mixed) % SHARES].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        counted_as(text.parse().expect("an address"))
    }

    #[test]
    fn an_address_has_its_own_count_and_gets_it_back() {
        let counts = AddressCounts::default();
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        assert!(counts.count(one, 2) && counts.count(one, 2));
        assert!(!counts.count(one, 2));
        assert!(counts.count(other, 2));
        counts.discount(one);
        assert!(counts.count(one, 2));
        assert!(!counts.count(one, 2));
    }

    #[test]
    fn a_64_of_ipv6_counts_as_one_address() {
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:1:2:3"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
    }

    #[test]
    fn what_is_gone_takes_no_room() {
        let counts = AddressCounts::default();
        let flood: Vec<_> = (0..40_000_u32).map(|number| IpAddr::V4(number.into())).collect();
        assert!(flood.iter().all(|address| counts.count(*address, 1)));
        flood.iter().for_each(|address| counts.discount(*address));
        let room: usize =
            counts.shares.iter().map(|share| share.lock().expect("one thread").capacity()).sum();
        assert!(room <= SHARES * 1024, "{room}");
    }
}
