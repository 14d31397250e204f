//! `pointsman bench agent` and `--agents` by the command line: two agents are one generator, and a lost one is none.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pointsman_e2e::{
    Authority, BenchAgent, Client, Lines, NullServer, Origin, TlsClient, ends, folder, kill, pause,
    pointsman, program, until,
};
use serde_json::Value;
use tempfile::TempDir;

use super::bench_load::outcome;

/// A folder with the certificates that `--init` makes, for agents on the loopback.
fn papers() -> TempDir {
    let folder = folder(&[]);
    let words = ["bench", "agent", "--init", ".", "127.0.0.1"];
    ends(folder.path(), &words, 0, &["ca.crt", "controller.key", "agent-127.0.0.1.crt"]);
    folder
}

/// What a controller says beside its own words.
fn with_agents<'w>(words: &[&'w str], agents: &'w str) -> Vec<&'w str> {
    let own = ["--agent-cert", "controller.crt", "--agent-key", "controller.key", "--agent-ca", "ca.crt"];
    [words, &["--agents", agents], &own].concat()
}

fn names(agents: &[&BenchAgent]) -> String {
    agents.iter().map(|agent| agent.address().to_string()).collect::<Vec<_>>().join(",")
}

/// A controller that somebody else ends.
fn begin(folder: &TempDir, words: &[&str]) -> (Child, Lines) {
    let mut command = Command::new(program());
    command.args(words).current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary starts");
    let said = Lines::of(child.stdout.take().expect("piped"));
    (child, said)
}

/// Times and counts of a histogram in JSON, added to these.
fn add(buckets: &mut Vec<(u64, u64)>, times: &Value) {
    for bucket in times["buckets"].as_array().expect("a list") {
        let (time, count) = (bucket[0].as_u64().expect("ns"), bucket[1].as_u64().expect("a count"));
        match buckets.iter_mut().find(|known| known.0 == time) {
            Some(known) => known.1 += count,
            None => buckets.push((time, count)),
        }
    }
    buckets.sort_unstable();
}

fn count(value: &Value) -> u64 {
    value.as_u64().expect("a count")
}

#[test]
fn two_agents_are_one_generator() {
    let (papers, origin) = (papers(), Origin::new("a"));
    let agents = [BenchAgent::start(papers.path(), &[]), BenchAgent::start(papers.path(), &[])];
    let names = names(&[&agents[0], &agents[1]]);
    let url = format!("http://{}/", origin.address());
    let words = ["bench", "load", &url, "--rate", "150.5", "--arrivals", "uniform", "--warm-up", "0"];
    let words = [&words[..], &["--time", "1s", "--threads", "1", "--json"]].concat();
    let outcome = outcome(&pointsman(papers.path(), &with_agents(&words, &names)));
    let requests = &outcome["requests"];
    assert_eq!((count(&requests["due"]), count(&requests["answered"])), (151, 151), "{requests}");
    // Each of them asks once before there is load.
    assert_eq!(origin.count(), 151 + 2);
    let parts = outcome["agents"].as_array().expect("a list");
    let due: Vec<u64> = parts.iter().map(|part| count(&part["requests"]["due"])).collect();
    assert_eq!(due, [76, 75]);
    let mut added = Vec::new();
    for (part, name) in parts.iter().zip(names.split(',')) {
        assert_eq!(part["name"], name);
        assert!(part["verdict"]["colour"].is_string() && part["machine"]["host"].is_string(), "{part}");
        add(&mut added, &part["times_ns"]["response"]);
    }
    // Percentiles are those of the histograms added, whatever each agent's own are.
    let mut all = Vec::new();
    let response = &outcome["times_ns"]["response"];
    add(&mut all, response);
    assert_eq!(all, added);
    let mut up_to = 0;
    let p90 = added.iter().find(|(_, count)| {
        up_to += count;
        up_to * 10 >= 151 * 9
    });
    assert_eq!(response["p90"].as_u64(), p90.map(|(time, _)| *time));
    assert_eq!(outcome["settings"]["agents"][1], names.split(',').nth(1).expect("two"));
    assert_eq!(
        (&outcome["settings"]["threads"], &outcome["generator"]["threads"][1]["cpu"].is_number()),
        (&1.into(), &true)
    );
}

