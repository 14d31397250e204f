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
    /// Whether a client may get there.
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
    pub fn choose(&self, client: u64, table: Option<&StickyTable>, now_s: u32) -> Option<usize> {
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
        let home = self.home(client)?;
        // Where it waits, it does so for the server that it was with.
        let own = at.filter(|&at| (self.is_home)(at)).unwrap_or(home);
        match () {
            () if (self.usable)(own) => remember(own),
            () if self.waits => {
                if let (Some(kept), true) = (kept, at == Some(own)) {
                    stay(own, kept);
                }
                // Nobody is refused because a server has only just come up.
                Some(own).filter(|&own| (self.open)(own))
            }
            () if (self.usable)(home) => remember(home),
            () => remember(self.of_hash(client, self.usable)?),
        }
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
            self.servers.push(Server { identity, weight, is_up: true });
            self.added += 1;
        }

        fn asked<T>(&self, ask: impl Fn(&StickyServers<'_>) -> T) -> T {
            let usable = |at: usize| self.servers[at].is_up;
            ask(&StickyServers {
                count: self.servers.len(),
                server: &|at| (self.servers[at].identity, self.servers[at].weight),
                is_home: &|_| true,
                open: &usable,
                usable: &usable,
                waits: self.waits,
            })
        }

        fn choose(&self, client: u64, table: &StickyTable) -> Option<u64> {
            self.asked(|servers| servers.choose(client, Some(table), 1)).map(|at| self.servers[at].identity)
        }

        fn home(&self, client: u64) -> Option<u64> {
            self.asked(|servers| servers.home(client)).map(|at| self.servers[at].identity)
        }

        fn is_up(&self, identity: u64) -> Option<bool> {
            self.servers.iter().find(|server| server.identity == identity).map(|server| server.is_up)
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
        Ask(u8),
        Add(u32),
        Remove(usize),
        Weigh(usize, u32),
        Turn(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            12 => (0u8..40).prop_map(Step::Ask),
            1 => (1u32..9).prop_map(Step::Add),
            1 => (0usize..8).prop_map(Step::Remove),
            1 => (0usize..8, 1u32..9).prop_map(|(at, weight)| Step::Weigh(at, weight)),
            1 => (0usize..8).prop_map(Step::Turn),
        ];
        vec(step, 0..300)
    }

    /// Runs the steps over a pool and a map of who was where, and holds one to the other.
    fn check(table: &StickyTable, waits: bool, steps: &[Step], is_roomy: bool) -> Result<(), TestCaseError> {
        let mut pool = Pool::new(3, waits);
        let mut was: HashMap<u8, u64> = HashMap::new();
        for step in steps {
            match *step {
                Step::Ask(number) => {
                    let (found, home) = (pool.choose(client(number), table), pool.home(client(number)));
                    let stood = was.get(&number).copied().filter(|server| pool.is_up(*server).is_some());
                    let own = stood.or(home);
                    let is_own_up = own.and_then(|own| pool.is_up(own)) == Some(true);
                    let is_any_up = pool.servers.iter().any(|server| server.is_up);
                    match found {
                        None if waits => prop_assert!(!is_own_up || !is_roomy),
                        None => prop_assert!(!is_any_up),
                        Some(found) => {
                            prop_assert_eq!(pool.is_up(found), Some(true));
                            match is_own_up {
                                true if is_roomy => prop_assert_eq!(Some(found), own),
                                // Who was forgotten is where its hash says, and nowhere else.
                                true => {
                                    let is_home_up = home.and_then(|home| pool.is_up(home)) == Some(true);
                                    prop_assert!(Some(found) == own || Some(found) == home || !is_home_up);
                                }
                                false => prop_assert!(!waits || !is_roomy),
                            }
                            was.insert(number, found);
                        }
                    }
                }
                Step::Add(weight) if pool.servers.len() < 8 => pool.add(weight),
                Step::Remove(at) if at < pool.servers.len() => drop(pool.servers.remove(at)),
                Step::Weigh(at, weight) if at < pool.servers.len() => pool.servers[at].weight = weight,
                Step::Turn(at) if at < pool.servers.len() => pool.servers[at].is_up ^= true,
                Step::Add(_) | Step::Remove(_) | Step::Weigh(..) | Step::Turn(_) => {}
            }
            if matches!(step, Step::Add(_) | Step::Remove(_) | Step::Weigh(..)) {
                pool.look_again(table);
                was.retain(|_, server| pool.is_up(*server).is_some());
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
            let before: Vec<_> = (0..20).map(|number| pool.choose(client(number), &table)).collect();
            pool.add(2);
            pool.look_again(&table);
            for number in 0..strangers {
                pool.choose(client(number.saturating_add(50)), &table);
            }
            let after: Vec<_> = (0..20).map(|number| pool.choose(client(number), &table)).collect();
            prop_assert_eq!(before, after);
        }
    }
}
