//! A reload changes the plan and touches no connection; a bad one changes nothing.

use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use pointsman_e2e::{Authority, Client, Origin, Setup, Then, TlsClient, ok};

pointsman_e2e::for_threads!(
    rules_by_signal,
    rules_by_changed_file,
    what_new_rules_decide_otherwise,
    what_is_set_otherwise,
    bad_rules,
    bad_configuration,
    missing_file,
    kept_alive_connection,
    request_on_its_way,
    listener_added_and_removed,
    listener_removed_amid_an_answer,
    listener_renamed,
    pool_changed,
    certificate_renewed,
    bad_certificate,
    limits_changed,
    many_times
);

const TO_B: &str = "R1: { routeTo(b); }";

fn two(threads: usize, a: &Origin, b: &Origin) -> Setup {
    Setup::new(threads).rules("R1: { routeTo(a); }").pool("a", &[a]).pool("b", &[b])
}

/// SIGHUP reads the files again.
fn rules_by_signal(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    assert_eq!(switch.get("/").server(), "sa");
    // A changed file alone does nothing here, for `watch_ms = 0`.
    let new = setup.rules(TO_B);
    new.write(switch.folder());
    assert_eq!(switch.get("/").server(), "sa");
    switch.reload(&new, 2);
    assert_eq!(switch.get("/").server(), "sb");
}

/// A changed file is found without a signal: rules, configuration and certificates alike.
fn rules_by_changed_file(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b).top("watch_ms = 20");
    let switch = setup.start();
    let new = setup.rules(TO_B);
    new.write(switch.folder());
    switch.wait_for_line("reloaded generation=");
    // The rules and the configuration were renamed into place one after the other: both orders end here.
    assert_eq!(switch.get("/").server(), "sb");
}

/// What is decided otherwise is said behind the reload, with a request; where nothing is, nothing is said.
fn what_new_rules_decide_otherwise(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    switch.reload(&setup.clone().rules("R1: if (path != \"/a\") { routeTo(a); } else { routeTo(a); }"), 2);
    switch.reload(&setup.rules("NEW: if (path == \"/b\") { routeTo(b); }\nR1: { routeTo(a); }"), 3);
    switch.wait_for_line("  R1 -> routeTo(a) becomes NEW -> routeTo(b), for instance GET /b HTTP/1.1");
    let said = switch.said();
    let (before, behind) = said.split_once("reloaded generation=3").expect("it was reloaded");
    assert!(behind.contains("rules differ listener=shop ways=1 unknown=0"), "{said}");
    assert!(!before.contains("rules differ"), "{said}");
}

/// Settings that have a part in what becomes of requests are named behind the reload, and those of files by their content.
fn what_is_set_otherwise(threads: usize) {
    let origin = Origin::new("origin");
    let authority = Authority::new("test CA");
    let [old, new] = [(), ()].map(|()| authority.server(&["shop.example"]));
    let setup = Setup::new(threads).tls(&old, "").pool("standard", &[&origin]);
    let switch = setup.start();
    switch.reload(&setup.clone().top("drain_ms_max = 1000"), 2);
    let changed = setup.tls(&new, "min_version = \"1.3\"").limits("body_bytes_max = 1000");
    switch.reload(&changed, 3);
    switch.wait_for_line("  listener shop: tls.min_version: 1.2 -> 1.3");
    let said = switch.said();
    let (before, behind) = said.split_once("reloaded generation=3").expect("it was reloaded");
    for line in [
        "settings differ count=4\n",
        "  listener shop: limits.body_bytes_max: 0 -> 1000\n",
        "  listener shop: tls.certificate: \"shop.crt\" -> \"shop.crt\" with other content\n",
        "  listener shop: tls.key: \"shop.key\" -> \"shop.key\" with other content\n",
    ] {
        assert!(behind.contains(line), "{line} in {said}");
    }
    assert!(!before.contains("settings differ"), "{said}");
}

/// Rules that do not compile: everything goes on as before, and the place is shown.
fn bad_rules(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    setup
        .clone()
        .rules("R1: { routeTo(nowhere); }\nR2: if (pth == \"/\") { routeTo(b); }")
        .write(switch.folder());
    switch.signal("HUP");
    switch.wait_for_line("reload refused");
    assert_eq!(switch.get("/").server(), "sa");
    // Both faults are named before the good rules load.
    switch.reload(&setup.rules(TO_B), 2);
    assert_eq!(switch.get("/").server(), "sb");
    let said = switch.said();
    for word in ["shop.rules", "nowhere", "pth", "^"] {
        assert!(said.contains(word), "`{word}` is missing in:\n{said}");
    }
}