#[test]
fn other_commands_have_agents_too() {
    let (papers, null) = (papers(), NullServer::start(&["--capacity", "200"]));
    let agents = [BenchAgent::start(papers.path(), &[]), BenchAgent::start(papers.path(), &[])];
    let (names, url) = (names(&[&agents[0], &agents[1]]), null.url("http"));
    let fixed =
        ["bench", "find", &url, "--trial", "200ms", "--from", "10", "--to", "20", "--within", "2s", "--json"];
    let finished = pointsman(papers.path(), &with_agents(&fixed, &names));
    assert!((0..=1).contains(&finished.code), "{}", finished.output());
    let document: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let trials = document["runs"][0]["outcome"]["trials"].as_array().expect("a list");
    assert!(trials.len() > 1, "{document}");
    let fixed =
        ["bench", "load", &url, "--rate", "20", "--time", "300ms", "--warm-up", "0", "--ceiling", "--json"];
    let found = outcome(&pointsman(papers.path(), &with_agents(&fixed, &names)));
    let of_agent =
        |at: usize| found["agents"][at]["generator"]["ceiling_per_second"].as_f64().expect("a rate");
    let all = found["generator"]["ceiling_per_second"].as_f64().expect("a rate");
    assert!((of_agent(0) + of_agent(1) - all).abs() < 1e-6 && of_agent(0) > 20.0, "{}", found["generator"]);
    std::fs::write(papers.path().join("a.wl"), "DEFINE_CLASSES\nA: 100\nDEFINE_REQUESTS\nA:\nGET /a\n")
        .expect("a writable folder");
    let fixed = ["bench", "workload", "a.wl", &url, "--clients", "2,5", "--time", "300ms", "--warm-up", "0"];
    let finished = pointsman(papers.path(), &with_agents(&fixed, &names));
    assert!((0..=1).contains(&finished.code), "{}", finished.output());
    assert!(finished.stdout.contains("clients"), "{}", finished.stdout);
}

/// The words of a load that would last for half a minute.
fn long(url: &str) -> [&str; 9] {
    ["bench", "load", url, "--rate", "100", "--time", "30s", "--warm-up", "0"]
}

#[test]
fn a_lost_agent_voids_the_run() {
    let (papers, null) = (papers(), NullServer::start(&[]));
    let stays = BenchAgent::start(papers.path(), &[]);
    let mut goes = BenchAgent::start(papers.path(), &[]);
    let (names, url, lost) = (names(&[&stays, &goes]), null.url("http"), goes.address());
    let (mut controller, said) = begin(&papers, &with_agents(&long(&url), &names));
    goes.said().wait_for("its load", |line| line.starts_with("load on ").then_some(()));
    goes.kill();
    let said_of_it = format!("VOID, not a result: agent `{lost}` was lost ");
    said.wait_for("why it is void", |line| line.contains(&said_of_it).then_some(()));
    assert_eq!(controller.wait().expect("it is ours").code(), Some(1));
    // The other one has ended its load, and waits for the next controller.
    stays.said().wait_for("its end", |line| line.ends_with("the controller is gone").then_some(()));
    let words =
        ["bench", "load", &url, "--rate", "50", "--arrivals", "uniform", "--time", "200ms", "--warm-up", "0"];
    let alone = stays.address().to_string();
    let finished = pointsman(papers.path(), &with_agents(&words, &alone));
    assert!(finished.stdout.contains(" 10 due, 10 answered"), "{}", finished.output());
    let gone = with_agents(&words, &names);
    ends(papers.path(), &gone, 2, &[&format!("cannot reach the agent `{lost}`")]);
}

/// What the controller has printed as JSON, whole.
fn printed(said: &Lines) -> Value {
    serde_json::from_str(&said.all().join("\n")).expect("JSON")
}

#[test]
fn what_came_before_an_agent_was_lost_is_reported() {
    let (papers, origin) = (papers(), Origin::new("a"));
    let stays = BenchAgent::start(papers.path(), &[]);
    let mut goes = BenchAgent::start(papers.path(), &[]);
    let (names, lost) = (names(&[&stays, &goes]), goes.address().to_string());
    let url = format!("http://{}/", origin.address());
    let words = [&long(&url)[..], &["--json", "--report", "void.html"]].concat();
    let (mut controller, said) = begin(&papers, &with_agents(&words, &names));
    // Two seconds and a half: each has said something twice.
    origin.wait_for_requests(250);
    goes.kill();
    assert_eq!(controller.wait().expect("it is ours").code(), Some(1));
    assert!(said.wait_for_end());
    let document = printed(&said);
    let (run, found) = (&document["runs"][0], &document["runs"][0]["outcome"]);
    assert_eq!(run["verdict"]["colour"], "red");
    let gone = &found["lost_agents"][0];
    let after_s = gone["after_seconds"].as_f64().expect("a time");
    assert!(gone["name"] == lost.as_str() && (2.0..25.0).contains(&after_s), "{gone}");
    assert!(count(&gone["answered"]) > 40, "50 a second: {gone}");
    // Of the other there is all: rates are those of the time that there was.
    let [other] = found["agents"].as_array().expect("a list").as_slice() else {
        panic!("{}", found["agents"])
    };
    assert_eq!(other["name"], stays.address().to_string());
    let (answered, seconds) =
        (count(&found["requests"]["answered"]), found["seconds"].as_f64().expect("a time"));
    assert!(answered > 80 && (1.5..25.0).contains(&seconds), "{answered} in {seconds} s");
    assert_eq!(found["times_ns"]["response"]["count"], answered);
    let per_second = found["requests"]["per_second"].as_f64().expect("a rate");
    assert!((per_second - count(&found["requests"]["answered_in_time"]) as f64 / seconds).abs() < 1e-6);
    let page = std::fs::read_to_string(papers.path().join("void.html")).expect("it is written");
    assert!(page.contains("Agents that were lost") && page.contains(&lost), "it says who, and when");
}

