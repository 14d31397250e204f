//! Who stands before a server, in a test that is not only about the switch.

use std::net::SocketAddr;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::{Authority, Nginx, Setup, Switch, TlsClient};

/// The name of the certificate.
pub const FRONT_NAME: &str = "shop.example";

/// The switch or nginx in its place: in plain text, and under TLS for [`FRONT_NAME`].
pub struct Front {
    plain: SocketAddr,
    http2: SocketAddr,
    tls: SocketAddr,
    authority: Authority,
    folder: TempDir,
    running: Running,
}

enum Running {
    Switch(Box<Switch>),
    Nginx(Nginx),
}

impl Front {
    /// The switch: the listener of `setup`, and one alike under TLS.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn switch(setup: Setup, server: SocketAddr) -> Self {
        Self::switch_with(setup, "", server)
    }

    /// The same with keys of the pool: `protocol = "h2"`.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn switch_with(setup: Setup, keys: &str, server: SocketAddr) -> Self {
        let authority = Authority::new("front");
        let setup = setup.pool_at("standard", keys, &[("server", server)]).listener_alike("tls");
        let switch = setup.tls(&authority.server(&[FRONT_NAME]), "").start();
        let (plain, tls) = (switch.address("shop"), switch.address("tls"));
        Self::of(plain, plain, tls, authority, Running::Switch(Box::new(switch)))
    }

    /// nginx: where a test fails before it, the test is wrong, or its peers are.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn nginx(server: SocketAddr) -> Self {
        let authority = Authority::new("front");
        let nginx = Nginx::before(server, &authority.server(&[FRONT_NAME]));
        let [http2, tls, plain] = [0, 1, 2].map(|index| nginx.address(index));
        Self::of(plain, http2, tls, authority, Running::Nginx(nginx))
    }

    fn of(
        plain: SocketAddr,
        http2: SocketAddr,
        tls: SocketAddr,
        authority: Authority,
        running: Running,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).expect("a writable folder");
        Self { plain, http2, tls, authority, folder, running }
    }

    /// Where HTTP/1 is spoken without TLS.
    #[must_use]
    pub fn plain(&self) -> SocketAddr {
        self.plain
    }

    /// Where HTTP/2 is spoken without TLS, with prior knowledge. For the switch it is the same place.
    #[must_use]
    pub fn http2(&self) -> SocketAddr {
        self.http2
    }

    /// Where TLS is.
    #[must_use]
    pub fn tls(&self) -> SocketAddr {
        self.tls
    }

    /// A client that trusts its certificate and offers HTTP/2 alone.
    #[must_use]
    pub fn trust(&self) -> TlsClient {
        TlsClient::new(&self.authority).alpn(&["h2"])
    }

    /// The file of the authority, for the clients of others.
    #[must_use]
    pub fn authority_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// What it complained about.
    #[must_use]
    pub fn said(&self) -> String {
        match &self.running {
            Running::Switch(switch) => switch.said(),
            Running::Nginx(nginx) => nginx.said(),
        }
    }
}
