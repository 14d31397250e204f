//! What the server's processes spend in the measured time, where the plan names one.
//!
//! A look in the middle of a load must be short: whose it is stands fixed shortly before the measured time begins, so that
//! just those are looked at then. At its end it does no harm to search for those that have come since.
//!
//! What a process that ends has spent goes to whoever waited for it: so children that come and go are counted, and where
//! the kernel has told nobody, nothing is said rather than too little.

use std::collections::{HashMap, HashSet};

use rustix::time::{ClockId, clock_gettime};

use crate::clock::SECOND_NS;
use crate::fault::Fault;
use crate::outcome::ServerUse;
use crate::plan::Plan;
use crate::process::{self, Spent, Stat, Time, ticks_per_second};
use crate::record::Record;

/// How long before the measured time those are searched that have come in the warm-up.
pub(crate) const SEARCH_LEAD_NS: u64 = SECOND_NS / 20;

/// Up to this share of what was spent it may be unclear when it was.
const UNCLEAR_SHARE_MAX: f64 = 0.02;

/// What the server spent, or why nobody knows; nothing where no process was named.
pub(crate) type Served = Option<Result<ServerUse, String>>;

/// The process that a plan names, and all its descendants.
#[derive(Debug)]
pub(crate) struct ServerWatch {
    root: u32,
    known: HashSet<u32>,
}

/// What they had spent at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Looked {
    root: u32,
    /// When, in ticks since the machine was started.
    at_ticks: u64,
    processes: HashMap<u32, Stat>,
    time: Time,
    /// Those that ignore SIGCHLD, at the last look: the kernel tells them nothing of their children.
    deaf: Vec<u32>,
}

impl ServerWatch {
    /// Who they are, before the load; nothing where the plan names none.
    pub(crate) fn find(plan: &Plan) -> Result<Option<ServerWatch>, Fault> {
        let watch = |root| Ok(ServerWatch { root, known: process::trees(&[root])? });
        let watch = plan.server_process.map(watch).transpose();
        watch.map_err(|error: std::io::Error| Fault::io("cannot look at the server's process", &error))
    }

    /// Who they are by now. Where the process that was named has ended that shows in what it spent.
    pub(crate) fn search(&mut self) {
        self.known = process::trees(&[self.root]).unwrap_or_default();
    }

    /// What they have spent by now.
    pub(crate) fn look(&self) -> Looked {
        Looked::at(self.root, &self.known)
    }

    /// What they and those that have come since have spent by now.
    pub(crate) fn last_look(&self) -> Looked {
        // The clocks of those that are known first: the search takes a while, and the load is over.
        let known = self.look();
        let all = process::trees(&[self.root]).unwrap_or_default();
        let came: HashSet<u32> = all.difference(&self.known).copied().collect();
        let Looked { processes, mut time, .. } = Looked::at(self.root, &came);
        time.add(&known.time);
        let processes: HashMap<u32, Stat> = processes.into_iter().chain(known.processes).collect();
        let deaf = processes.keys().copied().filter(|id| process::ignores_children(*id)).collect();
        Looked { time, processes, deaf, ..known }
    }
}

impl Looked {
    fn at(root: u32, ids: &HashSet<u32>) -> Looked {
        let now = clock_gettime(ClockId::Boottime);
        let ticks = ticks_per_second();
        let at_ticks = now.tv_sec.unsigned_abs() * ticks + now.tv_nsec.unsigned_abs() * ticks / SECOND_NS;
        // One that cannot be read is as one that is gone.
        let read = |id: &u32| Some((*id, Stat::of(*id).ok().flatten()?));
        let processes: HashMap<u32, Stat> = ids.iter().filter_map(read).collect();
        let time = Time::of_living(&processes);
        Looked { root, at_ticks, time, processes, deaf: Vec::new() }
    }

    /// The same process: numbers are given again.
    fn later(&self, id: u32, later: &Looked) -> Option<Stat> {
        let began = self.processes.get(&id)?.began_ticks;
        later.processes.get(&id).copied().filter(|stat| stat.began_ticks == began)
    }