/// Waits until an agent has begun so many loads.
fn wait_for_loads(agent: &BenchAgent, loads: usize) {
    until("its loads", || {
        let begun = agent.said().all().iter().filter(|line| line.starts_with("load on ")).count();
        (begun >= loads).then_some(())
    });
}

#[test]
fn what_was_measured_before_an_agent_was_lost_is_kept() {
    let (papers, null) = (papers(), NullServer::start(&["--capacity", "200"]));
    let stays = BenchAgent::start(papers.path(), &[]);
    let url = null.url("http");
    std::fs::write(papers.path().join("a.wl"), "DEFINE_CLASSES\nA: 100\nDEFINE_REQUESTS\nA:\nGET /a\n")
        .expect("a writable folder");
    let compare: &[&str] = &["compare", &url, &url, "--clients", "2", "--blocks", "4", "--trial", "400ms"];
    let workload: &[&str] = &["workload", "a.wl", &url, "--clients", "2,3,4", "--time", "400ms"];
    let sized = format!("{url}bytes/{{size}}");
    let bulk: &[&str] = &["bulk", &sized, "--sizes", "10,20", "--rounds", "2", "--time", "400ms"];
    // Of a comparison there is one of B among the first six.
    for (words, all, what, loads) in
        [(compare, 32, "trials", 7), (workload, 3, "steps", 2), (bulk, 4, "trials", 2)]
    {
        let mut goes = BenchAgent::start(papers.path(), &[]);
        let names = names(&[&stays, &goes]);
        let words = [&["bench"], words, &["--warm-up", "0", "--json"]].concat();
        let (mut controller, said) = begin(&papers, &with_agents(&words, &names));
        wait_for_loads(&goes, loads);
        goes.kill();
        assert_eq!(controller.wait().expect("it is ours").code(), Some(1), "{words:?}");
        assert!(said.wait_for_end());
        let document = printed(&said);
        let (run, found) = (&document["runs"][0], &document["runs"][0]["outcome"]);
        let told = found[what].as_array().expect("a list").len();
        let not_run = found["not_run"]["steps"].as_array().map_or(0, Vec::len);
        assert!(told + not_run == all && told > 1, "{words:?}: {told} and {not_run}");
        let reasons = run["verdict"]["reasons"].to_string();
        let gone = goes.address().to_string();
        assert!(reasons.contains("void") && reasons.contains(&gone), "{words:?}: {reasons}");
    }
}

/// An agent that hangs, and keeps its connection.
#[test]
fn a_silent_agent_is_lost() {
    let (papers, null) = (papers(), NullServer::start(&[]));
    let hangs = BenchAgent::start(papers.path(), &[]);
    let (names, url) = (names(&[&hangs]), null.url("http"));
    let (mut controller, said) = begin(&papers, &with_agents(&long(&url), &names));
    hangs.said().wait_for("its load", |line| line.starts_with("load on ").then_some(()));
    kill("STOP", hangs.id()).expect("it runs");
    said.wait_for("why it is void", |line| line.contains("it said nothing for 5 s").then_some(()));
    assert_eq!(controller.wait().expect("it is ours").code(), Some(1));
}

#[test]
fn load_ends_with_its_controller() {
    let (papers, origin) = (papers(), Origin::new("a"));
    let agent = BenchAgent::start(papers.path(), &[]);
    let (names, url) = (names(&[&agent]), format!("http://{}/", origin.address()));
    // An end that is asked for as by Ctrl-C (which whoever starts this in the background may have turned off), and one without
    // a word.
    for name in ["TERM", "KILL"] {
        let before = origin.count();
        let (mut controller, _said) = begin(&papers, &with_agents(&long(&url), &names));
        origin.wait_for_requests(before + 20);
        let lines = agent.said().all().len();
        kill(name, controller.id()).expect("it runs");
        controller.wait().expect("it is ours");
        agent.said().wait_after(lines, "its end", |line| line.ends_with("is gone").then_some(()));
        // What was on its way has come by then.
        let count = until("the last request", || {
            let count = origin.count();
            pause(Duration::from_millis(100));
            (origin.count() == count).then_some(count)
        });
        assert!(count < before + 1_000, "30 s are 3,000: {count}");
    }
}

