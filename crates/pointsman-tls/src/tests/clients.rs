//! Client certificates, and the bytes after a handshake.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use super::*;
use crate::client_chain::ClientChain;

fn asking(site: &Site, issued: &Issued, auth: ClientAuth) -> Acceptor {
    let settings = ServerTls {
        client_ca: Some(site.write("ca.crt", site.authority.pem())),
        client_auth: auth,
        ..settings(&[issued])
    };
    Acceptor::build(&settings, None).unwrap()
}

#[tokio::test]
async fn each_mode_lets_in_whom_it_should() {
    let site = Site::new();
    let elsewhere = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let right = site.issue("right", &["client.example"]);
    let wrong = elsewhere.issue("wrong", &["client.example"]);
    for (auth, silent_gets_in, right_is_seen, wrong_gets_in) in [
        // A client that is not asked shows nothing.
        (ClientAuth::Off, true, false, true),
        (ClientAuth::Request, true, true, false),
        (ClientAuth::Require, false, true, false),
    ] {
        let acceptor = asking(&site, &issued, auth);
        let silent = connect(&acceptor, &Arc::new(site.client()), "shop.example").await;
        assert_eq!(silent.is_ok(), silent_gets_in, "{auth:?}");
        assert!(silent.is_err() || silent.unwrap().facts.client.is_none());
        let shown = connect(&acceptor, &Arc::new(site.client_showing(&right)), "shop.example").await;
        assert_eq!(shown.unwrap().facts.client.is_some(), right_is_seen, "{auth:?}");
        let shown = connect(&acceptor, &Arc::new(site.client_showing(&wrong)), "shop.example").await;
        assert_eq!(shown.is_ok(), wrong_gets_in, "{auth:?}");
        for (client, is_known) in [(&right, right_is_seen), (&wrong, false)] {
            let chain = ClientChain::of(std::slice::from_ref(&client.der)).expect("a certificate");
            assert_eq!(acceptor.would_let_in(&chain), is_known, "{auth:?}");
        }
    }
}

#[tokio::test]
async fn an_expired_client_certificate_fails_the_handshake() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let mut expired = params(&["client.example"]);
    expired.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let client = site.issue_for("client", KeyPair::generate().unwrap(), expired);
    for auth in [ClientAuth::Request, ClientAuth::Require] {
        let acceptor = asking(&site, &issued, auth);
        let refused = connect(&acceptor, &Arc::new(site.client_showing(&client)), "shop.example").await;
        assert!(error_text(refused).contains("certificate has expired"));
    }
}

#[tokio::test]
async fn the_client_is_known_by_its_certificate() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let mut named = params(&["Client.Example"]);
    named.distinguished_name = rcgen::DistinguishedName::new();
    named.distinguished_name.push(DnType::CountryName, "DE");
    named.distinguished_name.push(DnType::OrganizationName, "Weichen, Signale + Söhne");
    named.distinguished_name.push(DnType::CustomDnType(vec![1, 2, 3, 4]), "x");
    named.distinguished_name.push(DnType::CommonName, "#1 ");
    named.subject_alt_names.extend([
        ip("192.0.2.7"),
        ip("2001:db8::7"),
        SanType::Rfc822Name("ops@client.example".try_into().unwrap()),
        SanType::URI("spiffe://client.example/ops".try_into().unwrap()),
        // Shapes that belong to another kind must not be taken for it.
        SanType::URI("192.0.2.9".try_into().unwrap()),
        SanType::URI("admin.example".try_into().unwrap()),
        SanType::DnsName("192.0.2.9".try_into().unwrap()),
        SanType::DnsName("root@client.example".try_into().unwrap()),
    ]);
    let client = site.issue_for("client", KeyPair::generate().unwrap(), named);
    let acceptor = asking(&site, &issued, ClientAuth::Require);
    let connected = connect(&acceptor, &Arc::new(site.client_showing(&client)), "shop.example").await;
    let identity = connected.unwrap().facts.client.unwrap();
    assert_eq!(identity.subject, r"CN=\#1\ ,1.2.3.4=#0c0178,O=Weichen\, Signale \+ Söhne,C=DE");
    assert_eq!(
        identity.sans,
        ["client.example", "192.0.2.7", "2001:db8::7", "ops@client.example", "spiffe://client.example/ops"]
    );
    let digest = ::aws_lc_rs::digest::digest(&::aws_lc_rs::digest::SHA256, &client.der);
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(identity.fingerprint, hex);
}

#[tokio::test]
async fn a_large_write_takes_few_calls_where_much_may_be_held() {
    let site = Site::new();
    let issued = site.issue("shop", &["shop.example"]);
    let acceptor = Acceptor::build(&settings(&[&issued]), None).unwrap();
    let (near, far) = tokio::io::duplex(1024 * 1024);
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Counted { inner: far, writes: writes.clone() };
    let server_side = async {
        let mut stream = acceptor.accept(counted).await.unwrap();
        stream.set_unsent_bytes_max(64 * 1024);
        let before = writes.load(Ordering::Relaxed);
        stream.write_all(&[7; 64 * 1024]).await.unwrap();
        stream.flush().await.unwrap();
        assert_eq!(writes.load(Ordering::Relaxed) - before, 1);
        stream.shutdown().await.unwrap();
    };
    let client_side = async {
        let name = ServerName::try_from("shop.example").unwrap();
        let connector = TlsConnector::from(Arc::new(site.client()));
        let mut stream = connector.connect(name, near).await.unwrap();
        let mut body = Vec::new();
        stream.read_to_end(&mut body).await.unwrap();
        assert_eq!(body, [7; 64 * 1024]);
    };
    tokio::join!(server_side, client_side);
}

/// Counts the writes that would be system calls.
struct Counted {
    inner: DuplexStream,
    writes: Arc<AtomicUsize>,
}

impl AsyncRead for Counted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}
