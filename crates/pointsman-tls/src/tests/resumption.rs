//! Sessions go on where they may, and nowhere else.

use rustls::client::{Resumption, Tls12Resumption};
use rustls::version::{TLS12, TLS13};

use super::*;

/// Clients in the three ways of resuming: tickets of 1.3, tickets of 1.2, session identifiers of 1.2.
fn clients(site: &Site) -> [Arc<ClientConfig>; 3] {
    let mut by_identifier = site.client_of(&[&TLS12]);
    by_identifier.resumption =
        Resumption::in_memory_sessions(8).tls12_resumption(Tls12Resumption::SessionIdOnly);
    [Arc::new(site.client_of(&[&TLS13])), Arc::new(site.client_of(&[&TLS12])), Arc::new(by_identifier)]
}

async fn resumed(acceptor: &Acceptor, client: &Arc<ClientConfig>) -> bool {
    connect(acceptor, client, "shop.example").await.unwrap().facts.resumed
}

#[tokio::test]
async fn the_second_connection_resumes() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let acceptor = Acceptor::build(&settings(&[&issued]), None).unwrap();
    for client in clients(&site) {
        assert!(!resumed(&acceptor, &client).await);
        assert!(resumed(&acceptor, &client).await);
        assert!(resumed(&acceptor, &client).await);
    }
}

#[tokio::test]
async fn without_tickets_nothing_resumes() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let with = settings(&[&issued]);
    let without = ServerTls { tickets: false, ..with.clone() };
    let previous = Acceptor::build(&with, None).unwrap();
    let acceptor = Acceptor::build(&without, Some(&previous)).unwrap();
    for client in clients(&site) {
        assert!(!resumed(&previous, &client).await);
        assert!(!resumed(&acceptor, &client).await);
        assert!(!resumed(&acceptor, &client).await);
    }
}

#[tokio::test]
async fn no_session_crosses_to_another_listener() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let settings = settings(&[&issued]);
    let one = Acceptor::build(&settings, None).unwrap();
    let other = Acceptor::build(&settings, None).unwrap();
    for client in clients(&site) {
        assert!(!resumed(&one, &client).await);
        assert!(!resumed(&other, &client).await);
    }
}

#[tokio::test]
async fn sessions_survive_a_reload_with_the_same_policy() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let before = settings(&[&issued]);
    // A renewed certificate and another list of protocols do not touch the policy.
    let after = ServerTls { alpn: Vec::new(), ..settings(&[&site.issue("renewed", &["shop.example"])]) };
    let previous = Acceptor::build(&before, None).unwrap();
    for client in clients(&site) {
        assert!(!resumed(&previous, &client).await);
        let acceptor = Acceptor::build(&after, Some(&previous)).unwrap();
        assert!(resumed(&acceptor, &client).await);
    }
}

#[tokio::test]
async fn sessions_end_when_the_authorities_change() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let client_certificate = site.issue("client", &["client.example"]);
    let authorities = site.write("ca.crt", site.authority.pem());
    let settings =
        ServerTls { client_ca: Some(authorities), client_auth: ClientAuth::Require, ..settings(&[&issued]) };
    let first = Acceptor::build(&settings, None).unwrap();
    let client = Arc::new(site.client_showing(&client_certificate));
    assert!(!resumed(&first, &client).await);
    assert!(resumed(&first, &client).await);

    let same = Acceptor::build(&settings, Some(&first)).unwrap();
    let connected = connect(&same, &client, "shop.example").await.unwrap();
    assert!(connected.facts.resumed);
    assert!(connected.facts.client.is_some(), "a resumed session keeps its client");

    // The same name, more authorities in it.
    site.write("ca.crt", site.authority.pem() + &Site::new().authority.pem());
    let changed = Acceptor::build(&settings, Some(&same)).unwrap();
    assert!(!resumed(&changed, &client).await);
}

#[tokio::test]
async fn sessions_end_when_the_mode_changes() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let off =
        ServerTls { client_ca: Some(site.write("ca.crt", site.authority.pem())), ..settings(&[&issued]) };
    let open = Acceptor::build(&off, None).unwrap();
    for client in clients(&site) {
        assert!(!resumed(&open, &client).await);
        assert!(resumed(&open, &client).await);
        let required = ServerTls { client_auth: ClientAuth::Require, ..off.clone() };
        let closed = Acceptor::build(&required, Some(&open)).unwrap();
        // An old session must not let in a client without a certificate.
        let refused = connect(&closed, &client, "shop.example").await;
        assert!(error_text(refused).contains("the peer shows no certificate"));
    }
}

const FIRST_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const SECOND_KEY: &str = "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";

/// Whether the session was resumed, and what it is known by.
async fn session(acceptor: &Acceptor, client: &Arc<ClientConfig>) -> (bool, SessionId) {
    let facts = connect(acceptor, client, "shop.example").await.unwrap().facts;
    (facts.resumed, facts.session.expect("there is randomness"))
}

