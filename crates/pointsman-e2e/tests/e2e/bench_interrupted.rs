//! SIGINT and SIGTERM while `pointsman bench` measures: what was measured by then is written, and the exit status is the signal's.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pointsman_e2e::{
    Authority, BenchAgent, Lines, Origin, TlsServer, ends, folder, kill, ok, pause, program, until,
};
use serde_json::Value;
use tempfile::TempDir;

/// A command of the bench that goes on, and what it complains about.
fn begin(folder: &TempDir, words: &[&str]) -> (Child, Lines) {
    let mut command = Command::new(program());
    command.arg("bench").args(words).current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let said = Lines::of(child.stderr.take().expect("piped"));
    (child, said)
}

/// The run that it wrote into this file.
fn saved(folder: &TempDir, name: &str) -> Value {
    let text = std::fs::read_to_string(folder.path().join(name)).expect("it is written");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    document["runs"][0].clone()
}

fn count(value: &Value) -> u64 {
    value.as_u64().expect("a count")
}

#[test]
fn load_is_told_up_to_then() {
    for (signal, status, name) in [("INT", 130, "SIGINT"), ("TERM", 143, "SIGTERM")] {
        let (folder, origin) = (folder(&[]), Origin::new("a"));
        let url = format!("http://{}/", origin.address());
        let words = ["load", &url, "--rate", "100", "--time", "10m", "--warm-up", "0"];
        let files = ["--save", "a.json", "--report", "a.html"];
        let (mut child, said) = begin(&folder, &[&words[..], &files].concat());
        origin.wait_for_requests(200);
        kill(signal, child.id()).expect("it runs");
        assert_eq!(child.wait().expect("it is ours").code(), Some(status), "{}", said.text());
        assert!(said.wait_for_end());
        assert!(said.text().contains(&format!("interrupted by {name}")), "{}", said.text());
        let run = saved(&folder, "a.json");
        let (found, requests) = (&run["outcome"], &run["outcome"]["requests"]);
        assert_eq!((&found["interrupted"], &found["voids"]), (&true.into(), &serde_json::json!([])));
        assert_ne!(run["verdict"]["colour"], "green");
        assert!(
            run["verdict"]["reasons"].to_string().contains("of the 600.0 s that were to be"),
            "{}",
            run["verdict"]
        );
        // All but the first request, which was asked before, and those in flight are none.
        assert!(count(&requests["due"]) >= 190 && requests["answered"] == requests["due"], "{requests}");
        assert_eq!(count(&requests["answered"]) as usize + 1, origin.count());
        let page = std::fs::read_to_string(folder.path().join("a.html")).expect("it is written");
        assert!(page.contains("of the 600.0 s that were to be measured"));
    }
}

/// What is under way is waited for; whoever will not wait says so once more.
#[test]
fn the_second_signal_ends_it_at_once() {
    let folder = folder(&[]);
    let origin = Origin::answering("slow", |exchange| {
        if exchange.target() == "/9" {
            // Nobody waits for it.
            pause(Duration::from_secs(100));
        }
        ok(exchange)
    });
    let url = format!("http://{}/{{n}}", origin.address());
    let words = [
        "load",
        &url,
        "--rate",
        "20",
        "--time",
        "10m",
        "--warm-up",
        "0",
        "--timeout",
        "10m",
        "--save",
        "a.json",
    ];
    let (mut child, _said) = begin(&folder, &words);
    origin.wait_for_requests(20);
    let began = Instant::now();
    // Two of different kinds do not become one where both come before either is heard.
    ["INT", "TERM"].into_iter().for_each(|signal| kill(signal, child.id()).expect("it runs"));
    let code = child.wait().expect("it is ours").code();
    assert!(matches!(code, Some(130 | 143)) && began.elapsed() < Duration::from_secs(60), "{code:?}");
    assert!(!folder.path().join("a.json").exists());
}

