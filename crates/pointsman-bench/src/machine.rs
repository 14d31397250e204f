//! What a run was made on and with.

use std::fs;

use serde::{Deserialize, Serialize};

/// The machine and the software of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory, in words.
    pub memory: String,
    /// Name and version of the kernel.
    pub kernel: String,
    /// The governor of the first core's frequency, where the kernel has one.
    pub governor: Option<String>,
    /// The host's name.
    pub host: String,
    /// Programs and libraries with their versions.
    #[serde(skip, default = "versions")]
    pub versions: Vec<(&'static str, &'static str)>,
}

/// What TLS is done with; a test holds them to the lock file.
const LIBRARIES: [(&str, &str); 3] =
    [("rustls", "0.23.46"), ("aws-lc-rs", "1.19.0"), ("aws-lc-sys", "0.47.0")];

impl Machine {
    /// This one.
    pub fn look() -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let uname = rustix::system::uname();
        let governor = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        Machine {
            cpu: model.map_or_else(|| "unknown".to_owned(), |(_, model)| model.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            governor: governor.ok().map(|text| text.trim().to_owned()),
            host: uname.nodename().to_string_lossy().into_owned(),
            versions: versions(),
        }
    }
}

impl Machine {
    /// Several machines in the words of one: what differs is named one after the other, and cores are added up.
    pub(crate) fn together<'m>(machines: impl Iterator<Item = &'m Machine> + Clone) -> Machine {
        let all = |of: fn(&Machine) -> Option<&str>| {
            let mut words: Vec<&str> = Vec::new();
            for word in machines.clone().filter_map(of) {
                if !words.contains(&word) {
                    words.push(word);
                }
            }
            words.join(" + ")
        };
        let governor = all(|machine| machine.governor.as_deref());
        Machine {
            cpu: all(|machine| Some(&machine.cpu)),
            cores: machines.clone().map(|machine| machine.cores).sum(),
            memory: all(|machine| Some(&machine.memory)),
            kernel: all(|machine| Some(&machine.kernel)),
            governor: (!governor.is_empty()).then_some(governor),
            host: all(|machine| Some(&machine.host)),
            versions: versions(),
        }
    }
}

/// Of this program and what it does TLS with.
pub(crate) fn versions() -> Vec<(&'static str, &'static str)> {
    [("pointsman", env!("CARGO_PKG_VERSION"))].into_iter().chain(LIBRARIES).collect()
}

/// `MemTotal:  24683724 kB`
fn memory(meminfo: &str) -> String {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    let kib = total.and_then(|kib| kib.parse::<f64>().ok());
    kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{:.1} GiB", kib / 1024.0 / 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_are_those_of_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        for (name, version) in LIBRARIES {
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            assert!(lock.contains(&entry), "{name} is not {version} any more");
        }
        assert!(Machine::look().kernel.starts_with("Linux "));
        assert_eq!(memory("MemTotal:       25165824 kB\nMemFree: 1 kB\n"), "24.0 GiB");
        assert_eq!(memory(""), "unknown");
    }
}
