//! Classes of bandwidth. Only how soon something may come at the earliest is looked at, never how late.

use std::time::{Duration, Instant};

use pointsman_e2e::{Origin, Setup, Switch, until};
use serde_json::{Value, json};

pointsman_e2e::for_threads!(
    answers_are_held_to_their_rate,
    small_answers_are_too,
    requests_are_held_to_their_rate,
    tunnels_are_held_to_their_rate,
    own_answers_are_held_to_their_rate,
    a_reload_changes_what_is_on_its_way,
    a_class_that_a_reload_takes_away_bounds_nothing,
    two_share_what_is_above_them,
    classes_are_told_with_what_waits
);

const BURST: u64 = 65_536;

fn class(name: &str, keys: &str) -> String {
    format!("[bandwidth.{name}]\nburst_bytes = {BURST}\n{keys}\n")
}

/// Answers with so many bytes.
fn origin(bytes: usize) -> Origin {
    Origin::answering("one", move |exchange| exchange.answer("200 OK", &"x".repeat(bytes)))
}

fn setup(threads: usize, classes: &str, origin: &Origin) -> Setup {
    Setup::new(threads).rules("R1: { bandwidth(slow); }").pool("standard", &[origin]).raw(classes)
}

/// What so many bytes of a class take at the least.
fn at_least(bytes: u64, bytes_per_second: u64) -> Duration {
    Duration::from_micros((bytes - BURST) * 1_000_000 / bytes_per_second)
}

fn answers_are_held_to_their_rate(threads: usize) {
    let origin = origin(600_000);
    let switch = setup(threads, &class("slow", "ceiling_bytes_per_second = 1_000_000"), &origin).start();
    let began = Instant::now();
    assert_eq!(switch.client().get("/").body.bytes.len(), 600_000);
    assert!(began.elapsed() >= at_least(600_000, 1_000_000), "{:?}", began.elapsed());
    let labels = [("class", "slow"), ("direction", "to-client")];
    assert!(switch.metric("pointsman_bandwidth_bytes_total", &labels) >= 600_000.0);
    assert!(switch.metric("pointsman_bandwidth_waits_total", &labels) >= 1.0);
}

/// Answers that come in one piece with their head count, too, and all connections together.
fn small_answers_are_too(threads: usize) {
    let origin = origin(5_000);
    let switch = setup(threads, &class("slow", "ceiling_bytes_per_second = 500_000"), &origin).start();
    let began = Instant::now();
    for _ in 0..5 {
        let mut client = switch.client();
        (0..10).for_each(|_| assert_eq!(client.get("/").status(), 200));
    }
    assert!(began.elapsed() >= at_least(250_000, 500_000), "{:?}", began.elapsed());
}

fn requests_are_held_to_their_rate(threads: usize) {
    let origin = Origin::new("one");
    let keys = "ceiling_bytes_per_second = 1_000_000\ndirection = \"to-server\"";
    let switch = setup(threads, &class("slow", keys), &origin).start();
    let body = "y".repeat(400_000);
    let began = Instant::now();
    let mut client = switch.client();
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    assert_eq!(client.response().status(), 200);
    assert!(began.elapsed() >= at_least(400_000, 1_000_000), "{:?}", began.elapsed());
    let bytes = |direction| {
        switch.metric("pointsman_bandwidth_bytes_total", &[("class", "slow"), ("direction", direction)])
    };
    assert!(bytes("to-server") >= 400_000.0);
}

fn tunnels_are_held_to_their_rate(threads: usize) {
    let origin = origin(600_000);
    let classes = class("slow", "ceiling_bytes_per_second = 1_000_000");
    let switch = setup(threads, &classes, &origin).listener("protocol = \"tcp\"").start();
    let began = Instant::now();
    assert_eq!(switch.client().get("/").body.bytes.len(), 600_000);
    assert!(began.elapsed() >= at_least(600_000, 1_000_000), "{:?}", began.elapsed());
}

/// What the switch answers by itself is within the class, too.
fn own_answers_are_held_to_their_rate(threads: usize) {
    let origin = origin(1);
    let rules = format!("R1: {{ bandwidth(slow); respond(200, \"{}\"); }}", "z".repeat(10_000));
    let classes = class("slow", "ceiling_bytes_per_second = 500_000");
    let switch = setup(threads, &classes, &origin).rules(&rules).start();
    let began = Instant::now();
    let mut client = switch.client();
    (0..20).for_each(|_| assert_eq!(client.get("/").body.bytes.len(), 10_000));
    assert!(began.elapsed() >= at_least(200_000, 500_000), "{:?}", began.elapsed());
}

