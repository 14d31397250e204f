//! `pointsman bench load` with users' sessions and with shares, as its own JSON tells it.

use pointsman_e2e::{NullServer, Origin, ends, folder, pointsman};
use serde_json::Value;

/// The outcome of a run, which is a result.
fn outcome(place: &std::path::Path, words: &[&str]) -> Value {
    let usual = ["--json", "--threads", "1", "--time", "1s", "--warm-up", "100ms"];
    let words: Vec<&str> = ["bench", "load"].into_iter().chain(words.iter().copied()).chain(usual).collect();
    crate::bench_load::outcome(&pointsman(place, &words))
}

#[test]
fn users_go_through_their_sessions() {
    let shop = Origin::new("shop");
    let script = "think 1ms\nGET /\nPOST /cart\n  Content-Type: application/json\n  body {\"n\": {n}}\nPUT /order\n  \
                  template order.txt\n  name order\n";
    let place = folder(&[("shop.session", script), ("order.txt", "number {n}")]);
    let url = format!("http://{}/", shop.address());
    let words = [url.as_str(), "--session", "shop.session", "--clients", "3", "--header", "X-Test: yes"];
    let outcome = outcome(place.path(), &words);
    let sessions = &outcome["sessions"];
    let ended = sessions["ended"].as_u64().expect("a count");
    assert!(ended > 5 && sessions["failed"] == 0, "{sessions}");
    assert_eq!(sessions["whole_ns"]["count"], ended);
    let names: Vec<&Value> =
        sessions["steps"].as_array().expect("steps").iter().map(|s| &s["name"]).collect();
    assert_eq!(names, ["GET /", "POST /cart", "order"]);
    assert!(sessions["steps"][2]["answered"].as_u64() >= Some(ended));
    let requests = shop.requests();
    let order = requests.iter().find(|request| request.target() == "/order").expect("some");
    let before = requests.iter().filter(|request| request.connection == order.connection);
    let way: Vec<&str> = before.map(|request| request.target()).collect();
    assert_eq!(way, ["/", "/cart", "/order"], "one connection for each session");
    assert_eq!(order.head.field("X-Test"), Some("yes"));
    assert!(order.body.bytes.starts_with(b"number "), "{:?}", order.body);
}

#[test]
fn shares_come_out_as_asked() {
    let (plain, tls) = (NullServer::start(&[]), NullServer::start(&["--tls"]));
    let (url, port) = (plain.url("http"), tls.address().port().to_string());
    let place = folder(&[]);
    let words = [
        url.as_str(),
        "--rate",
        "800",
        "--persistent",
        "0.8",
        "--pipelined",
        "40%",
        "--pipeline-depth",
        "4",
        "--tls",
        "0.25",
        "--tls-port",
        &port,
        "--insecure",
    ];
    let outcome = outcome(place.path(), &words);
    for (name, asked) in [("persistent", 0.8), ("pipelined", 0.4), ("tls", 0.25)] {
        let share = &outcome["shares"][name];
        assert_eq!(share["asked"], asked);
        let apart = (share["came_out"].as_f64().expect("a share") - asked).abs();
        assert!(apart <= share["slack"].as_f64().expect("a bound"), "{name}: {share}");
    }
    assert_eq!(outcome["requests"]["failed"], 0, "{}", outcome["requests"]);
}

#[test]
fn what_is_wrong_with_a_script_is_shown_in_its_place() {
    let place = folder(&[("a.session", "GET /\n  think long\nget /\n")]);
    let words = ["bench", "load", "http://127.0.0.1:1/", "--session", "a.session", "--clients", "1"];
    let said = ["a.session:2:9", "error: `get` begins no step", "3 | get /\n  | ^^^", "help: a step begins"];
    ends(place.path(), &words, 2, &said);
    let both = [&words[..], &["--weights", "1"]].concat();
    ends(place.path(), &both, 2, &["the steps say what is asked"]);
}
