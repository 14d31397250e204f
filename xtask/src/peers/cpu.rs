//! What the kernel says a process and its descendants have spent.

use std::collections::HashMap;
use std::process::Command;

use crate::failure::{Because, Failure, Result};
use crate::project::written;

/// CPU time in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) user_ticks: u64,
    pub(super) system_ticks: u64,
}

impl Time {
    /// The sum over a process, all its threads and its living descendants.
    pub(super) fn of_tree(root: u32) -> Result<Self> {
        let mut processes = HashMap::new();
        for entry in std::fs::read_dir("/proc").because(|| "cannot read `/proc`".into())?.flatten() {
            let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            // A process may end between the listing and the look.
            let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
            processes.insert(id, Stat::read(&text)?);
        }
        if !processes.contains_key(&root) {
            return Err(Failure::new("the proxy ended during the benchmark"));
        }
        let belongs = |mut id: u32| {
            while id != root {
                match processes.get(&id) {
                    Some(stat) if stat.parent != id => id = stat.parent,
                    _ => return false,
                }
            }
            true
        };
        let times = processes.iter().filter(|(id, _)| belongs(**id)).map(|(_, stat)| stat.time);
        Ok(times.fold(Self::default(), Self::plus))
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
        }
    }
}

pub(super) fn ticks_per_second() -> Result<u64> {
    let text = written(Command::new("getconf").arg("CLK_TCK"))?;
    text.trim().parse().because(|| "cannot read the length of a clock tick".into())
}

/// What we need of `/proc/PID/stat`.
struct Stat {
    parent: u32,
    time: Time,
}

impl Stat {
    /// See proc(5): the program's name, in brackets, may hold anything, so counting starts behind it.
    fn read(text: &str) -> Result<Self> {
        let fields = text.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>());
        let field = |number: usize| fields.as_ref()?.get(number - 3)?.parse::<u64>().ok();
        match (field(4), field(14), field(15)) {
            (Some(parent), Some(user_ticks), Some(system_ticks)) => Ok(Self {
                parent: u32::try_from(parent).unwrap_or(0),
                time: Time { user_ticks, system_ticks },
            }),
            _ => Err(Failure::new(format!("cannot read the process status `{}`", text.trim_end()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_behind_the_name() {
        let text = "7 (a) b) S 3 7 7 0 -1 4194304 110 0 0 0 120 34 1 1 20 0 1 0 9 0 0";
        let stat = Stat::read(text).expect("as in proc(5)");
        assert_eq!(stat.parent, 3);
        assert_eq!(stat.time, Time { user_ticks: 120, system_ticks: 34 });
        assert!(Stat::read("7 nonsense").is_err());
    }

    #[test]
    fn our_own_time_is_there() {
        assert!(Time::of_tree(std::process::id()).is_ok());
        assert!(Time::of_tree(u32::MAX).is_err());
    }
}
