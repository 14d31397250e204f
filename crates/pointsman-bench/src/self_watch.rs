//! What the generator and its machine spend while it runs: whether it was in control.
//!
//! The kernel's files are opened once, before there are connections, and read again: whoever has used up its descriptors
//! reads on. What cannot be read is unknown, and never 0: a generator that cannot see itself was not in control.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::clock::now_ns;
use crate::outcome::{Listening, ThreadUse};
use crate::process::{cpu_ticks, ticks_per_second};

/// A file of the kernel's, kept open; nothing where it could not be opened.
#[derive(Debug)]
struct Kept(Option<File>);

impl Kept {
    fn open(path: &str) -> Kept {
        Kept(File::open(path).ok())
    }

    /// What is in it now.
    fn text(&self) -> Option<String> {
        let file = self.0.as_ref()?;
        let mut bytes = vec![0; 8 << 10];
        let mut filled = 0;
        loop {
            match file.read_at(&mut bytes[filled..], filled as u64).ok()? {
                0 => break,
                read => filled += read,
            }
            if filled == bytes.len() {
                bytes.resize(2 * filled, 0);
            }
        }
        bytes.truncate(filled);
        String::from_utf8(bytes).ok()
    }
}

/// Where the kernel keeps a thread's account.
#[derive(Debug)]
pub struct ThreadWatch {
    schedstat: Kept,
    /// For kernels without the former.
    stat: Kept,
    status: Kept,
}

impl ThreadWatch {
    /// Descriptors that it keeps open.
    pub(crate) const DESCRIPTORS: u64 = 3;

    /// Of the thread that calls it. Others may look.
    pub fn own() -> ThreadWatch {
        ThreadWatch {
            schedstat: Kept::open("/proc/thread-self/schedstat"),
            stat: Kept::open("/proc/thread-self/stat"),
            status: Kept::open("/proc/thread-self/status"),
        }
    }

    /// Its account by now; nothing where that cannot be read.
    pub fn account(&self) -> Option<ThreadAccount> {
        let (ran_ns, waited_ns) = self.scheduled().or_else(|| Some((self.ran_by_ticks()?, None)))?;
        let status = self.status.text()?;
        let switched = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?;
        Some(ThreadAccount { ran_ns, waited_ns, switched: switched.trim().parse().ok()? })
    }

    /// What the scheduler says: time on the core and time without one.
    fn scheduled(&self) -> Option<(u64, Option<u64>)> {
        let text = self.schedstat.text()?;
        let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
        Some((numbers.next()?, Some(numbers.next()?)))
    }

    /// What any kernel says, if only in ticks.
    fn ran_by_ticks(&self) -> Option<u64> {
        Some(cpu_ticks(&self.stat.text()?)? * 1_000_000_000 / ticks_per_second())
    }
}

/// One thread's account, since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadAccount {
    /// How long it ran, in ns.
    pub ran_ns: u64,
    /// How long it could have run and had no core, in ns; nothing where the kernel does not say so.
    pub waited_ns: Option<u64>,
    /// How often it was put off its core for somebody else.
    pub switched: u64,
}

/// Where the kernel keeps its accounts of this machine and of threads.
#[derive(Debug)]
pub struct SelfWatch {
    stat: Kept,
    snmp: Kept,
    netstat: Kept,
    sockstat: Kept,
    threads: Vec<ThreadWatch>,
}

impl SelfWatch {
    /// The accounts of the machine, and of these threads.
    pub fn of(threads: Vec<ThreadWatch>) -> SelfWatch {
        SelfWatch {
            stat: Kept::open("/proc/stat"),
            snmp: Kept::open("/proc/net/snmp"),
            netstat: Kept::open("/proc/net/netstat"),
            sockstat: Kept::open("/proc/net/sockstat"),
            threads,
        }
    }

    /// Threads that came later.
    pub(crate) fn add(&mut self, threads: impl IntoIterator<Item = ThreadWatch>) {
        self.threads.extend(threads);
    }

