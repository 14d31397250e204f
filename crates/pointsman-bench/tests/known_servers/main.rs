//! The generator before servers whose behaviour is known: what it says must be that.

mod bulk;
mod ceiling;
mod control;
mod farewells;
mod floods;
mod http1;
mod http2;
mod numbers;
mod odd;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use pointsman_bench::{
    Arrivals, Handshakes, Kind, Load, Manner, NullServer, NullTls, Outcome, Plan, Target, Url, run,
};
use pointsman_e2e::Authority;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// A whole answer.
const RIGHT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn started(manner: &Manner) -> NullServer {
    NullServer::start(ANY, manner).expect("loopback")
}

fn plan(scheme: &str, server: &NullServer, load: Load) -> Plan {
    let url = Url::parse(&format!("{scheme}://{}/", server.address())).expect("a URL");
    let target =
        Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Default::default() };
    let mut plan = Plan::new(vec![target], load);
    plan.warm_up = Duration::from_millis(300);
    plan.time = Duration::from_millis(1000);
    plan
}

fn open(rate: f64) -> Load {
    Load::Open { rate, arrivals: Arrivals::Uniform }
}

fn outcome(plan: &Plan) -> Outcome {
    run(plan, &mut |_| {}).expect("it answers")
}

fn tls(resumes: bool) -> Manner {
    let pair = Authority::new("bench").server(&["localhost"]);
    let tls = NullTls { certificate: pair.certificate, key: pair.key, resumes };
    Manner { tls: Some(tls), ..Manner::default() }
}

fn of_tls(server: &NullServer, load: Load, handshakes: Handshakes) -> Plan {
    let mut plan = plan("https", server, load);
    (plan.verify, plan.handshakes) = (false, handshakes);
    plan
}

fn of_kind(outcome: &Outcome, kind: Kind) -> u64 {
    outcome.negotiated.iter().filter(|(agreed, _)| agreed.kind == kind).map(|(_, count)| count).sum()
}
