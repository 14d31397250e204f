//! What the kernel says of a running switch, and of this process.

use std::collections::HashSet;
use std::io::{ErrorKind, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::{Switch, until};

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

    /// Descriptors that it holds now, in all of its tables.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        descriptors_of(self.id()).expect("it runs").iter().sum()
    }

    /// Whether one of its sockets listens on the port of `address`: a port that it has left somebody else may take.
    ///
    /// # Panics
    /// Where there is no procfs.
    #[must_use]
    pub fn listens_on(&self, address: SocketAddr) -> bool {
        let process = PathBuf::from(format!("/proc/{}", self.id()));
        let port = format!(":{:04X}", address.port());
        let sockets: Vec<String> = ["tcp", "tcp6"].iter().flat_map(|name| listening(name, &port)).collect();
        let threads = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
        // A thread that has ended has none left.
        let tables = threads.filter_map(|thread| table(&thread.path()).ok());
        tables.flatten().any(|(_, behind)| sockets.iter().any(|socket| behind == Path::new(socket)))
    }

    /// How many tables of descriptors its threads have.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn descriptor_tables(&self) -> usize {
        descriptors_of(self.id()).expect("it runs").len()
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

    /// Sets how large files may become that it writes to (RLIMIT_FSIZE); `None`: as large as they like.
    ///
    /// # Panics
    /// When it is gone.
    pub fn limit_file_bytes(&self, max: Option<u64>) {
        let id = self.id().try_into().ok().and_then(Pid::from_raw);
        let limit = Rlimit { current: max, maximum: None };
        prlimit(id, Resource::Fsize, limit).expect("it is ours");
    }

    /// How many event-loop threads it has: those that serve, and those that have connections left.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn event_loops(&self) -> usize {
        let is_event_loop = |task: &std::fs::DirEntry| {
            let name = std::fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.starts_with("shard-"))
        };
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).expect("it runs");
        tasks.flatten().filter(is_event_loop).count()
    }

    /// Waits until it has so many.
    ///
    /// # Panics
    /// When that does not come.
    pub fn wait_for_threads(&self, count: usize) {
        until(&format!("{count} threads"), || (self.event_loops() == count).then_some(()));
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

/// How many descriptors each of the tables of a process holds: that of its first thread, which most others share,
/// and those that threads have for themselves.
///
/// # Errors
/// When it is gone or not ours.
pub fn descriptors_of(process: u32) -> Result<Vec<usize>> {
    let process = PathBuf::from(format!("/proc/{process}"));
    let before = table(&process)?;
    let mut others = Vec::new();
    for thread in std::fs::read_dir(process.join("task"))?.flatten() {
        match table(&thread.path()) {
            Ok(other) => others.push(other),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    // What was there all the while is there for each thread that shares the table.
    let lasting: HashSet<_> = before.intersection(&table(&process)?).cloned().collect();
    // One that ends has none left.
    let own = others.iter().filter(|other| !other.is_empty() && !lasting.is_subset(other)).map(HashSet::len);
    Ok(std::iter::once(before.len()).chain(own).collect())
}

/// What stands behind the descriptors of sockets that listen on a port, as `/proc/net` calls them.
fn listening(name: &str, port: &str) -> Vec<String> {
    const LISTEN: &str = "0A";
    let lines = std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let words = lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let sockets = words.filter(|words| words.len() > 9 && words[1].ends_with(port) && words[3] == LISTEN);
    sockets.map(|words| format!("socket:[{}]", words[9])).collect()
}

/// The numbers of a table and what stands behind each.
fn table(task: &Path) -> Result<HashSet<(PathBuf, PathBuf)>> {
    let mut all = HashSet::new();
    for entry in std::fs::read_dir(task.join("fd"))? {
        let number = entry?.path();
        // One that was closed meanwhile counts no more.
        if let Ok(behind) = std::fs::read_link(&number) {
            all.insert((number.file_name().map(PathBuf::from).unwrap_or_default(), behind));
        }
    }
    Ok(all)
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
