//! What the generator can do at all: the same requests, before servers that do nothing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::run::{Place, answer_bytes};
use crate::{
    Fault, Handshakes, Load, Manner, NullServer, NullTls, Outcome, Plan, Scheme, Shares, Target, Think, Url,
    run_whole,
};

/// How long it is measured, and warmed up.
const TIME: Duration = Duration::from_secs(2);
const WARM_UP: Duration = Duration::from_millis(500);
/// Clients of each thread, or a few more where they share connections: enough that it never waits for an answer.
const CLIENTS_A_THREAD: u32 = 32;
/// Each null server holds its answer.
const BODY_BYTES_MAX: f64 = (64 << 20) as f64;

/// What a generator reaches before servers that do nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// Requests a second, of all machines together.
    pub per_s: f64,
    /// Of each agent, by its name, where agents make the load.
    pub of_agents: Vec<(String, f64)>,
}

impl Ceiling {
    /// Holds an outcome against it: each agent against its own.
    pub fn hold_against(&self, outcome: &mut Outcome) {
        outcome.ceiling = Some(self.per_s);
        for agent in &mut outcome.agents {
            let own = self.of_agents.iter().find(|(name, _)| *name == agent.name);
            agent.outcome.ceiling = own.map(|(_, per_s)| *per_s);
        }
    }
}

/// How it is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BeforeNull {
    /// How long answers are in the mean, head and all; `None`: the plan's server is asked.
    answer_bytes: Option<f64>,
    /// What null servers speak TLS with.
    identity: NullTls,
}

/// Requests a second that this generator reaches in a closed loop before as many null servers as it has threads, each of
/// them a thread on this machine, with the plan's first request, connections and handshakes, and answers as long as the
/// plan's server gives: each kind of request is asked once for that. Below 1.5 times what was measured the generator is
/// near its own end.
///
/// A server on another machine leaves cores free that null servers need here: then the ceiling is said too low. So it is
/// where only a share of the requests goes over TLS: here all do. Users' sessions are one request after another here.
/// `identity` is what null servers speak TLS with. Agents do so each on its own machine, all at once.
///
/// # Errors
/// When the server does not answer a first request, answers are over 64 MiB, no null server can be started, what was
/// measured before them is void or has failures, or an agent cannot be reached.
pub fn ceiling(plan: &Plan, identity: &NullTls) -> Result<Ceiling, Fault> {
    reached(plan, BeforeNull { answer_bytes: None, identity: identity.clone() })
}

/// The same of a plan that was carried out: its answers are as long as those that came, and the server is asked nothing
/// more unless none did.
///
/// # Errors
/// Those of [`ceiling`].
pub fn ceiling_of(outcome: &Outcome, identity: &NullTls) -> Result<Ceiling, Fault> {
    let record = &outcome.record;
    let completed = record.completed_in_time();
    let answer_bytes = (completed > 0).then(|| record.bytes_in_time() as f64 / completed as f64);
    reached(&outcome.plan, BeforeNull { answer_bytes, identity: identity.clone() })
}

fn reached(plan: &Plan, before: BeforeNull) -> Result<Ceiling, Fault> {
    match &plan.agents {
        None => {
            let per_s = before_null_servers(plan, Place::ALONE, &before)?;
            Ok(Ceiling { per_s, of_agents: Vec::new() })
        }
        Some(agents) => {
            let of_agents = agents.ceilings(plan, before)?;
            Ok(Ceiling { per_s: of_agents.iter().map(|(_, per_s)| per_s).sum(), of_agents })
        }
    }
}

