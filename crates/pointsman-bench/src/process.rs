//! What the kernel says processes and their descendants have spent, and how long they waited for a core.

use std::collections::{HashMap, HashSet};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

use nix::sys::time::TimeValLike as _;
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

/// So many threads are looked at one by one. A server with more is asked for what all threads of a process have spent
/// together: looking at hundreds takes milliseconds, which a load on the same machine would feel.
const THREADS_MAX: u64 = 32;

/// CPU time up to a moment.
///
/// Ticks of 10 ms tell user from system; the scheduler's own account tells the total in nanoseconds, and how
/// long a thread that could run had to wait for the core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Time {
    user_ticks: u64,
    system_ticks: u64,
    accounts: HashMap<Account, Scheduled>,
}

/// CPU time between two moments, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// In programs.
    pub user: f64,
    /// In the kernel for them.
    pub system: f64,
    /// Able to run, without a core: together with the other two, the time in which there was work at hand. Nothing where
    /// the kernel does not say so: of processes with many threads, and where it keeps no such account.
    pub waited: Option<f64>,
}

/// Whom an account is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Account {
    Thread(u32),
    /// All its threads, those that have ended too.
    Process(u32),
}

/// The scheduler's account of a thread or a process, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Scheduled {
    ran: u64,
    waited: Option<u64>,
}

impl Time {
    /// The sum over these processes, all their threads and their living descendants.
    pub fn of_trees(roots: &[u32]) -> Result<Self> {
        Self::of_processes(&trees(roots)?)
    }

    /// The sum over just these and all their threads. Those that have ended are left out.
    fn of_processes(ids: &HashSet<u32>) -> Result<Self> {
        let mut living = HashMap::with_capacity(ids.len());
        for id in ids {
            living.extend(Stat::of(*id)?.map(|stat| (*id, stat)));
        }
        Ok(Self::of_living(&living))
    }

    /// The same of processes whose statuses have been read.
    pub(crate) fn of_living(living: &HashMap<u32, Stat>) -> Self {
        let mut time = Self::default();
        let mut threads = 0;
        for stat in living.values() {
            time.user_ticks += stat.user_ticks;
            time.system_ticks += stat.system_ticks;
            threads += stat.threads;
        }
        for id in living.keys().copied() {
            match threads <= THREADS_MAX {
                true => {
                    time.accounts.extend(of_threads(&Path::new("/proc").join(id.to_string()).join("task")))
                }
                false => time.accounts.extend(of_process(id)),
            }
        }
        time
    }

    /// What was spent between two looks.
    pub fn since(&self, earlier: &Self, ticks_per_second: u64) -> Spent {
        let seconds = |count: u64, per_second: u64| count as f64 / per_second as f64;
        let ticks = |now: u64, then: u64| seconds(now.saturating_sub(then), ticks_per_second);
        let (user, system) =
            (ticks(self.user_ticks, earlier.user_ticks), ticks(self.system_ticks, earlier.system_ticks));
        // What an ended thread ran is in the ticks alone; a kernel without this account says nothing.
        let is_whole = earlier.accounts.keys().all(|account| self.accounts.contains_key(account));
        let ran = seconds(self.ran().saturating_sub(earlier.ran()), 1_000_000_000);
        let waited = self.waited().zip(earlier.waited()).filter(|_| is_whole);
        let waited = waited.map(|(now, then)| seconds(now.saturating_sub(then), 1_000_000_000));
        let by_ticks = user + system;
        match is_whole && ran > 0.0 {
            // Less than a tick: nobody knows where it was spent.
            true if by_ticks == 0.0 => Spent { user: ran, system: 0.0, waited },
            true => Spent { user: user * ran / by_ticks, system: system * ran / by_ticks, waited },
            false => Spent { user, system, waited },
        }
    }

    /// What others spent as well.
    pub(crate) fn add(&mut self, others: &Time) {
        self.user_ticks += others.user_ticks;
        self.system_ticks += others.system_ticks;
        self.accounts.extend(others.accounts.iter().map(|(account, spent)| (*account, *spent)));
    }

    fn ran(&self) -> u64 {
        self.accounts.values().map(|scheduled| scheduled.ran).sum()
    }

