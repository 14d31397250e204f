//! A client that resumes its TLS session stays with its server, wherever it comes from and whichever process it meets.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

use pointsman_e2e::{
    Authority, Client, OpensslClient, Origin, Pair, Setup, Switch, TlsClient, installed, scale, tool,
};

pointsman_e2e::for_threads!(
    from_any_address,
    over_upgrades,
    new_without_resumption,
    over_http2,
    on_each_process_with_the_keys,
    keys_are_read_again,
    who_cannot_resume_stays_for_a_connection,
    openssl_from_any_address,
    nothing_on_plain_connections
);

const KEY: &str = "3f1c8e5a90b7d2466bfa13c09e8d7752a4c1e0935f6db87724a90c1ee8f35d6b";
const OTHER_KEY: &str = "c07be2f4815d3a96f20e6d7c4ab9815360d4fe82a71c9b3580e6f142d97ac83b";
const RULE: &str =
    "R1: { setHeader(\"x-resumed\", \"${tls.resumed}\"); routeTo(standard, STICKY_ON_TLS_SESSION); }";

fn six() -> Vec<Origin> {
    (0..6).map(|number| Origin::new(&format!("s{number}"))).collect()
}

fn setup(threads: usize, pair: &Pair, keys: &str, origins: &[Origin]) -> Setup {
    let servers: Vec<&Origin> = origins.iter().collect();
    Setup::new(threads).tls(pair, keys).rules(RULE).pool("standard", &servers)
}

/// A connection from an address of this machine, and the server that answers on it.
fn ask(switch: &Switch, source: u8, trust: &TlsClient) -> (bool, String) {
    let source = IpAddr::from(Ipv4Addr::new(127, 0, 0, source));
    let client = Client::plain_from(source, switch.address("shop"));
    let mut client = client.into_tls(trust, "shop.example").expect("a handshake");
    let server = client.get("/").server().to_owned();
    (client.resumed(), server)
}

/// So many clients that remember their sessions; each value is one of them.
fn clients(authority: &Authority, count: usize) -> Vec<TlsClient> {
    let versions = [TlsClient::v13, TlsClient::v12];
    (0..count).map(|number| versions[number % 2](authority)).collect()
}

/// A thousand clients in full. Each comes back three times from other addresses, over a reload, too.
fn from_any_address(threads: usize) {
    let (authority, origins) = (Authority::new("test CA"), six());
    let setup = setup(threads, &authority.server(&["shop.example"]), "", &origins);
    let switch = setup.start();
    let mut all = HashSet::new();
    let clients: Vec<_> = clients(&authority, scale(60, 1000))
        .into_iter()
        .map(|trust| {
            let (resumed, first) = ask(&switch, 1, &trust);
            assert!(!resumed);
            all.insert(first.clone());
            (trust, first)
        })
        .collect();
    assert!(all.len() > 3, "{} clients on {all:?}", clients.len());
    for source in [2, 3] {
        for (trust, first) in &clients {
            assert_eq!(ask(&switch, source, trust), (true, first.clone()), "from 127.0.0.{source}");
        }
    }
    switch.reload(&setup.rules(&format!("R0: if (path == \"/new\") {{ discard(); }} {RULE}")), 2);
    for (trust, first) in &clients {
        assert_eq!(ask(&switch, 4, trust), (true, first.clone()), "after a reload");
    }
}

/// The keys that a process has drawn pass to the next one, and to the one after that. A
/// listener that asks for certificates from then on takes nobody's tickets of before.
fn over_upgrades(threads: usize) {
    let (authority, origins) = (Authority::new("test CA"), six());
    let pair = authority.server(&["shop.example"]);
    let setup = setup(threads, &pair, "", &origins);
    let mut switch = setup.start();
    let clients: Vec<_> = clients(&authority, scale(20, 1000))
        .into_iter()
        .map(|trust| {
            let (_, first) = ask(&switch, 1, &trust);
            (trust, first)
        })
        .collect();
    for threads in [threads + 1, 1] {
        switch.upgrade_to(&self::setup(threads, &pair, "", &origins));
        switch.wait_for_predecessors();
        for (trust, first) in &clients {
            assert_eq!(ask(&switch, 2, trust), (true, first.clone()));
        }
    }
    let asking = "client_ca = \"ca.crt\"\nclient_auth = \"request\"";
    switch.upgrade_to(&self::setup(threads, &pair, asking, &origins).file("ca.crt", &authority.pem()));
    switch.wait_for_predecessors();
    assert!(
        clients.iter().all(|(trust, _)| !ask(&switch, 3, trust).0),
        "it never looked at their certificates"
    );
}

fn new_without_resumption(threads: usize) {
    let (authority, origins) = (Authority::new("test CA"), six());
    let switch = setup(threads, &authority.server(&["shop.example"]), "", &origins).start();
    let trust = TlsClient::new(&authority).forgetful();
    let seen: HashSet<_> = (0..40).map(|_| ask(&switch, 1, &trust)).collect();
    assert!(seen.len() > 1, "40 new clients on {seen:?}");
    assert!(seen.iter().all(|(resumed, _)| !resumed));
}

