//! A switch as a user of the crate starts it, with its files in a folder that goes with it.

use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use pointsman_config::Plan;
use pointsman_relay::{Capacity, Inherited, Start, Switch, Threads};
use pointsman_telemetry::{Metrics, Sinks};
use pointsman_tls::Client;
use rcgen::CertifiedKey;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;

/// What the certificate is for.
pub(crate) const NAME: &str = "shop.example";

/// The pools; all lead to the same server.
const POOLS: [&str; 4] = ["api", "static", "img", "web"];

pub(crate) struct Site {
    pub(crate) client: Client,
    switch: Switch,
    certificate: String,
    key: String,
    _folder: TempDir,
}

impl Site {
    pub(crate) fn start(origin: u16) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
        let (certificate, key) = (cert.pem(), signing_key.serialize_pem());
        let save = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        save("site.crt", &certificate);
        save("site.key", &key);
        save("three.rules", &three_rules());
        save("hundred.rules", &hundred_rules());
        save("orders.rules", &orders_rules());
        save("site.toml", &configuration(origin));
        let loaded = Plan::load(&folder.path().join("site.toml"), None).expect("a good configuration");
        let start = Start {
            threads: Threads::start(1, true).expect("a thread"),
            metrics: Metrics::new(1, "0", SystemTime::now()),
            sinks: Sinks::default(),
            descriptors_max: None,
            capacity: Capacity { threads: 1, connections_max: 1024, buffer_bytes_max: 1 << 30 },
            sticky_key: [7; 16],
            client_id_key: [9; 16],
            inherited: Inherited::default(),
            by_hand: Vec::new(),
            sticky_clients: None,
            notes: Arc::default(),
        };
        let switch = Switch::start(loaded.plan, start).expect("free ports");
        let client = Client::trusting(&folder.path().join("site.crt")).expect("a certificate");
        Self { client, switch, certificate, key, _folder: folder }
    }

    pub(crate) fn address(&self, listener: &str) -> SocketAddr {
        let addresses = self.switch.addresses();
        addresses
            .iter()
            .find(|address| *address.listener == *listener)
            .expect("a listener")
            .address
            .address()
            .expect("no Unix socket")
    }

    /// The certificate for a server that is not ours.
    pub(crate) fn bare_server(&self) -> Arc<ServerConfig> {
        let chain = CertificateDer::from_pem_slice(self.certificate.as_bytes()).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(rustls::DEFAULT_VERSIONS)
            .expect("known versions")
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .expect("a key that fits");
        Arc::new(config)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.switch.stop();
    }
}

/// Each set of rules twice, without TLS and with it.
fn configuration(origin: u16) -> String {
    let mut text = String::from("threads = 1\nwatch_ms = 0\n");
    for rules in ["three", "hundred", "orders"] {
        for (ending, tls) in
            [("", ""), ("-tls", "tls = { certificate = \"site.crt\", key = \"site.key\" }\n")]
        {
            write!(
                text,
                "\n[[listener]]\nname = \"{rules}{ending}\"\nbind = \"127.0.0.1:0\"\n\
                 rules = \"{rules}.rules\"\npool = \"web\"\n{tls}"
            )
            .expect("a string takes all");
        }
    }
    for pool in POOLS {
        write!(text, "\n[pool.{pool}]\nservers = [\"127.0.0.1:{origin}\"]\n").expect("a string takes all");
    }
    text
}

fn three_rules() -> String {
    let prefixes = ["/api/", "/static/", "/img/"].iter().zip(POOLS);
    prefixes
        .map(|(prefix, pool)| format!("if (path startsWith \"{prefix}\") {{ routeTo({pool}); }}\n"))
        .collect()
}

/// Some requests are decided by their bodies: not those that are measured.
fn orders_rules() -> String {
    "if (method == \"PUT\" && json.order.total > 52000) { routeTo(api); }\n\
     if (path startsWith \"/api/\") { routeTo(api); }\n\
     if (xml.order/total > 5 || form[\"total\"] in (3..5)) { routeTo(static); }\n"
        .to_owned()
}

/// Ten prefixes with ten tenants each; the last rule is the one that decides.
fn hundred_rules() -> String {
    let rule = |number: usize| {
        let (prefix, tenant, pool) = (number / 10, number % 10, POOLS[number % 3]);
        format!(
            "if (path startsWith \"/app{prefix}/\" && header[\"x-tenant\"] == \"t{tenant}\") {{ routeTo({pool}); }}\n"
        )
    };
    (0..100).map(rule).collect()
}
