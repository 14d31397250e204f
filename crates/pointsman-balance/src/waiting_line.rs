//! Those who wait for a place at a server: first in, first out, each for one of the servers that it may go to.

use std::collections::BTreeMap;

/// A line of those who wait. `S` is a server, `W` is what somebody who waits is woken by.
///
/// Invariant, which callers keep: a server that somebody here wants has no place free. Whoever gives one back offers it
/// here first.
#[derive(Debug)]
pub struct WaitingLine<S, W> {
    /// By number: lower ones came first.
    waiting: BTreeMap<u64, Waiting<S, W>>,
    /// Places that were given to somebody who has not taken them yet.
    given: BTreeMap<u64, S>,
    next: u64,
}

#[derive(Debug)]
struct Waiting<S, W> {
    wants: Vec<S>,
    waker: W,
}

impl<S, W> Default for WaitingLine<S, W> {
    fn default() -> WaitingLine<S, W> {
        WaitingLine { waiting: BTreeMap::new(), given: BTreeMap::new(), next: 0 }
    }
}

impl<S: PartialEq + Clone, W> WaitingLine<S, W> {
    /// How many wait; those who were given a place do not any more.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether somebody waits for this server.
    #[must_use]
    pub fn is_wanted(&self, server: &S) -> bool {
        self.waiting.values().any(|waiting| waiting.wants.contains(server))
    }

    /// Waits for a place at one of `wants`, behind all others. The number is to look for it by.
    pub fn join(&mut self, wants: Vec<S>, waker: W) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, Waiting { wants, waker });
        number
    }

    /// From now on it may go to these servers. Its turn stays.
    pub fn change(&mut self, number: u64, wants: Vec<S>) {
        if let Some(waiting) = self.waiting.get_mut(&number) {
            waiting.wants = wants;
        }
    }

    /// Gives a place at this server to the first who wants one there, and says how to wake it. `None`: nobody does.
    pub fn give(&mut self, server: &S) -> Option<W> {
        let first = self.waiting.iter().find(|(_, waiting)| waiting.wants.contains(server));
        let number = *first?.0;
        let waiting = self.waiting.remove(&number)?;
        self.given.insert(number, server.clone());
        Some(waiting.waker)
    }

    /// The place that it was given, for which it waits no more. `None`: it goes on waiting, woken by `waker`.
    pub fn take(&mut self, number: u64, waker: W) -> Option<S> {
        let given = self.given.remove(&number);
        if given.is_none()
            && let Some(waiting) = self.waiting.get_mut(&number)
        {
            waiting.waker = waker;
        }
        given
    }

    /// Waits no more. What it was given and has not taken is to be given back.
    #[must_use]
    pub fn leave(&mut self, number: u64) -> Option<S> {
        self.waiting.remove(&number);
        self.given.remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_who_wants_it_gets_it() {
        let mut line = WaitingLine::default();
        let [first, second, third] = [vec!['a'], vec!['b', 'a'], vec!['b']].map(|wants| line.join(wants, ()));
        assert_eq!(line.give(&'b'), Some(()));
        assert_eq!((line.take(first, ()), line.take(third, ())), (None, None));
        assert_eq!(line.take(second, ()), Some('b'));
        assert!(line.is_wanted(&'a') && line.is_wanted(&'b') && !line.is_wanted(&'c'));
        line.change(first, vec!['c']);
        assert_eq!(line.give(&'a'), None);
        assert_eq!(line.give(&'c'), Some(()));
        assert_eq!((line.leave(first), line.leave(third)), (Some('c'), None), "what it has not taken");
        assert!(line.is_empty());
    }

    /// What may happen to servers of so many places.
    #[derive(Clone, Debug)]
    enum Step {
        Comes(Vec<usize>),
        LeavesAServer(usize),
        LeavesTheLine(usize),
    }

    const SERVERS: usize = 3;

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => vec(0..SERVERS, 1..=SERVERS).prop_map(Step::Comes),
            3 => (0usize..64).prop_map(Step::LeavesAServer),
            1 => (0usize..64).prop_map(Step::LeavesTheLine),
        ]
    }

    proptest! {
        /// The definition: nobody waits for a server with a free place, no server has more than it may, nobody is
        /// overtaken by who came later and wanted the same, and in the end all places are free.
        #[test]
        fn nobody_waits_in_vain_and_nobody_is_overtaken(
            max in vec(1usize..3, SERVERS),
            steps in vec(step(), 1..120),
        ) {
            let mut line = WaitingLine::default();
            // Who waits, in order, and who is served where.
            let mut waiting: Vec<(u64, Vec<usize>)> = Vec::new();
            let mut served: Vec<usize> = Vec::new();
            let give_back = |line: &mut WaitingLine<usize, ()>, waiting: &mut Vec<(u64, Vec<usize>)>, server: usize| {
                let expected = waiting.iter().position(|(_, wants)| wants.contains(&server));
                prop_assert_eq!(line.give(&server).is_some(), expected.is_some());
                if let Some(at) = expected {
                    let (number, _) = waiting.remove(at);
                    prop_assert_eq!(line.take(number, ()), Some(server));
                }
                Ok(expected.is_some())
            };
            for step in steps {
                match step {
                    Step::Comes(wants) => {
                        let used = |server: usize| served.iter().filter(|at| **at == server).count();
                        match wants.iter().copied().find(|&server| used(server) < max[server]) {
                            Some(server) => {
                                prop_assert!(!line.is_wanted(&server), "a free place that somebody waits for");
                                served.push(server);
                            }
                            None => waiting.push((line.join(wants.clone(), ()), wants)),
                        }
                    }
                    Step::LeavesAServer(at) if !served.is_empty() => {
                        let server = served.swap_remove(at % served.len());
                        if give_back(&mut line, &mut waiting, server)? {
                            served.push(server);
                        }
                    }
                    Step::LeavesTheLine(at) if !waiting.is_empty() => {
                        let (number, _) = waiting.remove(at % waiting.len());
                        prop_assert_eq!(line.leave(number), None);
                    }
                    Step::LeavesAServer(_) | Step::LeavesTheLine(_) => {}
                }
                prop_assert_eq!(line.len(), waiting.len());
            }
            while let Some(server) = served.pop() {
                if give_back(&mut line, &mut waiting, server)? {
                    served.push(server);
                }
            }
            prop_assert!(line.is_empty(), "somebody waits, and all servers are free");
        }
    }
}