    /// Nothing where one of them is not known.
    fn waited(&self) -> Option<u64> {
        let all = self.accounts.values().map(|scheduled| scheduled.waited).sum::<Option<u64>>();
        all.filter(|_| !self.accounts.is_empty())
    }
}

/// These processes and their living descendants.
pub(crate) fn trees(roots: &[u32]) -> Result<HashSet<u32>> {
    let mut parents = HashMap::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        // Whatever is wrong with one that is nobody's business here is not our trouble.
        match Stat::of(id) {
            Ok(Some(stat)) => drop(parents.insert(id, stat.parent)),
            Err(error) if roots.contains(&id) => return Err(error),
            Ok(None) | Err(_) => {}
        }
    }
    if let Some(root) = roots.iter().find(|root| !parents.contains_key(root)) {
        let message = format!("no process {root} is to be seen: it has ended, or `/proc` hides it from us");
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    let belongs = |mut id: u32| {
        while !roots.contains(&id) {
            match parents.get(&id) {
                Some(parent) if *parent != id => id = *parent,
                _ => return false,
            }
        }
        true
    };
    Ok(parents.keys().copied().filter(|id| belongs(*id)).collect())
}

/// Whether a process ignores SIGCHLD, so that its children leave no account when they end.
pub(crate) fn ignores_children(id: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    ignores(&text, rustix::process::Signal::CHILD.as_raw() as u32)
}

/// Whether a `status` says that this signal is ignored: the first is the lowest bit.
fn ignores(status: &str, signal: u32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Ticks of the kernel's accounts of user and system time in a second.
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// What the scheduler says of each thread in a `task` folder; nothing where it keeps no account.
fn of_threads(folder: &Path) -> HashMap<Account, Scheduled> {
    let threads = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let account = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let id = thread.file_name().to_string_lossy().parse().ok()?;
        Some((Account::Thread(id), Scheduled::read(&text)?))
    });
    account.collect()
}

/// What its CPU clock says; nothing where it has ended.
fn of_process(id: u32) -> Option<(Account, Scheduled)> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(id).ok()?)).ok()?;
    let ran = u64::try_from(clock.now().ok()?.num_nanoseconds()).ok()?;
    Some((Account::Process(id), Scheduled { ran, waited: None }))
}

impl Scheduled {
    /// See the kernel's `sched-stats`: time on the core, time waiting for it, turns.
    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
        Some(Self { ran: numbers.next()?, waited: Some(numbers.next()?) })
    }
}

/// Ticks in programs and in the kernel, by a `stat` of a process or a thread.
pub(crate) fn cpu_ticks(stat: &str) -> Option<u64> {
    Stat::read(stat).ok().map(|stat| stat.user_ticks + stat.system_ticks)
}

/// What we need of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) parent: u32,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    /// Of children that have ended and were waited for, and of theirs.
    pub(crate) ended_user_ticks: u64,
    pub(crate) ended_system_ticks: u64,
    pub(crate) threads: u64,
    /// Since the machine was started.
    pub(crate) began_ticks: u64,
}

