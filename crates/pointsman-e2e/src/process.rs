//! What the kernel says of a running switch, and of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Switch;

impl Switch {
    /// Bytes of memory that are resident now.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Those of them that it has allocated: without its program's text, which comes in as it is run.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        self.status("RssAnon:")
    }

    /// The most that ever was resident.
    #[must_use]
    pub fn peak_resident_bytes(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Descriptors that it holds now.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.id())).expect("it runs").count()
    }

    /// How many descriptors it may have.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn descriptors_max(&self) -> u64 {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", self.id())).expect("it runs");
        let words =
            limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("as in proc(5)");
        let soft = words.split_whitespace().next().expect("as in proc(5)");
        soft.parse().unwrap_or(u64::MAX)
    }

    /// Clock ticks of a processor that it has used, all threads together.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it runs");
        let (_, rest) = stat.rsplit_once(')').expect("as in proc(5)");
        let ticks = rest.split_whitespace().skip(11).take(2);
        ticks.map(|word| word.parse::<u64>().expect("as in proc(5)")).sum()
    }

    /// A line of `/proc/PID/status`, which counts in KiB.
    fn status(&self, key: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("as in proc(5)");
        let kib = line.trim().trim_end_matches(" kB");
        kib.parse::<u64>().expect("as in proc(5)") * 1024
    }
}

/// Lets this process have as many descriptors as it may, and says how many those are.
///
/// # Panics
/// When the system does not allow what it says it does.
#[must_use]
pub fn descriptors_of_this_process() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        setrlimit(Resource::Nofile, raised).expect("up to its maximum it may");
    }
    limit.maximum.unwrap_or(u64::MAX)
}