#[test]
fn agents_are_told_and_end() {
    let (papers, origin) = (folder(&[]), Origin::new("a"));
    let words = ["bench", "agent", "--init", ".", "127.0.0.1"];
    ends(papers.path(), &words, 0, &["ca.crt"]);
    let agents = [BenchAgent::start(papers.path(), &[]), BenchAgent::start(papers.path(), &[])];
    let names = format!("{},{}", agents[0].address(), agents[1].address());
    let url = format!("http://{}/", origin.address());
    let words = ["load", &url, "--rate", "100", "--time", "10m", "--warm-up", "0", "--save", "a.json"];
    let own = ["--agent-cert", "controller.crt", "--agent-key", "controller.key", "--agent-ca", "ca.crt"];
    let (mut controller, said) = begin(&papers, &[&words[..], &["--agents", &names], &own].concat());
    origin.wait_for_requests(200);
    kill("INT", controller.id()).expect("it runs");
    assert_eq!(controller.wait().expect("it is ours").code(), Some(130), "{}", said.text());
    let run = saved(&papers, "a.json");
    let (found, requests) = (&run["outcome"], &run["outcome"]["requests"]);
    assert_eq!(
        (&found["interrupted"], &found["voids"], &found["lost_agents"]),
        (&true.into(), &serde_json::json!([]), &serde_json::json!([]))
    );
    // All that was asked for is in the parts of both, to the last answer.
    assert!(count(&requests["due"]) >= 190 && requests["answered"] == requests["due"], "{requests}");
    assert_eq!(found["agents"].as_array().expect("a list").len(), 2);
    for agent in &agents {
        agent.said().wait_for("its end", |line| line.ends_with("the controller is gone").then_some(()));
    }
    assert_eq!(count(&requests["answered"]) as usize + 2, origin.count());
}

/// As many requests as one trial of each has not, and not as all have.
#[test]
fn what_runs_in_trials_is_told_up_to_then() {
    let origin = Origin::new("a");
    let place = format!("http://{}", origin.address());
    let sized = format!("{place}/{{size}}");
    let workload = "DEFINE_CLASSES\nA: 100\nDEFINE_REQUESTS\nA:\nGET /a\n";
    let folder = folder(&[("a.wl", workload)]);
    let compare = ["compare", &place, &place, "--rate", "100", "--trial", "300ms", "--warm-up", "0"];
    let workload = [
        "workload",
        "a.wl",
        &place,
        "--clients",
        "1,2,3,4,5,6",
        "--think",
        "10ms",
        "--time",
        "500ms",
        "--warm-up",
        "0",
    ];
    let bulk = [
        "bulk",
        &sized,
        "--sizes",
        "2",
        "--rounds",
        "40",
        "--time",
        "300ms",
        "--warm-up",
        "0",
        "--think",
        "10ms",
    ];
    let all: [(&[&str], usize); 3] = [(&compare, 300), (&workload, 100), (&bulk, 250)];
    for (words, requests) in all {
        let before = origin.count();
        let (mut child, said) = begin(&folder, &[words, &["--save", "b.json"]].concat());
        origin.wait_for_requests(before + requests);
        kill("INT", child.id()).expect("it runs");
        assert_eq!(child.wait().expect("it is ours").code(), Some(130), "{words:?} {}", said.text());
        let run = saved(&folder, "b.json");
        assert_eq!(run["outcome"]["interrupted"], true, "{words:?}");
        assert_ne!(run["verdict"]["colour"], "green", "{words:?}");
        assert!(
            run["verdict"]["reasons"].to_string().contains("it was interrupted"),
            "{words:?} {}",
            run["verdict"]
        );
        std::fs::remove_file(folder.path().join("b.json")).expect("it is ours");
    }
}

#[test]
fn handshakes_are_told_up_to_then() {
    let pair = Authority::new("bench").server(&["localhost"]);
    let origin = Origin::secured("a", &TlsServer::new(&pair), ok);
    let (folder, url) = (folder(&[]), format!("https://{}/", origin.address()));
    let words = ["handshake", &url, "--insecure", "--count", "1000000", "--save", "a.json"];
    let (mut child, said) = begin(&folder, &words);
    until("some handshakes", || (origin.count() > 20).then_some(()));
    kill("INT", child.id()).expect("it runs");
    assert_eq!(child.wait().expect("it is ours").code(), Some(130), "{}", said.text());
    let run = saved(&folder, "a.json");
    assert_eq!(
        (&run["outcome"]["interrupted"], &run["outcome"]["voids"]),
        (&true.into(), &serde_json::json!([]))
    );
    assert_ne!(run["verdict"]["colour"], "green");
    assert!(run["verdict"]["reasons"].to_string().contains("of 1000000 handshakes"), "{}", run["verdict"]);
}