/// The same for the configuration.
fn bad_configuration(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    setup.clone().rules(TO_B).limits("head_bytes_mx = 1").write(switch.folder());
    switch.signal("HUP");
    switch.wait_for_line("reload refused");
    // Nothing of it, not even the rules, which were good.
    assert_eq!(switch.get("/").server(), "sa");
    switch.reload(&setup.rules(TO_B), 2);
    assert!(switch.said().contains("head_bytes_mx"), "{}", switch.said());
}

/// A file that is gone is a fault as any other.
fn missing_file(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    std::fs::remove_file(switch.folder().join("shop.rules")).expect("it was there");
    switch.signal("HUP");
    switch.wait_for_line("reload refused");
    assert_eq!(switch.get("/").server(), "sa");
    switch.errors().wait_for("the file", |line| line.contains("shop.rules").then_some(()));
}

/// The connection goes on, and its next request meets the new rules.
fn kept_alive_connection(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    let mut clients: Vec<Client> = (0..8).map(|_| switch.client()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").server(), "sa");
    }
    switch.reload(&setup.rules(TO_B), 2);
    for client in &mut clients {
        assert_eq!(client.get("/").server(), "sb");
    }
}

/// A request that is under way ends where it began, also when its pool is gone.
fn request_on_its_way(threads: usize) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let slow = Origin::answering("slow", move |exchange| {
        may_go.lock().expect("no panic under the lock").recv().expect("the test is there");
        ok(exchange)
    });
    let b = Origin::new("sb");
    let switch = Setup::new(threads).pool("a", &[&slow]).start();
    let mut client = switch.client();
    client.send("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 6\r\n\r\nabc");
    slow.wait_for_requests(1);
    switch.reload(&Setup::new(threads).pool("b", &[&b]), 2);
    client.send("def");
    go.send(()).expect("the origin is there");
    assert_eq!(client.response().server(), "slow");
    assert_eq!(client.get("/").server(), "sb");
    assert_eq!(slow.last().body.bytes, b"abcdef");
}

/// Listeners come and go; the others keep their sockets.
fn listener_added_and_removed(threads: usize) {
    let origin = Origin::new("origin");
    let one = Setup::new(threads).pool("standard", &[&origin]);
    let two = one.clone().another_listener("second");
    let switch = one.start();
    let mut client = switch.client();
    assert_eq!(client.get("/").status(), 200);
    switch.reload(&two, 2);
    let second = switch.address("second");
    let mut other = Client::plain(second);
    assert_eq!(other.get("/").status(), 200);
    switch.reload(&one, 3);
    // New connections to it are refused, and the idle one ends.
    assert!(other.closes());
    let until = std::time::Instant::now() + pointsman_e2e::PATIENCE;
    while TcpStream::connect(second).is_ok() {
        assert!(std::time::Instant::now() < until, "the removed listener still listens");
        std::thread::yield_now();
    }
    assert_eq!(client.get("/").status(), 200);
    assert_eq!(switch.get("/").status(), 200);
}

/// An answer that has begun ends whole, and then its connection does: its listener is gone.
fn listener_removed_amid_an_answer(threads: usize) {
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let slow = Origin::answering("slow", move |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
        may_go.lock().expect("no panic under the lock").recv().expect("the test is there");
        exchange.send("def");
        Then::KeepAlive
    });
    let one = Setup::new(threads).pool("standard", &[&slow]);
    let switch = one.clone().another_listener("second").start();
    let mut client = Client::plain(switch.address("second"));
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert_eq!(client.head().field("connection"), None);
    switch.reload(&one, 2);
    go.send(()).expect("the origin is there");
    client.expect_body(b"abcdef");
    assert!(client.closes());
}