/// Of somebody without the right certificate nothing is heard, and nothing is told.
#[test]
fn strangers_hear_nothing() {
    let (papers, null) = (papers(), NullServer::start(&[]));
    let agent = BenchAgent::start(papers.path(), &[]);
    let other = folder(&[]);
    ends(other.path(), &["bench", "agent", "--init", ".", "127.0.0.1"], 0, &[]);
    let (names, url) = (names(&[&agent]), null.url("http"));
    let words = ["bench", "load", &url, "--rate", "10", "--time", "200ms"];
    let mixed = ["--agent-cert", "controller.crt", "--agent-key", "controller.key", "--agents", &names];
    let ca = papers.path().join("ca.crt").to_string_lossy().into_owned();
    let stranger = [&words[..], &mixed, &["--agent-ca", &ca]].concat();
    let said = ["cannot reach the agent", "both sides show certificates of one authority"];
    ends(other.path(), &stranger, 2, &said);
    // An agent of another authority is none of ours.
    ends(other.path(), &with_agents(&words, &names), 2, &said);
    ends(papers.path(), &[&words[..], &["--agents", &names]].concat(), 2, &["--agent-cert", "--init"]);
    // Without TLS, and with TLS 1.2, which has no say.
    let mut plain = Client::plain(agent.address());
    plain.send("GET / HTTP/1.1\r\n\r\n");
    let heard = plain.everything();
    assert!(!heard.contains("pointsman") && !heard.contains("hello"), "{heard}");
    assert!(Client::tls(agent.address(), &TlsClient::v12(&Authority::new("none")), "127.0.0.1").is_err());
}

/// Certificates of the test's own authority, to speak with an agent as a controller does.
fn known() -> (TempDir, Authority) {
    let authority = Authority::new("bench");
    let (pair, ca) = (authority.server(&["127.0.0.1"]), authority.pem());
    let controller = authority.client("controller", &[]);
    let files = [
        ("ca.crt", ca.as_str()),
        ("agent-127.0.0.1.crt", &pair.certificate),
        ("agent-127.0.0.1.key", &pair.key),
        ("controller.crt", &controller.certificate),
        ("controller.key", &controller.key),
    ];
    (folder(&files), authority)
}

fn frame(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("short");
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}

/// What an agent says to these bytes, to the end.
fn heard(agent: &BenchAgent, authority: &Authority, bytes: &[u8]) -> String {
    let pair = authority.client("controller", &[]);
    let tls = TlsClient::identified(authority, &pair).alpn(&["pointsman-bench"]);
    let mut client = Client::tls(agent.address(), &tls, "127.0.0.1").expect("it is known");
    client.send(bytes);
    client.everything()
}

#[test]
fn other_versions_are_refused() {
    let (papers, authority) = known();
    let agent = BenchAgent::start(papers.path(), &[]);
    let said = heard(&agent, &authority, &frame(r#"{"hello":[["pointsman","0.0.1"]]}"#));
    assert!(
        said.contains(r#"{"failed":{"message":"versions differ: the controller is pointsman 0.0.1, and"#),
        "{said}"
    );
    assert!(said.contains("copy the same binary"), "{said}");
    agent.said().wait_for("why", |line| line.contains("versions differ").then_some(()));
}

#[test]
fn what_is_no_word_of_a_controller_ends_the_connection() {
    let (papers, authority) = known();
    let agent = BenchAgent::start(papers.path(), &[]);
    let own = env!("CARGO_PKG_VERSION");
    for bytes in [
        frame("{"),
        frame(r#"{"beat":null}"#),
        frame(r#"{"start":{"begin_ns":1}}"#),
        // More than anybody says before it is known.
        [&(1_u32 << 20).to_be_bytes()[..], &[b' '; 100]].concat(),
        u32::MAX.to_be_bytes().to_vec(),
        frame(&format!(r#"{{"hello":[["pointsman","{own}"]]}}"#)),
    ] {
        let said = heard(&agent, &authority, &bytes);
        assert!(!said.contains("welcome"), "{said}");
    }
    agent
        .said()
        .wait_for("why", |line| line.contains("a frame of 4294967295 bytes is too long").then_some(()));
}