    /// What was spent from this look to a later one, or why that is not known.
    fn until(&self, later: &Looked) -> Result<Spent, String> {
        if self.later(self.root, later).is_none() {
            return Err(format!("process {} ended before the measured time did", self.root));
        }
        let gone: Vec<u32> =
            self.processes.keys().copied().filter(|id| self.later(*id, later).is_none()).collect();
        self.settle(&gone, later)?;
        let news = later.processes.iter().filter(|(id, _)| self.later(**id, later).is_none());
        let news: Vec<(u32, Stat)> = news.map(|(id, stat)| (*id, *stat)).collect();
        if let Some(id) = later.deaf.first() {
            return Err(format!(
                "process {id} ignores SIGCHLD, so nobody is told what children of it spend that come and go"
            ));
        }
        let per_tick = 1.0 / ticks_per_second() as f64;
        let since = |of: fn(&Stat) -> u64| {
            let sum = |looked: &Looked| looked.processes.values().map(of).sum::<u64>();
            sum(later).saturating_sub(sum(self)) as f64 * per_tick
        };
        let spent = if gone.is_empty() {
            let own = later.time.since(&self.time, ticks_per_second());
            Spent {
                user: own.user + since(|stat| stat.ended_user_ticks),
                system: own.system + since(|stat| stat.ended_system_ticks),
                ..own
            }
        } else {
            // What one of them had spent is with another by now.
            Spent {
                user: since(|stat| stat.user_ticks + stat.ended_user_ticks),
                system: since(|stat| stat.system_ticks + stat.ended_system_ticks),
                waited: None,
            }
        };
        let unclear = self.unclear_ticks(&news) as f64 * per_tick;
        if unclear > UNCLEAR_SHARE_MAX * (spent.user + spent.system) {
            return Err(format!(
                "a process came just before the measured time began, and up to {unclear:.2} s of its CPU time may be of before"
            ));
        }
        Ok(spent)
    }

    /// Whether what those had spent that have ended is with who waited for them.
    fn settle(&self, gone: &[u32], later: &Looked) -> Result<(), String> {
        let mut owed: HashMap<u32, (u64, u64)> = HashMap::new();
        for id in gone {
            let mut heir = *id;
            while self.later(heir, later).is_none() {
                heir = self.processes.get(&heir).map_or(self.root, |stat| stat.parent);
                if !self.processes.contains_key(&heir) {
                    heir = self.root;
                }
            }
            let (ticks, count) = owed.entry(heir).or_default();
            *ticks += self.processes.get(id).map_or(0, Stat::all_ticks);
            *count += 1;
        }
        for (heir, (ticks, count)) in owed {
            let of = |looked: &Looked| looked.processes.get(&heir).map_or(0, Stat::ended_ticks);
            let inherited = of(later).saturating_sub(of(self));
            // Two counts are rounded down, each by less than one.
            if inherited == 0 || inherited + 2 < ticks {
                let one = if count == 1 { "a process".to_owned() } else { format!("{count} processes") };
                return Err(format!(
                    "{one} of the server ended in the measured time, and what was spent there is told nobody"
                ));
            }
        }
        Ok(())
    }

    /// Of what those have spent that came before this look and were not known then: what of it may be of before.
    fn unclear_ticks(&self, news: &[(u32, Stat)]) -> u64 {
        let of = |stat: &Stat| {
            stat.all_ticks().min(self.at_ticks.saturating_sub(stat.began_ticks) * stat.threads.max(1))
        };
        news.iter().map(|(_, stat)| of(stat)).sum()
    }
}

impl Stat {
    fn all_ticks(&self) -> u64 {
        self.user_ticks + self.system_ticks + self.ended_ticks()
    }

    fn ended_ticks(&self) -> u64 {
        self.ended_user_ticks + self.ended_system_ticks
    }
}