/// The same of this machine.
pub(crate) fn before_null_servers(plan: &Plan, place: Place, before: &BeforeNull) -> Result<f64, Fault> {
    let BeforeNull { answer_bytes, identity } = before;
    let answer_bytes = answer_bytes.map_or_else(|| self::answer_bytes(plan, place), Ok)?;
    if answer_bytes > BODY_BYTES_MAX {
        return Err(Fault::new(format!("answers of {answer_bytes:.0} bytes are too long for null servers")));
    }
    let is_tls = plan.targets.iter().any(|target| target.url.scheme == Scheme::Https);
    let resumes = matches!(plan.handshakes, Handshakes::Resumed(_));
    let tls = is_tls.then(|| NullTls { resumes, ..identity.clone() });
    let has_body = !plan.targets[0].method.eq_ignore_ascii_case("HEAD");
    let body_bytes = if has_body { answer_bytes as usize } else { 0 };
    let manner = Manner { body_bytes, tls, ..Manner::default() };
    let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let servers =
        (0..plan.threads).map(|_| NullServer::start(any, &manner)).collect::<Result<Vec<_>, _>>()?;
    let addresses: Vec<SocketAddr> = servers.iter().map(NullServer::address).collect();
    let outcome = run_whole(&derived(plan, is_tls, &addresses)?, &mut |_| {})?;
    if let Some(void) = outcome.voids.first() {
        return Err(Fault::new(format!("before null servers {}", void.sentence)));
    }
    match outcome.record.failed() {
        0 => Ok(outcome.rate()),
        failed => Err(Fault::new(format!("{failed} requests to null servers failed"))),
    }
}

/// The plan before null servers at these addresses. What only makes sense before the plan's own server is left out.
fn derived(plan: &Plan, is_tls: bool, addresses: &[SocketAddr]) -> Result<Plan, Fault> {
    let scheme = if is_tls { "https" } else { "http" };
    let first = &plan.targets[0];
    let target = |address: &SocketAddr| -> Result<Target, Fault> {
        let url = Url::parse(&format!("{scheme}://{address}/"))?;
        Ok(Target { url, weight: 1, ..first.clone() })
    };
    let (clients, streams) = clients(plan);
    Ok(Plan {
        targets: addresses.iter().map(target).collect::<Result<_, _>>()?,
        classes: Vec::new(),
        session: None,
        load: Load::Closed { clients },
        opened_first: 0,
        streams,
        time: TIME,
        warm_up: WARM_UP,
        shares: Shares { tls: None, ..plan.shares },
        // Null servers choose by their own order; what is spoken is what counts. No ALPN at all stays none.
        alpn: plan.alpn.clone().filter(Vec::is_empty),
        ca: None,
        verify: false,
        certificate: None,
        server_name: None,
        sources: crate::Sources::default(),
        think: Think::None,
        delay: None,
        server_process: None,
        // The plan's own server has none of them.
        numbers: crate::Numbers::default(),
        ..plan.clone()
    }
    .with_tls_where_it_is())
}

/// As many on all threads as fill whole connections, of which each thread has as many; and how many share one.
fn clients(plan: &Plan) -> (u32, u32) {
    let streams = plan.streams.min(CLIENTS_A_THREAD);
    let connections = CLIENTS_A_THREAD.div_ceil(streams) * plan.threads as u32;
    (connections.min(plan.connections_max as u32) * streams, streams)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Script};

    #[test]
    fn plans_of_all_kinds_can_be_carried_out_before_null_servers() {
        let target = |url: &str| Target {
            url: Url::parse(url).expect("a URL"),
            weight: 1,
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: crate::Body::None,
        };
        let both = vec![target("http://a/"), target("https://a:8443/")];
        let mut shared = Plan::new(both, Load::Open { rate: 5.0, arrivals: crate::Arrivals::Poisson });
        shared.shares.tls = Some(0.5);
        shared.alpn = Some(vec!["h2".to_owned(), "http/1.1".to_owned()]);
        shared.classes = vec![Class { name: "a".to_owned(), targets: vec![0, 1], right_status: Some(404) }];
        let steps =
            Script::parse("GET /\nGET /b\n", Some(&Url::parse("http://a/").expect("a URL")), &mut |_| {
                Err(std::io::Error::other("no file"))
            });
        let mut users = Plan::of_sessions(steps.expect("a script"), Load::Closed { clients: 3 });
        users.delay = Some(Duration::from_millis(10));
        let addresses = [81, 82].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        for plan in [shared, users] {
            assert_eq!(plan.check(), Ok(()));
            let is_tls = plan.shares.tls.is_some();
            let derived = derived(&plan, is_tls, &addresses).expect("addresses make URLs");
            assert_eq!(derived.check(), Ok(()));
            assert!(derived.alpn.is_none() && derived.classes.is_empty());
            assert_eq!(derived.targets.len(), 2);
        }
    }

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
