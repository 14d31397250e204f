//! What stands around the switch: its configuration, rules that change, servers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::behaviour::Ports;
use super::client::Client;
use super::server::Servers;
use super::tally::Tally;
use crate::failure::{Because, Result};
use crate::packages::located;
use crate::process::{Process, Start};
use crate::project::written;

/// How long the switch waits for open exchanges at its end.
pub(super) const DRAIN_MAX: Duration = Duration::from_secs(10);

/// How long a client may take for a head, and how long it may be silent in a body or take nothing of an answer.
pub(super) const HEAD_MAX: Duration = Duration::from_secs(4);
pub(super) const STALL_MAX: Duration = Duration::from_secs(6);
/// How often a rule changes.
const RELOAD_EVERY: Duration = Duration::from_secs(3);
/// How long a changed rule may take to be in force; the files are looked at far more often.
const RELOAD_MAX: Duration = Duration::from_secs(20);

/// Everything that runs.
pub(super) struct Site {
    pub(super) switch: Process,
    /// Reads the access log, every line of it, as it is written.
    pub(super) log_reader: Process,
    pub(super) ports: Ports,
    admin: u16,
    rules: PathBuf,
    _origin: Process,
    _servers: Servers,
}

impl Site {
    /// `own` is this program, optimised: as the servers and as the reader of the log it must not be what is
    /// waited for.
    pub(super) fn start(switch: &Path, own: &Path, folder: &Path) -> Result<Self> {
        let log = folder.join("origin.log");
        let arguments = ["origin".into()];
        let origin = Start { name: "the origin", program: own, arguments: &arguments, log: &log };
        let mut origin = Process::start(&origin)?;
        let steady: Vec<u16> = origin.wait_for(|said| {
            let line = said.split_once('\n')?.0;
            Some(line.split(' ').filter_map(|port| port.parse().ok()).collect())
        })?;
        let servers = Servers::start()?;
        certificate(folder)?;
        let rules = folder.join("soak.rules");
        std::fs::write(&rules, rules_text(0)).because(|| "cannot write the rules".into())?;
        let file = folder.join("soak.toml");
        let text = configuration(&steady, servers.steady, servers.dying);
        std::fs::write(&file, text).because(|| "cannot write the configuration".into())?;
        let words = ["run".into(), "--config".into(), file.into()];
        let (log, counts) = (folder.join("switch.log"), folder.join("access-log.counts"));
        let switch = Start { name: "the switch", program: switch, arguments: &words, log: &log };
        let arguments = ["read-log".into()];
        let reader = Start { name: "the log's reader", program: own, arguments: &arguments, log: &counts };
        let (mut switch, log_reader) = Process::start_read_by(&switch, &reader)?;
        let (ports, admin) = switch.wait_for(ports)?;
        Ok(Self { switch, log_reader, ports, admin, rules, _origin: origin, _servers: servers })
    }

    /// The sum of all samples of a metric.
    pub(super) fn metric(&self, name: &str) -> std::result::Result<u64, String> {
        self.metric_with(name, "")
    }

    /// The same of those that have this label, as the page shows it.
    pub(super) fn metric_with(&self, name: &str, label: &str) -> std::result::Result<u64, String> {
        let mut client = Client::connect(self.admin)?;
        client.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let text = String::from_utf8(client.answer()?.body).map_err(|error| error.to_string())?;
        let samples = text
            .lines()
            .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])))
            .filter(|line| line.contains(label));
        let values: Option<Vec<u64>> = samples.map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect();
        let values = values.filter(|values| !values.is_empty());
        Ok(values.ok_or_else(|| format!("no whole numbers for the metric `{name}`"))?.iter().sum())
    }

    /// Changes a rule, tells the switch or lets it find out, and waits for the rule to be in force.
    pub(super) fn reload_until(&self, over: &AtomicBool, tally: &Tally) {
        let mut generation = 0_u32;
        while !over.load(Ordering::Relaxed) {
            generation += 1;
            tally.note("reload with a changed rule", self.reload(generation));
            std::thread::sleep(RELOAD_EVERY);
        }
    }

    fn reload(&self, generation: u32) -> std::result::Result<(), String> {
        // Renamed into place: half a file would be refused, and rightly.
        let new = self.rules.with_extension("new");
        let written =
            std::fs::write(&new, rules_text(generation)).and_then(|()| std::fs::rename(&new, &self.rules));
        written.map_err(|error| format!("cannot write the rules: {error}"))?;
        if generation.is_multiple_of(2) {
            self.switch.signal("HUP")?;
        }
        let wanted = format!("rules {generation}");
        let started = Instant::now();
        let mut client = Client::connect(self.ports.plain)?;
        while started.elapsed() < RELOAD_MAX {
            let answer = client.get("/which")?;
            if answer.expect(200, wanted.as_bytes()).is_ok() {
                return Ok(());
            }
            if answer.closes {
                client = Client::connect(self.ports.plain)?;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("`{wanted}` are not in force after {RELOAD_MAX:?}"))
    }
}

