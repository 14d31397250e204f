//! Idle connections of one thread, by server.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::Connection;

/// A server's number, given once and kept over reloads. Small: it is an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub u32);

/// Whose requests alone a connection may serve: what was said at its start holds for one client's connection. A
/// number that is given once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(pub u64);

/// Where a connection is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Where it leads.
    pub server: ServerId,
    /// Whom it is for; `None`: for anyone.
    pub owner: Option<Owner>,
}

/// How closely a kept connection is looked at before it is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// By what the event loop has heard: free, and late by as long as the thread has been busy.
    Heard,
    /// By asking the socket: a system call, for requests that could not be sent again.
    Socket,
}

/// How far a connection is trusted that is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It may be used at once.
    Full,
    /// Its server may say more than it should, so it is listened to for [`PROBATION_MS`] first.
    Probation,
}

/// How long a connection is listened to that is on probation.
pub const PROBATION_MS: u64 = 100;

/// Connections of a server that are on probation at a time. Past that the oldest of them serves early, and
/// is asked first: a flood of requests for heads must not open connections without end.
const ON_PROBATION_MAX: usize = 8;

/// How many idle connections of a server are kept, and how long.
#[derive(Clone, Copy, Debug)]
pub struct IdleLimits {
    /// Idle connections of this server on this thread.
    pub connections_max: u32,
    /// Milliseconds a connection may lie idle.
    pub idle_ms_max: u32,
}

/// The idle connections of one thread. `T` is dropped when a connection is used again or closed:
/// whoever counts them knows then.
#[derive(Debug)]
pub struct IdleConnections<T> {
    lists: RefCell<Lists<T>>,
    count: Cell<u32>,
    count_max: Cell<u32>,
}

#[derive(Debug)]
struct Lists<T> {
    /// By server, for anyone.
    shared: Vec<Vec<Idle<T>>>,
    /// By owner, to whichever server.
    owned: HashMap<Owner, Vec<Idle<T>>>,
}

#[derive(Debug)]
struct Idle<T> {
    server: ServerId,
    connection: Connection,
    until_ms: u64,
    usable_from_ms: u64,
    _counted: T,
}

impl<T> IdleConnections<T> {
    /// Another share from now on; what lies there beyond it stays until it is taken or too old.
    pub fn set_count_max(&self, count_max: u32) {
        self.count_max.set(count_max);
    }

    /// At most `count_max` connections in all: this thread's share of the process-wide limit.
    pub fn new(count_max: u32) -> IdleConnections<T> {
        let lists = Lists { shared: Vec::new(), owned: HashMap::new() };
        IdleConnections { lists: RefCell::new(lists), count: Cell::new(0), count_max: Cell::new(count_max) }
    }

    /// Whether any is kept.
    pub fn keeps_any(&self) -> bool {
        self.count_max.get() > 0
    }

    /// The connection of that place that was used last, if it is still open and silent.
    ///
    /// The last used is the likeliest to be alive, and lets the others grow old and go.
    pub fn take(&self, place: Place, now_ms: u64, check: Check) -> Option<Connection> {
        let mut lists = self.lists.borrow_mut();
        let kept = match &place.owner {
            None => lists.shared.get_mut(place.server.0 as usize)?,
            Some(owner) => lists.owned.get_mut(owner)?,
        };
        while let Some((at, check)) = pick(kept, place.server, now_ms, check) {
            let mut idle = kept.remove(at);
            self.count.set(self.count.get() - 1);
            let is_quiet = match check {
                Check::Heard => idle.connection.sounds_quiet(),
                Check::Socket => idle.connection.is_quiet(),
            };
            if is_quiet && idle.until_ms > now_ms {
                return Some(idle.connection);
            }
        }
        None
    }

    /// Keeps a connection for the next request, unless a limit says to close it. One on
    /// probation is not used before that is over.
    pub fn give_back(
        &self,
        place: Place,
        mut connection: Connection,
        now_ms: u64,
        limits: IdleLimits,
        trust: Trust,
        count: impl FnOnce() -> T,
    ) {
        let mut lists = self.lists.borrow_mut();
        let kept = lists.at(place);
        if self.count.get() >= self.count_max.get() || kept.len() >= limits.connections_max as usize {
            return;
        }
        connection.end_use();
        let until_ms = now_ms + u64::from(limits.idle_ms_max);
        let usable_from_ms = match trust {
            Trust::Full => now_ms,
            Trust::Probation => now_ms + PROBATION_MS,
        };
        let server = place.server;
        kept.push(Idle { server, connection, until_ms, usable_from_ms, _counted: count() });
        self.count.set(self.count.get() + 1);
    }