    /// All accounts by now.
    pub fn look(&self) -> Look {
        let at_ns = now_ns();
        let ticks = self.stat.text().and_then(|text| stolen(&text));
        let snmp = self.snmp.text();
        let threads = self.threads.iter().map(ThreadWatch::account).collect();
        let netstat = self.netstat.text();
        let of = |text: &Option<String>, group, name| counter(text.as_deref()?, group, name);
        let listening = || {
            Some(Listening {
                overflows: of(&netstat, "TcpExt:", "ListenOverflows")?,
                drops: of(&netstat, "TcpExt:", "ListenDrops")?,
            })
        };
        Look {
            at_ns,
            threads,
            ticks,
            resent: of(&snmp, "Tcp:", "RetransSegs"),
            syns_resent: of(&netstat, "TcpExt:", "TCPSynRetrans"),
            listening: listening(),
        }
    }

    /// Connections of this machine that have ended, and whose ports are still taken; nothing where that cannot be read.
    pub(crate) fn time_waits(&self) -> Option<u64> {
        time_waits_in(&self.sockstat.text()?)
    }
}

/// Accounts of the kernel at a moment. What could not be read is not there.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// When: whoever looks may be late.
    at_ns: u64,
    threads: Vec<Option<ThreadAccount>>,
    /// Ticks that a hypervisor gave to others while we wanted them, and all ticks of all cores.
    ticks: Option<(u64, u64)>,
    /// Segments that TCP sent again, of the whole machine, and those of them that open a connection.
    resent: Option<u64>,
    syns_resent: Option<u64>,
    listening: Option<Listening>,
}

impl Look {
    /// Seconds since an earlier look; not 0.
    pub fn seconds_since(&self, earlier: &Look) -> f64 {
        self.at_ns.saturating_sub(earlier.at_ns).max(1) as f64 / 1e9
    }

    /// What each thread spent since an earlier look; nothing of one whose account could not be read in both.
    pub fn threads_since(&self, earlier: &Look) -> Vec<Option<ThreadUse>> {
        let seconds = self.seconds_since(earlier);
        let pairs = self.threads.iter().zip(&earlier.threads);
        let spent = pairs.map(|(now, then)| {
            let (now, then) = ((*now)?, (*then)?);
            Some(ThreadUse {
                cpu: now.ran_ns.saturating_sub(then.ran_ns) as f64 / 1e9 / seconds,
                waited: now
                    .waited_ns
                    .zip(then.waited_ns)
                    .map(|(now, then)| now.saturating_sub(then) as f64 / 1e9 / seconds),
                involuntary_switches: now.switched.saturating_sub(then.switched),
                spun: 0.0,
            })
        });
        spent.collect()
    }

    /// The share of the machine's time that a hypervisor gave to others; nothing where it is not known.
    pub fn stolen_since(&self, earlier: &Look) -> Option<f64> {
        let ((stolen, ticks), (stolen_then, ticks_then)) = (self.ticks?, earlier.ticks?);
        let ticks = ticks.saturating_sub(ticks_then);
        Some(stolen.saturating_sub(stolen_then) as f64 / ticks.max(1) as f64)
    }

    pub(crate) fn resent_since(&self, earlier: &Look) -> Option<u64> {
        Some(self.resent?.saturating_sub(earlier.resent?))
    }

    pub(crate) fn syns_resent_since(&self, earlier: &Look) -> Option<u64> {
        Some(self.syns_resent?.saturating_sub(earlier.syns_resent?))
    }

    pub(crate) fn listening_since(&self, earlier: &Look) -> Option<Listening> {
        let (now, then) = (self.listening?, earlier.listening?);
        Some(Listening {
            overflows: now.overflows.saturating_sub(then.overflows),
            drops: now.drops.saturating_sub(then.drops),
        })
    }
}

/// The first line of `/proc/stat`: user nice system idle iowait irq softirq steal, and guests, who count as users.
fn stolen(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().next()?;
    let numbers: Vec<u64> =
        line.split_ascii_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
    Some((*numbers.get(7)?, numbers.iter().take(8).sum()))
}

/// A count of `/proc/net/snmp` or `netstat`: a line of names and a line of numbers, both behind the same word.
fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let place = names.split_ascii_whitespace().position(|word| word == name)?;
    numbers.split_ascii_whitespace().nth(place)?.parse().ok()
}