/// A listener of another name on the same address: its socket goes on accepting all the while, for the new
/// one, and the idle connections of the old one end.
fn listener_renamed(threads: usize) {
    let origin = Origin::new("origin");
    let bind = format!("bind = \"{}\"", Origin::free_address());
    let shop = Setup::new(threads).listener(&bind).pool("standard", &[&origin]);
    let store = shop.clone().named("store");
    let switch = shop.start();
    let address = switch.address("shop");
    for generation in 2..8 {
        let mut idle: Vec<Client> = (0..8).map(|_| Client::plain(address)).collect();
        for client in &mut idle {
            assert_eq!(client.get("/").status(), 200);
        }
        let (new, name) = if generation % 2 == 0 { (&store, "store") } else { (&shop, "shop") };
        std::thread::scope(|scope| {
            let (stop, stopped) = channel::<()>();
            scope.spawn(move || {
                while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                    drop(TcpStream::connect(address).expect("it listens all the while"));
                }
            });
            switch.reload(new, generation);
            drop(stop);
        });
        for client in &mut idle {
            assert!(client.closes());
        }
        for number in 0..8 {
            let path = format!("/{generation}-{number}");
            assert_eq!(Client::plain(address).get(&path).status(), 200);
            assert_eq!(switch.log_of(&path)["listener"], name);
        }
    }
}

/// Servers come and go; those that stay keep their connections.
fn pool_changed(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let with = |servers: &[&Origin]| Setup::new(threads).pool("standard", servers);
    let switch = with(&[&a]).start();
    let mut client = switch.client();
    assert_eq!(client.get("/").server(), "sa");
    switch.reload(&with(&[&a, &b]), 2);
    let mut seen: Vec<String> = (0..4).map(|_| client.get("/").server().to_owned()).collect();
    seen.sort();
    assert_eq!(seen, ["sa", "sa", "sb", "sb"]);
    assert_eq!(a.connections(), 1);
    switch.reload(&with(&[&b]), 3);
    for _ in 0..4 {
        assert_eq!(client.get("/").server(), "sb");
    }
}

/// New connections get the new certificate; the old ones live on.
fn certificate_renewed(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let (old, new) = (authority.server(&["shop.example"]), authority.server(&["shop.example"]));
    let setup = Setup::new(threads).tls(&old, "").pool("standard", &[&origin]);
    let switch = setup.start();
    let trust = TlsClient::new(&authority).forgetful();
    let mut before = switch.tls_client(&trust, "shop.example").expect("a handshake");
    assert_eq!(before.certificate(), old.der);
    switch.reload(&setup.pair("shop", &new), 2);
    for _ in 0..8 {
        let mut after = switch.tls_client(&trust, "shop.example").expect("a handshake");
        assert_eq!(after.certificate(), new.der);
        assert_eq!(after.get("/").status(), 200);
    }
    assert_eq!(before.get("/").status(), 200);
}

/// A certificate without its key is refused, and the old one stays.
fn bad_certificate(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::new("origin"));
    let (old, new) = (authority.server(&["shop.example"]), authority.server(&["shop.example"]));
    let setup = Setup::new(threads).tls(&old, "").pool("standard", &[&origin]);
    let switch = setup.start();
    setup.file("shop.crt", &new.certificate).write(switch.folder());
    switch.signal("HUP");
    switch.wait_for_line("reload refused");
    let trust = TlsClient::new(&authority);
    let client = switch.tls_client(&trust, "shop.example").expect("a handshake");
    assert_eq!(client.certificate(), old.der);
    let names_a_file = |line: &str| (line.contains("shop.key") || line.contains("shop.crt")).then_some(());
    switch.errors().wait_for("a file of the pair", names_a_file);
}

/// Limits of a listener hold from the next request on.
fn limits_changed(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).pool("standard", &[&origin]);
    let switch = setup.start();
    let target = format!("/{}", "x".repeat(200));
    assert_eq!(switch.get(&target).status(), 200);
    switch.reload(&setup.limits("target_bytes_max = 100"), 2);
    assert_eq!(switch.get(&target).status(), 414);
}

/// Reloads under traffic: no request fails, and each is answered by one of the two plans.
fn many_times(threads: usize) {
    let (a, b) = (Origin::answering("sa", ok), Origin::answering("sb", ok));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    let (stop, stopped) = channel::<()>();
    let mut client = switch.client();
    std::thread::scope(|scope| {
        let traffic = scope.spawn(move || {
            let mut count = 0;
            // The sender is dropped when the reloads are done.
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                let answer = client.get("/");
                assert!(answer.status() == 200 && ["sa", "sb"].contains(&answer.server()), "{answer:?}");
                count += 1;
            }
            count
        });
        for generation in 2..22 {
            let new = if generation % 2 == 0 { setup.clone().rules(TO_B) } else { setup.clone() };
            switch.reload(&new, generation);
        }
        drop(stop);
        assert!(traffic.join().expect("no failed request") > 0);
    });
}