    /// Closes what has been idle too long, what its server has closed, and what belongs to a
    /// server that `is_wanted` no longer knows.
    pub fn sweep(&self, now_ms: u64, is_wanted: impl Fn(ServerId) -> bool) {
        let mut count = 0;
        for kept in self.lists.borrow_mut().all() {
            kept.retain_mut(|idle| {
                is_wanted(idle.server) && idle.until_ms > now_ms && idle.connection.sounds_quiet()
            });
            count += kept.len() as u32;
        }
        self.count.set(count);
    }

    /// Closes the `max` connections that were given back longest ago, unless fewer than `kept_min` would be
    /// left; says how many it closed.
    pub fn close_oldest(&self, max: usize, kept_min: u32) -> usize {
        let mut lists = self.lists.borrow_mut();
        for closed in 0..max {
            if self.count.get() <= kept_min {
                return closed;
            }
            // Each list is in the order in which its connections came back.
            let kept = lists.all().filter(|kept| !kept.is_empty());
            let Some(oldest) = kept.min_by_key(|kept| kept[0].usable_from_ms) else { return closed };
            oldest.remove(0);
            self.count.set(self.count.get() - 1);
        }
        max
    }

    /// Closes at most `max` connections that hold memory which clients could have; says how many it closed.
    pub fn close_booked(&self, max: usize) -> usize {
        let mut closed = 0;
        for kept in self.lists.borrow_mut().all() {
            kept.retain(|idle| {
                let goes = closed < max && idle.connection.is_booked();
                closed += usize::from(goes);
                !goes
            });
        }
        self.count.set(self.count.get() - closed as u32);
        closed
    }

    /// Closes what is kept for a client that is gone.
    pub fn close_owned(&self, owner: Owner) {
        let owned = &mut self.lists.borrow_mut().owned;
        // It is asked for each client that goes, and few pools keep any.
        let kept = if owned.is_empty() { None } else { owned.remove(&owner) };
        self.count.set(self.count.get() - kept.map_or(0, |kept| kept.len() as u32));
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count.get()
    }
}

