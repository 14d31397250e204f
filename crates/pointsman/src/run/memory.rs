//! How much memory the process may have, and how much of it is for clients where nobody says.

use std::fs::read_to_string;
use std::path::Path;

use pointsman_config::Plan;
use rustix::process::{Resource, getrlimit};

const MIB: u64 = 1024 * 1024;
/// Address space of the program itself: its text, and what the allocator sets aside at its start.
const OF_THE_PROCESS: u64 = 96 * MIB;
/// Address space of a thread: its stack, and what the allocators set aside for it before anybody asks.
const OF_A_THREAD: u64 = 100 * MIB;
/// The least for clients, however little there is: otherwise nobody would be served.
const FOR_CLIENTS_MIN: u64 = 4 * MIB;
/// Where the groups of processes and their limits are.
const GROUPS: &str = "/sys/fs/cgroup";

/// Half of what the process may have. The other half is for what is not booked: the program and its plan, logs,
/// what allocators lose between blocks, and in a group of processes the kernel's buffers of its sockets.
pub(super) fn for_clients(threads: usize) -> u64 {
    let address_space = [Resource::As, Resource::Data].into_iter().filter_map(|of| getrlimit(of).current);
    let taken = OF_THE_PROCESS + threads as u64 * OF_A_THREAD;
    let least = [of_machine(), of_groups()].into_iter().flatten();
    let least = least.chain(address_space.map(|limit| limit.saturating_sub(taken))).min();
    (least.unwrap_or(u64::MAX) / 2).max(FOR_CLIENTS_MIN)
}

/// What to say where the plan promises more memory than the process may have.
pub(super) fn warning(for_clients: u64, plan: &Plan) -> Option<String> {
    let asked = plan.buffer_bytes_max?;
    (asked / 2 > for_clients).then(|| {
        format!(
            "warning: `buffer_bytes_max = {asked}` is more memory than the process may have; without it, it \
             would be {for_clients}"
        )
    })
}

/// The least of the limits on the groups of processes that this one is in.
fn of_groups() -> Option<u64> {
    let memberships = read_to_string("/proc/self/cgroup").ok()?;
    let files = memberships.lines().flat_map(limit_files);
    files.filter_map(|file| read_to_string(file).ok()?.trim().parse().ok()).min()
}

/// Where the limits of a group stand, and of those that it is in, by a line of `/proc/self/cgroup`.
fn limit_files(membership: &str) -> Vec<String> {
    let mut parts = membership.splitn(3, ':').skip(1);
    let (root, name) = match parts.next() {
        Some("") => (GROUPS.to_owned(), "memory.max"),
        Some(kinds) if kinds.split(',').any(|kind| kind == "memory") => {
            (format!("{GROUPS}/memory"), "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let groups = Path::new(parts.next().unwrap_or("/")).ancestors();
    groups
        .map(|group| format!("{root}{}/{name}", group.display().to_string().trim_end_matches('/')))
        .collect()
}

/// What the machine has, which the kernel counts in KiB.
fn of_machine() -> Option<u64> {
    let text = read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_a_group_and_of_those_around_it() {
        assert_eq!(
            limit_files("0::/system.slice/pointsman.service"),
            [
                "/sys/fs/cgroup/system.slice/pointsman.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        assert_eq!(
            limit_files("9:cpu,memory:/docker/a:b"),
            [
                "/sys/fs/cgroup/memory/docker/a:b/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            ]
        );
        for other in ["4:cpu:/a", "1:name=systemd:/a", ""] {
            assert_eq!(limit_files(other), [""; 0], "{other}");
        }
    }

    #[test]
    fn no_more_than_half_of_the_machine() {
        let machine = of_machine().expect("as in proc(5)");
        assert!((FOR_CLIENTS_MIN..=machine / 2).contains(&for_clients(1)));
    }
}