#[tokio::test]
async fn a_session_keeps_its_id_over_all_resumptions() {
    let site = Site::new();
    let acceptor = Acceptor::build(&settings(&[&site.issue("shop", &["shop.example"])]), None).unwrap();
    for (client, other) in clients(&site).into_iter().zip(clients(&site)) {
        let (_, first) = session(&acceptor, &client).await;
        assert_ne!(session(&acceptor, &other).await, (false, first), "another client");
        for _ in 0..4 {
            assert_eq!(session(&acceptor, &client).await, (true, first));
        }
    }
}

#[tokio::test]
async fn without_resumption_each_connection_has_an_id_of_its_own() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let acceptor = Acceptor::build(&ServerTls { tickets: false, ..settings(&[&issued]) }, None).unwrap();
    for client in clients(&site) {
        let (first, second) = (session(&acceptor, &client).await, session(&acceptor, &client).await);
        assert!(first != second && !first.0 && !second.0);
    }
}

/// Settings with a file of ticket keys that says `keys`.
fn with_keys(site: &Site, issued: &Issued, file: &str, keys: &str) -> ServerTls {
    ServerTls { ticket_keys: Some(site.write(file, keys)), ..settings(&[issued]) }
}

#[tokio::test]
async fn who_has_the_same_keys_takes_the_same_tickets() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let here = Acceptor::build(&with_keys(&site, &issued, "keys", FIRST_KEY), None).unwrap();
    let there = Acceptor::build(&with_keys(&site, &issued, "keys", FIRST_KEY), None).unwrap();
    let stranger = Acceptor::build(&with_keys(&site, &issued, "others", SECOND_KEY), None).unwrap();
    // What is kept by identifiers is not shared.
    for client in &clients(&site)[..2] {
        let (_, first) = session(&here, client).await;
        assert_eq!(session(&there, client).await, (true, first));
        assert_eq!(session(&here, client).await, (true, first));
        let (resumed, other) = session(&stranger, client).await;
        assert!(!resumed && other != first);
    }
}

#[tokio::test]
async fn keys_rotate() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let build = |keys: &str, previous: Option<&Acceptor>| {
        Acceptor::build(&with_keys(&site, &issued, "keys", keys), previous).unwrap()
    };
    let old = build(FIRST_KEY, None);
    let both = build(&format!("{SECOND_KEY} # since today\n\n{FIRST_KEY}\n"), Some(&old));
    let new = build(SECOND_KEY, Some(&both));
    for client in &clients(&site)[..2] {
        let (_, first) = session(&old, client).await;
        assert_eq!(session(&both, client).await, (true, first), "the second key opens");
        assert_eq!(session(&new, client).await, (true, first), "the first key seals");
        let (resumed, _) = session(&old, client).await;
        assert!(!resumed, "it does not know the new key");
    }
}

#[tokio::test]
async fn keys_are_those_of_a_policy() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let open = ServerTls {
        client_ca: Some(site.write("ca.crt", site.authority.pem())),
        ..with_keys(&site, &issued, "keys", FIRST_KEY)
    };
    let required = ServerTls { client_auth: ClientAuth::Require, ..open.clone() };
    let (open, closed) = (Acceptor::build(&open, None).unwrap(), Acceptor::build(&required, None).unwrap());
    for client in clients(&site) {
        assert!(!resumed(&open, &client).await);
        // An old session must not let in a client without a certificate.
        assert!(connect(&closed, &client, "shop.example").await.is_err());
    }
}

/// What a ticket of TLS 1.2 says of its lifetime stands in the clear (RFC 5077 section 3.3).
#[tokio::test]
async fn a_ticket_says_how_long_it_is_good() {
    const HANDSHAKE: u8 = 22;
    const NEW_SESSION_TICKET: u8 = 4;
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let settings = ServerTls { session_s_max: 300, ..settings(&[&issued]) };
    let acceptor = Acceptor::build(&settings, None).unwrap();
    let config = Arc::new(site.client_of(&[&rustls::version::TLS12]));
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    let client_side = async {
        let name = ServerName::try_from("shop.example").unwrap();
        let mut client = rustls::ClientConnection::new(config, name).unwrap();
        let (mut came, mut out) = (Vec::new(), Vec::new());
        while client.is_handshaking() {
            while client.wants_write() {
                client.write_tls(&mut out).unwrap();
            }
            near.write_all(&std::mem::take(&mut out)).await.unwrap();
            let start = came.len();
            assert_ne!(near.read_buf(&mut came).await.unwrap(), 0);
            let mut new = &came[start..];
            while !new.is_empty() {
                client.read_tls(&mut new).unwrap();
                client.process_new_packets().unwrap();
            }
        }
        came
    };
    let (came, accepted) = tokio::join!(client_side, acceptor.accept(far));
    accepted.unwrap();
    let mut rest = &came[..];
    let mut lifetimes = Vec::new();
    while let [kind, _, _, high, low, behind @ ..] = rest {
        let (record, next) = behind.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        if let (HANDSHAKE, [NEW_SESSION_TICKET, _, _, _, a, b, c, d, ..]) = (*kind, record) {
            lifetimes.push(u32::from_be_bytes([*a, *b, *c, *d]));
        }
        rest = next;
    }
    assert_eq!(lifetimes, [300]);
}
