//! Alerts that clients get which break the protocol: what RFC 8446 says, and where the library does otherwise
//! (docs/adr/0086).

use ::aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::{ClientConnection, ConnectionTrafficSecrets};
use tokio::io::DuplexStream;

use super::*;

const UNEXPECTED_MESSAGE: u8 = 10;
const RECORD_OVERFLOW: u8 = 22;
const HANDSHAKE_FAILURE: u8 = 40;
const DECODE_ERROR: u8 = 50;
const MISSING_EXTENSION: u8 = 109;
const KEY_SHARE: u16 = 51;

fn hello(site: &Site) -> Vec<u8> {
    let config = Arc::new(site.client_of(&[&rustls::version::TLS13]));
    let mut client = ClientConnection::new(config, ServerName::try_from("shop.example").unwrap()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hello
}

/// The same hello without one of its extensions.
fn without(hello: &[u8], kind: u16) -> Vec<u8> {
    let number = |at: usize| usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    // Record and message heads, version, random; then session id, suites and compressions.
    let mut at = 5 + 4 + 2 + 32;
    at += 1 + usize::from(hello[at]);
    at += 2 + number(at);
    at += 1 + usize::from(hello[at]);
    let (start, mut extensions) = (at, Vec::new());
    at += 2;
    while at < hello.len() {
        let end = at + 4 + number(at + 2);
        if number(at) != usize::from(kind) {
            extensions.extend_from_slice(&hello[at..end]);
        }
        at = end;
    }
    let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
    let body = [&hello[9..start], &length(extensions.len()), &extensions].concat();
    let message = [&[1, 0][..], &length(body.len()), &body].concat();
    record(22, &message)
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3], &u16::try_from(content.len()).unwrap().to_be_bytes()[..], content].concat()
}

/// The alert that a client gets for these first bytes, if it gets one.
async fn alert_for(acceptor: &Acceptor, wire: &[u8]) -> Option<u8> {
    let (mut near, far) = tokio::io::duplex(256 * 1024);
    near.write_all(wire).await.unwrap();
    near.shutdown().await.unwrap();
    acceptor.accept(far).await.expect_err("a broken hello");
    let mut said = Vec::new();
    near.read_to_end(&mut said).await.unwrap();
    match said.as_slice() {
        [] => None,
        [.., 2, alert] if said[0] == 21 => Some(*alert),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn alerts_of_broken_first_flights() {
    let site = Site::new();
    let acceptor = Acceptor::build(&settings(&[&site.issue("shop", &["shop.example"])]), None).unwrap();
    let hello = hello(&site);
    let split = [&record(22, &hello[5..60]), &record(23, b"data"), &record(22, &hello[60..])[..]].concat();
    // What the RFC says, and what is sent.
    let rows = [
        ("an empty alert", record(21, b""), UNEXPECTED_MESSAGE, Some(DECODE_ERROR)),
        ("a heartbeat", record(24, b"\x01\0\0"), UNEXPECTED_MESSAGE, Some(DECODE_ERROR)),
        ("data within a message", split, UNEXPECTED_MESSAGE, None),
        ("no key_share", without(&hello, KEY_SHARE), MISSING_EXTENSION, Some(HANDSHAKE_FAILURE)),
        ("a record over 2^14", record(22, &[0; 16 * 1024 + 1]), RECORD_OVERFLOW, Some(UNEXPECTED_MESSAGE)),
    ];
    let mut came = Vec::new();
    for (what, wire, _, _) in &rows {
        came.push((*what, alert_for(&acceptor, wire).await));
    }
    let expected: Vec<_> = rows.iter().map(|(what, _, _, sent)| (*what, *sent)).collect();
    assert_eq!(came, expected);
}

/// A connection after its handshake, with what a client seals records by.
struct Sealing {
    stream: crate::TlsStream<DuplexStream>,
    near: DuplexStream,
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
}

impl Sealing {
    async fn begin(site: &Site) -> Sealing {
        let acceptor = Acceptor::build(&settings(&[&site.issue("shop", &["shop.example"])]), None).unwrap();
        let mut config = site.client_of(&[&rustls::version::TLS13]);
        config.enable_secret_extraction = true;
        let name = ServerName::try_from("shop.example").unwrap();
        let (mut near, far) = tokio::io::duplex(256 * 1024);
        let client_side = async {
            let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
            loop {
                let mut out = Vec::new();
                while client.wants_write() {
                    client.write_tls(&mut out).unwrap();
                }
                near.write_all(&out).await.unwrap();
                if !client.is_handshaking() {
                    break client.dangerous_extract_secrets().unwrap();
                }
                let mut room = vec![0; 16 * 1024];
                let bytes = near.read(&mut room).await.unwrap();
                let mut came = &room[..bytes];
                while !came.is_empty() {
                    client.read_tls(&mut came).unwrap();
                    client.process_new_packets().unwrap();
                }
            }
        };
        let (secrets, stream) = tokio::join!(client_side, acceptor.accept(far));
        let (sequence, ConnectionTrafficSecrets::Aes256Gcm { key, iv }) = secrets.tx else {
            panic!("another suite")
        };
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key.as_ref()).unwrap());
        let iv = iv.as_ref().try_into().unwrap();
        Sealing { stream: stream.unwrap(), near, key, iv, sequence }
    }

    /// Sends an inner plaintext as a record (RFC 8446 section 5.2).
    async fn send(&mut self, inner: &[u8]) {
        let length = u16::try_from(inner.len() + 16).unwrap().to_be_bytes();
        let head = [23, 3, 3, length[0], length[1]];
        let mut nonce = self.iv;
        nonce[4..]
            .iter_mut()
            .zip(self.sequence.to_be_bytes())
            .for_each(|(byte, of_number)| *byte ^= of_number);
        self.sequence += 1;
        let mut sealed = inner.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(nonce, Aad::from(head), &mut sealed).unwrap();
        self.near.write_all(&[&head[..], &sealed].concat()).await.unwrap();
    }

    /// How many records the server sends from here to its end.
    async fn records_to_the_end(mut self) -> usize {
        self.stream.shutdown().await.unwrap();
        drop(self.stream);
        let mut said = Vec::new();
        self.near.read_to_end(&mut said).await.unwrap();
        let (mut rest, mut records) = (&said[..], 0);
        while let [_, _, _, high, low, behind @ ..] = rest {
            rest = &behind[usize::from(u16::from_be_bytes([*high, *low]))..];
            records += 1;
        }
        records
    }
}

/// The library says nothing of a record that is all padding; what is ours is not to say that all ended well.
#[tokio::test]
async fn no_farewell_follows_a_breach_of_the_protocol() {
    let site = Site::new();
    let mut room = [0; 16];
    let mut good = Sealing::begin(&site).await;
    good.send(b"ping\x17").await;
    assert_eq!(good.stream.read(&mut room).await.unwrap(), 4);
    let with_farewell = good.records_to_the_end().await;
    let mut broken = Sealing::begin(&site).await;
    broken.send(&[0; 8]).await;
    let error = broken.stream.read(&mut room).await.unwrap_err();
    assert_eq!(error.to_string(), "the peer breaks the protocol: illegal tls inner plaintext");
    assert_eq!(broken.records_to_the_end().await, with_farewell - 1);
    // Where the library does send an alert, it is the last record.
    let mut overlong = Sealing::begin(&site).await;
    overlong.send(&[&[b'a'; 16 * 1024 + 1][..], &[23]].concat()).await;
    assert!(overlong.stream.read(&mut room).await.is_err());
    assert_eq!(overlong.records_to_the_end().await, with_farewell);
}
