//! A configuration that cannot run says where and why, all of it, and exits with 2.

use pointsman_e2e::{Authority, Finished, Origin, Setup, pointsman};

fn run(setup: &Setup) -> Finished {
    let folder = tempfile::tempdir().expect("a temporary folder");
    setup.write(folder.path());
    pointsman(folder.path(), &["run", "--config", "pointsman.toml"])
}

/// Nothing listens at that address, but a configuration need not know.
fn good() -> Setup {
    Setup::new(1).pool_at("standard", "", &[("s", Origin::dead_address())])
}

#[track_caller]
fn check(setup: &Setup, words: &[&str]) {
    let finished = run(setup);
    assert_eq!(finished.code, 2, "{}", finished.output());
    for word in words {
        assert!(finished.stderr.contains(word), "`{word}` is missing in:\n{}", finished.stderr);
    }
    let line = finished.stderr.lines().find(|line| line.contains("panicked"));
    assert_eq!(line, None, "{}", finished.stderr);
}

#[test]
fn unknown_keys_with_suggestions() {
    check(&good().top("thread = 3"), &["thread", "threads", "^", "pointsman.toml"]);
    check(&good().listener("pol = \"x\""), &["pol", "pool", "^"]);
    check(&good().limits("head_byte_max = 3"), &["head_byte_max", "head_bytes_max", "^"]);
    check(&good().pool_at("other", "balanse = \"x\"", &[]), &["balanse", "balance", "^"]);
}

/// One file, many faults, one run.
#[test]
fn every_error_at_once() {
    let setup = good()
        .top("thread = 3\ndrain_ms_max = \"long\"")
        .listener("x_forwarded = \"maybe\"")
        .limits("idle_ms_max = -1")
        .rules("R1: if (pth == \"/\") { routeTo(nowhere); }\nR1: { goto R0; }");
    let words =
        ["thread", "drain_ms_max", "x_forwarded", "append", "idle_ms_max", "pth", "nowhere", "R1", "R0"];
    check(&setup, &words);
}

#[test]
fn wrong_values() {
    check(&good().top("drain_ms_max = \"long\""), &["drain_ms_max", "^"]);
    check(&good().limits("headers_max = 1000"), &["headers_max", "256", "^"]);
    check(&good().pool_at("other", "balance = \"round\"", &[]), &["balance", "round-robin", "^"]);
    check(&good().listener("trusted_proxies = [\"10.0.0.0/33\"]"), &["10.0.0.0/33", "^"]);
    check(&good().listener("bind = \"nowhere\""), &["nowhere", "^"]);
    check(&good().listener("encoded_slash = \"drop\""), &["encoded_slash", "keep", "refuse", "^"]);
    check(&good().top("sticky_key = \"short\""), &["sticky_key", "^"]);
}

#[test]
fn toml_that_is_none() {
    check(&good().top("threads = = 3"), &["pointsman.toml", "^"]);
}

#[test]
fn names() {
    check(&good().default_pool("nothing"), &["nothing", "standard", "^"]);
    check(&good().another_listener("shop"), &["shop", "^"]);
    check(&good().rules("{ routeTo(standrd); }"), &["standrd", "standard", "^", "shop.rules"]);
    check(&good().rules("{ routeTo(standard.t); }"), &["standard.t", "^"]);
}

/// A bare server name that stands in several pools is an error that lists the ways out.
#[test]
fn ambiguous_server() {
    let setup = good().pool_at("other", "", &[("s", Origin::dead_address())]).rules("{ routeTo(s); }");
    check(&setup, &["standard.s", "other.s", "^"]);
}

#[test]
fn unknown_class() {
    let setup = good().raw("[limit.gold]\nper_second = 1").rules("{ limitRate(glod); }");
    check(&setup, &["unknown class `glod`", "did you mean `gold`?", "^"]);
    check(&good().rules("{ limitRate(gold); }"), &["unknown class `gold`", "[limit.gold]", "^"]);
}