/// Where it listens, once it says that it is ready.
fn ports(said: &str) -> Option<(Ports, u16)> {
    said.lines().find(|line| line.starts_with("ready "))?;
    let port = |start: &str| {
        let start = format!("{start}address=127.0.0.1:");
        let line = said.lines().find_map(|line| line.strip_prefix(&start))?;
        line.split(' ').next()?.parse().ok()
    };
    let ports = Ports { plain: port("listening name=plain ")?, tls: port("listening name=tls ")? };
    Some((ports, port("admin ")?))
}

fn rules_text(generation: u32) -> String {
    format!(
        "which: if (path == \"/which\") {{ respond(200, \"rules {generation}\"); }}\n\
         big: if (path endsWith \"/1m\" && header[\"x-soak\"] exists) {{ tag(\"soak\"); }}\n\
         uploads: if (path under \"/up\" || path under \"/ok\") {{ routeTo(own); }}\n\
         broken: if (path under \"/broken\") {{ routeTo(own); }}\n\
         shaky: if (path under \"/shaky\") {{ rewritePath(\"^/shaky\", \"/ok\"); routeTo(shaky); }}\n\
         sticky: if (cookie[\"session\"] exists) {{ routeTo(steady, STICKY_ON(cookie[\"session\"])); }}\n\
         else: routeTo(steady);\n"
    )
}

/// Limits are short, so that slow clients meet them many times in a soak.
fn configuration(steady: &[u16], own: u16, dying: u16) -> String {
    let servers: Vec<String> = steady.iter().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
    let drain_ms = DRAIN_MAX.as_millis();
    let (head_ms, stall_ms) = (HEAD_MAX.as_millis(), STALL_MAX.as_millis());
    let limits = format!(
        "limits = {{ head_ms_max = {head_ms}, idle_ms_max = 8000, body_ms_max = {stall_ms}, write_ms_max = {stall_ms} }}\n"
    );
    let pool_limits = "idle_ms_max = 3000\nresponse_ms_max = 30000\n";
    format!(
        "threads = 2\nwatch_ms = 200\ndrain_ms_max = {drain_ms}\n\
         # Every line is read; nobody wants to keep them.\n\
         access_log = {{ path = \"-\" }}\nadmin.bind = \"127.0.0.1:0\"\n\n\
         [[listener]]\nname = \"plain\"\nbind = \"127.0.0.1:0\"\nrules = \"soak.rules\"\n{limits}\n\
         [[listener]]\nname = \"tls\"\nbind = \"127.0.0.1:0\"\nrules = \"soak.rules\"\n{limits}\
         tls = {{ certificate = \"soak.crt\", key = \"soak.key\" }}\n\n\
         [pool.steady]\nbalance = \"least-connections\"\nservers = [{}]\n{pool_limits}\n\
         [pool.own]\nservers = [\"127.0.0.1:{own}\"]\n{pool_limits}\n\
         [pool.shaky]\nservers = [\"127.0.0.1:{dying}\", \"127.0.0.1:{own}\"]\n{pool_limits}",
        servers.join(", ")
    )
}

/// ECDSA P-256, signed by itself.
fn certificate(folder: &Path) -> Result<()> {
    let mut openssl = Command::new(located("openssl")?);
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
    openssl.args(["-days", "90", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
    written(openssl.arg("-out").arg(folder.join("soak.crt")).arg("-keyout").arg(folder.join("soak.key")))
        .map(drop)
}