impl<T> Lists<T> {
    fn at(&mut self, place: Place) -> &mut Vec<Idle<T>> {
        if let Some(owner) = place.owner {
            return self.owned.entry(owner).or_default();
        }
        let index = place.server.0 as usize;
        if self.shared.len() <= index {
            self.shared.resize_with(index + 1, Vec::new);
        }
        &mut self.shared[index]
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Vec<Idle<T>>> {
        self.shared.iter_mut().chain(self.owned.values_mut())
    }
}

/// The last used of those that may serve, or the oldest on probation where there are too many.
fn pick<T>(kept: &[Idle<T>], server: ServerId, now_ms: u64, check: Check) -> Option<(usize, Check)> {
    match kept.iter().rposition(|idle| idle.server == server && idle.usable_from_ms <= now_ms) {
        Some(at) => Some((at, check)),
        None if kept.len() > ON_PROBATION_MAX => {
            let oldest = kept.iter().position(|idle| idle.server == server)?;
            Some((oldest, Check::Socket))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: IdleLimits = IdleLimits { connections_max: 2, idle_ms_max: 1000 };

    fn shared(server: u32) -> Place {
        Place { server: ServerId(server), owner: None }
    }

    fn owned(server: u32, owner: u64) -> Place {
        Place { server: ServerId(server), owner: Some(Owner(owner)) }
    }

    fn on_a_loop(test: impl Future<Output = ()>) {
        pointsman_net::EventLoop::new().expect("descriptors").run(test);
    }

    async fn pair(listener: &std::net::TcpListener) -> (Connection, std::net::TcpStream) {
        let address = listener.local_addr().expect("bound");
        let ours = pointsman_net::connect(address).await.expect("listening");
        (Connection::Plain(ours), listener.accept().expect("connected").0)
    }

    #[test]
    fn limits_hold_and_the_last_used_comes_first() {
        on_a_loop(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
            let idle = IdleConnections::new(3);
            let mut servers_ends = Vec::new();
            let mut last = None;
            for _ in 0..3 {
                let (ours, theirs) = pair(&listener).await;
                last = ours.tcp().expect("a socket").local().expect("open");
                if servers_ends.len() < 2 {
                    idle.give_back(shared(1), ours, 0, LIMITS, Trust::Full, || ());
                } else {
                    idle.give_back(shared(4), ours, 500, LIMITS, Trust::Full, || ());
                }
                servers_ends.push(theirs);
            }
            let (fourth, _open) = pair(&listener).await;
            idle.give_back(shared(7), fourth, 0, LIMITS, Trust::Full, || ());
            assert_eq!(idle.count(), 3, "the fourth is over the limit of the thread");
            assert!(idle.take(shared(9), 0, Check::Heard).is_none());
            idle.sweep(1200, |_| true);
            assert_eq!(idle.count(), 1, "two were idle too long");
            let kept = idle.take(shared(4), 1200, Check::Socket).expect("kept");
            assert_eq!(kept.tcp().expect("a socket").local().ok().flatten(), last);
            idle.give_back(shared(4), kept, 0, LIMITS, Trust::Full, || ());
            idle.sweep(1, |server| server != ServerId(4));
            assert_eq!(idle.count(), 0, "its server is no longer wanted");
        });
    }

    #[test]
    fn a_connection_that_its_server_closed_is_not_handed_out() {
        on_a_loop(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
            let idle = IdleConnections::new(8);
            let (ours, theirs) = pair(&listener).await;
            idle.give_back(shared(0), ours, 0, LIMITS, Trust::Full, || ());
            drop(theirs);
            // The event loop has not run since: only the socket can know, once the end has come.
            let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
            while let Some(open) = idle.take(shared(0), 0, Check::Socket) {
                assert!(std::time::Instant::now() < until, "it is handed out");
                idle.give_back(shared(0), open, 0, LIMITS, Trust::Full, || ());
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn a_connection_that_lay_too_long_is_not_handed_out() {
        on_a_loop(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
            let idle = IdleConnections::new(8);
            let (ours, _theirs) = pair(&listener).await;
            idle.give_back(shared(0), ours, 0, LIMITS, Trust::Full, || ());
            assert!(idle.take(shared(0), 1000, Check::Heard).is_none());
            assert_eq!(idle.count(), 0);
        });
    }

    #[test]
    fn a_connection_on_probation_waits_and_the_one_before_it_serves() {
        on_a_loop(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
            let idle = IdleConnections::new(8);
            let (trusted, _first) = pair(&listener).await;
            let (probed, _second) = pair(&listener).await;
            let addresses = [
                trusted.tcp().expect("a socket").local().expect("open"),
                probed.tcp().expect("a socket").local().expect("open"),
            ];
            idle.give_back(shared(0), trusted, 0, LIMITS, Trust::Full, || ());
            idle.give_back(shared(0), probed, 0, LIMITS, Trust::Probation, || ());
            let taken = idle.take(shared(0), 0, Check::Heard).expect("the trusted one");
            assert_eq!(taken.tcp().expect("a socket").local().ok(), Some(addresses[0]));
            assert!(idle.take(shared(0), PROBATION_MS - 1, Check::Heard).is_none());
            let taken = idle.take(shared(0), PROBATION_MS, Check::Heard).expect("its time is over");
            assert_eq!(taken.tcp().expect("a socket").local().ok(), Some(addresses[1]));
        });
    }

    #[test]
    fn the_oldest_of_all_servers_are_closed_first() {
        on_a_loop(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
            let (idle, mut servers_ends) = (IdleConnections::new(8), Vec::new());
            for (server, now_ms) in [(3, 10), (1, 20), (3, 30), (1, 40)] {
                let (ours, theirs) = pair(&listener).await;
                idle.give_back(shared(server), ours, now_ms, LIMITS, Trust::Full, || ());
                servers_ends.push(theirs);
            }
            assert_eq!(idle.close_oldest(3, 4), 0, "so many are to be kept");
            assert_eq!(idle.close_oldest(3, 0), 3);
            assert_eq!(idle.count(), 1);
            assert!(idle.take(shared(3), 40, Check::Heard).is_none());
            let last = idle.take(shared(1), 40, Check::Heard).expect("the youngest");
            assert_eq!(
                last.tcp().expect("a socket").local().ok().flatten(),
                servers_ends[3].peer_addr().ok()
            );
            assert_eq!(idle.close_oldest(3, 0), 0);
        });
    }

    #[test]
    fn an_owned_connection_serves_its_owner_alone() {
        on_a_loop(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
            let idle = IdleConnections::new(8);
            let (first, _first) = pair(&listener).await;
            let (second, _second) = pair(&listener).await;
            let address = first.tcp().expect("a socket").local().ok();
            idle.give_back(owned(1, 7), first, 0, LIMITS, Trust::Full, || ());
            idle.give_back(owned(2, 7), second, 0, LIMITS, Trust::Full, || ());
            for other in [shared(1), owned(1, 8), owned(3, 7)] {
                assert!(idle.take(other, 0, Check::Heard).is_none(), "{other:?}");
            }
            let taken = idle.take(owned(1, 7), 0, Check::Heard).expect("kept");
            assert_eq!(taken.tcp().expect("a socket").local().ok(), address);
            idle.give_back(owned(1, 7), taken, 0, LIMITS, Trust::Full, || ());
            idle.sweep(1, |server| server == ServerId(1));
            assert_eq!(idle.count(), 1);
            idle.close_owned(Owner(8));
            assert_eq!(idle.count(), 1);
            idle.close_owned(Owner(7));
            assert_eq!(idle.count(), 0);
            assert!(idle.take(owned(1, 7), 0, Check::Heard).is_none());
        });
    }
}