#[test]
fn unknown_pool_of_copies() {
    check(&good().rules("{ mirror(shadow); }"), &["unknown target `shadow`", "^"]);
    check(&good().rules("{ mirror(standard.s); }"), &["copies go to pools", "mirror(standard)", "^"]);
}

#[test]
fn unknown_list() {
    let setup = good().raw("[list.blocked]\nentries = [\"192.0.2.0/24\"]");
    let rules = |list: &str| format!("if (srcip in @{list}) {{ reject(); }}");
    check(
        &setup.clone().rules(&rules("blokced")),
        &["unknown list `@blokced`", "did you mean `@blocked`?", "^"],
    );
    check(&good().rules(&rules("blocked")), &["unknown list `@blocked`", "[list.blocked]", "^"]);
    let wrong = good().file("l.networks", "192.0.2.0/24\n10.0.0.0/33\n");
    let wrong = wrong.raw("[list.blocked]\nfile = \"l.networks\"").rules(&rules("blocked"));
    check(&wrong, &["10.0.0.0/33", "l.networks:2:1", "^"]);
}

/// What belongs to later versions parses, and is refused by name.
#[test]
fn not_yet() {
    check(&good().rules("if (mail.from == \"x\") { reject(); }"), &["mail.from", "yet", "^"]);
}

/// Requests that no rule decides must have somewhere to go.
#[test]
fn no_default() {
    let finished = run(&Setup::new(1).rules("R1: if (path == \"/\") { reject(); }"));
    assert_eq!(finished.code, 2, "{}", finished.output());
    assert!(finished.stderr.contains("pool"), "{}", finished.stderr);
}

#[test]
fn missing_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let finished = pointsman(folder.path(), &["run", "--config", "absent.toml"]);
    assert_eq!(finished.code, 2);
    assert!(finished.stderr.contains("absent.toml"), "{}", finished.stderr);
    check(&good().listener("rules = \"absent.rules\""), &["absent.rules"]);
}

#[test]
fn bad_certificates() {
    let authority = Authority::new("test CA");
    let (one, two) = (authority.server(&["one.example"]), authority.server(&["two.example"]));
    let tls = || good().tls(&one, "");
    check(&tls().file("shop.crt", "no certificate"), &["shop.crt"]);
    check(&tls().file("shop.crt", ""), &["shop.crt"]);
    check(&tls().file("shop.key", "no key"), &["shop.key"]);
    // A key that belongs to another certificate.
    check(&tls().file("shop.key", &two.key), &["shop.key"]);
    let broken = one.certificate.replace("MII", "MIX");
    check(&tls().file("shop.crt", &broken), &["shop.crt"]);
    let absent = "certificates = [ { certificate = \"absent.crt\", key = \"absent.key\" } ]";
    check(&good().tls(&one, absent), &["absent.crt"]);
    check(&good().tls(&one, "client_auth = \"require\""), &["client_ca"]);
    check(&good().tls(&one, "client_auth = \"require\"\nclient_ca = \"absent.pem\""), &["absent.pem"]);
    check(&good().tls(&one, "min_version = \"1.1\""), &["min_version", "1.2", "^"]);
    check(&good().tls(&one, "alpn = [\"h3\"]"), &["h3", "`h2`", "http/1.1", "^"]);
}

/// An address that is taken is a fault of the world, not of the file, and is named.
#[test]
fn address_in_use() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let finished = run(&good().listener(&format!("bind = \"{address}\"")));
    assert_eq!(finished.code, 1, "{}", finished.output());
    assert!(finished.stderr.contains(&address), "{}", finished.stderr);
}

/// A second switch does not share the address of the first one: half of the connections would be lost to
/// whoever started it.
#[test]
fn address_of_another_switch() {
    let first = good().start();
    let address = first.address("shop").to_string();
    let finished = run(&good().listener(&format!("bind = \"{address}\"")));
    assert_eq!(finished.code, 1, "{}", finished.output());
    for word in [&address, "shop", "in use"] {
        assert!(finished.stderr.contains(word), "`{word}` is missing in:\n{}", finished.stderr);
    }
    // Nobody is behind it, but it still answers.
    assert_eq!(first.get("/").status(), 502);
}
