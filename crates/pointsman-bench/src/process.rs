//! What the kernel says processes and their descendants have spent, and how long they waited for a core.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// CPU time up to a moment.
///
/// Ticks of 10 ms tell user from system; the scheduler's own account tells the total in nanoseconds, and how
/// long a thread that could run had to wait for the core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Time {
    user_ticks: u64,
    system_ticks: u64,
    threads: HashMap<u32, Scheduled>,
}

/// CPU time between two moments, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// In programs.
    pub user: f64,
    /// In the kernel for them.
    pub system: f64,
    /// Able to run, without a core: together with the other two, the time in which there was work at hand.
    pub waited: f64,
}

/// The scheduler's account of a thread, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Scheduled {
    ran: u64,
    waited: u64,
}

impl Time {
    /// The sum over these processes, all their threads and their living descendants.
    pub fn of_trees(roots: &[u32]) -> Result<Self> {
        let mut processes = HashMap::new();
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            // A process may end between the listing and the look.
            let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
            processes.insert(id, Stat::read(&text)?);
        }
        if !roots.iter().all(|root| processes.contains_key(root)) {
            return Err(Error::new(ErrorKind::NotFound, "a process that is to be looked at has ended"));
        }
        let belongs = |mut id: u32| {
            while !roots.contains(&id) {
                match processes.get(&id) {
                    Some(stat) if stat.parent != id => id = stat.parent,
                    _ => return false,
                }
            }
            true
        };
        let mut time = Self::default();
        for (id, stat) in processes.iter().filter(|(id, _)| belongs(**id)) {
            time.user_ticks += stat.user_ticks;
            time.system_ticks += stat.system_ticks;
            time.threads.extend(scheduled(&Path::new("/proc").join(id.to_string()).join("task")));
        }
        Ok(time)
    }

    /// What was spent between two looks.
    pub fn since(&self, earlier: &Self, ticks_per_second: u64) -> Spent {
        let seconds = |count: u64, per_second: u64| count as f64 / per_second as f64;
        let ticks = |now: u64, then: u64| seconds(now.saturating_sub(then), ticks_per_second);
        let (user, system) =
            (ticks(self.user_ticks, earlier.user_ticks), ticks(self.system_ticks, earlier.system_ticks));
        // What an ended thread ran is in the ticks alone; a kernel without this account says 0.
        let is_whole = earlier.threads.keys().all(|thread| self.threads.contains_key(thread));
        let [ran, waited] = [|s: &Scheduled| s.ran, |s: &Scheduled| s.waited].map(|of| {
            let total = |time: &Self| time.threads.values().map(of).sum::<u64>();
            seconds(total(self).saturating_sub(total(earlier)), 1_000_000_000)
        });
        let by_ticks = user + system;
        match is_whole && ran > 0.0 {
            // Less than a tick: nobody knows where it was spent.
            true if by_ticks == 0.0 => Spent { user: ran, system: 0.0, waited },
            true => Spent { user: user * ran / by_ticks, system: system * ran / by_ticks, waited },
            false => Spent { user, system, waited },
        }
    }
}

/// Ticks of the kernel's accounts of user and system time in a second.
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// What the scheduler says of each thread in a `task` folder; nothing where it keeps no account.
fn scheduled(folder: &Path) -> HashMap<u32, Scheduled> {
    let threads = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let account = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        Some((thread.file_name().to_string_lossy().parse().ok()?, Scheduled::read(&text)?))
    });
    account.collect()
}

impl Scheduled {
    /// See the kernel's `sched-stats`: time on the core, time waiting for it, turns.
    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
        Some(Self { ran: numbers.next()?, waited: numbers.next()? })
    }
}

/// What we need of `/proc/PID/stat`.
struct Stat {
    parent: u32,
    user_ticks: u64,
    system_ticks: u64,
}

impl Stat {
    /// See proc(5): the program's name, in brackets, may hold anything, so counting starts behind it.
    fn read(text: &str) -> Result<Self> {
        let fields = text.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>());
        let field = |number: usize| fields.as_ref()?.get(number - 3)?.parse::<u64>().ok();
        match (field(4), field(14), field(15)) {
            (Some(parent), Some(user_ticks), Some(system_ticks)) => {
                Ok(Self { parent: u32::try_from(parent).unwrap_or(0), user_ticks, system_ticks })
            }
            _ => {
                let message = format!("cannot read the process status `{}`", text.trim_end());
                Err(Error::new(ErrorKind::InvalidData, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(user_ticks: u64, system_ticks: u64, threads: &[(u32, u64, u64)]) -> Time {
        let threads = threads.iter().map(|(id, ran, waited)| (*id, Scheduled { ran: *ran, waited: *waited }));
        Time { user_ticks, system_ticks, threads: threads.collect() }
    }

    fn is(spent: Spent, user: f64, system: f64, waited: f64) -> bool {
        [spent.user - user, spent.system - system, spent.waited - waited].iter().all(|gap| gap.abs() < 1e-9)
    }

    #[test]
    fn status_is_read_behind_the_name() {
        let text = "7 (a) b) S 3 7 7 0 -1 4194304 110 0 0 0 120 34 1 1 20 0 1 0 9 0 0";
        let stat = Stat::read(text).expect("as in proc(5)");
        assert_eq!((stat.parent, stat.user_ticks, stat.system_ticks), (3, 120, 34));
        assert!(Stat::read("7 nonsense").is_err());
    }

    #[test]
    fn nanoseconds_make_the_total_and_ticks_share_it_out() {
        let before = time(10, 10, &[(1, 200_000_000, 0), (2, 0, 5)]);
        let after = time(20, 40, &[(1, 600_000_000, 1_000_000_000), (2, 8_000_000, 5), (3, 2_000_000, 0)]);
        assert!(is(after.since(&before, 100), 0.1025, 0.3075, 1.0));
    }

    #[test]
    fn ticks_stand_in_where_a_thread_has_ended_or_there_is_no_account() {
        let before = time(10, 10, &[(1, 200_000_000, 0), (2, 700_000_000, 0)]);
        let after = time(20, 40, &[(1, 900_000_000, 0)]);
        assert!(is(after.since(&before, 100), 0.1, 0.3, 0.0));
        assert!(is(
            time(10, 10, &[(1, 5_000_000, 0)]).since(&time(10, 10, &[(1, 0, 0)]), 100),
            0.005,
            0.0,
            0.0
        ));
        assert!(is(time(20, 40, &[(1, 0, 0)]).since(&time(10, 10, &[(1, 0, 0)]), 100), 0.1, 0.3, 0.0));
    }

    #[test]
    fn our_own_time_is_there() {
        let own = Time::of_trees(&[std::process::id()]).expect("we are running");
        assert!(!own.threads.is_empty());
        assert!(Time::of_trees(&[u32::MAX]).is_err());
    }
}
