//! `STICKY_ON_TLS_SESSION` where the servers end TLS: whoever shows a session again comes to the server that began it.

use std::collections::HashSet;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};

use pointsman_e2e::{
    Authority, Client, OpensslClient, OpensslServer, Origin, Pair, RawOrigin, Setup, Switch, TlsClient,
    TlsServer, echo, installed, read_some, scale,
};

pointsman_e2e::for_threads!(
    by_an_identifier,
    by_a_ticket,
    under_tls_1_3_by_the_pool,
    over_a_reload_with_other_servers,
    where_its_server_is_gone,
    with_its_target,
    in_its_share,
    openssl_by_an_identifier,
    openssl_by_a_ticket,
    nothing_is_learned_of_other_bytes,
);

const RULE: &str = "R1: { routeTo(standard, STICKY_ON_TLS_SESSION); }";

/// Sessions are known by identifiers, or by tickets.
#[derive(Clone, Copy)]
enum Names {
    Ids,
    Tickets,
}

fn servers(pair: &Pair, names: Names, count: usize) -> Vec<Origin> {
    let secured = |number: usize| {
        let tls = TlsServer::new(pair);
        let tls = if let Names::Ids = names { tls.without_tickets() } else { tls };
        Origin::secured(&format!("s{number}"), &tls, echo)
    };
    (0..count).map(secured).collect()
}

fn setup(threads: usize, servers: &[Origin]) -> Setup {
    let servers: Vec<&Origin> = servers.iter().collect();
    let setup = Setup::new(threads).listener("protocol = \"tls-passthrough\"");
    setup.rules(RULE).pool("standard", &servers)
}

/// A connection from an address of this machine: whether it resumes, and the server that ends it.
fn ask(switch: &Switch, source: u8, trust: &TlsClient) -> (bool, String) {
    let source = IpAddr::from(Ipv4Addr::new(127, 0, 0, source));
    let client = Client::plain_from(source, switch.address("shop"));
    let mut client = client.into_tls(trust, "shop.example").expect("a handshake");
    let server = client.get("/").server().to_owned();
    (client.resumed(), server)
}

/// Clients that have a session each, with its server.
fn begin(switch: &Switch, authority: &Authority, count: usize) -> Vec<(TlsClient, String)> {
    let begun = (0..count).map(|_| {
        let trust = TlsClient::v12(authority);
        let (resumed, server) = ask(switch, 1, &trust);
        assert!(!resumed);
        (trust, server)
    });
    begun.collect()
}

/// From another address each.
fn all_stay(switch: &Switch, clients: &[(TlsClient, String)], sources: std::ops::Range<u8>) {
    for source in sources {
        for (trust, server) in clients {
            assert_eq!(ask(switch, source, trust), (true, server.clone()), "from 127.0.0.{source}");
        }
    }
}

fn all_come_back(threads: usize, names: Names) {
    let authority = Authority::new("test CA");
    let servers = servers(&authority.server(&["shop.example"]), names, 5);
    let switch = setup(threads, &servers).start();
    let clients = begin(&switch, &authority, scale(20, 500));
    assert_eq!(clients.iter().map(|(_, server)| server).collect::<HashSet<_>>().len(), 5);
    all_stay(&switch, &clients, 2..5);
    assert!(switch.metric("pointsman_sticky_clients", &[]) >= clients.len() as f64);
}

fn by_an_identifier(threads: usize) {
    all_come_back(threads, Names::Ids);
}

/// Each resumption brings another ticket, which is learned, too.
fn by_a_ticket(threads: usize) {
    all_come_back(threads, Names::Tickets);
}

/// Nothing names a session there: they go by turn, as others do, also those who could resume, and take no place in the table.
fn under_tls_1_3_by_the_pool(threads: usize) {
    let authority = Authority::new("test CA");
    let servers = servers(&authority.server(&["shop.example"]), Names::Tickets, 4);
    let switch = setup(threads, &servers).start();
    let trust = [TlsClient::new(&authority), TlsClient::v13(&authority)];
    for source in 1..21 {
        ask(&switch, source, &trust[usize::from(source) % 2]);
    }
    let counts: Vec<_> = servers.iter().map(Origin::connections).collect();
    if threads == 1 {
        assert_eq!(counts, [5; 4]);
    }
    assert_eq!(counts.iter().sum::<usize>(), 20);
    assert!(switch.metric("pointsman_sticky_clients", &[]) < 0.5);
}

fn over_a_reload_with_other_servers(threads: usize) {
    let authority = Authority::new("test CA");
    let servers = servers(&authority.server(&["shop.example"]), Names::Ids, 5);
    let switch = setup(threads, &servers[..3]).start();
    let clients = begin(&switch, &authority, 12);
    switch.reload(&setup(threads, &servers), 2);
    all_stay(&switch, &clients, 2..4);
}