/// `TCP: inuse 1 orphan 0 tw 5 …`
fn time_waits_in(text: &str) -> Option<u64> {
    let tcp = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = tcp.split_ascii_whitespace().skip_while(|word| *word != "tw");
    words.nth(1)?.parse().ok()
}

/// Descriptors that the process has; nothing where they cannot be counted.
pub(crate) fn descriptors() -> Option<u64> {
    let entries = fs::read_dir("/proc/self/fd").ok()?;
    // The folder is open itself while it is read.
    Some((entries.count() as u64).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_accounts_are_read() {
        assert_eq!(stolen("cpu  10 0 20 60 0 0 5 5 7 0\ncpu0 1\n"), Some((5, 100)));
        let snmp = "Ip: A\nIp: 1\nTcp: InSegs RetransSegs OutRsts\nTcp: 9 8 7\n";
        assert_eq!(counter(snmp, "Tcp:", "RetransSegs"), Some(8));
        let sockstat = "sockets: used 18\nTCP: inuse 1 orphan 0 tw 42 alloc 1 mem 9\nUDP: inuse 0 mem 0\n";
        assert_eq!((time_waits_in(sockstat), time_waits_in("")), (Some(42), None));
        let (before, file) = (descriptors().expect("a folder"), File::open("/proc/self/stat"));
        assert!(before >= 3 && file.is_ok() && descriptors().is_some_and(|now| now > before - 3), "{before}");
        assert_eq!((stolen(""), counter("", "Tcp:", "RetransSegs")), (None, None));
        let watch = SelfWatch::of(vec![ThreadWatch::own()]);
        let before = watch.look();
        while crate::clock::thread_cpu_ns() < 20_000_000 {}
        let after = watch.look();
        let spent = after.threads_since(&before)[0].expect("our own account");
        // Clocks of the kernel differ by what a tick is.
        assert!(spent.cpu > 0.0 && spent.cpu < 1.5, "{spent:?}");
        assert!(after.stolen_since(&before).is_some() && after.listening_since(&before).is_some());
        assert!(watch.time_waits().is_some());
    }

    #[test]
    fn shares_are_of_the_time_between_the_looks() {
        let look = |at_ns, ran_ns, waited_ns| Look {
            at_ns,
            threads: vec![Some(ThreadAccount { ran_ns, waited_ns: Some(waited_ns), switched: 0 })],
            ..Look::default()
        };
        // The second one came a second late.
        let before = look(1_000_000_000, 500_000_000, 500_000_000);
        let spent = look(3_000_000_000, 1_500_000_000, 600_000_000).threads_since(&before)[0].expect("both");
        assert_eq!((spent.cpu, spent.waited), (0.5, Some(0.05)));
    }

    #[test]
    fn a_kernel_without_the_schedulers_account_still_says_who_ran() {
        let own = ThreadWatch::own();
        let watch = SelfWatch::of(vec![ThreadWatch { schedstat: Kept(None), ..own }]);
        let before = watch.look();
        let until = crate::clock::thread_cpu_ns() + 30_000_000;
        while crate::clock::thread_cpu_ns() < until {}
        let spent = watch.look().threads_since(&before)[0].expect("ticks");
        assert!(spent.cpu > 0.0 && spent.cpu < 2.0 && spent.waited.is_none(), "{spent:?}");
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let nothing = || Kept::open("/proc/self/nothing of this name");
        let (stat, snmp, netstat, sockstat) = (nothing(), nothing(), nothing(), nothing());
        let threads = vec![ThreadWatch { schedstat: nothing(), stat: nothing(), status: nothing() }];
        let blind = SelfWatch { stat, snmp, netstat, sockstat, threads };
        let sees = SelfWatch::of(vec![ThreadWatch::own()]);
        // A count since the machine was started is no difference.
        for (earlier, later) in [(&blind, &sees), (&sees, &blind), (&blind, &blind)] {
            let (before, after) = (earlier.look(), later.look());
            assert_eq!(after.threads_since(&before), [None]);
            assert_eq!((after.stolen_since(&before), after.listening_since(&before)), (None, None));
            assert_eq!((after.resent_since(&before), after.syns_resent_since(&before)), (None, None));
        }
        assert_eq!(blind.time_waits(), None);
    }
}
