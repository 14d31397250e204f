//! Where a sticky client goes: to the server that it is with, and otherwise to the one of its hash.

use crate::{Kept, StickyTable, Whereabouts, rendezvous};

/// The servers of a pool as they stand to a sticky client, by position.
pub struct StickyServers<'a> {
    /// How many there are.
    pub count: usize,
    /// The identity of one (a hash of its name), and its weight.
    pub server: &'a dyn Fn(usize) -> (u64, u32),
    /// Whether clients are at home there: on what would serve if all were well.
    pub is_home: &'a dyn Fn(usize) -> bool,
    /// Whether it takes nobody who is not with it already.
    pub is_draining: &'a dyn Fn(usize) -> bool,
    /// Whether a client that is with it may get there.
    pub open: &'a dyn Fn(usize) -> bool,
    /// The same, less those that have only just come up and do not take this one yet.
    pub usable: &'a dyn Fn(usize) -> bool,
    /// Whether a client waits for its server while that cannot serve, and gets no other one.
    pub waits: bool,
}

/// How a table knows a server. Two of one pool share a number once in four thousand million pools of two.
#[must_use]
pub fn sticky_number(identity: u64) -> u32 {
    identity as u32
}

impl StickyServers<'_> {
    /// The server of a client, which is remembered there. Nothing where none can serve it.
    ///
    /// It stays where it was, whoever has come since and whatever weighs more now. Who is put with another server because
    /// its own one cannot serve stays there, also when that one is back.
    ///
    /// A server that drains keeps those whom the table has there, and those who have been here before, as what they show
    /// proves, and whom their hash leads to it. Whoever else comes is new, and goes by its hash to one of the others.
    pub fn choose(
        &self,
        client: u64,
        has_been_here: bool,
        table: Option<&StickyTable>,
        now_s: u32,
    ) -> Option<usize> {
        let kept = table.and_then(|table| table.server_of(client, now_s));
        let at = kept.and_then(|kept| (0..self.count).find(|&at| self.number(at) == kept.server));
        let remember = |at: usize| {
            if let Some(table) = table {
                table.put(client, self.number(at), self.whereabouts(client, at), now_s);
            }
            Some(at)
        };
        let stay = |at: usize, kept: Kept| if kept.is_due { remember(at) } else { Some(at) };
        if let (Some(at), Some(kept)) = (at, kept)
            && (self.usable)(at)
        {
            return stay(at, kept);
        }
        let takes_new = |at: usize| !(self.is_draining)(at);
        let home_of_new = || self.of_hash(client, &|at| (self.is_home)(at) && takes_new(at));
        // Where it waits, it does so for the server that it was with.
        let own = match at.filter(|&at| (self.is_home)(at)) {
            None if has_been_here && kept.is_none() => self.home(client),
            None => home_of_new(),
            with => with,
        };
        if let Some(own) = own {
            if (self.usable)(own) {
                return remember(own);
            }
            if self.waits {
                if let (Some(kept), true) = (kept, at == Some(own)) {
                    stay(own, kept);
                }
                // Nobody is refused because a server has only just come up.
                return Some(own).filter(|&own| (self.open)(own));
            }
        }
        let home = home_of_new().filter(|&home| (self.usable)(home));
        remember(home.or_else(|| self.of_hash(client, &|at| takes_new(at) && (self.usable)(at)))?)
    }

    /// The server of a client's hash, whether it can serve or not.
    #[must_use]
    pub fn home(&self, client: u64) -> Option<usize> {
        self.of_hash(client, self.is_home)
    }

    /// What a server is to a client.
    #[must_use]
    pub fn whereabouts(&self, client: u64, at: usize) -> Whereabouts {
        if self.home(client) == Some(at) { Whereabouts::Home } else { Whereabouts::Away }
    }

    fn of_hash(&self, client: u64, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        rendezvous(
            client,
            (0..self.count).map(|at| {
                let (identity, weight) = (self.server)(at);
                (identity, weight, may(at))
            }),
        )
    }

    fn number(&self, at: usize) -> u32 {
        sticky_number((self.server)(at).0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::StickyHash;

    const IDLE_S_MAX: u32 = 1000;

    fn client(number: u8) -> u64 {
        StickyHash::new([1; 16]).hash(b"pool", &[number])
    }

    #[derive(Clone, Copy, Debug)]
    struct Server {
        identity: u64,
        weight: u32,
        is_up: bool,
        is_draining: bool,
    }

    /// A pool that changes, with who was where.
    struct Pool {
        servers: Vec<Server>,
        added: u8,
        waits: bool,
    }

    impl Pool {
        fn new(count: u8, waits: bool) -> Pool {
            let mut pool = Pool { servers: Vec::new(), added: 0, waits };
            (0..count).for_each(|_| pool.add(1));
            pool
        }

        fn add(&mut self, weight: u32) {
            let identity = StickyHash::new([1; 16]).hash(b"server", &[self.added]);
            self.servers.push(Server { identity, weight, is_up: true, is_draining: false });
            self.added += 1;
        }

        fn asked<T>(&self, ask: impl Fn(&StickyServers<'_>) -> T) -> T {
            let usable = |at: usize| self.servers[at].is_up;
            ask(&StickyServers {
                count: self.servers.len(),
                server: &|at| (self.servers[at].identity, self.servers[at].weight),
                is_home: &|_| true,
                is_draining: &|at| self.servers[at].is_draining,
                open: &usable,
                usable: &usable,
                waits: self.waits,
            })
        }

        fn choose(&self, client: u64, has_been_here: bool, table: &StickyTable) -> Option<u64> {
            let chosen = self.asked(|servers| servers.choose(client, has_been_here, Some(table), 1));
            chosen.map(|at| self.servers[at].identity)
        }

        /// Where the hash of a client leads among those servers.
        fn home(&self, client: u64, may: impl Fn(&Server) -> bool) -> Option<u64> {
            let servers = self.servers.iter();
            let at = rendezvous(client, servers.map(|server| (server.identity, server.weight, may(server))));
            at.map(|at| self.servers[at].identity)
        }

        fn server(&self, identity: u64) -> Option<&Server> {
            self.servers.iter().find(|server| server.identity == identity)
        }

        fn is_up(&self, identity: u64) -> bool {
            self.server(identity).is_some_and(|server| server.is_up)
        }

        /// What is done when the servers are others.
        fn look_again(&self, table: &StickyTable) {
            table.look_again(1, |entry| {
                let known = |server: &Server| sticky_number(server.identity) == entry.server;
                let at = self.servers.iter().position(known)?;
                Some(self.asked(|servers| servers.whereabouts(entry.client, at)))
            });
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// A client asks, and shows that it has been here before, or shows nothing of the kind.
        Ask(u8, bool),
        Add(u32),
        Remove(usize),
        Weigh(usize, u32),
        Turn(usize),
        Drain(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            14 => (0u8..40, any::<bool>()).prop_map(|(client, shows)| Step::Ask(client, shows)),
            1 => (1u32..9).prop_map(Step::Add),
            1 => (0usize..8).prop_map(Step::Remove),
            1 => (0usize..8, 1u32..9).prop_map(|(at, weight)| Step::Weigh(at, weight)),
            1 => (0usize..8).prop_map(Step::Turn),
            1 => (0usize..8).prop_map(Step::Drain),
        ];
        vec(step, 0..300)
    }

    /// What may become of a client that stood there, or is not known: all the servers that are right, if it may get one.
    fn expected(pool: &Pool, number: u8, stood: Option<u64>, has_been_here: bool) -> Vec<u64> {
        let client = client(number);
        let own = match stood {
            Some(_) => stood,
            None if has_been_here => pool.home(client, |_| true),
            None => pool.home(client, |server| !server.is_draining),
        };
        if let Some(own) = own {
            if pool.is_up(own) {
                return vec![own];
            }
            if pool.waits {
                return Vec::new();
            }
        }
        let others = pool.servers.iter().filter(|server| server.is_up && !server.is_draining);
        others.map(|server| server.identity).collect()
    }

    /// Runs the steps over a pool and a map of who was where, and holds one to the other.
    fn check(table: &StickyTable, waits: bool, steps: &[Step], is_roomy: bool) -> Result<(), TestCaseError> {
        let mut pool = Pool::new(3, waits);
        let mut was: HashMap<u8, u64> = HashMap::new();
        for step in steps {
            match *step {
                Step::Ask(number, shows) => {
                    let found = pool.choose(client(number), shows, table);
                    let stood = was.get(&number).copied().filter(|server| pool.server(*server).is_some());
                    let mut right = vec![expected(&pool, number, stood, shows)];
                    if !is_roomy {
                        // Who was forgotten is who was never there.
                        right.push(expected(&pool, number, None, shows));
                    }
                    let is_right = |right: &Vec<u64>| match found {
                        Some(found) => right.contains(&found),
                        None => right.is_empty(),
                    };
                    prop_assert!(right.iter().any(is_right), "{found:?} is none of {right:?}");
                    was.extend(found.map(|found| (number, found)));
                }
                Step::Add(weight) if pool.servers.len() < 8 => pool.add(weight),
                Step::Remove(at) if at < pool.servers.len() => drop(pool.servers.remove(at)),
                Step::Weigh(at, weight) if at < pool.servers.len() => pool.servers[at].weight = weight,
                Step::Turn(at) if at < pool.servers.len() => pool.servers[at].is_up ^= true,
                Step::Drain(at) if at < pool.servers.len() => pool.servers[at].is_draining ^= true,
                Step::Add(_) | Step::Remove(_) | Step::Weigh(..) | Step::Turn(_) | Step::Drain(_) => {}
            }
            if matches!(step, Step::Add(_) | Step::Remove(_) | Step::Weigh(..)) {
                pool.look_again(table);
                was.retain(|_, server| pool.server(*server).is_some());
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn who_was_with_a_server_that_is_there_stays(steps in steps(), waits: bool) {
            check(&StickyTable::new(4096, IDLE_S_MAX), waits, &steps, true)?;
        }

        #[test]
        fn who_was_forgotten_is_where_its_hash_says(steps in steps(), waits: bool) {
            check(&StickyTable::new(8, IDLE_S_MAX), waits, &steps, false)?;
        }

        /// As minimal as a hash can be: without a table only those move that a change is about.
        #[test]
        fn after_a_change_strangers_move_nobody(count in 2u8..6, strangers in 1u8..200) {
            let (mut pool, table) = (Pool::new(count, false), StickyTable::new(64, IDLE_S_MAX));
            let before: Vec<_> = (0..20).map(|number| pool.choose(client(number), false, &table)).collect();
            pool.add(2);
            pool.look_again(&table);
            for number in 0..strangers {
                pool.choose(client(number.saturating_add(50)), false, &table);
            }
            let after: Vec<_> = (0..20).map(|number| pool.choose(client(number), false, &table)).collect();
            prop_assert_eq!(before, after);
        }

        /// Those who are not known go by their hashes among the others, and those who are do not move, neither when a server
        /// drains nor when it does not any more.
        #[test]
        fn a_server_that_drains_gets_nobody_who_is_new(count in 2u8..6, drains in 0usize..6, waits: bool) {
            let (mut pool, table) = (Pool::new(count, waits), StickyTable::new(4096, IDLE_S_MAX));
            let drains = drains % usize::from(count);
            let ask = |pool: &Pool, numbers: std::ops::Range<u8>| -> Vec<_> {
                numbers.map(|number| pool.choose(client(number), false, &table)).collect()
            };
            let before = ask(&pool, 0..50);
            pool.servers[drains].is_draining = true;
            prop_assert_eq!(ask(&pool, 0..50), before.clone());
            let new = ask(&pool, 50..100);
            for (found, number) in new.iter().zip(50..) {
                prop_assert_eq!(*found, pool.home(client(number), |server| !server.is_draining));
                let home = pool.home(client(number), |_| true);
                prop_assert!(found == &home || home == Some(pool.servers[drains].identity));
            }
            // Who proves to have been here before is where the hash says, and stays.
            let shown = |number| pool.choose(client(number), true, &table);
            let returning: Vec<_> = (100..150).map(shown).collect();
            let homes: Vec<_> = (100..150).map(|number| pool.home(client(number), |_| true)).collect();
            prop_assert_eq!(&returning, &homes);
            pool.servers[drains].is_draining = false;
            let expected = [before, new, returning].concat();
            prop_assert_eq!(ask(&pool, 0..150), expected);
        }
    }
}