impl Stat {
    /// Nothing of a process that is not there, or has ended between two looks.
    pub(crate) fn of(id: u32) -> Result<Option<Self>> {
        match std::fs::read_to_string(format!("/proc/{id}/stat")) {
            Ok(text) if text.is_empty() => Ok(None),
            Ok(text) => Self::read(&text).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// See proc(5): the program's name, in brackets, may hold anything, so counting starts behind it.
    fn read(text: &str) -> Result<Self> {
        let fields = text.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>());
        let field = |number: usize| fields.as_ref()?.get(number - 3)?.parse::<u64>().ok();
        let stat = || {
            Some(Self {
                parent: u32::try_from(field(4)?).unwrap_or(0),
                user_ticks: field(14)?,
                system_ticks: field(15)?,
                ended_user_ticks: field(16)?,
                ended_system_ticks: field(17)?,
                threads: field(20)?,
                began_ticks: field(22)?,
            })
        };
        stat().ok_or_else(|| {
            let message = format!("cannot read the process status `{}`", text.trim_end());
            Error::new(ErrorKind::InvalidData, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    fn time(user_ticks: u64, system_ticks: u64, threads: &[(u32, u64, u64)]) -> Time {
        let accounts = threads
            .iter()
            .map(|(id, ran, waited)| (Account::Thread(*id), Scheduled { ran: *ran, waited: Some(*waited) }));
        Time { user_ticks, system_ticks, accounts: accounts.collect() }
    }

    fn is(spent: Spent, user: f64, system: f64, waited: Option<f64>) -> bool {
        let near = |left: f64, right: f64| (left - right).abs() < 1e-9;
        let is_same_wait = match (spent.waited, waited) {
            (Some(left), Some(right)) => near(left, right),
            (left, right) => left.is_none() && right.is_none(),
        };
        near(spent.user, user) && near(spent.system, system) && is_same_wait
    }

    #[test]
    fn status_is_read_behind_the_name() {
        let text = "7 (a) b) S 3 7 7 0 -1 4194304 110 0 0 0 120 34 1 1 20 0 1 0 9 0 0";
        let stat = Stat::read(text).expect("as in proc(5)");
        assert_eq!((stat.parent, stat.user_ticks, stat.system_ticks, stat.threads), (3, 120, 34, 1));
        assert_eq!((stat.ended_user_ticks, stat.ended_system_ticks, stat.began_ticks), (1, 1, 9));
        assert!(Stat::read("7 nonsense").is_err());
    }

    #[test]
    fn a_status_says_which_signals_are_ignored() {
        let status = "Name:\tx\nSigBlk:\t0000000000010000\nSigIgn:\t0000000000011000\nSigCgt:\t0\n";
        assert!(ignores(status, 17) && ignores(status, 13) && !ignores(status, 16) && !ignores("", 17));
    }

    #[test]
    fn nanoseconds_make_the_total_and_ticks_share_it_out() {
        let before = time(10, 10, &[(1, 200_000_000, 0), (2, 0, 5)]);
        let after = time(20, 40, &[(1, 600_000_000, 1_000_000_000), (2, 8_000_000, 5), (3, 2_000_000, 0)]);
        assert!(is(after.since(&before, 100), 0.1025, 0.3075, Some(1.0)));
    }

    #[test]
    fn ticks_stand_in_where_a_thread_has_ended_or_there_is_no_account() {
        let before = time(10, 10, &[(1, 200_000_000, 0), (2, 700_000_000, 0)]);
        let after = time(20, 40, &[(1, 900_000_000, 0)]);
        assert!(is(after.since(&before, 100), 0.1, 0.3, None));
        assert!(is(
            time(10, 10, &[(1, 5_000_000, 0)]).since(&time(10, 10, &[(1, 0, 0)]), 100),
            0.005,
            0.0,
            Some(0.0)
        ));
        assert!(is(time(20, 40, &[(1, 0, 0)]).since(&time(10, 10, &[(1, 0, 0)]), 100), 0.1, 0.3, Some(0.0)));
    }

    #[test]
    fn a_process_is_asked_where_its_threads_are_many() {
        let begin = Arc::new(Barrier::new(THREADS_MAX as usize + 1));
        let threads: Vec<_> = (0..THREADS_MAX)
            .map(|_| {
                let begin = begin.clone();
                std::thread::spawn(move || (begin.wait(), begin.wait()))
            })
            .collect();
        begin.wait();
        let own = std::process::id();
        let before = Time::of_trees(&[own]).expect("we are running");
        let until = crate::clock::thread_cpu_ns() + 20_000_000;
        while crate::clock::thread_cpu_ns() < until {}
        let after = Time::of_trees(&[own]).expect("we are running");
        begin.wait();
        for thread in threads {
            thread.join().expect("it has only waited");
        }
        assert!(before.accounts.contains_key(&Account::Process(own)), "{before:?}");
        let spent = after.since(&before, ticks_per_second());
        assert!(spent.user + spent.system >= 0.019 && spent.waited.is_none(), "{spent:?}");
    }

    #[test]
    fn our_own_time_is_there() {
        let own = Time::of_trees(&[std::process::id()]).expect("we are running");
        assert!(!own.accounts.is_empty());
        let error = Time::of_trees(&[u32::MAX]).expect_err("no such process");
        assert_eq!(
            error.to_string(),
            "no process 4294967295 is to be seen: it has ended, or `/proc` hides it from us"
        );
    }
}
