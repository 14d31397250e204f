//! What the operator writes: a configuration, rules and certificates in a folder.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use crate::{Origin, Pair, Switch, binary};

/// A token that may change the switch.
pub const ADMIN_TOKEN: &str = "8f1d5b0c2e7a49630f1e2d3c4b5a6978";

/// A configuration to be. It starts with one plain listener called `shop` on a free port of loopback,
/// an access log on standard output and an admin listener, and looks at its files only on SIGHUP.
#[derive(Clone, Debug)]
pub struct Setup {
    top: String,
    has_log: bool,
    listeners: Vec<Listener>,
    pools: String,
    files: Vec<(String, String)>,
    shell_line: Option<String>,
    standard_input: Option<Arc<OwnedFd>>,
    program: Option<PathBuf>,
}

#[derive(Clone, Debug, Default)]
struct Listener {
    name: String,
    keys: String,
    tls: String,
    limits: String,
    has_rules: bool,
    default_pool: Option<String>,
}

impl Setup {
    /// The usual configuration with so many event-loop threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let mut setup = Self {
            top: format!("threads = {threads}\n"),
            has_log: true,
            listeners: Vec::new(),
            pools: String::new(),
            files: Vec::new(),
            shell_line: None,
            standard_input: None,
            program: None,
        };
        setup.listeners.push(Listener { name: "shop".to_owned(), ..Listener::default() });
        setup
    }

    /// Adds keys of the whole process, and tables that stand before the listeners.
    #[must_use]
    pub fn top(mut self, keys: &str) -> Self {
        writeln!(self.top, "{keys}").expect("memory");
        self
    }

    /// Without an access log.
    #[must_use]
    pub fn without_log(mut self) -> Self {
        self.has_log = false;
        self
    }

    /// The admin listener has this token, `ADMIN_TOKEN`, and an address that commands find.
    #[must_use]
    pub fn with_token(self) -> Self {
        let address = Origin::free_address();
        let admin = format!("[admin]\nbind = \"{address}\"\ntoken_file = \"admin.token\"");
        self.top(&admin).file("admin.token", &format!("deploy {ADMIN_TOKEN}\n"))
    }

    /// The rules of the current listener.
    #[must_use]
    pub fn rules(mut self, rules: &str) -> Self {
        let listener = self.current();
        listener.has_rules = true;
        let file = format!("{}.rules", listener.name);
        self.file(&file, &format!("{}\n", rules.trim()))
    }

    /// Adds keys of the current listener.
    #[must_use]
    pub fn listener(mut self, keys: &str) -> Self {
        writeln!(self.current().keys, "{keys}").expect("memory");
        self
    }

    /// Adds limits of the current listener.
    #[must_use]
    pub fn limits(mut self, keys: &str) -> Self {
        writeln!(self.current().limits, "{keys}").expect("memory");
        self
    }

    /// The default pool of the current listener: the first one named, unless this says otherwise.
    #[must_use]
    pub fn default_pool(mut self, pool: &str) -> Self {
        self.current().default_pool = Some(pool.to_owned());
        self
    }

    /// The current listener speaks TLS with this certificate; `keys` are further keys of its `tls` table.
    #[must_use]
    pub fn tls(mut self, pair: &Pair, keys: &str) -> Self {
        let listener = self.current();
        let name = listener.name.clone();
        listener.tls = format!("certificate = \"{name}.crt\"\nkey = \"{name}.key\"\n{keys}\n");
        self.pair(&name, pair)
    }

    /// The current listener under another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.current().name);
        self
    }

    /// Starts another listener with the limits of the current one; what follows is about it.
    #[must_use]
    pub fn listener_alike(self, name: &str) -> Self {
        let limits = self.listeners.last().map(|listener| listener.limits.clone()).unwrap_or_default();
        self.another_listener(name).limits(&limits)
    }

    /// Starts another listener; what follows is about it.
    #[must_use]
    pub fn another_listener(mut self, name: &str) -> Self {
        self.listeners.push(Listener { name: name.to_owned(), ..Listener::default() });
        self
    }

    /// A pool of these servers, each under its origin's name.
    #[must_use]
    pub fn pool(self, name: &str, servers: &[&Origin]) -> Self {
        self.pool_with(name, "", servers)
    }

    /// The same with further keys of the pool.
    #[must_use]
    pub fn pool_with(self, name: &str, keys: &str, servers: &[&Origin]) -> Self {
        let servers: Vec<_> = servers.iter().map(|server| (server.name(), server.address())).collect();
        self.pool_at(name, keys, &servers)
    }

    /// The same for addresses, where nothing need listen.
    #[must_use]
    pub fn pool_at(self, name: &str, keys: &str, servers: &[(&str, SocketAddr)]) -> Self {
        let entry = |(name, address): &(&str, SocketAddr)| server(name, *address, 1);
        let servers: Vec<_> = servers.iter().map(entry).collect();
        self.pool_of(name, keys, &servers)
    }

    /// The same with a weight for each server.
    #[must_use]
    pub fn weighted_pool(self, name: &str, keys: &str, servers: &[(&Origin, u32)]) -> Self {
        let entry = |(origin, weight): &(&Origin, u32)| server(origin.name(), origin.address(), *weight);
        let servers: Vec<_> = servers.iter().map(entry).collect();
        self.pool_of(name, keys, &servers)
    }

    /// Adds tables as they are written.
    #[must_use]
    pub fn raw(mut self, tables: &str) -> Self {
        writeln!(self.pools, "\n{tables}").expect("memory");
        self
    }

    /// Writes another file beside the configuration.
    #[must_use]
    pub fn file(mut self, name: &str, contents: &str) -> Self {
        self.files.retain(|(other, _)| other != name);
        self.files.push((name.to_owned(), contents.to_owned()));
        self
    }

    /// Writes a certificate and its key beside the configuration, as `NAME.crt` and `NAME.key`.
    #[must_use]
    pub fn pair(self, name: &str, pair: &Pair) -> Self {
        self.file(&format!("{name}.crt"), &pair.certificate).file(&format!("{name}.key"), &pair.key)
    }

    /// A line of shell that runs before the switch in its process: `ulimit -n 120`.
    #[must_use]
    pub fn after(mut self, shell_line: &str) -> Self {
        self.shell_line = Some(shell_line.to_owned());
        self
    }

    /// What the switch, or the line of shell before it, has as standard input.
    #[must_use]
    pub fn standard_input(mut self, input: OwnedFd) -> Self {
        self.standard_input = Some(Arc::new(input));
        self
    }

    /// Another build of the switch than the one beside the running test.
    #[must_use]
    pub fn program(mut self, program: &Path) -> Self {
        self.program = Some(program.to_owned());
        self
    }

    pub(crate) fn program_or_built(&self) -> &Path {
        self.program.as_deref().unwrap_or_else(|| binary::program())
    }

    pub(crate) fn input(&self) -> Stdio {
        let input = self.standard_input.as_ref();
        input.map_or_else(Stdio::null, |input| input.try_clone().expect("descriptors").into())
    }

    pub(crate) fn shell_line(&self) -> Option<&str> {
        self.shell_line.as_deref()
    }

    /// The configuration as text.
    ///
    /// # Panics
    /// Never: memory can be written.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Only the tests about changed files want the switch to look by itself.
        self.unless_given(&mut text, "watch_ms", "0");
        // Without it every start draws another key, and sticky choices could not be compared.
        self.unless_given(&mut text, "sticky_key", "\"000102030405060708090a0b0c0d0e0f\"");
        text.push_str(&self.top);
        if self.has_log && !self.top.contains("[access_log]") {
            text.push_str("\n[access_log]\npath = \"-\"\n");
        }
        if !self.top.contains("[admin]") {
            text.push_str("\n[admin]\nbind = \"127.0.0.1:0\"\n");
        }
        for listener in &self.listeners {
            listener.write(&mut text, self.first_pool());
        }
        text.push_str(&self.pools);
        text
    }

    /// Writes everything into a folder; the configuration is called `pointsman.toml`.
    ///
    /// # Panics
    /// When the folder cannot be written.
    pub fn write(&self, folder: &Path) {
        let write = |name: &str, contents: &str| {
            // By rename, so that a switch that looks at its files never sees half of one.
            let (next, path) = (folder.join(format!(".{name}")), folder.join(name));
            std::fs::write(&next, contents).expect("a writable folder");
            if name.ends_with(".token") {
                std::fs::set_permissions(&next, Permissions::from_mode(0o600)).expect("it is ours");
            }
            std::fs::rename(next, path).expect("a writable folder");
        };
        for (name, contents) in &self.files {
            write(name, contents);
        }
        write("pointsman.toml", &self.text());
    }

    /// Starts the switch and waits until it is ready.
    #[must_use]
    pub fn start(&self) -> Switch {
        Switch::start(self)
    }

    fn pool_of(mut self, name: &str, keys: &str, servers: &[String]) -> Self {
        let servers = servers.join(", ");
        write!(self.pools, "\n[pool.{name}]\nservers = [{servers}]\n{keys}\n").expect("memory");
        self
    }

    fn unless_given(&self, text: &mut String, key: &str, value: &str) {
        if !self.top.contains(key) {
            writeln!(text, "{key} = {value}").expect("memory");
        }
    }

    fn first_pool(&self) -> Option<&str> {
        let (_, rest) = self.pools.split_once("[pool.")?;
        rest.split(']').next()
    }

    fn current(&mut self) -> &mut Listener {
        self.listeners.last_mut().expect("there is always one")
    }
}

impl Listener {
    fn write(&self, text: &mut String, first_pool: Option<&str>) {
        write!(text, "\n[[listener]]\nname = \"{}\"\n", self.name).expect("memory");
        if !self.keys.contains("bind = ") {
            text.push_str("bind = \"127.0.0.1:0\"\n");
        }
        if self.has_rules {
            writeln!(text, "rules = \"{}.rules\"", self.name).expect("memory");
        }
        if let Some(pool) = self.default_pool.as_deref().or(first_pool) {
            writeln!(text, "pool = \"{pool}\"").expect("memory");
        }
        text.push_str(&self.keys);
        for (table, keys) in [("tls", &self.tls), ("limits", &self.limits)] {
            if !keys.is_empty() {
                write!(text, "[listener.{table}]\n{keys}").expect("memory");
            }
        }
    }
}

fn server(name: &str, address: SocketAddr, weight: u32) -> String {
    format!("{{ name = \"{name}\", address = \"{address}\", weight = {weight} }}")
}