/// At its first rate the answer would take most of an hour.
fn a_reload_changes_what_is_on_its_way(threads: usize) {
    let origin = origin(3_000_000);
    let with =
        |rate: u64| setup(threads, &class("slow", &format!("ceiling_bytes_per_second = {rate}")), &origin);
    let switch = with(1_000).start();
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().word(1), "200");
    switch.reload(&with(50_000_000), 2);
    assert_eq!(client.rest().expect("all of it").bytes.len(), 3_000_000);
}

fn a_class_that_a_reload_takes_away_bounds_nothing(threads: usize) {
    let origin = origin(3_000_000);
    let switch = setup(threads, &class("slow", "ceiling_bytes_per_second = 1_000"), &origin).start();
    let mut client = switch.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().word(1), "200");
    switch.reload(&setup(threads, "", &origin).rules("R1: { tag(free); }"), 2);
    assert_eq!(client.rest().expect("all of it").bytes.len(), 3_000_000);
}

/// Together they are never over the ceiling of their parent, and who is busy gets what the other leaves.
fn two_share_what_is_above_them(threads: usize) {
    let origin = origin(300_000);
    let classes = class("all", "ceiling_bytes_per_second = 1_000_000")
        + &class("slow", "parent = \"all\"\nguaranteed_bytes_per_second = 250_000")
        + &class("fast", "parent = \"all\"\nguaranteed_bytes_per_second = 750_000");
    let rules = "R1: if (path == \"/fast\") { bandwidth(fast); } else { bandwidth(slow); }";
    let switch = setup(threads, &classes, &origin).rules(rules).start();
    let began = Instant::now();
    let [mut slow, mut fast] = [switch.client(), switch.client()];
    slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    fast.send("GET /fast HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(fast.response().body.bytes.len(), 300_000);
    assert_eq!(slow.response().body.bytes.len(), 300_000);
    assert!(began.elapsed() >= at_least(600_000, 1_000_000), "{:?}", began.elapsed());
}

/// What they may have, what went through, and what waits: until it goes on, or its client has left.
fn classes_are_told_with_what_waits(threads: usize) {
    let origin = origin(600_000);
    let classes = class("down", "ceiling_bytes_per_second = 2_000_000\ndirection = \"to-client\"")
        + &class(
            "slow",
            "parent = \"down\"\nguaranteed_bytes_per_second = 2_000\nceiling_bytes_per_second = 10_000",
        );
    let switch = setup(threads, &classes, &origin).start();
    let told = told(&switch);
    let names = told.iter().map(|class| [&class["name"], &class["parent"]].map(Value::as_str));
    assert_eq!(names.collect::<Vec<_>>(), [[Some("down"), None], [Some("slow"), Some("down")]]);
    let figures = ["guaranteed_bytes_per_second", "ceiling_bytes_per_second", "burst_bytes"];
    assert_eq!(figures.map(|key| told[1][key].as_u64()), [Some(2_000), Some(10_000), Some(BURST)]);
    let nothing = json!({ "bytes": 0, "waits": 0, "waiting": 0 });
    assert_eq!((&told[0]["direction"], &told[0]["to_client"]), (&"to-client".into(), &nothing));
    assert_eq!((&told[0]["to_server"], &told[1]["to_server"]), (&Value::Null, &nothing));
    let waiting = |of: &str| {
        let class = self::told(&switch).into_iter().find(|class| class["name"] == *of).expect("it is there");
        class["to_client"]["waiting"].as_u64().expect("a count")
    };
    let mut clients = [switch.client(), switch.client()];
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    until("both wait", || (waiting("slow") == 2).then_some(()));
    assert_eq!(waiting("down"), 0, "each is told where it is");
    let labels = [("class", "slow"), ("direction", "to-client")];
    assert!(switch.metric("pointsman_bandwidth_waiting", &labels) <= 2.0);
    drop(clients);
    until("nobody waits", || (waiting("slow") == 0).then_some(()));
    let slow = &self::told(&switch)[1]["to_client"];
    assert!(slow["bytes"].as_u64() >= Some(BURST / 2) && slow["waits"].as_u64() >= Some(2), "{slow}");
}

fn told(switch: &Switch) -> Vec<Value> {
    switch.admin_shows("/api/v1/bandwidth")["classes"].as_array().expect("a list").clone()
}