impl ServerUse {
    /// What the server spent between two looks at its processes, beside what it was asked in that time; or why that is not
    /// known.
    pub(crate) fn between((before, after): &(Looked, Looked), record: &Record) -> Result<ServerUse, String> {
        let spent = before.until(after)?;
        let us = (spent.user + spent.system) * 1e6;
        let per = |count: u64| (count > 0).then(|| us / count as f64);
        Ok(ServerUse {
            spent,
            us_per_request: per(record.completed_in_time()),
            us_per_handshake: per(record.handshakes.iter().sum()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that does what it is told, line by line.
    struct Shell {
        child: Child,
        says: Box<dyn BufRead>,
    }

    /// Some tenths of a second of a core.
    const WORK: &str = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";

    impl Shell {
        fn start() -> Shell {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while read -r line; do eval \"$line\"; done"]);
            let mut child =
                shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("there is a shell");
            let says = Box::new(BufReader::new(child.stdout.take().expect("it is ours")));
            Shell { child, says }
        }

        /// Until it says something.
        fn does(&mut self, line: &str) {
            writeln!(self.child.stdin.as_ref().expect("it is ours"), "{line}").expect("it reads");
            self.says.read_line(&mut String::new()).expect("it speaks");
        }

        fn watch(&self) -> ServerWatch {
            let root = self.child.id();
            ServerWatch { root, known: process::trees(&[root]).expect("it runs") }
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }

    fn seconds(before: &Looked, after: &Looked) -> f64 {
        let spent = before.until(after).expect("it is known");
        spent.user + spent.system
    }

    #[test]
    fn what_children_spend_that_come_and_go_is_counted() {
        let mut shell = Shell::start();
        let watch = shell.watch();
        let before = watch.look();
        shell.does(&format!("sh -c '{WORK}'; echo"));
        assert!(seconds(&before, &watch.last_look()) > 0.02);
    }

    #[test]
    fn what_a_child_spent_before_is_not_counted_and_what_it_spends_until_it_ends_is() {
        let mut shell = Shell::start();
        let mut watch = shell.watch();
        shell.does(&format!("sh -c '{WORK}; echo; read -r x; {WORK}'; echo"));
        let early = watch.look();
        watch.search();
        let before = watch.look();
        let spent = before.processes.values().map(Stat::all_ticks).sum::<u64>();
        assert!(before.processes.len() > early.processes.len() && spent > 2, "{before:?}");
        assert!(seconds(&before, &watch.last_look()) < 0.02);
        shell.does("go on");
        let after = watch.last_look();
        assert!(before.processes.len() > after.processes.len());
        let of_second = seconds(&before, &after);
        let all = after.processes.values().map(Stat::all_ticks).sum::<u64>() as f64 / 100.0;
        assert!(of_second > 0.02 && of_second < all, "{of_second} of {all}");
    }

    #[test]
    fn where_the_named_process_ends_nothing_is_known() {
        let mut shell = Shell::start();
        let watch = shell.watch();
        let before = watch.look();
        shell.child.kill().expect("it runs");
        shell.child.wait().expect("it has ended");
        let why = before.until(&watch.last_look()).expect_err("it is gone");
        assert_eq!(why, format!("process {} ended before the measured time did", watch.root));
    }

    /// Process 1 with others, each by its number: whose it is, when it began, its ticks, and those of its children.
    fn looked(at_ticks: u64, all: &[(u32, u32, u64, u64, u64)]) -> Looked {
        let stat = |(id, parent, began_ticks, user_ticks, ended_user_ticks): &(u32, u32, u64, u64, u64)| {
            let (parent, began_ticks, user_ticks) = (*parent, *began_ticks, *user_ticks);
            let ended_user_ticks = *ended_user_ticks;
            (*id, Stat { parent, began_ticks, user_ticks, ended_user_ticks, threads: 1, ..Stat::default() })
        };
        let processes = all.iter().map(stat).collect();
        Looked { root: 1, at_ticks, processes, time: Time::default(), deaf: Vec::new() }
    }

    /// A parent that is told nothing of its children, who may come and go between two looks.
    #[test]
    fn nothing_is_said_of_who_ignores_its_children() {
        let before = looked(1000, &[(1, 0, 10, 50, 0)]);
        let after = looked(2000, &[(1, 0, 10, 60, 0)]);
        assert!(before.until(&after).is_ok());
        let why = before.until(&Looked { deaf: vec![1], ..after }).expect_err("who knows");
        assert!(why.starts_with("process 1 ignores SIGCHLD"), "{why}");
    }

    #[test]
    fn nothing_is_said_of_what_nobody_knows() {
        let per_second = ticks_per_second() as f64;
        let before = looked(1000, &[(1, 0, 10, 50, 7), (2, 1, 20, 300, 0), (3, 2, 30, 100, 0)]);
        for (after, ticks) in [
            // Both were waited for, and spent 100 more.
            (&[(1, 0, 10, 50, 507)][..], Some(100.0)),
            // One has another in its place.
            (&[(1, 0, 10, 60, 407), (2, 1, 20, 300, 0), (3, 1, 1500, 40, 0)], None),
            (&[(1, 0, 10, 50, 407), (4, 1, 1500, 40, 0), (3, 2, 30, 100, 0)], Some(140.0)),
            // It ended, and nobody waited for it.
            (&[(1, 0, 10, 50, 7), (2, 1, 20, 300, 0)], None),
            (&[(1, 0, 10, 50, 307), (2, 1, 20, 310, 0)], None),
            // A new one, and one that may have worked before.
            (&[(1, 0, 10, 50, 407), (4, 1, 1500, 900, 0)], Some(900.0)),
            (&[(1, 0, 10, 50, 407), (4, 1, 900, 900, 0)], None),
            (&[(1, 0, 11, 50, 407)], None),
        ] {
            let spent = before.until(&looked(2000, after));
            match ticks {
                Some(ticks) => {
                    let spent = spent.expect("it is known");
                    assert!((spent.user * per_second - ticks).abs() < 1e-6, "{after:?}: {spent:?}");
                }
                None => assert!(spent.is_err(), "{after:?}: {spent:?}"),
            }
        }
    }
}
