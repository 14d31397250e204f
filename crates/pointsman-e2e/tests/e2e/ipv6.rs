//! IPv6: both families on one socket, one alone, and how addresses are written.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use pointsman_e2e::{Client, Origin, Setup, echo, pointsman, skipped};

pointsman_e2e::for_threads!(both_families, ipv6_alone, mapped_binds, what_is_written, in_use);

/// Whether the machine has it; says so where it does not.
fn has_ipv6() -> bool {
    let has = TcpListener::bind("[::1]:0").is_ok();
    if !has {
        skipped("this machine has no IPv6");
    }
    has
}

fn shows(threads: usize, bind: &str) -> Setup {
    let rules = "if (srcip in [127.0.0.0/8, ::1]) { respond(200, \"${srcip} ${dstip}\"); }";
    Setup::new(threads).listener(&format!("bind = {bind}")).rules(&format!("{rules} else: discard();"))
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn both_families(threads: usize) {
    if !has_ipv6() {
        return;
    }
    let switch = shows(threads, "\"[::]:0\"").start();
    let port = switch.address("shop").port();
    assert_eq!(
        Client::plain(loopback(port)).get("/").text(),
        "127.0.0.1 127.0.0.1",
        "a mapped address is IPv4"
    );
    let v6: SocketAddr = format!("[::1]:{port}").parse().expect("an address");
    assert_eq!(Client::plain(v6).get("/").text(), "::1 ::1");
}

fn ipv6_alone(threads: usize) {
    if !has_ipv6() {
        return;
    }
    let port = Origin::free_address().port();
    let switch = shows(threads, &format!("\"[::]:{port}\"\nipv6_only = true")).start();
    let v6: SocketAddr = format!("[::1]:{port}").parse().expect("an address");
    assert_eq!(Client::plain(v6).get("/").text(), "::1 ::1");
    assert!(TcpStream::connect(loopback(port)).is_err());
    // So both can have one port, with a socket each.
    let both = format!("[\"[::]:{port}\", \"0.0.0.0:{port}\"]\nipv6_only = true");
    switch.reload(&shows(threads, &both), 2);
    assert_eq!(Client::plain(loopback(port)).get("/").text(), "127.0.0.1 127.0.0.1");
    assert_eq!(Client::plain(v6).get("/").text(), "::1 ::1");
}

/// Needs no IPv6: it is IPv4 that is listened on.
fn mapped_binds(threads: usize) {
    let switch = shows(threads, "\"[::ffff:127.0.0.1]:0\"").start();
    assert!(switch.address("shop").is_ipv4(), "{}", switch.address("shop"));
    assert_eq!(switch.get("/").text(), "127.0.0.1 127.0.0.1");
}

fn what_is_written(threads: usize) {
    if !has_ipv6() {
        return;
    }
    let origin = Origin::answering("origin", echo);
    let setup = Setup::new(threads).listener("bind = [\"127.0.0.1:0\", \"[::1]:0\"]\nforwarded = \"append\"");
    let switch = setup.pool("standard", &[&origin]).start();
    let line = switch.wait_for_line("listening name=shop address=[::1]:");
    let address = line.split(' ').nth(2).and_then(|word| word.strip_prefix("address=")).expect("a word");
    let mut client = Client::plain(address.parse().expect("an address"));
    let seen = client.get("/seen").text();
    assert!(seen.contains("\"::1\"") && seen.contains("for=\\\"[::1]\\\""), "{seen}");
    let entry = switch.log_of("/seen");
    assert_eq!((&entry["client"], &entry["client_ip"]), (&client.local().to_string().into(), &"::1".into()));
    assert_eq!(switch.get("/").status(), 200, "the other address");
}

/// Whoever has several addresses is told which one it is.
fn in_use(threads: usize) {
    let taken = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = taken.local_addr().expect("bound");
    let folder = tempfile::tempdir().expect("a temporary folder");
    shows(threads, &format!("[\"127.0.0.1:0\", \"{address}\"]")).write(folder.path());
    let finished = pointsman(folder.path(), &["run", "--config", "pointsman.toml"]);
    assert_ne!(finished.code, 0);
    let expected = format!("listener `shop` cannot listen on {address}: ");
    assert!(finished.stderr.contains(&expected), "{}", finished.stderr);
    assert!(finished.stderr.contains("help: somebody listens there already"), "{}", finished.stderr);
}
