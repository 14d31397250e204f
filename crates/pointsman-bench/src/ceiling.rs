//! What the generator can do at all: the same requests, before servers that do nothing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::Think;
use crate::{Fault, Handshakes, Load, Manner, NullServer, NullTls, Plan, Scheme, Target, Url, run};

/// How long it is measured, and warmed up.
const TIME: Duration = Duration::from_secs(2);
const WARM_UP: Duration = Duration::from_millis(500);
/// Clients of each thread, or a few more where they share connections: enough that it never waits for an answer.
const CLIENTS_A_THREAD: u32 = 32;

/// Requests a second that this generator reaches in a closed loop before as many null servers as it has threads, each of
/// them a thread on this machine, with the plan's requests, connections and handshakes, and answers as long as the
/// plan's server gives. Below 1.5 times what was measured the generator is near its own end.
///
/// A server on another machine leaves cores free that null servers need here: then the ceiling is said too low.
/// `identity` is what null servers speak TLS with.
///
/// # Errors
/// When the server does not answer a first request, or no null server can be started.
pub fn ceiling(plan: &Plan, identity: &NullTls) -> Result<f64, Fault> {
    let is_tls = plan.targets.iter().any(|target| target.url.scheme == Scheme::Https);
    let resumes = matches!(plan.handshakes, Handshakes::Resumed(_));
    let tls = is_tls.then(|| NullTls { resumes, ..identity.clone() });
    let manner = Manner { body_bytes: body_bytes(plan)?, tls, ..Manner::default() };
    let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let servers =
        (0..plan.threads).map(|_| NullServer::start(any, &manner)).collect::<Result<Vec<_>, _>>()?;
    let scheme = if is_tls { "https" } else { "http" };
    let first = &plan.targets[0];
    let target = |server: &NullServer| -> Result<Target, Fault> {
        let url = Url::parse(&format!("{scheme}://{}/", server.address()))?;
        Ok(Target { url, weight: 1, ..first.clone() })
    };
    let (clients, streams) = clients(plan);
    let measured = Plan {
        targets: servers.iter().map(target).collect::<Result<_, _>>()?,
        load: Load::Closed { clients },
        streams,
        time: TIME,
        warm_up: WARM_UP,
        ca: None,
        verify: false,
        server_name: None,
        sources: crate::Sources::default(),
        think: Think::None,
        server_process: None,
        ..plan.clone()
    };
    Ok(run(&measured, &mut |_| {})?.rate())
}

/// As many on all threads as fill whole connections, of which each thread has as many; and how many share one.
fn clients(plan: &Plan) -> (u32, u32) {
    let streams = plan.streams.min(CLIENTS_A_THREAD);
    let connections = CLIENTS_A_THREAD.div_ceil(streams) * plan.threads as u32;
    (connections.min(plan.connections_max as u32) * streams, streams)
}

/// How long the server's answers are in the mean, by asking it for a moment.
fn body_bytes(plan: &Plan) -> Result<usize, Fault> {
    let asked = Plan {
        load: Load::Closed { clients: plan.threads as u32 },
        time: Duration::from_millis(100),
        warm_up: Duration::ZERO,
        think: Think::None,
        server_process: None,
        ..plan.clone()
    };
    let record = run(&asked, &mut |_| {})?.record;
    Ok((record.bytes_in_time() / record.completed_in_time().max(1)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_connections_of_its_own() {
        let mut plan = Plan::new(Vec::new(), Load::Closed { clients: 1 });
        plan.threads = 2;
        for (streams, connections_max, expected) in [
            (1, 10_000, (64, 1)),
            (10, 10_000, (80, 10)),
            (100, 10_000, (64, 32)),
            (1, 5, (5, 1)),
            (10, 3, (30, 10)),
        ] {
            (plan.streams, plan.connections_max) = (streams, connections_max);
            assert_eq!(clients(&plan), expected, "{streams} {connections_max}");
        }
    }
}
