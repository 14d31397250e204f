//! Each thread may have a table of descriptors of its own, and works as well without.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use pointsman_e2e::{Client, Origin, Setup, Switch, descriptors_of, descriptors_of_this_process, until};

use crate::drain::{held, refuses};

pointsman_e2e::for_threads!(
    as_many_as_threads,
    the_owner_of_a_port_is_found,
    a_removed_listener_refuses,
    a_drained_one_refuses,
    a_signal_on_any_thread,
    more_listeners_than_a_table_has_room_for
);

const OWN: &str = "own_descriptor_tables = true";

fn both(threads: usize) -> [Setup; 2] {
    [Setup::new(threads).top(OWN), Setup::new(threads)]
}

/// One for each thread that serves, one for that which starts others later, and one for the rest of the process; or one for all.
fn as_many_as_threads(threads: usize) {
    let origin = Origin::new("origin");
    for (setup, tables) in both(threads).into_iter().zip([2 + threads, 1]) {
        let switch = setup.pool("standard", &[&origin]).start();
        assert_eq!(switch.descriptor_tables(), tables);
        let before = descriptors_of_the_process(&switch).len();
        let mut clients: Vec<Client> = (0..16).map(|_| switch.client()).collect();
        clients.iter_mut().for_each(|client| assert_eq!(client.get("/").status(), 200));
        // Connections are in the tables of those who serve them.
        let with_clients = switch.descriptors();
        assert!(with_clients >= 16 + 2 * threads, "{with_clients}");
        let seen = descriptors_of_the_process(&switch).len();
        assert_eq!(seen < before + 16, tables > 1, "{before}, then {seen}");
        drop(clients);
        until("descriptors that come back", || (switch.descriptors() <= with_clients - 16).then_some(()));
        assert!(!switch.said().contains("warning"), "{}", switch.said());
    }
}

/// What the system shows of the process, it shows of its first thread: listening sockets are among it.
fn the_owner_of_a_port_is_found(threads: usize) {
    for setup in both(threads) {
        let switch = setup.pool("standard", &[&Origin::new("origin")]).start();
        let port = format!(":{:04X} ", switch.address("shop").port());
        let tcp = std::fs::read_to_string(format!("/proc/{}/net/tcp", switch.id())).expect("procfs");
        let listening = tcp.lines().filter(|line| line.contains(&port) && line.contains(" 0A "));
        let inodes: Vec<&str> = listening.filter_map(|line| line.split_whitespace().nth(9)).collect();
        assert_eq!(inodes.len(), threads, "{tcp}");
        let held = descriptors_of_the_process(&switch);
        for inode in inodes {
            assert!(held.contains(&PathBuf::from(format!("socket:[{inode}]"))), "{inode} in {held:?}");
        }
    }
}

/// A listener that a reload has removed refuses, whoever had a copy of its socket; its address is free again.
fn a_removed_listener_refuses(threads: usize) {
    let origin = Origin::new("origin");
    for setup in both(threads) {
        let one = setup.pool("standard", &[&origin]);
        let switch = one.start();
        switch.reload(&one.clone().another_listener("second"), 2);
        let second = switch.address("second");
        assert!(switch.listens_on(second));
        assert_eq!(Client::plain(second).get("/").status(), 200);
        switch.reload(&one, 3);
        refuses(&switch, second);
        // Unless somebody has it already.
        assert!(TcpListener::bind(second).is_ok() || !switch.listens_on(second));
        assert_eq!(switch.get("/").status(), 200);
    }
}

/// So does every listener during a drain, while what is open goes on.
fn a_drained_one_refuses(threads: usize) {
    for setup in both(threads) {
        let (origin, go) = held();
        let mut switch = setup.pool("standard", &[&origin]).start();
        let address = switch.address("shop");
        let mut client = switch.client();
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        origin.wait_for_requests(1);
        switch.signal("TERM");
        switch.wait_for_line("draining connections=1");
        refuses(&switch, address);
        go.send(()).expect("the origin is there");
        assert_eq!(client.response().status(), 200);
        assert_eq!(switch.wait_for_exit(), Some(0));
    }
}

/// Whichever thread the kernel hands a signal to: it is heard, and touches nobody's connection.
fn a_signal_on_any_thread(threads: usize) {
    let origin = Origin::new("origin");
    for setup in both(threads) {
        let setup = setup.pool("standard", &[&origin]);
        let switch = setup.start();
        let mut clients: Vec<Client> = (0..16).map(|_| switch.client()).collect();
        clients.iter_mut().for_each(|client| assert_eq!(client.get("/").status(), 200));
        let tasks = std::fs::read_dir(format!("/proc/{}/task", switch.id())).expect("it runs");
        // Those that a reload starts end by themselves.
        let ids: Vec<_> = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect();
        for (id, generation) in ids.into_iter().zip(2..) {
            switch.signal_at("HUP", id);
            switch.wait_for_line(&format!("reloaded generation={generation}"));
        }
        clients.iter_mut().for_each(|client| assert_eq!(client.get("/").status(), 200));
    }
}

/// Sockets that a thread has no room for are its own as soon as it has.
fn more_listeners_than_a_table_has_room_for(threads: usize) {
    const LISTENERS: usize = 40;
    let origin = Origin::new("origin");
    // Room for the sockets in the table of the process, and not for clients beside them in those of the threads.
    let limit = 100 + LISTENERS * threads;
    assert!(descriptors_of_this_process() > 2 * (limit * threads) as u64, "for the clients");
    let top = "connections_max = 10000\nupstream_idle_connections_max = 0";
    let one = Setup::new(threads).top(OWN).after(&format!("ulimit -n {limit}")).top(top);
    let one = one.pool("standard", &[&origin]);
    let switch = one.start();
    let address = switch.address("shop");
    // Until no thread takes another client.
    let mut crowd = Vec::new();
    let mut refused = 0;
    while refused < 20 * threads {
        assert!(crowd.len() < 2 * limit * threads, "more than the descriptors");
        let mut client = Client::plain(address);
        drop(client.try_send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
        let answer = client.response();
        if answer.head.field("connection") == Some("close") { refused += 1 } else { crowd.push(client) }
    }
    let many = (0..LISTENERS).fold(one, |setup, number| setup.another_listener(&format!("more{number}")));
    switch.reload(&many, 2);
    let more: Vec<SocketAddr> =
        (0..LISTENERS).map(|number| switch.address(&format!("more{number}"))).collect();
    let tables = || descriptors_of(switch.id()).expect("it runs");
    until("a full table", || tables().iter().any(|count| *count >= limit).then_some(()));
    drop(crowd);
    until("room in every table", || tables().iter().all(|count| *count + 20 < limit).then_some(()));
    for address in more {
        for _ in 0..2 * threads {
            assert_eq!(Client::plain(address).get("/").status(), 200);
        }
    }
}

/// What stands behind the descriptors of the process, as tools see them.
fn descriptors_of_the_process(switch: &Switch) -> Vec<PathBuf> {
    let folder = Path::new("/proc").join(switch.id().to_string()).join("fd");
    let entries = std::fs::read_dir(folder).expect("it runs");
    entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()).collect()
}
