//! What clients, servers and operators may do to the switch, and what it costs: small here, in full by
//! `cargo xtask endure`, which shows the figures.

mod crowds;
mod descriptors;
mod dying_servers;
mod large_bodies;
mod limits;
mod memory;
mod pressure;
mod reloads;

use pointsman_e2e::{Bound, Client, Setup, Switch, descriptors_of_this_process, scale};

/// So many connections that one test process can hold both ends of what it needs for each, and the switch, too.
fn crowd(small: usize, full: usize, descriptors_each: u64) -> usize {
    let limit = descriptors_of_this_process();
    let possible = usize::try_from(limit.saturating_sub(600) / descriptors_each).unwrap_or(usize::MAX);
    scale(small, full).min(possible)
}

/// A setup that takes whole crowds.
fn for_crowds(threads: usize) -> Setup {
    Setup::new(threads).top("connections_max = 100000")
}

fn clients(switch: &Switch, count: usize) -> Vec<Client> {
    (0..count).map(|_| switch.client()).collect()
}

/// So much memory for each of a crowd, and what the allocator takes for each thread: some MiB at a time.
fn each_at_most(bytes: u64, count: usize, threads: usize) -> Bound {
    Bound::AtMost(bytes + (threads * 4 * 1024 * 1024 / count) as u64)
}

/// What each of a crowd costs: the most that is resident while somebody else is served all the time.
fn resident_each(switch: &Switch, other: &mut Client, before: u64, count: usize) -> u64 {
    let mut most = 0;
    for _ in 0..50 {
        assert_eq!(other.get("/other").status(), 200);
        most = most.max(switch.allocated_bytes());
    }
    most.saturating_sub(before) / count as u64
}
