//! How many descriptors a table may have, and how many connections that is enough for.
//!
//! Threads with tables of their own could have more in all. How many come to which thread is the kernel's choice,
//! and so what one table has room for is all that is promised.

use pointsman_config::Plan;
use pointsman_relay::Threads;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors of the process itself: standard streams, logs, signals, files while they are read, and the
/// admin listener with its clients.
const OF_THE_PROCESS: u64 = 100;
/// Those of a thread: its event loop, its ways to other threads, and connections that are being turned away.
const OF_A_THREAD: u64 = 75;
/// Each connection of a client may need one to a server.
const OF_A_CONNECTION: u64 = 2;
/// Connections of clients where the system knows no limit.
const CONNECTIONS_MAX: u64 = 1_048_576;

/// Raises the limit on descriptors as far as the process may, and says where it is now; `None`: nowhere.
///
/// The lower one that most processes start with is there for programs that use `select`.
pub(super) fn raise_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        // Where the system refuses, what holds already goes on holding.
        let (Ok(()) | Err(_)) = setrlimit(Resource::Nofile, raised);
    }
    getrlimit(Resource::Nofile).current
}

/// What is left of the descriptors for connections of clients, with one to a server for each.
///
/// Idle connections to servers are not reckoned: they are closed when they stand in somebody's way.
pub(super) fn connections_for(limit: Option<u64>, plan: &Plan, threads: usize) -> u32 {
    let binds: usize = plan.listeners.iter().map(|listener| listener.binds.len()).sum();
    let threads = threads as u64;
    let own = OF_THE_PROCESS + threads * (OF_A_THREAD + binds as u64);
    let left = limit.map_or(CONNECTIONS_MAX, |limit| limit.saturating_sub(own) / OF_A_CONNECTION);
    left.clamp(1, CONNECTIONS_MAX) as u32
}

/// What to say where the plan promises more connections than there are descriptors for.
pub(super) fn warning(limit: Option<u64>, plan: &Plan, threads: usize) -> Option<String> {
    let (limit, asked) = (limit?, plan.connections_max?);
    let enough_for = connections_for(Some(limit), plan, threads);
    (asked > enough_for).then(|| {
        format!(
            "warning: `connections_max = {asked}` needs more descriptors than there surely are: {limit} are \
             enough for {enough_for} connections with one to a server each"
        )
    })
}

/// What to say where threads share a descriptor table that were to have their own.
pub(super) fn shared(threads: &Threads) -> Option<String> {
    let error = threads.table_refusal()?;
    Some(format!("warning: threads share one descriptor table, which costs more time in the kernel: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(top: &str) -> Plan {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("pointsman.toml");
        let text = format!(
            "{top}\n[[listener]]\nname = \"a\"\nbind = [\"127.0.0.1:0\", \"[::1]:0\"]\npool = \"p\"\n\
             [pool.p]\nservers = [\"127.0.0.1:9001\"]\n"
        );
        std::fs::write(&path, text).expect("a writable folder");
        Plan::load(&path, None).unwrap_or_else(|_| panic!("it is good: {top}")).plan
    }

    fn check(limit: Option<u64>, threads: usize, expected: u32) {
        assert_eq!(connections_for(limit, &plan(""), threads), expected, "{limit:?} {threads}");
    }

    #[test]
    fn half_of_what_is_left() {
        check(Some(1024), 1, 423);
        check(Some(1024), 4, 308);
        check(Some(20_000), 2, 9873);
        check(Some(64), 1, 1);
        check(None, 1, 1_048_576);
        check(Some(u64::MAX), 1, 1_048_576);
    }

    #[test]
    fn a_promise_that_cannot_be_kept() {
        let says = |top: &str, limit| warning(limit, &plan(top), 1).is_some();
        assert!(says("connections_max = 424", Some(1024)));
        assert!(!says("connections_max = 423", Some(1024)));
        assert!(!says("", Some(64)), "what nobody wrote is no promise");
        assert!(!says("connections_max = 10_000_000", None));
    }
}
