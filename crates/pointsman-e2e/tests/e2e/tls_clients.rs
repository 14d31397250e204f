//! Client certificates: off, asked for, required.

use pointsman_e2e::{Authority, Origin, Setup, Switch, TlsClient};

pointsman_e2e::for_threads!(off, request, require, resumed_with_certificate);

struct World {
    servers: Authority,
    clients: Authority,
    strangers: Authority,
    origin: Origin,
}

impl World {
    fn new() -> Self {
        let (servers, clients) = (Authority::new("server CA"), Authority::new("client CA"));
        Self { servers, clients, strangers: Authority::new("other CA"), origin: Origin::new("origin") }
    }

    fn start(&self, threads: usize, auth: &str) -> Switch {
        let keys = format!("client_ca = \"ca.crt\"\nclient_auth = \"{auth}\"");
        let pair = self.servers.server(&["shop.example"]);
        let rules = "if (tls.client.subject exists) { setHeader(\"x-subject\", \"${tls.client.subject}\"); }";
        let setup = Setup::new(threads).tls(&pair, &keys).file("ca.crt", &self.clients.pem());
        setup.rules(rules).pool("standard", &[&self.origin]).start()
    }

    fn nobody(&self) -> TlsClient {
        TlsClient::new(&self.servers)
    }

    fn known(&self) -> TlsClient {
        TlsClient::identified(&self.servers, &self.clients.client("known", &["known.example"]))
    }

    fn stranger(&self) -> TlsClient {
        TlsClient::identified(&self.servers, &self.strangers.client("stranger", &[]))
    }

    /// A server's certificate of the right authority: for servers, not for clients.
    fn wrong_purpose(&self) -> TlsClient {
        TlsClient::identified(&self.servers, &self.clients.server(&["known.example"]))
    }

    /// The status of a request, and the subject that the rule saw; nothing when TLS failed.
    fn ask(&self, switch: &Switch, trust: &TlsClient) -> Option<(u16, Option<String>)> {
        let mut client = switch.tls_client(trust, "shop.example").ok()?;
        client.try_send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").ok()?;
        let status = client.try_response().ok()?.status();
        Some((status, self.origin.last().head.field("x-subject").map(str::to_owned)))
    }
}

/// Nobody is asked.
fn off(threads: usize) {
    let world = World::new();
    let switch = world.start(threads, "off");
    for client in [world.nobody(), world.known(), world.stranger()] {
        assert_eq!(world.ask(&switch, &client), Some((200, None)));
    }
}

/// Who shows one must show a good one; who shows none is served.
fn request(threads: usize) {
    let world = World::new();
    let switch = world.start(threads, "request");
    assert_eq!(world.ask(&switch, &world.nobody()), Some((200, None)));
    assert_eq!(world.ask(&switch, &world.known()), Some((200, Some("CN=known".to_owned()))));
    assert_eq!(world.ask(&switch, &world.stranger()), None);
    assert_eq!(world.ask(&switch, &world.wrong_purpose()), None);
}

/// Nobody is served without one.
fn require(threads: usize) {
    let world = World::new();
    let switch = world.start(threads, "require");
    assert_eq!(world.ask(&switch, &world.known()), Some((200, Some("CN=known".to_owned()))));
    for client in [world.nobody(), world.stranger(), world.wrong_purpose()] {
        let before = world.origin.count();
        assert_eq!(world.ask(&switch, &client), None);
        assert_eq!(world.origin.count(), before);
    }
}

/// A resumed session still knows who the client is.
fn resumed_with_certificate(threads: usize) {
    let world = World::new();
    let switch = world.start(threads, "require");
    let known = world.known();
    for number in 0..5 {
        let mut client = switch.tls_client(&known, "shop.example").expect("a handshake");
        assert_eq!(client.resumed(), number > 0, "connection {number}");
        assert_eq!(client.get("/").status(), 200);
        assert_eq!(world.origin.last().head.field("x-subject"), Some("CN=known"));
    }
}
