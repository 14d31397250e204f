//! Load of several agents before a server that counts: their parts are all of it, whoever judges it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use pointsman_bench::{
    Agent, AgentSettings, Agents, AgentsSettings, Arrivals, Body, Compare, Fault, Find, Load, Manner,
    NullServer, NullTls, Outcome, Plan, Script, Target, Url, ceiling, ceiling_of, contest, find, run,
};
use pointsman_e2e::{Authority, Pair};
use pointsman_measure::search::Goal;
use pointsman_tls::CertificateFiles;
use tempfile::TempDir;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// An authority, and the files of whom it has signed.
struct Papers {
    authority: Authority,
    folder: TempDir,
}

impl Papers {
    fn new() -> Papers {
        let papers = Papers {
            authority: Authority::new("bench"),
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        papers.write("ca.crt", &papers.authority.pem());
        papers
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a writable folder");
        path
    }

    fn files(&self, name: &str, pair: &Pair) -> CertificateFiles {
        let certificate = self.write(&format!("{name}.crt"), &pair.certificate);
        CertificateFiles::new(certificate, self.write(&format!("{name}.key"), &pair.key))
    }

    /// One that waits on a thread of this process, which ends with it.
    fn agent(&self, allowed: &str) -> String {
        self.agent_with(allowed, &self.authority.server(&["127.0.0.1"]))
    }

    fn agent_with(&self, allowed: &str, pair: &Pair) -> String {
        let settings = AgentSettings {
            listen: ANY,
            certificate: self.files("agent", pair),
            ca: self.folder.path().join("ca.crt"),
            allowed: vec![allowed.parse().expect("a target")],
        };
        let agent = Agent::bind(settings, |_| {}).expect("loopback");
        let address = agent.address().expect("it listens");
        std::thread::spawn(move || agent.serve());
        address.to_string()
    }

    fn controller(&self, names: Vec<String>) -> Agents {
        self.controller_with(names, &self.authority.client("controller", &[])).expect("its files are good")
    }

    fn controller_with(&self, names: Vec<String>, pair: &Pair) -> Result<Agents, Fault> {
        let (certificate, ca) = (self.files("controller", pair), self.folder.path().join("ca.crt"));
        Agents::new(AgentsSettings { names, certificate, ca, threads: Some(1) })
    }

    fn two(&self) -> Agents {
        self.controller(vec![self.agent("private"), self.agent("private")])
    }
}

fn plan(server: &NullServer, load: Load) -> Plan {
    let url = Url::parse(&format!("http://{}/", server.address())).expect("a URL");
    let target = Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
    let mut plan = Plan::new(vec![target], load);
    // What is sent is what is counted.
    (plan.warm_up, plan.time) = (Duration::ZERO, Duration::from_secs(1));
    plan
}

fn null() -> NullServer {
    NullServer::start(ANY, &Manner::default()).expect("loopback")
}

fn uniform(rate: f64) -> Load {
    Load::Open { rate, arrivals: Arrivals::Uniform }
}

fn due(outcome: &Outcome) -> Vec<u64> {
    outcome.agents.iter().map(|agent| agent.outcome.record.due).collect()
}

#[test]
fn parts_are_all_of_it() {
    let (papers, server) = (Papers::new(), null());
    let mut plan = plan(&server, uniform(500.5));
    plan.agents = Some(papers.two());
    let mut seen = Vec::new();
    let outcome = run(&plan, &mut |progress| seen.push(*progress)).expect("it answers");
    assert_eq!(due(&outcome), [251, 250], "of 501");
    let record = &outcome.record;
    assert_eq!((record.due, record.answered, record.failed()), (501, 501, 0));
    // Each agent asks once before.
    assert_eq!(server.answered(), record.answered + 2);
    let mut added = outcome.agents[0].outcome.record.response.clone();
    added.add(&outcome.agents[1].outcome.record.response).expect("the same bounds");
    assert_eq!(added, record.response);
    assert_eq!(record.response.len(), 501);
    assert_eq!((seen.len(), seen[0].of_seconds), (1, 1.0), "{seen:?}");
    assert!((400.0..=520.0).contains(&seen[0].rate), "of both: {seen:?}");
    assert_eq!((outcome.addresses.as_slice(), outcome.voids.len()), (&[server.address()][..], 0));
    assert_eq!(outcome.plan.settings()["agents"], plan.agents.as_ref().expect("two").names().join(", "));
    // The verdict is the worst, whatever this machine had to do beside it.
    let colours = outcome.agents.iter().map(|agent| agent.outcome.verdict().colour);
    assert_eq!(Some(outcome.verdict().colour), colours.max());
    for reason in outcome.verdict().reasons {
        assert!(reason.text.starts_with("agent `127.0.0.1:"), "{reason:?}");
    }
    let tables = outcome.report("two").tables;
    let table = tables.iter().find(|table| table.title == "Agents").expect("a table of them");
    assert_eq!(table.rows.len(), 2);
}

#[test]
fn clients_and_connections_are_divided() {
    let (papers, server) = (Papers::new(), null());
    let mut plan = plan(&server, Load::Closed { clients: 7 });
    plan.think = "20ms".parse().expect("a time");
    plan.agents = Some(papers.two());
    let outcome = run(&plan, &mut |_| {}).expect("it answers");
    let most = outcome.agents.iter().map(|agent| agent.outcome.record.connections_most);
    assert_eq!(most.collect::<Vec<_>>(), [4, 3]);
    assert_eq!(outcome.record.connections_most, 7);
    assert_eq!(server.answered(), outcome.record.answered + 2);
    // A connection is for one thread, whoever has it.
    let too_few = Plan { connections_max: 1, ..plan.clone() };
    let fault = run(&too_few, &mut |_| {}).expect_err("there are two threads");
    assert_eq!(fault.to_string(), "2 threads cannot share 1 connections");
    // The same agents again, on the same connections, with more of them than clients.
    plan.load = Load::Closed { clients: 1 };
    let one = run(&plan, &mut |_| {}).expect("it answers");
    assert_eq!(due(&one)[1], 0);
    assert!(due(&one)[0] > 10 && one.voids.is_empty(), "{:?}", one.voids);
}

#[test]
fn users_and_classes_come_from_agents_too() {
    let (papers, server) = (Papers::new(), null());
    let base = Url::parse(&format!("http://{}/", server.address())).expect("a URL");
    let script =
        Script::parse("GET /\nGET /b\n  think 10ms\n", Some(&base), &mut |_| unreachable!("no file"));
    let users = Plan::of_sessions(script.expect("a script"), Load::Closed { clients: 4 });
    let mut plan = Plan { agents: Some(papers.two()), ..users };
    (plan.warm_up, plan.time) = (Duration::ZERO, Duration::from_secs(1));
    let outcome = run(&plan, &mut |_| {}).expect("it answers");
    let sessions = outcome.record.sessions.as_ref().expect("it has some");
    let ended =
        outcome.agents.iter().map(|agent| agent.outcome.record.sessions.as_ref().expect("it has some").ended);
    assert_eq!(sessions.ended, ended.sum::<u64>());
    assert!(sessions.ended > 4 && outcome.agents.iter().all(|agent| agent.outcome.record.due > 0));
    assert_eq!(sessions.steps.len(), 2);
}

#[test]
fn who_is_not_to_be_loaded_is_not() {
    let (papers, server) = (Papers::new(), null());
    let mut plan = plan(&server, uniform(100.0));
    plan.agents = Some(papers.controller(vec![papers.agent("private"), papers.agent("shop.example")]));
    let fault = run(&plan, &mut |_| {}).expect_err("it may not");
    let name = &plan.agents.as_ref().expect("two").names()[1];
    assert!(fault.to_string().starts_with(&format!("agent `{name}`: no load goes from here")), "{fault}");
    assert_eq!(fault.advice(), Some("whoever runs the agent may start it with `--allow 127.0.0.1`"));
    assert!(server.answered() <= 1, "the other one may have asked once");
    // What the server refuses is said by whom it was.
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    plan.targets[0].url = Url::parse(&format!("http://{nobody}/")).expect("a URL");
    plan.agents = Some(papers.controller(vec![papers.agent("any")]));
    let fault = run(&plan, &mut |_| {}).expect_err("nobody listens").to_string();
    assert!(fault.contains("`: cannot ask http://127.0.0.1:1/"), "{fault}");
}

#[test]
fn an_agent_has_one_controller() {
    let (papers, server) = (Papers::new(), null());
    let agent = papers.agent("private");
    let mut first = plan(&server, uniform(50.0));
    first.time = Duration::from_millis(300);
    let mut second = first.clone();
    first.agents = Some(papers.controller(vec![agent.clone()]));
    second.agents = Some(papers.controller(vec![agent]));
    run(&first, &mut |_| {}).expect("it is free");
    let fault = run(&second, &mut |_| {}).expect_err("the first one is still there");
    assert!(fault.to_string().contains("it works for another controller, 127.0.0.1:"), "{fault}");
    drop(first);
    run(&second, &mut |_| {}).expect("it is free again");
}

#[test]
fn who_is_not_known_is_refused() {
    let (papers, others, server) = (Papers::new(), Papers::new(), null());
    let mut plan = plan(&server, uniform(50.0));
    let agent = papers.agent("private");
    let refused = |plan: &Plan| run(plan, &mut |_| {}).expect_err("it is not known");
    // A controller of another authority, an agent of another, a controller with an agent's certificate, certificates whose time
    // is over, and one for another name.
    let stranger = others.authority.client("controller", &[]);
    let server_pair = papers.authority.server(&["127.0.0.1"]);
    for agents in [
        papers.controller_with(vec![agent.clone()], &stranger),
        papers.controller_with(vec![others.agent("any")], &stranger),
        papers.controller_with(vec![agent.clone()], &server_pair),
        papers.controller_with(vec![agent.clone()], &papers.authority.expired_client("controller")),
        Ok(papers
            .controller(vec![papers.agent_with("any", &papers.authority.expired_server(&["127.0.0.1"]))])),
        Ok(papers.controller(vec![papers.agent_with("any", &papers.authority.server(&["load1.example"]))])),
    ] {
        plan.agents = Some(agents.expect("files that can be read"));
        let fault = refused(&plan);
        assert!(fault.to_string().starts_with("cannot reach the agent"), "{fault}");
        assert!(fault.advice().is_some_and(|help| help.contains("--init")), "{fault:?}");
    }
    assert_eq!(server.answered(), 0);
    plan.agents = Some(papers.controller(vec![agent]));
    run(&plan, &mut |_| {}).expect("it is known");
    let twice = papers.controller_with(vec!["a".into(), "a".into()], &stranger).expect_err("twice");
    assert_eq!(twice.to_string(), "`a` is an agent only once");
    let usual = papers.controller_with(vec!["a".into(), "a:8481".into()], &stranger).expect_err("twice");
    assert_eq!(usual.to_string(), "`a:8481` is an agent only once");
}

#[test]
fn each_agent_is_held_against_its_own_ceiling() {
    let (papers, server) = (Papers::new(), null());
    let mut plan = plan(&server, uniform(200.0));
    plan.time = Duration::from_millis(300);
    plan.agents = Some(papers.two());
    let mut outcome = run(&plan, &mut |_| {}).expect("it answers");
    let asked = server.answered();
    let pair = papers.authority.server(&["localhost"]);
    let tls = NullTls { certificate: pair.certificate, key: pair.key, resumes: false };
    let reached = ceiling_of(&outcome, &tls).expect("null servers on both");
    assert_eq!(server.answered(), asked, "it is known how long its answers are");
    reached.hold_against(&mut outcome);
    let of_agents: Vec<f64> = outcome.agents.iter().filter_map(|agent| agent.outcome.ceiling).collect();
    assert!(of_agents.len() == 2 && of_agents.iter().all(|per_s| *per_s > 100.0), "{reached:?}");
    assert!((of_agents.iter().sum::<f64>() - reached.per_s).abs() < 1e-6, "{reached:?}");
    let factors = outcome.agents.iter().map(|agent| agent.outcome.self_measures(None).null_server_factor);
    assert!(factors.into_iter().all(|factor| factor.is_some_and(|factor| factor > 1.0)), "{reached:?}");
    // One that is near its own end makes the run amber or worse, whatever the other could do.
    outcome.agents[1].outcome.ceiling = Some(outcome.agents[1].outcome.rate() * 1.2);
    let name = format!("agent `{}`: ", outcome.agents[1].name);
    let reasons = outcome.verdict().reasons;
    assert!(reasons.iter().any(|reason| reason.text.starts_with(&name)), "{reasons:?}");
    assert_ne!(outcome.verdict().colour, pointsman_measure::verdict::Colour::Green);
    // Before there was a run, each asks the server for that, where it may go there.
    let first = ceiling(&plan, &tls).expect("null servers on both");
    assert_eq!((first.of_agents.len(), server.answered()), (2, asked + 2));
    plan.agents = Some(papers.controller(vec![papers.agent("shop.example")]));
    let fault = ceiling(&plan, &tls).expect_err("it may not");
    assert!(fault.to_string().contains("no load goes from here to `127.0.0.1`"), "{fault}");
}

#[test]
fn searches_and_comparisons_have_agents() {
    let papers = Papers::new();
    let manner = Manner { capacity: Some(150.0), ..Manner::default() };
    let server = NullServer::start(ANY, &manner).expect("loopback");
    let agents = papers.two();
    let mut plan = plan(&server, uniform(1.0));
    (plan.agents, plan.timeout) = (Some(agents.clone()), Duration::from_secs(1));
    // Only that trials are those of both agents: what a search finds has tests of its own.
    let goal = Goal {
        rate_min: 20.0,
        rate_max: 40.0,
        warm_up_ms: 100,
        coarse_ms: 200,
        fine_ms: 200,
        ..Goal::default()
    };
    let within = Some(Duration::from_secs(2));
    let asked = Find { plan: plan.clone(), arrivals: Arrivals::Uniform, goal, within, ceiling: None };
    let found = find(&asked, &mut |_| {}).expect("it answers");
    assert!(found.trials.len() > 1, "{:?}", found.ending);
    assert_eq!(found.asked.plan.settings()["threads"], "1");
    for tried in &found.trials {
        assert!(tried.judged.seen.achieved_per_s > 0.0, "{tried:?}");
    }
    (plan.load, plan.time) = (Load::Closed { clients: 2 }, Duration::from_millis(100));
    let asked = Compare { a: plan.clone(), b: plan, blocks: 4, ceiling: None };
    let compared = contest(&asked, &mut |_| {}).expect("it answers");
    assert!(compared.trials.iter().all(|trial| trial.figures[0].is_some()), "{:?}", compared.reasons());
}
