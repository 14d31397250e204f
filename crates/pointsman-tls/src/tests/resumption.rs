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
        assert!(error_text(refused).contains("peer sent no certificates"));
    }
}
