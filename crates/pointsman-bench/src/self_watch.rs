//! What the generator and its machine spend while it runs: whether it was in control.

use std::fs;

use crate::clock::now_ns;
use crate::outcome::{Listening, ThreadUse};

/// Accounts of the kernel at a moment.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// When: whoever looks may be late.
    at_ns: u64,
    threads: Vec<Account>,
    /// Ticks that a hypervisor gave to others while we wanted them, and all ticks of all cores.
    stolen: u64,
    ticks: u64,
    /// Segments that TCP sent again, of the whole machine, and those of them that open a connection.
    resent: u64,
    syns_resent: u64,
    listening: Listening,
}

/// One thread's account.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    ran_ns: u64,
    waited_ns: u64,
    switched: u64,
}

impl Look {
    /// At these threads of this process.
    pub fn now(threads: &[i32]) -> Look {
        let at_ns = now_ns();
        let (stolen, ticks) = stolen(&fs::read_to_string("/proc/stat").unwrap_or_default());
        let snmp = fs::read_to_string("/proc/net/snmp").unwrap_or_default();
        let threads = threads.iter().map(|thread| Account::of(*thread)).collect();
        let netstat = fs::read_to_string("/proc/net/netstat").unwrap_or_default();
        Look {
            at_ns,
            threads,
            stolen,
            ticks,
            resent: counter(&snmp, "Tcp:", "RetransSegs"),
            syns_resent: counter(&netstat, "TcpExt:", "TCPSynRetrans"),
            listening: Listening {
                overflows: counter(&netstat, "TcpExt:", "ListenOverflows"),
                drops: counter(&netstat, "TcpExt:", "ListenDrops"),
            },
        }
    }

    /// Seconds since an earlier look; not 0.
    pub fn seconds_since(&self, earlier: &Look) -> f64 {
        self.at_ns.saturating_sub(earlier.at_ns).max(1) as f64 / 1e9
    }

    /// What each thread spent since an earlier look.
    pub fn threads_since(&self, earlier: &Look) -> Vec<ThreadUse> {
        let seconds = self.seconds_since(earlier);
        let pairs = self.threads.iter().zip(&earlier.threads);
        let spent = pairs.map(|(now, then)| ThreadUse {
            cpu: now.ran_ns.saturating_sub(then.ran_ns) as f64 / 1e9 / seconds,
            waited: now.waited_ns.saturating_sub(then.waited_ns) as f64 / 1e9 / seconds,
            involuntary_switches: now.switched.saturating_sub(then.switched),
            spun: 0.0,
        });
        spent.collect()
    }

    /// The share of the machine's time that a hypervisor gave to others.
    pub fn stolen_since(&self, earlier: &Look) -> f64 {
        let ticks = self.ticks.saturating_sub(earlier.ticks);
        self.stolen.saturating_sub(earlier.stolen) as f64 / ticks.max(1) as f64
    }

    pub(crate) fn resent_since(&self, earlier: &Look) -> u64 {
        self.resent.saturating_sub(earlier.resent)
    }

    pub(crate) fn syns_resent_since(&self, earlier: &Look) -> u64 {
        self.syns_resent.saturating_sub(earlier.syns_resent)
    }

    pub(crate) fn listening_since(&self, earlier: &Look) -> Listening {
        Listening {
            overflows: self.listening.overflows.saturating_sub(earlier.listening.overflows),
            drops: self.listening.drops.saturating_sub(earlier.listening.drops),
        }
    }
}

impl Account {
    fn of(thread: i32) -> Account {
        let folder = format!("/proc/self/task/{thread}");
        let scheduled = fs::read_to_string(format!("{folder}/schedstat")).unwrap_or_default();
        let mut numbers = scheduled.split_ascii_whitespace().map_while(|word| word.parse().ok());
        let status = fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
        let switched = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
        Account {
            ran_ns: numbers.next().unwrap_or_default(),
            waited_ns: numbers.next().unwrap_or_default(),
            switched: switched.and_then(|number| number.trim().parse().ok()).unwrap_or_default(),
        }
    }
}

/// The first line of `/proc/stat`: user nice system idle iowait irq softirq steal, and guests, who count as users.
fn stolen(text: &str) -> (u64, u64) {
    let line = text.lines().next().unwrap_or_default();
    let numbers: Vec<u64> =
        line.split_ascii_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
    (numbers.get(7).copied().unwrap_or_default(), numbers.iter().take(8).sum())
}

/// A count of `/proc/net/snmp` or `netstat`: a line of names and a line of numbers, both behind the same word.
fn counter(text: &str, group: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else { return 0 };
    let place = names.split_ascii_whitespace().position(|word| word == name);
    let number = place.and_then(|place| numbers.split_ascii_whitespace().nth(place));
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Connections of this machine that have ended, and whose ports are still taken.
pub(crate) fn time_waits() -> u64 {
    time_waits_in(&fs::read_to_string("/proc/net/sockstat").unwrap_or_default())
}

/// `TCP: inuse 1 orphan 0 tw 5 …`
fn time_waits_in(text: &str) -> u64 {
    let tcp = text.lines().find_map(|line| line.strip_prefix("TCP:")).unwrap_or_default();
    let mut words = tcp.split_ascii_whitespace().skip_while(|word| *word != "tw");
    words.nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Descriptors that the process has.
pub(crate) fn descriptors() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_accounts_are_read() {
        assert_eq!(stolen("cpu  10 0 20 60 0 0 5 5 7 0\ncpu0 1\n"), (5, 100));
        let snmp = "Ip: A\nIp: 1\nTcp: InSegs RetransSegs OutRsts\nTcp: 9 8 7\n";
        assert_eq!(counter(snmp, "Tcp:", "RetransSegs"), 8);
        let sockstat = "sockets: used 18\nTCP: inuse 1 orphan 0 tw 42 alloc 1 mem 9\nUDP: inuse 0 mem 0\n";
        assert_eq!((time_waits_in(sockstat), time_waits_in("")), (42, 0));
        let (before, file) = (descriptors(), fs::File::open("/proc/self/stat"));
        assert!(before >= 3 && file.is_ok() && descriptors() > before - 3, "{before}");
        assert_eq!((stolen(""), counter("", "Tcp:", "RetransSegs")), ((0, 0), 0));
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let before = Look::now(&[own]);
        while crate::clock::thread_cpu_ns() < 20_000_000 {}
        let spent = Look::now(&[own]).threads_since(&before);
        // Clocks of the kernel differ by what a tick is.
        assert!(spent[0].cpu > 0.0 && spent[0].cpu < 1.5, "{spent:?}");
    }

    #[test]
    fn shares_are_of_the_time_between_the_looks() {
        let look = |at_ns, ran_ns, waited_ns| Look {
            at_ns,
            threads: vec![Account { ran_ns, waited_ns, switched: 0 }],
            ..Look::default()
        };
        // The second one came a second late.
        let before = look(1_000_000_000, 500_000_000, 500_000_000);
        let spent = look(3_000_000_000, 1_500_000_000, 600_000_000).threads_since(&before);
        assert_eq!((spent[0].cpu, spent[0].waited), (0.5, 0.05));
    }
}
