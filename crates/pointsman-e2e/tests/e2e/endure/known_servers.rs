//! `pointsman bench` before servers whose behaviour is known: what it finds must be that.

use std::process::{Command, Stdio};

use pointsman_e2e::{Bound, NullServer, Unit, figure, program, scale};
use serde_json::Value;

use super::tell;

/// Runs of a claim that holds in nineteen of twenty.
const RUNS: usize = 20;
/// So many of them at a time: they load a machine little, and last for minutes.
const AT_A_TIME: usize = 8;

/// A server of this capacity, with times of its own for each seed, so that runs have not their noise in common.
fn capacity(capacity: u32, service: &str, seed: usize) -> NullServer {
    let (capacity, seed) = (capacity.to_string(), seed.to_string());
    NullServer::start(&["--capacity", &capacity, "--service", service, "--seed", &seed])
}

/// What a command of the bench ended with: its exit status and its run.
fn bench(words: &str) -> (i32, Value) {
    let mut command = Command::new(program());
    command.arg("bench").args(words.split_whitespace()).arg("--json").stdin(Stdio::null());
    let ended = command.output().expect("the binary starts");
    let (said, complained) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    let document: Value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{words}: {error}\n{said}\n{complained}"));
    let run = document["runs"][0].clone();
    assert_eq!(document["runs"].as_array().map(Vec::len), Some(1), "{document}");
    (ended.status.code().expect("it ends by itself"), run)
}

/// A run that is no result is red, and ends so; the others do not.
fn is_result((code, run): &(i32, Value)) -> bool {
    let is_red = run["verdict"]["colour"] == "red";
    assert_eq!(*code, i32::from(is_red), "{}", run["verdict"]);
    let reasons = run["verdict"]["reasons"].as_array().map_or(0, Vec::len);
    assert!(!is_red || reasons > 0, "it says why");
    !is_red
}

/// Does the same many times, some of them at a time.
fn many<T: Send>(runs: usize, run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut all = Vec::with_capacity(runs);
    for first in (0..runs).step_by(AT_A_TIME) {
        std::thread::scope(|scope| {
            let run = &run;
            let some: Vec<_> =
                (first..runs.min(first + AT_A_TIME)).map(|seed| scope.spawn(move || run(seed))).collect();
            all.extend(some.into_iter().map(|thread| thread.join().expect("no run panics")));
        });
    }
    all
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number, not {value}"))
}

/// Searches a server of 500 a second again and again. A small search, on a machine that does other things, may end
/// without a result; with one it is never more than the server can.
///
/// A trial of a second may be answered so much more than the capacity as the server has saved up between trials: what it can is
/// anything from the one to both.
fn a_capacity_is_found(service: &str, saved_per_s: f64) {
    let times = scale(
        "--trial 100ms --warm-up 50ms --from 150 --to 800 --within 20s",
        "--trial 1s --from 100 --within 15m",
    );
    let found = many(scale(1, RUNS), |seed| {
        let server = capacity(500, service, seed);
        let ended = bench(&format!("find {} --seed {} {times}", server.url("http"), seed + 1));
        let trials = ended.1["outcome"]["trials"].as_array().map_or(0, Vec::len);
        assert!(trials > 2, "{}", ended.1["outcome"]);
        (is_result(&ended), ended.1)
    });
    let (mut near, mut covered) = (0, 0);
    for (seed, (is_result, run)) in found.iter().enumerate() {
        let (sustained, peak) = (&run["outcome"]["result"]["sustained"], &run["outcome"]["result"]["peak"]);
        tell(&format!(
            "{service} {}: result {is_result}, limit {}, sustained {}, peak {} at {}, {} trials in {:.0} s",
            seed + 1,
            sustained["limit"],
            sustained["answered"],
            peak["answered"],
            peak["demanded"],
            run["outcome"]["trials"].as_array().map_or(0, Vec::len),
            number(&run["outcome"]["seconds"]),
        ));
        if !is_result || peak.is_null() {
            continue;
        }
        let [estimate, low, high] = ["estimate", "low", "high"].map(|name| number(&peak["answered"][name]));
        // Exponential times make a short trial faster than its server.
        assert!(estimate < scale(700.0, 525.0), "{estimate} of 500");
        let most = 500.0 + saved_per_s;
        near += u64::from((0.97 * 500.0..=1.03 * most).contains(&estimate));
        covered += u64::from(low <= most && high >= 500.0);
    }
    let fault = format!("500/s, {service}");
    let least = Bound::AtLeast(scale(0, RUNS as u64 * 19 / 20));
    figure(&fault, near, Unit::Count("peaks within 3 %"), least);
    figure(&fault, covered, Unit::Count("intervals that hold it"), least);
}

#[test]
fn the_capacity_of_a_constant_server_is_found() {
    a_capacity_is_found("constant", 0.0);
}

#[test]
fn the_capacity_of_an_exponential_server_is_found() {
    a_capacity_is_found("exponential", 0.0);
}

#[test]
fn the_capacity_of_a_limiter_is_found() {
    // A tenth of a second's, as the null server's help says.
    a_capacity_is_found("limiter", 50.0);
}