/// Another one begins a session with it, and has it from then on.
fn where_its_server_is_gone(threads: usize) {
    let authority = Authority::new("test CA");
    let mut servers = servers(&authority.server(&["shop.example"]), Names::Ids, 3);
    let switch = setup(threads, &servers).start();
    let mut clients = begin(&switch, &authority, 9);
    let gone = servers.remove(0);
    drop(gone);
    for (trust, server) in &mut clients {
        let (resumed, other) = ask(&switch, 2, trust);
        assert_eq!(resumed, *server != "s0");
        assert_ne!(other, "s0");
        assert!(!resumed || other == *server);
        *server = other;
    }
    all_stay(&switch, &clients, 3..5);
}

/// With `sticky_scope = "listener"` the session stays with the pool that it began in, whatever the rules say of its next address.
fn with_its_target(threads: usize) {
    let authority = Authority::new("test CA");
    let pair = authority.server(&["shop.example"]);
    let here = servers(&pair, Names::Ids, 3);
    let there = Origin::secured("there", &TlsServer::new(&pair), echo);
    let rules =
        "R1: if (srcip == 127.0.0.1) { routeTo(standard, STICKY_ON_TLS_SESSION); } R2: { routeTo(other); }";
    let setup = setup(threads, &here).rules(rules).pool("other", &[&there]);
    let switch = setup.listener("sticky_scope = \"listener\"").start();
    let clients = begin(&switch, &authority, 6);
    all_stay(&switch, &clients, 2..4);
    assert_eq!(ask(&switch, 2, &TlsClient::v12(&authority)), (false, "there".to_owned()));
}

fn in_its_share(threads: usize) {
    let authority = Authority::new("test CA");
    let pair = authority.server(&["shop.example"]);
    let (stable, canary) = (
        servers(&pair, Names::Ids, 3),
        Origin::secured("new", &TlsServer::new(&pair).without_tickets(), echo),
    );
    let rules = "R1: { routeTo(split(50: standard, 50: canary.new), STICKY_ON_TLS_SESSION); }";
    let switch = setup(threads, &stable).rules(rules).pool("canary", &[&canary]).start();
    let clients = begin(&switch, &authority, 30);
    let of_canary = clients.iter().filter(|(_, server)| server == "new").count();
    // By chance alone once in a thousand million runs.
    assert!((1..30).contains(&of_canary));
    all_stay(&switch, &clients, 2..4);
}

/// Servers and a client that nobody here wrote, the client with its session in a file. It also offers TLS 1.3, as those do
/// whose servers do not speak it.
fn openssl(threads: usize, options: &[&str]) {
    if !installed("openssl") {
        return;
    }
    let pair = Authority::new("test CA").server(&["shop.example"]);
    let names = ["s0", "s1", "s2", "s3"];
    let servers = names.map(|name| OpensslServer::start(name, &pair, &[&["-tls1_2"], options].concat()));
    let addresses: Vec<_> = names.into_iter().zip(servers.iter().map(OpensslServer::address)).collect();
    let setup = Setup::new(threads).listener("protocol = \"tls-passthrough\"").rules(RULE);
    let switch = setup.pool_at("standard", "", &addresses).start();
    let request = "GET /name HTTP/1.0\\r\\n\\r\\n";
    let Some(client) = OpensslClient::new(switch.folder(), switch.address("shop"), "", request, "Name: ")
    else {
        return;
    };
    for _ in 0..4 {
        let first = client.begin(1);
        assert_eq!(first.resumed, None);
        for source in 2..5 {
            let again = client.resume(source);
            assert_eq!(again.server, first.server, "from 127.0.0.{source}");
            assert_eq!(again.resumed.as_deref(), Some("TLSv1.2"), "from 127.0.0.{source}");
        }
    }
}

fn openssl_by_an_identifier(threads: usize) {
    openssl(threads, &["-no_ticket"]);
}

fn openssl_by_a_ticket(threads: usize) {
    openssl(threads, &["-no_cache"]);
}

/// A server that speaks no TLS is passed on as it is, to the last byte.
fn nothing_is_learned_of_other_bytes(threads: usize) {
    let hello = TlsClient::v12(&Authority::new("test CA")).hello("shop.example");
    for said in [&b"220 mail\r\n"[..], b"\x16\x03\x03\x00\x01\x02", b"\x16\x03\x03\x40\x01\x02\xff\xff\xff"] {
        let server = RawOrigin::serving(move |mut socket, _| {
            let mut space = [0; 4096];
            if read_some(&mut socket, &mut space).is_ok() {
                for byte in said {
                    drop(socket.write_all(&[*byte]));
                }
            }
        });
        let setup = Setup::new(threads).listener("protocol = \"tls-passthrough\"").rules(RULE);
        let switch = setup.pool_at("standard", "", &[("s", server.address())]).start();
        let mut client = switch.client();
        client.begin_tunnel();
        client.send(&hello);
        client.expect_body(said);
        assert!(client.closes());
        assert!(switch.metric("pointsman_sticky_clients", &[]) < 0.5);
    }
}