/// All streams of a connection are of one session.
fn over_http2(threads: usize) {
    let (authority, origins) = (Authority::new("test CA"), six());
    let switch = setup(threads, &authority.server(&["shop.example"]), "", &origins).start();
    if !installed("curl") {
        return;
    }
    let url = format!("https://shop.example:{}/", switch.address("shop").port());
    let resolve = format!("shop.example:{}:127.0.0.1", switch.address("shop").port());
    std::fs::write(switch.folder().join("ca.pem"), authority.pem()).expect("a folder of ours");
    let arguments =
        ["-s", "--http2", "--cacert", "ca.pem", "--resolve", &resolve, "-o", "/dev/null", "-D", "-"];
    let urls = [url.as_str(); 5];
    let finished = tool(switch.folder(), "curl", &[&arguments[..], &urls[..]].concat()).expect("curl");
    let servers: HashSet<_> =
        finished.stdout.lines().filter_map(|line| line.strip_prefix("x-server: ")).collect();
    assert_eq!(servers.len(), 1, "{}", finished.output());
}

/// Two processes with the same keys are one to a client; one with others is not.
fn on_each_process_with_the_keys(threads: usize) {
    let (authority, origins) = (Authority::new("test CA"), six());
    let setup =
        setup(threads, &authority.server(&["shop.example"]), "ticket_key_file = \"tickets\"", &origins);
    let (here, there) = (setup.clone().file("tickets", KEY), setup.clone().file("tickets", KEY));
    let (here, there, stranger) = (here.start(), there.start(), setup.file("tickets", OTHER_KEY).start());
    let clients = clients(&authority, scale(30, 1000));
    for trust in &clients {
        let (_, first) = ask(&here, 1, trust);
        assert_eq!(ask(&there, 2, trust), (true, first.clone()));
        assert_eq!(ask(&here, 3, trust), (true, first));
    }
    for trust in clients.iter().take(4) {
        assert!(!ask(&stranger, 1, trust).0);
    }
}

/// A new key takes over in steps, each of them a reload, and no client notices.
fn keys_are_read_again(threads: usize) {
    let (authority, origins) = (Authority::new("test CA"), six());
    let setup =
        setup(threads, &authority.server(&["shop.example"]), "ticket_key_file = \"tickets\"", &origins);
    let switch = setup.clone().file("tickets", KEY).start();
    let clients: Vec<_> = clients(&authority, 8)
        .into_iter()
        .map(|trust| {
            let (_, first) = ask(&switch, 1, &trust);
            (trust, first)
        })
        .collect();
    let steps = [format!("{KEY}\n{OTHER_KEY}"), format!("{OTHER_KEY}\n{KEY}"), OTHER_KEY.to_owned()];
    for (keys, generation) in steps.iter().zip(2..) {
        switch.reload(&setup.clone().file("tickets", keys), generation);
        for (trust, first) in &clients {
            assert_eq!(ask(&switch, 2, trust), (true, first.clone()), "reload {generation}");
        }
    }
    switch.reload(&setup.file("tickets", KEY), 5);
    assert!(clients.iter().all(|(trust, _)| !ask(&switch, 1, trust).0), "that key is gone");
}

fn who_cannot_resume_stays_for_a_connection(threads: usize) {
    let (authority, origins) = (Authority::new("test CA"), six());
    let switch = setup(threads, &authority.server(&["shop.example"]), "tickets = false", &origins).start();
    assert!(switch.said().contains("keeps clients for one connection only"), "{}", switch.said());
    let mut all = HashSet::new();
    for _ in 0..30 {
        let mut client = switch.tls_client(&TlsClient::new(&authority), "shop.example").expect("a handshake");
        let first = client.get("/").server().to_owned();
        assert!((0..4).all(|_| client.get("/").server() == first));
        all.insert(first);
    }
    assert!(all.len() > 1, "30 connections on {all:?}");
}

/// A client of others, with a session in a file.
fn openssl_from_any_address(threads: usize) {
    let (authority, origins) = (Authority::new("test CA"), six());
    let switch = setup(threads, &authority.server(&["shop.example"]), "", &origins).start();
    let request = "GET / HTTP/1.1\\r\\nHost: shop.example\\r\\nConnection: close\\r\\n\\r\\n";
    for (option, version) in [("-tls1_3", "TLSv1.3"), ("-tls1_2", "TLSv1.2")] {
        let (folder, address) = (switch.folder(), switch.address("shop"));
        let Some(client) = OpensslClient::new(folder, address, option, request, "X-Server: ") else {
            return;
        };
        for _ in 0..3 {
            let first = client.begin(1);
            for source in 2..5 {
                let again = client.resume(source);
                assert_eq!(again.server, first.server, "{version}");
                assert_eq!(again.resumed.as_deref(), Some(version));
            }
        }
    }
}

/// They have no session: each request goes to one of the servers by the pool's own choice, and that was said.
fn nothing_on_plain_connections(threads: usize) {
    let origins = six();
    let servers: Vec<&Origin> = origins.iter().collect();
    let switch = Setup::new(threads).rules(RULE).pool("standard", &servers).start();
    assert!(switch.said().contains("keeps nobody: this listener speaks no TLS"), "{}", switch.said());
    let mut client = switch.client();
    let seen: HashSet<_> = (0..12).map(|_| client.get("/").server().to_owned()).collect();
    assert_eq!(seen.len(), 6, "{seen:?}");
}