/// What a closed loop hides the open one shows: all that fell due while the server stood still had to wait.
#[test]
fn a_stall_shows_in_full_in_the_open_loop() {
    let seconds = scale(2, 10);
    let p99_ms = |load: &str| {
        let server = NullServer::start(&["--stall", "100,1s"]);
        let times = format!("--time {seconds}s --warm-up 200ms");
        let (_, run) = bench(&format!("load {} {load} {times}", server.url("http")));
        number(&run["outcome"]["times_ns"]["response"]["p99"]) / 1e6
    };
    let whole = |ms: f64| format!("{ms:.0}").parse::<u64>().expect("a whole number");
    let open = whole(p99_ms("--rate 200 --arrivals uniform"));
    figure("a stall of 1 s, open loop", open, Unit::Count("ms are the 99th percentile"), Bound::AtLeast(880));
    let closed = whole(p99_ms("--clients 1 --think 5ms"));
    figure("the same, closed loop", closed, Unit::Count("ms are the 99th percentile"), Bound::AtMost(700));
}

/// No thread begins a million requests a second.
#[test]
fn a_starved_generator_is_red() {
    let server = NullServer::start(&[]);
    let words = "--rate 1M --threads 1 --connections 50 --time 500ms --warm-up 100ms";
    let ended = bench(&format!("load {} {words}", server.url("http")));
    assert!(!is_result(&ended), "{}", ended.1["verdict"]);
    assert!(ended.1["verdict"]["reasons"].to_string().contains("never sent"), "{}", ended.1["verdict"]);
}

/// How often the same server, once as A and once as B, was called another one.
#[test]
fn the_same_is_seldom_called_different() {
    let times = scale("--blocks 4 --trial 100ms --warm-up 50ms", "--trial 500ms --warm-up 100ms");
    let compared = many(scale(1, RUNS), |seed| {
        let server = capacity(500, "exponential", seed);
        let url = server.url("http");
        let ended = bench(&format!("compare {url} {url} --clients 4 --seed {} {times}", seed + 1));
        (is_result(&ended), ended.1)
    });
    let mut different = [0; 3];
    for (seed, (is_result, run)) in compared.iter().enumerate() {
        let quantities = run["outcome"]["quantities"].as_array().expect("a list");
        tell(&format!("A against A {}: result {is_result}, {}", seed + 1, run["answer"]));
        assert!(!is_result || quantities.len() == 3, "{quantities:?}");
        for (count, quantity) in different.iter_mut().zip(quantities) {
            *count += u64::from(quantity["difference"] != "not shown");
        }
    }
    let most = Bound::AtMost(RUNS as u64 / 20);
    for (name, count) in ["rate", "median", "99th percentile"].into_iter().zip(different) {
        figure(&format!("A against itself, {name}"), count, Unit::Count("runs call it different"), most);
    }
}

/// Half as fast is seen in the fewest blocks there may be.
#[test]
fn a_slower_server_is_called_slower() {
    let (a, b) = (capacity(500, "constant", 1), capacity(250, "constant", 1));
    let times = "--blocks 4 --trial 200ms --warm-up 50ms";
    let words = format!("compare {} {} --clients 4 {times}", a.url("http"), b.url("http"));
    let ended = bench(&words);
    if is_result(&ended) {
        let rate = &ended.1["outcome"]["quantities"][0];
        assert_eq!((&rate["name"], &rate["difference"]), (&"right answers".into(), &"less".into()), "{rate}");
        assert!((0.4..0.6).contains(&number(&rate["ratio"]["estimate"])), "{rate}");
    }
}

/// Handshakes are full where they are to be, and where they are not the run is void.
#[test]
fn full_handshakes_are_full_and_refused_sessions_void_a_run() {
    let server = NullServer::start(&["--tls"]);
    let words = "--insecure --clients 2 --time 500ms --warm-up 100ms";
    let (_, run) = bench(&format!("load {} {words} --handshake full", server.url("https")));
    let kinds = &run["outcome"]["connections"]["by_kind"];
    assert!(number(&kinds["full"]) > 0.0 && number(&kinds["resumed"]) == 0.0, "{kinds}");
    let server = NullServer::start(&["--tls", "--no-resumption"]);
    let ended = bench(&format!("load {} {words} --handshake resumed", server.url("https")));
    assert!(!is_result(&ended), "{}", ended.1["verdict"]);
    assert!(ended.1["verdict"]["reasons"].to_string().contains("resumed"), "{}", ended.1["verdict"]);
}

/// The most that a few clients reach, and how many of them it takes.
#[test]
fn the_smallest_number_of_clients_is_found() {
    let server = capacity(200, "constant", 1);
    // A client asks less than a hundred times a second: two of them are too few for 200.
    let words = "--clients 4 --think 10ms --trial 200ms --warm-up 100ms --within 30s";
    let ended = bench(&format!("find {} {words}", server.url("http")));
    let found = &ended.1["outcome"];
    // A busy machine may end it before.
    if is_result(&ended) && found["not_in_control"].is_null() && found["smallest_clients"].is_number() {
        let (peak, smallest) = (number(&found["peak"]["estimate"]), number(&found["smallest_clients"]));
        assert!(peak < 220.0, "{peak}");
        assert!(smallest >= scale(2.0, 3.0), "{smallest}");
        assert!(found["one_client_less"]["ratio"].is_number(), "{}", found["one_client_less"]);
    }
}
