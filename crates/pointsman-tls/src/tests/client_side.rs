//! The blocking client, against this crate's own server over loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use super::*;
use crate::{Client, ClientStream};

/// Accepts once, echoes four bytes, and says what was agreed on.
fn echo_once(acceptor: Acceptor) -> (SocketAddr, JoinHandle<io::Result<PeerFacts>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let stream = listener.accept()?.0;
        stream.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(async {
            let mut stream = acceptor.accept(tokio::net::TcpStream::from_std(stream)?).await?;
            let mut ping = [0; 4];
            stream.read_exact(&mut ping).await?;
            stream.write_all(&ping).await?;
            stream.shutdown().await?;
            Ok(stream.facts())
        })
    });
    (address, server)
}

fn connect_to(
    acceptor: &Acceptor,
    client: &Client,
    name: &str,
) -> (io::Result<ClientStream>, io::Result<PeerFacts>) {
    let (address, server) = echo_once(acceptor.clone());
    let mut connected = client.connect(TcpStream::connect(address).unwrap(), name);
    if let Ok(stream) = &mut connected {
        stream.write_all(b"ping").unwrap();
        let mut echo = Vec::new();
        stream.read_to_end(&mut echo).unwrap();
        assert_eq!(echo, b"ping");
    }
    (connected, server.join().unwrap())
}

#[test]
fn it_talks_to_whom_it_trusts_and_resumes() {
    let site = Site::new();
    let acceptor = Acceptor::build(&settings(&[&site.issue("shop", &["shop.example"])]), None).unwrap();
    let client = Client::trusting(&site.write("ca.crt", site.authority.pem())).unwrap();
    let (stream, facts) = connect_to(&acceptor, &client, "shop.example");
    assert_eq!(stream.as_ref().unwrap().version(), "1.3");
    assert_eq!(stream.unwrap().key_exchange(), Some("X25519MLKEM768"));
    let facts = facts.unwrap();
    assert_eq!((facts.sni.as_deref(), facts.alpn.as_deref()), (Some("shop.example"), Some(&b"http/1.1"[..])));
    assert!(!facts.resumed);
    assert!(connect_to(&acceptor, &client, "shop.example").1.unwrap().resumed);
}

#[test]
fn it_refuses_other_names_and_other_authorities() {
    let site = Site::new();
    let acceptor = Acceptor::build(&settings(&[&site.issue("shop", &["shop.example"])]), None).unwrap();
    let client = Client::trusting(&site.write("ca.crt", site.authority.pem())).unwrap();
    assert!(error_text(connect_to(&acceptor, &client, "other.example").0).contains("certificate"));
    let stranger = Client::trusting(&site.write("other.crt", Site::new().authority.pem())).unwrap();
    assert!(error_text(connect_to(&acceptor, &stranger, "shop.example").0).contains("certificate"));
    let empty = site.write("empty.crt", "");
    assert_eq!(Client::trusting(&empty).unwrap_err()[0].file(), Some(empty.as_path()));
}
